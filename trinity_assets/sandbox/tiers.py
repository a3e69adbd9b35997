"""The ladder of sandboxes: each tier is one way to start a program where it can reach nothing.

A tier only starts a process; that it holds is found out by ``probing``. ``bubblewrap`` gives a program its own root and
namespaces, and nothing to write to. ``landlock`` needs no namespaces: the program keeps the machine's
file system but may read nothing of it beyond the interpreter, and writes nowhere. ``sandbox_exec`` is the one of macOS.
``unsandboxed`` is a bare process with limits, for machines that offer nothing else and people who accept that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from trinity_assets.errors import SandboxError
from trinity_assets.sandbox.landlock import Confinement
from trinity_assets.sandbox.limits import kernel_limits
from trinity_assets.sandbox.specs import ProgramLimits
from trinity_assets.sandbox.syscalls import syscall_filter

NOBODY = "65534"


@dataclass(frozen=True)
class Started:
    """A started sandbox: the process to wait for, and whether its status tells of a signal as 128 + its number."""

    process: subprocess.Popen[bytes]
    tells_signals_as_status: bool


@dataclass(frozen=True)
class Tier:
    """One rung. ``start(command, descriptors, errors, limits)`` runs a command that inherits ``descriptors``.

    confines: it promises that a program reaches nothing; only the last rung does not.
    """

    name: str
    confines: bool
    start: Callable[[Sequence[str], Sequence[int], int, ProgramLimits], Started]


def interpreter() -> list[str]:
    """The command that starts the bare interpreter: isolated from the environment, the user and the site's packages."""
    return [str(_python()), "-I", "-S", "-B", "-X", "utf8"]


@lru_cache(maxsize=1)
def _python() -> Path:
    return Path(sys.executable).resolve()  # a virtual environment's is a link to it


@lru_cache(maxsize=1)
def _interpreter_trees() -> tuple[Path, ...]:
    """What the interpreter must be able to read: its own tree and the libraries of the system."""
    trees = [Path(sys.base_prefix).resolve()]
    if not _python().is_relative_to(trees[0]):
        trees.append(_python())
    system = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/nix/store")
    return (*trees, *(path for path in map(Path, system) if path.exists()))


def _start_bubblewrap(
    command: Sequence[str], descriptors: Sequence[int], errors: int, limits: ProgramLimits
) -> Started:
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        raise SandboxError("bubblewrap is not installed (Debian, Ubuntu, Fedora: the package bubblewrap)")
    if limits.processes > 1 and os.geteuid() == 0:
        raise SandboxError(
            f"the limit processes: {limits.processes} cannot be kept for root, whose processes the kernel does not "
            "count; run as an ordinary user, or leave the limit at 1"
        )
    filter_reader, filter_writer = os.pipe()
    try:
        os.write(filter_writer, syscall_filter(limits.processes))  # some 2 kB, far below what a pipe holds
        os.close(filter_writer)
        binds = [part for path in _interpreter_trees() for part in ("--ro-bind", str(path), str(path))]
        arguments = [
            # The user namespace is what takes a real root's rights away. As process 1 of its own process namespace, the
            # program cannot be killed from inside, and whatever it left running ends with it.
            *("--unshare-all", "--unshare-user", "--as-pid-1", "--die-with-parent"),
            *("--cap-drop", "ALL", "--uid", NOBODY, "--gid", NOBODY, "--seccomp", str(filter_reader)),
            *binds,
            # No /proc: started by root, the program is root to the files of the kernel's settings (core_pattern), with
            # or without capabilities. And nowhere to write: empty files in a tmpfs of 32 MiB took 400 MiB of kernel
            # memory within two seconds.
            *("--dev", "/dev", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"),
        ]
        process = _popen([bubblewrap, *arguments, *command], [*descriptors, filter_reader], errors, limits)
    finally:
        os.close(filter_reader)
    return Started(process, tells_signals_as_status=True)


def _start_landlock(command: Sequence[str], descriptors: Sequence[int], errors: int, limits: ProgramLimits) -> Started:
    if limits.processes != 1:
        raise SandboxError(
            f"the limit processes: {limits.processes} needs bubblewrap; without it a program is given one process"
        )
    devices = [Path("/dev/null"), Path("/dev/zero"), Path("/dev/urandom"), Path("/dev/random")]
    with Confinement(_interpreter_trees(), devices, syscall_filter(1)) as confine:
        return Started(_popen(command, descriptors, errors, limits, confine), tells_signals_as_status=False)


MACOS_PROFILE = """(version 1)
(deny default)
(allow process-exec (literal "{python}"))
(allow file-read* {trees})
(allow file-read-metadata)
(allow file-read* file-write-data (literal "/dev/null") (literal "/dev/urandom") (literal "/dev/random"))
(allow sysctl-read)
(deny process-fork)
(deny network*)
(deny signal)
"""


def macos_profile() -> str:
    """The profile for ``sandbox-exec``: read the interpreter and the system's libraries, and nothing else."""
    paths = [
        *_interpreter_trees(),
        Path("/usr/lib"),
        Path("/System/Library"),
        Path("/System/Volumes/Preboot/Cryptexes"),
    ]
    trees = " ".join(f'(subpath "{path}")' for path in paths)
    return MACOS_PROFILE.format(python=_python(), trees=trees)


def _start_sandbox_exec(
    command: Sequence[str], descriptors: Sequence[int], errors: int, limits: ProgramLimits
) -> Started:
    tool = shutil.which("sandbox-exec")
    if tool is None:
        raise SandboxError("there is no sandbox-exec, which comes with macOS")
    process = _popen([tool, "-p", macos_profile(), *command], descriptors, errors, limits)
    return Started(process, tells_signals_as_status=False)


def _start_unsandboxed(
    command: Sequence[str], descriptors: Sequence[int], errors: int, limits: ProgramLimits
) -> Started:
    return Started(_popen(command, descriptors, errors, limits), tells_signals_as_status=False)


def _popen(
    command: Sequence[str],
    descriptors: Sequence[int],
    errors: int,
    limits: ProgramLimits,
    confine: Callable[[], None] | None = None,
) -> subprocess.Popen[bytes]:
    kernel = kernel_limits(limits)
    limiting = [] if confine else kernel.command()

    def prepare() -> None:
        kernel.take_on()
        if confine:
            confine()

    try:
        return subprocess.Popen(  # noqa: S603 - starting a given program is what this room is for
            [*limiting, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd="/",
            env={},
            pass_fds=descriptors,
            # A session of its own, so that a signal to the terminal's group does not look like a kill from outside.
            start_new_session=True,
            preexec_fn=None if limiting else prepare,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxError(f"cannot start a process to run a program in: {error}") from error


BUBBLEWRAP = Tier("bubblewrap", True, _start_bubblewrap)
LANDLOCK = Tier("landlock", True, _start_landlock)
SANDBOX_EXEC = Tier("sandbox_exec", True, _start_sandbox_exec)
UNSANDBOXED = Tier("unsandboxed", False, _start_unsandboxed)

LADDER = {tier.name: tier for tier in (BUBBLEWRAP, LANDLOCK, SANDBOX_EXEC, UNSANDBOXED)}
"""Every tier by its name, the strongest first."""
