"""A seccomp filter: what no program inside a sandbox may ask of the kernel.

The filter is the second wall. It stands behind a sandbox's namespaces or Landlock rules and closes what those leave
open: sockets of every family, signals to other processes, new processes, other processes' memory and limits, the modes
and owners of files, and the kernel's larger attack surfaces. A refused call fails with EPERM, as if the user had no
right to it.

It also makes the end of a program tell the truth. No way is left in which a program could have itself killed by
SIGKILL, and none to leave with the status by which bubblewrap reports such a kill; so a program that ends like this,
below its limit of CPU time, was killed from outside.

Numbers: the kernel's ``unistd_64.h`` (x86-64) and ``asm-generic/unistd.h`` (AArch64). The instructions are classic BPF
as ``linux/filter.h`` and ``linux/seccomp.h`` lay them out.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from trinity_assets.errors import SandboxError

Calls = tuple[int | None, int | None]
"""The numbers of one call: on x86-64, on AArch64; None where the architecture has no such call."""

REFUSED: dict[str, Calls] = {
    # sockets: none at all
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    # signals, to others and by roundabout ways to itself
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "timer_create": (222, 107),
    "mq_open": (240, 180),
    "mq_notify": (244, 184),
    # other processes: their memory, limits and priorities
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "kcmp": (312, 272),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "setpriority": (141, 140),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "sched_setaffinity": (203, 122),
    "ioprio_set": (251, 30),
    # memory that no limit of address space counts, and that outlives a process
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "mq_unlink": (241, 181),
    "mq_timedsend": (242, 182),
    "mq_timedreceive": (243, 183),
    "mq_getsetattr": (245, 185),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # locks, which make others wait
    "flock": (73, 32),
    # what Landlock does not cover: owners, modes, times, attributes, and being told who opens what
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "lchown": (94, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27),
    # namespaces and mounts
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "statmount": (457, 457),
    "listmount": (458, 458),
    # the kernel's wide interfaces, and the machine's own settings
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_setup": (206, 0),
    "io_submit": (209, 2),
    "personality": (135, 92),
    "modify_ldt": (154, None),
    "iopl": (172, None),
    "ioperm": (173, None),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "lookup_dcookie": (212, 18),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "syslog": (103, 116),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "vhangup": (153, 58),
}
_PROCESSES: dict[str, Calls] = {"fork": (57, None), "vfork": (58, None), "clone": (56, 220)}
_CLONE3 = (435, 435)
_PRLIMIT, _SETRLIMIT, _PRCTL, _FCNTL, _IOCTL = (302, 261), (160, 164), (157, 167), (72, 25), (16, 29)
_EXITS = ((60, 93), (231, 94))  # exit, exit_group

_NEW_NAMESPACES = 0x7E020000  # the CLONE_NEW* flags that clone() takes
_PR_SET_PDEATHSIG = 1
_RLIMIT_CPU, _RLIMIT_RTTIME = 0, 15  # the limits at which the kernel ends a process
# Duplicating, flags, owners asked for, pipe sizes asked for. Not: locks and leases (which make others wait), signals,
# being told what happens to a directory.
_FCNTLS = (0, 1, 2, 3, 4, 9, 1030, 1032)
# Is it a terminal and how large (two numbers of the first), closing on exec, how much can be read, not blocking.
_IOCTLS = (0x5401, 0x802C542A, 0x5413, 0x5450, 0x5451, 0x541B, 0x5421)
KILLED_STATUS = 137
"""How bubblewrap, like a shell, reports a child killed by SIGKILL: 128 + 9."""

_LOAD, _AND = 0x20, 0x54
_JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT = 0x15, 0x35, 0x45
_RETURN = 0x06
_ALLOW, _REFUSE, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4
_X32_CALLS = 0x40000000
_NEWEST = 469
"""The newest call that the tables above were written with; what came later is answered as unknown."""

ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""Machine -> its AUDIT_ARCH constant, and its column in the tables above."""


