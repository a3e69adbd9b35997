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

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd

from trinity_assets.errors import TrainingError, listed
from trinity_assets.routing.routed_score import RoutedScore, arrays_digest
from trinity_assets.routing.split import TRAIN
from trinity_assets.routing.table import priced_costs, score_matrix
from trinity_assets.workers.specs import Price

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
        return arrays_digest(self.features, self.scores, self.folds.astype(np.int64), *rewarded)

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


def route(features: np.ndarray, head: np.ndarray) -> np.ndarray:
    """The worker (n,) that ``head`` (L, H) picks for each feature (n, H)."""
    return (features @ head.T).argmax(axis=1)
