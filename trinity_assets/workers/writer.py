"""Writing to the ledger beside the event loop: one thread, one commit for whatever has arrived, nothing waits longer.

What arrives was paid for. Where the ledger takes nothing for a moment (another process holds it, the disk is full, the
server restarts) it is tried again; what it does not take for ``PATIENCE_S``, or will never take, goes to files.
A commit that fails for good is made again entry by entry, so that no entry takes another with it.
An awaited :meth:`LedgerWriter.write` returns after the commit, so what a caller counts as done survives ``kill -9``.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Sequence
from typing import Self

from trinity_assets.errors import LedgerError
from trinity_assets.workers.ledger import Entry, Ledger
from trinity_assets.workers.ledger_database import RUN_AGAIN, may_pass
from trinity_assets.workers.rescue import Rescue

logger = logging.getLogger(__name__)

PATIENCE_S = 300.0
"""How long what was paid for waits for a ledger that takes nothing: a backup or a vacuum may take minutes."""

AGAIN_S = 1.0
"""Between two attempts."""

SAY_EVERY_S = 30.0
"""Between two log lines that say that something waits."""

_Pending = tuple[Entry, "asyncio.Future[None]"]


class LedgerWriter:
    """A thread that commits entries in order of arrival. Use within one running event loop::

    async with LedgerWriter(ledger) as writer:
        await writer.write(entry)
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._rescue = Rescue(ledger.database)
        self._arrived: queue.SimpleQueue[_Pending | None] = queue.SimpleQueue()
        self._cancelled = threading.Event()
        self._failing_since: float | None = None
        self._say_at = 0.0
        self._thread = threading.Thread(target=self._run, name="ledger-writer", daemon=True)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Wait until everything that arrived is committed; a collection that is being cancelled tries each once.

        Raises:
            LedgerError: something was not committed, and the error on the way does not say so.
        """
        if isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
            self._cancelled.set()
        self._arrived.put(None)
        await asyncio.shield(asyncio.to_thread(self._thread.join))
        if (error is None or isinstance(error, Exception)) and self._rescue.said not in str(error or ""):
            raise LedgerError(self._told(str(error or self._failed))) from error

    async def write(self, entry: Entry) -> None:
        """Commit ``entry``; a caller that is cancelled meanwhile does not undo it.

        Raises:
            LedgerError: the ledger could not be written; the entry is where the message says.
        """
        committed = self._loop.create_future()
        self._arrived.put((entry, committed))
        await asyncio.shield(committed)

    def _run(self) -> None:
        open_for_more = True
        while open_for_more:
            batch, open_for_more = self._next_batch()
            if not batch:
                continue
            error = self._commit(batch)
            # One entry that cannot be kept must not take the others, which are paid for, with it.
            apart = error is not None and len(batch) > 1 and not _passes(error)
            for group in [[pending] for pending in batch] if apart else [batch]:
                own = self._commit(group, again=True) if apart else error
                told = None if own is None else self._rescued(group, own)
                for _, committed in group:
                    self._loop.call_soon_threadsafe(_resolve, committed, told)

    def _commit(self, batch: Sequence[_Pending], *, again: bool = False) -> Exception | None:
        """Commit ``batch``, again and again while that may help; what it failed with at last, if it did."""
        while True:
            try:
                self._ledger.record_all([entry for entry, _ in batch], again=again)
            except Exception as error:  # every kind belongs to whoever waits for the commit, none to this thread
                if not _passes(error) or not self._is_patient(error, len(batch)):
                    return error
                again = True
            else:
                self._failing_since = None
                return None

    def _is_patient(self, error: Exception, waiting: int) -> bool:
        """Wait for a moment; False when the ledger has taken nothing for so long that nobody waits any longer."""
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = self._say_at = now
        if self._cancelled.is_set() or now - self._failing_since >= PATIENCE_S:
            return False
        if now >= self._say_at:
            self._say_at = now + SAY_EVERY_S
            logger.warning("%d calls that were paid for wait for up to %.0f s: %s", waiting, PATIENCE_S, error)
        self._cancelled.wait(AGAIN_S)
        return True

    def _rescued(self, batch: Sequence[_Pending], error: Exception) -> LedgerError:
        """Put ``batch``, which the ledger does not take, into files; ``error`` with what became of it."""
        self._rescue.keep([entry for entry, _ in batch])
        why = str(error) if isinstance(error, LedgerError) else f"{self._failed}: {error}"
        told = LedgerError(self._told(why))
        told.__cause__ = error
        logger.error("%s", told)
        return told

    @property
    def _failed(self) -> str:
        return f"cannot write the ledger {self._ledger.url}"

    def _told(self, why: str) -> str:
        """``why`` with where the calls are, which are to come in before anything is asked again."""
        return f"{why.removesuffix(RUN_AGAIN)}. {self._rescue.said}"

    def _next_batch(self) -> tuple[list[_Pending], bool]:
        """What has arrived by now, waiting only for the first; and whether more may come."""
        batch: list[_Pending] = []
        pending = self._arrived.get()
        while pending is not None:
            batch.append(pending)
            try:
                pending = self._arrived.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False


def _passes(error: Exception) -> bool:
    return isinstance(error, LedgerError) and may_pass(error)


def _resolve(committed: asyncio.Future[None], error: Exception | None) -> None:
    if committed.done():
        return
    if error is None:
        committed.set_result(None)
    else:
        committed.set_exception(error)
