"""Heads that weigh what an answer costs."""

import numpy as np
import pytest

from trinity_assets.errors import TrainingError
from trinity_assets.routing.objective import ANSWERS_PER_COST, TableObjective, route, training_objective
from trinity_assets.routing.specs import ConstantSettings, RidgeSettings, RouterTraining, SepCMAESSettings
from trinity_assets.routing.trainers import constant, ridge, sep_cma_es
from trinity_assets.routing.trainers.all_heads import train_heads
from trinity_assets.workers.specs import Price
from trinity_assets_tests.routing.planted import WORKERS, features, planted_scores, table_of

USD = np.array([0.001, 0.004, 0.002])
"""Per answer, and so 1, 4 and 2 USD per 1000."""


def priced(n: int = 900, noise: float = 0.1, cost_weight: float = 0.0) -> TableObjective:
    drawn = features(n, 8)
    scores, _ = planted_scores(drawn, 3, noise)
    return TableObjective(drawn, scores, np.arange(n) % 5, np.tile(USD, (n, 1)), cost_weight)


def spent(objective: TableObjective, weights: np.ndarray) -> float:
    """USD per 1000 answers."""
    return float(1000 * USD[route(objective.features, weights)].mean())


def test_a_reward_is_the_score_less_the_weighted_cost_per_thousand_answers():
    objective = priced(50, cost_weight=0.05)
    np.testing.assert_allclose(objective.rewarded, objective.scores - 0.05 * np.array([1.0, 4.0, 2.0]))
    heads = np.random.default_rng(0).standard_normal((4, 3, 8)).astype(np.float32)
    expected = [objective.rewarded[np.arange(50), route(objective.features, head)].mean() for head in heads]
    np.testing.assert_allclose(objective(heads), expected, rtol=1e-5)
    np.testing.assert_array_equal(priced(50).rewarded, priced(50).scores)


def test_unknown_costs_are_the_workers_mean_and_unknown_scores_stay_unknown():
    scores = np.array([[1.0, 0.0], [0.0, 1.0], [np.nan, 1.0]])
    costs = np.array([[0.002, np.nan], [0.004, 0.001], [0.009, 0.003]])
    objective = TableObjective(features(3, 2), scores, np.zeros(3), costs)
    np.testing.assert_allclose(objective.charged(), [[0.002, 0.002], [0.004, 0.001], [np.nan, 0.003]])
    np.testing.assert_array_equal(np.isnan(objective.at(0.1).rewarded), np.isnan(scores))


def test_a_worker_of_unknown_cost_is_refused_only_where_costs_count():
    objective = priced(20)
    unpriced = objective.costs.copy()
    unpriced[:, 1] = np.nan
    plain = TableObjective(objective.features, objective.scores, objective.folds, unpriced)
    with pytest.raises(TrainingError, match=r"workers \[1\].* no known cost.* declare their price"):
        plain.at(0.1)
    named = TableObjective(objective.features, objective.scores, objective.folds, unpriced, workers=WORKERS)
    with pytest.raises(TrainingError, match=r"^workers bob have no known cost"):
        named.at(0.1)
    with pytest.raises(TrainingError, match="would reward spending"):
        objective.at(-0.1)
    with pytest.raises(TrainingError, match="no known cost"):
        ridge.sweep(plain, RidgeSettings(), [0.1])


def test_costs_are_at_the_declared_prices_and_enter_only_at_a_weight():
    scores, _ = planted_scores(features(200, 6), 3)
    table = table_of(scores, WORKERS)
    drawn = features(200, 6)
    charged = training_objective(table, drawn, WORKERS)
    declared = training_objective(table, drawn, WORKERS, {"bob": Price(input_per_mtok=100.0, output_per_mtok=500.0)})
    np.testing.assert_allclose(charged.costs[0], [0.001, 0.002, 0.003])
    np.testing.assert_allclose(declared.costs[0], [0.001, (10 * 100 + 2 * 500) / 1e6, 0.003])
    dearer = training_objective(table, drawn, WORKERS, {"bob": Price(input_per_mtok=900.0, output_per_mtok=500.0)})
    assert declared.digest() == dearer.digest()
    assert declared.at(0.1).digest() != dearer.at(0.1).digest()
    for trainer, settings in ((ridge, RidgeSettings()), (sep_cma_es, SepCMAESSettings(generations=2))):
        once, again = (trainer.train(one, settings).weights for one in (declared, dearer))
        np.testing.assert_array_equal(once, again)


