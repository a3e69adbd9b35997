"""Intervals, verdicts and power: against scipy, by hand, and by what they promise over many simulated tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from trinity_assets.routing.power import detectable, detectable_difference, spread_per_task, tasks_needed
from trinity_assets.routing.statistics import (
    discordant,
    estimated_gain,
    least_difference,
    oracle_gap_closed,
    paired_bootstrap,
    resampled_means,
    task_groups,
    verdict,
)

TABLES = 2000
"""The share of tables that an interval of 95% holds the truth in then has a standard error of half a point."""


def outcomes(
    generator: np.random.Generator, *size: int, wins: float | np.ndarray, losses: float | np.ndarray
) -> np.ndarray:
    """Differences of 0/1 scores: 1 where the policy alone is right, -1 where the reference is, 0 otherwise."""
    drawn = generator.random(size)
    return (drawn < wins).astype(float) - (drawn > 1 - losses)


def coverage(differences: np.ndarray, truth: float, groups: np.ndarray | None = None) -> float:
    """In what part of the tables, which are the columns, the interval holds the true mean."""
    low, high = paired_bootstrap(differences, 1000, seed=0, groups=groups)
    return float(((low <= truth) & (truth <= high)).mean())


class TestResampling:
    def test_the_interval_is_that_of_scipy(self):
        from scipy.stats import bootstrap

        differences = np.random.default_rng(0).normal(0.1, 1.0, (300, 3))
        low, high = paired_bootstrap(differences, 8000, seed=0)
        for column in range(3):
            data = (differences[:, column],)
            theirs = bootstrap(data, np.mean, n_resamples=8000, method="percentile", rng=np.random.default_rng(1))
            margin = 0.1 * theirs.standard_error
            assert low[column] == pytest.approx(theirs.confidence_interval.low, abs=margin)
            assert high[column] == pytest.approx(theirs.confidence_interval.high, abs=margin)

    def test_a_table_larger_than_a_chunk_is_resampled_whole(self):
        differences = outcomes(np.random.default_rng(0), 3000, 2, wins=0.2, losses=0.1)
        mean, means = resampled_means(differences, 1000, seed=0)
        np.testing.assert_allclose(mean, differences.mean(axis=0))
        np.testing.assert_allclose(means.mean(axis=0), mean, atol=4 * differences.std() / 3000**0.5 / 1000**0.5)
        np.testing.assert_allclose(means.std(axis=0), differences.std(axis=0) / 3000**0.5, rtol=0.1)

    def test_what_is_asked_of_one_policy_does_not_depend_on_the_others(self):
        differences = outcomes(np.random.default_rng(0), 80, 4, wins=0.2, losses=0.1)
        low, high = paired_bootstrap(differences, 400, seed=3)
        reversed_low, reversed_high = paired_bootstrap(differences[:, ::-1], 400, seed=3)
        np.testing.assert_allclose(reversed_low[::-1], low)
        np.testing.assert_allclose(reversed_high[::-1], high)
        alone = estimated_gain(differences[:, 2], 400, seed=3)
        assert (alone.low, alone.high) == (pytest.approx(low[2]), pytest.approx(high[2]))

    def test_copies_of_tasks_tell_nothing_new(self):
        differences = outcomes(np.random.default_rng(0), 60, 2, wins=0.3, losses=0.1)
        copied, groups = np.repeat(differences, 5, axis=0), np.repeat(np.arange(60), 5)
        np.testing.assert_allclose(
            paired_bootstrap(copied, 500, 0, groups), paired_bootstrap(differences, 500, 0), rtol=1e-12
        )
        low, high = paired_bootstrap(copied, 500, 0)
        grouped_low, grouped_high = paired_bootstrap(copied, 500, 0, groups)
        np.testing.assert_allclose((grouped_high - grouped_low) / (high - low), 5**0.5, rtol=0.1)

    def test_groups_of_unequal_size_by_hand(self):
        # Of two groups, {1} and {0, 0, 0}, one is drawn: the mean is 1 or 0.
        mean, means = resampled_means(np.array([[1.0], [0], [0], [0]]), 200, 0, np.array(["a", "b", "b", "b"]))
        assert mean[0] == 0.25
        assert set(means[:, 0]) == {0.0, 1.0}

    def test_seeds_that_agree_add_nothing(self):
        differences = outcomes(np.random.default_rng(0), 60, 2, wins=0.3, losses=0.1)
        thrice = np.repeat(differences[:, None, :], 3, axis=1)
        np.testing.assert_allclose(paired_bootstrap(thrice, 500, 0), paired_bootstrap(differences, 500, 0), rtol=1e-12)

    def test_seeds_that_differ_widen_the_interval_as_their_variance_says(self):
        by_seed = np.array([-0.2, -0.1, 0.0, 0.1, 0.2])
        differences = np.tile(by_seed[None, :, None], (50, 1, 1))
        _, means = resampled_means(differences, 20_000, seed=0)
        assert means.std() == pytest.approx(by_seed.std(ddof=1) / 5**0.5, rel=0.02)

    def test_one_task_has_no_width(self):
        low, high = paired_bootstrap(np.array([[0.5, -1.0]]), 100, seed=0)
        np.testing.assert_array_equal([low, high], [[0.5, -1.0]] * 2)

    def test_groups_of_a_table_are_apart_in_each_benchmark(self):
        table = pd.DataFrame({"benchmark": ["p", "p", "q", "q"], "group": ["a", "a", "a", "b"]})
        assert task_groups(table).tolist() == [0, 0, 1, 2]


def won(differences: np.ndarray, groups: np.ndarray | None = None) -> float:
    """In what part of the tables, which are the columns, the verdict is a win."""
    ends = paired_bootstrap(differences, 1000, 0, groups)
    verdicts = [
        verdict(low, high, discordant(column, groups).p) for low, high, column in zip(*ends, differences.T, strict=True)
    ]
    return verdicts.count("win") / len(verdicts)


class TestSimulatedTables:
    """The promises of the report: 95% intervals hold the truth in 93 to 97% of tables, and a win is seldom false."""

    @pytest.mark.parametrize(("n", "wins", "losses"), [(60, 0.2, 0.1), (200, 0.08, 0.05), (600, 0.15, 0.15)])
    def test_intervals_over_tasks(self, n, wins, losses):
        differences = outcomes(np.random.default_rng(n), n, TABLES, wins=wins, losses=losses)
        assert 0.93 <= coverage(differences, wins - losses) <= 0.97

    def test_intervals_over_near_duplicates(self):
        generator = np.random.default_rng(0)
        sizes = generator.integers(1, 5, size=120)
        groups = np.repeat(np.arange(120), sizes)
        # A group is easy or hard for the policy as a whole; its members differ a little.
        tilt = generator.choice([-0.1, 0.1], size=(120, TABLES))[groups]
        differences = outcomes(generator, len(groups), TABLES, wins=0.2 + tilt, losses=0.12 - tilt)
        assert 0.93 <= coverage(differences, 0.08, groups) <= 0.97
        copies = outcomes(generator, 120, TABLES, wins=0.2, losses=0.12)[groups]
        assert 0.93 <= coverage(copies, 0.08, groups) <= 0.97
        assert coverage(copies, 0.08) < 0.85, "as if near-duplicates were tasks of their own"

    def test_intervals_over_tasks_and_seeds(self):
        generator = np.random.default_rng(0)
        seeds = 10
        of_task = outcomes(generator, 200, 1, TABLES, wins=0.2, losses=0.1)
        of_seed = generator.normal(0, 0.02, (1, seeds, TABLES))
        differences = of_task + of_seed + generator.normal(0, 0.3, (200, seeds, TABLES))
        assert 0.93 <= coverage(differences, 0.1) <= 0.97

    @pytest.mark.parametrize("n", [40, 150, 500])
    @pytest.mark.parametrize("discordance", [0.06, 0.12, 0.4])
    def test_a_policy_that_is_no_better_seldom_wins(self, n, discordance):
        differences = outcomes(np.random.default_rng(n), n, TABLES, wins=discordance / 2, losses=discordance / 2)
        ends = paired_bootstrap(differences, 1000, seed=0)
        bold = [verdict(low, high) for low, high in zip(*ends, strict=True)]
        assert bold.count("win") <= 0.05 * TABLES
        assert won(differences) <= bold.count("win") / TABLES

    def test_as_many_tasks_as_needed_show_a_difference_in_80_percent_of_tables(self):
        discordance, difference = 0.11, 0.05
        n = tasks_needed(discordance, difference)
        assert detectable(discordance, n) == pytest.approx(difference, rel=0.01)
        wins, losses = (discordance + difference) / 2, (discordance - difference) / 2
        differences = outcomes(np.random.default_rng(0), n, TABLES, wins=wins, losses=losses)
        assert 0.75 <= won(differences) <= 0.85

    def test_near_duplicates_show_less(self):
        """Of three of a kind two come out alike. Counted as tasks of their own, so many would show it half the time."""
        generator = np.random.default_rng(0)

        def drawn(groups: int, tables: int) -> np.ndarray:
            of_group = outcomes(generator, groups, tables, wins=0.1, losses=0.05)[np.repeat(np.arange(groups), 3)]
            return np.where(np.arange(3 * groups)[:, None] % 3 < 2, of_group, generator.permuted(of_group, axis=0))

        many = np.repeat(np.arange(20_000), 3)
        spread = spread_per_task(drawn(20_000, 1)[:, 0], many)
        assert spread == pytest.approx(0.15 * (4 + 1) / 3, rel=0.05)
        groups = tasks_needed(spread, 0.05) // 3
        assert 0.72 <= won(drawn(groups, 500), np.repeat(np.arange(groups), 3)) <= 0.85

    def test_copies_of_tasks_show_nothing_more(self):
        differences = np.repeat([1.0, -1.0, 0.0], [8, 4, 48])
        copied, groups = np.repeat(differences, 5), np.repeat(np.arange(60), 5)
        alone = detectable_difference(differences)
        assert alone == pytest.approx(2.8016 * (12 / 60 / 60) ** 0.5, rel=1e-4)
        assert detectable_difference(copied, groups) == pytest.approx(alone)
        assert detectable_difference(copied) == pytest.approx(alone / 5**0.5)
        assert np.isnan(detectable_difference(np.array([1.0, -1.0]), np.array([0, 0]))), "no group tells them apart"

    @pytest.mark.parametrize(("difference", "tasks"), [(0.05, 345), (0.03, 960), (0.01, 8634)])
    def test_tasks_needed(self, difference, tasks):
        assert tasks_needed(0.11, difference) == pytest.approx(tasks, rel=0.005)


class TestGapClosed:
    def test_by_hand(self):
        reference, oracle = np.zeros(100), np.ones(100)
        policy = np.repeat([1.0, 0.0], [25, 75])
        found = oracle_gap_closed(policy, reference, oracle, 2000, seed=0)
        assert found is not None
        assert found.value == 0.25
        alone = estimated_gain(policy, 2000, seed=0)
        assert (found.low, found.high) == (pytest.approx(alone.low), pytest.approx(alone.high))

    def test_the_oracle_closes_the_gap_and_the_reference_none_of_it(self):
        generator = np.random.default_rng(0)
        reference, oracle = np.zeros(200), (generator.random(200) < 0.3).astype(float)
        whole = oracle_gap_closed(oracle, reference, oracle, 500, seed=0)
        none = oracle_gap_closed(reference, reference, oracle, 500, seed=0)
        assert whole is not None and none is not None
        assert (whole.value, whole.low, whole.high) == (1, 1, 1)
        assert (none.value, none.low, none.high) == (0, 0, 0)

    def test_there_is_no_share_of_no_gap(self):
        same = np.ones(50)
        assert oracle_gap_closed(same, same, same, 200, seed=0) is None
        hardly = same.copy()
        hardly[0] = 0
        assert oracle_gap_closed(same, hardly, same, 200, seed=0) is None

    def test_a_gap_on_a_handful_of_tasks_is_none(self):
        assert oracle_gap_closed(np.ones(3), np.zeros(3), np.ones(3), 200, 0) is None
        assert oracle_gap_closed(np.ones(9), np.zeros(9), np.ones(9), 200, 0) is not None

    def test_the_interval_holds_the_true_share(self):
        generator = np.random.default_rng(200)
        hits = 0
        for _ in range(500):
            better = (generator.random(200) < 0.3).astype(float)
            policy = better * (generator.random(200) < 0.4)
            found = oracle_gap_closed(policy, np.zeros(200), better, 400, seed=0)
            assert found is not None
            hits += found.low <= 0.4 <= found.high
        assert 0.93 <= hits / 500 <= 0.97


class TestDiscordant:
    def test_it_is_the_sign_test_of_scipy(self):
        from scipy.stats import binomtest

        differences = np.repeat([1.0, -1.0, 0.0], [14, 5, 81])
        found = discordant(differences)
        assert (found.wins, found.losses) == (14, 5)
        assert found.p == pytest.approx(binomtest(14, 19).pvalue)
        assert discordant(np.zeros(9)).p == 1

    def test_fractions_are_tested_by_their_sum_and_not_by_their_signs(self):
        """Half right where chance is right a third of the time: as many tasks won as lost, and surely better."""
        from scipy.stats import permutation_test

        differences = np.repeat([2 / 3, -1 / 3], [200, 200])
        found = discordant(differences)
        assert (found.wins, found.losses) == (200, 200)
        assert found.p < 0.001
        few = np.random.default_rng(3).normal(0.25, 1, 30)
        expected = permutation_test((few,), np.mean, permutation_type="samples", n_resamples=20_000, rng=0).pvalue
        assert discordant(few).p == pytest.approx(expected, abs=0.02)
        assert 0.05 < expected < 0.95

    def test_near_duplicates_count_once(self):
        differences = np.array([1.0, 1.0, 1.0, -1.0, 1.0, -1.0])
        found = discordant(differences, np.array([0, 0, 0, 1, 2, 2]))
        assert (found.wins, found.losses, found.p) == (1, 1, 1.0)

    def test_signs_are_counted_where_all_differences_are_of_one_size(self):
        by_hand = discordant(np.repeat([1.0, -1.0, 0.0], [9, 1, 30])).p
        assert by_hand == 22 / 1024
        assert discordant(np.repeat([0.1 + 0.2, -0.3, 0.0], [9, 1, 30])).p == by_hand
        assert discordant(np.repeat([1.0, -1.0], [27, 3]), np.repeat(np.arange(10), 3)).p == by_hand

    def test_few_that_agree_are_no_proof(self):
        differences = np.repeat([1.0, 0.0], [4, 36])
        (low,), (high,) = paired_bootstrap(differences[:, None], 4000, seed=0)
        p = discordant(differences).p
        assert low > 0
        assert p == 0.125
        assert (verdict(low, high), verdict(low, high, p)) == ("win", "tie")
        assert verdict(-0.2, -0.1, 0.01) == "loss"


class TestLeastDifference:
    @pytest.mark.parametrize(("wins", "losses", "n"), [(0, 0, 90), (0, 3, 40), (12, 5, 200), (50, 0, 50)])
    def test_it_is_that_of_the_exact_bounds_of_scipy(self, wins, losses, n):
        from scipy.stats import binomtest

        differences = np.repeat([1.0, -1.0, 0.0], [wins, losses, n - wins - losses])
        gained = binomtest(wins, n).proportion_ci(0.95, "exact").low
        lost = binomtest(losses, n).proportion_ci(0.95, "exact").high
        assert least_difference(differences) == pytest.approx(gained - lost, abs=1e-9)

    def test_near_duplicates_count_once(self):
        groups = np.repeat(np.arange(30), 3)
        assert least_difference(np.zeros(90), groups) == pytest.approx(least_difference(np.zeros(30)))
