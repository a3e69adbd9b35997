"""The starter benchmark: every gold answer is checked by another route than the one that wrote it."""

import importlib.util
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

OFFLINE = Path(__file__).resolve().parents[2] / "data" / "offline"
Task = dict[str, Any]

CITIES = """
Asia: Bangkok Thailand, Beijing China, Tokyo Japan
Africa: Cairo Egypt, Nairobi Kenya
America: Havana Cuba, Lima Peru, Ottawa Canada
Europe: Athens Greece, Berlin Germany, Budapest Hungary, Dublin Ireland, Lisbon Portugal, Madrid Spain, Moscow Russia,
 Oslo Norway, Paris France, Rome Italy, Vienna Austria, Warsaw Poland
"""
ANTONYMS = """
cold hot, down up, night day, right left, white black, closed open, close open, shut open, late early, dry wet,
empty full, poor rich, weak strong, false true, south north, hate love, hatred love, lose win, loss win, old young,
outside inside, narrow wide, sell buy, pull push
"""
PRINCIPAL_PARTS = """
begin began begun, break broke broken, buy bought bought, drink drank drunk, eat ate eaten, find found found,
fly flew flown, give gave given, go went gone, run ran run, see saw seen, sing sang sung, speak spoke spoken,
swim swam swum, take took taken, teach taught taught, think thought thought, write wrote written
"""
IRREGULAR_PLURALS = "child children, foot feet, goose geese, man men, mouse mice, sheep sheep, tooth teeth, woman women"
COUNTING = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
FALSE_CLAIMS = {
    "Do snakes have legs?", "Does the sun rise in the west?", "Is 7 an even number?", "Is Tokyo in Germany?",
    "Is a carrot an animal?", "Is a snake a bird?", "Is a spider an insect?", "Is an elephant smaller than a mouse?",
    "Is fire cold?", "Is the moon made of cheese?",
}  # fmt: skip
TRUE_CLAIMS = {
    "Can most birds fly?", "Do cows eat grass?", "Do fish live in water?", "Does ice melt when it gets warm?",
    "Is 10 an even number?", "Is Asia a continent?", "Is Paris in France?", "Is a rose a flower?",
    "Is a whale a mammal?", "Is the sun a star?",
}  # fmt: skip
STORY_RESULTS = {
    "buys": lambda a, b: a + b,
    "lost": lambda a, b: a - b,
    "gives": lambda a, b: a - b,
    "boxes": lambda a, b: a * b,
}


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    return [json.loads(line) for line in (OFFLINE / "starter.jsonl").read_text(encoding="utf-8").splitlines()]


def accepted(task: Task) -> set[str]:
    return {task["answer"]} if isinstance(task["answer"], str) else set(task["answer"])


def of_category(tasks: list[Task], category: str, question: str) -> list[tuple[re.Match[str], set[str]]]:
    """The tasks of a category, each as what its question matches and its accepted answers."""
    pairs = []
    for task in tasks:
        if task["category"] == category:
            match = re.fullmatch(question, task["question"])
            assert match, task
            pairs.append((match, accepted(task)))
    assert pairs
    return pairs


def groups(table: str) -> list[list[str]]:
    return [group.split() for group in re.sub(r"\w+:", ",", table).split(",") if group.strip()]


def test_the_file_is_what_its_generator_writes():
    spec = importlib.util.spec_from_file_location("make_starter", OFFLINE / "make_starter.py")
    assert spec and spec.loader
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    assert "".join(generator.starter_lines()).encode() == (OFFLINE / "starter.jsonl").read_bytes()


def test_shape(tasks: list[Task]):
    assert len(tasks) == 200
    sizes = Counter(task["category"] for task in tasks)
    assert len(sizes) == 10
    assert set(sizes.values()) == {20}
    assert all(set(task) == {"id", "question", "answer", "category"} for task in tasks)
    assert len({task["id"] for task in tasks}) == len(tasks)
    assert all(re.fullmatch(rf"{task['category']}_\d{{3}}", task["id"]) for task in tasks)
    assert all(accepted(task) and all(answer.strip() for answer in accepted(task)) for task in tasks)


