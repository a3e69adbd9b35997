"""What every trainer may start from and what it returns, and what is kept of it beside the weights."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trinity_assets.errors import TrainingError
from trinity_assets.routing.objective import Objective, TableObjective, route
from trinity_assets.spec import Spec

SAVE_EVERY_S = 15.0
"""Seconds between two saves of what a search has learnt: what a kill costs at most, besides a generation."""


class TrainingRecord(Spec):
    """How a head came about; equal trainings have equal records.

    Attributes:
        settings: the trainer's settings as JSON values.
        chosen: what the trainer settled on (``alpha``, or ``constant``, a worker by pool position) or why it ended
            (``generations``, ``stopped``), at which ``cost_weight`` if at one, and which settings were ``unused``.
        reward: the objective's reward of the head, on the tasks it was trained on.
        history: one row per generation (``generation, best, mean, sigma``, and ``validation`` where the distribution's
            mean was validated) or per penalty (``alpha, reward``, the reward being cross-validated).
        evaluations: rewards computed during training, one per head.
    """

    settings: dict[str, Any]
    chosen: dict[str, Any]
    reward: float
    history: tuple[dict[str, float], ...]
    evaluations: int

    @property
    def per_generation(self) -> bool:
        """Whether the history is one of generations, which can be plotted as convergence."""
        return bool(self.history) and "generation" in self.history[0]

    @property
    def constant(self) -> int | None:
        """The worker, by pool position, that is asked whatever the question; None where the head decides.

        No bias-free head is constant for certain, so that one's weights only stand for this.
        """
        return self.chosen.get("constant")

    def picks(self, features: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The worker (n,) for each feature (n, H): the constant one, or the one that ``weights`` (L, H) pick."""
        return route(features, weights) if self.constant is None else np.full(len(features), self.constant)


@dataclass(frozen=True)
class TrainedHead:
    """A head: ``weights`` (L, H) float32, the worker being ``argmax(weights @ h)``; its record; wall time.

    Where ``record.constant`` names a worker, that one is meant and the weights are the nearest a head can come to it.
    """

    weights: np.ndarray
    record: TrainingRecord
    seconds: float

    @property
    def reward(self) -> float:
        """The objective's reward of the head, on the tasks it was trained on."""
        return self.record.reward

    def picks(self, features: np.ndarray) -> np.ndarray:
        """The worker (n,) for each feature (n, H)."""
        return self.record.picks(features, self.weights)

    def weighted(self, cost_weight: float) -> TrainedHead:
        """This head, its record saying the cost weight that it was trained at."""
        chosen = self.record.chosen | {"cost_weight": cost_weight}
        return replace(self, record=self.record.model_copy(update={"chosen": chosen}))


@dataclass(frozen=True)
class Start:
    """Where a search starts, of which a closed form needs nothing, and whether a training says how it goes.

    Attributes:
        initial: a head (L, H) to start from, such as that of an earlier pool (``pool_changes``), instead of the zero
            head. Its scale does not matter.
        directory: where an interrupted training is kept, for the next one of equal inputs to go on from; None keeps
            nothing.
        save_every_s: seconds between two saves, by ``clock``.
        quiet: log neither how the training goes nor what came of it, only warnings.
    """

    initial: np.ndarray | None = None
    directory: Path | None = None
    save_every_s: float = SAVE_EVERY_S
    clock: Callable[[], float] = time.monotonic
    quiet: bool = False


FROM_ZERO = Start()
"""From the zero head, and keeping nothing."""


def require_scores(objective: Objective) -> None:
    """Refuse a table that knows nothing of some worker: nothing would keep its row from winning.

    Raises:
        TrainingError: which workers.
    """
    if isinstance(objective, TableObjective) and objective.unscored:
        raise TrainingError(
            f"{objective.named(objective.unscored)} have no known score to learn from; settle their answers or leave "
            "them out of the pool"
        )


def require_table(objective: Objective, trainer: str) -> TableObjective:
    """The objective, if it has a table.

    Raises:
        TrainingError: it has none.
    """
    if not isinstance(objective, TableObjective):
        raise TrainingError(
            f"{trainer} learns from a table of scores, which {type(objective).__name__} does not have; use sep_cma_es"
        )
    return objective
