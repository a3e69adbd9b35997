"""The filter's verdict on single calls, by running its instructions here: on other machines' architectures too."""

from __future__ import annotations

import errno
import struct
from collections.abc import Sequence

import pytest

from trinity_assets.errors import SandboxError
from trinity_assets.sandbox.syscalls import ARCHITECTURES, REFUSED, syscall_filter

MACHINES = list(ARCHITECTURES)
ALLOWED, KILLED = "allowed", "killed"


def verdict(instructions: bytes, architecture: int, number: int, arguments: Sequence[int] = ()) -> str | int:
    """What the kernel would do: run classic BPF over ``struct seccomp_data``; an int is the error that is returned."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, architecture, 0, *(word & (1 << 64) - 1 for word in words))
    program = list(struct.iter_unpack("=HBBI", instructions))
    accumulator, at = 0, 0
    while True:
        code, if_true, if_false, constant = program[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, constant)
        elif code == 0x54:
            accumulator &= constant
        elif code in (0x15, 0x35, 0x45):
            holds = {0x15: accumulator == constant, 0x35: accumulator >= constant, 0x45: bool(accumulator & constant)}
            at += if_true if holds[code] else if_false
        elif code == 0x06:
            kind = constant & 0xFFFF0000
            return {0x7FFF0000: ALLOWED, 0x80000000: KILLED}.get(kind, constant & 0xFFFF)
        else:
            raise AssertionError(f"unknown instruction {code:#x}")


def judged(machine: str, calls: tuple[int, int], *arguments: int, processes: int = 1) -> str | int:
    architecture, column = ARCHITECTURES[machine]
    return verdict(syscall_filter(processes, machine), architecture, calls[column], arguments)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_call_of_the_table_is_refused(machine: str) -> None:
    architecture, column = ARCHITECTURES[machine]
    instructions = syscall_filter(1, machine)
    numbers = {name: number for name, calls in REFUSED.items() if (number := calls[column]) is not None}
    found = {name: verdict(instructions, architecture, number) for name, number in numbers.items()}
    assert found == dict.fromkeys(found, errno.EPERM)
    assert len(found) > 80


READ, OPENAT, EXECVE, FUTEX, MMAP, GETTIME = (0, 63), (257, 56), (59, 221), (202, 98), (9, 222), (228, 113)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("calls", [READ, OPENAT, EXECVE, FUTEX, MMAP, GETTIME])
def test_what_an_interpreter_needs_is_allowed(machine: str, calls: tuple[int, int]) -> None:
    assert judged(machine, calls) == ALLOWED


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("calls", "arguments", "expected"),
    [
        ((302, 261), (0, 7), ALLOWED),  # prlimit64 of itself
        ((302, 261), (4711, 7), errno.EPERM),
        ((302, 261), (0, 0, 0), ALLOWED),  # asking for its limit of CPU time
        ((302, 261), (0, 0, 0x1234), errno.EPERM),
        ((302, 261), (0, 0, 0x7F0000000000), errno.EPERM),
        ((302, 261), (0, 15, 0x1234), errno.EPERM),
        ((302, 261), (0, 3, 0x1234), ALLOWED),  # its stack
        ((160, 164), (0,), errno.EPERM),  # setrlimit
        ((160, 164), (3,), ALLOWED),
        ((157, 167), (15,), ALLOWED),  # prctl: its own name
        ((157, 167), (1, 9), errno.EPERM),  # the signal at its parent's death
        ((72, 25), (3, 1), ALLOWED),  # fcntl: F_GETFD
        ((72, 25), (3, 1030), ALLOWED),  # F_DUPFD_CLOEXEC
        ((72, 25), (3, 1024), errno.EPERM),  # F_SETLEASE
        ((72, 25), (3, 1026), errno.EPERM),  # F_NOTIFY
        ((72, 25), (3, 6), errno.EPERM),  # F_SETLK
        ((72, 25), (3, 8), errno.EPERM),
        ((72, 25), (3, 10), errno.EPERM),
        ((72, 25), (3, 15), errno.EPERM),
        ((16, 29), (3, 0x5401), ALLOWED),  # ioctl: is it a terminal
        ((16, 29), (3, 0x5412), errno.EPERM),
        ((16, 29), (3, 0x40086602), errno.EPERM),
        ((231, 94), (0,), ALLOWED),  # exit_group
        ((231, 94), (1,), ALLOWED),
        ((231, 94), (137,), KILLED),
        ((231, 94), (137 + 256,), KILLED),
        ((60, 93), (137,), KILLED),
        ((435, 435), (), errno.ENOSYS),  # clone3
        ((470, 470), (), errno.ENOSYS),  # not known yet
        ((9999, 9999), (), errno.ENOSYS),
    ],
)
def test_some_calls_depend_on_what_they_ask(
    machine: str, calls: tuple[int, int], arguments: tuple[int, ...], expected: str | int
) -> None:
    assert judged(machine, calls, *arguments) == expected


CLONE, SIGCHLD, THREAD = (56, 220), 17, 0x3D0F00


@pytest.mark.parametrize("machine", MACHINES)
def test_processes_only_where_they_are_allowed_and_without_namespaces_or_deadly_ends(machine: str) -> None:
    assert judged(machine, CLONE, SIGCHLD) == errno.EPERM
    assert judged(machine, CLONE, THREAD) == errno.EPERM
    assert judged(machine, CLONE, SIGCHLD, processes=8) == ALLOWED
    assert judged(machine, CLONE, THREAD, processes=8) == ALLOWED
    assert judged(machine, CLONE, SIGCHLD | 0x10000000, processes=8) == errno.EPERM
    assert judged(machine, CLONE, 9, processes=8) == errno.EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_by_another_architectures_numbers_end_the_program(machine: str) -> None:
    (other,) = (ARCHITECTURES[name][0] for name in MACHINES if name != machine)
    assert verdict(syscall_filter(1, machine), other, 0) == KILLED
    if machine == "x86_64":
        assert verdict(syscall_filter(1, machine), ARCHITECTURES[machine][0], 0x40000000 | 39) == KILLED


def test_a_machine_without_a_table_has_no_filter() -> None:
    with pytest.raises(SandboxError, match="no filter of system calls is known for riscv64; known: x86_64, aarch64"):
        syscall_filter(1, "riscv64")
