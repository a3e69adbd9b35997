"""Generated tasks: the answer that is found, the scorer's own score, and what no scorer may evaluate."""

from __future__ import annotations

import builtins
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from trinity_assets.errors import GraderError
from trinity_assets.grading import procedural
from trinity_assets.grading.graders import grade
from trinity_assets.grading.procedural import ARITHMETIC_SCORERS, VALUE_SCORERS, extract_tagged
from trinity_assets.grading.specs import ProceduralGrader

PROCEDURAL = ProceduralGrader(kind="procedural")

needs_package = pytest.mark.usefixtures("reasoning_gym")

JSON_LOSES = {"arc_agi", "rearc"}
"""Data sets whose scorers compare tuples, which JSON turns into lists: no snapshot takes them."""


def entry_of(dataset: str, number: int = 0) -> dict[str, Any]:
    import reasoning_gym

    entry: dict[str, Any] = json.loads(json.dumps(reasoning_gym.create_dataset(dataset, seed=7, size=5)[number]))
    return entry


@pytest.mark.parametrize(
    ("text", "value", "rule"),
    [
        ("<answer>7</answer>", "7", "answer_tag"),
        ("<answer>\n1 2\n3 4\n</answer> as asked", "1 2\n3 4", "answer_tag"),
        ("<answer>6</answer> no, <answer>7</answer>", "7", "answer_tag"),
        ("<think><answer>6</answer></think>The answer is 7", "7", "answer_marker"),
        ("<answer>7", "<answer>7", "last_line"),
        ("Let us see.\n\n7\n", "7", "last_line"),
        ("", None, "empty"),
        ("<think>7", None, "unclosed_think"),
    ],
)
def test_reads_the_answer_by_the_first_rule_that_applies(text: str, value: str | None, rule: str) -> None:
    found = extract_tagged(text)
    assert (found.value, found.rule) == (value, rule)


@needs_package
@pytest.mark.parametrize("dataset", ["chain_sum", "caesar_cipher", "spiral_matrix", "countdown", "simple_integration"])
def test_the_entrys_own_answer_is_right_and_another_is_not(dataset: str) -> None:
    entry = entry_of(dataset)
    payload = {"dataset": dataset, "entry": entry}
    assert grade(PROCEDURAL, f"So:\n<answer>{entry['answer']}</answer>", payload).score == 1
    assert grade(PROCEDURAL, "<answer>12345</answer>", payload).score < 0.1


@needs_package
def test_every_data_set_scores_its_own_answers_as_it_does_itself() -> None:
    import reasoning_gym
    from reasoning_gym.factory import DATASETS

    other = {}
    for name in sorted(DATASETS.keys() - JSON_LOSES - {"composite"}):
        dataset = reasoning_gym.create_dataset(name, seed=7, size=1)
        entry = dataset[0]
        if entry["answer"] is None:
            continue
        payload = {"dataset": name, "entry": json.loads(json.dumps(entry))}
        verdict = grade(PROCEDURAL, f"<answer>{entry['answer']}</answer>", payload)
        if verdict.score != dataset.score_answer(entry["answer"], entry):
            other[name] = verdict
    assert other == {}


@needs_package
def test_partial_credit_is_kept() -> None:
    entry = entry_of("spiral_matrix")
    as_list = str([int(number) for number in entry["answer"].split()])
    assert grade(PROCEDURAL, f"<answer>{as_list}</answer>", {"dataset": "spiral_matrix", "entry": entry}).score == 0.1


@needs_package
def test_the_listed_scorers_are_those_that_evaluate_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    import sympy  # type: ignore[import-untyped]
    from reasoning_gym.factory import DATASETS, get_score_answer_fn

    marker = "7001 + 7002"
    evaluated: set[str] = set()
    current = ""
    run = builtins.eval

    def watching(source: object, *scopes: Any) -> object:
        if "7001" in str(source):
            evaluated.add(current)
        return run(source, *scopes)  # type: ignore[arg-type]

    parse = sympy.parse_expr

    def watching_sympy(text: str, *arguments: Any, **options: Any) -> object:
        if "7001" in text:
            evaluated.add(current)
        return parse(text, *arguments, **options)

    monkeypatch.setattr(builtins, "eval", watching)
    for module in [module for name, module in sys.modules.items() if name.split(".")[0] in ("sympy", "reasoning_gym")]:
        if getattr(module, "parse_expr", None) is parse:
            monkeypatch.setattr(module, "parse_expr", watching_sympy)
    for current in sorted(DATASETS.keys() - {"composite"}):
        try:
            get_score_answer_fn(current)(marker, entry_of(current))
        except Exception:  # noqa: S112 - what it makes of the text is not asked here
            continue
    assert evaluated == VALUE_SCORERS | ARITHMETIC_SCORERS


