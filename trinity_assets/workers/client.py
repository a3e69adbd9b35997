"""One HTTP call to a worker, bounded in time, classified and priced. Retries are ``retrying``'s business."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import Coroutine, Mapping
from typing import Any, Self

from trinity_assets.workers.endpoints import Endpoint
from trinity_assets.workers.error_classes import TIMEOUT
from trinity_assets.workers.litellm_library import load_litellm, no_hidden_retries
from trinity_assets.workers.outcomes import Outcome, classify_response
from trinity_assets.workers.prices import cost_usd, list_version
from trinity_assets.workers.provider_errors import classify_error
from trinity_assets.workers.specs import Messages, Price, WorkerSpec

LAST_LOOK_S = 0.25
"""How long a reply is looked for once its time is over: after a SIGCONT timers ring before what has come is read."""

_STOOD_STILL_S = 86_400.0
"""How much longer than the limit the SDK waits for each read, so that a process that stood still may go on."""

_NOBODY_IS_ASKED: Messages = [{"role": "user", "content": "ready?"}]


class WorkerClient:
    """Calls one worker at one endpoint. Use within one running event loop; leaving it closes the connections."""

    def __init__(self, worker: WorkerSpec, endpoint: Endpoint) -> None:
        self._litellm = load_litellm()
        self._price = worker.price
        self._timeout_s = endpoint.timeout_s
        self._arguments = _arguments(endpoint)
        self._secrets = (endpoint.key,) if endpoint.key else ()
        self._turn = endpoint.turn

    async def __aenter__(self) -> Self:
        """Make a call that goes nowhere: what litellm builds at its first one would be the latency of an answer."""
        with contextlib.suppress(Exception):  # what is wrong with a call is said by one that is made
            await self._litellm.acompletion(messages=_NOBODY_IS_ASKED, mock_response="ready", **self._arguments)
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._litellm.close_litellm_async_clients()

    async def call(self, messages: Messages, parameters: Mapping[str, Any]) -> Outcome:
        """Ask once, with the sampling ``parameters``: exactly one HTTP request, whatever comes back.

        The SDK's ``timeout`` bounds each read; a body that drips lasts for ever under it. The call as a whole is
        bounded here. Where the process stood still meanwhile, a reply that has arrived counts, without a latency.

        Raises:
            ProviderError: what must surround the call (the endpoint's ``turn``) cannot be had; no request was made.
        """
        async with self._turn(messages) as body_fields:
            sent = dict(parameters)
            if extra_body := sent.pop("extra", {}) | body_fields:
                sent["extra_body"] = extra_body
            return await self._call(messages, sent)

    async def _call(self, messages: Messages, parameters: Mapping[str, Any]) -> Outcome:
        started = time.monotonic()
        try:
            response = await _within(
                self._litellm.acompletion(messages=messages, **self._arguments, **parameters), self._timeout_s
            )
        except Exception as error:  # the classification lets bugs through
            outcome = classify_error(error, self._secrets)
        else:
            outcome = classify_response(response, self._secrets)
            outcome = priced(outcome, self._price, response._hidden_params.get("response_cost"))
        latency_s = time.monotonic() - started
        stood_still = latency_s > self._timeout_s + 2 * LAST_LOOK_S and outcome.error_class != TIMEOUT
        return dataclasses.replace(outcome, latency_s=None if stood_still else latency_s)


async def _within(call: Coroutine[Any, Any, Any], seconds: float) -> Any:
    """What ``call`` returns, if it does within ``seconds``, or while the process stood still beyond them.

    Raises:
        TimeoutError: it did not; the call is cancelled.
    """
    asked = asyncio.ensure_future(call)
    try:
        await asyncio.wait({asked}, timeout=seconds)
        stood_still = True
        while stood_still and not asked.done():
            looked = time.monotonic()
            await asyncio.wait({asked}, timeout=LAST_LOOK_S)
            stood_still = time.monotonic() - looked > 2 * LAST_LOOK_S
        return await asyncio.wait_for(asked, 0)
    finally:
        asked.cancel()


def priced(outcome: Outcome, price: Price | None, provider_cost_usd: float | None) -> Outcome:
    """``outcome`` with its cost: the worker's own price first, then what litellm computed, else unknown.

    litellm computes 0.0 where the provider sent no usage, and for models that its list holds without their price (see
    ``prices.known_price``): only a price of zero that the catalog declares makes a call free.
    """
    inputs, outputs = outcome.input_tokens, outcome.output_tokens
    counted = inputs is not None and outputs is not None
    if price is not None and price.input_per_mtok == price.output_per_mtok == 0:
        return _costing(outcome, 0.0, "price", price.version)
    if price is not None and inputs is not None and outputs is not None:
        return _costing(outcome, cost_usd(price, inputs, outputs), "price", price.version)
    if price is None and counted and provider_cost_usd is not None and provider_cost_usd > 0:
        return _costing(outcome, float(provider_cost_usd), "provider", list_version())
    return outcome


def _costing(outcome: Outcome, usd: float, source: str, version: str) -> Outcome:
    return dataclasses.replace(outcome, cost_usd=usd, cost_source=source, price_version=version)


def _arguments(endpoint: Endpoint) -> dict[str, Any]:
    """What every call passes to litellm beside the question and its parameters."""
    arguments = {
        "model": endpoint.model,
        "api_base": endpoint.api_base,
        "api_key": endpoint.key,
        "timeout": endpoint.timeout_s + _STOOD_STILL_S,
    }
    return {name: value for name, value in arguments.items() if value is not None} | no_hidden_retries(endpoint.route)
