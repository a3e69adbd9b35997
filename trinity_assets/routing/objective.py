"""Objectives: what a trainer asks. Heads go in, rewards come out.

The one here scores heads on a table of recorded outcomes. A reward that plays whole conversations is another
objective behind the same protocol.

**Rule for missing cells.** An unknown score is masked: on that task the worker cannot be chosen, and the head falls to
its best-scored worker among the known. A task on which nothing is known is left out. **Rule for ties.** Equal logits go
to the earlier worker of the pool, in training, in evaluation and when served.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pandas as pd

from trinity_assets.errors import TrainingError
from trinity_assets.routing.split import TRAIN
from trinity_assets.routing.table import score_matrix

CHUNK_LOGITS = 1 << 18
"""Logits computed at once: 1 MiB of float32, which a core's cache holds until they have been reduced."""


class Objective(Protocol):
    """Rewards heads. A head is (L, H): one row per worker of the pool, applied to a feature of width H."""

    @property
    def shape(self) -> tuple[int, int]:
        """(L, H) of the heads it takes."""
        ...

    def __call__(self, heads: np.ndarray) -> np.ndarray:
        """The reward of each head: (P, L, H) float32 -> (P,) float64, higher is better."""
        ...

    def reduced(self) -> tuple[Objective, np.ndarray | None]:
        """An objective equal to this one over narrower heads, and the basis (r, H) that widens them.

        ``narrow @ basis`` has the reward of ``narrow``. An objective that knows no narrower space returns itself and
        None.
        """
        ...


class RoutedScore:
    """The mean score of the worker that each head picks, over tasks that tell workers apart.

    Tasks on which all known scores are equal add a constant to every head; they enter as their sum and count only.

    Args:
        features: (n, H) float32.
        scores: (n, L), NaN where unknown, each row with at least one known score.
        other_reward: the summed score of the tasks left out for telling no workers apart.
        other_tasks: their number.
    """

    def __init__(self, features: np.ndarray, scores: np.ndarray, other_reward: float, other_tasks: int) -> None:
        self._features = np.ascontiguousarray(features, dtype=np.float32)
        unknown = np.isnan(scores)
        self._unknown = unknown if unknown.any() else None
        self._scores = np.where(unknown, 0.0, scores).astype(np.float32)
        self._other_reward = other_reward
        self._tasks = len(scores) + other_tasks
        self._other_tasks = other_tasks

    @property
    def shape(self) -> tuple[int, int]:
        return self._scores.shape[1], self._features.shape[1]

    def __call__(self, heads: np.ndarray) -> np.ndarray:
        """Rewards of (P, L, H) heads as one matrix product per chunk of tasks, then argmax and gather."""
        population, workers, hidden = heads.shape
        columns = heads.astype(np.float32, copy=False).reshape(population * workers, hidden).T
        total = np.full(population, self._other_reward, dtype=np.float64)
        chunk = max(1, CHUNK_LOGITS // columns.shape[1])
        for start in range(0, len(self._features), chunk):
            rows = slice(start, start + chunk)
            logits = (self._features[rows] @ columns).reshape(-1, population, workers)
            if self._unknown is not None:
                np.copyto(logits, -np.inf, where=self._unknown[rows, None, :])
            chosen = logits.argmax(axis=2)
            picked = np.take_along_axis(self._scores[rows, None, :], chosen[:, :, None], axis=2)
            total += picked[:, :, 0].sum(axis=0, dtype=np.float64)
        return total / self._tasks

    def reduced(self) -> tuple[RoutedScore, np.ndarray | None]:
        """With fewer tasks than features, heads differ only within the row space of the features."""
        if not 0 < len(self._features) < self._features.shape[1]:
            return self, None
        coordinates, basis = row_space(self._features)
        scores = self._scores if self._unknown is None else np.where(self._unknown, np.nan, self._scores)
        return RoutedScore(coordinates, scores, self._other_reward, self._other_tasks), basis


class TableObjective:
    """A head's mean score over the tasks of a table; trainers that want the table itself find it here.

    Attributes:
        features: (n, H) float32, the tasks with at least one known score.
        scores: (n, L) float64, NaN where unknown.
        folds: (n,) int, the cross-validation fold of each task.
        dropped: tasks left out because no worker's score is known.
        undecided: of the n tasks, those on which all known scores are equal.
    """

    def __init__(self, features: np.ndarray, scores: np.ndarray, folds: np.ndarray) -> None:
        if features.ndim != 2 or scores.ndim != 2 or not len(features) == len(scores) == len(folds):
            raise TrainingError(
                f"features {features.shape}, scores {scores.shape} and folds {folds.shape} are not rows of one table"
            )
        known = np.logical_not(np.isnan(scores)).any(axis=1)
        if not known.any():
            raise TrainingError("no task in train has a known score; settle some answers or lower the split's test")
        self.dropped = int(len(scores) - np.count_nonzero(known))
        self.features = np.ascontiguousarray(features[known], dtype=np.float32)
        self.scores = np.asarray(scores[known], dtype=np.float64)
        self.folds = np.asarray(folds)[known]
        lowest = np.nanmin(self.scores, axis=1)
        decided = np.nanmax(self.scores, axis=1) > lowest
        self.undecided = int(len(decided) - decided.sum())
        self._routed = RoutedScore(
            self.features[decided], self.scores[decided], float(lowest[~decided].sum()), self.undecided
        )

    @property
    def shape(self) -> tuple[int, int]:
        return self.scores.shape[1], self.features.shape[1]

    def __call__(self, heads: np.ndarray) -> np.ndarray:
        return self._routed(heads)

    def reduced(self) -> tuple[RoutedScore, np.ndarray | None]:
        return self._routed.reduced()

    def constant_rewards(self) -> np.ndarray:
        """(L,) the mean known score of always asking each worker; NaN for a worker with none."""
        known = ~np.isnan(self.scores)
        with np.errstate(invalid="ignore"):
            return np.where(known, self.scores, 0.0).sum(axis=0) / known.sum(axis=0)


def training_objective(table: pd.DataFrame, features: np.ndarray, workers: Sequence[str]) -> TableObjective:
    """The objective over the table's train tasks; ``features`` (n, H) are aligned to the table's rows.

    Raises:
        TrainingError: the split left no task to learn from, or none of them has a known score.
    """
    train = (table["split"] == TRAIN).to_numpy()
    if not train.any():
        raise TrainingError(f"all {len(table)} tasks fell into test; add tasks or lower the split's test part")
    return TableObjective(features[train], score_matrix(table, workers)[train], table["fold"].to_numpy()[train])


def row_space(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates (n, r) and orthonormal basis (r, H), float32, with ``features = coordinates @ basis``.

    By the thin singular value decomposition; r is the numerical rank in float32.
    """
    left, singular, basis = np.linalg.svd(features.astype(np.float64), full_matrices=False)
    smallest = singular[0] * max(features.shape) * np.finfo(np.float32).eps if singular.size else 0.0
    rank = max(1, int((singular > smallest).sum()))
    return (left[:, :rank] * singular[:rank]).astype(np.float32), basis[:rank].astype(np.float32)


def route(features: np.ndarray, head: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
    """The worker (n,) that ``head`` (L, H) picks for each feature (n, H), among the ``known`` (n, L) if given."""
    logits = features @ head.T
    if known is not None:
        logits = np.where(known, logits, -np.inf)
    return logits.argmax(axis=1)
