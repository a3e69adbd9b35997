"""Every gold number of GSM8K's test set, right as it is said and wrong as soon as it is another number."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from trinity_assets.grading.extraction import Extraction
from trinity_assets.grading.graders import grade
from trinity_assets.grading.numbers import extract_number
from trinity_assets.grading.specs import NumberGrader

NUMBER = NumberGrader(kind="number")
TASKS = 1319


@pytest.fixture(scope="module")
def golds(shared_data: Callable[[str], Path]) -> list[str]:
    """The whole gold texts: a solution that ends in `#### N`."""
    lines = shared_data("gsm8k/test.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == TASKS
    return [json.loads(line)["answer"] for line in lines]


def said(gold: str) -> str:
    return gold.rpartition("#### ")[2].strip()


@pytest.mark.parametrize(
    "template",
    [
        "#### %s",
        "So it is %s.",
        "They need %s dollars in all.",
        r"\boxed{%s}",
        "The answer is **%s**.",
        "2 * 3 = %s eggs",
    ],
)
def test_every_gold_is_right_as_it_is_said(golds: list[str], template: str) -> None:
    assert [gold for gold in golds if grade(NUMBER, template % said(gold), {"answer": gold}).score != 1] == []


def test_every_published_solution_is_right(golds: list[str]) -> None:
    assert [gold for gold in golds if grade(NUMBER, gold, {"answer": gold}).score != 1] == []


@pytest.mark.parametrize("mutate", ["one more", "digit dropped", "digit doubled", "sign flipped", "half more"])
@pytest.mark.parametrize("template", ["#### %s", "So it is %s."])
def test_every_mutated_gold_is_wrong(golds: list[str], mutate: str, template: str) -> None:
    right = []
    for gold in golds:
        number = said(gold).replace(",", "")
        mutated = {
            "one more": str(int(number) + 1),
            "digit dropped": number[:-1],
            "digit doubled": number + number[-1],
            "sign flipped": str(-int(number)),
            "half more": number + ".5",
        }[mutate]
        same = mutated in ("", "-") or Decimal(mutated) == Decimal(number)
        if not same and grade(NUMBER, template % mutated, {"answer": gold}).score != 0:
            right.append((gold[-10:], mutated))
    assert right == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e999999", "1E+999999"),
        ("1e-999999", "1E-999999"),
        ("12e99999999999999999999", "12E+999999999"),
        ("0e99999999999999999999", "0"),
        ("1" + "0" * 50, "1E+50"),
        ("1" + "0" * 40, "1" + "0" * 40),
        ("0." + "0" * 60 + "5", "5E-61"),
        ("\u0661\u0662", "12"),
        ("1e5 thousand", "100000000"),
        ("00018.500", "18.5"),
    ],
)
def test_a_number_of_any_size_has_one_spelling(text: str, value: str) -> None:
    assert extract_number(text).value == value


def test_a_huge_exponent_is_no_small_number() -> None:
    assert grade(NUMBER, "#### 1e999999", {"answer": "#### 1"}).score == 0


def test_a_million_digits_are_compared_digit_by_digit() -> None:
    digits = "7" * 10**6
    assert grade(NUMBER, digits, {"answer": digits}).score == 1
    verdict = grade(NUMBER, digits[:-1] + "8", {"answer": digits})
    assert (verdict.score, len(verdict.reason) < 100) == (0, True)


def test_nested_and_unclosed_boxes() -> None:
    assert extract_number(r"\boxed{x = \boxed{4}} and \boxed{5") == Extraction("4", "boxed")
    assert extract_number(r"\boxed{\boxed{4} + 3 = 7}") == Extraction("7", "boxed")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"\boxed{1{,}450{,}000}", "1450000"),
        (r"$1{,}450{,}000$", "1450000"),
        (r"\boxed{1,\!450,\!000}", "1450000"),
        (r"\boxed{1\,450\,000}", "1450000"),
        ("1'450'000", "1450000"),
        ("1_450_000", "1450000"),
        ("1 450 000", "1450000"),
        ("#### 1 450 000 dollars", "1450000"),
        ("#### 1450 000", "1450"),
        ("#### 1 45 000", "1"),
        ("#### 1.45M", "1450000"),
        ("$18K", "18000"),
        ("#### 18k", "18000"),
        ("18 km", "18"),
        ("18m", "18"),
        ("1.45 \u00d7 10^6", "1450000"),
        (r"\boxed{1.45 \times 10^{6}}", "1450000"),
        ("1.45 x 10\u2076", "1450000"),
        ("5 * 10^-2", "0.05"),
        ("18\u00bd", "18.5"),
        ("\u00bd", "0.5"),
        ("#### 18 1/2", "18.5"),
        (r"\boxed{18\frac{1}{2}}", "18.5"),
        (r"\boxed{\frac{1}{2}}", "0.5"),
        (r"\boxed{-\frac12}", "-0.5"),
        ("1/2", "0.5"),
        ("Answer: 18/2", "9"),
        ("Answer: 18/1", "18"),
        ("Answer: minus 18", "-18"),
        ("20 minus 18", "18"),
        ("It is negative 5", "-5"),
        ("It is \u20135", "-5"),
        ("pages 10\u201318", "18"),
        ("Answer: 9 \u00d7 2 \u2192 18", "18"),
        (r"$9 \times 2 \rightarrow 18$", "18"),
        ("The answer is not 20 but 18.", "18"),
        ("Answer: 18 (not 20)", "18"),
        ("Answer: 18!", "18"),
        ("She makes 18 dollars from 9 eggs per day.", "9"),
    ],
)
def test_every_spelling_of_a_number_is_read(text: str, value: str) -> None:
    assert extract_number(text).value == value


@pytest.mark.parametrize(
    "text",
    [
        "#### 18^2",
        "#### 18:30",
        "#### 18 * 2",
        "Answer: 18 x 2",
        "Answer: 18-20",
        "Answer: 18 + 5",
        "Answer: (18)!",
        "Answer: 18 or 20",
        r"\boxed{18 \text{ or } 20}",
        "Answer: between 18 and 20",
        "#### 18, 19, 20",
        "The answer is not 18",
        "#### 1/3",
        "Answer: 18/0",
        "18\u2153",
    ],
)
def test_what_is_no_decimal_number_has_no_value(text: str) -> None:
    found = extract_number(text)
    assert (found.value, found.rule == "no_number") == (None, False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("#### 18\n\n#### 3 checks done", "18"),
        ("#### 18\n#### 1. Eggs left", "18"),
        ("#### 1. Eggs left\n16-7 = 9\n#### 2. Money\n9*2 = 18", "18"),
        ("#### 17\nWait.\n#### Answer: 18 dollars", "18"),
        ("#### 17 eggs\nWait.\n#### 18 eggs", "18"),
    ],
)
def test_a_heading_is_no_answer(text: str, value: str) -> None:
    assert extract_number(text).value == value


def test_a_sentence_with_two_numbers_is_ambiguous() -> None:
    assert extract_number("She makes 18 dollars from 9 eggs per day.").ambiguous
