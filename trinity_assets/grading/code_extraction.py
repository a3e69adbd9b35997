"""The program in a completion to a coding task. As ``extraction``, pure functions of text: nothing is executed."""

import ast
import builtins
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

from trinity_assets.grading.code_fences import split_fences, unquoted, without_prompts
from trinity_assets.grading.extraction import Extraction, readable_text

MAX_PROGRAM_TEXT = 1 << 18
"""Longer answers, in characters after cleaning, are not searched for a program: compiling takes memory many times the
text's length."""

_STATEMENT = re.compile(r"(?:def|async|class|import|from|if|for|while|try|with)\b|@|[A-Za-z_]\w*[ \t]*(?::|=)")
_FUTURE = re.compile(r"^from __future__ import .*\n?", re.MULTILINE)


def extract_code(completion: str, prompt: str, entry_point: str) -> Extraction:
    """The whole program of a completion to a coding task: the prompt (its imports and helpers) with the answer below.

    `fenced`: the last Python block that defines `entry_point` at column 0, below what it uses of the blocks above it;
    `unfenced`: the same in text before the first fence, or else either that binds the name in another way (inside an
    `if`, by an assignment); `body`: text that goes on with the prompt's last function; `fenced_other`: a block that
    defines something else. In each the longest span that compiles counts. A prompt that is prose, not Python, is left
    out. Nothing is executed. `over_budget`: no program was found with work in proportion to the text, which happens
    only to text written to that end; `program_too_long`: the answer is longer than ``MAX_PROGRAM_TEXT``.
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
            return _Search(cleaned, prompt, entry_point, definition).find()
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

    def __init__(self, text: str, prompt: str, entry_point: str, definition: re.Pattern[str]) -> None:
        # The recorded answers to HumanEval take up to 4.6 times this length, and half of them less than once.
        self.compiler = _Compiler(16 * (len(text) + len(prompt)) + (1 << 19))
        self.prompt = prompt
        self.entry_point = entry_point
        self.definition = definition
        unfenced, blocks = split_fences(unquoted(text))
        self.unfenced, *self.blocks = (self._at_column_0(without_prompts(part)) for part in (unfenced, *blocks))
        self.head = completed_prompt(prompt)

    def find(self) -> Extraction:
        """The program by the first rule of ``extract_code`` that gives one.

        Raises:
            _OverBudgetError: none was found for the budget.
        """
        unfenced, blocks = self.unfenced, self.blocks
        defining = [number for number, block in enumerate(blocks) if self.definition.search(block)]
        for number in reversed(defining):
            if program := self._definition_program(blocks[number], self._defines, blocks[:number]):
                return Extraction(program, "fenced", len({blocks[other].strip() for other in defining}) > 1)
        if not _opens_indented(unfenced) and (program := self._definition_program(unfenced, self._defines)):
            return Extraction(program, "unfenced")
        for number in reversed(range(len(blocks))):
            if program := self._definition_program(blocks[number], self._binds, blocks[:number]):
                return Extraction(program, "fenced")
        if not _opens_indented(unfenced) and (program := self._definition_program(unfenced, self._binds)):
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

    def _defines(self, span: str) -> bool:
        """Whether a function with the entry point's name is defined at column 0."""
        return self.definition.search(span) is not None

    def _binds(self, span: str) -> bool:
        """Whether a statement of the module, be it inside an `if` or `try`, gives a value to the entry point's name."""
        return self.entry_point in _bound_names(self.compiler.tree(span), imports=False)

    def _at_column_0(self, text: str) -> str:
        """A text that is indented as a whole without that indent, where it defines the entry point and is no body."""
        if not _opens_indented(text):
            return text
        flush = textwrap.dedent(text)
        is_body = re.search(r"^(?:return|yield)\b", flush, re.MULTILINE)
        return flush if self.definition.search(flush) and not is_body else text

    def _definition_program(
        self, text: str, defines: Callable[[str], bool] | None, above: list[str] | None = None
    ) -> str | None:
        """The prompt and below it the longest span of `text` that compiles (and defines); the later definition wins.

        A span may start at any statement, so that prose above the code is skipped. What it uses of the blocks `above`
        goes before it.
        """
        name = re.compile(rf"\b{re.escape(self.entry_point)}\b")
        lines = text.split("\n")
        last = max((number for number, line in enumerate(lines) if defines is None or name.search(line)), default=-1)
        start = 0
        while start <= last:  # no span from below the last definition holds one
            end = start
            if _STATEMENT.match(lines[start]):
                end = self._longest_compilable("", lines, start)
                span = _joined(lines[start:end])
                if span.strip() and (defines is None or defines(span)):
                    return _with_future_imports_first(self.head, self._used_of(above or [], span) + span)
            # A later statement of the same span would meet the same end.
            start = max(end, start + 1)
        return None

    def _used_of(self, blocks: list[str], span: str) -> str:
        """The blocks that bind names which `span` needs: imports, constants, functions and classes alone.

        Models show imports and helpers in blocks of their own. A block that does more is an example or a draft.
        """
        if not blocks:
            return ""
        program = self.compiler.tree(self.head + span)
        missing = _read_names(program) - _bound_names(program) - set(dir(builtins))
        used: list[str] = []
        for block in reversed(blocks):
            if not missing:
                break
            tree = self.compiler.tree(block)
            bound = _bound_names(tree)
            if not bound & missing or self.entry_point in bound or not _only_defines(tree):
                continue
            used.insert(0, block.rstrip("\n") + "\n\n")
            missing = (missing - bound) | (_read_names(tree) - bound - set(dir(builtins)))
        return "".join(used)

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
            if error and not error.may_be_mended:
                return max(start, start + error.line - head.count("\n") - 1)
            size *= 4
        return len(lines)


