"""The trusted end of a sandbox: a program's function as an ordinary callable.

Calls travel as plain data over a private socket. The program cannot pass anything but data, so the checks that compare
its results run only code of their own, whatever the results are.
"""

from __future__ import annotations

import builtins
import contextlib
import os
import select
import signal
import socket
import time
from typing import Any, Self

from trinity_assets.errors import GraderError, SandboxError
from trinity_assets.sandbox import values
from trinity_assets.sandbox.boot import boot_program, limits_inside, modules_inside
from trinity_assets.sandbox.running import Running
from trinity_assets.sandbox.specs import ProgramLimits
from trinity_assets.sandbox.tiers import Tier, interpreter

START_LIMIT_S = 120.0
"""How long a sandbox may take to start, on a machine however busy."""
STARVED_FACTOR = 10
"""Up to how many times its wall limit a program is waited for while it only waits for a core."""
_NO_ANSWER = "answered something that is no answer"

ARGUMENT_BYTES = 64 << 20
LEAST_REPLY_BYTES = 1 << 16
"""What a reply may take whatever the limit on a returned value: room for an exception's text."""


class CandidateError(Exception):
    """The program is at fault: it cannot be loaded, ended early, or answered what is no answer."""


class CandidateTimeoutError(CandidateError):
    """The program used its CPU time, or did not answer within its wall limit."""


class RaisedError(Exception):
    """The function raised something that is no exception of the standard library's own."""


class Opaque:
    """A result that is no plain data, such as a match of a regular expression: true or false, and equal to nothing."""

    def __init__(self, name: str, truth: bool) -> None:
        self._name, self._truth = name, truth

    def __bool__(self) -> bool:
        return self._truth

    def __repr__(self) -> str:
        return f"<{self._name}>"


