"""Who holds a claim or a permit: one asking in one process, and whether that process still lives."""

from __future__ import annotations

import functools
import os
import socket
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil
import sqlalchemy as sa


@dataclass(frozen=True)
class Claimant:
    """One asking in one process.

    ``place`` is where ``pid`` means something: this boot of this machine's kernel, and the process's own space of
    process ids; None where the system does not say. ``process_started`` is in clock ticks since boot where there is a
    place, else in seconds since 1970.
    """

    claimant: str
    host: str
    pid: int
    process_started: float
    place: str | None

    @classmethod
    def new(cls) -> Self:
        """A claimant in this process, unlike every other."""
        host, pid, seen = socket.gethostname(), os.getpid(), _state_and_start(os.getpid())
        name = f"{host}:{pid}:{uuid.uuid4().hex}"
        if seen is None:
            return cls(name, host, pid, psutil.Process().create_time(), None)
        return cls(name, host, pid, seen[1], _place())

    def dead_among(self, rows: Iterable[sa.RowMapping]) -> frozenset[str]:
        """The claimants of ``rows`` whose process is known to be gone; each is looked at once, whatever rows it has."""
        others = {row["claimant"]: row for row in rows if row["claimant"] != self.claimant}
        return frozenset(name for name, row in others.items() if self._sees_dead(row))

    def _sees_dead(self, row: sa.RowMapping) -> bool:
        """True when the process that ``row`` (place, pid, process_started) names is known to be gone.

        Only where its process id means the same as this claimant's; elsewhere its lease has to expire.
        """
        if self.place is None or row["place"] != self.place:
            return False
        return not _runs(row["pid"], row["process_started"])


@functools.cache
def _place() -> str | None:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except (OSError, ValueError):
        return None


def _state_and_start(pid: int) -> tuple[str, float] | None:
    """What Linux says of a process: its state's letter, and its start in clock ticks since boot."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        return fields[0], float(fields[19])
    except (OSError, IndexError, ValueError):
        return None


def _runs(pid: int, started: float) -> bool:
    """True while the process lives, or cannot be seen. One that has ended and waits to be collected (Z) does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    seen = _state_and_start(pid)
    return seen is None or (seen[0] != "Z" and seen[1] == started)
