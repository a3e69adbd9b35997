"""Running a module of the tests as another user, whatever of the machine that user may read.

A root user's interpreter often lies below /root, where nobody else may look. In a mount namespace of its own, a new
process sees the first unreadable directory above it replaced by an empty one that holds just the interpreter and the
project; the machine itself is left as it is.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import trinity_assets

ORDINARY_USER = 61_234
LIMIT_S = 1200
"""What a module may take, on a machine however busy: all attacks in one tier take half a minute otherwise."""
PROJECT = Path(trinity_assets.__file__).resolve().parents[1]


def run_module(module: str, *arguments: str, user: str) -> str:
    """What ``python -m module`` prints, as ``me`` or as the ``ordinary`` user; skips where that cannot be arranged."""
    command = [sys.executable, "-m", module, *arguments]
    if user == "ordinary":
        if os.geteuid() != 0:
            pytest.skip("only root can become another user; as an ordinary user this is what `me` has tested")
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", _script(command)]
    ran = subprocess.run(command, cwd="/", env=_environment(), capture_output=True, text=True, timeout=LIMIT_S)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def _environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1"}


def _script(command: list[str]) -> str:
    """Shell lines that open the way to what the command needs, give up root, and run it."""
    needed = [Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), PROJECT]
    hidden = sorted({ancestor for path in needed if (ancestor := _first_unreadable(path))})
    # Any directory serves to keep them meanwhile, in this namespace alone.
    lines = ["KEPT=/mnt", "mount -t tmpfs -o mode=755 kept $KEPT"]
    inside = [path for path in needed if _first_unreadable(path)]
    for number, path in enumerate(inside):
        lines += [f"mkdir $KEPT/{number}", f"mount --bind {shlex.quote(str(path))} $KEPT/{number}"]
    lines += [f"mount -t tmpfs -o mode=755 opened {shlex.quote(str(ancestor))}" for ancestor in hidden]
    for number, path in enumerate(inside):
        target = shlex.quote(str(path))
        lines += [f"mkdir -p {target}", f"mount --bind $KEPT/{number} {target}"]
    identity = f"--reuid={ORDINARY_USER} --regid={ORDINARY_USER} --clear-groups"
    lines.append(f"exec env HOME=/nonexistent setpriv {identity} {shlex.join(command)}")
    return "\n".join(lines)


def _first_unreadable(path: Path) -> Path | None:
    """The topmost directory above ``path`` that others may not enter."""
    return next((ancestor for ancestor in reversed(path.parents) if not ancestor.stat().st_mode & 0o001), None)
