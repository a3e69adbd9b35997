"""What a router learns from and is judged on, read back from the store: its table with the features it refers to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from trinity_assets.backbones.index import read_features
from trinity_assets.backbones.specs import FeatureSpec
from trinity_assets.errors import TrainingError
from trinity_assets.routing.completeness import Dropped
from trinity_assets.routing.head import HeadRow
from trinity_assets.routing.split import TEST, TRAIN
from trinity_assets.routing.table import ROUTER_TABLE, align_features
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets.store.tables import read_table

FEATURES = "features"


@dataclass(frozen=True)
class RouterData:
    """A router table and its features: ``features`` (n, H) float32, aligned to the rows of ``table``.

    ``pool`` are the workers that have columns in it, in the pool's order, and ``dropped`` those that it was made
    without. ``inputs`` are the shas of the artifacts that the table was made from, by asset name.
    """

    table: pd.DataFrame
    pool: tuple[HeadRow, ...]
    dropped: tuple[Dropped, ...]
    features: np.ndarray
    feature_spec: FeatureSpec
    table_sha256: str
    inputs: dict[str, str]

    @property
    def workers(self) -> list[str]:
        """The pool's names in row order."""
        return [row.name for row in self.pool]

    @property
    def train_rows(self) -> int:
        """How many tasks heads may learn from."""
        return int((self.table["split"] == TRAIN).sum())


def read_router_data(store: ArtifactStore, table_sha256: str) -> RouterData:
    """Read a router table and the features that its header refers to (``features/<backbone>/<benchmark>``).

    Raises:
        ArtifactError: one of them is missing or damaged.
        TrainingError: the benchmarks' features were made by different specs, or lack a task.
    """
    table = read_table(store, ROUTER_TABLE, table_sha256)
    indexes = {name.split("/")[-1]: sha for name, sha in table.inputs.items() if name.split("/")[0] == FEATURES}
    features = {benchmark: read_features(store, sha256) for benchmark, sha256 in indexes.items()}
    if not features:
        raise TrainingError(f"the router table {table_sha256[:12]} refers to no features; materialize it again")
    specs = [found.spec for found in features.values()]
    for spec in specs[1:]:
        if differences := specs[0].differences(spec):
            raise TrainingError(f"the benchmarks' features differ: {'; '.join(differences)}; extract them again")
    matrix = align_features(table.frame, {name: (found.task_ids, found.matrix) for name, found in features.items()})
    return RouterData(
        table.frame,
        tuple(HeadRow.model_validate(row) for row in table.spec["pool"]),
        tuple(Dropped.model_validate(worker) for worker in table.spec.get("dropped", ())),
        matrix,
        specs[0],
        table_sha256,
        table.inputs,
    )


def read_questions(store: ArtifactStore, data: RouterData) -> list[str]:
    """The question of each row of the table, from the tasks that it was made from.

    Raises:
        ArtifactError: these are gone or damaged.
    """
    asked: dict[tuple[str, str], str] = {}
    for benchmark in data.table["benchmark"].unique():
        tasks = read_table(store, "tasks", data.inputs[f"benchmarks/{benchmark}/tasks"]).frame
        asked |= {(benchmark, task_id): text for task_id, text in zip(tasks["task_id"], tasks["question"], strict=True)}
    return [asked[row] for row in zip(data.table["benchmark"], data.table["task_id"], strict=True)]


def learnt_from_held_out(store: ArtifactStore, table_sha256: str, data: RouterData) -> int:
    """How many of the tasks that ``data`` holds out are train tasks of an earlier table, or near-duplicates of such.

    Raises:
        ArtifactError: the earlier table is gone or damaged.
    """
    before = read_table(store, ROUTER_TABLE, table_sha256).frame
    held_out = data.table[data.table["split"] == TEST]
    learnt = before[before["split"] == TRAIN]
    seen = np.zeros(len(held_out), dtype=bool)
    for column in ("task_id", "group"):  # a near-duplicate has been seen, too
        known = pd.MultiIndex.from_frame(learnt[["benchmark", column]])
        seen |= pd.MultiIndex.from_frame(held_out[["benchmark", column]]).isin(known)
    return int(seen.sum())
