"""What a completion to a multiple-choice task settles on, and what only looks like it."""

from __future__ import annotations

from typing import Any

import pytest

from trinity_assets.errors import GraderError
from trinity_assets.grading.choices import LabelledOptions, extract_choice
from trinity_assets.grading.graders import grade
from trinity_assets.grading.specs import ChoiceGrader

CHOICE = ChoiceGrader(kind="choice")
LETTERS = LabelledOptions(("A", "B", "C", "D"), ("London", "Paris", "a dog", "5 km"))
DIGITS = LabelledOptions(("1", "2", "3", "4"), ("3", "4", "6 eggs", "8"))
ALL_OPTIONS = "A) London\nB) Paris\nC) a dog\nD) 5 km"


def gold(answer: str, *texts: str) -> dict[str, Any]:
    """A gold payload as snapshots write it."""
    return {"answer": answer, "choices": list(texts), "labels": list("ABCD"[: len(texts)])}


@pytest.mark.parametrize(
    ("text", "label", "rule"),
    [
        ("The answer is (B)", "B", "answer_marker"),
        ("The answer is B. It is not A.", "B", "answer_marker"),
        ("Answer: B", "B", "answer_marker"),
        ("Answer:\n\nB", "B", "answer_marker"),
        ("**Answer:** **B**", "B", "answer_marker"),
        ("answer: b", "B", "answer_marker"),
        ("Answer: $B$", "B", "answer_marker"),
        (r"The answer is \(B\)", "B", "answer_marker"),
        ("The correct option is **D**", "D", "answer_marker"),
        ("The correct choice: D) 5 km", "D", "answer_marker"),
        ("The best answer is B Paris", "B", "answer_marker"),
        ("I would choose D", "D", "answer_marker"),
        ("B is wrong. So the answer is C.", "C", "answer_marker"),
        ("The answer is **(C) a dog**.", "C", "answer_marker"),
        (r"\boxed{B}", "B", "boxed"),
        (r"So $\boxed{\text{(B)}}$.", "B", "boxed"),
        (r"\boxed{\text{Paris}}", "B", "boxed"),
        ("The final answer is $\\boxed{B}$. I hope it is correct.", "B", "boxed"),
        ("#### B", "B", "hash_line"),
        ("I think B is correct.", "B", "declared"),
        ("So option D is correct, since A violates it", "D", "declared"),
        ("B", "B", "lone_label"),
        ("(b).", "B", "lone_label"),
        ("[B]", "B", "lone_label"),
        ("`B`", "B", "lone_label"),
        ("A", "A", "lone_label"),
        ("Option B", "B", "lone_label"),
        ("**B)** Paris", "B", "lone_label"),
        ("B. Paris", "B", "lone_label"),
        ("B - Paris", "B", "lone_label"),
        ("B) Paris, since it is the capital", "B", "lone_label"),
        ("B\n\nBecause A is wrong.", "B", "lone_label"),
        (f"{ALL_OPTIONS}\n\nB", "B", "lone_label"),
        ("<think>B</think>C", "C", "lone_label"),
        ("C\n\nQuestion: 2 + 2?\nAnswer: D", "C", "lone_label"),
        ("Paris", "B", "option_text"),
        ('"paris."', "B", "option_text"),
        ("It is Paris", "B", "option_text"),
        ("It's Paris!", "B", "option_text"),
        ("A is correct. B is correct. So both: D", "D", "concluded"),
        ("The answer is B and only B.", "B", "answer_marker"),
        ("Answer: B, not A.", "B", "answer_marker"),
        ("Answer: B. Paris is larger than A. London", "B", "answer_marker"),
        ("The answer is B or more precisely Paris.", "B", "answer_marker"),
        ("The answer is B, but C is close.", "B", "answer_marker"),
        ("Answer: B\n\nA is the second most likely answer.", "B", "answer_marker"),
        ("The answer is Paris.", "B", "answer_marker"),
        ("The answer is Paris, because it is the capital", "B", "answer_marker"),
        ("The answer is 5 km", "D", "answer_marker"),
        ("Therefore, (D).", "D", "concluded"),
        ("I considered A. Therefore **B**", "B", "concluded"),
        ("A) 4 is wrong. The sum is 3, so B.", "B", "concluded"),
        ("Both are possible; **B**", "B", "emphasised"),
        ("A) 8, no wait: **B**", "B", "emphasised"),
        ("We can eliminate A, leaving B.", "B", "concluded"),
        ("The wrong answer is A, so (C) follows", "C", "last_line"),
        ("Let us see.\nIt must be C.", "C", "last_line"),
    ],
)
def test_the_first_rule_that_applies_reads_the_label(text: str, label: str, rule: str) -> None:
    found = extract_choice(text, LETTERS)
    assert (found.value, found.rule) == (label, rule)


