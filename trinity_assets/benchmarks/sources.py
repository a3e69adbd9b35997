"""Reading task rows from a source, and a version that names the bytes that would be read: ``_READERS`` has the kinds.

``source_version`` runs while definitions load: it reads local files at most, never the network.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from trinity_assets.benchmarks.formats import Row, parse_rows
from trinity_assets.benchmarks.procedural import generated_rows, generator_version
from trinity_assets.benchmarks.specs import FileSource, HuggingFaceSource, PackageSource, ProceduralSource, TaskSource
from trinity_assets.errors import DistributionError, TaskSourceError
from trinity_assets.files import distribution_file, file_sha256

MISSING = "missing"
"""The version of a source that cannot be read here: definitions still load, and the snapshot says what is wrong."""


def read_rows(source: TaskSource, catalog_dir: Path) -> list[Row]:
    """Every row of a source, in its order.

    Raises:
        TaskSourceError: the source cannot be reached, is another than its pinned sha256, or holds rows that cannot be
            read, which are named.
    """
    return _READERS[type(source)].read(source, catalog_dir)


def source_version(source: TaskSource, catalog_dir: Path) -> str:
    """What changes when the source's rows may have changed.

    The sha256 of a local file; of a URL the pinned sha256, else the URL itself, marked ``unpinned``; the revision of a
    hub's data set; the version of what generates tasks.
    """
    return _READERS[type(source)].version(source, catalog_dir)


def _file_version(source: FileSource, catalog_dir: Path) -> str:
    if source.is_url:
        return source.sha256 or f"unpinned:{source.path}"
    return _local_version(source, catalog_dir)


def _local_version(source: FileSource | PackageSource, catalog_dir: Path) -> str:
    try:
        path = _local_path(source, catalog_dir)
        stat = path.stat()
        return _unchanged_file_sha256(path, stat.st_mtime_ns, stat.st_size)
    except (TaskSourceError, OSError):
        return MISSING


@lru_cache(maxsize=256)
def _unchanged_file_sha256(path: Path, _modified_ns: int, _size: int) -> str:
    return file_sha256(path)


def _local_path(source: FileSource | PackageSource, catalog_dir: Path) -> Path:
    if isinstance(source, FileSource):
        return catalog_dir / source.path
    try:
        return distribution_file(source.package, source.path)
    except DistributionError as error:
        raise TaskSourceError(str(error)) from None


def _read_file(source: FileSource, catalog_dir: Path) -> list[Row]:
    where = source.path if source.is_url else str(_local_path(source, catalog_dir))
    data = _fetched(source.path) if source.is_url else _read_local(Path(where))
    if source.sha256 is not None:
        found = hashlib.sha256(data).hexdigest()
        if found != source.sha256:
            raise TaskSourceError(
                f"{where} is not the file that the catalog pins: found sha256 {found}, expected {source.sha256}. "
                "Fetch the right file, or pin the new one if its change is meant"
            )
    return parse_rows(data, source.path, where)


def _read_package(source: PackageSource, catalog_dir: Path) -> list[Row]:
    path = _local_path(source, catalog_dir)
    return parse_rows(_read_local(path), source.path, str(path))


def _read_local(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise TaskSourceError(f"there is no file {path}") from None
    except OSError as error:
        raise TaskSourceError(f"cannot read {path}: {error}") from error


def _fetched(url: str) -> bytes:
    import fsspec

    try:
        with fsspec.open(url, "rb") as stream:
            data: bytes = stream.read()
    except ImportError as error:
        raise TaskSourceError(f"cannot open {url}: {error}") from error
    except Exception as error:  # every file system raises classes of its own for "offline", "forbidden" and "absent"
        raise TaskSourceError(
            f"cannot fetch {url}: {type(error).__name__}: {_with_causes(error)}. Correct the URL; if this machine is "
            "offline, give the path of a copy"
        ) from error
    return data


def _read_huggingface(source: HuggingFaceSource, _catalog_dir: Path) -> list[Row]:
    import datasets

    try:
        dataset = datasets.load_dataset(source.repo, source.config, split=source.split, revision=source.revision)
    except Exception as error:  # the hub client raises a dozen unrelated classes for "offline", "gated" and "absent"
        raise TaskSourceError(
            f"cannot load the data set {source.repo} (config {source.config}, split {source.split}, revision "
            f"{source.revision}): {_with_causes(error)}. If it is gated, accept its terms on the hub and set HF_TOKEN; "
            "if this machine is offline, fill the hub's cache on one that is not and set HF_HOME to it"
        ) from error
    return [dict(row) for row in dataset]


def _with_causes(error: BaseException) -> str:
    """What an error says, and what those that it wraps say: the outermost of the hub client's often says nothing."""
    said = [" ".join(str(error).split())]
    while error.__cause__ is not None:
        error = error.__cause__
        said.append(" ".join(str(error).split()))
    return ": ".join(said)


@dataclass(frozen=True)
class _Reader:
    """One kind of source. ``read(source, catalog_dir)`` gives its rows, ``version(source, catalog_dir)`` their name."""

    read: Callable[[Any, Path], list[Row]]
    version: Callable[[Any, Path], str]


_READERS: dict[type, _Reader] = {
    FileSource: _Reader(_read_file, _file_version),
    PackageSource: _Reader(_read_package, _local_version),
    HuggingFaceSource: _Reader(_read_huggingface, lambda source, _: source.revision),
    ProceduralSource: _Reader(
        lambda source, _: generated_rows(source), lambda _source, _: generator_version() or MISSING
    ),
}
