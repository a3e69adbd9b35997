"""Which tier of the ladder holds on this machine, found out by really running a program in it that tries to get out.

A tier counts only if the program ran and every way out that it tried was closed. What is refused is told with the
reason, tier by tier.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from trinity_assets.errors import SandboxError
from trinity_assets.sandbox.candidate import Candidate, CandidateError
from trinity_assets.sandbox.specs import ProgramLimits
from trinity_assets.sandbox.tiers import LADDER, UNSANDBOXED, Tier

PROBE_LIMITS = ProgramLimits(cpu_s=5, memory_mib=256)
START_LIMIT_S = 20.0
"""A tier that has not started by then is not waited for."""

# Gives the names of the ways out that are open.
PROBE = """
import os, socket

def probe(secret, home, port, parent):
    def is_open(way):
        try:
            return way() is not False
        except (OSError, MemoryError):
            return False

    def connect():
        socket.create_connection(("127.0.0.1", port), timeout=1).close()

    def start_a_process():
        if os.fork() == 0:
            os._exit(0)

    ways = {
        "reading a file of yours": lambda: open(secret).read(),
        "your home directory": lambda: len(set(os.listdir(home[0])) & set(home[1])) > 0,
        "writing beside it": lambda: open(secret + ".written", "w").close(),
        "connecting to a local port": connect,
        "a socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(),
        "the kernel's settings": lambda: open("/proc/sys/kernel/core_pattern", "r+").close(),
        "starting a process": start_a_process,
        "a signal to its parent": lambda: os.kill(parent, 0),
        "the environment": lambda: len(set(os.environ) - {"PWD", "LC_CTYPE"}) > 0,
        "more memory than allowed": lambda: bytearray(1 << 30),
    }
    return [name for name, way in ways.items() if is_open(way)]
"""


def _home_entries() -> tuple[str, list[str]]:
    """The home directory and what lies in it, but for the way to an interpreter that is installed there."""
    try:
        home = Path.home()
        entries = [entry.name for entry in home.iterdir() if not _python_tree().is_relative_to(entry)]
    except (OSError, RuntimeError):  # no home, or one that this user may not look into either
        return "/", []
    return str(home), entries


def _python_tree() -> Path:
    return Path(sys.base_prefix).resolve()


@dataclass(frozen=True)
class Sandbox:
    """The tier that untrusted programs run in on this machine, and the interpreter that runs them."""

    tier: Tier
    python: str = platform.python_version()

    def described(self) -> str:
        """For people: the tier's name and the interpreter's version."""
        return f"{self.tier.name}, Python {self.python}"


@lru_cache(maxsize=2)
def find_sandbox(*, allow_unsandboxed: bool = False) -> Sandbox:
    """The strongest tier that holds here; probed once in the life of a process.

    Raises:
        SandboxError: none holds; says what was tried, and what to do.
    """
    refused: list[str] = []
    for tier in LADDER.values():
        if not tier.confines and not allow_unsandboxed:
            continue
        fault = tier_fault(tier)
        if fault is None:
            return Sandbox(tier)
        refused.append(f"  {tier.name}: {fault}")
    raise SandboxError(
        "no sandbox holds on this machine, so untrusted code is not run:\n"
        + "\n".join(refused)
        + "\nInstall bubblewrap and allow unprivileged user namespaces, or use Linux 6.2 or newer with Landlock. Where "
        "the whole project runs inside a container that holds nothing of worth, the grader's setting "
        f"allow_unsandboxed: true runs programs as bare processes. (Python {platform.python_version()}, {sys.platform})"
    )


def tier_fault(tier: Tier) -> str | None:
    """Why ``tier`` cannot be used on this machine, None when it holds (``unsandboxed``: when it runs)."""
    try:
        with tempfile.TemporaryDirectory(prefix="trinity-probe-") as directory, socket.socket() as listener:
            Path(directory).chmod(0o755)
            secret = Path(directory) / "secret"
            secret.write_text("what a program must not read", encoding="utf-8")
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            with Candidate(tier, PROBE_LIMITS, START_LIMIT_S) as probe:
                probe.load(PROBE, "probe")
                ways = probe(str(secret), _home_entries(), listener.getsockname()[1], os.getpid())
    except (SandboxError, CandidateError, OSError) as error:
        return str(error)
    if not isinstance(ways, list):
        return f"the probe answered {ways!r}"
    return f"it leaves open: {', '.join(map(str, ways))}" if tier is not UNSANDBOXED and ways else None
