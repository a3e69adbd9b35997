"""Building what is missing, unsynced or failed, wave after wave, until nothing is left: make, for the asset graph.

Dagster memoizes nothing inside a run, so a wave holds only assets that are known to need building: those whose upstream
is settled, and never-built ones whose upstream is in the same wave. After each wave the states are read again, so an
upstream that came out with the same data version ends the chain there.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import dagster as dg

from trinity_assets.catalog.catalog import Catalog
from trinity_assets.defs import keys
from trinity_assets.defs.dropping import dropped_workers, dropping_tables
from trinity_assets.defs.sentinels import watched_workers
from trinity_assets.defs.staleness import AssetState, asset_states, parent_keys
from trinity_assets.errors import MissingKeyError, SelectionError
from trinity_assets.workers.specs import LiteLLMProvider


@dataclass(frozen=True)
class Executed:
    """What came of the steps of some assets: those that were materialized, and why steps failed, by asset's name."""

    materialized: frozenset[dg.AssetKey]
    reasons: Mapping[str, str] = field(default_factory=dict)


Execute = Callable[[dg.DagsterInstance, Sequence[dg.AssetKey]], Executed]
"""Runs the steps of some assets."""


@dataclass(frozen=True)
class BuildResult:
    """How a build ended: what was materialized, what failed, and what waits for that.

    ``dropped`` are the workers that selected routers are trained without, by router, each with the reason. ``reasons``
    are those of failed steps, by asset's name.
    """

    built: tuple[dg.AssetKey, ...]
    failed: tuple[dg.AssetKey, ...]
    waiting: tuple[dg.AssetKey, ...]
    dropped: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every selected asset is up to date."""
        return not self.failed and not self.waiting


def select(definitions: dg.Definitions, selection: str | None) -> frozenset[dg.AssetKey]:
    """The asset keys of a selection in Dagster's syntax (``tag:worker=x``, ``key:"routers/*"+``); None selects all.

    Raises:
        SelectionError: the text is no selection, or it selects nothing.
    """
    if selection is None:
        return frozenset(spec.key for spec in definitions.resolve_all_asset_specs())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Dagster's parser warns of a parameter of its own
            chosen = dg.AssetSelection.from_string(selection).resolve(definitions.resolve_asset_graph())
    except Exception as error:  # the parser raises classes of its own for every kind of bad text
        raise SelectionError(f"cannot read the selection {selection!r}: {str(error).splitlines()[0]}") from error
    if not chosen:
        raise SelectionError(
            f"the selection {selection!r} holds no asset; `trinity-assets build --dry-run` shows those to build"
        )
    return frozenset(chosen)


def pending(
    definitions: dg.Definitions,
    instance: dg.DagsterInstance,
    selected: frozenset[dg.AssetKey],
    *,
    rebuild: bool = False,
) -> list[AssetState]:
    """The selected assets that are not up to date (with ``rebuild`` all of them), in topological order."""
    states = _asked_again(_states(definitions, instance), selected if rebuild else frozenset())
    return [state for key, state in states.items() if key in selected and state.state != "fresh"]


def build(
    definitions: dg.Definitions,
    instance: dg.DagsterInstance,
    selected: frozenset[dg.AssetKey],
    execute: Execute,
    announce: Callable[[Sequence[AssetState]], None],
    *,
    rebuild: bool = False,
) -> BuildResult:
    """Materialize what needs it in ``selected`` until nothing is left or only failures are.

    ``announce`` is told each wave before it runs. ``rebuild`` materializes every selected asset once, needed or not:
    the way back after an artifact was lost.
    """
    parents = parent_keys(definitions)
    steps = _step_siblings(definitions)
    dropping = dropping_tables(definitions)
    # A sentinel's answers are what its comparison is of; without any there is nothing to compare.
    may_lack = {
        key: frozenset(one for one in above if one != keys.sentinel_answers(key.path[1]))
        for key, above in parents.items()
        if keys.is_drift(key)
    }
    may_lack |= {table.key: table.may_lack for table in dropping}
    built: list[dg.AssetKey] = []
    failed: set[dg.AssetKey] = set()
    reasons: dict[str, str] = {}
    while True:
        states = _states(definitions, instance)
        # Steps read the catalog anew. When it is edited while a build runs, what was just built is not what this build
        # knows, and building it again would not end; it is left to the next build.
        outrun = frozenset(key for key in built if states[key].state != "fresh")
        if rebuild:
            states = _asked_again(states, selected - set(built))
        wave = next_wave(states, parents, steps, selected, failed=failed, outrun=outrun, may_lack=may_lack)
        if not wave:
            break
        announce(wave)
        wanted = [state.key for state in wave]
        executed = execute(instance, wanted)
        reasons |= executed.reasons
        built += [key for key in wanted if key in executed.materialized]
        missed = [key for key in wanted if key not in executed.materialized]
        # A step that never started because its upstream failed is not itself a failure: it waits.
        failed |= {key for key in missed if not any(parent in missed for parent in parents[key])}
    waiting = [key for key, state in states.items() if key in selected and state.state != "fresh" and key not in failed]
    dropped = {table.router: dropped_workers(instance, table.key) for table in dropping if table.key in selected}
    return BuildResult(
        tuple(built),
        tuple(key for key in states if key in failed),
        tuple(waiting),
        {router: workers for router, workers in dropped.items() if workers},
        reasons,
    )


def require_keys(
    catalog: Catalog, definitions: dg.Definitions, selected: frozenset[dg.AssetKey], wanted: Sequence[AssetState]
) -> None:
    """Refuse to start when a provider that may have to be asked has a key that is not set.

    May have to be asked: for selected answers that need building, or that depend on tasks that do. Only variables that
    the catalog names are looked at (``key_env``). Which one litellm reads by its own convention, it alone knows, and
    importing it takes seconds: where that one is not set, the step says so before its first call.

    Raises:
        MissingKeyError: naming every such variable and the providers that read it.
    """
    parents = parent_keys(definitions)
    changing = {state.key for state in wanted}
    missing: dict[str, set[str]] = {}
    asking = [(worker.provider, keys.answers(worker.name, benchmark.name)) for worker, benchmark in catalog.asked_cells]
    asking += [(worker.provider, keys.sentinel_answers(worker.name)) for worker, _ in watched_workers(catalog)]
    for provider, key in asking:
        variable = provider.key_env if isinstance(provider, LiteLLMProvider) else None
        needed = key in selected and (key in changing or any(parent in changing for parent in parents[key]))
        if needed and variable and not os.environ.get(variable, "").strip():
            missing.setdefault(variable, set()).add(provider.name)
    if missing:
        lines = [f"{variable} (provider {', '.join(sorted(names))})" for variable, names in sorted(missing.items())]
        raise MissingKeyError(
            f"these environment variables are not set: {'; '.join(lines)}. Set them to the providers' keys, or select "
            "assets of other workers; nothing was run and nothing was asked"
        )


def next_wave(
    states: Mapping[dg.AssetKey, AssetState],
    parents: Mapping[dg.AssetKey, list[dg.AssetKey]],
    steps: Mapping[dg.AssetKey, frozenset[dg.AssetKey]],
    selected: frozenset[dg.AssetKey],
    *,
    failed: Collection[dg.AssetKey] = (),
    outrun: Collection[dg.AssetKey] = (),
    may_lack: Mapping[dg.AssetKey, Collection[dg.AssetKey]] | None = None,
) -> list[AssetState]:
    """The assets that can be built now, in topological order (that of ``states``).

    ``steps`` gives for each asset all the assets that its step makes; they are built together. ``failed`` holds assets
    that failed in this build, and ``outrun`` those whose declaration changed under it: neither they nor what needs them
    is tried again. ``may_lack`` gives for an asset the dependencies that it does not need: one that cannot be had in
    this build, because it failed or something before it did, is no hindrance then.

    An unselected asset that is not up to date blocks what depends on it: building on it would publish what the catalog
    no longer says.
    """
    wave: dict[dg.AssetKey, AssetState] = {}
    blocked: set[dg.AssetKey] = {*failed, *outrun}
    lost: set[dg.AssetKey] = set(failed)
    for key, state in states.items():
        dispensable = lost.intersection((may_lack or {}).get(key, ()))
        upstream = [parent for parent in parents[key] if parent not in dispensable]
        if not lost.isdisjoint(upstream):
            lost.add(key)
        if key not in selected:
            if state.state != "fresh" or any(parent in blocked for parent in upstream):
                blocked.add(key)
            continue
        if key in blocked or any(parent in blocked for parent in upstream):
            blocked.add(key)
        elif state.state == "fresh":
            if any(parent in wave for parent in upstream):
                blocked.add(key)  # it may become stale once that parent is built; the next wave sees
        elif any(parent in wave for parent in upstream) and state.state != "missing":
            blocked.add(key)  # its parent may come out unchanged, and then it need not be built
        else:
            wave[key] = state
    for key in list(wave):
        for sibling in steps[key]:
            wave.setdefault(sibling, states[sibling])
    return [state for key, state in states.items() if key in wave]


def _states(definitions: dg.Definitions, instance: dg.DagsterInstance) -> dict[dg.AssetKey, AssetState]:
    """The state of every asset, in topological order; a table is stale, too, while it lacks a worker that it need not.

    Its dependencies do not always tell: a worker that was asked otherwise and answers the same has the same solves as
    before, which the table depended on all the time.
    """
    states = asset_states(definitions, instance)
    parents = parent_keys(definitions)
    for table in dropping_tables(definitions):
        if states[table.key].state == "fresh":
            complete = [
                worker
                for worker in dropped_workers(instance, table.key)
                if all(
                    states[key].state in ("fresh", "failed")  # failed: what there is, is of the present settings
                    for solves in table.solves[worker]
                    for key in (solves, *parents[solves])
                )
            ]
            if complete:
                causes = tuple(f"{worker} is complete now" for worker in complete)
                states[table.key] = AssetState(table.key, "stale", causes)
    return states


def _asked_again(
    states: Mapping[dg.AssetKey, AssetState], asked: frozenset[dg.AssetKey]
) -> dict[dg.AssetKey, AssetState]:
    """``states`` with the fresh ones among ``asked`` as stale."""
    return {
        key: AssetState(key, "stale", ("asked for",)) if key in asked and state.state == "fresh" else state
        for key, state in states.items()
    }


def _step_siblings(definitions: dg.Definitions) -> dict[dg.AssetKey, frozenset[dg.AssetKey]]:
    """For each asset, all the assets that its step makes."""
    siblings: dict[dg.AssetKey, frozenset[dg.AssetKey]] = {}
    for key in definitions.resolve_all_asset_keys():
        siblings[key] = frozenset(definitions.resolve_assets_def(key).keys)
    return siblings
