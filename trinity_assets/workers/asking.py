"""Asking a worker what is missing: concurrent, paced, retried, and written down call by call.

The first question has a head start, so that a bad key or a wrong URL, which providers say at once, costs one call and
not one per slot. A fatal outcome,
a provider that does not answer, one that asks for a long rest, a budget that is used up, or an error ends the asking:
no call starts after it, those under way finish and are kept. What another process is asking is not asked here: its
answer is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from trinity_assets.errors import ProviderError
from trinity_assets.progress import Progress
from trinity_assets.spec import digest
from trinity_assets.workers.budgets import Budget
from trinity_assets.workers.claiming import Questions
from trinity_assets.workers.claims import Lease
from trinity_assets.workers.client import WorkerClient
from trinity_assets.workers.endpoints import Endpoint
from trinity_assets.workers.error_classes import CONFIGURATION, TIMEOUT
from trinity_assets.workers.ledger import Call, Entry, Ledger
from trinity_assets.workers.ledger_tables import PROBE
from trinity_assets.workers.outcomes import Outcome, Status
from trinity_assets.workers.pace import Pace
from trinity_assets.workers.permit_queue import AskingEndedError, PermitQueue
from trinity_assets.workers.permits import Ended, Permits, Wish, forget
from trinity_assets.workers.prices import cost_usd, most_tokens
from trinity_assets.workers.requests import AnswerRequest
from trinity_assets.workers.retrying import RetryPolicy
from trinity_assets.workers.specs import Messages, Price, WorkerSpec
from trinity_assets.workers.writer import LedgerWriter

logger = logging.getLogger(__name__)

HEAD_START_S = 0.5
"""How long the others wait for a first call that says nothing: a refusal comes sooner, an answer takes longer."""

PROBE_MESSAGES: Messages = [{"role": "user", "content": "Reply with OK."}]
PROBE_TOKENS = 16
"""What a probe may generate: any outcome but a failure says that the provider answers."""


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


class _ClaimLostError(Exception):
    """Another process may be asking this question by now; it was not asked (again)."""


@dataclass(frozen=True)
class Terms:
    """On what terms is asked: the retries, what a call costs at most (``price`` None: unknown), and the budgets.

    With ``settle_timeouts`` questions that ran into the time limit may be settled by it, so that the asking ends with a
    probe where nothing has been heard since.
    """

    retry: RetryPolicy
    price: Price | None = None
    budgets: tuple[Budget, ...] = ()
    settle_timeouts: bool = False


async def ask_missing(
    cell: Cell,
    requests: Sequence[AnswerRequest],
    endpoint: Endpoint,
    ledger: Ledger,
    terms: Terms,
    *,
    lease: Lease | None = None,
) -> Tally:
    """Ask every one of ``requests`` and keep each outcome in ``ledger`` the moment it arrives.

    What another process is asking is waited for: until it has settled, or has become this process's to ask.

    Raises:
        LedgerError: an outcome could not be kept, or a question not be claimed; nothing more is asked.
        ProviderError: the endpoint could not prepare a call; nothing more is asked.
    """
    claims = ledger.claims(lease)
    pace = _pace(cell.worker, endpoint, terms.retry, claims.claimant.claimant)
    permits = Permits(ledger.database, pace, terms.budgets, claimant=claims.claimant)
    try:
        # The order of leaving matters: claims are given up once the writer has committed what came in.
        async with (
            Questions(cell.label, requests, claims) as questions,
            LedgerWriter(ledger) as writer,
            WorkerClient(cell.worker, endpoint) as client,
        ):
            asking = _Asking(cell, len(requests), questions, client, writer, permits, pace, terms)
            return await asking.run()
    finally:
        if not endpoint.shared:
            forget(ledger.database, [pace.provider, pace.worker])


def _pace(worker: WorkerSpec, endpoint: Endpoint, retry: RetryPolicy, claimant: str) -> Pace:
    alone = "" if endpoint.shared else f" in {claimant}"
    return Pace(
        provider=f"provider {worker.provider.name}{alone}",
        worker=f"worker {worker.name}{alone}",
        provider_limits=endpoint.limits,
        worker_limits=worker.limits,
        timeout_s=endpoint.timeout_s,
        retry=retry,
    )


class _Asking:
    def __init__(
        self,
        cell: Cell,
        total: int,
        questions: Questions,
        client: WorkerClient,
        writer: LedgerWriter,
        permits: Permits,
        pace: Pace,
        terms: Terms,
    ) -> None:
        self._cell = cell
        self._questions = questions
        self._client = client
        self._writer = writer
        self._pace = pace
        self._terms = terms
        self._concurrency = min(pace.concurrency, total)
        self._queue = PermitQueue(permits, self._probe, self._end)
        self._probing = self._probe_request()
        self._probe_wish = self._wish(self._probing, PROBE)
        self._progress = Progress(logger, cell.label, total, "answers")
        self._stop = asyncio.Event()
        self._first_call = asyncio.Event()
        self._first_question = asyncio.Event()
        self._elsewhere = 0
        self._silent_since_timeout = False
        self._asked_all = False
        self._error: Exception | None = None
        self._tally = Tally()

    async def run(self) -> Tally:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._take_turns())
            await self._head_start()
            for _ in range(self._concurrency - 1):
                group.create_task(self._take_turns())
        if self._error is not None:
            raise self._error
        if self._terms.settle_timeouts and self._silent_since_timeout and not self._stop.is_set():
            await self._see_who_was_slow()
        return self._tally

    async def _see_who_was_slow(self) -> None:
        """Probe once: were it the provider and not the questions, they ran into the limit for another reason."""
        self._asked_all = True
        with contextlib.suppress(AskingEndedError):
            await self._probe(await self._queue.permit(self._probe_wish, self._probe_wish))

    async def _head_start(self) -> None:
        """Until the first question is settled or failed; or its first call takes as long as an answer does."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._first_call.wait(), HEAD_START_S)
            await self._first_question.wait()

    async def _take_turns(self) -> None:
        while not self._stop.is_set():
            try:
                request = await self._next()
                if request is None:
                    break
                await self._settle(request)
            except AskingEndedError:
                break
            except Exception as error:  # raised again once the calls under way, which are paid for, have been kept
                self._error = self._error or error
                self._end(f"{type(error).__name__}: {error}")
            self._first_question.set()
        self._first_call.set()
        self._first_question.set()

    async def _next(self) -> AnswerRequest | None:
        request = await self._questions.next(self._sleep)
        if elsewhere := self._questions.settled_elsewhere - self._elsewhere:
            self._elsewhere += elsewhere
            self._progress.advance(elsewhere)
        return request

    async def _settle(self, request: AnswerRequest) -> None:
        """Ask one question until it is settled, or failed for this run."""
        try:
            outcome = await self._ask(request)
        except _ClaimLostError:
            self._questions.lost(request)
            return
        if outcome.status.settled:
            self._tally.settled.add(request.digest)
            self._tally.failed.pop(request.digest, None)
            self._progress.advance(cost_usd=outcome.cost_usd)
            return
        if self._stop.is_set():
            return
        await self._questions.release(request)
        logger.warning("%s: task %s is unanswered: %s", self._cell.label, request.task_id, outcome.reason)
        self._end_if_hopeless(outcome)

    async def _ask(self, request: AnswerRequest) -> Outcome:
        """Up to ``attempts`` calls, each kept before the next; the last outcome."""
        started = time.monotonic()
        attempt = 0
        while True:
            attempt += 1
            wish = self._wish(request, attempt)
            permit = await self._queue.permit(wish, self._probe_wish)
            if self._stop.is_set() or not self._questions.holds(request):
                await self._queue.give_back(permit)
                raise AskingEndedError if self._stop.is_set() else _ClaimLostError
            outcome = await self._call(request, wish, permit)
            if not outcome.status.settled:
                self._tally.failed[request.digest] = outcome
            wait = self._terms.retry.wait_s(outcome, attempt, time.monotonic() - started)
            if wait is None:
                return outcome
            await self._sleep(wait)

    async def _probe(self, permit: str) -> None:
        """See whether the provider answers at all; what it says is kept as a call, and is nobody's answer."""
        outcome = await self._call(self._probing, self._probe_wish, permit)
        found = outcome.reason if outcome.status is Status.FAILED_TRANSIENT else "it answers"
        logger.info("%s: probed %s: %s", self._cell.label, self._pace.provider, found)
        # A parameter that it refuses with so few tokens is the probe's alone; whoever refuses is there.
        if outcome.error_class != CONFIGURATION:
            self._end_if_hopeless(outcome)
        if self._asked_all:
            self._queue.end()

    async def _call(self, request: AnswerRequest, wish: Wish, permit: str) -> Outcome:
        """Make the call of a permit and keep what came of it."""
        try:
            outcome = await self._client.call(request.messages, request.parameters)
        except ProviderError as error:  # raised before any request is made
            self._end(f"{type(error).__name__}: {error}")  # before anything is awaited, or another call would begin
            await self._queue.give_back(permit)
            raise
        ended = Ended(permit, self._pace, outcome, outcome.tokens_used)
        await self._writer.write(Entry(Call.of(wish, outcome), outcome.text, ended))
        self._first_call.set()
        self._queue.news()
        self._tally.add(outcome)
        if outcome.error_class == TIMEOUT:
            self._silent_since_timeout = True
        elif outcome.status is not Status.FAILED_TRANSIENT:
            self._silent_since_timeout = False
        return outcome

    def _end_if_hopeless(self, outcome: Outcome) -> None:
        if outcome.status is Status.FAILED_FATAL:
            self._end(outcome.reason)
        elif self._terms.retry.cooling(outcome):
            self._end(f"the provider asks to wait {outcome.retry_after_s:.0f} s ({outcome.error_class})")

    def _end(self, reason: str) -> None:
        if not self._stop.is_set():
            self._tally.stopped = reason
            self._stop.set()
            self._queue.end()
            logger.error("%s: stopped: %s", self._cell.label, reason)

    async def _sleep(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return
        raise AskingEndedError

    def _wish(self, request: AnswerRequest, attempt: int) -> Wish:
        inputs, outputs = most_tokens(request)
        price = self._terms.price
        return Wish(
            request_digest=request.digest,
            attempt=attempt,
            run=self._cell.run,
            provider=self._cell.worker.provider.name,
            worker=self._cell.worker.name,
            benchmark=self._cell.benchmark,
            task_id=request.task_id,
            sample=request.sample,
            epoch=self._cell.epoch,
            tokens=inputs + outputs,
            reserved_usd=None if price is None else cost_usd(price, inputs, outputs),
        )

    def _probe_request(self) -> AnswerRequest:
        worker = self._cell.worker
        parameters = worker.sampling.parameters() | {"max_tokens": min(PROBE_TOKENS, worker.sampling.max_tokens)}
        asked = {"provider": worker.provider.identity(), "model": worker.model, "probe": PROBE_MESSAGES}
        return AnswerRequest("", 0, PROBE_MESSAGES, parameters, digest(asked))
