"""The statistics of comparing policies on the same tasks.

Everything is about a mean over tasks that were drawn, and over training seeds where there are several. **What is drawn
together is resampled together**: near-duplicate tasks are one group, and a seed is one for all tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from trinity_assets.grading.significance import mcnemar_p
from trinity_assets.routing.split import group_home

Verdict = Literal["win", "tie", "loss"]

CONFIDENCE = 0.95

TAIL = (1 - CONFIDENCE) / 2
"""What lies beyond either end of an interval."""

SIGN_FLIPS = 1999
"""Drawn signs of a randomization test: p is then a multiple of 0.0005."""

_FLIPS_AT_ONCE = 256

_CHUNK_WEIGHTS = 1 << 18
"""Weights drawn at once: 2 MiB of float64, small enough to stay in a core's cache until they are multiplied."""


def task_groups(table: pd.DataFrame) -> np.ndarray:
    """(n,) a number per near-duplicate group of a router table; whose names are whose says ``split.group_home``."""
    homes = [group_home(*named) for named in zip(table["benchmark"], table["group"], strict=True)]
    return table.assign(home=homes).groupby(["home", "group"], sort=False).ngroup().to_numpy()


def resampled_means(
    values: np.ndarray, resamples: int, seed: int, groups: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The mean of each column, and its means over resampled tasks (Efron and Tibshirani, 1993, chapter 13).

    All columns see the same resamples, so that a function of several of their means is resampled by applying it to
    each row. Tasks of one group are drawn together. With training seeds, tasks and seeds are drawn independently of
    each other (Owen, Annals of Applied Statistics 1(2), 2007). Of m groups or seeds, m - 1 are drawn, which leaves the
    variance of a mean unbiased however few they are (Rao and Wu, JASA 83(401), 1988).

    A resample is a row of counts, so that many resamples of many columns are one matrix product.

    Args:
        values: (n, k), or (n, seeds, k) where each policy was trained several times.
        groups: (n,) the group of each task; None if each is its own.

    Returns:
        (k,) and (resamples, k).
    """
    n, seeds, k = len(values), 1 if values.ndim == 2 else values.shape[1], values.shape[-1]
    flat = values.reshape(n, seeds * k).astype(np.float64, copy=False)
    sums, sizes = (flat, np.ones(n)) if groups is None else _grouped(flat, groups)
    generator = np.random.default_rng(seed)
    means = np.empty((resamples, seeds * k))
    for rows, weights in _draws(generator, len(sizes), resamples):
        means[rows] = (weights @ sums) / (weights @ sizes)[:, None]
    if seeds == 1:
        return flat.mean(axis=0), means
    by_seed = np.concatenate([weights for _, weights in _draws(generator, seeds, resamples)]) / (seeds - 1)
    crossed = np.einsum("bsk,bs->bk", means.reshape(resamples, seeds, k), by_seed)
    return values.mean(axis=(0, 1)), crossed


def percentile_interval(means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends (k,) of the 95% interval that resampled ``means`` (resamples, k) give."""
    low, high = np.quantile(means, [TAIL, 1 - TAIL], axis=0)
    return low, high


def paired_bootstrap(
    differences: np.ndarray, resamples: int, seed: int, groups: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The percentile interval of each column's mean, over resampled tasks and training seeds.

    All columns see the same resamples, so policies that choose alike get intervals alike.

    Args:
        differences: (n, k) or (n, seeds, k), per task a policy's score minus the reference's.
        groups: (n,) near-duplicate group of each task, as for :func:`resampled_means`.

    Returns:
        Lower and upper ends (k,) of the 95% interval.
    """
    return percentile_interval(resampled_means(differences, resamples, seed, groups)[1])


def cross_fitted_interval(
    means: np.ndarray, interval: tuple[np.ndarray, np.ndarray], folds: int
) -> tuple[np.ndarray, np.ndarray]:
    """The interval of means (k,) over cross-fitted tasks, from that which takes the tasks to be independent.

    They are not: what two folds are routed by learnt from the same other folds, so that what one gains by luck the
    other gains, too. The variance of a mean over K folds is taken to be ``1 / K + 1 / (K - 1)`` in place of ``1 / K``,
    in the variance of a fold (Nadeau and Bengio, "Inference for the Generalization Error", Machine Learning 52, 2003).
    On simulated tables without a gain the standard error was 1.33 to 1.57 times that of independent tasks, of heads and
    of lookups; with five folds this takes 1.5.
    """
    factor = (1 + folds / (folds - 1)) ** 0.5
    low, high = interval
    return means - factor * (means - low), means + factor * (high - means)


@dataclass(frozen=True)
class Estimate:
    """A mean, or a ratio of means, with the ends of its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Gain(Estimate):
    """A mean difference of scores, with its 95% interval; ``p`` is that of the discordant tasks."""

    p: float

    @property
    def verdict(self) -> Verdict:
        """By the interval and the exact test of the discordant tasks."""
        return verdict(self.low, self.high, self.p)


def estimated_gain(
    differences: np.ndarray, resamples: int, seed: int, groups: np.ndarray | None = None, folds: int | None = None
) -> Gain:
    """The mean of ``differences`` (n,) in [-1, 1] over tasks, with its bootstrap interval and its exact test.

    ``folds`` are how many the differences are cross-fitted over, None where they are not.
    """
    mean, means = resampled_means(differences[:, None], resamples, seed, groups)
    interval = percentile_interval(means)
    (low,), (high,) = interval if folds is None else cross_fitted_interval(mean, interval, folds)
    return Gain(float(mean[0]), float(low), float(high), discordant(differences, groups).p)


def estimated_headroom(above: np.ndarray, resamples: int, seed: int, groups: np.ndarray | None = None) -> Gain:
    """As :func:`estimated_gain`, of an oracle: ``above`` (n,) in [0, 1] is nowhere lost.

    Where little or nothing is won, resamples say little or nothing, however few tasks there are. The upper end is at
    least that which :func:`least_difference` leaves possible.
    """
    gain = estimated_gain(above, resamples, seed, groups)
    return replace(gain, high=max(gain.high, -least_difference(-above, groups)))


def oracle_gap_closed(
    policy: np.ndarray,
    reference: np.ndarray,
    oracle: np.ndarray,
    resamples: int,
    seed: int,
    groups: np.ndarray | None = None,
) -> Estimate | None:
    """The share of the way from the reference to the oracle that a policy goes, each (n,) scores on the same tasks.

    ``(policy - reference) / (oracle - reference)``, of means; 1 is the oracle's, below 0 is a loss. The interval is
    that of the ratio over resampled tasks.

    Returns:
        None where the gap itself cannot be told from none, by its interval or its exact test: a share of it would be a
        quotient by noise. An oracle that equals the reference is such a case.
    """
    values = np.stack([policy - reference, oracle - reference], axis=1)
    (gained, gap), means = resampled_means(values, resamples, seed, groups)
    if percentile_interval(means)[0][1] <= 0 or discordant(oracle - reference, groups).p > 1 - CONFIDENCE:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = means[:, :1] / means[:, 1:]
    (low,), (high,) = percentile_interval(ratios[means[:, 1] > 0])
    return Estimate(float(gained / gap), float(low), float(high))


@dataclass(frozen=True)
class Discordant:
    """How many tasks tell two policies apart, in either direction, and how likely their differences are by chance.

    ``p`` is two-sided: were the sign of each task's difference a coin's, how often their sum would be as far from zero.
    """

    wins: int
    losses: int
    p: float


def discordant(differences: np.ndarray, groups: np.ndarray | None = None) -> Discordant:
    """The discordant tasks of ``differences`` (n,), a policy's score minus the reference's.

    The test takes tasks that do not depend on each other: near-duplicates count once, by their sum. It is the
    randomization test of the sum (Fisher, The Design of Experiments, 1935, section 21), by drawn signs. Where all are
    of one size, as with 0/1 scores, that is McNemar's exact one (1947), which counts signs.
    """
    sums = group_sums(differences, groups)
    wins, losses = int((sums > 0).sum()), int((sums < 0).sum())
    sizes = np.abs(sums[sums != 0])
    alike = not len(sizes) or np.ptp(sizes) <= 1e-9 * sizes.max()
    return Discordant(wins, losses, mcnemar_p(wins, losses) if alike else _sign_flip_p(sums))


def _sign_flip_p(differences: np.ndarray) -> float:
    """By drawn signs, which are the same for all differences of a length; the observed ones count as drawn, too."""
    found = differences[differences != 0]
    generator = np.random.default_rng(len(found))
    observed = abs(float(found.sum())) * (1 - 1e-12)
    extreme = 1
    for start in range(0, SIGN_FLIPS, _FLIPS_AT_ONCE):
        signs = generator.integers(0, 2, (min(_FLIPS_AT_ONCE, SIGN_FLIPS - start), len(found)), dtype=np.int8)
        extreme += int((np.abs((2.0 * signs - 1.0) @ found) >= observed).sum())
    return extreme / (SIGN_FLIPS + 1)


def least_difference(differences: np.ndarray, groups: np.ndarray | None = None) -> float:
    """The least mean of ``differences`` (n,) in [-1, 1] that the counts of won and lost tasks leave possible.

    The lower 97.5% bound on the share of won tasks, each won by as much as here on average, less the upper one on the
    share of lost tasks, each lost wholly (Clopper and Pearson, Biometrika 26(4), 1934). Where no task
    tells two policies apart every resample says 0, however few tasks there are; this says how many there would have to
    be. Near-duplicates count once.
    """
    sums = group_sums(differences, groups)
    sizes = np.ones(len(sums)) if groups is None else np.unique(groups, return_counts=True)[1]
    means = sums / sizes
    won, lost = means[means > 0], means[means < 0]
    gained = _share_above(len(won), len(means)) * float(won.mean()) if len(won) else 0.0
    return gained - (1 - _share_above(len(means) - len(lost), len(means)))


def _share_above(count: int, of: int) -> float:
    """The share that is above the true one's lower 97.5% bound when ``count`` of so many were seen, by bisection."""
    if not count:
        return 0.0
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, of + 1)))])
    chosen = np.arange(count, of + 1)
    ways = factorials[of] - factorials[chosen] - factorials[of - chosen]
    low, high = 0.0, count / of
    for _ in range(60):
        middle = (low + high) / 2
        at_least = np.exp(ways + chosen * math.log(middle) + (of - chosen) * math.log1p(-middle)).sum()
        if at_least < TAIL:
            low = middle
        else:
            high = middle
    return low


