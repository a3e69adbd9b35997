"""A live check: a few real questions to every worker, to see what goes out, what comes back, and how it is graded.

The questions are those of a build, under the same digests and in the same ledger, so what is bought here is not bought
again. Each worker is asked in a process of its own: litellm closes the connections of all event loops of a process when
one of them ends, and whatever happens to one worker then happens to no other.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import pandas as pd

from trinity_assets.errors import GraderError, TrinityError
from trinity_assets.grading.solves import grade_answers
from trinity_assets.grading.specs import GradingSpec
from trinity_assets.texts import counted
from trinity_assets.workers.collection import Collection, collect
from trinity_assets.workers.endpoints import missing_variables
from trinity_assets.workers.ledger import Ledger
from trinity_assets.workers.outcomes import Status
from trinity_assets.workers.provider_errors import ADVICE
from trinity_assets.workers.redaction import redact
from trinity_assets.workers.requests import answer_requests
from trinity_assets.workers.retrying import RetryPolicy
from trinity_assets.workers.sent import Sent, asks, sent_bodies
from trinity_assets.workers.specs import WorkerSpec

SIDE_BY_SIDE = 8
"""Workers that are asked at a time, each by a process of its own."""

RETRY = RetryPolicy(attempts=2, deadline_s=60.0, timeout_attempts=1, probes=1)
"""A check is there to see failures, not to outlast them; one retry leaves out the chance hiccup."""

PRELOADED = ["litellm", "trinity_assets.live_check"]
"""What is slow to import, once, in the process that those of the workers are forked from."""

_PROCESSES = multiprocessing.get_context("forkserver")


@dataclass(frozen=True)
class AskedBenchmark:
    """A benchmark as one worker is asked it: task id -> rendered prompt, in the ``epoch`` of the cell."""

    name: str
    prompts: Mapping[str, str]
    epoch: int
    settle_timeouts: bool


@dataclass(frozen=True)
class Question:
    """One task of a benchmark, as it is asked."""

    benchmark: str
    task_id: str
    prompt: str
    epoch: int
    settle_timeouts: bool


@dataclass(frozen=True)
class WorkerQuestions:
    """What one worker is to be asked; ``settled`` counts what the ledger holds already, by benchmark."""

    worker: WorkerSpec
    questions: tuple[Question, ...]
    settled: Mapping[str, int]


@dataclass(frozen=True)
class Problem:
    """Why a question has no answer: the class of the error, what was said, and what to do about it."""

    error_class: str
    said: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.error_class}: {self.said}" + (f" ({self.advice})" if self.advice else "")


@dataclass(frozen=True)
class Reply:
    """What came of a question: the ``answers`` table of it (one row, or none), what was sent, or the ``problem``.

    ``cost_usd`` is the known cost of all its calls, ``cost_unknown`` how many may have cost something else.
    """

    question: Question
    answers: pd.DataFrame | None = None
    sent: Sent | None = None
    calls: int = 0
    cost_usd: float = 0.0
    cost_unknown: int = 0
    problem: Problem | None = None

    @property
    def answer(self) -> dict[str, Any] | None:
        """The answer's row, nulls as None."""
        if self.answers is None or self.answers.empty:
            return None
        row = self.answers.iloc[0]
        return {str(name): None if pd.isna(value) else value for name, value in row.items()}


@dataclass(frozen=True)
class Grade:
    """What the benchmark's grader says of an answer: ``score`` None is missing. ``fault``: why it was not graded."""

    score: float | None
    rule: str = ""
    reason: str = ""
    fault: str | None = None


GradeAnswers = Callable[[str, str, pd.DataFrame], Sequence[Grade]]
"""The grades of a worker's answers to a benchmark, in their order."""


@dataclass(frozen=True)
class CheckedTask:
    """A reply and, where there is an answer, its grade."""

    reply: Reply
    grade: Grade | None


@dataclass(frozen=True)
class CheckedWorker:
    """One worker's part of the check."""

    asked: WorkerQuestions
    variables: tuple[str, ...]
    tasks: tuple[CheckedTask, ...]

    @property
    def worker(self) -> WorkerSpec:
        """Who was asked."""
        return self.asked.worker

    @property
    def wanted(self) -> dict[str, Any]:
        """The parameters of a body that says what the catalog does."""
        parameters = self.worker.sampling.parameters()
        return {"model": self.worker.model} | parameters.pop("extra", {}) | parameters

    @property
    def failures(self) -> list[str]:
        """Why a build would fail: each a sentence, once."""
        if self.variables:
            return [f"{', '.join(self.variables)} is not set"]
        return list(dict.fromkeys(str(task.reply.problem) for task in self.tasks if task.reply.problem))

    @property
    def remarks(self) -> list[str]:
        """What a person should look at although every question was settled."""
        return list(dict.fromkeys(self._remarks()))

    @property
    def verdict(self) -> str:
        """``ok``, or ``check: `` and why."""
        if found := [*self.failures, *self.remarks]:
            return f"check: {'; '.join(found)}"
        if not self.tasks:
            return f"ok: nothing is left to ask, {sum(self.asked.settled.values()):,} answers are in the ledger"
        return "ok"

    def _remarks(self) -> Iterator[str]:
        for task in self.tasks:
            if task.reply.sent is not None:
                for name, value in task.reply.sent.missing(self.wanted).items():
                    sent = task.reply.sent.parameters
                    how = f"went out as {sent[name]!r}" if name in sent else "was not sent"
                    yield f"{name} = {value!r} {how}"
            answer = task.reply.answer
            if answer is not None and answer["status"] != Status.ANSWERED:
                yield f"{answer['status']} on {task.reply.question.task_id}"
            if task.grade is not None and task.grade.fault:
                yield f"not graded: {task.grade.fault}"
        answered = [task for task in self.tasks if task.reply.answer is not None]
        if any(task.reply.answer and task.reply.answer["cost_usd"] is None for task in answered):
            yield "what it costs is unknown; give it a price"
        graded = [task.grade for task in answered if task.grade is not None and task.grade.fault is None]
        if graded and not any(grade.score for grade in graded):
            yield f"0 of {counted(len(graded), 'answer')} right; see the reasons"


