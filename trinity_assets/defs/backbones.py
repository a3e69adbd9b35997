"""Floor one: each backbone's weights, whose sha is their data version."""

from typing import Any

import dagster as dg

from trinity_assets.backbones.specs import BackboneSpec
from trinity_assets.backbones.versions import weights_version
from trinity_assets.catalog.catalog import Catalog
from trinity_assets.defs import keys
from trinity_assets.defs.lineage import materialized, step
from trinity_assets.defs.presentation import OWNERS
from trinity_assets.defs.resources import StoreResource
from trinity_assets.spec import canonical_json, digest

GROUP = "features"


def backbone_assets(catalog: Catalog) -> list[dg.AssetsDefinition]:
    """The weights of every backbone that some router uses."""
    used = {router.backbone.name for router in catalog.routers.values()}
    return [_backbone(spec) for name, spec in catalog.backbones.items() if name in used]


def _backbone(spec: BackboneSpec) -> dg.AssetsDefinition:
    identity = {"weights": spec.weights.model_dump(mode="json"), "version": weights_version(spec.weights)}

    @dg.asset(
        key=keys.backbone(spec.name),
        group_name=GROUP,
        description=f"The frozen weights of backbone `{spec.name}`; their sha256 is the data version.",
        code_version=digest(identity),
        kinds={spec.weights.kind, "transformers"},
        owners=OWNERS,
        tags={"backbone": spec.name},
    )
    def backbone(store: StoreResource) -> dg.MaterializeResult[Any]:
        from trinity_assets.backbones.weights import resolve_weights

        with step():
            weights = resolve_weights(spec.weights)
            size = sum(file.stat().st_size for file in weights.files)
            record = {"kind": "backbone", "spec": identity, "weights_sha256": weights.sha256}
            artifact = store.open().put(canonical_json(record).encode())
        metadata = {"weights_sha256": weights.sha256, "size_mb": size / 1e6, "hidden_size": weights.hidden_size}
        return materialized(keys.backbone(spec.name), artifact, weights.sha256, {}, metadata)

    return backbone
