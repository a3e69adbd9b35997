"""The command line: checking a catalog, building the graph, showing results, grading completions, routing."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trinity_assets.admission_command import admission_command
from trinity_assets.build_progress import announce, interruptible, outcome_lines, prepare, print_states
from trinity_assets.catalog.catalog import Catalog, catalog_directory
from trinity_assets.catalog.loading import load_catalog
from trinity_assets.epoch_commands import rebaseline
from trinity_assets.errors import SelectionError, TrinityError
from trinity_assets.ledger_commands import app as ledger_app
from trinity_assets.live_check_command import live_check_command
from trinity_assets.options import CatalogOption, as_typed, use_catalog
from trinity_assets.plan_command import plan_command
from trinity_assets.printing import REASON_CHARACTERS, add_row, new_table, print_table
from trinity_assets.recorded.specs import RECORDED
from trinity_assets.texts import counted, escaped, printable, quoted
from trinity_assets.train_command import train_command
from trinity_assets.workers.specs import WorkerSpec

if TYPE_CHECKING:
    from trinity_assets.defs.build import BuildResult
    from trinity_assets.grading.completions import GradedCompletions

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
catalog_app = typer.Typer(no_args_is_help=True, help="Look at a catalog, or write its JSON Schemas.")
app.add_typer(catalog_app, name="catalog")
app.add_typer(ledger_app, name="ledger")
app.command("plan")(plan_command)
app.command("live-check")(live_check_command)
app.command("train")(train_command)
app.command("admission")(admission_command)
app.command()(rebaseline)

REASONS_SHOWN = 5


def main() -> None:
    """Run the command line; an error that a user can act on is printed as its message and exits with 1."""
    _open_closed_streams()
    own_logger = logging.getLogger("trinity_assets")
    own_logger.setLevel(logging.INFO)
    handler = logging.StreamHandler()
    own_logger.addHandler(handler)
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except TrinityError as error:
        print(f"error: {escaped(str(error))}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:  # whoever read has read enough, as in `trinity-assets show | head -1`
        _discard_output()
        sys.exit(1)
    finally:
        own_logger.removeHandler(handler)


def _open_closed_streams() -> None:
    """Python has None for a stream that was closed before it started (``>&-``); what is printed there goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            devnull = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open until the process ends
            setattr(sys, name, devnull)


def _discard_output() -> None:
    """Let what is still in the buffer of standard output go nowhere, when Python flushes it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@catalog_app.command("check")
def catalog_check(catalog: CatalogOption = None) -> None:
    """Print the workers and benchmarks of a good catalog, or every fault of a bad one (and exit with 1)."""
    _print_catalog(load_catalog(catalog or catalog_directory()))


@catalog_app.command("contamination")
def catalog_contamination(catalog: CatalogOption = None) -> None:
    """Print the tasks that several benchmarks of the routers share, from their sources and before anything is built."""
    from trinity_assets.benchmarks.contamination import find_contamination, pairs
    from trinity_assets.benchmarks.snapshots import take_snapshot
    from trinity_assets.benchmarks.specs import CONTAMINATION_DEFINITION

    loaded = load_catalog(catalog or catalog_directory())
    tasks = {one.name: take_snapshot(one.snapshot, loaded.directory).tasks for one in loaded.learned}
    found = pairs(find_contamination(tasks), tasks)
    table = new_table("kind", "similarity", "task", "question")
    for row in found.to_dict("records"):
        task, other = (f"{row[f'{which}benchmark']}: {row[f'{which}task_id']}" for which in ("", "other_"))
        add_row(table, row["kind"], f"{row['similarity']:.2f}", printable(task), printable(row["question"]))
        add_row(table, "", "", printable(other), printable(row["other_question"]), end_section=True)
    if len(found):
        print_table(table)
        print(CONTAMINATION_DEFINITION)
    names = ", ".join(f"{name} ({counted(len(frame), 'task')})" for name, frame in tasks.items())
    print(f"{counted(len(found), 'pair')} of tasks in common between {names}")


@catalog_app.command("schema")
def catalog_schema(directory: Annotated[Path, typer.Argument(help="Where to write one JSON Schema per file.")]) -> None:
    """Write the JSON Schemas of the catalog's files, for editors."""
    from trinity_assets.catalog.entries import FILES, json_schema

    directory.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        target = directory / f"{Path(file).stem}.json"
        target.write_text(json.dumps(json_schema(file), indent=2) + "\n", encoding="utf-8")
        print(target)


