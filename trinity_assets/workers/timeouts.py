"""Questions that always run into their worker's time limit: a fact about the worker, once two runs have seen it.

A silent provider looks the same from one question. So a run is believed only where no probe failed and somebody replied
after the question: at the latest the probe with which an asking ends that may settle timeouts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa

from trinity_assets.workers.error_classes import TIMEOUT
from trinity_assets.workers.ledger import LOOKUP, Ledger
from trinity_assets.workers.ledger_tables import ANSWERS, CALLS, PROBE
from trinity_assets.workers.outcomes import Status
from trinity_assets.workers.requests import AnswerRequest

RUNS = 2
"""Runs, the latest ones that asked, of which every call must have run into the limit."""

_NEARLY = 0.9
"""Of the limit: a call that ended sooner ran into another, lower one."""

_STOOD_STILL_S = 5.0
"""Beyond the limit: a call that lasted longer was that of a process that stood still, which heard nothing meanwhile."""

_ASKING = ("run", "worker", "benchmark", "epoch")
"""The columns that say in which asking a call was made."""

_UNANSWERED = CALLS.c.status == str(Status.FAILED_TRANSIENT)
_LAST_REPLIES = (
    sa.select(*(CALLS.c[name] for name in _ASKING), sa.func.max(sa.case((~_UNANSWERED, CALLS.c.id))))
    .where(CALLS.c.run.in_(sa.bindparam("runs", expanding=True)))
    .group_by(*(CALLS.c[name] for name in _ASKING))
    .having(sa.func.sum(sa.case((_UNANSWERED & (CALLS.c.attempt == PROBE), 1), else_=0)) == 0)
)

_Asking = tuple[Any, ...]


def settle_timed_out(ledger: Ledger, requests: Sequence[AnswerRequest], timeout_s: float) -> int:
    """Settle as ``timed_out`` those of ``requests`` that say so twice; how many.

    Every call of the last two runs that asked took the whole of the present ``timeout_s``, though the provider
    answered in both. The calls stay as they are, with their unknown costs.

    Raises:
        LedgerError: the ledger cannot be read or written; nothing was settled.
    """
    wanted = sorted({request.digest for request in requests})
    always: list[list[sa.RowMapping]] = []
    with ledger.database.translated("settle timeouts in"), ledger.database.writing() as connection:
        for start in range(0, len(wanted), LOOKUP):
            query = sa.select(CALLS).where(CALLS.c.request_digest.in_(wanted[start : start + LOOKUP]))
            calls: dict[str, list[sa.RowMapping]] = defaultdict(list)
            for call in connection.execute(query.order_by(CALLS.c.id)).mappings():
                calls[call["request_digest"]].append(call)
            always += [seen for asked in calls.values() if (seen := _always_timed_out(asked, timeout_s))]
        replies = _last_replies(connection, {call["run"] for seen in always for call in seen})
        rows = [_row(seen[-1]) for seen in always if all(call["id"] < replies.get(_asking(call), 0) for call in seen)]
        if rows:
            connection.execute(ledger.database.insert(ANSWERS).on_conflict_do_nothing(), rows)
    return len(rows)


def _always_timed_out(calls: Sequence[sa.RowMapping], timeout_s: float) -> list[sa.RowMapping]:
    """The calls of the last two runs where every one of them ran into the limit, else none."""
    latest = list(dict.fromkeys(call["run"] for call in reversed(calls)))[:RUNS]
    seen = [call for call in calls if call["run"] in latest]
    always = len(latest) == RUNS and all(
        call["error_class"] == TIMEOUT
        and _NEARLY * timeout_s <= (call["latency_s"] or 0.0) <= timeout_s + _STOOD_STILL_S
        for call in seen
    )
    return seen if always else []


def _last_replies(connection: sa.Connection, runs: Collection[str]) -> dict[_Asking, int]:
    """The number of the last call that got a reply, for each asking of ``runs`` in which no probe failed."""
    found = connection.execute(_LAST_REPLIES, {"runs": sorted(runs)})
    return {tuple(asking): last for *asking, last in found if last is not None}


def _asking(call: sa.RowMapping) -> _Asking:
    return tuple(call[name] for name in _ASKING)


def _row(call: sa.RowMapping) -> dict[str, Any]:
    """The answer that the last call stands for: there is no text, and its cost is unknown."""
    same = {column.name: call[column.name] for column in ANSWERS.columns if column.name in call}
    return same | {"status": str(Status.TIMED_OUT), "text": None}
