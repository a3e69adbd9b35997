"""Floor two for workers that are not asked: what files say they answered or scored. Free, and without a pool."""

from pathlib import Path
from typing import Any

import dagster as dg

from trinity_assets.catalog.catalog import Benchmark
from trinity_assets.defs import keys
from trinity_assets.defs.lineage import Upstream, materialized, step
from trinity_assets.defs.presentation import OWNERS, preview
from trinity_assets.defs.resources import StoreResource
from trinity_assets.recorded.specs import RecordedWorkerSpec
from trinity_assets.spec import digest

NAMED = 50
"""How many rows and tasks that fitted nowhere an asset's page names."""


def recorded_answers(worker: RecordedWorkerSpec, benchmark: Benchmark, directory: Path) -> dg.AssetsDefinition:
    """The answers of one recorded cell; the paths of its files are relative to ``directory``."""
    key = keys.answers(worker.name, benchmark.name)
    cell = worker.cells[benchmark.name]
    identity = worker.cell_identity(benchmark.name)
    what = "scored" if cell.takes_scores else "answered"

    @dg.asset(
        key=key,
        deps=[keys.tasks(benchmark.name)],
        group_name=f"worker_{worker.name}",
        description=(
            f"What `{worker.name}` ({worker.model}) {what} on `{benchmark.name}`, from "
            f"{', '.join(f'`{path}`' for path in cell.outcomes.paths)} (format `{cell.outcomes.format}`). Nobody is "
            "asked; a task without a row stays missing."
        ),
        code_version=digest(identity),
        kinds={"recorded", "parquet"},
        owners=OWNERS,
        tags={"worker": worker.name, "benchmark": benchmark.name},
    )
    def answers(context: dg.AssetExecutionContext, store: StoreResource) -> dg.MaterializeResult[Any]:
        from trinity_assets.recorded.outcomes import OUTCOMES_SCHEMA, import_outcomes, outcomes_data_version
        from trinity_assets.store.tables import read_table, write_table

        upstream = Upstream(context)
        with step():
            artifacts = store.open()
            tasks = read_table(artifacts, "tasks", upstream.sha256(keys.tasks(benchmark.name))).frame
            recorded = import_outcomes(cell, tasks, directory, label=f"{worker.name} on {benchmark.name}")
            frame, account = recorded.frame, recorded.account
            artifact = write_table(artifacts, "answers", frame, OUTCOMES_SCHEMA, identity, upstream.inputs)
        metadata: dict[str, Any] = {
            "rows": len(frame),
            "coverage": account.coverage,
            "tasks_missing": len(account.missing),
            "file_rows": account.rows,
            "rows_elsewhere": account.rows - account.selected,
            "rows_unmatched": len(account.unmatched),
            "rows_empty": len(account.empty),
            "rows_left_out": account.left_out,
            "preview": preview(frame[["task_id", "status", "score", "text", "source"]]),
        }
        fitted_nowhere = {
            "missing": account.missing,
            "unmatched": account.unmatched,
            "empty": account.empty,
        }
        metadata |= {name: _named(items) for name, items in fitted_nowhere.items() if items}
        return materialized(key, artifact, outcomes_data_version(frame), upstream.inputs, metadata)

    return answers


def _named(items: list[str]) -> dg.MarkdownMetadataValue:
    lines = [f"- `{item}`" for item in items[:NAMED]]
    if len(items) > NAMED:
        lines.append(f"- and {len(items) - NAMED} more")
    return dg.MetadataValue.md("\n".join(lines))
