"""Cross-fitting: every train task is routed by a head that was learnt without it, so that no held-out task is spent.

Stone, "Cross-Validatory Choice and Assessment of Statistical Predictions" (Journal of the Royal Statistical Society B
36(2), 1974). The folds are those of the split, which keep near-duplicates together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trinity_assets.errors import TrainingError
from trinity_assets.routing.baselines import best_single
from trinity_assets.routing.objective import TableObjective
from trinity_assets.routing.trainers.head import TrainedHead

Learn = Callable[[TableObjective], TrainedHead]
"""Learns a head for an objective."""


@dataclass(frozen=True)
class TrainTasks:
    """The train tasks of a table, row by row: features (n, H), scores and costs (n, L), folds (n,), groups (n,).

    ``groups`` number the near-duplicate groups; ``workers`` (L,) are what messages call the columns, None if unknown.
    """

    features: np.ndarray
    scores: np.ndarray
    costs: np.ndarray
    folds: np.ndarray
    groups: np.ndarray
    workers: tuple[str, ...] | None = None

    def objective(self, rows: np.ndarray | None = None) -> TableObjective:
        """What a head learns from all of them, or from some ``rows`` (n,)."""
        chosen = slice(None) if rows is None else rows
        return TableObjective(
            self.features[chosen], self.scores[chosen], self.folds[chosen], self.costs[chosen], workers=self.workers
        )


@dataclass(frozen=True)
class CrossFit:
    """What was chosen for tasks by what was learnt without them.

    Attributes:
        rows: (m,) the tasks, as row numbers of the train tasks: those on which every worker's score is known.
        chosen: (m,) the worker that the head picks.
        reference: (m,) the single worker that was best on what the head learnt from.
        folds: how many folds there were to leave out.
    """

    rows: np.ndarray
    chosen: np.ndarray
    reference: np.ndarray
    folds: int


def cross_fit(tasks: TrainTasks, learn: Learn) -> CrossFit:
    """Leave out fold after fold. Where nothing can be learnt from the others, the reference is chosen.

    With fewer than two folds there is nothing to leave out, and no task is routed.
    """
    complete = ~np.isnan(tasks.scores).any(axis=1)
    present = np.unique(tasks.folds)
    if len(present) < 2:
        nothing = np.empty(0, dtype=np.intp)
        return CrossFit(nothing, nothing, nothing, len(present))
    chosen, reference = (np.zeros(len(tasks.scores), dtype=np.intp) for _ in range(2))
    for fold in present:
        held_out, rest = (tasks.folds == fold) & complete, tasks.folds != fold
        reference[held_out] = best_single(tasks.scores[rest], tasks.costs[rest])
        try:
            head = learn(tasks.objective(rest))
        except TrainingError:
            chosen[held_out] = reference[held_out]
        else:
            chosen[held_out] = head.picks(tasks.features[held_out])
    rows = np.flatnonzero(complete)
    return CrossFit(rows, chosen[rows], reference[rows], len(present))
