"""Keeping to a provider's requests and tokens per minute, within this process."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from trinity_assets.workers.specs import Limits, Messages

MINUTE_S = 60.0
CHARACTERS_PER_TOKEN = 3
"""A low guess for English text (about 4), so that a reservation is seldom too small."""


@dataclass
class Reservation:
    """The tokens that one call may use, counted from ``at`` on."""

    at: float
    tokens: int


class Pacer:
    """Hands out turns: evenly spaced by ``rpm``, and with at most ``tpm`` tokens reserved in any minute.

    Even spacing instead of a burst each minute, because a run that is started again knows nothing of the last
    minute. Turns are first come, first served. ``sleep`` may raise to end the waiting.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._interval_s = MINUTE_S / limits.rpm if limits.rpm else 0.0
        self._tpm = limits.tpm
        self._clock = clock
        self._sleep = sleep
        self._queue = asyncio.Lock()
        self._next_at = 0.0
        self._reserved: deque[Reservation] = deque()

    async def turn(self, tokens: int) -> Reservation:
        """Wait until a call of about ``tokens`` tokens may start."""
        async with self._queue:
            while (wait := self._wait_s(tokens)) > 0:
                await self._sleep(wait)
            now = self._clock()
            self._next_at = max(self._next_at, now + self._interval_s)
            reservation = Reservation(now, tokens)
            if self._tpm:
                self._reserved.append(reservation)
            return reservation

    def settle(self, reservation: Reservation, tokens: int | None) -> None:
        """Replace the guess by what the call used, when that is known."""
        if tokens is not None:
            reservation.tokens = tokens

    def pause(self, seconds: float) -> None:
        """No turn for ``seconds``: a provider that sends one call away means all of them."""
        self._next_at = max(self._next_at, self._clock() + seconds)

    def _wait_s(self, tokens: int) -> float:
        now = self._clock()
        wait = self._next_at - now
        if not self._tpm:
            return wait
        while self._reserved and self._reserved[0].at <= now - MINUTE_S:
            self._reserved.popleft()
        used = sum(reservation.tokens for reservation in self._reserved)
        # A call above the limit on its own goes once the minute is empty; the provider has the last word on it.
        if self._reserved and used + tokens > self._tpm:
            wait = max(wait, self._reserved[0].at + MINUTE_S - now)
        return wait


def estimated_tokens(messages: Messages, max_tokens: int) -> int:
    """How many tokens a call may use: a guess for the prompt plus the whole generation."""
    return sum(len(message["content"]) for message in messages) // CHARACTERS_PER_TOKEN + max_tokens
