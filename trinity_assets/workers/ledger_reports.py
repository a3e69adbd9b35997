"""What the ledger holds, in numbers: answers and calls, failures, costs. Reads only.

A call whose cost is unknown (a timeout, a provider without usage) is counted as such and adds nothing to a sum: it is
never free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from trinity_assets.workers.ledger import Ledger
from trinity_assets.workers.ledger_database import Database
from trinity_assets.workers.ledger_tables import ANSWERS, CALLS, CLAIMS, PROBE, YEAR_10000
from trinity_assets.workers.outcomes import FAILURES
from trinity_assets.workers.redaction import redact

Cell = tuple[str, str]
"""Worker and benchmark, by name."""

NO_ROUTER = "(no router)"
"""Where calls go whose worker and benchmark no router of the catalog uses."""

_SECONDS_PER_DAY = 86_400
_LAST_SECOND = YEAR_10000 - 1
"""What a later time is shown as: imports once took any, and one row must not keep a report from being printed."""
_FAILED = CALLS.c.status.in_(sorted(str(status) for status in FAILURES))


@dataclass(frozen=True)
class CellStats:
    """One worker on one benchmark: settled answers by status, and the calls that they took."""

    worker: str
    benchmark: str
    answers: int
    statuses: Mapping[str, int]
    calls: int
    failed_calls: int
    first_call: datetime | None
    last_call: datetime | None


@dataclass(frozen=True)
class LedgerStats:
    """The whole ledger; ``bytes`` is what it occupies, and ``claims`` what is being asked at this moment."""

    url: str
    bytes: int
    claims: int
    cells: tuple[CellStats, ...]


@dataclass(frozen=True)
class FailureGroup:
    """The failed calls of one class; ``unsettled`` counts their questions that have no answer to this day."""

    provider: str
    worker: str
    error_class: str
    calls: int
    unsettled: int
    last_error: str | None
    last_seen: datetime


@dataclass(frozen=True)
class Cost:
    """What a group of calls cost. ``unknown`` of the ``calls`` have an unknown cost, which is not in ``known_usd``.

    ``shared_usd`` and ``shared_unknown`` are the part that other groups have, too, and ``shared_with`` names them: sums
    over groups then count it more than once.
    """

    name: str
    calls: int
    known_usd: float
    unknown: int
    shared_usd: float = 0.0
    shared_unknown: int = 0
    shared_with: tuple[str, ...] = ()


def stats(ledger: Ledger) -> LedgerStats:
    """Answers and calls by worker and benchmark.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    database = ledger.database
    answers: dict[Cell, dict[str, int]] = {}
    by_status = sa.select(ANSWERS.c.worker, ANSWERS.c.benchmark, ANSWERS.c.status, sa.func.count()).group_by(
        ANSWERS.c.worker, ANSWERS.c.benchmark, ANSWERS.c.status
    )
    by_cell = sa.select(
        CALLS.c.worker,
        CALLS.c.benchmark,
        sa.func.count(),
        sa.func.sum(sa.case((_FAILED, 1), else_=0)),
        sa.func.min(CALLS.c.at),
        sa.func.max(CALLS.c.at),
    ).group_by(CALLS.c.worker, CALLS.c.benchmark)
    with database.translated("read"), database.reading() as connection:
        for worker, benchmark, status, count in connection.execute(by_status):
            answers.setdefault((worker, benchmark), {})[status] = count
        calls = {(row[0], row[1]): row[2:] for row in connection.execute(by_cell)}
        living = sa.select(sa.func.count()).where(CLAIMS.c.expires_at > database.now(connection))
        claims = connection.execute(living).scalar_one()
        size = database.size(connection)
    cells = []
    for worker, benchmark in sorted({*answers, *calls}):
        statuses = answers.get((worker, benchmark), {})
        made, failed, first, last = calls.get((worker, benchmark), (0, 0, None, None))
        cells.append(
            CellStats(
                worker,
                benchmark,
                answers=sum(statuses.values()),
                statuses=dict(sorted(statuses.items(), key=lambda item: (-item[1], item[0]))),
                calls=made,
                failed_calls=int(failed),
                first_call=_moment(first),
                last_call=_moment(last),
            )
        )
    return LedgerStats(ledger.url, size, claims, tuple(cells))


