"""Permits: the right to make one call, so that a provider's limits, its breaker and budgets hold for all processes.

A permit is a row of the ledger's database, taken before a call and ended in the transaction that keeps the call. What
the rows of the last minute say decides whether the next call may start:

- *limits*: calls under way, requests and tokens per minute, of the provider and of the worker;
- *concurrency* of a worker starts at what is declared, halves when the provider says that it is too much (HTTP 429),
  and grows back by one call per round of good ones (additive increase, multiplicative decrease: Chiu and Jain, 1989);
- the *breaker* of a provider opens after some calls have failed in a row. Then one cheap probe at a time is let
  through, at growing distances, until one succeeds or the asking loses its patience;
- *budgets* in USD.

A permit whose process died is found by the next who asks, and becomes a failed call of unknown cost: the provider may
well have answered it.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from trinity_assets.workers.budgets import Budget, Standing
from trinity_assets.workers.claimants import Claimant
from trinity_assets.workers.ledger_database import Database
from trinity_assets.workers.ledger_tables import CALLS, PERMITS, SCOPES
from trinity_assets.workers.outcomes import Outcome, Status
from trinity_assets.workers.retrying import RetryPolicy
from trinity_assets.workers.specs import Limits, WorkerLimits

MINUTE_S = 60.0
GRACE_S = 30.0
"""How much longer than its call may last a permit is believed, where nobody can see whether its process lives."""

POLL_S = 0.25
"""How often to look again whether another process has ended a call."""

KILLED = "killed"
"""The error class of a call whose process died while it was under way."""

PROBE = 0
"""The attempt number of a probe."""

PROBES_OF_THE_DEAD = 2
"""Failed probes that an asking bears of a provider that did not answer when it began: others have waited before it."""

_LOCK = 0x7065726D697473
"""The number of the advisory lock ("permits" in ASCII) under which permits are given and ended."""

_UNKNOWN: dict[str, Any] = {
    "next_at": 0.0,
    "touched_at": 0.0,
    "level": None,
    "halved_at": 0.0,
    "failures": 0,
    "opened_at": None,
    "probes_failed": 0,
    "last_error": None,
}
"""What is known of a scope that nobody has asked."""

# Every call runs these. Built once, because building a statement takes longer than SQLite takes to run it.
_HERE = PERMITS.c.provider_scope == sa.bindparam("provider_scope")
_FORGET_OLD = sa.delete(PERMITS).where(
    _HERE, PERMITS.c.ended_at.is_not(None), PERMITS.c.started_at <= sa.bindparam("old")
)
_OPEN = sa.select(PERMITS).where(_HERE, PERMITS.c.ended_at.is_(None))
_LAST_MINUTE = sa.select(sa.func.coalesce(sa.func.sum(PERMITS.c.tokens), 0), sa.func.min(PERMITS.c.started_at)).where(
    _HERE, PERMITS.c.started_at > sa.bindparam("since")
)
_OWN_LAST_MINUTE = _LAST_MINUTE.where(PERMITS.c.worker_scope == sa.bindparam("worker_scope"))
_DELETE = sa.delete(PERMITS).where(PERMITS.c.permit.in_(sa.bindparam("names", expanding=True)))
_OF_NAMES = sa.select(PERMITS).where(PERMITS.c.permit.in_(sa.bindparam("names", expanding=True)))
_END = (
    sa.update(PERMITS)
    .where(PERMITS.c.permit == sa.bindparam("ended"))
    .values(ended_at=sa.bindparam("at"), tokens=sa.bindparam("used"))
)
_KNOWN = sa.select(SCOPES).where(SCOPES.c.scope.in_(sa.bindparam("names", expanding=True)))


@dataclass(frozen=True)
class Pace:
    """Who is asked, how fast, and how much failure is borne.

    ``provider`` and ``worker`` are the names under which calls are counted together; ``timeout_s`` is how long a call
    lasts at most.
    """

    provider: str
    worker: str
    provider_limits: Limits
    worker_limits: WorkerLimits
    timeout_s: float
    retry: RetryPolicy

    @property
    def concurrency(self) -> int:
        """How many calls of the worker may be under way when nothing speaks against it."""
        own = self.worker_limits.concurrency
        return self.provider_limits.concurrency if own is None else min(own, self.provider_limits.concurrency)

    @property
    def counts_tokens(self) -> bool:
        """Whether what a call used counts for a minute after it began."""
        return self.provider_limits.tpm is not None or self.worker_limits.tpm is not None


@dataclass(frozen=True)
class Wish:
    """A call that somebody wants to make: the row that it would become, and what it takes at most."""

    request_digest: str
    attempt: int
    run: str
    provider: str
    worker: str
    benchmark: str
    task_id: str
    sample: int
    epoch: int
    tokens: int
    reserved_usd: float | None


@dataclass(frozen=True)
class Answer:
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


@dataclass(frozen=True)
class _Minute:
    """At most ``tpm`` tokens in any minute; those used in the last one, and when the oldest call of it began."""

    tpm: int
    tokens: int
    oldest: float | None

    def wait_s(self, tokens: int, now: float) -> float:
        """Until there is room for so many more."""
        # A call above the limit on its own goes once the minute is empty; the provider has the last word on it.
        if self.oldest is None or self.tokens + tokens <= self.tpm:
            return 0.0
        return self.oldest + MINUTE_S - now

    def with_one_more(self, tokens: int, now: float) -> _Minute:
        """The same after a call that begins now."""
        return replace(self, tokens=self.tokens + tokens, oldest=now if self.oldest is None else self.oldest)


class Permits:
    """The permits of one asking. Threads may share it.

    An asking bears ``retry.probes`` failed probes of a provider that stops answering.
    """

    def __init__(
        self,
        database: Database,
        pace: Pace,
        budgets: Sequence[Budget] = (),
        *,
        claimant: Claimant | None = None,
    ) -> None:
        self._database = database
        self._pace = pace
        self._budgets = tuple(budgets)
        self._claimant = claimant or Claimant.new()
        self._was_up = False
        self._probes_seen: int | None = None

    def take(self, wishes: Sequence[Wish], probe: Wish) -> Answer:
        """Permits for as many of the first ``wishes`` as may start now; for none of them, what else is to be done.

        ``probe`` is the call that tells whether anybody answers.

        Raises:
            LedgerError: the ledger cannot be written; there is no permit.
        """
        pace = self._pace
        with self._database.translated("take a permit in"), self._database.exclusive(_LOCK) as connection:
            now = self._database.now(connection)
            under_way = self._under_way(connection, now)
            scopes = _known(connection, [pace.provider, pace.worker])
            answer = self._behind_the_breaker(scopes[pace.provider], under_way, now)
            if answer and not answer.probe:
                return answer
            minutes = self._last_minutes(connection, now)
            standings = [budget.standing(connection) for budget in self._budgets]
            given: list[dict[str, Any]] = []
            held: Answer | None = None
            for wish in [probe] if answer else wishes:
                held = self._held_up(wish, scopes, under_way, minutes, now) or _over_budget(standings, wish)
                if held is not None:
                    break
                given.append(self._give(wish, scopes, now))
                under_way.append(given[-1])
                minutes = [one.with_one_more(wish.tokens, now) for one in minutes]
                standings = [one.with_one_more(wish.reserved_usd or 0.0) for one in standings]
            if not given:
                return held or Answer()
            connection.execute(sa.insert(PERMITS), given)
            _keep(self._database, connection, scopes, now)
        permits = tuple(str(row["permit"]) for row in given)
        return Answer(probe=permits[0]) if answer else Answer(permits=permits)

    def give_back(self, permit: str) -> None:
        """No call was made with it.

        Raises:
            LedgerError: the ledger cannot be written; the permit is kept until it expires.
        """
        with self._database.translated("give back a permit in"), self._database.writing() as connection:
            connection.execute(_DELETE, {"names": [permit]})

    def _under_way(self, connection: sa.Connection, now: float) -> list[Mapping[Any, Any]]:
        """The provider's calls under way; those whose process is gone are kept as failed."""
        rows = connection.execute(_OPEN, {"provider_scope": self._pace.provider}).mappings().all()
        dead = [row for row in rows if self._is_dead(row, now)]
        if not dead:
            return list(rows)
        gone = [row["permit"] for row in dead]
        connection.execute(sa.insert(CALLS), [_killed(row, now) for row in dead])
        connection.execute(_DELETE, {"names": gone})
        return [row for row in rows if row["permit"] not in gone]

    def _last_minutes(self, connection: sa.Connection, now: float) -> list[_Minute]:
        """What the calls of the last minute used, where the provider's or the worker's tokens are limited."""
        pace, since = self._pace, now - MINUTE_S
        here = {"provider_scope": pace.provider, "since": since}
        minutes = []
        if pace.provider_limits.tpm is not None:
            connection.execute(_FORGET_OLD, {"provider_scope": pace.provider, "old": since})
            tokens, oldest = connection.execute(_LAST_MINUTE, here).one()
            minutes.append(_Minute(pace.provider_limits.tpm, int(tokens), oldest))
        if pace.worker_limits.tpm is not None:
            tokens, oldest = connection.execute(_OWN_LAST_MINUTE, here | {"worker_scope": pace.worker}).one()
            minutes.append(_Minute(pace.worker_limits.tpm, int(tokens), oldest))
        return minutes

    def _is_dead(self, row: sa.RowMapping, now: float) -> bool:
        if row["claimant"] == self._claimant.claimant:
            return False
        return bool(row["expires_at"] <= now) or self._claimant.sees_dead(row)

    def _behind_the_breaker(
        self, provider: dict[str, Any], under_way: Sequence[Mapping[Any, Any]], now: float
    ) -> Answer | None:
        """None while the breaker is closed; else whether it is time for a probe (whose permit has no name yet)."""
        retry = self._pace.retry
        if provider["failures"] < retry.open_after:
            self._was_up, self._probes_seen = True, None
            return None
        failed = provider["probes_failed"]
        first = self._probes_seen is None
        self._probes_seen = failed if self._probes_seen is None else min(self._probes_seen, failed)
        mine = failed - self._probes_seen
        if mine >= (retry.probes if self._was_up else min(retry.probes, PROBES_OF_THE_DEAD)):
            return Answer(
                stop=f"{self._pace.provider} does not answer: {provider['failures']} calls in a row failed, the last: "
                f"{provider['last_error']}"
            )
        if any(row["attempt"] == PROBE for row in under_way):
            return Answer(wait_s=POLL_S)
        wait = (provider["opened_at"] or 0.0) + retry.probe_wait_s(mine) - now
        if wait > 0 and not (first and not self._was_up):
            return Answer(wait_s=wait)
        return Answer(probe="due")

    def _held_up(
        self,
        wish: Wish,
        scopes: dict[str, dict[str, Any]],
        under_way: Sequence[Mapping[Any, Any]],
        minutes: Sequence[_Minute],
        now: float,
    ) -> Answer | None:
        pace = self._pace
        own = sum(row["worker_scope"] == pace.worker for row in under_way)
        waits = [
            max(scope["next_at"] for scope in scopes.values()) - now,
            POLL_S if len(under_way) >= pace.provider_limits.concurrency else 0.0,
            POLL_S if own >= int(self._level(scopes[pace.worker], own, now)) else 0.0,
            *(minute.wait_s(wish.tokens, now) for minute in minutes),
        ]
        return Answer(wait_s=max(waits)) if max(waits) > 0 else None

    def _level(self, worker: dict[str, Any], own: int, now: float) -> float:
        """How many calls of the worker may be under way; what was learned more than a minute ago is forgotten."""
        if worker["level"] is None or (not own and worker["touched_at"] <= now - MINUTE_S):
            worker["level"] = float(self._pace.concurrency)
        return float(min(worker["level"], self._pace.concurrency))

    def _give(self, wish: Wish, scopes: dict[str, dict[str, Any]], now: float) -> dict[str, Any]:
        """The row of a permit."""
        pace = self._pace
        for name, rpm in ((pace.provider, pace.provider_limits.rpm), (pace.worker, pace.worker_limits.rpm)):
            # Even spacing: a burst at the start of each minute is what providers refuse.
            scopes[name]["next_at"] = max(scopes[name]["next_at"], now + (MINUTE_S / rpm if rpm else 0.0))
        return asdict(wish) | {
            "permit": uuid.uuid4().hex,
            "claimant": self._claimant.claimant,
            "pid": self._claimant.pid,
            "process_started": self._claimant.process_started,
            "place": self._claimant.place,
            "provider_scope": pace.provider,
            "worker_scope": pace.worker,
            "started_at": now,
            "expires_at": now + pace.timeout_s + GRACE_S,
            "ended_at": None,
        }


