"""What perfect choices would reach, and how much of that is luck.

The best of several noisy scores is too good: it was chosen by its noise. With p the chance that a worker solves a task,
a perfect router reaches the mean of ``max p``. The **plain oracle** takes the largest score seen, and lies above that.
The **cross-fitted oracle** chooses by one half of a task's samples and is scored on the other: what it reports is, in
expectation, what its choices are worth, which is at most what a perfect router reaches. The truth lies between the two.

One sample per task has no halves, and nothing else stands in for them: whether a worker solved a task by skill or by
luck cannot be seen in one try. What can be cross-fitted then is a coarser choice, one per benchmark or category, learnt
from other tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from trinity_assets.errors import TrainingError
from trinity_assets.routing.baselines import best_worker, comparable, mean_known
from trinity_assets.routing.table import Cell

HALVES = 2


def plain_oracle(scores: np.ndarray) -> np.ndarray:
    """(n,) the best known score of each task in ``scores`` (n, L); NaN where none is known."""
    known = ~np.isnan(scores)
    return np.where(known.any(axis=1), np.where(known, scores, -np.inf).max(axis=1), np.nan)


def cross_fitted_oracle(halves: np.ndarray) -> np.ndarray:
    """(n,) per task, the score in one half of the samples of the worker that is best in the other, averaged over both.

    Workers that are equally good on the task are told apart by their means in the choosing half over the tasks on which
    they can be compared there (``baselines``, the rule for missing scores), then by their place in the pool.

    Args:
        halves: (n, 2, L), the mean score of each half of the samples, NaN where it is empty.

    Returns:
        NaN for a task on which any worker lacks a half.
    """
    values = [_scored(halves[:, chosen_by], halves[:, 1 - chosen_by]) for chosen_by in range(HALVES)]
    return np.where(np.isnan(halves).any(axis=(1, 2)), np.nan, np.mean(values, axis=0))


def sample_halves(
    solves: Mapping[Cell, pd.DataFrame], tasks: pd.DataFrame, workers: Sequence[str]
) -> np.ndarray | None:
    """The mean score of each half of every worker's samples: (n, 2, L), as :func:`cross_fitted_oracle` takes them.

    Known samples of a task go to the halves in turn; one that was asked once leaves a half empty, which is NaN.

    Args:
        solves: per (worker, benchmark), columns ``task_id, sample, score``.
        tasks: the rows (n) to align to, columns ``task_id, benchmark``.

    Returns:
        None where no task has two known samples of every worker, so that nothing can be cross-fitted.
    """
    halves = np.full((len(tasks), HALVES, len(workers)), np.nan)
    rows = pd.Series(np.arange(len(tasks))).groupby(tasks["benchmark"].to_numpy())
    for benchmark, positions in rows:
        ids = pd.Index(tasks["task_id"].to_numpy()[positions])
        for column, worker in enumerate(workers):
            halves[positions, :, column] = _halves(solves[worker, str(benchmark)], ids)
    return None if np.isnan(halves).any(axis=(1, 2)).all() else halves


def cross_fitted_lookup(scores: np.ndarray, costs: np.ndarray, strata: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """(n,) per task, the score of the worker that is best on the other folds' tasks of its stratum.

    Only tasks on which workers can be compared choose (``baselines``, the rule for missing scores). A stratum without
    one in the other folds takes the worker that is best on all of theirs. With one stratum this is the best single
    worker, cross-fitted.

    Args:
        scores: (n, L), as ``costs`` NaN where unknown.
        strata: (n,) benchmark or category of each task.
        folds: (n,); the tasks of a near-duplicate group share one.

    Raises:
        TrainingError: there are fewer than two folds.
    """
    present = np.unique(folds)
    if len(present) < 2:
        raise TrainingError(f"{len(folds)} tasks lie in {len(present)} fold; to choose and to score takes two")
    values = np.empty(len(scores))
    for fold in present:
        held_out, others = folds == fold, np.flatnonzero(folds != fold)
        learnt = others[comparable(scores[others])]
        overall = best_worker(scores[learnt], costs[learnt])
        for stratum in np.unique(strata[held_out]):
            like = learnt[strata[learnt] == stratum]
            chosen = best_worker(scores[like], costs[like]) if like.size else overall
            rows = held_out & (strata == stratum)
            values[rows] = scores[rows, chosen]
    return values


def _scored(choosing: np.ndarray, scoring: np.ndarray) -> np.ndarray:
    """(n,) the score in ``scoring`` (n, L) of each task's best worker in ``choosing`` (n, L)."""
    preferred = np.argsort(-mean_known(choosing[comparable(choosing)], -np.inf), kind="stable")
    chosen = preferred[np.where(np.isnan(choosing), -np.inf, choosing)[:, preferred].argmax(axis=1)]
    return scoring[np.arange(len(scoring)), chosen]


def _halves(cell: pd.DataFrame, task_ids: pd.Index) -> np.ndarray:
    """(n, 2) the mean score of each half of a cell's known samples of ``task_ids``."""
    known = cell.loc[cell["score"].notna(), ["task_id", "sample", "score"]].sort_values(["task_id", "sample"])
    half = known.groupby("task_id").cumcount().to_numpy() % HALVES
    means = pd.to_numeric(known["score"]).astype("float64").groupby([known["task_id"].to_numpy(), half]).mean()
    return means.unstack().reindex(index=task_ids, columns=range(HALVES)).to_numpy(dtype=np.float64)
