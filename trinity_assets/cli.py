"""The command line: checking a catalog, building the graph, showing results, grading completions, routing."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from trinity_assets.catalog.catalog import Catalog, catalog_directory
from trinity_assets.catalog.loading import load_catalog
from trinity_assets.errors import SelectionError, TrinityError
from trinity_assets.ledger_commands import app as ledger_app

if TYPE_CHECKING:
    from dagster import AssetKey

    from trinity_assets.defs.staleness import AssetState
    from trinity_assets.grading.completions import GradedCompletions

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
catalog_app = typer.Typer(no_args_is_help=True, help="Check a catalog, or write its JSON Schemas.")
app.add_typer(catalog_app, name="catalog")
app.add_typer(ledger_app, name="ledger")

REASONS_SHOWN = 5

CatalogOption = Annotated[
    Path | None,
    typer.Option("--catalog", help="The catalog's directory; default: $TRINITY_CATALOG, else the embedded one."),
]


def main() -> None:
    """Run the command line; an error that a user can act on is printed as its message and exits with 1."""
    own_logger = logging.getLogger("trinity_assets")
    own_logger.setLevel(logging.INFO)
    handler = logging.StreamHandler()
    own_logger.addHandler(handler)
    try:
        app()
    except TrinityError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    finally:
        own_logger.removeHandler(handler)


@catalog_app.command("check")
def catalog_check(catalog: CatalogOption = None) -> None:
    """Print the table of cells of a good catalog, or every fault of a bad one (and exit with 1)."""
    _print_cells(load_catalog(catalog or catalog_directory()))


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
) -> None:
    """Materialize exactly what is missing, unsynced or failed, in order, until nothing is left."""
    from trinity_assets.definitions import build_defs
    from trinity_assets.defs.build import build as build_assets
    from trinity_assets.defs.build import pending, release_dead_runs, require_keys, select
    from trinity_assets.defs.execution import execute_in_processes
    from trinity_assets.defs.instance import open_instance
    from trinity_assets.defs.pools import apply_pool_limits

    catalog = load_catalog(catalog_directory())
    definitions = build_defs(catalog)
    selected = select(definitions, selection)
    with open_instance() as instance:
        waiting = pending(definitions, instance, selected, rebuild=rebuild)
        if not waiting:
            print(f"All {len(selected)} assets are up to date.")
            return
        print(f"{len(waiting)} of {len(selected)} assets need building:")
        _print_states(waiting)
        if dry_run:
            print("What is selected and depends on these is built too if they come out changed.")
            return
        require_keys(catalog, definitions, selected, waiting)
        if released := release_dead_runs(instance):
            print(f"{len(released)} earlier runs were killed; what they had settled is kept.")
        apply_pool_limits(instance, catalog)
        announce = partial(_announce, {state.key for state in waiting})
        try:
            result = build_assets(definitions, instance, selected, execute_in_processes, announce, rebuild=rebuild)
        except KeyboardInterrupt:
            print("\nInterrupted. Everything that settled is kept; run the same command again to go on.")
            raise typer.Exit(130) from None
    print(f"\n{len(result.built)} assets built, {len(result.failed)} failed, {len(result.waiting)} waiting for those.")
    for key in result.failed:
        print(f"  failed: {key.to_user_string()}")
    if result.failed:
        print("Everything that settled is kept; run the same command again to ask only for the rest.")
    elif result.waiting and selection:
        print(f"What they need is not selected and not up to date; try: trinity-assets build '+({selection})'")
    elif result.waiting:
        print("The catalog was edited while this build ran; run it again.")
    if not result.complete:
        raise typer.Exit(1)


@app.command()
def show(router: Annotated[str | None, typer.Argument(help="One router; default: all of the catalog.")] = None) -> None:
    """Print each router's evaluation and where its checkpoint lies."""
    from trinity_assets.defs import keys
    from trinity_assets.defs.instance import open_instance
    from trinity_assets.defs.lineage import artifact_sha256, recorded_metadata
    from trinity_assets.home import store_url, trinity_home
    from trinity_assets.routing.evaluation import read_evaluation
    from trinity_assets.routing.report import text_report
    from trinity_assets.store.artifacts import ArtifactStore

    names = _chosen_routers(load_catalog(catalog_directory()), router)
    store = ArtifactStore(store_url(trinity_home()))
    with open_instance() as instance:
        for name in names:
            evaluation = artifact_sha256(instance, keys.evaluation(name))
            path = recorded_metadata(instance, keys.checkpoint(name), "path")
            if evaluation is None or path is None:
                print(f"router {name}: not built yet; run `trinity-assets build`")
                continue
            print(f"\nrouter {name}\n\n{text_report(read_evaluation(store, evaluation).evaluation)}")
            print(f"checkpoint: {path}")
            print(f'try it:     trinity-assets route "What is 2 plus 3?" --checkpoint {path}')


