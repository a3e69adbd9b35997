"""Waiting for permits: first come, first served within one asking, and never on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from trinity_assets.workers.permits import Permits, Wish


class AskingEndedError(Exception):
    """The asking has ended while this question waited; it was not asked (again)."""


class PermitQueue:
    """Hands out the permits of one asking.

    ``probe`` makes the call of a probe's permit and keeps what came of it; ``end`` ends the asking, with the reason.
    """

    def __init__(self, permits: Permits, probe: Callable[[str], Awaitable[None]], end: Callable[[str], None]) -> None:
        self._permits = permits
        self._probe = probe
        self._end = end
        self._queue = asyncio.Lock()
        self._waiting: list[tuple[Wish, asyncio.Future[str]]] = []
        self._news = asyncio.Event()
        self._ended = False

    async def permit(self, wish: Wish, probe: Wish) -> str:
        """Wait until a call may start.

        Raises:
            AskingEndedError: no call may start any more.
            LedgerError: the ledger cannot be written.
        """
        permit: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.append((wish, permit))
        try:
            async with self._queue:
                while not permit.done() and not self._ended:
                    await self._look(probe)
            if permit.done():
                return permit.result()
            raise AskingEndedError
        finally:
            self._waiting = [one for one in self._waiting if one[1] is not permit]

    async def _look(self, probe: Wish) -> None:
        """Ask once for everybody who waits: a transaction each would keep other processes waiting for theirs."""
        self._news.clear()
        waiting = list(self._waiting)
        decision = await asyncio.to_thread(self._permits.take, [wish for wish, _ in waiting], probe)
        for (_, permit), given in zip(waiting, decision.permits, strict=False):  # permits are for the first of them
            if not permit.done():  # cancelled meanwhile
                permit.set_result(given)
        self._waiting = [one for one in self._waiting if not one[1].done()]
        if decision.probe is not None:
            await self._probe(decision.probe)
        elif decision.stop is not None:
            self._end(decision.stop)
        elif not decision.permits:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), decision.wait_s)

    async def give_back(self, permit: str) -> None:
        """No call was made with it."""
        await asyncio.to_thread(self._permits.give_back, permit)

    def news(self) -> None:
        """A call of this asking has ended: what waits may look again."""
        self._news.set()

    def end(self) -> None:
        """Let nobody wait any longer."""
        self._ended = True
        self._news.set()
