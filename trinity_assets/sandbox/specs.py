"""The limits of an untrusted program."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from trinity_assets.spec import Spec

Positive = Annotated[int, Field(gt=0)]


class ProgramLimits(Spec):
    """Limits of one program.

    CPU time decides; the wall limit is wider and leaves out the time that the program waited for a core, so that a busy
    machine does not turn a right program into a wrong one.

    cpu_s, wall_s: seconds. memory_mib: MiB of address space. file_mib: MiB of any one file, and twice that of all.
    processes: processes and threads, itself included; with 1 it can start none. reply_kib: KiB of one returned value.
    """

    cpu_s: Positive = 8
    wall_s: Positive = 60
    memory_mib: Positive = 1024
    file_mib: Positive = 16
    processes: Positive = 1
    reply_kib: Positive = 1024
