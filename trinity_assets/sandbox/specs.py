"""The limits of an untrusted program."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from trinity_assets.spec import Spec

Positive = Annotated[int, Field(gt=0)]


class ProgramLimits(Spec):
    """Limits of one program: CPU and wall seconds, MiB of address space, MiB of any one file.

    CPU time decides; the wall limit is wider, so that a busy machine does not turn a right program into a wrong one.
    """

    cpu_s: Positive = 8
    wall_s: Positive = 60
    memory_mib: Positive = 1024
    file_mib: Positive = 16
