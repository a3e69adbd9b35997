"""Tables on which nothing can be gained: how often an evaluation says of a head or a policy that something was."""

from __future__ import annotations

import numpy as np

from trinity_assets.routing.admission import admission
from trinity_assets.routing.evaluation import evaluate
from trinity_assets.routing.headroom import headroom
from trinity_assets_tests.routing.planted import WORKERS, features, table_of

TABLES, TASKS = 500, 150


def null_scores(generator: np.random.Generator) -> np.ndarray:
    """Scores of workers of which none is better at anything; tasks are harder or easier for all of them."""
    return (generator.random((TASKS, len(WORKERS))) < generator.random((TASKS, 1))).astype(float)


def test_a_win_is_false_in_at_most_five_percent_of_null_tables() -> None:
    table = table_of(np.zeros((TASKS, len(WORKERS))), WORKERS)
    train = (table["split"] == "train").to_numpy()
    wins = {"ridge": 0, "knn": 0, "lookup": 0, "random": 0}
    for seed in range(TABLES):
        scores, drawn = null_scores(np.random.default_rng(seed)), features(TASKS, 8, seed=seed)
        table[[f"score__{worker}" for worker in WORKERS]] = scores
        head = np.linalg.lstsq(drawn[train].astype(float), scores[train], rcond=None)[0].T
        evaluation = evaluate(table, drawn, {"ridge": head}, WORKERS, resamples=400, seed=seed)
        for name in wins:
            wins[name] += evaluation.policy(name).verdict == "win"
    assert all(count <= 0.05 * TABLES for count in wins.values()), wins


def test_before_any_training_a_lookup_or_a_worker_seems_worth_it_in_at_most_five_percent() -> None:
    """Three benchmarks on which no worker is better than another; a lookup's choices are those of chance."""
    table = table_of(np.zeros((TASKS, len(WORKERS))), WORKERS)
    table["benchmark"] = np.array(["quiz", "riddles", "sums"])[np.arange(TASKS) % 3]
    folds = np.arange(TASKS) % 5
    shown = admitted = 0
    for seed in range(TABLES // 2):
        scores = null_scores(np.random.default_rng(seed))
        table[[f"score__{worker}" for worker in WORKERS]] = scores
        found = headroom(table, WORKERS, resamples=100).lookup
        shown += found is not None and found.verdict == "win"
        admitted += admission(scores, table["benchmark"].to_numpy(), 2, folds=folds, resamples=100).answer == "yes"
    assert max(shown, admitted) <= 0.05 * TABLES / 2, (shown, admitted)
