"""Beside the graph: each worker's sentinel, a few tasks that are asked again at every tick, and what they show."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from trinity_assets.catalog.catalog import Benchmark, Catalog
from trinity_assets.defs import keys
from trinity_assets.defs.answers import answers_identity
from trinity_assets.defs.cells import cell_digest, cell_keys, present_cell
from trinity_assets.defs.drift import drift_check, drift_checked, drift_metadata
from trinity_assets.defs.epochs import asked_epoch, epoch_metadata
from trinity_assets.defs.keyless import drop_keys
from trinity_assets.defs.lineage import Upstream, materialized, step
from trinity_assets.defs.pools import GRADING, provider_pool
from trinity_assets.defs.presentation import OWNERS, preview
from trinity_assets.defs.resources import LedgerResource, StoreResource
from trinity_assets.errors import ArtifactError, GraderError
from trinity_assets.grading.specs import DRIFT_VERSION
from trinity_assets.spec import digest
from trinity_assets.workers.operations import Operations, SentinelSpec
from trinity_assets.workers.specs import WorkerSpec

if TYPE_CHECKING:
    import pandas as pd

    from trinity_assets.store.artifacts import ArtifactStore


def sentinel_assets(catalog: Catalog) -> list[dg.AssetsDefinition]:
    """What each asked worker answers to its sentinel, and how that differs from its answers; where one is declared."""
    spec = catalog.operations.sentinel
    if spec is None:
        return []
    return [
        asset
        for worker, benchmarks in watched_workers(catalog)
        for asset in (
            _answers(worker, benchmarks, spec, catalog.operations),
            _drift(worker, benchmarks, spec, catalog.key_variables),
        )
    ]


def watched_workers(catalog: Catalog) -> list[tuple[WorkerSpec, list[Benchmark]]]:
    """The workers that have a sentinel, each with the benchmarks that it is asked; none where none is declared."""
    if catalog.operations.sentinel is None:
        return []
    by_worker: dict[str, tuple[WorkerSpec, list[Benchmark]]] = {}
    for worker, benchmark in catalog.asked_cells:
        by_worker.setdefault(worker.name, (worker, []))[1].append(benchmark)
    return list(by_worker.values())


def _identity(worker: WorkerSpec, benchmarks: Sequence[Benchmark], spec: SentinelSpec) -> dict[str, Any]:
    """What decides a sentinel's answers beside the tasks."""
    return {
        "sentinel": spec.model_dump(mode="json", exclude={"schedule"}),
        "answers": {benchmark.name: answers_identity(worker, benchmark) for benchmark in benchmarks},
    }


def _answers(
    worker: WorkerSpec, benchmarks: Sequence[Benchmark], spec: SentinelSpec, operations: Operations
) -> dg.AssetsDefinition:
    key = keys.sentinel_answers(worker.name)
    identity = _identity(worker, benchmarks, spec)

    @dg.asset(
        key=key,
        deps=[keys.tasks(benchmark.name) for benchmark in benchmarks],
        group_name=f"worker_{worker.name}",
        description=(
            f"What `{worker.name}` answers to {spec.tasks} tasks of its benchmarks, each asked {spec.repeats} times. A "
            "run that opens a new epoch asks them again; its answers are never those that a router learns from."
        ),
        code_version=digest(identity),
        kinds={"llm", "parquet"},
        owners=OWNERS,
        tags={"worker": worker.name},
        pool=provider_pool(worker.provider),
    )
    def answers(
        context: dg.AssetExecutionContext, store: StoreResource, ledger: LedgerResource
    ) -> dg.MaterializeResult[Any]:
        from trinity_assets.benchmarks.snapshots import rendered_prompts
        from trinity_assets.store.tables import read_table, write_table
        from trinity_assets.workers.sentinels import (
            SENTINEL,
            SENTINEL_ANSWERS_SCHEMA,
            SENTINEL_EPOCHS,
            ledger_benchmark,
            sentinel_answers_data_version,
            sentinel_answers_frame,
            sentinel_tasks,
            sentinel_worker,
        )

        upstream = Upstream(context)
        with step():
            artifacts = store.open()
            prompts = {
                one.name: rendered_prompts(
                    one.snapshot, read_table(artifacts, "tasks", upstream.sha256(keys.tasks(one.name))).frame
                )
                for one in benchmarks
            }
            drawn = sentinel_tasks(spec, {name: list(rendered) for name, rendered in prompts.items()})
            with (
                ledger.open() as opened,
                asked_epoch(opened, context.run, operations, worker.name, SENTINEL_EPOCHS) as asked,
            ):
                collections = {
                    benchmark.name: asked.ask(
                        sentinel_worker(worker, spec),
                        ledger_benchmark(benchmark.name),
                        {task_id: prompts[benchmark.name][task_id] for task_id in drawn[benchmark.name]},
                        purpose=SENTINEL,
                        settle_timeouts=benchmark.grading.settlement.settles_timeouts,
                    )
                    for benchmark in benchmarks
                    if drawn[benchmark.name]
                }
            frame = sentinel_answers_frame({name: one.frame for name, one in collections.items()})
            artifact = write_table(
                artifacts, "sentinel_answers", frame, SENTINEL_ANSWERS_SCHEMA, identity, upstream.inputs
            )
        metadata = {
            "rows": len(frame),
            "tasks": sum(map(len, drawn.values())),
            "answers_new": sum(one.new for one in collections.values()),
            **epoch_metadata(asked.epoch),
            "cost_usd": sum(one.cost_usd for one in collections.values()),
            "cost_unknown": sum(one.cost_unknown for one in collections.values()),
            "preview": preview(frame[["benchmark", "task_id", "sample", "status", "text"]]),
        }
        return materialized(key, artifact, sentinel_answers_data_version(frame), upstream.inputs, metadata)

    return answers


