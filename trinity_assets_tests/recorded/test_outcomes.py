"""Rows of files become outcomes of tasks; whatever fits nowhere is named."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from trinity_assets.benchmarks.specs import FieldMapping
from trinity_assets.errors import RecordedError
from trinity_assets.recorded.files import file_versions
from trinity_assets.recorded.formats import resolved
from trinity_assets.recorded.outcomes import (
    OUTCOMES_SCHEMA,
    Recorded,
    import_outcomes,
    outcomes_data_version,
    score_of,
)
from trinity_assets.recorded.specs import RecordedCell, RecordedOutcomes

TASKS = pd.DataFrame(
    {
        "task_id": ["t0", "t1", "t2", "t3"],
        "question": ["What is  1+1?", "Où est\nParis ?", "x² or x2", "And this?"],
        "source_row": [0, 1, 3, 7],
    }
)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """``rows`` in the format of the file's suffix."""
    match path.suffix:
        case ".csv":
            with path.open("w", newline="") as stream:
                writer = csv.DictWriter(stream, rows[0].keys())
                writer.writeheader()
                writer.writerows(rows)
        case ".parquet":
            pd.DataFrame(rows).to_parquet(path, index=False)
        case _:
            path.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    return path


def cell(directory: Path, **fields: Any) -> RecordedCell:
    outcomes = resolved(RecordedOutcomes.model_validate(fields), "my-model", FieldMapping())
    return RecordedCell(outcomes=outcomes, files=file_versions(outcomes, directory))


def imported(directory: Path, tasks: pd.DataFrame = TASKS, **fields: Any) -> Recorded:
    return import_outcomes(cell(directory, **fields), tasks, directory, label="gpt on sums")


def scores(recorded: Recorded) -> dict[str, float]:
    return dict(zip(recorded.frame["task_id"], recorded.frame["score"], strict=True))


def refusal(directory: Path, **fields: Any) -> str:
    with pytest.raises(RecordedError) as caught:
        imported(directory, **fields)
    message = str(caught.value)
    assert message.startswith("gpt on sums: ")
    return message


ALL_FOUR = [{"task_id": f"t{n}", "gpt": score, "llama": 1} for n, score in enumerate([0, 1, 0.25, 1.0])]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_wide_table_gives_a_worker_its_own_column(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"table{suffix}", ALL_FOUR)
    recorded = imported(tmp_path, path=path.name, task={"id": "task_id"}, score="gpt")
    assert recorded.frame.columns.tolist() == OUTCOMES_SCHEMA.names
    assert scores(recorded) == {"t0": 0.0, "t1": 1.0, "t2": 0.25, "t3": 1.0}
    assert set(recorded.frame["status"]) == {"answered"}
    assert recorded.frame["source"].tolist() == [f"table{suffix} row {n}" for n in range(4)]
    assert recorded.account.coverage == 1
    other = imported(tmp_path, path=path.name, task={"id": "task_id"}, score="llama")
    assert scores(other) == dict.fromkeys(["t0", "t1", "t2", "t3"], 1.0)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_long_table_gives_a_worker_the_rows_that_name_it(tmp_path: Path, suffix: str) -> None:
    rows = [
        {"q": question, "model": model, "answer": f"{model}:{n}", "usd": 0.5 * n, "s": n, "in": 10, "out": n}
        for n, question in reversed(list(enumerate(TASKS["question"])))
        for model in ("a", "b")
    ]
    path = write(tmp_path / f"long{suffix}", rows)
    measures: dict[str, Any] = {"cost_usd": "usd", "latency_s": "s", "input_tokens": "in", "output_tokens": "out"}
    recorded = imported(
        tmp_path, path=path.name, task={"question": "q"}, where={"model": "b"}, completion="answer", **measures
    )
    frame = recorded.frame
    assert frame["task_id"].tolist() == ["t0", "t1", "t2", "t3"]
    assert frame["text"].tolist() == ["b:0", "b:1", "b:2", "b:3"]
    assert frame["score"].isna().all()
    assert frame["cost_usd"].tolist() == [0, 0.5, 1, 1.5]
    assert frame["latency_s"].tolist() == [0, 1, 2, 3]
    assert frame["input_tokens"].tolist() == [10] * 4
    assert frame["output_tokens"].tolist() == [0, 1, 2, 3]
    assert (recorded.account.rows, recorded.account.selected) == (8, 4)


