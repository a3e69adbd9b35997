"""Asking again what was answered, in a new epoch, and building what came out otherwise."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import dagster as dg

from trinity_assets.catalog.catalog import Catalog
from trinity_assets.defs import keys
from trinity_assets.defs.build import BuildResult, Execute, Executed, build, select
from trinity_assets.defs.sentinels import watched_workers
from trinity_assets.defs.staleness import AssetState, asset_states, parent_keys
from trinity_assets.errors import SelectionError


def answers_to_ask(catalog: Catalog, definitions: dg.Definitions, selection: str | None) -> frozenset[dg.AssetKey]:
    """The answers in ``selection`` that are asked for, sentinels' too; None: those of all cells, and no sentinel.

    Raises:
        SelectionError: the text is no selection, or nothing that it selects is asked for.
    """
    cells = frozenset(keys.answers(worker.name, benchmark.name) for worker, benchmark in catalog.asked_cells)
    if selection is None:
        if not cells:
            raise SelectionError("no router of this catalog uses a worker that is asked; nothing can be asked again")
        return cells
    sentinels = {keys.sentinel_answers(worker.name) for worker, _ in watched_workers(catalog)}
    if chosen := select(definitions, selection) & (cells | sentinels):
        return chosen
    raise SelectionError(
        f"the selection {selection!r} holds no answers of a worker that is asked; try 'key:\"answers/WORKER/*\"', or "
        "'key:\"sentinels/*\"' for sentinels"
    )


def rebaseline(
    definitions: dg.Definitions,
    instance: dg.DagsterInstance,
    asked: frozenset[dg.AssetKey],
    execute: Execute,
    announce: Callable[[Sequence[AssetState]], None],
) -> BuildResult:
    """Ask for ``asked`` again, then build what changed downstream, then compare, whatever changed.

    ``execute`` runs steps with the tag that opens a new epoch. What failed keeps nothing but what needs it from being
    built, and the comparison from nothing at all. What is ``held_up`` is no part of this.
    """
    reports = _reports(definitions, asked)
    asking = build(definitions, instance, asked, execute, announce, rebuild=True)
    below = _downstream(definitions, asked).difference(reports, held_up(definitions, instance, asked))
    following = build(definitions, instance, below, execute, announce)
    compared = Executed(frozenset())
    if asking.built and reports:
        announce([AssetState(key, "stale", ("asked for",)) for key in reports])
        compared = execute(instance, reports)
    return replace(
        following,
        built=(*asking.built, *following.built, *(key for key in reports if key in compared.materialized)),
        failed=(
            *asking.failed,
            *following.failed,
            *(key for key in reports if asking.built and key not in compared.materialized),
        ),
        waiting=(*asking.waiting, *following.waiting),
        reasons={**asking.reasons, **following.reasons, **compared.reasons},
    )


def held_up(
    definitions: dg.Definitions, instance: dg.DagsterInstance, asked: frozenset[dg.AssetKey]
) -> frozenset[dg.AssetKey]:
    """What depends on ``asked`` and on something else that is not up to date: only a build of that brings it.

    Building it would publish what the catalog no longer says, and repeating the rebaseline would not help.
    """
    parents = parent_keys(definitions)
    below = _downstream(definitions, asked)
    hindered: set[dg.AssetKey] = set()
    for key, state in asset_states(definitions, instance).items():
        if key in below:
            hindering = not hindered.isdisjoint(parents[key])
        else:
            hindering = key not in asked and state.state != "fresh"
        if hindering:
            hindered.add(key)
    return (below & hindered).difference(_reports(definitions, asked))


def _reports(definitions: dg.Definitions, asked: Collection[dg.AssetKey]) -> list[dg.AssetKey]:
    """The comparisons that ``asked`` have a part in."""
    return [
        key
        for key in parent_keys(definitions)
        if key == keys.drift() or (keys.is_drift(key) and keys.sentinel_answers(key.path[1]) in asked)
    ]


def _downstream(definitions: dg.Definitions, of: Collection[dg.AssetKey]) -> frozenset[dg.AssetKey]:
    """Everything that depends on ``of``, at whatever distance."""
    parents = parent_keys(definitions)
    reached = set(of)
    while more := {key for key, above in parents.items() if key not in reached and not reached.isdisjoint(above)}:
        reached |= more
    return frozenset(reached.difference(of))
