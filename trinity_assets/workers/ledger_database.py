"""The database behind the ledger: SQLite or PostgreSQL by its URL, its transactions, its clock, its errors.

A URL's password is in no message: what is shown of a URL and of an error passes through here.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, InterfaceError, OperationalError, SQLAlchemyError

from trinity_assets.errors import LedgerError
from trinity_assets.workers.ledger_tables import METADATA
from trinity_assets.workers.redaction import redact

BUSY_TIMEOUT_S = 30.0
"""How long a writer waits for another process; a commit takes about a millisecond."""

HIDDEN = "***"
FORMS = "use sqlite:///<path> or postgresql://<user>:<password>@<host>/<database>"

_PASSING = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PERM,
    }
)
"""SQLite's primary codes of what may be otherwise in a moment: the file is in use, the disk full or away."""

_WRITING = "ledger_writing"
"""The execution option of a transaction that writes."""

CLAIMING = 0x7472696E697479
"""The number of the advisory lock ("trinity" in ASCII) under which one session at a time claims or migrates."""

_PATIENCE: dict[str, Any] = {
    "connect_timeout": 10,
    "application_name": "trinity-assets",
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""libpq's own settings wait for a host that has gone for two hours. Seconds, but for the last: milliseconds."""

_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT})
"""SQLite's primary codes of a file that is damaged, or none of its own."""

_DAMAGED = ("XX001", "XX002")
"""PostgreSQL's codes of a damaged table and a damaged index."""

_ADVICE = {
    "sqlite": "free space, fix the permissions or end the process that holds it",
    "postgresql": "see that the server runs, has space, and lets this user in (URL, password, rights)",
}


RUN_AGAIN = ", then run again: only what is missing is asked"
"""How the advice ends, unless there is something else to do first."""

_MENDING = {
    "sqlite": "put a backup in its place, or what `sqlite3 FILE .recover | sqlite3 NEW` can still read of it",
    "postgresql": "put a backup in its place",
}


class Database:
    """The database at ``url``: ``sqlite:///<path>``, whose directory is made, or ``postgresql://...``.

    ``url`` is the URL without its password, ``kind`` is "sqlite" or "postgresql", ``directory`` that of SQLite's file.

    Raises:
        LedgerError: the URL names no such database, or the driver is missing.
    """

    def __init__(self, url: str) -> None:
        parsed = _parsed(url)
        self.kind = parsed.get_backend_name()
        self.url = _shown(parsed)
        self.directory = Path(parsed.database or "").absolute().parent if self.kind == "sqlite" else None
        self._secrets = _secrets(parsed)
        self._engine = self._open_engine(parsed)

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    def reading(self) -> contextlib.AbstractContextManager[sa.Connection]:
        """A connection that only reads."""
        return self._engine.connect()

    def writing(self) -> contextlib.AbstractContextManager[sa.Connection]:
        """A transaction that is committed at the end of the block, or has never been."""
        return self._engine.execution_options(**{_WRITING: True}).begin()

    @contextlib.contextmanager
    def exclusive(self, lock: int = CLAIMING) -> Iterator[sa.Connection]:
        """A transaction that writes while no other one with the same ``lock`` does; SQLite knows one lock for all."""
        with self.writing() as connection:
            if self.kind == "postgresql":
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{BUSY_TIMEOUT_S:.0f}s'")
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(lock)))
            yield connection

    def compact(self) -> None:
        """Give room that is not needed back: to the file system (SQLite), to the tables (PostgreSQL)."""
        with self._engine.connect() as connection:
            if self.kind == "postgresql":
                connection = connection.execution_options(isolation_level="AUTOCOMMIT")
                connection.exec_driver_sql(f"VACUUM (ANALYZE) {', '.join(METADATA.tables)}")
                return
            # SQLAlchemy would begin a transaction, which VACUUM refuses.
            cursor = connection.connection.cursor()
            for statement in ("VACUUM", "ANALYZE", "PRAGMA wal_checkpoint(TRUNCATE)"):
                cursor.execute(statement)
            cursor.close()

    def now(self, connection: sa.Connection) -> float:
        """Seconds since 1970 by the clock that every user of this database shares.

        PostgreSQL's own; for SQLite this machine's, where all of its users run.
        """
        if self.kind == "sqlite":
            return time.time()
        return float(connection.execute(sa.text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())

    def size(self, connection: sa.Connection) -> int:
        """Bytes that the ledger occupies: SQLite's file without its log, PostgreSQL's tables with their indexes."""
        if self.kind == "sqlite":
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            return int(pages) * int(connection.exec_driver_sql("PRAGMA page_size").scalar_one())
        sizes = (sa.func.pg_total_relation_size(name) for name in METADATA.tables)
        return int(connection.execute(sa.select(sum(sizes, sa.literal(0)))).scalar_one())

    def insert(self, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
        """An INSERT that knows ON CONFLICT."""
        return sqlite.insert(table) if self.kind == "sqlite" else postgresql.insert(table)

    @contextlib.contextmanager
    def translated(self, action: str) -> Iterator[None]:
        """Database errors inside the block become a LedgerError: that ``action`` failed, why, and what to do."""
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error, OSError) as error:
            cause = getattr(error, "orig", None) or error
            advice = (
                f"It is damaged, or no ledger: see that its URL names the right one, and {_MENDING[self.kind]}; what "
                "is lost is asked and paid for again"
                if _is_damage(cause)
                else f"Nothing already answered was lost; {_ADVICE[self.kind]}{RUN_AGAIN}"
            )
            raise LedgerError(f"cannot {action} the ledger {self.url}: {self._redacted(cause)}. {advice}") from error

    def _redacted(self, cause: object) -> str:
        text = str(cause).strip()
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return redact(text).rstrip(".")

    def _open_engine(self, parsed: sa.URL) -> sa.Engine:
        try:
            return _sqlite_engine(parsed) if self.kind == "sqlite" else _postgresql_engine(parsed)
        except ImportError as error:
            raise LedgerError(
                f"the ledger {self.url} needs psycopg, which cannot be imported ({error}); "
                "pip install 'trinity-assets[postgres]'"
            ) from None
        except (SQLAlchemyError, OSError) as error:
            raise LedgerError(f"cannot open the ledger {self.url}: {self._redacted(error)}") from error


def may_pass(error: LedgerError) -> bool:
    """Whether the same may go well in a moment: the database is in use, full or away, and not damaged or another."""
    cause = error.__cause__
    cause = getattr(cause, "orig", None) or cause
    if isinstance(cause, sqlite3.Error):
        return _primary_code(cause) in _PASSING
    return isinstance(error.__cause__, OperationalError | InterfaceError | OSError)


def no_file(url: str) -> bool:
    """Whether ``url`` names a SQLite file that does not exist.

    Raises:
        LedgerError: the URL names no such database.
    """
    parsed = _parsed(url)
    return parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").is_file()


def _is_damage(cause: object) -> bool:
    if isinstance(cause, sqlite3.Error):
        return _primary_code(cause) in _DAMAGE
    return getattr(cause, "sqlstate", None) in _DAMAGED


def _primary_code(error: sqlite3.Error) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)  # none where Python's own module complains
    return None if code is None else code & 0xFF


