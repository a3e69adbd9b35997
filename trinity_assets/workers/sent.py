"""What really goes out: the bodies of HTTP requests as they are sent, and how they differ from what was to be sent."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trinity_assets.spec import canonical_json

CONVERSATION = ("messages", "contents", "system", "system_instruction", "systemInstruction")
"""The fields that carry the conversation, in the protocols that litellm speaks."""


_SEND = "send"


@contextlib.contextmanager
def sent_bodies() -> Iterator[list[dict[str, Any]]]:
    """The JSON bodies that this process sends while the block lasts, in order.

    Seen where all of litellm's asynchronous routes meet, behind whatever renames, drops and adds parameters:
    ``httpx.AsyncClient.send``, which is replaced meanwhile. litellm's own callbacks come too early: what they are shown
    is merged with ``extra_body``, and changed by routes of their own, afterwards.
    """
    import httpx

    send = httpx.AsyncClient.send
    bodies: list[dict[str, Any]] = []

    async def seen(client: httpx.AsyncClient, request: httpx.Request, **options: Any) -> httpx.Response:
        with contextlib.suppress(ValueError):  # a body that is no JSON asks no model
            bodies.append(json.loads(await request.aread()))
        return await send(client, request, **options)

    setattr(httpx.AsyncClient, _SEND, seen)
    try:
        yield bodies
    finally:
        setattr(httpx.AsyncClient, _SEND, send)


def asks(body: Mapping[str, Any], prompt: str) -> bool:
    """Whether ``prompt`` stands in ``body``, whatever protocol that is in; it does not in that of a probe."""
    return json.dumps(prompt)[1:-1] in json.dumps(body)


@dataclass(frozen=True)
class Sent:
    """One body: its ``parameters``, and of the conversation only how many messages and characters it has."""

    parameters: Mapping[str, Any]
    messages: int
    characters: int

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Sent:
        """What ``body`` says."""
        conversation = [body[name] for name in CONVERSATION if name in body]
        turns = [turn for part in conversation for turn in (part if isinstance(part, list) else [part])]
        parameters = {name: value for name, value in body.items() if name not in CONVERSATION}
        return cls(parameters, len(turns), sum(map(_characters, turns)))

    def missing(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """What of ``wanted`` was not sent under its name, or was sent with another value."""
        return {name: value for name, value in wanted.items() if not self._has(name, value)}

    def added(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """What was sent and is not in ``wanted``, or has another value there."""
        return {
            name: value
            for name, value in self.parameters.items()
            if name not in wanted or not self._has(name, wanted[name])
        }

    def _has(self, name: str, value: Any) -> bool:
        return name in self.parameters and canonical_json(self.parameters[name]) == canonical_json(value)


def _characters(turn: Any) -> int:
    """Characters of the texts in one turn of a conversation, whichever protocol it is in."""
    if isinstance(turn, str):
        return len(turn)
    if isinstance(turn, list):
        return sum(map(_characters, turn))
    if isinstance(turn, dict):
        return sum(_characters(turn[name]) for name in ("content", "text", "parts") if name in turn)
    return 0
