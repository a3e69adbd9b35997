"""What training costs: a search's generations against the classic loop over candidates and tasks, and ridge in seconds.

One process on one core: the thread pools of numpy's and scipy's BLAS are set to one thread, and seconds are those that
the process had the core, which other programs do not add to. The classic loop is written out here: pycma over the full
width, each float64 candidate applied to one float32 feature after the other. Both sides of a ratio take turns within
this run, and the fastest round of each counts; milliseconds are the machine's own. A training is ``GENERATIONS``
generations and its set-up, on either side: the loop's generations are alike, and few of them are timed for all. Run:
``python -m bench.bench_training``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from trinity_assets.routing.objective import TableObjective, mirrored_rewards
from trinity_assets.routing.specs import RidgeSettings, SepCMAESSettings
from trinity_assets.routing.trainers import ridge, sep_cma_es

if TYPE_CHECKING:
    from cma import CMAEvolutionStrategy

WORKERS, HIDDEN, POPULATION = 7, 1024, 30
NO_SIGNAL = 0.3
GENERATIONS = 60
ROUNDS = 5
RIDGE_TASKS = 3000
SIDE_OF_PEAK = 2048

TARGET_RATIOS = {160: 14.0, 1000: 13.0, 10000: 24.0}
"""Tasks, and how many times the loop's generations per second are asked for, set-up, ask and tell included."""
LOOP_GENERATIONS = {160: 5, 1000: 2, 10000: 1}
"""The generations of the loop that are timed; its set-up is timed apart."""
TARGET_SHARE_OF_PEAK = 0.5
TARGET_RIDGE_S = 3.0


def classic_strategy(dimensions: int) -> CMAEvolutionStrategy:
    """The set-up of the classic loop."""
    import cma

    generator = np.random.default_rng(0)
    options = {
        "CMA_diagonal": True,
        "popsize": POPULATION,
        "randn": lambda number, dimensions: generator.standard_normal((number, dimensions)),
        "seed": np.nan,
        "verbose": -10,
    }
    return cma.CMAEvolutionStrategy(np.zeros(dimensions), 0.5, options)


def classic_search(strategy: CMAEvolutionStrategy, features: np.ndarray, scores: np.ndarray, generations: int) -> None:
    """Separable CMA-ES as it is commonly written: candidate by candidate, task by task."""
    shape = scores.shape[1], features.shape[1]
    for _ in range(generations):
        candidates = strategy.ask()
        rewards = [classic_reward(candidate.reshape(shape), features, scores) for candidate in candidates]
        strategy.tell(candidates, [-reward for reward in rewards])


def classic_reward(head: np.ndarray, features: np.ndarray, scores: np.ndarray) -> float:
    """The mean score of the workers that one float64 head picks, one float32 feature after the other."""
    total = 0.0
    for feature, row in zip(features, scores, strict=True):
        total += row[int(np.argmax(head @ feature))]
    return total / len(scores)


@dataclass(frozen=True)
class Problem:
    """A random table, ``NO_SIGNAL`` of its tasks solved by every worker."""

    features: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, tasks: int) -> Problem:
        generator = np.random.default_rng(tasks)
        features = generator.standard_normal((tasks, HIDDEN)).astype(np.float32)
        scores = generator.integers(0, 2, (tasks, WORKERS)).astype(np.float64)
        scores[: int(NO_SIGNAL * tasks)] = 1.0
        return cls(features, scores)

    def objective(self) -> TableObjective:
        return TableObjective(self.features, self.scores, np.arange(len(self.scores)) % 5)


def seconds(run: Callable[[], object]) -> float:
    """The seconds of CPU time of one call."""
    started = time.process_time()
    run()
    return time.process_time() - started


