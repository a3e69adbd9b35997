"""Power: how small a difference so many tasks can tell, and how many it takes to tell a small one."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from trinity_assets.routing.statistics import TAIL, group_sums

POWER = 0.8

_Z = NormalDist().inv_cdf(1 - TAIL) + NormalDist().inv_cdf(POWER)
"""Of a two-sided 5% test with 80% power: 1.96 + 0.84."""


def detectable_difference(differences: np.ndarray, groups: np.ndarray | None = None) -> float:
    """The smallest mean difference that this many tasks, in these near-duplicate groups, would show with 80% power.

    NaN if no task tells the two apart; :func:`detectable` has the formula.
    """
    spread = spread_per_task(differences, groups)
    return detectable(spread, len(differences)) if spread else float("nan")


def spread_per_task(differences: np.ndarray, groups: np.ndarray | None = None) -> float:
    """What one task adds to the variance of the sum of ``differences`` (n,), if their mean is zero.

    The mean square of the differences. Near-duplicates vary together, so it is their sums that are squared: m copies of
    a task add m^2 times its square, and m times as many tasks show no more.
    """
    sums = group_sums(differences, groups)
    return float((sums**2).sum() / len(differences))


def detectable(spread: float, tasks: int) -> float:
    """The smallest mean difference that ``tasks`` tasks would show with 80% power.

    From ``n = (z_interval + z_power)^2 var / difference^2``, which for 0/1 scores is the size of McNemar's test with
    ``var`` the share of discordant tasks. ``spread`` is that: :func:`spread_per_task`, of tasks in groups of alike
    sizes.
    """
    return _Z * (spread / tasks) ** 0.5


def tasks_needed(spread: float, difference: float) -> int:
    """How many tasks show a mean ``difference`` with 80% power; see :func:`detectable`."""
    return int(np.ceil(_Z**2 * spread / difference**2))
