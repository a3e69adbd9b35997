"""Landlock: a process gives up the file system, for good and without any privilege, and with it all other rights.

The numbers are those of ``linux/landlock.h``, ``linux/prctl.h`` and ``linux/capability.h``; the three system calls have
the same number on every architecture. Landlock alone leaves UDP and local sockets open, and signals before its sixth
version: the filter of system calls refuses those, so the two are only used together.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Self

from trinity_assets.errors import SandboxError

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_ALL_BEFORE_IOCTL = (1 << 15) - 1  # from executing to truncating, which came third
_IOCTL_DEVICE = 1 << 15
_TCP = 0b11
_SCOPES = 0b11  # abstract unix sockets, signals

NEEDED_VERSION = 3
"""Before it, truncating a file was not covered."""

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP, _PR_SET_SECCOMP = 1, 38, 24, 22
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION = 0x20080522
_SIGKILL = 9


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, first: int, second: int = 0) -> int:
    # The kernel reads whole words and wants zeros where an option takes nothing.
    arguments = [ctypes.c_ulong(argument) for argument in (first, second, 0, 0)]
    result: int = _libc().prctl(ctypes.c_int(option), *arguments)
    return result


def landlock_version() -> int:
    """The version of Landlock that the kernel offers, 0 where it has none or has it switched off."""
    version: int = _libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_CREATE_RULESET_VERSION))
    return max(version, 0)


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the thread that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


class Confinement:
    """What a child calls between fork and exec to keep only ``readable`` trees and ``writable`` files.

    It also dies with its parent, gives up every capability, and takes on the filter of system calls. A context manager,
    since the rules lie behind a descriptor.

    Raises:
        SandboxError: the kernel has no Landlock, or too old a one.
    """

    def __init__(self, readable: Sequence[Path], writable: Sequence[Path], syscall_filter: bytes) -> None:
        version = landlock_version()
        if version < NEEDED_VERSION:
            found = f"Landlock {version}" if version else "no Landlock"
            raise SandboxError(f"the kernel offers {found}; version {NEEDED_VERSION} is needed (Linux 6.2)")
        covered = _ALL_BEFORE_IOCTL | (_IOCTL_DEVICE if version >= 5 else 0)
        attributes = struct.pack("=QQQ", covered, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
        known = ctypes.c_size_t(8 * (1 + (version >= 4) + (version >= 6)))
        self._instructions = ctypes.create_string_buffer(syscall_filter, len(syscall_filter))
        address = ctypes.addressof(self._instructions)
        self._program = ctypes.create_string_buffer(struct.pack("@HP", len(syscall_filter) // 8, address))
        self._ruleset = _checked(_CREATE_RULESET, attributes, known, 0)
        try:
            for paths, rights in ((readable, _EXECUTE | _READ_FILE | _READ_DIR), (writable, _READ_FILE | _WRITE_FILE)):
                for path in paths:
                    _allow(self._ruleset, path, rights)
        except BaseException:
            os.close(self._ruleset)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._ruleset)

    def __call__(self) -> None:
        die_with_parent()
        _drop_capabilities()
        if _prctl(_PR_SET_NO_NEW_PRIVS, 1):
            raise OSError(ctypes.get_errno(), "cannot give up new privileges")
        _checked(_RESTRICT_SELF, self._ruleset, 0)
        if _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(self._program)):
            raise OSError(ctypes.get_errno(), "cannot take on the filter of system calls")


def _allow(ruleset: int, path: Path, rights: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not path.is_dir():
            rights &= _EXECUTE | _WRITE_FILE | _READ_FILE
        _checked(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)


def _checked(number: int, *arguments: object) -> int:
    result: int = _libc().syscall(number, *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"landlock: {os.strerror(error)}")
    return result


def _drop_capabilities() -> None:
    """Leave nothing that a root user's process could raise a limit or pass a permission with."""
    capability = 0
    while _prctl(_PR_CAPBSET_DROP, capability) == 0:  # fails at the first that does not exist, or at once
        capability += 1
    _libc().capset(struct.pack("=Ii", _CAPABILITY_VERSION, 0), struct.pack("=6I", 0, 0, 0, 0, 0, 0))
