"""Fixtures that every room's tests share."""

import importlib.util
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from trinity_assets_tests.needed import missing, needed_sandbox
from trinity_assets_tests.postgres_server import URL_VARIABLE, PostgresServer, binaries, schema_of_its_own, unavailable

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session", autouse=True)
def _unsynced_sqlite() -> Iterator[None]:
    """In this process SQLite waits for no disk: a test's databases must survive tests, not power failures.

    Dagster's wait twelve hundred times for a build of the small catalog. The ledger sets what it needs by itself.
    """

    def connected(connection: Any, record: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous=OFF")

    sa.event.listen(sa.Engine, "connect", connected)
    yield
    sa.event.remove(sa.Engine, "connect", connected)


@pytest.fixture(scope="session", autouse=True)
def _migrations_read_once() -> Iterator[None]:
    """In this process a folder of migrations is read once, and not for every instance of Dagster that is opened."""
    from alembic.script import ScriptDirectory

    read, found = ScriptDirectory.from_config, {}

    def once(config: Any) -> ScriptDirectory:
        folder = config.get_main_option("script_location")
        if folder not in found:
            found[folder] = read(config)
        return found[folder]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScriptDirectory, "from_config", once)
        yield


@pytest.fixture(autouse=True)
def _no_instance_of_another_test() -> Iterator[None]:
    """Dagster reads definitions with the instance that was opened last, also where that one is gone by now."""
    if "dagster" not in sys.modules:
        yield
        return
    from dagster._core.storage.defs_state.base import set_defs_state_storage

    with set_defs_state_storage(None):
        yield


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Finds test data that lies beside the project, under `TRINITY_TEST_DATA` (default `../shared/data`).

    A test that needs a missing file is skipped, and fails with `CI=true`; either names the file.
    """
    root = Path(os.environ.get("TRINITY_TEST_DATA") or PROJECT / "../shared/data")

    def find(relative: str) -> Path:
        path = root / relative
        if not path.exists():
            missing(f"no test data at {path}; point TRINITY_TEST_DATA at the directory that holds {relative}")
        return path

    return find


@pytest.fixture
def sandbox() -> None:
    """For tests that run programs: in whatever tier holds on this machine."""
    needed_sandbox()


@pytest.fixture
def reasoning_gym() -> None:
    """For tests that generate tasks or score them: the extra `procedural`."""
    if importlib.util.find_spec("reasoning_gym") is None:
        missing("reasoning-gym is not installed; pip install 'trinity-assets[procedural]'")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server: the one that is named, else one of this session's own."""
    if named := os.environ.get(URL_VARIABLE):
        yield named
        return
    programs = binaries()
    if programs is None:
        unavailable()
        return
    with PostgresServer(programs) as server:
        yield server.url


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of a module with ``ON_BOTH_DATABASES = True`` that use the ledger run on SQLite and on PostgreSQL."""
    if getattr(metafunc.module, "ON_BOTH_DATABASES", False) and "ledger_url" in metafunc.fixturenames:
        metafunc.parametrize("database", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def database(request: pytest.FixtureRequest) -> str:
    """Which kind of database ``ledger_url`` is on."""
    return str(getattr(request, "param", "sqlite"))


@pytest.fixture
def ledger_url(database: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a ledger that does not exist yet."""
    if database == "sqlite":
        yield f"sqlite:///{tmp_path / 'paid' / 'ledger.sqlite'}"
        return
    with schema_of_its_own(request.getfixturevalue("postgres_url")) as url:
        yield url


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """``trinity-assets`` with these arguments, in this process: its exit status, its output, its complaint."""
    from trinity_assets import cli

    def start(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["trinity-assets", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return start
