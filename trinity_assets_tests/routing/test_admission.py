"""What one more worker adds to a pool."""

from __future__ import annotations

import numpy as np
import pytest

from trinity_assets.errors import TrainingError
from trinity_assets.routing.admission import Admission, admission
from trinity_assets.routing.headroom_report import admission_lines

N = 400
BENCHMARKS = np.repeat(["sums", "capitals"], N // 2)


def drawn(*rates: tuple[float, float], seed: int = 0, samples: int = 1) -> np.ndarray:
    """(N, samples, L) 0/1 scores of workers with a rate on each benchmark."""
    chances = np.repeat(np.array(rates).T, N // 2, axis=0)
    return (np.random.default_rng(seed).random((N, samples, len(rates))) < chances[:, None, :]).astype(float)


def admitted(samples: np.ndarray, worker: int, **options) -> Admission:
    halves = None if samples.shape[1] == 1 else np.stack([samples[:, 0], samples[:, 1]], axis=1)
    return admission(samples.mean(axis=1), BENCHMARKS[: len(samples)], worker, halves=halves, resamples=400, **options)


def test_a_worker_that_is_better_on_one_benchmark():
    samples = drawn((0.7, 0.4), (0.5, 0.4), (0.2, 0.9))
    found = admitted(samples, 2)
    scores = samples[:, 0]
    assert found.oracle.value == pytest.approx(scores.max(axis=1).mean() - scores[:, :2].max(axis=1).mean())
    assert found.lookup.low < 0.25 < found.lookup.high
    assert (found.n_tasks, found.n_missing, found.cross_fitted) == (N, 0, None)
    assert found.answer == "yes"
    assert (
        admission_lines(found, "cyd")[0] == "cyd is worth admitting: it adds more than chance. By 400 tasks, it adds:"
    )


def test_a_copy_of_a_worker_adds_nothing():
    samples = drawn((0.7, 0.4), (0.4, 0.6))
    copied = np.concatenate([samples, samples[:, :, :1]], axis=2)
    found = admitted(copied, 2)
    for gain in (found.lookup, found.single):
        assert (gain.value, gain.low, gain.high) == (0, 0, 0)
    # Of n tasks without one that a worker adds, the share that it would add to is below 1 - 0.025^(1/n).
    assert (found.oracle.value, found.oracle.low) == (0, 0)
    assert found.oracle.high == pytest.approx(1 - 0.025 ** (1 / len(samples)))
    assert found.answer == "no"
    few = admitted(copied[:60], 2)
    assert few.oracle.high == pytest.approx(1 - 0.025 ** (1 / 60)) and few.answer == "unclear"
    assert "not worth admitting" in admission_lines(found, "cyd")[0]


def test_a_guesser_seems_to_add_to_the_plain_oracle_only():
    """Its successes are independent of the others': in one sample nothing tells them from skill."""
    samples = drawn((0.5, 0.5), (0.5, 0.5), (0.5, 0.5), samples=2)
    once, twice = admitted(samples[:, :1], 2), admitted(samples, 2)
    assert once.oracle.low > 0.05
    assert once.answer == "unclear"
    assert twice.cross_fitted is not None
    assert twice.cross_fitted.low < 0 < twice.cross_fitted.high
    assert twice.answer == "unclear"
    assert len(admission_lines(twice, "cyd")) == len(admission_lines(once, "cyd")) + 1


def test_a_handful_of_tasks_that_it_alone_solves_tells_nothing():
    for solved, answer in ((5, "unclear"), (14, "yes")):
        scores = np.zeros((100, 2))
        scores[:, 0] = 1
        scores[::7][:solved] = [0, 1]
        found = admission(scores, np.where(scores[:, 1] == 1, "rare", "usual"), 1, resamples=400)
        assert (found.lookup.low > 0) == (answer == "yes") and found.lookup.p == pytest.approx(2 * 0.5**solved)
        assert found.answer == answer


def test_the_best_worker_is_missed_by_everyone_who_lacks_it():
    found = admitted(drawn((0.4, 0.4), (0.5, 0.5), (0.9, 0.8)), 2)
    assert found.single.low < 0.35 < found.single.high
    assert found.lookup == found.single


def test_where_it_stands_in_the_pool_does_not_matter():
    samples = drawn((0.7, 0.4), (0.5, 0.4), (0.2, 0.9))
    assert admitted(samples[:, :, [2, 0, 1]], 0) == admitted(samples, 2)


def test_tasks_that_lack_a_score_are_left_out():
    samples = drawn((0.7, 0.4), (0.5, 0.4), (0.2, 0.9))
    samples[:30, :, 1] = np.nan
    found = admitted(samples, 2)
    assert (found.n_tasks, found.n_missing) == (N - 30, 30)
    assert "without 30 that lack a score" in admission_lines(found, "cyd")[0]


def test_near_duplicates_are_resampled_together():
    samples = drawn((0.7, 0.4), (0.5, 0.4), (0.2, 0.9))
    pairs = np.repeat(samples, 2, axis=0)
    benchmarks, groups = np.repeat(BENCHMARKS, 2), np.repeat(np.arange(N), 2)
    together = admission(pairs[:, 0], benchmarks, 2, groups=groups, resamples=400)
    apart = admitted(samples, 2)
    assert together.oracle.low == pytest.approx(apart.oracle.low)
    assert together.lookup.value == pytest.approx(apart.lookup.value)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(TrainingError, match="1 workers and 400 tasks"):
        admission(np.ones((N, 1)), BENCHMARKS, 0)
    with pytest.raises(TrainingError, match="tasks in two folds"):
        admission(np.ones((1, 2)), BENCHMARKS[:1], 0)
