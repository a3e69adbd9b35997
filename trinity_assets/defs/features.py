"""Floor two: each benchmark's questions as a backbone sees them."""

from typing import Any

import dagster as dg

from trinity_assets.backbones.specs import BackboneSpec
from trinity_assets.catalog.catalog import Benchmark, Catalog
from trinity_assets.defs import keys
from trinity_assets.defs.lineage import Upstream, artifact_sha256, materialized, step
from trinity_assets.defs.presentation import OWNERS
from trinity_assets.defs.resources import StoreResource
from trinity_assets.errors import BackboneError
from trinity_assets.spec import digest

GROUP = "features"


def features_assets(catalog: Catalog) -> list[dg.AssetsDefinition]:
    """One asset per (backbone, benchmark) that some router learns from."""
    return [_features(backbone, benchmark) for backbone, benchmark in catalog.featured]


def _features(backbone: BackboneSpec, benchmark: Benchmark) -> dg.AssetsDefinition:
    key = keys.features(backbone.name, benchmark.name)

    @dg.asset(
        key=key,
        deps=[keys.backbone(backbone.name), keys.tasks(benchmark.name)],
        group_name=GROUP,
        description=(
            f"One hidden state of `{backbone.name}` per question of `{benchmark.name}`: transcript "
            f"`{backbone.transcript}`, token {backbone.position}, {backbone.dtype}. Computed on the question alone, "
            "never on the benchmark's prompt: a router does not see that when it serves."
        ),
        code_version=digest(backbone.identity()),
        kinds={"transformers", "numpy"},
        owners=OWNERS,
        tags={"backbone": backbone.name, "benchmark": benchmark.name},
    )
    def features(context: dg.AssetExecutionContext, store: StoreResource) -> dg.MaterializeResult[Any]:
        from trinity_assets.backbones.features import load_backbone
        from trinity_assets.backbones.index import extract_features
        from trinity_assets.backbones.weights import feature_spec, resolve_weights
        from trinity_assets.store.tables import read_table

        upstream = Upstream(context)
        with step():
            artifacts = store.open()
            weights = resolve_weights(backbone.weights)
            if weights.sha256 != upstream.data_version(keys.backbone(backbone.name)):
                raise BackboneError(
                    f"the weights of {backbone.name} are not those of its asset; build the backbone first"
                )
            spec = feature_spec(backbone, weights)
            tasks = read_table(artifacts, "tasks", upstream.sha256(keys.tasks(benchmark.name)))
            questions = list(zip(tasks.frame["task_id"], tasks.frame["question"], strict=True))
            previous = artifact_sha256(context.instance, key)
            extracted = extract_features(artifacts, spec, lambda: load_backbone(backbone, weights), questions, previous)
        metadata = {
            "rows": len(questions),
            "features_new": extracted.new,
            "features_reused": extracted.reused,
            "input_tokens": extracted.tokens,
            "seconds": extracted.seconds,
            "hidden_size": spec.hidden_size,
        }
        return materialized(key, extracted.index_sha, extracted.data_version, upstream.inputs, metadata)

    return features
