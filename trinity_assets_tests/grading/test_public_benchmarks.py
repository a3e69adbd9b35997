"""The public benchmarks' own solutions pass, in every form that models write them, and so does every reported case."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from trinity_assets.grading.processes import Graders, cores
from trinity_assets.grading.specs import NumberGrader, PythonFunctionGrader
from trinity_assets.grading.verdicts import Verdict

pytestmark = pytest.mark.usefixtures("sandbox")

FUNCTION = PythonFunctionGrader(kind="python_function")

FORMS: dict[str, Callable[[dict[str, str]], str]] = {
    "raw body": lambda task: task["canonical_solution"],
    "fenced body": lambda task: f"```python\n{task['canonical_solution']}```",
    "whole function": lambda task: task["prompt"] + task["canonical_solution"],
    "unlabelled fence": lambda task: f"Here you go:\n```\n{task['prompt']}{task['canonical_solution']}```\nDone.",
}


def graded(pairs: Iterable[tuple[str, dict[str, Any]]]) -> list[Verdict]:
    """The verdicts on completions with their gold payloads."""
    with Graders(FUNCTION, cores()) as graders, ThreadPoolExecutor(cores()) as threads:
        return list(threads.map(lambda pair: graders.grade(*pair), pairs))


@pytest.mark.parametrize("form", FORMS)
def test_humanevals_canonical_solutions_pass(form: str, humaneval: dict[str, dict[str, str]]) -> None:
    verdicts = graded((FORMS[form](task), task) for task in humaneval.values())
    failed = {name: verdict for name, verdict in zip(humaneval, verdicts, strict=True) if verdict.score != 1}
    assert failed == {}
    assert len(verdicts) == 164


def test_an_empty_body_passes_nowhere(humaneval: dict[str, dict[str, str]]) -> None:
    verdicts = graded(("    return None\n", task) for task in humaneval.values())
    assert [name for name, verdict in zip(humaneval, verdicts, strict=True) if verdict.score != 0] == []


def test_mbpps_solutions_pass_and_none_passes_for_another_task(shared_data: Callable[[str], Path]) -> None:
    tasks = json.loads(shared_data("mbpp/sanitized-mbpp.json").read_text(encoding="utf-8"))
    payloads = [{"tests": task["test_list"], "imports": task["test_imports"]} for task in tasks]
    solutions = [f"```python\n{task['code']}\n```" for task in tasks]
    verdicts = graded(zip(solutions, payloads, strict=True))
    assert {task["task_id"]: v for task, v in zip(tasks, verdicts, strict=True) if v.score != 1} == {}
    assert len(verdicts) == 427
    others = graded(zip(solutions[1:40], payloads[:39], strict=True))
    assert [verdict.score for verdict in others] == [0.0] * 39


def test_every_reported_case_is_graded_as_expected(
    grading_cases: list[dict[str, Any]], humaneval: dict[str, dict[str, str]]
) -> None:
    code = [case for case in grading_cases if case["benchmark"] != "gsm8k"]
    payloads = [
        humaneval[case["gold_or_task"]] if case["benchmark"] == "humaneval" else case["gold_or_task"] for case in code
    ]
    verdicts = dict(
        zip(
            (case["id"] for case in code),
            graded(zip((c["completion"] for c in code), payloads, strict=True)),
            strict=True,
        )
    )
    with Graders(NumberGrader(kind="number"), 1) as graders:
        for case in grading_cases:
            if case["benchmark"] == "gsm8k":
                verdicts[case["id"]] = graders.grade(case["completion"], {"answer": case["gold_or_task"]})
    assert len(verdicts) == 64
    expected = {case["id"]: float(case["expected"] == "pass") for case in grading_cases}
    assert {name: verdict.score for name, verdict in verdicts.items()} == expected
