"""What a worker is asked: one request per task and sample, known by the digest of everything that is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trinity_assets.spec import digest
from trinity_assets.workers.specs import Messages, WorkerSpec


@dataclass(frozen=True)
class AnswerRequest:
    """One question to one worker, with the sampling ``parameters`` that are sent.

    Requests with equal ``digest`` are the same question, whatever task they serve.
    """

    task_id: str
    sample: int
    messages: Messages
    parameters: dict[str, Any]
    digest: str


def answer_requests(
    worker: WorkerSpec, prompts: Mapping[str, str], epoch: int, purpose: str | None = None
) -> list[AnswerRequest]:
    """The requests of ``worker`` for ``prompts`` (task id -> rendered prompt), in task order, samples from 0 up.

    Requests with another ``purpose`` than a benchmark's answers (None) are never equal to those.
    """
    requests = []
    apart = {} if purpose is None else {"purpose": purpose}
    provider = worker.provider.identity()
    for task_id, prompt in prompts.items():
        messages = worker.prompt.messages(prompt)
        for sample in range(worker.samples):
            parameters = worker.sampling.parameters(sample)
            identity = {
                "provider": provider,
                "model": worker.model,
                "messages": messages,
                "sampling": parameters,
                "sample": sample,
                "epoch": epoch,
                **apart,
            }
            requests.append(AnswerRequest(task_id, sample, messages, parameters, digest(identity)))
    return requests
