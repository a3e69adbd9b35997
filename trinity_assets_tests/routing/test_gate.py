"""Cross-fitting and the gate: who is routed by what, and what may be published."""

from __future__ import annotations

import numpy as np
import pytest

from trinity_assets.errors import TrainingError
from trinity_assets.routing.crossfit import CrossFit, TrainTasks, cross_fit
from trinity_assets.routing.evaluation import evaluate
from trinity_assets.routing.gate import judge
from trinity_assets.routing.objective import TableObjective
from trinity_assets.routing.specs import GateSpec
from trinity_assets.routing.trainers.head import TrainedHead, TrainingRecord
from trinity_assets.routing.trainers.ridge import RidgePath
from trinity_assets_tests.routing.planted import WORKERS, features, learners_of, planted_scores, table_of

(RIDGE,) = learners_of("ridge")


def tasks_of(scores: np.ndarray, drawn: np.ndarray | None = None, costs: np.ndarray | None = None) -> TrainTasks:
    n = len(scores)
    drawn = features(n, 8) if drawn is None else drawn
    costs = np.tile([0.001, 0.002, 0.003][: scores.shape[1]], (n, 1)) if costs is None else costs
    return TrainTasks(drawn, scores, costs, np.arange(n) % 5, np.arange(n))


def judged(tasks: TrainTasks, fit: CrossFit, **gate: float):
    return judge("ridge", tasks, fit, GateSpec(**gate), resamples=500, seed=0)


class TestCrossFit:
    def test_no_task_is_routed_by_what_was_learnt_from_it(self):
        tasks = tasks_of(np.eye(3)[np.arange(60) % 3])
        seen = []

        def learn(objective: TableObjective) -> TrainedHead:
            seen.append({tuple(row) for row in objective.features})
            return RIDGE(objective)

        cross_fit(tasks, learn)
        rows = [tuple(row) for row in tasks.features]
        assert [seen[fold] for fold in range(5)] == [
            {row for row, own in zip(rows, tasks.folds, strict=True) if own != fold} for fold in range(5)
        ]

    def test_the_reference_is_the_best_single_worker_of_the_other_folds(self):
        scores = np.zeros((10, 2))
        scores[tasks_of(scores).folds == 0, 0] = 1  # who is best only within the fold that is left out
        scores[2, 1] = 1
        fit = cross_fit(tasks_of(scores), RIDGE)
        assert fit.folds == 5
        assert fit.reference[[0, 5]].tolist() == [1, 1]
        assert fit.reference[[1, 3, 4]].tolist() == [0, 0, 0]

    def test_missing_hard_tasks_flatter_no_reference(self):
        """The first worker is best on what it answered, and worse on what both answered."""
        scores = np.zeros((60, 2))
        scores[::2, 0] = 1
        scores[np.arange(60) % 3 > 0, 1] = 1
        scores[(np.arange(60) % 2 == 1) & (np.arange(60) % 3 == 0), 0] = np.nan
        scores[(np.arange(60) % 2 == 1) & (np.arange(60) % 3 == 1), 0] = np.nan
        assert np.nanmean(scores[:, 0]) > np.nanmean(scores[:, 1])
        complete = ~np.isnan(scores).any(axis=1)
        best = int(scores[complete].mean(axis=0).argmax())
        assert set(cross_fit(tasks_of(scores), RIDGE).reference) == {best}

    def test_a_planted_rule_is_found(self):
        drawn = features(400, 8)
        scores, right = planted_scores(drawn, 3)
        fit = cross_fit(tasks_of(scores, drawn), RIDGE)
        assert np.mean(fit.chosen == right) > 0.9

    def test_tasks_with_an_unknown_score_are_learnt_from_and_not_judged(self):
        scores = np.eye(3)[np.arange(60) % 3]
        scores[7, 1] = np.nan
        assert 7 not in cross_fit(tasks_of(scores), RIDGE).rows

    def test_where_nothing_can_be_learnt_the_reference_is_chosen(self):
        def learn(objective: TableObjective) -> TrainedHead:
            raise TrainingError("nothing")

        fit = cross_fit(tasks_of(np.eye(3)[np.arange(60) % 3]), learn)
        assert (fit.chosen == fit.reference).all() and len(fit.rows) == 60

    def test_one_fold_leaves_nothing_out(self):
        tasks = tasks_of(np.eye(3))
        alone = TrainTasks(tasks.features, tasks.scores, tasks.costs, np.zeros(3), tasks.groups)
        fit = cross_fit(alone, RIDGE)
        result = judged(alone, fit)
        assert (len(fit.rows), result.passed, result.n) == (0, False, 0)
        assert result.reason == "the train tasks hold too few folds to leave out to cross-fit on"


