"""Reading files of outcomes as rows of the columns that are asked for, and the sha256 that fixes their bytes."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from trinity_assets.benchmarks.formats import COMPRESSED, json_line_rows, parse_rows
from trinity_assets.errors import RecordedError, TaskSourceError
from trinity_assets.files import file_sha256
from trinity_assets.recorded.formats import FORMATS, Format, Row
from trinity_assets.recorded.specs import RecordedCell, RecordedOutcomes

MISSING = "missing"
"""The version of a file that cannot be read here: definitions still load, and the import says what is wrong."""


@dataclass
class Rows:
    """Rows of one cell's files, each with where it stands, and every column that the files have."""

    rows: list[tuple[str, Row]] = field(default_factory=list)
    columns: set[str] = field(default_factory=set)


def file_versions(outcomes: RecordedOutcomes, directory: Path) -> tuple[str, ...]:
    """The sha256 of each file, in order. Runs while definitions load; an unchanged file is hashed once."""
    return tuple(_version(directory / path) for path in outcomes.paths)


def _version(path: Path) -> str:
    try:
        stat = path.stat()
        return _unchanged_file_sha256(path, stat.st_mtime_ns, stat.st_size)
    except OSError:
        return MISSING


@lru_cache(maxsize=256)
def _unchanged_file_sha256(path: Path, _modified_ns: int, _size: int) -> str:
    return file_sha256(path)


def read_cell_rows(cell: RecordedCell, directory: Path) -> Rows:
    """The rows of a cell's files with the columns that it names; the rest is dropped as each row is read.

    Raises:
        RecordedError: a file cannot be read, changed since the catalog was, holds rows that cannot be read, or a column
            is in none of its rows.
    """
    read = Rows()
    outcomes = cell.outcomes
    wanted = set(outcomes.columns.values())
    form = FORMATS[outcomes.format]
    for path, sha256 in zip(outcomes.paths, cell.files, strict=True):
        for number, entry in enumerate(_entries(directory / path, sha256, form, wanted, read.columns)):
            row = form.flat(entry)
            read.columns |= row.keys()
            read.rows.append((f"{path} row {number}", {name: row[name] for name in wanted & row.keys()}))
    if not read.rows:
        raise RecordedError(f"{', '.join(outcomes.paths)}: there are no rows")
    absent = [f"{column!r} ({what})" for what, column in outcomes.columns.items() if column not in read.columns]
    if absent:
        hint = f". In the format {outcomes.format}, {form.hint}" if form.hint else ""
        raise RecordedError(
            f"{', '.join(outcomes.paths)}: no column {', '.join(absent)}; there are "
            f"{', '.join(sorted(read.columns))}{hint}"
        )
    return read


def _entries(path: Path, sha256: str, form: Format, wanted: set[str], columns: set[str]) -> Iterator[Row]:
    try:
        if form.samples_in is not None:
            yield from _samples(_checked_bytes(path, sha256), path, form.samples_in)
        elif path.suffix == ".jsonl":
            yield from json_line_rows(_checked_lines(path, sha256), str(path))
        elif path.suffix == ".parquet":
            yield from _parquet(_checked_bytes(path, sha256), path, form, wanted, columns)
        else:
            yield from parse_rows(_checked_bytes(path, sha256), path.name, str(path))
    except TaskSourceError as error:
        raise RecordedError(str(error)) from None
    except FileNotFoundError:
        raise RecordedError(f"there is no file {path}; correct the path, which is relative to the catalog") from None
    except OSError as error:
        raise RecordedError(f"cannot read {path}: {error}") from error


def _checked_bytes(path: Path, sha256: str) -> bytes:
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise RecordedError(f"{path} {_CHANGED}")
    return data


def _checked_lines(path: Path, sha256: str) -> Iterator[bytes]:
    """Line by line, since a log holds much that is not wanted. Only at its end is it known to be the right file."""
    seen = hashlib.sha256()
    with path.open("rb") as stream:
        for number, line in enumerate(stream):
            seen.update(line)
            yield line.removeprefix(codecs.BOM_UTF8) if number == 0 else line
    if seen.hexdigest() != sha256:
        raise RecordedError(f"{path} {_CHANGED}")


_CHANGED = "was changed while this ran; run it again"


def _samples(data: bytes, path: Path, name: str) -> list[Row]:
    """The objects in the list ``name`` of a JSON object.

    Raises:
        RecordedError: the file is no such object.
    """
    try:
        log = json.loads(gzip.decompress(data) if path.suffix == COMPRESSED else data)
    except (ValueError, RecursionError, OSError, EOFError, zlib.error) as error:
        raise RecordedError(f"cannot read {path} as JSON: {error}") from error
    samples = log.get(name) if isinstance(log, dict) else None
    if not isinstance(samples, list) or not all(isinstance(sample, dict) for sample in samples):
        raise RecordedError(f"{path} holds no object with a list of objects under {name!r}; is it the whole log?")
    return samples


def _parquet(data: bytes, path: Path, form: Format, wanted: set[str], columns: set[str]) -> Iterator[Row]:
    """Row by row, and only the columns that are wanted: a wide table may hold the texts of many models."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(io.BytesIO(data))
        names = set(file.schema_arrow.names)
        columns |= names
        needed = sorted({form.made_from.get(name, name) for name in wanted} & names)
        for batch in file.iter_batches(columns=needed):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise RecordedError(f"cannot read {path} as Parquet: {error}") from error
