"""A log of who was judged on which held-out tasks, for routers that are trained without a graph.

Whoever trains again and again and keeps what did best on the held-out tasks has learnt from them, whatever the interval
says; so an evaluation says how often it happened. A line of the log is one look: JSON with ``test_set``, ``heads`` and
``at``. Lines are only added.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
from filelock import FileLock

from trinity_assets.errors import TrainingError
from trinity_assets.routing.split import TEST
from trinity_assets.routing.table import held_out_digest
from trinity_assets.spec import digest


def tasks_digest(table: pd.DataFrame, questions: Sequence[str] | None = None) -> str:
    """What tells the test tasks of ``table`` from all others: their names and, if known, their ``questions`` (n,)."""
    rows = np.flatnonzero(table["split"] == TEST).tolist()
    return digest([held_out_digest(table), sorted(questions[row] for row in rows) if questions is not None else None])


def heads_digest(weights: Mapping[str, np.ndarray]) -> str:
    """What tells heads (each (L, H)) from all others."""
    shas = {name: hashlib.sha256(np.asarray(head, "<f4").tobytes()).hexdigest() for name, head in weights.items()}
    return digest(shas)


def count_look(log: Path, test_set: str, heads: str) -> int:
    """Note that ``heads`` are judged on ``test_set``; returns how many different ones have been, these included.

    Raises:
        TrainingError: the log cannot be read or written.
    """
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(log.with_name(f"{log.name}.lock")), log.open("a+b") as lines:
            lines.seek(0)
            kept = lines.read()
            judged = {look["heads"] for look in _looks(kept) if look.get("test_set") == test_set}
            if heads not in judged:
                look = {"test_set": test_set, "heads": heads, "at": datetime.now(UTC).isoformat(timespec="seconds")}
                cut_off = b"\n" if kept and not kept.endswith(b"\n") else b""
                lines.write(cut_off + json.dumps(look).encode() + b"\n")
    except OSError as error:
        raise TrainingError(f"cannot note a look at held-out tasks in {log}: {error}; make it writable") from error
    return len(judged | {heads})


def _looks(lines: bytes) -> list[dict[str, str]]:
    """The lines that can be read: a machine that went down may have left half of one."""
    looks = []
    for line in lines.splitlines():
        try:
            look = json.loads(line)
        except ValueError:
            continue
        if isinstance(look, dict) and "heads" in look:
            looks.append(look)
    return looks
