"""``trinity-assets admission``: what one worker adds to a router's pool, before it is admitted or while it is in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trinity_assets.errors import SelectionError
from trinity_assets.options import CatalogOption, use_catalog

if TYPE_CHECKING:
    from trinity_assets.catalog.catalog import Catalog, Router
    from trinity_assets.recorded.specs import Worker


def admission_command(
    worker: Annotated[str, typer.Argument(help="A worker of the catalog.")],
    router: Annotated[
        str | None, typer.Option("--router", help="Default: each router with that worker in its pool, else every one.")
    ] = None,
    catalog: CatalogOption = None,
) -> None:
    """Print what a worker adds to the others of a router, by train tasks alone. Asks nobody and builds nothing."""
    from trinity_assets.catalog.catalog import catalog_directory
    from trinity_assets.catalog.loading import load_catalog
    from trinity_assets.defs.admission import newest_outcomes
    from trinity_assets.defs.instance import open_instance
    from trinity_assets.home import store_url, trinity_home
    from trinity_assets.routing.headroom_report import admission_lines
    from trinity_assets.store.artifacts import ArtifactStore

    use_catalog(catalog)
    loaded = load_catalog(catalog_directory())
    chosen = _chosen(loaded, worker, router)
    store = ArtifactStore(store_url(trinity_home()))
    with open_instance() as instance:
        for one in chosen:
            outcomes = newest_outcomes(instance, store, one, _as_asked(loaded, one, worker), catalog)
            verdict, *gains = admission_lines(outcomes.admission(worker), worker)
            others = ", ".join(name for name in outcomes.workers if name != worker)
            print(f"router {one.name}, beside {others}\n{verdict}")
            for gain in gains:
                print(f"  {gain}")


def _chosen(catalog: Catalog, worker: str, router: str | None) -> list[Router]:
    """The routers to report on.

    Raises:
        SelectionError: there is no such worker, or no such router.
    """
    if worker not in catalog.workers:
        raise SelectionError(f"there is no worker {worker!r}; declared: {', '.join(catalog.workers)}")
    if router is None:
        having = [one for one in catalog.routers.values() if worker in [member.name for member in one.workers]]
        return having or list(catalog.routers.values())
    if router not in catalog.routers:
        raise SelectionError(f"there is no router {router!r}; declared: {', '.join(catalog.routers)}")
    return [catalog.routers[router]]


def _as_asked(catalog: Catalog, router: Router, name: str) -> Worker:
    """The worker as ``router`` has it, else as the catalog does."""
    return next((worker for worker in router.workers if worker.name == name), catalog.workers[name])
