"""The program in a completion to a coding task. As ``extraction``, pure functions of text: nothing is executed."""

import re
import warnings

from trinity_assets.grading.extraction import Extraction, readable_text

_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<mark>`{3,}|~{3,})[ \t]*(?P<label>[^\s`]*)[^`\n]*$")
_PYTHON_LABELS = {"", "py", "python", "python3"}
_STATEMENT = re.compile(r"(?:def|async|class|import|from|if|for|while|try|with)\b|@|[A-Za-z_]\w*[ \t]*(?::|=)")
_FUTURE = re.compile(r"^from __future__ import .*\n?", re.MULTILINE)


def extract_code(completion: str, prompt: str, entry_point: str) -> Extraction:
    """The whole program of a completion to a coding task: the prompt (its imports and helpers) with the answer below.

    `fenced`: the last Python block that defines `entry_point` at column 0; `unfenced`: the same in text before the
    first fence; `body`: text that goes on with the prompt's last function; `fenced_other`: a block that defines
    something else. In each the longest span that compiles counts. A prompt that is prose, not Python, is left out.
    Nothing is executed.
    """
    cleaned = readable_text(completion)
    if isinstance(cleaned, Extraction):
        return cleaned
    unfenced, blocks = _split_fences(cleaned)
    definition = re.compile(rf"^(?:async[ \t]+)?def[ \t]+{re.escape(entry_point)}\b", re.MULTILINE)
    defining = [block for block in blocks if definition.search(block)]
    for block in reversed(defining):
        if program := _definition_program(prompt, block, definition):
            return Extraction(program, "fenced", len({block.strip() for block in defining}) > 1)
    if not _opens_indented(unfenced) and (program := _definition_program(prompt, unfenced, definition)):
        return Extraction(program, "unfenced")
    for text in (unfenced, *reversed(blocks)):
        if _opens_indented(text) and (program := _body_program(prompt, text)):
            return Extraction(program, "body")
    for block in reversed(blocks):
        if program := _definition_program(prompt, block, None):
            return Extraction(program, "fenced_other", ambiguous=True)
    # Some clients strip the completion, and with it the first line's indent.
    if program := _body_program(prompt, "    " + unfenced.lstrip()):
        return Extraction(program, "body", ambiguous=True)
    return Extraction(None, "no_code")


def _split_fences(text: str) -> tuple[str, list[str]]:
    """The text before the first fence, and the dedented contents of the Python blocks, closed or not."""
    unfenced: list[str] = []
    blocks: list[str] = []
    current: list[str] | None = None
    opening: re.Match[str] | None = None
    seen_fence = False
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if fence and opening is None:
            seen_fence = True
            opening = fence
            current = [] if fence["label"].lower() in _PYTHON_LABELS else None
        elif fence and opening and fence["mark"].startswith(opening["mark"]) and not fence["label"]:
            blocks += ["\n".join(current)] if current else []
            opening = current = None
        elif opening is None:
            unfenced += [] if seen_fence else [line]
        elif current is not None:
            current.append(line.removeprefix(opening["indent"]))
    blocks += ["\n".join(current)] if current else []
    return "\n".join(unfenced), blocks


def _opens_indented(text: str) -> bool:
    first = next((line for line in text.split("\n") if line.strip()), "")
    return first.startswith((" ", "\t"))


def _definition_program(prompt: str, text: str, definition: re.Pattern[str] | None) -> str | None:
    """The prompt, completed to valid Python, and below it the longest span of `text` that compiles (and defines).

    The later definition wins at run time. A span may start at any statement, so that prose above the code is skipped.
    """
    if _compiles(prompt):
        head = prompt + "\n"
    elif _compiles(prompt + "\n    pass\n"):
        head = prompt + "\n    pass\n\n"
    else:
        head = ""  # prose, as MBPP asks its questions
    lines = text.split("\n")
    for start, line in enumerate(lines):
        if _STATEMENT.match(line):
            span = _longest_compilable("", lines[start:])
            if span and (definition is None or definition.search(span)):
                return _with_future_imports_first(head, span)
    return None


def _body_program(prompt: str, text: str) -> str | None:
    """The prompt and the longest span of `text` that continues it."""
    if not prompt.endswith("\n"):
        prompt += "\n"
    if not _compiles(prompt) and not _compiles(prompt + "    pass\n"):
        return None
    span = _longest_compilable(prompt, text.split("\n"))
    return prompt + span if span else None


def _with_future_imports_first(head: str, span: str) -> str:
    # Python accepts `from __future__` only at the top of a file, where the prompt now stands.
    future = "".join(line.rstrip("\n") + "\n" for line in _FUTURE.findall(span)) if head else ""
    return future + head + (_FUTURE.sub("", span) if future else span)


def _longest_compilable(head: str, lines: list[str]) -> str:
    """The longest run of leading `lines` that compiles below `head`; "" if none does."""
    end = len(lines)
    while end > 0:
        source = "\n".join(lines[:end]) + "\n"
        error_line = _error_line(head + source)
        if error_line is None:
            return source if source.strip() else ""
        # No shorter run that still holds the offending line compiles either: go on just above it.
        end = min(end - 1, error_line - head.count("\n") - 1)
    return ""


def _compiles(source: str) -> bool:
    return _error_line(source) is None


def _error_line(source: str) -> int | None:
    """The 1-based line of the first syntax error, None if there is none; beyond the end where Python does not say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "\d" in a plain string warns, and would print once per graded answer
        try:
            compile(source, "<completion>", "exec", dont_inherit=True)
        except SyntaxError as error:
            return error.lineno or source.count("\n") + 2
        except (ValueError, RecursionError, MemoryError, OverflowError):  # NUL bytes; absurd nesting
            return source.count("\n") + 2
    return None
