"""Epochs: generations of a cell's answers. A new one asks everything again; what was answered before stays.

The table ``epochs`` says of each generation who opened it, and when its last answer settled. Nothing else knows epochs
by name: an epoch's number is part of every request of it, and of no version of what is made from the answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd
import sqlalchemy as sa

from trinity_assets.workers.ledger import Ledger
from trinity_assets.workers.ledger_tables import ANSWERS, CALLS, EPOCHS
from trinity_assets.workers.requests import answer_requests
from trinity_assets.workers.specs import WorkerSpec
from trinity_assets.workers.tables import answers_frame

FIRST = 1


@dataclass(frozen=True)
class Epoch:
    """A generation of the answers of ``worker`` to ``benchmark``. Times are seconds since 1970.

    ``names`` are those of who opened it, and of who resumed it before it was complete.
    """

    worker: str
    benchmark: str
    number: int
    opened_at: float
    names: tuple[str, ...]
    completed_at: float | None

    @property
    def opened_by(self) -> str:
        """Who opened it."""
        return self.names[0]


def enter_epoch(
    ledger: Ledger, worker: str, benchmark: str, *, by: str, new: str | None = None, ever_complete: bool = False
) -> Epoch:
    """The epoch in which ``by`` asks now: the present one, or with ``new``, which names who wants it, a new one.

    No new one is opened while the present one is incomplete, which ``new`` resumes then, and none for a name that has
    opened or resumed one before. Of any number of processes that want one at a time, one opens it.

    A new one is newer than every answer that there is: a number under which somebody was asked before, as in a ledger
    whose answers were imported, would take what was said then for what is said now.

    A cell of which nothing is recorded is in the newest epoch of its answers, as in a ledger that was imported, else in
    the first. If there are answers, that one counts as complete where a new one is wanted, or if ``ever_complete``:
    what older versions collected is not recorded.

    Raises:
        LedgerError: the ledger cannot be read or written.
    """
    name = " ".join((new or by).split())
    database = ledger.database
    with database.translated("open an epoch in"), database.exclusive() as connection:
        present = _newest(connection, worker, benchmark)
        answered = _newest_answered(connection, worker, benchmark)
        now = database.now(connection)
        if present is None:
            complete = answered is not None and (ever_complete or new is not None)
            opener = " ".join(by.split()) if complete else name
            present = _unrecorded(connection, worker, benchmark, answered or FIRST, opener, now, complete)
            _insert(connection, present)
        if new is None or name in _all_names(connection, worker, benchmark):
            return present
        if present.completed_at is None:
            resumed = replace(present, names=(*present.names, name))
            connection.execute(sa.update(EPOCHS).where(*_is(resumed)).values(opened_by="\n".join(resumed.names)))
            return resumed
        opened = Epoch(worker, benchmark, max(present.number, answered or FIRST) + 1, now, (name,), None)
        _insert(connection, opened)
        return opened


def present_epoch(ledger: Ledger, worker: str, benchmark: str) -> int:
    """The number of the epoch in which a cell would be asked now. Reads only.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    with ledger.database.translated("read"), ledger.database.reading() as connection:
        present = _newest(connection, worker, benchmark)
        if present is None:
            return _newest_answered(connection, worker, benchmark) or FIRST
        return present.number


def next_epoch(ledger: Ledger, worker: str, benchmark: str) -> int:
    """The number of the epoch in which a cell would be asked for whoever wants a new one. Reads only.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    with ledger.database.translated("read"), ledger.database.reading() as connection:
        present = _newest(connection, worker, benchmark)
        answered = _newest_answered(connection, worker, benchmark)
    if present is None:
        return FIRST if answered is None else answered + 1
    return present.number if present.completed_at is None else max(present.number, answered or FIRST) + 1


def unfinished_epoch(ledger: Ledger, worker: str, benchmark: str) -> Epoch | None:
    """The present epoch of a cell if somebody opened it and not all of its answers have settled. Reads only.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    with ledger.database.translated("read"), ledger.database.reading() as connection:
        present = _newest(connection, worker, benchmark)
    return present if present is not None and present.completed_at is None else None


