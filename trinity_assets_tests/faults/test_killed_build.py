"""Builds as they are run by hand: one killed in the middle of the answers, and two at once on one home."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trinity_assets_tests.graph import small_catalog
from trinity_assets_tests.graph.scripted_models import SUMS, TASKS, WORKERS, solved
from trinity_assets_tests.graph.small_catalog import Site, cell_names

CONCURRENCY = 4
"""The provider's limit in the small catalog."""

CELLS = cell_names("answers", benchmarks=["sums"]) | cell_names("solves", benchmarks=["sums"])

ORPHANS_END_WITHIN_S = 15.0
"""They notice at once; ending takes a second on idle cores."""

BUILD = [str(Path(sys.executable).parent / "trinity-assets"), "build"]
QUESTIONS = len(WORKERS) * SUMS


@pytest.fixture
def slow_site(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[Site]:
    """Nothing is built yet, an answer takes a while, and to save time there is one benchmark."""
    with small_catalog.empty_site(tmp_path_factory.getbasetemp(), tmp_path / "slow", delay_s=0.15) as site:
        site.catalog.edit("routers.yaml", "[sums, capitals]", "[sums]")
        yield site


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The data versions of a build that nothing happened to."""
    shared = tmp_path_factory.getbasetemp()
    with small_catalog.built_site(shared, tmp_path_factory.mktemp("undisturbed") / "site") as site:
        return site.data_versions(CELLS)


def start_build(log: Path) -> subprocess.Popen[bytes]:
    """A real build, in a session of its own, with what it says in ``log``."""
    with log.open("wb") as stream:
        return subprocess.Popen(BUILD, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True)


def session_processes(session: int) -> list[int]:
    """The living processes of a session, zombies aside: everything that a build has started."""
    living = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            fields = (directory / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z" and int(fields[3]) == session:
            living.append(int(directory.name))
    return living


def settled_questions(ledger: Path) -> set[tuple[str, str]]:
    """(worker, task id) of every answer that the ledger holds."""
    connection = sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)
    try:
        return set(connection.execute("select worker, task_id from answers"))
    finally:
        connection.close()


def times_asked(site: Site) -> Counter[tuple[str, str]]:
    """How often each (worker, task id) arrived at the provider."""
    ids = {task.question: task.id for tasks in TASKS.values() for task in tasks}
    workers = {model: worker for worker, model in WORKERS.items()}
    return Counter(
        (workers[one.body["model"]], next(ids[q] for q in ids if q in one.messages[-1]["content"]))
        for one in site.server.received()
    )


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether it came true in that time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_a_build_that_is_killed_loses_the_calls_in_flight_and_nothing_else(
    slow_site: Site, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    site, server = slow_site, slow_site.server
    build = start_build(tmp_path / "killed.log")
    asked_enough = wait_until(lambda: server.count() >= QUESTIONS // 3 or build.poll() is not None, 120)
    assert asked_enough and build.poll() is None, (tmp_path / "killed.log").read_text()
    os.kill(build.pid, signal.SIGKILL)
    asked_at_kill = server.count()
    settled_at_kill = settled_questions(site.home / "ledger.sqlite")
    assert build.wait() == -signal.SIGKILL
    try:
        ended = wait_until(lambda: not session_processes(build.pid), ORPHANS_END_WITHIN_S)
        assert ended, "steps go on after their run was killed"
    finally:
        for orphan in session_processes(build.pid):
            os.kill(orphan, signal.SIGKILL)
    assert 0 < len(settled_at_kill) < QUESTIONS
    assert server.count() - asked_at_kill <= 2 * CONCURRENCY, "a step went on asking"

    server.delay_s = 0.0
    again = start_build(tmp_path / "again.log")
    assert again.wait(180) == 0, (tmp_path / "again.log").read_text()
    assert "1 earlier run was killed; what had settled is kept." in (tmp_path / "again.log").read_text()
    asked = times_asked(site)
    twice = {question for question, times in asked.items() if times > 1}
    assert len(asked) == QUESTIONS
    assert not twice & settled_at_kill
    assert len(twice) <= CONCURRENCY
    assert max(asked.values()) <= 2
    assert site.data_versions(CELLS) == undisturbed
    for worker, model in WORKERS.items():
        assert site.scores(worker, "sums") == {task.id: float(solved(model, task)) for task in TASKS["sums"][:SUMS]}


def test_two_builds_at_once_ask_each_question_once(
    slow_site: Site, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    slow_site.server.delay_s = 0.02
    logs = [tmp_path / "first.log", tmp_path / "second.log"]
    builds = [start_build(log) for log in logs]
    for build, log in zip(builds, logs, strict=True):
        assert build.wait(240) == 0, log.read_text()
    asked = times_asked(slow_site)
    assert len(asked) == QUESTIONS
    assert set(asked.values()) == {1}
    assert slow_site.data_versions(CELLS) == undisturbed
