"""Floor five: the heads that a router's trainers learn from its table."""

from typing import TYPE_CHECKING, Any

import dagster as dg

from trinity_assets.catalog.catalog import Catalog, Router
from trinity_assets.defs import keys
from trinity_assets.defs.lineage import Upstream, artifact_sha256, materialized, step
from trinity_assets.defs.presentation import OWNERS, router_group, router_tags
from trinity_assets.defs.resources import StoreResource, TrainingsResource
from trinity_assets.errors import ArtifactError, TrainingError
from trinity_assets.spec import digest

if TYPE_CHECKING:
    from trinity_assets.routing.inputs import RouterData
    from trinity_assets.routing.trainers.head import TrainedHead
    from trinity_assets.routing.warm_start import EarlierHead
    from trinity_assets.store.artifacts import ArtifactStore

WARM_START = "warm_start"
"""The metadata that says what searches started from, or why from zero."""

REORDERED = "reordered"
"""The metadata that says whose rows the heads are, where only the order of the pool has changed."""


def head_assets(catalog: Catalog) -> list[dg.AssetsDefinition]:
    """One asset per router, which holds the heads of all its trainers."""
    return [_head(router) for router in catalog.routers.values()]


def _head(router: Router) -> dg.AssetsDefinition:
    key = keys.head(router.name)
    # With the workers' digests: a worker that is asked otherwise and solves the same tasks leaves the table's data
    # version as it is, but a head that names the old worker could not be exported, nor its worker be asked.
    identity: dict[str, Any] = {
        "workers": [{"name": worker.name, "digest": worker.digest} for worker in router.workers],
        "trainers": router.training.head_identity(),
    }
    prices = {worker.name: worker.price for worker in router.workers}
    if router.training.cost_weights:
        identity["prices"] = {name: price.model_dump() if price else None for name, price in prices.items()}

    @dg.asset(
        key=key,
        deps=[keys.table(router.name)],
        group_name=router_group(router),
        description=(
            f"The bias-free heads of `{router.name}`, one per trainer ({', '.join(router.training.heads)}): the "
            "worker to ask is the row with the largest product with the question's feature."
        ),
        code_version=digest(identity),
        kinds={"safetensors", "numpy"},
        owners=OWNERS,
        tags=router_tags(router),
    )
    def head(
        context: dg.AssetExecutionContext, store: StoreResource, trainings: TrainingsResource
    ) -> dg.MaterializeResult[Any]:
        from trinity_assets.routing.head import HeadSpec, best_single_on_train, write_heads
        from trinity_assets.routing.inputs import read_router_data
        from trinity_assets.routing.objective import training_objective
        from trinity_assets.routing.pool_changes import learnt_digest
        from trinity_assets.routing.trainers.head import Start
        from trinity_assets.routing.warm_start import train_from

        upstream = Upstream(context)
        with step():
            artifacts = store.open()
            data = read_router_data(artifacts, upstream.sha256(keys.table(router.name)))
            objective = training_objective(data.table, data.features, data.workers, prices)
            learnt = learnt_digest(data, objective, router.training)
            trained, said = _reordered(context.instance, artifacts, router, data, learnt)
            if trained is None:
                earlier = None
                if router.training.warm_start:
                    earlier, said[WARM_START] = _earlier(context.instance, artifacts, router, data)
                start = Start(directory=trainings.path())
                trained = train_from(earlier, objective, data.pool, router.training, start)
            spec = HeadSpec(
                router=router.name,
                workers=data.pool,
                feature_spec=data.feature_spec,
                table_sha256=data.table_sha256,
                table_version=upstream.data_version(keys.table(router.name)),
                best_single_on_train=best_single_on_train(data.table, data.workers, prices),
                trainers={name: result.record for name, result in trained.items()},
                learnt=learnt,
            )
            artifact, version = write_heads(artifacts, {name: result.weights for name, result in trained.items()}, spec)
        metadata: dict[str, Any] = {
            "parameters": len(data.pool) * data.features.shape[1],
            "train_rows": data.train_rows,
            **said,
        }
        for name, result in trained.items():
            metadata[f"train_reward_{name}"] = result.reward
            if REORDERED not in said:
                metadata[f"seconds_{name}"] = result.seconds
        return materialized(key, artifact, version, upstream.inputs, metadata)

    return head


def _reordered(
    instance: dg.DagsterInstance, store: "ArtifactStore", router: Router, data: "RouterData", learnt: str
) -> tuple["dict[str, TrainedHead] | None", dict[str, str]]:
    """The newest heads with their rows in the pool's order, and what the page says; None where there is more to learn.

    ``learnt`` is what the router's heads learn from now.
    """
    from trinity_assets.routing.head import read_heads
    from trinity_assets.routing.pool_changes import reordered

    sha256 = artifact_sha256(instance, keys.head(router.name))
    if sha256 is None:
        return None, {}
    try:
        heads = read_heads(store, sha256)
        if heads.spec.learnt != learnt:
            return None, {}
        moved = reordered(heads, data.pool)
    except (ArtifactError, TrainingError):
        return None, {}
    return moved, {REORDERED: f"nothing was trained: only the pool's order has changed since the heads in {sha256}"}


def _earlier(
    instance: dg.DagsterInstance, store: "ArtifactStore", router: Router, data: "RouterData"
) -> tuple["EarlierHead | None", str]:
    """The head that the router had before, if searches can start from it, and what the page says of that."""
    from trinity_assets.routing.warm_start import earlier_head

    sha256 = artifact_sha256(instance, keys.head(router.name))
    if sha256 is None:
        return None, "from zero: no heads were trained before"
    try:
        return earlier_head(store, sha256, data, router.training), f"from the heads in {sha256}"
    except (ArtifactError, TrainingError) as reason:
        return None, f"from zero: {reason}"
