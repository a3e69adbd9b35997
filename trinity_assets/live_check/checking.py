"""Checking all workers beside each other, and grading what they answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pandas as pd

from trinity_assets.errors import GraderError
from trinity_assets.grading.solves import grade_answers
from trinity_assets.grading.specs import GradingSpec
from trinity_assets.live_check.asking import Reply, ask_in_a_process, prepare_processes
from trinity_assets.live_check.findings import CheckedTask, CheckedWorker, Grade
from trinity_assets.live_check.questions import WorkerQuestions
from trinity_assets.workers.redaction import redact
from trinity_assets.workers.specs import WorkerSpec

SIDE_BY_SIDE = 8
"""Workers that are asked at a time, each by a process of its own."""

GradeAnswers = Callable[[str, str, pd.DataFrame], Sequence[Grade]]
"""The grades of a worker's answers to a benchmark, in their order."""


def check_workers(
    asked: Sequence[WorkerQuestions],
    missing_keys: Mapping[str, tuple[str, ...]],
    grade: GradeAnswers,
    *,
    ledger_url: str,
    run: str,
    budget_usd: float,
) -> list[CheckedWorker]:
    """Ask every worker its questions, beside each other, and grade what they answered.

    Workers that have ``missing_keys`` (worker -> variables that are not set) are not asked. All calls together, which
    the ledger keeps under ``run``, cost at most ``budget_usd``.
    """
    prepare_processes()

    def check(one: WorkerQuestions) -> CheckedWorker:
        missing = missing_keys[one.worker.name]
        replies = [] if missing else ask_in_a_process(one, ledger_url, run, budget_usd)
        return CheckedWorker(one, missing, _graded(one.worker, replies, grade))

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return list(pool.map(check, asked))


def grade_cell(answers: pd.DataFrame, gold: pd.DataFrame, spec: GradingSpec, label: str) -> list[Grade]:
    """The grades of one worker's ``answers`` to one benchmark, in their order; what cannot be graded says why."""
    try:
        frame = grade_answers(answers, gold, spec, label=label).frame
    except GraderError as error:
        return [Grade(None, fault=redact(str(error)))] * len(answers)
    return [
        Grade(None if pd.isna(row["score"]) else float(row["score"]), row["rule"], row["reason"])
        for row in frame.to_dict("records")
    ]


def _graded(worker: WorkerSpec, replies: Sequence[Reply], grade: GradeAnswers) -> tuple[CheckedTask, ...]:
    """The replies in their order; the answers of one benchmark are graded together."""
    answers: dict[str, list[pd.DataFrame]] = {}
    for reply in replies:
        if reply.answers is not None and not reply.answers.empty:
            answers.setdefault(reply.task.benchmark, []).append(reply.answers)
    grades = {
        name: iter(grade(worker.name, name, pd.concat(frames, ignore_index=True))) for name, frames in answers.items()
    }
    return tuple(
        CheckedTask(reply, next(grades[reply.task.benchmark]) if reply.answer is not None else None)
        for reply in replies
    )
