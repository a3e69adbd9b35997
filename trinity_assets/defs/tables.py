"""Floor four: what a router learns from, its tasks' scores, costs, latencies and split in one table."""

from collections.abc import Sequence

import dagster as dg

from trinity_assets.catalog.catalog import Catalog, Router
from trinity_assets.defs import keys
from trinity_assets.defs.answers import answers_identity
from trinity_assets.defs.dropping import cell_records, dropped_metadata, drops_workers, may_lack_metadata
from trinity_assets.defs.headroom import headroom_check, headroom_checked, headroom_metadata
from trinity_assets.defs.lineage import Upstream, artifact_sha256, materialized, step
from trinity_assets.defs.presentation import OWNERS, preview, router_group, router_tags
from trinity_assets.defs.resources import StoreResource
from trinity_assets.defs.solves import solves_identity
from trinity_assets.recorded.specs import Worker
from trinity_assets.routing.specs import TABLE_VERSION
from trinity_assets.spec import digest


def table_assets(catalog: Catalog) -> list[dg.AssetsDefinition]:
    """One asset per router."""
    return [_table(router) for router in catalog.routers.values()]


def _table(router: Router) -> dg.AssetsDefinition:
    key = keys.table(router.name)
    benchmarks = [benchmark.name for benchmark in router.benchmarks]
    drops = drops_workers(router)
    identity = {
        "version": TABLE_VERSION,
        "pool": _rows(router.workers),
        "benchmarks": benchmarks,
        "split": router.training.split.model_dump(mode="json"),
        "on_incomplete": router.training.on_incomplete,
    }

    @dg.asset(
        key=key,
        deps=[
            *(keys.tasks(benchmark) for benchmark in benchmarks),
            *(keys.features(router.backbone.name, benchmark) for benchmark in benchmarks),
            *(keys.solves(worker.name, benchmark) for worker in router.workers for benchmark in benchmarks),
        ],
        group_name=router_group(router),
        description=(
            f"What `{router.name}` learns from: a row per task of {', '.join(f'`{b}`' for b in benchmarks)} with the "
            "score, cost and latency of every worker, held-out or not, by reference to the features."
            + (" A worker is left out while one of its cells is incomplete." if drops else "")
        ),
        metadata=may_lack_metadata(router),
        code_version=digest(identity),
        kinds={"parquet"},
        owners=OWNERS,
        tags=router_tags(router),
        check_specs=[headroom_check(key)],
    )
    def table(
        context: dg.AssetExecutionContext, store: StoreResource
    ) -> dg.MaterializeResult:  # Dagster takes no parameter of it where there are checks
        from trinity_assets.routing.completeness import complete_members
        from trinity_assets.routing.headroom import headroom
        from trinity_assets.routing.oracle import sample_halves
        from trinity_assets.routing.pool_admission import admissions
        from trinity_assets.routing.table import ROUTER_TABLE, join_table, router_table_schema, table_data_version
        from trinity_assets.store.tables import read_table, write_table

        upstream = Upstream(context)
        with step():
            artifacts = store.open()
            tasks = {
                benchmark: read_table(artifacts, "tasks", upstream.sha256(keys.tasks(benchmark))).frame
                for benchmark in benchmarks
            }
            members = (
                complete_members(artifacts, router.name, cell_records(context, artifacts, router)) if drops else None
            )
            dropped = members.dropped if members else ()
            pool = [worker for worker in router.workers if worker.name not in {one.name for one in dropped}]
            workers = [worker.name for worker in pool]
            solves = {
                (worker.name, benchmark.name): read_table(
                    artifacts,
                    "solves",
                    upstream.sha256(keys.solves(worker.name, benchmark.name)),
                    solves_identity(worker, benchmark),
                ).frame
                for worker in pool
                for benchmark in router.benchmarks
            }
            if members:  # earlier answers may be to more tasks than the present ones
                solves = {cell: frame[frame["task_id"].isin(members.covered[cell])] for cell, frame in solves.items()}
            # Solves do not say how their answers were asked for: equal answers are equal solves. The table names the
            # workers, so it refuses where the newest answers are not yet those of the workers that it would name.
            for worker in pool:
                for benchmark in router.benchmarks:
                    newest = artifact_sha256(context.instance, keys.answers(worker.name, benchmark.name))
                    if newest is not None:
                        read_table(artifacts, "answers", newest, answers_identity(worker, benchmark))
            features = {
                benchmark: upstream.data_version(keys.features(router.backbone.name, benchmark))
                for benchmark in benchmarks
            }
            frame = join_table(solves, tasks, workers, router.training.split)
            joined_identity = identity | {"pool": _rows(pool), "dropped": [worker.model_dump() for worker in dropped]}
            schema = router_table_schema(workers)
            artifact = write_table(artifacts, ROUTER_TABLE, frame, schema, joined_identity, upstream.inputs)
            halves = sample_halves(solves, frame, workers)
            found = headroom(frame, workers, halves)
            added = admissions(frame, workers, halves)
        scores = frame[[f"score__{worker}" for worker in workers]]
        metadata = {
            "rows": len(frame),
            "train_rows": int((frame["split"] == "train").sum()),
            "test_rows": int((frame["split"] == "test").sum()),
            "coverage": float(scores.notna().to_numpy().mean()),
            "solved_by_any": float((scores.max(axis="columns") == 1).mean()),
            "no_signal": int((scores.max(axis="columns") == scores.min(axis="columns")).sum()),
            "preview": preview(frame[["task_id", "category", "split", *scores.columns]]),
            **headroom_metadata(found, added),
            **dropped_metadata(dropped),
        }
        # With the reasons, since the checkpoint says them.
        left_out = {"dropped": joined_identity["dropped"]} if dropped else {}
        version = digest({"table": table_data_version(frame, workers), "features": features} | left_out)
        return materialized(key, artifact, version, upstream.inputs, metadata, [headroom_checked(key, found)])

    return table


def _rows(workers: Sequence[Worker]) -> list[dict[str, str]]:
    """How a table names workers."""
    return [{"name": worker.name, "digest": worker.digest} for worker in workers]
