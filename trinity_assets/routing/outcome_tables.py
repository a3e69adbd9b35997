"""Router tables from a file of outcomes: a row per task, and a column of scores per worker.

| column | holds |
|---|---|
| ``task_id`` | the task's name, each once |
| ``score__<worker>`` | a score in [0, 1], or true and false; empty or NaN where unknown |
| ``cost__<worker>``, ``latency__<worker>`` | optional: USD and seconds of the answer |
| ``input_tokens__<worker>``, ``output_tokens__<worker>`` | optional: what prices are multiplied with |
| ``question`` | optional: what a user would ask |
| ``benchmark``, ``category``, ``group`` | optional: where the task is from, its kind, its near-duplicates |

Other columns are left alone. Without a ``group`` the near-duplicates among the questions are grouped as snapshots group
them, and where there are no questions every task is taken to be alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import ValidationError

from trinity_assets.benchmarks.formats import Row
from trinity_assets.benchmarks.near_duplicates import near_duplicate_groups
from trinity_assets.benchmarks.sources import read_rows
from trinity_assets.benchmarks.specs import FileSource
from trinity_assets.errors import TrainingError, alike, listed
from trinity_assets.recorded.outcomes import WORDS
from trinity_assets.routing.split import SHARED
from trinity_assets.routing.table import MEASURES, SCORE
from trinity_assets.texts import counted, encodable, printable, quoted

BENCHMARK = "table"
"""The benchmark of tasks that name none. A task's side of the split depends on it."""

LEAST_WORKERS = 2

MOST = 1e12
"""Of USD, seconds or tokens of one answer; sums of more are no numbers any more."""

Fault = tuple[str, str]
"""Where, and what is wrong there."""


@dataclass(frozen=True)
class OutcomeTable:
    """Outcomes as read: ``table`` has the columns of a router table but for the split, which ``fit_router`` adds.

    ``questions`` (n,) are None where the file has none.
    """

    table: pd.DataFrame
    questions: tuple[str, ...] | None

    @property
    def task_ids(self) -> list[str]:
        """The tasks' names, in row order."""
        return list(self.table["task_id"])


def read_outcomes(path: Path, score_columns: Sequence[str] = ()) -> OutcomeTable:
    """Read a ``.csv``, ``.jsonl``, ``.json`` or ``.parquet`` file; for ``score_columns`` see :func:`outcome_table`.

    Raises:
        TaskSourceError: the file cannot be read.
        TrainingError: its name has another ending, or its rows are no such table.
    """
    try:
        # By the name that was given: a link into a cache of blobs has the ending, and the blob has none.
        source = FileSource(kind="file", path=str(path.absolute()))
    except ValidationError as error:
        raise TrainingError(error.errors()[0]["msg"]) from None
    return outcome_table(read_rows(source, path.parent), str(path), score_columns)


def outcome_table(rows: Iterable[Mapping[Any, Any]], where: str, score_columns: Sequence[str] = ()) -> OutcomeTable:
    """The table that ``rows`` make, such as ``frame.to_dict("records")``; ``where`` is what messages call them.

    Args:
        score_columns: the columns that hold scores, each named by its worker, with or without ``score__``; none means
            every ``score__<worker>``. Their order is the pool's.

    Raises:
        TrainingError: naming the row (counted from 0) and the column of every fault.
    """
    read: list[Row] = [{str(name): value for name, value in row.items()} for row in rows]
    if not read:
        raise TrainingError(f"{where} holds no rows; give one per task")
    columns = list(dict.fromkeys(name for row in read for name in row))
    if "task_id" not in columns:
        there = listed([printable(name) for name in columns], ", ")
        raise TrainingError(f"{where} has no column 'task_id', which names each task; it has {there}")
    scored = _scored(columns, where, score_columns)
    faults: list[Fault] = []
    texts = {
        name: _texts(read, name, required, faults)
        for name, required in _TEXTS.items()
        if name in columns or name == "task_id"
    }
    faults += _repeated(texts["task_id"])
    numbers = {
        f"{measure}__{worker}": _numbers(
            read, column if measure == "score" else f"{measure}__{worker}", measure, faults
        )
        for worker, column in scored.items()
        for measure in MEASURES
    }
    if faults:
        raise TrainingError(f"{where}: {listed(alike(faults, 'row'), '; ')} (rows count from 0)")
    _require_scores(numbers, scored, where)
    task_ids = texts["task_id"]
    benchmarks = texts.get("benchmark", [BENCHMARK] * len(read))
    questions = tuple(texts["question"]) if "question" in texts else None
    groups = texts["group"] if "group" in texts else _near_duplicates(task_ids, questions)
    groups = [group or task_id for group, task_id in zip(groups, task_ids, strict=True)]
    who = {
        "task_id": task_ids,
        "benchmark": benchmarks,
        "category": texts.get("category", [""] * len(read)),
        "group": _shared(groups, benchmarks),
    }
    return OutcomeTable(pd.DataFrame(who | numbers), questions)


_SHOWN = ("benchmark", "category")
"""Texts that stand in reports and on terminals."""

NAME_CHARACTERS = 80