def end(database: Database, connection: sa.Connection, ended: Sequence[Ended]) -> None:
    """End permits in the transaction that keeps their calls, and learn from how the calls came out.

    The transaction is one of :func:`ending`.
    """
    now = database.now(connection)
    names = {"names": [one.permit for one in ended]}
    rows = {row["permit"]: row for row in connection.execute(_OF_NAMES, names).mappings()}
    # One that is not there expired while its process stood still, and was counted as killed.
    found = [(one, row) for one in ended if (row := rows.get(one.permit)) is not None]
    if not found:
        return
    counted = [(one, row) for one, row in found if one.pace.counts_tokens]
    used = [row["tokens"] if one.tokens is None else one.tokens for one, row in counted]
    if counted:
        at_end = [{"ended": one.permit, "at": now, "used": used[at]} for at, (one, _) in enumerate(counted)]
        connection.execute(_END, at_end)
    if spent := [one.permit for one, _ in found if not one.pace.counts_tokens]:
        connection.execute(_DELETE, {"names": spent})
    scopes = _known(connection, sorted({name for one, _ in found for name in (one.pace.provider, one.pace.worker)}))
    for one, row in found:
        _learn(one, row, scopes[one.pace.provider], scopes[one.pace.worker], now)
    _keep(database, connection, scopes, now)


