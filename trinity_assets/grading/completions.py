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

from trinity_assets.benchmarks.formats import Row
from trinity_assets.benchmarks.snapshots import take_snapshot
from trinity_assets.benchmarks.sources import read_rows
from trinity_assets.benchmarks.specs import FileSource, SnapshotSpec
from trinity_assets.errors import CompletionsError, alike, listed
from trinity_assets.files import replaced_whole
from trinity_assets.grading.solves import CARRIED, grade_answers
from trinity_assets.grading.specs import GradingSpec
from trinity_assets.texts import counted, encodable, printable, quoted
from trinity_assets.workers.outcomes import Status

_FIELDS = ("task_id", "completion")

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
    the worker gave no answer. Half a surrogate pair is read as U+FFFD, as in answers that a worker gives.

    Raises:
        TaskSourceError: the file cannot be read.
        CompletionsError: its name has another ending, or a row has no task id or a completion that is not text; such
            rows are named.
    """
    try:
        # By the name that was given: a link into a cache of blobs has the ending, and the blob has none.
        source = FileSource(kind="file", path=str(path.absolute()))
    except ValidationError as error:
        raise CompletionsError(error.errors()[0]["msg"]) from None
    rows = read_rows(source, path.parent, _FIELDS)
    faults: list[tuple[str, str]] = []
    seen: Counter[str] = Counter()
    read: list[tuple[str, int, str | None]] = []
    for number, row in enumerate(rows):
        if problem := _row_problem(row):
            faults.append((f"row {number}", problem))
            continue
        task_id, completion = encodable(str(row["task_id"])), row["completion"]
        read.append((task_id, seen[task_id], None if completion is None else encodable(completion)))
        seen[task_id] += 1
    if faults:
        found = counted(len(faults), "row is no completion", "rows are no completions")
        raise CompletionsError(f"{path}: {found} (rows count from 0):\n  " + listed(alike(faults, "row"), "\n  "))
    if not read:
        raise CompletionsError(f"{path} holds no rows; each needs a task_id and a completion")
    return pd.DataFrame(read, columns=["task_id", "sample", "completion"])


def _row_problem(row: Row) -> str | None:
    """Why ``row`` is no completion, None if it is one."""
    if missing := [name for name in _FIELDS if name not in row]:
        has = ", ".join(printable(name) for name in sorted(row)) or "none"
        return f"no field {', '.join(missing)} (it has {has})"
    if row["task_id"] is None or isinstance(row["task_id"], (dict, list)):
        return f"the task id is {quoted(str(row['task_id']))}"
    if row["completion"] is not None and not isinstance(row["completion"], str):
        return f"the completion is no text but a {type(row['completion']).__name__}"
    return None


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
            f"{counted(len(unknown), 'task id is', 'task ids are')} not in the benchmark {snapshot.name}: "
            f"{listed([printable(task) for task in unknown], ', ')}. "
            f"Its {counted(len(known), 'id')} look like {quoted(taken.tasks['task_id'].iloc[0])}"
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
    try:
        writable = not path.is_dir() and os.access(path.parent, os.W_OK)
    except (OSError, ValueError) as error:  # a name too long, or one that holds a null character
        raise CompletionsError(f"cannot write results to {path}: {error}") from error
    if not writable:
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
