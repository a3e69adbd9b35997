"""From a trained and evaluated head to the manifest that ships with it."""

from __future__ import annotations

from collections.abc import Sequence

from trinity_assets.checkpoints.manifest import (
    DataRecord,
    ManifestFields,
    Policy,
    PoolEntry,
    Rows,
    TrainerRecord,
    environment,
    evaluation_record,
)
from trinity_assets.errors import CheckpointError
from trinity_assets.recorded.specs import RecordedWorkerSpec, Worker
from trinity_assets.routing.fitting import constant_worker
from trinity_assets.routing.head import Heads
from trinity_assets.routing.results import Evaluation
from trinity_assets.routing.table import ROUTER_TABLE
from trinity_assets.routing.warm_start import STARTED_FROM
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets.store.tables import read_table


def manifest_fields(
    store: ArtifactStore, workers: Sequence[Worker], export: str, heads: Heads, evaluation: Evaluation
) -> ManifestFields:
    """What is declared of the head that trainer ``export`` learned for ``workers``, less those that were dropped.

    Where that head did not pass the gate, the policy is the best single worker of train, always.

    Raises:
        CheckpointError: the head was trained for other workers, or not by that trainer.
        ArtifactError: an artifact that the head was made from is gone.
    """
    trained_for = [(row.name, row.digest) for row in heads.spec.workers]
    dropped = {worker.name for worker in evaluation.dropped}
    kept = [worker for worker in workers if worker.name not in dropped]
    if trained_for != [(worker.name, worker.digest) for worker in kept] or len(kept) + len(dropped) != len(workers):
        without = f" without {sorted(dropped)}" if dropped else ""
        raise CheckpointError(
            f"the head of {heads.spec.router} was trained for {[name for name, _ in trained_for]}{without}, the pool "
            f"now is {[worker.name for worker in workers]} or has changed within; build the router's table and head "
            "again"
        )
    if export not in heads.weights:
        raise CheckpointError(f"no head was trained by {export}; there are {', '.join(heads.weights)}")
    record, gate = heads.spec.trainers[export], evaluation.gate(export)
    return ManifestFields(
        router=heads.spec.router,
        pool=tuple(_pool_entry(worker) for worker in kept),
        dropped=evaluation.dropped,
        rows=Rows(workers=len(kept)),
        offsets=(0.0,) * len(kept),
        policy=_policy(heads, export, evaluation),
        feature_spec=heads.spec.feature_spec,
        trainer=TrainerRecord(
            kind=export,
            settings=record.settings,
            seed=record.settings.get("seed"),
            generations=record.chosen.get("generations"),
            started_from=record.chosen.get(STARTED_FROM),
        ),
        data=_data_record(store, heads.spec.table_sha256),
        evaluation=evaluation_record(evaluation, export if gate.passed else None),
        gate=gate,
        environment=environment(),
    )


def _policy(heads: Heads, export: str, evaluation: Evaluation) -> Policy:
    worker = constant_worker(evaluation, export, heads.spec.trainers[export])
    if worker is not None:
        return Policy(kind="constant", worker=worker)
    return Policy(kind="head", margin=evaluation.policy(export).difference)


def _pool_entry(worker: Worker) -> PoolEntry:
    """What identifies a worker's answers. A recorded one has no prompt and no sampling, but files."""
    if isinstance(worker, RecordedWorkerSpec):
        provider, prompt, sampling = worker.provider_identity(), {}, {}
    else:
        provider = worker.provider.identity()
        prompt, sampling = worker.prompt.model_dump(mode="json"), worker.sampling.model_dump(mode="json")
    return PoolEntry(
        name=worker.name, digest=worker.digest, provider=provider, model=worker.model, prompt=prompt, sampling=sampling
    )


def _data_record(store: ArtifactStore, table_sha256: str) -> DataRecord:
    """The shas of everything behind a router table, walked from header to header."""
    table = read_table(store, ROUTER_TABLE, table_sha256)
    tasks: dict[str, str] = {}
    gold: dict[str, str] = {}
    answers: dict[str, str] = {}
    solves: dict[str, str] = {}
    features: dict[str, str] = {}
    for name, sha256 in table.inputs.items():
        match name.split("/"):
            case ["benchmarks", benchmark, "tasks"]:
                tasks[benchmark] = sha256
            case ["features", _, benchmark]:
                features[benchmark] = sha256
            case ["solves", worker, benchmark]:
                solves[f"{worker}/{benchmark}"] = sha256
                graded = read_table(store, "solves", sha256).inputs
                answers[f"{worker}/{benchmark}"] = graded[f"answers/{worker}/{benchmark}"]
                gold[benchmark] = graded[f"benchmarks/{benchmark}/gold"]
    return DataRecord(tasks=tasks, gold=gold, answers=answers, solves=solves, features=features, table=table_sha256)