def fastest(runs: dict[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """The least seconds of each, the runs taking turns."""
    taken = [{name: seconds(run) for name, run in runs.items()} for _ in range(rounds)]
    return {name: min(one[name] for one in taken) for name in runs}


def agreed(problem: Problem) -> None:
    """Both sides reward the same: up to the tasks that rounding decides."""
    heads = np.random.default_rng(1).standard_normal((3, WORKERS, HIDDEN))
    steps, mean = heads[1:].astype(np.float32), heads[0].astype(np.float32)
    mirrored = mirrored_rewards(problem.objective(), mean, steps)
    expected = [
        classic_reward(mean + sign * step, problem.features, problem.scores) for sign in (1.0, -1.0) for step in steps
    ]
    np.testing.assert_allclose(mirrored, expected, atol=2 / len(problem.scores))


def end_to_end(tasks: int) -> float:
    """Seconds per generation of both sides, set-up spread over as many of them, as one line; returns their ratio."""
    problem = Problem.of(tasks)
    agreed(problem)
    settings = SepCMAESSettings(generations=GENERATIONS, population=POPULATION)
    dimensions, loops = WORKERS * HIDDEN, LOOP_GENERATIONS[tasks]
    looping = classic_strategy(dimensions)
    taken = fastest(
        {
            "ours": lambda: sep_cma_es.train(problem.objective(), settings),
            "set-up": lambda: classic_strategy(dimensions),
            "loop": lambda: classic_search(looping, problem.features, problem.scores, loops),
        },
        rounds=3 if tasks >= 10000 else ROUNDS,
    )
    ours, loop = taken["ours"] / GENERATIONS, taken["set-up"] / GENERATIONS + taken["loop"] / loops
    print(f"{tasks:>6} {1e3 * ours:>11.2f} {1e3 * loop:>11.1f} {1 / ours:>9.1f} {1 / loop:>9.2f} {loop / ours:>8.1f}x")
    return loop / ours


def share_of_peak(tasks: int) -> float:
    """Of the fastest matrix product seen here, the share that a mirrored generation's rewards reach.

    Counted are the multiplications that are made: of tasks with signal, for the mean and half of the generation.
    """
    problem = Problem.of(tasks)
    objective = problem.objective()
    generator = np.random.default_rng(2)
    mean = generator.standard_normal((WORKERS, HIDDEN)).astype(np.float32)
    steps = generator.standard_normal((POPULATION // 2, WORKERS, HIDDEN)).astype(np.float32)
    square = generator.standard_normal((SIDE_OF_PEAK, SIDE_OF_PEAK)).astype(np.float32)
    taken = fastest(
        {"rewards": lambda: mirrored_rewards(objective, mean, steps), "product": lambda: square @ square}, rounds=9
    )
    decided = tasks - objective.undecided
    flops = 2 * decided * HIDDEN * WORKERS * (POPULATION // 2 + 1)
    rate, peak = flops / taken["rewards"], 2 * SIDE_OF_PEAK**3 / taken["product"]
    print(
        f"rewards of one generation at {tasks} tasks: {1e3 * taken['rewards']:.1f} ms, {rate / 1e9:.1f} GFLOP/s of the "
        f"{peak / 1e9:.1f} that a product of {SIDE_OF_PEAK} x {SIDE_OF_PEAK} reaches: {rate / peak:.0%}"
    )
    return rate / peak


def ridge_seconds() -> float:
    """Seconds of ridge with its cross-validation."""
    problem = Problem.of(RIDGE_TASKS)
    taken = fastest({"ridge": lambda: ridge.train(problem.objective(), RidgeSettings())}, rounds=3)["ridge"]
    print(f"ridge with cross-validation, {RIDGE_TASKS} tasks: {taken:.2f} s")
    return taken


def judged(what: str, reached: bool) -> None:
    print(f"{'PASS' if reached else 'FAIL'}  {what}")


def main() -> None:
    import scipy.linalg  # noqa: F401 - only what is loaded can be limited to one thread, and scipy brings its own BLAS

    print(
        f"{WORKERS} workers, width {HIDDEN}, population {POPULATION}, {NO_SIGNAL:.0%} of tasks without signal; "
        f"one thread; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    with threadpool_limits(limits=1, user_api="blas"):
        print(f"          ms per generation     generations per s, of trainings of {GENERATIONS} generations")
        print(f"{'tasks':>6} {'batched':>11} {'loop':>11} {'batched':>9} {'loop':>9} {'ratio':>9}")
        ratios = {tasks: end_to_end(tasks) for tasks in TARGET_RATIOS}
        share = share_of_peak(max(TARGET_RATIOS))
        fitted = ridge_seconds()
    for tasks, target in TARGET_RATIOS.items():
        judged(f"{tasks} tasks: {ratios[tasks]:.1f}x end to end, at least {target:.0f}x", ratios[tasks] >= target)
    judged(f"rewards at {share:.0%} of the peak, at least {TARGET_SHARE_OF_PEAK:.0%}", share >= TARGET_SHARE_OF_PEAK)
    judged(f"ridge in {fitted:.2f} s, under {TARGET_RIDGE_S:.0f} s", fitted < TARGET_RIDGE_S)


if __name__ == "__main__":
    main()
