"""Graders that run code or heavy libraries, each completion in a process of its own.

A completion can make a library hang, eat memory or crash the interpreter. So a few small server processes, which hold
no key and nothing of the caller's memory, fork once per completion; the fork grades it under limits and ends. Graders
that only compare text do not need this and run where they are called.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, BinaryIO, Self

from pydantic import TypeAdapter

from trinity_assets.errors import GraderError
from trinity_assets.grading.graders import grade, isolation
from trinity_assets.grading.specs import GraderSpec
from trinity_assets.grading.verdicts import Payload, Verdict
from trinity_assets.sandbox.landlock import die_with_parent

MEMORY_MIB = 2048
"""MiB of address space in which one completion is graded."""
WALL_LIMIT_S = 1800.0
"""After which a grading process is given up: something that it waits for will not come."""

_SERVE = """import json, sys
sys.path[:] = json.loads(sys.argv[1])
from trinity_assets.grading.processes import serve
serve()
"""


def cores() -> int:
    """How many completions are graded at once: the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Graders:
    """Grades completions of one benchmark, from any number of threads, up to ``size`` of them at once.

    A context manager; its processes end with it. ``facts`` tells what of the machine they grade with, once one started.
    """

    def __init__(self, spec: GraderSpec, size: int) -> None:
        self._spec = spec
        self._isolated = isolation(spec) is not None
        # The server that graded last is taken first, so that no more are started than are needed at once.
        self._idle: queue.LifoQueue[_Server | None] = queue.LifoQueue()
        for _ in range(size):
            self._idle.put(None)  # a place; its server is started by the first who takes it
        self._size = size
        self.facts: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for _place in range(self._size):
            if server := self._idle.get():
                server.stop()

    def grade(self, completion: str, payload: Payload) -> Verdict:
        """Grade one completion, waiting for a free place.

        Raises:
            GraderError: as ``grade``; also when the grading process was ended from outside.
        """
        if not self._isolated:
            return grade(self._spec, completion, payload)
        server = self._idle.get()
        try:
            if server and server.ended():
                server.stop()
                server = None
            if server is None:
                server = _Server(self._spec)
                self.facts = server.facts
            answer = server.ask({"completion": completion, "payload": dict(payload)})
        except BaseException:
            if server:
                server.stop()
            server = None
            raise
        finally:
            self._idle.put(server)
        if "fault" in answer:
            raise GraderError(answer["fault"])
        return Verdict(**answer["verdict"])


class _Server:
    """The caller's end of one server process."""

    def __init__(self, spec: GraderSpec) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter with our own module
            [sys.executable, "-I", "-c", _SERVE, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={name: os.environ[name] for name in ("PATH", "TMPDIR", "LANG") if name in os.environ},
        )
        try:
            answer = self.ask(spec.model_dump(mode="json"))
        except BaseException:
            self.stop()
            raise
        if "fault" in answer:
            self.stop()
            raise GraderError(answer["fault"])
        self.facts: dict[str, str] = answer["facts"]

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin and self._process.stdout  # noqa: S101 - both are pipes
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            raise GraderError(f"a grading process ended with status {self._process.wait()}; grade again")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ended(self) -> bool:
        return self._process.poll() is not None

    def stop(self) -> None:
        assert self._process.stdin and self._process.stdout  # noqa: S101 - both are pipes
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # the server, and what it is grading
        self._process.wait()
        self._process.stdout.close()


def serve() -> None:
    """A server's life: one line with the grader, then one per completion, each answered by one line, until the end."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):  # whatever a benchmark's checks read or print is not the caller's line
        os.dup2(silence, stream)
    spec: GraderSpec = TypeAdapter(GraderSpec).validate_json(requests.readline())
    needs = isolation(spec)
    assert needs is not None  # noqa: S101 - the caller starts servers for no others
    try:
        facts = needs.prepare(spec)
    except GraderError as error:
        _write_line(answers, {"fault": str(error)})
        return
    _write_line(answers, {"facts": facts})
    cpu_s = needs.cpu_s(spec)
    for line in requests:
        request = json.loads(line)
        _write_line(
            answers, _graded_in_a_fork(spec, cpu_s, request["completion"], request["payload"], requests.fileno())
        )


def _write_line(channel: BinaryIO, value: Mapping[str, Any]) -> None:
    channel.write(json.dumps(value).encode() + b"\n")
    channel.flush()


def _graded_in_a_fork(spec: GraderSpec, cpu_s: int, completion: str, payload: Payload, caller: int) -> dict[str, Any]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            _limit_this_process(cpu_s)
            with os.fdopen(writer, "wb") as channel:
                _write_line(channel, _graded_here(spec, completion, payload))
        finally:
            os._exit(0)  # the server's own clean-up is not the fork's
    os.close(writer)
    data = _read_all(reader, caller)
    os.close(reader)
    if data is None:
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    if data is None:
        return {"fault": f"grading a completion did not end within {WALL_LIMIT_S:.0f} s; grade again"}
    if data.endswith(b"\n"):
        answer: dict[str, Any] = json.loads(data)
        return answer
    return _ended_without_a_verdict(os.waitstatus_to_exitcode(status), cpu_s)


def _ended_without_a_verdict(status: int, cpu_s: int) -> dict[str, Any]:
    """What a fork's end means: its own limits and crashes are the completion's doing, anything else is not."""
    if status == -signal.SIGXCPU:
        return {"verdict": asdict(Verdict(0.0, "timeout", False, f"grading it took more than {cpu_s} s of CPU time"))}
    if status in (-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT, -signal.SIGILL, -signal.SIGFPE):
        reason = f"reading it crashed the interpreter ({signal.Signals(-status).name})"
        return {"verdict": asdict(Verdict(0.0, "crash", False, reason))}
    return {"fault": f"a grading process was ended from outside (status {status}; out of memory?); grade again"}


def _limit_this_process(cpu_s: int) -> None:
    """Soft limits only: a sandboxed program, started from here, has limits of its own."""
    if sys.platform == "linux":
        die_with_parent()
    for what, wanted in ((resource.RLIMIT_CPU, cpu_s), (resource.RLIMIT_AS, MEMORY_MIB << 20)):
        hard = resource.getrlimit(what)[1]
        with contextlib.suppress(OSError, ValueError):  # macOS does not know a limited address space
            resource.setrlimit(what, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _graded_here(spec: GraderSpec, completion: str, payload: Payload) -> dict[str, Any]:
    try:
        return {"verdict": asdict(grade(spec, completion, payload))}
    except GraderError as error:
        return {"fault": str(error)}
    except MemoryError:
        return {"verdict": asdict(Verdict(0.0, "memory", False, f"grading it took more than {MEMORY_MIB} MiB"))}
    except Exception as error:
        where = traceback.format_exc().strip().splitlines()[-3:]
        return {"fault": f"the grader {spec.kind} has a fault of its own: {error!r} ({' '.join(where).strip()})"}


def _read_all(descriptor: int, caller: int) -> bytes | None:
    """What is written until the other end closes, None when that takes longer than the wall limit.

    Ends this process when ``caller``, the other end of the requests, is gone: nobody waits for the verdict.
    """
    data = bytearray()
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    poller.register(caller, select.POLLHUP)
    deadline = time.monotonic() + WALL_LIMIT_S
    while True:
        ready = dict(poller.poll(max(0.0, deadline - time.monotonic()) * 1000))
        if not ready:
            return None
        if descriptor not in ready:
            os.killpg(0, signal.SIGKILL)  # the server and what it is grading, which are a group of their own
        part = os.read(descriptor, 1 << 16)
        if not part:
            return bytes(data)
        data += part
