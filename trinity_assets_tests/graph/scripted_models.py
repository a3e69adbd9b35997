"""The tasks of the small catalog and the models that answer them: who gets what right is a rule (:func:`solved`)."""

from __future__ import annotations

from dataclasses import dataclass

from trinity_assets_tests.scripted_server import Behaviour, Received, Reply, ScriptedServer, answer

WORKERS = {"direct": "m_direct", "terse": "m_terse", "long": "m_long"}
"""The model of each worker, in pool order."""

SUMS, ALL_SUMS, CAPITALS = 24, 28, 12
"""Tasks of each benchmark: ``sums`` is declared with a limit below what its file holds."""

LOUD = "Use capital letters."
"""A system text that makes every model write the words of its answer in capitals; numbers stay as they are."""


@dataclass(frozen=True)
class Task:
    """One row of a benchmark's file, by its number in it."""

    benchmark: str
    number: int
    question: str
    answer: str
    category: str

    @property
    def id(self) -> str:
        return f"{self.benchmark}_{self.number:02d}"


def _sum(number: int) -> Task:
    category = ("plus", "minus", "times")[number % 3]
    left, right = 20 + number, 3 + number * 5 % 11
    result = {"plus": left + right, "minus": left - right, "times": left * right}[category]
    return Task("sums", number, f"What is {left} {category} {right}?", str(result), category)


_CAPITALS = {
    "europe": {
        "France": "Paris",
        "Spain": "Madrid",
        "Italy": "Rome",
        "Austria": "Vienna",
        "Poland": "Warsaw",
        "Greece": "Athens",
    },
    "elsewhere": {
        "Japan": "Tokyo",
        "Egypt": "Cairo",
        "Peru": "Lima",
        "Kenya": "Nairobi",
        "Cuba": "Havana",
        "Canada": "Ottawa",
    },
}

TASKS: dict[str, list[Task]] = {
    "sums": [_sum(number) for number in range(ALL_SUMS)],
    "capitals": [
        Task("capitals", number, f"What is the capital city of {country}?", city, category)
        for number, (category, country, city) in enumerate(
            (category, country, city) for category, cities in _CAPITALS.items() for country, city in cities.items()
        )
    ],
}
_BY_QUESTION = {task.question: task for tasks in TASKS.values() for task in tasks}

_GOOD_AT = {
    "m_direct": ({"plus", "europe"}, 4),
    "m_terse": ({"minus", "elsewhere"}, 5),
    "m_long": ({"times"}, 2),
}
"""The categories that a model solves, and which multiples among the other tasks."""


def solved(model: str, task: Task) -> bool:
    """Whether ``model`` answers ``task`` right (and within its tokens)."""
    categories, every = _GOOD_AT[model]
    return not truncated(model, task) and (task.category in categories or task.number % every == 0)


def truncated(model: str, task: Task) -> bool:
    """Whether ``model`` runs into its token limit on ``task``."""
    return model == "m_long" and task.benchmark == "sums" and task.number % 9 == 4


_SAYS = {"m_direct": "The answer is {}.", "m_terse": "{}", "m_long": "I looked it up twice. The answer is {}."}


def model_text(model: str, task: Task, *, loud: bool = False) -> str:
    """What ``model`` answers to ``task`` when it is not cut short."""
    wrong = str(int(task.answer) + 1) if task.benchmark == "sums" else "Atlantis"
    said = task.answer if solved(model, task) else wrong
    return _SAYS[model].format(said.upper() if loud else said)


def model_behaviour(received: Received, delay_s: float = 0.0) -> Reply:
    """What the model of a request answers to it: the same whenever it is asked; it knows only the benchmarks."""
    model, messages = received.body["model"], received.messages
    task = next((task for question, task in _BY_QUESTION.items() if question in messages[-1]["content"]), None)
    if task is None:
        return answer(f"{model} has no idea.", delay_s=delay_s)(received)
    if truncated(model, task):
        return answer("Let me think about it for a while", finish="length", delay_s=delay_s)(received)
    text = model_text(model, task, loud=messages[0]["content"] == LOUD)
    return answer(text, delay_s=delay_s)(received)


def small_server(delay_s: float = 0.0) -> ScriptedServer:
    """The provider of the small catalog: every model behaves, and takes ``delay_s`` for an answer."""
    server = ScriptedServer(delay_s=delay_s)
    for model in WORKERS.values():
        server.script(model, behaving(server))
    return server


def behaving(server: ScriptedServer) -> Behaviour:
    """The behaviour of a model that is well, for scripts that begin or end with it."""
    return lambda received: model_behaviour(received, server.delay_s)
