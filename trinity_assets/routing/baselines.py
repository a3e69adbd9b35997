"""What a head has to beat, and what it cannot: routing policies that need no training, and two bounds.

**Rule for missing scores.** Workers are compared on the tasks that all of them have a score on, so that nobody's
missing hard tasks flatter it. Where there is no such task, they are compared by what is known of each. All that is
learnt from workers' means keeps to it: the policies here, the trainer ``constant``, the lookup of ``oracle``.

**Rule for ties between workers.** Equal mean scores go to the lowest mean cost, then to the earlier worker of the pool;
an unknown cost counts as the highest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NEIGHBOURS = 40
"""Neighbours of the kNN baseline; its accuracy is flat around this value."""


@dataclass(frozen=True)
class Choices:
    """What a policy does on n tasks: ``shares`` (n, L) is how often it asks each worker, each row summing to one."""

    name: str
    description: str
    shares: np.ndarray

    def values(self, measure: np.ndarray) -> np.ndarray:
        """The expected value (n,) of a ``measure`` (n, L) such as score or cost; NaN where the policy may meet one."""
        return np.where(self.shares > 0, self.shares * measure, 0.0).sum(axis=1)


def pick(name: str, description: str, workers: np.ndarray, pool_size: int) -> Choices:
    """The policy that asks worker ``workers[i]`` on task i."""
    return Choices(name, description, np.eye(pool_size)[workers])


def comparable(scores: np.ndarray) -> np.ndarray:
    """Which tasks (n,) workers with ``scores`` (n, L) are compared on, by the rule for missing scores above.

    Those that all have a score on, else those that any has one on, else all.
    """
    known = ~np.isnan(scores)
    candidates = known.all(axis=1), known.any(axis=1)
    return next((rows for rows in candidates if rows.any()), np.ones(len(scores), dtype=bool))


def best_worker(scores: np.ndarray, costs: np.ndarray) -> int:
    """The worker with the highest mean known score in ``scores`` (n, L); see the rule for ties above."""
    return int(preference(scores, costs)[0])


def best_single(scores: np.ndarray, costs: np.ndarray) -> int:
    """The best worker on the tasks on which workers with ``scores`` (n, L) are compared; see both rules above."""
    rows = comparable(scores)
    return best_worker(scores[rows], costs[rows])


def preference(scores: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """All workers (L,), best first. A worker with no known score comes last."""
    return np.lexsort((np.arange(scores.shape[1]), mean_known(costs, np.inf), -mean_known(scores, -np.inf)))


def mean_known(values: np.ndarray, otherwise: float) -> np.ndarray:
    """Column means (L,) over what is not NaN, rounded to 12 digits so that equal sums in another order stay equal."""
    known = ~np.isnan(values)
    counts = known.sum(axis=0)
    sums = np.where(known, values, 0.0).sum(axis=0)
    return np.where(counts > 0, np.round(sums / np.maximum(counts, 1), 12), otherwise)


@dataclass(frozen=True)
class Side:
    """One side of the split, row by row: features (n, H), scores and costs (n, L), benchmark names (n,)."""

    features: np.ndarray
    scores: np.ndarray
    costs: np.ndarray
    benchmarks: np.ndarray

    def comparable(self) -> Side:
        """The tasks on which workers are compared; see the rule for missing scores above."""
        rows = comparable(self.scores)
        return Side(self.features[rows], self.scores[rows], self.costs[rows], self.benchmarks[rows])


def baselines(train: Side, test: Side) -> list[Choices]:
    """The reference policies on the test tasks, the best single worker of train first.

    ``hindsight`` and ``oracle`` look at the test scores: they are bounds, not policies anyone could run.

    Args:
        test: complete, a score of every worker on every task.
    """
    train = train.comparable()
    pool_size = test.scores.shape[1]
    n = len(test.scores)
    single = best_worker(train.scores, train.costs)
    hindsight = best_worker(test.scores, test.costs)
    cheapest_first = preference(np.zeros_like(train.costs), train.costs)
    oracle = cheapest_first[test.scores[:, cheapest_first].argmax(axis=1)]
    return [
        pick("best_single", "the best worker on train, always", np.full(n, single), pool_size),
        Choices("random", "each worker equally often", np.full((n, pool_size), 1 / pool_size)),
        pick("lookup", "the best worker on train per benchmark", _lookup(train, test, single), pool_size),
        pick("knn", f"the best worker of the {NEIGHBOURS} nearest train tasks", _nearest(train, test), pool_size),
        pick("hindsight", "the best worker on test, always", np.full(n, hindsight), pool_size),
        pick("oracle", "the best worker of each task", oracle, pool_size),
    ]


def _lookup(train: Side, test: Side, otherwise: int) -> np.ndarray:
    """``otherwise`` on a benchmark without a task in train."""
    chosen = np.full(len(test.scores), otherwise)
    for benchmark in np.unique(test.benchmarks):
        seen = train.benchmarks == benchmark
        if seen.any():
            chosen[test.benchmarks == benchmark] = best_worker(train.scores[seen], train.costs[seen])
    return chosen


def _nearest(train: Side, test: Side) -> np.ndarray:
    """By cosine similarity of features with the train mean removed."""
    centre = train.features.mean(axis=0)
    similarity = _unit(test.features - centre) @ _unit(train.features - centre).T
    k = min(NEIGHBOURS, len(train.features))
    neighbours = np.argpartition(-similarity, k - 1, axis=1)[:, :k]
    return np.array([best_worker(train.scores[rows], train.costs) for rows in neighbours], dtype=np.intp)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)
