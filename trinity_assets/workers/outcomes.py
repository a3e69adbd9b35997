"""What came of asking: the statuses, and the reading of a response that arrived without an error.

Two kinds of not-solved are never mixed. A *settled* status is a fact about the worker and is asked once; a *failure*
is a fact about the weather, is never a score, and is asked again. Errors are read in ``provider_errors``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from trinity_assets.texts import encodable
from trinity_assets.workers.redaction import redact


class Status(StrEnum):
    """How a request ended."""

    ANSWERED = "answered"
    NO_ANSWER = "no_answer"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    CONTEXT_EXCEEDED = "context_exceeded"
    TIMED_OUT = "timed_out"
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

    ``text`` is what the model wrote, also when it was cut short; ``model_returned`` and ``fingerprint`` are what the
    provider says that it ran; tokens are None when the provider did not count
    them; ``cost_usd`` is None when unknown and ``cost_source`` says where it comes from (``price``, ``provider``,
    ``rejected``: refused before any token was generated); ``price_version`` says with which price it was computed.
    ``error_class`` names why an outcome is not an answer and ``error`` says it in words, without keys.
    ``retry_after_s`` is what the provider asked for.

    Texts are always encodable: half a surrogate pair, which JSON can carry and no database can keep, becomes U+FFFD.
    """

    status: Status
    text: str | None = None
    finish_reason: str | None = None
    model_returned: str | None = None
    fingerprint: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    cost_source: str | None = None
    price_version: str | None = None
    latency_s: float | None = None
    error_class: str | None = None
    error: str | None = None
    retry_after_s: float | None = None

    @property
    def tokens_used(self) -> int | None:
        """The tokens that the call used; None where nobody said."""
        if self.cost_source == "rejected":
            return 0
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens

    @property
    def reason(self) -> str:
        """Why it is not an answer: the class, and the error in words where there is one."""
        return f"{self.error_class}: {self.error}" if self.error else str(self.error_class)

    def __post_init__(self) -> None:
        for name in ("text", "finish_reason", "model_returned", "fingerprint", "error"):
            value = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, encodable(value))


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


def _reason(choice: _Choice) -> str:
    return f"finish reason {choice.native_finish or choice.finish}"


BROKE_OFF = (
    "error",
    "abort",
    "aborted",
    "cancelled",
    "canceled",
    "timeout",
    "time_limit",
    "network_error",
    "insufficient_system_resource",
    "malformed_response",
)
"""How providers (in lower case) say that they did not finish: SGLang, watsonx, Zhipu, DeepSeek, Gemini, gateways."""

ASKED_FOR_A_TOOL = (
    "tool_calls",
    "function_call",
    "tool_call",
    "tool_use",
    "malformed_function_call",
    "unexpected_tool_call",
    "too_many_tool_calls",
)
"""The model called a tool, in good form or bad, although it was offered none."""

ENDED_WELL = (
    "stop",
    "eos",
    "eos_token",
    "eos_found",
    "end_turn",
    "stop_sequence",
    "stop_token",
    "endoftext",
    "complete",
    "completed",
    "finished",
    "done",
    "succeeded",
)
"""How providers (in lower case) say that the model came to its end by itself."""


def _ended_well(choice: _Choice) -> bool:
    """litellm calls every finish reason that it does not know ``stop``: the provider's own word is the one to trust."""
    return choice.finish in ENDED_WELL and (choice.native_finish or "stop").lower() in ENDED_WELL


RESPONSE_RULES: tuple[ResponseRule, ...] = (
    # litellm maps a generation that broke upstream to "stop" and leaves the error in the provider's own fields.
    ResponseRule(
        Status.FAILED_TRANSIENT,
        "mid_generation_error",
        lambda choice: bool(choice.provider_error),
        lambda choice: str(choice.provider_error),
    ),
    ResponseRule(Status.FAILED_TRANSIENT, "mid_generation_error", _finished(*BROKE_OFF), _reason),
    ResponseRule(Status.REFUSED, "refusal", lambda choice: bool(choice.refusal), lambda choice: choice.refusal),
    ResponseRule(Status.REFUSED, "content_filter", _finished("content_filter", "safety", "refusal")),
    ResponseRule(Status.TRUNCATED, "token_limit", _finished("length", "max_tokens")),
    ResponseRule(Status.NO_ANSWER, "finish_reason", _finished(*ASKED_FOR_A_TOOL), _reason),
    # A word that nobody knows must not become a score, which is for ever; a failure is seen, and can be taught here.
    ResponseRule(
        Status.FAILED_TRANSIENT,
        "unknown_finish_reason",
        lambda choice: not _ended_well(choice),
        lambda choice: f"{_reason(choice)}, which says neither that the answer is whole nor why it is not",
    ),
    ResponseRule(Status.NO_ANSWER, "no_content", lambda choice: not (choice.text or "").strip()),
    ResponseRule(Status.ANSWERED, None, lambda choice: True),
)
"""The first rule that holds decides; the last one always holds."""


def classify_response(response: Any, secrets: Iterable[str] = ()) -> Outcome:
    """Read a litellm ``ModelResponse`` that raised nothing; an HTTP 200 is not yet an answer.

    An empty list of choices is a failure: the protocol promises one choice, and nothing in it says why there is none.
    Usage of zero tokens means that the provider did not count. ``secrets`` appear in no error.
    """
    usage = getattr(response, "usage", None)
    total = getattr(usage, "total_tokens", None)
    seen: dict[str, Any] = {
        "model_returned": getattr(response, "model", None) or None,
        "fingerprint": _fingerprint(getattr(response, "system_fingerprint", None)),
        "input_tokens": _count(getattr(usage, "prompt_tokens", None)) or None,
        "output_tokens": _count(getattr(usage, "completion_tokens", None)) if _count(total) else None,
    }
    if not response.choices:
        return Outcome(Status.FAILED_TRANSIENT, error_class="no_choices", error="the response holds no choices", **seen)
    choice = _choice(response.choices[0])
    rule = next(rule for rule in RESPONSE_RULES if rule.holds(choice))
    error = rule.error(choice)
    return Outcome(
        rule.status,
        text=choice.text,
        finish_reason=choice.finish,
        error_class=rule.error_class,
        error=redact(error, secrets) if error else None,
        **seen,
    )


def _count(tokens: Any) -> int | None:
    """A number of tokens that a database and a bill can hold; anything else a provider sends counts as not counted."""
    return tokens if isinstance(tokens, int) and 0 <= tokens < 1 << 40 else None


def _fingerprint(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _choice(choice: Any) -> _Choice:
    message = choice.message
    own = {
        **(getattr(message, "provider_specific_fields", None) or {}),
        **(getattr(choice, "provider_specific_fields", None) or {}),
    }
    text = message.content
    refusal = getattr(message, "refusal", None) or own.get("refusal")
    return _Choice(
        text=text if isinstance(text, str) else None,
        finish=choice.finish_reason,
        native_finish=str(own["native_finish_reason"]) if own.get("native_finish_reason") else None,
        refusal=str(refusal) if refusal else None,
        provider_error=own.get("error"),
    )
