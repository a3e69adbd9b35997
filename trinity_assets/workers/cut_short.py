"""Settled questions without a whole answer: how many there are, and how many are too many to compare workers by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trinity_assets.workers.outcomes import Status

CUT_SHORT = (Status.TRUNCATED, Status.REFUSED, Status.NO_ANSWER, Status.TIMED_OUT)
"""What a limit, a policy or the provider took from the worker, whatever the worker knew."""

TOO_MANY = 0.1
"""Above this share, what is lost is as large as the differences in solve rate that routers are made for."""


@dataclass(frozen=True)
class CutShort:
    """How many of ``total`` settled questions have which of the statuses in ``CUT_SHORT``."""

    total: int
    counts: dict[str, int]

    @property
    def share(self) -> float:
        """The share of all of them together; 0 of nothing."""
        return sum(self.counts.values()) / self.total if self.total else 0.0

    @property
    def too_many(self) -> bool:
        """Whether that is too many."""
        return self.share > TOO_MANY

    def __str__(self) -> str:
        if not self.counts:
            return f"none of {self.total} was cut short, refused or left without an answer"
        counts = ", ".join(f"{count} {status}" for status, count in self.counts.items())
        found = f"{self.share:.1%} of {self.total} have no whole answer: {counts}"
        advice = f"; above {TOO_MANY:.0%}, raise the worker's max_tokens or timeout_s, or read its scores with care"
        return found + (advice if self.too_many else "")


def cut_short(by_status: Mapping[str, int]) -> CutShort:
    """The count of those among settled questions, given how many have which status."""
    counts = {str(status): by_status[status] for status in CUT_SHORT if by_status.get(status)}
    return CutShort(sum(by_status.values()), counts)
