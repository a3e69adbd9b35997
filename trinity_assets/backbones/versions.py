"""What changes when a backbone's weights may have changed, told without reading them."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from trinity_assets.backbones.specs import Directory, Hub, PackageGGUF, WeightsSpec

MISSING = "missing"


def weights_version(weights: WeightsSpec) -> str:
    """The pinned revision, the distribution's version, or the newest change and total size of a directory's files.

    Weights that are not there have the version ``missing``: definitions still load, and the backbone asset says what is
    wrong.
    """
    match weights:
        case Hub():
            return weights.revision
        case PackageGGUF():
            try:
                return importlib.metadata.version(weights.package)
            except importlib.metadata.PackageNotFoundError:
                return MISSING
        case Directory():
            directory = Path(weights.path).expanduser()
            stats = [file.stat() for file in directory.iterdir() if file.is_file()] if directory.is_dir() else []
            newest = max((stat.st_mtime_ns for stat in stats), default=0)
            return f"{newest}-{sum(stat.st_size for stat in stats)}" if stats else MISSING
