"""Completions that a person already has, from a file: reading them, grading them, keeping the results."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import ValidationError

from trinity_assets.benchmarks.snapshots import take_snapshot
from trinity_assets.benchmarks.sources import read_rows
from trinity_assets.benchmarks.specs import FileSource, SnapshotSpec
from trinity_assets.errors import CompletionsError
from trinity_assets.files import replaced_whole
from trinity_assets.grading.solves import CARRIED, grade_answers
from trinity_assets.grading.specs import GradingSpec
from trinity_assets.workers.outcomes import Status

NAMED = 10
"""How many faulty rows or unknown tasks a message names."""

RESULT_COLUMNS = ["task_id", "sample", "category", "score", "status", "rule", "ambiguous", "reason"]


@dataclass(frozen=True)
class GradedCompletions:
    """One row per completion (``RESULT_COLUMNS``), and what of the machine graded them.

    ``unanswered`` are the tasks without a completion; ``quarantined`` counts the completions of tasks in quarantine,
    which are left out.
    """

    results: pd.DataFrame
    unanswered: list[str]
    quarantined: int
    facts: dict[str, str]


def read_completions(path: Path) -> pd.DataFrame:
    """Rows with ``task_id`` and ``completion`` of a file in any format of benchmark files; other columns are left out.

    Several completions of a task are its samples, in the order of the file. A completion that is null is kept as one:
    the worker gave no answer.

    Raises:
        TaskSourceError: the file cannot be read.
        CompletionsError: its name has another ending, or a row has no task id or a completion that is not text; such
            rows are named.
    """
    try:
        source = FileSource(kind="file", path=str(path.resolve()))
    except ValidationError as error:
        raise CompletionsError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None
    rows = read_rows(source, path.parent)
    faults: list[str] = []
    seen: Counter[str] = Counter()
    read: list[tuple[str, int, str | None]] = []
    for number, row in enumerate(rows):
        missing = [name for name in ("task_id", "completion") if name not in row]
        if missing:
            faults.append(f"row {number}: no field {', '.join(missing)} (it has {', '.join(sorted(row)) or 'none'})")
        elif row["task_id"] is None or isinstance(row["task_id"], (dict, list)):
            faults.append(f"row {number}: the task id is {row['task_id']!r}")
        elif row["completion"] is not None and not isinstance(row["completion"], str):
            faults.append(f"row {number}: the completion is no text but a {type(row['completion']).__name__}")
        else:
            task_id = str(row["task_id"])
            read.append((task_id, seen[task_id], row["completion"]))
            seen[task_id] += 1
    if faults:
        raise CompletionsError(f"{path}: {len(faults)} rows are no completions:\n  " + _some(faults, "\n  "))
    if not read:
        raise CompletionsError(f"{path} holds no rows; each needs a task_id and a completion")
    return pd.DataFrame(read, columns=["task_id", "sample", "completion"])


def grade_completions(
    completions: pd.DataFrame, snapshot: SnapshotSpec, grading: GradingSpec, catalog_dir: Path
) -> GradedCompletions:
    """Grade ``completions`` (task_id, sample, completion) by a benchmark of the catalog, asking nobody.

    All tasks of the benchmark's source count, whatever its limit is; those in quarantine do not.

    Raises:
        CompletionsError: a completion is of a task that the benchmark does not have.
        TaskSourceError, GraderError: the benchmark cannot be read, or cannot grade.
    """
    taken = take_snapshot(snapshot.model_copy(update={"limit": None}), catalog_dir)
    in_quarantine = completions["task_id"].isin([entry.task_id for entry in taken.quarantined])
    completions = completions[~in_quarantine]
    known = set(taken.tasks["task_id"])
    unknown = [task for task in dict.fromkeys(completions["task_id"]) if task not in known]
    if unknown:
        raise CompletionsError(
            f"{len(unknown)} task ids are not in the benchmark {snapshot.name}: {_some(unknown, ', ')}. "
            f"Its {len(known)} ids look like {taken.tasks['task_id'].iloc[0]!r}"
        )
    answers = completions.assign(
        text=completions["completion"],
        status=[Status.NO_ANSWER if pd.isna(text) else Status.ANSWERED for text in completions["completion"]],
        **dict.fromkeys(CARRIED),
    )
    graded = grade_answers(answers, taken.gold, grading, label=f"grading {snapshot.name}")
    category = dict(zip(taken.tasks["task_id"], taken.tasks["category"], strict=True))
    results = graded.frame.assign(category=graded.frame["task_id"].map(category))[RESULT_COLUMNS]
    answered = set(completions["task_id"])
    unanswered = [task for task in taken.tasks["task_id"] if task not in answered]
    return GradedCompletions(results, unanswered, int(in_quarantine.sum()), graded.facts)


def require_writable(path: Path) -> None:
    """See that results can be written to ``path``, before anything is graded.

    Raises:
        CompletionsError: its suffix is none that is known, or its directory cannot be written to.
    """
    if path.suffix not in _WRITERS:
        raise CompletionsError(f"cannot write results to {path}: its suffix is none of {', '.join(_WRITERS)}")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise CompletionsError(f"cannot write results to {path}: {path.parent} is no directory that you may write to")


def write_results(results: pd.DataFrame, path: Path) -> None:
    """Write ``results`` as JSON Lines, CSV or Parquet, by the file's suffix; an interrupted write leaves no half file.

    Raises:
        CompletionsError: the file cannot be written.
    """
    require_writable(path)
    try:
        with replaced_whole(path) as temporary:
            _WRITERS[path.suffix](results, temporary)
    except OSError as error:
        raise CompletionsError(f"cannot write results to {path}: {error}") from error


def _write_jsonl(results: pd.DataFrame, path: Path) -> None:
    plain = results.astype(object).where(results.notna(), None)
    with path.open("w", encoding="utf-8") as file:
        for row in plain.to_dict("records"):
            file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")


_WRITERS: dict[str, Any] = {
    ".jsonl": _write_jsonl,
    ".csv": lambda results, path: results.to_csv(path, index=False),
    ".parquet": lambda results, path: results.to_parquet(path, index=False),
}


def _some(items: list[str], between: str) -> str:
    more = f"{between}and {len(items) - NAMED} more" if len(items) > NAMED else ""
    return between.join(items[:NAMED]) + more
