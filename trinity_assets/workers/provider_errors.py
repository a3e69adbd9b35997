"""What a provider's error means, by its HTTP status and its words, never by its exception class.

Exception classes lie: 402, 403, 409, 413 and 529 arrive as a plain ``APIError``, refused connections and truncated
bodies as status 500, a missing key as status 500, and an exhausted quota as 429 (measured with litellm 1.110).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from trinity_assets.workers.error_classes import CONFIGURATION, RATE_LIMITED, TIMEOUT
from trinity_assets.workers.outcomes import Outcome, Status
from trinity_assets.workers.redaction import redact


@dataclass(frozen=True)
class ErrorRule:
    """An error with one of ``statuses`` (empty: any) whose text matches ``words`` (None: any) is of ``name``.

    ``advice`` is what a person does about it. ``rejected`` errors happen before generation and cost nothing; the
    cost of all others is unknown.
    """

    name: str
    status: Status
    advice: str
    statuses: frozenset[int] = frozenset()
    words: str | None = None
    rejected: bool = False

    def matches(self, code: int | None, text: str) -> bool:
        """True when both the HTTP status and the text fit."""
        return (not self.statuses or code in self.statuses) and (
            self.words is None or re.search(self.words, text, re.IGNORECASE | re.DOTALL) is not None
        )


_WAIT = "run again later; only what is missing is asked"
_CHECK_KEY = "check the provider's key and what it may use, then run again"
_CLIENT_ERRORS = frozenset(range(400, 500))

ERROR_RULES: tuple[ErrorRule, ...] = (
    ErrorRule(
        "context_exceeded",
        Status.CONTEXT_EXCEEDED,
        "a fact about the worker: the prompt does not fit its context",
        statuses=frozenset({400, 413, 422}),
        words=r"context[ _](window|length|size)|maximum context|prompt is too long|input is too long|contextwindow",
        rejected=True,
    ),
    ErrorRule(
        "content_policy",
        Status.REFUSED,
        "a fact about the worker: its provider refuses the prompt",
        statuses=frozenset({400, 403, 422}),
        words=r"content[ _](filter|policy|management policy)|contentpolicy|responsible_?ai|input was flagged",
    ),
    ErrorRule(
        "quota",
        Status.FAILED_FATAL,
        "pay the provider or raise its quota, then run again",
        # Gemini words an ordinary rate limit like an exhausted quota, but says when to come back.
        words=r"insufficient_quota|insufficient (credits|balance|funds)|credit balance|budget has been exceeded"
        r"|exceeded your current quota(?!.*retry in)",
        rejected=True,
    ),
    ErrorRule("quota", Status.FAILED_FATAL, "pay the provider, then run again", frozenset({402}), rejected=True),
    ErrorRule(
        "authentication",
        Status.FAILED_FATAL,
        _CHECK_KEY,
        words=r"missing credentials|api_key client option must be set|no api key|api key is missing",
        rejected=True,
    ),
    ErrorRule(
        "authentication",
        Status.FAILED_FATAL,
        _CHECK_KEY,
        statuses=frozenset({401, 403}),
        rejected=True,
    ),
    ErrorRule(
        "not_found",
        Status.FAILED_FATAL,
        "check the worker's model id and the provider's URL in the catalog",
        statuses=frozenset({404, 405, 410}),
        rejected=True,
    ),
    ErrorRule("request_timeout", Status.FAILED_TRANSIENT, _WAIT, frozenset({408})),
    ErrorRule(
        RATE_LIMITED,
        Status.FAILED_TRANSIENT,
        f"lower the provider's limits or {_WAIT}",
        frozenset({429}),
        rejected=True,
    ),
    ErrorRule(
        RATE_LIMITED,
        Status.FAILED_TRANSIENT,
        "the request is larger than the account's rate limit allows; raise the limit",
        statuses=frozenset({413}),
        words=r"rate.?limit|per minute",
        rejected=True,
    ),
    ErrorRule("conflict", Status.FAILED_TRANSIENT, _WAIT, frozenset({409, 425}), rejected=True),
    ErrorRule(
        "context_exceeded",
        Status.CONTEXT_EXCEEDED,
        "a fact about the worker: its provider takes no request of that size",
        statuses=frozenset({413}),
        rejected=True,
    ),
    ErrorRule(
        CONFIGURATION,
        Status.FAILED_FATAL,
        "the provider refuses a parameter of this worker; correct its sampling in the catalog",
        statuses=_CLIENT_ERRORS,
        rejected=True,
    ),
    ErrorRule("overloaded", Status.FAILED_TRANSIENT, _WAIT, frozenset({503, 529}), rejected=True),
    ErrorRule(
        "bad_response",
        Status.FAILED_TRANSIENT,
        _WAIT,
        # The last is how every fault that Python's json finds in a body ends.
        words=r"invalid response|get json response|no 'choices'|line \d+ column \d+ \(char \d+\)",
    ),
    ErrorRule("connection", Status.FAILED_TRANSIENT, f"check that the provider is up, then {_WAIT}", words=r"connect"),
    ErrorRule("server_error", Status.FAILED_TRANSIENT, _WAIT),
)
"""The first rule that matches decides; the last one always matches."""

ADVICE = {rule.name: rule.advice for rule in reversed(ERROR_RULES)} | {
    TIMEOUT: f"raise the worker's timeout_s, or settle such tasks (settlement: {{timed_out: unsolved}}), or {_WAIT}",
}
"""What to do about each error class, in the words of its first rule."""

_CLASS_NAMES = re.compile(r"^(?:(?:litellm\.)?\w*Error: )+")
"""litellm puts its exception classes, which say nothing true, in front of what the provider said."""

_LIBRARIES = ("litellm", "openai", "httpx", "aiohttp")


def classify_error(error: Exception, secrets: Iterable[str] = ()) -> Outcome:
    """The outcome that ``error`` means; ``secrets`` are not in it.

    Raises:
        Exception: ``error`` itself when no provider can have caused it: that is a bug.
    """
    if isinstance(error, TimeoutError):
        return Outcome(Status.FAILED_TRANSIENT, error_class=TIMEOUT, error="no complete answer within the time limit")
    if not isinstance(error, OSError) and type(error).__module__.split(".")[0] not in _LIBRARIES:
        raise error
    code = getattr(error, "status_code", None)
    said = f"{error} {getattr(error, 'body', None) or ''}"
    rule = next(rule for rule in ERROR_RULES if rule.matches(code, said))
    return Outcome(
        rule.status,
        error_class=rule.name,
        error=redact(_CLASS_NAMES.sub("", str(error)), secrets),
        cost_usd=0.0 if rule.rejected else None,
        cost_source="rejected" if rule.rejected else None,
        retry_after_s=retry_after_s(error),
    )


def retry_after_s(error: Exception) -> float | None:
    """The seconds of a Retry-After header: some providers leave it on the response, others only on litellm's copy."""
    response = getattr(error, "response", None)
    for headers in (getattr(response, "headers", None), getattr(error, "litellm_response_headers", None)):
        value = headers.get("retry-after") if headers else None
        if value is not None:
            return _seconds(value)
    return None


def _seconds(value: Any) -> float | None:
    """Both forms of the header: a number of seconds, or an HTTP date; None for what is neither."""
    try:
        seconds = float(value)
    except ValueError:
        pass
    else:  # Python reads "nan" and "inf" as numbers, too
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    try:
        return max((parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds(), 0.0)
    except (TypeError, ValueError, OverflowError):  # no date, or one that no calendar holds
        return None
