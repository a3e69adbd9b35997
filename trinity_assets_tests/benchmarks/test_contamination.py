"""What one benchmark shares with another is found in both directions, by its strongest kind."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from trinity_assets.benchmarks.contamination import contamination_data_version, counted, find_contamination

WORDS = [f"w{number}" for number in range(94)]
LONG = " ".join(WORDS)
CLOSE = " ".join([*WORDS[:-9], *(f"v{number}" for number in range(9))])
"""A near duplicate of LONG: (90 - 9) of (90 + 9) shingles are the same."""
FAR = " ".join([*WORDS[:-11], *(f"v{number}" for number in range(11))])
RIVER = "Which river flows through Paris?"


def tasks(**benchmarks: list[str]) -> dict[str, pd.DataFrame]:
    """Benchmarks by name; the id of a task is its number."""
    return {
        name: pd.DataFrame({"task_id": [f"{name}{n}" for n in range(len(questions))], "question": questions})
        for name, questions in benchmarks.items()
    }


def found(**benchmarks: list[str]) -> list[tuple[object, ...]]:
    return list(find_contamination(tasks(**benchmarks)).itertuples(index=False, name=None))


def test_the_same_words_are_exact_in_any_case_and_spacing() -> None:
    assert found(a=["Who?", "What is 1 + 1?"], b=["Other", "what  IS 1 +\n1?"]) == [
        ("a", "a1", "b", "b1", "exact", 1.0),
        ("b", "b1", "a", "a1", "exact", 1.0),
    ]
    assert found(a=["What is 1 + 1?"], b=["What is 1 - 1?"]) == []


def test_near_duplicates_follow_the_rule_of_the_groups() -> None:
    assert found(a=[LONG], b=[FAR, CLOSE]) == [
        ("a", "a0", "b", "b1", "near_duplicate", 81 / 99),
        ("b", "b1", "a", "a0", "near_duplicate", 81 / 99),
    ]


def test_a_question_inside_a_longer_text_is_found_from_both_sides() -> None:
    longer = f"Read this and answer in one word, please. {RIVER.upper()} Options: Seine, Rhine, Rhone, Loire."
    report = found(a=[longer], b=["Where?", RIVER])
    assert [row[:5] for row in report] == [
        ("a", "a0", "b", "b1", "contains"),
        ("b", "b1", "a", "a0", "contained"),
    ]
    # Two shingles of the question's six words and marks among 22 of 26.
    assert {row[5] for row in report} == {2 / 22}


def test_words_in_another_order_or_apart_are_not_contained() -> None:
    assert found(a=["one two three four five six"], b=["two three four five six and one two three four five"]) == []
    assert found(a=["one two three four five"], b=["one two three and four five", "xone two three four fivex"]) == []


def test_a_question_of_fewer_than_five_words_is_looked_for_as_a_whole_only() -> None:
    assert found(a=["Name a river."], b=["Please: Name a river. Then name a lake and a sea."]) == []
    assert [row[4] for row in found(a=["Name a river."], b=["name a river."])] == ["exact", "exact"]


def test_a_task_is_reported_once_for_each_other_benchmark_by_the_strongest_kind() -> None:
    report = found(a=[f"Please answer: {LONG} {LONG}", CLOSE, LONG], b=[LONG, CLOSE], c=[LONG, LONG.upper()])
    assert [row[:5] for row in report] == [
        ("a", "a0", "b", "b0", "near_duplicate"),
        ("a", "a0", "c", "c0", "near_duplicate"),
        ("a", "a1", "b", "b1", "exact"),
        ("a", "a1", "c", "c0", "near_duplicate"),
        ("a", "a2", "b", "b0", "exact"),
        ("a", "a2", "c", "c0", "exact"),
        ("b", "b0", "a", "a2", "exact"),
        ("b", "b0", "c", "c0", "exact"),
        ("b", "b1", "a", "a1", "exact"),
        ("b", "b1", "c", "c0", "near_duplicate"),
        ("c", "c0", "a", "a2", "exact"),
        ("c", "c0", "b", "b0", "exact"),
        ("c", "c1", "a", "a2", "exact"),
        ("c", "c1", "b", "b0", "exact"),
    ]


def test_what_repeats_inside_one_benchmark_is_no_contamination() -> None:
    assert found(a=[LONG, CLOSE, LONG], b=["Another question entirely, of some words."]) == []
    assert find_contamination(tasks(a=[], b=[])).empty


def test_counts_are_tasks_per_pair_and_kind() -> None:
    report = find_contamination(tasks(a=[LONG, RIVER], b=[CLOSE, RIVER, f"{RIVER} In one word."], c=["x"]))
    assert counted(report).values.tolist() == [["a", "b", 1, 1, 0, 0], ["b", "a", 1, 1, 0, 1]]
    assert counted(report).columns.tolist() == [
        "benchmark",
        "other_benchmark",
        "exact",
        "near_duplicate",
        "contained",
        "contains",
    ]
    assert counted(find_contamination(tasks(a=[], b=[]))).empty


def test_the_data_version_follows_the_findings_alone() -> None:
    base = contamination_data_version(find_contamination(tasks(a=[RIVER, "Who?"], b=[RIVER])))
    assert contamination_data_version(find_contamination(tasks(a=[RIVER, "Whom?"], b=[RIVER]))) == base
    assert contamination_data_version(find_contamination(tasks(a=["Who?", RIVER], b=[RIVER]))) != base


@pytest.mark.parametrize("seed", range(6))
def test_the_report_is_that_of_comparing_everything_with_everything(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - test data, no secret
    texts = [[f"w{draw.randrange(12)}" for _ in range(draw.randrange(1, 30))] for _ in range(6)]
    benchmarks: dict[str, list[str]] = {"a": [], "b": [], "c": []}
    for _ in range(60):
        text = list(draw.choice(texts))
        if draw.random() < 0.5:
            text[draw.randrange(len(text))] = "other"
        first = draw.randrange(len(text))
        text = text[first:] if draw.random() < 0.5 else text
        benchmarks[draw.choice("abc")].append(" ".join(text))

    def grams(text: str) -> set[str]:
        words = text.split()
        return {" ".join(words[i : i + 5]) for i in range(max(1, len(words) - 4))}

    def kind(one: str, other: str) -> tuple[str | None, float]:
        a, b = grams(one), grams(other)
        similarity = len(a & b) / len(a | b)
        inside = {
            "exact": one == other,
            "near_duplicate": similarity >= 0.8,
            "contained": len(one.split()) >= 5 and f" {one} " in f" {other} ",
            "contains": len(other.split()) >= 5 and f" {other} " in f" {one} ",
        }
        return next((name for name, holds in inside.items() if holds), None), similarity

    expected = []
    for name, questions in benchmarks.items():
        for number, one in enumerate(questions):
            for other_name in benchmarks.keys() - {name}:
                matches = [
                    (("exact", "near_duplicate", "contained", "contains").index(how), -similarity, place, how)
                    for place, other in enumerate(benchmarks[other_name])
                    for how, similarity in [kind(one, other)]
                    if how is not None
                ]
                if matches:
                    _, negative, place, how = min(matches)
                    expected.append((name, f"{name}{number}", other_name, f"{other_name}{place}", how, -negative))
    assert len({row[4] for row in expected}) >= 3
    assert sorted(found(**benchmarks)) == sorted(expected)


def test_a_published_mixture_shows_what_it_was_mixed_from(shared_data: Callable[[str], Path]) -> None:
    """LLMRouter's test queries were drawn from HumanEval, MBPP and GSM8K among others."""
    with gzip.open(shared_data("humaneval/HumanEval.jsonl.gz"), "rt", encoding="utf-8") as stream:
        humaneval = [json.loads(line)["prompt"] for line in stream]
    mbpp = [row["prompt"] for row in json.loads(shared_data("mbpp/sanitized-mbpp.json").read_text(encoding="utf-8"))]
    queries = shared_data("recorded/llmrouter_9models/default_query_test.jsonl").read_text(encoding="utf-8")
    mixture = [json.loads(line)["query"] for line in queries.splitlines()]
    counts = counted(find_contamination(tasks(humaneval=humaneval, mbpp=mbpp, mixture=mixture)))
    assert sorted(counts.values.tolist()) == [
        ["humaneval", "mixture", 50, 0, 0, 0],
        ["mbpp", "mixture", 10, 0, 0, 0],
        ["mixture", "humaneval", 50, 0, 0, 0],
        ["mixture", "mbpp", 10, 0, 0, 0],
    ]
