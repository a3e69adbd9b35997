"""The program in a completion to a coding task. As ``extraction``, pure functions of text: nothing is executed."""

import re
import warnings
from typing import NamedTuple

from trinity_assets.grading.extraction import Extraction, readable_text

MAX_PROGRAM_TEXT = 1 << 18
"""Longer answers, in characters after cleaning, are not searched for a program: compiling takes memory many times the
text's length."""

_FENCE_LINE = re.compile(r"([ \t]*)(`{3,}|~{3,})([^`]*)")
_PYTHON_LABELS = {"", "py", "python", "python3"}
_STATEMENT = re.compile(r"(?:def|async|class|import|from|if|for|while|try|with)\b|@|[A-Za-z_]\w*[ \t]*(?::|=)")
_FUTURE = re.compile(r"^from __future__ import .*\n?", re.MULTILINE)


def extract_code(completion: str, prompt: str, entry_point: str) -> Extraction:
    """The whole program of a completion to a coding task: the prompt (its imports and helpers) with the answer below.

    `fenced`: the last Python block that defines `entry_point` at column 0; `unfenced`: the same in text before the
    first fence; `body`: text that goes on with the prompt's last function; `fenced_other`: a block that defines
    something else. In each the longest span that compiles counts. A prompt that is prose, not Python, is left out.
    Nothing is executed. `over_budget`: no program was found with work in proportion to the text, which happens only to
    text written to that end; `program_too_long`: the answer is longer than ``MAX_PROGRAM_TEXT``.
    """
    cleaned = readable_text(completion)
    if isinstance(cleaned, Extraction):
        return cleaned
    if len(cleaned) > MAX_PROGRAM_TEXT:
        return Extraction(None, "program_too_long")
    definition = re.compile(rf"^(?:async[ \t]+)?def[ \t]+{re.escape(entry_point)}\b", re.MULTILINE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "\d" in a plain string warns, and would print once per graded answer
        try:
            return _Search(cleaned, prompt, definition).find()
        except _OverBudgetError:
            return Extraction(None, "over_budget", ambiguous=True)


def completed_prompt(prompt: str) -> str:
    """The prompt of a coding task as Python that compiles, its last function completed.

    Empty where it is prose, as MBPP asks its questions.
    """
    endings = ("\n", "\n    pass\n\n")
    compiler = _Compiler(sum(len(prompt + ending) for ending in endings))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as above: about the benchmark's own text
        return next((prompt + ending for ending in endings if compiler.error(prompt + ending) is None), "")


class _Search:
    """One search for a program, with a budget of characters to compile."""

    def __init__(self, text: str, prompt: str, definition: re.Pattern[str]) -> None:
        # The recorded answers to HumanEval take up to 4.6 times this length, and half of them less than once.
        self.compiler = _Compiler(16 * (len(text) + len(prompt)) + (1 << 19))
        self.prompt = prompt
        self.definition = definition
        self.unfenced, self.blocks = _split_fences(text)
        self.head = completed_prompt(prompt)

    def find(self) -> Extraction:
        """The program by the first rule of ``extract_code`` that gives one.

        Raises:
            _OverBudgetError: none was found for the budget.
        """
        unfenced, blocks = self.unfenced, self.blocks
        defining = [block for block in blocks if self.definition.search(block)]
        for block in reversed(defining):
            if program := self._definition_program(block, self.definition):
                return Extraction(program, "fenced", len({block.strip() for block in defining}) > 1)
        if not _opens_indented(unfenced) and (program := self._definition_program(unfenced, self.definition)):
            return Extraction(program, "unfenced")
        for text in (unfenced, *reversed(blocks)):
            if _opens_indented(text) and (program := self._body_program(text)):
                return Extraction(program, "body")
        for block in reversed(blocks):
            if program := self._definition_program(block, None):
                return Extraction(program, "fenced_other", ambiguous=True)
        # Some clients strip the completion, and with it the first line's indent.
        if program := self._body_program("    " + unfenced.lstrip()):
            return Extraction(program, "body", ambiguous=True)
        return Extraction(None, "no_code")

    def _definition_program(self, text: str, definition: re.Pattern[str] | None) -> str | None:
        """The prompt and below it the longest span of `text` that compiles (and defines); the later definition wins.

        A span may start at any statement, so that prose above the code is skipped.
        """
        lines = text.split("\n")
        last = max(
            (number for number, line in enumerate(lines) if definition is None or definition.match(line)), default=-1
        )
        start = 0
        while start <= last:  # no span from below the last definition holds one
            end = start
            if _STATEMENT.match(lines[start]):
                end = self._longest_compilable("", lines, start)
                span = _joined(lines[start:end])
                if span.strip() and (definition is None or definition.search(span)):
                    return _with_future_imports_first(self.head, span)
            # A later statement of the same span would meet the same end.
            start = max(end, start + 1)
        return None

    def _body_program(self, text: str) -> str | None:
        """The prompt and the longest span of `text` that continues it."""
        if not self.head:
            return None
        head = self.prompt if self.prompt.endswith("\n") else self.prompt + "\n"
        lines = text.split("\n")
        span = _joined(lines[: self._longest_compilable(head, lines, 0)])
        return head + span if span.strip() else None

    def _longest_compilable(self, head: str, lines: list[str], start: int) -> int:
        """The end of the longest run of lines from `start` that compiles below `head`; `start` if none does."""
        end = self._first_error(head, lines, start)
        while end > start:
            error = self.compiler.error(head + _joined(lines[start:end]))
            if error is None:
                return end
            # No shorter run that still holds the offending line compiles either: go on just above it.
            end = min(end - 1, start + error.line - head.count("\n") - 1)
        return start

    def _first_error(self, head: str, lines: list[str], start: int) -> int:
        """The first line from `start` that cannot follow those above it, whatever comes below; the end if all can.

        Windows that grow find it with work in proportion to what stands above it, not to all that stands below.
        """
        size = 1
        while start + size < len(lines):
            error = self.compiler.error(head + _joined(lines[start : start + size]), may_go_on=True)
            if error and not error.at_end:
                return max(start, start + error.line - head.count("\n") - 1)
            size *= 4
        return len(lines)


class _CompileError(NamedTuple):
    """The 1-based line of the first syntax error, beyond the end where Python does not say; whether more could help."""

    line: int
    at_end: bool


class _OverBudgetError(Exception):
    """The budget is spent."""


class _Compiler:
    """Python's own word on where a program goes wrong, for a budget of characters."""

    # CPython's flag by which its prompt asks whether more lines could complete a program (``codeop``).
    _ALLOW_INCOMPLETE_INPUT = 0x4000

    def __init__(self, characters: int) -> None:
        self._characters = characters

    def error(self, source: str, *, may_go_on: bool = False) -> _CompileError | None:
        """The first syntax error of ``source``, None where it compiles; its length is taken from the budget.

        ``may_go_on`` also tells whether lines below could mend it (``at_end``).

        Raises:
            _OverBudgetError: the budget does not suffice.
        """
        self._characters -= len(source)
        if self._characters < 0:
            raise _OverBudgetError
        flags = self._ALLOW_INCOMPLETE_INPUT if may_go_on else 0
        beyond = source.count("\n") + 2
        try:
            compile(source, "<completion>", "exec", flags, dont_inherit=True)
        except SyntaxError as error:
            return _CompileError(error.lineno or beyond, error.msg == "incomplete input")
        except (ValueError, RecursionError, MemoryError, OverflowError):  # NUL bytes, surrogates; absurd nesting
            return _CompileError(beyond, False)
        return None


def _split_fences(text: str) -> tuple[str, list[str]]:
    """The text before the first fence, and the dedented contents of the Python blocks, closed or not."""
    unfenced: list[str] = []
    blocks: list[str] = []
    current: list[str] | None = None
    opening: _Fence | None = None
    seen_fence = False
    for line in text.split("\n"):
        fence = _fence(line)
        if fence and opening is None:
            seen_fence = True
            opening = fence
            current = [] if fence.label.lower() in _PYTHON_LABELS else None
        elif fence and opening and fence.mark.startswith(opening.mark) and not fence.label:
            blocks += ["\n".join(current)] if current else []
            opening = current = None
        elif opening is None:
            unfenced += [] if seen_fence else [line]
        elif current is not None:
            current.append(line.removeprefix(opening.indent))
    blocks += ["\n".join(current)] if current else []
    return "\n".join(unfenced), blocks


class _Fence(NamedTuple):
    """A line that opens or closes a block: its indent, the run of backticks or tildes, and the language's label."""

    indent: str
    mark: str
    label: str


def _fence(line: str) -> _Fence | None:
    match = _FENCE_LINE.match(line)
    if match is None or match.end() < len(line):  # a backtick further right: code within a line of text
        return None
    indent, mark, rest = match.groups()
    return _Fence(indent, mark, (rest.split(maxsplit=1) or [""])[0])


def _opens_indented(text: str) -> bool:
    first = next((line for line in text.split("\n") if line.strip()), "")
    return first.startswith((" ", "\t"))


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def _with_future_imports_first(head: str, span: str) -> str:
    # Python accepts `from __future__` only at the top of a file, where the prompt now stands.
    future = "".join(line.rstrip("\n") + "\n" for line in _FUTURE.findall(span)) if head else ""
    return future + head + (_FUTURE.sub("", span) if future else span)