def test_no_question_is_asked_twice(tasks: list[Task]):
    normal = Counter(" ".join(re.findall(r"\w+|[+]", task["question"].casefold())) for task in tasks)
    assert [question for question, times in normal.items() if times > 1] == []


def test_no_worker_is_shown_a_task_as_its_example(tasks: list[Task]):
    prompts = yaml.safe_load((OFFLINE / "workers.yaml").read_text(encoding="utf-8"))["prompts"]
    shown = {shot["user"] for prompt in prompts.values() for shot in prompt.get("shots", [])}
    assert shown
    assert shown & {task["question"] for task in tasks} == set()


def test_capitals(tasks: list[Task]):
    city_of = {country: city for city, country in groups(CITIES)}
    for asked, answers in of_category(tasks, "capitals", r"What is the capital of (\w+)\?"):
        assert answers == {city_of[asked[1]]}


def test_opposites(tasks: list[Task]):
    for asked, answers in of_category(tasks, "opposites", r"What is the opposite of (\w+)\?"):
        assert answers == {antonym for antonym, word in groups(ANTONYMS) if word == asked[1]}


def test_plurals(tasks: list[Task]):
    irregular = {noun: {plural} for noun, plural in groups(IRREGULAR_PLURALS)} | {"bus": {"buses", "busses"}}
    for asked, answers in of_category(tasks, "plurals", r"What is the plural of (\w+)\?"):
        assert answers == irregular.get(asked[1], {regular_plural(asked[1])})


def regular_plural(noun: str) -> str:
    if re.search(r"fe?$", noun):
        return re.sub(r"fe?$", "ves", noun)
    if re.search(r"[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    return noun + ("es" if re.search(r"(?:s|x|ch|sh|to)$", noun) else "s")


def test_past_tenses(tasks: list[Task]):
    past_of = {verb: past for verb, past, _ in groups(PRINCIPAL_PARTS)}
    for asked, answers in of_category(tasks, "past_tenses", r"What is the past tense of (\w+)\?"):
        assert answers == {past_of.get(asked[1], asked[1] + "ed")}
    regular = {asked[1] for asked, _ in of_category(tasks, "past_tenses", r".* of (\w+)\?")} - set(past_of)
    assert regular == {"play", "walk"}


def test_first_letters(tasks: list[Task]):
    for asked, answers in of_category(tasks, "first_letters", r"What is the first letter of the word (\w)\w+\?"):
        assert answers == {asked[1]}


def test_yes_no_is_right_and_balanced(tasks: list[Task]):
    asked = {task["question"]: task["answer"] for task in tasks if task["category"] == "yes_no"}
    assert asked == dict.fromkeys(TRUE_CLAIMS, "yes") | dict.fromkeys(FALSE_CLAIMS, "no")
    assert len(TRUE_CLAIMS) == len(FALSE_CLAIMS)


def test_sums(tasks: list[Task]):
    for asked, answers in of_category(tasks, "sums", r"What is (\d+) \+ (\d+)\?"):
        assert {int(answer) for answer in answers} == {int(asked[1]) + int(asked[2])}


def test_numerals(tasks: list[Task]):
    for asked, answers in of_category(tasks, "numerals", r"What number is (\w+)\?"):
        ones = COUNTING.index(asked[1]) + 1 if asked[1] in COUNTING else 0
        tens = 10 * (TENS.index(asked[1]) + 2) if asked[1] in TENS else 0
        assert {int(answer) for answer in answers} == {ones + tens}


def test_larger(tasks: list[Task]):
    for asked, answers in of_category(tasks, "larger", r"Which number is larger, (\d+) or (\d+)\?"):
        assert asked[1] != asked[2]
        assert {int(answer) for answer in answers} == {max(int(asked[1]), int(asked[2]))}


def test_stories(tasks: list[Task]):
    for asked, answers in of_category(tasks, "stories", r"\D+(\d+) \D+(\d+) \D+\?"):
        results = [result for verb, result in STORY_RESULTS.items() if f" {verb} " in asked[0]]
        assert len(results) == 1
        assert {int(answer) for answer in answers} == {results[0](int(asked[1]), int(asked[2]))}
