"""Snapshots: one benchmark's tasks frozen as two tables, what is asked and how it is graded.

They are two so that a corrected gold answer regrades the answers without asking for them again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from trinity_assets.benchmarks.formats import Row, listed
from trinity_assets.benchmarks.multiple_choice import options_of
from trinity_assets.benchmarks.near_duplicates import near_duplicate_groups
from trinity_assets.benchmarks.selection import Selection, select_rows
from trinity_assets.benchmarks.sources import read_rows
from trinity_assets.benchmarks.specs import ANSWER_KEY, FieldMapping, Quarantined, SnapshotSpec, prompt_fields
from trinity_assets.errors import TaskSourceError
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
    tasks = _tasks(spec, rows, ids, selection.kept)
    if tasks.empty:
        raise TaskSourceError(f"benchmark {spec.name}: every selected task is quarantined")
    tasks["group"] = _groups(spec, rows, ids, selection, tasks)
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


def _tasks(spec: SnapshotSpec, rows: Sequence[Row], ids: Sequence[str | None], kept: Sequence[int]) -> pd.DataFrame:
    """The tasks in ``kept`` rows, with the gold ``payload`` and without the group, or every fault of these rows."""
    faults: list[str] = []
    columns: dict[str, list[Any]] = {
        name: [] for name in ("task_id", "question", "fields", "category", "task_digest", "source_row", "payload")
    }
    row_of_id: dict[str, int] = {}
    row_of_task: dict[str, int] = {}
    shown = sorted(prompt_fields(spec.prompt) - {"question"})
    category = spec.fields.category
    for number in kept:
        row, task_id = rows[number], ids[number]
        problems = _row_problems(spec, row)
        if task_id is not None and (earlier := row_of_id.setdefault(task_id, number)) != number:
            problems.append(f"the id {task_id!r} was already used by row {earlier}")
        if not problems:
            question, payload = _asked_and_gold(spec.fields, row)
            fields = canonical_json({name: row[name] for name in shown})
            task_digest = digest([question, fields])
            if (earlier := row_of_task.setdefault(task_digest, number)) != number:
                same = f"row {number} asks the same as row {earlier}"
                faults.append(f"{same}; quarantine one of them or correct the source")
            values = (
                task_id,
                question,
                fields,
                str(row[category]) if category else spec.name,
                task_digest,
                number,
                canonical_json(payload),
            )
            for column, value in zip(columns.values(), values, strict=True):
                column.append(value)
        faults += [f"row {number}: {problem}" for problem in problems]
    if faults:
        raise TaskSourceError(f"benchmark {spec.name}: {len(faults)} rows are not tasks:\n  " + listed(faults, "\n  "))
    return pd.DataFrame(columns)


def _asked_and_gold(mapping: FieldMapping, row: Row) -> tuple[str, dict[str, Any]]:
    """What the task asks, and its gold payload.

    Raises:
        ValueError: its options, or which of them is right, cannot be read.
    """
    question = row[mapping.question]
    payload = {key: row[field] for key, field in mapping.gold.items()}
    if mapping.choices is None:
        return question, payload
    options = options_of(row, mapping.choices)
    payload |= {"choices": options.texts, "labels": options.labels}
    return options.shown_below(question), payload | {ANSWER_KEY: options.right_label(payload[ANSWER_KEY])}


def _row_problems(spec: SnapshotSpec, row: Row) -> list[str]:
    """Why ``row`` is no task: what it lacks, what cannot be kept, an empty question, options that are none."""
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
    if not problems:
        try:
            _asked_and_gold(mapping, row)
        except ValueError as error:
            problems.append(str(error))
    return problems


def _groups(
    spec: SnapshotSpec, rows: Sequence[Row], ids: Sequence[str | None], selection: Selection, tasks: pd.DataFrame
) -> list[str]:
    """The near-duplicate group of each of ``tasks``: the id of its first task in the order of selection.

    What is quarantined still names its group, so that taking it out moves no other task to the other side of a split.
    """
    asked: dict[int, str] = dict(zip(tasks["source_row"], tasks["question"], strict=True))
    asked |= {
        number: _asked_and_gold(spec.fields, rows[number])[0]
        for number in selection.quarantined
        if not _row_problems(spec, rows[number])
    }
    order = [number for number in selection.order if number in asked]
    first_of = near_duplicate_groups(asked[number] for number in order)
    group_of = {number: ids[order[first]] for number, first in zip(order, first_of, strict=True)}
    return [str(group_of[number]) for number in tasks["source_row"]]


def _json_problem(value: Any) -> str | None:
    """Why ``value`` has no canonical JSON (NaN, infinities, dates, bytes, half a surrogate pair), None if it has."""
    try:
        digest(value)
    except (TypeError, ValueError) as error:
        return str(error)
    return None
