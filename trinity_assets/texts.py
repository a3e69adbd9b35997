"""Texts that can be kept and shown: what UTF-8 can hold, what a terminal can print, and how a message counts.

Belongs here: what a text written by a model or a stranger goes through before a file or a person gets it. Does not
belong here: what any message says.
"""

from __future__ import annotations

import re

QUOTED_CHARACTERS = 60
"""Characters of somebody else's text (an id, an answer, the name of a field) that a message quotes."""


def encodable(text: str) -> str:
    """``text`` with each half of a surrogate pair, which UTF-8 cannot hold, as U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def printable(text: str, limit: int = QUOTED_CHARACTERS) -> str:
    """``text`` in one line of at most ``limit`` printable characters; what is not printable is spelled as an escape.

    Lone surrogates cannot be written as UTF-8, and control characters act on the terminal that shows them.
    """
    # Twice the limit is enough to see that something is cut, however the white space folds.
    text = " ".join(text[: 2 * limit].split())
    return cut(escaped(text), limit)


def escaped(text: str) -> str:
    """``text`` with every character but the end of a line that a terminal would not print spelled as an escape."""
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode() for char in text
    )


def cut(text: str, limit: int = QUOTED_CHARACTERS) -> str:
    """``text``, or as much of its beginning as with "..." has ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def cut_within(text: str, limit: int) -> str:
    """``text`` in one printable line, or its beginning and its end: at most ``limit`` characters."""
    text = " ".join(escaped(" ".join(text.split())).split("\n"))
    if len(text) <= limit:
        return text
    end = (limit - 5) // 2
    return f"{text[: limit - 5 - end].rstrip()} ... {text[-end:].lstrip()}"


def quoted(text: str) -> str:
    """A printable quotation of at most ``QUOTED_CHARACTERS`` characters."""
    return repr(cut(text))


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """``1 row``, ``2 rows``; a noun whose plural is another is given with it."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def in_markdown(text: str) -> str:
    """``text`` as Markdown that shows it as it is, whatever it looks like; an underscore within a word stays plain."""
    return _MARKUP.sub(r"\\\g<0>", text)


_MARKUP = re.compile(r"[\\`*\[\]<>|&~]|(?<![^\W_])_|_(?![^\W_])")
