"""Differences between policies on the same tasks, with their intervals, their exact tests and their words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trinity_assets.routing.statistics import discordant, paired_bootstrap, verdict


@dataclass(frozen=True)
class Resampling:
    """How means over tasks are resampled; ``groups`` (n,) are the tasks' near-duplicate groups."""

    groups: np.ndarray
    resamples: int
    seed: int

    def compared(self, differences: np.ndarray) -> list[dict[str, Any]]:
        """The fields of a ``Difference`` for each column of (n, k), or of (n, seeds, k), differences."""
        low, high = paired_bootstrap(differences, self.resamples, self.seed, self.groups)
        by_task = differences if differences.ndim == 2 else differences.mean(axis=1)
        return [self._fields(by_task[:, one], float(low[one]), float(high[one])) for one in range(by_task.shape[1])]

    def _fields(self, differences: np.ndarray, low: float, high: float) -> dict[str, Any]:
        found = discordant(differences, self.groups)
        return {
            "difference": float(differences.mean()),
            "low": low,
            "high": high,
            "wins": found.wins,
            "losses": found.losses,
            "p": found.p,
            "verdict": verdict(low, high, found.p),
        }
