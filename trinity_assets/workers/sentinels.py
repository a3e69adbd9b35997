"""Sentinels: the few tasks of a worker that are asked again and again, to see a silent change of its model early.

A sentinel has epochs of its own, and its requests are never those of the answers that a router learns from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import pyarrow as pa

from trinity_assets.spec import digest
from trinity_assets.workers.operations import SentinelSpec
from trinity_assets.workers.specs import WorkerSpec
from trinity_assets.workers.tables import ANSWERS_SCHEMA, answers_data_version

SENTINEL = "sentinel"
"""The purpose of a sentinel's requests."""

SENTINEL_EPOCHS = f"{SENTINEL}/"
"""Under which name of a benchmark the ledger keeps a sentinel's epochs: no benchmark can have it, for its slash."""

SENTINEL_ANSWERS_SCHEMA = pa.schema([pa.field("benchmark", pa.string(), nullable=False), *ANSWERS_SCHEMA])
"""One row per task and repeat."""


def ledger_benchmark(benchmark: str) -> str:
    """What the ledger calls a benchmark where a sentinel asks it."""
    return f"{SENTINEL_EPOCHS}{benchmark}"


def sentinel_worker(worker: WorkerSpec, spec: SentinelSpec) -> WorkerSpec:
    """``worker`` as its sentinel asks it: with the sentinel's repeats for samples."""
    return worker.model_copy(update={"samples": spec.repeats})


def sentinel_tasks(spec: SentinelSpec, task_ids: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The tasks that a sentinel asks, by benchmark, in task order; ``task_ids`` are all that there are.

    Each benchmark gives equally many, as far as it has them: not in proportion to its size, which new tasks change.
    Those with the smallest digests of seed, benchmark and id are taken, so that a new task takes the place of at most
    one, and where a benchmark's tasks come in another order nothing changes.
    """
    quotas = dict.fromkeys(task_ids, 0)
    left = spec.tasks
    while left and (open_ones := [name for name in quotas if quotas[name] < len(task_ids[name])]):
        for name in open_ones[:left]:
            quotas[name] += 1
        left -= len(open_ones[:left])
    return {name: _drawn(spec.seed, name, ids, quotas[name]) for name, ids in task_ids.items()}


def _drawn(seed: int, benchmark: str, task_ids: Sequence[str], quota: int) -> list[str]:
    drawn = set(sorted(task_ids, key=lambda task_id: digest([seed, benchmark, task_id]))[:quota])
    return [task_id for task_id in task_ids if task_id in drawn]


def sentinel_answers_frame(answers: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The answers by benchmark as one table, in the columns of :data:`SENTINEL_ANSWERS_SCHEMA`."""
    return pd.concat([frame.assign(benchmark=name) for name, frame in answers.items()], ignore_index=True)


def sentinel_answers_data_version(frame: pd.DataFrame) -> str:
    """The digest of each benchmark's answers, as :func:`answers_data_version` of a cell."""
    return digest({str(name): answers_data_version(rows) for name, rows in frame.groupby("benchmark")})