def syscall_filter(processes: int, machine: str | None = None) -> bytes:
    """The filter as an array of ``struct sock_filter``, for a program of up to ``processes`` processes and threads.

    Raises:
        SandboxError: no filter is known for this ``machine`` (default: the one this runs on).
    """
    machine = machine or platform.machine()
    if machine not in ARCHITECTURES:
        raise SandboxError(f"no filter of system calls is known for {machine}; known: {', '.join(ARCHITECTURES)}")
    architecture, column = ARCHITECTURES[machine]
    program = _Program(column)
    program.load(_ARCHITECTURE_AT)
    program.unless_equal_then(architecture, _KILL_PROCESS)
    program.load(_NUMBER_AT)
    if machine == "x86_64":
        program.add(_JUMP_AT_LEAST, _X32_CALLS, 0, 1)
        program.add(_RETURN, _KILL_PROCESS)
    program.add(_JUMP_AT_LEAST, _NEWEST + 1, 0, 1)
    program.add(_RETURN, _REFUSE | errno.ENOSYS)
    for numbers in REFUSED.values():
        program.refuse(numbers)
    if processes == 1:
        for numbers in _PROCESSES.values():
            program.refuse(numbers)
    else:
        program.refuse_if(_PROCESSES["clone"], 0, [(_JUMP_ANY_BIT, _NEW_NAMESPACES)])
        # The last byte of the flags is the signal at the child's end: SIGKILL there would be a kill of its own.
        program.refuse_if(_PROCESSES["clone"], 0, [(_JUMP_EQUAL, 9)], mask=0xFF)
    program.refuse(_CLONE3, errno.ENOSYS)  # its flags lie in memory, out of a filter's sight; libraries fall back
    # A lower limit of CPU time would have a program killed as if from outside. Its others it may lower.
    program.refuse_if(_SETRLIMIT, 0, [(_JUMP_EQUAL, what) for what in (_RLIMIT_CPU, _RLIMIT_RTTIME)])
    program.refuse_setting_deadly_limits(_PRLIMIT)
    program.refuse_if(_PRCTL, 0, [(_JUMP_EQUAL, _PR_SET_PDEATHSIG)])
    program.refuse_unless(_FCNTL, 1, _FCNTLS)
    program.refuse_unless(_IOCTL, 1, _IOCTLS)
    for numbers in _EXITS:
        program.refuse_if(numbers, 0, [(_JUMP_EQUAL, KILLED_STATUS)], mask=0xFF, action=_KILL_PROCESS)
    program.add(_RETURN, _ALLOW)
    return b"".join(program.instructions)


@dataclass
class _Program:
    """Instructions under construction. Between two rules the accumulator holds the number of the call."""

    column: int
    instructions: list[bytes] = field(default_factory=list)

    def add(self, code: int, constant: int, if_true: int = 0, if_false: int = 0) -> None:
        """Append one ``struct sock_filter``; a jump skips ``if_true`` or ``if_false`` instructions."""
        self.instructions.append(struct.pack("=HBBI", code, if_true, if_false, constant))

    def load(self, offset: int) -> None:
        """Put the word at ``offset`` bytes of ``struct seccomp_data`` into the accumulator."""
        self.add(_LOAD, offset)

    def unless_equal_then(self, constant: int, action: int) -> None:
        """End with ``action`` unless the accumulator holds ``constant``."""
        self.add(_JUMP_EQUAL, constant, 1, 0)
        self.add(_RETURN, action)

    def refuse(self, numbers: Calls, error: int = errno.EPERM) -> None:
        """Have a call fail with ``error`` whatever its arguments, where the architecture has it."""
        number = numbers[self.column]
        if number is not None:
            self.add(_JUMP_EQUAL, number, 0, 1)
            self.add(_RETURN, _REFUSE | error)

    def refuse_if(
        self,
        numbers: Calls,
        argument: int,
        tests: list[tuple[int, int]],
        *,
        mask: int | None = None,
        action: int = _REFUSE | errno.EPERM,
    ) -> None:
        """Refuse a call when any of ``tests`` (jump, constant) holds for the low word of its ``argument``."""
        masking = [] if mask is None else [(_AND, mask, 0, 0)]
        testing = [part for test in tests for part in ((*test, 0, 1), (_RETURN, action, 0, 0))]
        self._look_into(numbers, [(_LOAD, 16 + 8 * argument, 0, 0), *masking, *testing])

    def refuse_unless(self, numbers: Calls, argument: int, allowed: Sequence[int]) -> None:
        """Refuse a call unless the low word of its ``argument`` is one of ``allowed``."""
        tests = [(_JUMP_EQUAL, value, len(allowed) - position, 0) for position, value in enumerate(allowed)]
        self._look_into(numbers, [(_LOAD, 16 + 8 * argument, 0, 0), *tests, (_RETURN, _REFUSE | errno.EPERM, 0, 0)])

    def refuse_setting_deadly_limits(self, numbers: Calls) -> None:
        """Refuse a prlimit64 of another process, or one that sets a limit at which the kernel ends a process."""
        refuse = (_RETURN, _REFUSE | errno.EPERM, 0, 0)
        inside = [
            *((_LOAD, 16, 0, 0), (_JUMP_EQUAL, 0, 1, 0), refuse),  # the process, itself
            *((_LOAD, 24, 0, 0), (_JUMP_EQUAL, _RLIMIT_CPU, 1, 0), (_JUMP_EQUAL, _RLIMIT_RTTIME, 0, 6)),  # which limit
            *((_LOAD, 32, 0, 0), (_JUMP_EQUAL, 0, 1, 0), refuse),  # the new value's address, low and high
            *((_LOAD, 36, 0, 0), (_JUMP_EQUAL, 0, 1, 0), refuse),
        ]
        self._look_into(numbers, inside)

    def _look_into(self, numbers: Calls, inside: Sequence[tuple[int, int, int, int]]) -> None:
        """For calls of one number alone run ``inside``, then load the number again."""
        number = numbers[self.column]
        assert number is not None  # noqa: S101 - every architecture has the calls that are looked into
        self.add(_JUMP_EQUAL, number, 0, len(inside) + 1)
        for instruction in (*inside, (_LOAD, _NUMBER_AT, 0, 0)):
            self.add(*instruction)