class _CompileError(NamedTuple):
    """The 1-based line of the first syntax error, beyond the end where Python does not say; whether more could help."""

    line: int
    may_be_mended: bool


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

        ``may_go_on`` also tells whether lines below could mend it.

        Raises:
            _OverBudgetError: the budget does not suffice.
        """
        self._spend(source)
        flags = self._ALLOW_INCOMPLETE_INPUT if may_go_on else 0
        beyond = source.count("\n") + 2
        try:
            compile(source, "<completion>", "exec", flags, dont_inherit=True)
        except SyntaxError as error:
            # What `nonlocal` names may be assigned further down; no other error of whole statements is mended there.
            mendable = error.msg == "incomplete input" or error.msg.startswith("no binding for nonlocal")
            return _CompileError(error.lineno or beyond, mendable)
        except (ValueError, RecursionError, MemoryError, OverflowError):  # NUL bytes, surrogates; absurd nesting
            return _CompileError(beyond, False)
        return None

    def tree(self, source: str) -> ast.Module:
        """The syntax tree of ``source``, empty where it has none; its length is taken from the budget.

        Raises:
            _OverBudgetError: the budget does not suffice.
        """
        self._spend(source)
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
            return ast.Module([], [])

    def _spend(self, source: str) -> None:
        self._characters -= len(source)
        if self._characters < 0:
            raise _OverBudgetError


# --- names ------------------------------------------------------------------------------------------------------------

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _bound_names(tree: ast.Module, *, imports: bool = True) -> set[str]:
    """The names that the module's statements bind, those inside an `if`, `try`, loop or `with` included."""
    return {
        name
        for statement in _module_statements(tree)
        if imports or not isinstance(statement, ast.Import | ast.ImportFrom)
        for name in _bound_by(statement)
    }


def _module_statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Every statement of a module but those of its functions and classes."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, _DEFINITIONS):
            todo += [
                child
                for child in ast.iter_child_nodes(node)
                if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case)
            ]


def _bound_by(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, _DEFINITIONS):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in statement.names)
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))


def _read_names(tree: ast.Module) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _only_defines(tree: ast.Module) -> bool:
    """Whether a module holds nothing but imports, functions, classes and values that nothing is called for."""
    return all(
        isinstance(statement, (*_DEFINITIONS, ast.Import, ast.ImportFrom))
        or (
            isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr)
            and not any(isinstance(node, ast.Call) for node in ast.walk(statement))
        )
        for statement in tree.body
    )


# --- text -------------------------------------------------------------------------------------------------------------


def _opens_indented(text: str) -> bool:
    first = next((line for line in text.split("\n") if line.strip()), "")
    return first.startswith((" ", "\t"))


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def _with_future_imports_first(head: str, span: str) -> str:
    # Python accepts `from __future__` only at the top of a file, where the prompt now stands.
    future = "".join(line.rstrip("\n") + "\n" for line in _FUTURE.findall(span)) if head else ""
    return future + head + (_FUTURE.sub("", span) if future else span)
