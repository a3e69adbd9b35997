"""Permits: the right to make one call, so that a provider's limits, its breaker and budgets hold for all processes.

A permit is a row of the ledger's database, taken before a call and ended in the transaction that keeps the call.
Whether the next call may start is decided by those rows, by what is known of provider and worker (``scopes``), and by

- *limits* (``pace``): calls under way, requests and tokens per minute, of the provider and of the worker;
- *concurrency* of a worker: it starts at what is declared, halves when the provider says that it is too much (HTTP
  429), and grows back by one call per round of good ones (additive increase, multiplicative decrease: Chiu and Jain,
  1989);
- the *breaker* of a provider, and that of a worker, since one model may be down beside others: it opens after some
  calls have failed in a row. Then one cheap probe at a time is let through, at growing distances, until one is answered
  or the asking loses its patience, which it also does with a provider that answers nothing but probes;
- *budgets* in USD.

A permit whose process died is found by the next who asks, and becomes a failed call of unknown cost: the provider may
well have answered it. So does one of a process that stood still for longer than a call may last; where that one goes on
after all, what came of its call takes the place of the failed one.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields
from typing import Any

import sqlalchemy as sa

from trinity_assets.workers.budgets import Account, Budget, Standing
from trinity_assets.workers.claimants import Claimant
from trinity_assets.workers.error_classes import KILLED, RATE_LIMITED, TIMEOUT
from trinity_assets.workers.ledger_database import Database
from trinity_assets.workers.ledger_tables import CALLS, PERMITS, PROBE, SCOPES
from trinity_assets.workers.outcomes import Outcome, Status
from trinity_assets.workers.pace import LastMinute, Pace
from trinity_assets.workers.scopes import Scope, keep_scopes, known_scopes
from trinity_assets.workers.specs import MINUTE_S

GRACE_S = 30.0
"""How much longer than its call may last a permit is believed, where nobody can see whether its process lives."""

POLL_S = 0.25
"""How often to look again whether another process has ended a call."""

PROBES_OF_THE_DEAD = 2
"""Probes in vain that an asking bears of a provider that did not answer when it began: others have waited before it."""

_LOCK = 0x7065726D697473
"""The number of the advisory lock ("permits" in ASCII) under which permits are given and ended."""

_DIED = "its process died while the call was under way"
_LOST = "its process was not heard of for longer than a call may last"

# Every call runs these. Built once, because building a statement takes longer than SQLite takes to run it.
_HERE = PERMITS.c.provider_scope == sa.bindparam("provider_scope")
_FORGET_OLD = sa.delete(PERMITS).where(
    _HERE, PERMITS.c.ended_at.is_not(None), PERMITS.c.started_at <= sa.bindparam("old")
)
_OPEN = sa.select(PERMITS).where(PERMITS.c.ended_at.is_(None))
_LAST_MINUTE = sa.select(sa.func.coalesce(sa.func.sum(PERMITS.c.tokens), 0), sa.func.min(PERMITS.c.started_at)).where(
    _HERE, PERMITS.c.started_at > sa.bindparam("since")
)
_OWN_LAST_MINUTE = _LAST_MINUTE.where(PERMITS.c.worker_scope == sa.bindparam("worker_scope"))
_OF_NAMES = sa.select(PERMITS).where(PERMITS.c.permit.in_(sa.bindparam("names", expanding=True)))
_DELETE = sa.delete(PERMITS).where(PERMITS.c.permit.in_(sa.bindparam("names", expanding=True)))
_REPLACED = sa.delete(CALLS).where(
    CALLS.c.error_class == KILLED, CALLS.c.error.in_(sa.bindparam("errors", expanding=True))
)
_END = (
    sa.update(PERMITS)
    .where(PERMITS.c.permit == sa.bindparam("ended"))
    .values(ended_at=sa.bindparam("at"), tokens=sa.bindparam("used"))
)


@dataclass(frozen=True)
class Wish:
    """A call that somebody wants to make: the row of ``calls`` that it would become, and ``tokens``, at most."""

    request_digest: str
    attempt: int
    run: str
    provider: str
    worker: str
    benchmark: str
    task_id: str
    sample: int
    epoch: int
    reserved_usd: float | None
    tokens: int


@dataclass(frozen=True)
class Decision:
    """What came of wishes: permits for the first of them, or one for a ``probe``, a wait in seconds, or the end of all.

    ``stop`` says in words why nothing more is to be asked.
    """

    permits: tuple[str, ...] = ()
    probe: str | None = None
    wait_s: float = 0.0
    stop: str | None = None


@dataclass(frozen=True)
class Ended:
    """How the call of a permit came out; ``tokens`` None leaves what was reserved."""

    permit: str
    pace: Pace
    outcome: Outcome
    tokens: int | None


class Permits:
    """The permits of one asking. Threads may share it.

    An asking bears ``retry.probes`` probes in vain of a provider that stops answering.
    """

    def __init__(
        self, database: Database, pace: Pace, budgets: Sequence[Budget] = (), *, claimant: Claimant | None = None
    ) -> None:
        self._database = database
        self._pace = pace
        self._accounts = [Account(budget) for budget in budgets]
        self._claimant = claimant or Claimant.new()
        self._was_up: set[str] = set()
        self._probes_seen: dict[str, int] = {}

    def take(self, wishes: Sequence[Wish], probe: Wish) -> Decision:
        """Permits for as many of the first ``wishes`` as may start now; for none of them, what else is to be done.

        ``probe`` is the call that tells whether anybody answers.

        Raises:
            LedgerError: the ledger cannot be written; there is no permit.
        """
        pace = self._pace
        with self._database.translated("take a permit in"), self._database.exclusive(_LOCK) as connection:
            now = self._database.now(connection)
            scopes = known_scopes(self._database, connection, [pace.provider, pace.worker], now)
            under_way = self._under_way(connection, now)
            provider, worker = scopes[pace.provider], scopes[pace.worker]
            probing = max(provider.failures, worker.failures) >= pace.retry.open_after
            own = [row for row in under_way if row["worker_scope"] == pace.worker]
            tried = worker.probes_failed > 0
            behind = [
                self._behind_the_breaker(scope, rows, tried, now)
                for scope, rows in ((provider, under_way), (worker, own))
            ]
            if closed := [decision for decision in behind if decision is not None]:
                return max(closed, key=lambda decision: (decision.stop is not None, decision.wait_s))
            minutes = self._last_minutes(connection, now)
            standings = [account.standing(connection) for account in self._accounts]
            given: list[dict[str, Any]] = []
            held: Decision | None = None
            for wish in [probe] if probing else wishes:
                wait_s = self._wait_s(wish, provider, worker, under_way, minutes, now)
                held = Decision(wait_s=wait_s) if wait_s > 0 else _over_budget(standings, wish)
                if held is not None:
                    break
                given.append(self._row(wish, now))
                worker.level = pace.level(worker, self._own(under_way), now)
                pace.started(provider, worker, now)
                under_way.append(given[-1])
                minutes = [one.with_one_more(wish.tokens, now) for one in minutes]
                standings = [one.with_one_more(wish.reserved_usd or 0.0) for one in standings]
            if not given:
                return held or Decision()
            connection.execute(sa.insert(PERMITS), given)
            keep_scopes(self._database, connection, scopes.values(), now)
        names = tuple(str(row["permit"]) for row in given)
        return Decision(probe=names[0]) if probing else Decision(permits=names)

    def give_back(self, permit: str) -> None:
        """No call was made with it.

        Raises:
            LedgerError: the ledger cannot be written; the permit is kept until it expires.
        """
        with self._database.translated("give back a permit in"), self._database.writing() as connection:
            connection.execute(_DELETE, {"names": [permit]})

    def _under_way(self, connection: sa.Connection, now: float) -> list[Mapping[Any, Any]]:
        """The provider's calls under way; those whose process is gone are kept as failed.

        Those of every provider: nobody may ever ask the others again, and they would hold budgets up for good.
        """
        rows = connection.execute(_OPEN).mappings().all()
        gone = self._claimant.dead_among(rows)
        dead = [(row, _DIED) for row in rows if row["claimant"] in gone]
        lost = [(row, _LOST) for row in rows if row["claimant"] not in gone and self._is_forgotten(row, now)]
        over = {row["permit"]: _killed(row, why, now) for row, why in (*dead, *lost)}
        if over:
            connection.execute(sa.insert(CALLS), list(over.values()))
            connection.execute(_DELETE, {"names": list(over)})
        here = [row for row in rows if row["provider_scope"] == self._pace.provider]
        return [row for row in here if row["permit"] not in over]

    def _is_forgotten(self, row: sa.RowMapping, now: float) -> bool:
        """Whether another's call has lasted longer than any call can."""
        return bool(row["claimant"] != self._claimant.claimant and row["expires_at"] <= now)

    def _last_minutes(self, connection: sa.Connection, now: float) -> list[LastMinute]:
        """What the calls of the last minute used, where the provider's or the worker's tokens are limited."""
        pace, since = self._pace, now - MINUTE_S
        here = {"provider_scope": pace.provider, "since": since}
        minutes = []
        if pace.counts_tokens:
            connection.execute(_FORGET_OLD, {"provider_scope": pace.provider, "old": since})
        if pace.provider_limits.tpm is not None:
            tokens, oldest = connection.execute(_LAST_MINUTE, here).one()
            minutes.append(LastMinute(pace.provider_limits.tpm, int(tokens), oldest))
        if pace.worker_limits.tpm is not None:
            tokens, oldest = connection.execute(_OWN_LAST_MINUTE, here | {"worker_scope": pace.worker}).one()
            minutes.append(LastMinute(pace.worker_limits.tpm, int(tokens), oldest))
        return minutes

    def _behind_the_breaker(
        self, scope: Scope, under_way: Sequence[Mapping[Any, Any]], tried: bool, now: float
    ) -> Decision | None:
        """None while the breaker of ``scope`` is closed, or when it is time for a probe.

        Nobody stops before their own model was ``tried``: the one that was found silent may be the only one.
        """
        retry, name = self._pace.retry, scope.scope
        if scope.failures < retry.open_after:
            if not scope.probes_failed:
                self._was_up.add(name)
                self._probes_seen.pop(name, None)
            return None
        was_up, first = name in self._was_up, name not in self._probes_seen
        self._probes_seen[name] = min(self._probes_seen.get(name, scope.probes_failed), scope.probes_failed)
        mine = scope.probes_failed - self._probes_seen[name]
        impatient = mine >= (retry.probes if was_up else min(retry.probes, PROBES_OF_THE_DEAD))
        if impatient and tried:
            what = "does not answer"
            if scope.failures < retry.open_after + mine:  # else every probe since is among the failures
                what = f"answers nothing but probes, {mine} by now"
            return Decision(stop=f"{name} {what}: {scope.failures} calls in a row failed, of late: {scope.last_error}")
        if any(row["attempt"] == PROBE for row in under_way):
            return Decision(wait_s=POLL_S)
        wait_s = (scope.opened_at or 0.0) + retry.probe_wait_s(mine) - now
        due = wait_s <= 0 or impatient or (first and not was_up)
        return None if due else Decision(wait_s=wait_s)

    def _wait_s(
        self,
        wish: Wish,
        provider: Scope,
        worker: Scope,
        under_way: Sequence[Mapping[Any, Any]],
        minutes: Sequence[LastMinute],
        now: float,
    ) -> float:
        """Until a call may start, as far as limits go; 0 or less is now."""
        pace = self._pace
        own = self._own(under_way)
        return max(
            pace.pause_s(provider, now),
            pace.pause_s(worker, now),
            POLL_S if len(under_way) >= pace.provider_limits.concurrency else 0.0,
            POLL_S if own >= int(pace.level(worker, own, now)) else 0.0,
            *(minute.wait_s(wish.tokens, now) for minute in minutes),
        )

    def _own(self, under_way: Sequence[Mapping[Any, Any]]) -> int:
        """How many of the provider's calls under way are the worker's."""
        return sum(row["worker_scope"] == self._pace.worker for row in under_way)

    def _row(self, wish: Wish, now: float) -> dict[str, Any]:
        return asdict(wish) | {
            "permit": uuid.uuid4().hex,
            "claimant": self._claimant.claimant,
            "pid": self._claimant.pid,
            "process_started": self._claimant.process_started,
            "place": self._claimant.place,
            "provider_scope": self._pace.provider,
            "worker_scope": self._pace.worker,
            "started_at": now,
            "expires_at": now + self._pace.timeout_s + GRACE_S,
            "ended_at": None,
        }


