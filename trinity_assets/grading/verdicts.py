"""The verdict on one completion. It goes into tables that people read, so its words are short and printable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trinity_assets.grading.extraction import MAX_COMPLETION, Extraction
from trinity_assets.texts import printable, quoted

Payload = Mapping[str, Any]

REASON_CHARACTERS = 300
"""Characters of a reason in a solve table."""

"""How a reason quotes an answer."""


@dataclass(frozen=True)
class Verdict:
    """A score in [0, 1], the extraction rule that fired, whether it was ambiguous, and why the task is not solved.

    The reason is made printable and cut here, whoever writes it: it may quote what a model said.
    """

    score: float
    rule: str
    ambiguous: bool
    reason: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", printable(self.reason, REASON_CHARACTERS))


_NOTHING = {
    "empty": "the completion is empty",
    "unclosed_think": "the completion ends within the model's thoughts",
    "no_code": "no program found in the completion",
}
"""Extraction rule -> why nothing was found, where more can be said than that."""


def nothing_found(found: Extraction) -> Verdict:
    """The verdict on a completion without an answer."""
    if found.rule == "too_long":
        reason = f"the completion is longer than the {MAX_COMPLETION:,} characters that are read"
    else:
        reason = _NOTHING.get(found.rule, "no answer found in the completion")
    return Verdict(0.0, found.rule, found.ambiguous, reason)


def compared(solved: bool, found: Extraction, answer: str) -> Verdict:
    """The verdict on an answer that was found and compared with the gold."""
    return Verdict(float(solved), found.rule, found.ambiguous, "" if solved else f"answered {quoted(answer)}")
