"""Whether a worker is worth admitting to a pool: what choosing among all gains over choosing among the others."""

from __future__ import annotations

from typing import Literal

import numpy as np

from trinity_assets.errors import TrainingError
from trinity_assets.routing.headroom import LEAST_GAIN, RESAMPLES, Outcomes, known_gain
from trinity_assets.routing.oracle import cross_fitted_oracle, plain_oracle
from trinity_assets.routing.statistics import Gain, estimated_gain, estimated_headroom
from trinity_assets.spec import Spec

FOLDS = 5

Answer = Literal["yes", "no", "unclear"]


class Admission(Spec):
    """What one worker adds to the others of a pool, on the tasks that have all their scores.

    Each gain is a mean over tasks of the score with the worker minus the score without it: of the ``oracle``, which
    noise inflates, so that even a worker who guesses seems to add something; of the ``cross_fitted`` oracle, None
    with one sample per task; of the ``lookup`` per benchmark and of the best ``single`` worker, both cross-fitted over
    tasks.
    """

    n_tasks: int
    n_missing: int
    oracle: Gain
    cross_fitted: Gain | None
    lookup: Gain
    single: Gain

    @property
    def answer(self) -> Answer:
        """``yes`` if a gain that noise does not inflate is above zero, by its interval and its exact test.

        ``no`` if even the oracle's is next to none.
        """
        if any(gain.verdict == "win" for gain in (self.lookup, self.single, self.cross_fitted) if gain):
            return "yes"
        return "no" if self.oracle.high < LEAST_GAIN else "unclear"


def admission(
    scores: np.ndarray,
    benchmarks: np.ndarray,
    worker: int,
    *,
    costs: np.ndarray | None = None,
    folds: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    halves: np.ndarray | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Admission:
    """What the worker in column ``worker`` of ``scores`` (n, L) adds to the others.

    Args:
        scores: NaN where unknown; a task on which any is unknown is left out.
        benchmarks: (n,), what the lookup chooses by.
        costs: (n, L), which decide between equally good workers; None: their places in the pool do.
        folds: (n,), what the lookup is cross-fitted over; None: the groups in turn.
        groups: (n,) near-duplicate group of each task; None if each is its own.
        halves: (n, 2, L), the scores of each half of the samples, as in ``oracle``.

    Raises:
        TrainingError: there is no other worker, or fewer than two groups of tasks have all scores.
    """
    own_groups = np.arange(len(scores)) if groups is None else np.unique(groups, return_inverse=True)[1]
    outcomes = Outcomes(
        scores=scores,
        costs=np.zeros_like(scores) if costs is None else costs,
        benchmarks=benchmarks,
        categories=benchmarks,
        folds=own_groups % FOLDS if folds is None else folds,
        groups=own_groups,
        halves=halves,
    )
    complete = outcomes.complete()
    if scores.shape[1] < 2 or len(np.unique(complete.folds)) < 2:
        raise TrainingError(
            f"{scores.shape[1]} workers and {len(complete)} tasks with all their scores cannot show what a worker adds;"
            " it takes another worker, and tasks in two folds"
        )

    others = complete.among(np.delete(np.arange(scores.shape[1]), worker))

    def gain(added: np.ndarray) -> Gain:
        return estimated_gain(added, resamples, seed, complete.groups, len(np.unique(complete.folds)))

    cross_fitted = None
    if complete.halves is not None and others.halves is not None:
        added = cross_fitted_oracle(complete.halves) - cross_fitted_oracle(others.halves)
        cross_fitted, _ = known_gain(added, complete.groups, resamples, seed)
    return Admission(
        n_tasks=len(complete),
        n_missing=len(outcomes) - len(complete),
        oracle=estimated_headroom(
            plain_oracle(complete.scores) - plain_oracle(others.scores), resamples, seed, complete.groups
        ),
        cross_fitted=cross_fitted,
        lookup=gain(complete.looked_up(complete.benchmarks) - others.looked_up(others.benchmarks)),
        single=gain(complete.looked_up() - others.looked_up()),
    )
