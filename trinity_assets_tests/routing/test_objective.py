import numpy as np
import pytest

from trinity_assets.errors import TrainingError
from trinity_assets.routing import routed_score
from trinity_assets.routing.objective import TableObjective, training_objective
from trinity_assets.routing.routed_score import row_space
from trinity_assets_tests.routing.planted import WORKERS, features, planted_scores, table_of


def literal_rewards(drawn: np.ndarray, scores: np.ndarray, heads: np.ndarray) -> list[float]:
    """Task by task and head by head, as the rules are written down."""
    rewards = []
    for head in heads:
        collected = []
        for feature, row in zip(drawn, scores, strict=True):
            known = [worker for worker in range(len(row)) if not np.isnan(row[worker])]
            if known:
                logits = head @ feature
                collected.append(row[max((logits[worker], -worker, worker) for worker in known)[2]])
        rewards.append(float(np.mean(collected)))
    return rewards


def a_table(n: int, hidden: int, missing: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(n)
    scores = generator.integers(0, 3, (n, 4)) / 2
    scores[generator.random(scores.shape) < missing] = np.nan
    return features(n, hidden), scores, generator.standard_normal((6, 4, hidden)).astype(np.float32)


@pytest.mark.parametrize("missing", [0.0, 0.2, 0.7])
@pytest.mark.parametrize(("n", "hidden"), [(50, 12), (12, 50)])
def test_it_equals_the_literal_loop(monkeypatch, n, hidden, missing):
    monkeypatch.setattr(routed_score, "CHUNK_LOGITS", 200)
    drawn, scores, heads = a_table(n, hidden, missing)
    rewards = TableObjective(drawn, scores, np.zeros(n))(heads)
    np.testing.assert_allclose(rewards, literal_rewards(drawn, scores, heads), rtol=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_row_space_is_the_same_objective(missing):
    drawn, scores, heads = a_table(15, 60, missing)
    objective = TableObjective(drawn, scores, np.zeros(15))
    narrow, basis = objective.reduced()
    assert basis is not None
    assert narrow.shape[1] == len(basis) <= 15
    np.testing.assert_allclose(narrow(heads @ basis.T), objective(heads))
    np.testing.assert_allclose(objective((heads @ basis.T) @ basis), objective(heads))


def test_many_tasks_are_not_reduced():
    drawn, scores, _ = a_table(200, 8, 0.0)
    assert TableObjective(drawn, scores, np.zeros(200)).reduced()[1] is None


def test_row_space_reproduces_features_of_low_rank():
    drawn = (features(10, 3) @ features(3, 40, seed=2)).astype(np.float32)
    coordinates, basis = row_space(drawn)
    assert coordinates.shape == (10, 3)
    np.testing.assert_allclose(coordinates @ basis, drawn, atol=1e-4)
    np.testing.assert_allclose(basis @ basis.T, np.eye(3), atol=1e-6)


def test_tasks_without_signal_or_score_are_counted():
    scores = np.array([[1.0, 0.0], [1.0, 1.0], [np.nan, 0.0], [np.nan, np.nan]])
    objective = TableObjective(features(4, 5), scores, np.arange(4))
    assert (objective.dropped, objective.undecided) == (1, 2)
    np.testing.assert_allclose(objective.constant_rewards(), [1.0, 1 / 3])
    assert objective.folds.tolist() == [0, 1, 2]


def test_equal_logits_go_to_the_earlier_worker_and_unknown_scores_are_never_picked():
    scores = np.array([[0.0, 1.0, 0.5], [np.nan, 1.0, 0.0]])
    assert TableObjective(features(2, 5), scores, np.zeros(2))(np.zeros((1, 3, 5)))[0] == pytest.approx(0.5)


def test_only_train_tasks_enter():
    scores, _ = planted_scores(features(200, 6), 3)
    table = table_of(scores, WORKERS)
    objective = training_objective(table, features(200, 6), WORKERS)
    train = (table["split"] == "train").to_numpy()
    np.testing.assert_array_equal(objective.scores, scores[train])
    assert objective.workers == objective.at(0.1).workers == tuple(WORKERS)
    with pytest.raises(TrainingError, match="all 200 tasks fell into test"):
        training_objective(table.assign(split="test"), features(200, 6), WORKERS)
    with pytest.raises(TrainingError, match="no task in train has a known score"):
        TableObjective(features(2, 3), np.full((2, 3), np.nan), np.zeros(2))
    with pytest.raises(TrainingError, match=r"2 names and scores \(2, 3\) are not of one pool"):
        TableObjective(features(2, 3), np.ones((2, 3)), np.zeros(2), workers=["ada", "bob"])
