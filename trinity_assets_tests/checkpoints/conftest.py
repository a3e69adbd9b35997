"""One small, valid checkpoint to read, to route with, and to break."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trinity_assets.backbones.specs import FeatureSpec, WeightsIdentity
from trinity_assets.checkpoints.directory import write_checkpoint
from trinity_assets.checkpoints.manifest import (
    DataRecord,
    EvaluationRecord,
    ManifestFields,
    Policy,
    PoolEntry,
    Rows,
    TrainerRecord,
)

POOL = ("ada", "bob", "cyd")
HEAD = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], dtype=np.float32)
FEATURE_SPEC = FeatureSpec(
    weights=WeightsIdentity(source="tiny", sha256="0" * 64),
    hidden_size=4,
    transcript="raw",
    position=-2,
    dtype="float32",
    max_tokens=64,
    overlong="keep_tail",
)


def entry(name: str) -> PoolEntry:
    return PoolEntry(name=name, digest=name[0].encode().hex() * 32, provider={}, model="m", prompt={}, sampling={})


@pytest.fixture
def fields() -> ManifestFields:
    return ManifestFields(
        router="starter",
        pool=tuple(entry(name) for name in POOL),
        rows=Rows(workers=3),
        offsets=(0.0, 0.0, 0.0),
        policy=Policy(kind="head"),
        feature_spec=FEATURE_SPEC,
        trainer=TrainerRecord(kind="ridge", settings={"alphas": [1.0]}),
        data=DataRecord(tasks={"quiz": "1" * 64}, gold={}, answers={}, solves={}, features={}, table="2" * 64),
        evaluation=EvaluationRecord(verdict="tie", accuracy=0.5, interval=(-0.1, 0.1), baselines={}, n_test=40),
        environment={"numpy": "2"},
    )


@pytest.fixture
def checkpoint(tmp_path, fields) -> Path:
    return write_checkpoint(tmp_path, fields, HEAD)
