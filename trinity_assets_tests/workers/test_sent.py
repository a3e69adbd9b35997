"""What is said to have gone out is what arrived, over every route, and what of the catalog did not arrive is named."""

from __future__ import annotations

from typing import Any

import pytest

from trinity_assets.workers.collection import collect
from trinity_assets.workers.ledger import Ledger
from trinity_assets.workers.sent import Sent, asks, sent_bodies
from trinity_assets.workers.specs import PromptStyle, Sampling
from trinity_assets_tests.scripted_server import ScriptedServer
from trinity_assets_tests.workers.conftest import MakeWorker

SAMPLING = Sampling(max_tokens=16, temperature=0.5, top_p=0.9, seed=7, stop=("#",), extra={"top_k": 3})
WANTED: dict[str, Any] = {
    "model": "plain",
    "max_tokens": 16,
    "temperature": 0.5,
    "top_p": 0.9,
    "seed": 7,
    "stop": ["#"],
    "top_k": 3,
}


@pytest.mark.parametrize(
    ("route", "missing", "added"),
    [
        ("openai", {}, {}),
        ("openrouter", {}, {"usage": {"include": True}}),
        ("nvidia_nim", {}, {}),
        ("mistral", {"seed": 7}, {}),
    ],
)
def test_what_is_seen_is_what_arrives(
    server: ScriptedServer,
    ledger: Ledger,
    make_worker: MakeWorker,
    route: str,
    missing: dict[str, Any],
    added: dict[str, Any],
) -> None:
    worker = make_worker(route=route, sampling=SAMPLING, prompt=PromptStyle(system="Be brief."))
    with sent_bodies() as bodies:
        assert collect(worker, "bench", {"t": "question"}, ledger).complete
    assert bodies == [server.received("plain")[0].body]
    sent = Sent.of(bodies[0])
    assert (sent.messages, sent.characters) == (2, len("Be brief.question"))
    assert (sent.missing(WANTED), sent.added(WANTED)) == (missing, added)
    collect(worker, "bench", {"other": "another question"}, ledger)
    assert len(bodies) == 1  # the block has ended


def test_a_body_asks_its_own_prompt_and_no_other() -> None:
    body = {"contents": [{"parts": [{"text": 'Be brief. "Why",\nhe said, é'}]}]}
    assert asks(body, '"Why",\nhe said, é')
    assert not asks(body, "Reply with OK.")


def test_another_value_is_both_missing_and_added() -> None:
    sent = Sent.of({"messages": [{"role": "user", "content": [{"type": "text", "text": "abc"}]}], "max_tokens": 5})
    assert (sent.messages, sent.characters) == (1, 3)
    assert sent.missing({"max_tokens": 16}) == {"max_tokens": 16}
    assert sent.added({"max_tokens": 16}) == {"max_tokens": 5}


def test_a_system_text_beside_the_messages_counts() -> None:
    sent = Sent.of({"system": "Be brief.", "messages": [{"role": "user", "content": "why"}], "model": "m"})
    assert (sent.parameters, sent.messages, sent.characters) == ({"model": "m"}, 2, 12)
