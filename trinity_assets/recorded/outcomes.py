"""The outcomes of one recorded cell: rows to tasks, one table, and an account of everything that fitted nowhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from trinity_assets.errors import RecordedError, listed
from trinity_assets.recorded.files import Rows, read_cell_rows
from trinity_assets.recorded.formats import Row
from trinity_assets.recorded.matching import TaskIndex
from trinity_assets.recorded.specs import MEASURES, RecordedCell, RecordedOutcomes
from trinity_assets.spec import digest
from trinity_assets.texts import encodable
from trinity_assets.workers.outcomes import Status

OUTCOMES_SCHEMA = pa.schema(
    [
        pa.field("task_id", pa.string(), nullable=False),
        pa.field("sample", pa.int64(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("score", pa.float64()),
        pa.field("input_tokens", pa.int64()),
        pa.field("output_tokens", pa.int64()),
        pa.field("cost_usd", pa.float64()),
        pa.field("latency_s", pa.float64()),
        pa.field("source", pa.string(), nullable=False),
    ]
)
"""One row per task and sample, in task order. ``score`` is null where the text is to be graded; ``source`` says which
row of which file it was. A task without an outcome has no row."""

WORDS = {"true": 1.0, "false": 0.0, "correct": 1.0, "incorrect": 0.0}
"""Words that stand for a score wherever they are written; others are declared."""

_TYPES = {"sample": "int64", "score": "float64", "cost_usd": "float64", "latency_s": "float64"} | dict.fromkeys(
    ("input_tokens", "output_tokens"), "Int64"
)


@dataclass(frozen=True)
class Account:
    """What became of every row and every task.

    Of ``rows`` in the files, ``selected`` hold the values of ``where``. Of those, ``unmatched`` are of no task, the
    ``empty`` have no outcome, ``left_out`` are not the first of their task, and the others are in the table.
    ``missing`` are the tasks without an outcome, in order.
    """

    rows: int
    selected: int
    tasks: int
    unmatched: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    left_out: int = 0
    missing: list[str] = field(default_factory=list)

    @property
    def coverage(self) -> float:
        """The share of the benchmark's tasks that have an outcome."""
        return (self.tasks - len(self.missing)) / self.tasks


@dataclass(frozen=True)
class Recorded:
    """A cell's outcomes in the columns of ``OUTCOMES_SCHEMA``, and the account of them."""

    frame: pd.DataFrame
    account: Account


def import_outcomes(cell: RecordedCell, tasks: pd.DataFrame, directory: Path, *, label: str) -> Recorded:
    """Read a cell's files and give each task of ``tasks`` its outcome.

    Raises:
        RecordedError: the files cannot be read; rows hold no score, or fit several tasks; a task has several rows and
            nothing says what they are; too few tasks have an outcome. Rows and tasks are named.
    """
    outcomes = cell.outcomes
    if outcomes.task is None:
        raise RecordedError(f"{label}: no column is named that tells the task of a row")
    try:
        read = read_cell_rows(cell, directory)
    except RecordedError as error:
        raise RecordedError(f"{label}: {error}") from error
    selected = _selected(read, outcomes, label)
    index = TaskIndex(tasks, outcomes.task)
    of_task: dict[str, list[Row]] = {}
    unmatched: list[str] = []
    empty: list[str] = []
    faults: list[str] = []
    for where, row in selected:
        try:
            task = index.task_of(row)
            if task is None:
                unmatched.append(f"{where} ({_shown(row.get(outcomes.task.column))})")
            elif (outcome := _outcome(row, outcomes)) is None:
                empty.append(where)
            else:
                of_task.setdefault(task, []).append(outcome | {"source": where})
        except ValueError as error:
            faults.append(f"{where}: {error}")
    if faults:
        raise RecordedError(f"{label}: {len(faults)} rows hold no outcome:\n  " + listed(faults, "\n  "))
    _require_one_each(of_task, outcomes, label)
    kept = {task: rows[:1] if outcomes.samples == "first" else rows for task, rows in of_task.items()}
    account = Account(
        rows=len(read.rows),
        selected=len(selected),
        tasks=len(tasks),
        unmatched=unmatched,
        empty=empty,
        left_out=sum(map(len, of_task.values())) - sum(map(len, kept.values())),
        missing=[task for task in tasks["task_id"] if task not in kept],
    )
    _require_coverage(account, outcomes, label)
    return Recorded(_table(kept, tasks), account)


def outcomes_data_version(frame: pd.DataFrame) -> str:
    """The sha256 of every task's and sample's status, text and score: no cost, no latency, no place in a file."""
    decisive = [frame[name] for name in ("task_id", "sample", "status", "text", "score")]
    return digest(
        [
            # The digest of a text, so that the texts do not lie in memory once more as one.
            [task, sample, status, None if pd.isna(text) else digest(text), None if pd.isna(score) else score]
            for task, sample, status, text, score in zip(*decisive, strict=True)
        ]
    )


