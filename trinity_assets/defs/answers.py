"""Floor two: what each worker answered to each benchmark; the only floor that spends money."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from trinity_assets.catalog.catalog import Benchmark, Catalog
from trinity_assets.defs import keys
from trinity_assets.defs.epochs import asked_epoch, epoch_metadata
from trinity_assets.defs.lineage import Upstream, materialized, newest_materialization, step
from trinity_assets.defs.pools import provider_pool
from trinity_assets.defs.presentation import OWNERS, preview
from trinity_assets.defs.recorded_answers import recorded_answers
from trinity_assets.defs.resources import LedgerResource, StoreResource
from trinity_assets.recorded.specs import RecordedWorkerSpec, Worker
from trinity_assets.spec import digest
from trinity_assets.workers.cut_short import TOO_MANY, cut_short
from trinity_assets.workers.operations import Operations
from trinity_assets.workers.specs import WorkerSpec

MOSTLY_ANSWERED = "mostly_answered"
"""The check of what a limit, a refusal or silence took from a worker."""


def answers_assets(catalog: Catalog) -> list[dg.AssetsDefinition]:
    """One asset per cell."""
    return [
        recorded_answers(worker, benchmark, catalog.directory)
        if isinstance(worker, RecordedWorkerSpec)
        else _answers(worker, benchmark, catalog.operations)
        for worker, benchmark in catalog.cells
    ]


def answers_identity(worker: Worker, benchmark: Benchmark) -> dict[str, Any]:
    """What decides a cell's answers beside the tasks."""
    if isinstance(worker, RecordedWorkerSpec):
        return worker.cell_identity(benchmark.name)
    return worker.answer_identity() | {"benchmark_prompt": benchmark.snapshot.prompt}


def _answers(worker: WorkerSpec, benchmark: Benchmark, operations: Operations) -> dg.AssetsDefinition:
    key = keys.answers(worker.name, benchmark.name)
    identity = answers_identity(worker, benchmark)

    @dg.asset(
        key=key,
        deps=[keys.tasks(benchmark.name)],
        group_name=f"worker_{worker.name}",
        description=(
            f"What `{worker.name}` ({worker.model} through `{worker.provider.name}`, asked `{worker.prompt_name}`) "
            f"answered to `{benchmark.name}`. Failures are no answers: while any is left this asset fails, keeps what "
            "it has, and asks only for the rest when it is run again."
        ),
        code_version=digest(identity),
        kinds={"llm", "parquet"},
        owners=OWNERS,
        tags={"worker": worker.name, "benchmark": benchmark.name},
        pool=provider_pool(worker.provider),
        check_specs=[
            dg.AssetCheckSpec(
                MOSTLY_ANSWERED,
                asset=key,
                description=(
                    f"Warns when more than {TOO_MANY:.0%} of the answers were cut short, refused or missing: a slow "
                    "reasoner loses its hardest tasks to a limit, which flatters the others."
                ),
            )
        ],
    )
    def answers(
        context: dg.AssetExecutionContext, store: StoreResource, ledger: LedgerResource
    ) -> dg.MaterializeResult:  # Dagster takes no parameter of it where there are checks
        from trinity_assets.benchmarks.snapshots import rendered_prompts
        from trinity_assets.store.tables import read_table, write_table
        from trinity_assets.workers.tables import ANSWERS_SCHEMA, answers_data_version

        upstream = Upstream(context)
        with step():
            artifacts = store.open()
            tasks = read_table(artifacts, "tasks", upstream.sha256(keys.tasks(benchmark.name)))
            prompts = rendered_prompts(benchmark.snapshot, tasks.frame)
            made_before = newest_materialization(context.instance, key) is not None
            with (
                ledger.open() as opened,
                asked_epoch(
                    opened, context.run, operations, worker.name, benchmark.name, ever_complete=made_before
                ) as asked,
            ):
                settle_timeouts = benchmark.grading.settlement.settles_timeouts
                collection = asked.ask(worker, benchmark.name, prompts, settle_timeouts=settle_timeouts)
            artifact = write_table(artifacts, "answers", collection.frame, ANSWERS_SCHEMA, identity, upstream.inputs)
        counts = {f"status_{status}": count for status, count in collection.by_status.items()}
        metadata = {
            "rows": len(collection.frame),
            "answers_new": collection.new,
            "answers_reused": collection.reused,
            **epoch_metadata(asked.epoch),
            "coverage": len(collection.frame) / (len(prompts) * worker.samples),
            "cost_usd": collection.cost_usd,
            "cost_unknown": collection.cost_unknown,
            "input_tokens": collection.input_tokens,
            "output_tokens": collection.output_tokens,
            "seconds": collection.seconds,
            "preview": preview(collection.frame[["task_id", "status", "text"]]),
        }
        version = answers_data_version(collection.frame)
        checks = [mostly_answered(key, collection.by_status)]
        return materialized(key, artifact, version, upstream.inputs, metadata | counts, checks)

    return answers


def mostly_answered(key: dg.AssetKey, by_status: Mapping[str, int]) -> dg.AssetCheckResult:
    """The check :data:`MOSTLY_ANSWERED` of the asset ``key``, whose answers have these statuses."""
    found = cut_short(by_status)
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=MOSTLY_ANSWERED,
        passed=not found.too_many,
        severity=dg.AssetCheckSeverity.WARN,
        description=str(found),
        metadata={"share": found.share},
    )
