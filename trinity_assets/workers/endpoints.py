"""Where a worker's calls go: the litellm model name, URL, key and time limit, ready before the first call."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Any

from trinity_assets.errors import MissingKeyError
from trinity_assets.workers.prefixes import SharedPrefixes
from trinity_assets.workers.specs import EmbeddedProvider, Limits, LiteLLMProvider, Messages, WorkerSpec

NO_KEY = "none"
"""What is sent to servers that want no key; the OpenAI SDK refuses to send nothing."""

EMBEDDED_TIMEOUT_S = 600.0
"""A generous bound: an embedded model on busy cores is slow, not broken."""


Turn = Callable[[Messages], AbstractAsyncContextManager[dict[str, Any]]]
"""What surrounds one call; gives body fields to send with it."""


def _plain_turn(messages: Messages) -> AbstractAsyncContextManager[dict[str, Any]]:
    return contextlib.nullcontext({})


@dataclass(frozen=True)
class Endpoint:
    """One reachable provider and what it bears. ``key`` None leaves the key to litellm's own convention.

    ``shared`` says whether other processes ask it, too, so that its limits are for all of them together.
    """

    model: str
    route: str
    api_base: str | None
    key: str | None
    timeout_s: float
    limits: Limits
    shared: bool = True
    turn: Turn = _plain_turn

    def __repr__(self) -> str:
        return f"Endpoint({self.model!r}, {self.api_base!r})"


@contextlib.contextmanager
def _litellm_endpoint(worker: WorkerSpec, provider: LiteLLMProvider) -> Iterator[Endpoint]:
    yield Endpoint(
        f"{provider.route}/{worker.model}",
        provider.route,
        provider.api_base,
        _key(worker, provider),
        worker.timeout_s or provider.timeout_s,
        provider.limits,
    )


@contextlib.contextmanager
def _embedded_endpoint(worker: WorkerSpec, provider: EmbeddedProvider) -> Iterator[Endpoint]:
    from trinity_assets.workers.embedded import serve

    with serve(provider) as url:
        timeout_s = worker.timeout_s or EMBEDDED_TIMEOUT_S
        limits, turn = Limits(concurrency=provider.slots), SharedPrefixes(url, provider.slots, timeout_s).turn
        yield Endpoint(
            f"openai/{worker.model}", "openai", f"{url}/v1", NO_KEY, timeout_s, limits, shared=False, turn=turn
        )


_OPENERS: dict[type, Callable[[WorkerSpec, Any], AbstractContextManager[Endpoint]]] = {
    LiteLLMProvider: _litellm_endpoint,
    EmbeddedProvider: _embedded_endpoint,
}
"""A new kind of provider is one entry here and one spec."""


def open_endpoint(worker: WorkerSpec) -> AbstractContextManager[Endpoint]:
    """The endpoint of ``worker``'s provider while the ``with`` block lasts; an embedded model is served meanwhile.

    Raises:
        MissingKeyError: the provider's key variable is not set.
        ProviderError: an embedded model cannot be served.
    """
    return _OPENERS[type(worker.provider)](worker, worker.provider)


def missing_variables(worker: WorkerSpec) -> list[str]:
    """The environment variables that ``worker``'s provider reads its key from, where they are not set."""
    provider = worker.provider
    if isinstance(provider, EmbeddedProvider):
        return []
    if provider.key_env is not None:
        return [] if os.environ.get(provider.key_env, "").strip() else [provider.key_env]
    if provider.api_base is not None:
        return []
    from trinity_assets.workers.litellm_library import load_litellm

    return list(load_litellm().validate_environment(f"{provider.route}/{worker.model}")["missing_keys"])


def _key(worker: WorkerSpec, provider: LiteLLMProvider) -> str | None:
    if missing := missing_variables(worker):
        raise MissingKeyError(
            f"provider {provider.name} needs {', '.join(missing)}, which is not set in the environment. No call was "
            "made; set it and run again, or leave its workers out of the pools"
        )
    if provider.key_env is not None:
        return os.environ[provider.key_env].strip()
    return NO_KEY if provider.api_base is not None else None
