"""The ledger's rows in files, JSON lines or Parquet by the name's end, and back.

A file holds answers, calls or epochs, with the columns of their table (calls without the row number). What comes back
is what went out: texts, nulls and floats to the last bit.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa
from pydantic import ConfigDict, Field, ValidationError, field_validator

from trinity_assets.errors import LedgerFileError
from trinity_assets.spec import Sha256, Spec
from trinity_assets.workers.ledger import Ledger
from trinity_assets.workers.ledger_tables import ANSWERS, CALLS, EPOCHS
from trinity_assets.workers.outcomes import Status

NAMED = 10
"""How many faulty rows a message names."""

_BATCH = 400
"""Rows per statement, below SQLite's limit on bound values."""

_PARQUET_ROWS = 8192

Row = dict[str, Any]
Count = Annotated[int, Field(ge=0, lt=1 << 40)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Row(Spec):
    model_config = ConfigDict(strict=True)

    @field_validator("*")
    @classmethod
    def _can_be_kept(cls, value: Any) -> Any:
        if isinstance(value, str):
            value.encode()
        return value


class _AskedRow(_Row):
    request_digest: Sha256
    run: str
    at: Amount
    provider: str
    worker: str
    benchmark: str
    task_id: str
    sample: Count
    epoch: Count
    status: Annotated[Status, Field(strict=False)]
    finish_reason: str | None
    model_returned: str | None
    input_tokens: Count | None
    output_tokens: Count | None
    cost_usd: Amount | None
    cost_source: str | None
    latency_s: Amount | None
    fingerprint: str | None = None


class _AnswerRow(_AskedRow):
    text: str | None

    @field_validator("status")
    @classmethod
    def _is_settled(cls, status: Status) -> Status:
        if not status.settled:
            raise ValueError("a failure is no answer")
        return status


class _CallRow(_AskedRow):
    attempt: Count
    error_class: str | None
    error: str | None
    price_version: str | None
    reserved_usd: Amount | None = None


class _EpochRow(_Row):
    worker: str
    benchmark: str
    epoch: Annotated[Count, Field(ge=1)]
    opened_at: Amount
    opened_by: str
    completed_at: Amount | None


@dataclass(frozen=True)
class _Kind:
    """One of the tables, and how its rows are told apart: by ``key``, whose first column leads an index."""

    name: str
    table: sa.Table
    order: tuple[sa.ColumnElement[Any], ...]
    model: type[_Row]
    key: tuple[str, ...]

    @property
    def columns(self) -> list[sa.Column[Any]]:
        return [column for column in self.table.columns if column.name != "id"]

    def key_of(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.key)


_ANSWERS = _Kind("answers", ANSWERS, (ANSWERS.c.at, ANSWERS.c.request_digest), _AnswerRow, ("request_digest",))
_CALLS = _Kind("calls", CALLS, (CALLS.c.id,), _CallRow, ("request_digest", "run", "at", "attempt"))
_EPOCHS = _Kind(
    "epochs", EPOCHS, (EPOCHS.c.worker, EPOCHS.c.benchmark, EPOCHS.c.epoch), _EpochRow, ("worker", "benchmark", "epoch")
)


@dataclass(frozen=True)
class Imported:
    """Rows of a file that are in the ledger now, and rows that were there before and stayed as they were."""

    new: int
    kept: int


def export_answers(ledger: Ledger, path: Path) -> int:
    """Write every answer to ``path`` (``.jsonl``, ``.parquet``), in the order in which they came; how many.

    Raises:
        LedgerFileError: the file cannot be written; what was there is still there.
        LedgerError: the ledger cannot be read.
    """
    return _export(ledger, path, _ANSWERS)


def export_calls(ledger: Ledger, path: Path) -> int:
    """Write every call to ``path``, as :func:`export_answers` does."""
    return _export(ledger, path, _CALLS)


def export_epochs(ledger: Ledger, path: Path) -> int:
    """Write every epoch to ``path``, as :func:`export_answers` does: who opened it, and whether it is complete."""
    return _export(ledger, path, _EPOCHS)


@dataclass(frozen=True)
class ImportedFiles:
    """What became of the rows of each file; None: there was none of that kind."""

    answers: Imported
    calls: Imported | None
    epochs: Imported | None


def import_files(ledger: Ledger, answers: Path, calls: Path | None = None, epochs: Path | None = None) -> ImportedFiles:
    """Add what the functions above wrote to files: all or nothing.

    An answer whose request is settled in the ledger already stays as it is there, and so do a call and an epoch.
    Without their epochs, answers count as a first collection that may be incomplete.

    Raises:
        LedgerFileError: a file cannot be read or holds rows that are none; they are named, and nothing was imported.
        LedgerError: the ledger cannot be written; nothing was imported.
    """
    for path, kind in ((answers, _ANSWERS), (calls, _CALLS), (epochs, _EPOCHS)):
        if path is not None:
            _check(path, kind)
    with ledger.database.translated("import into"), ledger.database.exclusive() as connection:
        return ImportedFiles(
            _insert(ledger, connection, answers, _ANSWERS),
            None if calls is None else _insert(ledger, connection, calls, _CALLS),
            None if epochs is None else _insert(ledger, connection, epochs, _EPOCHS),
        )


def _export(ledger: Ledger, path: Path, kind: _Kind) -> int:
    write = _by_suffix(path, {".jsonl": _write_jsonl, ".parquet": _write_parquet})
    with _replacing(path) as temporary:
        return write(temporary, _batches(ledger, kind), kind)


def _batches(ledger: Ledger, kind: _Kind) -> Iterator[list[Row]]:
    query = sa.select(*kind.columns).order_by(*kind.order).execution_options(yield_per=_PARQUET_ROWS)
    with ledger.database.translated("read"), ledger.database.reading() as connection:
        for rows in connection.execute(query).mappings().partitions():
            yield [dict(row) for row in rows]


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A file that takes the place of ``path`` when the block ends well, and leaves no trace when it does not."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            temporary.chmod(0o644)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise LedgerFileError(f"cannot write {path}: {error.strerror or error}; choose another place") from error


def _write_jsonl(path: Path, batches: Iterable[list[Row]], kind: _Kind) -> int:
    count = 0
    with path.open("w", encoding="utf-8") as stream:
        for row in itertools.chain.from_iterable(batches):
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    return count


def _write_parquet(path: Path, batches: Iterable[list[Row]], kind: _Kind) -> int:
    schema = pa.schema([pa.field(one.name, _arrow_type(one), one.nullable) for one in kind.columns])
    count = 0
    with pq.ParquetWriter(path, schema) as writer:
        for rows in batches:
            writer.write_table(pa.Table.from_pylist(rows, schema))
            count += len(rows)
    return count


def _arrow_type(column: sa.Column[Any]) -> pa.DataType:
    if isinstance(column.type, sa.Float):
        return pa.float64()
    return pa.int64() if isinstance(column.type, sa.Integer) else pa.string()


def _check(path: Path, kind: _Kind) -> None:
    faults: list[str] = []
    seen: dict[tuple[Any, ...], int] = {}
    count = 0
    for number, value in _rows(path):
        count = number
        try:
            row = kind.model.model_validate(value).model_dump()
        except ValidationError as error:
            faults.append(f"row {number}: {_faults(error)}")
            continue
        first = seen.setdefault(kind.key_of(row), number)
        if first != number:
            faults.append(f"row {number}: the same as row {first}")
    if faults:
        named = "\n  ".join(faults[:NAMED] + ([f"and {len(faults) - NAMED} more"] if len(faults) > NAMED else []))
        raise LedgerFileError(
            f"{path}: {len(faults)} of {count} rows are no {kind.name}; nothing was imported:\n  {named}"
        )


def _faults(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, one['loc'])) or 'the row'}: {one['msg']}" for one in details[:3])


