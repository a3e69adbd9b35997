"""What each way of a provider leaves behind: calls, answers, requests on the wire, and the score in a solve table.

Every case is one task that a worker is asked over each of the routes that behave differently, with one retry, and once
more when the provider is well. Which status and class it is, ``test_outcomes`` says; here is what follows from it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pytest
import sqlalchemy as sa

from trinity_assets.errors import IncompleteCellError
from trinity_assets.grading.solves import grade_answers, solves_data_version
from trinity_assets.grading.specs import ExactGrader, GradingSpec, Settlement
from trinity_assets.routing.specs import SplitSpec
from trinity_assets.routing.table import join_table, score_matrix
from trinity_assets.workers.collection import Collection, collect
from trinity_assets.workers.ledger import Ledger
from trinity_assets.workers.ledger_tables import ANSWERS, CALLS
from trinity_assets.workers.outcomes import FAILURES
from trinity_assets.workers.retrying import RetryPolicy
from trinity_assets.workers.specs import Limits, LiteLLMProvider, Price, PromptStyle, Sampling, WorkerSpec
from trinity_assets.workers.tables import answers_data_version
from trinity_assets_tests import scripted_server as play
from trinity_assets_tests.scripted_server import Behaviour, ScriptedServer
from trinity_assets_tests.workers.conftest import KEY, KEY_VARIABLE, MakeWorker, prompts
from trinity_assets_tests.workers.test_outcomes import BEHAVIOURS, ROUTES

ATTEMPTS = 2
ONE_RETRY = RetryPolicy(attempts=ATTEMPTS, base_s=0.01, cap_s=0.02, retry_after_cap_s=5)
RETRY_AFTER_S = 0.4
SHORT_S = 0.3
"""The time limit of workers that will run into it; all others have seconds."""

STALLS_S = 3.0
"""What the faster of the slow answers would have taken."""

PRICE = Price(input_per_mtok=1, output_per_mtok=2)
USAGE_USD = (10 + 2 * 5) / 1e6
"""What the usage that the server reports costs at that price."""

Cost = Literal["price", "rejected", "unknown"]


@dataclass(frozen=True)
class Case:
    """A way of the provider, what its calls come to, and a part of the message when the cell fails.

    ``where`` is the provider's URL when it is not the server's; ``slow`` runs into the time limit.
    """

    behaviour: Behaviour
    status: str
    error_class: str | None
    cost: Cost
    says: str = ""
    where: str | None = None
    slow: bool = False

    @property
    def failure(self) -> bool:
        """Weather, or the account's fault: never a score."""
        return self.status in FAILURES

    @property
    def calls(self) -> int:
        """How often the task is asked in one run."""
        return ATTEMPTS if self.status == "failed_transient" else 1


COSTS: dict[str, Cost] = {
    # Counted by the provider, so the worker's price makes the cost, also of what is no answer.
    "good": "price",
    "eos": "price",
    "content_none": "price",
    "blank": "price",
    "no_choices": "price",
    "tool_call": "price",
    "malformed_call": "price",
    "length": "price",
    "reasoning_only": "price",
    "refusal": "price",
    "content_filter": "price",
    "mid_generation": "price",
    # Something may have been generated, and nobody said how much.
    "no_usage": "unknown",
    "policy": "unknown",
    "408": "unknown",
    "500": "unknown",
    "502": "unknown",
    "html": "unknown",
    "json_list": "unknown",
    "no_fields": "unknown",
    "error_in_200": "unknown",
    "stall": "unknown",
    "drip": "unknown",
    # Sent away before anything was generated.
    "context": "rejected",
    "llama_context": "rejected",
    "too_large": "rejected",
    "too_large_for_tier": "rejected",
    "rate_limit": "rejected",
    "rate_limit_worded_as_quota": "rejected",
    "409": "rejected",
    "425": "rejected",
    "503": "rejected",
    "529": "rejected",
    "quota": "rejected",
    "402": "rejected",
    "credits": "rejected",
    "401": "rejected",
    "403": "rejected",
    "404": "rejected",
    "400": "rejected",
    "422": "rejected",
}
"""The behaviours of ``test_outcomes``, with where the cost of their calls comes from."""

