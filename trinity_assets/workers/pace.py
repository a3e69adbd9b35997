"""How fast a worker is asked: the limits of its provider and its own, and the tokens of the last minute."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trinity_assets.workers.retrying import RetryPolicy
from trinity_assets.workers.scopes import Scope
from trinity_assets.workers.specs import MINUTE_S, Limits, WorkerLimits


@dataclass(frozen=True)
class Pace:
    """Who is asked, how fast, and how much failure is borne.

    ``provider`` and ``worker`` are the names under which calls are counted together; ``timeout_s`` is how long a call
    lasts at most.
    """

    provider: str
    worker: str
    provider_limits: Limits
    worker_limits: WorkerLimits
    timeout_s: float
    retry: RetryPolicy

    @property
    def concurrency(self) -> int:
        """How many calls of the worker may be under way when nothing speaks against it."""
        return self.worker_limits.within(self.provider_limits).concurrency

    @property
    def counts_tokens(self) -> bool:
        """Whether what a call used counts for a minute after it began."""
        return self.provider_limits.tpm is not None or self.worker_limits.tpm is not None

    def level(self, worker: Scope, under_way: int, now: float) -> float:
        """How many calls of the worker may be under way now; what was learned more than a minute ago is forgotten."""
        if worker.level is None or (not under_way and worker.touched_at <= now - MINUTE_S):
            return float(self.concurrency)
        return min(worker.level, float(self.concurrency))

    def started(self, provider: Scope, worker: Scope, now: float) -> None:
        """Learn that a call starts now. Evenly spaced, since a burst at the start of a minute is what gets refused."""
        for scope, rpm in ((provider, self.provider_limits.rpm), (worker, self.worker_limits.rpm)):
            if rpm is not None:
                scope.next_at = now + max(self.pause_s(scope, now), MINUTE_S / rpm)

    def pause_s(self, scope: Scope, now: float) -> float:
        """Until the next call of ``scope`` may start; 0 or less is now.

        A longer pause than any that is ever set is a mistaken clock's.
        """
        longest = max(MINUTE_S, self.retry.retry_after_cap_s)
        pause = scope.next_at - now
        return pause if pause <= longest else 0.0


@dataclass(frozen=True)
class LastMinute:
    """At most ``tpm`` tokens in any minute; those used in the last one, and when the oldest call of it began."""

    tpm: int
    tokens: int
    oldest: float | None

    def wait_s(self, tokens: int, now: float) -> float:
        """Until there is room for so many more."""
        # A call above the limit on its own goes once the minute is empty; the provider has the last word on it.
        if self.oldest is None or self.tokens + tokens <= self.tpm:
            return 0.0
        return self.oldest + MINUTE_S - now

    def with_one_more(self, tokens: int, now: float) -> LastMinute:
        """The same after a call that begins now."""
        return replace(self, tokens=self.tokens + tokens, oldest=now if self.oldest is None else self.oldest)
