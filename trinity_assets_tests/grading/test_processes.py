"""Graders in processes of their own: limits and crashes are the completion's, kills from outside are no verdict."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from trinity_assets.errors import GraderError
from trinity_assets.grading.processes import Graders
from trinity_assets.grading.specs import ExactGrader, PythonFunctionGrader
from trinity_assets.sandbox.specs import ProgramLimits
from trinity_assets_tests.needed import needed_tier

FUNCTION = PythonFunctionGrader(kind="python_function", limits=ProgramLimits(cpu_s=2, wall_s=20, memory_mib=512))
PATIENCE_S = 120
"""How long a step of a test may take, on a machine however busy."""
ADD = "```python\ndef add(a, b):\n    return a + b\n```"


def payload(statement: str, prepared: str = "") -> dict[str, Any]:
    """A gold payload whose checks are ``statement``, after ``prepared`` at the top."""
    return {"entry_point": "add", "test": f"{prepared}\ndef check(candidate):\n    {statement}\n"}


RIGHT = payload("assert candidate(2, 3) == 5")


@pytest.fixture
def graders(sandbox: None) -> Iterator[Graders]:
    with Graders(FUNCTION, 2) as pool:
        yield pool


def test_verdicts_come_back_whole_and_belong_to_their_completions(graders: Graders) -> None:
    wrong = "```python\ndef add(a, b):\n    return a - b\n```"
    completions = [ADD, wrong, "no code at all", ADD] * 3
    with ThreadPoolExecutor(4) as threads:
        verdicts = list(threads.map(lambda text: graders.grade(text, RIGHT), completions))
    assert [verdict.score for verdict in verdicts] == [1, 0, 0, 1] * 3
    assert verdicts[1].reason == "assert candidate(2, 3) == 5 (AssertionError)"
    assert verdicts[2].rule == "no_code"


@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        ("candidate(1, 1)\n    while True: pass", "timeout"),
        ("candidate(1, 1)\n    import ctypes; ctypes.string_at(0)", "crash"),
    ],
)
def test_what_ends_the_checks_process_itself_is_unsolved_with_its_reason(
    graders: Graders, statement: str, rule: str
) -> None:
    verdict = graders.grade(ADD, payload(statement))
    assert (verdict.score, verdict.rule) == (0, rule)
    assert graders.grade(ADD, RIGHT).score == 1


def test_more_memory_than_allowed_fails_the_check_that_needs_it(graders: Graders) -> None:
    verdict = graders.grade(ADD, payload("assert len('x' * candidate(1 << 33, 0)) == 1"))
    assert verdict.score == 0
    assert "MemoryError" in verdict.reason


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ({}, "neither 'test' nor 'tests'"),
        ({"test": "def check(c): pass"}, "no 'entry_point'"),
        ({"test": "def check(c: pass", "entry_point": "add"}, "the gold payload's checks are not Python"),
        ({"tests": ["assert add(1, 1) = 2"]}, "are not Python"),
        ({"tests": ["assert add(1, 1) == sub(3, 1)"]}, r"do not say which function they are about \(add, sub\)"),
        ({"tests": "assert True"}, r"about \(none\)"),
        ({"tests": 3}, "'tests' are no list of Python statements"),
        (payload("pass"), "the checks pass without calling add"),
        (payload("candidate(1, 2)", "import a_package_that_nobody_has"), "cannot be prepared: ModuleNotFoundError"),
        (payload("candidate(open)"), "the checks pass a builtin_function_or_method, which cannot enter"),
    ],
)
def test_a_gold_payload_that_grades_nothing_is_the_graders_error(
    graders: Graders, gold: dict[str, Any], message: str
) -> None:
    with pytest.raises(GraderError, match=message):
        graders.grade(ADD, gold)


@pytest.mark.usefixtures("sandbox")
def test_a_benchmarks_checks_see_no_key_and_print_nowhere(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROVIDER_API_KEY", "secret")
    looking = payload("print('seen'); import os; assert candidate(1, 1) and 'PROVIDER_API_KEY' not in os.environ")
    with Graders(FUNCTION, 1) as pool:
        assert pool.grade(ADD, looking).score == 1
    assert capfd.readouterr() == ("", "")


def test_checks_that_draw_at_random_draw_the_same_every_time(graders: Graders) -> None:
    drawing = payload("x = random.random()\n    assert candidate(x, 0) == -1, x", "import random")
    assert graders.grade(ADD, drawing).reason == graders.grade(ADD, drawing).reason


def test_a_killed_server_is_no_verdict_and_is_replaced(graders: Graders) -> None:
    assert graders.grade(ADD, RIGHT).score == 1
    slow = payload("import time; time.sleep(600); candidate(1, 1)")
    with ThreadPoolExecutor(1) as thread:
        grading = thread.submit(graders.grade, ADD, slow)
        forks_at_work()
        for server in servers():
            os.kill(server, signal.SIGKILL)
        with pytest.raises(GraderError, match="a grading process ended with status -9; grade again"):
            grading.result(timeout=PATIENCE_S)
    assert graders.grade(ADD, RIGHT).score == 1


def test_a_fork_killed_from_outside_is_no_verdict(graders: Graders) -> None:
    assert graders.grade(ADD, RIGHT).score == 1
    slow = payload("import time; time.sleep(600); candidate(1, 1)")
    with ThreadPoolExecutor(1) as thread:
        grading = thread.submit(graders.grade, ADD, slow)
        for fork in forks_at_work():
            os.kill(fork, signal.SIGKILL)
        with pytest.raises(GraderError, match=r"ended from outside \(status -9"):
            grading.result(timeout=PATIENCE_S)


@pytest.mark.usefixtures("sandbox")
def test_nothing_is_left_when_the_pool_is_closed() -> None:
    before = set(servers())
    with Graders(FUNCTION, 2) as pool:
        assert pool.grade(ADD, RIGHT).score == 1
        started = set(servers()) - before
        assert started
    assert not {pid for pid in started if Path(f"/proc/{pid}").exists()}


def test_without_bubblewrap_the_next_rung_grades(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    needed_tier("landlock")
    monkeypatch.setenv("PATH", str(tmp_path))  # where bubblewrap is not found
    with Graders(FUNCTION, 1) as pool:
        assert pool.grade(ADD, RIGHT).score == 1
        assert pool.facts["sandbox"] == "landlock"


def test_graders_of_text_start_no_process() -> None:
    before = set(servers())
    with Graders(ExactGrader(kind="exact"), 2) as pool:
        assert pool.grade("Paris", {"answer": "Paris"}).score == 1
        assert set(servers()) == before


def servers() -> list[int]:
    return [pid for pid in children(os.getpid()) if b"processes import serve" in command(pid)]


def forks_at_work() -> set[int]:
    """The processes that grade a completion now, once each has a sandbox: its limits are set and its checks run."""
    deadline = time.monotonic() + PATIENCE_S
    while not (forks := {fork for server in servers() for fork in children(server) if children(fork)}):
        assert time.monotonic() < deadline, "no completion is being graded"
        time.sleep(0.01)
    return forks


def children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):  # it ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):  # the thread did
                found += map(int, (task / "children").read_text().split())
    return found


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_nothing_goes_on_for_a_caller_that_was_killed(tmp_path: Path) -> None:
    program = (
        "from trinity_assets.grading.processes import Graders\n"
        "from trinity_assets.grading.specs import PythonFunctionGrader\n"
        "slow = {'entry_point': 'f', 'test': 'def check(c):\\n    c()'}\n"
        "with Graders(PythonFunctionGrader(kind='python_function'), 1) as pool:\n"
        "    pool.grade('```\\nimport time\\ndef f(): time.sleep(50)\\n```', slow)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as caller:
        deadline = time.monotonic() + 60
        while not (below := descendants(caller.pid)) or len(below) < 4:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        caller.kill()
    while left := [pid for pid in below if alive(pid)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def descendants(pid: int) -> list[int]:
    return [found for child in children(pid) for found in (child, *descendants(child))]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
