import numpy as np

from trinity_assets.checkpoints.manifest import environment, evaluation_record
from trinity_assets.routing.evaluation import evaluate
from trinity_assets_tests.routing.planted import WORKERS, features, planted_scores, table_of


def test_the_evaluation_of_the_exported_head():
    drawn = features(200, 8)
    table = table_of(planted_scores(drawn, 3)[0], WORKERS)
    evaluation = evaluate(table, drawn, {"ridge": np.zeros((3, 8)), "other": np.ones((3, 8))}, WORKERS, resamples=100)
    record, result = evaluation_record(evaluation, "ridge"), evaluation.policy("ridge")
    assert (record.verdict, record.accuracy, record.interval) == (
        result.verdict,
        result.accuracy,
        (result.low, result.high),
    )
    assert set(record.baselines) == {"best_single", "random", "lookup", "knn", "hindsight", "oracle"}
    assert record.n_test == evaluation.n_test


def test_the_environment_names_what_decides_a_head():
    assert {"python", "numpy", "cma", "torch"} <= set(environment())
