"""What each worker of a router's table adds to the others, by its train tasks; also one that would join the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from trinity_assets.routing.admission import Admission, admission
from trinity_assets.routing.head import HeadRow
from trinity_assets.routing.headroom import RESAMPLES, Outcomes, table_outcomes
from trinity_assets.routing.headroom_report import emphasized
from trinity_assets.routing.oracle import sample_halves
from trinity_assets.routing.report import points
from trinity_assets.routing.specs import SplitSpec
from trinity_assets.routing.split import TRAIN
from trinity_assets.routing.statistics import Estimate
from trinity_assets.routing.table import ROUTER_TABLE, Cell, join_table
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets.store.tables import read_table
from trinity_assets.workers.specs import Price

SUMMARY_RESAMPLES = 400
"""Of each interval where all workers are summed up: its ends are placed to about an eighth of a standard error."""


@dataclass(frozen=True)
class PoolOutcomes:
    """What a pool's workers scored: the router ``table``, its ``pool`` in order, and the cells it was joined from.

    ``tasks`` are those that the table has rows of, per benchmark, in its order; ``workers`` have columns in it: the
    pool, and who was joined to it.
    """

    table: pd.DataFrame
    pool: tuple[HeadRow, ...]
    workers: tuple[str, ...]
    split: SplitSpec
    tasks: Mapping[str, pd.DataFrame]
    solves: Mapping[Cell, pd.DataFrame]

    def joined_by(self, worker: str, solves: Mapping[Cell, pd.DataFrame]) -> PoolOutcomes:
        """The same with one more worker, last in the pool; ``solves`` are its cells on every benchmark.

        Raises:
            TrainingError: a cell is absent, or holds tasks that the table does not.
        """
        measured = join_table(solves, self.tasks, [worker], self.split)
        columns = [name for name in measured if name not in self.table]
        return replace(
            self,
            table=pd.concat([self.table, measured[columns]], axis="columns"),
            workers=(*self.workers, worker),
            solves={**self.solves, **solves},
        )

    def admission(self, worker: str) -> Admission:
        """What ``worker`` adds to the others, by the train tasks alone.

        Raises:
            TrainingError: it is the only one, or too few train tasks have all scores.
        """
        halves = sample_halves(self.solves, self.table, self.workers)
        return _admission(_train(self.table, self.workers, halves), self.workers.index(worker), RESAMPLES)


def read_pool_outcomes(store: ArtifactStore, table_sha256: str) -> PoolOutcomes:
    """A router's table with the tasks and the cells that it was made from.

    Raises:
        ArtifactError: one of them is missing or damaged.
    """
    table = read_table(store, ROUTER_TABLE, table_sha256)
    tasks: dict[str, pd.DataFrame] = {}
    solves: dict[Cell, pd.DataFrame] = {}
    for name, sha256 in table.inputs.items():
        match name.split("/"):
            case ["benchmarks", benchmark, "tasks"]:
                tasks[benchmark] = read_table(store, "tasks", sha256).frame
            case ["solves", worker, benchmark]:
                solves[worker, benchmark] = read_table(store, "solves", sha256).frame
    pool = tuple(HeadRow.model_validate(row) for row in table.spec["pool"])
    return PoolOutcomes(
        table.frame,
        pool,
        tuple(row.name for row in pool),
        SplitSpec.model_validate(table.spec["split"]),
        {benchmark: tasks[benchmark] for benchmark in table.spec["benchmarks"]},
        solves,
    )


def admissions(
    table: pd.DataFrame,
    workers: Sequence[str],
    halves: np.ndarray | None = None,
    prices: Mapping[str, Price | None] | None = None,
) -> dict[str, Admission]:
    """What each worker of a router table adds to the others, by the train tasks; nothing where these cannot tell.

    Args:
        halves: as for ``headroom``, and so are ``prices``.
    """
    train = _train(table, workers, halves, prices)
    if len(workers) < 2 or len(np.unique(train.complete().folds)) < 2:
        return {}
    return {worker: _admission(train, place, SUMMARY_RESAMPLES) for place, worker in enumerate(workers)}


def admissions_lines(found: Mapping[str, Admission]) -> list[str]:
    """The question, and a line per worker: whether it adds anything, and the surest of its gains. Nothing of nobody."""
    if not found:
        return []
    return [
        "Is each worker worth having beside the others?",
        *(f"{worker}: {_added(one)}" for worker, one in found.items()),
    ]


def admissions_markdown(found: Mapping[str, Admission]) -> str:
    """The same as a paragraph and a list, after what stands before."""
    question, *answers = admissions_lines(found) or [""]
    return f"\n{question}\n\n" + "".join(f"- {emphasized(answer)}\n" for answer in answers) if found else ""


def _train(
    table: pd.DataFrame,
    workers: Sequence[str],
    halves: np.ndarray | None,
    prices: Mapping[str, Price | None] | None = None,
) -> Outcomes:
    return table_outcomes(table, workers, halves, prices).where((table["split"] == TRAIN).to_numpy())


def _admission(train: Outcomes, worker: int, resamples: int) -> Admission:
    return admission(
        train.scores,
        train.benchmarks,
        worker,
        costs=train.costs,
        folds=train.folds,
        groups=train.groups,
        halves=train.halves,
        resamples=resamples,
    )


def _added(found: Admission) -> str:
    most = f"at most {points(found.oracle.high)} points to a perfect router"
    if found.answer != "yes":
        return f"**{found.answer}**, nothing that is surely more than chance, and {most}"
    gains = {"the best single worker": found.single, "the best worker per benchmark": found.lookup}
    if found.cross_fitted:
        gains["a perfect router, cross-fitted"] = found.cross_fitted
    to, surest = max(gains.items(), key=lambda gain: gain[1].low)
    return f"**yes**, it adds {_interval(surest)} to {to}, and {most}"


def _interval(gain: Estimate) -> str:
    return f"{points(gain.value)} points ({points(gain.low)} to {points(gain.high)})"
