"""What every trainer returns, and what is kept of it beside the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trinity_assets.spec import Spec


class TrainingRecord(Spec):
    """How a head came about; equal trainings have equal records.

    Attributes:
        settings: the trainer's settings as JSON values.
        chosen: what the trainer settled on (``alpha``) or why it ended (``generations``, ``stopped``).
        reward: the objective's reward of the head, on the tasks it was trained on.
        history: one row per generation (``generation, best, mean, sigma``) or per penalty (``alpha, reward``, the
            reward being cross-validated).
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


@dataclass(frozen=True)
class TrainedHead:
    """A head: ``weights`` (L, H) float32, the worker being ``argmax(weights @ h)``; its record; wall time."""

    weights: np.ndarray
    record: TrainingRecord
    seconds: float

    @property
    def reward(self) -> float:
        """The objective's reward of the head, on the tasks it was trained on."""
        return self.record.reward