@app.command()
def home() -> None:
    """Prepare and print DAGSTER_HOME, which lies inside TRINITY_HOME."""
    from trinity_assets.home import prepare_dagster_home

    print(prepare_dagster_home())


@app.command()
def build(
    selection: Annotated[str | None, typer.Argument(help="Dagster's selection syntax; default: every asset.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be built, and why.")] = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Build the selection even where it is up to date.")
    ] = False,
    budget: Annotated[
        float | None,
        typer.Option("--budget", help="USD that this build may cost; default: the catalog's budget, if any."),
    ] = None,
    catalog_option: CatalogOption = None,
) -> None:
    """Materialize exactly what is missing, unsynced or failed, in order, until nothing is left."""
    from trinity_assets.definitions import build_defs
    from trinity_assets.defs.build import build as build_assets
    from trinity_assets.defs.build import pending, select
    from trinity_assets.defs.instance import open_instance
    from trinity_assets.defs.runs import build_tags

    use_catalog(catalog_option)
    tags = build_tags(budget)
    catalog = load_catalog(catalog_directory())
    definitions = build_defs(catalog)
    with open_instance() as instance:
        selected = select(definitions, selection)
        waiting = pending(definitions, instance, selected, rebuild=rebuild)
        if not waiting:
            print("The asset is up to date." if len(selected) == 1 else f"All {len(selected)} assets are up to date.")
            return
        need = "needs" if len(waiting) == 1 else "need"
        print(f"{len(waiting)} of {counted(len(selected), 'asset')} {need} building:")
        print_states(waiting)
        if dry_run:
            print("What is selected and depends on these is built too if they come out changed.")
            return
        execute = prepare(catalog, definitions, instance, selected, waiting, tags)
        with interruptible("run the same command again to go on."):
            result = build_assets(definitions, instance, selected, execute, partial(announce, waiting), rebuild=rebuild)
    wider = as_typed("build", f"+({selection})", budget=budget, catalog=catalog_option) if selection else None
    for line in _outcome(result, wider):
        print(line)
    if not result.complete:
        raise typer.Exit(1)


@app.command()
def show(
    router: Annotated[str | None, typer.Argument(help="One router; default: all of the catalog.")] = None,
    catalog: CatalogOption = None,
) -> None:
    """Print each router's evaluation and where its checkpoint lies."""
    from trinity_assets.defs import keys
    from trinity_assets.defs.evaluations import REPORT_FILE
    from trinity_assets.defs.instance import open_instance
    from trinity_assets.defs.lineage import artifact_sha256, recorded_metadata
    from trinity_assets.home import store_url, trinity_home
    from trinity_assets.routing.report import text_report
    from trinity_assets.routing.results import read_evaluation
    from trinity_assets.store.artifacts import ArtifactStore

    names = _chosen_routers(load_catalog(catalog or catalog_directory()), router)
    store = ArtifactStore(store_url(trinity_home()))
    with open_instance() as instance:
        for name in names:
            evaluation = artifact_sha256(instance, keys.evaluation(name))
            path = recorded_metadata(instance, keys.checkpoint(name), "path")
            if evaluation is None or path is None:
                print(f"router {name}: not built yet; run `{as_typed('build', catalog=catalog)}`")
                continue
            print(f"\nrouter {name}\n\n{text_report(read_evaluation(store, evaluation).evaluation)}")
            print(f"published:  {recorded_metadata(instance, keys.checkpoint(name), 'policy')}")
            if report := recorded_metadata(instance, keys.evaluation(name), REPORT_FILE):
                print(f"report:     {report}")
            print(f"checkpoint: {path}")
            print(f'try it:     trinity-assets route "What is 2 plus 3?" --checkpoint {path}')


