"""Verdicts: the right ones, and none at all where grading itself is at fault."""

from __future__ import annotations

import csv
import json
import logging
import platform
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from trinity_assets.errors import GraderError
from trinity_assets.grading.graders import grade, require_gradable
from trinity_assets.grading.processes import Graders
from trinity_assets.grading.solves import SOLVES_SCHEMA, grade_answers, solves_data_version
from trinity_assets.grading.specs import ExactGrader, GradingSpec, NumberGrader, PythonFunctionGrader, Settlement
from trinity_assets.grading.verdicts import Verdict
from trinity_assets.progress import Progress
from trinity_assets.sandbox.probing import find_sandbox
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets.store.tables import read_table, write_table

EXACT = ExactGrader(kind="exact")
NUMBER = NumberGrader(kind="number")
FUNCTION = PythonFunctionGrader(kind="python_function")


@pytest.mark.parametrize(
    ("completion", "answer", "score"),
    [
        ("Paris", "Paris", 1),
        ("The capital of France is **Paris**.", "Paris", 1),
        ("The answer is: the Paris", ["paris", "Lutetia"], 1),
        ("London", "Paris", 0),
        ("Not Paris", "Paris", 0),
        ("12", "12", 1),
        ("5 + 7 = 12.", "12", 1),
        ("1,200", "1200", 1),
        ("13", "12", 0),
        ("12.0", "12", 1),
    ],
)
def test_exact(completion: str, answer: object, score: float) -> None:
    assert grade(EXACT, completion, {"answer": answer}).score == score


@pytest.mark.parametrize(
    ("completion", "answer", "score"),
    [
        ("Half of 48 is 24, so 72.\n#### 72", "Natalia sold 48+24 = 72 clips.\n#### 72", 1),
        ("#### 71", "#### 72", 0),
        ("So the answer is $1,200.", "#### 1200", 1),
        ("nothing here", "#### 1", 0),
    ],
)
def test_number(completion: str, answer: str, score: float) -> None:
    assert grade(NUMBER, completion, {"answer": answer}).score == score


@pytest.mark.parametrize("payload", [{}, {"answer": None}, {"answer": ""}, {"answer": []}])
def test_a_payload_without_gold_is_the_graders_error(payload: dict[str, Any]) -> None:
    with pytest.raises(GraderError, match="no 'answer'"):
        grade(EXACT, "Paris", payload)


def answers(statuses: list[str], texts: list[str | None]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "task_id": [f"t{i}" for i in range(len(statuses))],
            "sample": 0,
            "status": statuses,
            "text": texts,
            "input_tokens": [10] * len(statuses),
            "output_tokens": [2] * len(statuses),
            "cost_usd": [0.5] * len(statuses),
            "latency_s": [1.0] * len(statuses),
        }
    )


def gold(count: int) -> pd.DataFrame:
    return pd.DataFrame({"task_id": [f"t{i}" for i in range(count)], "payload": ['{"answer":"Paris"}'] * count})


def test_a_solve_table_scores_answers_and_settles_the_rest(tmp_path: Path) -> None:
    statuses = ["answered", "answered", "truncated", "refused", "no_answer", "context_exceeded"]
    texts = ["Paris", "Rome", "Par", "I cannot", None, None]
    spec = GradingSpec(grader=EXACT, settlement=Settlement(refused="missing"))
    solves = grade_answers(answers(statuses, texts), gold(6), spec).frame
    store = ArtifactStore(str(tmp_path))
    solves = read_table(store, "solves", write_table(store, "solves", solves, SOLVES_SCHEMA, {})).frame
    scores = [None if pd.isna(score) else score for score in solves["score"]]
    assert scores == [1.0, 0.0, 0.0, None, 0.0, 0.0]
    assert solves["status"].tolist() == statuses
    assert solves["cost_usd"].tolist() == [0.5] * 6
    assert solves["reason"].tolist() == ["", "answered 'rome'", "truncated", "refused", "no_answer", "context_exceeded"]


def test_an_answer_without_gold_makes_no_table() -> None:
    with pytest.raises(GraderError, match="1 answered tasks have no gold, 't1' first"):
        grade_answers(answers(["answered"] * 2, ["Paris"] * 2), gold(1), GradingSpec(grader=EXACT))


