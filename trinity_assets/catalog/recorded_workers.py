"""From a recorded worker's entry to its spec: every column named, every file's bytes fixed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trinity_assets.benchmarks.specs import FieldMapping
from trinity_assets.catalog.entries import RecordedWorkerEntry
from trinity_assets.recorded.files import file_versions
from trinity_assets.recorded.formats import resolved
from trinity_assets.recorded.specs import RecordedCell, RecordedWorkerSpec


def recorded_worker(
    name: str, entry: RecordedWorkerEntry, fields: Mapping[str, FieldMapping], directory: Path
) -> tuple[RecordedWorkerSpec, dict[str, str]]:
    """The worker ``name``, and per benchmark what is wrong with its outcomes there, which it then lacks.

    ``fields`` are the benchmarks' mappings, which tell a format where a log holds the benchmark's own columns.
    """
    model = entry.model or name
    cells: dict[str, RecordedCell] = {}
    problems: dict[str, str] = {}
    for benchmark, outcomes in entry.recorded.items():
        try:
            mapped = resolved(outcomes, model, fields[benchmark])
        except ValueError as error:
            problems[benchmark] = str(error)
        else:
            cells[benchmark] = RecordedCell(outcomes=mapped, files=file_versions(mapped, directory))
    return RecordedWorkerSpec(name=name, model=model, cells=cells, price=entry.price), problems


def lacking(pool: Mapping[str, Any], benchmark: str) -> list[str]:
    """The recorded workers among the entries of a ``pool`` that have no outcomes on ``benchmark``."""
    recorded = {name: entry for name, entry in pool.items() if isinstance(entry, RecordedWorkerEntry)}
    return [name for name, entry in recorded.items() if benchmark not in entry.recorded]
