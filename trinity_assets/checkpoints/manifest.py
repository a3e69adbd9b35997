"""The manifest of a checkpoint: everything needed to use its head rightly and to trace where it came from."""

from __future__ import annotations

import platform
from collections.abc import Collection
from importlib import metadata
from typing import Any, Literal

from pydantic import AwareDatetime, Field, model_validator

from trinity_assets.backbones.specs import FeatureSpec
from trinity_assets.checkpoints.versions import MANIFEST_FORMAT, MANIFEST_VERSION
from trinity_assets.routing.completeness import Dropped
from trinity_assets.routing.gate import GateResult
from trinity_assets.routing.results import REFERENCE, Evaluation
from trinity_assets.routing.statistics import Verdict
from trinity_assets.spec import Sha256, Slug, Spec, digest

Cells = dict[str, Sha256]
"""The sha256 of an artifact per benchmark, or per ``worker/benchmark``."""

_DISTRIBUTIONS = ("trinity-assets", "cma", "numpy", "safetensors", "torch", "transformers")


class PoolEntry(Spec):
    """A worker as the head knew it: what identifies its answers, in the order of the head's rows."""

    name: Slug
    digest: Sha256
    provider: dict[str, Any]
    model: str
    prompt: dict[str, Any]
    sampling: dict[str, Any]


class Rows(Spec):
    """What the head's rows mean: first ``workers`` rows in pool order, then ``roles`` rows. Never inferred."""

    workers: int = Field(ge=1)
    roles: int = Field(default=0, ge=0)


class Policy(Spec):
    """How a worker is chosen: by the ``head``, or ``constant``: ``worker``, always.

    ``margin`` is the expected gain over the best single worker in accuracy, where the exporter knows one.
    """

    kind: Literal["head", "constant"]
    worker: Slug | None = None
    margin: float | None = None

    @model_validator(mode="after")
    def _worker_iff_constant(self) -> Policy:
        if (self.kind == "constant") != (self.worker is not None):
            raise ValueError("a constant policy names its worker, and a head policy names none")
        return self


class TrainerRecord(Spec):
    """How the head was trained; ``generations`` and ``seed`` are None for a trainer that has none.

    ``started_from`` are the heads that a search started from, None where it started from zero.
    """

    kind: str
    settings: dict[str, Any]
    seed: int | None = None
    generations: int | None = None
    started_from: Sha256 | None = None


class DataRecord(Spec):
    """The artifacts that the head was made from."""

    tasks: Cells
    gold: Cells
    answers: Cells
    solves: Cells
    features: Cells
    table: Sha256


class EvaluationRecord(Spec):
    """The held-out verdict on what is published; ``interval`` is of its difference to the best single worker.

    The best single worker, which is published where no head passed, is a tie with itself.
    """

    verdict: Verdict
    accuracy: float
    interval: tuple[float, float]
    baselines: dict[str, float]
    n_test: int


class ManifestFields(Spec):
    """What the exporter of a checkpoint declares."""

    router: Slug
    pool: tuple[PoolEntry, ...] = Field(min_length=1)
    dropped: tuple[Dropped, ...] = ()
    """The workers that the catalog's pool has besides, without which the head was trained."""
    rows: Rows
    offsets: tuple[float, ...]
    """Added to the workers' scores, one per worker."""
    policy: Policy
    feature_spec: FeatureSpec
    trainer: TrainerRecord
    data: DataRecord
    evaluation: EvaluationRecord
    gate: GateResult | None = None
    """Why the head is published, or a constant policy in its place; None where nobody asked."""
    environment: dict[str, str]

    @model_validator(mode="after")
    def _is_consistent(self) -> ManifestFields:
        names = [entry.name for entry in self.pool]
        faults = []
        if len(set(names)) != len(names):
            faults.append(f"the pool names a worker twice: {names}")
        if again := [worker.name for worker in self.dropped if worker.name in names]:
            faults.append(f"the workers {again} are both in the pool and dropped")
        if self.rows.workers != len(names):
            faults.append(f"rows.workers is {self.rows.workers}, the pool has {len(names)}")
        if len(self.offsets) != len(names):
            faults.append(f"there are {len(self.offsets)} offsets for {len(names)} workers")
        if self.policy.worker is not None and self.policy.worker not in names:
            faults.append(f"policy.worker {self.policy.worker!r} is not in the pool {names}")
        if self.gate is not None and not self.gate.passed and self.policy.kind == "head":
            faults.append("the policy is head though its head did not pass the gate")
        if faults:
            raise ValueError("; ".join(faults))
        return self


class Manifest(ManifestFields):
    """``manifest.json``: the declared fields and what writing adds. ``files`` are names in the directory."""

    format: Literal["trinity-assets-checkpoint"] = MANIFEST_FORMAT
    version: Literal[1] = MANIFEST_VERSION
    created_at: AwareDatetime
    files: dict[str, Sha256] = Field(min_length=1)

    @property
    def digest(self) -> str:
        """What two checkpoints with the same content share, whenever and wherever they were written."""
        return self._digest_without("created_at", "environment")

    @property
    def data_version(self) -> str:
        """What two checkpoints share that route alike and say the same of it.

        Not the shas of the data behind them: those artifacts hold latencies, which no two runs share.
        """
        return self._digest_without(
            "created_at", "environment", "data", gate={"saving", "reason"}, trainer={"started_from"}
        )

    @property
    def workers(self) -> list[str]:
        """The pool's names in row order."""
        return [entry.name for entry in self.pool]

    def _digest_without(self, *fields: str, gate: Collection[str] = (), trainer: Collection[str] = ()) -> str:
        # Later fields, which change no digest of a manifest that has no use for them.
        unused = [name for name, used in (("dropped", self.dropped), ("gate", self.gate)) if not used]
        cold = set() if self.trainer.started_from else {"started_from"}
        within = {"gate": set(gate), "trainer": {*trainer, *cold}}
        excluded: dict[str, Any] = {**within, **dict.fromkeys((*fields, *unused), True)}
        return digest(self.model_dump(mode="json", exclude=excluded))


def evaluation_record(evaluation: Evaluation, head: str | None) -> EvaluationRecord:
    """What the manifest keeps of an evaluation, for the published ``head``; bounds count among the baselines.

    None: no head is published, but the best single worker.
    """
    result = evaluation.policy(REFERENCE if head is None else head)
    return EvaluationRecord(
        verdict=result.verdict,
        accuracy=result.accuracy,
        interval=(result.low, result.high),
        baselines={other.name: other.accuracy for other in evaluation.policies if other.kind != "head"},
        n_test=evaluation.n_test,
    )


def environment() -> dict[str, str]:
    """The versions of Python and of the distributions that decide a head, where they are installed."""
    versions = {"python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions
