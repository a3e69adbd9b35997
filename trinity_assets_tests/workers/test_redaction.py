from __future__ import annotations

import pytest

from trinity_assets.workers.redaction import MAX_LENGTH, redact


def test_keys_of_the_environment_and_what_looks_like_one_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD_API_KEY", "plainword123")
    said = redact("no plainword123, no sk-abcdef123456, no Bearer abc.def, but task 12")
    assert said == "no [redacted], no [redacted], no [redacted], but task 12"


def test_text_is_one_short_line_without_tracebacks() -> None:
    assert redact("bad\n  thing Traceback (most recent call last)\n File x") == "bad thing"
    assert len(redact("x " * MAX_LENGTH)) == MAX_LENGTH