def _drift(
    worker: WorkerSpec, benchmarks: Sequence[Benchmark], spec: SentinelSpec, key_variables: frozenset[str]
) -> dg.AssetsDefinition:
    key = keys.sentinel_drift(worker.name)
    identity = {
        "version": DRIFT_VERSION,
        "cells": {benchmark.name: cell_digest(worker, benchmark) for benchmark in benchmarks},
    }
    read = [keys.sentinel_answers(worker.name), *(one for b in benchmarks for one in cell_keys(worker, b))]

    @dg.asset(
        key=key,
        deps=list(dict.fromkeys(read)),
        group_name=f"worker_{worker.name}",
        description=(
            f"What `{worker.name}` answers to its sentinel now, graded, beside its answers to the same tasks that its "
            "routers learn from. How far its repeats agree says what asking again changes by itself."
        ),
        code_version=digest(identity),
        kinds={"grader", "parquet"},
        owners=OWNERS,
        tags={"worker": worker.name},
        pool=GRADING,
        check_specs=[drift_check(key)],
    )
    def drift(context: dg.AssetExecutionContext, store: StoreResource) -> dg.MaterializeResult:
        from trinity_assets.grading.drift import (
            SENTINEL_VERDICTS_SCHEMA,
            compare,
            repeats_floor,
            sentinel_verdicts_data_version,
            with_adjusted_p,
        )
        from trinity_assets.store.tables import read_table, write_table
        from trinity_assets.workers.sentinels import SENTINEL

        drop_keys(key_variables)
        upstream = Upstream(context)
        with step():
            artifacts = store.open()
            sha256, asked_as = upstream.sha256(keys.sentinel_answers(worker.name)), _identity(worker, benchmarks, spec)
            asked = read_table(artifacts, "sentinel_answers", sha256, asked_as).frame
            earlier, now, unread = _scored(upstream, artifacts, worker, benchmarks, asked)
            artifact = write_table(
                artifacts, "sentinel_verdicts", now, SENTINEL_VERDICTS_SCHEMA, identity, upstream.inputs
            )
            before, after = (frame.assign(task_id=_labels(frame)) for frame in (earlier, now))
            compared = compare(worker.name, SENTINEL, before, after, repeats_floor(after, SENTINEL))
            comparisons = with_adjusted_p([compared.between(None, int(now["epoch"].max()))])
        metadata = drift_metadata(comparisons)
        metadata |= {"left_out": dg.MetadataValue.md("\n".join(f"- {one}" for one in unread))} if unread else {}
        metadata["preview"] = preview(now[["benchmark", "task_id", "sample", "status", "score", "text"]])
        checks = [drift_checked(key, comparisons)]
        return materialized(key, artifact, sentinel_verdicts_data_version(now), upstream.inputs, metadata, checks)

    return drift


def _scored(
    upstream: Upstream,
    artifacts: "ArtifactStore",
    worker: WorkerSpec,
    benchmarks: Sequence[Benchmark],
    asked: "pd.DataFrame",
) -> "tuple[pd.DataFrame, pd.DataFrame, list[str]]":
    """The worker's answers to the tasks of its sentinel, those to the sentinel itself, and what could not be read.

    Both with a column ``score``; the benchmarks that could not be read are in neither.

    Raises:
        ArtifactError: none could be read.
    """
    import pandas as pd

    from trinity_assets.grading.drift import with_scores

    earlier, now, unread = [], [], []
    for benchmark in benchmarks:
        rows = asked[asked["benchmark"] == benchmark.name]
        try:
            present = present_cell(upstream, artifacts, worker, benchmark)
            answered = present.answers[present.answers["task_id"].isin(rows["task_id"])]
            known = rows[rows["task_id"].isin(present.prompts)]
            label = f"grading the sentinel of {worker.name} on {benchmark.name}"
            scored = [
                with_scores(frame, present.gold, benchmark.grading, present.solves, label=label)
                for frame in (answered, known)
            ]
        except (ArtifactError, GraderError) as error:
            unread.append(f"{benchmark.name}: {error}")
            continue
        earlier.append(scored[0].assign(benchmark=benchmark.name))
        now.append(scored[1])
    if not now:
        raise ArtifactError(f"the sentinel of {worker.name} has nothing to be compared with: {'; '.join(unread)}")
    return pd.concat(earlier, ignore_index=True), pd.concat(now, ignore_index=True), unread


def _labels(frame: "pd.DataFrame") -> "pd.Series[str]":
    """Tasks of several benchmarks in one list."""
    return frame["benchmark"] + ": " + frame["task_id"]