class TestGate:
    @staticmethod
    def fit(tasks: TrainTasks, chosen: np.ndarray) -> CrossFit:
        return CrossFit(np.arange(len(chosen)), chosen, np.full(len(chosen), 2), 5)

    def test_a_sure_gain_passes(self):
        tasks = tasks_of(np.eye(3)[np.arange(90) % 3])
        result = judged(tasks, self.fit(tasks, np.arange(90) % 3))
        assert result.passed
        assert (result.accuracy, result.reference_accuracy) == (1.0, pytest.approx(1 / 3))
        assert 0.5 < result.low < result.difference < result.high < 0.8
        assert result.saving == pytest.approx(1 - (1 + 2 + 3) / 9)

    def test_a_handful_of_tasks_that_tell_them_apart_does_not_pass(self):
        scores = np.zeros((5, 3))
        scores[:, 0] = 1
        tasks = tasks_of(scores)
        result = judged(tasks, self.fit(tasks, np.zeros(5, dtype=int)))
        assert result.low > 0 and result.p == pytest.approx(2 * 0.5**5)
        assert not result.passed and result.reason.endswith("from too few tasks that tell them apart (p 0.06)")

    def test_the_reference_itself_does_not_pass(self):
        tasks = tasks_of(np.eye(3)[np.arange(90) % 3])
        result = judged(tasks, self.fit(tasks, np.full(90, 2)))
        assert not result.passed
        assert result.reason == (
            "its cross-fitted gain over the best single worker is +0.0 to +0.0 points, which is not above zero"
        )

    @pytest.mark.parametrize(
        ("gate", "passed", "words"),
        [
            ({}, False, "which is not above zero"),
            ({"saving": 0.6, "tolerance": 0.05}, True, "it saves 67% of the cost"),
            ({"saving": 0.7, "tolerance": 0.05}, False, "not surely 70% of the cost"),
            # 90 tasks without a loss leave a loss rate of 4% possible, whatever is resampled.
            ({"saving": 0.6, "tolerance": 0.03}, False, "it may be worse by 4.0 points, more than the 3 allowed"),
        ],
    )
    def test_the_same_answers_for_less_pass_where_that_is_asked_for(self, gate, passed, words):
        tasks = tasks_of(np.ones((90, 3)))
        result = judged(tasks, self.fit(tasks, np.zeros(90, dtype=int)), **gate)
        assert (result.passed, result.difference) == (passed, 0.0)
        assert words in result.reason

    @pytest.mark.parametrize(("tolerance", "passed"), [(0.01, False), (0.1, False), (0.2, True)])
    def test_cheaper_and_worse_passes_within_the_tolerance(self, tolerance, passed):
        scores = np.ones((100, 3))
        scores[:10, 0] = 0
        tasks = tasks_of(scores)
        result = judged(tasks, self.fit(tasks, np.zeros(100, dtype=int)), saving=0.5, tolerance=tolerance)
        assert result.passed == passed

    @pytest.mark.parametrize("unpriced", [0, 2])
    def test_an_unknown_price_saves_nothing(self, unpriced):
        costs = np.tile([0.001, 0.002, 0.003], (90, 1))
        costs[:, unpriced] = np.nan
        tasks = tasks_of(np.ones((90, 3)), costs=costs)
        result = judged(tasks, self.fit(tasks, np.zeros(90, dtype=int)), saving=0.1, tolerance=0.05)
        assert (result.passed, result.saving) == (False, None)
        assert "what it saves is unknown or nothing" in result.reason

    def test_the_price_of_a_worker_that_nobody_asked_does_not_matter(self):
        costs = np.tile([0.001, np.nan, 0.003], (90, 1))
        tasks = tasks_of(np.ones((90, 3)), costs=costs)
        result = judged(tasks, self.fit(tasks, np.zeros(90, dtype=int)), saving=0.6, tolerance=0.05)
        assert result.passed and result.saving == pytest.approx(2 / 3)

    def test_a_cost_that_is_unknown_counts_as_that_workers_mean(self):
        costs = np.tile([0.001, 0.002, 0.003], (90, 1))
        costs[::2, 0] = np.nan
        costs[0, 2], costs[1, 2] = np.nan, 0.006
        tasks = tasks_of(np.ones((90, 3)), costs=costs)
        result = judged(tasks, self.fit(tasks, np.zeros(90, dtype=int)), saving=0.6, tolerance=0.05)
        single = 0.003 * 88 + 0.006 + (0.003 * 88 + 0.006) / 89
        assert result.saving == pytest.approx(1 - 90 * 0.001 / single)
        assert result.passed