def _table(kept: Mapping[str, list[Row]], tasks: pd.DataFrame) -> pd.DataFrame:
    columns: dict[str, list[Any]] = {name: [] for name in OUTCOMES_SCHEMA.names}
    for task in tasks["task_id"]:
        for sample, outcome in enumerate(kept.get(task, [])):
            for name, value in (outcome | {"task_id": task, "sample": sample}).items():
                columns[name].append(value)
    # Without the type, pandas copies the texts into an array of its own.
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()}).astype(_TYPES)


def _selected(read: Rows, outcomes: RecordedOutcomes, label: str) -> list[tuple[str, Row]]:
    wanted = {column: _label(value) for column, value in outcomes.where.items()}
    rows = [
        (where, row)
        for where, row in read.rows
        if all(_label(row.get(column)) == value for column, value in wanted.items())
    ]
    if not rows:
        seen = {column: sorted({_label(row.get(column)) for _, row in read.rows}) for column in wanted}
        found = "; ".join(f"{column} holds {listed(values, ', ')}" for column, values in seen.items())
        raise RecordedError(f"{label}: no row of {', '.join(outcomes.paths)} is where {wanted}: {found}")
    return rows


def _outcome(row: Row, outcomes: RecordedOutcomes) -> dict[str, Any] | None:
    """Status, text, score and measures of a row; None where it has no outcome.

    Raises:
        ValueError: a value is not what its column should hold.
    """
    text = _text(row, outcomes.completion)
    score = None
    status = Status.ANSWERED
    if outcomes.score is not None:
        value = row.get(outcomes.score)
        if value is None or value == "":
            return None
        score = score_of(value, outcomes.values)
    elif text is None:
        return None
    elif not text.strip():
        if outcomes.empty == "missing":
            return None
        status = Status.NO_ANSWER
    measured = {name: _measure(name, row.get(column)) for name, column in outcomes.measures.items()}
    return dict.fromkeys(MEASURES) | measured | {"status": str(status), "text": text, "score": score}


def score_of(value: Any, values: Mapping[str, float]) -> float:
    """The score that ``value`` stands for: what ``values`` or ``WORDS`` say of it, else the number that it is.

    Raises:
        ValueError: it is no number, or not in [0, 1].
    """
    word = _label(value).strip()
    if word in values:
        return values[word]
    if word.casefold() in WORDS:
        return WORDS[word.casefold()]
    if not isinstance(value, int | float | str):
        raise ValueError(f"the score is a {type(value).__name__}, not a number")
    try:
        score = float(word)
    except ValueError:
        raise ValueError(f"the score {_shown(value)} is no number; say what it stands for under values") from None
    if math.isnan(score):
        raise ValueError("the score is NaN; leave it empty where there is none")
    if not 0 <= score <= 1:
        raise ValueError(f"the score {score:g} is not in [0, 1]")
    return score


def _text(row: Row, column: str | None) -> str | None:
    value = row.get(column) if column else None
    if value is not None and not isinstance(value, str):
        raise ValueError(f"the completion is no text but a {type(value).__name__}")
    return None if value is None else encodable(value)


def _measure(name: str, value: Any) -> float | int | None:
    if value is None or value == "":
        return None
    try:
        number = float(value)
        if isinstance(value, bool) or not math.isfinite(number) or number < 0:
            raise ValueError
        if name.endswith("_tokens"):
            if number != int(number):
                raise ValueError
            return int(number)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {_shown(value)}, which is none") from None
    return number


def _require_one_each(of_task: Mapping[str, list[Row]], outcomes: RecordedOutcomes, label: str) -> None:
    several = [
        f"{task}: {', '.join(row['source'] for row in rows[:3])}" for task, rows in of_task.items() if len(rows) > 1
    ]
    if several and outcomes.samples is None:
        raise RecordedError(
            f"{label}: {len(several)} tasks have several rows:\n  {listed(several, chr(10) + '  ')}\n"
            "Keep the right ones by `where`, or say `samples: mean` (they are samples) or `samples: first`"
        )


def _require_coverage(account: Account, outcomes: RecordedOutcomes, label: str) -> None:
    if account.coverage >= outcomes.min_coverage:
        return
    lines = [
        f"{label}: {account.tasks - len(account.missing)} of {account.tasks} tasks have an outcome "
        f"({account.coverage:.1%}, min_coverage is {outcomes.min_coverage:.1%})",
        f"{len(account.missing)} tasks have none: {listed(account.missing, ', ')}",
        f"{len(account.unmatched)} rows are of no task: {listed(account.unmatched, ', ')}" if account.unmatched else "",
        f"{len(account.empty)} rows are empty: {listed(account.empty, ', ')}" if account.empty else "",
        "Correct the mapping, or lower min_coverage: what is missing then stays missing"
        + ("; `empty: no_answer` takes blank completions as no answer" if account.empty and not outcomes.score else ""),
    ]
    raise RecordedError("\n  ".join(line for line in lines if line))


def _label(value: Any) -> str:
    """A value as it would be written in a text file; booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
