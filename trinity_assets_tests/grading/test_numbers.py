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
