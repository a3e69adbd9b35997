"""The limits of an untrusted program."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from trinity_assets.spec import Spec


class ProgramLimits(Spec):
    """Limits of one program.

    CPU time decides; the wall limit is wider and leaves out the time that the program waited for a core, so that a busy
    machine does not turn a right program into a wrong one.

    cpu_s, wall_s: seconds. memory_mib: MiB of address space; the interpreter alone takes some 30. file_mib: MiB of any
    one file, for programs that run unsandboxed: others can write none. processes: processes and threads, itself
    included; with 1 it can start none. reply_kib: KiB of one returned value.
    """

    cpu_s: Annotated[int, Field(ge=1, le=3600)] = 8
    wall_s: Annotated[int, Field(ge=1, le=86_400)] = 60
    memory_mib: Annotated[int, Field(ge=64, le=1 << 20)] = 1024
    file_mib: Annotated[int, Field(ge=1, le=1 << 20)] = 16
    processes: Annotated[int, Field(ge=1, le=1024)] = 1
    reply_kib: Annotated[int, Field(ge=1, le=1 << 16)] = 1024
