"""The commands of ``trinity-assets ledger``: what the ledger holds, what failed, what it cost; files and upkeep."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from trinity_assets.workers.ledger import Ledger
    from trinity_assets.workers.ledger_reports import Cost

app = typer.Typer(no_args_is_help=True, help="Look into the database of calls and answers; move and compact it.")

WIDTH = 160
"""Columns where the output is no terminal."""

FileArgument = Annotated[Path, typer.Argument(help="A file of answers: .jsonl or .parquet.")]
CallsOption = Annotated[Path | None, typer.Option("--calls", help="A file of calls, too: .jsonl or .parquet.")]

EpochsOption = Annotated[Path | None, typer.Option("--epochs", help="A file of epochs, too: .jsonl or .parquet.")]


class By(StrEnum):
    """What costs are grouped by."""

    WORKER = "worker"
    BENCHMARK = "benchmark"
    ROUTER = "router"
    DAY = "day"


@app.command("stats")
def stats_command() -> None:
    """Print answers and calls by worker and benchmark, the size of the ledger, and since when it has been kept."""
    from trinity_assets.workers.ledger_reports import stats

    with _open() as ledger:
        found = stats(ledger)
    table = _table(found.url, "worker", "benchmark", right=("answers", "calls", "failed calls"))
    for heading in ("statuses", "first call", "last call"):
        table.add_column(heading, overflow="fold")
    for cell in found.cells:
        statuses = ", ".join(f"{count} {status}" for status, count in cell.statuses.items())
        numbers = (f"{cell.answers:,}", f"{cell.calls:,}", f"{cell.failed_calls:,}")
        table.add_row(cell.worker, cell.benchmark, *numbers, statuses, _when(cell.first_call), _when(cell.last_call))
    _print(table)
    answers, calls = (sum(getattr(cell, name) for cell in found.cells) for name in ("answers", "calls"))
    first = min((cell.first_call for cell in found.cells if cell.first_call), default=None)
    print(f"{answers:,} answers from {calls:,} calls, {found.bytes / 1e6:,.1f} MB, since {_when(first) or 'never'}")
    if found.claims:
        print(f"{found.claims:,} questions are being asked at this moment")


@app.command("failures")
def failures_command() -> None:
    """Print the calls that failed by provider, worker and class, with the last error of each and when it was seen."""
    from trinity_assets.workers.ledger_reports import failures

    with _open() as ledger:
        found = failures(ledger)
    table = _table("failed calls", "provider", "worker", "class", right=("calls", "unsettled"))
    for heading in ("last seen", "last error"):
        table.add_column(heading, overflow="fold")
    for one in found:
        row = (one.provider, one.worker, one.error_class, f"{one.calls:,}", f"{one.unsettled:,}", _when(one.last_seen))
        table.add_row(*row, escape(one.last_error or ""))
    _print(table)
    print("unsettled: questions of these calls without an answer until now; the next build asks them again")


@app.command("cost")
def cost_command(
    by: Annotated[By | None, typer.Option("--by", help="Only this grouping; default: all four.")] = None,
    catalog: Annotated[
        Path | None, typer.Option("--catalog", help="Whose routers; default: $TRINITY_CATALOG, else the embedded one.")
    ] = None,
) -> None:
    """Print what the calls cost by worker, benchmark, router and day (UTC). Unknown costs are counted, never 0."""
    from trinity_assets.workers.ledger_reports import costs_by_benchmark, costs_by_day, costs_by_router, costs_by_worker

    reports = {
        By.WORKER: costs_by_worker,
        By.BENCHMARK: costs_by_benchmark,
        By.ROUTER: lambda ledger: costs_by_router(ledger, _routers(catalog)),
        By.DAY: costs_by_day,
    }
    with _open() as ledger:
        for group in [by] if by else list(By):
            _print_costs(group, reports[group](ledger))


@app.command("export")
def export_command(file: FileArgument, calls: CallsOption = None, epochs: EpochsOption = None) -> None:
    """Write every answer, with --calls every call, and with --epochs every epoch, to a file."""
    from trinity_assets.workers.ledger_files import export_answers, export_calls, export_epochs, require_distinct

    require_distinct(file, calls, epochs)
    with _open() as ledger:
        print(f"{export_answers(ledger, file):,} answers: {file}")
        if calls is not None:
            print(f"{export_calls(ledger, calls):,} calls: {calls}")
        if epochs is not None:
            print(f"{export_epochs(ledger, epochs):,} epochs: {epochs}")


@app.command("import")
def import_command(file: FileArgument, calls: CallsOption = None, epochs: EpochsOption = None) -> None:
    """Add the answers, calls and epochs of exported files; none, if one row is bad. What is there already stays."""
    from trinity_assets.workers.ledger_files import import_files

    with _open() as ledger:
        files = import_files(ledger, file, calls, epochs)
    for name, imported in (("answers", files.answers), ("calls", files.calls), ("epochs", files.epochs)):
        if imported is not None:
            print(f"{imported.new:,} {name} imported, {imported.kept:,} were there already")


@app.command("vacuum")
def vacuum_command() -> None:
    """Give unused room back and refresh the database's statistics."""
    with _open() as ledger:
        before, after = ledger.vacuum()
    print(f"{before / 1e6:,.1f} MB before, {after / 1e6:,.1f} MB after")


def _open() -> Ledger:
    from trinity_assets.home import ledger_url, trinity_home
    from trinity_assets.workers.ledger import Ledger

    return Ledger(ledger_url(trinity_home()))


def _routers(directory: Path | None) -> dict[str, list[tuple[str, str]]]:
    from trinity_assets.catalog.catalog import catalog_directory
    from trinity_assets.catalog.loading import load_catalog

    catalog = load_catalog(directory or catalog_directory())
    return {
        name: [(worker.name, benchmark.name) for worker in router.workers for benchmark in router.benchmarks]
        for name, router in catalog.routers.items()
    }


def _print_costs(by: By, groups: Sequence[Cost]) -> None:
    shares = any(group.shared_with for group in groups)
    table = _table(f"cost by {by}", str(by), right=("calls", "known USD", "calls of unknown cost"))
    if shares:
        table.add_column("of it shared USD", justify="right")
        table.add_column("shared calls of unknown cost", justify="right")
        table.add_column("shared with", overflow="fold")
    for group in groups:
        shared = (_usd(group.shared_usd), f"{group.shared_unknown:,}", ", ".join(group.shared_with))
        columns = shared if group.shared_with else ("", "", "")
        row = (group.name, f"{group.calls:,}", _usd(group.known_usd), f"{group.unknown:,}")
        table.add_row(*row, *(columns if shares else ()))
    _print(table)
    if shares:
        print("What several routers share was paid once and is shown for each of them.")


def _usd(amount: float) -> str:
    return f"{amount:,.6f}"


def _when(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}Z" if moment else ""


def _table(title: str, *left: str, right: Sequence[str]) -> Table:
    table = Table(title=escape(title), title_justify="left")
    for heading in left:
        table.add_column(heading, overflow="fold")
    for heading in right:
        table.add_column(heading, justify="right")
    return table


def _print(table: Table) -> None:
    Console(width=None if sys.stdout.isatty() else WIDTH).print(table)
