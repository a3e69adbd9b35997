"""What a live check finds: of each task, of each worker, and as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from trinity_assets.live_check.asking import Reply
from trinity_assets.live_check.questions import WorkerQuestions
from trinity_assets.texts import counted
from trinity_assets.workers.outcomes import Status
from trinity_assets.workers.specs import WorkerSpec


@dataclass(frozen=True)
class Grade:
    """What the benchmark's grader says of an answer: ``score`` None is missing. ``fault``: why it was not graded."""

    score: float | None
    rule: str = ""
    reason: str = ""
    fault: str | None = None


@dataclass(frozen=True)
class CheckedTask:
    """A reply and, where there is an answer, its grade."""

    reply: Reply
    grade: Grade | None


@dataclass(frozen=True)
class CheckedWorker:
    """One worker's part of the check. With ``missing_keys``, variables that are not set, it was not asked."""

    asked: WorkerQuestions
    missing_keys: tuple[str, ...]
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
        if self.missing_keys:
            return [f"{', '.join(self.missing_keys)} is not set"]
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
                yield f"{answer['status']} on {task.reply.task.task_id}"
            if task.grade is not None and task.grade.fault:
                yield f"not graded: {task.grade.fault}"
        answered = [task for task in self.tasks if task.reply.answer is not None]
        if any(task.reply.answer and task.reply.answer["cost_usd"] is None for task in answered):
            yield "what it costs is unknown; give it a price"
        graded = [task.grade for task in answered if task.grade is not None and task.grade.fault is None]
        if graded and not any(grade.score for grade in graded):
            yield f"0 of {counted(len(graded), 'answer')} right; see the reasons"


@dataclass(frozen=True)
class LiveCheck:
    """A whole check. ``run`` is what the ledger calls it; ``at`` is its start, in UTC."""

    catalog: Path
    run: str
    at: datetime
    budget_usd: float
    workers: Sequence[CheckedWorker]

    @property
    def spent_usd(self) -> float:
        """The known cost of all its calls."""
        return sum(task.reply.cost_usd for worker in self.workers for task in worker.tasks)

    @property
    def spent(self) -> str:
        """What it cost, in words."""
        unknown = sum(task.reply.cost_unknown for worker in self.workers for task in worker.tasks)
        calls = sum(task.reply.calls for worker in self.workers for task in worker.tasks)
        more = f", and {counted(unknown, 'call')} of unknown cost" if unknown else ""
        return f"{self.spent_usd:.6f} USD for {counted(calls, 'call')}{more}, of {self.budget_usd:g} USD allowed"
