"""``trinity-assets plan`` and ``live-check``: what answers will cost, and whether they come, before they are bought."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trinity_assets.errors import SelectionError
from trinity_assets.printing import add_row, new_table, print_table
from trinity_assets.recorded.specs import RecordedWorkerSpec
from trinity_assets.texts import counted
from trinity_assets.workers.specs import EmbeddedProvider, WorkerSpec

if TYPE_CHECKING:
    import pandas as pd

    from trinity_assets.catalog.catalog import Benchmark, Catalog
    from trinity_assets.live_check import CheckedWorker, Grade
    from trinity_assets.live_report import LiveCheck
    from trinity_assets.workers.ledger import Ledger

CatalogOption = Annotated[
    Path | None,
    typer.Option("--catalog", help="The catalog's directory; default: $TRINITY_CATALOG, else the embedded one."),
]


def plan_command(
    selection: Annotated[
        str | None, typer.Argument(help="Dagster's selection syntax, as for build; default: every asset.")
    ] = None,
    catalog: CatalogOption = None,
) -> None:
    """Print what the missing answers will take: calls, tokens, USD, minutes. Asks nobody and writes nothing."""
    from trinity_assets.benchmarks.snapshots import rendered_prompts
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
    cells = [(worker, one) for worker, one in loaded.cells if keys.answers(worker.name, one.name) in selected]
    asked = [(worker, benchmark) for worker, benchmark in cells if isinstance(worker, WorkerSpec)]
    snapshots = PresentSnapshots(loaded, definitions)
    prompts = {
        benchmark.name: rendered_prompts(benchmark.snapshot, snapshots.tasks(benchmark))
        for benchmark in loaded.learned
        if any(benchmark is one for _, one in asked)
    }
    ledger = _existing_ledger()
    try:
        planned = plan(
            [
                PlannedCell(worker, one.name, prompts[one.name], current_epoch(ledger, worker.name, one.name))
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
    recorded = {worker.name for worker, _ in cells if isinstance(worker, RecordedWorkerSpec)}
    for line in plan_remarks(planned, len(recorded), loaded.operations):
        print(line)


def current_epoch(ledger: Ledger | None, worker: str, benchmark: str) -> int:
    """The epoch in which a build would ask this cell; with no ledger there is only the first."""
    from trinity_assets.workers.epochs import FIRST, present_epoch

    return FIRST if ledger is None else present_epoch(ledger, worker, benchmark)


def _existing_ledger() -> Ledger | None:
    from trinity_assets.home import ledger_url, trinity_home
    from trinity_assets.workers.ledger import Ledger

    return Ledger.existing(ledger_url(trinity_home()))


def live_check_command(
    catalog: CatalogOption = None,
    worker: Annotated[
        list[str] | None, typer.Option("--worker", help="Only this one; may be given again. Default: every remote one.")
    ] = None,
    benchmark: Annotated[
        list[str] | None, typer.Option("--benchmark", help="Only this one; may be given again. Default: every one.")
    ] = None,
    tasks: Annotated[int, typer.Option("--tasks", min=1, help="Tasks for each worker and benchmark.")] = 2,
    budget: Annotated[float, typer.Option("--budget", min=0, help="USD that the whole check may cost.")] = 0.5,
    out: Annotated[
        Path | None, typer.Option("--out", help="The report; default: live-check/<UTC time>.md in TRINITY_HOME.")
    ] = None,
) -> None:
    """Ask every worker a few real questions; show what went out, what came back and how it is graded."""
    from trinity_assets.catalog.catalog import catalog_directory
    from trinity_assets.catalog.loading import load_catalog
    from trinity_assets.home import live_checks_directory, trinity_home
    from trinity_assets.live_report import LiveCheck, write_report

    loaded = load_catalog(catalog or catalog_directory())
    cells = checked_cells(loaded, worker or (), benchmark or ())
    secrets = [os.environ.get(variable, "") for variable in loaded.key_variables]
    at = datetime.now(UTC)
    run = f"live-check-{at:%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:6]}"
    checked = _check(loaded, cells, tasks, run, budget)
    check = LiveCheck(loaded.directory, run, at, budget, checked)
    _print_check(check, secrets)
    report = out or live_checks_directory(trinity_home()) / f"{at:%Y-%m-%dT%H%M%SZ}.md"
    write_report(check, report, secrets)
    print(f"report: {report}")
    if any(one.failures for one in checked):
        raise typer.Exit(1)


def checked_cells(
    catalog: Catalog, workers: Sequence[str], benchmarks: Sequence[str]
) -> list[tuple[WorkerSpec, Benchmark]]:
    """The cells to check: of the named workers and benchmarks; embedded ones only where named, or alone.

    Raises:
        SelectionError: there is no such worker or benchmark, no router uses it, or the worker is not asked.
    """
    asked = [(worker, benchmark) for worker, benchmark in catalog.cells if isinstance(worker, WorkerSpec)]
    for name in workers:
        if name not in {worker.name for worker, _ in asked}:
            known = ", ".join(dict.fromkeys(worker.name for worker, _ in asked)) or "none"
            raise SelectionError(f"no router asks a worker {name!r}; asked are: {known}")
    for name in benchmarks:
        if name not in {benchmark.name for _, benchmark in asked}:
            known = ", ".join(dict.fromkeys(benchmark.name for _, benchmark in asked)) or "none"
            raise SelectionError(f"no router asks workers a benchmark {name!r}; they are asked: {known}")
    named = [
        (worker, benchmark)
        for worker, benchmark in asked
        if (not workers or worker.name in workers) and (not benchmarks or benchmark.name in benchmarks)
    ]
    remote = [(worker, one) for worker, one in named if not isinstance(worker.provider, EmbeddedProvider)]
    chosen = named if workers else remote or named
    if not chosen:
        raise SelectionError("there is nothing to check: no router asks such a worker such a benchmark")
    return chosen


def _check(
    catalog: Catalog, cells: Sequence[tuple[WorkerSpec, Benchmark]], tasks: int, run: str, budget_usd: float
) -> list[CheckedWorker]:
    """Say which keys are missing, choose the questions, and ask."""
    from trinity_assets.benchmarks.snapshots import rendered_prompts
    from trinity_assets.definitions import build_defs
    from trinity_assets.defs.present_snapshots import PresentSnapshots
    from trinity_assets.home import ledger_url, trinity_home
    from trinity_assets.live_check import AskedBenchmark, check_workers, choose_questions, grade_cell
    from trinity_assets.workers.endpoints import missing_variables
    from trinity_assets.workers.ledger import Ledger

    workers = {worker.name: worker for worker, _ in cells}
    benchmarks = {benchmark.name: benchmark for _, benchmark in cells}
    _print_missing_keys(list(workers.values()))
    snapshots = PresentSnapshots(catalog, build_defs(catalog))
    prompts = {name: rendered_prompts(one.snapshot, snapshots.tasks(one)) for name, one in benchmarks.items()}
    gold = {name: snapshots.gold(one) for name, one in benchmarks.items()}
    url = ledger_url(trinity_home())
    with Ledger(url) as ledger:
        asked = [
            choose_questions(
                worker,
                [
                    AskedBenchmark(
                        one.name,
                        prompts[one.name],
                        current_epoch(ledger, worker.name, one.name),
                        one.grading.settlement.settles_timeouts,
                    )
                    for owner, one in cells
                    if owner.name == worker.name
                ],
                ledger,
                most=tasks,
            )
            for worker in workers.values()
        ]
    able = [one for one in asked if not missing_variables(one.worker)]
    count = sum(len(one.questions) for one in able)
    print(f"{counted(count, 'question')} for {counted(len(able), 'worker')}, for at most {budget_usd:g} USD")
    sys.stdout.flush()

    def grade(worker: str, benchmark: str, answers: pd.DataFrame) -> list[Grade]:
        return grade_cell(answers, gold[benchmark], benchmarks[benchmark].grading, f"grading {worker} on {benchmark}")

    return check_workers(asked, grade, ledger_url=url, run=run, budget_usd=budget_usd)


def _print_missing_keys(workers: Sequence[WorkerSpec]) -> None:
    from trinity_assets.workers.endpoints import missing_variables

    users: dict[str, list[str]] = {}
    for worker in workers:
        for variable in missing_variables(worker):
            users.setdefault(variable, []).append(worker.name)
    for variable, names in users.items():
        print(f"{variable} is not set; without it nobody asks {', '.join(names)}")


def _print_check(check: LiveCheck, secrets: Sequence[str]) -> None:
    from trinity_assets.live_report import FOLDING, HEADINGS, NUMBERS, task_row, verdict_lines
    from trinity_assets.workers.redaction import without_secrets

    shown = new_table(*HEADINGS, right=NUMBERS, folding=FOLDING)
    for checked in check.workers:
        if checked.tasks:
            add_row(shown, checked.worker.name)
        for place, task in enumerate(checked.tasks, start=1):
            cells = [without_secrets(cell, secrets) for cell in task_row(task)]
            add_row(shown, *cells, end_section=place == len(checked.tasks))
    if shown.row_count:
        print_table(shown)
    for checked in check.workers:
        for line in verdict_lines(checked):
            print(without_secrets(line, secrets))
    print(f"It cost {check.spent}.")
