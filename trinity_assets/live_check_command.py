"""``trinity-assets live-check``: whether answers come, before they are bought."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trinity_assets.errors import SelectionError
from trinity_assets.options import CatalogOption
from trinity_assets.printing import add_row, new_table, print_table
from trinity_assets.texts import counted
from trinity_assets.workers.specs import EmbeddedProvider, WorkerSpec

if TYPE_CHECKING:
    import pandas as pd

    from trinity_assets.catalog.catalog import Benchmark, Catalog
    from trinity_assets.defs.present_snapshots import PresentSnapshots
    from trinity_assets.live_check.checking import GradeAnswers
    from trinity_assets.live_check.findings import CheckedWorker, Grade, LiveCheck
    from trinity_assets.live_check.questions import WorkerQuestions
    from trinity_assets.workers.ledger import Ledger

MissingKeys = Mapping[str, tuple[str, ...]]
"""Worker -> the variables that its provider reads its key from and that are not set."""


def live_check_command(
    catalog: CatalogOption = None,
    worker: Annotated[
        list[str] | None, typer.Option("--worker", help="Only this one; may be given again. Default: every remote one.")
    ] = None,
    benchmark: Annotated[
        list[str] | None, typer.Option("--benchmark", help="Only this one; may be given again. Default: every one.")
    ] = None,
    tasks: Annotated[int, typer.Option("--tasks", min=1, help="Tasks for each worker and benchmark.")] = 2,
    budget: Annotated[float, typer.Option("--budget", help="USD that the whole check may cost.")] = 0.5,
    out: Annotated[
        Path | None, typer.Option("--out", help="The report; default: live-check/<UTC time>.md in TRINITY_HOME.")
    ] = None,
) -> None:
    """Ask every worker a few real questions; show what went out, what came back and how it is graded."""
    from trinity_assets.catalog.catalog import catalog_directory
    from trinity_assets.catalog.loading import load_catalog
    from trinity_assets.defs.runs import spendable_usd
    from trinity_assets.home import live_checks_directory, trinity_home
    from trinity_assets.live_check.findings import LiveCheck
    from trinity_assets.live_check.report import write_report

    spendable_usd(budget, "the budget")
    loaded = load_catalog(catalog or catalog_directory())
    cells = checked_cells(loaded, worker or (), benchmark or ())
    secrets = [os.environ.get(variable, "") for variable in loaded.key_variables]
    at = datetime.now(UTC)
    run = f"live-check-{at:%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:6]}"
    check = LiveCheck(loaded.directory, run, at, budget, _check(loaded, cells, tasks, run, budget))
    _print_check(check, secrets)
    report = out or live_checks_directory(trinity_home()) / f"{at:%Y-%m-%dT%H%M%SZ}.md"
    write_report(check, report, secrets)
    print(f"report: {report}")
    if any(one.failures for one in check.workers):
        raise typer.Exit(1)


def checked_cells(
    catalog: Catalog, workers: Sequence[str], benchmarks: Sequence[str]
) -> list[tuple[WorkerSpec, Benchmark]]:
    """The cells to check: of the named workers and benchmarks; embedded ones only where named, or alone.

    Raises:
        SelectionError: there is no such worker or benchmark, no router uses it, or the worker is not asked.
    """
    asked = catalog.asked_cells
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
    """Choose the questions and ask them, saying first who cannot be asked, and how many there are."""
    from trinity_assets.definitions import build_defs
    from trinity_assets.defs.present_snapshots import PresentSnapshots
    from trinity_assets.home import ledger_url, trinity_home
    from trinity_assets.live_check.checking import check_workers
    from trinity_assets.workers.endpoints import missing_variables
    from trinity_assets.workers.ledger import Ledger

    workers = {worker.name: worker for worker, _ in cells}
    missing = {name: tuple(missing_variables(worker)) for name, worker in workers.items()}
    _print_missing_keys(missing)
    snapshots = PresentSnapshots(catalog, build_defs(catalog))
    grade = _grading(cells, snapshots)
    url = ledger_url(trinity_home())
    with Ledger(url) as ledger:
        asked = _questions(cells, snapshots, ledger, tasks)
    able = [one for one in asked if not missing[one.worker.name]]
    count = sum(len(one.questions) for one in able)
    print(f"{counted(count, 'question')} for {counted(len(able), 'worker')}, for at most {budget_usd:g} USD")
    sys.stdout.flush()
    return check_workers(asked, missing, grade, ledger_url=url, run=run, budget_usd=budget_usd)


def _questions(
    cells: Sequence[tuple[WorkerSpec, Benchmark]], snapshots: PresentSnapshots, ledger: Ledger, most: int
) -> list[WorkerQuestions]:
    """What each worker is to be asked: ``most`` tasks of each of its benchmarks."""
    from trinity_assets.live_check.questions import AskedBenchmark, choose_questions
    from trinity_assets.workers.epochs import present_epoch

    workers = {worker.name: worker for worker, _ in cells}
    benchmarks = {benchmark.name: benchmark for _, benchmark in cells}
    prompts = {name: snapshots.prompts(one) for name, one in benchmarks.items()}
    asked: dict[str, list[AskedBenchmark]] = {}
    for worker, one in cells:
        epoch = present_epoch(ledger, worker.name, one.name)
        benchmark = AskedBenchmark(one.name, prompts[one.name], epoch, one.grading.settlement.settles_timeouts)
        asked.setdefault(worker.name, []).append(benchmark)
    return [choose_questions(workers[name], theirs, ledger, most=most) for name, theirs in asked.items()]


def _grading(cells: Sequence[tuple[WorkerSpec, Benchmark]], snapshots: PresentSnapshots) -> GradeAnswers:
    """How the benchmarks of ``cells`` are graded, their gold read."""
    from trinity_assets.live_check.checking import grade_cell

    benchmarks = {benchmark.name: benchmark for _, benchmark in cells}
    gold = {name: snapshots.gold(one) for name, one in benchmarks.items()}

    def grade(worker: str, benchmark: str, answers: pd.DataFrame) -> list[Grade]:
        return grade_cell(answers, gold[benchmark], benchmarks[benchmark].grading, f"grading {worker} on {benchmark}")

    return grade


def _print_missing_keys(missing: MissingKeys) -> None:
    users: dict[str, list[str]] = {}
    for worker, variables in missing.items():
        for variable in variables:
            users.setdefault(variable, []).append(worker)
    for variable, names in users.items():
        print(f"{variable} is not set; without it nobody asks {', '.join(names)}")


def _print_check(check: LiveCheck, secrets: Sequence[str]) -> None:
    from trinity_assets.live_check.report import FOLDING, HEADINGS, NUMBERS, task_row, verdict_lines
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
