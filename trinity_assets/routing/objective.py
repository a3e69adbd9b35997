"""Objectives: what a trainer asks. Heads go in, rewards come out.

The one here scores heads on a table of recorded outcomes. A reward that plays whole conversations is another
objective behind the same protocol.

**Rule for missing cells.** An unknown score is masked: on that task the worker cannot be chosen, and the head falls to
its best-scored worker among the known. A task on which nothing is known is left out. **Rule for ties.** Equal logits go
to the earlier worker of the pool, in training, in evaluation and when served.

**Rule for costs.** A cost-aware objective rewards ``score - cost_weight * cost``, the cost being in USD per 1000
answers: at a weight of 0.01, a point of accuracy is worth one dollar per thousand questions. The unknown cost of a
known score counts as that worker's mean known cost (``charged``), and a worker of which no cost is known is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd

from trinity_assets.errors import TrainingError, listed
from trinity_assets.routing.split import TRAIN
from trinity_assets.routing.table import priced_costs, score_matrix
from trinity_assets.workers.specs import Price

CHUNK_LOGITS = 1 << 16
"""Logits computed at once: 256 KiB of float32, which a core's cache holds beside their sums until they are reduced."""

ANSWERS_PER_COST = 1000
"""A cost enters the reward as USD per this many answers, the unit of reports."""


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
        """An objective equal to this one over narrower heads, and the orthonormal basis (r, H) that widens them.

        ``narrow @ basis`` has the reward of ``narrow``. An objective that knows no narrower space returns itself and
        None.
        """
        ...

    def validation(self) -> tuple[Objective, Objective] | None:
        """An objective to search on and one to validate on, which share no task; None if it cannot be parted."""
        ...

    def digest(self) -> str:
        """What tells it from every objective that rewards otherwise, as 64 hex digits."""
        ...


