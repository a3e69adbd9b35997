"""A started sandbox: its clocks while it runs, and its end."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from trinity_assets.sandbox.tiers import Started

_PRECISE_CPU_CLOCK = 2
"""CPUCLOCK_SCHED of ``linux/posix-timers.h``: the clock of another process is named by its id and this."""


class Running:
    """The processes of one sandbox.

    ``status`` is None until it has ended, then its exit status, or minus the number of the signal that ended it;
    ``used_s`` is the CPU time that it had used by then.
    """

    def __init__(self, started: Started) -> None:
        self._process = started.process
        self._tells_signals_as_status = started.tells_signals_as_status
        self.program_id = started.process.pid
        self.status: int | None = None
        self.used_s = 0.0

    def find_program(self) -> None:
        """Learn which process runs the program: the sandbox's one child where it stays its parent, else itself."""
        pid = self._process.pid
        with contextlib.suppress(OSError, ValueError, IndexError):
            self.program_id = int(Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()[0])

    def cpu_s(self) -> float:
        """CPU seconds that the program has used, 0 where the system does not tell or it has ended."""
        try:
            return time.clock_gettime((~self.program_id << 3) | _PRECISE_CPU_CLOCK)
        except OSError:
            return 0.0

    def waited_for_a_core_s(self) -> float:
        """Seconds that the program was ready to run and waited for a core; 0 where nobody counts them."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int(Path(f"/proc/{self.program_id}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
        return 0.0

    def end(self, patience_s: float = 0.0) -> bool:
        """See it ended, and say whether it ended on its own within ``patience_s``; else it is killed."""
        if self.status is not None:
            return True
        pid = self._process.pid
        deadline = time.monotonic() + patience_s
        pause = 0.0005
        # Left unreaped until its group is killed, so that the group's number cannot be somebody else's by then.
        while not (ended := os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)):
            if time.monotonic() >= deadline:
                break
            time.sleep(pause)
            pause = min(pause * 2, 0.02)
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
        self._process.returncode = self.status = os.waitstatus_to_exitcode(status)
        if self._tells_signals_as_status and self.status > 128:
            self.status = 128 - self.status
        self.used_s = usage.ru_utime + usage.ru_stime
        return ended is not None