class Candidate:
    """One untrusted program in one sandbox of its own, as a context manager and a callable.

    ``failure`` keeps the first failure of the program, so that checks that swallow exceptions cannot hide it; ``calls``
    counts the calls that were made; ``opaque`` is the type of a result that was no plain data.

    Raises:
        SandboxError: the tier cannot start a process.
    """

    def __init__(self, tier: Tier, limits: ProgramLimits, start_limit_s: float = START_LIMIT_S) -> None:
        self._tier, self._limits, self._start_limit_s = tier, limits, start_limit_s
        self.failure: Exception | None = None
        self.calls = 0
        self.opaque: str | None = None
        self._ready = False
        self._left_s = float(limits.wall_s)
        self._credited_s = 0.0
        self._received = bytearray()
        self._socket, theirs = socket.socketpair()
        self._errors, errors = os.pipe()
        os.set_blocking(self._errors, False)
        command = [*interpreter(), "-c", boot_program(theirs.fileno())]
        try:
            self._running = Running(tier.start(command, [theirs.fileno()], errors, limits))
        except BaseException:
            self._socket.close()
            os.close(self._errors)
            raise
        finally:
            theirs.close()
            os.close(errors)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._socket.close()
        os.close(self._errors)

    @property
    def process_id(self) -> int:
        """The process that runs the program, once it is loaded."""
        return self._running.program_id

    def cpu_s(self) -> float:
        """CPU seconds that the program has used so far."""
        return self._running.cpu_s()

    def load(self, program: str, function: str) -> None:
        """Run the program as a module; its ``function`` is what calls reach from then on.

        Raises:
            CandidateError: the program raises, ends or takes too long, or defines no such function.
            SandboxError, GraderError: the sandbox does not start, or something outside ended it.
        """
        self._send_bytes(modules_inside())
        self._send(limits_inside(self._limits))
        reply = self._receive()
        if reply[0] != "ready":
            raise self._failed(SandboxError(f"the sandbox {self._tier.name} said {reply[0]!r} in place of 'ready'"))
        self._ready = True
        self._running.find_program()
        self._left_s = float(self._limits.wall_s)
        self._send((program, function))
        match self._receive():
            case ("loaded", True):
                return
            case ("loaded", False):
                raise self._failed(CandidateError(f"defines no function {function}"))
            case ("raised", str() as name, str() as message, tuple()):
                raise self._failed(CandidateError(f"{name}: {message}" if message else name))
            case _:
                raise self._failed(CandidateError(_NO_ANSWER))

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function; what it returns, or ``Opaque`` for what is no plain data.

        Raises:
            CandidateError: it ends the program, takes too long, or returns too much.
            GraderError: an argument cannot enter, or something outside ended the program.
            Exception: what the function itself raised, where Python has it built in; else ``RaisedError``.
        """
        self.calls += 1
        if self.failure is not None:
            raise self.failure
        self._send((arguments, named))
        match self._receive():
            case ("returned", result, None):
                return result
            case ("returned", None, (tuple() as changed, dict() as changed_named)) if (
                len(changed) == len(arguments) and changed_named.keys() == named.keys()
            ):
                for ours, theirs in zip(arguments, changed, strict=True):
                    _take_over(ours, theirs)
                for name, theirs in changed_named.items():
                    _take_over(named[name], theirs)
                return None
            case ("raised", str() as name, str() as message, tuple() as bases):
                raise _exception(name, message, bases)
            case ("opaque", str() as name, bool() as truth):
                self.opaque = name
                return Opaque(name, truth)
            case ("too large", str() as how):
                raise self._failed(CandidateError(f"returned too much: {how}"))
            case _:
                raise self._failed(CandidateError(_NO_ANSWER))

    def _send(self, message: object) -> None:
        try:
            self._send_bytes(values.encode(message, ARGUMENT_BYTES))
        except values.NotPlainError as error:
            if str(error) == Opaque.__name__:
                returned = f"returned a {self.opaque}, which the checks pass on; only plain data can be"
                raise self._failed(CandidateError(returned)) from None
            raise self._failed(GraderError(f"the checks pass a {error}, which cannot enter the sandbox")) from None
        except values.TooLargeError as error:
            raise self._failed(GraderError(f"the checks pass more than can enter the sandbox: {error}")) from None

    def _send_bytes(self, data: bytes) -> None:
        left = memoryview(len(data).to_bytes(4, "big") + data)
        self._socket.setblocking(False)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                self._wait(select.POLLOUT)
            except OSError:
                raise self._ended() from None

    def _receive(self) -> tuple[Any, ...]:
        size = int.from_bytes(self._receive_bytes(4), "big")
        if size > max(self._limits.reply_kib << 10, LEAST_REPLY_BYTES):
            raise self._failed(CandidateError(f"answered with {size} bytes, more than it may"))
        try:
            message = values.decode(self._receive_bytes(size), values.MAX_DEPTH + 2)
        except values.MalformedError as error:
            raise self._failed(CandidateError(f"answered something that cannot be read: {error}")) from None
        if not isinstance(message, tuple) or not message:
            raise self._failed(CandidateError(_NO_ANSWER))
        return message

    def _receive_bytes(self, size: int) -> bytes:
        while len(self._received) < size:
            self._wait(select.POLLIN)
            try:
                part = self._socket.recv(1 << 16)
            except BlockingIOError:
                continue
            except OSError:
                part = b""
            if not part:
                raise self._ended()
            self._received += part
        data = bytes(self._received[:size])
        del self._received[:size]
        return data

    def _wait(self, event: int) -> None:
        """Wait until the socket is ready, while the program has CPU time left and its wall limit is not reached."""
        poller = select.poll()
        poller.register(self._socket, event)
        while True:
            cpu_left_s = self._limits.cpu_s - self._running.cpu_s() if self._ready else self._start_limit_s
            if cpu_left_s <= 0:
                raise self._failed(self._used_up())
            began = time.monotonic()
            # A program cannot have used up its CPU time before as much time has passed.
            patience_s = min(cpu_left_s + 0.01, max(0.0, self._left_s)) if self._ready else self._start_limit_s
            ready = poller.poll(1000 * patience_s)
            self._left_s -= time.monotonic() - began
            if ready:
                return
            if not self._ready:
                raise self._failed(
                    SandboxError(f"the sandbox {self._tier.name} did not start within {self._start_limit_s:.0f} s")
                )
            if self._left_s <= 0.01:
                self._credit_starvation()

    def _credit_starvation(self) -> None:
        """Give back the time in which the program waited for a core; end it where that is not the reason."""
        starved_s = self._running.waited_for_a_core_s()
        if starved_s > STARVED_FACTOR * self._limits.wall_s:
            raise self._failed(GraderError("the machine is too busy to run a program; grade again"))
        self._left_s += starved_s - self._credited_s
        self._credited_s = starved_s
        if self._left_s <= 0.01:
            raise self._failed(CandidateTimeoutError(f"did not answer within {self._limits.wall_s} s"))

    def _used_up(self) -> CandidateTimeoutError:
        return CandidateTimeoutError(f"used its {self._limits.cpu_s} s of CPU time")

    def _failed(self, failure: Exception) -> Exception:
        self.failure = self.failure or failure
        return self.failure

    def _ended(self) -> Exception:
        """What it means that the program's end of the socket is closed."""
        if not self._end(patience_s=2.0):
            return self._failed(CandidateError("closed its end of the conversation"))
        status, used_s = self._running.status or 0, self._running.used_s
        if not self._ready:
            said = self._said() or f"it ended with status {status}"
            return self._failed(SandboxError(f"the sandbox {self._tier.name} could not start: {said}"))
        if status == -signal.SIGXCPU or (status == -signal.SIGKILL and used_s >= self._limits.cpu_s):
            return self._failed(self._used_up())
        if status == -signal.SIGKILL:
            return self._failed(
                GraderError(
                    f"the process was killed from outside after {used_s:.1f} s of CPU time while it ran a program "
                    "(out of memory?); grade again"
                )
            )
        how = f"was ended by {_signal_name(-status)}" if status < 0 else f"left early with status {status}"
        return self._failed(CandidateError(how))

    def _said(self) -> str:
        with contextlib.suppress(OSError):
            lines = os.read(self._errors, 1 << 16).decode("utf-8", "replace").strip().splitlines()
            return lines[-1] if lines else ""
        return ""

    def _end(self, patience_s: float = 0.0) -> bool:
        """See the sandbox ended, as ``Running.end``; nothing of it is left afterwards."""
        already = self._running.status is not None
        on_its_own = self._running.end(patience_s)
        if not already:
            self._drain()
        return on_its_own

    def _drain(self) -> None:
        """Wait until nothing holds the other end of the socket: a namespace ends a moment after its first process."""
        self._socket.setblocking(True)
        self._socket.settimeout(5.0)
        with contextlib.suppress(OSError):
            while self._socket.recv(1 << 20):
                pass


def _take_over(ours: Any, theirs: Any) -> None:
    """Give a container that was passed the content that the function left in it."""
    if type(ours) is not type(theirs):
        return
    if isinstance(ours, list):
        ours[:] = theirs
    elif isinstance(ours, (dict, set)):
        ours.clear()
        ours.update(theirs)


def _exception(name: str, message: str, bases: tuple[object, ...]) -> Exception:
    """An exception as checks may expect it: the first builtin one among its ``bases``, or ``RaisedError``.

    What ends an iteration is none of them: ``all(map(f, cases))`` would take it for the end of the cases, and pass.
    """
    for base in bases:
        kind = getattr(builtins, base, None) if isinstance(base, str) else None
        if kind in (Exception, BaseException, StopIteration, StopAsyncIteration):
            break
        if isinstance(kind, type) and issubclass(kind, Exception):
            with contextlib.suppress(Exception):  # some take more than a message: UnicodeDecodeError, ExceptionGroup
                return kind(message)
    return RaisedError(f"{name}: {message}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
