"""A program's function can be called like any other, and what ends it is told apart: the program or the world."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from trinity_assets.errors import GraderError, SandboxError
from trinity_assets.sandbox import candidate as candidate_module
from trinity_assets.sandbox.candidate import Candidate, CandidateError, CandidateTimeoutError, RaisedError
from trinity_assets.sandbox.running import Running
from trinity_assets.sandbox.specs import ProgramLimits
from trinity_assets.sandbox.tiers import BUBBLEWRAP, LANDLOCK, UNSANDBOXED, Started, Tier
from trinity_assets_tests.needed import needed_tier
from trinity_assets_tests.sandbox import threads
from trinity_assets_tests.sandbox.users import run_module

LIMITS = ProgramLimits(cpu_s=2, wall_s=5, memory_mib=512)
CONFINING = ["bubblewrap", "landlock"] if sys.platform == "linux" else ["sandbox_exec"]


@pytest.fixture(params=CONFINING)
def tier(request: pytest.FixtureRequest) -> Tier:
    return needed_tier(request.param)


def called(tier: Tier, program: str, *arguments: Any, limits: ProgramLimits = LIMITS) -> Any:
    with Candidate(tier, limits) as candidate:
        candidate.load(program, "f")
        return candidate(*arguments)


def test_a_function_is_called_with_what_it_is_given(tier: Tier) -> None:
    with Candidate(tier, LIMITS) as candidate:
        candidate.load("seen = []\ndef f(a, *more, key=None):\n    seen.append(a)\n    return seen, more, key", "f")
        assert candidate(1, 2.0, key={"k": (None,)}) == ([1], (2.0,), {"k": (None,)})
        assert candidate("x") == ([1, "x"], (), None)
        assert candidate.calls == 2


def test_what_a_function_does_to_its_argument_in_place_is_seen_where_it_returns_nothing(tier: Tier) -> None:
    items, table = [3, 1, 2], {"a": 1}
    assert called(tier, "def f(x, t): x.sort(); t['b'] = 2", items, table) is None
    assert (items, table) == ([1, 2, 3], {"a": 1, "b": 2})
    with Candidate(tier, LIMITS) as candidate:
        candidate.load("def f(*, x): x.sort()", "f")
        candidate(x=(named := [2, 1]))
        assert named == [1, 2]
    items = [3, 1, 2]
    assert called(tier, "def f(x):\n    x.clear()\n    return x", items) == []
    assert items == [3, 1, 2]  # else `f(x) == sorted(x)` would hold for it


def test_an_exception_of_its_own_counts_as_the_builtin_one_that_it_is(tier: Tier) -> None:
    with pytest.raises(ValueError, match="no"):
        called(tier, "class Mine(ValueError): pass\ndef f(): raise Mine('no')")
    with pytest.raises(ValueError, match="Expecting value"):
        called(tier, "import json\ndef f(): json.loads('')")


def test_an_opaque_result_that_is_passed_on_is_the_programs_fault(tier: Tier) -> None:
    with Candidate(tier, LIMITS) as candidate:
        candidate.load("import re\ndef f(x): return re.match('a', 'a')", "f")
        with pytest.raises(CandidateError, match="returned a Match, which the checks pass on"):
            candidate(candidate("a"))


@pytest.mark.parametrize(
    ("raised", "kind"),
    [("ValueError('no')", ValueError), ("KeyError('no')", KeyError), ("ZeroDivisionError", ZeroDivisionError)],
)
def test_an_exception_arrives_as_what_it_is(tier: Tier, raised: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        called(tier, f"def f(): raise {raised}")


@pytest.mark.parametrize(
    "raised", ["SystemExit(0)", "KeyboardInterrupt", "StopIteration", "type('E', (Exception,), {})()"]
)
def test_an_exception_that_would_steer_the_checks_is_only_an_exception(tier: Tier, raised: str) -> None:
    with pytest.raises(RaisedError):
        called(tier, f"def f(): raise {raised}")


def test_an_opaque_result_is_true_or_false_and_equal_to_nothing(tier: Tier) -> None:
    with Candidate(tier, LIMITS) as candidate:
        candidate.load("import re\ndef f(text): return re.search('a', text)", "f")
        found = candidate("abc")
        assert found
        assert found != candidate("abc")
        assert candidate("xyz") is None
        assert candidate.opaque == "Match"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("def f(:", "SyntaxError: invalid syntax"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit", "SystemExit"),
        ("x = 1", "defines no function f"),
        ("f = 1", "defines no function f"),
        ("\0", "SyntaxError: source code string cannot contain null bytes"),
        ("x = '\udce4'; f = 1", "UnicodeEncodeError: 'utf-8' codec can't encode character"),
    ],
)
def test_a_program_that_does_not_load_has_failed(tier: Tier, program: str, reason: str) -> None:
    with Candidate(tier, LIMITS) as candidate, pytest.raises(CandidateError) as caught:
        candidate.load(program, "f")
    assert str(caught.value).startswith(reason)


def test_a_program_may_define_dataclasses_and_recurse_and_print(tier: Tier) -> None:
    program = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass Box:\n    x: int\n"
        "def f(n):\n    print('x' * 100000)\n    return Box(n).x and f(n - 1) + 1"
    )
    assert called(tier, program, 20) == 20


def test_a_failure_stays_even_where_checks_swallow_it(tier: Tier) -> None:
    with Candidate(tier, LIMITS) as candidate:
        candidate.load("import os\ndef f(): os._exit(0)", "f")
        for _ in range(2):
            with pytest.raises(CandidateError, match="left early with status 0"):
                candidate()


def test_cpu_time_is_what_is_limited(tier: Tier) -> None:
    with pytest.raises(CandidateTimeoutError, match="used its 1 s of CPU time"):
        called(tier, "def f():\n    while True: pass", limits=LIMITS.model_copy(update={"cpu_s": 1, "wall_s": 60}))


def test_the_precise_clock_decides_and_the_kernels_is_behind_it(tier: Tier, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = LIMITS.model_copy(update={"cpu_s": 1, "wall_s": 60})
    with Candidate(tier, limits) as candidate:
        candidate.load("import time\ndef f(s):\n    while time.process_time() < s: pass", "f")
        candidate(0.5)
        assert 0.5 <= candidate.cpu_s() < 1
        with pytest.raises(CandidateTimeoutError):
            candidate(1.5)
    monkeypatch.setattr(Running, "cpu_s", lambda _: 0.0)
    with pytest.raises(CandidateTimeoutError, match="used its 1 s of CPU time"):
        called(tier, "def f():\n    while True: pass", limits=limits)


def test_waiting_is_limited_by_the_wall_clock(tier: Tier) -> None:
    began = time.monotonic()
    with pytest.raises(CandidateTimeoutError, match="did not answer within 1 s"):
        called(tier, "import time\ndef f(): time.sleep(60)", limits=LIMITS.model_copy(update={"wall_s": 1}))
    assert time.monotonic() - began < 20


def test_time_spent_waiting_for_a_core_is_not_counted(tier: Tier, monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.monotonic()
    monkeypatch.setattr(Running, "waited_for_a_core_s", lambda _: time.monotonic() - began)
    slow = "import time\ndef f():\n    time.sleep(2.5)\n    return 'at last'"
    assert called(tier, slow, limits=LIMITS.model_copy(update={"wall_s": 1})) == "at last"


def test_a_machine_that_never_gives_a_core_is_no_verdict(tier: Tier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Running, "waited_for_a_core_s", lambda _: 11.0)
    with pytest.raises(GraderError, match="too busy"):
        called(tier, "import time\ndef f(): time.sleep(60)", limits=LIMITS.model_copy(update={"wall_s": 1}))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_waiting_for_a_core_is_measured() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        running = Running(Started(process, tells_signals_as_status=False))
        assert running.waited_for_a_core_s() >= 0
        assert running.end() is False
        assert (running.status, running.waited_for_a_core_s(), running.cpu_s()) == (-signal.SIGKILL, 0, 0)


def test_a_kill_from_outside_is_no_verdict(tier: Tier) -> None:
    with Candidate(tier, LIMITS) as candidate:
        candidate.load("import time\ndef f(): time.sleep(60)", "f")
        victim = candidate.process_id
        killer = threading.Timer(0.2, os.kill, (victim, signal.SIGKILL))
        killer.start()
        with pytest.raises(GraderError, match="killed from outside"):
            candidate()


def test_a_kill_of_the_sandbox_itself_is_no_verdict() -> None:
    with Candidate(needed_tier("bubblewrap"), LIMITS) as candidate:
        candidate.load("import time\ndef f(): time.sleep(60)", "f")
        (sandbox,) = re.findall(r"PPid:\t(\d+)", Path(f"/proc/{candidate.process_id}/status").read_text())
        threading.Timer(0.2, os.kill, (int(sandbox), signal.SIGKILL)).start()
        with pytest.raises(GraderError, match="killed from outside"):
            candidate()


def test_arguments_that_cannot_enter_are_the_checks_fault(tier: Tier) -> None:
    with Candidate(tier, LIMITS) as candidate:
        candidate.load("def f(x): return x", "f")
        with pytest.raises(GraderError, match="the checks pass a function, which cannot enter"):
            candidate(lambda: 0)


def test_a_large_argument_and_a_program_that_does_not_read_are_both_survived(tier: Tier) -> None:
    assert called(tier, "def f(x): return len(x)", "x" * (4 << 20)) == 4 << 20
    with pytest.raises(CandidateError):
        called(tier, "import os\nos.close(3)\nos.dup2(0, 4)\ndef f(x): pass", "x" * (4 << 20))


@pytest.mark.parametrize("limit", ["RLIMIT_CPU, (9, 9)", "RLIMIT_AS, (1 << 29, 1 << 29)", "RLIMIT_FSIZE, (4096, 4096)"])
def test_a_machine_that_allows_less_than_the_limits_is_no_wrong_answer(limit: str) -> None:
    caller = (
        f"import resource; resource.setrlimit(resource.{limit})\n"
        "from trinity_assets.errors import SandboxError\n"
        "from trinity_assets.sandbox.candidate import Candidate\n"
        "from trinity_assets.sandbox.specs import ProgramLimits\n"
        "from trinity_assets.sandbox.tiers import UNSANDBOXED\n"
        "try: Candidate(UNSANDBOXED, ProgramLimits())\n"
        "except SandboxError as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", caller], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("this machine allows a process less than the grader's limit ")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo starting >&2; echo libpython3.so: cannot open >&2; exit 127", "libpython3.so: cannot open"),
        ("exit 1", "it ended with status 1"),
        ("kill -9 $$", "it ended with status -9"),
    ],
)
def test_an_interpreter_that_does_not_start_is_no_wrong_answer(
    script: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text(f"#!/bin/sh\n{script}\n")
    interpreter.chmod(interpreter.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(candidate_module, "interpreter", lambda: [str(interpreter)])
    with pytest.raises(SandboxError) as caught:
        called(UNSANDBOXED, "def f(): pass")
    assert str(caught.value) == f"the sandbox unsandboxed could not start: {reason}"


def test_a_sandbox_that_hangs_at_its_start_is_no_wrong_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_module, "interpreter", lambda: ["/bin/sh", "-c", "sleep 60", "sh"])
    with Candidate(UNSANDBOXED, LIMITS, start_limit_s=0.3) as candidate:
        with pytest.raises(SandboxError, match="did not start within"):
            candidate.load("def f(): pass", "f")
        assert isinstance(candidate.failure, SandboxError)


def test_a_missing_bubblewrap_is_no_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(SandboxError, match="bubblewrap is not installed"):
        called(BUBBLEWRAP, "def f(): pass")


def test_threads_only_where_they_are_allowed(tier: Tier) -> None:
    program = "import threading\ndef f():\n    threading.Thread(target=int).start()\n    return 'ran'"
    with pytest.raises(RuntimeError, match="can't start new thread"):
        called(tier, program)


def test_several_processes_need_bubblewrap_and_an_ordinary_user() -> None:
    limits = LIMITS.model_copy(update={"processes": 8})
    with pytest.raises(SandboxError, match="needs bubblewrap"):
        called(LANDLOCK, "def f(): pass", limits=limits)
    if os.geteuid() == 0:
        with pytest.raises(SandboxError, match="root"):
            called(needed_tier("bubblewrap"), "def f(): pass", limits=limits)


def test_an_ordinary_users_program_starts_as_many_threads_as_it_may() -> None:
    needed_tier("bubblewrap")
    started = run_module("trinity_assets_tests.sandbox.threads", user="ordinary" if os.geteuid() == 0 else "me")
    assert started == f"{threads.LIMITS.processes - 1}\n"  # beside the program's first; one more was refused


def test_nothing_is_left_open(tier: Tier) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    called(tier, "def f(): return 1")
    before = descriptors()
    for program in ("def f(): return 1", "def f(): raise ValueError", "import os\ndef f(): os._exit(1)"):
        with contextlib.suppress(ValueError, CandidateError):
            called(tier, program)
    assert descriptors() == before
