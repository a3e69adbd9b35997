"""The verdict on one completion. It goes into tables that people read, so its words are short and printable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trinity_assets.grading.extraction import MAX_COMPLETION, Extraction

Payload = Mapping[str, Any]

REASON_CHARACTERS = 300
"""Characters of a reason in a solve table."""
QUOTED_CHARACTERS = 60
"""Characters of an answer that a reason quotes."""


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
    return Verdict(float(solved), found.rule, found.ambiguous, "" if solved else f"answered {brief(answer)}")


def brief(text: str) -> str:
    """A quotation of at most ``QUOTED_CHARACTERS`` characters."""
    return repr(_cut(text, QUOTED_CHARACTERS))


def printable(text: str, limit: int) -> str:
    """``text`` in one line of at most ``limit`` printable characters; what is not printable is spelled as an escape.

    Lone surrogates cannot be written as UTF-8, and control characters act on the terminal that shows them.
    """
    # Twice the limit is enough to see that something is cut, however the white space folds.
    text = " ".join(text[: 2 * limit].split())
    text = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return _cut(text, limit)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."