def test_questions_are_the_same_whatever_their_white_space_and_composition(tmp_path: Path) -> None:
    rows = [
        {"q": " What is 1+1?\n", "s": 0.1},
        {"q": "Ou\u0300 est\u00a0Paris ?", "s": 0.2},
        {"q": "x² or x2", "s": 0.3},
        {"q": "And\tthis?", "s": 0.4},
    ]
    write(tmp_path / "a.jsonl", rows)
    recorded = imported(tmp_path, path="a.jsonl", task={"question": "q"}, score="s")
    assert scores(recorded) == {"t0": 0.1, "t1": 0.2, "t2": 0.3, "t3": 0.4}


def test_characters_that_only_look_alike_are_another_question(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [{"q": "x2 or x2", "s": 1}, {"q": "WHAT IS 1+1?", "s": 1}])
    assert "0 of 4 tasks" in refusal(tmp_path, path="a.jsonl", task={"question": "q"}, score="s")


def test_a_question_that_fits_two_tasks_is_an_error_that_names_them(tmp_path: Path) -> None:
    tasks = TASKS.assign(question=["Same one", "Same  one", "c", "d"])
    write(tmp_path / "a.jsonl", [{"q": "c", "s": 1}, {"q": "Same one", "s": 1}])
    with pytest.raises(RecordedError, match=r"a.jsonl row 1: its question is that of 2 tasks: t0, t1; match by id"):
        imported(tmp_path, tasks, path="a.jsonl", task={"question": "q"}, score="s")
    write(tmp_path / "a.jsonl", [{"q": "c", "s": 1}, {"q": "d", "s": 0}])
    recorded = imported(tmp_path, tasks, path="a.jsonl", task={"question": "q"}, score="s", min_coverage=0.5)
    assert scores(recorded) == {"t2": 1.0, "t3": 0.0}


@pytest.mark.parametrize("first", [0, 1])
def test_rows_are_those_of_the_source_not_of_the_selection(tmp_path: Path, first: int) -> None:
    write(tmp_path / "a.csv", [{"n": source + first, "s": source / 10} for source in (7, 3, 1, 0, 2)])
    key = {"row": "n", "first": first}
    recorded = imported(tmp_path, path="a.csv", task=key, score="s")
    assert scores(recorded) == {"t0": 0.0, "t1": 0.1, "t2": 0.3, "t3": 0.7}
    assert recorded.account.unmatched == [f"a.csv row 4 ('{2 + first}')"]


def test_a_row_number_that_is_none_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", [{"n": "0", "s": 1}, {"n": "one", "s": 1}, {"n": "1.5", "s": 1}])
    message = refusal(tmp_path, path="a.csv", task={"row": "n"}, score="s")
    assert "2 rows hold no outcome" in message
    assert "a.csv row 1: 'one' is no number of a row" in message


def test_several_files_are_one(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", ALL_FOUR[:2])
    write(tmp_path / "b.jsonl", ALL_FOUR[2:])
    recorded = imported(tmp_path, path=["a.jsonl", "b.jsonl"], task={"id": "task_id"}, score="gpt")
    assert scores(recorded) == {"t0": 0.0, "t1": 1.0, "t2": 0.25, "t3": 1.0}
    assert recorded.frame["source"].tolist()[2] == "b.jsonl row 0"


@pytest.mark.parametrize(
    ("written", "score"),
    [
        (True, 1.0),
        (False, 0.0),
        ("True", 1.0),
        ("incorrect", 0.0),
        ("Correct", 1.0),
        ("0.5", 0.5),
        (" 1 ", 1.0),
        (1, 1.0),
        (0.3, 0.3),
        ("pass", 1.0),
        ("partly", 0.4),
        (5, 0.9),
    ],
)
def test_what_a_score_may_be_written_as(written: Any, score: float) -> None:
    assert score_of(written, {"pass": 1.0, "partly": 0.4, "5": 0.9}) == score


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("yes", "the score 'yes' is no number; say what it stands for under values"),
        (float("nan"), "the score is NaN; leave it empty where there is none"),
        ("nan", "the score is NaN"),
        (1.01, "the score 1.01 is not in [0, 1]"),
        (-0.1, "the score -0.1 is not in [0, 1]"),
        ("inf", "the score inf is not in [0, 1]"),
        (100, "the score 100 is not in [0, 1]"),
        ([1], "the score is a list, not a number"),
        ({"acc": 1}, "the score is a dict, not a number"),
    ],
)
def test_what_is_no_score_is_named_with_its_row(tmp_path: Path, written: Any, problem: str) -> None:
    rows = [{"task_id": "t0", "gpt": 1}, {"task_id": "t1", "gpt": written}]
    write(tmp_path / "a.jsonl", rows)
    message = refusal(tmp_path, path="a.jsonl", task={"id": "task_id"}, score="gpt")
    assert f"1 rows hold no outcome:\n  a.jsonl row 1: {problem}" in message


