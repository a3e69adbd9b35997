"""What a router could gain, before one is trained: from the train tasks of its table alone.

Of the held-out tasks only their number is looked at. **Rule for missing cells.** As in an evaluation: what compares
policies leaves out a task on which any worker's score is unknown, and counts it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from trinity_assets.routing.baselines import mean_known, preference
from trinity_assets.routing.missing_tasks import MissingTasks, missing_tasks
from trinity_assets.routing.oracle import cross_fitted_lookup, cross_fitted_oracle, plain_oracle
from trinity_assets.routing.power import detectable, spread_per_task
from trinity_assets.routing.split import TEST, TRAIN
from trinity_assets.routing.statistics import Gain, estimated_gain, estimated_headroom, task_groups
from trinity_assets.routing.table import priced_costs, score_matrix
from trinity_assets.spec import Spec
from trinity_assets.texts import counted
from trinity_assets.workers.specs import Price

RESAMPLES = 2000
"""Of each interval, which places its ends to about a twentieth of a standard error; permutations of a test."""

LEAST_GAIN = 0.01
"""A perfect router that gains less is not worth its trouble, and no realistic number of tasks would show it."""


class BenchmarkHeadroom(Spec):
    """One benchmark's complete train tasks: its best worker there, the best single one's score, who solves them all."""

    benchmark: str
    n_train: int
    best: str
    score: float
    best_single_score: float
    saturated: tuple[str, ...]


class PairAgreement(Spec):
    """How two workers compare: the shares of tasks scored alike, and better by either. They sum to one."""

    first: str
    second: str
    alike: float
    first_better: float
    second_better: float


class Headroom(Spec):
    """What the train tasks say about routing. Differences are to the best single worker on the same tasks, those
    of lookups to the one that is best on the other folds.

    ``scores`` are means over each worker's own known tasks. What is None could not be had from these tasks: everything
    where none is complete, ``cross_fitted`` with one sample per task, ``lookup`` and ``category_lookup`` with one fold
    or with one benchmark, or no categories in them. A perfect router gains at most ``oracle``, which noise inflates,
    and at least ``cross_fitted``, which is about ``n_cross_fitted`` tasks. ``no_signal`` is the share of tasks on which
    no choice matters. ``detectable`` is what the ``n_test`` complete held-out tasks show with 80% power of a router
    that differs from the best single worker by ``spread`` per task (``statistics.spread_per_task``), as the second best
    worker does; ``oracle_detectable`` that of a perfect one. Near-duplicates are taken to be as many as in train.
    ``nothing_to_route`` says why, where it is so.
    """

    workers: tuple[str, ...]
    scores: dict[str, float | None]
    n_train: int
    n_complete: int
    n_test: int
    best_single: str | None = None
    best_single_score: float | None = None
    benchmarks: tuple[BenchmarkHeadroom, ...] = ()
    lookup: Gain | None = None
    category_lookup: Gain | None = None
    oracle: Gain | None = None
    cross_fitted: Gain | None = None
    n_cross_fitted: int = 0
    pairs: tuple[PairAgreement, ...] = ()
    no_signal: float | None = None
    missing: tuple[MissingTasks, ...] = ()
    spread: float | None = None
    detectable: float | None = None
    oracle_detectable: float | None = None
    nothing_to_route: str | None = None

    @property
    def shown(self) -> bool:
        """Whether a gain that noise does not inflate is above zero, by its interval and its exact test."""
        honest = (self.lookup, self.category_lookup, self.cross_fitted)
        return any(gain.verdict == "win" for gain in honest if gain)


@dataclass(frozen=True)
class Outcomes:
    """Tasks with what each worker scored, row by row.

    ``scores`` and ``costs`` are (n, L), NaN where unknown; ``halves`` (n, 2, L) as in ``oracle``, None if there are no
    two samples; the others (n,). The tasks of a group share a fold.
    """

    scores: np.ndarray
    costs: np.ndarray
    benchmarks: np.ndarray
    categories: np.ndarray
    folds: np.ndarray
    groups: np.ndarray
    halves: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.scores)

    def where(self, rows: np.ndarray) -> Outcomes:
        """The tasks that the mask ``rows`` (n,) selects."""
        return Outcomes(
            self.scores[rows],
            self.costs[rows],
            self.benchmarks[rows],
            self.categories[rows],
            self.folds[rows],
            self.groups[rows],
            None if self.halves is None else self.halves[rows],
        )

    def complete(self) -> Outcomes:
        """The tasks on which every worker's score is known."""
        return self.where(~np.isnan(self.scores).any(axis=1))

    def among(self, columns: np.ndarray) -> Outcomes:
        """The same tasks and the workers in ``columns`` only."""
        halves = None if self.halves is None else self.halves[:, :, columns]
        return replace(self, scores=self.scores[:, columns], costs=self.costs[:, columns], halves=halves)

    def looked_up(self, strata: np.ndarray | None = None) -> np.ndarray:
        """(n,) what choosing per stratum scores, and without ``strata`` one choice for all; cross-fitted over folds."""
        chosen_by = np.zeros(len(self)) if strata is None else strata
        return cross_fitted_lookup(self.scores, self.costs, chosen_by, self.folds)


