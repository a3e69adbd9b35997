"""Graders: one function per kind, from a completion and the gold payload to a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from trinity_assets.errors import GraderError, listed
from trinity_assets.grading import mathematics, procedural
from trinity_assets.grading.choices import grade_choice, read_options
from trinity_assets.grading.isolation import Isolation
from trinity_assets.grading.mathematics import grade_math
from trinity_assets.grading.numbers import extract_number
from trinity_assets.grading.procedural import grade_procedural
from trinity_assets.grading.python_functions import grade_function, read_checks, sandbox_facts
from trinity_assets.grading.short_answers import extract_short_answer, normalize_short_answer
from trinity_assets.grading.specs import (
    ChoiceGrader,
    ExactGrader,
    GraderSpec,
    MathGrader,
    NumberGrader,
    ProceduralGrader,
    PythonFunctionGrader,
    RecordedGrader,
)
from trinity_assets.grading.verdicts import Payload, Verdict, compared, nothing_found
from trinity_assets.texts import quoted


def grade(grader: GraderSpec, completion: str, payload: Payload) -> Verdict:
    """Grade one completion.

    Raises:
        GraderError: the payload is not what this grader needs, or grading itself failed; never a wrong completion.
    """
    return _FAMILIES[type(grader)].grade(grader, completion, payload)


def isolation(grader: GraderSpec) -> Isolation | None:
    """What the grader needs in the process of its own that it has to run in; None where it only compares text."""
    return _FAMILIES[type(grader)].isolation


def _exact(_grader: ExactGrader, completion: str, payload: Payload) -> Verdict:
    accepted = _accepted_answers(payload)
    numbers = [_decimal(answer) for answer in accepted]
    if all(number is not None for number in numbers):
        return _compare_numbers(completion, [number for number in numbers if number is not None])
    found = extract_short_answer(completion)
    if found.value is None:
        return nothing_found(found)
    answer = normalize_short_answer(found.value)
    solved = answer in {normalize_short_answer(gold) for gold in accepted}
    return compared(solved, found, answer)


def _number(_grader: NumberGrader, completion: str, payload: Payload) -> Verdict:
    return _compare_numbers(completion, _gold_numbers(payload))


def _gold_numbers(payload: Payload) -> list[Decimal]:
    golds: list[Decimal] = []
    for answer in _accepted_answers(payload):
        value = extract_number(answer).value
        if value is None:
            raise GraderError(f"the gold answer {quoted(answer)} holds no number; correct it in the benchmark's source")
        golds.append(Decimal(value))
    return golds


def _accepted_answers(payload: Payload) -> list[str]:
    answer = payload.get("answer")
    accepted = answer if isinstance(answer, list) else [answer]
    if not accepted or any(item is None or str(item).strip() == "" for item in accepted):
        raise GraderError("the gold payload has no 'answer'; map it under the benchmark's fields")
    return [str(item) for item in accepted]


def require_gradable(grader: GraderSpec, payloads: Mapping[str, Payload]) -> None:
    """See that every gold payload (by task id) is what ``grader`` needs, before anything is asked.

    Raises:
        GraderError: some are not; the message names the tasks and what is wrong with each.
    """
    faults = []
    for task_id, payload in payloads.items():
        try:
            _FAMILIES[type(grader)].read_gold(payload)
        except GraderError as error:
            faults.append(f"task {task_id!r}: {error}")
    if faults:
        raise GraderError(
            f"{len(faults)} of {len(payloads)} gold payloads cannot be graded by {grader.kind}:\n  "
            + listed(faults, "\n  ")
        )


def _nothing_to_grade(_grader: RecordedGrader, _completion: str, _payload: Payload) -> Verdict:
    raise GraderError("this benchmark's scores are all recorded; give it another grader where completions are graded")


@dataclass(frozen=True)
class _Family:
    """The graders of one kind. ``read_gold`` raises a GraderError for a payload that they cannot grade by."""

    grade: Callable[[Any, str, Payload], Verdict]
    read_gold: Callable[[Payload], object]
    isolation: Isolation | None = None


_FAMILIES: dict[type, _Family] = {
    ExactGrader: _Family(_exact, _accepted_answers),
    NumberGrader: _Family(_number, _gold_numbers),
    ChoiceGrader: _Family(grade_choice, read_options),
    MathGrader: _Family(grade_math, mathematics.read_golds, Isolation(mathematics.library_facts)),
    ProceduralGrader: _Family(grade_procedural, procedural.read_entry, Isolation(procedural.library_facts)),
    RecordedGrader: _Family(_nothing_to_grade, dict),
    PythonFunctionGrader: _Family(
        grade_function, read_checks, Isolation(sandbox_facts, lambda grader: grader.limits.cpu_s)
    ),
}


def _compare_numbers(completion: str, golds: list[Decimal]) -> Verdict:
    found = extract_number(completion)
    if found.value is None:
        return nothing_found(found)
    solved = Decimal(found.value) in golds
    return compared(solved, found, found.value)


def _decimal(text: str) -> Decimal | None:
    try:
        value = Decimal(text.strip().replace(",", ""))
    except InvalidOperation:
        return None
    return value if value.is_finite() else None
