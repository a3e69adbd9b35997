"""The heads of a fitted router, read back from the directory that ``fitted_files`` wrote."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors import SafetensorError, safe_open

from trinity_assets.errors import TrainingError
from trinity_assets.files import file_sha256
from trinity_assets.routing.fitted_files import HEADS_FILE, KIND, FittedHeadsSpec
from trinity_assets.routing.head import METADATA_KEY
from trinity_assets.routing.pool_changes import PoolHead
from trinity_assets.routing.seen_tasks import seen_held_out
from trinity_assets.routing.specs import RouterTraining
from trinity_assets.routing.split import with_split
from trinity_assets.routing.warm_start import EarlierHead, head_to_start_from, named_rows


@dataclass(frozen=True)
class FittedHeads:
    """Heads by name, ``weights`` (L, H) float32 with a row per worker of ``spec``; the sha256 of their file."""

    weights: dict[str, np.ndarray]
    spec: FittedHeadsSpec
    sha256: str

    def to_start_from(
        self, training: RouterTraining, table: pd.DataFrame, questions: Sequence[str] | None = None
    ) -> EarlierHead:
        """The head that a search of ``training`` on ``table`` starts from.

        Args:
            table: what ``fit_router`` takes; the split is that of ``training``, whatever it says.
            questions: (n,) of its rows, None where they are unknown.

        Raises:
            TrainingError: all of them ask one worker, whatever the question, or they, or what they started from, have
                learnt from tasks that are held out now, or nobody knows from which.
        """
        if self.spec.learnt is None:
            raise TrainingError(
                "the head to start from was written without what it has learnt from, which may be held out now; fit "
                "it again"
            )
        held_out = with_split(table.reset_index(drop=True), training.split)
        if seen := seen_held_out(held_out, self.spec.learnt, questions):
            raise TrainingError(
                f"the head to start from has learnt from {seen} of the tasks that are held out now, or from their "
                "near-duplicates; tasks keep their side if benchmarks, groups, --seed and --test are those of then"
            )
        name = head_to_start_from(self.spec.trainers, training)
        return EarlierHead(PoolHead(self.weights[name], named_rows(self.spec.workers)), self.sha256)


def read_fitted_heads(directory: Path) -> FittedHeads:
    """Read the heads in ``directory``.

    Raises:
        TrainingError: it holds none, or they are damaged.
    """
    path = directory / HEADS_FILE
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})[METADATA_KEY])
            if header["kind"] != KIND:
                raise ValueError(f"it holds {header['kind']}")
            spec = FittedHeadsSpec.model_validate(header["spec"])
            weights = {name: file.get_tensor(name) for name in spec.trainers}
        sha256 = file_sha256(path)
    except (OSError, SafetensorError, KeyError, ValueError, TypeError) as error:
        raise TrainingError(
            f"{path} does not hold the heads of a fitted router: {error}; give a directory that `trinity-assets train "
            "--out` wrote"
        ) from error
    if any(head.shape[:1] != (len(spec.workers),) or not np.isfinite(head).all() for head in weights.values()):
        raise TrainingError(f"{path} is damaged: its heads are not one row of finite numbers per worker; fit it again")
    return FittedHeads(weights, spec, sha256)
