"""One untrusted program in one process: an empty environment, its own directory, limits, and a private word at the end.

The child limits itself before the first untrusted statement runs, and says so on a descriptor of its own: what goes
wrong before that is no program's fault. There it also reports the end, by a token that only the trusted lines around
the program write: a program that ends the interpreter early has not passed, whatever its exit status is. The process is
not a security boundary; a caller that needs one puts it inside a sandbox.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Literal

from trinity_assets.errors import GraderError
from trinity_assets.sandbox.specs import ProgramLimits


@dataclass(frozen=True)
class ProgramResult:
    """How a program ended: ``passed`` (it ran to its end), ``failed`` (it raised or left early) or ``timeout``."""

    outcome: Literal["passed", "failed", "timeout"]
    reason: str


ERROR_BYTES = 2000
"""How much of the end of a program's error text is read for the reason."""

_STARTED = b"+"

# Runs under `python -I -S` with the token's line and the program on stdin; argv: descriptor, cpu_s, memory and file
# bytes. A hard limit that the machine set lower stays: only root may raise one.
_CHILD = f"""
import os, resource, sys
channel, cpu, memory, file = map(int, sys.argv[1:])
del sys.argv[1:]
def limit(what, soft, hard):
    allowed = resource.getrlimit(what)[1]
    if allowed != resource.RLIM_INFINITY:
        soft, hard = min(soft, allowed), min(hard, allowed)
    resource.setrlimit(what, (soft, hard))
limit(resource.RLIMIT_CPU, cpu, cpu + 1)
limit(resource.RLIMIT_FSIZE, file, file)
limit(resource.RLIMIT_CORE, 0, 0)
if sys.platform != "darwin":
    limit(resource.RLIMIT_AS, memory, memory)
os.write(channel, {_STARTED!r})
token, source = sys.stdin.readline().strip(), sys.stdin.read()
sys.stdin = open(os.devnull)
exec(compile(source, "<program>", "exec"), {{"__name__": "__program__"}})
os.write(channel, token.encode())
os._exit(0)
"""


def run_python(program: str, limits: ProgramLimits) -> ProgramResult:
    """Run ``program`` to its end in a process of its own.

    Raises:
        GraderError: the process could not be started or prepared, or something outside killed it; that says nothing
            about the program.
    """
    token = secrets.token_hex(16)
    reader, writer = os.pipe()
    os.set_blocking(reader, False)  # a process that the program left behind may still hold the other end
    try:
        with tempfile.TemporaryDirectory(prefix="trinity-program-") as directory:
            ended = _run_child(program, limits, token, writer, directory)
        reported = b""
        with contextlib.suppress(BlockingIOError):
            reported = os.read(reader, len(_STARTED + token.encode()))
    finally:
        os.close(reader)
        os.close(writer)
    if reported == _STARTED + token.encode():
        return ProgramResult("passed", "")
    return _failure(ended, limits, started=reported.startswith(_STARTED))


@dataclass(frozen=True)
class _Ended:
    """A child process that is over; ``cpu_s`` is None when it had to be ended at the wall limit."""

    status: int
    cpu_s: float | None
    last_line: str


def _run_child(program: str, limits: ProgramLimits, token: str, writer: int, directory: str) -> _Ended:
    arguments = [str(writer), str(limits.cpu_s), str(limits.memory_mib << 20), str(limits.file_mib << 20)]
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as errors:
        source.write(f"{token}\n".encode() + program.encode("utf-8", "surrogatepass"))
        source.seek(0)
        try:
            child = subprocess.Popen(  # noqa: S603 - running a given program is what this module is for
                [sys.executable, "-I", "-S", "-X", "utf8", "-c", _CHILD, *arguments],
                stdin=source,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd=directory,
                env={},
                pass_fds=[writer],
                start_new_session=True,
            )
        except OSError as error:
            raise GraderError(f"cannot start a process to run a program in: {error}") from error
        try:
            cpu_s = _wait(child, limits.wall_s)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            if child.returncode is None:
                child.wait()
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - ERROR_BYTES))
        text = errors.read().decode("utf-8", "replace").strip()
    return _Ended(child.returncode, cpu_s, text.splitlines()[-1] if text else "")


def _failure(ended: _Ended, limits: ProgramLimits, *, started: bool) -> ProgramResult:
    if ended.cpu_s is None:
        return ProgramResult("timeout", f"did not end within {limits.wall_s} s")
    if not started:
        raise GraderError(f"the sandbox could not start: {ended.last_line or f'it ended with status {ended.status}'}")
    at_limit = ended.cpu_s >= 0.9 * limits.cpu_s  # the kernel's clock ticks; the usage it reports may lie just below
    if ended.status == -signal.SIGXCPU or (ended.status == -signal.SIGKILL and at_limit):
        return ProgramResult("timeout", f"used its {limits.cpu_s} s of CPU time")
    if ended.status == -signal.SIGKILL:
        raise GraderError("the process was killed from outside while it ran a program; grade again")
    return ProgramResult("failed", ended.last_line or f"left early with status {ended.status}")


def _wait(child: subprocess.Popen[bytes], wall_s: float) -> float | None:
    """CPU seconds of ``child`` once it has ended, None when it has not within ``wall_s``.

    ``Popen.wait`` does not tell a process's CPU time, and a kill at the CPU limit is the program's fault while any
    other kill is not.
    """
    deadline = time.monotonic() + wall_s
    pause = 0.001
    while time.monotonic() < deadline:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_utime + usage.ru_stime
        time.sleep(pause)
        pause = min(pause * 2, 0.02)
    return None
