"""The kernel's limits of a sandbox, set before its first program starts: none can be changed inside."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable

from trinity_assets.errors import SandboxError
from trinity_assets.sandbox.specs import ProgramLimits

OPEN_FILES = 64


def kernel_limits(limits: ProgramLimits) -> Callable[[], None]:
    """What a child calls between fork and exec to take on ``limits``.

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

    def limit_this_process() -> None:
        for what, value in wanted.items():
            try:
                resource.setrlimit(what, (value, value))
            except (OSError, ValueError):
                if sys.platform != "darwin":  # which does not know a limited address space
                    raise

    return limit_this_process
