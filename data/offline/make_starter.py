"""Writes starter.jsonl, this project's own benchmark: questions that a 135M-parameter model partly solves.

    python data/offline/make_starter.py

Ten kinds of question, twenty of each. Word facts are written out below, chosen so that one answer (or a short list
of accepted ones) is right; numbers and stories come from a seeded generator. The file comes out the same everywhere.
"""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

Answer = str | list[str]
QuestionAnswer = tuple[str, Answer]

STARTER = Path(__file__).with_name("starter.jsonl")
PER_CATEGORY = 20

CAPITALS: dict[str, Answer] = {
    "France": "Paris", "Italy": "Rome", "Japan": "Tokyo", "Germany": "Berlin", "Spain": "Madrid", "Portugal": "Lisbon",
    "Greece": "Athens", "Egypt": "Cairo", "Russia": "Moscow", "China": "Beijing", "Canada": "Ottawa",
    "Poland": "Warsaw", "Austria": "Vienna", "Ireland": "Dublin", "Norway": "Oslo", "Kenya": "Nairobi", "Peru": "Lima",
    "Cuba": "Havana", "Thailand": "Bangkok", "Hungary": "Budapest",
}  # fmt: skip
OPPOSITES: dict[str, Answer] = {
    "hot": "cold", "up": "down", "day": "night", "left": "right", "black": "white", "open": ["closed", "close", "shut"],
    "early": "late", "wet": "dry", "full": "empty", "rich": "poor", "strong": "weak", "true": "false",
    "north": "south", "love": ["hate", "hatred"], "win": ["lose", "loss"], "young": "old", "inside": "outside",
    "wide": "narrow", "buy": "sell", "push": "pull",
}  # fmt: skip
PLURALS: dict[str, Answer] = {
    "mouse": "mice", "child": "children", "foot": "feet", "tooth": "teeth", "goose": "geese", "man": "men",
    "woman": "women", "leaf": "leaves", "wolf": "wolves", "knife": "knives", "city": "cities", "baby": "babies",
    "box": "boxes", "church": "churches", "bus": ["buses", "busses"], "potato": "potatoes", "tomato": "tomatoes",
    "sheep": "sheep", "dog": "dogs", "table": "tables",
}  # fmt: skip
PAST_TENSES: dict[str, Answer] = {
    "go": "went", "eat": "ate", "run": "ran", "see": "saw", "write": "wrote", "take": "took", "buy": "bought",
    "think": "thought", "swim": "swam", "sing": "sang", "break": "broke", "give": "gave", "find": "found",
    "teach": "taught", "drink": "drank", "fly": "flew", "begin": "began", "speak": "spoke", "walk": "walked",
    "play": "played",
}  # fmt: skip
FIRST_LETTERS = (
    "apple", "banana", "guitar", "window", "river", "pencil", "kitchen", "yellow", "dragon", "orange", "monkey",
    "zebra", "table", "jungle", "letter", "violin", "honey", "factory", "summer", "castle",
)  # fmt: skip
NUMERALS = {
    3: "three", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten", 11: "eleven", 12: "twelve",
    13: "thirteen", 14: "fourteen", 15: "fifteen", 18: "eighteen", 19: "nineteen", 20: "twenty", 30: "thirty",
    40: "forty", 50: "fifty", 80: "eighty", 90: "ninety",
}  # fmt: skip
YES = (
    "Is a whale a mammal?", "Is the sun a star?", "Can most birds fly?", "Is 10 an even number?", "Is Paris in France?",
    "Do cows eat grass?", "Does ice melt when it gets warm?", "Is a rose a flower?", "Do fish live in water?",
    "Is Asia a continent?",
)  # fmt: skip
NO = (
    "Is the moon made of cheese?", "Is a snake a bird?", "Is 7 an even number?", "Is Tokyo in Germany?",
    "Do snakes have legs?", "Is fire cold?", "Is a carrot an animal?", "Is a spider an insect?",
    "Does the sun rise in the west?", "Is an elephant smaller than a mouse?",
)  # fmt: skip

STORIES: tuple[tuple[str, Callable[[int, int], int]], ...] = (
    ("{name} has {a} {things} and buys {b} more. How many {things} does {name} have in all?", lambda a, b: a + b),
    ("{name} had {a} {things} and lost {b} of them. How many {things} are left?", lambda a, b: a - b),
    ("{name} has {a} boxes with {b} {things} in each box. How many {things} are there in all?", lambda a, b: a * b),
    ("{name} has {a} {things} and gives {b} of them to a friend. How many {things} are left?", lambda a, b: a - b),
)
NAMES = ("Tom", "Anna", "Ben", "Maria", "Sam", "Lucy", "Omar", "Nina", "Peter", "Zoe")
THINGS = ("apples", "pencils", "books", "marbles", "cookies", "stamps", "shells")


def categories(rng: random.Random) -> Iterator[tuple[str, list[QuestionAnswer]]]:
    yield "capitals", [(f"What is the capital of {country}?", city) for country, city in CAPITALS.items()]
    yield "opposites", [(f"What is the opposite of {word}?", other) for word, other in OPPOSITES.items()]
    yield "plurals", [(f"What is the plural of {noun}?", plural) for noun, plural in PLURALS.items()]
    yield "past_tenses", [(f"What is the past tense of {verb}?", past) for verb, past in PAST_TENSES.items()]
    yield "first_letters", [(f"What is the first letter of the word {word}?", word[0]) for word in FIRST_LETTERS]
    yield "yes_no", [(question, "yes") for question in YES] + [(question, "no") for question in NO]
    yield "sums", [(f"What is {a} + {b}?", str(a + b)) for a, b in number_pairs(rng, 2, 12)]
    yield "numerals", [(f"What number is {word}?", str(number)) for number, word in NUMERALS.items()]
    yield "larger", [(f"Which number is larger, {a} or {b}?", str(max(a, b))) for a, b in number_pairs(rng, 2, 99)]
    yield "stories", list(stories(rng))


def number_pairs(rng: random.Random, low: int, high: int) -> list[tuple[int, int]]:
    """Twenty different pairs of two different numbers in random order; no pair is another one turned round."""
    every = [(a, b) for a in range(low, high + 1) for b in range(a + 1, high + 1)]
    return [rng.choice(((a, b), (b, a))) for a, b in rng.sample(every, PER_CATEGORY)]


def stories(rng: random.Random) -> Iterator[QuestionAnswer]:
    for index in range(PER_CATEGORY):
        template, result = STORIES[index % len(STORIES)]
        a, b = rng.randint(5, 9), rng.randint(2, 4)
        name, things = NAMES[index % len(NAMES)], THINGS[index % len(THINGS)]
        yield template.format(name=name, things=things, a=a, b=b), str(result(a, b))


def starter_lines(seed: int = 0) -> Iterator[str]:
    for category, pairs in categories(random.Random(seed)):  # noqa: S311 - reproducible, not secret
        for number, (question, answer) in enumerate(pairs, start=1):
            row = {"id": f"{category}_{number:03}", "question": question, "answer": answer, "category": category}
            yield json.dumps(row) + "\n"


if __name__ == "__main__":
    STARTER.write_text("".join(starter_lines()), encoding="utf-8", newline="\n")
