import logging

import numpy as np
import pytest

from trinity_assets.errors import TrainingError
from trinity_assets.routing.baselines import best_single, best_worker
from trinity_assets.routing.objective import TableObjective, route
from trinity_assets.routing.routed_score import RoutedScore, row_space
from trinity_assets.routing.specs import TRAINERS, ConstantSettings, RidgeSettings, RouterTraining, SepCMAESSettings
from trinity_assets.routing.trainers import constant, ridge, sep_cma_es
from trinity_assets.routing.trainers.all_heads import learners, train_heads
from trinity_assets.routing.trainers.normal_equations import Factored, Moments
from trinity_assets_tests.routing.planted import FLATTERED, features, planted_scores


def planted(n: int, hidden: int, workers: int = 3, noise: float = 0.0) -> tuple[TableObjective, np.ndarray, np.ndarray]:
    """An objective on n tasks, and the features and right workers of 500 others under the same rule."""
    drawn = features(n + 500, hidden)
    scores, right = planted_scores(drawn, workers, noise)
    return TableObjective(drawn[:n], scores[:n], np.arange(n) % 5), drawn[n:], right[n:]


class TestRidge:
    def test_it_recovers_a_planted_rule(self):
        objective, unseen, right = planted(1500, 10)
        head = ridge.train(objective, RidgeSettings())
        assert (route(unseen, head.weights) == right).mean() > 0.9
        assert (head.weights.shape, head.weights.dtype) == ((3, 10), np.float32)

    def test_it_beats_every_constant_through_noise(self):
        objective, unseen, right = planted(600, 20, noise=0.2)
        head = ridge.train(objective, RidgeSettings())
        accuracy = (route(unseen, head.weights) == right).mean()
        assert accuracy > max((right == worker).mean() for worker in range(3)) + 0.3

    def test_fewer_tasks_than_features(self):
        objective, unseen, right = planted(60, 80, workers=2)
        head = ridge.train(objective, RidgeSettings())
        assert head.weights.shape == (2, 80)
        assert (route(unseen, head.weights) == right).mean() > 0.6

    def test_the_row_space_changes_no_prediction(self):
        objective, unseen, _ = planted(60, 80)
        direct = ridge.RidgePath(objective.features.astype(float), objective.scores).head(0.1)
        coordinates, basis = row_space(objective.features)
        path = ridge.RidgePath(coordinates.astype(float), objective.scores)
        # The mean eigenvalue is over 80 values here and over 60 there; the penalty is the same.
        reduced = path.head(0.1 * len(basis) / 80) @ basis
        np.testing.assert_allclose(unseen @ reduced.T, unseen @ direct.T, atol=1e-3)

    def test_the_folded_intercept_predicts_the_mean_under_a_large_penalty(self):
        objective, _, _ = planted(300, 10)
        head = ridge.RidgePath(objective.features.astype(float), objective.scores).head(1e9)
        expected = np.tile(objective.scores.mean(axis=0), (300, 1))
        np.testing.assert_allclose(objective.features @ head.T, expected, atol=1e-4)

    def test_closed_form_equals_scikit_learn(self):
        from sklearn.linear_model import Ridge

        objective, unseen, _ = planted(300, 10, noise=0.2)
        drawn = objective.features.astype(float)
        centred = drawn - drawn.mean(axis=0)
        model = Ridge(alpha=0.5 * np.trace(centred.T @ centred) / 10).fit(drawn, objective.scores)
        head = ridge.RidgePath(drawn, objective.scores).head(0.5)
        np.testing.assert_allclose(unseen @ head.T, model.predict(unseen.astype(float)), atol=1e-5)

    def test_features_of_one_direction(self):
        """Of width one, and wider ones that all lie on a line: the regression on that number, tilted by a constant."""
        along = np.random.default_rng(0).normal(2.0, 1.0, 60).astype(np.float32)
        scores = np.stack([np.full(60, 0.5), (along > 2).astype(float)], axis=1)
        for drawn in (along[:, None], along[:, None] * np.array([[1.0, 2.0, -1.0]], dtype=np.float32)):
            objective = TableObjective(drawn, scores, np.arange(60) % 5)
            assert np.isfinite(ridge.train(objective, RidgeSettings()).weights).all()
        centred = along - along.mean(dtype=float)
        slope = (centred @ scores[:, 1]) / (centred @ centred * 1.5)
        slopes, _ = Factored(Moments.of(along[:, None].astype(float), scores)).solutions([0.5])
        assert slopes[0, :, 0] == pytest.approx([0, slope], rel=1e-5, abs=1e-12)

    def test_a_dominated_pool_gives_the_best_worker_always(self):
        generator = np.random.default_rng(0)
        scores = (generator.random((400, 3)) < [0.3, 0.9, 0.2]).astype(float)
        objective = TableObjective(features(400, 10), scores, np.arange(400) % 5)
        head = ridge.train(objective, RidgeSettings())
        assert (route(features(500, 10, seed=9), head.weights) == 1).all()

    def test_unknown_scores_are_left_out_and_not_zero(self):
        objective, unseen, right = planted(1500, 10)
        scores = objective.scores.copy()
        scores[np.random.default_rng(3).random(scores.shape) < 0.3] = np.nan
        holed = TableObjective(objective.features, scores, objective.folds)
        assert (route(unseen, ridge.train(holed, RidgeSettings()).weights) == right).mean() > 0.93
        scores[:, 1] = np.nan
        with pytest.raises(TrainingError, match=r"workers \[1\].* have no known score"):
            ridge.train(TableObjective(objective.features, scores, objective.folds), RidgeSettings())

    def test_one_fold_takes_the_strongest_penalty(self):
        drawn = features(30, 5)
        objective = TableObjective(drawn, planted_scores(drawn, 2)[0], np.zeros(30))
        assert ridge.train(objective, RidgeSettings(alphas=(0.1, 10.0))).record.chosen == {"alpha": 10.0}

    def test_it_needs_a_table(self):
        with pytest.raises(TrainingError, match="use sep_cma_es"):
            ridge.train(RoutedScore(features(4, 3), np.eye(4)[:, :2], 0.0, 0), RidgeSettings())


