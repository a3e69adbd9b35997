"""Presets fit the files that they are named after, and say what a file has when they do not.

``humaneval``, ``gsm8k``, ``mbpp`` and ``math500`` are tried on the whole real files. ``mmlu`` and ``arc`` are tried
only on rows that are written here, in the forms that their publishers document: their files are not test data here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from trinity_assets.benchmarks.snapshots import Snapshot, rendered_prompts, take_snapshot
from trinity_assets.catalog.catalog import DEFAULT_CATALOG, Benchmark
from trinity_assets.catalog.entries import json_schema
from trinity_assets.catalog.loading import load_catalog
from trinity_assets.catalog.presets import PRESETS
from trinity_assets.errors import CatalogError, TaskSourceError

Declare = Callable[..., Benchmark]


@pytest.fixture
def declare(tmp_path: Path) -> Declare:
    """Load a catalog with one benchmark ``b`` as declared."""
    for file in ("providers", "workers", "backbones"):
        (tmp_path / f"{file}.yaml").write_bytes((DEFAULT_CATALOG / f"{file}.yaml").read_bytes())
    router = yaml.safe_load((DEFAULT_CATALOG / "routers.yaml").read_text())["routers"]["starter"]
    (tmp_path / "routers.yaml").write_text(yaml.safe_dump({"routers": {"starter": router | {"benchmarks": ["b"]}}}))

    def load(source: Path | dict[str, Any], **entry: Any) -> Benchmark:
        declared = {"source": {"kind": "file", "path": str(source)} if isinstance(source, Path) else source, **entry}
        (tmp_path / "benchmarks.yaml").write_text(yaml.safe_dump({"benchmarks": {"b": declared}}))
        return load_catalog(tmp_path).benchmarks["b"]

    return load


def taken(benchmark: Benchmark) -> Snapshot:
    return take_snapshot(benchmark.snapshot, Path("/nowhere"))


def first_prompt(benchmark: Benchmark, snapshot: Snapshot) -> str:
    return next(iter(rendered_prompts(benchmark.snapshot, snapshot.tasks).values()))


def write(directory: Path, rows: list[dict[str, Any]]) -> Path:
    path = directory / "rows.json"
    path.write_text(json.dumps(rows))
    return path


def test_an_unknown_preset_is_told_with_those_that_there_are(declare: Declare) -> None:
    with pytest.raises(CatalogError, match=r"benchmarks\.b\.preset: there is no preset 'mmul'; there are arc, gsm8k, "):
        declare({"kind": "file", "path": "https://nowhere.invalid/t.csv"}, preset="mmul")


def test_the_schema_offers_every_preset() -> None:
    entry = json_schema("benchmarks.yaml")["properties"]["benchmarks"]["additionalProperties"]
    assert entry["properties"]["preset"]["anyOf"][0]["enum"] == sorted(PRESETS)


# --- the real files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "file", "count", "first", "grader"),
    [
        ("humaneval", "humaneval/HumanEval.jsonl.gz", 164, "HumanEval/0", "python_function"),
        ("gsm8k", "gsm8k/test.jsonl", 1319, "b/0", "number"),
        ("mbpp", "mbpp/sanitized-mbpp.json", 427, "2", "python_function"),
        ("math500", "math500/test.jsonl", 500, "test/precalculus/807.json", "math"),
    ],
)
def test_a_real_file_is_read_whole_and_holds_no_duplicates(
    preset: str, file: str, count: int, first: str, grader: str, declare: Declare, shared_data: Callable[[str], Path]
) -> None:
    benchmark = declare(shared_data(file), preset=preset)
    snapshot = taken(benchmark)
    assert len(snapshot.tasks) == len(snapshot.gold) == count
    assert snapshot.tasks["task_id"][0] == first
    assert benchmark.grading.grader.kind == grader


def test_the_prompt_of_mbpp_shows_the_tests_one_a_line(declare: Declare, shared_data: Callable[[str], Path]) -> None:
    benchmark = declare(shared_data("mbpp/sanitized-mbpp.json"), preset="mbpp")
    snapshot = taken(benchmark)
    tests = [
        "assert set(similar_elements((3, 4, 5, 6),(5, 7, 4, 10))) == set((4, 5))",
        "assert set(similar_elements((1, 2, 3, 4),(5, 4, 3, 7))) == set((3, 4))",
        "assert set(similar_elements((11, 12, 14, 13),(17, 15, 14, 13))) == set((13, 14))",
    ]
    assert "\n" + "\n".join(tests) + "\n" in first_prompt(benchmark, snapshot)
    assert json.loads(snapshot.gold["payload"][0]) == {"tests": tests, "imports": []}
    assert snapshot.tasks["question"][0] == "Write a function to find the shared elements from the given two lists."
    near = snapshot.tasks[snapshot.tasks["group"] != snapshot.tasks["task_id"]]
    assert list(zip(near["task_id"], near["group"], strict=True)) == [("141", "71"), ("569", "104")]


def test_math500_has_its_subjects_as_categories(declare: Declare, shared_data: Callable[[str], Path]) -> None:
    benchmark = declare(shared_data("math500/test.jsonl"), preset="math500")
    snapshot = taken(benchmark)
    assert snapshot.tasks["category"].value_counts().to_dict() == {
        "Algebra": 124,
        "Intermediate Algebra": 97,
        "Prealgebra": 82,
        "Number Theory": 62,
        "Precalculus": 56,
        "Geometry": 41,
        "Counting & Probability": 38,
    }
    assert json.loads(snapshot.gold["payload"][0]) == {"answer": r"\left( 3, \frac{\pi}{2} \right)"}
    assert first_prompt(benchmark, snapshot).endswith(r"give the final answer within \boxed{}.")


# --- multiple choice --------------------------------------------------------------------------------------------------


def test_mmlu_as_the_hub_has_it(declare: Declare, tmp_path: Path) -> None:
    row = {
        "question": "Largest planet?",
        "subject": "astronomy",
        "choices": ["Mars", "Jupiter", "Io", "X"],
        "answer": 1,
    }
    benchmark = declare(write(tmp_path, [row]), preset="mmlu")
    snapshot = taken(benchmark)
    assert snapshot.tasks[["task_id", "category"]].values.tolist() == [["b/0", "astronomy"]]
    assert json.loads(snapshot.gold["payload"][0]) == {
        "answer": "B",
        "choices": ["Mars", "Jupiter", "Io", "X"],
        "labels": ["A", "B", "C", "D"],
    }
    assert first_prompt(benchmark, snapshot) == (
        "Largest planet?\n\nA. Mars\nB. Jupiter\nC. Io\nD. X\n\n"
        "Give the label of the right option on a last line, as in: Answer: B"
    )
    assert benchmark.grading.grader.kind == "choice"


def test_mmlu_as_its_csv_files_have_it(declare: Declare, tmp_path: Path) -> None:
    path = tmp_path / "mmlu.csv"
    path.write_text("question,A,B,C,D,answer\nLargest planet?,Mars,Jupiter,Io,X,B\n")
    fields = {"choices": ["A", "B", "C", "D"], "category": None}
    snapshot = taken(declare(path, preset="mmlu", fields=fields))
    assert json.loads(snapshot.gold["payload"][0])["answer"] == "B"
    assert snapshot.tasks["category"].tolist() == ["b"]
    assert snapshot.tasks["question"].tolist() == ["Largest planet?\n\nA. Mars\nB. Jupiter\nC. Io\nD. X"]


def test_arc_keeps_the_labels_of_its_tasks(declare: Declare, tmp_path: Path) -> None:
    rows = [
        {"id": "x1", "question": "Hot?", "choices": {"text": ["ice", "fire"], "label": ["A", "B"]}, "answerKey": "B"},
        {"id": "x2", "question": "Cold?", "choices": {"text": ["ice", "fire"], "label": ["1", "2"]}, "answerKey": "1"},
    ]
    benchmark = declare(write(tmp_path, rows), preset="arc")
    snapshot = taken(benchmark)
    assert [json.loads(payload)["answer"] for payload in snapshot.gold["payload"]] == ["B", "1"]
    assert snapshot.tasks["question"][1] == "Cold?\n\n1. ice\n2. fire"
    assert benchmark.grading.grader.kind == "choice"


# --- what does not fit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", list(PRESETS))
def test_a_file_that_does_not_fit_is_told_with_the_fields_that_it_has(
    preset: str, declare: Declare, tmp_path: Path
) -> None:
    with pytest.raises(TaskSourceError) as caught:
        taken(declare(write(tmp_path, [{"text": "Q?", "solution": "1"}]), preset=preset))
    assert "row 0: no field '" in str(caught.value)
    assert str(caught.value).endswith("(it has solution, text)")


def test_what_is_written_beside_a_preset_wins_field_by_field(declare: Declare, tmp_path: Path) -> None:
    rows = [{"task_id": 1, "text": "Add.", "test_list": ["assert f(1) == 2"], "test_imports": []}]
    benchmark = declare(write(tmp_path, rows), preset="mbpp", fields={"question": "text"}, category="task_id")
    assert benchmark.snapshot.fields.model_dump() == PRESETS["mbpp"].fields.model_dump() | {
        "question": "text",
        "category": "task_id",
    }
    assert taken(benchmark).tasks["question"].tolist() == ["Add."]


def test_a_mapping_that_contradicts_its_preset_is_a_fault_of_the_catalog(declare: Declare, tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="multiple choice needs the field of the right option"):
        declare(write(tmp_path, [{}]), preset="mmlu", fields={"gold": {"key": "answer"}})


# --- sources, samples and quarantine in YAML --------------------------------------------------------------------------


def test_a_url_is_not_looked_for_while_the_catalog_loads(declare: Declare) -> None:
    source = declare({"kind": "file", "path": "https://nowhere.invalid/t.csv"}, preset="gsm8k").snapshot.source
    assert source.model_dump()["path"] == "https://nowhere.invalid/t.csv"


def test_sample_and_quarantine_reach_the_snapshot(declare: Declare, tmp_path: Path) -> None:
    path = write(tmp_path, [{"question": f"Is {n} odd?", "answer": str(n)} for n in range(9)])
    entry = {"id": "b/3", "reason": "ambiguous", "date": "2026-01-31"}
    benchmark = declare(path, preset="gsm8k", seed=3, limit=4, quarantine=[entry])
    assert (benchmark.snapshot.seed, benchmark.snapshot.limit) == (3, 4)
    assert [one.reason for one in benchmark.snapshot.quarantine] == ["ambiguous"]
    with pytest.raises(CatalogError, match=r"benchmarks\.b\.quarantine\.0\.reason: Field required"):
        declare(path, preset="gsm8k", quarantine=[{"id": "b/3", "date": "2026-01-31"}])


@pytest.mark.usefixtures("reasoning_gym")
def test_a_generated_benchmark_is_complete_without_a_grader(declare: Declare) -> None:
    source = {"kind": "procedural", "dataset": "chain_sum", "seed": 1, "size": 5}
    benchmark = declare(source)
    assert benchmark.grading.grader.kind == "procedural"
    snapshot = taken(benchmark)
    assert snapshot.tasks["task_id"].tolist() == [f"chain_sum/{n}" for n in range(5)]
    assert snapshot.tasks["category"].unique().tolist() == ["chain_sum"]
    payload = json.loads(snapshot.gold["payload"][0])
    assert (payload["dataset"], payload["entry"]["answer"]) == ("chain_sum", "-4")
    assert payload.keys() == {"dataset", "entry"}
    assert first_prompt(benchmark, snapshot) == (
        "State the final answer to the following arithmetic problem: 4 - 1 - 7 =\n\n"
        "Give nothing but the final answer between <answer> and </answer>."
    )
    plain = declare(source, grader={"kind": "exact"})
    assert json.loads(taken(plain).gold["payload"][0]) == {"answer": "-4"}