def failures(ledger: Ledger) -> list[FailureGroup]:
    """Failed calls by provider, worker and class, the latest first.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    group = (CALLS.c.provider, CALLS.c.worker, sa.func.coalesce(CALLS.c.error_class, "unknown").label("error_class"))
    settled = sa.exists().where(ANSWERS.c.request_digest == CALLS.c.request_digest)
    question = CALLS.c.attempt != PROBE
    query = (
        sa.select(
            *group,
            sa.func.count().label("calls"),
            sa.func.count(sa.distinct(sa.case((question & ~settled, CALLS.c.request_digest)))).label("unsettled"),
            sa.func.max(CALLS.c.at).label("at"),
            sa.func.max(CALLS.c.id).label("last"),
        )
        .where(_FAILED)
        .group_by(*group)
    )
    database = ledger.database
    with database.translated("read"), database.reading() as connection:
        rows = connection.execute(query).mappings().all()
        texts = sa.select(CALLS.c.id, CALLS.c.error).where(CALLS.c.id.in_([row["last"] for row in rows]))
        errors = {row["id"]: row["error"] for row in connection.execute(texts).mappings()}
    groups = [
        FailureGroup(
            row["provider"],
            row["worker"],
            row["error_class"],
            row["calls"],
            row["unsettled"],
            redact(errors[row["last"]]) if errors[row["last"]] else None,
            _moment_of(row["at"]),
        )
        for row in rows
    ]
    return sorted(groups, key=lambda one: one.last_seen, reverse=True)


def costs_by_worker(ledger: Ledger) -> list[Cost]:
    """What the calls cost by worker, in the order of the names.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    return [Cost(*row) for row in _cost_rows(ledger, CALLS.c.worker)]


def costs_by_benchmark(ledger: Ledger) -> list[Cost]:
    """What the calls cost by benchmark, as :func:`costs_by_worker` does."""
    return [Cost(*row) for row in _cost_rows(ledger, CALLS.c.benchmark)]


def costs_by_day(ledger: Ledger) -> list[Cost]:
    """What the calls cost by day (UTC, ``2026-03-02``), as :func:`costs_by_worker` does."""
    start = date(1970, 1, 1)
    return [Cost(f"{start + timedelta(days=day)}", *rest) for day, *rest in _cost_rows(ledger, _day(ledger.database))]


def costs_by_router(ledger: Ledger, routers: Mapping[str, Iterable[Cell]]) -> list[Cost]:
    """What the calls cost by router (name -> the cells that it uses), in the given order.

    The calls of a cell that several routers use count for each of them, as shared. Those of cells that no router uses
    come last, as ``NO_ROUTER``.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    by_cell = {(row[0], row[1]): row[2:] for row in _cost_rows(ledger, CALLS.c.worker, CALLS.c.benchmark)}
    cells = {name: set(uses) for name, uses in routers.items()}
    found = [_router_cost(name, cells, by_cell) for name in cells]
    idle = set(by_cell).difference(*cells.values())
    if idle:
        found.append(_router_cost(NO_ROUTER, {NO_ROUTER: idle}, by_cell))
    return found


def _router_cost(name: str, cells: Mapping[str, set[Cell]], by_cell: Mapping[Cell, Any]) -> Cost:
    paid = [cell for cell in by_cell if cell in cells[name]]
    others = {cell: [other for other in cells if other != name and cell in cells[other]] for cell in paid}
    shared = [cell for cell in paid if others[cell]]
    return Cost(
        name,
        calls=sum(by_cell[cell][0] for cell in paid),
        known_usd=sum(by_cell[cell][1] for cell in paid),
        unknown=sum(by_cell[cell][2] for cell in paid),
        shared_usd=sum(by_cell[cell][1] for cell in shared),
        shared_unknown=sum(by_cell[cell][2] for cell in shared),
        shared_with=tuple(sorted({other for cell in shared for other in others[cell]})),
    )


def _cost_rows(ledger: Ledger, *group: sa.ColumnElement[Any]) -> list[tuple[Any, ...]]:
    """(group..., calls, known USD, calls of unknown cost)."""
    query = (
        sa.select(
            *group,
            sa.func.count(),
            sa.func.coalesce(sa.func.sum(CALLS.c.cost_usd), 0.0),
            sa.func.sum(sa.case((CALLS.c.cost_usd.is_(None), 1), else_=0)),
        )
        .group_by(*group)
        .order_by(*group)
    )
    with ledger.database.translated("read"), ledger.database.reading() as connection:
        return [(*row[:-2], float(row[-2]), int(row[-1])) for row in connection.execute(query)]


def _day(database: Database) -> sa.ColumnElement[int]:
    """Days since 1970 (UTC). SQLite's cast cuts the fraction off, PostgreSQL's rounds."""
    at = sa.case((CALLS.c.at > _LAST_SECOND, _LAST_SECOND), else_=CALLS.c.at)
    days = at / _SECONDS_PER_DAY
    return sa.cast(days if database.kind == "sqlite" else sa.func.floor(days), sa.Integer)


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else _moment_of(seconds)


def _moment_of(seconds: float) -> datetime:
    return datetime.fromtimestamp(min(seconds, _LAST_SECOND), UTC)
