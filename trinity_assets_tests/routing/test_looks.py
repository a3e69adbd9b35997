"""How often held-out tasks were looked at, by a log that many processes write."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from trinity_assets.errors import TrainingError
from trinity_assets.routing.looks import count_look, heads_digest, tasks_digest
from trinity_assets.routing.split import TEST
from trinity_assets_tests.routing.planted import WORKERS, features, planted_scores, table_of


def test_each_different_head_is_one_look_at_these_tasks(tmp_path):
    log = tmp_path / "home" / "looks.jsonl"
    assert [count_look(log, "a", heads) for heads in ("1", "2", "1", "3")] == [1, 2, 2, 3]
    assert count_look(log, "b", "1") == 1
    assert len(log.read_text().splitlines()) == 4


def test_half_a_line_costs_one_look_and_spoils_no_other(tmp_path):
    log = tmp_path / "looks.jsonl"
    count_look(log, "a", "1")
    with log.open("a") as lines:
        lines.write('{"test_set": "a", "hea')
    assert count_look(log, "a", "2") == 2
    assert count_look(log, "a", "3") == 3
    assert len(log.read_text().splitlines()) == 4


def test_processes_that_look_at_once_are_all_counted(tmp_path):
    log = tmp_path / "looks.jsonl"
    code = "import sys; from pathlib import Path; from trinity_assets.routing.looks import count_look\n"
    code += "for number in range(20): count_look(Path(sys.argv[1]), 'a', f'{sys.argv[2]}-{number}')"
    processes = [subprocess.Popen([sys.executable, "-c", code, str(log), str(one)]) for one in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert count_look(log, "a", "last") == 61


def test_a_log_that_cannot_be_written_is_an_error_that_names_it(tmp_path):
    (tmp_path / "looks.jsonl").mkdir()
    with pytest.raises(TrainingError, match=r"cannot note a look at held-out tasks in .*looks\.jsonl: .*; make it wri"):
        count_look(tmp_path / "looks.jsonl", "a", "1")


def test_what_tells_tasks_apart_is_their_names_and_questions():
    table = table_of(planted_scores(features(60, 8), 3)[0], WORKERS)
    questions = [f"question {row}" for row in range(60)]
    held_out = int(np.flatnonzero(table["split"] == TEST)[0])
    learnt = int(np.flatnonzero(table["split"] != TEST)[0])
    other = {row: [*questions[:row], "another", *questions[row + 1 :]] for row in (held_out, learnt)}
    assert tasks_digest(table, questions) == tasks_digest(table, other[learnt])
    assert tasks_digest(table, questions) != tasks_digest(table, other[held_out])
    assert tasks_digest(table, questions) != tasks_digest(table)
    rescored = table.assign(score__ada=0.5)
    assert tasks_digest(rescored) == tasks_digest(table) != tasks_digest(table.iloc[:-20])


def test_what_tells_heads_apart_is_their_weights():
    head = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert heads_digest({"ridge": head}) == heads_digest({"ridge": head.astype(np.float64)})
    assert heads_digest({"ridge": head}) != heads_digest({"ridge": head + 1})
