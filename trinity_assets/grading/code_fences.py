"""Where the program stands in a completion to a coding task: Markdown's blocks, its quotations, Python's prompts.

What is a program is for ``code_extraction`` to say.
"""

import re
from typing import NamedTuple

_FENCE_LINE = re.compile(r"((?:[ \t]*+>(?!>))*+[ \t]*+)(`{3,}|~{3,})([^`]*)")
_PYTHON_LABELS = {"", "py", "python", "python3", "ipython", "ipython3", "python-repl", "pycon"}


def unquoted(text: str) -> str:
    """A text without the mark of Markdown's quotations, where every line has it."""
    lines = text.split("\n")
    if not all(line.startswith(">") and not line.startswith(">>") for line in lines if line.strip()):
        return text
    return "\n".join(line.removeprefix(">").removeprefix(" ") for line in lines)


def without_prompts(text: str) -> str:
    """What was typed in a session at Python's prompt, without what it printed; any other text as it is."""
    if not text.lstrip("\n").startswith(">>> "):
        return text
    return "\n".join(line[4:] for line in text.split("\n") if line.startswith((">>>", "...")))


_QUOTES = re.compile(r"\"\"\"|'''|#.*|\"(?:\\.|[^\"\\])*+\"|'(?:\\.|[^'\\])*+'|\\.")


def _open_string(line: str, quotes: str) -> str:
    """The triple quotes in whose string a line of Python ends, given those in whose string it begins; "" for none."""
    place = 0
    while True:
        if quotes:
            if (end := line.find(quotes, place)) < 0:
                return quotes
            place, quotes = end + 3, ""
        match = next((m for m in _QUOTES.finditer(line, place) if m[0] in ('"""', "'''")), None)
        if match is None:
            return ""
        place, quotes = match.end(), match[0]


def split_fences(text: str, *, strings: bool = True) -> tuple[str, list[str]]:
    """The text before the first fence, and the dedented contents of the Python blocks, closed or not.

    With ``strings``, a fence within a docstring closes nothing, unless that leaves a block open to the end.
    """
    unfenced: list[str] = []
    blocks: list[str] = []
    current: list[str] | None = None
    opening: _Fence | None = None
    seen_fence = fence_in_string = False
    quotes = ""
    for line in text.split("\n"):
        fence = _fence(line)
        if fence and opening is None:
            seen_fence = True
            opening = fence
            current = [] if fence.is_python else None
            quotes, fence_in_string = "", False
        elif fence and opening and fence.mark.startswith(opening.mark) and not fence.label and not quotes:
            blocks += [_contents(current, opening)] if current else []
            opening = current = None
        elif opening is None:
            unfenced += [] if seen_fence else [line]
        elif current is not None:
            fence_in_string |= fence is not None and not fence.label
            current.append(line)
            quotes = _open_string(line, quotes) if strings else ""
    if opening and current and fence_in_string and strings:
        return split_fences(text, strings=False)
    blocks += [_contents(current, opening)] if opening and current else []
    return "\n".join(unfenced), blocks


class _Fence(NamedTuple):
    """A line that opens or closes a block: its indent, the run of backticks or tildes, and the language's label."""

    indent: str
    mark: str
    label: str

    @property
    def is_python(self) -> bool:
        """Whether a block that this opens may hold Python; Pandoc writes its labels as `{.python}`."""
        return self.label.lower().strip("{.}") in _PYTHON_LABELS


def _fence(line: str) -> _Fence | None:
    match = _FENCE_LINE.match(line)
    if match is None or match.end() < len(line):  # a backtick further right: code within a line of text
        return None
    indent, mark, rest = match.groups()
    return _Fence(indent, mark, (rest.split(maxsplit=1) or [""])[0])


def _contents(lines: list[str], opening: _Fence) -> str:
    """A block without the indent, or the mark of a quotation, that its lines share with the fence above it."""
    indent = opening.indent
    if not all(line.startswith(indent) or not line.strip(" \t>") for line in lines):
        return "\n".join(lines)
    return "\n".join(line.removeprefix(indent) if line.startswith(indent) else "" for line in lines)
