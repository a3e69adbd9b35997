"""Router tables whose right answer is known, because it was planted."""

from __future__ import annotations

import numpy as np
import pandas as pd

from trinity_assets.routing.crossfit import Learn
from trinity_assets.routing.specs import RouterTraining, SplitSpec
from trinity_assets.routing.table import join_table
from trinity_assets.routing.trainers.all_heads import learners

WORKERS = ["ada", "bob", "cyd"]

FLATTERED = np.array([[0.0, 1.0], [1.0, 1.0], *[[np.nan, 0.0]] * 4])
"""Scores of two workers, of which the first lacks hard tasks: better by its known scores, worse where both have one."""


def features(n: int, hidden: int, seed: int = 0) -> np.ndarray:
    """(n, hidden) float32 with a constant component, as hidden states have."""
    generator = np.random.default_rng(seed)
    drawn = generator.standard_normal((n, hidden))
    drawn[:, 0] = 3.0
    return drawn.astype(np.float32)


def planted_scores(drawn: np.ndarray, workers: int, noise: float = 0.0, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Scores (n, L) in which exactly the worker ``argmax(rule @ h)`` solves a task, some flipped; and those workers."""
    generator = np.random.default_rng(seed)
    rule = generator.standard_normal((workers, drawn.shape[1]))
    rule[:, 0] = 0
    right = (drawn @ rule.T).argmax(axis=1)
    scores = np.eye(workers)[right]
    flipped = generator.random(scores.shape) < noise
    return np.where(flipped, 1 - scores, scores), right


def table_of(
    scores: np.ndarray, workers: list[str], split: SplitSpec | None = None, benchmark: str = "quiz"
) -> pd.DataFrame:
    """A router table of one benchmark with these scores (n, L), and costs that rise with the pool position."""
    ids = [f"t{i}" for i in range(len(scores))]
    tasks = {benchmark: pd.DataFrame({"task_id": ids, "category": "all", "group": ids})}
    solves = {
        (w, benchmark): pd.DataFrame(
            {
                "task_id": ids,
                "score": scores[:, i],
                "cost_usd": 0.001 * (i + 1),
                "latency_s": 1.0,
                "input_tokens": 10,
                "output_tokens": 2,
            }
        )
        for i, w in enumerate(workers)
    }
    return join_table(solves, tasks, workers, split or SplitSpec())


def learners_of(trainer: str, seeds: int = 1, **settings: object) -> list[Learn]:
    """How a trainer with these settings learns, with so many seeds."""
    training = {"trainers": {trainer: settings}, "export": trainer, "training_seeds": seeds}
    return learners(RouterTraining.model_validate(training), trainer)
