"""What is sent into a fresh sandbox before any program: the code that serves it there, and its limits."""

from __future__ import annotations

import marshal
from functools import lru_cache
from pathlib import Path

from trinity_assets.sandbox import inside, values
from trinity_assets.sandbox.specs import ProgramLimits

# Reads the two modules of this room that run inside from the socket, so that no file of ours lies in the sandbox.
_BOOT = """import marshal, sys
channel = open({descriptor}, "rb")
for name, code in marshal.loads(channel.read(int.from_bytes(channel.read(4), "big"))):
    module = type(sys)(name)
    sys.modules[name] = module
    exec(code, module.__dict__)
module.serve(channel, {descriptor})
"""


def boot_program(descriptor: int) -> str:
    """The first program of a sandbox, for ``python -c``: it serves on the socket ``descriptor``."""
    return _BOOT.format(descriptor=descriptor)


@lru_cache(maxsize=1)
def modules_inside() -> bytes:
    """The modules that run inside, compiled: the interpreter there is the one that compiles them here."""
    parts = []
    for module in (values, inside):
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        parts.append((module.__name__, compile(source, f"<{module.__name__}>", "exec", dont_inherit=True)))
    return marshal.dumps(parts)


def limits_inside(limits: ProgramLimits) -> dict[str, int]:
    """The limits that are kept inside: of processes, which count per namespace, and of a reply's bytes."""
    return {"processes": limits.processes, "reply_bytes": limits.reply_kib << 10}
