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

from trinity_assets.workers.ledger_database import Database
from trinity_assets.workers.ledger_tables import SCOPES

_KNOWN = sa.select(SCOPES).where(SCOPES.c.scope.in_(sa.bindparam("names", expanding=True)))


@dataclass
class Scope:
    """What is known of ``scope``; times are seconds since 1970.

    No call starts before ``next_at``. ``level`` is how many calls may be under way, None before any was; it was halved
    at ``halved_at``. ``failures`` calls have failed in a row, ``probes_failed`` of them probes, since ``opened_at``.
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


def known_scopes(connection: sa.Connection, names: Iterable[str]) -> dict[str, Scope]:
    """What is known of each of ``names``."""
    wanted = sorted(set(names))
    rows = connection.execute(_KNOWN, {"names": wanted}).mappings()
    found = {row["scope"]: Scope(**row) for row in rows}
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
