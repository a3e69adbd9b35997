"""Questions that always run into their worker's time limit: a fact about the worker, once two runs have seen it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from trinity_assets.workers.error_classes import TIMEOUT
from trinity_assets.workers.ledger import LOOKUP, Ledger
from trinity_assets.workers.ledger_tables import ANSWERS, CALLS
from trinity_assets.workers.outcomes import Status
from trinity_assets.workers.requests import AnswerRequest

RUNS = 2
"""Runs, the latest ones that asked, of which every call must have run into the limit."""

_NEARLY = 0.9
"""Of the limit: a call that ended sooner ran into another, lower one."""


def settle_timed_out(ledger: Ledger, requests: Sequence[AnswerRequest], timeout_s: float) -> int:
    """Settle as ``timed_out`` those of ``requests`` that say so twice; how many.

    Every call of the last two runs that asked took the whole of the present ``timeout_s``. The calls stay as they are,
    with their unknown costs.

    Raises:
        LedgerError: the ledger cannot be read or written; nothing was settled.
    """
    wanted = sorted({request.digest for request in requests})
    rows: list[dict[str, Any]] = []
    with ledger.database.translated("settle timeouts in"), ledger.database.writing() as connection:
        for start in range(0, len(wanted), LOOKUP):
            query = sa.select(CALLS).where(CALLS.c.request_digest.in_(wanted[start : start + LOOKUP]))
            calls: dict[str, list[sa.RowMapping]] = defaultdict(list)
            for call in connection.execute(query.order_by(CALLS.c.id)).mappings():
                calls[call["request_digest"]].append(call)
            rows += [_row(asked[-1]) for asked in calls.values() if _always_timed_out(asked, timeout_s)]
        if rows:
            connection.execute(ledger.database.insert(ANSWERS).on_conflict_do_nothing(), rows)
    return len(rows)


def _always_timed_out(calls: Sequence[sa.RowMapping], timeout_s: float) -> bool:
    latest = list(dict.fromkeys(call["run"] for call in reversed(calls)))[:RUNS]
    seen = [call for call in calls if call["run"] in latest]
    return len(latest) == RUNS and all(
        call["error_class"] == TIMEOUT and (call["latency_s"] or 0.0) >= _NEARLY * timeout_s for call in seen
    )


def _row(call: sa.RowMapping) -> dict[str, Any]:
    """The answer that the last call stands for: there is no text, and its cost is unknown."""
    same = {column.name: call[column.name] for column in ANSWERS.columns if column.name in call}
    return same | {"status": str(Status.TIMED_OUT), "text": None}
