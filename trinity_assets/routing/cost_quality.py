"""Quality against cost on the held-out tasks: what heads trained at several cost weights reach, and whom a head spares.

Costs are at the prices that the evaluation was given. **Rule for unknown costs.** Where a worker's cost of a test task
is unknown, all workers' frontier would be about other tasks than the evaluation: there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trinity_assets.routing.baselines import Choices, Side, best_single, mean_known, pick
from trinity_assets.routing.frontier import aiq, apgr, strong_share_curve
from trinity_assets.routing.resampling import Resampling
from trinity_assets.routing.results import Frontier, GapRecovered, SinglePoint, SweepResult
from trinity_assets.routing.specs import trainer_of
from trinity_assets.routing.statistics import CONFIDENCE, discordant, percentile_interval, task_weights

CURVE_RESAMPLES = 1000
"""Of the interval of an area under a curve, which is drawn anew for every one of them."""


def frontier(heads: Sequence[Choices], test: Side, workers: Sequence[str]) -> Frontier | None:
    """The single workers, and each trainer with heads at several cost weights, over one range of costs.

    The range is that from the cheapest worker's mean cost to the dearest one's, and what a sweep is compared with is
    the hull of the workers alone, the zero router of RouterBench. Both as ``frontier.aiq``, whose hull keeps the best
    of its policies on the very tasks that it is measured on: the more policies, the more of it is luck. So a sweep has
    no interval here, and no verdict; those are its heads'.

    Returns:
        None where a cost is unknown, or all workers cost the same.
    """
    costs = test.costs.mean(axis=0)
    if np.isnan(costs).any() or not np.ptp(costs) > 0:
        return None
    accuracies, spent = test.scores.mean(axis=0), (float(costs.min()), float(costs.max()))
    singles = aiq(costs, accuracies, spent)
    if singles is None:
        return None
    cheapest = pick("cheapest", "", np.full(len(test.scores), costs.argmin()), len(workers))
    sweeps = []
    for trainer, family in _sweeps(heads).items():
        policies = [*family, cheapest]
        paid, right = (np.array([one.values(of).mean() for one in policies]) for of in (test.costs, test.scores))
        area = aiq(paid, right, spent)
        if area is not None:
            names = tuple(head.name for head in family)
            sweeps.append(SweepResult(trainer=trainer, heads=names, aiq=area, difference=area - singles))
    return Frontier(
        singles=tuple(
            SinglePoint(worker=worker, cost_usd=float(cost), accuracy=float(accuracy))
            for worker, cost, accuracy in zip(workers, costs, accuracies, strict=True)
        ),
        singles_aiq=singles,
        sweeps=tuple(sweeps),
    )


def gaps_recovered(
    heads: Mapping[str, np.ndarray], train: Side, test: Side, workers: Sequence[str], resampling: Resampling
) -> list[GapRecovered]:
    """How well each head (L, H) ranks the tasks for which the best single worker is worth more than the cheapest other.

    The strong worker is the one that is best on train, the weak one the cheapest of the others there, or the worst
    where costs do not tell; both of the gap that a head recovers are on test.

    Returns:
        Nothing where the strong worker is not surely better than the weak one on test.
    """
    pair = _pair(train)
    if pair is None or not heads:
        return []
    weak, strong = (test.scores[:, worker] for worker in pair)
    if discordant(strong - weak, resampling.groups).p > 1 - CONFIDENCE:
        return []
    preferences = [test.features @ (head[pair[1]] - head[pair[0]]) for head in heads.values()]
    gaps, drawn = [], []
    resamples = min(resampling.resamples, CURVE_RESAMPLES)
    for weights in task_weights(resampling.groups, resamples, resampling.seed):
        gaps.append(weights @ (strong - weak))
        drawn.append([_resampled_apgr(preference, strong - weak, weights) for preference in preferences])
    known = np.concatenate(gaps)
    if percentile_interval(known[:, None])[0][0] <= 0:
        return []
    found = []
    for name, preference, areas in zip(heads, preferences, np.concatenate(drawn, axis=1), strict=True):
        (low,), (high,) = percentile_interval(areas[known > 0][:, None])
        area = apgr(*strong_share_curve(preference, weak, strong), float(weak.mean()), float(strong.mean()))
        if area is None:
            continue
        found.append(
            GapRecovered(
                head=name,
                weak=workers[pair[0]],
                strong=workers[pair[1]],
                apgr=area,
                low=float(low),
                high=float(high),
            )
        )
    return found


def _sweeps(heads: Sequence[Choices]) -> dict[str, list[Choices]]:
    """The heads of each trainer that has several."""
    families: dict[str, list[Choices]] = {}
    for head in heads:
        families.setdefault(trainer_of(head.name), []).append(head)
    return {trainer: family for trainer, family in families.items() if len(family) > 1}


def _pair(train: Side) -> tuple[int, int] | None:
    """The weak and the strong worker by position, None where there is no other one."""
    strong = best_single(train.scores, train.costs)
    costs, scores = mean_known(train.costs, np.nan), mean_known(train.scores, np.inf)
    if np.isnan(costs).any():
        costs = np.zeros(len(costs))
    others = [worker for worker in np.lexsort((scores, costs)).tolist() if worker != strong]
    return (others[0], strong) if others else None


def _resampled_apgr(preference: np.ndarray, gains: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(resamples,) the APGR with tasks (n) counted as often as ``weights`` (resamples, n) say; NaN without a gap."""
    order = np.argsort(-preference, kind="stable")
    passed = np.concatenate([np.flatnonzero(np.diff(preference[order])) + 1, [len(order)]])
    counted = np.cumsum(weights[:, order], axis=1)
    gained = np.cumsum(weights[:, order] * gains[order], axis=1)
    start = np.zeros((len(weights), 1))
    shares = np.concatenate([start, counted[:, passed - 1] / counted[:, -1:]], axis=1)
    gap = np.where(gained[:, -1:] > 0, gained[:, -1:], np.nan)
    recovered = np.concatenate([start, gained[:, passed - 1] / gap], axis=1)
    return np.trapezoid(recovered, shares, axis=1)