def table_outcomes(
    table: pd.DataFrame,
    workers: Sequence[str],
    halves: np.ndarray | None = None,
    prices: Mapping[str, Price | None] | None = None,
) -> Outcomes:
    """The rows of a router table as :class:`Outcomes`; ``halves`` (n, 2, L) are aligned to them."""
    return Outcomes(
        score_matrix(table, workers),
        priced_costs(table, workers, prices or {}),
        table["benchmark"].to_numpy(),
        (table["benchmark"] + "/" + table["category"]).to_numpy(),
        table["fold"].to_numpy(),
        task_groups(table),
        halves,
    )


def headroom(
    table: pd.DataFrame,
    workers: Sequence[str],
    halves: np.ndarray | None = None,
    *,
    prices: Mapping[str, Price | None] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Headroom:
    """What a router over ``workers`` could gain, by the train tasks of ``table``.

    Args:
        halves: (n, 2, L), aligned to the rows of ``table``, the scores of each half of the samples
            (``oracle.sample_halves``); None where tasks were asked once.
        prices: per worker, which decide between equally good ones; one without a price costs what was charged.
    """
    everything = table_outcomes(table, workers, halves, prices)
    train = everything.where((table["split"] == TRAIN).to_numpy())
    n_test = len(everything.where((table["split"] == TEST).to_numpy()).complete())
    complete = train.complete()
    scores = mean_known(train.scores, np.nan)
    facts: dict[str, Any] = {
        "workers": tuple(workers),
        "scores": {w: None if np.isnan(s) else float(s) for w, s in zip(workers, scores, strict=True)},
        "n_train": len(train),
        "n_complete": len(complete),
        "n_test": n_test,
        "missing": missing_tasks(train.scores, workers, resamples, seed),
    }
    if not len(complete):
        return Headroom(
            **facts, nothing_to_route=f"none of {counted(len(train), 'train task')} has all workers' scores"
        )
    ranked = preference(complete.scores, complete.costs)
    best, single = int(ranked[0]), complete.scores[:, ranked[0]]
    above = plain_oracle(complete.scores) - single
    gain = estimated_headroom(above, resamples, seed, complete.groups)
    cross_fitted, n_cross_fitted = _cross_fitted(complete, best, resamples, seed)
    finer = len(np.unique(complete.categories)) > len(np.unique(complete.benchmarks))
    second = complete.scores[:, ranked[min(1, len(ranked) - 1)]]
    spread = spread_per_task(second - single, complete.groups)
    oracle_detectable = detectable(spread_per_task(above, complete.groups), n_test) if n_test else None
    return Headroom(
        **facts,
        best_single=workers[best],
        best_single_score=float(single.mean()),
        benchmarks=_benchmarks(complete, workers, best),
        lookup=_lookup(complete, complete.benchmarks, resamples, seed),
        category_lookup=_lookup(complete, complete.categories, resamples, seed) if finer else None,
        oracle=gain,
        cross_fitted=cross_fitted,
        n_cross_fitted=n_cross_fitted,
        pairs=_pairs(complete.scores, workers),
        no_signal=float((np.ptp(complete.scores, axis=1) == 0).mean()),
        spread=spread,
        detectable=detectable(spread, n_test) if n_test else None,
        oracle_detectable=oracle_detectable,
        nothing_to_route=_nothing_to_route(complete.scores, workers[best], gain, oracle_detectable, n_test),
    )


def _nothing_to_route(
    scores: np.ndarray, best: str, gain: Gain, oracle_detectable: float | None, n_test: int
) -> str | None:
    """By the plain oracle's ``gain`` over the worker ``best``: noise only adds to it, so no router gains more."""
    if (np.ptp(scores, axis=1) == 0).all():
        return f"all workers score the same on each of {counted(len(scores), 'train task')}"
    if gain.high < LEAST_GAIN:
        return (
            f"{best} dominates: a perfect router gains {100 * gain.value:.1f} points over it, or "
            f"{100 * gain.high:.1f} at the upper end of the 95% interval"
        )
    if not gain.value:
        return (
            f"too few tasks: on none of {counted(len(scores), 'train task')} another worker is better than {best}, and "
            f"a perfect router may gain up to {100 * gain.high:.1f} points"
        )
    if oracle_detectable is None:
        return "too few tasks: none that is held out has all workers' scores"
    if gain.value < oracle_detectable:
        return (
            f"too few tasks: even a perfect router gains {100 * gain.value:.1f} points over {best} and "
            f"{n_test} held-out tasks show no less than {100 * oracle_detectable:.1f}"
        )
    return None


def known_gain(differences: np.ndarray, groups: np.ndarray, resamples: int, seed: int) -> tuple[Gain | None, int]:
    """The mean of the ``differences`` (n,) that are not NaN, None if there are none, and how many there are."""
    known = ~np.isnan(differences)
    count = int(known.sum())
    return (estimated_gain(differences[known], resamples, seed, groups[known]) if count else None), count


def _cross_fitted(outcomes: Outcomes, best: int, resamples: int, seed: int) -> tuple[Gain | None, int]:
    """The cross-fitted oracle's gain over the worker ``best``, and how many tasks it is about."""
    if outcomes.halves is None:
        return None, 0
    above = cross_fitted_oracle(outcomes.halves) - outcomes.halves[:, :, best].mean(axis=1)
    return known_gain(above, outcomes.groups, resamples, seed)


def _lookup(outcomes: Outcomes, strata: np.ndarray, resamples: int, seed: int) -> Gain | None:
    """What choosing per stratum gains over one choice for all, both learnt on other folds than they are scored on."""
    folds = len(np.unique(outcomes.folds))
    if folds < 2 or len(np.unique(strata)) < 2:
        return None
    return estimated_gain(outcomes.looked_up(strata) - outcomes.looked_up(), resamples, seed, outcomes.groups, folds)


def _benchmarks(outcomes: Outcomes, workers: Sequence[str], best: int) -> tuple[BenchmarkHeadroom, ...]:
    found = []
    for benchmark in pd.unique(pd.Series(outcomes.benchmarks)):
        here = outcomes.where(outcomes.benchmarks == benchmark)
        means = here.scores.mean(axis=0)
        first = int(preference(here.scores, here.costs)[0])
        found.append(
            BenchmarkHeadroom(
                benchmark=str(benchmark),
                n_train=len(here),
                best=workers[first],
                score=float(means[first]),
                best_single_score=float(means[best]),
                saturated=tuple(w for w, full in zip(workers, (here.scores == 1).all(axis=0), strict=True) if full),
            )
        )
    return tuple(found)


def _pairs(scores: np.ndarray, workers: Sequence[str]) -> tuple[PairAgreement, ...]:
    return tuple(
        PairAgreement(
            first=workers[i],
            second=workers[j],
            alike=float((scores[:, i] == scores[:, j]).mean()),
            first_better=float((scores[:, i] > scores[:, j]).mean()),
            second_better=float((scores[:, i] < scores[:, j]).mean()),
        )
        for i, j in combinations(range(len(workers)), 2)
    )
