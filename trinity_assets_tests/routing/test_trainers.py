import numpy as np
import pytest

from trinity_assets.errors import TrainingError
from trinity_assets.routing.objective import RoutedScore, TableObjective, route, row_space
from trinity_assets.routing.specs import TRAINERS, RidgeSettings, RouterTraining, SepCMAESSettings
from trinity_assets.routing.trainers import ridge, sep_cma_es
from trinity_assets_tests.routing.planted import features, planted_scores


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


class TestSepCMAES:
    def test_it_improves_and_beats_every_constant(self):
        objective, unseen, right = planted(400, 10)
        head = sep_cma_es.train(objective, SepCMAESSettings(generations=60))
        assert head.reward > objective.constant_rewards().max() + 0.3
        assert head.record.history[-1]["mean"] > head.record.history[0]["mean"] + 0.3
        assert (route(unseen, head.weights) == right).mean() > 0.8
        assert head.record.evaluations == 60 * (4 + int(3 * np.log(30)))

    @pytest.mark.parametrize("mirrored", [False, True])
    def test_a_seed_decides_everything(self, mirrored):
        objective, _, _ = planted(40, 60)
        settings = SepCMAESSettings(generations=8, mirrored=mirrored, seed=3)
        before = np.random.get_state(legacy=False)
        first, second = (sep_cma_es.train(objective, settings) for _ in range(2))
        np.testing.assert_array_equal(first.weights, second.weights)
        assert first.record == second.record
        assert first.weights.shape == (3, 60)
        other = sep_cma_es.train(objective, settings.model_copy(update={"seed": 4}))
        assert not np.array_equal(first.weights, other.weights)
        assert str(np.random.get_state(legacy=False)) == str(before)

    def test_it_returns_the_distribution_mean(self):
        objective, _, _ = planted(200, 6)
        head = sep_cma_es.train(objective, SepCMAESSettings(generations=5, population=8))
        assert head.reward == pytest.approx(float(objective(head.weights[None])[0]))
        assert head.record.evaluations == 40

    def test_a_flat_objective_gives_the_zero_head(self):
        objective = TableObjective(features(20, 4), np.ones((20, 3)), np.zeros(20))
        head = sep_cma_es.train(objective, SepCMAESSettings(generations=5))
        assert not head.weights.any()
        assert head.reward == 1.0


def test_a_router_declares_its_trainers():
    declared = RouterTraining.model_validate(
        {"trainers": {"ridge": None, "sep_cma_es": {"generations": 7}}, "export": "ridge"}
    )
    assert declared.trainers == {"ridge": RidgeSettings(), "sep_cma_es": SepCMAESSettings(generations=7)}
    assert RouterTraining.model_validate(declared.model_dump()) == declared
    assert declared.head_identity()["sep_cma_es"]["settings"]["generations"] == 7
    assert [TRAINERS[name].load() for name in declared.trainers] == [ridge.train, sep_cma_es.train]


@pytest.mark.parametrize(
    ("trainers", "export", "message"),
    [
        ({"lasso": {}}, "lasso", "unknown trainer 'lasso'; there are ridge, sep_cma_es"),
        ({"ridge": {}}, "sep_cma_es", "not among the trainers"),
        ({"ridge": {"alphas": [0]}}, "ridge", "positive"),
        ({"sep_cma_es": {"generation": 5}}, "sep_cma_es", r"sep_cma_es.generation\s+unknown field; allowed: gen"),
        ({}, "ridge", "at least 1 item"),
    ],
)
def test_wrong_declarations_are_refused(trainers, export, message):
    with pytest.raises(ValueError, match=message):
        RouterTraining.model_validate({"trainers": trainers, "export": export})
