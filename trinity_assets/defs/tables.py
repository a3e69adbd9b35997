"""Floor four: what a router learns from, its tasks' scores, costs, latencies and split in one table."""

from typing import Any

import dagster as dg

from trinity_assets.catalog.catalog import Catalog, Router
from trinity_assets.defs import keys
from trinity_assets.defs.answers import answers_identity
from trinity_assets.defs.lineage import Upstream, artifact_sha256, materialized, step
from trinity_assets.defs.presentation import OWNERS, preview, router_group, router_tags
from trinity_assets.defs.resources import StoreResource
from trinity_assets.defs.solves import solves_identity
from trinity_assets.routing.specs import TABLE_VERSION
from trinity_assets.spec import digest


def table_assets(catalog: Catalog) -> list[dg.AssetsDefinition]:
    """One asset per router."""
    return [_table(router) for router in catalog.routers.values()]


def _table(router: Router) -> dg.AssetsDefinition:
    key = keys.table(router.name)
    benchmarks = [benchmark.name for benchmark in router.benchmarks]
    workers = [worker.name for worker in router.workers]
    identity = {
        "version": TABLE_VERSION,
        "pool": [{"name": worker.name, "digest": worker.digest} for worker in router.workers],
        "benchmarks": benchmarks,
        "split": router.training.split.model_dump(mode="json"),
        "on_incomplete": router.training.on_incomplete,
    }

    @dg.asset(
        key=key,
        deps=[
            *(keys.tasks(benchmark) for benchmark in benchmarks),
            *(keys.features(router.backbone.name, benchmark) for benchmark in benchmarks),
            *(keys.solves(worker, benchmark) for worker in workers for benchmark in benchmarks),
        ],
        group_name=router_group(router),
        description=(
            f"What `{router.name}` learns from: a row per task of {', '.join(f'`{b}`' for b in benchmarks)} with the "
            "score, cost and latency of every worker, held-out or not, by reference to the features."
        ),
        code_version=digest(identity),
        kinds={"parquet"},
        owners=OWNERS,
        tags=router_tags(router),
    )
    def table(context: dg.AssetExecutionContext, store: StoreResource) -> dg.MaterializeResult[Any]:
        from trinity_assets.routing.table import ROUTER_TABLE, join_table, router_table_schema, table_data_version
        from trinity_assets.store.tables import read_table, write_table

        upstream = Upstream(context)
        with step():
            artifacts = store.open()
            tasks = {b: read_table(artifacts, "tasks", upstream.sha256(keys.tasks(b))).frame for b in benchmarks}
            solves = {
                (w.name, b.name): read_table(
                    artifacts, "solves", upstream.sha256(keys.solves(w.name, b.name)), solves_identity(w, b)
                ).frame
                for w in router.workers
                for b in router.benchmarks
            }
            # Solves do not say how their answers were asked for: equal answers are equal solves. The table names the
            # workers, so it refuses where the newest answers are not yet those of the workers that it would name.
            for w in router.workers:
                for b in router.benchmarks:
                    newest = artifact_sha256(context.instance, keys.answers(w.name, b.name))
                    if newest is not None:
                        read_table(artifacts, "answers", newest, answers_identity(w, b))
            features = {b: upstream.data_version(keys.features(router.backbone.name, b)) for b in benchmarks}
            frame = join_table(solves, tasks, workers, router.training.split)
            schema = router_table_schema(workers)
            artifact = write_table(artifacts, ROUTER_TABLE, frame, schema, identity, upstream.inputs)
        scores = frame[[f"score__{worker}" for worker in workers]]
        metadata = {
            "rows": len(frame),
            "train_rows": int((frame["split"] == "train").sum()),
            "test_rows": int((frame["split"] == "test").sum()),
            "coverage": float(scores.notna().to_numpy().mean()),
            "solved_by_any": float((scores.max(axis="columns") == 1).mean()),
            "no_signal": int((scores.max(axis="columns") == scores.min(axis="columns")).sum()),
            "preview": preview(frame[["task_id", "category", "split", *scores.columns]]),
        }
        version = digest({"table": table_data_version(frame, workers), "features": features})
        return materialized(key, artifact, version, upstream.inputs, metadata)

    return table
