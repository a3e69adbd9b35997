"""Which workers of a pool a router can learn from: those whose cells are complete, and in words why others are not.

A cell is complete when there is a solve table of what the worker, asked with its present settings, answered to the
present tasks, graded as the catalog says. That a newer attempt failed does not matter then: earlier answers of the same
settings are as good. Neither does a score that the settlement withholds: what is counted is settled answers.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from trinity_assets.errors import IncompleteCellError, TrainingError, listed
from trinity_assets.spec import Slug, Spec, canonical_json
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets.store.tables import Table, read_table, spec_differences
from trinity_assets.texts import cut_within

LEAST_WORKERS = 2
"""With fewer there is nothing to choose between."""

DIFFERENCE_CHARACTERS = 100
"""How much of a difference of settings a reason quotes: prompts can be long."""

_DECISIVE = ("task_id", "sample", "status", "text", "score")


class Dropped(Spec):
    """A worker of the pool that a router was trained without. The reason holds neither a clock nor a place."""

    name: Slug
    reason: str


@dataclass(frozen=True)
class CellRecord:
    """What there is of one cell, and what a complete one is made with.

    ``answers`` and ``solves`` are the shas of the newest artifacts, None where none was ever made; ``tasks`` and
    ``gold`` are the benchmark's newest tables. ``tasks_name``, ``gold_name`` and ``answers_name`` are those under which
    artifacts say that they were made from such tables. ``min_coverage`` is the share of the tasks that need an outcome:
    all of them for a worker that is asked.
    """

    worker: str
    benchmark: str
    answers: str | None
    solves: str | None
    answers_spec: Mapping[str, Any]
    solves_spec: Mapping[str, Any]
    tasks: Table
    gold: Table
    tasks_name: str
    gold_name: str
    answers_name: str
    min_coverage: float = 1.0


@dataclass(frozen=True)
class Members:
    """The workers that a router can learn from: per (worker, benchmark) the tasks that its cell covers; and the others.

    Both in the pool's order.
    """

    covered: dict[tuple[str, str], frozenset[str]]
    dropped: tuple[Dropped, ...]


def complete_members(store: ArtifactStore, router: str, cells: Iterable[CellRecord]) -> Members:
    """The workers whose every cell is complete; ``cells`` are those of the router's whole pool, in its order.

    Raises:
        TrainingError: fewer than two are left; the message gives the reason for each of the others.
        ArtifactError: an artifact of a cell is gone or damaged.
    """
    covered: dict[str, dict[str, frozenset[str]]] = {}
    gaps: dict[str, list[str]] = {}
    for cell in cells:
        tasks = covered.setdefault(cell.worker, {})
        try:
            tasks[cell.benchmark] = covered_tasks(store, cell)
        except IncompleteCellError as gap:
            gaps.setdefault(cell.worker, []).append(str(gap))
    dropped = tuple(Dropped(name=worker, reason="; ".join(reasons)) for worker, reasons in gaps.items())
    kept = [worker for worker in covered if worker not in gaps]
    if len(kept) < LEAST_WORKERS:
        raise TrainingError(
            f"router {router} has {kept[0] if kept else 'nobody'} left to choose, and needs {LEAST_WORKERS} workers "
            "with complete cells:\n  "
            + "\n  ".join(f"without {worker.name}: {worker.reason}" for worker in dropped)
            + "\nBuild again to ask for what is missing, or give the router a pool of other workers"
        )
    return Members(
        {(worker, benchmark): tasks for worker in kept for benchmark, tasks in covered[worker].items()}, dropped
    )


def covered_tasks(store: ArtifactStore, cell: CellRecord) -> frozenset[str]:
    """The present tasks for which a complete ``cell`` has the outcome.

    Raises:
        IncompleteCellError: the cell is not complete; the message is the reason, as in :class:`Dropped`.
        ArtifactError: an artifact of the cell is gone or damaged.
    """
    answers = _asked_as_now(store, cell)
    covered = _covered(store, cell, answers)
    _graded_as_now(store, cell, answers, covered)
    return covered


def _asked_as_now(store: ArtifactStore, cell: CellRecord) -> Table:
    """The newest answers, if the worker was asked with its present settings."""
    if cell.answers is None:
        raise _gap(cell, "were never complete")
    answers = read_table(store, "answers", cell.answers)
    if differences := _differences(answers, cell.answers_spec):
        raise _gap(cell, f"were made with other settings ({differences})")
    return answers


def _covered(store: ArtifactStore, cell: CellRecord, answers: Table) -> frozenset[str]:
    """The present tasks that ``answers`` are to, if they are enough; of a benchmark without tasks none are too few."""
    asked = _digests(_read(store, "tasks", answers.inputs[cell.tasks_name], cell.tasks), "task")
    present = _digests(cell.tasks, "task")
    answered = set(answers.frame["task_id"])
    covered = frozenset(task for task, digest in present.items() if task in answered and asked.get(task) == digest)
    if present and len(covered) / len(present) < cell.min_coverage:
        raise _gap(cell, f"cover {len(covered)} of {len(present)} tasks")
    return covered


def _graded_as_now(store: ArtifactStore, cell: CellRecord, answers: Table, covered: Collection[str]) -> None:
    """Refuse a cell whose ``answers`` to the tasks ``covered`` were not graded as the catalog and the gold say now."""
    if cell.solves is None:
        raise _gap(cell, "were never graded")
    solves = read_table(store, "solves", cell.solves)
    if differences := _differences(solves, cell.solves_spec):
        raise _gap(cell, f"were graded otherwise ({differences})")
    graded = _read(store, "answers", solves.inputs[cell.answers_name], answers)
    if _outcomes(graded, covered) != _outcomes(answers, covered):
        raise _gap(cell, "were not graded since they changed")
    graded_by = _digests(_read(store, "gold", solves.inputs[cell.gold_name], cell.gold), "gold")
    if any(graded_by.get(task) != digest for task, digest in _digests(cell.gold, "gold").items() if task in covered):
        raise _gap(cell, "were not graded since the gold changed")


def _gap(cell: CellRecord, what: str) -> IncompleteCellError:
    return IncompleteCellError(f"answers on {cell.benchmark} {what}")


def _read(store: ArtifactStore, kind: str, sha256: str, known: Table) -> Table:
    """The table of that sha, which mostly is the ``known`` one."""
    return known if known.sha256 == sha256 else read_table(store, kind, sha256)


def _differences(table: Table, expected: Mapping[str, Any]) -> str:
    differences = spec_differences(table.spec, json.loads(canonical_json(dict(expected))))
    return listed([cut_within(difference, DIFFERENCE_CHARACTERS) for difference in differences])


def _digests(table: Table, what: str) -> dict[str, str]:
    """Per task of a snapshot's table, the digest of what is asked or how it is graded."""
    return dict(zip(table.frame["task_id"], table.frame[f"{what}_digest"], strict=True))


def _outcomes(answers: Table, tasks: Collection[str]) -> list[Any]:
    """What a grader gets to see of the answers to ``tasks``, or takes from them, in an order of its own."""
    columns = [name for name in _DECISIVE if name in answers.frame]
    rows: pd.DataFrame = answers.frame.loc[answers.frame["task_id"].isin(tasks), columns]
    rows = rows.sort_values(["task_id", "sample"]).astype(object)
    return rows.where(rows.notna(), None).to_numpy().tolist()
