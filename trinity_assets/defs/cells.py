"""A cell as it is now, read by those who compare it with itself at another time: tasks, gold, answers, verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg

from trinity_assets.catalog.catalog import Benchmark
from trinity_assets.defs import keys
from trinity_assets.defs.answers import answers_identity
from trinity_assets.defs.lineage import Upstream
from trinity_assets.defs.solves import solves_identity
from trinity_assets.errors import ArtifactError
from trinity_assets.spec import digest
from trinity_assets.workers.specs import WorkerSpec

if TYPE_CHECKING:
    import pandas as pd

    from trinity_assets.store.artifacts import ArtifactStore

AskedCell = tuple[WorkerSpec, Benchmark]


@dataclass(frozen=True)
class PresentCell:
    """What there is of a cell. ``solves`` is None where the solve table is missing or of another grader or gold."""

    prompts: dict[str, str]
    gold: pd.DataFrame
    answers: pd.DataFrame
    solves: pd.DataFrame | None


def cell_keys(worker: WorkerSpec, benchmark: Benchmark) -> list[dg.AssetKey]:
    """The assets that :func:`present_cell` reads."""
    return [
        keys.tasks(benchmark.name),
        keys.gold(benchmark.name),
        keys.answers(worker.name, benchmark.name),
        keys.solves(worker.name, benchmark.name),
    ]


def cell_digest(worker: WorkerSpec, benchmark: Benchmark) -> str:
    """The digest of what decides a cell's answers and verdicts beside tasks and gold."""
    return digest([answers_identity(worker, benchmark), solves_identity(worker, benchmark)])


def present_cell(upstream: Upstream, artifacts: ArtifactStore, worker: WorkerSpec, benchmark: Benchmark) -> PresentCell:
    """The newest artifacts of a cell.

    Raises:
        ArtifactError: tasks, gold or answers are missing or damaged, or the answers were asked in another way than the
            catalog says now.
    """
    from trinity_assets.benchmarks.snapshots import rendered_prompts
    from trinity_assets.store.tables import read_table

    tasks_key, gold_key, answers_key, solves_key = cell_keys(worker, benchmark)
    tasks = read_table(artifacts, "tasks", upstream.sha256(tasks_key)).frame
    gold = read_table(artifacts, "gold", upstream.sha256(gold_key))
    identity = answers_identity(worker, benchmark)
    answers = read_table(artifacts, "answers", upstream.sha256(answers_key), identity).frame
    try:
        solves = read_table(artifacts, "solves", upstream.sha256(solves_key), solves_identity(worker, benchmark))
    except ArtifactError:
        solves = None
    if solves is not None and solves.inputs.get(gold_key.to_user_string()) != gold.sha256:
        solves = None
    return PresentCell(
        rendered_prompts(benchmark.snapshot, tasks), gold.frame, answers, solves.frame if solves is not None else None
    )