SLOW = ("stall", "drip")

REFUSING = "refusing"
"""Stands for the URL of a port where nobody listens."""

UNSUPPORTED = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
)
UNSUPPORTED_VALUE = "Unsupported value: 'temperature' does not support 0.0 with this model. Only 1 is supported."
CREDITS = "This request requires more credits, or fewer max_tokens. You requested up to 16 tokens, but can afford 3."
BUDGET = "Budget has been exceeded! Current cost: 10.01, Max budget: 10.0"
NO_MODEL = "The model `scripted` does not exist or you do not have access to it."

CASES: dict[str, Case] = {
    **{name: Case(*BEHAVIOURS[name], cost, slow=name in SLOW) for name, cost in COSTS.items()},
    "zero_usage": Case(play.answer("4", usage=(0, 0)), "answered", None, "unknown"),
    "unknown_finish": Case(
        play.answer("4", choice={"native_finish_reason": "some_news"}, finish="some_news"),
        "failed_transient",
        "unknown_finish_reason",
        "price",
    ),
    "error_in_choice": Case(
        play.answer("The answer", choice={"error": {"message": "upstream died", "code": 502}}),
        "failed_transient",
        "mid_generation_error",
        "price",
        says="upstream died",
    ),
    "rests": Case(play.status(429, retry_after=str(RETRY_AFTER_S)), "failed_transient", "rate_limited", "rejected"),
    "overloaded_rests": Case(
        play.status(503, retry_after=str(RETRY_AFTER_S)), "failed_transient", "overloaded", "rejected"
    ),
    "out_of_credits": Case(play.status(402, CREDITS), "failed_fatal", "quota", "rejected", says="more credits"),
    "budget": Case(play.status(400, BUDGET), "failed_fatal", "quota", "rejected", says="Budget has been exceeded"),
    "no_model": Case(play.status(404, NO_MODEL), "failed_fatal", "not_found", "rejected", says="does not exist"),
    "parameter": Case(
        play.status(400, UNSUPPORTED, error={"param": "max_tokens", "code": "unsupported_parameter"}),
        "failed_fatal",
        "configuration",
        "rejected",
        says="'max_tokens'",
    ),
    "value": Case(
        play.status(422, UNSUPPORTED_VALUE, error={"param": "temperature", "code": "unsupported_value"}),
        "failed_fatal",
        "configuration",
        "rejected",
        says="'temperature'",
    ),
    "reset": Case(play.reset(), "failed_transient", "connection", "unknown"),
    "truncated_body": Case(play.truncated_body(), "failed_transient", "connection", "unknown"),
    "unknown_host": Case(play.reset(), "failed_transient", "connection", "unknown", where="http://provider.invalid/v1"),
    "refused": Case(play.reset(), "failed_transient", "connection", "unknown", where=REFUSING),
}

RESTS = [name for name in CASES if name.endswith("rests")]
ROUTED = [(route, name) for route in ROUTES for name in CASES]


@dataclass(frozen=True)
class Played:
    """What a case left behind, and what asking again did when the provider was well."""

    first: Collection
    calls: list[tuple[Any, ...]]
    answers: list[tuple[Any, ...]]
    times: list[float]
    again: Collection
    times_again: list[float]


Everything = dict[tuple[str, str], Played]


def make_worker_of(route: str, name: str, url: str) -> WorkerSpec:
    """The worker of a case; its provider has a name of its own, so that no case's weather is another's."""
    case = CASES[name]
    provider = LiteLLMProvider(
        name=f"{route}_{name}",
        route=route,
        api_base=url,
        key_env=KEY_VARIABLE,
        limits=Limits(concurrency=2),
        timeout_s=SHORT_S if case.slow else 20,
    )
    return WorkerSpec(
        name=f"worker_{route}_{name}",
        provider=provider,
        model=f"{route}_{name}",
        prompt_name="plain",
        prompt=PromptStyle(),
        sampling=Sampling(max_tokens=16),
        price=PRICE,
    )


