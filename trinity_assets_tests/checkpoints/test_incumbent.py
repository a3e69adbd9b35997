"""A published checkpoint on a newer table: whom it asks today, and when it cannot be compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from trinity_assets.checkpoints.directory import write_checkpoint
from trinity_assets.checkpoints.incumbent import incumbent
from trinity_assets.checkpoints.manifest import ManifestFields, Policy
from trinity_assets.errors import CheckpointError
from trinity_assets.routing.head import BestSingle, HeadRow, HeadSpec, write_heads
from trinity_assets.routing.inputs import RouterData
from trinity_assets.routing.table import ROUTER_TABLE, router_table_schema
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets.store.tables import write_table
from trinity_assets_tests.checkpoints.conftest import FEATURE_SPEC, HEAD, POOL
from trinity_assets_tests.routing.planted import features, planted_scores, table_of

DRAWN = features(60, 4)
TABLE = table_of(planted_scores(DRAWN, 3)[0], list(POOL))


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(str(tmp_path / "store"))


@pytest.fixture
def declared(store: ArtifactStore, fields: ManifestFields) -> ManifestFields:
    """The fields of a checkpoint that was trained on ``TABLE``."""
    sha256 = write_table(store, ROUTER_TABLE, TABLE, router_table_schema(list(POOL)), {})
    return fields.model_copy(update={"data": fields.data.model_copy(update={"table": sha256})})


def today(fields: ManifestFields, *names: str) -> RouterData:
    """The same tasks and features with the workers of these names; ``eve`` is new."""
    digests = {entry.name: entry.digest for entry in fields.pool} | {"eve": "e" * 64}
    pool = tuple(HeadRow(name=name, digest=digests[name]) for name in names)
    return RouterData(TABLE, pool, (), DRAWN, FEATURE_SPEC, "4" * 64, {})


def test_it_asks_its_own_workers_wherever_they_stand_now(store, declared, tmp_path):
    path = write_checkpoint(tmp_path, declared, HEAD)
    picked = (DRAWN @ HEAD.T).argmax(axis=1)
    same = incumbent(store, path, today(declared, *POOL))
    assert same.checkpoint == path.name
    np.testing.assert_array_equal(same.chosen, picked)
    np.testing.assert_array_equal(
        incumbent(store, path, today(declared, "eve", "cyd", "ada", "bob")).chosen, np.array([2, 3, 1])[picked]
    )


def test_a_worker_that_left_is_passed_over(store, declared, tmp_path):
    path = write_checkpoint(tmp_path, declared, HEAD)
    left = incumbent(store, path, today(declared, "bob", "cyd")).chosen
    np.testing.assert_array_equal(left, (DRAWN @ HEAD[1:].T).argmax(axis=1))


def test_a_constant_policy_asks_its_worker(store, declared, tmp_path):
    constant = declared.model_copy(update={"policy": Policy(kind="constant", worker="bob")})
    path = write_checkpoint(tmp_path, constant, HEAD)
    assert set(incumbent(store, path, today(declared, "cyd", "bob")).chosen) == {1}
    other = replace(today(declared, "cyd", "bob"), feature_spec=FEATURE_SPEC.model_copy(update={"position": -1}))
    assert set(incumbent(store, path, other).chosen) == {1}, "it reads no feature"
    with pytest.raises(CheckpointError, match="the workers that it asks are not in the pool"):
        incumbent(store, path, today(declared, "ada", "cyd"))


def test_what_cannot_be_compared_says_why(store, declared, tmp_path):
    path = write_checkpoint(tmp_path, declared, HEAD)
    data = today(declared, *POOL)
    with pytest.raises(CheckpointError, match="not a checkpoint, or only part of one"):
        incumbent(store, tmp_path / "gone", data)
    other = FEATURE_SPEC.model_copy(update={"position": -1})
    with pytest.raises(CheckpointError, match="it was made for other features: position"):
        incumbent(store, path, replace(data, feature_spec=other))
    moved = TABLE.assign(split=TABLE["split"].map({"train": "test", "test": "train"}))
    learnt = int((TABLE["split"] == "train").sum())
    with pytest.raises(CheckpointError, match=f"it has learnt from {learnt} of the tasks that are held out now"):
        incumbent(store, path, replace(data, table=moved))
    renamed = moved.assign(task_id=[f"again_{task}" for task in moved["task_id"]])  # near-duplicates of what it learnt
    with pytest.raises(CheckpointError, match=f"it has learnt from {learnt} of the tasks that are held out now"):
        incumbent(store, path, replace(data, table=renamed))
    with pytest.raises(CheckpointError, match="the table that it learnt from is gone"):
        incumbent(ArtifactStore(str(tmp_path / "another")), path, data)


def test_what_its_search_started_from_has_seen_counts_too(store, declared, tmp_path):
    """It was trained on some of the tasks, from a head that was trained on others."""
    data = today(declared, *POOL)
    train, test = (TABLE[TABLE["split"] == side] for side in ("train", "test"))
    schema = router_table_schema(list(POOL))
    seen, own = (write_table(store, ROUTER_TABLE, rows.assign(split="train"), schema, {}) for rows in (test, train))
    spec = HeadSpec(
        router="starter",
        workers=data.pool,
        feature_spec=FEATURE_SPEC,
        table_sha256=seen,
        table_version="5" * 64,
        best_single_on_train=BestSingle(worker="ada", reward=0.5),
        trainers={},
    )
    before, _ = write_heads(store, {}, spec)
    fields = declared.model_copy(update={"data": declared.data.model_copy(update={"table": own})})
    assert len(incumbent(store, write_checkpoint(tmp_path, fields, HEAD), data).chosen) == len(TABLE)
    warm = fields.model_copy(update={"trainer": fields.trainer.model_copy(update={"started_from": before})})
    with pytest.raises(CheckpointError, match=f"it has learnt from {len(test)} of the tasks that are held out now"):
        incumbent(store, write_checkpoint(tmp_path, warm, HEAD), data)
