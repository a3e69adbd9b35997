"""Files inside installed Python distributions, found without importing anything."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from trinity_assets.errors import TrinityError


class DistributionError(TrinityError):
    """A distribution is not installed, or does not hold a file."""


def distribution_file(distribution: str, file: str) -> Path:
    """Where ``file`` of an installed ``distribution`` lies; ``file`` is its path there, or its bare name.

    Raises:
        DistributionError: the distribution is not installed or has no such file; says what to do.
    """
    advice = "run the project's set-up (make setup) again"
    try:
        listed = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        raise DistributionError(f"the package {distribution} is not installed; {advice}") from None
    for entry in listed:
        if file in (entry.as_posix(), entry.name):
            path = Path(str(entry.locate()))
            if path.is_file():
                return path
    raise DistributionError(f"the installed package {distribution} has no file {file}; {advice}")
