"""Who is left out, and why in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from trinity_assets.errors import ArtifactError, IncompleteCellError, TrainingError
from trinity_assets.routing.completeness import CellRecord, Dropped, complete_members, covered_tasks
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets.store.tables import Table, read_table, write_table

SETTINGS = {"model": "m", "sampling": {"max_tokens": 512}}
GRADING = {"grader": {"kind": "exact"}}
ASKED = {"a": "What is 1 plus 1?", "b": "What is 2 plus 2?", "c": "What is 3 plus 3?"}


def write(store: ArtifactStore, kind: str, columns: Mapping[str, Sequence[Any]], **header: Any) -> str:
    frame = pd.DataFrame(columns)
    schema = pa.Schema.from_pandas(frame, preserve_index=False)
    return write_table(store, kind, frame, schema, header.get("spec", {}), header.get("inputs"))


def tasks(store: ArtifactStore, asked: Mapping[str, str] = ASKED) -> Table:
    digests = [f"asked {question}" for question in asked.values()]
    return read_table(store, "tasks", write(store, "tasks", {"task_id": list(asked), "task_digest": digests}))


def gold(store: ArtifactStore, **changed: str) -> Table:
    digests = [f"gold {changed.get(task, task)}" for task in ASKED]
    return read_table(store, "gold", write(store, "gold", {"task_id": list(ASKED), "gold_digest": digests}))


def answers(
    store: ArtifactStore, texts: Mapping[str, str], spec: Mapping[str, Any] = SETTINGS, asked: Table | None = None
) -> str:
    columns: dict[str, list[Any]] = {
        "task_id": list(texts),
        "sample": [0] * len(texts),
        "status": ["answered"] * len(texts),
        "text": list(texts.values()),
    }
    return write(store, "answers", columns, spec=spec, inputs={"benchmarks/quiz/tasks": (asked or tasks(store)).sha256})


def solves(
    store: ArtifactStore, of: str, spec: Mapping[str, Any] = GRADING, by: Table | None = None, worker: str = "ada"
) -> str:
    answered = read_table(store, "answers", of).frame["task_id"].tolist()
    scores: list[float | None] = [None, *[1.0] * (len(answered) - 1)]  # missing, as a settlement may have it
    inputs = {f"answers/{worker}/quiz": of, "benchmarks/quiz/gold": (by or gold(store)).sha256}
    return write(store, "solves", {"task_id": answered, "score": scores}, spec=spec, inputs=inputs)


ALL = dict.fromkeys(ASKED, "4")


@pytest.fixture
def store(tmp_path) -> ArtifactStore:
    return ArtifactStore(str(tmp_path))


def complete(store: ArtifactStore, worker: str = "ada") -> CellRecord:
    made = answers(store, ALL)
    graded = solves(store, made, worker=worker)
    return CellRecord(
        worker,
        "quiz",
        made,
        graded,
        SETTINGS,
        GRADING,
        tasks(store),
        gold(store),
        tasks_name="benchmarks/quiz/tasks",
        gold_name="benchmarks/quiz/gold",
        answers_name=f"answers/{worker}/quiz",
    )


def reason(store: ArtifactStore, cell: CellRecord) -> str:
    with pytest.raises(IncompleteCellError) as gap:
        covered_tasks(store, cell)
    return str(gap.value)


def test_a_cell_with_a_score_missing_is_complete(store):
    assert covered_tasks(store, complete(store)) == set(ASKED)


def test_what_was_never_made(store):
    cell = complete(store)
    assert reason(store, dataclasses.replace(cell, answers=None)) == "answers on quiz were never complete"
    assert reason(store, dataclasses.replace(cell, solves=None)) == "answers on quiz were never graded"


def test_other_settings_are_named_and_cut(store):
    cell = complete(store)
    longer = {"model": "m", "sampling": {"max_tokens": 768}}
    assert reason(store, dataclasses.replace(cell, answers_spec=longer)) == (
        "answers on quiz were made with other settings (sampling.max_tokens: 512 -> 768)"
    )
    wordy = SETTINGS | {"prompt": {"system": "word " * 100, "shots": ()}}
    assert len(reason(store, dataclasses.replace(cell, answers_spec=wordy))) < 250
    assert reason(store, dataclasses.replace(cell, solves_spec={"grader": {"kind": "number"}})) == (
        'answers on quiz were graded otherwise (grader.kind: "exact" -> "number")'
    )


def test_a_task_counts_when_it_was_asked_as_it_is_now(store):
    cell = complete(store)
    more = dataclasses.replace(cell, tasks=tasks(store, ASKED | {"d": "What is 4 plus 4?"}))
    assert reason(store, more) == "answers on quiz cover 3 of 4 tasks"
    reworded = dataclasses.replace(cell, tasks=tasks(store, ASKED | {"b": "What is two plus two?"}))
    assert reason(store, reworded) == "answers on quiz cover 2 of 3 tasks"
    fewer = dataclasses.replace(cell, tasks=tasks(store, {"a": ASKED["a"], "c": ASKED["c"]}))
    assert covered_tasks(store, fewer) == {"a", "c"}
    # A recorded worker may lack some, and what it has of another question is not taken for an outcome.
    assert covered_tasks(store, dataclasses.replace(more, min_coverage=0.75)) == set(ASKED)
    assert covered_tasks(store, dataclasses.replace(reworded, min_coverage=0.5)) == {"a", "c"}


def test_of_a_benchmark_without_tasks_none_is_missing(store):
    assert covered_tasks(store, dataclasses.replace(complete(store), tasks=tasks(store, {}))) == frozenset()


def test_answers_that_were_graded_before_they_changed(store):
    cell = complete(store)
    changed = answers(store, ALL | {"b": "5"})
    assert reason(store, dataclasses.replace(cell, answers=changed)) == (
        "answers on quiz were not graded since they changed"
    )
    # Asked otherwise, and the same came out: it need not be graded again.
    otherwise = {"model": "m", "sampling": {"max_tokens": 768}}
    same = dataclasses.replace(cell, answers=answers(store, ALL, otherwise), answers_spec=otherwise)
    assert covered_tasks(store, same) == set(ASKED)


def test_answers_that_were_graded_by_another_gold(store):
    cell = complete(store)
    corrected = dataclasses.replace(cell, gold=gold(store, b="four"))
    assert reason(store, corrected) == "answers on quiz were not graded since the gold changed"
    fewer = dataclasses.replace(corrected, tasks=tasks(store, {"a": ASKED["a"]}))
    assert covered_tasks(store, fewer) == {"a"}, "the corrected task is not among the present ones"


def test_a_lost_artifact_is_an_error_and_no_reason_to_leave_a_worker_out(store):
    with pytest.raises(ArtifactError):
        covered_tasks(store, dataclasses.replace(complete(store), answers="0" * 64))


def test_a_worker_is_left_out_for_any_benchmark_with_every_reason(store):
    ada, bob, cyd = (complete(store, worker) for worker in ("ada", "bob", "cyd"))
    exam = dataclasses.replace(bob, benchmark="exam", answers=None)
    members = complete_members(store, "starter", [ada, dataclasses.replace(bob, solves=None), exam, cyd])
    assert members.covered == {("ada", "quiz"): set(ASKED), ("cyd", "quiz"): set(ASKED)}
    assert members.dropped == (
        Dropped(name="bob", reason="answers on quiz were never graded; answers on exam were never complete"),
    )


def test_one_worker_is_no_pool(store):
    ada, bob = complete(store), dataclasses.replace(complete(store, "bob"), answers=None)
    with pytest.raises(TrainingError) as few:
        complete_members(store, "starter", [ada, bob])
    assert str(few.value).splitlines() == [
        "router starter has ada left to choose, and needs 2 workers with complete cells:",
        "  without bob: answers on quiz were never complete",
        "Build again to ask for what is missing, or give the router a pool of other workers",
    ]
    with pytest.raises(TrainingError, match="router starter has nobody left to choose"):
        complete_members(store, "starter", [bob])
