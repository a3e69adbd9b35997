from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from trinity_assets.errors import LedgerError
from trinity_assets.spec import digest
from trinity_assets.workers import ledger_database, rescue, writer
from trinity_assets.workers.ledger import Call, Entry, Ledger
from trinity_assets.workers.ledger_files import Imported, ImportedFiles, import_files
from trinity_assets.workers.outcomes import FAILURES, SETTLED, Status
from trinity_assets.workers.writer import LedgerWriter

CALL = Call(
    request_digest="d0",
    attempt=1,
    run="r1",
    at=1.5,
    provider="p",
    worker="w",
    benchmark="b",
    task_id="t",
    sample=0,
    epoch=1,
    status=Status.ANSWERED,
    finish_reason="stop",
    model_returned="m-1",
    input_tokens=10,
    output_tokens=5,
    cost_usd=None,
    cost_source=None,
    latency_s=0.25,
    error_class=None,
    error=None,
)


ON_BOTH_DATABASES = True


def rows(ledger_url: str, query: str) -> list[tuple[object, ...]]:
    engine = sa.create_engine(sa.make_url(ledger_url), poolclass=sa.NullPool)
    with engine.begin() as connection:
        result = connection.exec_driver_sql(query)
        return [tuple(row) for row in result] if result.returns_rows else []


def test_an_answer_comes_back_as_it_was_kept(ledger: Ledger) -> None:
    ledger.record_all([Entry(CALL, "four")])
    answer = ledger.settled(["d0", "unknown"])["d0"]
    assert (answer.status, answer.text, answer.finish_reason, answer.model_returned) == (
        Status.ANSWERED, "four", "stop", "m-1",
    )  # fmt: skip
    assert (answer.input_tokens, answer.output_tokens, answer.cost_usd, answer.latency_s) == (10, 5, None, 0.25)
    assert set(ledger.settled(["d0", "unknown"])) == {"d0"}


def test_every_call_is_a_row_and_only_settled_ones_are_answers(ledger: Ledger, ledger_url: str) -> None:
    for index, status in enumerate(Status):
        ledger.record_all([Entry(replace(CALL, request_digest=f"d{index}", status=status), "text")])
    assert rows(ledger_url, "select count(*) from calls") == [(len(Status),)]
    kept = {status for (status,) in rows(ledger_url, "select status from answers")}
    assert kept == {str(status) for status in SETTLED}
    assert kept.isdisjoint({str(status) for status in FAILURES})


def test_the_first_answer_stays(ledger: Ledger, ledger_url: str) -> None:
    ledger.record_all([Entry(CALL, "first")])
    ledger.record_all([Entry(replace(CALL, attempt=2), "second")])
    assert ledger.settled(["d0"])["d0"].text == "first"
    assert rows(ledger_url, "select attempt from calls order by id") == [(1,), (2,)]


def test_a_text_with_nul_characters_comes_back_whole(ledger: Ledger) -> None:
    ledger.record_all([Entry(CALL, "\0four\0 and more\0")])
    assert ledger.settled(["d0"])["d0"].text == "\0four\0 and more\0"


def test_more_digests_than_a_query_binds(ledger: Ledger) -> None:
    ledger.record_all([Entry(replace(CALL, request_digest=f"d{index}"), "x") for index in range(1500)])
    assert len(ledger.settled(f"d{index}" for index in range(3000))) == 1500


def test_a_call_and_its_answer_are_one_transaction(ledger: Ledger, ledger_url: str) -> None:
    rows(ledger_url, "drop table answers")
    with pytest.raises(LedgerError, match="Nothing already answered was lost"):
        ledger.record_all([Entry(CALL, "four")])
    assert rows(ledger_url, "select count(*) from calls") == [(0,)]


def test_two_reopened_ledgers_share_what_was_kept(ledger_url: str) -> None:
    with Ledger(ledger_url) as first, Ledger(ledger_url) as second:
        first.record_all([Entry(CALL, "four")])
        assert second.settled(["d0"])["d0"].text == "four"
    if ledger_url.startswith("sqlite"):
        assert rows(ledger_url, "pragma journal_mode") == [("wal",)]


