"""Oracles: what noise adds to the plain one and not to the cross-fitted one, by simulation and by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from trinity_assets.errors import TrainingError
from trinity_assets.routing.oracle import cross_fitted_lookup, cross_fitted_oracle, plain_oracle, sample_halves
from trinity_assets_tests.routing.planted import FLATTERED

NAN = np.nan


def asked(chances: np.ndarray, samples: int, generator: np.random.Generator) -> np.ndarray:
    """(n, samples, L) 0/1 scores of workers that solve each task with the given chances (n, L)."""
    return (generator.random((len(chances), samples, chances.shape[1])) < chances[:, None, :]).astype(float)


def halves_of(samples: np.ndarray) -> np.ndarray:
    return np.stack([samples[:, 0::2].mean(axis=1), samples[:, 1::2].mean(axis=1)], axis=1)


def error_of(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5)


class TestAgainstTruth:
    @pytest.mark.parametrize("samples", [2, 4, 5])
    def test_workers_that_are_alike_leave_nothing_to_choose(self, samples):
        """The truth is the mean chance: the cross-fitted oracle finds it, the plain one is far above."""
        generator = np.random.default_rng(samples)
        chance = generator.random(4000)
        drawn = asked(np.tile(chance[:, None], 4), samples, generator)
        cross_fitted = cross_fitted_oracle(halves_of(drawn)) - chance
        plain = plain_oracle(drawn.mean(axis=1)) - chance
        assert abs(cross_fitted.mean()) < 3 * error_of(cross_fitted)
        assert plain.mean() > 20 * error_of(plain)

    def test_workers_that_differ_are_bracketed(self):
        generator = np.random.default_rng(0)
        chances = generator.beta(0.4, 0.4, size=(4000, 3))
        drawn = asked(chances, 4, generator)
        truth = chances.max(axis=1)
        cross_fitted, plain = cross_fitted_oracle(halves_of(drawn)) - truth, plain_oracle(drawn.mean(axis=1)) - truth
        assert plain.mean() > 3 * error_of(plain)
        assert cross_fitted.mean() < -3 * error_of(cross_fitted)
        more = cross_fitted_oracle(halves_of(asked(chances, 40, generator))) - truth
        assert cross_fitted.mean() < more.mean() < 0, "more samples choose better"
        assert more.mean() > -0.02

    def test_it_is_unbiased_for_what_its_own_choices_are_worth(self):
        generator = np.random.default_rng(0)
        chances = generator.random((30, 3))
        found, worth = [], []
        for _ in range(400):
            halves = halves_of(asked(chances, 2, generator))
            found.append(cross_fitted_oracle(halves).mean())
            picks = []
            for half in (0, 1):
                order = np.argsort(-halves[:, half].mean(axis=0), kind="stable")
                picks.append(chances[np.arange(30), order[halves[:, half][:, order].argmax(axis=1)]].mean())
            worth.append(np.mean(picks))
        differences = np.array(found) - np.array(worth)
        assert abs(differences.mean()) < 3 * error_of(differences)

    def test_the_lookup_finds_no_gain_where_there_is_none(self):
        generator = np.random.default_rng(0)
        gains = []
        for _ in range(100):
            scores = (generator.random((200, 4)) < 0.5).astype(float)
            strata, folds = np.arange(200) % 8, np.arange(200) // 8 % 5
            gains.append(cross_fitted_lookup(scores, np.zeros_like(scores), strata, folds).mean() - 0.5)
        assert abs(np.mean(gains)) < 3 * error_of(np.array(gains))


class TestByHand:
    def test_the_plain_oracle_takes_the_best_that_is_known(self):
        scores = np.array([[0.0, 1.0], [0.5, NAN], [NAN, NAN]])
        np.testing.assert_array_equal(plain_oracle(scores), [1.0, 0.5, NAN])

    def test_a_half_chooses_and_the_other_scores(self):
        halves = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.5, NAN]]])
        np.testing.assert_array_equal(cross_fitted_oracle(halves), [0.0, 1.0, NAN])

    def test_equals_go_to_who_is_better_elsewhere_in_the_choosing_half(self):
        halves = np.array([[[1.0, 1.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
        np.testing.assert_array_equal(cross_fitted_oracle(halves), [1.0, 1.0])

    def test_missing_hard_tasks_flatter_nobody(self):
        scores = np.vstack([FLATTERED, FLATTERED])
        folds, strata = np.repeat([0, 1], 6), np.zeros(12)
        chosen = cross_fitted_lookup(scores, np.ones_like(scores), strata, folds)
        np.testing.assert_array_equal(chosen, scores[:, 1])
        halves = np.stack([np.vstack([[0.5, 0.5], FLATTERED]), np.tile([0.25, 0.75], (7, 1))], axis=1)
        assert cross_fitted_oracle(halves)[0] == (0.75 + 0.5) / 2

    def test_known_samples_go_to_the_halves_in_turn(self):
        tasks = pd.DataFrame({"task_id": ["b", "a", "a"], "benchmark": ["quiz", "quiz", "other"]})
        solves = {
            ("ada", "quiz"): pd.DataFrame(
                {
                    "task_id": ["a", "a", "a", "a", "b", "b"],
                    "sample": [3, 0, 1, 2, 0, 1],
                    "score": pd.array([0.0, 1.0, None, 0.5, 1.0, 0.0], dtype="Float64"),
                }
            ),
            ("ada", "other"): pd.DataFrame({"task_id": ["a"], "sample": [0], "score": [1.0]}),
        }
        halves = sample_halves(solves, tasks, ["ada"])
        assert halves is not None
        np.testing.assert_array_equal(halves[:, :, 0], [[1.0, 0.0], [0.5, 0.5], [1.0, NAN]])

    def test_one_sample_per_task_has_no_halves(self):
        solves = {("ada", "quiz"): pd.DataFrame({"task_id": ["a", "b"], "sample": 0, "score": [1.0, None]})}
        tasks = pd.DataFrame({"task_id": ["a", "b"], "benchmark": "quiz"})
        assert sample_halves(solves, tasks, ["ada"]) is None

    def test_the_lookup_learns_on_the_other_folds(self):
        scores = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
        costs, folds = np.zeros_like(scores), np.array([0, 1, 0, 1, 0])
        strata = np.array(["p", "p", "q", "q", "r"])
        np.testing.assert_array_equal(cross_fitted_lookup(scores, costs, strata, folds), [1, 1, 1, 1, 0])
        # Without strata: fold 1 is a draw, which goes to the first; fold 0 prefers the second.
        np.testing.assert_array_equal(cross_fitted_lookup(scores, costs, np.zeros(5), folds), [1, 0, 0, 1, 0])
        with pytest.raises(TrainingError, match="in 1 fold"):
            cross_fitted_lookup(scores, costs, strata, np.zeros(5))
