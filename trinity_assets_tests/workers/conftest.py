"""What the tests of this package share: a scripted provider, an empty ledger, and workers at that provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from trinity_assets.workers.ledger import Ledger
from trinity_assets.workers.retrying import RetryPolicy
from trinity_assets.workers.specs import Limits, LiteLLMProvider, PromptStyle, Sampling, WorkerSpec
from trinity_assets_tests.scripted_server import ScriptedServer

KEY_VARIABLE = "SCRIPTED_API_KEY"
KEY = "sk-scripted-0123456789"

MakeWorker = Callable[..., WorkerSpec]


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """Answers with the question in upper case."""
    with ScriptedServer(lambda messages: messages[-1]["content"].upper()) as running:
        yield running


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    with Ledger(ledger_url) as opened:
        yield opened


@pytest.fixture
def make_worker(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> MakeWorker:
    """A worker at the scripted server; fields of the provider and of the worker may be given."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)

    def make(
        model: str = "plain",
        *,
        name: str = "scripted_worker",
        route: str = "openai",
        concurrency: int = 4,
        timeout_s: float = 5.0,
        max_tokens: int = 16,
        **worker: object,
    ) -> WorkerSpec:
        provider = LiteLLMProvider(
            name="scripted",
            route=route,
            api_base=server.url,
            key_env=KEY_VARIABLE,
            limits=Limits(concurrency=concurrency),
            timeout_s=timeout_s,
        )
        fields = {"prompt_name": "plain", "prompt": PromptStyle(), "sampling": Sampling(max_tokens=max_tokens)}
        return WorkerSpec.model_validate({"name": name, "provider": provider, "model": model, **fields, **worker})

    return make


@pytest.fixture
def hasty() -> RetryPolicy:
    """Retries without the waiting."""
    return RetryPolicy(base_s=0.01, cap_s=0.02)


def prompts(count: int) -> dict[str, str]:
    """``count`` tasks with a question each."""
    return {f"task_{index}": f"question {index}" for index in range(count)}
