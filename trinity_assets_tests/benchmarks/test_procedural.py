"""Generated tasks are the same in every process, and can be scored from what a snapshot keeps."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from trinity_assets.benchmarks.snapshots import take_snapshot
from trinity_assets.benchmarks.sources import read_rows, source_version
from trinity_assets.benchmarks.specs import FieldMapping, ProceduralSource, SnapshotSpec
from trinity_assets.errors import TaskSourceError

HERE = Path()


def source(dataset: str, seed: int = 1, size: int = 5, **config: Any) -> ProceduralSource:
    return ProceduralSource(kind="procedural", dataset=dataset, seed=seed, size=size, config=config)


needs_package = pytest.mark.usefixtures("reasoning_gym")


@needs_package
def test_rows_hold_what_is_asked_and_what_the_scorer_needs() -> None:
    from reasoning_gym import get_score_answer_fn

    rows = read_rows(source("chain_sum"), HERE)
    assert [row["id"] for row in rows] == [f"chain_sum/{n}" for n in range(5)]
    assert {row["dataset"] for row in rows} == {"chain_sum"}
    assert rows[0]["question"] == "State the final answer to the following arithmetic problem: 4 - 1 - 7 ="
    assert rows[0]["answer"] == "-4"
    assert rows[0]["entry"]["metadata"]["difficulty"] == {"num_terms": [2, 6], "num_digits": [1, 4]}
    score = get_score_answer_fn("chain_sum")
    for row in rows:
        assert json.loads(json.dumps(row)) == row
        assert (row["entry"]["question"], row["entry"]["answer"]) == (row["question"], row["answer"])
        assert score(row["answer"], row["entry"]) == 1
        assert score("no number", row["entry"]) < 0.1


@needs_package
def test_the_config_and_the_seed_decide_the_tasks() -> None:
    long = read_rows(source("chain_sum", min_terms=5, max_terms=5), HERE)
    assert {row["entry"]["metadata"]["num_terms"] for row in long} == {5}
    assert read_rows(source("chain_sum", seed=2), HERE) != read_rows(source("chain_sum"), HERE)


@needs_package
@pytest.mark.parametrize("dataset", ["ransom_note", "list_functions", "polynomial_multiplication"])
def test_tasks_are_the_same_in_every_process(dataset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """These depend on the order of sets, or on the interpreter's own generator."""
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    first = read_rows(source(dataset, size=3), HERE)
    monkeypatch.setenv("PYTHONHASHSEED", "2")
    assert read_rows(source(dataset, size=3), HERE) == first
    assert len(first) == 3


@needs_package
def test_what_a_data_set_prints_is_no_row() -> None:
    assert len(read_rows(source("sokoban", size=2), HERE)) == 2


@needs_package
def test_a_repeated_question_stays_once() -> None:
    rows = read_rows(source("tower_of_hanoi", size=30), HERE)
    assert len(rows) == len({row["question"] for row in rows}) == 24
    more = read_rows(source("tower_of_hanoi", size=40), HERE)
    assert more[:24] == rows


@needs_package
def test_tasks_without_one_right_answer_are_kept_by_their_entry(tmp_path: Path) -> None:
    gold = {"dataset": "dataset", "entry": "entry"}
    spec = SnapshotSpec(name="graphs", source=source("graph_color", size=2), fields=FieldMapping(gold=gold))
    payloads = [json.loads(payload) for payload in take_snapshot(spec, tmp_path).gold["payload"]]
    assert [payload["dataset"] for payload in payloads] == ["graph_color"] * 2
    assert all(payload["entry"]["answer"] is None for payload in payloads)


@needs_package
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (source("chainsum"), "has no data set 'chainsum' for a benchmark; close to it: chain_sum, decimal_chain_sum"),
        (source("composite"), "has no data set 'composite' for a benchmark"),
        (source("xqzw"), "there are ab, acre, advanced_geometry, "),
        (source("chain_sum", bogus=1), 'cannot generate chain_sum with the config {"bogus": 1}: TypeError: '),
        (source("chain_sum", min_terms=-1), "AssertionError: min_terms must be positive"),
        (source("arc_agi", size=2), "config: row 0: its own answer scores 0.05 instead of 1.0; row 1: its own answer"),
    ],
)
def test_what_cannot_be_generated_is_said(wrong: ProceduralSource, said: str) -> None:
    with pytest.raises(TaskSourceError) as caught:
        read_rows(wrong, HERE)
    assert said in str(caught.value)


@needs_package
def test_a_generator_that_dies_is_told_with_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(TaskSourceError, match=r"reasoning-gym failed to generate chain_sum \(exit status 1\)"):
        read_rows(source("chain_sum"), HERE)


def test_an_absent_package_is_an_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    with pytest.raises(TaskSourceError, match=r"pip install 'trinity-assets\[procedural\]'"):
        read_rows(source("chain_sum"), HERE)
    assert source_version(source("chain_sum"), HERE) == "missing"


@needs_package
def test_the_version_is_the_packages() -> None:
    installed = importlib.metadata.version("reasoning-gym")
    assert source_version(source("chain_sum"), HERE) == f"reasoning-gym {installed}"


def test_seed_and_size_belong_beside_the_config() -> None:
    with pytest.raises(ValidationError, match="seed, size belong beside the config, not into it"):
        ProceduralSource(kind="procedural", dataset="chain_sum", seed=1, size=2, config={"size": 3, "seed": 4})
