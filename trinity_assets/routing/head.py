"""The head artifact: the weights of every trainer of a router, with all that says what its rows and columns mean."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from safetensors import SafetensorError
from safetensors.numpy import load, save

from trinity_assets.backbones.specs import FeatureSpec
from trinity_assets.errors import ArtifactError
from trinity_assets.routing.baselines import best_single, mean_known
from trinity_assets.routing.split import TRAIN
from trinity_assets.routing.table import priced_costs, score_matrix
from trinity_assets.routing.trainers.head import TrainingRecord
from trinity_assets.spec import Sha256, Spec, canonical_json, digest
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets.workers.specs import Price

METADATA_KEY = "trinity_assets"
KIND = "router_heads"


class HeadRow(Spec):
    """The worker that a row of the head stands for."""

    name: str
    digest: str


class BestSingle(Spec):
    """The worker that is best on train when it is always asked, and its mean known score there."""

    worker: str
    reward: float


class HeadSpec(Spec):
    """What the heads of a router were trained for and on: rows in pool order, the features' spec, each record.

    ``table_version`` is the data version of the table, which other bytes (latencies, say) may share. ``learnt`` is the
    digest of what the heads learnt from and how, whatever the order of the workers (``pool_changes.learnt_digest``);
    None in artifacts of before it was kept.
    """

    router: str
    workers: tuple[HeadRow, ...]
    feature_spec: FeatureSpec
    table_sha256: str
    table_version: str
    best_single_on_train: BestSingle
    trainers: dict[str, TrainingRecord]
    learnt: Sha256 | None = None


@dataclass(frozen=True)
class Heads:
    """A head artifact read back: ``weights`` per trainer are (L, H) float32."""

    weights: dict[str, np.ndarray]
    spec: HeadSpec
    sha256: str

    @property
    def data_version(self) -> str:
        """What follows the weights and the workers of their rows, and nothing else."""
        arrays = sorted(self.weights.items())
        shas = {name: hashlib.sha256(head.astype("<f4").tobytes()).hexdigest() for name, head in arrays}
        return digest({"workers": [row.model_dump() for row in self.spec.workers], "weights": shas})


def best_single_on_train(
    table: pd.DataFrame, workers: Sequence[str], prices: Mapping[str, Price | None] | None = None
) -> BestSingle:
    """The single worker that a router's heads are measured against, from the train tasks of its table.

    Of equally good ones the cheapest at ``prices``; one without a price costs what was charged when it was asked.
    """
    train = table[table["split"] == TRAIN]
    scores = score_matrix(train, workers)
    best = best_single(scores, priced_costs(train, workers, prices or {}))
    return BestSingle(worker=workers[best], reward=float(mean_known(scores, 0.0)[best]))


def write_heads(store: ArtifactStore, weights: Mapping[str, np.ndarray], spec: HeadSpec) -> tuple[str, str]:
    """Keep the heads as one safetensors file, one tensor per trainer; returns its sha256 and its data version.

    Raises:
        ArtifactError: a head does not have one row per worker, or holds values that are not finite.
    """
    arrays = {name: np.ascontiguousarray(head, dtype=np.float32) for name, head in weights.items()}
    for name, head in arrays.items():
        if head.ndim != 2 or len(head) != len(spec.workers) or not np.isfinite(head).all():
            raise ArtifactError(
                f"head {name} of router {spec.router} has shape {head.shape} or values that are not finite; "
                f"expected {len(spec.workers)} rows of finite numbers; train it again"
            )
    metadata = canonical_json({"kind": KIND, "spec": spec.model_dump(mode="json")})
    # One metadata key only: the format keeps several in no fixed order, and equal heads should be equal bytes.
    sha256 = store.put(save(arrays, metadata={METADATA_KEY: metadata}))
    return sha256, Heads(arrays, spec, sha256).data_version


def read_heads(store: ArtifactStore, sha256: str) -> Heads:
    """Read the heads of one router back.

    Raises:
        ArtifactError: missing, damaged, or not a head artifact of this project.
    """
    data = store.get(sha256)
    try:
        tensors = load(data)
        header = json.loads(_metadata(data)[METADATA_KEY])
        if header["kind"] != KIND:
            raise KeyError(header["kind"])
        spec = HeadSpec.model_validate(header["spec"])
        weights = {name: tensors[name] for name in spec.trainers}  # the format keeps tensors in no fixed order
    except (SafetensorError, KeyError, ValueError) as error:
        raise ArtifactError(
            f"artifact {sha256[:12]} does not hold router heads: {error}; materialize the head again"
        ) from error
    return Heads(weights, spec, sha256)


def _metadata(data: bytes) -> dict[str, str]:
    """The ``__metadata__`` of a safetensors file: eight bytes of header length, little endian, then JSON."""
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]).get("__metadata__", {})