@app.command()
def grade(
    file: Annotated[Path, typer.Argument(help="Rows with task_id and completion: .jsonl, .json, .csv or .parquet.")],
    benchmark: Annotated[str, typer.Option("--benchmark", help="A benchmark of the catalog.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Where results go, replacing what is there (.jsonl, .csv, .parquet); default: FILE.graded.jsonl.",
        ),
    ] = None,
    catalog: CatalogOption = None,
) -> None:
    """Grade completions that you already have; print a table and write a result with its reason for each."""
    from trinity_assets.grading.completions import grade_completions, read_completions, require_writable, write_results

    loaded = load_catalog(catalog or catalog_directory())
    if benchmark not in loaded.benchmarks:
        raise SelectionError(f"there is no benchmark {benchmark!r}; declared: {', '.join(loaded.benchmarks)}")
    completions = read_completions(file)
    if out is None:
        out = file.with_name(file.name.removesuffix(".gz").rpartition(".")[0] + ".graded.jsonl")
    if _same_file(out, file):
        raise SelectionError(f"the results would overwrite the completions in {file}; give another --out")
    require_writable(out)
    chosen = loaded.benchmarks[benchmark]
    graded = grade_completions(completions, chosen.snapshot, chosen.grading, loaded.directory)
    write_results(graded.results, out)
    _print_grades(benchmark, chosen.grading.grader.kind, graded)
    print(f"results: {out}")


@app.command()
def route(
    question: Annotated[str, typer.Argument(help="What a user would ask, as it is.")],
    checkpoint: Annotated[Path, typer.Option("--checkpoint", help="A checkpoint's directory.")],
    offer: Annotated[
        str | None, typer.Option("--offer", help="Choose among these workers of the pool only, A,B; default: all.")
    ] = None,
    ask: Annotated[bool, typer.Option("--ask", help="Also ask the chosen worker and print its answer.")] = False,
) -> None:
    """Print which worker a checkpoint's head chooses for a question, the scores and the margin."""
    from trinity_assets.by_hand import ask_worker, choose_worker

    logging.getLogger("trinity_assets").setLevel(logging.WARNING)
    catalog = load_catalog(catalog_directory())
    offered = None if offer is None else [name.strip() for name in offer.split(",")]
    loaded, decision = choose_worker(catalog, checkpoint, question, offered)
    print(f"worker: {decision.worker}   (policy {decision.policy} of {loaded.manifest.router})")
    for name, score in decision.scores.items():
        print(f"  {name:{max(map(len, decision.scores))}}  {score:+.4f}")
    if decision.margin is not None:
        print(f"margin: {decision.margin:.4f}")
    if ask:
        answer = ask_worker(catalog, loaded, decision.worker, question)
        print(f"answer: {answer}")


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist, or cannot
        return False


def _chosen_routers(catalog: Catalog, router: str | None) -> list[str]:
    if router is None:
        return list(catalog.routers)
    if router not in catalog.routers:
        raise SelectionError(f"there is no router {router!r}; declared: {', '.join(catalog.routers)}")
    return [router]


