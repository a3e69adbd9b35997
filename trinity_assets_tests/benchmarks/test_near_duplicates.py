"""Near duplicates are all found, and the groups of a benchmark that grows stay as they are."""

from __future__ import annotations

import pytest

from trinity_assets.benchmarks.near_duplicates import near_duplicate_groups, shingles


def test_near_duplicates_share_the_group_of_the_earliest() -> None:
    long = (
        "Natalia sold clips to 48 of her friends in April and then she sold half as many clips in May, how many in all"
    )
    questions = [
        long,
        "Something else entirely, with more than five words in it",
        long + "?",
        "Short one",
        "short  ONE",
    ]
    assert near_duplicate_groups(questions) == [0, 1, 0, 3, 3]


def test_a_changed_number_in_a_short_question_is_another_task() -> None:
    assert near_duplicate_groups(["What is 3 plus 5?", "What is 3 plus 6?"]) == [0, 1]


def words(name: str, first: int, last: int) -> list[str]:
    return [f"{name}{i}" for i in range(first, last)]


def similarity(one: str, other: str) -> float:
    a, b = shingles(one), shingles(other)
    return len(a & b) / len(a | b)


@pytest.mark.parametrize("changed", [8, 9, 10])
def test_every_pair_at_the_threshold_is_found(changed: int) -> None:
    questions: list[str] = []
    for pair in range(100):
        text = words(f"w{pair}x", 0, 94)  # 90 shingles
        questions += [" ".join(text), " ".join(text[:-changed] + words(f"v{pair}x", 0, changed))]
    assert 0.8 <= similarity(questions[0], questions[1]) == (90 - changed) / (90 + changed) < 0.85
    assert near_duplicate_groups(questions) == [i - i % 2 for i in range(200)]


def test_a_pair_below_the_threshold_is_two_groups() -> None:
    text = words("w", 0, 94)
    assert near_duplicate_groups([" ".join(text), " ".join(text[:-11] + words("v", 0, 11))]) == [0, 1]


def test_a_task_that_resembles_two_groups_joins_the_earlier_and_merges_none() -> None:
    middle = words("m", 0, 90)
    left, right = (" ".join(words(side, 0, 11) + middle) for side in "lr")
    bridge = " ".join(middle)
    assert similarity(left, right) < 0.8 <= min(similarity(left, bridge), similarity(bridge, right))
    assert near_duplicate_groups([left, right]) == [0, 1]
    assert near_duplicate_groups([left, right, bridge]) == [0, 1, 0]
    assert near_duplicate_groups([right, left, bridge, bridge]) == [0, 1, 0, 0]
