"""Floor one: each benchmark's snapshot, two assets from one step, and what the benchmarks have in common."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from trinity_assets.benchmarks.sources import source_version
from trinity_assets.benchmarks.specs import CONTAMINATION_VERSION, Quarantined
from trinity_assets.catalog.catalog import Benchmark, Catalog
from trinity_assets.defs import keys
from trinity_assets.defs.lineage import Upstream, materialized, step
from trinity_assets.defs.presentation import OWNERS, preview
from trinity_assets.defs.resources import StoreResource
from trinity_assets.errors import GraderError
from trinity_assets.grading.verdicts import REASON_CHARACTERS, printable
from trinity_assets.spec import digest

if TYPE_CHECKING:
    import pandas as pd

GROUP = "benchmarks"
QUARANTINE_SHOWN = 50
PAIRS_SHOWN = 60


def snapshot_assets(catalog: Catalog) -> list[dg.AssetsDefinition]:
    """The snapshot of every benchmark that some router learns from."""
    return [_snapshot(catalog, benchmark) for benchmark in _used(catalog)]


def contamination_assets(catalog: Catalog) -> list[dg.AssetsDefinition]:
    """The report on tasks that several of these benchmarks share, where there are several."""
    names = [benchmark.name for benchmark in _used(catalog)]
    return [_contamination(names)] if len(names) > 1 else []


def _used(catalog: Catalog) -> list[Benchmark]:
    """The benchmarks that some router learns from, in catalog order."""
    used = {benchmark.name for router in catalog.routers.values() for benchmark in router.benchmarks}
    return [benchmark for name, benchmark in catalog.benchmarks.items() if name in used]


def _snapshot(catalog: Catalog, benchmark: Benchmark) -> dg.AssetsDefinition:
    name, spec = benchmark.name, benchmark.snapshot
    version = source_version(spec.source, catalog.directory)
    asked, gold = spec.asked_identity(version), spec.gold_identity(version)

    def asset_spec(key: dg.AssetKey, identity: dict[str, Any], description: str) -> dg.AssetSpec:
        return dg.AssetSpec(
            key,
            group_name=GROUP,
            description=description,
            code_version=digest(identity),
            kinds={spec.source.kind, "parquet"},
            owners=OWNERS,
            tags={"benchmark": name},
        )

    @dg.multi_asset(
        name=f"snapshot_{name}",
        specs=[
            asset_spec(keys.tasks(name), asked, f"What `{name}` asks: one row per task, frozen from its source."),
            asset_spec(keys.gold(name), gold, f"How answers to `{name}` are graded: one payload per task."),
        ],
    )
    def snapshot(store: StoreResource) -> Iterator[dg.MaterializeResult[Any]]:
        from trinity_assets.benchmarks.snapshots import GOLD_SCHEMA, TASKS_SCHEMA, take_snapshot
        from trinity_assets.store.tables import write_table

        with step():
            taken = take_snapshot(spec, catalog.directory)
            _require_gradable(benchmark, taken.gold)
            artifacts = store.open()
            tasks_sha = write_table(artifacts, "tasks", taken.tasks, TASKS_SCHEMA, asked)
            gold_sha = write_table(artifacts, "gold", taken.gold, GOLD_SCHEMA, gold)
        groups = taken.tasks["group"].nunique()
        metadata = {
            "rows": len(taken.tasks),
            "categories": taken.tasks["category"].nunique(),
            "near_duplicates": len(taken.tasks) - groups,
            "quarantined": len(taken.quarantined),
            **({"quarantine": _quarantine_list(taken.quarantined)} if taken.quarantined else {}),
            "preview": preview(taken.tasks[["task_id", "category", "question"]]),
        }
        yield materialized(keys.tasks(name), tasks_sha, taken.tasks_version, {}, metadata)
        metadata = {"rows": len(taken.gold), "preview": preview(taken.gold[["task_id", "payload"]])}
        yield materialized(keys.gold(name), gold_sha, taken.gold_version, {}, metadata)

    return snapshot


def _require_gradable(benchmark: Benchmark, gold: "pd.DataFrame") -> None:
    """Refuse gold that the benchmark's grader cannot grade by, before any answer is bought."""
    from trinity_assets.grading.graders import require_gradable

    payloads = {task: json.loads(payload) for task, payload in zip(gold["task_id"], gold["payload"], strict=True)}
    try:
        require_gradable(benchmark.grading.grader, payloads)
    except GraderError as error:
        raise GraderError(f"benchmark {benchmark.name}: {error}") from error


def _contamination(names: Sequence[str]) -> dg.AssetsDefinition:
    key = keys.contamination()
    identity = {"contamination_version": CONTAMINATION_VERSION, "benchmarks": list(names)}

    @dg.asset(
        key=key,
        deps=[keys.tasks(name) for name in names],
        group_name=GROUP,
        description=(
            "Tasks whose text also occurs in another benchmark: the same, a near duplicate, or one inside the other. "
            "A report, on which nothing depends; quarantine what a router should not be trained or judged on."
        ),
        code_version=digest(identity),
        kinds={"parquet"},
        owners=OWNERS,
    )
    def contamination(context: dg.AssetExecutionContext, store: StoreResource) -> dg.MaterializeResult[Any]:
        from trinity_assets.benchmarks.contamination import (
            CONTAMINATION_SCHEMA,
            contamination_data_version,
            counted,
            find_contamination,
        )
        from trinity_assets.store.tables import read_table, write_table

        upstream = Upstream(context)
        with step():
            artifacts = store.open()
            tasks = {name: read_table(artifacts, "tasks", upstream.sha256(keys.tasks(name))).frame for name in names}
            found = find_contamination(tasks)
            artifact = write_table(artifacts, "contamination", found, CONTAMINATION_SCHEMA, identity, upstream.inputs)
        metadata: dict[str, Any] = {"rows": len(found)}
        if len(found):
            counts = counted(found)
            metadata |= {
                "pairs": preview(counts, PAIRS_SHOWN),
                "pairs_left_out": max(0, len(counts) - PAIRS_SHOWN),
                "preview": preview(found),
            }
        return materialized(key, artifact, contamination_data_version(found), upstream.inputs, metadata)

    return contamination


def _quarantine_list(quarantined: Sequence[Quarantined]) -> dg.MarkdownMetadataValue:
    """The tasks that are left out, each with its reason and date, as a list."""
    lines = [
        f"- `{one.task_id}` ({one.date.isoformat()}): {printable(one.reason, REASON_CHARACTERS)}"
        for one in quarantined[:QUARANTINE_SHOWN]
    ]
    if len(quarantined) > QUARANTINE_SHOWN:
        lines.append(f"- and {len(quarantined) - QUARANTINE_SHOWN} more")
    return dg.MetadataValue.md("\n".join(lines))
