"""``trinity-assets plan``: what the missing answers will cost, before they are bought."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trinity_assets.options import CatalogOption
from trinity_assets.printing import print_table
from trinity_assets.recorded.specs import RecordedWorkerSpec

if TYPE_CHECKING:
    from trinity_assets.workers.ledger import Ledger


def plan_command(
    selection: Annotated[
        str | None, typer.Argument(help="Dagster's selection syntax, as for build; default: every asset.")
    ] = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="What `rebaseline` would ask: everything selected, in a new epoch. Sentinels are not priced.",
        ),
    ] = False,
    catalog: CatalogOption = None,
) -> None:
    """Print what the missing answers will take: calls, tokens, USD, minutes. Asks nobody and writes nothing."""
    from trinity_assets.catalog.catalog import catalog_directory
    from trinity_assets.catalog.loading import load_catalog
    from trinity_assets.definitions import build_defs
    from trinity_assets.defs import keys
    from trinity_assets.defs.build import select
    from trinity_assets.defs.present_snapshots import PresentSnapshots
    from trinity_assets.workers.history import History, read_history
    from trinity_assets.workers.plan_report import plan_remarks, plan_tables
    from trinity_assets.workers.planning import PlannedCell, plan

    loaded = load_catalog(catalog or catalog_directory())
    definitions = build_defs(loaded)
    selected = select(definitions, selection)
    asked = [(worker, one) for worker, one in loaded.asked_cells if keys.answers(worker.name, one.name) in selected]
    snapshots = PresentSnapshots(loaded, definitions)
    prompts = {
        benchmark.name: snapshots.prompts(benchmark)
        for benchmark in loaded.learned
        if any(benchmark is one for _, one in asked)
    }
    ledger = _existing_ledger()
    try:
        planned = plan(
            [
                PlannedCell(worker, one.name, prompts[one.name], _epoch(ledger, worker.name, one.name, again))
                for worker, one in asked
            ],
            ledger,
            read_history(ledger) if ledger else History(),
        )
    finally:
        if ledger:
            ledger.close()
    print(loaded.directory)
    for shown in plan_tables(planned):
        print_table(shown)
    recorded = {
        worker.name
        for worker, one in loaded.cells
        if isinstance(worker, RecordedWorkerSpec) and keys.answers(worker.name, one.name) in selected
    }
    for line in plan_remarks(planned, len(recorded), loaded.operations):
        print(line)


def _epoch(ledger: Ledger | None, worker: str, benchmark: str, again: bool) -> int:
    """The epoch in which this cell would be asked, ``again`` or not; with no ledger there is only the first.

    Asking again goes on with an epoch that is not finished.
    """
    from trinity_assets.workers.epochs import FIRST, next_epoch, present_epoch

    if ledger is None:
        return FIRST
    return (next_epoch if again else present_epoch)(ledger, worker, benchmark)


def _existing_ledger() -> Ledger | None:
    from trinity_assets.home import ledger_url, trinity_home
    from trinity_assets.workers.ledger import Ledger

    return Ledger.existing(ledger_url(trinity_home()))
