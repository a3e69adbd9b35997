"""An honest comparison of heads with baselines, on held-out tasks only.

Everything is paired with one reference: the single worker that was best on train. **Rule for missing cells.** A test
task on which any worker's score is unknown is left out for every policy alike, and counted, so that all numbers are
about the same tasks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from trinity_assets.errors import ArtifactError, TrainingError
from trinity_assets.routing.baselines import Choices, Side, baselines, pick
from trinity_assets.routing.completeness import Dropped
from trinity_assets.routing.crossfit import Learn, TrainTasks, cross_fit
from trinity_assets.routing.gate import GateResult, judge
from trinity_assets.routing.objective import route
from trinity_assets.routing.specs import EVALUATION_VERSION, GateSpec
from trinity_assets.routing.split import TEST, TRAIN
from trinity_assets.routing.statistics import Verdict, detectable_difference, paired_bootstrap, verdict
from trinity_assets.routing.table import priced_costs, score_matrix
from trinity_assets.spec import Spec, canonical_json, digest
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets.workers.specs import Price

Kind = Literal["head", "baseline", "bound"]

KIND = "evaluation"

REFERENCE = "best_single"
BOUNDS = ("hindsight", "oracle")
"""Policies that look at the test scores."""

RESAMPLES = 5000


class PolicyResult(Spec):
    """One policy on the test tasks.

    ``difference``, ``low``, ``high``, ``wins`` and ``losses`` compare it with the reference, task by task. ``wins`` and
    ``losses`` are the discordant tasks. ``detectable`` is the difference these tasks would show with 80% power, None if
    no task is discordant. ``cost_usd`` is the expected cost per task, None if any price it may meet is unknown.
    """

    name: str
    kind: Kind
    description: str
    accuracy: float
    difference: float
    low: float
    high: float
    verdict: Verdict
    wins: int
    losses: int
    detectable: float | None
    cost_usd: float | None
    shares: dict[str, float]


class BenchmarkResult(Spec):
    """The accuracy of every policy on the test tasks of one benchmark."""

    benchmark: str
    n_test: int
    accuracy: dict[str, float]


class Evaluation(Spec):
    """How every head did on held-out tasks, beside what it had to beat.

    ``dropped`` are the pool's workers that the router was trained without. ``n_missing`` test tasks were left out
    because a score is unknown. ``reference_worker`` is the single worker that was best on train. ``gates`` say of each
    trainer whether its head may be published.
    """

    version: int = EVALUATION_VERSION
    workers: tuple[str, ...]
    dropped: tuple[Dropped, ...] = ()
    reference_worker: str
    n_train: int
    n_test: int
    n_missing: int
    resamples: int
    seed: int
    policies: tuple[PolicyResult, ...] = Field(min_length=1)
    benchmarks: tuple[BenchmarkResult, ...]
    gates: tuple[GateResult, ...] = ()

    def gate(self, trainer: str) -> GateResult:
        """What the gate decided about the head of ``trainer``.

        Raises:
            TrainingError: that trainer's heads were not cross-fitted.
        """
        for result in self.gates:
            if result.trainer == trainer:
                return result
        raise TrainingError(f"the gate saw no head of {trainer!r}; it saw {[gate.trainer for gate in self.gates]}")

    def policy(self, name: str) -> PolicyResult:
        """The result of one policy.

        Raises:
            TrainingError: there is none of that name.
        """
        for result in self.policies:
            if result.name == name:
                return result
        raise TrainingError(f"no policy {name!r} was evaluated; there are {[p.name for p in self.policies]}")

    @property
    def heads(self) -> tuple[PolicyResult, ...]:
        """The results of the trained heads."""
        return tuple(result for result in self.policies if result.kind == "head")


def evaluate(
    table: pd.DataFrame,
    features: np.ndarray,
    heads: Mapping[str, np.ndarray],
    workers: Sequence[str],
    *,
    prices: Mapping[str, Price | None] | None = None,
    dropped: Sequence[Dropped] = (),
    recipes: Mapping[str, Learn] | None = None,
    gate: GateSpec | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Evaluation:
    """Compare ``heads`` (each (L, H)) and the baselines on the test tasks of ``table``.

    Args:
        features: (n, H), aligned to the rows of ``table``.
        workers: the pool, in the order of the heads' rows.
        prices: per worker; one without a price costs what was charged when it was asked.
        dropped: the workers of the pool that ``table`` was made without.
        recipes: how heads are learnt, by trainer; each is cross-fitted on the train tasks for the ``gate``.

    Raises:
        TrainingError: there is nothing to compare on, or a head does not fit the pool and the features.
    """
    scores, costs = score_matrix(table, workers), priced_costs(table, workers, prices or {})
    benchmarks = table["benchmark"].to_numpy()

    def side(rows: np.ndarray) -> Side:
        return Side(features[rows], scores[rows], costs[rows], benchmarks[rows])

    in_train = table["split"].to_numpy() == TRAIN
    train = side(in_train)
    in_test = table["split"].to_numpy() == TEST
    complete = ~np.isnan(scores).any(axis=1)
    test = side(in_test & complete)
    n_missing = int((in_test & ~complete).sum())
    if not len(train.scores) or not len(test.scores):
        raise TrainingError(
            f"the split left {len(train.scores)} tasks to train on and {len(test.scores)} complete ones to test on "
            f"({n_missing} test tasks lack a score); add tasks, settle the missing answers or change the split"
        )
    tasks = TrainTasks(train.features, train.scores, train.costs, *_folds_and_groups(table[in_train]))
    gates = [
        judge(name, tasks, cross_fit(tasks, learn), gate or GateSpec(), resamples=resamples, seed=seed)
        for name, learn in (recipes or {}).items()
    ]
    references = baselines(train, test)
    choices = [*_head_choices(heads, test, workers), *references]
    values = np.stack([policy.values(test.scores) for policy in choices], axis=1)
    reference = values[:, [policy.name for policy in choices].index(REFERENCE)]
    differences = values - reference[:, None]
    low, high = paired_bootstrap(differences, resamples, seed)
    results = tuple(
        _result(policy, _kind(policy, heads), values[:, i], differences[:, i], (low[i], high[i]), test, workers)
        for i, policy in enumerate(choices)
    )
    return Evaluation(
        workers=tuple(workers),
        dropped=tuple(dropped),
        reference_worker=workers[int(references[0].shares[0].argmax())],
        n_train=len(train.scores),
        n_test=len(test.scores),
        n_missing=n_missing,
        resamples=resamples,
        seed=seed,
        policies=results,
        benchmarks=tuple(_per_benchmark(test.benchmarks, [policy.name for policy in choices], values)),
        gates=tuple(gates),
    )


def write_evaluation(store: ArtifactStore, evaluation: Evaluation, inputs: Mapping[str, str]) -> tuple[str, str]:
    """Keep an evaluation with the shas of its ``inputs``; returns its sha256 and its data version, blind to costs."""
    header = {"kind": KIND, "inputs": dict(inputs), "evaluation": evaluation.model_dump(mode="json")}
    undecisive: dict[str, Any] = {"policies": {"__all__": {"cost_usd"}}, "gates": {"__all__": {"saving"}}}
    if not evaluation.dropped:  # a later field, which changes no version of an evaluation that has no use for it
        undecisive["dropped"] = True
    decisive = evaluation.model_dump(mode="json", exclude=undecisive)
    return store.put(canonical_json(header).encode()), digest(decisive)


@dataclass(frozen=True)
class Judged:
    """An evaluation read back, with the shas of what it judged, by asset name."""

    evaluation: Evaluation
    inputs: dict[str, str]


def read_evaluation(store: ArtifactStore, sha256: str) -> Judged:
    """Read an evaluation back.

    Raises:
        ArtifactError: missing, damaged, or not an evaluation that this release wrote.
    """
    try:
        header = json.loads(store.get(sha256))
        if header["kind"] != KIND:
            raise ValueError(f"it holds {header['kind']}")
        return Judged(Evaluation.model_validate(header["evaluation"]), header["inputs"])
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"artifact {sha256[:12]} is not an evaluation: {error}; materialize it again") from error


def _folds_and_groups(train: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """The fold and the number of the near-duplicate group of each task; groups do not span benchmarks."""
    return train["fold"].to_numpy(), train.groupby(["benchmark", "group"]).ngroup().to_numpy()


def _head_choices(heads: Mapping[str, np.ndarray], test: Side, workers: Sequence[str]) -> list[Choices]:
    expected = (len(workers), test.features.shape[1])
    for name, head in heads.items():
        if head.shape != expected or not np.isfinite(head).all():
            raise TrainingError(
                f"head {name} has shape {head.shape} or values that are not finite; this pool and these features need "
                f"finite numbers of shape {expected}; train it again"
            )
    return [
        pick(name, f"the head trained by {name}", route(test.features, head), len(workers))
        for name, head in heads.items()
    ]


def _kind(policy: Choices, heads: Mapping[str, np.ndarray]) -> Kind:
    if policy.name in heads:
        return "head"
    return "bound" if policy.name in BOUNDS else "baseline"


def _result(
    policy: Choices,
    kind: Kind,
    values: np.ndarray,
    differences: np.ndarray,
    interval: tuple[float, float],
    test: Side,
    workers: Sequence[str],
) -> PolicyResult:
    low, high = map(float, interval)
    detectable = detectable_difference(differences)
    cost = float(policy.values(test.costs).mean())
    return PolicyResult(
        name=policy.name,
        kind=kind,
        description=policy.description,
        accuracy=float(values.mean()),
        difference=float(differences.mean()),
        low=low,
        high=high,
        verdict=verdict(low, high),
        wins=int((differences > 0).sum()),
        losses=int((differences < 0).sum()),
        detectable=None if np.isnan(detectable) else detectable,
        cost_usd=None if np.isnan(cost) else cost,
        shares=dict(zip(workers, policy.shares.mean(axis=0).tolist(), strict=True)),
    )


def _per_benchmark(benchmarks: np.ndarray, names: Sequence[str], values: np.ndarray) -> list[BenchmarkResult]:
    return [
        BenchmarkResult(
            benchmark=str(benchmark),
            n_test=int((benchmarks == benchmark).sum()),
            accuracy=dict(zip(names, values[benchmarks == benchmark].mean(axis=0).tolist(), strict=True)),
        )
        for benchmark in pd.unique(pd.Series(benchmarks))
    ]
