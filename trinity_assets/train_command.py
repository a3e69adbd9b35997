"""``trinity-assets train``: a router from a table of outcomes that you already have, without a graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

from trinity_assets.errors import SelectionError, TrainingError
from trinity_assets.options import CatalogOption
from trinity_assets.routing.specs import TRAINERS, RouterTraining
from trinity_assets.texts import counted, printable

if TYPE_CHECKING:
    import numpy as np

    from trinity_assets.backbones.specs import BackboneSpec
    from trinity_assets.routing.fitted_files import Origin
    from trinity_assets.routing.fitted_heads import FittedHeads
    from trinity_assets.routing.fitting import FittedRouter
    from trinity_assets.routing.outcome_tables import OutcomeTable
    from trinity_assets.workers.specs import Price

SEARCH = "sep_cma_es"
DEFAULT_TRAINERS = ("ridge", SEARCH)


def train_command(
    table: Annotated[
        Path, typer.Option("--table", help="A row per task: task_id, score__WORKER ...; .csv, .jsonl, .json, .parquet.")
    ],
    features: Annotated[
        Path | None,
        typer.Option("--features", help=".npy in the table's order, or .npz or .safetensors with task_ids."),
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option("--backbone", help="In place of --features: a backbone of the catalog, to read the questions."),
    ] = None,
    score_columns: Annotated[
        str | None,
        typer.Option("--score-columns", help="The columns of scores, A,B,C; default: every score__WORKER."),
    ] = None,
    trainer: Annotated[
        list[str] | None,
        typer.Option("--trainer", help=f"One of {', '.join(TRAINERS)}; may be given again. Default: ridge, {SEARCH}."),
    ] = None,
    export: Annotated[
        str | None, typer.Option("--export", help="The head to publish if it may be; default: the first trainer's.")
    ] = None,
    generations: Annotated[int | None, typer.Option("--generations", help=f"Of {SEARCH}.")] = None,
    population: Annotated[int | None, typer.Option("--population", help=f"Of {SEARCH}, per generation.")] = None,
    patience: Annotated[
        int | None, typer.Option("--patience", help=f"Generations without a better one that end {SEARCH}.")
    ] = None,
    sigma0: Annotated[
        float | None, typer.Option("--sigma0", help=f"The first step of {SEARCH}, relative to the head of --start.")
    ] = None,
    cost_weight: Annotated[
        list[float] | None,
        typer.Option("--cost-weight", help="The score that 1 USD per 1000 answers is worth; may be given again."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the split, and of trainers that draw.")] = 0,
    test: Annotated[float, typer.Option("--test", help="The share of the tasks that is held out.")] = 0.4,
    prices: Annotated[
        Path | None,
        typer.Option("--prices", help="YAML or JSON, WORKER: {input_per_mtok, output_per_mtok}; needs token columns."),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option("--start", help=f"What --out wrote before: {SEARCH} starts from its head, worker by name."),
    ] = None,
    gate_saving: Annotated[
        float | None,
        typer.Option("--gate-saving", help="Publish also a head that is not worse and saves this share of the cost."),
    ] = None,
    gate_tolerance: Annotated[
        float | None, typer.Option("--gate-tolerance", help="How much accuracy such a head may lose; default: 0.01.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="A new directory for heads, evaluation and report; default: none.")
    ] = None,
    catalog: CatalogOption = None,
) -> None:
    """Train routers on a table of outcomes, judge them on held-out tasks, and say what would be published."""
    from trinity_assets.files import file_sha256
    from trinity_assets.home import looks_log, trainings_directory, trinity_home
    from trinity_assets.routing.fitted_files import require_new, write_fitted
    from trinity_assets.routing.fitted_heads import read_fitted_heads
    from trinity_assets.routing.fitting import fit_router
    from trinity_assets.routing.looks import LooksLog
    from trinity_assets.routing.outcome_tables import read_outcomes
    from trinity_assets.routing.seen_tasks import learnt_marks
    from trinity_assets.routing.trainers.head import Start

    searching = {"generations": generations, "population": population, "patience": patience, "sigma0": sigma0}
    training = _training(
        trainer or DEFAULT_TRAINERS,
        {name: value for name, value in searching.items() if value is not None},
        start=start,
        export=export,
        cost_weights=tuple(cost_weight or ()),
        seed=seed,
        test=test,
        gate={"saving": gate_saving} | ({} if gate_tolerance is None else {"tolerance": gate_tolerance}),
    )
    source = _source(features, backbone, catalog)
    if out:
        require_new(out)
    before = read_fitted_heads(start) if start else None
    outcomes = read_outcomes(table, [name.strip() for name in score_columns.split(",")] if score_columns else ())
    priced = _prices(prices, outcomes) if prices else None
    matrix, origin = _features(table, outcomes, source)
    if before:
        _require_features(before, origin)
    fitted = fit_router(
        outcomes.table,
        matrix,
        training,
        prices=priced,
        start=Start(directory=trainings_directory(trinity_home())),
        earlier=before.to_start_from(training, outcomes.table, outcomes.questions) if before else None,
        looks=LooksLog(looks_log(trinity_home()), outcomes.questions),
    )
    _print_fitted(fitted, matrix.shape[1])
    if before:
        print(f"started from:    {start}")
    if out:
        if prices:
            origin = origin.model_copy(update={"prices_sha256": file_sha256(prices)})
        behind = before.spec.learnt if before else None
        write_fitted(fitted, origin, {*learnt_marks(fitted.table, outcomes.questions), *(behind or ())}, out)
        print(f"written to:      {out}")


def _training(
    trainers: Sequence[str],
    searching: dict[str, float],
    *,
    start: Path | None,
    export: str | None,
    cost_weights: tuple[float, ...],
    seed: int,
    test: float,
    gate: dict[str, float | None],
) -> RouterTraining:
    """What the options declare, as a router of a catalog would.

    Raises:
        SelectionError: they contradict each other, or a value is none that is allowed.
    """
    if (searching or start) and SEARCH not in trainers:
        options = ", ".join(f"--{name}" for name in (*searching, *(["start"] if start else [])))
        raise SelectionError(f"{options} is of {SEARCH}, which is not among the trainers {', '.join(trainers)}")
    settings: dict[str, dict[str, Any]] = {name: {} for name in trainers}
    for name in settings.keys() & TRAINERS.keys():
        if "seed" in TRAINERS[name].settings.model_fields:
            settings[name]["seed"] = seed
    if SEARCH in settings:
        settings[SEARCH] |= searching
    try:
        return RouterTraining.model_validate(
            {
                "trainers": settings,
                "export": export or trainers[0],
                "cost_weights": cost_weights,
                "split": {"seed": seed, "test": test},
                "gate": gate,
            }
        )
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg'].removeprefix('Value error, ')}".lstrip(": ")
            for fault in error.errors()
        ]
        raise SelectionError("; ".join(faults)) from None


def _source(features: Path | None, backbone: str | None, catalog: Path | None) -> Path | BackboneSpec:
    """Where features are from: a file, or a backbone of the catalog.

    Raises:
        SelectionError: both are given, or neither, or the catalog has no such backbone.
    """
    if features is not None and backbone is None:
        return features
    if features is not None or backbone is None:
        raise SelectionError("give either --features FILE or --backbone NAME, which the table's questions are read by")
    from trinity_assets.catalog.catalog import catalog_directory
    from trinity_assets.catalog.loading import load_catalog

    loaded = load_catalog(catalog or catalog_directory())
    if backbone not in loaded.backbones:
        raise SelectionError(f"there is no backbone {backbone!r}; declared: {', '.join(loaded.backbones)}")
    return loaded.backbones[backbone]


def _features(table: Path, outcomes: OutcomeTable, source: Path | BackboneSpec) -> tuple[np.ndarray, Origin]:
    """The feature of each task, from a file or as the assets extract and keep it; and what all that is from.

    Raises:
        TrainingError: the file's features are not those of the table, or there are no questions to read.
        BackboneError: the backbone cannot be loaded, or refuses a question.
    """
    from trinity_assets.files import file_sha256
    from trinity_assets.routing.feature_files import read_features
    from trinity_assets.routing.fitted_files import Origin

    if isinstance(source, Path):
        matrix = read_features(source, outcomes.task_ids)
        return matrix, Origin(table_sha256=file_sha256(table), features_sha256=file_sha256(source))
    if outcomes.questions is None:
        raise TrainingError(f"{table} has no column question for a backbone to read; add one, or give --features FILE")
    from trinity_assets.backbones.features import load_backbone
    from trinity_assets.backbones.index import as_kept

    loaded = load_backbone(source)
    matrix = as_kept(loaded.extract(outcomes.questions)).astype("float32")
    return matrix, Origin(table_sha256=file_sha256(table), feature_spec=loaded.spec)


def _prices(path: Path, outcomes: OutcomeTable) -> dict[str, Price]:
    """The prices in a file.

    Raises:
        TrainingError: it cannot be read, or prices what the table does not have.
    """
    from trinity_assets.catalog.reading import read_document
    from trinity_assets.routing.declared_prices import declared_prices

    document = read_document(path)
    if document.faults:
        raise TrainingError("; ".join(map(str, document.faults)))
    return declared_prices(document.data, str(path), outcomes.table)


def _require_features(before: FittedHeads, origin: Origin) -> None:
    """See that a backbone reads the questions as it did for the heads to start from, where one did.

    Raises:
        TrainingError: which fields differ.
    """
    read, reads = before.spec.origin.feature_spec, origin.feature_spec
    if read and reads and (differences := read.differences(reads)):
        raise TrainingError(f"the head to start from was trained on other features: {'; '.join(differences)}")


def _print_fitted(fitted: FittedRouter, width: int) -> None:
    from trinity_assets.routing.headroom_report import headroom_lines
    from trinity_assets.routing.pool_admission import admissions_lines
    from trinity_assets.routing.report import text_report

    workers = ", ".join(map(printable, fitted.workers))
    print(f"{counted(len(fitted.table), 'task')}, features of width {width}, workers {workers}\n")
    for line in (*headroom_lines(fitted.headroom), *admissions_lines(fitted.admissions)):
        print(line.replace("**", ""))
    print(f"\n{text_report(fitted.evaluation)}")
    print(f"gate:            {'passed' if fitted.gate.passed else 'not passed'}: {fitted.gate.reason}")
    print(f"would publish:   {fitted.policy}")
