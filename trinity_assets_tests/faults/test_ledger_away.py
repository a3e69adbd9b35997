"""A ledger that goes away in the middle of a collection: the server ends, the disk is full, nobody is let in."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import sqlalchemy as sa

from trinity_assets.defs.resources import default_resources
from trinity_assets.errors import LedgerError
from trinity_assets.workers import writer
from trinity_assets.workers.collection import collect
from trinity_assets.workers.ledger import Ledger
from trinity_assets.workers.ledger_database import Database
from trinity_assets.workers.ledger_files import import_files
from trinity_assets.workers.ledger_reports import stats
from trinity_assets.workers.litellm_library import load_litellm
from trinity_assets.workers.redaction import redact
from trinity_assets.workers.requests import answer_requests
from trinity_assets.workers.specs import Limits, LiteLLMProvider, PromptStyle, Sampling, WorkerSpec
from trinity_assets_tests.graph import small_catalog
from trinity_assets_tests.graph.scripted_models import SUMS
from trinity_assets_tests.postgres_server import PASSWORD, PostgresServer, binaries, schema_of_its_own, unavailable
from trinity_assets_tests.scripted_server import ScriptedServer

TASKS = 60
CONCURRENCY = 4
PROMPTS = {f"task_{index}": f"question {index}" for index in range(TASKS)}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(lambda messages: messages[-1]["content"].upper(), delay_s=0.05) as running:
        yield running


@pytest.fixture
def worker(server: ScriptedServer) -> WorkerSpec:
    limits = Limits(concurrency=CONCURRENCY)
    provider = LiteLLMProvider(name="scripted", route="openai", api_base=server.url, limits=limits)
    return WorkerSpec(
        name="scripted_worker",
        provider=provider,
        model="plain",
        prompt_name="plain",
        prompt=PromptStyle(),
        sampling=Sampling(max_tokens=16),
    )


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """A server of this module's own, which its tests may stop."""
    programs = binaries()
    if programs is None:
        unavailable()
        return
    with PostgresServer(programs) as running:
        yield running


def kept(ledger: Ledger, worker: WorkerSpec) -> int:
    return len(ledger.settled(request.digest for request in answer_requests(worker, PROMPTS, 1)))


def bring_back(ledger: Ledger, directory: Path) -> None:
    """Import the files that were kept in place of the ledger, if any were."""
    for calls in directory.glob("ledger-rescue-*-calls.jsonl"):
        import_files(ledger, calls.with_name(calls.name.replace("-calls", "-answers")), calls)


def test_a_server_that_ends_in_the_middle_stops_the_cell_and_nothing_is_lost(
    postgres: PostgresServer,
    server: ScriptedServer,
    worker: WorkerSpec,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load_litellm()
    monkeypatch.setenv("TRINITY_HOME", str(tmp_path))
    monkeypatch.setattr(writer, "PATIENCE_S", 0.5)
    caplog.set_level(logging.DEBUG)

    def stop() -> None:
        while server.count() < 20:
            time.sleep(0.005)
        postgres.stop()

    stopping = threading.Thread(target=stop)
    stopping.start()
    with Ledger(postgres.url) as ledger:
        with pytest.raises(LedgerError, match=r"cannot \w+ .*Nothing already answered was lost; see that") as info:
            collect(worker, "bench", PROMPTS, ledger)
        stopping.join(60)
        asked = server.count()
        assert 20 <= asked <= 20 + 3 * CONCURRENCY, "it went on asking"
        with pytest.raises(LedgerError, match="cannot read the ledger"):
            kept(ledger, worker)
        with pytest.raises(LedgerError, match="cannot open the ledger"):
            Ledger(postgres.url)
        for said in (str(info.value), caplog.text):
            assert PASSWORD not in said and quote(PASSWORD, safe="") not in said
        postgres.start()
        bring_back(ledger, tmp_path)
        before = kept(ledger, worker)
        assert before == asked, "an answer that had come was lost"
        collection = collect(worker, "bench", PROMPTS, ledger)
    assert collection.complete and (collection.reused, collection.new) == (before, TASKS - before)
    assert server.count() == TASKS
    assert list(collection.frame["text"]) == [f"QUESTION {index}" for index in range(TASKS)]


def test_a_server_that_was_away_for_a_moment_is_found_again(postgres: PostgresServer, worker: WorkerSpec) -> None:
    with Ledger(postgres.url) as ledger:
        before = kept(ledger, worker)
        postgres.stop()
        postgres.start()
        assert kept(ledger, worker) == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"password": "wrong-hunter22"}, "password authentication failed"),
        ({"database": "nowhere"}, "does not exist"),
        ({"port": 1}, "refused"),
    ],
)
def test_who_is_not_let_in_is_told_why_and_no_password_is_shown(
    postgres: PostgresServer, change: dict[str, object], said: str
) -> None:
    url = sa.make_url(postgres.url).set(**change).render_as_string(hide_password=False)  # type: ignore[arg-type]
    with pytest.raises(LedgerError, match=f"cannot open the ledger .*{said}.*see that the server runs") as info:
        Ledger(url)
    chain: BaseException | None = info.value
    while chain is not None:
        assert "hunter22" not in str(chain) and "hunter22" not in repr(chain)
        chain = chain.__cause__ or chain.__context__