@app.command()
def grade(
    file: Annotated[Path, typer.Argument(help="Rows with task_id and completion: .jsonl, .jsonl.gz, .csv, .parquet.")],
    benchmark: Annotated[str, typer.Option("--benchmark", help="A benchmark of the catalog.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Where results go (.jsonl, .csv, .parquet); default: beside FILE.")
    ] = None,
    catalog: CatalogOption = None,
) -> None:
    """Grade completions that you already have; print a table and write a result with its reason for each."""
    from trinity_assets.grading.completions import grade_completions, read_completions, write_results

    loaded = load_catalog(catalog or catalog_directory())
    if benchmark not in loaded.benchmarks:
        raise SelectionError(f"there is no benchmark {benchmark!r}; declared: {', '.join(loaded.benchmarks)}")
    if out is None:
        out = file.with_name(file.name.removesuffix(".gz").rpartition(".")[0] + ".graded.jsonl")
    if out.resolve() == file.resolve():
        raise SelectionError(f"the results would overwrite the completions in {file}; give another --out")
    chosen = loaded.benchmarks[benchmark]
    graded = grade_completions(read_completions(file), chosen.snapshot, chosen.grading, loaded.directory)
    write_results(graded.results, out)
    _print_grades(benchmark, chosen.grading.grader.kind, graded)
    print(f"results: {out}")


@app.command()
def route(
    question: Annotated[str, typer.Argument(help="What a user would ask, as it is.")],
    checkpoint: Annotated[Path, typer.Option("--checkpoint", help="A checkpoint's directory.")],
    ask: Annotated[bool, typer.Option("--ask", help="Also ask the chosen worker and print its answer.")] = False,
) -> None:
    """Print which worker a checkpoint's head chooses for a question, the scores and the margin."""
    from trinity_assets.by_hand import ask_worker, choose_worker

    logging.getLogger("trinity_assets").setLevel(logging.WARNING)
    catalog = load_catalog(catalog_directory())
    loaded, decision = choose_worker(catalog, checkpoint, question)
    print(f"worker: {decision.worker}   (policy {decision.policy} of {loaded.manifest.router})")
    for name, score in decision.scores.items():
        print(f"  {name:{max(map(len, decision.scores))}}  {score:+.4f}")
    if decision.margin is not None:
        print(f"margin: {decision.margin:.4f}")
    if ask:
        answer = ask_worker(catalog, loaded, decision.worker, question)
        print(f"answer: {answer}")


def _chosen_routers(catalog: Catalog, router: str | None) -> list[str]:
    if router is None:
        return list(catalog.routers)
    if router not in catalog.routers:
        raise SelectionError(f"there is no router {router!r}; declared: {', '.join(catalog.routers)}")
    return [router]


def _print_cells(catalog: Catalog) -> None:
    table = Table(title=f"{catalog.directory}: {len(catalog.cells)} cells", title_justify="left")
    for heading in ("worker", "provider", "model", "prompt", "benchmark", "source", "limit", "grader", "routers"):
        table.add_column(heading, overflow="fold")
    for worker, benchmark in catalog.cells:
        routers = [r.name for r in catalog.routers.values() if worker in r.workers and benchmark in r.benchmarks]
        source = benchmark.snapshot.source
        table.add_row(
            worker.name,
            worker.provider.name,
            worker.model,
            worker.prompt_name,
            benchmark.name,
            source.kind,
            str(benchmark.snapshot.limit or "all"),
            benchmark.grading.grader.kind,
            ", ".join(routers),
        )
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    used = {name for worker, benchmark in catalog.cells for name in (worker.name, benchmark.name)}
    idle = [name for name in (*catalog.workers, *catalog.benchmarks) if name not in used]
    if idle:
        print(f"In no router, and so not built: {', '.join(idle)}")


def _print_grades(benchmark: str, grader: str, graded: GradedCompletions) -> None:
    results = graded.results
    table = Table(title=f"{benchmark}, graded by {grader}", title_justify="left")
    table.add_column("category", overflow="fold")
    for heading in ("tasks", "completions", "solved", "missing", "mean score", "ambiguous"):
        table.add_column(heading, justify="right")
    groups = [(str(name), rows) for name, rows in results.groupby("category", sort=True)]
    for name, rows in [*(groups if len(groups) > 1 else []), ("all", results)]:
        scores = rows["score"].dropna()
        table.add_row(
            name,
            str(rows["task_id"].nunique()),
            str(len(rows)),
            str(int((scores == 1).sum())),
            str(int(rows["score"].isna().sum())),
            f"{scores.mean():.1%}" if len(scores) else "-",
            str(int(rows["ambiguous"].sum())),
            end_section=name != "all" and name == groups[-1][0],
        )
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    unsolved = results[results["score"] != 1].head(REASONS_SHOWN)
    for row in unsolved.to_dict("records"):
        print(f"  unsolved: {row['task_id']}  {row['rule'] or row['status']}: {row['reason']}"[:160])
    if len(unsolved) < int((results["score"] != 1).sum()):
        print("  and more, with their reasons in the results")
    if graded.unanswered:
        print(f"{len(graded.unanswered)} tasks have no completion, {graded.unanswered[0]!r} first")
    if graded.facts:
        print(", ".join(f"{name}: {value}" for name, value in graded.facts.items()))


def _announce(known: set[AssetKey], wave: Sequence[AssetState]) -> None:
    """Say what a wave builds; why is said only of assets that were not listed before."""
    print(f"\nBuilding {len(wave)} assets")
    if new := [state for state in wave if state.key not in known]:
        _print_states(new)
    sys.stdout.flush()


def _print_states(states: Sequence[AssetState]) -> None:
    width = max(len(state.key.to_user_string()) for state in states)
    for state in states:
        print(f"  {state.key.to_user_string():{width}}  {state.state:7}  {'; '.join(state.causes)}")
