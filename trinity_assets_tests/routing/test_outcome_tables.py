"""Tables of outcomes: what is read from each kind of file, and what is said about a bad one."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from trinity_assets.errors import TaskSourceError, TrainingError
from trinity_assets.routing.outcome_tables import OutcomeTable, outcome_table, read_outcomes
from trinity_assets.routing.specs import SplitSpec
from trinity_assets.routing.split import with_split
from trinity_assets.routing.statistics import task_groups
from trinity_assets.routing.table import cost_matrix, latency_matrix, score_matrix, table_workers

ROWS: list[dict[str, Any]] = [
    {"task_id": "a", "category": "x", "score__ada": 1.0, "score__bob": 0.25, "cost__bob": 0.5},
    {"task_id": "b", "category": None, "score__ada": None, "score__bob": 0.0, "cost__bob": None},
]

LONG = "the quick brown fox jumps over the lazy dog and then it sleeps for the whole of a warm afternoon"
OTHER = "how many legs do seven spiders and three beetles have between them when none of them lost any"


def write(rows: list[dict[str, Any]], path: Path) -> Path:
    frame = pd.DataFrame(rows)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(rows: list[dict[str, Any]], *score_columns: str) -> OutcomeTable:
    return outcome_table(rows, "rows", score_columns)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_every_kind_of_file_gives_the_same_table(ending: str, tmp_path: Path) -> None:
    found = read_outcomes(write(ROWS, tmp_path / f"outcomes.{ending}"))
    assert found.task_ids == ["a", "b"]
    assert table_workers(found.table) == ["ada", "bob"]
    assert list(found.table["category"]) == ["x", ""]
    assert list(found.table["benchmark"]) == ["table", "table"]
    assert list(found.table["group"]) == ["a", "b"]
    assert found.questions is None
    np.testing.assert_array_equal(score_matrix(found.table, ["ada", "bob"]), [[1, 0.25], [math.nan, 0]])
    np.testing.assert_array_equal(cost_matrix(found.table, ["ada", "bob"]), [[math.nan, 0.5], [math.nan, math.nan]])
    assert np.isnan(latency_matrix(found.table, ["ada", "bob"])).all()


def test_a_score_may_be_true_or_false_and_a_missing_one_nan() -> None:
    found = read([{"task_id": 1, "score__a": True, "score__b": "False"}, {"task_id": 2, "score__a": math.nan}])
    np.testing.assert_array_equal(score_matrix(found.table, ["a", "b"]), [[1, 0], [math.nan, math.nan]])
    assert found.task_ids == ["1", "2"]


def test_columns_of_other_names_hold_scores_where_that_is_said() -> None:
    found = read([{"task_id": "a", "gpt-4": 1, "score__x": 0, "cost__gpt-4": 2, "cost__y": 1}], "score__x", "gpt-4")
    assert table_workers(found.table) == ["x", "gpt-4"]
    np.testing.assert_array_equal(cost_matrix(found.table, ["x", "gpt-4"]), [[math.nan, 2]])


def test_near_duplicates_are_grouped_also_across_benchmarks() -> None:
    questions = [("t1", "m", LONG), ("t2", "m", OTHER), ("t3", "m", LONG + "!"), ("t4", "n", LONG), ("t5", "m", OTHER)]
    rows = [{"task_id": t, "benchmark": b, "question": q, "score__a": 1, "score__b": 0} for t, b, q in questions]
    found = read(rows)
    assert list(found.table["group"]) == ["shared/t1", "t2", "shared/t1", "shared/t1", "t2"]
    assert found.questions == tuple(question for _, _, question in questions)


def test_groups_that_are_given_are_kept() -> None:
    rows = [{"task_id": t, "group": g, "question": LONG, "score__a": 1, "score__b": 0} for t, g in ("pg", "qg", "r ")]
    assert list(read(rows).table["group"]) == ["g", "g", "r"]


GOOD = {"task_id": "a", "score__x": 1, "score__y": 0}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "rows holds no rows; give one per task"),
        ([{"task_id": "a", "score__x": 1}], "scores of 1 worker and a router chooses between at least 2"),
        ([{"task_id": "a", "gpt": 1}], "scores of 0 workers .*; it has task_id, gpt$"),
        ([{"score__x": 1, "score__y": 0}], "no column 'task_id', which names each task; it has score__x, score__y"),
        ([GOOD, GOOD, GOOD], "row 1: column task_id: 'a' was already used by row 0 .and 1 row more like it"),
        ([GOOD, GOOD | {"task_id": "b", "score__y": 1.5}], "row 1: column score__y: the score 1.5 is not in .0, 1."),
        ([GOOD | {"score__x": "good"}], "row 0: column score__x: 'good' is no number; leave a missing one empty"),
        ([GOOD | {"score__x": [1]}], r"row 0: column score__x: '\[1\]' is no number"),
        ([GOOD | {"score__x": math.inf}], "row 0: column score__x: the score inf is not in"),
        ([GOOD | {"cost__x": -1}], "row 0: column cost__x: '-1' is no amount from 0 to 1"),
        ([GOOD | {"cost__z": 1}], "column 'cost__z' is of no worker with scores; those are x, y"),
        ([GOOD | {"score__x": None}], "no row has a score in column 'score__x'"),
        ([GOOD | {"score__": 1}], "the columns 'score__' name no worker"),
        ([GOOD | {"question": " "}], "row 0: column question is empty"),
        ([GOOD | {"benchmark": ""}], "row 0: column benchmark is empty"),
        ([GOOD | {"group": {"a": 1}}], "row 0: column group: a dict is no text"),
    ],
)
def test_a_bad_table_is_refused_in_one_line_by_row_and_column(rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(TrainingError, match=message) as refused:
        read(rows)
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith("rows")


def test_score_columns_that_are_not_there_or_two_of_one_worker_are_refused() -> None:
    with pytest.raises(TrainingError, match="rows has no column 'gpt'; it has task_id, score__x, score__y"):
        read([GOOD], "gpt", "score__x")
    with pytest.raises(TrainingError, match="a worker has two of the columns 'x', 'score__x'"):
        read([GOOD | {"x": 1}], "x", "score__x")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(TaskSourceError, match=r"there is no file .*absent\.csv"):
        read_outcomes(tmp_path / "absent.csv")
    with pytest.raises(TrainingError, match=r"outcomes\.xlsx ends in none of"):
        read_outcomes(tmp_path / "outcomes.xlsx")
    (tmp_path / "torn.csv").write_text("task_id,score__a,score__b\nt1,1\n")
    with pytest.raises(TaskSourceError, match=r"torn\.csv .*line 2: 2 values for 3 columns"):
        read_outcomes(tmp_path / "torn.csv")


def test_one_question_in_two_benchmarks_is_one_group_whatever_the_order_of_the_rows() -> None:
    asked = "what is the sum of the first ten odd numbers, please"
    rows = [
        {"task_id": "q2", "benchmark": "quiz", "question": asked, "score__a": 1, "score__b": 0},
        {"task_id": "s1", "benchmark": "sums", "question": asked + "?", "score__a": 1, "score__b": 0},
        {
            "task_id": "q1",
            "benchmark": "quiz",
            "question": "who wrote this and when did they do it",
            "score__a": 0,
            "score__b": 1,
        },
    ]
    table = outcome_table(rows, "rows").table
    assert list(table["group"]) == ["shared/q2", "shared/q2", "q1"]
    backwards = outcome_table(rows[::-1], "rows").table.iloc[::-1]
    assert list(backwards["group"]) == list(table["group"])
    assert task_groups(table).tolist() == [0, 0, 1]
    for seed in range(20):
        placed = with_split(table, SplitSpec(seed=seed))
        assert placed["split"][0] == placed["split"][1] and placed["fold"][0] == placed["fold"][1]
    named = [row | {"group": name} for row, name in zip(rows, ("g", "g", ""), strict=True)]
    assert list(outcome_table(named, "rows").table["group"]) == ["shared/g", "shared/g", "q1"]


def test_names_that_reports_show_are_printable() -> None:
    rows = [
        {"task_id": f"t{n}", "benchmark": "x\x1b[31mRED\n", "category": "\u202eab", "score__a": 1, "score__b": 0}
        for n in (1, 2)
    ]
    table = outcome_table(rows, "rows").table
    assert (table["benchmark"][0], table["category"][0]) == ("x\\x1b[31mRED", "\\u202eab")


def test_amounts_have_a_limit() -> None:
    rows = [{"task_id": "t", "score__a": 1, "score__b": 0, "cost__a": 1e13}]
    with pytest.raises(TrainingError, match=r"'10000000000000.0' is no amount from 0 to 1e\+12"):
        outcome_table(rows, "rows")