@needs_package
@pytest.mark.parametrize("dataset", sorted(VALUE_SCORERS | ARITHMETIC_SCORERS))
@pytest.mark.parametrize(
    "hostile",
    [
        "__import__('pathlib').Path('{mark}').touch()",
        "open('{mark}', 'w')",
        "[open('{mark}', 'w') for _ in (1,)]",
        "(lambda: open('{mark}', 'w'))()",
        "().__class__.__base__.__subclasses__()",
        "(1).__class__.__x!",
        "sin(__import__('pathlib').Path('{mark}').touch())",
        "9**9**9**9",
        "((9**99)**99)**99",
        "[0] * 10**10",
        "'a' * 10**10",
    ],
)
def test_no_scorer_evaluates_code(dataset: str, hostile: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    verdict = grade(
        PROCEDURAL,
        f"<answer>{hostile.replace('{mark}', str(mark))}</answer>",
        {"dataset": dataset, "entry": entry_of(dataset)},
    )
    assert not mark.exists()
    assert verdict.score < 0.1
    assert verdict.rule == "refused_code" or (dataset in VALUE_SCORERS and hostile.endswith("!"))


class Scorers:
    """Stand-ins for what a scorer may do."""

    @staticmethod
    def stumbles_over_some(answer: str | None, entry: dict[str, Any]) -> float:
        return {"right": 1.0}[answer or ""]

    @staticmethod
    def fails(answer: str | None, entry: dict[str, Any]) -> float:
        return float(entry["missing"])

    @staticmethod
    def says_nan(answer: str | None, entry: dict[str, Any]) -> float:
        return float("nan")


def with_scorer(monkeypatch: pytest.MonkeyPatch, scorer: procedural.Scorer) -> dict[str, Any]:
    monkeypatch.setattr(procedural, "scorer_of", lambda dataset: scorer)
    return {"dataset": "any", "entry": {"answer": "right"}}


def test_an_answer_that_the_scorer_cannot_read_scores_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = with_scorer(monkeypatch, Scorers.stumbles_over_some)
    assert grade(PROCEDURAL, "right", payload).score == 1
    verdict = grade(PROCEDURAL, "other", payload)
    assert (verdict.score, verdict.reason) == (0, "the scorer could not read 'other': KeyError")


@pytest.mark.parametrize("scorer", [Scorers.fails, Scorers.says_nan])
def test_an_entry_that_cannot_be_scored_is_the_graders_error(
    monkeypatch: pytest.MonkeyPatch, scorer: procedural.Scorer
) -> None:
    payload = with_scorer(monkeypatch, scorer)
    with pytest.raises(GraderError, match="cannot score its own answer"):
        grade(PROCEDURAL, "right", payload)


def test_a_missing_package_is_the_graders_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    procedural.scorer_of.cache_clear()
    with pytest.raises(GraderError, match=r"pip install 'trinity-assets\[procedural\]'"):
        grade(PROCEDURAL, "7", {"dataset": "chain_sum", "entry": {}})


@needs_package
def test_an_unknown_data_set_is_the_graders_error() -> None:
    with pytest.raises(GraderError, match="no data set 'chain_sun'"):
        grade(PROCEDURAL, "7", {"dataset": "chain_sun", "entry": {}})


@pytest.mark.parametrize("payload", [{}, {"dataset": "chain_sum"}, {"dataset": 3, "entry": {}}])
def test_a_payload_without_an_entry_is_the_graders_error(payload: dict[str, Any]) -> None:
    with pytest.raises(GraderError, match="no 'dataset' and 'entry'"):
        grade(PROCEDURAL, "7", payload)
