import numpy as np
import pandas as pd
import pytest

from trinity_assets.errors import TrainingError
from trinity_assets.routing.specs import SplitSpec
from trinity_assets.routing.table import (
    ROUTER_TABLE,
    align_features,
    join_table,
    priced_costs,
    router_table_schema,
    score_matrix,
    table_data_version,
)
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets.store.tables import read_table, write_table
from trinity_assets.workers.specs import Price

TASKS = {"quiz": pd.DataFrame({"task_id": ["a", "b", "c"], "category": ["x", None, "y"], "group": ["a", "a", None]})}
SOLVES = {
    ("ada", "quiz"): pd.DataFrame(
        {
            "task_id": ["a", "a", "b", "b"],
            "score": [1.0, 0.0, None, 1.0],
            "cost_usd": [0.1, 0.3, None, None],
            "latency_s": [1.0, 3.0, 5.0, None],
            "input_tokens": [10.0, 20.0, 30.0, 30.0],
            "output_tokens": [1.0, 3.0, 5.0, None],
        }
    ),
    ("bob", "quiz"): pd.DataFrame(
        {
            "task_id": ["c", "b", "a"],
            "score": [0.5, None, 0.0],
            "cost_usd": None,
            "latency_s": [2.0, 2.0, 2.0],
            "input_tokens": [5.0, 5.0, 5.0],
            "output_tokens": [2.0, 2.0, None],
        }
    ),
}


def joined(workers: list[str]) -> pd.DataFrame:
    return join_table(SOLVES, TASKS, workers, SplitSpec())


def test_samples_are_averaged_and_what_is_missing_is_nan():
    table = joined(["ada", "bob"])
    np.testing.assert_array_equal(score_matrix(table, ["ada", "bob"]), [[0.5, 0.0], [1.0, np.nan], [np.nan, 0.5]])
    np.testing.assert_array_equal(table["cost__ada"], [0.2, np.nan, np.nan])
    np.testing.assert_array_equal(table["latency__ada"], [2.0, 5.0, np.nan])
    assert table["cost__bob"].isna().all()
    assert table["group"].tolist() == ["a", "a", "c"]
    assert table["category"].tolist() == ["x", "", "y"]


def test_costs_are_what_the_tokens_cost_at_the_given_prices():
    prices = {"ada": Price(input_per_mtok=1_000_000, output_per_mtok=2_000_000), "bob": None}
    costs = priced_costs(joined(["ada", "bob"]), ["ada", "bob"], prices)
    np.testing.assert_array_equal(costs[:, 0], [15 + 2 * 2, 30 + 2 * 5, np.nan])
    assert np.isnan(costs[:, 1]).all()
    np.testing.assert_array_equal(priced_costs(joined(["ada"]), ["ada"], {})[:, 0], [0.2, np.nan, np.nan])


def test_it_fits_its_schema_and_reads_back(tmp_path):
    store = ArtifactStore(str(tmp_path))
    table = joined(["bob", "ada"])
    sha = write_table(store, ROUTER_TABLE, table, router_table_schema(["bob", "ada"]), {"pool": ["bob", "ada"]})
    pd.testing.assert_frame_equal(read_table(store, ROUTER_TABLE, sha).frame, table, check_dtype=False)


def test_the_data_version_follows_scores_and_not_costs():
    table = joined(["ada", "bob"])
    version = table_data_version(table, ["ada", "bob"])
    assert table_data_version(table.assign(cost__ada=9.0, latency__bob=1.0), ["ada", "bob"]) == version
    assert table_data_version(table.assign(score__ada=0.0), ["ada", "bob"]) != version
    assert table_data_version(table.assign(split="train"), ["ada", "bob"]) != version
    assert table_data_version(table, ["bob", "ada"]) != version


def test_absent_cells_strangers_and_twins_are_refused():
    with pytest.raises(TrainingError, match="worker eve has no score on benchmark quiz"):
        joined(["ada", "eve"])
    strange = {**SOLVES, ("bob", "quiz"): pd.DataFrame({"task_id": ["z"], "score": [1.0]})}
    with pytest.raises(TrainingError, match="another snapshot"):
        join_table(strange, TASKS, ["ada", "bob"], SplitSpec())
    twins = {"quiz": pd.concat([TASKS["quiz"], TASKS["quiz"]])}
    with pytest.raises(TrainingError, match="lists task 'a' twice"):
        join_table(SOLVES, twins, ["ada"], SplitSpec())
    with pytest.raises(TrainingError, match="at least one benchmark and one worker"):
        join_table(SOLVES, {}, ["ada"], SplitSpec())


def test_features_are_aligned_by_benchmark_and_task():
    table = pd.DataFrame({"task_id": ["a", "b", "a"], "benchmark": ["quiz", "quiz", "exam"]})
    quiz, exam = np.array([[2.0, 2.0], [1.0, 1.0]]), np.array([[3.0, 3.0]])
    aligned = align_features(table, {"quiz": (["b", "a"], quiz), "exam": (["a"], exam)})
    assert aligned.dtype == np.float32
    np.testing.assert_array_equal(aligned, [[1, 1], [2, 2], [3, 3]])


def test_features_that_do_not_fit_are_refused():
    table = pd.DataFrame({"task_id": ["a", "b"], "benchmark": ["quiz", "quiz"]})
    with pytest.raises(TrainingError, match=r"1 of 2 tasks of benchmark quiz have no feature, the first is 'b'"):
        align_features(table, {"quiz": (["a"], np.ones((1, 4)))})
    with pytest.raises(TrainingError, match="not finite"):
        align_features(table, {"quiz": (["a", "b"], np.array([[1.0], [np.nan]]))})
    with pytest.raises(TrainingError, match=r"widths \[3, 4\]"):
        align_features(table, {"quiz": (["a"], np.ones((1, 4))), "exam": (["b"], np.ones((1, 3)))})
