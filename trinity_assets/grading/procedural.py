"""Answers to generated tasks, scored by the reasoning-gym data set that made them.

Some of its scorers evaluate an answer as Python, with and without SymPy. None is given an answer that does more there
than spell a value or do arithmetic: whoever wrote the answer would otherwise run code in the process that grades.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from trinity_assets.errors import GraderError
from trinity_assets.grading.extraction import Extraction, answer_text, marked_spans
from trinity_assets.grading.specs import ProceduralGrader
from trinity_assets.grading.verdicts import Payload, Verdict, brief, nothing_found

_ANSWER_TAG = re.compile(r"<(/?)answer>")


def extract_tagged(text: str) -> Extraction:
    """The answer to a generated task, for its scorer to read.

    The first rule that applies: `answer_tag` (the last `<answer>...</answer>`, reasoning-gym's own convention);
    `answer_marker` (what follows the last "answer is" / "answer:"); `last_line`.
    """
    answer = answer_text(text)
    if isinstance(answer, Extraction):
        return answer
    if tagged := _tagged(answer):
        return Extraction(tagged[-1], "answer_tag", len(set(tagged)) > 1)
    if marked := [span.strip(" \t*_`") for span in marked_spans(answer) if span.strip(" \t*_`")]:
        return Extraction(marked[-1], "answer_marker", len(set(marked)) > 1)
    lines = [line.strip() for line in answer.split("\n") if line.strip()]
    return Extraction(lines[-1], "last_line", len(lines) > 1)


def _tagged(text: str) -> list[str]:
    """The contents of each closed pair of tags, from the first opening one as reasoning-gym reads them."""
    found = []
    start: int | None = None
    for match in _ANSWER_TAG.finditer(text):
        if not match[1]:
            start = match.end() if start is None else start
        elif start is not None:
            found.append(text[start : match.start()].strip())
            start = None
    return found


def read_entry(payload: Payload) -> tuple[str, Mapping[str, Any]]:
    """The data set's name and the generated entry of a gold payload.

    Raises:
        GraderError: it does not hold both.
    """
    dataset, entry = payload.get("dataset"), payload.get("entry")
    if not isinstance(dataset, str) or not isinstance(entry, Mapping):
        raise GraderError("the gold payload has no 'dataset' and 'entry'; map them under the benchmark's fields")
    return dataset, entry


def grade_procedural(_grader: ProceduralGrader, completion: str, payload: Payload) -> Verdict:
    """The score of ``payload["dataset"]``'s scorer for the answer and ``payload["entry"]``, partial credit included.

    Rule `refused_code`: the scorer would evaluate the answer, and it is more than a value or arithmetic; it scores 0,
    as does an answer that makes the scorer fail although the entry's own answer does not.

    Raises:
        GraderError: reasoning-gym is not installed, has no such data set, or cannot score by this entry.
    """
    dataset, entry = read_entry(payload)
    scorer = scorer_of(dataset)
    found = extract_tagged(completion)
    if found.value is None:
        return nothing_found(found)
    if not _is_harmless(dataset, found.value):
        reason = f"{dataset} evaluates answers, and this is no plain value: {brief(found.value)}"
        return Verdict(0.0, "refused_code", found.ambiguous, reason)
    try:
        score = _checked(scorer(found.value, dict(entry)))
    except Exception as error:  # a scorer may stumble over any text in any way
        _demand_sound_entry(scorer, dataset, entry)
        reason = f"the scorer could not read {brief(found.value)}: {type(error).__name__}"
        return Verdict(0.0, found.rule, found.ambiguous, reason)
    return Verdict(score, found.rule, found.ambiguous, "" if score == 1 else f"answered {brief(found.value)}")


Scorer = Callable[[str | None, dict[str, Any]], float]
"""The score of an answer (None: there was none) by a task's entry."""


def library_facts(_grader: ProceduralGrader) -> dict[str, str]:
    """Import what the first score in a process waits seconds for, and tell its version; nothing where it is absent."""
    try:
        import reasoning_gym
    except ImportError:  # the first task is told what to install
        return {}
    return {"reasoning-gym": reasoning_gym.__version__}


@lru_cache(maxsize=128)
def scorer_of(dataset: str) -> Scorer:
    """The scorer of a data set of reasoning-gym.

    Raises:
        GraderError: reasoning-gym is not installed, or has no such data set.
    """
    try:
        import reasoning_gym
    except ImportError as error:
        raise GraderError(
            "grading generated tasks needs the package reasoning-gym; pip install 'trinity-assets[procedural]'"
        ) from error
    try:
        scorer: Scorer = reasoning_gym.get_score_answer_fn(dataset)
    except ValueError as error:
        raise GraderError(
            f"reasoning-gym has no data set {dataset!r}; correct 'dataset' in the task's source"
        ) from error
    return scorer


def _checked(score: float) -> float:
    """A score as a float in [0, 1].

    Raises:
        ValueError: it is none.
    """
    value = float(score)
    if math.isnan(value) or not 0 <= value <= 1:
        raise ValueError(f"the score is {value}")
    return value


def _demand_sound_entry(scorer: Scorer, dataset: str, entry: Mapping[str, Any]) -> None:
    """Tell an entry that cannot be scored from an answer that cannot be read, by the entry's own answer."""
    own = entry.get("answer")
    try:
        _checked(scorer(own if isinstance(own, str) else None, dict(entry)))
    except Exception as error:
        raise GraderError(
            f"{dataset} cannot score its own answer by this entry ({type(error).__name__}: {error}); generate the "
            "benchmark's tasks anew"
        ) from error


# --- answers that a scorer evaluates ----------------------------------------------------------------------------------

VALUE_SCORERS = frozenset({"binary_matrix", "n_queens", "spiral_matrix", "string_insertion"})
"""Data sets whose scorers call ``eval`` on an answer that is not the expected text."""

ARITHMETIC_SCORERS = frozenset(
    {"countdown", "intermediate_integration", "polynomial_multiplication", "puzzle24", "simple_integration"}
)
"""Data sets whose scorers give the answer to SymPy's ``parse_expr``, which evaluates it."""

_NUMBERS = (ast.Expression, ast.Constant, ast.UnaryOp, ast.USub, ast.UAdd, ast.Load)
_VALUES = (*_NUMBERS, ast.List, ast.Tuple)
_ARITHMETIC = (*_NUMBERS, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.Name, ast.Call)
_FUNCTIONS = frozenset(
    {
        "sin",
        "cos",
        "tan",
        "sec",
        "csc",
        "cot",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "exp",
        "log",
        "ln",
        "sqrt",
        "Abs",
        "abs",
    }
)
"""What arithmetic may call, by the names that SymPy gives it."""

_MAX_EVALUATED = 2000
"""Characters of an answer that a scorer may evaluate."""
_MAX_NUMBER = 1e15
"""Only numbers below this size are evaluated."""
_MAX_EXPONENT = 1000
"""The largest product of the exponents of powers of powers; with ``_MAX_NUMBER``, one number's have 15,000 digits."""


def _is_harmless(dataset: str, answer: str) -> bool:
    """Whether the data set's scorer can be given an answer without running what it says."""
    if dataset not in VALUE_SCORERS | ARITHMETIC_SCORERS:
        return True
    if len(answer) > _MAX_EVALUATED:
        return False
    try:
        tree = ast.parse(answer.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # `eval` refuses it as well; SymPy rewrites texts before it evaluates them.
        return dataset in VALUE_SCORERS
    if dataset in VALUE_SCORERS:
        return isinstance(tree.body, ast.Name) or all(isinstance(node, _VALUES) for node in ast.walk(tree))
    return all(isinstance(node, _ARITHMETIC) and _is_small(node) for node in ast.walk(tree))


def _is_small(node: ast.AST) -> bool:
    """Whether a part of a formula is a known function, a plain name, or a number or power of bounded size."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords
    if isinstance(node, ast.Name):
        return "__" not in node.id
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and abs(node.value) < _MAX_NUMBER
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        # Powers of powers multiply their exponents.
        nested = [part.right for part in ast.walk(node) if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Pow)]
        return math.prod(map(_exponent_size, nested)) <= _MAX_EXPONENT
    return True


def _exponent_size(exponent: ast.AST) -> float:
    """An upper bound of what a sum or product of numbers comes to; infinite for a power."""
    size = 1.0
    for part in ast.walk(exponent):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Pow):
            return math.inf
        if isinstance(part, ast.Constant) and isinstance(part.value, int | float):
            size *= max(2.0, abs(part.value))
    return size
