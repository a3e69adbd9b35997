"""Whether the tasks on which a worker's score is unknown are the hard ones, so that its mean flatters it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trinity_assets.grading.significance import false_discovery_adjusted
from trinity_assets.spec import Spec

SIGNIFICANT = 0.05


class MissingTasks(Spec):
    """The train tasks that lack a worker's score: what the others score there, and on the tasks that have one.

    ``p`` is that of a one-sided permutation test (Phipson and Smyth, 2010) of the missing tasks being no harder,
    adjusted for as many tests as there are workers with missing tasks.
    """

    worker: str
    tasks: int
    others_there: float
    others_elsewhere: float
    p: float

    @property
    def harder(self) -> bool:
        """Whether the others do worse there by more than chance, so that the worker's mean flatters it."""
        return self.others_there < self.others_elsewhere and self.p <= SIGNIFICANT


def missing_tasks(scores: np.ndarray, workers: Sequence[str], permutations: int, seed: int) -> tuple[MissingTasks, ...]:
    """One entry per worker that lacks some of ``scores`` (n, L); tasks that no other worker has either are left out."""
    generator = np.random.default_rng(seed)
    found = []
    for column, worker in enumerate(workers):
        others = np.delete(scores, column, axis=1)
        known = ~np.isnan(others).all(axis=1)
        absent = np.isnan(scores[known, column])
        if absent.any() and not absent.all():
            found.append((worker, absent, np.nanmean(others[known], axis=1)))
    tests = [_permutation_p(absent, values, permutations, generator) for _, absent, values in found]
    return tuple(
        MissingTasks(
            worker=worker,
            tasks=int(absent.sum()),
            others_there=float(values[absent].mean()),
            others_elsewhere=float(values[~absent].mean()),
            p=p,
        )
        for (worker, absent, values), p in zip(found, false_discovery_adjusted(tests), strict=True)
    )


def _permutation_p(chosen: np.ndarray, values: np.ndarray, permutations: int, generator: np.random.Generator) -> float:
    """The one-sided p of the ``chosen`` having a sum as low as theirs, if they were any as many of ``values`` (n,)."""
    many, observed = int(chosen.sum()), values[chosen].sum()
    sums = np.array([generator.permutation(values)[:many].sum() for _ in range(permutations)])
    # Sums of the same numbers in another order differ in their last digits.
    return float((1 + (sums <= observed + 1e-9).sum()) / (permutations + 1))