def test_processes_may_create_and_write_one_ledger_at_the_same_time(ledger_url: str) -> None:
    program = (
        "import sys, dataclasses\n"
        "from trinity_assets.workers.ledger import Entry, Ledger\n"
        "from trinity_assets_tests.workers.test_ledger import CALL\n"
        "sys.stdin.readline()\n"
        "with Ledger(sys.argv[1]) as ledger:\n"
        "    for index in range(40):\n"
        "        call = dataclasses.replace(CALL, request_digest=f'd{index}', run=sys.argv[2])\n"
        "        ledger.record_all([Entry(call, sys.argv[2])])\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program, ledger_url, str(number)], stdin=subprocess.PIPE, text=True)
        for number in range(3)
    ]
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        assert process.wait(60) == 0
    assert rows(ledger_url, "select count(*) from calls") == [(120,)]
    assert rows(ledger_url, "select count(*) from answers") == [(40,)]


@pytest.mark.parametrize("content", [b"this is no database, and it is long enough to be one" * 40])
def test_a_file_that_is_no_database_is_said_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="not a database"):
        Ledger(f"sqlite:///{path}")
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "url",
    [
        "mysql://someone:hunter22@somewhere/ledger",
        "postgresql+psycopg2://someone:hunter22@somewhere/ledger",
        "postgresql+psycopg2://someone@somewhere/ledger?password=hunter22",
        "sqlite://someone:hunter22@somewhere/ledger",
    ],
)
def test_another_database_is_refused_and_its_password_not_shown(url: str) -> None:
    with pytest.raises(LedgerError, match=r"someone.*@somewhere/ledger.*use sqlite:///<path>") as info:
        Ledger(url)
    assert "hunter22" not in f"{info.value}"


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file::memory:?cache=shared&uri=true",
        "sqlite:///file:ledger?mode=memory&uri=true",
    ],
)
def test_a_ledger_that_would_be_gone_with_the_process_is_refused(url: str) -> None:
    for opening in (Ledger, Ledger.existing):
        with pytest.raises(LedgerError, match=r"names no file: .*gone with the process; use sqlite:///<path>"):
            opening(url)


@pytest.mark.parametrize("damage", ["cut", "zeroed", "overwritten"])
def test_a_damaged_ledger_is_said_to_be_so(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger(f"sqlite:///{path}") as ledger:
        names = [digest(number) for number in range(300)]
        ledger.record_all([Entry(replace(CALL, request_digest=name), "four" * 50) for name in names])
    whole = path.read_bytes()
    half = len(whole) // 2
    made = {"cut": whole[:half], "zeroed": whole[:8192] + b"\0" * (len(whole) - 8192), "overwritten": b"x" * len(whole)}
    path.write_bytes(made[damage])

    def read() -> None:
        with Ledger(f"sqlite:///{path}") as damaged:
            damaged.settled(names)
            damaged.vacuum()

    with pytest.raises(LedgerError, match=r"It is damaged, or no ledger: .*put a backup in its place") as info:
        read()
    assert "Nothing already answered was lost" not in str(info.value) and ".recover | sqlite3 NEW" in str(info.value)


@pytest.mark.parametrize(
    "url",
    [
        "someone:hunter22@somewhere",
        "postgresql://someone:hunter22@somewhere:port/ledger",
        "postgresql://someone:un@quoted-hunter22@somewhere/ledger",
    ],
)
def test_what_is_no_url_is_not_shown_because_it_may_hold_a_password(url: str) -> None:
    with pytest.raises(LedgerError, match=r"not a SQLAlchemy URL|write it as %40") as info:
        Ledger(url)
    assert "hunter22" not in f"{info.value}"


@pytest.mark.parametrize("limit", [400_000])
def test_a_full_disk_keeps_what_was_there(tmp_path: Path, limit: int) -> None:
    """A file size limit in a process of its own stands in for the full disk."""
    ledger_url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    with Ledger(ledger_url) as ledger:
        ledger.record_all([Entry(CALL, "four")])
    program = (
        "import sys, signal, dataclasses\n"
        "from trinity_assets.errors import LedgerError\n"
        "from trinity_assets.workers.ledger import Entry, Ledger\n"
        "from trinity_assets_tests.workers.test_ledger import CALL\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "with Ledger(sys.argv[1]) as ledger:\n"
        "    try:\n"
        "        ledger.record_all([Entry(dataclasses.replace(CALL, request_digest='big'), 'x' * 1_000_000)])\n"
        "    except LedgerError as error:\n"
        "        print(error)\n"
    )

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        [sys.executable, "-c", program, ledger_url],
        capture_output=True,
        text=True,
        preexec_fn=limited,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=60,
    )
    assert "Nothing already answered was lost" in done.stdout, done.stderr
    with Ledger(ledger_url) as ledger:
        assert set(ledger.settled(["d0", "big"])) == {"d0"}


