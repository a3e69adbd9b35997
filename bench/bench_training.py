"""Generations per second of the batched objective against a literal loop over candidates and tasks.

Both sides run in this one process, on the same candidates and in the same pycma loop; the ratios are what
to read, the milliseconds depend on the machine. Run: ``python bench/bench_training.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trinity_assets.routing.objective import Objective, TableObjective
from trinity_assets.routing.specs import SepCMAESSettings
from trinity_assets.routing.trainers import sep_cma_es

WORKERS, HIDDEN, POPULATION = 7, 1024, 30
NO_SIGNAL = 0.3
GENERATIONS = 60
ROUNDS = 2
CASES = {12: 60, 160: 10, 1000: 2, 4000: 1}
"""Tasks, and the generations that the loop is given; it has no set-up that more of them would spread out."""


class LiteralLoop:
    """The same reward, head by head and task by task, in float64 and over the full width."""

    def __init__(self, features: np.ndarray, scores: np.ndarray) -> None:
        self._features = features.astype(np.float64)
        self._scores = scores
        self.shape = scores.shape[1], features.shape[1]

    def __call__(self, heads: np.ndarray) -> np.ndarray:
        return np.array([self._reward(head) for head in heads.astype(np.float64)])

    def _reward(self, head: np.ndarray) -> float:
        total = 0.0
        for feature, scores in zip(self._features, self._scores, strict=True):
            total += scores[int(np.argmax(head @ feature))]
        return total / len(self._scores)

    def reduced(self) -> tuple[LiteralLoop, None]:
        return self, None


@dataclass(frozen=True)
class Timing:
    """Seconds per evaluation of one generation's rewards, and per generation of a whole training."""

    reward: float
    generation: float


def fastest(run: Callable[[], object]) -> float:
    """The least seconds that one of a few calls took."""
    seconds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def timing(objective: Objective, heads: np.ndarray, generations: int) -> Timing:
    """Both timings; a training's set-up, such as finding the row space, counts towards its generations."""
    settings = SepCMAESSettings(generations=generations, population=POPULATION)
    training = fastest(lambda: sep_cma_es.train(objective, settings))
    return Timing(fastest(lambda: objective(heads)), training / generations)


def compare(tasks: int, literal_generations: int) -> tuple[Timing, Timing]:
    """The batched objective and the loop on one table, after checking that they agree."""
    generator = np.random.default_rng(tasks)
    features = generator.standard_normal((tasks, HIDDEN)).astype(np.float32)
    scores = generator.integers(0, 2, (tasks, WORKERS)).astype(np.float64)
    scores[: int(NO_SIGNAL * tasks)] = 1.0
    heads = generator.standard_normal((POPULATION, WORKERS, HIDDEN)).astype(np.float32)
    batched, literal = TableObjective(features, scores, np.zeros(tasks)), LiteralLoop(features, scores)
    np.testing.assert_allclose(batched(heads), literal(heads), atol=2 / tasks)
    return timing(batched, heads, GENERATIONS), timing(literal, heads, literal_generations)


def main() -> None:
    print(f"{WORKERS} workers, width {HIDDEN}, population {POPULATION}, {NO_SIGNAL:.0%} of tasks without signal")
    print("          one generation's rewards           generations per second, end to end")
    print(
        f"{'tasks':>6}  {'batched ms':>10}  {'loop ms':>9}  {'ratio':>6}    {'batched':>8}  {'loop':>8}  {'ratio':>6}"
    )
    for tasks, literal_generations in CASES.items():
        batched, literal = compare(tasks, literal_generations)
        print(
            f"{tasks:>6}  {1e3 * batched.reward:>10.2f}  {1e3 * literal.reward:>9.1f}  "
            f"{literal.reward / batched.reward:>5.1f}x    {1 / batched.generation:>8.1f}  "
            f"{1 / literal.generation:>8.2f}  {literal.generation / batched.generation:>5.1f}x"
        )


if __name__ == "__main__":
    main()
