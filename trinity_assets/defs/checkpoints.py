"""The top floor: the coordinator that is shipped."""

from typing import TYPE_CHECKING

import dagster as dg

from trinity_assets.catalog.catalog import Catalog, Router
from trinity_assets.checkpoints.versions import MANIFEST_VERSION
from trinity_assets.defs import keys
from trinity_assets.defs.dropping import dropped_metadata
from trinity_assets.defs.evaluations import gate_metadata
from trinity_assets.defs.lineage import Upstream, materialized, step
from trinity_assets.defs.presentation import OWNERS, router_group, router_tags
from trinity_assets.defs.resources import CheckpointsResource, StoreResource
from trinity_assets.errors import CheckpointError
from trinity_assets.spec import digest

if TYPE_CHECKING:
    from trinity_assets.checkpoints.manifest import Manifest
    from trinity_assets.routing.gate import GateResult

GATE = "gate"


def checkpoint_assets(catalog: Catalog) -> list[dg.AssetsDefinition]:
    """One asset per router."""
    return [_checkpoint(router) for router in catalog.routers.values()]


def _checkpoint(router: Router) -> dg.AssetsDefinition:
    key = keys.checkpoint(router.name)
    export = router.training.export

    @dg.asset(
        key=key,
        deps=[keys.head(router.name), keys.evaluation(router.name)],
        group_name=router_group(router),
        description=(
            f"The published coordinator of `{router.name}`: the head that `{export}` trained, if it passed the gate, "
            "else the best single worker, always; with the pool, the feature spec, the data it was made from and its "
            "held-out verdict in one manifest."
        ),
        code_version=digest({"export": export, "version": MANIFEST_VERSION}),
        kinds={"safetensors", "checkpoint"},
        owners=OWNERS,
        tags=router_tags(router),
        check_specs=[
            dg.AssetCheckSpec(
                GATE,
                asset=key,
                blocking=True,
                description="What is published is what the gate decided: a head only if it passed.",
            )
        ],
    )
    def checkpoint(
        context: dg.AssetExecutionContext, store: StoreResource, checkpoints: CheckpointsResource
    ) -> dg.MaterializeResult:
        from trinity_assets.checkpoints.directory import load_checkpoint, write_checkpoint
        from trinity_assets.checkpoints.export import manifest_fields
        from trinity_assets.routing.head import read_heads
        from trinity_assets.routing.results import read_evaluation

        upstream = Upstream(context)
        with step():
            artifacts = store.open()
            heads = read_heads(artifacts, upstream.sha256(keys.head(router.name)))
            judged = read_evaluation(artifacts, upstream.sha256(keys.evaluation(router.name)))
            judged_heads = read_heads(artifacts, judged.inputs[keys.head(router.name).to_user_string()])
            if judged_heads.data_version != heads.data_version:
                raise CheckpointError(f"the evaluation of {router.name} judged other heads; build the evaluation first")
            fields = manifest_fields(artifacts, router.workers, export, heads, judged.evaluation)
            path = write_checkpoint(checkpoints.path(), fields, heads.weights[export])
            published = load_checkpoint(path)
            artifact = artifacts.put((path / "manifest.json").read_bytes())
            for file in published.manifest.files:
                artifacts.put((path / file).read_bytes())
        manifest, gate = published.manifest, judged.evaluation.gate(export)
        record, policy = manifest.evaluation, manifest.policy
        metadata = {
            "path": dg.MetadataValue.path(str(path)),
            "policy": f"always {policy.worker}" if policy.worker else f"the head of {export}",
            **gate_metadata(gate),
            "verdict": record.verdict,
            "accuracy": record.accuracy,
            "test_rows": record.n_test,
            "parameters": int(published.head.size),
            "try it": dg.MetadataValue.md(f'`trinity-assets route "What is 2 plus 3?" --checkpoint {path}`'),
            **dropped_metadata(manifest.dropped),
        }
        return materialized(
            key, artifact, manifest.data_version, upstream.inputs, metadata, [_gate_checked(key, manifest, gate)]
        )

    return checkpoint


def _gate_checked(key: dg.AssetKey, manifest: "Manifest", gate: "GateResult") -> dg.AssetCheckResult:
    """Whether the manifest, as it was read back, publishes what the evaluation's gate decided."""
    policy = manifest.policy
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=GATE,
        passed=manifest.gate == gate and (gate.passed or policy.kind == "constant"),
        description=f"{'the head' if policy.kind == 'head' else f'always {policy.worker}'} is published: {gate.reason}",
    )