def test_a_bad_score_of_another_benchmarks_task_is_nobodys_concern(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [*ALL_FOUR, {"task_id": "elsewhere", "gpt": 42}])
    recorded = imported(tmp_path, path="a.jsonl", task={"id": "task_id"}, score="gpt")
    assert recorded.account.unmatched == ["a.jsonl row 4 ('elsewhere')"]


def test_too_low_a_coverage_is_an_error_with_both_sides_named(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", [{"id": "t0", "s": 1}, {"id": "T1", "s": 1}, {"id": "t2", "s": ""}, {"id": "", "s": 1}])
    message = refusal(tmp_path, path="a.csv", task={"id": "id"}, score="s", min_coverage=0.5)
    assert "1 of 4 tasks have an outcome (25.0%, min_coverage is 50.0%)" in message
    assert "3 tasks have none: t1, t2, t3" in message
    assert "2 rows are of no task: a.csv row 1 ('T1'), a.csv row 3 ('')" in message
    assert "1 rows are empty: a.csv row 2" in message


def test_above_the_threshold_what_is_missing_is_missing_and_never_0(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", [{"id": "t0", "s": 1}, {"id": "t2", "s": 0}])
    recorded = imported(tmp_path, path="a.csv", task={"id": "id"}, score="s", min_coverage=0.5)
    assert scores(recorded) == {"t0": 1.0, "t2": 0.0}
    assert recorded.account.missing == ["t1", "t3"]
    assert recorded.account.coverage == 0.5


def test_several_rows_of_a_task_are_an_error_until_it_is_said_what_they_are(tmp_path: Path) -> None:
    rows = [{"id": f"t{n}", "s": score} for n in range(4) for score in (1, 0, 0.5)]
    write(tmp_path / "a.jsonl", rows)
    mapping: dict[str, Any] = {"path": "a.jsonl", "task": {"id": "id"}, "score": "s"}
    message = refusal(tmp_path, **mapping)
    assert "4 tasks have several rows:\n  t0: a.jsonl row 0, a.jsonl row 1, a.jsonl row 2" in message
    assert "`samples: mean`" in message
    mean = imported(tmp_path, **mapping, samples="mean")
    assert mean.frame["sample"].tolist() == [0, 1, 2] * 4
    assert mean.frame["score"].tolist() == [1, 0, 0.5] * 4
    first = imported(tmp_path, **mapping, samples="first")
    assert first.frame[["sample", "score"]].values.tolist() == [[0, 1]] * 4
    assert (mean.account.left_out, first.account.left_out) == (0, 8)


def test_an_empty_row_is_no_sample(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [{"task_id": "t1", "gpt": None}, *ALL_FOUR])
    recorded = imported(tmp_path, path="a.jsonl", task={"id": "task_id"}, score="gpt")
    assert scores(recorded)["t1"] == 1.0
    assert recorded.account.empty == ["a.jsonl row 0"]


def test_a_blank_completion_is_missing_unless_it_is_said_to_be_no_answer(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [{"id": f"t{n}", "text": text} for n, text in enumerate(["4", " ", None, "x\ud800"])])
    mapping: dict[str, Any] = {"path": "a.jsonl", "task": {"id": "id"}, "completion": "text"}
    message = refusal(tmp_path, **mapping)
    assert "2 rows are empty: a.jsonl row 1, a.jsonl row 2" in message
    assert "`empty: no_answer`" in message
    recorded = imported(tmp_path, **mapping, empty="no_answer", min_coverage=0.75)
    assert recorded.frame[["task_id", "status", "text"]].values.tolist() == [
        ["t0", "answered", "4"],
        ["t1", "no_answer", " "],
        ["t3", "answered", "x\ufffd"],
    ]
    assert recorded.account.missing == ["t2"]


def test_a_score_is_the_outcome_and_a_completion_beside_it_is_kept(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [row | {"said": f"answer {n}"} for n, row in enumerate(ALL_FOUR)])
    recorded = imported(tmp_path, path="a.jsonl", task={"id": "task_id"}, score="gpt", completion="said")
    assert recorded.frame["text"].tolist() == ["answer 0", "answer 1", "answer 2", "answer 3"]
    assert recorded.frame["score"].tolist() == [0, 1, 0.25, 1]


@pytest.mark.parametrize(
    ("fields", "row", "problem"),
    [
        ({"cost_usd": "x"}, {"x": "free"}, "cost_usd is 'free', which is none"),
        ({"cost_usd": "x"}, {"x": -1}, "cost_usd is -1, which is none"),
        ({"latency_s": "x"}, {"x": float("inf")}, "latency_s is inf, which is none"),
        ({"input_tokens": "x"}, {"x": 1.5}, "input_tokens is 1.5, which is none"),
        ({"output_tokens": "x"}, {"x": True}, "output_tokens is True, which is none"),
        ({"completion": "x"}, {"x": 5}, "the completion is no text but a int"),
    ],
)
def test_measures_and_texts_that_are_none_are_named(
    tmp_path: Path, fields: dict[str, str], row: dict[str, Any], problem: str
) -> None:
    write(tmp_path / "a.jsonl", [ALL_FOUR[0] | row])
    message = refusal(tmp_path, path="a.jsonl", task={"id": "task_id"}, score="gpt", **fields)
    assert f"a.jsonl row 0: {problem}" in message


def test_an_unknown_cost_is_unknown(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", [row | {"usd": "" if n else 0.5, "n": "7.0"} for n, row in enumerate(ALL_FOUR)])
    frame = imported(
        tmp_path, path="a.csv", task={"id": "task_id"}, score="gpt", cost_usd="usd", input_tokens="n"
    ).frame
    assert frame["cost_usd"].iloc[0] == 0.5
    assert frame["cost_usd"].iloc[1:].isna().all()
    assert frame["input_tokens"].tolist() == [7] * 4
    assert frame["latency_s"].isna().all()


def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", ALL_FOUR)
    message = refusal(
        tmp_path, path="a.csv", task={"id": "id"}, score="gpt4", where={"model": "x"}, cost_usd="usd", completion="gpt"
    )
    assert (
        "no column 'id' (task: id), 'model' (where: model), 'gpt4' (score), 'usd' (cost_usd); there are gpt, llama, "
        "task_id" in message
    )


def test_rows_that_none_selects_show_what_the_column_holds(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", ALL_FOUR)
    message = refusal(tmp_path, path="a.csv", task={"id": "task_id"}, score="gpt", where={"llama": 2})
    assert "no row of a.csv is where {'llama': '2'}: llama holds 1" in message


def test_where_takes_booleans_numbers_and_texts(tmp_path: Path) -> None:
    rows = [row | {"ok": n != 3, "epoch": 1, "filter": "strict"} for n, row in enumerate(ALL_FOUR)]
    write(tmp_path / "a.jsonl", rows)
    where = {"ok": True, "epoch": 1, "filter": "strict"}
    recorded = imported(tmp_path, path="a.jsonl", task={"id": "task_id"}, score="gpt", where=where, min_coverage=0.75)
    assert recorded.account.missing == ["t3"]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.jsonl", b"", "a.jsonl: there are no rows"),
        ("a.jsonl", b"{\n", "holds rows that are not JSON objects: line 1"),
        ("a.csv", b"id,s\nt0\n", "line 2: 1 values for 2 columns"),
        ("a.csv", b"id,s\nt\xff,1\n", "which is not UTF-8 text: line 2"),
        ("a.parquet", b"PAR1", "as Parquet"),
        ("a.jsonl.gz", b"no gzip", "cannot read"),
        ("a.json", b"{}", "holds no JSON array of objects but one dict"),
    ],
)
def test_files_that_cannot_be_read_say_what_is_wrong(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert problem in refusal(tmp_path, path=name, task={"id": "id"}, score="s")


def test_a_file_that_is_gone_or_was_changed_meanwhile_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", ALL_FOUR)
    declared = cell(tmp_path, path="a.csv", task={"id": "task_id"}, score="gpt")
    write(path, ALL_FOUR[:3])
    with pytest.raises(RecordedError, match="was changed while this ran; run it again"):
        import_outcomes(declared, TASKS, tmp_path, label="x")
    path.unlink()
    assert file_versions(declared.outcomes, tmp_path) == ("missing",)
    with pytest.raises(RecordedError, match="there is no file"):
        import_outcomes(declared, TASKS, tmp_path, label="x")


def test_the_data_version_follows_what_is_decided_on(tmp_path: Path) -> None:
    def version(rows: list[dict[str, Any]], name: str = "a.jsonl") -> str:
        write(tmp_path / name, rows)
        recorded = imported(
            tmp_path, path=name, task={"id": "task_id"}, score="gpt", cost_usd="llama", completion="t", min_coverage=0.5
        )
        return outcomes_data_version(recorded.frame)

    rows = [row | {"t": "x"} for row in ALL_FOUR]
    before = version(rows)
    assert version(rows[::-1], "other.jsonl") == before
    assert version([row | {"llama": 7} for row in rows]) == before
    assert version([rows[0] | {"gpt": 0.5}, *rows[1:]]) != before
    assert version([rows[0] | {"t": "y"}, *rows[1:]]) != before
    assert version(rows[1:]) != before
