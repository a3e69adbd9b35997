"""Bytes of a file to task rows, by the format that the file's ending names; ``_PARSERS`` lists the formats.

A row that cannot be read is an error that names it by line (texts) or by item; none is dropped.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from trinity_assets.errors import TaskSourceError, listed

Row = dict[str, Any]

Needed = Collection[str] | None
"""The fields of a row that are looked at, None for all of them."""

COMPRESSED = ".gz"
"""What follows the ending of a file that gzip has compressed."""

UNPACKED_BYTES = 2 << 30
"""The most that is unpacked from such a file: some kilobytes can stand for any number of gigabytes."""
_CHUNK_BYTES = 1 << 20


def formats() -> str:
    """The endings that can be read, for people."""
    compressible = ", ".join(ending for ending, parser in _PARSERS.items() if parser.compressible)
    others = (ending for ending, parser in _PARSERS.items() if not parser.compressible)
    return ", ".join([f"{compressible} (each also {COMPRESSED})", *others])


def check_format(path: str) -> None:
    """Refuse a ``path`` (of a file, or a URL) whose ending names no format.

    Raises:
        ValueError: it does not; says which there are.
    """
    _parser_of(path)


def _parser_of(path: str) -> _Parser:
    endings = _endings(path)
    compressed = endings[-1:] == [COMPRESSED]
    parser = _PARSERS.get("".join(endings[:-1][-1:] if compressed else endings[-1:]))
    if parser is None or (compressed and not parser.compressible):
        raise ValueError(f"the name of the file {path} ends in none of {formats()}")
    return parser


def _endings(path: str) -> list[str]:
    return PurePosixPath(re.split("[?#]", path)[0] if "://" in path else path).suffixes


def parse_rows(data: bytes, path: str, where: str, needed: Needed = None) -> list[Row]:
    """The rows in a file's ``data``; ``path`` names its format and ``where`` is what messages call it.

    A format that keeps columns apart may hold one that cannot be read; where it is not ``needed``, it is None in every
    row.

    Raises:
        TaskSourceError: damaged, not UTF-8, or with rows that cannot be read, each of which is named.
    """
    parser = _parser_of(path)
    if _endings(path)[-1] == COMPRESSED:
        data = _unpacked(data, where)
    return parser.parse(data, where, needed)


def _unpacked(data: bytes, where: str) -> bytes:
    unpacked = bytearray()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                unpacked += chunk
                if len(unpacked) > UNPACKED_BYTES:
                    raise TaskSourceError(
                        f"{where} holds more than {UNPACKED_BYTES:,} bytes when unpacked, the most that is read; "
                        "give it in parts, or unpacked if it is meant"
                    )
    except (OSError, EOFError, zlib.error) as error:
        raise TaskSourceError(f"cannot read {where}: {error}") from error
    return bytes(unpacked)


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        faults = [
            f"line {number}: {problem}"
            for number, line in enumerate(data.split(b"\n"), start=1)
            if (problem := _undecodable(line))
        ]
        raise TaskSourceError(f"cannot read {where}, which is not UTF-8 text: {listed(faults)}") from None


def _undecodable(line: bytes) -> str | None:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        return str(error)
    return None


def _parse_json_lines(data: bytes, where: str, _needed: Needed) -> list[Row]:
    return list(json_line_rows(_text(data, where).split("\n"), where))


def json_line_rows(lines: Iterable[str | bytes], where: str) -> Iterator[Row]:
    """The row of each line that is not blank, one at a time; ``where`` is what messages call the file.

    Raises:
        TaskSourceError: after the last line, naming those that are no JSON objects.
    """
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
            yield row
        else:
            faults.append(f"line {number}: not a JSON object")
    if faults:
        raise TaskSourceError(f"{where} holds rows that are not JSON objects: {listed(faults)}")


def _parse_json_array(data: bytes, where: str, _needed: Needed) -> list[Row]:
    try:
        rows = json.loads(_text(data, where))
    except (ValueError, RecursionError) as error:
        raise TaskSourceError(f"cannot read {where} as JSON: {error}; one object a line is .jsonl") from error
    if not isinstance(rows, list):
        raise TaskSourceError(f"{where} holds no JSON array of objects but one {type(rows).__name__}")
    faults = [f"item {number}: not a JSON object" for number, row in enumerate(rows) if not isinstance(row, dict)]
    if faults:
        raise TaskSourceError(f"{where} holds rows that are not JSON objects: {listed(faults)}")
    return rows


def _parse_csv(data: bytes, where: str, _needed: Needed) -> list[Row]:
    """Rows by the header's names; every value is text."""
    reader = csv.reader(io.StringIO(_text(data, where), newline=""), strict=True)
    rows: list[Row] = []
    faults: list[str] = []
    header: list[str] | None = None
    line = 1
    try:
        for values in reader:
            if header is None:
                header = _csv_header(values, where)
            elif values and len(values) != len(header):
                faults.append(f"line {line}: {len(values)} values for {len(header)} columns")
            elif values:
                rows.append(dict(zip(header, values, strict=True)))
            line = reader.line_num + 1
    except csv.Error as error:
        faults.append(f"line {line}: {error}; nothing after it was read")
    if faults:
        raise TaskSourceError(f"{where} holds rows that do not fit its header: {listed(faults)}")
    return rows


def _csv_header(names: list[str], where: str) -> list[str]:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated or not all(names):
        problem = f"repeats {', '.join(map(repr, repeated))}" if repeated else "has a column without a name"
        raise TaskSourceError(f"the first line of {where} must name every column once; it {problem}")
    return names


def _parse_parquet(data: bytes, where: str, needed: Needed) -> list[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(io.BytesIO(data))
        names: list[str] = file.schema_arrow.names
    except (pa.ArrowException, OSError, ValueError) as error:
        raise TaskSourceError(f"cannot read {where} as Parquet: {error}") from error
    if len(set(names)) < len(names):
        raise TaskSourceError(f"{where} has several columns of one name: {', '.join(names)}")
    columns: dict[str, list[Any]] = {}
    for name in names:
        try:
            columns[name] = file.read(columns=[name]).column(name).to_pylist()
        except Exception as error:  # dates out of range, unknown time zones, bad UTF-8: each raises a class of its own
            if needed is None or name in needed:
                problem = f"{type(error).__name__}: {error}"
                raise TaskSourceError(f"cannot read the column {name!r} of {where}: {problem}") from error
            columns[name] = [None] * file.metadata.num_rows
    return [dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)]


@dataclass(frozen=True)
class _Parser:
    """How the bytes of one format become rows; ``parse(data, where, needed)`` calls the file ``where`` in messages.

    compressible: a file may be gzipped as a whole. Parquet compresses its own pages and is read from its end, so a
    gzipped one is a mistake of whoever made it.
    """

    parse: Callable[[bytes, str, Needed], list[Row]]
    compressible: bool = True


_PARSERS = {
    ".jsonl": _Parser(_parse_json_lines),
    ".json": _Parser(_parse_json_array),
    ".csv": _Parser(_parse_csv),
    ".parquet": _Parser(_parse_parquet, compressible=False),
}
"""Every format that can be read, by the ending that names it."""
