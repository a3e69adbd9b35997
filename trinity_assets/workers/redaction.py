"""Keys never reach a log, a message or the ledger: error texts of providers like to quote them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from urllib.parse import unquote

from trinity_assets.home import LEDGER_VARIABLE
from trinity_assets.texts import encodable, escaped

MAX_LENGTH = 500
"""Characters kept of an error text; providers answer with whole web pages and tracebacks."""

MARK = "[redacted]"
_SECRET_NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")
_SHORTEST_SECRET = 8
"""Characters; what is shorter is no key, and would take words out of every text."""
_IN_A_URL = re.compile(r"(?<=://)([^\s/:@]*):[^\s@]*@")
_LOOKS_SECRET = re.compile(r"\b(?:sk|pk|nvapi|gsk|xai|hf|r8|key)[-_][A-Za-z0-9_\-*.]{6,}|(?i:\bbearer\s+)[^\s\"',]+")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """``text`` on one line, at most ``MAX_LENGTH`` characters, without tracebacks and without anything like a key.

    What a terminal would act on is spelled as an escape.

    A key is any of ``secrets``, the value of an environment variable whose name ends in KEY, TOKEN, SECRET or PASSWORD,
    the password in ``TRINITY_LEDGER_URL``, or what looks like a key (``sk-...``, ``Bearer ...``, ``//user:...@host``).
    """
    text = without_secrets(text.split("Traceback (most recent call last)")[0], secrets)
    text = _IN_A_URL.sub(rf"\1:{MARK}@", text)
    text = escaped(encodable(" ".join(_LOOKS_SECRET.sub(MARK, text).split())))
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + "…"


def without_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """``text`` as it is, but for ``secrets`` and for what the environment holds under the names of secrets."""
    for secret in _longest_first([*secrets, *_environment()]):
        text = text.replace(secret, MARK)
    return text


def _environment() -> list[str]:
    named = [value for name, value in os.environ.items() if _SECRET_NAMES.search(name)]
    return [*named, *_ledger_passwords()]


def _ledger_passwords() -> list[str]:
    """As it stands in the URL and as it is sent."""
    found = re.search(r"://[^/:@]*:([^@]+)@", os.environ.get(LEDGER_VARIABLE, ""))
    return [found[1], unquote(found[1])] if found else []


def _longest_first(secrets: Iterable[str]) -> list[str]:
    """So that no secret survives in part because it contains another."""
    values = {secret.strip() for secret in secrets}
    return sorted((value for value in values if len(value) >= _SHORTEST_SECRET), key=len, reverse=True)
