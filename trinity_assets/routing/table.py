"""The router table: one row per task of every benchmark, with what each worker scored, cost and took.

Features are not in it; they stay in their own artifacts and are aligned to its rows when a head is trained.
A cell without a settled, graded answer is NaN here and in everything that follows, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from trinity_assets.errors import TrainingError
from trinity_assets.routing.specs import SplitSpec
from trinity_assets.routing.split import TEST, assign_split
from trinity_assets.spec import digest
from trinity_assets.workers.specs import Price

ROUTER_TABLE = "router_table"
"""The kind under which the table lies in the store."""

Cell = tuple[str, str]
"""(worker, benchmark)."""

TOKENS_PER_MTOK = 1_000_000

MEASURES = {
    "score": "score",
    "cost": "cost_usd",
    "latency": "latency_s",
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
}
"""Measure -> column of the solves: score in [0, 1], USD when it was asked, seconds, tokens."""

SCORE = "score__"
"""What the name of a column of scores begins with; the worker follows."""

_TASK_COLUMNS = ["task_id", "benchmark", "category", "group", "split", "fold"]


def router_table_schema(workers: Sequence[str]) -> pa.Schema:
    """The table's columns: who the task is, then per worker the score in [0, 1] and what is in ``MEASURES``."""
    return pa.schema(
        [
            ("task_id", pa.string()),
            ("benchmark", pa.string()),
            ("category", pa.string()),
            ("group", pa.string()),
            ("split", pa.string()),
            ("fold", pa.int64()),
            *((f"{measure}__{worker}", pa.float64()) for worker in workers for measure in MEASURES),
        ]
    )


def join_table(
    solves: Mapping[Cell, pd.DataFrame],
    tasks: Mapping[str, pd.DataFrame],
    workers: Sequence[str],
    split: SplitSpec,
) -> pd.DataFrame:
    """Join the cells of a pool into the columns of ``router_table_schema(workers)``.

    Each measure is the mean over the samples in which it is known, and NaN where it is known in none.

    Args:
        solves: per (worker, benchmark), columns ``task_id, score, cost_usd, latency_s``.
        tasks: per benchmark, columns ``task_id, category, group``, in the order the rows keep.
        workers: the pool; its order is the order of the head's rows.

    Raises:
        TrainingError: a cell is absent, a task is listed twice, or a cell holds tasks that the snapshot does not.
    """
    if not tasks or not workers:
        raise TrainingError("a router needs at least one benchmark and one worker; name them in its catalog entry")
    return pd.concat(
        [_join_benchmark(name, frame, solves, workers, split) for name, frame in tasks.items()],
        ignore_index=True,
    )


def table_workers(table: pd.DataFrame) -> list[str]:
    """The workers that ``table`` has scores of, in the order of its columns."""
    return [str(name).removeprefix(SCORE) for name in table.columns if str(name).startswith(SCORE)]


def score_matrix(table: pd.DataFrame, workers: Sequence[str]) -> np.ndarray:
    """(n, L) float64, NaN where unknown."""
    return table[[f"score__{worker}" for worker in workers]].to_numpy(dtype=np.float64)


def cost_matrix(table: pd.DataFrame, workers: Sequence[str]) -> np.ndarray:
    """(n, L) float64 in USD per answer, NaN where unknown."""
    return table[[f"cost__{worker}" for worker in workers]].to_numpy(dtype=np.float64)


def latency_matrix(table: pd.DataFrame, workers: Sequence[str]) -> np.ndarray:
    """(n, L) float64 in seconds per answer, NaN where unknown."""
    return table[[f"latency__{worker}" for worker in workers]].to_numpy(dtype=np.float64)


def priced_costs(table: pd.DataFrame, workers: Sequence[str], prices: Mapping[str, Price | None]) -> np.ndarray:
    """(n, L) float64 in USD per answer at ``prices``, NaN where unknown.

    A worker without a price costs what its provider charged when it was asked.
    """
    costs = cost_matrix(table, workers).copy()
    for column, worker in enumerate(workers):
        price = prices.get(worker)
        if price is not None:
            inputs = table[f"input_tokens__{worker}"] * price.input_per_mtok
            outputs = table[f"output_tokens__{worker}"] * price.output_per_mtok
            costs[:, column] = (inputs + outputs).to_numpy() / TOKENS_PER_MTOK
    return costs


