"""What was paid for and no ledger takes: kept in files beside it, in the form that ``ledger import`` reads."""

from __future__ import annotations

import json
import os
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trinity_assets.home import trinity_home
from trinity_assets.workers.ledger import Entry
from trinity_assets.workers.ledger_database import Database

_Files = tuple[Path, Path]
"""One of answers, one of their calls."""


class Rescue:
    """The files of one asking, which exist once anything was kept in them.

    They lie beside SQLite's file, else in ``TRINITY_HOME``, else where temporary files do.
    """

    def __init__(self, database: Database) -> None:
        self._places = [*filter(None, [database.directory]), trinity_home(), Path(tempfile.gettempdir())]
        self._files: list[_Files] = []
        self._answered: set[str] = set()
        self._kept = self._lost = 0

    def keep(self, entries: Sequence[Entry]) -> None:
        """Keep ``entries``, which the ledger did not take; ``said`` tells how that went."""
        rows = [row for entry in entries if (row := entry.answer_row())]
        answers = {row["request_digest"]: row for row in rows if row["request_digest"] not in self._answered}
        calls = [entry.call.row() for entry in entries]
        for files in [*self._files[-1:], *self._new_files()]:
            try:
                for file, new in zip(files, (list(answers.values()), calls), strict=True):
                    _append(file, new)
            except OSError:
                continue
            self._files = list(dict.fromkeys([*self._files, files]))
            self._answered.update(answers)
            self._kept += len(entries)
            return
        self._lost += len(entries)

    @property
    def said(self) -> str:
        """How many calls were kept where, how they come into the ledger, and how many were not; empty for none."""
        said = []
        if self._files:
            commands = " and ".join(
                f"trinity-assets ledger import '{answers}' --calls '{calls}'" for answers, calls in self._files
            )
            said.append(
                f"{self._kept} calls that were paid for are kept in files instead; once the ledger can be written "
                f"again, before anything is asked again: {commands}"
            )
        if self._lost:
            places = ", ".join(map(str, self._places))
            said.append(f"{self._lost} calls that were paid for are lost: no file could be written in {places} either")
        return "; ".join(said)

    def _new_files(self) -> Iterator[_Files]:
        name = f"ledger-rescue-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{uuid.uuid4().hex[:8]}"
        for place in self._places:
            yield place / f"{name}-answers.jsonl", place / f"{name}-calls.jsonl"


def _append(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows, all of them or none, and wait for the disk.

    Raises:
        OSError: none was added.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    with file.open("ab", buffering=0) as stream:
        before = stream.tell()
        try:
            while data:
                data = data[stream.write(data) :]
            os.fsync(stream.fileno())
        except OSError:
            stream.truncate(before)
            raise
