"""No completion makes a text grader raise or hang: a verdict always, in time in proportion to the length.

Times are CPU times of this process against limits ten times what is needed: a quadratic reading of these lengths
takes many times as long.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trinity_assets.grading.choices import extract_choice
from trinity_assets.grading.code_extraction import MAX_PROGRAM_TEXT, extract_code
from trinity_assets.grading.extraction import MAX_COMPLETION
from trinity_assets.grading.graders import grade
from trinity_assets.grading.mathematics import extract_math
from trinity_assets.grading.numbers import extract_number
from trinity_assets.grading.procedural import extract_tagged
from trinity_assets.grading.short_answers import extract_short_answer
from trinity_assets.grading.specs import ChoiceGrader, ExactGrader, GraderSpec, NumberGrader
from trinity_assets.grading.verdicts import REASON_CHARACTERS, Verdict
from trinity_assets_tests.grading.test_choices import LETTERS
from trinity_assets_tests.grading.test_code_extraction import ADD_PROMPT

LENGTH = 50_000
CPU_LIMIT_S = 6.0

INLINE: dict[str, tuple[GraderSpec, dict[str, Any]]] = {
    "exact": (ExactGrader(kind="exact"), {"answer": "Paris"}),
    "number": (NumberGrader(kind="number"), {"answer": "12"}),
    "choice": (
        ChoiceGrader(kind="choice"),
        {"answer": "B", "choices": list(LETTERS.texts), "labels": list(LETTERS.labels)},
    ),
}

EXTRACTIONS = {
    "number": extract_number,
    "short answer": extract_short_answer,
    "choice": lambda text: extract_choice(text, LETTERS),
    "mathematics": extract_math,
    "generated task": extract_tagged,
}

PATTERNS = [
    r"\boxed{",
    r"\boxed{1",
    r"\boxed{1}",
    "answer: ",
    "answer:\n",
    "answer: 3 ",
    "the answer is B. ",
    "answer is A or B ",
    "answer:" + "\n" * 50,
    "1,",
    "1,111",
    "9",
    "1e999 ",
    "1.",
    " ",
    "*",
    "-",
    "_",
    "#",
    "(",
    "(B",
    "B) ",
    "B is ",
    "A, ",
    "option ",
    "not ",
    "is" + " " * 500,
    "a = ",
    ": ",
    "in ",
    "=",
    "<think>",
    "</think>",
    "<answer>",
    "<answer>1</answer>",
    "q:\n",
    "\n",
    "\x1b[",
    "\x1b]",
    "<|im_end|>",
    "####",
    "#### 1\n",
    "\\",
    "\\(",
    "$",
    "$1$, ",
    "$$",
    "\0",
    "\ud800",
    "a\u0301\u0327",
    "\u0301\u0327",
    "\ufdfa",
    "`",
    "```",
    "```\n",
    "~",
]


def cpu(function: Any, *arguments: Any) -> tuple[Any, float]:
    started = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - started


@pytest.mark.parametrize("name", EXTRACTIONS)
def test_every_extraction_is_linear_in_what_repeats(name: str) -> None:
    for pattern in PATTERNS:
        for text in (pattern * (LENGTH // len(pattern)), "answer: " + pattern * (LENGTH // len(pattern))):
            found, seconds = cpu(EXTRACTIONS[name], text)
            assert found.rule
            assert seconds < CPU_LIMIT_S, (pattern, seconds)


@pytest.mark.parametrize(
    "pattern",
    [
        "x = (\n",
        "@x\n",
        "try:\n",
        "x = 1 + \\\n",
        "def add(\n",
        "def add(x, y):\n    return x\nNote: this is\n",
        "def add(x, y):\n    return (\n",
        "def add(x, y):\n    x = 1\n    global x\n",
        "x = foo(a, b)[1:2] + {1: 2}\n",
        "```\ndef add(x\n```\n",
        "```\n    x\n```\n",
        "```python\n",
        "x = '''\n",
        "x = [\n",
        "if x:\n ",
        "class A:\n",
        "# def add(\n",
        "x = 1;",
        "def add(\0\n",
        "def add(\ud800):\n  pass\n",
        "-",
        "(",
        "not ",
        "lambda: ",
        "a.",
        "1+",
        "9",
        "`",
        "~",
        "```a",
    ],
)
def test_code_extraction_compiles_in_proportion_to_the_text(pattern: str) -> None:
    length = MAX_PROGRAM_TEXT // 4
    for lead in ("", "x = ", "def add(x, y):\n    try:\n        return "):
        found, seconds = cpu(extract_code, lead + pattern * (length // len(pattern)), ADD_PROMPT, "add")
        assert found.rule
        assert seconds < CPU_LIMIT_S, (lead, seconds)


def test_openers_that_nothing_closes_are_given_up_at_once() -> None:
    found, seconds = cpu(extract_code, "x = (\n" * 250, ADD_PROMPT, "add")
    assert (found.value, found.rule) == (None, "no_code")
    assert seconds < 2


def test_a_program_far_down_a_text_of_prose_is_found() -> None:
    prose = "Note: this line is prose\nfor example, so is this\n" * 1500
    found, seconds = cpu(extract_code, f"{prose}def add(x, y):\n    return x + y\n", ADD_PROMPT, "add")
    assert found.rule == "unfenced"
    assert found.value is not None
    assert found.value.rstrip().endswith("def add(x, y):\n    return x + y")
    assert seconds < CPU_LIMIT_S


@pytest.mark.parametrize("name", INLINE)
def test_a_completion_beyond_the_bound_is_not_read(name: str) -> None:
    grader, payload = INLINE[name]
    verdict = grade(grader, "B " * (MAX_COMPLETION // 2 + 1), payload)
    assert (verdict.score, verdict.rule) == (0, "too_long")
    assert verdict.reason == "the completion is longer than the 1,048,576 characters that are read"


def test_a_program_beyond_the_bound_is_not_compiled() -> None:
    assert extract_code("#" * (MAX_PROGRAM_TEXT + 1), ADD_PROMPT, "add").rule == "program_too_long"
    assert extract_code("#" * (MAX_COMPLETION + 1), ADD_PROMPT, "add").rule == "too_long"


def check(verdict: Verdict) -> None:
    assert 0 <= verdict.score <= 1
    assert verdict.rule
    assert len(verdict.reason) <= REASON_CHARACTERS
    assert verdict.reason.isprintable()
    verdict.reason.encode()


def test_a_reason_is_printable_whoever_writes_it() -> None:
    verdict = Verdict(0.0, "rule", False, "line\none \x1b[31m\ud800\0 " + "x" * 9999)
    check(verdict)
    assert verdict.reason.startswith("line one \\x1b[31m\\ud800\\x00 xxx")


PIECES = st.sampled_from(
    [
        *PATTERNS,
        "B",
        "Paris",
        "12",
        "The answer is",
        "\\frac{1}{2}",
        "}",
        "</answer>",
        ".",
        ",",
        "or",
        "```python\n",
        "x=1",
    ]
)
ANY_TEXT = (
    st.lists(PIECES, max_size=40).map("".join)
    | st.binary(max_size=300).map(lambda raw: raw.decode("latin-1"))
    | st.binary(max_size=300).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
    | st.text(st.characters(codec=None), max_size=200)
)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(ANY_TEXT)
def test_any_text_has_a_verdict(text: str) -> None:
    for grader, payload in INLINE.values():
        check(grade(grader, text, payload))
    for extract in EXTRACTIONS.values():
        assert extract(text).rule
    assert extract_code(text, ADD_PROMPT, "add").rule
    assert extract_code(f"def add(x, y):\n    return {text}", text, "add").rule


@settings(max_examples=60, derandomize=True, deadline=None)
@given(PIECES, PIECES, st.integers(1, 3000))
def test_deep_and_long_text_has_a_verdict(opening: str, closing: str, depth: int) -> None:
    text = opening * depth + "5" + closing * depth
    for grader, payload in INLINE.values():
        verdict, seconds = cpu(grade, grader, text, payload)
        check(verdict)
        assert seconds < CPU_LIMIT_S
