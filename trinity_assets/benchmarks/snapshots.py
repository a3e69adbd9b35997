"""Snapshots: one benchmark's tasks frozen as two tables, what is asked and how it is graded.

They are two so that a corrected gold answer regrades the answers without asking for them again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from trinity_assets.benchmarks.formats import Row
from trinity_assets.benchmarks.multiple_choice import options_of
from trinity_assets.benchmarks.near_duplicates import near_duplicate_groups
from trinity_assets.benchmarks.selection import Selection, select_rows
from trinity_assets.benchmarks.sources import read_rows
from trinity_assets.benchmarks.specs import ANSWER_KEY, CHOICE_KEYS, Quarantined, SnapshotSpec, prompt_fields
from trinity_assets.errors import TaskSourceError, listed
from trinity_assets.spec import canonical_json, digest

TASKS_SCHEMA = pa.schema(
    {
        "task_id": pa.string(),
        "question": pa.string(),
        "fields": pa.string(),
        "category": pa.string(),
        "group": pa.string(),
        "task_digest": pa.string(),
        "source_row": pa.int64(),
    }
)
GOLD_SCHEMA = pa.schema({"task_id": pa.string(), "payload": pa.string(), "gold_digest": pa.string()})


@dataclass(frozen=True)
class Snapshot:
    """The two tables of a benchmark, both in source order, and the data versions of what they decide.

    ``quarantined`` lists what the catalog took out of the selection, in source order.
    """

    tasks: pd.DataFrame
    gold: pd.DataFrame
    tasks_version: str
    gold_version: str
    quarantined: tuple[Quarantined, ...] = ()


def take_snapshot(spec: SnapshotSpec, catalog_dir: Path) -> Snapshot:
    """Read the source and freeze the selected tasks.

    Raises:
        TaskSourceError: the source cannot be read, a field is missing, a question is empty, an id or a task repeats;
            every faulty row is named and none is dropped.
    """
    rows = read_rows(spec.source, catalog_dir)
    if not rows:
        raise TaskSourceError(f"benchmark {spec.name}: the source holds no rows")
    ids = [_task_id(spec, row, number) for number, row in enumerate(rows)]
    selection = select_rows(spec, ids)
    read = {number: _read_row(spec, rows[number]) for number in selection.order}
    _refuse_faults(spec, ids, selection.kept, read)
    if not selection.kept:
        raise TaskSourceError(f"benchmark {spec.name}: every selected task is quarantined")
    tasks = _tasks(ids, selection.kept, read)
    tasks["group"] = _groups(ids, selection, read)
    payloads = tasks.pop("payload")
    gold = pd.DataFrame(
        {
            "task_id": tasks["task_id"],
            "payload": payloads,
            "gold_digest": [digest(json.loads(payload)) for payload in payloads],
        }
    )
    decided = ["task_id", "task_digest", "category", "group"]
    return Snapshot(
        tasks[TASKS_SCHEMA.names],
        gold,
        tasks_version=digest(tasks[decided].values.tolist()),
        gold_version=digest(gold[["task_id", "gold_digest"]].values.tolist()),
        quarantined=tuple(selection.quarantined[number] for number in sorted(selection.quarantined)),
    )


def rendered_prompts(spec: SnapshotSpec, tasks: pd.DataFrame) -> dict[str, str]:
    """The benchmark's prompt of every task, by task id, in task order; a field that is a list is one item a line."""
    return {
        task_id: spec.prompt.format(
            question=question, **{name: _one_item_a_line(value) for name, value in json.loads(fields).items()}
        )
        for task_id, question, fields in zip(tasks["task_id"], tasks["question"], tasks["fields"], strict=True)
    }


