"""The ledger: every call that was made and every answer that was paid for, in one database.

``calls`` has one row per HTTP request and is only ever added to, but for a call that was written off and came out after
all, whose row gives way to its own. ``answers`` holds one row per settled request, keyed by the digest of the whole
request. A call and its answer are one transaction, so neither exists without the other. Several
processes may use one ledger, and may create it, at the same time; ``claims`` says who is asking what.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from operator import itemgetter
from typing import Any, Self

import sqlalchemy as sa

from trinity_assets.workers.claims import Claims, Lease
from trinity_assets.workers.ledger_database import Database, no_file
from trinity_assets.workers.ledger_tables import ANSWERS, CALLS, CLAIMS, PERMITS, PROBE
from trinity_assets.workers.migrations import migrate
from trinity_assets.workers.outcomes import SETTLED, Outcome, Status
from trinity_assets.workers.permits import Ended, Wish, end_permits, permit_transaction
from trinity_assets.workers.specs import MINUTE_S

LOOKUP = 500
"""Digests per query, below SQLite's limit on bound values."""

_ANSWER_COLUMNS = tuple(column.name for column in ANSWERS.columns)


@dataclass(frozen=True)
class Call:
    """One HTTP request. ``at`` is its end in seconds since 1970 (UTC); ``attempt`` counts from 1 within one asking, and
    is ``PROBE`` for a call that asks no task.

    ``price_version`` says which price made ``cost_usd``: the worker's own (``Price.version``), or the litellm that knew
    one.
    """

    request_digest: str
    attempt: int
    run: str
    at: float
    provider: str
    worker: str
    benchmark: str
    task_id: str
    sample: int
    epoch: int
    status: Status
    finish_reason: str | None
    model_returned: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    cost_source: str | None
    latency_s: float | None
    error_class: str | None
    error: str | None
    price_version: str | None = None
    fingerprint: str | None = None
    reserved_usd: float | None = None

    @classmethod
    def of(cls, wish: Wish, outcome: Outcome) -> Self:
        """The call that was wished for, as it came out now."""
        asked = {name: value for name, value in vars(wish).items() if name in CALLS.c}
        came_out = {name: value for name, value in vars(outcome).items() if name in CALLS.c}
        return cls(**asked, at=time.time(), **came_out)

    def row(self) -> dict[str, Any]:
        """The row of ``calls``."""
        return vars(self) | {"status": str(self.status)}


@dataclass(frozen=True)
class SettledAnswer:
    """A settled request as the ledger keeps it; ``text`` is what the model wrote, None when it wrote nothing."""

    request_digest: str
    epoch: int
    status: Status
    text: str | None
    finish_reason: str | None
    model_returned: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    latency_s: float | None
    fingerprint: str | None = None


@dataclass(frozen=True)
class Entry:
    """What one call adds: the call, the answer's ``text`` when its status is settled, and the end of its permit."""

    call: Call
    text: str | None = None
    ended: Ended | None = None

    def answer_row(self) -> dict[str, Any] | None:
        """The row of ``answers``; None for a failure, which is never an answer, and for a probe, which asks nothing."""
        if self.call.status not in SETTLED or self.call.attempt == PROBE:
            return None
        row = self.call.row() | {"text": self.text}
        return {name: row[name] for name in _ANSWER_COLUMNS}


