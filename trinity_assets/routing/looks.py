"""A log of who was judged on which held-out tasks: of all routers of one home, those of the graph and those without.

Whoever trains again and again and keeps what did best on the held-out tasks has learnt from them, whatever the interval
says; so an evaluation says how often it happened. A line of the log is one look: JSON with ``tasks``, ``sketch``,
``heads`` and ``at``. Lines are only added.

**A look counts if it was at half of the present test tasks or more.** To count looks at the exact same set would say
nothing of a router with one benchmark more, or of tasks added since. A line has to stay small, so of its tasks it keeps
how many there were and the smallest hashes (``sketch``), a sample that is the same for whoever draws it (bottom-k:
Cohen and Kaplan, PODC 2007). Up to its largest hash a sketch is the whole set, so the share of the present
tasks below it that are in it estimates the share that was looked at: exactly where the set is no larger than a sketch,
else to about 6 points for sets of equal size, and roughly where the earlier set was many times larger.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from filelock import FileLock

from trinity_assets.errors import TrainingError
from trinity_assets.routing.split import TEST
from trinity_assets.spec import digest

SKETCH = 64
"""How many hashes a line keeps, which then has about 900 bytes."""

HASH_DIGITS = 12
"""Hex digits of the hash of a task."""

SAME_TASKS = 0.5
"""The share of the present test tasks that a look was at if it counts."""


def held_out_hashes(table: pd.DataFrame, questions: Sequence[str] | None = None) -> list[str]:
    """The hashes of the test tasks of ``table``, sorted: of their ``questions`` (n,), else of benchmark and id."""
    rows = np.flatnonzero(table["split"] == TEST).tolist()
    if questions is not None:
        named: list[Any] = [questions[row] for row in rows]
    else:
        named = table[["benchmark", "task_id"]].iloc[rows].to_numpy().tolist()
    return sorted({digest(name)[:HASH_DIGITS] for name in named})


def heads_digest(weights: Mapping[str, np.ndarray]) -> str:
    """What tells heads (each (L, H)) from all others."""
    shas = {name: hashlib.sha256(np.asarray(head, "<f4").tobytes()).hexdigest() for name, head in weights.items()}
    return digest(shas)


@dataclass(frozen=True)
class LooksLog:
    """The log at ``path``, for a table whose ``questions`` (n,) are these, None where they are unknown."""

    path: Path
    questions: Sequence[str] | None = None

    def count(self, table: pd.DataFrame, weights: Mapping[str, np.ndarray]) -> int:
        """Note that the heads with these ``weights`` are judged on the test tasks of ``table``.

        Returns:
            How many different heads have been judged on half of these tasks or more, these included.

        Raises:
            TrainingError: the log cannot be read or written.
        """
        return count_look(self.path, held_out_hashes(table, self.questions), heads_digest(weights))


def count_look(log: Path, tasks: Collection[str], heads: str) -> int:
    """Note that ``heads`` are judged on ``tasks``, hashes of the same length each.

    Returns:
        How many different heads have been judged on half of these tasks or more, these included.

    Raises:
        TrainingError: the log cannot be read or written.
    """
    seen = {"tasks": len(tasks), "sketch": "".join(sorted(tasks)[:SKETCH]), "heads": heads}
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(log.with_name(f"{log.name}.lock")), log.open("a+b") as lines:
            lines.seek(0)
            kept = lines.read()
            looks = _looks(kept)
            if not any(seen.items() <= look.items() for look in looks):
                look = seen | {"at": datetime.now(UTC).isoformat(timespec="seconds")}
                cut_off = b"\n" if kept and not kept.endswith(b"\n") else b""
                lines.write(cut_off + json.dumps(look).encode() + b"\n")
    except OSError as error:
        raise TrainingError(f"cannot note a look at held-out tasks in {log}: {error}; make it writable") from error
    return len({heads, *(look["heads"] for look in looks if _share_looked_at(tasks, look) >= SAME_TASKS)})


def _share_looked_at(tasks: Collection[str], look: Mapping[str, Any]) -> float:
    """The share of ``tasks`` that an earlier look was at, by its sketch; 0 where that says nothing of any."""
    text = look["sketch"]
    sketch = {text[start : start + HASH_DIGITS] for start in range(0, len(text), HASH_DIGITS)}
    whole = look["tasks"] <= SKETCH
    comparable = [task for task in tasks if whole or task <= max(sketch)]
    return sum(task in sketch for task in comparable) / len(comparable) if comparable else 0.0


def _looks(lines: bytes) -> list[dict[str, Any]]:
    """The lines that can be read: a machine that went down may have left half of one."""
    looks = []
    for line in lines.splitlines():
        try:
            look = json.loads(line)
        except ValueError:
            continue
        if isinstance(look, dict) and {"tasks", "sketch", "heads"} <= look.keys():
            looks.append(look)
    return looks