_TEXTS = {"task_id": True, "benchmark": True, "question": True, "category": False, "group": False}
"""The columns of text, and whether one that is there must be filled in every row."""


def _scored(columns: Sequence[str], where: str, chosen: Sequence[str]) -> dict[str, str]:
    """The column of scores of each worker, in the pool's order.

    Raises:
        TrainingError: a chosen column is not there, there are fewer than two workers, or a cost is nobody's.
    """
    there = listed([printable(name) for name in columns], ", ")
    if absent := [name for name in chosen if name not in columns]:
        raise TrainingError(f"{where} has no column {', '.join(map(quoted, absent))}; it has {there}")
    scored = {name.removeprefix(SCORE): name for name in chosen or columns if chosen or name.startswith(SCORE)}
    if len(scored) < len(chosen):
        raise TrainingError(
            f"{where}: a worker has two of the columns {', '.join(map(quoted, chosen))}; name one of each"
        )
    if bad := [column for worker, column in scored.items() if not worker.strip() or not worker.isprintable()]:
        raise TrainingError(f"{where}: the columns {', '.join(map(quoted, bad))} name no worker that can be printed")
    if len(scored) < LEAST_WORKERS:
        raise TrainingError(
            f"{where} has scores of {counted(len(scored), 'worker')} and a router chooses between at least "
            f"{LEAST_WORKERS}; name their columns {SCORE}<worker>, or name which columns hold scores; it has {there}"
        )
    prefixes = [f"{measure}__" for measure in MEASURES if f"{measure}__" != SCORE]
    nobodys = [
        name
        for name in columns
        for prefix in prefixes
        if not chosen and name.startswith(prefix) and name.removeprefix(prefix) not in scored
    ]
    if nobodys:
        raise TrainingError(
            f"{where}: column {', '.join(map(quoted, nobodys))} is of no worker with scores; those are "
            f"{', '.join(map(printable, scored))}"
        )
    return scored


def _texts(rows: Sequence[Row], column: str, required: bool, faults: list[Fault]) -> list[str]:
    """The column's values as text, "" where there is none."""
    texts = []
    for number, row in enumerate(rows):
        value = row.get(column)
        text = "" if _blank(value) else encodable(str(value))
        if column in _SHOWN:
            text = printable(text, NAME_CHARACTERS)
        if isinstance(value, dict | list):
            faults.append((f"row {number}", f"column {column}: a {type(value).__name__} is no text"))
        elif required and not text:
            faults.append((f"row {number}", f"column {column} is empty"))
        texts.append(text)
    return texts


def _numbers(rows: Sequence[Row], column: str, measure: str, faults: list[Fault]) -> np.ndarray:
    """The column's values (n,) float64, NaN where there is none."""
    numbers = np.full(len(rows), np.nan)
    for number, row in enumerate(rows):
        value = row.get(column)
        if _blank(value):
            continue
        try:
            numbers[number] = _score(value) if measure == "score" else _amount(value)
        except ValueError as error:
            faults.append((f"row {number}", f"column {printable(column)}: {error}"))
    return numbers


def _blank(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value)) or value is pd.NA or value is pd.NaT


def _score(value: Any) -> float:
    word = str(value).strip().casefold()
    score = WORDS[word] if word in WORDS else _number(value)
    if not (math.isnan(score) or 0 <= score <= 1):
        raise ValueError(f"the score {score:g} is not in [0, 1]")
    return score


def _amount(value: Any) -> float:
    amount = math.inf if isinstance(value, bool) else _number(value)
    if not (math.isnan(amount) or 0 <= amount <= MOST):
        raise ValueError(f"{quoted(str(value))} is no amount from 0 to {MOST:g}")
    return amount


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{quoted(str(value))} is no number; leave a missing one empty") from None


def _repeated(task_ids: Sequence[str]) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for number, task_id in enumerate(task_ids):
        if task_id and (earlier := first.setdefault(task_id, number)) != number:
            yield f"row {number}", f"column task_id: {quoted(task_id)} was already used by row {earlier}"


def _require_scores(numbers: Mapping[str, np.ndarray], scored: Mapping[str, str], where: str) -> None:
    empty = [column for worker, column in scored.items() if np.isnan(numbers[f"{SCORE}{worker}"]).all()]
    if empty:
        raise TrainingError(
            f"{where}: no row has a score in column {', '.join(map(quoted, empty))}; fill some in, or leave the "
            "worker out"
        )


def _near_duplicates(task_ids: Sequence[str], questions: Sequence[str] | None) -> Sequence[str]:
    """The group of each task, named by the least of its members' ids, which no order of the rows changes."""
    if questions is None:
        return task_ids
    members = pd.Series(task_ids).groupby(near_duplicate_groups(questions))
    return list(members.transform("min"))


def _shared(groups: Sequence[str], benchmarks: Sequence[str]) -> list[str]:
    """The groups' names, and of those that have tasks of several benchmarks one that says so."""
    homes = pd.Series(benchmarks).groupby(list(groups)).transform("nunique")
    return [f"{SHARED}{group}" if count > 1 else group for group, count in zip(groups, homes, strict=True)]
