"""Floor six: a router's heads on held-out tasks, beside what they have to beat."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from trinity_assets.catalog.catalog import Catalog, Router
from trinity_assets.defs import keys
from trinity_assets.defs.headroom import HEADROOM
from trinity_assets.defs.lineage import Upstream, materialized, recorded_metadata, step
from trinity_assets.defs.presentation import OWNERS, picture, router_group, router_tags
from trinity_assets.defs.resources import LooksResource, ReportsResource, StoreResource
from trinity_assets.errors import ArtifactError, CheckpointError
from trinity_assets.routing.specs import EVALUATION_VERSION
from trinity_assets.spec import canonical_json, digest
from trinity_assets.texts import in_markdown

if TYPE_CHECKING:
    from trinity_assets.checkpoints.incumbent import Incumbent
    from trinity_assets.routing.gate import GateResult
    from trinity_assets.routing.inputs import RouterData
    from trinity_assets.store.artifacts import ArtifactStore

TEST_SET = "test_set"
"""The metadata that names the held-out tasks."""

REPORT_FILE = "report_file"
"""The metadata that says where the report lies as one HTML file."""


def evaluation_assets(catalog: Catalog) -> list[dg.AssetsDefinition]:
    """One asset per router."""
    return [_evaluation(router) for router in catalog.routers.values()]


def _evaluation(router: Router) -> dg.AssetsDefinition:
    key = keys.evaluation(router.name)
    judged = router.training.judged
    identity = {
        "judged": list(judged),
        "evaluation": EVALUATION_VERSION,
        "trainers": router.training.head_identity(),
        "training_seeds": router.training.training_seeds,
        "gate": router.training.gate.model_dump(mode="json"),
        "prices": {worker.name: worker.price.model_dump() if worker.price else None for worker in router.workers},
    }

    @dg.asset(
        key=key,
        # The table too: what changes in its held-out part changes the verdict and leaves the heads as they were.
        deps=[keys.table(router.name), keys.head(router.name)],
        group_name=router_group(router),
        description=(
            f"The heads of `{router.name}` on held-out tasks only, each beside the best single worker (chosen on "
            "train), chance and the oracle, with 95% intervals of the paired difference. The word is win, tie or loss."
        ),
        code_version=digest(identity),
        kinds={"evaluation"},
        owners=OWNERS,
        tags=router_tags(router),
    )
    def evaluation(
        context: dg.AssetExecutionContext, store: StoreResource, reports: ReportsResource, looks: LooksResource
    ) -> dg.MaterializeResult[Any]:
        from trinity_assets.routing.evaluation import evaluate
        from trinity_assets.routing.fitting import publication
        from trinity_assets.routing.head import best_single_on_train, read_heads
        from trinity_assets.routing.inputs import read_questions, read_router_data
        from trinity_assets.routing.looks import LooksLog
        from trinity_assets.routing.report import markdown_report
        from trinity_assets.routing.results import write_evaluation
        from trinity_assets.routing.router_report import RouterReport, router_pictures
        from trinity_assets.routing.table import held_out_digest
        from trinity_assets.routing.trainers.all_heads import learners

        upstream = Upstream(context)
        with step():
            artifacts = store.open()
            heads = read_heads(artifacts, upstream.sha256(keys.head(router.name)))
            workers = [row.name for row in heads.spec.workers]
            data = read_router_data(artifacts, upstream.sha256(keys.table(router.name)))
            if upstream.data_version(keys.table(router.name)) != heads.spec.table_version:
                raise ArtifactError(f"the heads of {router.name} were trained on another table; build the head first")
            prices = {worker.name: worker.price for worker in router.workers}
            published, why_not = _incumbent(context.instance, artifacts, router.name, data)
            log = LooksLog(looks.path(), read_questions(artifacts, data))
            result = evaluate(
                data.table,
                data.features,
                heads.weights,
                workers,
                prices=prices,
                dropped=data.dropped,
                records=heads.spec.trainers,
                recipes={name: learners(router.training, name) for name in judged},
                gate=router.training.gate,
                published=(published.checkpoint, published.chosen) if published else None,
                looks=log.count(data.table, heads.weights),
            )
            artifact, version = write_evaluation(artifacts, result, upstream.inputs)
        exported, gate = result.policy(router.training.export), result.gate(router.training.export)
        best_single = best_single_on_train(data.table, workers, prices)
        pictures = router_pictures(result, data.table, heads.spec.trainers, best_single)
        report = RouterReport(
            title=f"The router {router.name}",
            published="**To be published:** "
            + in_markdown(publication(result, router.training.export, heads.spec.trainers[router.training.export])),
            headroom=recorded_metadata(context.instance, keys.table(router.name), HEADROOM) or "",
            evaluation=result,
            pictures=pictures,
            facts={
                **{name: f"`{sha256}`" for name, sha256 in sorted(upstream.inputs.items())},
                "evaluation": f"`{artifact}`",
                "features": f"`{canonical_json(data.feature_spec.model_dump(mode='json'))}`",
            },
        )
        page = reports.write(f"{router.name}-{artifact[:12]}", report.html())
        metadata = {
            "verdict": exported.verdict,
            **gate_metadata(gate),
            "accuracy": exported.accuracy,
            "difference": exported.difference,
            "difference_low": exported.low,
            "difference_high": exported.high,
            "best_single": result.policy("best_single").accuracy,
            "oracle": result.policy("oracle").accuracy,
            "test_rows": result.n_test,
            TEST_SET: held_out_digest(data.table),
            "looks": result.looks,
            **({"incumbent": why_not} if why_not else {}),
            "report": dg.MetadataValue.md(markdown_report(result)),
            REPORT_FILE: dg.MetadataValue.path(str(page)),
            **{f"plot_{drawn.name}": picture(drawn.png, drawn.caption) for drawn in pictures},
        }
        return materialized(key, artifact, version, upstream.inputs, metadata)

    return evaluation


def gate_metadata(gate: "GateResult") -> dict[str, Any]:
    """What the gate decided, on a page that cuts long lines off."""
    return {
        "gate": "passed" if gate.passed else "not passed",
        "gate_low": gate.low,
        "gate_reason": dg.MetadataValue.md(f"The gate {'is' if gate.passed else 'is not'} passed: {gate.reason}."),
    }


def _incumbent(
    instance: dg.DagsterInstance, artifacts: "ArtifactStore", router: str, data: "RouterData"
) -> "tuple[Incumbent | None, str | None]":
    """What is published now, or why it cannot be compared; neither where nothing is."""
    from trinity_assets.checkpoints.incumbent import incumbent

    path = recorded_metadata(instance, keys.checkpoint(router), "path")
    if path is None:
        return None, None
    try:
        return incumbent(artifacts, Path(path), data), None
    except CheckpointError as error:
        return None, f"{Path(path).name} is not compared: {error}"