def _learn(one: Ended, row: sa.RowMapping, provider: dict[str, Any], worker: dict[str, Any], now: float) -> None:
    """Change what is known of a provider and a worker by how one call came out."""
    pace, outcome = one.pace, one.outcome
    if outcome.status.settled:
        provider.update(failures=0, opened_at=None, probes_failed=0, last_error=None)
        level = min(worker["level"] or pace.concurrency, pace.concurrency)
        worker["level"] = min(level + 1 / level, float(pace.concurrency))
    elif outcome.status is Status.FAILED_TRANSIENT:
        provider["failures"] += 1
        provider["last_error"] = outcome.reason
        if provider["failures"] >= pace.retry.open_after:
            provider["opened_at"] = now
        if row["attempt"] == PROBE:
            provider["probes_failed"] += 1
    if outcome.error_class == "rate_limited" and row["started_at"] >= worker["halved_at"]:
        worker.update(level=max((worker["level"] or pace.concurrency) / 2, 1.0), halved_at=now)
    if outcome.retry_after_s:
        worker["next_at"] = max(worker["next_at"], now + outcome.retry_after_s)


def forget(database: Database, scopes: Sequence[str]) -> None:
    """Forget scopes that nobody else will ask, such as a model that one process serves to itself."""
    with database.translated("tidy"), database.writing() as connection:
        connection.execute(sa.delete(PERMITS).where(PERMITS.c.provider_scope.in_(scopes)))
        connection.execute(sa.delete(SCOPES).where(SCOPES.c.scope.in_(scopes)))


