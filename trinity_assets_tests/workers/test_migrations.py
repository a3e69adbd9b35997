"""The ledger's schema: what an old file becomes, what a new one is, and what is refused."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from trinity_assets.errors import LedgerError
from trinity_assets.workers import migrations
from trinity_assets.workers.ledger import Entry, Ledger
from trinity_assets.workers.ledger_tables import METADATA
from trinity_assets_tests.workers.test_ledger import CALL, rows

ON_BOTH_DATABASES = True

BEFORE_VERSIONS = """
CREATE TABLE calls (
    id INTEGER NOT NULL, request_digest VARCHAR(64) NOT NULL, attempt INTEGER NOT NULL, run VARCHAR NOT NULL,
    at FLOAT NOT NULL, provider VARCHAR NOT NULL, worker VARCHAR NOT NULL, benchmark VARCHAR NOT NULL,
    task_id VARCHAR NOT NULL, sample INTEGER NOT NULL, epoch INTEGER NOT NULL, status VARCHAR NOT NULL,
    finish_reason VARCHAR, model_returned VARCHAR, input_tokens INTEGER, output_tokens INTEGER, cost_usd FLOAT,
    cost_source VARCHAR, latency_s FLOAT, error_class VARCHAR, error VARCHAR, PRIMARY KEY (id)
);
CREATE INDEX ix_calls_request_digest ON calls (request_digest);
CREATE TABLE answers (
    request_digest VARCHAR(64) NOT NULL, run VARCHAR NOT NULL, at FLOAT NOT NULL, provider VARCHAR NOT NULL,
    worker VARCHAR NOT NULL, benchmark VARCHAR NOT NULL, task_id VARCHAR NOT NULL, sample INTEGER NOT NULL,
    epoch INTEGER NOT NULL, status VARCHAR NOT NULL, finish_reason VARCHAR, model_returned VARCHAR,
    input_tokens INTEGER, output_tokens INTEGER, cost_usd FLOAT, cost_source VARCHAR, latency_s FLOAT, text VARCHAR,
    PRIMARY KEY (request_digest)
);
INSERT INTO calls VALUES (1, 'd0', 1, 'r1', 1.5, 'p', 'w', 'b', 't', 0, 1, 'failed_transient', NULL, NULL, NULL,
    NULL, NULL, NULL, 0.25, 'timeout', 'too slow');
INSERT INTO calls VALUES (2, 'd0', 2, 'r1', 2.5, 'p', 'w', 'b', 't', 0, 1, 'answered', 'stop', 'm-1', 10, 5, 0.5,
    'price', 0.25, NULL, NULL);
INSERT INTO answers VALUES ('d0', 'r1', 2.5, 'p', 'w', 'b', 't', 0, 1, 'answered', 'stop', 'm-1', 10, 5, 0.5, 'price',
    0.25, 'four');
"""
"""What the code before versions wrote, statement by statement as it wrote it."""


@pytest.fixture
def old_url(tmp_path: Path) -> str:
    """A ledger that was written before the schema had versions."""
    with sqlite3.connect(tmp_path / "old.sqlite") as connection:
        connection.executescript(BEFORE_VERSIONS)
        connection.execute("PRAGMA journal_mode=WAL")
    return f"sqlite:///{tmp_path / 'old.sqlite'}"


def schema_differs(url: str) -> list[object]:
    """What alembic would change to make the database what the code's tables say."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with sa.create_engine(url, poolclass=sa.NullPool).connect() as connection:
        return list(
            compare_metadata(
                MigrationContext.configure(connection, opts={"version_table": migrations.VERSION_TABLE}), METADATA
            )
        )


def test_a_new_ledger_has_the_tables_that_the_code_uses(ledger_url: str) -> None:
    Ledger(ledger_url).close()
    assert schema_differs(ledger_url) == []
    assert rows(ledger_url, "select version_num from ledger_version") == [(migrations.NEWEST,)]


def test_a_ledger_from_before_versions_is_adopted_whole(old_url: str) -> None:
    with Ledger(old_url) as ledger:
        assert ledger.settled(["d0"])["d0"].text == "four"
        ledger.record_all([Entry(CALL, "another")])
    assert schema_differs(old_url) == []
    assert rows(old_url, "select id, attempt, status, error, cost_usd, price_version from calls order by id") == [
        (1, 1, "failed_transient", "too slow", None, None),
        (2, 2, "answered", None, 0.5, None),
        (3, 1, "answered", None, None, None),
    ]
    assert rows(old_url, "select text, cost_source from answers") == [("four", "price")]


def test_processes_may_adopt_one_ledger_at_the_same_time(old_url: str) -> None:
    program = (
        "import sys\n"
        "from trinity_assets.workers.ledger import Ledger\n"
        "sys.stdin.readline()\n"
        "with Ledger(sys.argv[1]) as ledger:\n"
        "    print(ledger.settled(['d0'])['d0'].text)\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, old_url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate(timeout=60)[0] for process in processes] == ["four\n"] * 3
    assert schema_differs(old_url) == []


def test_a_migration_that_fails_leaves_the_ledger_as_it_was(old_url: str) -> None:
    rows(old_url, "create table claims (in_the_way integer)")
    with pytest.raises(LedgerError, match="claims already exists"):
        Ledger(old_url)
    tables = {name for (name,) in rows(old_url, "select name from sqlite_master where type = 'table'")}
    assert tables == {"calls", "answers", "claims"}
    assert "price_version" not in {row[1] for row in rows(old_url, "pragma table_info(calls)")}
    rows(old_url, "drop table claims")
    with Ledger(old_url) as ledger:
        assert ledger.settled(["d0"])["d0"].text == "four"


def test_a_ledger_of_a_newer_version_is_refused_and_not_touched(ledger_url: str) -> None:
    Ledger(ledger_url).close()
    rows(ledger_url, "update ledger_version set version_num = '99'")
    with pytest.raises(LedgerError, match=r"newer trinity-assets \(its schema is 99.*upgrade trinity-assets"):
        Ledger(ledger_url)
    assert rows(ledger_url, "select version_num from ledger_version") == [("99",)]


def test_a_database_that_dagster_uses_too_is_left_to_it(ledger_url: str) -> None:
    """Dagster keeps the version of its own tables in ``alembic_version``."""
    if ledger_url.startswith("sqlite"):
        Path(ledger_url.removeprefix("sqlite:///")).parent.mkdir()
    rows(ledger_url, "create table alembic_version (version_num varchar(32))")
    rows(ledger_url, "insert into alembic_version values ('7e2f3204cf8e')")
    Ledger(ledger_url).close()
    assert rows(ledger_url, "select version_num from alembic_version") == [("7e2f3204cf8e",)]


def test_the_newest_version_is_the_last_script() -> None:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    assert ScriptDirectory.from_config(config).get_heads() == [migrations.NEWEST]


def test_opening_a_ledger_of_this_version_needs_no_alembic(ledger_url: str) -> None:
    Ledger(ledger_url).close()
    program = (
        "import sys\n"
        "from trinity_assets.workers.ledger import Ledger\n"
        "Ledger(sys.argv[1]).close()\n"
        "print('alembic' in sys.modules)\n"
    )
    assert subprocess.check_output([sys.executable, "-c", program, ledger_url], text=True, timeout=60) == "False\n"
