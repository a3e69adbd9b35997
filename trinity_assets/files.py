"""Files on this machine: the sha256 of one, and where one lies inside an installed Python distribution.

Belongs here: what needs a path and nothing of the house but its errors. Does not belong here: artifacts (``store/``)
and the directories of a project (``home``).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import uuid
from collections.abc import Iterator
from pathlib import Path

from trinity_assets.errors import DistributionError

SET_UP = "run the project's set-up (make setup) again"


def file_sha256(path: Path) -> str:
    """The sha256, 64 hex digits, of a file's bytes.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def distribution_file(distribution: str, file: str) -> Path:
    """Where ``file`` of an installed ``distribution`` lies; ``file`` is its path there, or its bare name.

    Nothing of the distribution is imported.

    Raises:
        DistributionError: the distribution is not installed, has no such file, or has several of that bare name; says
            what to do.
    """
    try:
        listed = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        advice = f"{SET_UP}, or pip install {distribution}"
        raise DistributionError(f"the package {distribution} is not installed; {advice}") from None
    named = [entry for entry in listed if file in (entry.as_posix(), entry.name)]
    located = {entry.as_posix(): Path(str(entry.locate())) for entry in named}
    found = {name: path for name, path in located.items() if path.is_file()}
    if file in found:
        return found[file]
    if not found:
        advice = f"{SET_UP}, or correct the file's name"
        raise DistributionError(f"the installed package {distribution} has no file {file}; {advice}")
    if len(found) > 1:
        raise DistributionError(
            f"the installed package {distribution} has several files {file}; give the path of one: "
            + ", ".join(sorted(found))
        )
    return next(iter(found.values()))


@contextlib.contextmanager
def replaced_whole(path: Path) -> Iterator[Path]:
    """A temporary name beside ``path`` to write to; it becomes ``path`` when the block ends without an error.

    A process killed at any moment leaves ``path`` as it was, or whole.

    Raises:
        OSError: the file cannot be written or renamed.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
