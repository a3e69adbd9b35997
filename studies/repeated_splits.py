"""The same table cut into train and test again and again: how often which word comes out.

One split is one draw. The splits share their tasks, so the words of several are no independent trials, and their spread
is no confidence interval: it says how much of a report was the luck of its split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from trinity_assets.routing.fitting import FittedRouter, fit_router
from trinity_assets.routing.results import BOUNDS, REFERENCE
from trinity_assets.routing.specs import RouterTraining
from trinity_assets.routing.statistics import Verdict

PUBLISHED = "published"
"""The policy that the gate publishes: the exported head, or the best single worker, which gains nothing over itself."""

Gain = tuple[float, Verdict]
"""A difference to the best single worker, and its verdict."""

_NOTHING: Gain = (0.0, "tie")


@dataclass(frozen=True)
class OverSplits:
    """What became of one policy: its ``differences`` to the best single worker and its ``verdicts``, split by split.

    ``passed`` is on how many splits the gate let it pass, None for what is no head.
    """

    policy: str
    differences: tuple[float, ...]
    verdicts: tuple[Verdict, ...]
    passed: int | None = None

    @property
    def words(self) -> Mapping[Verdict, int]:
        """How often which verdict."""
        return Counter(self.verdicts)


def over_splits(table: pd.DataFrame, features: np.ndarray, splits: Mapping[str, int]) -> list[OverSplits]:
    """Each trainer on so many splits, with the seeds 0, 1, ..., and the baselines on every one of them.

    What would be published is the first trainer's, whose splits have to be the most.

    Args:
        features: (n, H), aligned to the rows of ``table``.
    """
    fits = list(_fits(table, features, splits))
    policies = [result.name for result in fits[0].evaluation.policies if result.name not in (REFERENCE, *BOUNDS)]
    found = [_over_splits(name, fits) for name in policies]
    gains = [_NOTHING if one.constant else _gain(one, one.export) for one in fits]
    return [*found, OverSplits(PUBLISHED, *_columns(gains))]


def _fits(table: pd.DataFrame, features: np.ndarray, splits: Mapping[str, int]) -> Iterator[FittedRouter]:
    for seed in range(max(splits.values())):
        trainers: dict[str, dict[str, Any]] = {name: {} for name, count in splits.items() if seed < count}
        declared = {
            "trainers": trainers, "export": next(iter(splits)), "split": {"seed": seed}, "training_seeds": 1,
        }  # fmt: skip
        yield fit_router(table, features, RouterTraining.model_validate(declared))


def _over_splits(policy: str, fits: list[FittedRouter]) -> OverSplits:
    its = [one for one in fits if policy in (result.name for result in one.evaluation.policies)]
    columns = _columns([_gain(one, policy) for one in its])
    if policy not in its[0].heads:
        return OverSplits(policy, *columns)
    return OverSplits(policy, *columns, passed=sum(one.evaluation.gate(policy).passed for one in its))


def _gain(fitted: FittedRouter, policy: str) -> Gain:
    result = fitted.evaluation.policy(policy)
    return result.difference, result.verdict


def _columns(gains: list[Gain]) -> tuple[tuple[float, ...], tuple[Verdict, ...]]:
    return tuple(difference for difference, _ in gains), tuple(word for _, word in gains)
