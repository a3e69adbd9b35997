"""A program passes only by running to its end, within its limits, and sees nothing of its surroundings."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from trinity_assets.errors import GraderError
from trinity_assets.sandbox.python import run_python
from trinity_assets.sandbox.specs import ProgramLimits

LIMITS = ProgramLimits(cpu_s=1, wall_s=5, memory_mib=512)


def test_a_program_that_ends_has_passed() -> None:
    assert run_python("x = 1", LIMITS).outcome == "passed"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("assert False, 'no'", "AssertionError: no"),
        ("def f(:", "SyntaxError: invalid syntax"),
        ("raise SystemExit", "left early with status 0"),
        ("import os; os._exit(0)", "left early with status 0"),
        ("import sys; sys.exit(3)", "left early with status 3"),
        ("x = 'a' * (2 << 30)", "MemoryError"),
        ("open('big', 'wb').write(b'0' * (64 << 20))", "OSError: [Errno 27] File too large"),
        ("input()", "EOFError: EOF when reading a line"),
    ],
)
def test_a_program_that_does_not_reach_its_end_has_failed(program: str, reason: str) -> None:
    result = run_python(program, LIMITS)
    assert (result.outcome, result.reason) == ("failed", reason)


@pytest.mark.parametrize(
    "program",
    ["while True: pass", "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"],
)
def test_cpu_time_is_limited_whatever_the_program_ignores(program: str) -> None:
    assert run_python(program, LIMITS).outcome == "timeout"


def test_waiting_is_limited_by_the_wall_clock() -> None:
    started = time.monotonic()
    result = run_python("import time; time.sleep(60)", LIMITS.model_copy(update={"wall_s": 1}))
    assert (result.outcome, result.reason) == ("timeout", "did not end within 1 s")
    assert time.monotonic() - started < 10


def test_no_secret_of_the_environment_is_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROVIDER_API_KEY", "secret")
    assert run_python("import os; assert 'PROVIDER_API_KEY' not in os.environ", LIMITS).outcome == "passed"


def test_a_process_left_behind_holds_up_nothing() -> None:
    started = time.monotonic()
    program = "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(20)\nelse:\n    os._exit(1)"
    assert run_python(program, LIMITS).outcome == "failed"
    assert time.monotonic() - started < 10


def test_a_kill_from_outside_is_not_a_verdict() -> None:
    with pytest.raises(GraderError, match="killed from outside"):
        run_python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", LIMITS)


def test_text_that_is_no_text_is_only_a_failure() -> None:
    assert run_python("'\udce4'", LIMITS).outcome == "failed"
    assert run_python("\0", LIMITS).outcome == "failed"


def test_a_lower_hard_limit_of_the_machine_is_kept_and_is_no_wrong_answer() -> None:
    caller = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "from trinity_assets.sandbox.python import run_python\n"
        "from trinity_assets.sandbox.specs import ProgramLimits\n"
        "program = 'import resource; assert resource.getrlimit(resource.RLIMIT_FSIZE) == (1 << 20, 1 << 20)'\n"
        "print(run_python(program, ProgramLimits()))"
    )
    ran = subprocess.run([sys.executable, "-c", caller], capture_output=True, text=True, check=True)
    assert ran.stdout == "ProgramResult(outcome='passed', reason='')\n"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            "echo starting >&2; echo libpython3.11.so.1.0: cannot open >&2; exit 127",
            "libpython3.11.so.1.0: cannot open",
        ),
        ("exit 1", "it ended with status 1"),
    ],
)
def test_an_interpreter_that_does_not_start_is_no_wrong_answer(
    script: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text(f"#!/bin/sh\n{script}\n")
    interpreter.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    with pytest.raises(GraderError) as caught:
        run_python("x = 1", LIMITS)
    assert str(caught.value) == f"the sandbox could not start: {reason}"


def test_the_word_of_success_is_not_among_the_arguments() -> None:
    program = "import os, sys; os.write(int(sys.orig_argv[-4]), sys.orig_argv[-5].encode()); os._exit(0)"
    assert run_python(program, LIMITS).outcome == "failed"


def test_a_program_that_forks_and_ends_has_passed() -> None:
    assert run_python("import os; os.fork()", LIMITS).outcome == "passed"