def _print_catalog(catalog: Catalog) -> None:
    workers = new_table("worker", "provider", "model", "prompt")
    for worker in catalog.workers.values():
        if isinstance(worker, WorkerSpec):
            add_row(workers, worker.name, worker.provider.name, worker.model, worker.prompt_name)
        else:
            kinds = {True: "scores", False: "completions"}
            read = [f"{kinds[cell.takes_scores]} on {benchmark}" for benchmark, cell in worker.cells.items()]
            add_row(workers, worker.name, RECORDED, worker.model, ", ".join(read))
    benchmarks = new_table("benchmark", "source", "limit", "grader", "routers")
    for benchmark in catalog.benchmarks.values():
        snapshot = benchmark.snapshot
        routers = [router.name for router in catalog.routers.values() if benchmark in router.benchmarks]
        limit = "all" if snapshot.limit is None else str(snapshot.limit)
        kind = benchmark.grading.grader.kind
        add_row(benchmarks, benchmark.name, snapshot.source.kind, limit, kind, ", ".join(routers) or "-")
    print(catalog.directory)
    print_table(workers)
    print_table(benchmarks)
    print(f"{counted(len(catalog.cells), 'cell')} (worker x benchmark)")
    used = {name for worker, benchmark in catalog.cells for name in (worker.name, benchmark.name)}
    idle = [name for name in (*catalog.workers, *catalog.benchmarks) if name not in used]
    if idle:
        print(f"In no router, and so not built: {', '.join(idle)}")


def _print_grades(benchmark: str, grader: str, graded: GradedCompletions) -> None:
    results = graded.results
    numbers = ("tasks", "completions", "solved", "missing", "mean score", "ambiguous")
    table = new_table("category", *numbers, right=numbers)
    groups = [(printable(str(name)), rows) for name, rows in results.groupby("category", sort=True)]
    shown = [*(groups if len(groups) > 1 else []), ("all", results)]
    for place, (name, rows) in enumerate(shown, start=1):
        scores = rows["score"].dropna()
        add_row(
            table,
            name,
            str(rows["task_id"].nunique()),
            str(len(rows)),
            str(int((scores == 1).sum())),
            str(int(rows["score"].isna().sum())),
            f"{scores.mean():.1%}" if len(scores) else "-",
            str(int(rows["ambiguous"].sum())),
            end_section=place == len(shown) - 1,
        )
    print(f"{benchmark}, graded by {grader}")
    print_table(table)
    unsolved = results[results["score"] != 1]
    samples = bool(results["sample"].max())
    for row in unsolved.head(REASONS_SHOWN).to_dict("records"):
        sample = f", sample {row['sample']}" if samples else ""
        rule = f" (read as {row['rule']})" if row["rule"] else ""
        reason = printable(row["reason"] or row["status"], REASON_CHARACTERS)
        print(f"  unsolved: {printable(row['task_id'])}{sample}: {reason}{rule}")
    if len(unsolved) > REASONS_SHOWN:
        print("  and more, with their reasons in the results")
    if graded.unanswered:
        without = counted(len(graded.unanswered), "task has", "tasks have")
        print(f"{without} no completion, {quoted(graded.unanswered[0])} first")
    if graded.quarantined:
        left_out = counted(graded.quarantined, "completion of a task", "completions of tasks")
        print(f"{left_out} in quarantine left out")
    if graded.facts:
        print(", ".join(f"{name}: {value}" for name, value in graded.facts.items()))


def _outcome(result: BuildResult, wider: str | None) -> Iterator[str]:
    """How a build ended, and what to do next; ``wider`` is the command that builds what a selection needs, too."""
    from trinity_assets.defs import keys

    yield from outcome_lines(result)
    for router, workers in result.dropped.items():
        for worker, reason in workers.items():
            yield f"  router {router} is trained without {worker}: {reason}"
    unasked = [key for key in result.failed if keys.is_answers(key)]
    if unasked:
        yield "Everything that settled is kept; run the same command again to ask only for the rest."
    if len(unasked) < len(result.failed):
        yield "Correct what the errors name, then run the same command again."
    if not result.failed and result.waiting and wider:
        yield f"What they need is not selected and not up to date; try: {wider}"
    elif not result.failed and result.waiting:
        yield "The catalog was edited while this build ran; run it again."
