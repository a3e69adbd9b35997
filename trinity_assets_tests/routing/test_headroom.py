"""What a router could gain: on tables whose headroom is planted, and what is said of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from trinity_assets.routing.headroom import Headroom, headroom
from trinity_assets.routing.headroom_report import headroom_lines, headroom_markdown, headroom_verdict
from trinity_assets.routing.missing_tasks import missing_tasks
from trinity_assets.routing.specs import SplitSpec
from trinity_assets_tests.routing.planted import WORKERS, table_of

NAN = np.nan


def two_benchmarks(generator: np.random.Generator, n: int) -> pd.DataFrame:
    """A table in which ada solves 90% of the sums and 20% of the capitals, bob the reverse, and cyd half of both."""
    tables = [
        table_of((generator.random((n, 3)) < rates).astype(float), WORKERS, benchmark=benchmark)
        for benchmark, rates in (("sums", [0.9, 0.2, 0.5]), ("capitals", [0.2, 0.9, 0.5]))
    ]
    return pd.concat(tables, ignore_index=True)


def of(scores: np.ndarray, **options) -> Headroom:
    return headroom(table_of(scores, WORKERS), WORKERS, resamples=500, **options)


class TestHeadroom:
    def test_complementary_workers_leave_much_to_gain(self):
        table = two_benchmarks(np.random.default_rng(0), 300)
        found = headroom(table, WORKERS, resamples=500)
        train = table[table["split"] == "train"]
        scores = train[[f"score__{worker}" for worker in WORKERS]].to_numpy()
        single = scores.mean(axis=0).max()
        assert (found.n_train, found.n_complete, found.n_test) == (len(train), len(train), len(table) - len(train))
        assert found.best_single_score == pytest.approx(single)
        assert found.oracle is not None and found.lookup is not None
        assert found.oracle.value == pytest.approx(scores.max(axis=1).mean() - single)
        assert found.lookup.low < 0.35 < found.lookup.high
        assert found.cross_fitted is None and found.n_cross_fitted == 0
        assert [(one.benchmark, one.best, one.saturated) for one in found.benchmarks] == [
            ("sums", "ada", ()),
            ("capitals", "bob", ()),
        ]
        assert found.no_signal == pytest.approx((scores.max(axis=1) == scores.min(axis=1)).mean())
        assert found.nothing_to_route is None
        assert found.shown

    def test_held_out_scores_are_not_looked_at(self):
        table = two_benchmarks(np.random.default_rng(0), 100)
        before = headroom(table, WORKERS, resamples=100)
        table.loc[table["split"] == "test", "score__ada"] = 0.0
        assert headroom(table, WORKERS, resamples=100) == before

    def test_pairs_say_who_is_better_where(self):
        found = of(np.array([[1.0, 0, 1]] * 30 + [[0.0, 0.5, 0]] * 10), seed=1)
        train = found.n_complete
        (first, second, third) = found.pairs
        assert (first.first, first.second, second.second, third.first) == ("ada", "bob", "cyd", "bob")
        assert second.alike == 1
        assert first.first_better + first.second_better == pytest.approx(1)
        assert first.first_better == third.second_better
        assert round(first.first_better * train) == first.first_better * train

    def test_categories_are_looked_up_where_they_are_finer_than_benchmarks(self):
        generator = np.random.default_rng(0)
        table = table_of((generator.random((400, 3)) < 0.3).astype(float), WORKERS)
        assert headroom(table, WORKERS, resamples=100).category_lookup is None
        table["category"] = np.where(np.arange(400) % 2, "odd", "even")
        table.loc[table["category"] == "odd", "score__bob"] = 1.0
        table.loc[table["category"] == "even", "score__cyd"] = 1.0
        found = headroom(table, WORKERS, resamples=100)
        assert found.category_lookup is not None and found.lookup is None
        assert found.category_lookup.value > 0.3

    def test_samples_take_the_noise_out(self):
        """Three workers who guess alike: one sample promises 38 points, two show that nothing is there."""
        generator = np.random.default_rng(0)
        samples = (generator.random((900, 2, 3)) < 0.5).astype(float)
        once = of(samples[:, 0])
        twice = headroom(table_of(samples.mean(axis=1), WORKERS), WORKERS, samples, resamples=500)
        assert once.oracle is not None and once.oracle.value == pytest.approx(0.375, abs=0.04)
        assert not once.shown and not twice.shown
        assert headroom_verdict(once)[0] == headroom_verdict(twice)[0] == "perhaps something to route"
        assert twice.cross_fitted is not None and twice.oracle is not None
        assert twice.cross_fitted.low < 0 < twice.cross_fitted.high
        assert twice.oracle.value > 0.15
        assert twice.n_cross_fitted == twice.n_complete

    def test_samples_show_a_gain_that_is_there(self):
        generator = np.random.default_rng(0)
        chances = np.full((900, 3), 0.1)
        chances[np.arange(900), generator.integers(3, size=900)] = 0.9
        samples = (generator.random((900, 2, 3)) < chances[:, None, :]).astype(float)
        found = headroom(table_of(samples.mean(axis=1), WORKERS), WORKERS, samples, resamples=500)
        assert found.cross_fitted is not None and found.oracle is not None and found.best_single_score is not None
        assert found.shown
        truth = chances.max(axis=1).mean() - found.best_single_score
        assert found.cross_fitted.value < truth < found.oracle.value
        assert headroom_verdict(found)[0] == "something to route"

    def test_a_handful_of_tasks_that_tell_choices_apart_shows_nothing(self):
        """Capitals of which bob alone knows any, and sums of which he knows none."""

        def with_capitals(count: int) -> Headroom:
            sums = table_of(np.tile([1.0, 0, 0], (60, 1)), WORKERS, benchmark="sums")
            capitals = table_of(np.tile([0.0, 1, 0], (count, 1)), WORKERS, benchmark="capitals")
            table = pd.concat([sums, capitals], ignore_index=True).assign(split="train")
            table["fold"] = np.arange(60 + count) % 5
            return headroom(table, WORKERS, resamples=500)

        found = with_capitals(5)
        assert found.lookup is not None and found.oracle is not None
        assert found.lookup.value == found.oracle.value == pytest.approx(5 / 65)
        assert found.lookup.low < 0 and found.lookup.p == pytest.approx(2 * 0.5**5)
        assert not found.shown
        assert with_capitals(15).shown

    def test_near_duplicates_show_no_more_than_one_of_them(self):
        table = two_benchmarks(np.random.default_rng(0), 100)
        copies = pd.concat([table.assign(task_id=table["task_id"] + letter) for letter in "abc"], ignore_index=True)
        alone, copied = (headroom(one, WORKERS, resamples=100) for one in (table, copies))
        assert copied.n_test == 3 * alone.n_test
        assert copied.detectable == pytest.approx(alone.detectable)
        assert copied.oracle_detectable == pytest.approx(alone.oracle_detectable)
        assert alone.spread is not None and copied.spread == pytest.approx(3 * alone.spread)
        assert copied.shown and copied.lookup == alone.lookup

    def test_it_survives_json(self):
        found = headroom(two_benchmarks(np.random.default_rng(0), 50), WORKERS, resamples=100)
        assert Headroom.model_validate_json(found.model_dump_json()) == found


class TestNothingToRoute:
    def test_equal_workers(self):
        solved = (np.random.default_rng(0).random((100, 1)) < 0.6).astype(float)
        found = of(np.tile(solved, 3))
        assert found.nothing_to_route == f"all workers score the same on each of {found.n_train} train tasks"
        assert found.no_signal == 1

    def test_a_worker_that_dominates(self):
        scores = (np.random.default_rng(0).random((800, 3)) < [0.0, 0.6, 0.4]).astype(float)
        scores[:, 1] = scores.max(axis=1)
        found = of(scores)
        assert found.nothing_to_route is not None
        assert found.nothing_to_route.startswith("bob dominates: a perfect router gains 0.0 points")
        assert found.oracle is not None and found.oracle.high == pytest.approx(1 - 0.025 ** (1 / found.n_train))

    def test_few_tasks_leave_it_possible_that_no_worker_dominates(self):
        found = of(np.tile([0.0, 1.0, 0.0], (100, 1)))
        most = 100 * (1 - 0.025 ** (1 / found.n_train))
        assert found.nothing_to_route == (
            f"too few tasks: on none of {found.n_train} train tasks another worker is better than bob, and a perfect "
            f"router may gain up to {most:.1f} points"
        )

    def test_too_few_tasks(self):
        found = of(np.array([[1.0, 0, 0], [1, 1, 0], [1, 0, 0], [0, 1, 0]] * 4))
        assert found.oracle_detectable is not None and found.oracle is not None
        assert found.oracle.value < found.oracle_detectable
        assert found.nothing_to_route is not None
        assert found.nothing_to_route.startswith("too few tasks: even a perfect router gains")
        assert f"{found.n_test} held-out tasks" in found.nothing_to_route

    def test_more_of_the_same_tasks_are_enough(self):
        assert of(np.array([[1.0, 0, 0], [1, 1, 0], [1, 0, 0], [0, 1, 0]] * 100)).nothing_to_route is None

    def test_no_task_that_is_held_out_is_complete(self):
        table = table_of(np.eye(3)[np.arange(60) % 3], WORKERS)
        table.loc[table["split"] == "test", "score__ada"] = NAN
        found = headroom(table, WORKERS, resamples=100)
        assert found.nothing_to_route == "too few tasks: none that is held out has all workers' scores"
        assert found.detectable is None

    @pytest.mark.parametrize("tasks", [0, 20])
    def test_no_train_task_is_complete(self, tasks):
        scores = np.ones((tasks, 3))
        scores[:, 1] = NAN
        table = table_of(scores, WORKERS, SplitSpec(test=0.4))
        found = headroom(table, WORKERS, resamples=100)
        assert found.nothing_to_route == f"none of {found.n_train} train tasks has all workers' scores"
        assert found.scores["bob"] is None
        assert len(headroom_lines(found)) == 2

    def test_a_single_task_is_reported_on(self):
        table = table_of(np.array([[1.0, 0.0, 0.5]]), WORKERS).assign(split="train", fold=0)
        found = headroom(table, WORKERS, resamples=100)
        assert (found.best_single, found.lookup, found.category_lookup) == ("ada", None, None)
        assert found.nothing_to_route is not None


class TestMissingTasks:
    def test_the_hard_ones(self):
        generator = np.random.default_rng(0)
        hard = np.arange(300) < 60
        scores = (generator.random((300, 3)) < np.where(hard, 0.2, 0.8)[:, None]).astype(float)
        scores[:40, 0] = NAN
        (found,) = missing_tasks(scores, WORKERS, 999, seed=0)
        assert (found.worker, found.tasks) == ("ada", 40)
        assert found.others_there == pytest.approx(scores[:40, 1:].mean())
        assert found.others_elsewhere == pytest.approx(scores[40:, 1:].mean())
        assert found.p == 0.001
        assert found.harder

    def test_of_all_alike_a_false_alarm_is_as_seldom_as_it_should_be(self):
        generator = np.random.default_rng(0)
        p = []
        for _ in range(200):
            scores = (generator.random((60, 2)) < 0.6).astype(float)
            scores[generator.choice(60, 8, replace=False), 0] = NAN
            (found,) = missing_tasks(scores, WORKERS[:2], 99, seed=int(generator.integers(1000)))
            p.append(found.p)
        assert (np.array(p) <= 0.05).mean() <= 0.08

    def test_the_p_is_that_of_scipy(self):
        from scipy.stats import permutation_test

        generator = np.random.default_rng(1)
        scores = generator.random((40, 2))
        scores[:10, 0] = NAN
        there, elsewhere = scores[:10, 1], scores[10:, 1]
        theirs = permutation_test(
            (there, elsewhere),
            lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis),
            vectorized=True,
            n_resamples=4999,
            alternative="less",
            rng=generator,
        )
        (found,) = missing_tasks(scores, WORKERS[:2], 4999, seed=0)
        assert found.p == pytest.approx(theirs.pvalue, abs=0.02)

    def test_nothing_is_said_of_workers_that_lack_none_or_all(self):
        assert missing_tasks(np.ones((9, 3)), WORKERS, 99, seed=0) == ()
        scores = np.ones((9, 3))
        scores[:, 1] = NAN
        assert missing_tasks(scores, WORKERS, 99, seed=0) == ()

    def test_the_tests_are_one_family(self):
        generator = np.random.default_rng(0)
        scores = (generator.random((200, 3)) < np.where(np.arange(200) < 30, 0.1, 0.8)[:, None]).astype(float)
        scores[:20, 0] = NAN
        (alone,) = missing_tasks(scores, WORKERS, 999, seed=0)
        scores[100:120, 1] = NAN
        first, second = missing_tasks(scores, WORKERS, 999, seed=0)
        assert (first.worker, second.worker) == ("ada", "bob")
        assert first.p == pytest.approx(2 * alone.p)
        assert first.harder and not second.harder


class TestReport:
    def test_it_says_what_was_found(self):
        table = two_benchmarks(np.random.default_rng(0), 300)
        table.loc[table["benchmark"] == "sums", "score__ada"] = 1.0
        unsolved = (table["score__bob"] == 0) & (table["score__cyd"] == 0) & (table["benchmark"] == "capitals")
        table.loc[unsolved & (table["split"] == "train"), "score__ada"] = NAN
        found = headroom(table, WORKERS, resamples=300)
        text = headroom_markdown(found)
        assert text.startswith("- **Something to route**")
        assert f"Looked at {found.n_train} train tasks, without {found.n_train - found.n_complete} that lack" in text
        assert found.detectable is not None
        assert f"With {found.n_test} test tasks you can see {100 * found.detectable:.0f} points" in text
        assert "saturated: ada solved everything" in text
        assert "its score flatters it" in text
        assert "best worker per benchmark gains +" in text
        assert "which one sample per task cannot take out" in text
        assert "per category" not in text
        assert all(line.startswith("- ") for line in text.splitlines())

    def test_a_large_pool_names_the_pairs_at_both_ends(self):
        pool = [f"w{i}" for i in range(6)]
        generator = np.random.default_rng(0)
        found = headroom(table_of((generator.random((200, 6)) < 0.5).astype(float), pool), pool, resamples=100)
        (line,) = [line for line in headroom_lines(found) if line.startswith("Scored alike")]
        assert line.count(";") == 5
        alike = sorted(found.pairs, key=lambda pair: -pair.alike)
        assert f"{alike[0].first} and {alike[0].second}" in line and f"{alike[-1].first} and {alike[-1].second}" in line

    def test_nothing_to_route_comes_first(self):
        found = of(np.ones((30, 3)))
        assert headroom_lines(found)[0] == f"**Nothing to route**: {found.nothing_to_route}."
