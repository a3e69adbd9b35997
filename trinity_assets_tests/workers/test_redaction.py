from __future__ import annotations

import pytest

from trinity_assets.workers.redaction import MAX_LENGTH, redact


def test_keys_of_the_environment_and_what_looks_like_one_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD_API_KEY", "plainword123")
    said = redact("no plainword123, no sk-abcdef123456, no Bearer abc.def, but task 12")
    assert said == "no [redacted], no [redacted], no [redacted], but task 12"


def test_the_secrets_of_the_caller_are_gone_whatever_they_look_like() -> None:
    assert redact("no plainword123, no other1234", ["plainword123", " other1234\n"]) == "no [redacted], no [redacted]"


def test_a_value_of_the_environment_is_found_without_the_space_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD_API_KEY", " plainword123\n")
    assert redact("no plainword123.") == "no [redacted]."


def test_a_short_value_is_no_secret_or_every_text_would_lose_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD_API_KEY", "none   \n ")
    assert redact("none of this", ["of this"]) == "none of this"


def test_text_is_one_short_line_without_tracebacks() -> None:
    assert redact("bad\n  thing Traceback (most recent call last)\n File x") == "bad thing"
    assert len(redact("x " * MAX_LENGTH)) == MAX_LENGTH


def test_what_a_provider_writes_does_not_act_on_a_terminal() -> None:
    assert redact("\x1b[2J\x1b]0;mine\x07 overloaded") == "\\x1b[2J\\x1b]0;mine\\x07 overloaded"