def _one_item_a_line(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return "\n".join(item if isinstance(item, str) else canonical_json(item) for item in value)


def _task_id(spec: SnapshotSpec, row: Row, number: int) -> str | None:
    """The task's id, None where the row has none that can be kept."""
    if spec.fields.id is None:
        return f"{spec.name}/{number}"
    value = row.get(spec.fields.id)
    return None if value is None or _json_problem(str(value)) else str(value)


@dataclass(frozen=True)
class _ReadRow:
    """What one row holds: a task without its id and group, or ``problems``, why it is none.

    ``shown`` and ``payload`` are canonical JSON: the fields that the prompt shows beside the question, and the gold.
    """

    question: str = ""
    shown: str = ""
    category: str = ""
    payload: str = ""
    problems: tuple[str, ...] = ()

    @cached_property
    def task_digest(self) -> str:
        """What a worker is asked by this row."""
        return digest([self.question, self.shown])


def _read_row(spec: SnapshotSpec, row: Row) -> _ReadRow:
    if problems := _unfit_fields(spec, row):
        return _ReadRow(problems=tuple(problems))
    mapping = spec.fields
    question = row[mapping.question]
    payload = {key: row[field] for key, field in mapping.gold.items()}
    if mapping.choices is not None:
        try:
            options = options_of(row, mapping.choices)
            payload[ANSWER_KEY] = options.right_label(payload[ANSWER_KEY])
        except ValueError as error:
            return _ReadRow(problems=(str(error),))
        payload |= dict(zip(CHOICE_KEYS, (options.texts, options.labels), strict=True))
        question = options.shown_below(question)
    return _ReadRow(
        question,
        canonical_json({name: row[name] for name in sorted(prompt_fields(spec.prompt) - {"question"})}),
        str(row[mapping.category]) if mapping.category else spec.name,
        canonical_json(payload),
    )


def _unfit_fields(spec: SnapshotSpec, row: Row) -> list[str]:
    """What of the fields of ``row`` is missing or cannot be kept, or an empty question."""
    mapping = spec.fields
    kept = {
        mapping.question,
        *mapping.gold.values(),
        *mapping.choice_fields,
        *(prompt_fields(spec.prompt) - {"question"}),
    }
    named = {field for field in (mapping.id, mapping.category) if field}
    absent = sorted(field for field in kept | named if row.get(field) is None)
    if absent:
        return [f"no field {', '.join(map(repr, absent))} (it has {', '.join(sorted(row))})"]
    values = {field: row[field] for field in kept} | {field: str(row[field]) for field in named - kept}
    problems = [
        f"field {field!r} cannot be kept as JSON: {problem}"
        for field, value in sorted(values.items())
        if (problem := _json_problem(value))
    ]
    question = row[mapping.question]
    if not isinstance(question, str) or not question.strip():
        problems.append(f"the question in field {mapping.question!r} is empty or not text")
    return problems


def _refuse_faults(
    spec: SnapshotSpec, ids: Sequence[str | None], kept: Sequence[int], read: Mapping[int, _ReadRow]
) -> None:
    """Raise for what is wrong with ``kept`` rows, alone or beside each other."""
    faults: dict[int, list[str]] = {}
    row_of_id: dict[str, int] = {}
    row_of_task: dict[str, int] = {}
    for number in kept:
        found = [f"row {number}: {problem}" for problem in read[number].problems]
        task_id = ids[number]
        if task_id is not None and (earlier := row_of_id.setdefault(task_id, number)) != number:
            found.append(f"row {number}: the id {task_id!r} was already used by row {earlier}")
        if not found and (earlier := row_of_task.setdefault(read[number].task_digest, number)) != number:
            same = f"row {number} asks the same as row {earlier}"
            found.append(f"{same}; quarantine one of them or correct the source")
        if found:
            faults[number] = found
    if faults:
        lines = [line for found in faults.values() for line in found]
        raise TaskSourceError(
            f"benchmark {spec.name}: {len(faults)} of {len(kept)} rows are not tasks:\n  " + listed(lines, "\n  ")
        )


def _tasks(ids: Sequence[str | None], kept: Sequence[int], read: Mapping[int, _ReadRow]) -> pd.DataFrame:
    """The tasks in ``kept`` rows, with the gold ``payload`` and without the group."""
    return pd.DataFrame(
        [
            {
                "task_id": ids[number],
                "question": read[number].question,
                "fields": read[number].shown,
                "category": read[number].category,
                "task_digest": read[number].task_digest,
                "source_row": number,
                "payload": read[number].payload,
            }
            for number in kept
        ]
    )


def _groups(ids: Sequence[str | None], selection: Selection, read: Mapping[int, _ReadRow]) -> list[str]:
    """The near-duplicate group of each kept row: the id of its first task in the order of selection.

    What is quarantined still names its group, so that taking it out moves no other task to the other side of a split.
    """
    order = [number for number in selection.order if not read[number].problems]
    first_of = near_duplicate_groups(read[number].question for number in order)
    group_of = {number: ids[order[first]] for number, first in zip(order, first_of, strict=True)}
    return [str(group_of[number]) for number in selection.kept]


def _json_problem(value: Any) -> str | None:
    """Why ``value`` has no canonical JSON (NaN, infinities, dates, bytes, half a surrogate pair), None if it has."""
    try:
        digest(value)
    except (TypeError, ValueError) as error:
        return str(error)
    return None
