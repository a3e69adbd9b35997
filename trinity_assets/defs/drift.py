"""Beside the graph: what changed in the workers since they were last asked everything. Reads, and nothing reads it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from trinity_assets.catalog.catalog import Catalog
from trinity_assets.defs import keys
from trinity_assets.defs.cells import AskedCell, cell_digest, cell_keys, present_cell
from trinity_assets.defs.keyless import drop_keys
from trinity_assets.defs.lineage import Upstream, materialized, step
from trinity_assets.defs.pools import GRADING
from trinity_assets.defs.presentation import OWNERS, markdown_table
from trinity_assets.defs.resources import LedgerResource, StoreResource
from trinity_assets.errors import ArtifactError, GraderError
from trinity_assets.grading.significance import FALSE_DISCOVERY_RATE
from trinity_assets.grading.specs import DRIFT_VERSION
from trinity_assets.spec import digest

if TYPE_CHECKING:
    from trinity_assets.grading.drift import Comparison, NoiseFloor
    from trinity_assets.store.artifacts import ArtifactStore
    from trinity_assets.workers.ledger import Ledger

GROUP = "workers"
NO_DRIFT = "no_drift"

_TABLES = {
    "verdicts": ["cell", "epochs", "verdicts", "newly solved", "newly lost", "McNemar"],
    "noise": ["cell", "floor", "above floor"],
    "models": ["cell", "model", "fingerprint"],
    "costs": ["cell", "USD per answer", "output tokens"],
}
"""The columns of the report in several tables: a page gives one table little room, and cuts off what is wider."""


def drift_assets(catalog: Catalog) -> list[dg.AssetsDefinition]:
    """The comparison of every asked cell with its epoch before, where any worker is asked."""
    return [_drift(catalog, cells)] if (cells := catalog.asked_cells) else []


def drift_check(key: dg.AssetKey) -> dg.AssetCheckSpec:
    """The check of an asset of comparisons, whose result is :func:`drift_checked`."""
    return dg.AssetCheckSpec(
        NO_DRIFT,
        asset=key,
        description=(
            f"Warns when verdicts changed by more than chance, at a false discovery rate of {FALSE_DISCOVERY_RATE:.0%} "
            "over all tests, or when a provider says that it ran another model."
        ),
    )


def drift_checked(key: dg.AssetKey, comparisons: "Sequence[Comparison]") -> dg.AssetCheckResult:
    """Whether nothing in ``comparisons`` is worth a warning, and what is."""
    from trinity_assets.grading.drift_report import warnings

    found = warnings(comparisons)
    notes = dict.fromkeys(one.note for one in comparisons if one.note)
    fine = "no drift" if any(one.note is None for one in comparisons) else "; ".join(notes)
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=NO_DRIFT,
        passed=not found,
        severity=dg.AssetCheckSeverity.WARN,
        description=".\n".join(found) or fine,
    )


def drift_metadata(comparisons: "Sequence[Comparison]") -> dict[str, Any]:
    """The comparisons on the asset's page."""
    from trinity_assets.grading.drift_report import changed_tasks, drift_table

    table = drift_table(comparisons)
    shown = table.assign(cell=table["worker"] + " on " + table["benchmark"])
    return {
        "compared": sum(one.note is None for one in comparisons),
        "verdicts_changed": sum(one.changed for one in comparisons),
        "drifted": sum(one.significant for one in comparisons),
        "models_changed": sum(one.model_changed for one in comparisons),
        **{name: dg.MetadataValue.md(markdown_table(shown[columns])) for name, columns in _TABLES.items()},
        "tasks": dg.MetadataValue.md(changed_tasks(comparisons) or "no verdict changed"),
    }


