"""Writing to the ledger beside the event loop: one thread, one commit for whatever has arrived, nothing waits longer.

A commit that fails is made again entry by entry, so that only what cannot be kept is lost.
An awaited :meth:`LedgerWriter.write` returns after the commit, so what a caller counts as done survives ``kill -9``.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Sequence
from typing import Self

from trinity_assets.workers.ledger import Entry, Ledger

_Pending = tuple[Entry, "asyncio.Future[None]"]


class LedgerWriter:
    """A thread that commits entries in order of arrival. Use within one running event loop::

    async with LedgerWriter(ledger) as writer:
        await writer.write(entry)
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._arrived: queue.SimpleQueue[_Pending | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ledger-writer", daemon=True)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Wait until everything that arrived is committed, also when the collection is being cancelled."""
        self._arrived.put(None)
        await asyncio.shield(asyncio.to_thread(self._thread.join))

    async def write(self, entry: Entry) -> None:
        """Commit ``entry``; a caller that is cancelled meanwhile does not undo it.

        Raises:
            LedgerError: the ledger could not be written.
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
            for pending in batch:
                # One entry that cannot be kept must not take the others, which are paid for, with it.
                own = self._commit([pending]) if error and len(batch) > 1 else error
                self._loop.call_soon_threadsafe(_resolve, pending[1], own)

    def _commit(self, batch: Sequence[_Pending]) -> Exception | None:
        try:
            self._ledger.record_all([entry for entry, _ in batch])
        except Exception as error:  # every kind belongs to whoever waits for the commit, none to this thread
            return error
        return None

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


def _resolve(committed: asyncio.Future[None], error: Exception | None) -> None:
    if committed.done():
        return
    if error is None:
        committed.set_result(None)
    else:
        committed.set_exception(error)
