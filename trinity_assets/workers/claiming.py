"""The questions of one asking, claimed batch by batch; what another process asks is waited for, never asked twice."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Self

from trinity_assets.errors import LedgerError
from trinity_assets.workers.claims import CLAIMED_AT_ONCE, Claimed, Claims
from trinity_assets.workers.requests import AnswerRequest

logger = logging.getLogger(__name__)

SAY_EVERY_S = 30.0
"""Between two log lines that say who is waited for."""

RENEW_AGAIN_S = 1.0
"""After a renewal that failed."""


class Leases:
    """Renews claims from a thread of its own, so that no busy event loop lets them expire, and knows which are held.

    A clock on this side counts, too: what could not be renewed in time is not held any more, whatever the ledger says.
    """

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self._held_until: dict[str, float] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ledger-leases", daemon=True)

    def start(self) -> None:
        """Begin to renew."""
        self._thread.start()

    def stop(self) -> None:
        """Give up every claim; the ledger may keep those it cannot delete until they expire."""
        self._stop.set()
        self._thread.join()
        try:
            self._claims.end()
        except LedgerError as error:
            logger.warning("%s", error)

    def claim(self, digests: Iterable[str]) -> Claimed:
        """Claim ``digests``; what comes as ``mine`` is held."""
        until = time.monotonic() + self._claims.lease.seconds
        claimed = self._claims.claim(list(digests))
        with self._lock:
            self._held_until.update(dict.fromkeys(claimed.mine, until))
        return claimed

    def holds(self, digest: str) -> bool:
        """True while nobody else may ask ``digest``."""
        with self._lock:
            return time.monotonic() < self._held_until.get(digest, 0.0)

    def release(self, digest: str) -> None:
        """Let others ask ``digest``."""
        with self._lock:
            self._held_until.pop(digest, None)
        self._claims.release([digest])

    def _run(self) -> None:
        lease = self._claims.lease
        wait = lease.renew_every_s
        while not self._stop.wait(wait):
            started = time.monotonic()
            with self._lock:
                before = set(self._held_until)
            try:
                held = self._claims.renew()
            except LedgerError as error:
                logger.warning("%s", error)
                wait = min(RENEW_AGAIN_S, lease.renew_every_s)
                continue
            wait = lease.renew_every_s
            with self._lock:
                for digest in before & set(self._held_until):
                    if digest in held:
                        self._held_until[digest] = started + lease.seconds
                    else:
                        del self._held_until[digest]


class Questions:
    """Hands out the questions of ``requests`` that are this process's to ask. Use as an async context manager.

    Leaving it gives the claims up, so the answers must be committed by then.
    """

    def __init__(self, label: str, requests: Sequence[AnswerRequest], claims: Claims) -> None:
        self._label = label
        self._lease = claims.lease
        self._leases = Leases(claims)
        self._unclaimed = deque(requests)
        self._mine: deque[AnswerRequest] = deque()
        self._theirs: dict[str, AnswerRequest] = {}
        self._turn = asyncio.Lock()
        self._say_at = 0.0
        self.settled_elsewhere = 0

    async def __aenter__(self) -> Self:
        self._leases.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await asyncio.shield(asyncio.to_thread(self._leases.stop))

    async def next(self, sleep: Callable[[float], Awaitable[None]]) -> AnswerRequest | None:
        """The next question to ask, or None when all are asked here or settled elsewhere.

        Waits, with ``sleep``, which may raise to end it, while all that is left is being asked by others.

        Raises:
            LedgerError: the ledger cannot be read or written.
        """
        async with self._turn:
            wait = self._lease.look_first_s
            while not self._mine:
                batch = self._batch()
                if not batch:
                    return None
                claimed = await asyncio.to_thread(self._leases.claim, [request.digest for request in batch])
                self._sort(batch, claimed)
                if claimed.settled:
                    wait = self._lease.look_first_s
                elif not self._mine and not self._unclaimed:
                    self._say(claimed)
                    await sleep(wait)
                    wait = min(2 * wait, self._lease.look_every_s)
            return self._mine.popleft()

    def holds(self, request: AnswerRequest) -> bool:
        """True while nobody else may ask it."""
        return self._leases.holds(request.digest)

    async def release(self, request: AnswerRequest) -> None:
        """Let others ask what failed here.

        Raises:
            LedgerError: the ledger cannot be written.
        """
        await asyncio.to_thread(self._leases.release, request.digest)

    def lost(self, request: AnswerRequest) -> None:
        """Its lease could not be renewed in time, so another may be asking it: wait for that one."""
        self._theirs[request.digest] = request

    def _batch(self) -> list[AnswerRequest]:
        if self._unclaimed:
            return [self._unclaimed.popleft() for _ in range(min(CLAIMED_AT_ONCE, len(self._unclaimed)))]
        first = list(itertools.islice(self._theirs, CLAIMED_AT_ONCE))
        return [self._theirs.pop(digest) for digest in first]

    def _sort(self, batch: Sequence[AnswerRequest], claimed: Claimed) -> None:
        self._mine.extend(request for request in batch if request.digest in claimed.mine)
        self._theirs.update({request.digest: request for request in batch if request.digest in claimed.theirs})
        self.settled_elsewhere += len(claimed.settled)

    def _say(self, claimed: Claimed) -> None:
        now = time.monotonic()
        if now >= self._say_at:
            self._say_at = now + SAY_EVERY_S
            asking = ", ".join(sorted(claimed.holders)) or "another process"
            logger.info("%s: waiting for %d answers that %s is asking for", self._label, len(self._theirs), asking)
