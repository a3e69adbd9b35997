"""A router from a table and features alone: what the assets of a router do, without Dagster and without files.

The heads, their evaluation and the gate's decision are those that the assets would record for the same table: both
call the same functions with the same defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from trinity_assets.errors import TrainingError, listed
from trinity_assets.routing.admission import Admission
from trinity_assets.routing.evaluation import evaluate
from trinity_assets.routing.gate import GateResult
from trinity_assets.routing.head import BestSingle, best_single_on_train
from trinity_assets.routing.headroom import Headroom, headroom
from trinity_assets.routing.looks import LooksLog
from trinity_assets.routing.objective import training_objective
from trinity_assets.routing.pool_admission import admissions
from trinity_assets.routing.results import Evaluation
from trinity_assets.routing.specs import RouterTraining, SplitSpec
from trinity_assets.routing.split import with_split
from trinity_assets.routing.table import priced_costs, router_table_schema, table_workers
from trinity_assets.routing.trainers.all_heads import learners
from trinity_assets.routing.trainers.head import FROM_ZERO, Start, TrainedHead, TrainingRecord
from trinity_assets.routing.warm_start import EarlierHead, named_rows, train_from
from trinity_assets.workers.specs import Price


@dataclass(frozen=True)
class FittedRouter:
    """A trained and judged router.

    Attributes:
        workers: the pool, in the order of the heads' rows.
        table: what it was trained and judged on, with the split.
        heads: one per trainer, then those at each cost weight; the weights of each are (L, H) float32.
        headroom: what a router could gain, by the train tasks.
        admissions: what each worker adds to the others, by the train tasks; empty where they cannot tell.
        evaluation: every head on the held-out tasks, and the gate's decisions.
        split: which tasks are held out.
        export: the head that is published if it may be.
        best_single_on_train: the worker that it has to beat.
    """

    workers: tuple[str, ...]
    table: pd.DataFrame
    heads: dict[str, TrainedHead]
    headroom: Headroom
    admissions: dict[str, Admission]
    evaluation: Evaluation
    split: SplitSpec
    export: str
    best_single_on_train: BestSingle

    @property
    def gate(self) -> GateResult:
        """What the gate decided about the exported head."""
        return self.evaluation.gate(self.export)

    @property
    def constant(self) -> str | None:
        """The worker that the published policy asks whatever the question, None where it is the exported head."""
        return constant_worker(self.evaluation, self.export, self.heads[self.export].record)

    @property
    def policy(self) -> str:
        """What would be published, in words."""
        return f"always {self.constant}" if self.constant else f"the head of {self.export}"

    def route(self, features: np.ndarray) -> list[str]:
        """The worker to ask, by what would be published, for each feature (n, H).

        Raises:
            TrainingError: the features are of another width than the heads, or not finite.
        """
        head = self.heads[self.export]
        if features.ndim != 2 or features.shape[1] != head.weights.shape[1] or not np.isfinite(features).all():
            raise TrainingError(
                f"features of shape {features.shape}, or with values that are not finite, cannot be routed; this "
                f"router needs finite numbers of shape (n, {head.weights.shape[1]}), made as those it was trained on"
            )
        if self.constant:
            return [self.constant] * len(features)
        return [self.workers[row] for row in head.picks(features)]


def fit_router(
    table: pd.DataFrame,
    features: np.ndarray,
    training: RouterTraining,
    *,
    prices: Mapping[str, Price | None] | None = None,
    start: Start = FROM_ZERO,
    earlier: EarlierHead | None = None,
    looks: LooksLog | None = None,
) -> FittedRouter:
    """Train every head that ``training`` declares, and judge them on the tasks that its split holds out.

    Equal inputs give equal heads and evaluations, bit for bit.

    Args:
        table: the columns of ``routing.table.router_table_schema``, as ``outcome_tables`` reads them. The split and the
            folds are those of ``training``, whatever the table says.
        features: (n, H), aligned to the rows of ``table``; used as float32.
        prices: per worker; one without a price costs what the table says.
        start: where interrupted searches are kept, to be gone on with.
        earlier: what searches start from in place of zero, its rows named as the table's workers (``named_rows``). Its
            tasks must not be among those that are held out here; nothing in a head shows that.
        looks: where it is noted that these heads were judged on these tasks; None counts no looks.

    Raises:
        TrainingError: the table lacks a column, the features are not one row of finite numbers per task, the split
            leaves nothing to train or to test on, a trainer cannot learn from the table, nothing is known of what a
            worker costs and there are cost weights, or ``earlier`` has no row of the table's workers.
    """
    workers = table_workers(table)
    absent = [name for name in router_table_schema(workers).names if name not in {*table.columns, "split", "fold"}]
    if absent or not workers or not len(table):
        lacks = f"columns {listed(absent, ', ')}" if absent else "tasks or workers"
        raise TrainingError(f"the table lacks {lacks}; make it by routing.outcome_tables, from rows or from a file")
    features = np.asarray(features, dtype=np.float32)
    if features.ndim != 2 or len(features) != len(table) or not np.isfinite(features).all():
        raise TrainingError(
            f"features of shape {features.shape}, or with values that are not finite, are not those of a table of "
            f"{len(table)} tasks; give one row of finite numbers per task, in the table's order"
        )
    if training.cost_weights:
        _require_costs(table, workers, prices or {})
    placed = with_split(table.reset_index(drop=True), training.split)
    objective = training_objective(placed, features, workers, prices)
    heads = train_from(earlier, objective, named_rows(workers), training, start)
    return FittedRouter(
        workers=tuple(workers),
        table=placed,
        heads=heads,
        headroom=headroom(placed, workers, prices=prices),
        admissions=admissions(placed, workers, prices=prices),
        evaluation=_judged(placed, features, heads, workers, training, prices, looks),
        split=training.split,
        export=training.export,
        best_single_on_train=best_single_on_train(placed, workers, prices),
    )


def constant_worker(evaluation: Evaluation, export: str, record: TrainingRecord) -> str | None:
    """The worker that is published in place of the head of ``export``: one that did not pass the gate, or is constant.

    None where the head is published. ``record`` says how that head came about.
    """
    if not evaluation.gate(export).passed:
        return evaluation.reference_worker
    return None if record.constant is None else evaluation.workers[record.constant]


def publication(evaluation: Evaluation, export: str, record: TrainingRecord) -> str:
    """What is published in place of, or as, the head of ``export``; why; and how that head did on held-out tasks."""
    gate, worker = evaluation.gate(export), constant_worker(evaluation, export, record)
    policy = f"always {worker}" if worker else f"the head of {export}"
    decided = "passed" if gate.passed else "did not pass"
    return (
        f"{policy}. The head of {export} {decided} the gate: {gate.reason}. On held-out tasks it is a "
        f"{evaluation.policy(export).verdict}."
    )


def _require_costs(table: pd.DataFrame, workers: Sequence[str], prices: Mapping[str, Price | None]) -> None:
    costs = priced_costs(table, workers, prices)
    unknown = [worker for worker, column in zip(workers, costs.T, strict=True) if np.isnan(column).all()]
    if unknown:
        columns = listed([f"cost__{worker}" for worker in unknown], ", ")
        raise TrainingError(f"cost weights need every worker's cost; fill in {columns}, or leave the weights out")


def _judged(
    table: pd.DataFrame,
    features: np.ndarray,
    heads: Mapping[str, TrainedHead],
    workers: Sequence[str],
    training: RouterTraining,
    prices: Mapping[str, Price | None] | None,
    looks: LooksLog | None,
) -> Evaluation:
    weights = {name: head.weights for name, head in heads.items()}
    return evaluate(
        table,
        features,
        weights,
        workers,
        prices=prices,
        records={name: head.record for name, head in heads.items()},
        recipes={name: learners(training, name) for name in training.judged},
        gate=training.gate,
        looks=looks.count(table, weights) if looks else None,
    )
