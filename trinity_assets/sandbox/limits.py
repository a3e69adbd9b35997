"""The kernel's limits of a sandbox, set before its first program starts: none can be changed inside."""

from __future__ import annotations

import resource
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from trinity_assets.errors import SandboxError
from trinity_assets.sandbox.specs import ProgramLimits

OPEN_FILES = 64


@dataclass(frozen=True)
class KernelLimits:
    """Limits by the kernel's numbers, and two ways to take them on.

    ``take_on`` is called between fork and exec. ``command`` is the start of a command that takes them on and becomes
    what follows; empty where the machine has no such program. Started by it, a sandbox needs no Python between fork and
    exec, and so no copy of this process: that is 2 of the 30 ms that a completion takes.
    """

    values: Mapping[int, int]

    def take_on(self) -> None:
        """Limit this process, for good."""
        for what, value in self.values.items():
            try:
                resource.setrlimit(what, (value, value))
            except (OSError, ValueError):
                if sys.platform != "darwin":  # which does not know a limited address space
                    raise

    def command(self) -> list[str]:
        """``prlimit`` of util-linux with these limits."""
        prlimit = shutil.which("prlimit")
        if prlimit is None:
            return []
        return [prlimit, *(f"--{_OPTIONS[what]}={value}:{value}" for what, value in self.values.items())]


_OPTIONS = {
    resource.RLIMIT_CPU: "cpu",
    resource.RLIMIT_AS: "as",
    resource.RLIMIT_FSIZE: "fsize",
    resource.RLIMIT_NOFILE: "nofile",
    resource.RLIMIT_CORE: "core",
}


def kernel_limits(limits: ProgramLimits) -> KernelLimits:
    """The kernel's limits for a program.

    Raises:
        SandboxError: the machine allows this process less than that (``ulimit``): a program that has less than its
            limit could fail for that.
    """
    wanted = {
        # The kernel keeps this limit by sampling, which charged a program on a busy machine for up to a fifth more than
        # it had used. So the trusted end watches the precise clock, and the kernel's is the wider wall behind it.
        resource.RLIMIT_CPU: limits.cpu_s if sys.platform == "darwin" else 2 * limits.cpu_s + 1,
        resource.RLIMIT_AS: limits.memory_mib << 20,
        resource.RLIMIT_FSIZE: limits.file_mib << 20,
    }
    names = {resource.RLIMIT_CPU: "cpu_s", resource.RLIMIT_AS: "memory_mib", resource.RLIMIT_FSIZE: "file_mib"}
    for what, value in wanted.items():
        allowed = resource.getrlimit(what)[1]
        if allowed != resource.RLIM_INFINITY and allowed < value:
            raise SandboxError(
                f"this machine allows a process less than the grader's limit {names[what]} (hard limit {allowed}, "
                f"{value} needed); raise it (ulimit), or lower the limit in the catalog"
            )
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted |= {resource.RLIMIT_NOFILE: min(OPEN_FILES, files) if files > 0 else OPEN_FILES, resource.RLIMIT_CORE: 0}
    return KernelLimits(wanted)
