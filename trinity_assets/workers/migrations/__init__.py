"""The ledger's schema, version by version: an opened database is brought to the newest, whoever opens it first.

Belongs here: one module per version below ``versions``, and what runs them. Versions are frozen: they repeat what the
tables were and never read ``ledger_tables``.
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError, ProgrammingError

from trinity_assets.errors import LedgerError
from trinity_assets.workers.ledger_database import Database

NEWEST = "3"
"""The version that this code reads and writes."""

OPENING_TIMEOUT_S = 10.0
"""How long to wait while another process creates the database; SQLite's busy timeout does not cover that."""

BEFORE_VERSIONS = "1"
"""The version of ledgers that were written before the schema had versions."""

_NO_SUCH_TABLE = "42P01"
"""PostgreSQL's code; its words depend on its language."""

_ALEMBIC = threading.Lock()
"""alembic keeps what it runs in a module; two threads would run each other's."""

VERSION_TABLE = "ledger_version"
"""Not alembic's own name: Dagster uses that one, and may have its tables in the same database."""

_VERSION = sa.table(VERSION_TABLE, sa.column("version_num", sa.String))


def migrate(database: Database) -> None:
    """Bring ``database`` to :data:`NEWEST`, under a lock: several processes may do it at once.

    Raises:
        LedgerError: the database was written by a newer version of this package.
        SQLAlchemyError: the database cannot be opened or changed; it is as it was.
    """
    deadline = time.monotonic() + OPENING_TIMEOUT_S
    while True:
        try:
            if _version(database) != NEWEST:
                _upgrade(database)
            return
        except OperationalError as error:
            if database.kind != "sqlite" or "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _version(database: Database) -> str | None:
    """The recorded version; None where there is none."""
    try:
        with database.reading() as connection:
            return connection.execute(sa.select(_VERSION.c.version_num)).scalar()
    except (OperationalError, ProgrammingError) as error:
        if getattr(error.orig, "sqlstate", None) == _NO_SUCH_TABLE or "no such table" in str(error.orig):
            return None
        raise


def _upgrade(database: Database) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    logging.getLogger("alembic").setLevel(logging.WARNING)
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    with _ALEMBIC, database.exclusive() as connection:
        config.attributes["connection"] = connection
        tables = set(sa.inspect(connection).get_table_names())
        if VERSION_TABLE in tables:
            version = connection.execute(sa.select(_VERSION.c.version_num)).scalar()
            if version is not None and version not in known:
                raise LedgerError(
                    f"the ledger {database.url} was written by a newer trinity-assets (its schema is {version}, this "
                    f"one knows up to {NEWEST}). Nothing was changed; upgrade trinity-assets, or name another ledger"
                )
        elif "answers" in tables:
            command.stamp(config, BEFORE_VERSIONS)
        command.upgrade(config, "head")
