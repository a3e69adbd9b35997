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
from operator import itemgetter
from pathlib import Path
from time import monotonic, sleep
from typing import IO, Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa
from pydantic import ConfigDict, Field, ValidationError, field_validator

from trinity_assets.errors import LedgerError, LedgerFileError
from trinity_assets.spec import Sha256, Spec
from trinity_assets.workers.error_classes import KILLED
from trinity_assets.workers.ledger import Ledger
from trinity_assets.workers.ledger_tables import ANSWERS, CALLS, EPOCHS, PERMITS, YEAR_10000
from trinity_assets.workers.outcomes import Status
from trinity_assets.workers.permits import permit_transaction

NAMED = 10
"""How many faulty rows a message names."""

_BATCH = 400
"""Rows per transaction, and digests per query, below SQLite's limit on bound values."""

_BATCH_CHARACTERS = 1 << 22
"""Of a transaction's rows as JSON; reached by long texts. Writing so many takes a tenth of a second."""

_PARQUET_ROWS = 8192

Row = dict[str, Any]
Count = Annotated[int, Field(ge=0, lt=1 << 40)]
Small = Annotated[int, Field(ge=0, lt=1 << 31)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Moment = Annotated[float, Field(ge=0, lt=YEAR_10000, allow_inf_nan=False)]


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
    at: Moment
    provider: str
    worker: str
    benchmark: str
    task_id: str
    sample: Small
    epoch: Small
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
    attempt: Small
    error_class: str | None
    error: str | None
    price_version: str | None
    reserved_usd: Amount | None = None


class _EpochRow(_Row):
    worker: str
    benchmark: str
    epoch: Annotated[Small, Field(ge=1)]
    opened_at: Moment
    opened_by: str
    completed_at: Moment | None


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

    def __add__(self, other: Imported) -> Imported:
        return Imported(self.new + other.new, self.kept + other.kept)


def require_distinct(*files: Path | None) -> None:
    """Refuse to write two tables to one file, which would be left with the second.

    Raises:
        LedgerFileError: naming it; nothing was written.
    """
    named = [file for file in files if file is not None]
    places = [file.resolve() for file in named]
    for index, file in enumerate(named):
        if places[index] in places[:index]:
            raise LedgerFileError(f"{file} is named for two tables; give each a file of its own. Nothing was written")


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
    """Add what the functions above wrote to files, once every row of all of them has been found good.

    An answer whose request is settled in the ledger already stays as it is there, and so do a call and an epoch.
    Without their epochs, answers are incomplete for a build, which goes on with them in the present epoch, and complete
    where a new epoch is wanted, which is opened above them.

    Rows are added in many short transactions, so that whoever asks meanwhile can keep what was paid for. An import that
    is interrupted leaves a part; the same import again adds the rest. Epochs come last: they say what is complete.

    Raises:
        LedgerFileError: a file cannot be read or holds rows that are none; they are named, and nothing was imported.
        LedgerError: the ledger cannot be written; the message says how much was imported.
    """
    files = [(path, kind) for path, kind in ((answers, _ANSWERS), (calls, _CALLS), (epochs, _EPOCHS)) if path]
    with contextlib.ExitStack() as stack:
        checked = [(kind, stack.enter_context(_checked(path, kind))) for path, kind in files]
        imported: dict[str, Imported] = {}
        try:
            for kind, rows in checked:
                for more in _insert(ledger, rows, kind):
                    imported[kind.name] = imported.get(kind.name, Imported(0, 0)) + more
        except LedgerError as error:
            new = ", ".join(f"{some.new:,} {name}" for name, some in imported.items()) or "nothing"
            raise LedgerError(f"{error}. Imported so far: {new}; the same import again adds the rest") from error
    found = {kind.name: imported.get(kind.name, Imported(0, 0)) for kind, _ in checked}
    return ImportedFiles(found[_ANSWERS.name], found.get(_CALLS.name), found.get(_EPOCHS.name))


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
            _write_line(stream, row)
            count += 1
    return count


def _write_line(stream: IO[str], row: Row) -> None:
    stream.write(json.dumps(row, ensure_ascii=False) + "\n")


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


@contextlib.contextmanager
def _checked(path: Path, kind: _Kind) -> Iterator[IO[str]]:
    """The rows of a file as JSON lines, every one of them good: what is imported is what was looked at."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as rows:
        try:
            _check(path, kind, rows)
            rows.seek(0)
        except OSError as error:
            raise LedgerFileError(
                f"cannot keep what was read of {path} in {tempfile.gettempdir()}: {error.strerror or error}; free "
                "space there, or set TMPDIR to another place. Nothing was imported"
            ) from error
        yield rows


def _check(path: Path, kind: _Kind, good: IO[str]) -> None:
    faults: list[str] = []
    seen: dict[tuple[Any, ...], int] = {}
    count = 0
    for number, value in _rows(path):
        count = number
        try:
            row = kind.model.model_validate(value).model_dump(mode="json")
        except ValidationError as error:
            faults.append(f"row {number}: {_faults(error)}")
            continue
        first = seen.setdefault(kind.key_of(row), number)
        if first != number:
            faults.append(f"row {number}: the same as row {first}")
        _write_line(good, row)
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


def _insert(ledger: Ledger, rows: Iterable[str], kind: _Kind) -> Iterator[Imported]:
    """What came of each transaction. The ledger is left to others for as long as a transaction took, between them."""
    database = ledger.database
    key = [kind.table.c[name] for name in kind.key]
    for batch in _portions(rows):
        there = sa.select(*key).where(key[0].in_({row[kind.key[0]] for row in batch}))
        # Calls come in under the lock of the permits, so that none does behind the look of a budget.
        transaction = permit_transaction(database) if kind is _CALLS else database.exclusive()
        with database.translated("import into"), transaction as connection:
            started = monotonic()
            existing = {tuple(row) for row in connection.execute(there)}
            missing = [row for row in batch if kind.key_of(row) not in existing]
            replaced = _written_off_as(connection, missing) if kind is _CALLS else []
            if missing:
                connection.execute(database.insert(kind.table).on_conflict_do_nothing(), missing)
            if kind is _CALLS:
                _end_permits(connection, batch)
            if replaced:  # after the insertion: SQLite gives the number of a last row that is gone to the next
                connection.execute(sa.delete(CALLS).where(CALLS.c.id.in_(replaced)))
        yield Imported(len(missing), len(batch) - len(missing))
        sleep(monotonic() - started)


def _end_permits(connection: sa.Connection, calls: Iterable[Row]) -> None:
    """Let nobody wait for a call that is here now, or count it as killed: its process could not write that it ended."""
    ended = {(call["request_digest"], call["run"], call["attempt"]): call["at"] for call in calls}
    under_way = PERMITS.c.request_digest.in_({name for name, _, _ in ended}), PERMITS.c.ended_at.is_(None)
    columns = PERMITS.c.permit, PERMITS.c.request_digest, PERMITS.c.run, PERMITS.c.attempt, PERMITS.c.started_at
    over = [
        permit
        for permit, *asked, started_at in connection.execute(sa.select(*columns).where(*under_way))
        if ended.get(tuple(asked), 0.0) >= started_at
    ]
    if over:
        connection.execute(sa.delete(PERMITS).where(PERMITS.c.permit.in_(over)))


def _written_off_as(connection: sa.Connection, calls: Iterable[Row]) -> list[int]:
    """The rows that stand for ``calls`` since their process could not write them: one for each at most."""
    came_out: dict[tuple[Any, ...], list[float]] = {}
    for call in sorted(calls, key=itemgetter("at")):
        if call["error_class"] != KILLED:
            came_out.setdefault((call["request_digest"], call["run"], call["attempt"]), []).append(call["at"])
    columns = CALLS.c.id, CALLS.c.at, CALLS.c.request_digest, CALLS.c.run, CALLS.c.attempt
    killed = CALLS.c.error_class == KILLED, CALLS.c.request_digest.in_({name for name, _, _ in came_out})
    replaced = []
    for number, at, *asked in connection.execute(sa.select(*columns).where(*killed).order_by(CALLS.c.at)):
        ends = came_out.get(tuple(asked), [])
        if ends and ends[0] <= at:
            ends.pop(0)
            replaced.append(number)
    return replaced


def _portions(lines: Iterable[str]) -> Iterator[list[Row]]:
    """The rows of ``lines`` in portions that are soon written."""
    portion: list[Row] = []
    characters = 0
    for line in lines:
        portion.append(json.loads(line))
        characters += len(line)
        if len(portion) == _BATCH or characters >= _BATCH_CHARACTERS:
            yield portion
            portion, characters = [], 0
    if portion:
        yield portion