def complete_epoch(ledger: Ledger, epoch: Epoch) -> None:
    """Record that the last answer of ``epoch`` has settled; from now on a new one may be opened.

    Raises:
        LedgerError: the ledger cannot be written.
    """
    if epoch.completed_at is not None:
        return
    database = ledger.database
    with database.translated("complete an epoch in"), database.writing() as connection:
        incomplete = EPOCHS.c.completed_at.is_(None)
        connection.execute(
            sa.update(EPOCHS).where(*_is(epoch), incomplete).values(completed_at=database.now(connection))
        )


def earlier_answers(ledger: Ledger, worker: WorkerSpec, prompts: Mapping[str, str], before: int) -> pd.DataFrame | None:
    """What ``worker`` answered to ``prompts`` in the newest epoch below ``before`` that has any answer to them.

    The same questions, asked in the same way: None where there are none. In the columns of ``ANSWERS_SCHEMA``.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    for number in range(before - 1, 0, -1):
        requests = answer_requests(worker, prompts, number)
        settled = ledger.settled(request.digest for request in requests)
        if settled:
            return answers_frame((one, settled[one.digest]) for one in requests if one.digest in settled)
    return None


def _newest(connection: sa.Connection, worker: str, benchmark: str) -> Epoch | None:
    query = sa.select(EPOCHS).where(EPOCHS.c.worker == worker, EPOCHS.c.benchmark == benchmark)
    row = connection.execute(query.order_by(EPOCHS.c.epoch.desc()).limit(1)).mappings().first()
    if row is None:
        return None
    names = tuple(row["opened_by"].split("\n"))
    return Epoch(worker, benchmark, row["epoch"], row["opened_at"], names, row["completed_at"])


def _unrecorded(
    connection: sa.Connection, worker: str, benchmark: str, number: int, name: str, now: float, complete: bool
) -> Epoch:
    """The epoch of a cell that has no row yet, which began with its first call."""
    calls = sa.select(CALLS.c.at, CALLS.c.run).where(
        CALLS.c.worker == worker, CALLS.c.benchmark == benchmark, CALLS.c.epoch == number
    )
    first = connection.execute(calls.order_by(CALLS.c.at).limit(1)).first()
    at, run = (now, name) if first is None else first
    return Epoch(worker, benchmark, number, at, (run or name,), now if complete else None)


def _newest_answered(connection: sa.Connection, worker: str, benchmark: str) -> int | None:
    # A name that ends with a slash stands for all that begin so, as a sentinel's does.
    named = ANSWERS.c.benchmark.startswith(benchmark, autoescape=True) if benchmark.endswith("/") else None
    cell = ANSWERS.c.worker == worker, ANSWERS.c.benchmark == benchmark if named is None else named
    return connection.execute(sa.select(sa.func.max(ANSWERS.c.epoch)).where(*cell)).scalar()


def _all_names(connection: sa.Connection, worker: str, benchmark: str) -> set[str]:
    query = sa.select(EPOCHS.c.opened_by).where(EPOCHS.c.worker == worker, EPOCHS.c.benchmark == benchmark)
    return {name for (names,) in connection.execute(query) for name in names.split("\n")}


def _insert(connection: sa.Connection, epoch: Epoch) -> None:
    row = {
        "worker": epoch.worker,
        "benchmark": epoch.benchmark,
        "epoch": epoch.number,
        "opened_at": epoch.opened_at,
        "opened_by": "\n".join(epoch.names),
        "completed_at": epoch.completed_at,
    }
    connection.execute(sa.insert(EPOCHS), [row])


def _is(epoch: Epoch) -> tuple[sa.ColumnElement[bool], ...]:
    return (EPOCHS.c.worker == epoch.worker, EPOCHS.c.benchmark == epoch.benchmark, EPOCHS.c.epoch == epoch.number)