def kept(ledger: Ledger, table: sa.Table, worker: str, *columns: str) -> list[tuple[Any, ...]]:
    """What a table of the ledger holds of a worker, in order of arrival."""
    query = sa.select(*(table.c[name] for name in columns)).where(table.c.worker == worker).order_by(table.c.at)
    with ledger.database.reading() as connection:
        return [tuple(row) for row in connection.execute(query)]


def played(server: ScriptedServer, ledger: Ledger, route: str, name: str, refusing: str) -> Played:
    """Ask the one task of a case, and again once the provider, at the server's URL, is well."""
    case = CASES[name]
    where = {None: server.url, REFUSING: refusing}.get(case.where, case.where)
    worker, well = (make_worker_of(route, name, str(url)) for url in (where, server.url))
    task, question = f"{route}/{name}", f"2+2, {name}?"

    def asked() -> list[float]:
        return [one.at for one in server.received(worker.model) if one.messages[-1]["content"] == question]

    server.script(worker.model, case.behaviour)
    first = collect(worker, "bench", {task: question}, ledger, retry=ONE_RETRY)
    calls = kept(ledger, CALLS, worker.name, "attempt", "status", "error_class", "cost_usd", "cost_source", "latency_s")
    answers = kept(ledger, ANSWERS, worker.name, "status", "cost_usd")
    times = asked()
    server.script(worker.model, play.answer("4"))
    again = collect(well, "bench", {task: question}, ledger, retry=ONE_RETRY)
    return Played(first, calls, answers, times, again, asked()[len(times) :])


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everything]:
    """Every case over every route, once for all tests: most of the time goes into opening connections."""
    url = f"sqlite:///{tmp_path_factory.mktemp('misbehaving') / 'ledger.sqlite'}"
    with (
        pytest.MonkeyPatch.context() as patch,
        ScriptedServer() as server,
        play.refusing() as refusing,
        Ledger(url) as ledger,
    ):
        patch.setenv(KEY_VARIABLE, KEY)
        yield {(route, name): played(server, ledger, route, name, refusing) for route, name in ROUTED}


def scores(everything: Everything, settlement: Settlement) -> dict[tuple[str, str], float]:
    """The score of each case's task in the table that a router learns from; NaN is missing."""
    answers = pd.concat([one.first.frame for one in everything.values() if len(one.first.frame)], ignore_index=True)
    ids = [f"{route}/{name}" for route, name in everything]
    gold = pd.DataFrame({"task_id": ids, "payload": json.dumps({"answer": "4"})})
    solves = grade_answers(answers, gold, GradingSpec(grader=ExactGrader(kind="exact"), settlement=settlement)).frame
    tasks = pd.DataFrame({"task_id": ids, "category": "sums", "group": ids})
    table = join_table({("scripted", "bench"): solves}, {"bench": tasks}, ["scripted"], SplitSpec())
    matrix = score_matrix(table, ["scripted"])
    return {(route, name): float(score) for (route, name), score in zip(everything, matrix[:, 0], strict=True)}


@pytest.fixture(scope="module")
def solved(everything: Everything) -> dict[tuple[str, str], float]:
    """Where every settled outcome that is no answer counts as unsolved."""
    return scores(everything, Settlement())


@pytest.fixture(scope="module")
def spared(everything: Everything) -> dict[tuple[str, str], float]:
    """Where every settled outcome that is no answer is missing."""
    fields = ("no_answer", "truncated", "refused", "context_exceeded", "timed_out")
    return scores(everything, Settlement.model_validate(dict.fromkeys(fields, "missing")))