def permit_transaction(database: Database) -> AbstractContextManager[sa.Connection]:
    """A transaction in which permits may be ended: one at a time with those that give them."""
    return database.exclusive(_LOCK)


def end_permits(database: Database, connection: sa.Connection, ended: Sequence[Ended]) -> None:
    """End permits in the :func:`permit_transaction` that keeps their calls, and learn from how the calls came out."""
    now = database.now(connection)
    askings = [name for one in ended for name in (one.pace.provider, one.pace.worker)]
    scopes = known_scopes(database, connection, askings, now)
    names = {"names": [one.permit for one in ended]}
    rows = {row["permit"]: row for row in connection.execute(_OF_NAMES, names).mappings()}
    found = [(one, row) for one in ended if (row := rows.get(one.permit)) is not None]
    if lost := [one.permit for one in ended if one.permit not in rows]:
        # Their process stood still; the calls that are kept with this are what the failed ones were.
        connection.execute(_REPLACED, {"errors": [_written_off(why, name) for name in lost for why in (_DIED, _LOST)]})
    if not found:
        return
    counted = [
        {"ended": one.permit, "at": now, "used": row["tokens"] if one.tokens is None else one.tokens}
        for one, row in found
        if one.pace.counts_tokens
    ]
    if counted:
        connection.execute(_END, counted)
    if spent := [one.permit for one, _ in found if not one.pace.counts_tokens]:
        connection.execute(_DELETE, {"names": spent})
    for one, row in found:
        _learn(one, row, scopes[one.pace.provider], scopes[one.pace.worker], now)
    keep_scopes(database, connection, scopes.values(), now)


