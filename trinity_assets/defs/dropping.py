"""Routers that are trained without incomplete workers: what their tables can be built without, and were.

A table says the first in the metadata of its definition, which `build` reads, and the second in that of each
materialization, which `build` and the asset's page show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dagster as dg

from trinity_assets.catalog.catalog import Router
from trinity_assets.defs import keys
from trinity_assets.defs.answers import answers_identity
from trinity_assets.defs.lineage import Upstream, artifact_sha256, newest_materialization
from trinity_assets.defs.solves import solves_identity
from trinity_assets.recorded.specs import RecordedWorkerSpec

if TYPE_CHECKING:
    from trinity_assets.routing.completeness import CellRecord, Dropped
    from trinity_assets.store.artifacts import ArtifactStore

_MAY_LACK = "may_lack"
_DROPPED = "dropped"


@dataclass(frozen=True)
class DroppingTable:
    """The table of a router that drops incomplete workers, with the solves of each worker."""

    key: dg.AssetKey
    router: str
    solves: Mapping[str, frozenset[dg.AssetKey]]

    @property
    def may_lack(self) -> frozenset[dg.AssetKey]:
        """The dependencies without which the table can be built."""
        return frozenset().union(*self.solves.values())


def drops_workers(router: Router) -> bool:
    """Whether a router is trained without workers whose cells are incomplete."""
    return router.training.on_incomplete == "drop_worker"


def may_lack_metadata(router: Router) -> dict[str, Any]:
    """What the definition of a router's table says for :func:`dropping_tables`: per worker its solves."""
    if not drops_workers(router):
        return {}
    cells = {w.name: [keys.solves(w.name, b.name).to_user_string() for b in router.benchmarks] for w in router.workers}
    return {_MAY_LACK: cells}


def dropping_tables(definitions: dg.Definitions) -> list[DroppingTable]:
    """The tables of all routers that drop incomplete workers."""
    return [
        DroppingTable(
            spec.key,
            spec.tags["router"],
            {
                worker: frozenset(dg.AssetKey.from_user_string(name) for name in names)
                for worker, names in spec.metadata[_MAY_LACK].items()
            },
        )
        for spec in definitions.resolve_all_asset_specs()
        if _MAY_LACK in spec.metadata
    ]


def dropped_metadata(dropped: Iterable[Dropped]) -> dict[str, Any]:
    """What a materialization says of the workers that it was made without; nothing where there are none."""
    reasons = {worker.name: worker.reason for worker in dropped}
    return {_DROPPED: dg.MetadataValue.json(reasons)} if reasons else {}


def dropped_workers(instance: dg.DagsterInstance, key: dg.AssetKey) -> dict[str, str]:
    """The workers that the newest materialization of ``key`` was made without, each with the reason."""
    materialization = newest_materialization(instance, key)
    dropped: Any = materialization.metadata.get(_DROPPED) if materialization else None
    return dict(dropped.value) if dropped else {}


def cell_records(context: dg.AssetExecutionContext, store: ArtifactStore, router: Router) -> list[CellRecord]:
    """What there is of every cell of a router, by worker in the pool's order, then by benchmark."""
    from trinity_assets.routing.completeness import CellRecord
    from trinity_assets.store.tables import read_table

    # Of its own: what is looked at here decides who is left out, and is no input of the table.
    upstream = Upstream(context)
    tasks = {b.name: read_table(store, "tasks", upstream.sha256(keys.tasks(b.name))) for b in router.benchmarks}
    gold = {b.name: read_table(store, "gold", upstream.sha256(keys.gold(b.name))) for b in router.benchmarks}
    return [
        CellRecord(
            worker=worker.name,
            benchmark=benchmark.name,
            answers=artifact_sha256(context.instance, keys.answers(worker.name, benchmark.name)),
            solves=artifact_sha256(context.instance, keys.solves(worker.name, benchmark.name)),
            answers_spec=answers_identity(worker, benchmark),
            solves_spec=solves_identity(worker, benchmark),
            tasks=tasks[benchmark.name],
            gold=gold[benchmark.name],
            tasks_name=keys.tasks(benchmark.name).to_user_string(),
            gold_name=keys.gold(benchmark.name).to_user_string(),
            answers_name=keys.answers(worker.name, benchmark.name).to_user_string(),
            min_coverage=(
                worker.cells[benchmark.name].outcomes.min_coverage if isinstance(worker, RecordedWorkerSpec) else 1.0
            ),
        )
        for worker in router.workers
        for benchmark in router.benchmarks
    ]
