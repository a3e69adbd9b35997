"""The epoch in which a step asks: entered before its first question, complete when its last answer has settled."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import dagster as dg

from trinity_assets.defs.runs import new_epoch_name, paying_run, run_budget_usd
from trinity_assets.errors import IncompleteCellError
from trinity_assets.workers.operations import Operations
from trinity_assets.workers.specs import WorkerSpec

if TYPE_CHECKING:
    from trinity_assets.workers.collection import Collection
    from trinity_assets.workers.epochs import Epoch
    from trinity_assets.workers.ledger import Ledger


@dataclass(frozen=True)
class AskedEpoch:
    """What one run asks in ``epoch``: for ``payer``, which may spend ``budget_usd`` (None: whatever it costs)."""

    epoch: Epoch
    ledger: Ledger
    payer: str
    budget_usd: float | None
    collections: list[Collection] = field(default_factory=list)

    def ask(
        self,
        worker: WorkerSpec,
        benchmark: str,
        prompts: Mapping[str, str],
        *,
        settle_timeouts: bool,
        purpose: str | None = None,
    ) -> Collection:
        """What ``collect`` gives, complete or not; it belongs to this epoch from now on."""
        from trinity_assets.workers.collection import collect

        collection = collect(
            worker,
            benchmark,
            prompts,
            self.ledger,
            epoch=self.epoch.number,
            purpose=purpose,
            run=self.payer,
            run_budget_usd=self.budget_usd,
            settle_timeouts=settle_timeouts,
        )
        self.collections.append(collection)
        return collection


@contextlib.contextmanager
def asked_epoch(
    ledger: Ledger,
    run: dg.DagsterRun,
    operations: Operations,
    worker: str,
    benchmark: str,
    *,
    ever_complete: bool = False,
) -> Iterator[AskedEpoch]:
    """The epoch in which ``run`` asks a cell, a new one where its tags say so; complete if all that was asked is.

    ``worker``, ``benchmark`` and ``ever_complete`` are as for ``enter_epoch``.

    Raises:
        BudgetError: the run's budget is no amount; nothing was entered.
        IncompleteCellError: answers are missing; the message is of every collection that lacks some.
        LedgerError: the ledger cannot be read or written.
    """
    from trinity_assets.workers.epochs import complete_epoch, enter_epoch

    payer, budget_usd = paying_run(run), run_budget_usd(run, operations)
    epoch = enter_epoch(ledger, worker, benchmark, by=payer, new=new_epoch_name(run), ever_complete=ever_complete)
    asked = AskedEpoch(epoch, ledger, payer, budget_usd)
    yield asked
    _require_complete(asked.collections)
    complete_epoch(ledger, epoch)


def epoch_metadata(epoch: Epoch) -> dict[str, Any]:
    """What a materialization says of the epoch of its answers."""
    return {
        "epoch": epoch.number,
        "epoch_opened": dg.MetadataValue.timestamp(epoch.opened_at),
        "epoch_opened_by": epoch.opened_by,
    }


def _require_complete(collections: list[Collection]) -> None:
    gaps = []
    for collection in collections:
        try:
            collection.require_complete()
        except IncompleteCellError as gap:
            gaps.append(str(gap))
    if gaps:
        raise IncompleteCellError("\n".join(gaps))
