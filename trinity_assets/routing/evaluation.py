"""An honest comparison of heads with baselines, on held-out tasks only.

Everything is paired with one reference: the single worker that was best on train. **Rule for missing cells.** A test
task on which any worker's score is unknown is left out for every policy alike, and counted, so that all numbers are
about the same tasks. **Rule for verdicts.** A difference is a win or a loss if its interval is on one side of zero and
the exact test of the discordant tasks agrees at 5%.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from trinity_assets.errors import TrainingError
from trinity_assets.routing.baselines import Choices, Side, baselines, pick
from trinity_assets.routing.completeness import Dropped
from trinity_assets.routing.cost_quality import frontier, gaps_recovered
from trinity_assets.routing.crossfit import TrainTasks, cross_fit
from trinity_assets.routing.gate import judge
from trinity_assets.routing.objective import route
from trinity_assets.routing.power import detectable_difference
from trinity_assets.routing.resampling import Resampling
from trinity_assets.routing.results import (
    BOUNDS,
    REFERENCE,
    BenchmarkResult,
    Comparison,
    Evaluation,
    GapClosed,
    HeadChoices,
    IncumbentResult,
    Kind,
    PolicyResult,
)
from trinity_assets.routing.retraining import Recipes, left_out, seed_spreads
from trinity_assets.routing.specs import GateSpec
from trinity_assets.routing.split import TEST, TRAIN
from trinity_assets.routing.statistics import oracle_gap_closed, task_groups
from trinity_assets.routing.table import latency_matrix, priced_costs, score_matrix
from trinity_assets.routing.trainers.head import TrainingRecord
from trinity_assets.workers.specs import Price

RESAMPLES = 5000


def evaluate(
    table: pd.DataFrame,
    features: np.ndarray,
    heads: Mapping[str, np.ndarray],
    workers: Sequence[str],
    *,
    prices: Mapping[str, Price | None] | None = None,
    dropped: Sequence[Dropped] = (),
    records: Mapping[str, TrainingRecord] | None = None,
    recipes: Recipes | None = None,
    gate: GateSpec | None = None,
    published: tuple[str, np.ndarray] | None = None,
    looks: int | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Evaluation:
    """Compare ``heads`` (each (L, H)) and the baselines on the test tasks of ``table``.

    Args:
        features: (n, H), aligned to the rows of ``table``.
        workers: the pool, in the order of the heads' rows.
        prices: per worker; one without a price costs what was charged when it was asked.
        dropped: the workers of the pool that ``table`` was made without.
        records: how heads came about; one that says that its head stands for a constant worker is taken at its word.
        recipes: each is cross-fitted on the train tasks for the ``gate``, learnt with other seeds, and learnt without
            one benchmark after the other.
        published: the name of the checkpoint that is published now, and the worker (n,) that it picks for each row.
        looks: how often heads have been trained and judged on these test tasks, this time included, if that is known.

    Raises:
        TrainingError: there is nothing to compare on, or a head does not fit the pool and the features.
    """
    scores, costs = score_matrix(table, workers), priced_costs(table, workers, prices or {})
    benchmarks, groups, latencies = table["benchmark"].to_numpy(), task_groups(table), latency_matrix(table, workers)

    def side(rows: np.ndarray) -> Side:
        return Side(features[rows], scores[rows], costs[rows], benchmarks[rows])

    in_train, in_test = (table["split"].to_numpy() == part for part in (TRAIN, TEST))
    complete = ~np.isnan(scores).any(axis=1)
    train, test = side(in_train), side(in_test & complete)
    n_missing = int((in_test & ~complete).sum())
    if not len(train.scores) or not len(test.scores):
        raise TrainingError(
            f"the split left {len(train.scores)} tasks to train on and {len(test.scores)} complete ones to test on "
            f"({n_missing} test tasks lack a score); add tasks, settle the missing answers or change the split"
        )
    folds = table["fold"].to_numpy()[in_train]
    tasks = TrainTasks(train.features, train.scores, train.costs, folds, groups[in_train], tuple(workers))
    resampling = Resampling(groups[in_test & complete], resamples, seed)
    references = baselines(train, test)
    choices = [*_head_choices(heads, records or {}, test, workers), *references]
    values = {policy.name: policy.values(test.scores) for policy in choices}
    differences = np.stack([values[policy.name] - values[REFERENCE] for policy in choices], axis=1)
    results = [
        PolicyResult(
            **compared,
            **_measured(policy, values, latencies[in_test & complete], test, resampling),
            kind=_kind(policy, heads),
            shares=dict(zip(workers, policy.shares.mean(axis=0).tolist(), strict=True)),
        )
        for policy, compared in zip(choices, resampling.compared(differences), strict=True)
    ]
    runnable = {policy.name: values[policy.name] for policy in references if policy.name not in BOUNDS}
    head_choices = [policy for policy in choices if policy.name in heads]
    return Evaluation(
        workers=tuple(workers),
        dropped=tuple(dropped),
        reference_worker=workers[int(references[0].shares[0].argmax())],
        n_train=len(train.scores),
        n_test=len(test.scores),
        n_missing=n_missing,
        resamples=resamples,
        seed=seed,
        policies=tuple(results),
        benchmarks=tuple(_per_benchmark(test.benchmarks, values)),
        comparisons=tuple(_comparisons(list(heads), values, resampling)),
        seeds=tuple(seed_spreads(recipes or {}, tasks, test, runnable, resampling)),
        left_out=tuple(left_out(recipes or {}, tasks, train.benchmarks, test, workers, resampling)),
        gates=tuple(
            judge(name, tasks, cross_fit(tasks, learns[0]), gate or GateSpec(), resamples=resamples, seed=seed)
            for name, learns in (recipes or {}).items()
        ),
        choices=tuple(_against_best(policy, test.scores) for policy in head_choices),
        frontier=frontier(head_choices, test, workers),
        recovered=tuple(gaps_recovered(_deciding(heads, records or {}), train, test, workers, resampling)),
        incumbent=_incumbent(published, heads, values, test, in_test & complete, resampling) if published else None,
        looks=looks,
    )


def _incumbent(
    published: tuple[str, np.ndarray],
    heads: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
    test: Side,
    rows: np.ndarray,
    resampling: Resampling,
) -> IncumbentResult:
    """The published checkpoint beside its challengers; ``rows`` (n,) of the table are the test tasks."""
    checkpoint, chosen = published
    own = test.scores[np.arange(len(test.scores)), chosen[rows]]
    challengers = []
    if heads:
        compared = resampling.compared(np.stack([values[name] - own for name in heads], axis=1))
        challengers = [
            Comparison(head=name, other="incumbent", **one) for name, one in zip(heads, compared, strict=True)
        ]
    return IncumbentResult(checkpoint=checkpoint, accuracy=float(own.mean()), challengers=tuple(challengers))


def _head_choices(
    heads: Mapping[str, np.ndarray], records: Mapping[str, TrainingRecord], test: Side, workers: Sequence[str]
) -> list[Choices]:
    expected = (len(workers), test.features.shape[1])
    for name, head in heads.items():
        if head.shape != expected or not np.isfinite(head).all():
            raise TrainingError(
                f"head {name} has shape {head.shape} or values that are not finite; this pool and these features need "
                f"finite numbers of shape {expected}; train it again"
            )
    chosen = {
        name: records[name].picks(test.features, head) if name in records else route(test.features, head)
        for name, head in heads.items()
    }
    return [pick(name, f"the head trained by {name}", picked, len(workers)) for name, picked in chosen.items()]


def _deciding(heads: Mapping[str, np.ndarray], records: Mapping[str, TrainingRecord]) -> dict[str, np.ndarray]:
    """The heads that do not stand for a constant worker."""
    return {name: head for name, head in heads.items() if name not in records or records[name].constant is None}


def _against_best(policy: Choices, scores: np.ndarray) -> HeadChoices:
    asked = policy.shares.argmax(axis=1)
    best = scores == scores.max(axis=1, keepdims=True)
    hit = best[np.arange(len(scores)), asked]
    credited = np.where(hit[:, None], policy.shares, best / best.sum(axis=1, keepdims=True))
    same = best.all(axis=1)
    columns = np.concatenate([np.where(same[:, None], 0.0, credited), same[:, None]], axis=1)
    counts = policy.shares.T @ columns
    return HeadChoices(head=policy.name, counts=tuple(map(tuple, counts.tolist())))


def _kind(policy: Choices, heads: Mapping[str, np.ndarray]) -> Kind:
    if policy.name in heads:
        return "head"
    return "bound" if policy.name in BOUNDS else "baseline"


def _measured(
    policy: Choices,
    values: Mapping[str, np.ndarray],
    latencies: np.ndarray,
    test: Side,
    resampling: Resampling,
) -> dict[str, Any]:
    """What a policy does beside its difference to the reference; ``values`` (n,) are all policies' scores."""
    own, reference = values[policy.name], values[REFERENCE]
    closed = oracle_gap_closed(
        own, reference, values["oracle"], resampling.resamples, resampling.seed, resampling.groups
    )
    return {
        "name": policy.name,
        "description": policy.description,
        "accuracy": float(own.mean()),
        "detectable": _known(detectable_difference(own - reference, resampling.groups)),
        "gap_closed": closed and GapClosed(share=closed.value, low=closed.low, high=closed.high),
        "cost_usd": _known(policy.values(test.costs).mean()),
        "latency_s": _known(policy.values(latencies).mean()),
    }


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _comparisons(heads: Sequence[str], values: Mapping[str, np.ndarray], resampling: Resampling) -> list[Comparison]:
    """Every head beside every policy that can be run, the reference aside, which the policies' results are about."""
    pairs = [(head, other) for head in heads for other in values if other not in (*BOUNDS, REFERENCE) and other != head]
    if not pairs:
        return []
    compared = resampling.compared(np.stack([values[head] - values[other] for head, other in pairs], axis=1))
    return [Comparison(head=head, other=other, **one) for (head, other), one in zip(pairs, compared, strict=True)]


def _per_benchmark(benchmarks: np.ndarray, values: Mapping[str, np.ndarray]) -> list[BenchmarkResult]:
    return [
        BenchmarkResult(
            benchmark=str(benchmark),
            n_test=int((benchmarks == benchmark).sum()),
            accuracy={name: float(scores[benchmarks == benchmark].mean()) for name, scores in values.items()},
        )
        for benchmark in pd.unique(pd.Series(benchmarks))
    ]