def verdict(low: float, high: float, p: float = 0.0) -> Verdict:
    """``tie`` unless the whole interval lies on one side of zero.

    With ``p``, that of the discordant tasks, it is also a tie where that is no proof at 5%: among few discordant tasks
    that all point one way, no resample points the other, however likely that was by chance.
    """
    if p > 1 - CONFIDENCE:
        return "tie"
    if low > 0:
        return "win"
    return "loss" if high < 0 else "tie"


def group_sums(differences: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """The sums (g,) of ``differences`` (n,) within each group, themselves where each is its own."""
    return differences if groups is None else _grouped(differences[:, None], groups)[0][:, 0]


def _grouped(values: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sums (g, k) of ``values`` (n, k) within each group, and the groups' sizes (g,)."""
    _, members, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    sums = np.zeros((len(sizes), values.shape[1]))
    np.add.at(sums, members, values)
    return sums, sizes.astype(np.float64)


def task_weights(groups: np.ndarray, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each task (n) is drawn in each of :func:`resampled_means`' resamples, (rows, n) at a time."""
    _, members = np.unique(groups, return_inverse=True)
    for _, weights in _draws(np.random.default_rng(seed), int(members.max()) + 1, resamples):
        yield weights[:, members]


def _draws(generator: np.random.Generator, m: int, resamples: int) -> Iterator[tuple[slice, np.ndarray]]:
    """How often each of ``m`` is drawn in each resample, (rows, m) at a time with the rows' place."""
    drawn = max(1, m - 1)
    chunk = max(1, _CHUNK_WEIGHTS // m)
    for start in range(0, resamples, chunk):
        rows = min(chunk, resamples - start)
        picked = generator.integers(m, size=(rows, drawn)) + m * np.arange(rows)[:, None]
        counts = np.bincount(picked.ravel(), minlength=rows * m).reshape(rows, m)
        yield slice(start, start + rows), counts.astype(np.float64)
