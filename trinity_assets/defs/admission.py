"""What was measured of a worker and of the pool that it would join, or is in, as the newest artifacts have it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from trinity_assets.catalog.catalog import Router
from trinity_assets.defs import keys
from trinity_assets.defs.answers import answers_identity
from trinity_assets.defs.lineage import artifact_sha256
from trinity_assets.defs.solves import solves_identity
from trinity_assets.errors import ArtifactError
from trinity_assets.options import as_typed
from trinity_assets.recorded.specs import RecordedWorkerSpec, Worker

if TYPE_CHECKING:
    import pandas as pd

    from trinity_assets.routing.pool_admission import PoolOutcomes
    from trinity_assets.routing.table import Cell
    from trinity_assets.store.artifacts import ArtifactStore


def newest_outcomes(
    instance: dg.DagsterInstance, store: ArtifactStore, router: Router, worker: Worker, catalog: Path | None
) -> PoolOutcomes:
    """The outcomes behind the router's newest table, and the worker's beside them where it is not in that.

    Raises:
        ArtifactError: something is not built yet, or was with other settings; the message says what to build.
    """
    from trinity_assets.routing.pool_admission import read_pool_outcomes

    key = keys.table(router.name)
    build_table = as_typed("build", f'+key:"{key.to_user_string()}"', catalog=catalog)
    sha256 = artifact_sha256(instance, key)
    if sha256 is None:
        raise ArtifactError(f"router {router.name} has no table yet; run `{build_table}`")
    outcomes = read_pool_outcomes(store, sha256)
    # The router's own copies last: a recorded worker's holds the cells of the router's benchmarks only.
    now = {one.name: one.digest for one in (worker, *router.workers)}
    if otherwise := [row.name for row in outcomes.pool if now.get(row.name) != row.digest]:
        was = "was" if len(otherwise) == 1 else "were"
        raise ArtifactError(
            f"{', '.join(otherwise)} {was} asked otherwise for the table of {router.name} than the catalog says now, "
            f"or left its pool since; run `{build_table}`"
        )
    if worker.name not in outcomes.workers:
        return outcomes.joined_by(worker.name, _solves(instance, store, router, worker, catalog))
    return outcomes


def _solves(
    instance: dg.DagsterInstance, store: ArtifactStore, router: Router, worker: Worker, catalog: Path | None
) -> dict[Cell, pd.DataFrame]:
    """The worker's newest solves on the router's benchmarks, as the catalog asks and grades it now."""
    from trinity_assets.store.tables import read_table

    benchmarks = router.benchmarks
    if isinstance(worker, RecordedWorkerSpec) and (gaps := [b.name for b in benchmarks if b.name not in worker.cells]):
        raise ArtifactError(
            f"{worker.name} has no recorded outcomes on {', '.join(gaps)}, which {router.name} learns from; name the "
            "files that hold them in workers.yaml"
        )
    made = {one.name: artifact_sha256(instance, keys.solves(worker.name, one.name)) for one in benchmarks}
    if missing := [name for name, sha256 in made.items() if sha256 is None]:
        selection = " or ".join(f'+key:"{keys.solves(worker.name, name).to_user_string()}"' for name in missing)
        raise ArtifactError(
            f"{worker.name} has no solves on {', '.join(missing)}, which {router.name} learns from; with the worker in "
            f"a router's pool, run `{as_typed('build', selection, catalog=catalog)}`, which trains nothing"
        )
    cells = {}
    for benchmark in benchmarks:
        answers = artifact_sha256(instance, keys.answers(worker.name, benchmark.name))
        read_table(store, "answers", str(answers), answers_identity(worker, benchmark))
        solves = read_table(store, "solves", str(made[benchmark.name]), solves_identity(worker, benchmark))
        cells[worker.name, benchmark.name] = solves.frame
    return cells