def choose_questions(
    worker: WorkerSpec, benchmarks: Sequence[AskedBenchmark], ledger: Ledger, *, most: int
) -> WorkerQuestions:
    """The first ``most`` tasks of each of ``benchmarks`` that the ledger has no answer to.

    Of several samples only the first is looked at, and asked: the others go out with the same parameters.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    questions: list[Question] = []
    settled: dict[str, int] = {}
    for one in benchmarks:
        requests = answer_requests(_once(worker), one.prompts, one.epoch)
        found = ledger.settled(request.digest for request in requests)
        left = [request.task_id for request in requests if request.digest not in found]
        settled[one.name] = len(requests) - len(left)
        questions += [
            Question(one.name, task_id, one.prompts[task_id], one.epoch, one.settle_timeouts) for task_id in left[:most]
        ]
    return WorkerQuestions(worker, tuple(questions), settled)


def check_workers(
    asked: Sequence[WorkerQuestions],
    grade: GradeAnswers,
    *,
    ledger_url: str,
    run: str,
    budget_usd: float,
) -> list[CheckedWorker]:
    """Ask every worker its questions, beside each other, and grade what they answered.

    Workers whose key is missing are not asked. All calls together, which the ledger keeps under ``run``, cost at most
    ``budget_usd``.
    """
    variables = [tuple(missing_variables(one.worker)) for one in asked]
    # Read where litellm is imported: without it the import asks the network for a price list.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    _PROCESSES.set_forkserver_preload(PRELOADED)

    def check(one: WorkerQuestions, missing: tuple[str, ...]) -> CheckedWorker:
        replies = [] if missing else _ask_in_a_process(one, ledger_url, run, budget_usd)
        return CheckedWorker(one, missing, _graded(one.worker, replies, grade))

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return list(pool.map(check, asked, variables))


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
            answers.setdefault(reply.question.benchmark, []).append(reply.answers)
    grades = {
        name: iter(grade(worker.name, name, pd.concat(frames, ignore_index=True))) for name, frames in answers.items()
    }
    return tuple(
        CheckedTask(reply, next(grades[reply.question.benchmark]) if reply.answer is not None else None)
        for reply in replies
    )


def _ask_in_a_process(asked: WorkerQuestions, ledger_url: str, run: str, budget_usd: float) -> list[Reply]:
    """The replies, in the order of the questions, up to the first that failed."""
    if not asked.questions:
        return []
    ours, theirs = _PROCESSES.Pipe(duplex=False)
    # The server that forks has the environment of when it was started.
    arguments = (theirs, _once(asked.worker), asked.questions, ledger_url, run, budget_usd, dict(os.environ))
    process = _PROCESSES.Process(target=_ask, args=arguments, name=f"live-check-{asked.worker.name}", daemon=True)
    process.start()
    theirs.close()
    replies: list[Reply] = []
    with contextlib.suppress(EOFError):
        while True:
            replies.append(ours.recv())
    process.join()
    if process.exitcode:
        died = Problem("crashed", f"the process that asked ended with status {process.exitcode}", "run the check again")
        replies += [Reply(question, problem=died) for question in asked.questions[len(replies) :][:1]]
    return replies


def _ask(
    channel: Connection,
    worker: WorkerSpec,
    questions: Sequence[Question],
    ledger_url: str,
    run: str,
    budget_usd: float,
    environment: Mapping[str, str],
) -> None:
    """Ask one worker its questions one after another; each reply is sent as soon as it is there. A failure ends it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt is the caller's to speak of
    os.environ.clear()
    os.environ.update(environment)
    logging.getLogger("trinity_assets").setLevel(logging.CRITICAL)
    for question in questions:
        reply = _reply(worker, question, ledger_url, run, budget_usd)
        channel.send(reply)
        if reply.problem is not None:
            break
    channel.close()


def _reply(worker: WorkerSpec, question: Question, ledger_url: str, run: str, budget_usd: float) -> Reply:
    with sent_bodies() as bodies:
        try:
            with Ledger(ledger_url) as ledger:
                collection = collect(
                    worker,
                    question.benchmark,
                    {question.task_id: question.prompt},
                    ledger,
                    epoch=question.epoch,
                    run=run,
                    run_budget_usd=budget_usd,
                    settle_timeouts=question.settle_timeouts,
                    retry=RETRY,
                )
        except TrinityError as error:
            kind = type(error).__name__.removesuffix("Error").lower()
            return Reply(question, problem=Problem(kind, redact(str(error))))
        except Exception as error:  # a fault of one worker's asking is no reason not to check the others
            return Reply(question, problem=Problem("fault", redact(f"{type(error).__name__}: {error}")))
    return Reply(
        question,
        answers=collection.frame,
        sent=next((Sent.of(body) for body in reversed(bodies) if asks(body, question.prompt)), None),
        calls=collection.calls,
        cost_usd=collection.cost_usd,
        cost_unknown=collection.cost_unknown,
        problem=_problem(collection),
    )


def _problem(collection: Collection) -> Problem | None:
    if collection.complete:
        return None
    error_class = next(iter(collection.failures))
    said = collection.last_error or collection.stopped or "no answer"
    return Problem(error_class, said, ADVICE.get(error_class, ""))


def _once(worker: WorkerSpec) -> WorkerSpec:
    """``worker`` with one sample of each task."""
    return worker.model_copy(update={"samples": 1})
