"""Asking one worker in a process of its own.

litellm closes the connections of all event loops of a process when one of them ends, and whatever happens to one worker
then happens to no other.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import pandas as pd

from trinity_assets.errors import TrinityError
from trinity_assets.live_check.questions import AskedTask, WorkerQuestions, with_one_sample
from trinity_assets.workers.collection import Collection, collect
from trinity_assets.workers.ledger import Ledger
from trinity_assets.workers.litellm_library import keep_litellm_offline
from trinity_assets.workers.provider_errors import ADVICE
from trinity_assets.workers.redaction import redact
from trinity_assets.workers.retrying import RetryPolicy
from trinity_assets.workers.sent import Sent, asks, sent_bodies
from trinity_assets.workers.specs import WorkerSpec

RETRY = RetryPolicy(attempts=2, deadline_s=60.0, timeout_attempts=1, probes=1)
"""A check is there to see failures, not to outlast them; one retry leaves out the chance hiccup."""

PRELOADED = ["litellm", "trinity_assets.live_check.asking"]
"""What is slow to import, once, in the process that those of the workers are forked from."""

_PROCESSES = multiprocessing.get_context("forkserver")


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

    task: AskedTask
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


def prepare_processes() -> None:
    """Say what the process that those of the workers are forked from imports; it starts with the first of them."""
    keep_litellm_offline()
    _PROCESSES.set_forkserver_preload(PRELOADED)


def ask_in_a_process(asked: WorkerQuestions, ledger_url: str, run: str, budget_usd: float) -> list[Reply]:
    """The replies, in the order of the questions, up to the first that failed."""
    if not asked.questions:
        return []
    ours, theirs = _PROCESSES.Pipe(duplex=False)
    # The server that forks has the environment of when it was started.
    arguments = (theirs, with_one_sample(asked.worker), asked.questions, ledger_url, run, budget_usd, dict(os.environ))
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
        replies += [Reply(task, problem=died) for task in asked.questions[len(replies) :][:1]]
    return replies


def _ask(
    channel: Connection,
    worker: WorkerSpec,
    questions: Sequence[AskedTask],
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
    for task in questions:
        reply = _reply(worker, task, ledger_url, run, budget_usd)
        channel.send(reply)
        if reply.problem is not None:
            break
    channel.close()


def _reply(worker: WorkerSpec, task: AskedTask, ledger_url: str, run: str, budget_usd: float) -> Reply:
    with sent_bodies() as bodies:
        try:
            with Ledger(ledger_url) as ledger:
                collection = collect(
                    worker,
                    task.benchmark,
                    {task.task_id: task.prompt},
                    ledger,
                    epoch=task.epoch,
                    run=run,
                    run_budget_usd=budget_usd,
                    settle_timeouts=task.settle_timeouts,
                    retry=RETRY,
                )
        except TrinityError as error:
            kind = type(error).__name__.removesuffix("Error").lower()
            return Reply(task, problem=Problem(kind, redact(str(error))))
        except Exception as error:  # a fault of one worker's asking is no reason not to check the others
            return Reply(task, problem=Problem("fault", redact(f"{type(error).__name__}: {error}")))
    return Reply(
        task,
        answers=collection.frame,
        sent=next((Sent.of(body) for body in reversed(bodies) if asks(body, task.prompt)), None),
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
