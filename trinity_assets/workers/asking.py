"""Asking a worker what is missing: concurrent, paced, retried, and written down call by call.

The first question goes alone, so that a bad key or a wrong URL costs one call and not one per slot. A fatal outcome,
a provider that stays down, one that asks for a long rest, or an error ends the asking: no call starts after it, those
under way finish and are kept. What another process is asking is not asked here: its answer is waited for.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from trinity_assets.progress import Progress
from trinity_assets.workers.claiming import Questions
from trinity_assets.workers.claims import Lease
from trinity_assets.workers.client import WorkerClient
from trinity_assets.workers.endpoints import Endpoint
from trinity_assets.workers.ledger import Call, Entry, Ledger
from trinity_assets.workers.outcomes import Outcome, Status
from trinity_assets.workers.pacing import Pacer, estimated_tokens
from trinity_assets.workers.requests import AnswerRequest
from trinity_assets.workers.retrying import RetryPolicy
from trinity_assets.workers.specs import WorkerSpec
from trinity_assets.workers.writer import LedgerWriter

logger = logging.getLogger(__name__)

GIVE_UP_AFTER = 5
"""Questions in a row that stay unanswered after all their attempts before the provider counts as down."""


@dataclass(frozen=True)
class Cell:
    """Whose questions these are, as every row of the ledger says."""

    worker: WorkerSpec
    benchmark: str
    epoch: int
    run: str

    @property
    def label(self) -> str:
        """How log lines and messages name the cell."""
        return f"{self.worker.name} on {self.benchmark}"


@dataclass
class Tally:
    """What the asking came to: calls made, what they are known to cost, and which requests settled or failed."""

    calls: int = 0
    cost_usd: float = 0.0
    cost_unknown: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    settled: set[str] = field(default_factory=set)
    failed: dict[str, Outcome] = field(default_factory=dict)
    stopped: str | None = None

    def add(self, outcome: Outcome) -> None:
        """Count one call."""
        self.calls += 1
        if outcome.cost_usd is None:
            self.cost_unknown += 1
        else:
            self.cost_usd += outcome.cost_usd
        self.input_tokens += outcome.input_tokens or 0
        self.output_tokens += outcome.output_tokens or 0


class _AskingEndedError(Exception):
    """The asking has ended while this question waited; it was not asked (again)."""


class _ClaimLostError(Exception):
    """Another process may be asking this question by now; it was not asked (again)."""


async def ask_missing(
    cell: Cell,
    requests: Sequence[AnswerRequest],
    endpoint: Endpoint,
    ledger: Ledger,
    *,
    retry: RetryPolicy,
    give_up_after: int = GIVE_UP_AFTER,
    lease: Lease | None = None,
) -> Tally:
    """Ask every one of ``requests`` and keep each outcome in ``ledger`` the moment it arrives.

    What another process is asking is waited for: until it has settled, or has become this process's to ask.

    Raises:
        LedgerError: an outcome could not be kept, or a question not be claimed; nothing more is asked.
        ProviderError: the endpoint could not prepare a call; nothing more is asked.
    """
    # The order of leaving matters: claims are given up once the writer has committed what came in.
    async with (
        Questions(cell.label, requests, ledger.claims(lease)) as questions,
        LedgerWriter(ledger) as writer,
        WorkerClient(cell.worker, endpoint) as client,
    ):
        asking = _Asking(cell, len(requests), questions, endpoint, client, writer, retry, give_up_after)
        return await asking.run()


class _Asking:
    def __init__(
        self,
        cell: Cell,
        total: int,
        questions: Questions,
        endpoint: Endpoint,
        client: WorkerClient,
        writer: LedgerWriter,
        retry: RetryPolicy,
        give_up_after: int,
    ) -> None:
        self._cell = cell
        self._questions = questions
        self._concurrency = min(endpoint.limits.concurrency, total)
        self._client = client
        self._writer = writer
        self._retry = retry
        self._give_up_after = give_up_after
        self._pacer = Pacer(endpoint.limits, sleep=self._sleep)
        self._progress = Progress(logger, cell.label, total, "answers")
        self._stop = asyncio.Event()
        self._elsewhere = 0
        self._unanswered_in_a_row = 0
        self._error: Exception | None = None
        self._tally = Tally()

    async def run(self) -> Tally:
        await self._take_turns(most=1)
        async with asyncio.TaskGroup() as group:
            for _ in range(self._concurrency):
                group.create_task(self._take_turns())
        if self._error is not None:
            raise self._error
        return self._tally

    async def _take_turns(self, most: int | None = None) -> None:
        taken = 0
        while not self._stop.is_set() and (most is None or taken < most):
            taken += 1
            try:
                request = await self._next()
                if request is None:
                    return
                await self._settle(request)
            except _AskingEndedError:
                return
            except Exception as error:  # raised again once the calls under way, which are paid for, have been kept
                self._error = self._error or error
                self._end(f"{type(error).__name__}: {error}")

    async def _next(self) -> AnswerRequest | None:
        request = await self._questions.next(self._sleep)
        if elsewhere := self._questions.settled_elsewhere - self._elsewhere:
            self._elsewhere += elsewhere
            self._progress.advance(elsewhere)
        return request

    async def _settle(self, request: AnswerRequest) -> None:
        """Ask one question until it is settled, or failed for this run, and judge the provider by it."""
        try:
            outcome = await self._ask(request)
        except _ClaimLostError:
            self._questions.lost(request)
            return
        if outcome.status.settled:
            self._unanswered_in_a_row = 0
            self._tally.settled.add(request.digest)
            self._tally.failed.pop(request.digest, None)
            self._progress.advance(cost_usd=outcome.cost_usd)
            return
        self._unanswered_in_a_row += 1
        if self._stop.is_set():
            return
        await self._questions.release(request)
        logger.warning("%s: task %s is unanswered: %s", self._cell.label, request.task_id, _reason(outcome))
        if outcome.status is Status.FAILED_FATAL:
            self._end(_reason(outcome))
        elif self._retry.cooling(outcome):
            self._end(f"the provider asks to wait {outcome.retry_after_s:.0f} s ({outcome.error_class})")
        elif self._unanswered_in_a_row >= self._give_up_after:
            self._end(f"{self._unanswered_in_a_row} tasks in a row stayed unanswered, the last: {_reason(outcome)}")

    async def _ask(self, request: AnswerRequest) -> Outcome:
        """Up to ``attempts`` calls, each kept before the next; the last outcome."""
        started = time.monotonic()
        tokens = estimated_tokens(request.messages, self._cell.worker.sampling.max_tokens)
        attempt = 0
        while True:
            attempt += 1
            reservation = await self._pacer.turn(tokens)
            if self._stop.is_set():
                raise _AskingEndedError
            if not self._questions.holds(request):
                self._pacer.settle(reservation, 0)
                raise _ClaimLostError
            outcome = await self._client.call(request.messages)
            self._pacer.settle(reservation, _used(outcome))
            await self._writer.write(Entry(self._call(request, attempt, outcome), outcome.text))
            self._tally.add(outcome)
            if not outcome.status.settled:
                self._tally.failed[request.digest] = outcome
            if outcome.retry_after_s:
                self._pacer.pause(outcome.retry_after_s)
            wait = self._retry.wait_s(outcome, attempt, time.monotonic() - started)
            if wait is None:
                return outcome
            await self._sleep(wait)

    def _end(self, reason: str) -> None:
        if not self._stop.is_set():
            self._tally.stopped = reason
            self._stop.set()
            logger.error("%s: stopped: %s", self._cell.label, reason)

    async def _sleep(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return
        raise _AskingEndedError

    def _call(self, request: AnswerRequest, attempt: int, outcome: Outcome) -> Call:
        return Call(
            request_digest=request.digest,
            attempt=attempt,
            run=self._cell.run,
            at=time.time(),
            provider=self._cell.worker.provider.name,
            worker=self._cell.worker.name,
            benchmark=self._cell.benchmark,
            task_id=request.task_id,
            sample=request.sample,
            epoch=self._cell.epoch,
            status=outcome.status,
            finish_reason=outcome.finish_reason,
            model_returned=outcome.model_returned,
            input_tokens=outcome.input_tokens,
            output_tokens=outcome.output_tokens,
            cost_usd=outcome.cost_usd,
            cost_source=outcome.cost_source,
            latency_s=outcome.latency_s,
            error_class=outcome.error_class,
            error=outcome.error,
            price_version=outcome.price_version,
            fingerprint=outcome.fingerprint,
        )


def _reason(outcome: Outcome) -> str:
    return f"{outcome.error_class}: {outcome.error}" if outcome.error else str(outcome.error_class)


def _used(outcome: Outcome) -> int | None:
    if outcome.cost_source == "rejected":
        return 0
    if outcome.input_tokens is None or outcome.output_tokens is None:
        return None
    return outcome.input_tokens + outcome.output_tokens
