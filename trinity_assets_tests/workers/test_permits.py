"""Permits: what lets the next call start, seen by several askings on one database and a clock that tests turn."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
import sqlalchemy as sa

from trinity_assets.workers.budgets import Budget, run_budget, worker_budget
from trinity_assets.workers.error_classes import KILLED
from trinity_assets.workers.ledger import Call, Entry, Ledger
from trinity_assets.workers.ledger_database import Database
from trinity_assets.workers.ledger_tables import CALLS, PERMITS, PROBE, SCOPES
from trinity_assets.workers.outcomes import Outcome, Status
from trinity_assets.workers.pace import Pace
from trinity_assets.workers.permits import POLL_S, Decision, Ended, Permits, Wish, forget
from trinity_assets.workers.retrying import RetryPolicy
from trinity_assets.workers.specs import Limits, WorkerLimits

ON_BOTH_DATABASES = True

GOOD = Outcome(Status.ANSWERED, text="4", input_tokens=4, output_tokens=6, cost_usd=0.25, cost_source="price")
DOWN = Outcome(Status.FAILED_TRANSIENT, error_class="overloaded", error="try later", cost_usd=0.0)
TOO_MUCH = Outcome(Status.FAILED_TRANSIENT, error_class="rate_limited", cost_usd=0.0, cost_source="rejected")
STALLED = Outcome(Status.FAILED_TRANSIENT, error_class="timeout")

RETRY = RetryPolicy(open_after=3, probes=3, base_s=1.0, cap_s=3.0)


class Clock:
    """The time by which every permit counts; it stands until a test moves it."""

    now = 1_000_000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    standing = Clock()
    monkeypatch.setattr(Database, "now", lambda database, connection: standing.now)
    return standing


def pace(
    *, worker: str = "w", limits: Limits | None = None, own: WorkerLimits | None = None, retry: RetryPolicy = RETRY
) -> Pace:
    return Pace("provider p", f"worker {worker}", limits or Limits(), own or WorkerLimits(), 45.0, retry)


def wish(*, attempt: int = 1, tokens: int = 10, usd: float | None = None, worker: str = "w", run: str = "r") -> Wish:
    return Wish("d" * 64, attempt, run, "p", worker, "b", "t", 0, 1, reserved_usd=usd, tokens=tokens)


def permit_of(answer: Decision) -> str:
    assert len(answer.permits) == 1
    return answer.permits[0]


class Asking:
    """One asking, which ends its calls as it is told."""

    def __init__(self, ledger: Ledger, at: Pace, budgets: list[Budget] | None = None) -> None:
        self.ledger = ledger
        self.pace = at
        self.permits = Permits(ledger.database, at, budgets or [])

    def take(self, wished: Wish | None = None) -> Decision:
        return self.permits.take([wished or wish()], wish(attempt=PROBE, tokens=1))

    def end(
        self, permit: str, outcome: Outcome, *, tokens: int | None = None, attempt: int = 1, again: bool = False
    ) -> None:
        call = Call(
            "d" * 64, attempt, "r", 1.0, "p", "w", "b", "t", 0, 1, outcome.status, None, None, None, None,
            outcome.cost_usd, outcome.cost_source, None, outcome.error_class, None, reserved_usd=0.5,
        )  # fmt: skip
        self.ledger.record_all([Entry(call, outcome.text, Ended(permit, self.pace, outcome, tokens))], again=again)

    def call(self, outcome: Outcome = GOOD, wished: Wish | None = None) -> None:
        """A call from its permit to its end."""
        answer = self.take(wished)
        attempt = PROBE if answer.probe else 1
        self.end(answer.probe or permit_of(answer), outcome, attempt=attempt)

    def start(self, most: int = 100) -> list[str]:
        """As many calls as may start now."""
        permits: list[str] = []
        while len(permits) < most and (answer := self.take()).permits:
            permits.append(answer.permits[0])
        return permits


# --- limits -----------------------------------------------------------------------------------------------------------


def test_calls_under_way_are_counted_over_every_asking_of_the_provider(ledger: Ledger, clock: Clock) -> None:
    limits = Limits(concurrency=3)
    one = Asking(ledger, pace(worker="w1", limits=limits))
    other = Asking(ledger, pace(worker="w2", limits=limits))
    mine, theirs = one.start(2), other.start()
    assert (len(mine), len(theirs)) == (2, 1)
    assert other.take() == Decision(wait_s=POLL_S)
    one.end(mine[0], GOOD)
    assert len(other.start()) == 1


def test_one_look_serves_everybody_who_waits_in_their_order(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace(limits=Limits(concurrency=3, tpm=100)), [run_budget(10.0, "r")])
    wishes = [wish(tokens=40, usd=4.0), wish(tokens=30, usd=4.0), wish(tokens=20, usd=4.0), wish(tokens=5, usd=0.0)]
    assert len(asking.permits.take(wishes, wish(attempt=PROBE)).permits) == 2, "the third would pass the budget"
    with ledger.database.reading() as connection:
        assert sorted(connection.execute(sa.select(PERMITS.c.tokens)).scalars()) == [30, 40]


def test_a_worker_keeps_its_own_limit_within_its_providers(ledger: Ledger, clock: Clock) -> None:
    limits = Limits(concurrency=8)
    one = Asking(ledger, pace(worker="w1", limits=limits, own=WorkerLimits(concurrency=2)))
    other = Asking(ledger, pace(worker="w2", limits=limits))
    assert (len(one.start()), len(other.start())) == (2, 6)


def test_requests_per_minute_are_evenly_spaced_over_every_asking(ledger: Ledger, clock: Clock) -> None:
    limits = Limits(concurrency=9, rpm=40)
    one = Asking(ledger, pace(worker="w1", limits=limits))
    other = Asking(ledger, pace(worker="w2", limits=limits))
    assert len(one.start()) == 1
    assert other.take().wait_s == pytest.approx(1.5)
    clock.now += 1.5
    assert len(other.start()) == 1 and one.take().wait_s == pytest.approx(1.5)


def test_tokens_of_any_minute_are_counted_and_what_was_not_used_is_given_back(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace(limits=Limits(tpm=100)))
    first = permit_of(asking.take(wish(tokens=90)))
    clock.now += 20
    assert asking.take(wish(tokens=20)) == Decision(wait_s=40)
    asking.end(first, GOOD, tokens=5)
    asking.call(wished=wish(tokens=95))
    clock.now += 40.5
    assert asking.take(wish(tokens=10)).wait_s == pytest.approx(19.5)


def test_a_call_above_the_limit_goes_once_the_minute_is_empty(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace(limits=Limits(tpm=100)))
    asking.call(wished=wish(tokens=500))
    assert asking.take(wish(tokens=500)) == Decision(wait_s=60)
    clock.now += 60
    assert asking.take(wish(tokens=500)).permits


def test_a_retry_after_holds_every_call_of_the_worker_and_no_other(ledger: Ledger, clock: Clock) -> None:
    one, other = Asking(ledger, pace(worker="w1")), Asking(ledger, pace(worker="w2"))
    one.call(replace(TOO_MUCH, retry_after_s=7.0))
    assert one.take() == Decision(wait_s=7) and other.take().permits


def test_a_very_long_retry_after_is_the_asking_that_heard_its_own_business(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace())
    asking.call(replace(TOO_MUCH, retry_after_s=86_400.0))
    assert asking.take() == Decision(wait_s=60)


# --- a clock that is set back -----------------------------------------------------------------------------------------


def test_requests_per_minute_are_spaced_on_after_the_clock_was_set_back(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace(limits=Limits(rpm=40)))
    asking.call()
    clock.now -= 3600
    for _ in range(3):
        assert asking.take().wait_s == pytest.approx(1.5)
        clock.now += 1.5
        asking.call()


def test_a_retry_after_is_kept_after_the_clock_was_set_back(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace())
    asking.call(replace(TOO_MUCH, retry_after_s=7.0))
    clock.now -= 3600
    assert asking.take() == Decision(wait_s=7)
    clock.now += 7
    asking.call(replace(TOO_MUCH, retry_after_s=5.0))
    assert asking.take() == Decision(wait_s=5)


def test_tokens_of_a_minute_are_counted_from_anew_after_the_clock_was_set_back(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace(limits=Limits(tpm=100), own=WorkerLimits(tpm=100)))
    asking.call(wished=wish(tokens=60))
    held = permit_of(asking.take(wish(tokens=30)))
    clock.now -= 3600
    assert asking.take(wish(tokens=60)) == Decision(wait_s=60), "nobody knows how long ago the minute was"
    asking.end(held, GOOD, tokens=30)
    clock.now += 60
    asking.call(wished=wish(tokens=60))
    assert asking.take(wish(tokens=60)) == Decision(wait_s=60)


def test_an_open_breaker_is_probed_in_time_after_the_clock_was_set_back(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace())
    asking.call()
    for _ in range(3):
        asking.call(DOWN)
    clock.now -= 3600
    assert asking.take() == Decision(wait_s=1)
    clock.now += 0.75
    assert asking.take() == Decision(wait_s=0.25), "it does not begin again with every look"
    clock.now += 0.25
    assert asking.take().probe is not None


def test_concurrency_halves_and_is_forgotten_after_the_clock_was_set_back(ledger: Ledger, clock: Clock) -> None:
    at = pace(limits=Limits(concurrency=8), retry=replace(RETRY, open_after=100))
    asking = Asking(ledger, at)
    first = asking.start()
    clock.now += 1
    for permit in first:
        asking.end(permit, TOO_MUCH)
    clock.now -= 3600
    second = asking.start()
    assert len(second) == 4
    clock.now += 1
    for permit in second:
        asking.end(permit, TOO_MUCH)
    assert len(asking.start()) == 2
    clock.now += 200
    assert len(Asking(ledger, at).start()) == 8


def test_a_permit_expires_in_time_after_the_clock_was_set_back(ledger: Ledger, clock: Clock) -> None:
    Asking(ledger, pace(limits=Limits(concurrency=1))).take()
    other = Asking(ledger, pace(limits=Limits(concurrency=1)))
    clock.now -= 3600
    assert other.take() == Decision(wait_s=POLL_S)
    clock.now += 76
    assert other.take().permits


# --- concurrency ------------------------------------------------------------------------------------------------------


def test_concurrency_halves_once_per_round_and_grows_back_by_one_per_round(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace(limits=Limits(concurrency=8), retry=replace(RETRY, open_after=100)))
    first = asking.start()
    assert len(first) == 8
    clock.now += 1
    for permit in first:
        asking.end(permit, TOO_MUCH)
    second = asking.start()
    assert len(second) == 4, "eight refusals of one round are one reason to halve"
    clock.now += 1
    for permit in second:
        asking.end(permit, TOO_MUCH)
    sizes = []
    for _ in range(8):
        clock.now += 1
        started = asking.start()
        sizes.append(len(started))
        for permit in started:
            asking.end(permit, GOOD)
    assert sizes == [2, 2, 3, 4, 5, 6, 7, 7]


def test_concurrency_never_falls_below_one_and_is_forgotten_after_a_minute_of_rest(
    ledger: Ledger, clock: Clock
) -> None:
    at = pace(limits=Limits(concurrency=4), retry=replace(RETRY, open_after=100))
    asking = Asking(ledger, at)
    for _ in range(5):
        asking.call(TOO_MUCH)
        clock.now += 1
    assert len(asking.start()) == 1
    clock.now += 200
    assert len(Asking(ledger, at).start()) == 4


# --- the breaker ------------------------------------------------------------------------------------------------------


def test_after_failures_in_a_row_one_probe_at_a_time_goes_at_growing_distances(ledger: Ledger, clock: Clock) -> None:
    one, other = Asking(ledger, pace(worker="w1")), Asking(ledger, pace(worker="w2"))
    one.call()
    other.call()
    for _ in range(3):
        one.call(DOWN)
    assert one.take() == Decision(wait_s=1) and other.take() == Decision(wait_s=1)
    clock.now += 1
    probe = one.take().probe
    assert probe is not None
    assert other.take() == one.take() == Decision(wait_s=POLL_S), "a probe is under way"
    one.end(probe, DOWN, attempt=PROBE)
    assert one.take() == Decision(wait_s=2)
    clock.now += 2
    one.call(DOWN)
    assert other.take() == Decision(wait_s=3)
    clock.now += 3
    other.call(DOWN)
    for asking in (one, other):
        assert asking.take().stop == (
            "provider p does not answer: 6 calls in a row failed, of late: overloaded: try later"
        )


@pytest.mark.parametrize(("status", "error_class"), [("failed_fatal", "configuration"), ("refused", "refusal")])
def test_whoever_refuses_is_there(status: str, error_class: str, ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace())
    for _ in range(3):
        asking.call(DOWN)
    clock.now += 1
    asking.call(Outcome(Status(status), error_class=error_class))
    assert asking.take().permits


def test_a_model_that_is_down_beside_a_healthy_one_is_only_probed(ledger: Ledger, clock: Clock) -> None:
    healthy, dead = Asking(ledger, pace(worker="w1")), Asking(ledger, pace(worker="w2"))
    for _ in range(3):
        dead.call(DOWN)
        healthy.call()
    assert dead.take() == Decision(wait_s=1) and healthy.take().permits
    for wait in (1, 2, 3):
        clock.now += wait
        dead.call(DOWN)
        healthy.call()
    assert str(dead.take().stop).startswith("worker w2 does not answer: 6 calls in a row failed")
    assert healthy.take().permits


def test_nobody_stops_because_another_model_is_down(ledger: Ledger, clock: Clock) -> None:
    dead = Asking(ledger, pace(worker="w2"))
    for _ in range(3):
        dead.call(DOWN)
    for wait in (1, 2):
        clock.now += wait
        dead.call(DOWN)
    later = Asking(ledger, pace(worker="w1"))
    assert later.take().probe is not None, "its own model was not asked yet"
    for _ in range(2):
        clock.now += 3
        dead.take()
    waiting = Asking(ledger, pace(worker="w3"))
    assert waiting.take() == Decision(wait_s=POLL_S), "one probe at a time"


def test_a_probe_that_is_answered_closes_the_breaker(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace())
    asking.call()
    for _ in range(3):
        asking.call(DOWN)
    clock.now += 1
    asking.call(GOOD)
    assert asking.take().permits


def test_a_provider_that_answers_nothing_but_probes_is_given_up(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace())
    asking.call()
    for wait in (1, 2, 3):
        for _ in range(3):
            asking.call(DOWN)
        assert asking.take() == Decision(wait_s=wait), "the distances grow as they do between probes that fail"
        clock.now += wait
        asking.call(GOOD)
    for _ in range(3):
        asking.call(DOWN)
    assert asking.take().stop == (
        "provider p answers nothing but probes, 3 by now: 3 calls in a row failed, of late: overloaded: try later"
    )
    later = Asking(ledger, pace())
    for _ in range(2):
        later.call(GOOD)
        for _ in range(3):
            later.call(DOWN)
        clock.now += 3
    assert later.take().stop is not None, "others have waited before it"
    recovered = Asking(ledger, pace())
    recovered.call(GOOD)
    recovered.call(GOOD)
    for _ in range(3):
        recovered.call(DOWN)
    assert recovered.take() == Decision(wait_s=1), "a question was answered"


def test_a_provider_that_is_too_slow_for_every_question_is_not_given_up(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace())
    for _ in range(6):
        for _ in range(3):
            asking.call(STALLED)
        assert asking.take() == Decision(wait_s=1)
        clock.now += 1
        asking.call(GOOD)
    assert asking.take().permits


@pytest.mark.parametrize("order", [(DOWN, DOWN, STALLED), (STALLED, DOWN, DOWN)])
def test_a_timeout_now_and_then_does_not_save_a_provider_that_fails(
    ledger: Ledger, clock: Clock, order: tuple[Outcome, ...]
) -> None:
    asking = Asking(ledger, pace())
    asking.call()
    for _ in range(3):
        for outcome in order:
            asking.call(outcome)
        clock.now += 3
        asking.call(GOOD)
    for outcome in order:
        asking.call(outcome)
    assert str(asking.take().stop).endswith("3 calls in a row failed, of late: overloaded: try later")


@pytest.mark.parametrize("outcome", [GOOD, STALLED])
def test_a_probe_that_no_failure_called_for_is_none_in_vain(ledger: Ledger, clock: Clock, outcome: Outcome) -> None:
    """An asking may end with one, to see whether it was the provider that was slow."""
    asking = Asking(ledger, pace())
    asking.call(STALLED)
    asking.end(permit_of(asking.take(wish(attempt=PROBE))), outcome, attempt=PROBE)
    with ledger.database.reading() as connection:
        assert connection.execute(sa.select(SCOPES.c.probes_failed)).scalars().all() == [0, 0]


def test_one_answer_among_failures_keeps_the_breaker_closed(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace())
    for outcome in (DOWN, DOWN, GOOD, STALLED, DOWN):
        asking.call(outcome)
    assert asking.take().permits


def test_an_asking_that_begins_behind_an_open_breaker_probes_at_once_and_gives_up_sooner(
    ledger: Ledger, clock: Clock
) -> None:
    first = Asking(ledger, pace())
    first.call()
    for _ in range(3):
        first.call(DOWN)
    later = Asking(ledger, pace())
    later.call(DOWN)
    assert later.take() == Decision(wait_s=2)
    clock.now += 2
    later.call(DOWN)
    assert later.take().stop is not None


def test_a_call_that_is_kept_already_is_not_learnt_from_again(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace())
    permit = permit_of(asking.take())
    asking.end(permit, DOWN)
    asking.end(permit, DOWN, again=True)
    with ledger.database.reading() as connection:
        assert connection.execute(sa.select(SCOPES.c.failures)).scalars().all() == [1, 1]
        assert connection.execute(sa.select(sa.func.count()).select_from(CALLS)).scalar_one() == 1


# --- budgets ----------------------------------------------------------------------------------------------------------


def test_a_budget_reserves_before_a_call_and_settles_after_it(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace(), [run_budget(1.0, "r")])
    held = permit_of(asking.take(wish(usd=0.6)))
    assert asking.take(wish(usd=0.6)) == Decision(wait_s=POLL_S), "what is under way may come out cheaper"
    asking.end(held, GOOD)
    asking.call(wished=wish(usd=0.6))
    assert asking.take(wish(usd=0.6)).stop == (
        "the budget of 1 USD for this run is used up: 0.5 USD are spent (calls of unknown cost counted at their most), "
        "and the next call may cost 0.6 USD; raise it and run again to ask for the rest"
    )


def test_a_call_of_unknown_cost_counts_with_what_it_could_have_cost(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace(retry=replace(RETRY, open_after=100)), [run_budget(1.0, "r")])
    asking.call(STALLED, wish(usd=0.5))
    asking.call(STALLED, wish(usd=0.5))
    assert asking.take(wish(usd=0.01)).stop is not None
    assert asking.take(wish(usd=0.0)).permits


def test_permits_of_the_dead_hold_no_budget_up_whatever_provider_they_asked(ledger: Ledger, clock: Clock) -> None:
    gone = Asking(ledger, replace(pace(), provider="provider elsewhere", worker="worker elsewhere"))
    permit_of(gone.take(wish(usd=0.9)))
    asking = Asking(ledger, pace(), [run_budget(1.0, "r")])
    assert asking.take(wish(usd=0.5)) == Decision(wait_s=POLL_S)
    clock.now += 76
    assert str(asking.take(wish(usd=0.5)).stop).startswith("the budget of 1 USD for this run is used up: 0.9 USD")
    assert asking.take(wish(usd=0.1)).permits


def test_an_account_adds_up_what_came_since_it_was_last_looked_at(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace(), [run_budget(1.0, "r")])
    other = Asking(ledger, pace(worker="w2"), [run_budget(1.0, "r")])
    for one in (asking, other, asking):
        one.call(GOOD, wish(usd=0.25))
    for one in (asking, other):
        assert one.take(wish(usd=0.26)).stop is not None
    asking.call(GOOD, wish(usd=0.25))
    assert other.take(wish(usd=0.01)).stop is not None


def test_a_workers_budget_is_for_an_epoch_and_for_every_run(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace(), [worker_budget(0.3, "w", 1)])
    asking.call(wished=wish(usd=0.3, run="yesterday"))
    assert asking.take(wish(usd=0.1)).stop is not None
    for other in (worker_budget(0.3, "w", 2), worker_budget(0.3, "w", 1, "sentinel")):
        assert Asking(ledger, pace(), [other]).take(wish(usd=0.1)).permits


# --- what is left behind ----------------------------------------------------------------------------------------------


def test_a_permit_that_was_not_used_leaves_nothing(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace(limits=Limits(concurrency=1)))
    permit = permit_of(asking.take())
    asking.permits.give_back(permit)
    assert asking.take().permits


def test_a_call_whose_process_died_is_a_failed_call_of_unknown_cost(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace(limits=Limits(concurrency=1)), [run_budget(1.0, "r")])
    permit_of(asking.take(wish(usd=0.75)))
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    with ledger.database.writing() as connection:
        connection.execute(sa.update(PERMITS).values(claimant="another", pid=int(dead.stdout)))
    assert asking.take(wish(usd=0.5)).stop is not None, "it may have cost 0.75 USD"
    with ledger.database.reading() as connection:
        call = connection.execute(sa.select(CALLS)).mappings().one()
    assert (call["status"], call["error_class"], call["cost_usd"], call["reserved_usd"]) == (
        "failed_transient", KILLED, None, 0.75,
    )  # fmt: skip
    assert str(call["error"]).startswith("its process died while the call was under way; what it cost is unknown")
    assert asking.take(wish(usd=0.0)).permits


def test_what_a_process_that_stood_still_comes_back_with_replaces_what_it_was_taken_for(
    ledger: Ledger, clock: Clock
) -> None:
    still = Asking(ledger, pace(limits=Limits(concurrency=2)))
    back, never = (permit_of(still.take(wish(usd=0.75))) for _ in range(2))
    assert back != never
    clock.now += 76
    other = Asking(ledger, pace(limits=Limits(concurrency=2)), [run_budget(2.0, "r")])
    assert other.take(wish(usd=0.75)).stop is not None, "1.50 USD may be spent"
    lost = sa.select(CALLS.c.error_class, CALLS.c.cost_usd, CALLS.c.error).order_by(CALLS.c.id)
    with ledger.database.reading() as connection:
        first = connection.execute(lost).all()
    assert [row[:2] for row in first] == [(KILLED, None)] * 2
    assert all("was not heard of for longer than a call may last" in row[2] for row in first)
    still.end(back, GOOD)
    with ledger.database.reading() as connection:
        assert [tuple(row[:2]) for row in connection.execute(lost)] == [(KILLED, None), (None, 0.25)]
    assert Asking(ledger, pace(), [run_budget(2.0, "r")]).take(wish(usd=0.75)).permits, "1 USD is spent"


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc to see processes")  # noqa: PTH110
def test_a_permit_of_a_living_process_is_believed_until_it_expires(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace(limits=Limits(concurrency=1)))
    asking.take()
    other = Asking(ledger, pace(limits=Limits(concurrency=1)))
    clock.now += 74
    assert other.take() == Decision(wait_s=POLL_S)
    clock.now += 2
    assert other.take().permits


def test_a_scope_of_ones_own_is_forgotten_at_the_end(ledger: Ledger, clock: Clock) -> None:
    asking = Asking(ledger, pace())
    asking.take()
    forget(ledger.database, [asking.pace.provider, asking.pace.worker])
    with ledger.database.reading() as connection:
        left = [
            connection.execute(sa.select(sa.func.count()).select_from(table)).scalar() for table in (PERMITS, SCOPES)
        ]
    assert left == [0, 0]