class TestSweep:
    @pytest.mark.parametrize(
        ("trainer", "settings"),
        [(ridge, RidgeSettings()), (sep_cma_es, SepCMAESSettings(generations=40)), (constant, ConstantSettings())],
    )
    def test_a_larger_weight_spends_less_and_none_spends_nothing_on_quality(self, trainer, settings):
        objective = priced()
        swept = trainer.sweep(objective, settings, [0.001, 0.1, 10.0])
        costs = [spent(objective, head.weights) for head in swept.values()]
        assert costs[0] >= costs[1] >= costs[2] == pytest.approx(1.0, abs=0.05)
        for weight, head in swept.items():
            assert head.record.chosen["cost_weight"] == weight
            if trainer is not constant:
                assert head.reward == pytest.approx(float(objective.at(weight)(head.weights[None])[0]))

    def test_ridge_predicts_scores_and_costs_apart(self):
        objective = priced()
        swept = ridge.sweep(objective, RidgeSettings(), [0.0, 0.02, 0.5])
        step = swept[0.02].weights - swept[0.0].weights
        np.testing.assert_allclose(swept[0.5].weights - swept[0.0].weights, 25 * step, rtol=1e-3, atol=1e-6)
        predicted = objective.features @ (-step / 0.02).T
        np.testing.assert_allclose(predicted, np.tile(ANSWERS_PER_COST * USD, (900, 1)), rtol=1e-3)

    def test_ridge_calibrates_what_a_routing_reward_cannot_see(self):
        """Shrunk predictions rank workers as well, and are outweighed by any cost."""
        objective = priced(noise=0.25)
        features_, alphas = objective.features.astype(float), (1e-6, 1e-2, 1e6)
        errors = np.array(ridge.squared_errors(features_, objective.scores, objective.folds, alphas)).mean(axis=1)
        chosen = ridge.sweep(objective, RidgeSettings(alphas=alphas), [0.02])[0.02].record.chosen
        assert chosen["alpha"] == alphas[int(errors.argmin())] < 1e6

    def test_the_cross_validated_errors_are_those_of_scikit_learn(self):
        from sklearn.linear_model import Ridge

        objective = priced(200)
        drawn, folds = objective.features.astype(float), objective.folds
        expected = np.zeros(3)
        for fold in range(5):
            learn, held_out = drawn[folds != fold], drawn[folds == fold]
            centred = learn - learn.mean(axis=0)
            model = Ridge(alpha=0.3 * np.trace(centred.T @ centred) / 8).fit(learn, objective.scores[folds != fold])
            expected += ((model.predict(held_out) - objective.scores[folds == fold]) ** 2).sum(axis=0)
        (errors,) = ridge.squared_errors(drawn, objective.scores, folds, [0.3])
        np.testing.assert_allclose(errors, expected / 200, rtol=1e-5)


def test_a_router_trains_every_head_that_it_declares():
    training = RouterTraining.model_validate(
        {
            "trainers": {"ridge": {}, "sep_cma_es": {"generations": 3}, "constant": {}},
            "export": "ridge",
            "cost_weights": [0.01, 10],
        }
    )
    objective = priced(200)
    trained = train_heads(objective, training)
    assert tuple(trained) == training.heads
    np.testing.assert_array_equal(trained["ridge"].weights, ridge.train(objective, RidgeSettings()).weights)
    assert trained["constant@10"].record.constant == 0
    assert "cost_weight" not in trained["ridge"].record.chosen
