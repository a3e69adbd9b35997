"""What each worker of a table adds to the others, and what one that joins it does."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from trinity_assets.errors import TrainingError
from trinity_assets.routing.admission import admission
from trinity_assets.routing.head import HeadRow
from trinity_assets.routing.pool_admission import PoolOutcomes, admissions, admissions_lines, admissions_markdown
from trinity_assets.routing.specs import SplitSpec
from trinity_assets.routing.table import join_table, score_matrix
from trinity_assets_tests.routing.planted import WORKERS, table_of

N = 300
BENCHMARKS = ("sums", "capitals")
RATES = {"ada": (0.8, 0.3), "bob": (0.3, 0.8), "cyd": (0.1, 0.1)}
"""Per worker, the share of each benchmark's tasks that it solves."""


def cells(worker: str, samples: int = 1) -> dict[tuple[str, str], pd.DataFrame]:
    """The solves of a worker of ``RATES``."""
    found = {}
    for benchmark, rate in zip(BENCHMARKS, RATES[worker], strict=True):
        drawn = np.random.default_rng([*worker.encode(), *benchmark.encode()]).random((N, samples)) < rate
        rows = [(f"t{i}", k, float(drawn[i, k])) for i in range(N) for k in range(samples)]
        frame = pd.DataFrame(rows, columns=["task_id", "sample", "score"])
        found[worker, benchmark] = frame.assign(cost_usd=0.0, latency_s=1.0, input_tokens=1, output_tokens=1)
    return found


def pool(workers: list[str], samples: int = 1) -> PoolOutcomes:
    ids = [f"t{i}" for i in range(N)]
    tasks = {benchmark: pd.DataFrame({"task_id": ids, "category": "", "group": ids}) for benchmark in BENCHMARKS}
    solves = {cell: frame for worker in workers for cell, frame in cells(worker, samples).items()}
    rows = tuple(HeadRow(name=worker, digest=worker) for worker in workers)
    table = join_table(solves, tasks, workers, SplitSpec())
    return PoolOutcomes(table, rows, tuple(workers), SplitSpec(), tasks, solves)


def test_each_worker_is_held_against_the_others_on_train_tasks_alone() -> None:
    outcomes = pool(WORKERS)
    found = admissions(outcomes.table, WORKERS)
    assert {worker: one.answer for worker, one in found.items()} == {"ada": "yes", "bob": "yes", "cyd": "unclear"}
    train = outcomes.table[outcomes.table["split"] == "train"]
    of_ada = admission(
        score_matrix(train, WORKERS),
        train["benchmark"].to_numpy(),
        0,
        folds=train["fold"].to_numpy(),
        resamples=400,
    )
    assert found["ada"] == of_ada
    blind = outcomes.table.copy()
    held_out = blind["split"] == "test"
    blind.loc[held_out, [f"score__{worker}" for worker in WORKERS]] = 0.0
    assert admissions(blind, WORKERS) == found
    lookup = found["ada"].lookup
    question, of_first, *others = admissions_lines(found)
    assert (question, len(others)) == ("Is each worker worth having beside the others?", 2)
    assert admissions_markdown(found) == f"\n{question}\n\n" + "".join(f"- {line}\n" for line in (of_first, *others))
    assert of_first == (
        f"ada: **yes**, it adds {100 * lookup.value:+.1f} points ({100 * lookup.low:+.1f} to {100 * lookup.high:+.1f}) "
        f"to the best worker per benchmark, and at most {100 * found['ada'].oracle.high:+.1f} points to a perfect "
        "router"
    )


def test_who_joins_adds_what_it_would_within() -> None:
    within = pool(["ada", "cyd", "bob"])
    joined = pool(["ada", "cyd"]).joined_by("bob", cells("bob"))
    assert joined.workers == ("ada", "cyd", "bob")
    pd.testing.assert_frame_equal(joined.table, within.table)
    assert joined.admission("bob") == within.admission("bob")
    assert joined.admission("bob").cross_fitted is None


def test_two_samples_take_the_noise_out() -> None:
    found = pool(["ada", "cyd"], samples=2).joined_by("bob", cells("bob", samples=2)).admission("bob")
    assert found.cross_fitted is not None
    assert 0 < found.cross_fitted.low < found.cross_fitted.value < found.oracle.high


def test_a_cell_of_other_tasks_does_not_join() -> None:
    outcomes, other = pool(["ada", "cyd"]), cells("bob")
    other["bob", "sums"] = other["bob", "sums"].assign(task_id="unknown")
    with pytest.raises(TrainingError, match="worker bob has score for 1 tasks that benchmark sums does not hold"):
        outcomes.joined_by("bob", other)


def test_where_nothing_can_be_compared_nothing_is_said() -> None:
    scores = np.full((20, 2), np.nan)
    assert admissions(table_of(scores, WORKERS[:2]), WORKERS[:2]) == {}
    assert admissions(table_of(np.ones((20, 1)), WORKERS[:1]), WORKERS[:1]) == {}
    assert (admissions_lines({}), admissions_markdown({})) == ([], "")