class TestConstant:
    def test_it_is_the_best_worker_whatever_the_question(self):
        generator = np.random.default_rng(0)
        scores = (generator.random((400, 3)) < [0.3, 0.9, 0.2]).astype(float)
        drawn = features(400, 10)
        head = constant.train(TableObjective(drawn, scores, np.arange(400) % 5), ConstantSettings())
        assert head.record.constant == 1
        assert head.reward == pytest.approx(scores[:, 1].mean())
        assert (head.record.picks(-features(50, 10), head.weights) == 1).all()
        assert head.record.chosen["agreement"] == 1.0
        assert (route(drawn, head.weights) == 1).all()

    def test_its_weights_say_how_often_they_do_not_stand_for_it(self):
        drawn = np.random.default_rng(1).standard_normal((300, 4)).astype(np.float32)
        objective = TableObjective(drawn, np.tile([0.0, 1.0], (300, 1)), np.zeros(300))
        head = constant.train(objective, ConstantSettings())
        assert head.record.chosen["agreement"] == (route(drawn, head.weights) == 1).mean() < 1.0
        assert (head.record.picks(drawn, head.weights) == 1).all()

    def test_ties_go_to_the_cheaper_and_unknown_scores_are_not_zero(self):
        scores = np.array([[0.5, 0.5, np.nan], [0.5, np.nan, np.nan], [0.5, 0.5, np.nan]])
        costs = np.tile([2.0, 1.0, 0.0], (3, 1))
        drawn = features(3, 2)
        assert constant.train(TableObjective(drawn, scores, np.zeros(3)), ConstantSettings()).record.constant == 0
        priced = TableObjective(drawn, scores, np.zeros(3), costs)
        assert constant.train(priced, ConstantSettings()).record.constant == 1

    def test_missing_hard_tasks_flatter_nobody_at_any_cost_weight(self):
        costs = np.tile([0.001, 0.002], (6, 1))
        objective = TableObjective(features(6, 3), FLATTERED, np.zeros(6), costs)
        assert best_worker(objective.rewarded, costs) == best_worker(objective.at(0.4).rewarded, costs) == 0
        assert constant.train(objective, ConstantSettings()).record.constant == 1
        swept = constant.sweep(objective, ConstantSettings(), [0.4, 0.6])
        # Where both have a score they are worth 0.5 and 1.0, less the weight once and twice.
        assert {weight: head.record.constant for weight, head in swept.items()} == {0.4: 1, 0.6: 0}

    def test_it_is_the_worker_that_heads_are_measured_against(self):
        generator = np.random.default_rng(0)
        differed = 0
        for _ in range(200):
            scores, costs = generator.integers(0, 2, (6, 3)).astype(float), generator.integers(1, 3, (6, 3)) / 1000
            scores[generator.random((6, 3)) < 0.3] = np.nan
            costs[generator.random((6, 3)) < 0.2] = np.nan
            scores[0, 0] = 1.0
            head = constant.train(TableObjective(features(6, 2), scores, np.zeros(6), costs), ConstantSettings())
            assert head.record.constant == best_single(scores, costs)
            differed += best_worker(scores, costs) != best_single(scores, costs)
        assert differed > 20

    def test_other_heads_are_not_constant(self):
        objective, unseen, _ = planted(60, 5)
        head = ridge.train(objective, RidgeSettings())
        assert head.record.constant is None
        np.testing.assert_array_equal(head.record.picks(unseen, head.weights), route(unseen, head.weights))

    def test_it_needs_a_table(self):
        with pytest.raises(TrainingError, match="constant learns from a table"):
            constant.train(RoutedScore(features(4, 3), np.eye(4)[:, :2], 0.0, 0), ConstantSettings())


