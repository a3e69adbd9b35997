"""The checkpoint that is published now, as the policy that its successor has to beat on the same held-out tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trinity_assets.checkpoints.directory import load_checkpoint
from trinity_assets.checkpoints.manifest import Manifest
from trinity_assets.errors import ArtifactError, CheckpointError
from trinity_assets.routing.head import HeadRow
from trinity_assets.routing.inputs import RouterData, learnt_from_held_out
from trinity_assets.routing.pool_changes import PoolHead, route_offered
from trinity_assets.routing.warm_start import tables_behind
from trinity_assets.store.artifacts import ArtifactStore


@dataclass(frozen=True)
class Incumbent:
    """What a published checkpoint does today: ``chosen`` (n,) is the worker, by pool position, for each table row."""

    checkpoint: str
    chosen: np.ndarray


def incumbent(store: ArtifactStore, path: Path, data: RouterData) -> Incumbent:
    """The policy of the checkpoint at ``path`` on the tasks of ``data``, among its workers that are still in the pool.

    Raises:
        CheckpointError: it cannot be compared; why is the message: it is gone or damaged, reads other features, knows
            none of the pool's workers, or has learnt from what is held out now.
    """
    checkpoint = load_checkpoint(path)
    manifest = checkpoint.manifest
    places = {row.digest: place for place, row in enumerate(data.pool)}
    asked = [entry for entry in manifest.pool if manifest.policy.worker in (None, entry.name)]
    here = [entry.digest for entry in asked if entry.digest in places]
    if not here:
        raise CheckpointError("the workers that it asks are not in the pool, or are asked otherwise now")
    if seen := _learnt_from_held_out(store, manifest, data):
        raise CheckpointError(f"it has learnt from {seen} of the tasks that are held out now")
    if manifest.policy.worker is not None:  # which reads no feature
        return Incumbent(path.name, np.full(len(data.table), places[here[0]]))
    if differences := manifest.feature_spec.differences(data.feature_spec):
        raise CheckpointError(f"it was made for other features: {'; '.join(differences)}")
    if any(manifest.offsets):
        raise CheckpointError("it adds offsets to its scores, which are not compared yet")
    rows = tuple(HeadRow(name=entry.name, digest=entry.digest) for entry in manifest.pool)
    head = PoolHead(checkpoint.head[: manifest.rows.workers], rows)
    picked = route_offered(data.features, head, here)
    return Incumbent(path.name, np.array([places.get(row.digest, -1) for row in rows])[picked])


def _learnt_from_held_out(store: ArtifactStore, manifest: Manifest, data: RouterData) -> int:
    """The most of these tasks that are behind the checkpoint in one table, its own or that of an earlier head."""
    try:
        before = manifest.trainer.started_from
        tables = [manifest.data.table, *(tables_behind(store, before) if before else ())]
        return max(learnt_from_held_out(store, table, data) for table in tables)
    except ArtifactError as error:
        raise CheckpointError("the table that it learnt from is gone, so what it has seen is unknown") from error
