"""On what terms a cell is asked: budgets, samples, a worker's own limits, probes, tasks that always take too long."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace

import pytest
import sqlalchemy as sa

from trinity_assets.errors import BudgetError
from trinity_assets.workers.asking import HEAD_START_S, PROBE_MESSAGES, Cell, Terms, ask_missing
from trinity_assets.workers.collection import collect
from trinity_assets.workers.endpoints import open_endpoint
from trinity_assets.workers.ledger import Entry, Ledger
from trinity_assets.workers.ledger_reports import failures
from trinity_assets.workers.ledger_tables import PERMITS, SCOPES
from trinity_assets.workers.outcomes import Status
from trinity_assets.workers.requests import answer_requests
from trinity_assets.workers.retrying import RetryPolicy
from trinity_assets.workers.specs import Price, Sampling, WorkerLimits
from trinity_assets.workers.timeouts import settle_timed_out
from trinity_assets_tests import scripted_server as play
from trinity_assets_tests.scripted_server import Behaviour, Received, Reply, ScriptedServer
from trinity_assets_tests.workers.conftest import MakeWorker, prompts
from trinity_assets_tests.workers.test_ledger import CALL, rows

SLOW_S = 4 * HEAD_START_S

HALF_A_DOLLAR = Price(input_per_mtok=0, output_per_mtok=100_000)
"""For the five tokens that the scripted server counts per answer; the sixteen that it may write are 1.60 USD."""


def slow_but_for_probes(received: Received) -> Reply:
    return play.answer("late", delay_s=0.0 if received.messages == PROBE_MESSAGES else 1.0)(received)


def test_a_runs_budget_ends_the_asking_before_it_is_passed(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger
) -> None:
    worker = make_worker(concurrency=1, price=HALF_A_DOLLAR)
    poor = collect(worker, "bench", prompts(20), ledger, run="first", run_budget_usd=4.0)
    assert server.count() == 5, "0.50 USD each; with 2.50 spent, another 1.60 would not fit"
    assert poor.failures == {"not_asked": 15} and poor.cost_usd == 2.5
    assert str(poor.stopped).startswith("the budget of 4 USD for this run is used up: 2.5 USD are spent")
    assert collect(worker, "bench", prompts(20), ledger, run="second", run_budget_usd=20.0).complete
    assert server.count() == 20


def test_a_budget_counts_what_other_workers_of_the_run_have_spent(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger
) -> None:
    one, other = (make_worker(name, name=name, concurrency=1, price=HALF_A_DOLLAR) for name in ("one", "other"))
    assert collect(one, "bench", prompts(3), ledger, run="r", run_budget_usd=4.0).complete
    assert len(collect(other, "bench", prompts(20), ledger, run="r", run_budget_usd=4.0).frame) == 2


def test_a_workers_budget_outlasts_the_run(server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger) -> None:
    worker = make_worker(concurrency=1, price=HALF_A_DOLLAR, budget_usd=2.7)
    for run, settled in (("first", 3), ("second", 3)):
        assert len(collect(worker, "bench", prompts(20), ledger, run=run).frame) == settled
    assert len(collect(worker, "bench", prompts(20), ledger, run="third", epoch=2).frame) == 3


def test_no_budget_is_promised_where_nobody_knows_a_price(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger
) -> None:
    with pytest.raises(BudgetError, match=r"nobody knows what plain costs; give worker scripted_worker a price"):
        collect(make_worker(), "bench", prompts(2), ledger, run_budget_usd=1.0)
    assert server.count() == 0


@pytest.mark.parametrize(("seed", "sent"), [(7, [7, 8, 9]), (None, [None] * 3)])
def test_samples_are_separate_questions_with_a_seed_each(
    seed: int | None, sent: list[int | None], server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger
) -> None:
    worker = make_worker(samples=3, concurrency=1, sampling=Sampling(max_tokens=16, temperature=1, seed=seed))
    collection = collect(worker, "bench", prompts(1), ledger)
    assert list(collection.frame["sample"]) == [0, 1, 2]
    assert [one.body.get("seed") for one in server.received()] == sent


def test_the_fingerprint_of_what_answered_is_kept(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, ledger_url: str
) -> None:
    server.script("plain", play.json_body(play.completion("4", model="plain-2026") | {"system_fingerprint": "fp_1"}))
    frame = collect(make_worker(), "bench", prompts(1), ledger).frame
    assert (frame["model_returned"][0], frame["fingerprint"][0]) == ("plain-2026", "fp_1")
    assert rows(ledger_url, "select fingerprint from calls") == [("fp_1",)]


def test_a_worker_has_a_time_limit_and_a_concurrency_of_its_own(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, hasty: RetryPolicy
) -> None:
    server.delay_s = 0.4
    worker = make_worker(timeout_s=5.0, concurrency=8, limits=WorkerLimits(concurrency=1))
    assert collect(worker, "bench", prompts(3), ledger, retry=hasty).complete
    times = server.times("plain")
    assert min(later - earlier for earlier, later in itertools.pairwise(times)) >= 0.4
    quick = worker.model_copy(update={"timeout_s": 0.1, "name": "quick"})
    assert collect(quick, "bench", prompts(1), ledger, epoch=2, retry=hasty).failures == {"timeout": 1}


def test_a_task_that_always_takes_too_long_is_settled_once_two_runs_have_seen_it(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, hasty: RetryPolicy
) -> None:
    server.script("plain", slow_but_for_probes)
    worker = make_worker(concurrency=1, timeout_s=0.4)
    for run, settled in (("first", 0), ("second", 2)):
        collection = collect(worker, "bench", prompts(2), ledger, run=run, settle_timeouts=True, retry=hasty)
        assert len(collection.frame) == settled
    assert list(collection.frame["status"]) == ["timed_out", "timed_out"]
    assert collection.frame["text"].isna().all() and collection.frame["cost_usd"].isna().all()
    asked = [one for one in server.received() if one.messages != PROBE_MESSAGES]
    assert len(asked) == 2 * 2 * 2, "two tasks, two runs, two attempts"
    before = server.count()
    assert collect(worker, "bench", prompts(2), ledger, run="third", retry=hasty).complete
    assert server.count() == before


@pytest.mark.parametrize("tasks", [1, 2, 6])
def test_what_a_silent_provider_does_not_answer_is_no_fact_about_its_worker(
    tasks: int, server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, hasty: RetryPolicy
) -> None:
    """One and two tasks do not open the breaker in their first run; six do."""
    server.script("plain", play.stall(5.0))
    worker = make_worker(timeout_s=0.1)
    for run in ("first", "second", "third"):
        collection = collect(worker, "bench", prompts(tasks), ledger, run=run, settle_timeouts=True, retry=hasty)
        assert len(collection.frame) == 0
    server.script("plain", play.answer("4"))
    well = make_worker(timeout_s=5.0)
    collection = collect(well, "bench", prompts(tasks), ledger, run="fourth", settle_timeouts=True, retry=hasty)
    assert list(collection.frame["status"]) == ["answered"] * tasks


def test_a_run_that_found_the_provider_silent_is_none_of_the_two(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, hasty: RetryPolicy
) -> None:
    worker = make_worker(timeout_s=0.4)
    runs = [("silent", play.stall(5.0), 0), ("second", slow_but_for_probes, 0), ("third", slow_but_for_probes, 1)]
    for run, behaviour, settled in runs:
        server.script("plain", behaviour)
        collection = collect(worker, "bench", prompts(1), ledger, run=run, settle_timeouts=True, retry=hasty)
        assert len(collection.frame) == settled


def test_a_provider_that_falls_silent_after_answering_settles_nothing(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, hasty: RetryPolicy
) -> None:
    worker, once = make_worker(concurrency=1, timeout_s=0.4), replace(hasty, timeout_attempts=1)
    for run, tasks in (("first", 3), ("second", 4)):
        server.script("plain", play.answer("4"), play.stall(5.0))
        collection = collect(worker, "bench", prompts(tasks), ledger, run=run, settle_timeouts=True, retry=once)
        assert set(collection.frame["status"]) == {"answered"}


def test_a_slow_task_stays_missing_unless_the_settlement_says_otherwise(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, hasty: RetryPolicy
) -> None:
    server.script("plain", play.answer("late", delay_s=1.0))
    for run in ("first", "second", "third"):
        collection = collect(make_worker(timeout_s=0.1), "bench", prompts(1), ledger, run=run, retry=hasty)
        assert collection.failures == {"timeout": 1}


@pytest.mark.parametrize(("lasted_s", "settled"), [(40.0, 0), (45.0, 1), (45.5, 1), (3600.0, 0)])
def test_only_what_took_the_whole_limit_of_a_process_that_ran_is_settled(
    lasted_s: float, settled: int, make_worker: MakeWorker, ledger: Ledger
) -> None:
    """A call that lasted much longer is that of a process that stood still."""
    (request,) = answer_requests(make_worker(), prompts(1), 1)
    probe = replace(CALL, request_digest="probe", attempt=0)
    slow = replace(CALL, request_digest=request.digest, status=Status.FAILED_TRANSIENT, error_class="timeout")
    for run, latency_s in (("first", 45.1), ("second", lasted_s)):
        ledger.record_all([Entry(replace(slow, run=run, latency_s=latency_s)), Entry(replace(probe, run=run))])
    assert settle_timed_out(ledger, [request], 45.0) == settled


def test_a_lower_limit_of_an_earlier_run_settles_nothing(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, hasty: RetryPolicy
) -> None:
    server.script("plain", play.answer("late", delay_s=1.0))
    for run, timeout_s in (("first", 0.1), ("second", 0.4)):
        worker = make_worker(timeout_s=timeout_s)
        collection = collect(worker, "bench", prompts(1), ledger, run=run, settle_timeouts=True, retry=hasty)
        assert collection.failures == {"timeout": 1}


def test_a_probe_is_a_cheap_call_and_nobodys_answer(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, ledger_url: str, hasty: RetryPolicy
) -> None:
    server.script("plain", play.answer("ok"), *[play.status(503)] * 5, play.answer("OK"), play.answer("ok"))
    worker = make_worker(concurrency=1, sampling=Sampling(max_tokens=500))
    collection = collect(worker, "bench", prompts(4), ledger, retry=hasty)
    assert (collection.failures, collection.new) == ({"overloaded": 1}, 3)
    probes = [one.body for one in server.received() if one.messages == PROBE_MESSAGES]
    assert [one["max_tokens"] for one in probes] == [16]
    assert rows(ledger_url, "select status from calls where attempt = 0") == [("answered",)]
    assert len(rows(ledger_url, "select text from answers")) == 3
    assert [(group.error_class, group.calls, group.unsettled) for group in failures(ledger)] == [("overloaded", 5, 1)]


def test_a_provider_that_answers_only_probes_ends_the_asking(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, hasty: RetryPolicy
) -> None:
    def only_probes(received: Received) -> Reply:
        well = received.messages == PROBE_MESSAGES
        return (play.answer("OK") if well else play.status(500))(received)

    server.script("plain", only_probes)
    collection = collect(make_worker(concurrency=1), "bench", prompts(60), ledger, retry=hasty)
    # Five failures open the breaker, seven times, with a probe between each.
    assert server.count() == 5 * (hasty.probes + 1) + hasty.probes
    assert collection.failures["not_asked"] > 50
    assert " answers nothing but probes, 6 by now: 5 calls in a row failed" in str(collection.stopped)


@pytest.mark.parametrize(("first", "asked"), [(play.status(401), 1), (play.answer("ok", delay_s=SLOW_S), 8)])
def test_a_refusal_costs_one_call_and_a_slow_first_answer_holds_nobody_up(
    first: Behaviour, asked: int, server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger
) -> None:
    server.script("plain", first, play.answer("ok"))
    collect(make_worker(concurrency=4), "bench", prompts(8), ledger)
    times = server.times("plain")
    assert len(times) == asked
    if asked > 1:
        assert sum(at - times[0] < SLOW_S for at in times[1:]) >= 3, "the others waited for the first answer"


def test_every_permit_is_ended_and_a_process_alone_with_its_model_leaves_no_scope(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, hasty: RetryPolicy
) -> None:
    worker = make_worker()
    assert collect(worker, "bench", prompts(6), ledger).complete
    with ledger.database.reading() as connection:
        assert connection.execute(sa.select(PERMITS.c.permit)).all() == []
        scopes = connection.execute(sa.select(SCOPES.c.scope)).scalars().all()
    assert sorted(scopes) == ["provider scripted", "worker scripted_worker"]
    with open_endpoint(worker) as endpoint:
        alone = replace(endpoint, shared=False)
        requests = answer_requests(worker, prompts(2), 2)
        tally = asyncio.run(ask_missing(Cell(worker, "bench", 2, "r"), requests, alone, ledger, Terms(hasty)))
    assert len(tally.settled) == 2
    with ledger.database.reading() as connection:
        assert sorted(connection.execute(sa.select(SCOPES.c.scope)).scalars()) == sorted(scopes)
        assert connection.execute(sa.select(PERMITS.c.permit)).all() == []