@runtime_checkable
class MirroredObjective(Protocol):
    """An objective that is cheaper to ask for heads in pairs, on either side of a mean."""

    def mirrored(self, mean: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """The rewards (2 P,) of ``mean + steps``, then of ``mean - steps``; mean (L, H) and steps (P, L, H)."""
        ...


def mirrored_rewards(objective: Objective, mean: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """The rewards (2 P,) of ``mean + steps`` and ``mean - steps``, by the objective's own shortcut if it has one."""
    if isinstance(objective, MirroredObjective):
        return objective.mirrored(mean, steps)
    return objective(np.concatenate([mean + steps, mean - steps]).astype(np.float32))


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
        unknown = np.ascontiguousarray(np.isnan(scores).T)
        self._unknown = unknown if unknown.any() else None
        self._scores = np.where(unknown, 0.0, scores.T).astype(np.float32)  # (L, n), as they are read
        self._other_reward = other_reward
        self._tasks = len(scores) + other_tasks
        self._other_tasks = other_tasks

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._scores), self._features.shape[1]

    def __call__(self, heads: np.ndarray) -> np.ndarray:
        """Rewards of (P, L, H) heads as one matrix product per chunk of tasks, which are then reduced."""
        total = np.full(len(heads), self._other_reward, dtype=np.float64)
        for rows, logits in self._products(heads):
            total += self._collected(rows, logits)
        return total / self._tasks

    def mirrored(self, mean: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """As a logit is linear in the head, a pair costs the product of one head; the mean's product is shared."""
        pairs = len(steps)
        total = np.full(2 * pairs, self._other_reward, dtype=np.float64)
        for rows, products in self._products(np.concatenate([mean[None], steps])):
            centre, sides = products[:, :1], products[:, 1:]
            logits = np.empty((len(products), 2 * pairs, products.shape[2]), dtype=np.float32)
            np.add(centre, sides, out=logits[:, :pairs])
            np.subtract(centre, sides, out=logits[:, pairs:])
            total += self._collected(rows, logits)
        return total / self._tasks

    def _products(self, heads: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Chunks of tasks with their logits (L, P, chunk) under every head."""
        population, workers, hidden = heads.shape
        by_worker = np.ascontiguousarray(heads.transpose(1, 0, 2), dtype=np.float32).reshape(-1, hidden)
        chunk = max(1, CHUNK_LOGITS // len(by_worker))
        for start in range(0, len(self._features), chunk):
            rows = slice(start, start + chunk)
            yield rows, (by_worker @ self._features[rows].T).reshape(workers, population, -1)

    def _collected(self, rows: slice, logits: np.ndarray) -> np.ndarray:
        """The summed scores (P,) of the workers that the logits (L, P, chunk), which are overwritten, pick.

        Worker by worker along the tasks, which numpy does in long vectors; its argmax over a few workers does not.
        """
        if self._unknown is not None:
            np.copyto(logits, -np.inf, where=self._unknown[:, None, rows])
        highest, collected = logits[0], np.broadcast_to(self._scores[0, rows], logits.shape[1:])
        for challenger, score in zip(logits[1:], self._scores[1:, rows], strict=True):
            collected = np.where(challenger > highest, score, collected)
            np.maximum(highest, challenger, out=highest)
        return collected.sum(axis=1, dtype=np.float64)

    def reduced(self) -> tuple[RoutedScore, np.ndarray | None]:
        """With fewer tasks than features, heads differ only within the row space of the features."""
        if not 0 < len(self._features) < self._features.shape[1]:
            return self, None
        coordinates, basis = row_space(self._features)
        return RoutedScore(coordinates, self._masked_scores(), self._other_reward, self._other_tasks), basis

    def validation(self) -> None:
        return None

    def digest(self) -> str:
        return _arrays_digest(
            self._features, self._masked_scores(), np.array([self._other_reward, self._other_tasks], dtype=np.float64)
        )

    def _masked_scores(self) -> np.ndarray:
        return self._scores.T if self._unknown is None else np.where(self._unknown, np.nan, self._scores).T


class TableObjective:
    """A head's mean score over the tasks of a table; trainers that want the table itself find it here.

    Attributes:
        features: (n, H) float32, the tasks with at least one known score.
        scores: (n, L) float64, NaN where unknown.
        costs: (n, L) float64 in USD per answer, NaN where unknown.
        cost_weight: the score that a cost of 1 USD per 1000 answers is worth.
        rewarded: (n, L) float64, what asking each worker is rewarded with: the scores less their weighted costs.
        folds: (n,) int, the cross-validation fold of each task.
        dropped: tasks left out because no worker's score is known.
        undecided: of the n tasks, those on which all known workers are rewarded equally.
        workers: (L,) their names, for messages; None where they have none.
    """

    def __init__(
        self,
        features: np.ndarray,
        scores: np.ndarray,
        folds: np.ndarray,
        costs: np.ndarray | None = None,
        cost_weight: float = 0.0,
        workers: Sequence[str] | None = None,
    ) -> None:
        if features.ndim != 2 or scores.ndim != 2 or not len(features) == len(scores) == len(folds):
            raise TrainingError(
                f"features {features.shape}, scores {scores.shape} and folds {folds.shape} are not rows of one table"
            )
        if costs is not None and costs.shape != scores.shape:
            raise TrainingError(f"costs {costs.shape} and scores {scores.shape} are not of one table")
        if workers is not None and len(workers) != scores.shape[1]:
            raise TrainingError(f"{len(workers)} names and scores {scores.shape} are not of one pool")
        known = np.logical_not(np.isnan(scores)).any(axis=1)
        if not known.any():
            raise TrainingError("no task in train has a known score; settle some answers or lower the split's test")
        self.dropped = int(len(scores) - np.count_nonzero(known))
        self.features = np.ascontiguousarray(features[known], dtype=np.float32)
        self.scores = np.asarray(scores[known], dtype=np.float64)
        self.folds = np.asarray(folds)[known]
        self.costs = np.full_like(self.scores, np.nan) if costs is None else np.asarray(costs[known], dtype=np.float64)
        self.cost_weight = cost_weight
        self.workers = None if workers is None else tuple(workers)
        self.rewarded = self.scores
        if cost_weight:
            self.rewarded = self.scores - cost_weight * ANSWERS_PER_COST * self.charged()
        lowest = np.nanmin(self.rewarded, axis=1)
        decided = np.nanmax(self.rewarded, axis=1) > lowest
        self.undecided = int(len(decided) - decided.sum())
        self._routed = RoutedScore(
            self.features[decided], self.rewarded[decided], float(lowest[~decided].sum()), self.undecided
        )

    @property
    def shape(self) -> tuple[int, int]:
        return self.scores.shape[1], self.features.shape[1]

    @property
    def unscored(self) -> list[int]:
        """The workers of which no score is known, by pool position."""
        return np.flatnonzero(np.isnan(self.scores).all(axis=0)).tolist()

    def named(self, positions: Iterable[int]) -> str:
        """The workers at ``positions`` as a message says them: by name, or by pool position where they have none."""
        places = [int(position) for position in positions]
        if self.workers is None:
            return f"workers {places} (by pool position)"
        return f"workers {listed([self.workers[place] for place in places], ', ')}"

    def __call__(self, heads: np.ndarray) -> np.ndarray:
        return self._routed(heads)

    def mirrored(self, mean: np.ndarray, steps: np.ndarray) -> np.ndarray:
        return self._routed.mirrored(mean, steps)

    def reduced(self) -> tuple[RoutedScore, np.ndarray | None]:
        return self._routed.reduced()

    def validation(self) -> tuple[TableObjective, TableObjective] | None:
        """The lowest fold without which no worker is lost validates what is searched on the others.

        A worker is lost where all that is known of it is in that fold: nothing would keep its row from winning.

        Returns:
            None where there is no such fold, or none but one.
        """
        known = ~np.isnan(self.scores)
        present = np.unique(self.folds)
        for fold in present if len(present) > 1 else ():
            held_out = self.folds == fold
            if (known[~held_out].any(axis=0) == known.any(axis=0)).all():
                return self._part(~held_out), self._part(held_out)
        return None

    def digest(self) -> str:
        rewarded = (self.costs, np.array([self.cost_weight])) if self.cost_weight else ()
        return _arrays_digest(self.features, self.scores, self.folds.astype(np.int64), *rewarded)

    def at(self, cost_weight: float) -> TableObjective:
        """The same tasks, rewarded at another weight of cost.

        Raises:
            TrainingError: the weight is negative, or nothing is known of what a worker costs.
        """
        if not cost_weight >= 0:
            raise TrainingError(f"a cost weight of {cost_weight} would reward spending; give zero or more")
        return TableObjective(self.features, self.scores, self.folds, self.costs, cost_weight, self.workers)

    def charged(self) -> np.ndarray:
        """(n, L) USD per answer by the rule for costs above: known wherever the score is, else NaN.

        Raises:
            TrainingError: nothing is known of what a worker costs.
        """
        costs = charged(self.scores, self.costs)
        unpriced = np.flatnonzero((np.isnan(costs) & ~np.isnan(self.scores)).any(axis=0))
        if unpriced.size:
            raise TrainingError(
                f"{self.named(unpriced)} have no known cost, which a cost weight needs; declare their price in the "
                "catalog or leave out the cost weights"
            )
        return costs

    def constant_rewards(self) -> np.ndarray:
        """(L,) the mean known reward of always asking each worker; NaN for a worker with none."""
        known = ~np.isnan(self.rewarded)
        with np.errstate(invalid="ignore"):
            return np.where(known, self.rewarded, 0.0).sum(axis=0) / known.sum(axis=0)

    def _part(self, rows: np.ndarray) -> TableObjective:
        costs = self.charged() if self.cost_weight else self.costs
        return TableObjective(
            self.features[rows], self.scores[rows], self.folds[rows], costs[rows], self.cost_weight, self.workers
        )


def training_objective(
    table: pd.DataFrame,
    features: np.ndarray,
    workers: Sequence[str],
    prices: Mapping[str, Price | None] | None = None,
) -> TableObjective:
    """The objective over the table's train tasks; ``features`` (n, H) are aligned to the table's rows.

    Costs are at ``prices``; a worker without one costs what was charged when it was asked. They matter to nothing until
    a cost weight is set.

    Raises:
        TrainingError: the split left no task to learn from, or none of them has a known score.
    """
    train = (table["split"] == TRAIN).to_numpy()
    if not train.any():
        raise TrainingError(f"all {len(table)} tasks fell into test; add tasks or lower the split's test part")
    return TableObjective(
        features[train],
        score_matrix(table, workers)[train],
        table["fold"].to_numpy()[train],
        priced_costs(table, workers, prices or {})[train],
        workers=workers,
    )


def charged(scores: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """(n, L) what is charged for each answer by the rule for costs above, from ``scores`` and ``costs`` (n, L).

    NaN where the score is unknown, and for a worker of which no cost is known.
    """
    known = ~np.isnan(costs)
    counts = known.sum(axis=0)
    means = np.where(counts > 0, np.where(known, costs, 0.0).sum(axis=0) / np.maximum(counts, 1), np.nan)
    return np.where(np.isnan(scores), np.nan, np.where(known, costs, means))


def row_space(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates (n, r) and orthonormal basis (r, H), float32, with ``features = coordinates @ basis``.

    The principal axes, from the eigenvectors of the (n, n) Gram matrix in float64, which takes half the time of a
    singular value decomposition; r is the numerical rank in float32, far above what squaring loses.
    """
    wide = features.astype(np.float64)
    values, left = np.linalg.eigh(wide @ wide.T)
    singular = np.sqrt(np.maximum(values, 0.0))
    smallest = singular[-1] * max(features.shape) * np.finfo(np.float32).eps
    kept = np.flatnonzero(singular > smallest)[::-1] if singular[-1] > 0 else np.array([len(singular) - 1])
    basis = (left[:, kept] / np.where(singular[kept] > 0, singular[kept], 1.0)).T @ wide
    return (left[:, kept] * singular[kept]).astype(np.float32), basis.astype(np.float32)


def route(features: np.ndarray, head: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
    """The worker (n,) that ``head`` (L, H) picks for each feature (n, H), among the ``known`` (n, L) if given."""
    logits = features @ head.T
    if known is not None:
        logits = np.where(known, logits, -np.inf)
    return logits.argmax(axis=1)


def _arrays_digest(*arrays: np.ndarray) -> str:
    """The sha256 of the arrays' shapes, types and values."""
    state = hashlib.sha256()
    for array in arrays:
        state.update(f"{array.shape}{array.dtype.str}".encode())
        state.update(np.ascontiguousarray(array).tobytes())
    return state.hexdigest()
