from __future__ import annotations

import pydantic
import pytest
from pydantic import ValidationError

from trinity_assets.workers.requests import answer_requests
from trinity_assets.workers.specs import (
    EmbeddedProvider,
    Limits,
    LiteLLMProvider,
    Price,
    PromptStyle,
    Sampling,
    Shot,
    WorkerLimits,
    WorkerSpec,
)

LITELLM = LiteLLMProvider(name="nim", route="nvidia_nim", key_env="NVIDIA_NIM_API_KEY")
WORKER = WorkerSpec(
    name="one", provider=LITELLM, model="m", prompt_name="direct", prompt=PromptStyle(), sampling=Sampling(max_tokens=8)
)


def test_a_style_is_system_then_shots_then_the_question_with_other_braces_untouched() -> None:
    style = PromptStyle(system="Be brief.", shots=(Shot(user="1+1?", assistant="2"),), user="{x} {prompt} {}")
    assert style.messages("a {prompt} b") == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "{x} a {prompt} b {}"},
    ]


def test_a_style_without_the_prompt_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"must contain \{prompt\}"):
        PromptStyle(user="hello")


def test_only_set_parameters_are_sent() -> None:
    assert Sampling(max_tokens=8).parameters() == {"temperature": 0.0, "max_tokens": 8}
    full = Sampling(max_tokens=8, temperature=0.5, top_p=0.9, stop=("\n",), seed=3, extra={"top_k": 1})
    assert full.parameters() == {
        "temperature": 0.5, "max_tokens": 8, "top_p": 0.9, "stop": ["\n"], "seed": 3, "extra": {"top_k": 1},
    }  # fmt: skip


def test_at_most_four_stop_sequences() -> None:
    with pytest.raises(ValidationError):
        Sampling(max_tokens=8, stop=("a", "b", "c", "d", "e"))


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"prompt_name": "other"},
        {"price": Price(input_per_mtok=1, output_per_mtok=2)},
        {"provider": LITELLM.model_copy(update={"api_base": "http://elsewhere", "key_env": "X", "timeout_s": 1.0})},
        {"provider": LITELLM.model_copy(update={"limits": Limits(concurrency=1, rpm=1), "route": "openai"})},
    ],
)
def test_what_is_no_part_of_the_answer_changes_no_digest(change: dict[str, object]) -> None:
    other = WORKER.model_copy(update=change)
    assert other.digest == WORKER.digest
    assert answer_requests(other, {"t": "q"}, 1) == answer_requests(WORKER, {"t": "q"}, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"prompt": PromptStyle(user="{prompt}!")},
        {"sampling": Sampling(max_tokens=9)},
        {"provider": LITELLM.model_copy(update={"name": "other"})},
    ],
)
def test_what_an_answer_depends_on_changes_both_digests(change: dict[str, object]) -> None:
    other = WORKER.model_copy(update=change)
    assert other.digest != WORKER.digest
    assert answer_requests(other, {"t": "q"}, 1)[0].digest != answer_requests(WORKER, {"t": "q"}, 1)[0].digest


EMBEDDED = EmbeddedProvider(name="local", package="no-such-distribution", file="a.gguf", context=512)


def test_the_file_as_released_and_its_context_are_the_model_of_an_embedded_provider() -> None:
    """The version, because another release may ship other bytes under the same name; the context, because it decides
    which prompts do not fit."""
    assert EMBEDDED.identity() == {
        "name": "local", "package": "no-such-distribution", "version": "missing", "file": "a.gguf", "context": 512,
    }  # fmt: skip
    installed = EMBEDDED.model_copy(update={"package": "pydantic"})
    assert installed.identity()["version"] == pydantic.VERSION
    assert EMBEDDED.model_copy(update={"slots": 9, "threads": 2}).identity() == EMBEDDED.identity()


def test_steps_of_one_embedded_model_use_the_cores_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert EMBEDDED.parallel_steps == 8
    assert EMBEDDED.model_copy(update={"threads": 3}).parallel_steps == 2
    assert EMBEDDED.model_copy(update={"threads": 16}).parallel_steps == 1
    assert LITELLM.parallel_steps == 4


def test_requests_are_one_per_task_and_sample_and_differ_by_sample_and_epoch() -> None:
    worker = WORKER.model_copy(update={"samples": 2})
    requests = answer_requests(worker, {"b": "q", "a": "q"}, 1)
    assert [(request.task_id, request.sample) for request in requests] == [("b", 0), ("b", 1), ("a", 0), ("a", 1)]
    assert requests[0].digest == requests[2].digest != requests[1].digest
    assert answer_requests(worker, {"b": "q"}, 2)[0].digest != requests[0].digest


def test_a_request_digest_is_pinned_because_the_ledger_is_keyed_by_it() -> None:
    assert (
        answer_requests(WORKER, {"t": "q"}, 1)[0].digest
        == "e326c021c19bee2acf8ae137656ace9e89d462f0c33ed225dd7790b3485e612a"
    )


def test_an_embedded_workers_request_digest_is_pinned_too() -> None:
    """It moved once, when the version of the package and the context became part of the identity: before, another
    release of the file or another context would have found the answers of the old one. The package is one that is not
    installed, so that the digest is the same everywhere."""
    worker = WORKER.model_copy(update={"provider": EMBEDDED})
    assert (
        answer_requests(worker, {"t": "q"}, 1)[0].digest
        == "ac20036097d54b4611521f5e059f309e4157f8196abc43a286bf2a978ebc5df8"
    )


def test_a_workers_limits_are_within_its_providers_limit_by_limit() -> None:
    bears = Limits(concurrency=8, rpm=60)
    assert WorkerLimits().within(bears) == bears
    assert WorkerLimits(concurrency=2, rpm=90, tpm=500).within(bears) == Limits(concurrency=2, rpm=60, tpm=500)
    assert WorkerLimits(concurrency=9, rpm=30).within(bears) == Limits(concurrency=8, rpm=30)
