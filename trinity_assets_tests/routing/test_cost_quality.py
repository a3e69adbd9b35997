"""AIQ and APGR of heads on held-out tasks, against values that follow from how the tasks were planted."""

from __future__ import annotations

import numpy as np
import pytest

from trinity_assets.routing.baselines import Choices, Side, pick
from trinity_assets.routing.cost_quality import frontier, gaps_recovered
from trinity_assets.routing.evaluation import evaluate
from trinity_assets.routing.frontier import apgr, strong_share_curve
from trinity_assets.routing.resampling import Resampling
from trinity_assets_tests.routing.planted import WORKERS, features, planted_scores, table_of

HARD = np.arange(200) % 2 == 0
"""Of 200 tasks every second one is solved by the strong worker alone, the others by both."""

PAIR = ["small", "large"]


def resampling(n: int = 200, resamples: int = 500) -> Resampling:
    return Resampling(np.arange(n), resamples, seed=0)


def side(costs: tuple[float, float] = (1.0, 3.0), drawn: np.ndarray | None = None) -> Side:
    drawn = np.stack([np.ones(200), np.where(HARD, 1.0, -1.0)], axis=1) if drawn is None else drawn
    scores = np.stack([~HARD, np.ones(200, dtype=bool)], axis=1).astype(float)
    return Side(drawn, scores, np.tile(costs, (200, 1)), np.full(200, "quiz"))


def asking_large(name: str, rows: np.ndarray) -> Choices:
    return pick(name, "", rows.astype(int), 2)


class TestFrontier:
    def test_a_sweep_that_spends_on_hard_tasks_alone_is_above_the_workers(self):
        heads = [asking_large("ridge", HARD), asking_large("ridge@1", np.zeros(200)), asking_large("constant", HARD)]
        found = frontier(heads, side(), PAIR)
        assert found is not None
        assert [(one.worker, one.cost_usd, one.accuracy) for one in found.singles] == [
            ("small", 1.0, 0.5),
            ("large", 3.0, 1.0),
        ]
        assert found.singles_aiq == pytest.approx(0.75), "the line from (1, 0.5) to (3, 1)"
        (sweep,) = found.sweeps
        assert (sweep.trainer, sweep.heads) == ("ridge", ("ridge", "ridge@1"))
        assert sweep.aiq == pytest.approx(0.875), "from (1, 0.5) to (2, 1), and 1 up to (3, 1)"
        assert sweep.difference == pytest.approx(0.125)

    def test_the_cheapest_worker_is_what_every_sweep_ends_in(self):
        found = frontier([asking_large("ridge", HARD), asking_large("ridge@1", HARD)], side(), PAIR)
        assert found is not None and found.sweeps[0].aiq == pytest.approx(0.875), "from (1, 0.5), without such a head"

    def test_heads_of_one_weight_make_no_sweep(self):
        found = frontier([asking_large("ridge", HARD)], side(), PAIR)
        assert found is not None and found.sweeps == ()

    @pytest.mark.parametrize("costs", [(1.0, 1.0), (0.0, 0.0), (1.0, np.nan)])
    def test_costs_that_are_unknown_or_equal_make_no_frontier(self, costs):
        assert frontier([asking_large("ridge", HARD)], side(costs), PAIR) is None


class TestGapsRecovered:
    right = np.array([[0.0, 0.0], [0.0, 1.0]])
    """Prefers the large worker by the second component, which tells the hard tasks."""

    def test_heads_that_know_nothing_all_and_the_opposite(self):
        heads = {"right": self.right, "same": np.zeros((2, 2)), "wrong": -self.right}
        found = {one.head: one for one in gaps_recovered(heads, side(), side(), PAIR, resampling())}
        assert {(one.weak, one.strong) for one in found.values()} == {("small", "large")}
        # Half of the calls recover the whole gap: a triangle of 1/4, then 1 over the other half.
        assert found["right"].apgr == pytest.approx(0.75)
        assert (found["same"].apgr, found["same"].low, found["same"].high) == pytest.approx((0.5, 0.5, 0.5))
        assert found["wrong"].apgr == pytest.approx(0.25)
        assert 0.70 < found["right"].low < 0.73 and 0.77 < found["right"].high < 0.80

    def test_a_resample_of_every_task_once_is_the_curve_itself(self):
        generator = np.random.default_rng(0)
        drawn = generator.normal(size=(200, 2)).round(1)
        head = generator.normal(size=(2, 2))
        tested = side(drawn=drawn)
        found = gaps_recovered({"drawn": head}, tested, tested, PAIR, resampling(resamples=4000))
        curve = strong_share_curve(drawn @ (head[1] - head[0]), tested.scores[:, 0], tested.scores[:, 1])
        assert found[0].apgr == apgr(*curve, 0.5, 1.0)
        assert found[0].low < found[0].apgr < found[0].high

    def test_without_a_gap_on_test_there_is_nothing_to_recover(self):
        level = side()
        level.scores[:, 0] = 1.0
        assert gaps_recovered({"right": self.right}, side(), level, PAIR, resampling()) == []

    def test_the_weak_worker_is_the_cheapest_other_and_without_costs_the_worst(self):
        scores = np.stack([np.ones(200), ~HARD, np.zeros(200)], axis=1)
        drawn = np.stack([np.ones(200), np.where(HARD, 1.0, -1.0)], axis=1)
        for costs, weak in (((3.0, 1.0, 2.0), "middle"), ((3.0, np.nan, 2.0), "worst"), ((0.0, 0.0, 0.0), "worst")):
            tasks = Side(drawn, scores, np.tile(costs, (200, 1)), np.full(200, "quiz"))
            (found,) = gaps_recovered(
                {"head": np.zeros((3, 2))}, tasks, tasks, ["best", "middle", "worst"], resampling()
            )
            assert (found.weak, found.strong) == (weak, "best")


def test_an_evaluation_says_whom_each_head_asked_against_who_was_best():
    drawn = features(400, 8)
    scores, right = planted_scores(drawn, 3)
    scores[:40] = 1.0
    table = table_of(scores, WORKERS)
    head = np.zeros((3, 8))
    head[1, 0] = 1
    evaluation = evaluate(table, drawn, {"always_bob": head}, WORKERS, resamples=50)
    held_out = (table["split"] == "test").to_numpy()
    told = held_out & (np.arange(400) >= 40)
    (found,) = evaluation.choices
    expected = [*(np.bincount(right[told], minlength=3)), (held_out & ~told).sum()]
    assert found.counts == ((0,) * 4, tuple(expected), (0,) * 4)


def test_of_several_best_workers_the_asked_one_counts_else_each_in_part():
    drawn = features(60, 8)
    table = table_of(np.tile([1.0, 0.0, 1.0], (60, 1)), WORKERS)
    heads = {name: np.zeros((3, 8)) for name in WORKERS}
    for row, name in enumerate(WORKERS):
        heads[name][row, 0] = 1
    evaluation = evaluate(table, drawn, heads, WORKERS, resamples=50)
    n, none = evaluation.n_test, (0.0,) * 4
    assert {one.head: one.counts for one in evaluation.choices} == {
        "ada": ((n, 0, 0, 0), none, none),
        "bob": (none, (n / 2, 0, n / 2, 0), none),
        "cyd": (none, none, (0, 0, n, 0)),
    }
