"""What an evaluation found, and how it is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from trinity_assets.errors import ArtifactError, TrainingError
from trinity_assets.routing.completeness import Dropped
from trinity_assets.routing.gate import GateResult
from trinity_assets.routing.specs import EVALUATION_VERSION
from trinity_assets.routing.statistics import Verdict
from trinity_assets.spec import Spec, canonical_json, digest
from trinity_assets.store.artifacts import ArtifactStore

Kind = Literal["head", "baseline", "bound"]

KIND = "evaluation"

REFERENCE = "best_single"
BOUNDS = ("hindsight", "oracle")
"""Policies that look at the test scores."""


class Difference(Spec):
    """How far one policy's accuracy is above another's on the same tasks.

    ``low`` and ``high`` are the ends of the 95% interval. ``wins`` and ``losses`` count discordant tasks,
    near-duplicates once, and ``p`` is how likely these are by chance.
    """

    difference: float
    low: float
    high: float
    wins: int
    losses: int
    p: float
    verdict: Verdict


class GapClosed(Spec):
    """The share of the way from the reference to the oracle, with its 95% interval."""

    share: float
    low: float
    high: float


class PolicyResult(Difference):
    """One policy on the test tasks, compared with the reference.

    ``detectable`` is the difference these tasks would show with 80% power, None if no task is discordant.
    ``gap_closed`` is None where the oracle is not surely better than the reference. ``cost_usd`` and ``latency_s`` are
    expected per task, None if any that it may meet is unknown.
    """

    name: str
    kind: Kind
    description: str
    accuracy: float
    detectable: float | None
    gap_closed: GapClosed | None
    cost_usd: float | None
    latency_s: float | None
    shares: dict[str, float]


class Comparison(Difference):
    """A head above another policy."""

    head: str
    other: str


class SeedSpread(Difference):
    """A trainer's heads of ``seeds`` training seeds above another policy: what is resampled are tasks and seeds.

    ``lowest`` and ``highest`` are the accuracies of the worst and the best of these heads.
    """

    trainer: str
    other: str = REFERENCE
    seeds: int
    lowest: float
    highest: float


class LeftOut(Difference):
    """Heads on the test tasks of a benchmark that they were not trained on.

    Compared with ``reference_worker``, the single worker that was best on the train tasks of the other benchmarks.
    """

    trainer: str
    benchmark: str
    n_test: int
    accuracy: float
    reference_worker: str


class SinglePoint(Spec):
    """A worker that is always asked, on the test tasks; ``cost_usd`` per task."""

    worker: str
    cost_usd: float
    accuracy: float


class SweepResult(Spec):
    """A trainer's heads at all cost weights, as one set of policies.

    ``aiq`` is their average improvement in quality over the range of the workers' costs, and ``difference`` how far it
    is above that of the workers alone. Both keep the best heads on these very tasks.
    """

    trainer: str
    heads: tuple[str, ...]
    aiq: float
    difference: float


class Frontier(Spec):
    """Quality against cost. ``singles_aiq`` is what tossing coins between the single workers reaches."""

    singles: tuple[SinglePoint, ...]
    singles_aiq: float
    sweeps: tuple[SweepResult, ...]


class GapRecovered(Spec):
    """Of what ``strong`` is better than ``weak``, the share that a head recovers on average over all numbers of calls.

    ``apgr`` is 0.5 for a head that ranks tasks at random, with its 95% interval from ``low`` to ``high``.
    """

    head: str
    weak: str
    strong: str
    apgr: float
    low: float
    high: float


class HeadChoices(Spec):
    """Whom a head asked, against who was best on that task.

    ``counts`` has a row per worker that is asked and a column per worker that is best, and one more for the tasks on
    which all score the same. A task with several best workers counts for the one that was asked if it is among them,
    else for each of them in part.
    """

    head: str
    counts: tuple[tuple[float, ...], ...]


class IncumbentResult(Spec):
    """The checkpoint that was published before, on the same test tasks, and every head above it."""

    checkpoint: str
    accuracy: float
    challengers: tuple[Comparison, ...]


class BenchmarkResult(Spec):
    """The accuracy of every policy on the test tasks of one benchmark."""

    benchmark: str
    n_test: int
    accuracy: dict[str, float]


class Evaluation(Spec):
    """How every head did on held-out tasks, beside what it had to beat.

    ``dropped`` are the pool's workers that the router was trained without. ``n_missing`` test tasks were left out
    because a score is unknown. ``reference_worker`` is the single worker that was best on train. ``comparisons`` are of
    every head with every other policy but the reference. ``seeds`` and ``left_out`` are of heads that were trained for
    this evaluation alone, and ``gates`` say of each trainer whether its head may be published. ``frontier`` is None
    where a cost is unknown or all are the same, and ``recovered`` empty where no worker is surely better than the
    cheapest. ``looks`` counts how often different heads have been judged on half of these test tasks or more, this
    time included, None where nobody counts: the more there were, the likelier it is that the best of them owes
    something to luck.
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
    comparisons: tuple[Comparison, ...] = ()
    seeds: tuple[SeedSpread, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    gates: tuple[GateResult, ...] = ()
    choices: tuple[HeadChoices, ...] = ()
    frontier: Frontier | None = None
    recovered: tuple[GapRecovered, ...] = ()
    incumbent: IncumbentResult | None = None
    looks: int | None = Field(default=None, ge=1)

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


def write_evaluation(store: ArtifactStore, evaluation: Evaluation, inputs: Mapping[str, str]) -> tuple[str, str]:
    """Keep an evaluation with the shas of its ``inputs``; returns its sha256 and its data version.

    The version is blind to costs and clocks, and to what is only so at this moment: the incumbent, and the looks.
    """
    header = {"kind": KIND, "inputs": dict(inputs), "evaluation": evaluation.model_dump(mode="json")}
    undecisive: dict[str, Any] = {
        "policies": {"__all__": {"cost_usd", "latency_s"}},
        "gates": {"__all__": {"saving", "reason"}},
    }
    undecisive |= {"incumbent": True, "looks": True, "frontier": True, "recovered": True}
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
