"""Collecting the answers of one cell: from the ledger what is there, from the provider only what is missing."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd

from trinity_assets.errors import BudgetError, IncompleteCellError
from trinity_assets.workers.asking import Cell, Tally, Terms, ask_missing
from trinity_assets.workers.budgets import Budget, run_budget, worker_budget
from trinity_assets.workers.claims import Lease
from trinity_assets.workers.endpoints import open_endpoint
from trinity_assets.workers.error_classes import NOT_ASKED
from trinity_assets.workers.ledger import Ledger
from trinity_assets.workers.prices import known_price
from trinity_assets.workers.provider_errors import ADVICE
from trinity_assets.workers.requests import AnswerRequest, answer_requests
from trinity_assets.workers.retrying import RetryPolicy
from trinity_assets.workers.specs import WorkerSpec
from trinity_assets.workers.tables import answers_frame
from trinity_assets.workers.timeouts import settle_timed_out

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Collection:
    """The answers of one worker on one benchmark, and what this collection did for them.

    ``frame`` holds the settled answers in task order, in the columns of ``ANSWERS_SCHEMA``: ``new`` of them were asked
    here, ``reused`` were in the ledger before or were asked meanwhile by another process. ``failures`` counts the
    missing ones by error class. ``calls``, ``cost_usd`` (the known part), ``cost_unknown`` (calls that may have cost
    something unknown), the tokens and ``seconds`` are this collection's own. ``stopped`` says why the asking ended
    early and ``last_error`` what the provider said last.
    """

    worker: str
    provider: str
    benchmark: str
    total: int
    frame: pd.DataFrame
    new: int
    reused: int
    failures: dict[str, int]
    by_status: dict[str, int]
    calls: int
    cost_usd: float
    cost_unknown: int
    input_tokens: int
    output_tokens: int
    seconds: float
    stopped: str | None = None
    last_error: str | None = None

    @property
    def complete(self) -> bool:
        """True when nothing is missing."""
        return not self.failures

    def _after_stopping(self) -> str:
        what = "mend what stopped it, then run again" if self.stopped else "run again"
        return f"{what}; only what is missing is asked"

    def require_complete(self) -> Collection:
        """This collection, if it is complete.

        Raises:
            IncompleteCellError: answers are missing; names the provider, the classes with their counts, and what to do.
        """
        if self.complete:
            return self
        missing = sum(self.failures.values())
        classes = ", ".join(f"{count} {name}" for name, count in self.failures.items())
        advice = "; ".join(dict.fromkeys(ADVICE[name] for name in self.failures if name in ADVICE))
        lines = [
            f"{self.worker} on {self.benchmark}: {missing} of {self.total} answers are missing "
            f"(provider {self.provider}: {classes})",
            f"stopped early: {self.stopped}" if self.stopped else "",
            f"last error: {self.last_error}" if self.last_error and self.last_error not in (self.stopped or "") else "",
            f"what to do: {advice or self._after_stopping()}",
            f"the {len(self.frame)} answers that settled are kept and will not be asked again",
        ]
        raise IncompleteCellError("\n".join(line for line in lines if line))


def collect(
    worker: WorkerSpec,
    benchmark: str,
    prompts: Mapping[str, str],
    ledger: Ledger,
    *,
    epoch: int = 1,
    purpose: str | None = None,
    run: str = "",
    run_budget_usd: float | None = None,
    settle_timeouts: bool = False,
    retry: RetryPolicy | None = None,
    lease: Lease | None = None,
) -> Collection:
    """The answers of ``worker`` to ``prompts`` (task id -> rendered prompt) in ``epoch``, asked for ``purpose``.

    All calls of one ``run`` (in this and other processes) cost at most ``run_budget_usd``. With ``settle_timeouts`` a
    question that always ran into the worker's time limit, here and in an earlier run, while its provider answered, is
    settled as ``timed_out``.

    The ledger is read first: when everything is settled there, no server starts, litellm is not imported and no key
    is needed. Each outcome is committed before it counts; a process killed at any moment loses the calls in flight.
    What another process is asking at this moment is waited for and not asked twice.
    A failure is no exception here: see :meth:`Collection.require_complete`.

    Raises:
        MissingKeyError: a key is needed and not set.
        ProviderError: an embedded model cannot be served.
        BudgetError: there is a budget, and nobody knows what the worker's calls may cost.
        LedgerError: the ledger cannot be read or written.
    """
    started = time.monotonic()
    cell = Cell(worker, benchmark, epoch, run)
    requests = answer_requests(worker, prompts, epoch, purpose)
    digests = [request.digest for request in requests]
    before = ledger.settled(digests)
    missing = _distinct([request for request in requests if request.digest not in before])
    tally, after = Tally(), before
    if missing:
        terms = replace(_terms(cell, retry or RetryPolicy(), run_budget_usd, purpose), settle_timeouts=settle_timeouts)
        logger.info("%s: %d of %d answers are to be asked", cell.label, len(missing), len(requests))
        with open_endpoint(worker) as endpoint:
            tally = asyncio.run(ask_missing(cell, missing, endpoint, ledger, terms, lease=lease))
        if settle_timeouts:
            settle_timed_out(ledger, [one for one in missing if one.digest in tally.failed], endpoint.timeout_s)
        after = ledger.settled(digests)
    frame = answers_frame((request, after[request.digest]) for request in requests if request.digest in after)
    new = sum(request.digest in tally.settled for request in requests)
    return Collection(
        worker=worker.name,
        provider=worker.provider.name,
        benchmark=benchmark,
        total=len(requests),
        frame=frame,
        new=new,
        reused=len(frame) - new,
        failures=_failures([request for request in requests if request.digest not in after], tally),
        by_status=dict(Counter(frame["status"]).most_common()),
        calls=tally.calls,
        cost_usd=tally.cost_usd,
        cost_unknown=tally.cost_unknown,
        input_tokens=tally.input_tokens,
        output_tokens=tally.output_tokens,
        seconds=time.monotonic() - started,
        stopped=tally.stopped,
        last_error=_last_error(tally),
    )


def _terms(cell: Cell, retry: RetryPolicy, run_budget_usd: float | None, purpose: str | None) -> Terms:
    worker = cell.worker
    budgets: list[Budget] = []
    if run_budget_usd is not None:
        budgets.append(run_budget(run_budget_usd, cell.run))
    if worker.budget_usd is not None:
        budgets.append(worker_budget(worker.budget_usd, worker.name, cell.epoch, purpose))
    price = known_price(worker)
    if budgets and price is None:
        raise BudgetError(
            f"{cell.label}: the budget for {budgets[0].label} cannot be kept, because nobody knows what {worker.model} "
            f"costs; give worker {worker.name} a price in workers.yaml, or ask without a budget. Nothing was asked"
        )
    return Terms(retry, price, tuple(budgets))


def _distinct(requests: list[AnswerRequest]) -> list[AnswerRequest]:
    """The first of each digest, in order: tasks with the same words share an answer."""
    first: dict[str, AnswerRequest] = {}
    for request in requests:
        first.setdefault(request.digest, request)
    return list(first.values())


def _failures(missing: list[AnswerRequest], tally: Tally) -> dict[str, int]:
    """How many of ``missing`` failed with which class, the most frequent first."""
    classes = Counter(
        str(outcome.error_class) if (outcome := tally.failed.get(request.digest)) else NOT_ASKED for request in missing
    )
    return dict(classes.most_common())


def _last_error(tally: Tally) -> str | None:
    errors = [outcome.error for outcome in tally.failed.values() if outcome.error]
    return errors[-1] if errors else None
