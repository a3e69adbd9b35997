"""Whether two askings of the same tasks differ by more than chance: exact tests, and control of many at once.

Probabilities are summed as whole numbers, so that they are exact however many tasks there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

FALSE_DISCOVERY_RATE = 0.05
"""The share of false alarms among all alarms of one report that is put up with."""


def mcnemar_p(gained: int, lost: int) -> float:
    """The exact two-sided p of McNemar's test: ``gained`` and ``lost`` tasks are discordant, all others count nothing.

    If neither direction were likelier, the smaller of the two would be binomial with probability 1/2 (McNemar, 1947;
    the exact form is the sign test on the discordant pairs). 1 where nothing is discordant.
    """
    n = gained + lost
    tail = coefficient = 1
    for k in range(min(gained, lost)):
        coefficient = coefficient * (n - k) // (k + 1)  # C(n, k + 1), from the one before: each anew takes seconds
        tail += coefficient
    return min(1.0, 2 * tail / 2**n)


def exceeds_floor_p(changed: int, pairs: int, floor_changed: int, floor_pairs: int) -> float:
    """The one-sided p of Fisher's exact test that more of ``pairs`` changed than asking again changes by itself.

    The floor is a sample, too: ``floor_changed`` of ``floor_pairs`` verdicts differed between two askings of one epoch.
    With all margins fixed, ``changed`` would be hypergeometric (Fisher, 1935). 1 where either side is empty.
    """
    all_changed, everything = changed + floor_changed, pairs + floor_pairs
    if not pairs or not floor_pairs:
        return 1.0
    most = min(all_changed, pairs)
    tail = sum(comb(pairs, k) * comb(floor_pairs, all_changed - k) for k in range(changed, most + 1))
    return tail / comb(everything, all_changed)


def false_discovery_adjusted(p_values: Sequence[float]) -> list[float]:
    """The adjusted p of each test, in the same order: those at most q are significant at a false discovery rate of q.

    The step-up procedure of Benjamini and Hochberg (1995): the i-th smallest of n is multiplied by n / i, and none is
    larger than one that follows it.
    """
    adjusted = [1.0] * len(p_values)
    least = 1.0
    by_size = sorted(range(len(p_values)), key=lambda index: p_values[index], reverse=True)
    for rank, index in zip(range(len(p_values), 0, -1), by_size, strict=True):
        least = min(least, p_values[index] * len(p_values) / rank)
        adjusted[index] = least
    return adjusted
