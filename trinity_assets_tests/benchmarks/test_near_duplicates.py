"""Near duplicates are all found, and the groups of a benchmark that grows stay as they are."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from trinity_assets.benchmarks.near_duplicates import SimilarityJoin, near_duplicate_groups, shingles


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


def grams(question: str) -> frozenset[str]:
    """The shingles as texts, by their definition."""
    words = re.findall(r"\w+|[^\w\s]", question.casefold())
    return frozenset(" ".join(words[i : i + 5]) for i in range(max(1, len(words) - 4)))


def similarity(one: str, other: str) -> float:
    a, b = grams(one), grams(other)
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


@pytest.mark.parametrize("seed", range(8))
def test_groups_and_pairs_are_those_of_comparing_everything_with_everything(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - test data, no secret
    texts = [[f"w{draw.randrange(30)}" for _ in range(draw.randrange(60))] for _ in range(8)]
    questions = []
    for _ in range(100):
        text = list(draw.choice(texts))
        for _ in range(draw.randrange(4) if text else 0):
            text[draw.randrange(len(text))] = f"w{draw.randrange(30)}"
        questions.append(" ".join(text[: draw.choice([60, len(text) // 2, 3])]))
    pairs = {
        (i, j): similarity(questions[i], questions[j])
        for i in range(len(questions))
        for j in range(i)
        if similarity(questions[i], questions[j]) >= 0.8
    }
    groups = list(range(len(questions)))
    for i in groups:
        groups[i] = min((groups[j] for j in sorted(j for one, j in pairs if one == i)[:1]), default=i)
    assert 20 < len(set(groups)) < 95
    assert near_duplicate_groups(questions) == groups
    join = SimilarityJoin([shingles(question) for question in questions])
    assert {(i, j): found for i in range(len(join)) for j, found in join.earlier(i)} == pairs


def test_a_shingle_is_five_words_wherever_they_stand() -> None:
    five, six = shingles("one two three four FIVE"), shingles("zero one two three four five")
    assert len(five) == 1
    assert len(six) == 2
    assert np.isin(five, six).all()
    assert not np.isin(shingles("one two three four"), five).any()
    assert not np.isin(shingles("two one three four five"), six).any()


def test_no_questions_are_no_groups() -> None:
    assert near_duplicate_groups([]) == []
