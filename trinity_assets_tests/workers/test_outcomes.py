"""Every way in which a provider answers or fails, over real HTTP, through the routes that behave differently."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from trinity_assets.workers.client import WorkerClient
from trinity_assets.workers.endpoints import open_endpoint
from trinity_assets.workers.litellm_library import load_litellm
from trinity_assets.workers.outcomes import FAILURES, SETTLED, Outcome, Status, classify_response
from trinity_assets.workers.prices import known_price
from trinity_assets.workers.provider_errors import classify_error, retry_after_s
from trinity_assets.workers.specs import Price, WorkerSpec
from trinity_assets_tests import scripted_server as play
from trinity_assets_tests.scripted_server import ScriptedServer
from trinity_assets_tests.workers.conftest import KEY, MakeWorker

ROUTES = ["openai", "openrouter", "nvidia_nim"]

QUOTA = "You exceeded your current quota, please check your plan and billing details."

BEHAVIOURS = {
    "good": (play.answer("4"), "answered", None),
    "eos": (play.answer("4", finish="eos"), "answered", None),
    "no_usage": (play.answer("4", usage=None), "answered", None),
    "content_none": (play.answer(None), "no_answer", "no_content"),
    "blank": (play.answer(" \n"), "no_answer", "no_content"),
    "no_choices": (play.no_choices(), "failed_transient", "no_choices"),
    "tool_call": (play.answer("x", finish="tool_calls"), "no_answer", "finish_reason"),
    "malformed_call": (play.answer("x", finish="MALFORMED_FUNCTION_CALL"), "no_answer", "finish_reason"),
    "length": (play.answer("The ans", finish="length"), "truncated", "token_limit"),
    "reasoning_only": (
        play.answer("", finish="length", message={"reasoning_content": "hm"}),
        "truncated",
        "token_limit",
    ),
    "refusal": (play.answer(None, message={"refusal": "I cannot"}), "refused", "refusal"),
    "content_filter": (play.answer("x", finish="content_filter"), "refused", "content_filter"),
    "policy": (play.status(400, "triggering the content management policy"), "refused", "content_policy"),
    "context": (play.status(400, "This model's maximum context length is 9"), "context_exceeded", "context_exceeded"),
    "llama_context": (
        play.status(400, "request (31 tokens) exceeds the available context size (8 tokens)"),
        "context_exceeded",
        "context_exceeded",
    ),
    "too_large": (play.status(413, "request too large"), "context_exceeded", "context_exceeded"),
    "too_large_for_tier": (play.status(413, "tokens per minute (TPM): Limit 6000"), "failed_transient", "rate_limited"),
    "mid_generation": (play.mid_generation_error(), "failed_transient", "mid_generation_error"),
    "rate_limit": (play.status(429), "failed_transient", "rate_limited"),
    "rate_limit_worded_as_quota": (
        play.status(429, QUOTA + " Please retry in 7s."),
        "failed_transient",
        "rate_limited",
    ),
    "408": (play.status(408), "failed_transient", "request_timeout"),
    "409": (play.status(409), "failed_transient", "conflict"),
    "425": (play.status(425), "failed_transient", "conflict"),
    "500": (play.status(500), "failed_transient", "server_error"),
    "502": (play.status(502), "failed_transient", "server_error"),
    "503": (play.status(503), "failed_transient", "overloaded"),
    "529": (play.status(529), "failed_transient", "overloaded"),
    "html": (play.html(), "failed_transient", "bad_response"),
    "json_list": (play.json_body([1]), "failed_transient", "bad_response"),
    "no_fields": (play.json_body({}), "failed_transient", "bad_response"),
    "error_in_200": (play.error_in_200(), "failed_transient", "server_error"),
    "stall": (play.stall(3), "failed_transient", "timeout"),
    "drip": (play.drip(0.05), "failed_transient", "timeout"),
    "quota": (play.status(429, QUOTA, error={"code": "insufficient_quota"}), "failed_fatal", "quota"),
    "402": (play.status(402), "failed_fatal", "quota"),
    "credits": (play.status(400, "Your credit balance is too low"), "failed_fatal", "quota"),
    "401": (play.status(401, f"Incorrect API key provided: {KEY}"), "failed_fatal", "authentication"),
    "403": (play.status(403), "failed_fatal", "authentication"),
    "404": (play.status(404, "model not found"), "failed_fatal", "not_found"),
    "400": (play.status(400, "Unknown parameter: foo"), "failed_fatal", "configuration"),
    "422": (play.status(422, "Unknown parameter: foo"), "failed_fatal", "configuration"),
}


def ask(worker: WorkerSpec, *, content: str = "2+2?") -> Outcome:
    async def once() -> Outcome:
        with open_endpoint(worker) as endpoint:
            async with WorkerClient(worker, endpoint) as client:
                return await client.call([{"role": "user", "content": content}], worker.sampling.parameters())

    return asyncio.run(once())


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("case", BEHAVIOURS)
def test_every_behaviour_has_its_status_and_is_one_request(
    case: str, route: str, server: ScriptedServer, make_worker: MakeWorker
) -> None:
    behaviour, status, error_class = BEHAVIOURS[case]
    server.script(case, behaviour)
    # What litellm builds at a route's first call takes a second of a busy core.
    outcome = ask(make_worker(case, route=route, timeout_s=1.0 if error_class == "timeout" else 20.0))
    assert (str(outcome.status), outcome.error_class) == (status, error_class)
    assert server.count(case) == 1
    assert KEY not in (outcome.error or "")


def finished(finish: str, text: str | None) -> tuple[str, str | None]:
    """What a response with that finish reason of its provider means."""
    response = load_litellm().ModelResponse(
        model="m", choices=[{"finish_reason": finish, "message": {"role": "assistant", "content": text}}]
    )
    outcome = classify_response(response)
    return str(outcome.status), outcome.error_class


@pytest.mark.parametrize("text", ["The answer is", "", None])
@pytest.mark.parametrize(
    "finish",
    [
        "error", "ERROR", "abort", "aborted", "cancelled", "canceled", "timeout", "network_error",
        "insufficient_system_resource", "MALFORMED_RESPONSE",
    ],
)  # fmt: skip
def test_a_generation_that_broke_off_is_weather_whatever_it_had_written(finish: str, text: str | None) -> None:
    assert finished(finish, text) == ("failed_transient", "mid_generation_error")


@pytest.mark.parametrize("text", ["The answer is", None])
@pytest.mark.parametrize("finish", ["some_news", "FINISH_REASON_UNSPECIFIED"])
def test_a_finish_reason_that_nobody_knows_settles_nothing(finish: str, text: str | None) -> None:
    assert finished(finish, text) == ("failed_transient", "unknown_finish_reason")


@pytest.mark.parametrize("finish", ["stop", "STOP", "eos", "eos_token", "end_turn", "stop_sequence", "COMPLETE"])
def test_a_good_end_is_an_answer_in_every_providers_words(finish: str) -> None:
    assert finished(finish, "4") == ("answered", None)
    assert finished(finish, " ") == ("no_answer", "no_content")


def test_a_reason_of_the_upstream_provider_counts_beside_the_gateways_own(
    server: ScriptedServer, make_worker: MakeWorker
) -> None:
    server.script("good", play.answer("4", choice={"native_finish_reason": "completed"}))
    server.script("broken", play.answer("4", choice={"native_finish_reason": "abort"}))
    assert str(ask(make_worker("good", route="openrouter")).status) == "answered"
    assert str(ask(make_worker("broken", route="openrouter")).status) == "failed_transient"


def test_half_a_surrogate_becomes_a_replacement_character_and_whole_ones_stay(
    server: ScriptedServer, make_worker: MakeWorker
) -> None:
    server.script("half", play.answer("a\udc00b \U0001f600 \ud83d", model="m\ud83d"))
    outcome = ask(make_worker("half"))
    assert (outcome.text, outcome.model_returned) == ("a\ufffdb \U0001f600 \ufffd", "m\ufffd")
    server.script("half_error", play.status(400, "bad \udc00 parameter"))
    assert "bad \ufffd parameter" in (ask(make_worker("half_error")).error or "")


def test_a_key_from_a_variable_of_any_name_is_in_no_error(
    server: ScriptedServer, make_worker: MakeWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_PASS", " plainword123\n")
    worker = make_worker("quotes")
    worker = worker.model_copy(update={"provider": worker.provider.model_copy(update={"key_env": "MY_PASS"})})
    server.script("quotes", play.status(401, "wrong: plainword123"))
    assert "wrong: [redacted]" in (ask(worker).error or "")
    server.script("quotes", play.answer(None, message={"refusal": "not for plainword123"}))
    assert ask(worker).error == "not for [redacted]"


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("behaviour", [play.reset(), play.truncated_body()])
def test_a_broken_connection_is_weather(
    behaviour: play.Behaviour, route: str, server: ScriptedServer, make_worker: MakeWorker
) -> None:
    server.script("broken", behaviour)
    outcome = ask(make_worker("broken", route=route))
    assert outcome.status is Status.FAILED_TRANSIENT
    assert outcome.cost_usd is None
    assert server.count("broken") == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("-3", 0.0),
        ("soon", None),
        ("nan", None),
        ("-NaN", None),
        ("inf", None),
        ("1e400", None),
        ("Mon, 01 Jan 2001 00:00:00 GMT", 0.0),
        ("Mon, 01 Jan 999999999999 00:00:00 GMT", None),
        ("Mon, 01 Jan 2001 00:00:00 +99999999999999", None),
    ],
)
def test_whatever_stands_in_a_retry_after_is_read_or_passed_over(header: str, seconds: float | None) -> None:
    error = Exception()
    error.litellm_response_headers = {"retry-after": header}  # type: ignore[attr-defined]
    assert retry_after_s(error) == seconds


@pytest.mark.parametrize("route", ROUTES)
def test_retry_after_is_read_wherever_it_stands(route: str, server: ScriptedServer, make_worker: MakeWorker) -> None:
    server.script("limited", play.status(429, retry_after="7"))
    outcome = ask(make_worker("limited", route=route))
    assert outcome.retry_after_s == 7.0


def test_the_time_limit_bounds_the_call_not_each_read(server: ScriptedServer, make_worker: MakeWorker) -> None:
    server.script("drip", play.drip(0.1))
    ask(make_worker("plain"))
    started = time.monotonic()
    assert ask(make_worker("drip", timeout_s=0.5)).error_class == "timeout"
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("route", ["openai", "openrouter"])
def test_a_reply_that_arrived_while_the_process_stood_still_counts(
    route: str, server: ScriptedServer, make_worker: MakeWorker
) -> None:
    """As after SIGSTOP and SIGCONT: while the loop waits for its sockets, replies come in and time limits pass."""
    calls = 4
    before = signal.signal(signal.SIGUSR1, lambda *_: time.sleep(3.0))
    stopping = threading.Timer(0.05, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1))
    server.script("slow", play.answer("4", delay_s=0.4))
    worker = make_worker("slow", route=route, timeout_s=2.0)

    async def stand_still() -> list[Outcome]:
        with open_endpoint(worker) as endpoint:
            async with WorkerClient(worker, endpoint) as client:
                question = [{"role": "user", "content": "2+2?"}]
                parameters = worker.sampling.parameters()
                asked = [asyncio.create_task(client.call(question, parameters)) for _ in range(calls)]
                while server.count() < calls:
                    await asyncio.sleep(0.005)
                stopping.start()
                return list(await asyncio.gather(*asked))

    try:
        outcomes = asyncio.run(stand_still())
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert [one.status for one in outcomes] == [Status.ANSWERED] * calls
    assert [one.latency_s for one in outcomes] == [None] * calls, "nobody knows when they arrived"


def test_a_truncated_answer_keeps_its_text_and_counts(server: ScriptedServer, make_worker: MakeWorker) -> None:
    server.script("cut", play.answer("The ans", finish="length", usage=(7, 3), model="cut-2026"))
    outcome = ask(make_worker("cut"))
    assert (outcome.text, outcome.finish_reason, outcome.model_returned) == ("The ans", "length", "cut-2026")
    assert (outcome.input_tokens, outcome.output_tokens) == (7, 3)


def test_only_set_parameters_and_the_extra_ones_reach_the_wire(server: ScriptedServer, make_worker: MakeWorker) -> None:
    ask(make_worker("plain", sampling={"max_tokens": 9, "stop": ["\n"], "extra": {"top_k": 1}}))
    body = server.received("plain")[0].body
    assert body == {
        "model": "plain",
        "messages": [{"role": "user", "content": "2+2?"}],
        "temperature": 0.0,
        "max_tokens": 9,
        "stop": ["\n"],
        "top_k": 1,
    }


PRICE = Price(input_per_mtok=2, output_per_mtok=10)
FREE = Price(input_per_mtok=0, output_per_mtok=0)


@pytest.mark.parametrize(
    ("price", "usage", "cost"),
    [
        (PRICE, (1000, 100), 0.003),
        (PRICE, None, None),
        (None, (1000, 100), None),
        (None, None, None),
        (FREE, None, 0.0),
    ],
)
def test_cost_is_the_workers_price_or_unknown_never_zero_for_unknown(
    price: Price | None,
    usage: tuple[int, int] | None,
    cost: float | None,
    server: ScriptedServer,
    make_worker: MakeWorker,
) -> None:
    server.script("priced", play.answer("4", usage=usage))
    assert ask(make_worker("priced", price=price)).cost_usd == (None if cost is None else pytest.approx(cost))


def test_a_known_model_has_litellms_price(server: ScriptedServer, make_worker: MakeWorker) -> None:
    server.script("gpt-4o-mini", play.answer("4", usage=(1_000_000, 0)))
    outcome = ask(make_worker("gpt-4o-mini"))
    assert (outcome.cost_source, outcome.cost_usd) == ("provider", pytest.approx(0.15))


def test_a_model_that_is_listed_without_a_price_has_cost_nobody_knows_how_much(
    server: ScriptedServer, make_worker: MakeWorker
) -> None:
    worker = make_worker("labs-leanstral-1-5", route="mistral")
    assert known_price(worker) is None
    outcome = ask(worker)
    assert outcome.status is Status.ANSWERED and outcome.input_tokens
    assert (outcome.cost_usd, outcome.cost_source, outcome.price_version) == (None, None, None)
    free = ask(worker.model_copy(update={"price": FREE}))
    assert (free.cost_usd, free.cost_source) == (0.0, "price")


def test_a_rejected_call_costs_nothing_and_a_lost_one_an_unknown_amount(
    server: ScriptedServer, make_worker: MakeWorker
) -> None:
    server.script("rejects", play.status(429))
    server.script("loses", play.status(500))
    assert ask(make_worker("rejects")).cost_usd == 0.0
    assert ask(make_worker("loses")).cost_usd is None


def test_statuses_are_settled_or_failures_and_nothing_else() -> None:
    assert {str(status) for status in SETTLED} == {
        "answered", "no_answer", "truncated", "refused", "context_exceeded", "timed_out",
    }  # fmt: skip
    assert {str(status) for status in FAILURES} == {"failed_transient", "failed_fatal"}


def test_a_bug_is_not_an_outcome() -> None:
    with pytest.raises(KeyError):
        classify_error(KeyError("bug"))


@pytest.mark.parametrize("tokens", [-5, 10**30, "12", 1.5])
def test_a_count_that_is_none_is_not_counted(tokens: Any) -> None:
    usage = SimpleNamespace(prompt_tokens=tokens, completion_tokens=tokens, total_tokens=tokens)
    message = SimpleNamespace(content="4", refusal=None, provider_specific_fields=None, tool_calls=None)
    choice = SimpleNamespace(message=message, finish_reason="stop", provider_specific_fields=None)
    outcome = classify_response(SimpleNamespace(usage=usage, choices=[choice], model="m"))
    assert (outcome.status, outcome.text) == (Status.ANSWERED, "4")
    assert (outcome.input_tokens, outcome.output_tokens) == (None, None)
