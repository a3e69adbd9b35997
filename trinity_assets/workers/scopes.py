"""Scopes: what is known of a provider, or of a worker, by all processes that ask it.

When its next call may start, how many may be under way, how many have failed in a row. Kept in the ledger's database
and changed under the lock of the permits.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from trinity_assets.workers.error_classes import TIMEOUT
from trinity_assets.workers.ledger_database import Database
from trinity_assets.workers.ledger_tables import PERMITS, SCOPES

_KNOWN = sa.select(SCOPES).where(SCOPES.c.scope.in_(sa.bindparam("names", expanding=True)))
_TURN_BACK = (
    sa.update(PERMITS)
    .where(PERMITS.c.provider_scope == sa.bindparam("name"))
    .values({name: PERMITS.c[name] - sa.bindparam("by") for name in ("started_at", "expires_at", "ended_at")})
)


@dataclass
class Scope:
    """What is known of ``scope``; times are seconds since 1970.

    ``touched_at`` is when something became known last. No call starts before ``next_at``. ``level`` is how many calls
    may be under way, None before any was; it was halved at ``halved_at``. ``failures`` calls have failed in a row, the
    last at ``opened_at`` where that opened the breaker; ``last_error`` is that of the last which was no timeout, or
    of the last where all were. ``probes_failed`` probes were made in vain: they failed themselves, or the calls around
    them did.
    """

    scope: str
    next_at: float = 0.0
    touched_at: float = 0.0
    level: float | None = None
    halved_at: float = 0.0
    failures: int = 0
    opened_at: float | None = None
    probes_failed: int = 0
    last_error: str | None = None

    @property
    def only_timed_out(self) -> bool:
        """Whether all calls that failed in a row were timeouts, and some did."""
        return self.last_error is not None and self.last_error.partition(":")[0] == TIMEOUT

    def turn_back(self, by: float) -> None:
        """Make every time that is known earlier by so many seconds."""
        self.touched_at -= by
        self.next_at -= by
        self.halved_at -= by
        if self.opened_at is not None:
            self.opened_at -= by


def known_scopes(database: Database, connection: sa.Connection, names: Iterable[str], now: float) -> dict[str, Scope]:
    """What is known of each of ``names`` at ``now``.

    What became known later than now did so by a clock that has been set back since. All times of such a scope, and of
    the permits that a provider gave, are turned back with it, as if the last of it had happened now: a pause or a
    minute begins again, and none becomes as long as the clock was wrong.
    """
    wanted = sorted(set(names))
    rows = connection.execute(_KNOWN, {"names": wanted}).mappings()
    found = {row["scope"]: Scope(**row) for row in rows}
    early = [scope for scope in found.values() if scope.touched_at > now]
    for scope in early:
        by = scope.touched_at - now
        connection.execute(_TURN_BACK, {"name": scope.scope, "by": by})
        scope.turn_back(by)
    if early:
        keep_scopes(database, connection, early, now)
    return {name: found.get(name, Scope(name)) for name in wanted}


def keep_scopes(database: Database, connection: sa.Connection, scopes: Iterable[Scope], now: float) -> None:
    """Keep what has become known, as of ``now``."""
    rows = [asdict(scope) | {"touched_at": now} for scope in scopes]
    connection.execute(_upsert(database.kind), rows)


@functools.cache
def _upsert(kind: str) -> sa.Insert:
    insert = (sqlite if kind == "sqlite" else postgresql).insert(SCOPES)
    changed = {field.name: insert.excluded[field.name] for field in fields(Scope) if field.name != "scope"}
    return insert.on_conflict_do_update(index_elements=["scope"], set_=changed)