def test_what_is_learnt_to_be_looked_at_once_says_nothing(caplog):
    caplog.set_level(logging.INFO)
    objective, _, _ = planted(60, 5)
    priced = TableObjective(objective.features, objective.scores, objective.folds, np.full((60, 3), 0.001))
    trainers: dict[str, dict[str, int]] = {"ridge": {}, "sep_cma_es": {"generations": 9, "patience": 1}}
    training = RouterTraining.model_validate(
        {"trainers": trainers, "export": "ridge", "cost_weights": [0.1], "training_seeds": 1}
    )
    learnt = {name: learners(training, name)[0](priced) for name in training.heads}
    assert caplog.messages == []
    trained = train_heads(priced, training)
    assert {name: head.record for name, head in learnt.items()} == {n: head.record for n, head in trained.items()}
    said = "\n".join(caplog.messages)
    for line in ("ridge: 60 tasks, alpha", "ridge: 1 cost weights, alphas", "sep_cma_es: stopped after generation"):
        assert line in said


def test_a_router_declares_its_trainers():
    declared = RouterTraining.model_validate(
        {"trainers": {"ridge": None, "sep_cma_es": {"generations": 7}}, "export": "ridge"}
    )
    assert declared.trainers == {"ridge": RidgeSettings(), "sep_cma_es": SepCMAESSettings(generations=7)}
    assert RouterTraining.model_validate(declared.model_dump()) == declared
    assert declared.head_identity()["sep_cma_es"]["settings"]["generations"] == 7
    assert [trainer.load() for trainer in TRAINERS.values()] == [ridge.train, sep_cma_es.train, constant.train]
    assert [trainer.load_sweep() for trainer in TRAINERS.values()] == [ridge.sweep, sep_cma_es.sweep, constant.sweep]


def test_cost_weights_are_declared_and_count_only_where_they_are_used():
    trainers: dict[str, dict[str, int]] = {"ridge": {}, "constant": {}}
    declared = RouterTraining.model_validate(
        {"trainers": trainers, "export": "ridge@0.01", "cost_weights": [0.2, 0.01]}
    )
    odd = RouterTraining.model_validate(
        {"trainers": trainers, "export": "ridge", "cost_weights": [0.0123456789, 0.01234567891, 3]}
    )
    assert [float(name.partition("@")[2]) for name in odd.heads[2:5]] == [0.0123456789, 0.01234567891, 3.0]
    assert odd.heads[4] == "ridge@3"
    assert declared.heads == ("ridge", "constant", "ridge@0.01", "ridge@0.2", "constant@0.01", "constant@0.2")
    assert declared.head_identity()["cost_weights"] == [0.01, 0.2]
    plain = RouterTraining.model_validate({"trainers": trainers, "export": "ridge"})
    assert set(plain.head_identity()) == {"ridge", "constant"}
    for weights, message in (([0.0], "different positive"), ([0.1, 0.1], "different positive")):
        with pytest.raises(ValueError, match=message):
            RouterTraining.model_validate({"trainers": trainers, "export": "ridge", "cost_weights": weights})
    with pytest.raises(ValueError, match=r"export is 'ridge@0.3'.* or their heads \['ridge@0.2', 'constant@0.2'\]"):
        RouterTraining.model_validate({"trainers": trainers, "export": "ridge@0.3", "cost_weights": [0.2]})


@pytest.mark.parametrize(
    ("trainers", "export", "message"),
    [
        ({"lasso": {}}, "lasso", "unknown trainer 'lasso'; there are ridge, sep_cma_es, constant"),
        ({"ridge": {}}, "sep_cma_es", "not among the trainers"),
        ({"ridge": {"alphas": [0]}}, "ridge", "positive"),
        ({"sep_cma_es": {"generation": 5}}, "sep_cma_es", r"sep_cma_es.generation\s+unknown field; allowed: gen"),
        ({}, "ridge", "at least 1 item"),
    ],
)
def test_wrong_declarations_are_refused(trainers, export, message):
    with pytest.raises(ValueError, match=message):
        RouterTraining.model_validate({"trainers": trainers, "export": export})
