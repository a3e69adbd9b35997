"""The command ``trinity-assets rebaseline``: asking workers again what they were asked, to see what has changed."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Annotated

import typer

from trinity_assets.build_progress import announce, interruptible, outcome_lines, prepare
from trinity_assets.catalog.catalog import Catalog, catalog_directory
from trinity_assets.catalog.loading import load_catalog
from trinity_assets.options import CatalogOption, as_typed, use_catalog
from trinity_assets.texts import counted


def rebaseline(
    selection: Annotated[
        str | None,
        typer.Argument(help="Dagster's selection syntax; default: the answers of every worker that is asked."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say whose answers would be asked again.")] = False,
    budget: Annotated[
        float | None,
        typer.Option("--budget", help="USD that this may cost; default: the catalog's budget, if any."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="The name of one that was interrupted, to go on with it; default: a new name."),
    ] = None,
    catalog_option: CatalogOption = None,
) -> None:
    """Ask what is selected again, in a new epoch; build what comes out otherwise; compare with the epoch before."""
    from trinity_assets.definitions import build_defs
    from trinity_assets.defs import keys
    from trinity_assets.defs.build import pending
    from trinity_assets.defs.instance import open_instance
    from trinity_assets.defs.rebaselining import answers_to_ask, held_up
    from trinity_assets.defs.rebaselining import rebaseline as ask_again
    from trinity_assets.defs.runs import NEW_EPOCH_TAG, build_tags

    use_catalog(catalog_option)
    name = name or f"by hand {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    tags = {**build_tags(budget), NEW_EPOCH_TAG: name}
    resume = as_typed("rebaseline", selection, name=name, budget=budget, catalog=catalog_option)
    catalog = load_catalog(catalog_directory())
    definitions = build_defs(catalog)
    with open_instance() as instance:
        asked = answers_to_ask(catalog, definitions, selection)
        wanted = pending(definitions, instance, asked, rebuild=True)
        print(f"Asked again, in a new epoch: {counted(len(wanted), 'asset')}")
        unfinished = _unfinished(catalog) if dry_run else {}
        for state in wanted:
            asset = state.key.to_user_string()
            print(f"  {asset}" + (f"   goes on with {unfinished[asset]!r}" if asset in unfinished else ""))
        if dry_run:
            cells = {keys.answers(worker.name, benchmark.name) for worker, benchmark in catalog.asked_cells}
            print("What depends on these is built, too, where it comes out changed.")
            if any(state.key in cells for state in wanted):
                print(f"What it will take: {as_typed('plan --again', selection, catalog=catalog_option)}")
            return
        execute = prepare(catalog, definitions, instance, asked, wanted, tags)
        print(f"If this is interrupted, go on with: {resume}")
        with interruptible(f"go on with: {resume}"):
            result = ask_again(definitions, instance, asked, execute, partial(announce, wanted))
        left = pending(definitions, instance, held_up(definitions, instance, asked))
    for line in outcome_lines(result):
        print(line)
    if not result.complete:
        print(f"Everything that settled is kept; go on with: {resume}")
        raise typer.Exit(1)
    if left:
        go_on = as_typed("build", budget=budget, catalog=catalog_option)
        print(f"{counted(len(left), 'asset')} below wait for others that are not up to date: {go_on}")
    print("What changed is on the page of workers/drift.")


def _unfinished(catalog: Catalog) -> dict[str, str]:
    """Who opened the epochs that are not finished, by the asset's name; sentinels' are as short as their asking."""
    from trinity_assets.defs import keys
    from trinity_assets.home import ledger_url, trinity_home
    from trinity_assets.workers.epochs import unfinished_epoch
    from trinity_assets.workers.ledger import Ledger

    ledger = Ledger.existing(ledger_url(trinity_home()))
    if ledger is None:
        return {}
    with ledger:
        epochs = {
            keys.answers(worker.name, benchmark.name).to_user_string(): unfinished_epoch(
                ledger, worker.name, benchmark.name
            )
            for worker, benchmark in catalog.asked_cells
        }
    return {asset: epoch.opened_by for asset, epoch in epochs.items() if epoch is not None}
