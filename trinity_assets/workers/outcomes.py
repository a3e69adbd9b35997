"""What came of asking: the statuses, and the reading of a response that arrived without an error.

Two kinds of not-solved are never mixed. A *settled* status is a fact about the worker and is asked once; a *failure*
is a fact about the weather, is never a score, and is asked again. Errors are read in ``provider_errors``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from trinity_assets.workers.redaction import redact


class Status(StrEnum):
    """How a request ended."""

    ANSWERED = "answered"
    NO_ANSWER = "no_answer"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    CONTEXT_EXCEEDED = "context_exceeded"
    FAILED_TRANSIENT = "failed_transient"
    FAILED_FATAL = "failed_fatal"

    @property
    def settled(self) -> bool:
        """True for facts about the worker, false for failures."""
        return self in SETTLED


FAILURES = frozenset({Status.FAILED_TRANSIENT, Status.FAILED_FATAL})
SETTLED = frozenset(Status) - FAILURES


@dataclass(frozen=True)
class Outcome:
    """The result of one call.

    ``text`` is what the model wrote, also when it was cut short; tokens are None when the provider did not count
    them; ``cost_usd`` is None when unknown and ``cost_source`` says where it comes from (``price``, ``provider``,
    ``rejected``: refused before any token was generated). ``error_class`` names why an outcome is not an answer and
    ``error`` says it in words, without keys. ``retry_after_s`` is what the provider asked for.
    """

    status: Status
    text: str | None = None
    finish_reason: str | None = None
    model_returned: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    cost_source: str | None = None
    latency_s: float | None = None
    error_class: str | None = None
    error: str | None = None
    retry_after_s: float | None = None


@dataclass(frozen=True)
class _Choice:
    """The fields of a response's first choice that decide, whichever provider they come from."""

    text: str | None
    finish: str | None
    native_finish: str | None
    refusal: str | None
    provider_error: Any


@dataclass(frozen=True)
class ResponseRule:
    """A response for which ``holds`` is true has ``status``; ``error_class`` and ``error`` say why."""

    status: Status
    error_class: str | None
    holds: Callable[[_Choice], bool]
    error: Callable[[_Choice], str | None] = lambda choice: None


def _finished(*names: str) -> Callable[[_Choice], bool]:
    """The finish reason, as litellm or as the provider itself names it, is one of ``names``."""
    return lambda choice: choice.finish in names or (choice.native_finish or "").lower() in names


RESPONSE_RULES: tuple[ResponseRule, ...] = (
    # litellm maps a generation that broke upstream to "stop" and leaves the error in the provider's own fields.
    ResponseRule(
        Status.FAILED_TRANSIENT,
        "mid_generation_error",
        lambda choice: bool(choice.provider_error) or _finished("error")(choice),
        lambda choice: redact(str(choice.provider_error)) if choice.provider_error else "finish reason error",
    ),
    ResponseRule(
        Status.REFUSED,
        "refusal",
        lambda choice: bool(choice.refusal),
        lambda choice: redact(choice.refusal or ""),
    ),
    ResponseRule(Status.REFUSED, "content_filter", _finished("content_filter", "safety", "refusal")),
    ResponseRule(Status.TRUNCATED, "token_limit", _finished("length", "max_tokens")),
    ResponseRule(Status.NO_ANSWER, "no_content", lambda choice: not (choice.text or "").strip()),
    ResponseRule(Status.ANSWERED, None, _finished("stop", "eos")),
    ResponseRule(
        Status.NO_ANSWER,
        "finish_reason",
        lambda choice: True,
        lambda choice: f"finish reason {choice.finish}",
    ),
)
"""The first rule that holds decides; the last one always holds."""


def classify_response(response: Any) -> Outcome:
    """Read a litellm ``ModelResponse`` that raised nothing; an HTTP 200 is not yet an answer.

    An empty list of choices is ``no_answer``: the provider completed the request and had nothing to say. Usage of
    zero tokens means that the provider did not count.
    """
    usage = getattr(response, "usage", None)
    seen: dict[str, Any] = {
        "model_returned": getattr(response, "model", None) or None,
        "input_tokens": getattr(usage, "prompt_tokens", None) or None,
        "output_tokens": getattr(usage, "completion_tokens", None) if getattr(usage, "total_tokens", None) else None,
    }
    if not response.choices:
        return Outcome(Status.NO_ANSWER, error_class="no_choices", error="the response holds no choices", **seen)
    choice = _choice(response.choices[0])
    rule = next(rule for rule in RESPONSE_RULES if rule.holds(choice))
    return Outcome(
        rule.status,
        text=choice.text,
        finish_reason=choice.finish,
        error_class=rule.error_class,
        error=rule.error(choice),
        **seen,
    )


def _choice(choice: Any) -> _Choice:
    message = choice.message
    own = {
        **(getattr(message, "provider_specific_fields", None) or {}),
        **(getattr(choice, "provider_specific_fields", None) or {}),
    }
    text = message.content
    return _Choice(
        text=text if isinstance(text, str) else None,
        finish=choice.finish_reason,
        native_finish=str(own["native_finish_reason"]) if own.get("native_finish_reason") else None,
        refusal=getattr(message, "refusal", None) or own.get("refusal"),
        provider_error=own.get("error"),
    )
