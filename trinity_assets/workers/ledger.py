"""The ledger: every call that was made and every answer that was paid for, in one SQLite file.

``calls`` is append-only, one row per HTTP request. ``answers`` holds one row per settled request, keyed by the digest
of the whole request. A call and its answer are one transaction, so neither exists without the other. Several
processes may use one ledger, and may create it, at the same time.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import ArgumentError, OperationalError, SQLAlchemyError
from sqlalchemy.schema import CreateIndex, CreateTable

from trinity_assets.errors import LedgerError
from trinity_assets.workers.outcomes import SETTLED, Status

BUSY_TIMEOUT_S = 30.0
"""How long a writer waits for another process; a commit takes about a millisecond."""

OPENING_TIMEOUT_S = 10.0
"""How long to wait while another process creates the database; SQLite's busy timeout does not cover that."""

_LOOKUP = 500
"""Digests per query, below SQLite's limit on bound values."""

_WRITING = "ledger_writing"
"""The execution option of a transaction that writes."""

_METADATA = sa.MetaData()


def _asked() -> list[sa.Column[Any]]:
    """The columns of both tables that say who was asked what, and what came back."""
    return [
        sa.Column("run", sa.String, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("provider", sa.String, nullable=False),
        sa.Column("worker", sa.String, nullable=False),
        sa.Column("benchmark", sa.String, nullable=False),
        sa.Column("task_id", sa.String, nullable=False),
        sa.Column("sample", sa.Integer, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("finish_reason", sa.String),
        sa.Column("model_returned", sa.String),
        sa.Column("input_tokens", sa.Integer),
        sa.Column("output_tokens", sa.Integer),
        sa.Column("cost_usd", sa.Float),
        sa.Column("cost_source", sa.String),
        sa.Column("latency_s", sa.Float),
    ]


CALLS = sa.Table(
    "calls",
    _METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("request_digest", sa.String(64), nullable=False, index=True),
    sa.Column("attempt", sa.Integer, nullable=False),
    *_asked(),
    sa.Column("error_class", sa.String),
    sa.Column("error", sa.String),
)
ANSWERS = sa.Table(
    "answers",
    _METADATA,
    sa.Column("request_digest", sa.String(64), primary_key=True),
    *_asked(),
    sa.Column("text", sa.String),
)


@dataclass(frozen=True)
class Call:
    """One HTTP request. ``at`` is its end in seconds since 1970 (UTC); ``attempt`` counts from 1 within one asking."""

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


@dataclass(frozen=True)
class Entry:
    """What one call adds: the call, and the answer's ``text`` when its status is settled."""

    call: Call
    text: str | None = None

    def answer_row(self) -> dict[str, Any] | None:
        """The row of ``answers``, or None for a failure: a failure is never an answer."""
        if self.call.status not in SETTLED:
            return None
        row = asdict(self.call) | {"text": self.text}
        return {column.name: row[column.name] for column in ANSWERS.columns}


class Ledger:
    """The ledger at ``url`` (``sqlite:///<path>``), created with its directory when it does not exist.

    Every commit survives the death of the process at any moment (write-ahead log, synchronous=NORMAL); a power failure
    may take the last commits with it, never the database.

    Raises:
        LedgerError: the database cannot be opened or created.
    """

    def __init__(self, url: str) -> None:
        self._engine = _engine(url)
        self.url = self._engine.url.render_as_string(hide_password=True)
        with self._translated("open"):
            self._create()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    def settled(self, digests: Iterable[str]) -> dict[str, SettledAnswer]:
        """The answers that exist among ``digests``.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        query = sa.select(*(ANSWERS.c[field.name] for field in fields(SettledAnswer)))
        wanted = list(dict.fromkeys(digests))
        found: dict[str, SettledAnswer] = {}
        with self._translated("read"), self._engine.connect() as connection:
            for start in range(0, len(wanted), _LOOKUP):
                chunk = query.where(ANSWERS.c.request_digest.in_(wanted[start : start + _LOOKUP]))
                for row in connection.execute(chunk).mappings():
                    found[row["request_digest"]] = SettledAnswer(**{**row, "status": Status(row["status"])})
        return found

    def record_all(self, entries: Sequence[Entry]) -> None:
        """Keep calls, and the answers of those whose status is settled, in one transaction.

        An answer that exists already, from another process, is left as it is.

        Raises:
            LedgerError: the ledger cannot be written; nothing of these calls was kept.
        """
        answers = [row for entry in entries if (row := entry.answer_row())]
        with self._translated("write"), self._writing() as connection:
            connection.execute(sa.insert(CALLS), [asdict(entry.call) for entry in entries])
            if answers:
                connection.execute(sqlite.insert(ANSWERS).on_conflict_do_nothing(), answers)

    def _create(self) -> None:
        """Create what is missing. IF NOT EXISTS under a write lock: two processes may do it at once."""
        deadline = time.monotonic() + OPENING_TIMEOUT_S
        while True:
            try:
                with self._writing() as connection:
                    for table in _METADATA.sorted_tables:
                        connection.execute(CreateTable(table, if_not_exists=True))
                        for index in table.indexes:
                            connection.execute(CreateIndex(index, if_not_exists=True))
                return
            except OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _writing(self) -> contextlib.AbstractContextManager[sa.Connection]:
        return self._engine.execution_options(**{_WRITING: True}).begin()

    @contextlib.contextmanager
    def _translated(self, action: str) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error, OSError) as error:
            cause = getattr(error, "orig", None) or error
            raise LedgerError(
                f"cannot {action} the ledger {self.url}: {cause}. Nothing already answered was lost; free space, fix "
                "the permissions or end the process that holds it, then run again: only what is missing is asked"
            ) from error


def _engine(url: str) -> sa.Engine:
    try:
        parsed = sa.make_url(url)
    except ArgumentError:
        raise LedgerError("the ledger's URL is not a SQLAlchemy URL; use sqlite:///<path>") from None
    shown = parsed.render_as_string(hide_password=True)
    if parsed.get_backend_name() != "sqlite" or parsed.host:
        raise LedgerError(f"the ledger's URL {shown} names no file; use sqlite:///<path>")
    try:
        if parsed.database and parsed.database != ":memory:":
            Path(parsed.database).absolute().parent.mkdir(parents=True, exist_ok=True)
        engine = sa.create_engine(parsed, connect_args={"timeout": BUSY_TIMEOUT_S})
    except (SQLAlchemyError, OSError) as error:
        raise LedgerError(f"cannot open the ledger {shown}: {error}") from error
    event.listen(engine, "connect", _prepare_connection)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare_connection(connection: Any, record: object) -> None:
    """Readers never wait for the writer, and a commit does not wait for the disk."""
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


def _begin(connection: sa.Connection) -> None:
    """A writer takes the write lock at once: a read that turns into a write fails instead of waiting its turn."""
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get(_WRITING) else "BEGIN")
