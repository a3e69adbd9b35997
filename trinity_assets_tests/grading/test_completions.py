"""Completions from a file are graded by the benchmark's own rules, and every row that is none is named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from trinity_assets.benchmarks.specs import FileSource, SnapshotSpec
from trinity_assets.errors import CompletionsError, TaskSourceError
from trinity_assets.grading.completions import grade_completions, read_completions, write_results
from trinity_assets.grading.specs import ExactGrader, GradingSpec, Settlement

TASKS = [{"id": str(number), "question": f"What is {number} plus 1?", "answer": str(number + 1)} for number in range(4)]


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def benchmark(tmp_path: Path) -> SnapshotSpec:
    (tmp_path / "tasks.jsonl").write_text(lines(TASKS))
    return SnapshotSpec(name="sums", source=FileSource(kind="file", path="tasks.jsonl"), limit=2)


def completions(tmp_path: Path, rows: list[Any]) -> pd.DataFrame:
    path = tmp_path / "completions.jsonl"
    path.write_text(lines(rows))
    return read_completions(path)


def test_every_completion_gets_its_verdict_whatever_the_benchmarks_limit(
    tmp_path: Path, benchmark: SnapshotSpec
) -> None:
    given = completions(
        tmp_path,
        [
            {"task_id": "3", "completion": "It is 4.", "model": "a"},
            {"task_id": 0, "completion": "2"},
            {"task_id": "3", "completion": "5"},
            {"task_id": "1", "completion": None},
        ],
    )
    spec = GradingSpec(grader=ExactGrader(kind="exact"), settlement=Settlement(no_answer="missing"))
    graded = grade_completions(given, benchmark, spec, tmp_path)
    rows = graded.results.astype(object).where(graded.results.notna(), None)
    assert rows[["task_id", "sample", "score", "status"]].values.tolist() == [
        ["3", 0, 1.0, "answered"],
        ["0", 0, 0.0, "answered"],
        ["3", 1, 0.0, "answered"],
        ["1", 0, None, "no_answer"],
    ]
    assert rows["reason"].tolist() == ["", "answered '2'", "answered '5'", "no_answer"]
    assert graded.unanswered == ["2"]


@pytest.mark.parametrize("quarantined", ["2", 2])
def test_a_quarantined_task_is_left_out_and_counted(
    tmp_path: Path, benchmark: SnapshotSpec, quarantined: str | int
) -> None:
    given = completions(tmp_path, [{"task_id": str(number), "completion": "1"} for number in range(4)])
    quarantine = [{"id": quarantined, "reason": "ambiguous", "date": "2026-01-01"}]
    spec = SnapshotSpec.model_validate(benchmark.model_dump() | {"quarantine": quarantine})
    graded = grade_completions(given, spec, GradingSpec(grader=ExactGrader(kind="exact")), tmp_path)
    assert graded.results["task_id"].tolist() == ["0", "1", "3"]
    assert graded.unanswered == []
    assert graded.quarantined == 1


def test_tasks_that_the_benchmark_does_not_have_are_named(tmp_path: Path, benchmark: SnapshotSpec) -> None:
    given = completions(tmp_path, [{"task_id": f"x{number}", "completion": ""} for number in range(12)])
    with pytest.raises(CompletionsError) as caught:
        grade_completions(given, benchmark, GradingSpec(grader=ExactGrader(kind="exact")), tmp_path)
    assert str(caught.value) == (
        "12 task ids are not in the benchmark sums: x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, and 2 more. "
        "Its 4 ids look like '0'"
    )


def test_rows_that_are_no_completions_are_named(tmp_path: Path) -> None:
    rows = [
        {"task_id": "a", "completion": "1"},
        {"task_id": "a"},
        {"completion": "1"},
        {"task_id": None, "completion": "1"},
        {"task_id": "a", "completion": ["1"]},
    ]
    with pytest.raises(CompletionsError) as caught:
        completions(tmp_path, rows)
    assert str(caught.value).splitlines()[1:] == [
        "  row 1: no field completion (it has task_id)",
        "  row 2: no field task_id (it has completion)",
        "  row 3: the task id is None",
        "  row 4: the completion is no text but a list",
    ]


def test_a_file_that_cannot_be_read_or_is_empty_says_so(tmp_path: Path) -> None:
    with pytest.raises(TaskSourceError, match=r"there is no file .*nothing\.jsonl"):
        read_completions(tmp_path / "nothing.jsonl")
    (tmp_path / "broken.jsonl").write_text("{")
    with pytest.raises(TaskSourceError, match="line 1"):
        read_completions(tmp_path / "broken.jsonl")
    with pytest.raises(CompletionsError, match="holds no rows; each needs a task_id and a completion"):
        completions(tmp_path, [])


@pytest.mark.parametrize("name", ["completions.txt", "completions"])
def test_a_file_of_no_known_format_says_which_there_are(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("{}")
    with pytest.raises(CompletionsError, match=r"ends in none of \.jsonl, \.json, \.csv"):
        read_completions(tmp_path / name)


def test_other_formats_are_read_too(tmp_path: Path) -> None:
    rows = [{"task_id": "a", "completion": "x, y\nz"}, {"task_id": "b", "completion": "2"}]
    frame = pd.DataFrame(rows)
    frame.to_csv(tmp_path / "c.csv", index=False)
    frame.to_parquet(tmp_path / "c.parquet")
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(lines(rows).encode()))
    for name in ("c.csv", "c.parquet", "c.jsonl.gz"):
        assert read_completions(tmp_path / name)["completion"].tolist() == ["x, y\nz", "2"]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_results_are_written_whole(tmp_path: Path, suffix: str) -> None:
    results = pd.DataFrame(
        {"task_id": ["a", "b"], "score": pd.array([1.0, None], dtype="Float64"), "reason": ["", "ü"]}
    )
    path = tmp_path / f"results{suffix}"
    write_results(results, path)
    readers: dict[str, Any] = {
        ".jsonl": lambda p: pd.read_json(p, lines=True),
        ".csv": pd.read_csv,
        ".parquet": pd.read_parquet,
    }
    back = readers[suffix](path)
    assert back["task_id"].tolist() == ["a", "b"]
    assert back["score"][0] == 1 and pd.isna(back["score"][1])
    assert back["reason"][1] == "ü"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_results_that_cannot_be_written_say_so(tmp_path: Path) -> None:
    results = pd.DataFrame({"task_id": ["a"]})
    with pytest.raises(CompletionsError, match=r"its suffix is none of \.jsonl, \.csv, \.parquet"):
        write_results(results, tmp_path / "results.txt")
    with pytest.raises(CompletionsError, match="nowhere is no directory that you may write to"):
        write_results(results, tmp_path / "nowhere" / "results.csv")
    (tmp_path / "results.csv").mkdir()
    with pytest.raises(CompletionsError, match="cannot write results"):
        write_results(results, tmp_path / "results.csv")