@pytest.mark.parametrize(("route", "name"), ROUTED)
def test_every_attempt_is_one_request_and_one_row(everything: Everything, route: str, name: str) -> None:
    case, seen = CASES[name], everything[route, name]
    cost = {"price": pytest.approx(USAGE_USD), "rejected": 0.0, "unknown": None}[case.cost]
    source = None if case.cost == "unknown" else case.cost
    attempts = range(1, case.calls + 1)
    assert [row[:5] for row in seen.calls] == [
        (attempt, case.status, case.error_class, cost, source) for attempt in attempts
    ]
    # Neither litellm nor an SDK asks on its own; a provider that cannot be reached is asked as often, in vain.
    assert len(seen.times) == (case.calls if case.where is None else 0)
    if case.slow:
        assert all(SHORT_S <= row[5] < STALLS_S for row in seen.calls)


@pytest.mark.parametrize(("route", "name"), ROUTED)
def test_only_what_settled_is_an_answer_and_a_cell_without_one_says_why(
    everything: Everything, route: str, name: str
) -> None:
    case, seen = CASES[name], everything[route, name]
    assert seen.answers == [(status, cost) for _, status, _, cost, *_ in seen.calls if not case.failure]
    assert seen.first.complete == (not case.failure)
    assert len(seen.first.frame) == len(seen.answers)
    if case.failure:
        with pytest.raises(IncompleteCellError) as info:
            seen.first.require_complete()
        said = str(info.value)
        assert f"1 of 1 answers are missing (provider {route}_{name}: 1 {case.error_class})" in said
        assert case.says in said and KEY not in said


@pytest.mark.parametrize(("route", "name"), ROUTED)
def test_a_failure_is_asked_again_and_what_settled_never(everything: Everything, route: str, name: str) -> None:
    case, seen = CASES[name], everything[route, name]
    assert len(seen.times_again) == seen.again.calls == int(case.failure)
    assert (seen.again.new, seen.again.reused) == ((1, 0) if case.failure else (0, 1))
    assert list(seen.again.frame["status"]) == ["answered" if case.failure else case.status]


@pytest.mark.parametrize(("route", "name"), ROUTED)
def test_only_a_fact_about_the_worker_is_a_score(
    solved: dict[tuple[str, str], float], spared: dict[tuple[str, str], float], route: str, name: str
) -> None:
    """A failure is missing, never 0; what else is no answer is what the benchmark's settlement says."""
    case = CASES[name]
    if case.status == "answered":
        assert solved[route, name] == spared[route, name] == 1.0
    else:
        assert math.isnan(solved[route, name]) if case.failure else solved[route, name] == 0.0
        assert math.isnan(spared[route, name])


@pytest.mark.parametrize("name", RESTS)
@pytest.mark.parametrize("route", ROUTES)
def test_a_rest_that_the_provider_asks_for_is_taken(everything: Everything, route: str, name: str) -> None:
    first, second = everything[route, name].times
    assert second - first >= RETRY_AFTER_S


@pytest.mark.parametrize("route", ROUTES)
def test_a_long_rest_is_neither_slept_through_nor_cut_short(
    route: str, server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger
) -> None:
    """The SDKs sleep up to two minutes of it, whatever their time limit is."""
    server.script("limited", play.status(429, retry_after="90"))
    collection = collect(make_worker("limited", route=route), "bench", prompts(3), ledger, retry=ONE_RETRY)
    assert server.count("limited") == collection.calls == 1
    assert collection.seconds < 60
    assert collection.stopped == "the provider asks to wait 90 s (rate_limited)"
    assert collection.failures == {"not_asked": 2, "rate_limited": 1}


@pytest.mark.parametrize("body", [b"", b'{"choices": [{"index": 0, "mess'])
@pytest.mark.parametrize("route", ROUTES)
def test_a_body_that_is_no_json_is_called_a_bad_response(
    route: str, body: bytes, server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger
) -> None:
    server.script("garbage", play.raw(body))
    once = RetryPolicy(attempts=1)
    collection = collect(make_worker("garbage", route=route), "bench", prompts(1), ledger, retry=once)
    assert collection.failures == {"bad_response": 1}


