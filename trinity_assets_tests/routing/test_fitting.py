"""A router from a table and features: what it holds, what it would publish, and whom it would ask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from trinity_assets.errors import TrainingError
from trinity_assets.routing.fitting import fit_router
from trinity_assets.routing.outcome_tables import outcome_table
from trinity_assets.routing.specs import RouterTraining
from trinity_assets.routing.table import score_matrix
from trinity_assets_tests.routing.planted import WORKERS, features, planted_scores, table_of

N, HIDDEN = 240, 8

FIVE = ("human_eval", "gsm8k", "mbpp", "mmlu", "math")
"""The benchmarks of the nine models' table whose scores are verdicts."""


def training(**declared: object) -> RouterTraining:
    given = {"trainers": {"ridge": {}, "sep_cma_es": {"generations": 3}}, "export": "ridge", "training_seeds": 1}
    return RouterTraining.model_validate(given | declared)


@pytest.fixture
def planted() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """A table in which the features say who is right, those features, and who is."""
    drawn = features(N, HIDDEN)
    scores, right = planted_scores(drawn, len(WORKERS))
    return table_of(scores, WORKERS), drawn, right


def test_equal_inputs_give_equal_routers(planted: tuple[pd.DataFrame, np.ndarray, np.ndarray]) -> None:
    table, drawn, _ = planted
    one, other = (fit_router(table, drawn, training()) for _ in range(2))
    assert list(one.heads) == ["ridge", "sep_cma_es"]
    for name, head in one.heads.items():
        assert head.weights.tobytes() == other.heads[name].weights.tobytes()
    assert one.evaluation.model_dump_json() == other.evaluation.model_dump_json()
    assert one.headroom == other.headroom


def test_a_head_that_passes_is_what_routes(planted: tuple[pd.DataFrame, np.ndarray, np.ndarray]) -> None:
    table, drawn, right = planted
    fitted = fit_router(table, drawn, training())
    assert (fitted.gate.passed, fitted.constant, fitted.policy) == (True, None, "the head of ridge")
    routed = np.array([WORKERS.index(worker) for worker in fitted.route(drawn)])
    np.testing.assert_array_equal(routed, (drawn @ fitted.heads["ridge"].weights.T).argmax(axis=1))
    assert (routed == right).mean() > 0.8
    with pytest.raises(TrainingError, match=r"needs finite numbers of shape \(n, 8\)"):
        fitted.route(drawn[:, 1:])


def test_without_a_gain_the_best_single_worker_is_asked_always() -> None:
    scores = np.tile([0.0, 1.0, 0.0], (N, 1))
    fitted = fit_router(table_of(scores, WORKERS), features(N, HIDDEN), training())
    assert not fitted.gate.passed
    assert (fitted.constant, fitted.policy) == ("bob", "always bob")
    assert fitted.route(features(3, HIDDEN)) == ["bob"] * 3
    assert (fitted.headroom.nothing_to_route or "").startswith("too few tasks: on none of ")


def test_a_constant_policy_is_its_worker() -> None:
    """All answer alike, and ada, the cheapest, is what ties go to: she is the best single worker as well."""
    declared = {"trainers": {"constant": {}}, "export": "constant"}
    fitted = fit_router(table_of(np.ones((N, 3)), WORKERS), features(N, HIDDEN), training(**declared))
    assert fitted.heads["constant"].record.constant == 0
    assert fitted.policy == "always ada"


def test_the_split_is_the_training_s_whatever_the_table_says(
    planted: tuple[pd.DataFrame, np.ndarray, np.ndarray],
) -> None:
    table, drawn, _ = planted
    declared = training(split={"seed": 7, "test": 0.3}, trainers={"ridge": {}})
    with_other_split = fit_router(table, drawn, declared)
    without = fit_router(table.drop(columns=["split", "fold"]), drawn, declared)
    assert list(with_other_split.table["split"]) != list(table["split"])
    assert with_other_split.evaluation == without.evaluation


def test_features_of_another_table_are_refused(planted: tuple[pd.DataFrame, np.ndarray, np.ndarray]) -> None:
    table, drawn, _ = planted
    for wrong in (drawn[1:], drawn[0], np.where(drawn == 3.0, np.nan, drawn)):
        with pytest.raises(TrainingError, match="are not those of a table of 240 tasks"):
            fit_router(table, wrong, training())


def test_a_table_that_lacks_something_is_refused(planted: tuple[pd.DataFrame, np.ndarray, np.ndarray]) -> None:
    table, drawn, _ = planted
    with pytest.raises(TrainingError, match="the table lacks columns category, latency__bob; make it by"):
        fit_router(table.drop(columns=["category", "latency__bob"]), drawn, training())
    with pytest.raises(TrainingError, match="need every worker's cost; fill in cost__bob, or leave"):
        fit_router(table.assign(cost__bob=np.nan), drawn, training(cost_weights=(1.0,)))
    with pytest.raises(TrainingError, match="the table lacks tasks or workers"):
        fit_router(table[:0], drawn[:0], training())


def test_features_that_know_nothing_win_nothing_on_outcomes_of_real_models(shared_data: Callable[[str], Path]) -> None:
    """Random features in place of hidden states: whatever nine models scored, no head may be published for them."""
    frame = pd.read_csv(shared_data("recorded/llmrouter_9models/solve_table.csv"))
    models = list(frame.columns[5:])
    frame["task_id"] = frame["query_file"] + "/" + frame["query_line"].astype(str)
    frame = frame.rename(columns={"task_name": "benchmark"})
    frame = frame[frame["benchmark"].isin(FIVE)].drop_duplicates("task_id")
    outcomes = outcome_table(frame.to_dict("records"), "nine models", models)
    assert len(outcomes.table) == 2297
    np.testing.assert_array_equal(score_matrix(outcomes.table, models), frame[models].to_numpy())
    fitted = fit_router(outcomes.table, features(2297, 16, seed=5), training(trainers={"ridge": {}}))
    single = frame.loc[list(fitted.table["split"] == "train"), models].mean()
    assert fitted.best_single_on_train.reward == pytest.approx(single.max())
    assert fitted.policy == f"always {single.idxmax()}"
    assert fitted.evaluation.policy("ridge").verdict == "tie"