def forget(database: Database, scopes: Sequence[str]) -> None:
    """Forget scopes that nobody else will ask, such as a model that one process serves to itself.

    Raises:
        LedgerError: the ledger cannot be written; they stay, and are in nobody's way.
    """
    with database.translated("tidy"), database.writing() as connection:
        connection.execute(sa.delete(PERMITS).where(PERMITS.c.provider_scope.in_(scopes)))
        connection.execute(sa.delete(SCOPES).where(SCOPES.c.scope.in_(scopes)))


def _learn(one: Ended, row: sa.RowMapping, provider: Scope, worker: Scope, now: float) -> None:
    """Change what is known of a provider and a worker by how one call came out."""
    concurrency, outcome = float(one.pace.concurrency), one.outcome
    probe, failed = row["attempt"] == PROBE, outcome.status is Status.FAILED_TRANSIENT
    is_open = max(provider.failures, worker.failures) >= one.pace.retry.open_after
    for scope in (provider, worker):
        if probe and is_open and (failed or not scope.only_timed_out):
            # In vain until a question is answered. One that is answered after timeouts alone says nothing: tasks may be
            # too slow for their limit at a provider that is well, as many as there are.
            scope.probes_failed += 1
        elif not probe and not failed:
            scope.probes_failed = 0
        if failed:
            scope.failures += 1
            if outcome.error_class != TIMEOUT or scope.last_error is None or scope.only_timed_out:
                scope.last_error = outcome.reason
            if scope.failures >= one.pace.retry.open_after:
                scope.opened_at = now
        else:  # also where it refuses: whoever refuses is there
            scope.failures = 0
            scope.opened_at = scope.last_error = None
    if outcome.status.settled:
        level = min(worker.level or concurrency, concurrency)
        worker.level = min(level + 1 / level, concurrency)
    if outcome.error_class == RATE_LIMITED and row["started_at"] >= worker.halved_at:
        worker.level, worker.halved_at = max((worker.level or concurrency) / 2, 1.0), now
    if outcome.retry_after_s:
        # Who asks to wait for longer ends this asking; the next one may find it well again.
        rest_s = min(outcome.retry_after_s, one.pace.retry.retry_after_cap_s)
        worker.next_at = now + max(one.pace.pause_s(worker, now), rest_s)


def _over_budget(standings: Sequence[Standing], wish: Wish) -> Decision | None:
    usd = wish.reserved_usd or 0.0
    for standing in standings:
        if not standing.fits(usd):
            # What is under way may cost less than it could; only when it has ended is the budget used up.
            return Decision(wait_s=POLL_S) if standing.calls_under_way else Decision(stop=standing.refusal(usd))
    return None


def _written_off(why: str, permit: str) -> str:
    """The error of the call that a permit became; it names the permit, whose holder may come back."""
    return f"{why}; what it cost is unknown (permit {permit})"


def _killed(permit: sa.RowMapping, why: str, now: float) -> dict[str, Any]:
    """The row of ``calls`` for a call of which nobody knows how it came out."""
    wished = {field.name: permit[field.name] for field in fields(Wish) if field.name in CALLS.c}
    return wished | {
        "at": now,
        "status": str(Status.FAILED_TRANSIENT),
        "error_class": KILLED,
        "error": _written_off(why, permit["permit"]),
    }