@pytest.mark.parametrize(
    "text",
    [
        "A dog is an animal",
        "A man sat here",
        "The answer is a small animal",
        "I have no idea",
        "Not B",
        "B is wrong.",
        "The answer is not B.",
        "the answer isn't B",
        "The answer cannot be B",
        "Answer: B is incorrect",
        "Answer: B's",
        "The answer is B or C.",
        "Answer: A, B",
        "B/C",
        "Both A and B are right",
        "Answer: B, or maybe C",
        "Answer: B or possibly C",
        "Answer: B (or C)",
        "Answer: (B) or, equally, (C)",
        "Answer: B. Or C.",
        "Answer: B) Paris or C) a dog",
        "Answer: B / maybe C",
        "Answer: B -- or C",
        "Answer: B, alternatively C",
        "Answer: B; C",
        "Answer: B | C",
        "Answer: B+C",
        "Answer: B but also C",
        "Answer: B except when C",
        "Answer: B? No, C",
        "Answer: none; B is closest but false",
        "**B** or **C**",
        "B. Or C.",
        "I would not choose B",
        "I would never pick option B",
        "The answer is anything but B",
        ALL_OPTIONS,
        "none of them",
    ],
)
def test_a_label_that_is_no_answer_is_not_read(text: str) -> None:
    assert extract_choice(text, LETTERS).rule == "no_choice"
    assert grade(CHOICE, text, gold("B", *LETTERS.texts)).score == 0


@pytest.mark.parametrize(("text", "label"), [("The answer is A dog", "C"), ("A dog", "C"), ("a dog.", "C")])
def test_an_article_is_no_label(text: str, label: str) -> None:
    assert extract_choice(text, LETTERS).value == label


@pytest.mark.parametrize("text", ["The answer is A.", "The answer is A because it is", "The answer is a", "Answer: A"])
def test_a_label_that_could_be_an_article_is_read_where_its_phrase_ends(text: str) -> None:
    assert extract_choice(text, LETTERS).value == "A"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("1", "1"),
        ("(3)", "3"),
        ("Option 2", "2"),
        ("3) 6 eggs", "3"),
        ("The answer is 4", "4"),
        ("The answer is 8", "4"),
        ("The answer is 6 eggs", "3"),
        ("1. First we add.\n2. Then we stop.\nAnswer: 2", "2"),
        ("1. First we compute", None),
        ("The answer is 3.5", None),
        ("The answer is 3 eggs", None),
        ("answer: 3%", None),
        ("answer: -1", None),
        ("We get 4 things", None),
    ],
)
def test_digits_are_labels_only_where_they_cannot_be_numbers(text: str, label: str | None) -> None:
    assert extract_choice(text, DIGITS).value == label


def test_the_last_of_contradicting_answers_counts_and_is_ambiguous() -> None:
    found = extract_choice("The answer is A. Wait, the answer is B.", LETTERS)
    assert (found.value, found.ambiguous) == ("B", True)
    assert not extract_choice("The answer is B. Yes, the answer is (B) Paris.", LETTERS).ambiguous


def test_signs_are_part_of_an_options_text() -> None:
    numbers = gold("B", "5", "-5", "50%", "0.5")
    assert grade(CHOICE, "The answer is -5.", numbers).score == 1
    assert grade(CHOICE, "The answer is 5.", numbers).score == 0


def test_a_text_that_two_options_share_names_neither() -> None:
    assert grade(CHOICE, "Paris", gold("A", "Paris", "paris")).rule == "no_choice"


@pytest.mark.parametrize("number", range(4))
def test_every_option_is_graded_against_the_right_label(number: int) -> None:
    labels = ["1", "2", "3", "4"]
    payload: dict[str, Any] = {"answer": labels[number], "choices": ["red", "blue", "green", "grey"], "labels": labels}
    verdicts = [grade(CHOICE, f"The answer is ({label}).", payload).score for label in labels]
    assert verdicts == [float(other == number) for other in range(4)]


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"answer": "A"}, "no list of 'choices'"),
        (gold("C", "x", "y"), "'C' is none of the labels A, B"),
        ({"answer": "A", "choices": ["x", "y"]}, "has 2 'choices' and the labels None; each needs a label"),
        ({"answer": "A", "choices": ["x", "y"], "labels": ["A"]}, "each needs a label"),
        ({"answer": "A", "choices": ["x", "y"], "labels": ["A", "A"]}, "each needs a label"),
        (
            {"answer": "A", "choices": ["x", "y"], "labels": ["A", "a"]},
            "of its own, in more than its case",
        ),
    ],
)
def test_a_payload_without_choices_is_the_graders_error(payload: dict[str, Any], message: str) -> None:
    with pytest.raises(GraderError, match=message):
        grade(CHOICE, "A", payload)