class Ledger:
    """The ledger at ``url``: ``sqlite:///<path>`` or ``postgresql://...``, created where it does not exist.

    Every commit survives the death of the process at any moment. On SQLite (write-ahead log, synchronous=NORMAL) a
    power failure may take the last commits with it, never the database; on PostgreSQL its settings decide.

    ``url`` is the URL without its password.

    Raises:
        LedgerError: the database cannot be opened or created, or was written by a newer version of this package.
    """

    def __init__(self, url: str) -> None:
        self.database = Database(url)
        self.url = self.database.url
        with self.database.translated("open"):
            migrate(self.database)

    @classmethod
    def existing(cls, url: str) -> Self | None:
        """The ledger at ``url``, None where there is none yet: for those who only read, nothing is created.

        Raises:
            LedgerError: as for a ledger that is opened.
        """
        if no_file(url):
            return None
        database = Database(url)
        try:
            with database.translated("open"), database.reading() as connection:
                kept = ANSWERS.name in sa.inspect(connection).get_table_names()
        finally:
            database.close()
        return cls(url) if kept else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self.database.close()

    def claims(self, lease: Lease | None = None) -> Claims:
        """The claims of a new claimant; claims of one ``lease`` and claims of another bear each other."""
        return Claims(self.database, lease or Lease())

    def settled(self, digests: Iterable[str]) -> dict[str, SettledAnswer]:
        """The answers that exist among ``digests``.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        query = sa.select(*(ANSWERS.c[field.name] for field in fields(SettledAnswer)))
        wanted = list(dict.fromkeys(digests))
        found: dict[str, SettledAnswer] = {}
        with self.database.translated("read"), self.database.reading() as connection:
            for start in range(0, len(wanted), LOOKUP):
                chunk = query.where(ANSWERS.c.request_digest.in_(wanted[start : start + LOOKUP]))
                for row in connection.execute(chunk).mappings():
                    found[row["request_digest"]] = SettledAnswer(**{**row, "status": Status(row["status"])})
        return found

    def record_all(self, entries: Sequence[Entry], *, again: bool = False) -> None:
        """Keep calls, and the answers of those whose status is settled, and end their permits, in one transaction.

        An answer that exists already, from another process, is left as it is. With ``again`` so is a call, whose permit
        has ended with it: a transaction that failed may have been committed, where only the reply was lost.

        Raises:
            LedgerError: the ledger cannot be written; nothing of these calls was kept, or nobody knows.
        """
        permitted = any(entry.ended for entry in entries)
        transaction = permit_transaction(self.database) if permitted else self.database.writing()
        with self.database.translated("write"), transaction as connection:
            if again:
                entries = _missing(connection, entries)
            if not entries:
                return
            # In the order of the key: two transactions that wait for each other's answers would wait for ever.
            rows = (row for entry in entries if (row := entry.answer_row()))
            answers = sorted(rows, key=itemgetter("request_digest"))
            ended = [entry.ended for entry in entries if entry.ended is not None]
            connection.execute(sa.insert(CALLS), [entry.call.row() for entry in entries])
            if answers:
                connection.execute(self.database.insert(ANSWERS).on_conflict_do_nothing(), answers)
            if ended:
                end_permits(self.database, connection, ended)

    def vacuum(self) -> tuple[int, int]:
        """Delete claims and permits that count no more, give unused room back; the sizes before and after, in bytes.

        Raises:
            LedgerError: the ledger cannot be written, or is busy for too long; nothing in it was lost.
        """
        with self.database.translated("vacuum"):
            with self.database.reading() as connection:
                before = self.database.size(connection)
            with self.database.exclusive() as connection:
                now = self.database.now(connection)
                connection.execute(sa.delete(CLAIMS).where(CLAIMS.c.expires_at <= now))
                # What a call used counts for a minute after it began, which may be long after it ended.
                spent = PERMITS.c.expires_at <= now, PERMITS.c.started_at <= now - MINUTE_S
                connection.execute(sa.delete(PERMITS).where(PERMITS.c.ended_at.is_not(None), *spent))
            self.database.compact()
            with self.database.reading() as connection:
                return before, self.database.size(connection)


def _missing(connection: sa.Connection, entries: Sequence[Entry]) -> list[Entry]:
    """Those of ``entries`` whose call is not kept."""
    columns = CALLS.c.request_digest, CALLS.c.run, CALLS.c.at, CALLS.c.attempt
    names = {entry.call.request_digest for entry in entries}
    kept = {tuple(row) for row in connection.execute(sa.select(*columns).where(CALLS.c.request_digest.in_(names)))}
    calls = [(entry, entry.call) for entry in entries]
    return [entry for entry, call in calls if (call.request_digest, call.run, call.at, call.attempt) not in kept]