def _drift(catalog: Catalog, cells: Sequence[AskedCell]) -> dg.AssetsDefinition:
    key = keys.drift()
    watched = list(dict.fromkeys(worker.name for worker, _ in cells)) if catalog.operations.sentinel else []
    identity = {
        "version": DRIFT_VERSION,
        "cells": {f"{worker.name}/{benchmark.name}": cell_digest(worker, benchmark) for worker, benchmark in cells},
        "sentinels": watched,
    }
    deps = [*(one for cell in cells for one in cell_keys(*cell)), *(keys.sentinel_drift(name) for name in watched)]

    @dg.asset(
        key=key,
        deps=list(dict.fromkeys(deps)),
        group_name=GROUP,
        description=(
            "Each cell in its present epoch beside the one before: the same questions, asked again. Verdicts that "
            "changed, whether more did than by chance, other models, costs and tokens. A cell that cannot be read is "
            "noted and holds up no other: where one fails, a build makes this asset after the rest, and a run that was "
            "started elsewhere leaves it to the next one."
        ),
        code_version=digest(identity),
        kinds={"parquet"},
        owners=OWNERS,
        pool=GRADING,
        check_specs=[drift_check(key)],
    )
    def drift(context: dg.AssetExecutionContext, store: StoreResource, ledger: LedgerResource) -> dg.MaterializeResult:
        from trinity_assets.grading.drift import DRIFT_SCHEMA, drift_data_version, drift_frame, with_adjusted_p
        from trinity_assets.store.tables import write_table

        drop_keys(catalog.key_variables)
        upstream = Upstream(context)
        with step():
            artifacts = store.open()
            floors = {name: _sentinel_floors(upstream, artifacts, name) for name in watched}
            with ledger.open() as opened:
                comparisons = with_adjusted_p(
                    [
                        _compared(upstream, artifacts, opened, cell, floors.get(cell[0].name, {}).get(cell[1].name))
                        for cell in cells
                    ]
                )
            frame = drift_frame(comparisons)
            artifact = write_table(artifacts, "drift", frame, DRIFT_SCHEMA, identity, upstream.inputs)
        version, checks = drift_data_version(comparisons), [drift_checked(key, comparisons)]
        return materialized(key, artifact, version, upstream.inputs, drift_metadata(comparisons), checks)

    return drift


def _compared(
    upstream: Upstream,
    artifacts: "ArtifactStore",
    ledger: "Ledger",
    cell: AskedCell,
    sentinel_floor: "NoiseFloor | None",
) -> "Comparison":
    """One cell beside its epoch before, or why there is nothing to compare."""
    from trinity_assets.grading.drift import ONE_EPOCH, Comparison, compare, repeats_floor, with_scores
    from trinity_assets.workers.epochs import earlier_answers
    from trinity_assets.workers.requests import answer_requests

    worker, benchmark = cell
    label = f"comparing {worker.name} on {benchmark.name}"
    try:
        present = present_cell(upstream, artifacts, worker, benchmark)
        epoch = int(present.answers["epoch"].max())
        earlier = earlier_answers(ledger, worker, present.prompts, epoch)
        if earlier is None:
            return Comparison(worker.name, benchmark.name, note=ONE_EPOCH, epoch=epoch)
        asked = {request.digest for request in answer_requests(worker, present.prompts, epoch)}
        now = present.answers[present.answers["request_digest"].isin(asked)]
        scored = {
            which: with_scores(frame, present.gold, benchmark.grading, present.solves, label=label)
            for which, frame in (("earlier", earlier), ("now", now))
        }
    except (ArtifactError, GraderError) as error:
        return Comparison(worker.name, benchmark.name, note=f"cannot be compared: {error}")
    floor = repeats_floor(scored["earlier"], "samples") or sentinel_floor
    compared = compare(worker.name, benchmark.name, scored["earlier"], scored["now"], floor)
    return compared.between(int(earlier["epoch"].max()), epoch)


def _sentinel_floors(upstream: Upstream, artifacts: "ArtifactStore", worker: str) -> "dict[str, NoiseFloor]":
    """The floor of each benchmark that the sentinel of ``worker`` asks; nothing where it was not graded yet."""
    from trinity_assets.grading.drift import repeats_floor
    from trinity_assets.store.tables import read_table
    from trinity_assets.workers.sentinels import SENTINEL

    try:
        scored = read_table(artifacts, "sentinel_verdicts", upstream.sha256(keys.sentinel_drift(worker))).frame
    except ArtifactError:
        return {}
    floors = {str(name): repeats_floor(rows, SENTINEL) for name, rows in scored.groupby("benchmark")}
    return {name: floor for name, floor in floors.items() if floor}