def _rows(path: Path) -> Iterator[tuple[int, Any]]:
    """(number from 1, row) of a file; a line that is no JSON comes as its text, which is no row."""
    read = _by_suffix(path, {".jsonl": _read_jsonl, ".parquet": _read_parquet})
    try:
        yield from enumerate(read(path), 1)
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise LedgerFileError(f"cannot read {path}: {error}; nothing was imported") from error


def _read_jsonl(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            try:
                yield json.loads(line)
            except ValueError:
                yield line


def _read_parquet(path: Path) -> Iterator[Any]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_PARQUET_ROWS):
            yield from batch.to_pylist()


def _by_suffix(path: Path, choices: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    if path.suffix not in choices:
        raise LedgerFileError(f"{path}: the name must end in {' or '.join(choices)}")
    return choices[path.suffix]


def _insert(ledger: Ledger, connection: sa.Connection, path: Path, kind: _Kind) -> Imported:
    new = kept = 0
    rows = (kind.model.model_validate(value).model_dump(mode="json") for _, value in _rows(path))
    key = [kind.table.c[name] for name in kind.key]
    while batch := list(itertools.islice(rows, _BATCH)):
        there = sa.select(*key).where(key[0].in_({row[kind.key[0]] for row in batch}))
        existing = {tuple(row) for row in connection.execute(there)}
        missing = [row for row in batch if kind.key_of(row) not in existing]
        if missing:
            insert = ledger.database.insert(kind.table)
            connection.execute(insert.on_conflict_do_nothing(), missing)
        new, kept = new + len(missing), kept + len(batch) - len(missing)
    return Imported(new, kept)
