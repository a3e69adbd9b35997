"""Runs every attack in one tier: ``python -m trinity_assets_tests.sandbox.attacking TIER``.

It prints one JSON object, attack -> what came of it, and runs as whoever starts it. Where the tier does not hold, there
is nothing to attack: then it says why under ``DOES_NOT_HOLD`` and runs none.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import trinity_assets
from trinity_assets.errors import GraderError
from trinity_assets.sandbox.candidate import Candidate, CandidateError, CandidateTimeoutError
from trinity_assets.sandbox.probing import tier_fault
from trinity_assets.sandbox.specs import ProgramLimits
from trinity_assets.sandbox.tiers import LADDER
from trinity_assets_tests.sandbox import attacks

DOES_NOT_HOLD = "the tier does not hold"
LIMITS = ProgramLimits(cpu_s=1, wall_s=3, memory_mib=256, file_mib=4, reply_kib=64)
_PR_SET_CHILD_SUBREAPER = 36
SECRET = "a secret that must stay where it is"  # noqa: S105 - what the attacks look for


def main(tier_name: str) -> dict[str, str]:
    tier = LADDER[tier_name]
    outcomes = {"user": str(os.getuid())}
    if fault := tier_fault(tier):
        return outcomes | {DOES_NOT_HOLD: fault}
    with tempfile.TemporaryDirectory(prefix="attacked-") as directory, contextlib.ExitStack() as open_sockets:
        world, heard = _world(Path(directory), open_sockets)
        tempfile.tempdir = str(Path(directory) / "temporary")
        Path(tempfile.tempdir).mkdir()
        for name, program in attacks.CONTAINED.items():
            outcomes[name] = _tried(tier, program, world)
        for name, (program, _) in attacks.ENDED.items():
            outcomes[name] = _tried(tier, program, world)
        outcomes["what was heard outside"] = heard()
        outcomes["the secret file afterwards"] = Path(world["file"]).read_text(encoding="utf-8")
        left = [*Path(tempfile.tempdir).iterdir(), *Path("/tmp").glob("fill-*"), *Path("/dev/shm").glob("fill-*")]  # noqa: S108 - where attacks write
        outcomes["files left"] = ", ".join(map(str, left))
    return outcomes


def _tried(tier: Any, program: str, world: dict[str, Any]) -> str:
    outcome = "contained"
    try:
        with Candidate(tier, LIMITS) as candidate:
            try:
                candidate.load(attacks.COMMON + program, "f")
                got = candidate(world)
                outcome = f"got {got!r}" if got else "contained"
            except CandidateTimeoutError as error:
                outcome = f"timeout: {error}"
            except CandidateError as error:
                outcome = f"failure: {error}"
            except GraderError as error:
                outcome = f"no verdict: {error}"
            except Exception as error:
                outcome = f"raised: {type(error).__name__}: {error}"
    except GraderError as error:
        outcome = f"no sandbox: {error}"
    if left := _left_behind():
        time.sleep(1)  # what has just been ended may not be gone yet
        if left := left & _left_behind():
            outcome += f"; left running: {sorted(left)}"
    return outcome


def _adopt_orphans() -> None:
    """Become the parent of what this process's children leave behind, so that nobody else's orphans are among them."""
    assert ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def _left_behind() -> set[str]:
    """Processes of programs that still run: our own that were started with the words that boot a program."""
    found = set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and process.name != str(os.getpid()):
            with contextlib.suppress(OSError):
                command = (process / "cmdline").read_bytes()
                status = (process / "stat").read_text().rpartition(")")[2].split()
                if b"module.serve(channel" in command and status[0] != "Z" and int(status[1]) == os.getpid():
                    found.add(process.name)
    return found


def _world(directory: Path, open_sockets: contextlib.ExitStack) -> tuple[dict[str, Any], Any]:
    secret, key = directory / "secret", directory / "id_ed25519"
    for file in (secret, key):
        file.write_text(SECRET, encoding="utf-8")
    os.environ["PROVIDER_API_KEY"] = SECRET
    kinds: dict[str, tuple[int, int, Any]] = {
        "tcp": (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
        "udp": (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        "unix": (socket.AF_UNIX, socket.SOCK_DGRAM, str(directory / "socket")),
        "abstract": (socket.AF_UNIX, socket.SOCK_DGRAM, f"\0attacked-{os.getpid()}"),
    }
    listeners: dict[str, socket.socket] = {}
    for name, (family, kind, address) in kinds.items():
        listener = listeners[name] = open_sockets.enter_context(socket.socket(family, kind))
        listener.bind(address)
        listener.setblocking(False)
    listeners["tcp"].listen()

    def heard() -> str:
        words = []
        for name, listener in listeners.items():
            with contextlib.suppress(BlockingIOError):
                words.append(f"{name}: {listener.accept() if name == 'tcp' else listener.recv(100)!r}")
        return ", ".join(words)

    libc = ctypes.CDLL(None)
    semaphore = libc.semget(0, 1, 0o600)
    open_sockets.callback(libc.semctl, semaphore, 0, 0)
    libc.semctl(semaphore, 0, 16, 5)
    queue = f"/attacked-{os.getpid()}"
    os.close(libc.mq_open(queue.encode(), os.O_CREAT | os.O_RDWR, 0o600, None))
    open_sockets.callback(libc.mq_unlink, queue.encode())

    world = {
        "semaphore": semaphore,
        "queue": queue,
        "file": str(secret),
        "key": str(key),
        "directory": str(directory),
        "home": str(Path.home()),
        "interpreter": sys.base_prefix,
        "project": str(Path(trinity_assets.__file__).parents[1]),
        "marker": SECRET,
        "port": listeners["tcp"].getsockname()[1],
        "udp": listeners["udp"].getsockname()[1],
        "unix": str(directory / "socket"),
        "abstract": f"attacked-{os.getpid()}",
        "parent": os.getpid(),
        "may_write": 2 * LIMITS.file_mib << 20,
    }
    return world, heard


if __name__ == "__main__":
    _adopt_orphans()
    print(json.dumps(main(sys.argv[1])))
