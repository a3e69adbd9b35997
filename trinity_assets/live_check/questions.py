"""Which questions a live check asks: the first few tasks of each cell that the ledger has no answer to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trinity_assets.workers.ledger import Ledger
from trinity_assets.workers.requests import answer_requests
from trinity_assets.workers.specs import WorkerSpec


@dataclass(frozen=True)
class AskedBenchmark:
    """A benchmark as one worker is asked it: task id -> rendered prompt, in the ``epoch`` of the cell."""

    name: str
    prompts: Mapping[str, str]
    epoch: int
    settle_timeouts: bool


@dataclass(frozen=True)
class AskedTask:
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
    questions: tuple[AskedTask, ...]
    settled: Mapping[str, int]


def choose_questions(
    worker: WorkerSpec, benchmarks: Sequence[AskedBenchmark], ledger: Ledger, *, most: int
) -> WorkerQuestions:
    """The first ``most`` tasks of each of ``benchmarks`` that the ledger has no answer to.

    Of several samples only the first is looked at, and asked: the others go out with the same parameters.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    questions: list[AskedTask] = []
    settled: dict[str, int] = {}
    for one in benchmarks:
        requests = answer_requests(with_one_sample(worker), one.prompts, one.epoch)
        found = ledger.settled(request.digest for request in requests)
        left = [request.task_id for request in requests if request.digest not in found]
        settled[one.name] = len(requests) - len(left)
        questions += [
            AskedTask(one.name, task_id, one.prompts[task_id], one.epoch, one.settle_timeouts)
            for task_id in left[:most]
        ]
    return WorkerQuestions(worker, tuple(questions), settled)


def with_one_sample(worker: WorkerSpec) -> WorkerSpec:
    """``worker`` with one sample of each task."""
    return worker.model_copy(update={"samples": 1})
