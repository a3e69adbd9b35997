"""Which task a row is about: by its id, by its question, or by the number of its row in the benchmark's source."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from trinity_assets.recorded.specs import TaskKey


def same_question(text: str) -> str:
    """What questions that are the same share: characters composed (NFC), any run of white space one space."""
    return " ".join(unicodedata.normalize("NFC", text).split())


class TaskIndex:
    """The tasks of a benchmark by what a :class:`TaskKey` says of them."""

    def __init__(self, tasks: pd.DataFrame, key: TaskKey) -> None:
        self._key = key
        self._tasks: dict[Hashable, list[str]] = {}
        for task_id, found in zip(tasks["task_id"], tasks[_SOURCES[key.kind]], strict=True):
            known = same_question(found) if key.kind == "question" else found
            self._tasks.setdefault(known, []).append(task_id)

    def task_of(self, row: Mapping[str, Any]) -> str | None:
        """The task that ``row`` is about, None where the benchmark has none such or the row does not say.

        Raises:
            ValueError: what the row says is no id, question or number, or fits several tasks.
        """
        value = row.get(self._key.column)
        if value is None or value == "":
            return None
        found = self._tasks.get(self._sought(value), [])
        if len(found) > 1:
            raise ValueError(f"its question is that of {len(found)} tasks: {', '.join(found)}; match by id or row")
        return found[0] if found else None

    def _sought(self, value: Any) -> Hashable:
        if self._key.kind == "row":
            return _row_number(value) - self._key.first
        if isinstance(value, dict | list | bytes):
            raise ValueError(f"column {self._key.column!r} holds a {type(value).__name__}, which names no task")
        if self._key.kind == "id":
            return str(value)
        if not isinstance(value, str):
            raise ValueError(f"column {self._key.column!r} holds {value!r}, which is no question")
        return same_question(value)


_SOURCES = {"id": "task_id", "question": "question", "row": "source_row"}
"""Kind of key -> the column of the ``tasks`` table that it is compared with."""


def _row_number(value: Any) -> int:
    try:
        number = float(value)
        if isinstance(value, bool) or number != int(number):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{value!r} is no number of a row") from None
    return int(number)
