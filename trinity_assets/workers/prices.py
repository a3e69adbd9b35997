"""What a worker's tokens cost: by the catalog, else by litellm's price list, else nobody knows."""

from __future__ import annotations

import functools
import importlib.metadata

from trinity_assets.workers.requests import AnswerRequest
from trinity_assets.workers.specs import EmbeddedProvider, Messages, Price, WorkerSpec

TOKENS_PER_MTOK = 1_000_000

CHARACTERS_PER_TOKEN = 3
"""A low guess for English text (about 4), so that a reservation is seldom too small."""

FREE = Price(input_per_mtok=0, output_per_mtok=0)


def known_price(worker: WorkerSpec) -> Price | None:
    """The worker's own price, else what litellm's list says of its model, else None; an embedded model is free.

    The first look into litellm's list imports litellm (seconds).
    """
    if worker.price is not None:
        return worker.price
    if isinstance(worker.provider, EmbeddedProvider):
        return FREE
    return _listed_price(f"{worker.provider.route}/{worker.model}")


def list_version() -> str:
    """Which price list :func:`known_price` reads, as the ledger calls it."""
    return f"litellm {importlib.metadata.version('litellm')}"


def cost_usd(price: Price, input_tokens: float, output_tokens: float) -> float:
    """What that many tokens cost in USD."""
    return (input_tokens * price.input_per_mtok + output_tokens * price.output_per_mtok) / TOKENS_PER_MTOK


def guessed_tokens(messages: Messages) -> int:
    """How many tokens a conversation may have: its characters at a low guess of characters per token."""
    return sum(len(message["content"]) for message in messages) // CHARACTERS_PER_TOKEN


def most_tokens(request: AnswerRequest) -> tuple[int, int]:
    """Input and output tokens that one call for ``request`` takes at most, as far as characters tell the input."""
    return guessed_tokens(request.messages), int(request.parameters["max_tokens"])


@functools.cache
def _listed_price(model: str) -> Price | None:
    from trinity_assets.workers.litellm_library import load_litellm

    litellm = load_litellm()
    try:
        info = litellm.get_model_info(model)
    except Exception:  # litellm raises a plain Exception for a model that it does not know
        return None
    inputs, outputs = info.get("input_cost_per_token"), info.get("output_cost_per_token")
    if not inputs and not outputs:  # 0 is what litellm says of a model whose price its list does not hold
        return None
    return Price(
        input_per_mtok=float(inputs or 0) * TOKENS_PER_MTOK, output_per_mtok=float(outputs or 0) * TOKENS_PER_MTOK
    )