def test_a_write_has_been_committed_when_it_returns(ledger: Ledger, ledger_url: str) -> None:
    async def write() -> list[tuple[object, ...]]:
        async with LedgerWriter(ledger) as writer:
            await writer.write(Entry(CALL, "four"))
            return rows(ledger_url, "select text from answers")

    assert asyncio.run(write()) == [("four",)]


def test_a_cancelled_caller_does_not_undo_its_write(ledger: Ledger) -> None:
    async def write() -> None:
        async with LedgerWriter(ledger) as writer:
            task = asyncio.create_task(writer.write(Entry(CALL, "four")))
            await asyncio.sleep(0)
            task.cancel()

    asyncio.run(write())
    assert ledger.settled(["d0"])["d0"].text == "four"


def test_whoever_waits_for_a_failed_write_is_told(
    ledger: Ledger, ledger_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRINITY_HOME", str(tmp_path))
    rows(ledger_url, "drop table calls")

    async def write() -> None:
        async with LedgerWriter(ledger) as writer:
            await writer.write(Entry(CALL, "four"))

    with pytest.raises(LedgerError):
        asyncio.run(write())


@contextlib.contextmanager
def held(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """The ledger in ``path`` while another holds it, and nobody waits for that for as long as usual."""
    monkeypatch.setattr(ledger_database, "BUSY_TIMEOUT_S", 0.01)
    monkeypatch.setattr(writer, "AGAIN_S", 0.01)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        yield other


def test_what_was_paid_for_waits_for_a_ledger_that_is_held_for_longer_than_a_writer_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "ledger.sqlite"
    Ledger(f"sqlite:///{path}").close()

    async def write(ledger: Ledger, other: sqlite3.Connection) -> None:
        async with LedgerWriter(ledger) as one:
            writing = [asyncio.create_task(one.write(Entry(replace(CALL, request_digest=name), name))) for name in "ab"]
            while not caplog.records:
                await asyncio.sleep(0.01)
            other.execute("rollback")
            await asyncio.gather(*writing)

    with held(path, monkeypatch) as other, Ledger(f"sqlite:///{path}") as ledger:
        asyncio.run(write(ledger, other))
        assert {name: one.text for name, one in ledger.settled("ab").items()} == {"a": "a", "b": "b"}
    assert "paid for wait for up to 300 s: cannot write the ledger" in caplog.text
    assert list(tmp_path.glob("ledger-rescue-*")) == []


def test_a_commit_whose_reply_was_lost_is_not_made_twice(
    ledger: Ledger, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "AGAIN_S", 0.0)
    record_all, lost = Ledger.record_all, LedgerError("cannot write the ledger")
    lost.__cause__ = OSError("the connection was closed")

    def without_a_reply(kept: Ledger, entries: Sequence[Entry], *, again: bool = False) -> None:
        if again:
            return record_all(kept, [*entries, Entry(replace(CALL, attempt=2), "five")], again=True)
        record_all(kept, entries)
        raise lost

    monkeypatch.setattr(Ledger, "record_all", without_a_reply)

    async def write() -> None:
        async with LedgerWriter(ledger) as one:
            await one.write(Entry(CALL, "four"))

    asyncio.run(write())
    assert rows(ledger_url, "select attempt from calls order by id") == [(1,), (2,)]


@pytest.mark.parametrize("ends", ["patience", "cancelled"])
def test_what_a_held_ledger_does_not_take_in_the_end_is_kept_in_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, ends: str
) -> None:
    path = tmp_path / "ledger.sqlite"
    Ledger(f"sqlite:///{path}").close()
    if ends == "patience":
        monkeypatch.setattr(writer, "PATIENCE_S", 0.0)
    name = digest("question")

    async def write(ledger: Ledger) -> None:
        async with LedgerWriter(ledger) as one:
            writing = asyncio.create_task(one.write(Entry(replace(CALL, request_digest=name), "four")))
            if ends == "cancelled":
                await asyncio.sleep(0)
                raise asyncio.CancelledError
            await writing

    with held(path, monkeypatch) as other, Ledger(f"sqlite:///{path}") as ledger:
        with pytest.raises(asyncio.CancelledError if ends == "cancelled" else LedgerError):
            asyncio.run(write(ledger))
        other.execute("rollback")
        answers, calls = sorted(tmp_path.glob("ledger-rescue-*.jsonl"))
        assert f"trinity-assets ledger import '{answers}' --calls '{calls}'" in caplog.text
        assert import_files(ledger, answers, calls) == ImportedFiles(Imported(1, 0), Imported(1, 0), None)
        assert ledger.settled([name])[name].text == "four"


def test_what_the_ledger_will_never_take_is_kept_in_files_that_come_back(
    ledger: Ledger, ledger_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRINITY_HOME", str(tmp_path / "paid"))
    names = [digest(number) for number in range(3)]
    entries = [Entry(replace(CALL, request_digest=name, at=2.5), f"four \u00e4\0 {name}") for name in names[:2]]
    slow = replace(CALL, request_digest=names[2], status=Status.FAILED_TRANSIENT, error_class="timeout", error="slow")
    rows(ledger_url, "alter table calls rename to elsewhere")

    async def write() -> None:
        async with LedgerWriter(ledger) as one:
            told = await asyncio.gather(*map(one.write, entries), return_exceptions=True)
            assert [type(error) for error in told] == [LedgerError, LedgerError]
            await one.write(Entry(slow))

    with pytest.raises(LedgerError, match="3 calls that were paid for are kept in files instead") as info:
        asyncio.run(write())
    assert "then run again" not in str(info.value)
    rows(ledger_url, "alter table elsewhere rename to calls")
    answers, calls = sorted((tmp_path / "paid").glob("ledger-rescue-*.jsonl"))
    assert import_files(ledger, answers, calls) == ImportedFiles(Imported(2, 0), Imported(3, 0), None)
    found = ledger.settled(names)
    assert [found[name].text for name in names[:2]] == [entry.text for entry in entries] and len(found) == 2
    kept = rows(ledger_url, "select request_digest, at, status, error from calls order by id")
    made = [*(entry.call for entry in entries), slow]
    assert kept == [(call.request_digest, call.at, str(call.status), call.error) for call in made]


def test_what_no_file_takes_either_is_said_to_be_lost(
    ledger: Ledger, ledger_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(rescue.Rescue, "_new_files", lambda self: [(tmp_path / "file" / "a", tmp_path / "file" / "c")])
    rows(ledger_url, "drop table calls")

    async def write() -> None:
        async with LedgerWriter(ledger) as one:
            await one.write(Entry(CALL, "four"))

    with pytest.raises(LedgerError, match="1 calls that were paid for are lost"):
        asyncio.run(write())


def test_one_entry_that_cannot_be_kept_takes_no_other_with_it_and_is_kept_in_a_file(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a surrogate stands in for whatever a database refuses; outcomes never hold one."""
    monkeypatch.setenv("TRINITY_HOME", str(tmp_path))
    texts = {"d0": "zero", "d1": "one", "d2": "half \udc00", "d3": "three"}

    results: list[BaseException | None] = []

    async def write() -> None:
        writer = LedgerWriter(ledger)
        writes = [writer.write(Entry(replace(CALL, request_digest=name), text)) for name, text in texts.items()]
        async with writer:
            results.extend(await asyncio.gather(*writes, return_exceptions=True))

    with pytest.raises(LedgerError, match=r"cannot write the ledger .*1 calls that were paid for are kept in files"):
        asyncio.run(write())
    assert [type(result) for result in results] == [type(None), type(None), LedgerError, type(None)]
    assert isinstance((results[2] or KeyError()).__cause__, UnicodeEncodeError)
    [kept] = (ledger.database.directory or tmp_path).glob("ledger-rescue-*-answers.jsonl")
    assert json.loads(kept.read_text())["text"] == texts["d2"]
    assert {name: answer.text for name, answer in ledger.settled(texts).items()} == {
        "d0": "zero", "d1": "one", "d3": "three",
    }  # fmt: skip