class TestInAnEvaluation:
    def test_a_complementary_pool_passes_and_a_dominated_one_does_not(self):
        drawn = features(500, 8)
        scores, _ = planted_scores(drawn, 3, noise=0.1)
        dominated = scores.copy()
        dominated[:, 1] = 1.0
        recipes = {"ridge": [RIDGE], "sep_cma_es": learners_of("sep_cma_es", generations=20)}
        found = {}
        for name, one in (("complementary", scores), ("dominated", dominated)):
            evaluation = evaluate(table_of(one, WORKERS), drawn, {}, WORKERS, recipes=recipes, resamples=500)
            found[name] = [(gate.trainer, gate.passed) for gate in evaluation.gates]
        assert found == {
            "complementary": [("ridge", True), ("sep_cma_es", True)],
            "dominated": [("ridge", False), ("sep_cma_es", False)],
        }

    def test_the_held_out_tasks_take_no_part(self):
        drawn = features(500, 8)
        table = table_of(planted_scores(drawn, 3, noise=0.1)[0], WORKERS)
        before = evaluate(table, drawn, {}, WORKERS, recipes={"ridge": [RIDGE]}, resamples=100).gate("ridge")
        held_out = table.index[table["split"] == "test"]
        table.loc[held_out, [f"score__{worker}" for worker in WORKERS]] = 0.5
        assert evaluate(table, drawn, {}, WORKERS, recipes={"ridge": [RIDGE]}, resamples=100).gate("ridge") == before


class TestNullTables:
    """How often the gate lets something pass that it should not: not clearly more often than in one of twenty."""

    @staticmethod
    def learn(objective: TableObjective) -> TrainedHead:
        """Ridge at one penalty: where there is nothing to learn, cross-validation has nothing to choose by."""
        weights = RidgePath(objective.features.astype(float), objective.scores).head(0.1).astype(np.float32)
        record = TrainingRecord(settings={}, chosen={}, reward=0.0, history=(), evaluations=0)
        return TrainedHead(weights, record, 0.0)

    def test_heads_of_noise(self):
        """Features that say nothing of the scores, and tasks that are harder or easier for all workers."""
        generator = np.random.default_rng(0)
        passed = 0
        for _ in range(500):
            scores = (generator.random((100, 3)) < generator.random((100, 1))).astype(float)
            tasks = tasks_of(scores, generator.standard_normal((100, 4)).astype(np.float32))
            fit = cross_fit(tasks, self.learn)
            passed += judge("ridge", tasks, fit, GateSpec(), resamples=200, seed=0).passed
        assert passed <= 0.025 * 500, passed

    def test_heads_that_save_and_lose_what_is_tolerated(self):
        generator = np.random.default_rng(0)
        passed = 0
        for _ in range(200):
            drawn = generator.random(150)
            scores = np.ones((150, 3))
            scores[drawn < 0.02, 2] = 0
            scores[drawn > 1 - 0.12, 0] = 0
            tasks = tasks_of(scores)
            fit = TestGate.fit(tasks, np.zeros(150, dtype=int))
            passed += judge("ridge", tasks, fit, GateSpec(saving=0.5, tolerance=0.1), resamples=200, seed=0).passed
        assert passed <= 0.05 * 200
