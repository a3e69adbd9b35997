"""When to make a failed call again. The only retries there are: litellm's and the SDKs' own are switched off."""

from __future__ import annotations

import random
from dataclasses import dataclass

from trinity_assets.workers.error_classes import TIMEOUT
from trinity_assets.workers.outcomes import Outcome, Status


@dataclass(frozen=True)
class RetryPolicy:
    """At most ``attempts`` calls for one question, none started later than ``deadline_s`` after the first.

    Waits are exponential with full jitter, uniform in [0, min(``cap_s``, ``base_s`` * 2^k)] (Brooker, "Exponential
    backoff and jitter", 2015), and never shorter than a Retry-After. One above ``retry_after_cap_s`` means that the
    provider is cooling: waiting is the next run's business. A call that ran into the worker's time limit is made
    ``timeout_attempts`` times: it may be paid for each time, and a model that is too slow once is so again.

    After ``open_after`` failed calls in a row a provider is only probed, ``probes`` times at growing distances, and
    then given up. So is one that answers the probes while the questions go on failing.
    """

    attempts: int = 5
    deadline_s: float = 240.0
    base_s: float = 1.0
    cap_s: float = 30.0
    retry_after_cap_s: float = 60.0
    timeout_attempts: int = 2
    open_after: int = 5
    probes: int = 6

    def cooling(self, outcome: Outcome) -> bool:
        """True when the provider asks for a longer rest than a run waits."""
        return outcome.retry_after_s is not None and outcome.retry_after_s > self.retry_after_cap_s

    def wait_s(self, outcome: Outcome, attempt: int, elapsed_s: float) -> float | None:
        """Seconds until the next call after ``outcome`` of call number ``attempt``, or None when it was the last."""
        attempts = min(self.attempts, self.timeout_attempts) if outcome.error_class == TIMEOUT else self.attempts
        if outcome.status is not Status.FAILED_TRANSIENT or attempt >= attempts or self.cooling(outcome):
            return None
        jitter = random.uniform(0, min(self.cap_s, self.base_s * 2 ** (attempt - 1)))  # noqa: S311 - jitter is no secret
        wait = jitter + (outcome.retry_after_s or 0.0)
        return wait if elapsed_s + wait <= self.deadline_s else None

    def probe_wait_s(self, failed: int) -> float:
        """Seconds from the last failed call to the next probe when ``failed`` probes were in vain."""
        return min(self.cap_s, self.base_s * 2**failed)
