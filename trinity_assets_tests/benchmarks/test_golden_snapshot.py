"""The same source gives the same bytes on any machine: the sums of a small snapshot, written down.

The bytes are those of one version of pyarrow, whose name is in them; the data versions are those of all.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from trinity_assets.benchmarks.snapshots import GOLD_SCHEMA, TASKS_SCHEMA, take_snapshot
from trinity_assets.benchmarks.sources import source_version
from trinity_assets.benchmarks.specs import FieldMapping, FileSource, Quarantined, SnapshotSpec
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets.store.tables import write_table

PYARROW = "26.0.1"

ROWS: list[dict[str, Any]] = [
    {"id": 1, "q": "Où est la gare?", "kind": "fr", "options": ["ici", "là"], "key": "là", "hints": ["é", "1"]},
    {"id": 2, "q": "What is 1/3?", "kind": "sums", "options": ["0.33…", "1/3", "3"], "key": 1, "hints": []},
    {"id": 3, "q": "Broken", "kind": "sums", "options": ["x", "y"], "key": "A", "hints": []},
    {"id": 4, "q": "WHAT is 1/3?", "kind": "sums", "options": ["0.33…", "1/3", "3"], "key": "C", "hints": ["2"]},
    {"id": 5, "q": "What is 3/1?", "kind": "sums", "options": ["1", "3"], "key": "B", "hints": []},
]
SPEC = SnapshotSpec(
    name="golden",
    source=FileSource(kind="file", path="golden.jsonl"),
    fields=FieldMapping(question="q", category="kind", choices="options", gold={"answer": "key"}),
    prompt="{question} {hints}",
    seed=7,
    limit=5,
    quarantine=(Quarantined(id=3, reason="broken", date=datetime.date(2026, 1, 31)),),
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    lines = [json.dumps(row, ensure_ascii=False) for row in ROWS]
    (tmp_path / "golden.jsonl").write_bytes("\n".join(lines).encode())
    return tmp_path


def test_the_data_versions_of_a_snapshot_are_golden(directory: Path) -> None:
    taken = take_snapshot(SPEC, directory)
    assert taken.tasks["task_id"].tolist() == ["1", "2", "4", "5"]
    assert taken.tasks["group"].tolist() == ["1", "4", "4", "5"], "the seed takes task 4 before task 2"
    assert taken.tasks_version == "062a13c1698737fbc26515ef7c3ce49c77368cc72860e8a446ffda5a67cae1a3"
    assert taken.gold_version == "c6532e2450fecd3f010bd275a3aa27b8649b4e5a17103ddbc32e839f144582f8"


@pytest.mark.skipif(pa.__version__ != PYARROW, reason=f"the golden bytes are those of pyarrow {PYARROW}")
def test_the_bytes_of_a_snapshot_are_golden(directory: Path) -> None:
    taken = take_snapshot(SPEC, directory)
    store = ArtifactStore(directory.as_uri())
    version = source_version(SPEC.source, directory)
    assert version == "506674182a1da0d5d8ca2afbac6da9c51a5ef8f4f183be3fe45302e1be7250c0"
    tasks = write_table(store, "tasks", taken.tasks, TASKS_SCHEMA, SPEC.asked_identity(version))
    gold = write_table(store, "gold", taken.gold, GOLD_SCHEMA, SPEC.gold_identity(version))
    assert tasks == "a36e37f93cae7ab2d3904c9b2d48357b349f662f1c9bc3fa6400b2bdb087786a"
    assert gold == "0a96bf90027593093486e1480bda5526fd20a6aaaa0288dcfcf4d6f52dc581d0"
