"""Quality against cost on the held-out tasks: what heads trained at several cost weights reach, and whom a head spares.

Costs are at the prices that the evaluation was given. **Rule for unknown costs.** Where a worker's cost of a test task
is unknown, all workers' frontier would be about other tasks than the evaluation: there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trinity_assets.routing.baselines import Choices, Side, best_single, mean_known
from trinity_assets.routing.frontier import aiq, apgr, strong_share_curve
from trinity_assets.routing.resampling import Resampling
from trinity_assets.routing.results import Frontier, GapRecovered, SinglePoint, SweepResult
from trinity_assets.routing.specs import trainer_of
from trinity_assets.routing.statistics import percentile_interval, resampled_means, task_weights

CURVE_RESAMPLES = 1000
"""Of each interval of the area under a curve, which is drawn anew for every one of them."""


def frontier(heads: Sequence[Choices], test: Side, workers: Sequence[str], resampling: Resampling) -> Frontier | None:
    """The single workers, and each trainer with heads at several cost weights, over one range of costs.

    The range is that from the cheapest worker's mean cost to the dearest one's, and what a sweep is compared with is
    the hull of the workers alone, the zero router of RouterBench. Both as ``frontier.aiq``.

    Returns:
        None where a cost is unknown, or all workers cost the same.
    """
    costs, scores = test.costs, test.scores
    if np.isnan(costs).any() or not np.ptp(costs.mean(axis=0)) > 0:
        return None
    sweeps = _sweeps(heads)
    swept = [head for family in sweeps.values() for head in family]
    columns = [costs, scores, *(head.values(measure)[:, None] for measure in (costs, scores) for head in swept)]
    resamples = min(resampling.resamples, CURVE_RESAMPLES) if swept else 1  # the workers' own area has no interval
    means, resampled = resampled_means(np.concatenate(columns, axis=1), resamples, resampling.seed, resampling.groups)
    sizes = [len(family) for family in sweeps.values()]
    found = _aiqs(means, len(workers), sizes)
    drawn = np.array([_aiqs(row, len(workers), sizes) for row in resampled])
    above = drawn[:, 1:] - drawn[:, :1]
    low, high = percentile_interval(above[~np.isnan(drawn[:, 0])])
    return Frontier(
        singles=tuple(
            SinglePoint(worker=worker, cost_usd=float(cost), accuracy=float(score))
            for worker, cost, score in zip(workers, costs.mean(axis=0), scores.mean(axis=0), strict=True)
        ),
        singles_aiq=float(found[0]),
        sweeps=tuple(
            SweepResult(
                trainer=trainer,
                heads=tuple(head.name for head in family),
                aiq=float(found[1 + place]),
                difference=float(found[1 + place] - found[0]),
                low=float(low[place]),
                high=float(high[place]),
            )
            for place, (trainer, family) in enumerate(sweeps.items())
        ),
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


def _aiqs(means: np.ndarray, workers: int, sizes: Sequence[int]) -> list[float]:
    """The AIQ of the workers alone, then of each sweep of so many heads; NaN where all workers cost the same.

    ``means`` are of the workers' costs, their scores, the heads' costs and their scores.
    """
    singles, heads = means[: 2 * workers].reshape(2, -1), means[2 * workers :].reshape(2, -1)
    spent = float(singles[0].min()), float(singles[0].max())
    families = np.split(heads, np.cumsum(sizes)[:-1], axis=1) if sizes else []
    areas = (aiq(costs, scores, spent) for costs, scores in (singles, *families))
    return [np.nan if area is None else area for area in areas]


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
