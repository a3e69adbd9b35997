"""Snapshots: one benchmark's tasks frozen as two tables, what is asked and how it is graded.

They are two so that a corrected gold answer regrades the answers without asking for them again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from trinity_assets.benchmarks.near_duplicates import near_duplicate_groups
from trinity_assets.benchmarks.sources import Row, read_rows
from trinity_assets.benchmarks.specs import SnapshotSpec, prompt_fields
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
    """The two tables of a benchmark, both in source order, and the data versions of what they decide."""

    tasks: pd.DataFrame
    gold: pd.DataFrame
    tasks_version: str
    gold_version: str


def take_snapshot(spec: SnapshotSpec, catalog_dir: Path) -> Snapshot:
    """Read the source and freeze the selected tasks.

    Raises:
        TaskSourceError: the source cannot be read, a field is missing, a question is empty or an id repeats; every
            faulty row is named and none is dropped.
    """
    rows = read_rows(spec.source, catalog_dir)[: spec.limit]
    if not rows:
        raise TaskSourceError(f"benchmark {spec.name}: the source holds no rows")
    _refuse_faulty_rows(spec, rows)

    ids = [_task_id(spec, row, number) for number, row in enumerate(rows)]
    questions = [row[spec.fields.question] for row in rows]
    shown = sorted(prompt_fields(spec.prompt) - {"question"})
    fields = [canonical_json({name: row[name] for name in shown}) for row in rows]
    category = spec.fields.category
    tasks = pd.DataFrame(
        {
            "task_id": ids,
            "question": questions,
            "fields": fields,
            "category": [str(row[category]) if category else spec.name for row in rows],
            "group": [ids[first] for first in near_duplicate_groups(questions)],
            "task_digest": [digest([q, f]) for q, f in zip(questions, fields, strict=True)],
            "source_row": range(len(rows)),
        }
    )
    payloads = [canonical_json({key: row[field] for key, field in spec.fields.gold.items()}) for row in rows]
    gold = pd.DataFrame({"task_id": ids, "payload": payloads, "gold_digest": [digest(json.loads(p)) for p in payloads]})
    decided = ["task_id", "task_digest", "category", "group"]
    return Snapshot(
        tasks,
        gold,
        tasks_version=digest(tasks[decided].values.tolist()),
        gold_version=digest(gold[["task_id", "gold_digest"]].values.tolist()),
    )


def rendered_prompts(spec: SnapshotSpec, tasks: pd.DataFrame) -> dict[str, str]:
    """The benchmark's prompt of every task, by task id, in task order."""
    return {
        task_id: spec.prompt.format(question=question, **json.loads(fields))
        for task_id, question, fields in zip(tasks["task_id"], tasks["question"], tasks["fields"], strict=True)
    }


def _task_id(spec: SnapshotSpec, row: Row, number: int) -> str:
    return str(row[spec.fields.id]) if spec.fields.id else f"{spec.name}/{number}"


def _refuse_faulty_rows(spec: SnapshotSpec, rows: list[Row]) -> None:
    mapping = spec.fields
    kept = {mapping.question, *mapping.gold.values(), *(prompt_fields(spec.prompt) - {"question"})}
    named = {field for field in (mapping.id, mapping.category) if field}
    faults: list[str] = []
    first_row_of: dict[str, int] = {}
    for number, row in enumerate(rows):
        absent = sorted(field for field in kept | named if row.get(field) is None)
        if absent:
            faults.append(f"row {number}: no field {', '.join(map(repr, absent))} (it has {', '.join(sorted(row))})")
            continue
        values = {field: row[field] for field in kept} | {field: str(row[field]) for field in named - kept}
        for field, value in sorted(values.items()):
            if problem := _json_problem(value):
                faults.append(f"row {number}: field {field!r} cannot be kept as JSON: {problem}")
        question = row[mapping.question]
        if not isinstance(question, str) or not question.strip():
            faults.append(f"row {number}: the question in field {mapping.question!r} is empty or not text")
        earlier = first_row_of.setdefault(_task_id(spec, row, number), number)
        if earlier != number:
            faults.append(f"row {number}: the id {row[mapping.id]!r} was already used by row {earlier}")  # type: ignore[index]
    if faults:
        shown = faults[:20] + ([f"and {len(faults) - 20} more"] if len(faults) > 20 else [])
        raise TaskSourceError(f"benchmark {spec.name}: {len(faults)} rows are not tasks:\n  " + "\n  ".join(shown))


def _json_problem(value: Any) -> str | None:
    """Why ``value`` has no canonical JSON (NaN, infinities, dates, bytes, half a surrogate pair), None if it has."""
    try:
        digest(value)
    except (TypeError, ValueError) as error:
        return str(error)
    return None