def table_data_version(table: pd.DataFrame, workers: Sequence[str]) -> str:
    """The digest of what a head and its evaluation depend on: tasks, splits and scores; no cost and no clock."""
    scores = [[None if np.isnan(score) else score for score in row] for row in score_matrix(table, workers).tolist()]
    return digest({"workers": list(workers), "tasks": table[_TASK_COLUMNS].values.tolist(), "scores": scores})


def held_out_digest(table: pd.DataFrame) -> str:
    """What two tables with the same test tasks share, 12 hex digits; neither scores nor order count."""
    held_out = table.loc[table["split"] == TEST, ["benchmark", "task_id"]]
    return digest(sorted(held_out.values.tolist()))[:12]


def align_features(table: pd.DataFrame, features: Mapping[str, tuple[Sequence[str], np.ndarray]]) -> np.ndarray:
    """The feature of each row of ``table``: (n, H) float32.

    Args:
        features: per benchmark, its task ids and their matrix (m, H).

    Raises:
        TrainingError: a task has no feature, widths differ, or a feature is not finite.
    """
    widths = {matrix.shape[1] for _, matrix in features.values()}
    if len(widths) != 1:
        raise TrainingError(f"the benchmarks' features have widths {sorted(widths)}; extract them with one backbone")
    aligned = np.empty((len(table), widths.pop()), dtype=np.float32)
    row_numbers = np.arange(len(table))
    for benchmark, positions in pd.Series(row_numbers).groupby(table["benchmark"].to_numpy()):
        task_ids, matrix = features.get(str(benchmark), ((), np.empty((0, aligned.shape[1]))))
        rows = pd.Index(task_ids).get_indexer(pd.Index(table["task_id"].to_numpy()[positions]))
        missing = np.flatnonzero(rows < 0)
        if missing.size:
            example = table["task_id"].to_numpy()[positions.to_numpy()[missing[0]]]
            raise TrainingError(
                f"{missing.size} of {len(rows)} tasks of benchmark {benchmark} have no feature, the first is "
                f"{example!r}; materialize its features again"
            )
        aligned[positions] = matrix[rows]
    if not np.isfinite(aligned).all():
        raise TrainingError("some features are not finite numbers; extract them again in float32")
    return aligned


def _join_benchmark(
    benchmark: str,
    tasks: pd.DataFrame,
    solves: Mapping[Cell, pd.DataFrame],
    workers: Sequence[str],
    split: SplitSpec,
) -> pd.DataFrame:
    if tasks["task_id"].duplicated().any():
        twice = tasks["task_id"][tasks["task_id"].duplicated()].iloc[0]
        raise TrainingError(f"benchmark {benchmark} lists task {twice!r} twice; its snapshot must name each task once")
    joined = tasks[["task_id", "category", "group"]].reset_index(drop=True)
    joined["benchmark"] = benchmark
    joined["category"] = joined["category"].fillna("")
    joined["group"] = joined["group"].fillna(joined["task_id"])
    joined[["split", "fold"]] = assign_split(benchmark, joined["group"], split)
    measures: dict[str, pd.Series] = {}
    for worker in workers:
        for measure, column in MEASURES.items():
            measures[f"{measure}__{worker}"] = _mean_over_samples(
                solves, (worker, benchmark), column, joined["task_id"]
            )
    return pd.concat([joined[_TASK_COLUMNS], pd.DataFrame(measures)], axis="columns")


def _mean_over_samples(cells: Mapping[Cell, pd.DataFrame], cell: Cell, column: str, task_ids: pd.Series) -> pd.Series:
    worker, benchmark = cell
    if cell not in cells:
        raise TrainingError(f"worker {worker} has no {column} on benchmark {benchmark}; materialize that cell first")
    frame = cells[cell]
    strangers = set(frame["task_id"]) - set(task_ids)
    if strangers:
        raise TrainingError(
            f"worker {worker} has {column} for {len(strangers)} tasks that benchmark {benchmark} does not hold, "
            f"for one {min(strangers)!r}; the cell was made from another snapshot, materialize it again"
        )
    means = pd.to_numeric(frame[column]).astype("float64").groupby(frame["task_id"].to_numpy()).mean()
    return means.reindex(task_ids).reset_index(drop=True)