def test_progress_is_counted_in_one_thread(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    threads: set[int] = set()
    advance = Progress.advance

    def recorded(self: Progress, units: int = 1, cost_usd: float | None = None) -> None:
        threads.add(threading.get_ident())
        advance(self, units, cost_usd)

    monkeypatch.setattr(Progress, "advance", recorded)
    with caplog.at_level(logging.INFO):
        grade_answers(answers(["answered"] * 50, ["Paris"] * 50), gold(50), GradingSpec(grader=EXACT))
    assert threads == {threading.get_ident()}
    assert "grading: 50/50 answers" in caplog.text


def test_an_error_of_the_grader_ends_grading(monkeypatch: pytest.MonkeyPatch) -> None:
    graded: list[str] = []
    failed = threading.Event()

    def failing(_: Graders, completion: str, payload: object) -> Verdict:
        graded.append(completion)
        if completion == "0":
            failed.set()
            raise GraderError("the sandbox could not start")
        failed.wait()
        time.sleep(0.02)
        return Verdict(1.0, "", False, "")

    monkeypatch.setattr(Graders, "grade", failing)
    texts: list[str | None] = [str(i) for i in range(500)]
    with pytest.raises(GraderError, match="grading, task 't0': the sandbox could not start"):
        grade_answers(answers(["answered"] * 500, texts), gold(500), GradingSpec(grader=EXACT))
    assert len(graded) < 250


def test_the_data_version_is_score_and_status_and_no_clock() -> None:
    spec = GradingSpec(grader=EXACT)
    first = grade_answers(answers(["answered"], ["Paris"]), gold(1), spec).frame
    slower = answers(["answered"], ["The capital is Paris."])
    slower["latency_s"] = 9.0
    assert solves_data_version(grade_answers(slower, gold(1), spec).frame) == solves_data_version(first)
    wrong = grade_answers(answers(["answered"], ["Rome"]), gold(1), spec).frame
    assert solves_data_version(wrong) != solves_data_version(first)


def test_a_graders_version_is_part_of_what_decides_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    before = GradingSpec(grader=EXACT).identity()
    monkeypatch.setattr(ExactGrader, "version", ExactGrader.version + 1)
    assert GradingSpec(grader=EXACT).identity() != before


def recorded_completions(directory: Path) -> Iterator[tuple[str, str, str, float]]:
    """Every recorded completion as model, task id, text and its score by the reference harness."""
    with (directory / "pass.csv").open() as file:
        expected = {row["task_id"]: row for row in csv.DictReader(file)}
    for path in sorted(directory.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            yield path.stem, row["task_id"], row["completion"], float(expected[row["task_id"]][path.stem])


@pytest.mark.usefixtures("sandbox")
def test_verdicts_on_recorded_completions_are_those_of_the_reference(
    shared_data: Callable[[str], Path], humaneval: dict[str, dict[str, str]]
) -> None:
    completions = list(recorded_completions(shared_data("recorded/humaneval_completions")))
    assert len(completions) == 656
    frame = pd.DataFrame(completions, columns=["model", "task", "text", "expected"])
    frame["task_id"] = frame["model"] + " " + frame["task"]
    payloads = {name: json.dumps(task) for name, task in humaneval.items()}
    gold = pd.DataFrame({"task_id": frame["task_id"], "payload": frame["task"].map(payloads)})
    unmeasured = dict.fromkeys(["input_tokens", "output_tokens", "cost_usd", "latency_s"])
    asked = frame.assign(sample=0, status="answered", **unmeasured)
    graded = grade_answers(asked, gold, GradingSpec(grader=FUNCTION))
    solves = graded.frame
    assert graded.facts["sandbox"] == find_sandbox().tier.name
    assert graded.facts["python"] == platform.python_version()
    assert graded.facts["limits"].startswith("cpu_s 8, wall_s 60, memory_mib 1024")
    other = frame[solves["score"].to_numpy() != frame["expected"].to_numpy()]
    assert other["task_id"].tolist() == []


def test_gold_that_cannot_be_graded_by_is_named_task_by_task() -> None:
    payloads = {"a": {"answer": "1"}, "b": {"answer": "no number here"}, "c": {}}
    require_gradable(NUMBER, {"a": payloads["a"]})
    with pytest.raises(GraderError) as caught:
        require_gradable(NUMBER, payloads)
    assert str(caught.value).splitlines() == [
        "2 of 3 gold payloads cannot be graded by number:",
        "  task 'b': the gold answer 'no number here' holds no number; correct it in the benchmark's source",
        "  task 'c': the gold payload has no 'answer'; map it under the benchmark's fields",
    ]