def test_what_answered_is_kept_with_its_fingerprint(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger
) -> None:
    body = {**play.completion("4", model="m-2026-01-31"), "system_fingerprint": "fp_44709d6fcb"}
    server.script("plain", play.json_body(body))
    frame = collect(make_worker(), "bench", prompts(1), ledger).frame
    assert list(zip(frame["model_returned"], frame["fingerprint"], strict=True)) == [("m-2026-01-31", "fp_44709d6fcb")]
    for table in (CALLS, ANSWERS):
        columns = ("model_returned", "fingerprint")
        assert kept(ledger, table, "scripted_worker", *columns) == [("m-2026-01-31", "fp_44709d6fcb")]


# --- a key that stops being good --------------------------------------------------------------------------------------

K = 7
"""Good answers before the provider says 401."""


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_key_that_is_withdrawn_stops_that_worker_and_no_other(
    concurrency: int, server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, hasty: RetryPolicy
) -> None:
    refused = play.status(401, f"Incorrect API key provided: {KEY}")
    server.script("withdrawn", *[play.answer("4", delay_s=0.01)] * K, refused)
    worker = make_worker("withdrawn", name="withdrawn", concurrency=concurrency)
    elsewhere = make_worker("elsewhere", name="elsewhere")
    elsewhere = elsewhere.model_copy(
        update={"provider": elsewhere.provider.model_copy(update={"name": "another_provider"})}
    )
    stopped = collect(worker, "bench", prompts(40), ledger, retry=hasty)
    for healthy in (make_worker("same", name="same", concurrency=concurrency), elsewhere):
        assert collect(healthy, "bench", prompts(40), ledger, retry=hasty).complete
        assert server.count(healthy.model) == 40
    # One further call, and those that were under way by then.
    asked = server.count("withdrawn")
    assert K + 1 <= asked <= K + concurrency
    missing = 40 - K
    assert (stopped.new, stopped.calls, len(stopped.frame)) == (K, asked, K)
    assert stopped.failures == {"not_asked": 40 - asked, "authentication": asked - K}
    with pytest.raises(IncompleteCellError) as info:
        stopped.require_complete()
    first = str(info.value).splitlines()[0]
    assert first == (
        f"withdrawn on bench: {missing} of 40 answers are missing "
        f"(provider scripted: {40 - asked} not_asked, {asked - K} authentication)"
    )
    assert KEY not in str(info.value)


# --- the order in which answers come ----------------------------------------------------------------------------------


def test_nothing_depends_on_the_order_in_which_answers_come(
    server: ScriptedServer, make_worker: MakeWorker, tmp_path: Path
) -> None:
    """The same cell, asked twice into two ledgers: what came first then comes last."""
    tasks = prompts(8)
    gold = pd.DataFrame(
        {"task_id": list(tasks), "payload": [json.dumps({"answer": str(index % 3)}) for index in range(8)]}
    )
    frames, solves, arrivals = [], [], []
    for name, delays in {"forth": range(8), "back": range(7, -1, -1)}.items():

        def reply(received: play.Received, delays: Sequence[int] = delays) -> play.Reply:
            index = int(received.messages[-1]["content"].split()[-1])
            return play.answer(str(index % 2), delay_s=0.03 * delays[index])(received)

        server.script("plain", reply)
        with Ledger(f"sqlite:///{tmp_path / name}.sqlite") as ledger:
            frames.append(collect(make_worker(concurrency=8), "bench", tasks, ledger).frame)
            arrivals.append(kept(ledger, CALLS, "scripted_worker", "task_id"))
        solves.append(grade_answers(frames[-1], gold, GradingSpec(grader=ExactGrader(kind="exact"))).frame)
    assert arrivals[0] != arrivals[1]
    for first, second in (frames, solves):
        pd.testing.assert_frame_equal(first.drop(columns="latency_s"), second.drop(columns="latency_s"))
    assert answers_data_version(frames[0]) == answers_data_version(frames[1])
    assert solves_data_version(solves[0]) == solves_data_version(solves[1])
    assert list(solves[0]["score"]) == [float(index % 3 == index % 2) for index in range(8)]