def _parsed(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except (ArgumentError, ValueError):
        raise LedgerError(f"the ledger's URL is not a SQLAlchemy URL; {FORMS}") from None
    if "@" in (parsed.host or ""):
        raise LedgerError("the ledger's URL has an @ in its user, password or host; write it as %40")
    backend = parsed.get_backend_name()
    if backend == "postgresql" and parsed.drivername in ("postgresql", "postgresql+psycopg"):
        return parsed.set(drivername="postgresql+psycopg")
    if backend == "sqlite" and not parsed.host:
        if _in_memory(parsed):
            raise LedgerError(
                f"the ledger's URL {_shown(parsed)} names no file: what is paid for would be gone with the process; "
                f"{FORMS}"
            )
        return parsed
    raise LedgerError(f"the ledger's URL {_shown(parsed)} is of another kind than a ledger can be; {FORMS}")


def _in_memory(parsed: sa.URL) -> bool:
    """Whether SQLite would keep nothing: it has no name, or one of those that stand for memory."""
    name = parsed.database or ""
    return name in ("", ":memory:") or name.startswith("file::memory:") or parsed.query.get("mode") == "memory"


def _shown(parsed: sa.URL) -> str:
    hidden = {name: "hidden" for name in parsed.query if "password" in name}
    return parsed.update_query_dict(hidden).render_as_string(hide_password=True)


def _secrets(parsed: sa.URL) -> list[str]:
    """The passwords in a URL, the longest first."""
    listed = [value for name, value in parsed.query.items() if "password" in name]
    flat = [one for value in listed for one in ([value] if isinstance(value, str) else value)]
    return sorted(filter(None, {*flat, str(parsed.password or "")}), key=len, reverse=True)


def _sqlite_engine(parsed: sa.URL) -> sa.Engine:
    Path(parsed.database or "").absolute().parent.mkdir(parents=True, exist_ok=True)
    engine = sa.create_engine(parsed, connect_args={"timeout": BUSY_TIMEOUT_S}, hide_parameters=True)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _postgresql_engine(parsed: sa.URL) -> sa.Engine:
    settings = {name: value for name, value in _PATIENCE.items() if name not in parsed.query}
    return sa.create_engine(parsed, connect_args=settings, hide_parameters=True, pool_pre_ping=True)


def _prepare_sqlite(connection: Any, record: object) -> None:
    """Readers never wait for the writer, and a commit does not wait for the disk."""
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


def _begin_sqlite(connection: sa.Connection) -> None:
    """A writer takes the write lock at once: a read that turns into a write fails instead of waiting its turn."""
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get(_WRITING) else "BEGIN")
