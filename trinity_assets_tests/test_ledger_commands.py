"""``trinity-assets ledger``: the numbers that it prints, and the files that it writes and reads."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from trinity_assets import cli
from trinity_assets.spec import digest
from trinity_assets.workers import ledger_files
from trinity_assets.workers.epochs import complete_epoch, enter_epoch, present_epoch, unfinished_epoch
from trinity_assets.workers.error_classes import KILLED
from trinity_assets.workers.ledger import Call, Entry, Ledger
from trinity_assets.workers.ledger_reports import NO_ROUTER, Cost, costs_by_router
from trinity_assets.workers.ledger_tables import PERMITS
from trinity_assets.workers.outcomes import Status
from trinity_assets_tests.postgres_server import PASSWORD
from trinity_assets_tests.workers.test_ledger import rows

ON_BOTH_DATABASES = True

Run = Callable[..., tuple[int, str, str]]

FIRST = datetime(2026, 3, 1, 23, 59, 30, tzinfo=UTC).timestamp()
LATER = datetime(2026, 3, 2, 12, 0, 0, tzinfo=UTC).timestamp()
SECRET = "sk-live-0123456789abcdef"  # noqa: S105 - what an error text might quote


def call(question: str, worker: str, benchmark: str, **changes: Any) -> Call:
    base = Call(
        request_digest=digest([question, worker]),
        attempt=1,
        run="r1",
        at=LATER,
        provider="local",
        worker=worker,
        benchmark=benchmark,
        task_id=question,
        sample=0,
        epoch=1,
        status=Status.ANSWERED,
        finish_reason="stop",
        model_returned="m-1",
        input_tokens=10,
        output_tokens=5,
        cost_usd=0.25,
        cost_source="price",
        latency_s=0.125,
        error_class=None,
        error=None,
        price_version="0123456789ab",
    )
    return replace(base, **changes)


UNKNOWN: dict[str, Any] = {"cost_usd": None, "cost_source": None, "price_version": None}
TIMEOUT = {"status": Status.FAILED_TRANSIENT, "error_class": "timeout", **UNKNOWN}

ENTRIES = [
    Entry(call("q1", "smollm2_direct", "starter", at=FIRST), "four\0 \U0001f600 \x10@ [red]\n"),
    Entry(call("q2", "smollm2_direct", "starter", **TIMEOUT, error="slow")),
    Entry(call("q2", "smollm2_direct", "starter", attempt=2, at=LATER + 1), "five"),
    Entry(call("q3", "smollm2_direct", "starter", **TIMEOUT, at=LATER + 2, error=f"Bearer {SECRET} was too slow")),
    Entry(call("q1", "smollm2_terse", "humaneval", cost_usd=0.1 + 0.2, status=Status.TRUNCATED), "def"),
    Entry(call("q4", "smollm2_terse", "humaneval", **UNKNOWN, status=Status.REFUSED, error_class="refusal")),
    Entry(call("q1", "retired_worker", "starter", provider="far", cost_usd=1.0), "six"),
    Entry(
        call(
            "q9",
            "retired_worker",
            "starter",
            provider="far",
            status=Status.FAILED_FATAL,
            error_class="authentication",
            error="bad key",
            cost_usd=0.0,
            cost_source="rejected",
            price_version=None,
        )
    ),
]


@pytest.fixture
def kept(ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a ledger with ``ENTRIES``, which is the one that the commands open."""
    monkeypatch.setenv("TRINITY_LEDGER_URL", ledger_url)
    with Ledger(ledger_url) as ledger:
        for entry in ENTRIES:
            ledger.record_all([entry])
    return ledger_url


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """``trinity-assets ledger`` with these arguments, in this process: its exit status, its output, its complaint."""

    def start(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["trinity-assets", "ledger", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        assert PASSWORD not in said.out + said.err and SECRET not in said.out + said.err
        return int(ended.value.code or 0), said.out, said.err

    return start


def cells(printed: str) -> list[list[str]]:
    """The rows of the printed tables."""
    rows = [[part.strip() for part in line.strip("│").split("│")] for line in printed.splitlines() if "│" in line]
    return [row for row in rows if row[0]]


def test_stats(kept: str, run: Run) -> None:
    status, said, _ = run("stats")
    assert status == 0
    assert cells(said) == [
        ["retired_worker", "starter", "1", "2", "1", "1 answered", "2026-03-02 12:00Z", "2026-03-02 12:00Z"],
        ["smollm2_direct", "starter", "2", "4", "2", "2 answered", "2026-03-01 23:59Z", "2026-03-02 12:00Z"],
        ["smollm2_terse", "humaneval", "2", "2", "0", "1 refused, 1 truncated", "2026-03-02 12:00Z",
         "2026-03-02 12:00Z"],
    ]  # fmt: skip
    assert "5 answers from 8 calls, 0." in said and "since 2026-03-01 23:59Z" in said


def test_stats_say_what_is_being_asked(kept: str, run: Run) -> None:
    with Ledger(kept) as ledger:
        claims = ledger.claims()
        claims.claim(["a", "b"])
        assert "2 questions are being asked at this moment" in run("stats")[1]
        claims.end()
    assert "being asked" not in run("stats")[1]


def test_failures(kept: str, run: Run) -> None:
    status, said, _ = run("failures")
    assert status == 0
    assert cells(said) == [
        ["local", "smollm2_direct", "timeout", "2", "1", "2026-03-02 12:00Z", "[redacted] was too slow"],
        ["far", "retired_worker", "authentication", "1", "1", "2026-03-02 12:00Z", "bad key"],
    ]


def test_cost(kept: str, run: Run) -> None:
    status, said, _ = run("cost", "--by", "worker")
    assert status == 0
    by_worker = [
        ["retired_worker", "2", "1.000000", "0"],
        ["smollm2_direct", "4", "0.500000", "2"],
        ["smollm2_terse", "2", "0.300000", "1"],
    ]
    assert cells(said) == by_worker
    assert cells(run("cost", "--by", "benchmark")[1]) == [
        ["humaneval", "2", "0.300000", "1"],
        ["starter", "6", "1.500000", "2"],
    ]
    assert cells(run("cost", "--by", "day")[1]) == [
        ["2026-03-01", "1", "0.250000", "0"],
        ["2026-03-02", "7", "1.550000", "3"],
    ]
    by_router = cells(run("cost", "--by", "router")[1])
    assert by_router == [["starter", "6", "0.800000", "3"], [NO_ROUTER, "2", "1.000000", "0"]]
    everything = cells(run("cost")[1])
    assert len(everything) == 3 + 2 + 2 + 2 and everything[:3] == by_worker


def test_what_routers_share_is_shown_for_each_as_shared(kept: str) -> None:
    direct, terse, retired = (
        ("smollm2_direct", "starter"),
        ("smollm2_terse", "humaneval"),
        ("retired_worker", "starter"),
    )
    with Ledger(kept) as ledger:
        assert costs_by_router(ledger, {"one": [direct, terse], "two": [direct, ("new", "starter")], "idle": []}) == [
            Cost("one", 6, 0.5 + (0.1 + 0.2), 3, 0.5, 2, ("two",)),
            Cost("two", 4, 0.5, 2, 0.5, 2, ("one",)),
            Cost("idle", 0, 0.0, 0),
            Cost(NO_ROUTER, 2, 1.0, 0),
        ]
        three = costs_by_router(ledger, {name: [retired] for name in "abc"})
    assert [cost.shared_with for cost in three[:3]] == [("b", "c"), ("a", "c"), ("a", "b")]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_epochs_come_along(kept: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    cell = "smollm2_direct", "starter"
    with Ledger(kept) as ledger:
        complete_epoch(ledger, enter_epoch(ledger, *cell, by="r1"))
        enter_epoch(ledger, *cell, by="r2", new="this week")
        unfinished = unfinished_epoch(ledger, *cell)
    files = [tmp_path / f"{kind}.{suffix}" for kind in ("answers", "calls", "epochs")]
    answers, calls, exported = files
    assert f"2 epochs: {exported}" in run("export", answers, "--calls", calls, "--epochs", exported)[1]
    copy = f"sqlite:///{tmp_path / 'copy.sqlite'}"
    monkeypatch.setenv("TRINITY_LEDGER_URL", copy)
    said = [run("import", answers, "--calls", calls, "--epochs", exported)[1].splitlines()[-1] for _ in range(2)]
    assert said == ["2 epochs imported, 0 were there already", "0 epochs imported, 2 were there already"]
    with Ledger(copy) as ledger:
        assert (present_epoch(ledger, *cell), unfinished_epoch(ledger, *cell)) == (2, unfinished)
        assert unfinished is not None and unfinished.names == ("this week",)
    status, _, complaint = run("import", answers, "--epochs", answers)
    assert status == 1 and "5 of 5 rows are no epochs; nothing was imported" in complaint


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_what_is_exported_comes_back_as_it_was(
    kept: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    answers, calls = tmp_path / f"answers.{suffix}", tmp_path / f"calls.{suffix}"
    status, said, _ = run("export", answers, "--calls", calls)
    assert status == 0 and f"5 answers: {answers}" in said and f"8 calls: {calls}" in said
    again = tmp_path / f"again.{suffix}"
    copy = f"sqlite:///{tmp_path / 'copy.sqlite'}"
    monkeypatch.setenv("TRINITY_LEDGER_URL", copy)
    assert run("import", answers, "--calls", calls)[1].splitlines() == [
        "5 answers imported, 0 were there already",
        "8 calls imported, 0 were there already",
    ]
    assert run("import", answers, "--calls", calls)[1].splitlines() == [
        "0 answers imported, 5 were there already",
        "0 calls imported, 8 were there already",
    ]
    for kind in (answers, calls):
        run("export", *([again] if kind == answers else [tmp_path / f"other.{suffix}", "--calls", again]))
        assert again.read_bytes() == kind.read_bytes()
    digests = [entry.call.request_digest for entry in ENTRIES]
    with Ledger(kept) as original, Ledger(copy) as copied:
        assert copied.settled(digests) == original.settled(digests)
    assert copied.settled(digests)[digests[0]].text == "four\0 \U0001f600 \x10@ [red]\n"


def test_a_parquet_file_has_the_tables_types(kept: str, run: Run, tmp_path: Path) -> None:
    run("export", tmp_path / "answers.parquet")
    table = pq.read_table(tmp_path / "answers.parquet")
    assert [str(table.schema.field(name).type) for name in ("text", "input_tokens", "cost_usd")] == [
        "string", "int64", "double",
    ]  # fmt: skip
    assert table.column("cost_usd").to_pylist().count(None) == 1


def test_an_answer_that_is_there_stays(kept: str, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    run("export", file)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    new = {**rows[0], "request_digest": "f" * 64, "text": "new"}
    file.write_text("".join(json.dumps(row) + "\n" for row in [*({**row, "text": "other"} for row in rows), new]))
    assert run("import", file)[1] == "1 answers imported, 5 were there already\n"
    with Ledger(kept) as ledger:
        found = ledger.settled([rows[0]["request_digest"], "f" * 64])
    assert [found[rows[0]["request_digest"]].text, found["f" * 64].text] == [rows[0]["text"], "new"]


def test_rows_that_are_no_answers_are_named_and_nothing_is_imported(kept: str, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    run("export", file)
    good = {**json.loads(file.read_text().splitlines()[0]), "request_digest": "a" * 64}
    bad = [
        "no json",
        json.dumps({**good, "request_digest": "b" * 63}),
        json.dumps({**good, "request_digest": "b" * 64, "status": "failed_transient"}),
        json.dumps({key: value for key, value in good.items() if key != "worker"}),
        json.dumps({**good, "request_digest": "c" * 64, "cost_usd": "free"}),
        json.dumps({**good, "request_digest": "d" * 64, "mood": "good"}),
        json.dumps({**good, "request_digest": "e" * 64, "text": "half \udc00"}),
        json.dumps(good),
    ]
    file.write_text("\n".join([json.dumps(good), *bad]) + "\n")
    status, _, complaint = run("import", file)
    assert status == 1 and "8 of 9 rows are no answers; nothing was imported" in complaint
    named = complaint.splitlines()[1:]
    expected = ["the row", "request_digest", "a failure is no answer", "worker", "cost_usd", "mood", "text", "as row 1"]
    assert [line.split(":")[0].strip() for line in named] == [f"row {number}" for number in range(2, 10)]
    assert all(word in line for word, line in zip(expected, named, strict=True)), complaint
    with Ledger(kept) as ledger:
        assert ledger.settled(["a" * 64]) == {}


@pytest.mark.parametrize(
    ("file", "said"), [("answers.csv", "must end in .jsonl or .parquet"), ("nowhere/x.jsonl", "nowhere/x.jsonl")]
)
def test_a_file_that_cannot_be_is_said_so(kept: str, run: Run, tmp_path: Path, file: str, said: str) -> None:
    for command in ("export", "import"):
        status, _, complaint = run(command, tmp_path / file)
        assert status == 1 and said in complaint


def test_a_file_for_two_tables_is_refused_and_stays(kept: str, run: Run, tmp_path: Path) -> None:
    file, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    file.write_text("a backup\n")
    same = tmp_path / "elsewhere" / ".." / "a.jsonl"
    for arguments in ((file, "--calls", file), (other, "--calls", file, "--epochs", same), (file, "--epochs", same)):
        status, _, complaint = run("export", *arguments)
        assert status == 1 and "named for two tables; give each a file of its own" in complaint
    assert file.read_text() == "a backup\n" and not other.exists()


@pytest.mark.parametrize("column", ["at", "sample", "epoch", "attempt"])
def test_numbers_that_no_row_can_have_are_named(kept: str, run: Run, tmp_path: Path, column: str) -> None:
    answers, calls = tmp_path / "answers.jsonl", tmp_path / "calls.jsonl"
    run("export", answers, "--calls", calls)
    row = json.loads(calls.read_text().splitlines()[0])
    calls.write_text(json.dumps({**row, "run": "z", column: 1e15 if column == "at" else 1 << 31}))
    status, _, complaint = run("import", answers, "--calls", calls)
    assert status == 1 and f"row 1: {column}: it has to be less than" in complaint


def test_a_row_of_a_time_beyond_the_calendar_hinders_no_report(kept: str, run: Run) -> None:
    with Ledger(kept) as ledger:
        ledger.record_all([Entry(call("q7", "smollm2_terse", "humaneval", **TIMEOUT, at=1e15))])
    assert [row[-1] for row in cells(run("stats")[1])] == ["2026-03-02 12:00Z"] * 2 + ["9999-12-31 23:59Z"]
    assert "9999-12-31 23:59Z" in run("failures")[1]
    status, said, _ = run("cost", "--by", "day")
    assert status == 0 and [row[0] for row in cells(said)] == ["2026-03-01", "2026-03-02", "9999-12-31"]


def test_an_import_leaves_the_ledger_to_others_between_short_transactions(
    kept: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one row is looked at, and between two portions, another process can keep what it paid for."""
    monkeypatch.setattr(ledger_files, "_BATCH", 2)
    file = tmp_path / "answers.jsonl"
    run("export", file)
    row = json.loads(file.read_text().splitlines()[0])
    file.write_text("".join(json.dumps({**row, "request_digest": digest(number)}) + "\n" for number in range(5)))
    between: list[int] = []

    def asked_meanwhile(seconds: float) -> None:
        with Ledger(kept) as other:
            other.record_all([Entry(call(f"meanwhile {len(between)}", "smollm2_direct", "starter"), "four")])
            between.append(len(other.settled(digest(number) for number in range(5))))

    monkeypatch.setattr(ledger_files, "sleep", asked_meanwhile)
    assert run("import", file)[1] == "5 answers imported, 0 were there already\n"
    assert between == [2, 4, 5]


def test_an_import_that_is_interrupted_says_what_it_left_and_goes_on(
    kept: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_files, "_BATCH", 2)
    answers, calls = tmp_path / "answers.jsonl", tmp_path / "calls.jsonl"
    run("export", answers, "--calls", calls)
    copy = f"sqlite:///{tmp_path / 'copy.sqlite'}"
    monkeypatch.setenv("TRINITY_LEDGER_URL", copy)
    Ledger(copy).close()
    rows(copy, "alter table calls rename to elsewhere")
    status, _, complaint = run("import", answers, "--calls", calls)
    assert status == 1 and "Imported so far: 5 answers; the same import again adds the rest" in complaint
    rows(copy, "alter table elsewhere rename to calls")
    assert run("import", answers, "--calls", calls)[1].splitlines() == [
        "0 answers imported, 5 were there already",
        "8 calls imported, 0 were there already",
    ]


def keep_permit(ledger: Ledger, name: str, started_at: float, ended_at: float | None, of: Call) -> None:
    """A permit of the call ``of``."""
    asked = {column.name: vars(of)[column.name] for column in PERMITS.columns if column.name in vars(of)}
    scopes = {
        "provider_scope": "p",
        "worker_scope": "w",
        "tokens": 9,
        "claimant": "c",
        "pid": 1,
        "process_started": 0.0,
    }
    times = {"started_at": started_at, "ended_at": ended_at, "expires_at": started_at + 31}
    with ledger.database.writing() as connection:
        connection.execute(sa.insert(PERMITS), [{"permit": name, **scopes, **asked, **times}])


def test_vacuum_keeps_the_tokens_of_the_last_minute(ledger_url: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRINITY_LEDGER_URL", ledger_url)
    now = time.time()
    with Ledger(ledger_url) as ledger:
        for name, ago in (("counts", 45.0), ("counts no more", 120.0)):
            keep_permit(ledger, name, now - ago, now - ago + 1, call("q1", "w", "b"))
    assert run("vacuum")[0] == 0
    assert rows(ledger_url, "select permit from permits") == [("counts",)]


def test_an_imported_call_is_under_way_no_more(kept: str, run: Run, tmp_path: Path) -> None:
    """A process that could not write how its call came out has left the permit, and a file with the call."""
    run("export", tmp_path / "answers.jsonl", "--calls", tmp_path / "calls.jsonl")
    made = ENTRIES[2].call
    with Ledger(kept) as ledger:
        keep_permit(ledger, "made", made.at - 5, None, made)
        keep_permit(ledger, "began later", made.at + 5, None, made)
        keep_permit(ledger, "another attempt", made.at - 5, None, replace(made, attempt=3))
        keep_permit(ledger, "another run", made.at - 5, None, replace(made, run="r2"))
    assert run("import", tmp_path / "answers.jsonl", "--calls", tmp_path / "calls.jsonl")[0] == 0
    left = rows(kept, "select permit from permits order by permit")
    assert left == [("another attempt",), ("another run",), ("began later",)]


def test_an_imported_call_takes_the_place_of_what_it_was_written_off_as(
    kept: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("export", tmp_path / "answers.jsonl", "--calls", tmp_path / "calls.jsonl")
    made = ENTRIES[2].call
    killed = replace(made, **TIMEOUT | {"error_class": KILLED}, error="what it cost is unknown")
    copy = f"sqlite:///{tmp_path / 'copy.sqlite'}"
    monkeypatch.setenv("TRINITY_LEDGER_URL", copy)
    written_off = {"made": made.at + 40, "asked again later": made.at + 90, "earlier": made.at - 1}
    with Ledger(copy) as ledger:
        ledger.record_all([Entry(replace(killed, error=error, at=at)) for error, at in written_off.items()])
        ledger.record_all([Entry(replace(killed, error="another run", run="r2", at=made.at + 40))])
    assert run("import", tmp_path / "answers.jsonl", "--calls", tmp_path / "calls.jsonl")[0] == 0
    query = f"select error from calls where error_class = '{KILLED}' order by error"  # noqa: S608 - a constant
    assert rows(copy, query) == [("another run",), ("asked again later",), ("earlier",)]


def test_vacuum_gives_room_back_and_loses_nothing(kept: str, run: Run, ledger_url: str) -> None:
    digests = [entry.call.request_digest for entry in ENTRIES]
    with Ledger(kept) as ledger:
        before = ledger.settled(digests)
        claims = ledger.claims()
        claims.claim(["a"])
    status, said, _ = run("vacuum")
    assert status == 0 and said.count(" MB ") == 2
    with Ledger(kept) as ledger:
        assert ledger.settled(digests) == before
        assert ledger.claims().claim(["a"]).theirs == {"a"}, "a claim that is alive stays"


def test_an_empty_ledger_has_nothing_to_say(ledger_url: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRINITY_LEDGER_URL", ledger_url)
    for command in ("stats", "failures", "cost", "vacuum"):
        status, said, _ = run(command)
        nothing = [["starter", "0", "0.000000", "0"]] if command == "cost" else []
        assert status == 0 and cells(said) == nothing
