"""Bytes of a file to task rows: JSON Lines, a JSON array, CSV or Parquet, told apart by the file's ending.

A row that cannot be read is an error that names it by line (texts) or by item; none is dropped.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

from trinity_assets.errors import TaskSourceError

Row = dict[str, Any]

FAULTS_SHOWN = 20
COMPRESSED = ".gz"


def format_of(path: str) -> str:
    """The ending that decides how ``path`` (of a file, or a URL) is read: one of ``.jsonl .json .csv .parquet``.

    Raises:
        ValueError: another ending; says which there are.
    """
    endings = _endings(path)
    ending = (endings[:-1] if endings[-1:] == [COMPRESSED] else endings)[-1:]
    if ending and ending[0] in _PARSERS:
        return ending[0]
    raise ValueError(f"the name of the file {path} ends in none of {', '.join(_PARSERS)} (each also with {COMPRESSED})")


def _endings(path: str) -> list[str]:
    return PurePosixPath(re.split("[?#]", path)[0] if "://" in path else path).suffixes


def parse_rows(data: bytes, path: str, where: str) -> list[Row]:
    """The rows in a file's ``data``; ``path`` names its format and ``where`` is what messages call it.

    Raises:
        TaskSourceError: damaged, not UTF-8, or with rows that cannot be read, each of which is named.
    """
    if _endings(path)[-1] == COMPRESSED:
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise TaskSourceError(f"cannot read {where}: {error}") from error
    return _PARSERS[format_of(path)](data, where)


def listed(faults: list[str], separator: str = "; ") -> str:
    """The first faults, and how many more there are."""
    more = [f"and {len(faults) - FAULTS_SHOWN} more"] if len(faults) > FAULTS_SHOWN else []
    return separator.join(faults[:FAULTS_SHOWN] + more)


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


def _parse_json_lines(data: bytes, where: str) -> list[Row]:
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


def _parse_json_array(data: bytes, where: str) -> list[Row]:
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


def _parse_csv(data: bytes, where: str) -> list[Row]:
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


def _parse_parquet(data: bytes, where: str) -> list[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(io.BytesIO(data)).read()
        rows: list[Row] = table.to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise TaskSourceError(f"cannot read {where} as Parquet: {error}") from error
    names: list[str] = table.column_names
    if len(set(names)) < len(names):
        raise TaskSourceError(f"{where} has several columns of one name: {', '.join(names)}")
    return rows


_PARSERS: dict[str, Callable[[bytes, str], list[Row]]] = {
    ".jsonl": _parse_json_lines,
    ".json": _parse_json_array,
    ".csv": _parse_csv,
    ".parquet": _parse_parquet,
}
