"""Floor three: what each cell's answers are worth. Free: a new grader asks nobody."""

from typing import Any

import dagster as dg

from trinity_assets.catalog.catalog import Benchmark, Catalog
from trinity_assets.defs import keys
from trinity_assets.defs.answers import answers_identity
from trinity_assets.defs.keyless import drop_keys
from trinity_assets.defs.lineage import Upstream, materialized, step
from trinity_assets.defs.pools import GRADING
from trinity_assets.defs.presentation import OWNERS, preview
from trinity_assets.defs.resources import StoreResource
from trinity_assets.grading.specs import TAKEN_AS_THEY_ARE
from trinity_assets.recorded.specs import Worker, takes_scores
from trinity_assets.spec import digest


def solves_assets(catalog: Catalog) -> list[dg.AssetsDefinition]:
    """One asset per cell."""
    return [_solves(worker, benchmark, catalog.key_variables) for worker, benchmark in catalog.cells]


def solves_identity(worker: Worker, benchmark: Benchmark) -> dict[str, Any]:
    """What decides a cell's scores beside answers and gold: the grading, or that recorded scores are not graded."""
    return TAKEN_AS_THEY_ARE if takes_scores(worker, benchmark.name) else benchmark.grading.identity()


def _solves(worker: Worker, benchmark: Benchmark, key_variables: frozenset[str]) -> dg.AssetsDefinition:
    key = keys.solves(worker.name, benchmark.name)
    identity = solves_identity(worker, benchmark)
    by = "taken as it was recorded" if identity is TAKEN_AS_THEY_ARE else f"graded by `{benchmark.grading.grader.kind}`"

    @dg.asset(
        key=key,
        deps=[keys.answers(worker.name, benchmark.name), keys.gold(benchmark.name)],
        group_name=f"worker_{worker.name}",
        description=(
            f"The solve table of `{worker.name}` on `{benchmark.name}`: a score in [0, 1] per answer, {by}; "
            "an outcome without a verdict is missing, never 0."
        ),
        code_version=digest(identity),
        kinds={"grader", "parquet"},
        owners=OWNERS,
        tags={"worker": worker.name, "benchmark": benchmark.name},
        pool=GRADING,
    )
    def solves(context: dg.AssetExecutionContext, store: StoreResource) -> dg.MaterializeResult[Any]:
        from trinity_assets.grading.solves import SOLVES_SCHEMA, grade_answers, solves_data_version, take_scores
        from trinity_assets.store.tables import read_table, write_table

        drop_keys(key_variables)
        upstream = Upstream(context)
        with step():
            artifacts = store.open()
            answers = read_table(
                artifacts,
                "answers",
                upstream.sha256(keys.answers(worker.name, benchmark.name)),
                answers_identity(worker, benchmark),
            )
            gold = read_table(artifacts, "gold", upstream.sha256(keys.gold(benchmark.name)))
            label = f"grading {worker.name} on {benchmark.name}"
            graded = (
                take_scores(answers.frame)
                if takes_scores(worker, benchmark.name)
                else grade_answers(answers.frame, gold.frame, benchmark.grading, label=label)
            )
            frame = graded.frame
            artifact = write_table(artifacts, "solves", frame, SOLVES_SCHEMA, identity, upstream.inputs)
        counts = {f"status_{status}": int(count) for status, count in frame["status"].value_counts().items()}
        scores = frame["score"].dropna()
        metadata = {
            "rows": len(frame),
            # Left out when nothing has a score: a NaN cannot be shown.
            **({"solve_rate": float(scores.mean())} if len(scores) else {}),
            "solved": int((frame["score"] == 1).sum()),
            "missing": int(frame["score"].isna().sum()),
            "ambiguous": int(frame["ambiguous"].sum()),
            "preview": preview(frame[["task_id", "score", "status", "rule", "reason"]]),
        }
        metadata |= {**counts, **graded.facts}
        return materialized(key, artifact, solves_data_version(frame), upstream.inputs, metadata)

    return solves
