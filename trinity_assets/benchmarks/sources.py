"""Reading task rows from a source: one function per kind, and a version that names the bytes that would be read."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from trinity_assets.benchmarks.specs import FileSource, HuggingFaceSource, PackageSource, TaskSource
from trinity_assets.errors import DistributionError, TaskSourceError
from trinity_assets.files import distribution_file, file_sha256

Row = dict[str, Any]


def read_rows(source: TaskSource, catalog_dir: Path) -> list[Row]:
    """Every row of a source, in its order.

    Raises:
        TaskSourceError: the source cannot be reached, or a row is not a JSON object (all such rows are named).
    """
    reader: Callable[[Any, Path], list[Row]] = _READERS[type(source)]
    return reader(source, catalog_dir)


def source_version(source: TaskSource, catalog_dir: Path) -> str:
    """What changes when the source's rows may have changed: the file's sha256, or the pinned revision.

    A file that cannot be read has the version ``missing``: definitions still load, and the snapshot says what is wrong.
    """
    if isinstance(source, HuggingFaceSource):
        return source.revision
    try:
        path = _local_path(source, catalog_dir)
        stat = path.stat()
    except (TaskSourceError, OSError):
        return "missing"
    return _unchanged_file_sha256(path, stat.st_mtime_ns, stat.st_size)


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


def _read_local(source: FileSource | PackageSource, catalog_dir: Path) -> list[Row]:
    path = _local_path(source, catalog_dir)
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    except FileNotFoundError:
        raise TaskSourceError(f"there is no file {path}") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise TaskSourceError(f"cannot read {path}: {error}") from error
    return _parse_json_lines(text.split("\n"), str(path))


def _parse_json_lines(lines: Iterable[str], where: str) -> list[Row]:
    rows: list[Row] = []
    faults: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, and nesting as deep
            faults.append(f"line {number}: {error}")
            continue
        if isinstance(row, dict):
            rows.append(row)
        else:
            faults.append(f"line {number}: not a JSON object")
    if faults:
        raise TaskSourceError(f"{where} holds rows that are not JSON objects: " + "; ".join(faults))
    return rows


def _read_huggingface(source: HuggingFaceSource, _catalog_dir: Path) -> list[Row]:
    import datasets

    try:
        dataset = datasets.load_dataset(source.repo, source.config, split=source.split, revision=source.revision)
    except Exception as error:  # the hub client raises a dozen unrelated classes for "offline", "gated" and "absent"
        raise TaskSourceError(
            f"cannot load the dataset {source.repo} (config {source.config}, split {source.split}, revision "
            f"{source.revision}): {error}. If it is gated, set HF_TOKEN; if this machine is offline, fill the hub's "
            "cache on one that is not and set HF_HOME to it"
        ) from error
    return [dict(row) for row in dataset]


_READERS: dict[type, Callable[[Any, Path], list[Row]]] = {
    FileSource: _read_local,
    PackageSource: _read_local,
    HuggingFaceSource: _read_huggingface,
}
