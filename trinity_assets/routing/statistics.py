"""The statistics of comparing two policies on the same tasks."""

from __future__ import annotations

from typing import Literal

import numpy as np

Verdict = Literal["win", "tie", "loss"]

CONFIDENCE = 0.95
_Z_INTERVAL = 1.96
_Z_POWER = 0.84
"""Normal quantiles of a two-sided 5% test with 80% power."""


def paired_bootstrap(differences: np.ndarray, resamples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The percentile interval of each column's mean, over resampled tasks (Efron and Tibshirani, 1993, chapter 13).

    All columns see the same resamples, so policies that choose alike get intervals alike.

    Args:
        differences: (n, k) per task, a policy's score minus the reference's.

    Returns:
        Lower and upper ends (k,) of the 95% interval.
    """
    generator = np.random.default_rng(seed)
    n = len(differences)
    means = np.stack([differences[generator.integers(n, size=n)].mean(axis=0) for _ in range(resamples)])
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return low, high


def verdict(low: float, high: float) -> Verdict:
    """``tie`` unless the whole interval lies on one side of zero."""
    if low > 0:
        return "win"
    return "loss" if high < 0 else "tie"


def detectable_difference(differences: np.ndarray) -> float:
    """The smallest mean difference that this many tasks would show with 80% power.

    From ``n = (z_interval + z_power)^2 var / difference^2``, which for 0/1 scores is the size of McNemar's test with
    ``var`` the share of discordant tasks. NaN if no task tells the two apart.
    """
    spread = float(np.mean(differences**2))
    if spread == 0:
        return float("nan")
    return (_Z_INTERVAL + _Z_POWER) * (spread / len(differences)) ** 0.5