def ending(database: Database) -> Any:
    """A transaction in which permits may be ended: one at a time with those that give them."""
    return database.exclusive(_LOCK)


def _over_budget(standings: Sequence[Standing], wish: Wish) -> Answer | None:
    usd = wish.reserved_usd or 0.0
    for standing in standings:
        if not standing.fits(usd):
            # What is under way may cost less than it could; only when it has ended is the budget used up.
            return Answer(wait_s=POLL_S) if standing.calls_under_way else Answer(stop=standing.refusal(usd))
    return None


def _known(connection: sa.Connection, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    found = {row["scope"]: row for row in connection.execute(_KNOWN, {"names": names}).mappings()}
    return {name: {key: found[name][key] for key in _UNKNOWN} if name in found else dict(_UNKNOWN) for name in names}


def _keep(database: Database, connection: sa.Connection, scopes: dict[str, dict[str, Any]], now: float) -> None:
    rows = [scope | {"scope": name, "touched_at": now} for name, scope in scopes.items()]
    connection.execute(_upsert(database.kind), rows)


@functools.cache
def _upsert(kind: str) -> sa.Insert:
    insert = (sqlite if kind == "sqlite" else postgresql).insert(SCOPES)
    return insert.on_conflict_do_update(
        index_elements=["scope"], set_={name: insert.excluded[name] for name in _UNKNOWN}
    )


def _killed(permit: sa.RowMapping, now: float) -> dict[str, Any]:
    """The row of ``calls`` for a call of which nobody knows how it came out."""
    same = ("request_digest", "attempt", "run", "provider", "worker", "benchmark", "task_id", "sample", "epoch")
    return {name: permit[name] for name in (*same, "reserved_usd")} | {
        "at": now,
        "status": str(Status.FAILED_TRANSIENT),
        "error_class": KILLED,
        "error": "its process died while the call was under way; what it cost is unknown",
    }
