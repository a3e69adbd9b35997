"""Quality against cost as one number: AIQ of RouterBench, APGR of RouteLLM.

Costs are USD per task and qualities mean scores; both are of policies on the same tasks.
"""

from __future__ import annotations

import numpy as np

from trinity_assets.errors import TrainingError


def non_decreasing_hull(costs: np.ndarray, qualities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The vertices of the non-decreasing convex hull of policies: costs (h,) ascending, qualities (h,) ascending.

    Tossing a coin between two policies reaches every point of the line between them, so what a set of policies offers
    at a cost is the upper hull of their points; who may spend more need not, so it never falls (Hu et al., RouterBench,
    2024, section 3).

    Raises:
        TrainingError: there is no policy, or a cost or quality is not a finite number.
    """
    if not len(costs) or not (np.isfinite(costs).all() and np.isfinite(qualities).all()):
        raise TrainingError(
            f"{len(costs)} policies with costs {np.asarray(costs).tolist()} and qualities "
            f"{np.asarray(qualities).tolist()} have no frontier; it takes one or more, of known costs"
        )
    hull: list[tuple[float, float]] = []
    for cost, quality in sorted(
        zip(map(float, costs), map(float, qualities), strict=True), key=lambda p: (p[0], -p[1])
    ):
        if hull and quality <= hull[-1][1]:
            continue
        while len(hull) >= 2 and _slope(hull[-2], hull[-1]) <= _slope(hull[-1], (cost, quality)):
            hull.pop()
        hull.append((cost, quality))
    return np.array([cost for cost, _ in hull]), np.array([quality for _, quality in hull])


def aiq(costs: np.ndarray, qualities: np.ndarray, cost_range: tuple[float, float] | None = None) -> float | None:
    """The average improvement in quality of policies: the mean height of their hull over a range of costs.

    ``AIQ = 1 / (c_max - c_min) * integral from c_min to c_max of R(c) dc`` with R the non-decreasing convex hull (Hu et
    al., RouterBench, 2024, section 3). Sets of policies are compared over one range, such as from the cheapest worker's
    cost to the dearest one's. Beyond the dearest policy R stays at its best quality. Below the cheapest policy, what is
    spent buys the answers to a share of the tasks and nothing for the others: the line to no cost and no quality.

    Args:
        cost_range: c_min and c_max; None: those of the policies.

    Returns:
        None where the range has no width.

    Raises:
        TrainingError: as :func:`non_decreasing_hull`.
    """
    at, height = non_decreasing_hull(costs, qualities)
    low, high = cost_range or (float(np.min(costs)), float(np.max(costs)))
    if not high > low:
        return None
    if low < at[0]:
        at, height = non_decreasing_hull(np.concatenate([[0.0], at]), np.concatenate([[0.0], height]))
    between = at[(at > low) & (at < high)]
    ends = np.concatenate([[low], between, [high]])
    return float(np.trapezoid(np.interp(ends, at, height), ends) / (high - low))


def strong_share_curve(preference: np.ndarray, weak: np.ndarray, strong: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quality against the share of calls to the strong one of two workers, as the threshold on a preference falls.

    Tasks of equal preference pass a threshold together; between, quality is that of sending a part of them at random.

    Args:
        preference: (n,) how much a router prefers the strong worker, such as the difference of two logits.
        weak: (n,) scores, as ``strong``.

    Returns:
        The share of calls (t,) from 0 to 1 and the mean score (t,) there.
    """
    order = np.argsort(-preference, kind="stable")
    gained = np.concatenate([[0.0], np.cumsum((strong - weak)[order])]) / len(order)
    calls = np.concatenate([[0], np.flatnonzero(np.diff(preference[order])) + 1, [len(order)]])
    return calls / len(order), weak.mean() + gained[calls]


def apgr(strong_shares: np.ndarray, qualities: np.ndarray, weak: float, strong: float) -> float | None:
    """The average performance gap recovered by a router between two workers.

    ``PGR = (r - r_weak) / (r_strong - r_weak)`` with r the quality at some share c of calls to the strong worker, and
    ``APGR = integral from 0 to 1 of PGR dc`` (Ong et al., RouteLLM, 2024, section 2). A router that sends tasks at
    random has 0.5. The paper averages ten shares; here the integral is that of the line through all points, by the
    trapezoidal rule, with the two workers themselves at its ends.

    Args:
        strong_shares: (t,) in [0, 1], in any order.
        qualities: (t,) mean scores there.
        weak: the mean score of the weak worker alone, as ``strong`` of the strong one.

    Returns:
        None where the strong worker is not better than the weak one, so that there is no gap to recover.
    """
    if not strong > weak:
        return None
    order = np.argsort(strong_shares, kind="stable")
    shares = np.concatenate([[0.0], strong_shares[order], [1.0]])
    recovered = np.concatenate([[0.0], (qualities[order] - weak) / (strong - weak), [1.0]])
    return float(np.trapezoid(recovered, shares))


def _slope(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Quality per USD from one point to another that costs more."""
    return (second[1] - first[1]) / (second[0] - first[0])