def test_a_missing_driver_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match=r"needs psycopg.*pip install 'trinity-assets\[postgres\]'"):
        Database("postgresql://someone:hunter22@somewhere/ledger")


def test_the_password_of_the_ledgers_url_is_taken_out_of_every_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRINITY_LEDGER_URL", "postgresql://me:pass%2Fword-7@host/ledger")
    assert redact("tried pass/word-7 and pass%2Fword-7") == "tried [redacted] and [redacted]"
    monkeypatch.delenv("TRINITY_LEDGER_URL")
    assert redact("postgresql://me:secret@host/ledger is away") == "postgresql://me:[redacted]@host/ledger is away"


def test_a_build_on_postgresql_writes_the_password_nowhere(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one that goes well nor one that fails: not into artifacts, metadata, events or logs."""
    with small_catalog.empty_site(tmp_path_factory.getbasetemp(), tmp_path / "site") as site:
        with schema_of_its_own(postgres.url) as url:
            monkeypatch.setenv("TRINITY_LEDGER_URL", url)
            built = site.build('+key:"answers/direct/sums"')
            assert not built.messages and sum(built.requests.values()) == SUMS
            with Ledger(url) as ledger:
                assert [(cell.worker, cell.answers) for cell in stats(ledger).cells] == [("direct", SUMS)]
            postgres.stop()
            failed = site.build('key:"answers/terse/sums"')
            postgres.start()
        assert "cannot open the ledger" in failed.messages["answers/terse/sums"] and failed.requests == {}
        assert not (site.home / "ledger.sqlite").exists()
        files = [path for path in (tmp_path / "site").rglob("*") if path.is_file()]
        assert any(b"cannot open the ledger" in path.read_bytes() for path in files)
        assert [path for path in files if b"pg-hunter22" in path.read_bytes()] == []


def test_dagster_is_told_no_url(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It shows and stores what a resource is configured with."""
    monkeypatch.setenv("TRINITY_HOME", str(tmp_path))
    monkeypatch.setenv("TRINITY_LEDGER_URL", "postgresql://me:hunter22@host/ledger")
    assert default_resources()["ledger"].model_dump() == {"home": str(tmp_path)}


def test_a_full_disk_in_the_middle_stops_the_cell_and_nothing_is_lost(
    tmp_path: Path, server: ScriptedServer, worker: WorkerSpec
) -> None:
    """A limit on the size of files, in a process of its own, stands in for the disk."""
    server.default = lambda messages: messages[-1]["content"].upper() + "!" * 20_000
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    Ledger(url).close()
    program = (
        "import resource, signal, sys\n"
        "from trinity_assets.errors import LedgerError\n"
        "from trinity_assets.workers import writer\n"
        "from trinity_assets.workers.collection import collect\n"
        "from trinity_assets.workers.ledger import Ledger\n"
        "from trinity_assets.workers.litellm_library import load_litellm\n"
        "from trinity_assets.workers.specs import WorkerSpec\n"
        "from trinity_assets_tests.faults.test_ledger_away import PROMPTS\n"
        "load_litellm()\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "writer.PATIENCE_S = 0.5\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (700_000, 700_000))\n"
        "try:\n"
        "    collect(WorkerSpec.model_validate_json(sys.argv[2]), 'bench', PROMPTS, Ledger(sys.argv[1]))\n"
        "except LedgerError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", program, url, worker.model_dump_json()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Nothing already answered was lost; free space" in done.stdout, done.stderr
    asked = server.count()
    assert asked < TASKS
    with Ledger(url) as ledger:
        assert kept(ledger, worker) > 0
        bring_back(ledger, tmp_path)
        before = kept(ledger, worker)
        assert before == asked, "an answer that had come was lost"
        collection = collect(worker, "bench", PROMPTS, ledger)
    assert collection.complete and (collection.reused, collection.new) == (before, TASKS - before)
    assert server.count() == TASKS
    with sqlite3.connect(tmp_path / "ledger.sqlite") as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
