"""How often held-out tasks were looked at, by a log that many processes write."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from trinity_assets.errors import TrainingError
from trinity_assets.routing.looks import SKETCH, count_look, heads_digest, held_out_hashes
from trinity_assets.routing.split import TEST
from trinity_assets_tests.routing.planted import WORKERS, features, planted_scores, table_of

A, B = ["aaaaaaaaaaaa"], ["bbbbbbbbbbbb"]
"""The hashes of two test sets of one task."""


def hashed(first: int, last: int) -> list[str]:
    """Of the tasks of these numbers."""
    return [hashlib.sha256(str(number).encode()).hexdigest()[:12] for number in range(first, last)]


def test_each_different_head_is_one_look_at_these_tasks(tmp_path):
    log = tmp_path / "home" / "looks.jsonl"
    assert [count_look(log, A, heads) for heads in ("1", "2", "1", "3")] == [1, 2, 2, 3]
    assert count_look(log, B, "1") == 1
    assert len(log.read_text().splitlines()) == 4


def test_half_a_line_costs_one_look_and_spoils_no_other(tmp_path):
    log = tmp_path / "looks.jsonl"
    count_look(log, A, "1")
    with log.open("a") as lines:
        lines.write('{"tasks": 1, "sketch": "a')
    assert count_look(log, A, "2") == 2
    assert count_look(log, A, "3") == 3
    assert len(log.read_text().splitlines()) == 4


def test_processes_that_look_at_once_are_all_counted(tmp_path):
    log = tmp_path / "looks.jsonl"
    code = "import sys; from pathlib import Path; from trinity_assets.routing.looks import count_look\n"
    code += "for number in range(20): count_look(Path(sys.argv[1]), ['a' * 12], f'{sys.argv[2]}-{number}')"
    processes = [subprocess.Popen([sys.executable, "-c", code, str(log), str(one)]) for one in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert count_look(log, A, "last") == 61


def test_a_log_that_cannot_be_written_is_an_error_that_names_it(tmp_path):
    (tmp_path / "looks.jsonl").mkdir()
    with pytest.raises(TrainingError, match=r"cannot note a look at held-out tasks in .*looks\.jsonl: .*; make it wri"):
        count_look(tmp_path / "looks.jsonl", A, "1")


@pytest.mark.parametrize("n", [40, 1000])
def test_a_look_at_half_of_these_tasks_counts_and_at_a_few_of_them_does_not(tmp_path, n):
    log = tmp_path / "looks.jsonl"
    count_look(log, hashed(0, n), "first")
    tenth = n // 10
    assert count_look(log, hashed(2 * tenth, n + 2 * tenth), "most are the same") == 2
    assert count_look(log, hashed(8 * tenth, n + 8 * tenth), "of the first few, of the second less than half") == 1
    assert count_look(log, hashed(0, 6 * tenth), "some of the first") == 3
    assert count_look(log, hashed(n, 4 * n), "some of all") == 1
    assert count_look(log, hashed(0, n), "last") == 4
    lines = log.read_text().splitlines()
    assert len(lines) == 6 and max(map(len, lines)) < 1000
    assert len(lines[0].split('"sketch": "')[1].split('"')[0]) == 12 * min(n, SKETCH)


def test_what_tells_tasks_apart_is_their_questions_else_their_names():
    table = table_of(planted_scores(features(60, 8), 3)[0], WORKERS)
    questions = [f"question {row}" for row in range(60)]
    held_out = int((table["split"] == TEST).sum())
    hashes = held_out_hashes(table, questions)
    assert len(hashes) == held_out and hashes == sorted(hashes)
    assert hashes == held_out_hashes(table.assign(benchmark="renamed", task_id=questions), questions)
    assert not {*hashes} & {*held_out_hashes(table)}
    assert held_out_hashes(table) == held_out_hashes(table.assign(score__ada=0.5))
    assert {*held_out_hashes(table.iloc[:-20])} < {*held_out_hashes(table)}


def test_what_tells_heads_apart_is_their_weights():
    head = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert heads_digest({"ridge": head}) == heads_digest({"ridge": head.astype(np.float64)})
    assert heads_digest({"ridge": head}) != heads_digest({"ridge": head + 1})
