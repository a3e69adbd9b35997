"""Which assets are up to date, by Dagster's own rules, read from what each materialization recorded.

An asset is stale when its code version differs, when a direct dependency now has another data version than the one that
it recorded, or when a dependency was added or removed. Dagster's resolver of the same rules is private and wants a code
server; these rules are three comparisons of recorded tags, and a test holds them equal to what the UI shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Literal

import dagster as dg

from trinity_assets.defs.lineage import DATA_VERSION_TAG

CODE_VERSION_TAG = "dagster/code_version"
INPUT_VERSION_PREFIX = "dagster/input_data_version/"
NEVER_BUILT = "INITIAL"
"""What Dagster records as the data version of a dependency that was never materialized."""

State = Literal["fresh", "stale", "missing", "failed"]


@dataclass(frozen=True)
class AssetState:
    """Whether an asset needs building, and why: one sentence fragment per cause."""

    key: dg.AssetKey
    state: State
    causes: tuple[str, ...] = ()


def asset_states(definitions: dg.Definitions, instance: dg.DagsterInstance) -> dict[dg.AssetKey, AssetState]:
    """The state of every asset of ``definitions``, in topological order."""
    specs = {spec.key: spec for spec in definitions.resolve_all_asset_specs()}
    parents = parent_keys(definitions)
    entries = {record.asset_entry.asset_key: record.asset_entry for record in instance.get_asset_records(list(specs))}
    last = {key: entry.last_materialization for key, entry in entries.items()}
    recorded = {key: _recorded_tags(last.get(key)) for key in specs}
    failed = {key for key, entry in entries.items() if _failed_since_built(instance, entry.last_run_id, last[key])}
    return {
        key: asset_state(key, specs[key].code_version, parents[key], recorded, key in failed)
        for key in TopologicalSorter(parents).static_order()
    }


def parent_keys(definitions: dg.Definitions) -> dict[dg.AssetKey, list[dg.AssetKey]]:
    """The direct dependencies of every asset, by key: Dagster lists assets in another order in every process."""
    parents = {spec.key: sorted(dep.asset_key for dep in spec.deps) for spec in definitions.resolve_all_asset_specs()}
    return dict(sorted(parents.items()))


def asset_state(
    key: dg.AssetKey,
    code_version: str | None,
    dependencies: Iterable[dg.AssetKey],
    recorded: Mapping[dg.AssetKey, Mapping[str, str] | None],
    failed: bool,
) -> AssetState:
    """The state of one asset, from the tags that it and its dependencies recorded (None: never materialized)."""
    tags = recorded[key]
    if tags is None:
        return AssetState(key, "missing", ("failed before it was ever built",) if failed else ("never built",))
    causes = [] if tags.get(CODE_VERSION_TAG) == code_version else ["its settings or its source changed"]
    used = {
        name.removeprefix(INPUT_VERSION_PREFIX): version
        for name, version in tags.items()
        if name.startswith(INPUT_VERSION_PREFIX)
    }
    current = {key.to_user_string(): (recorded[key] or {}).get(DATA_VERSION_TAG, NEVER_BUILT) for key in dependencies}
    for name, version in sorted(current.items()):
        if name not in used:
            causes.append(f"depends on {name} now")
        elif version != used[name]:
            causes.append(f"{name} changed")
    causes += [f"no longer depends on {name}" for name in sorted(used.keys() - current.keys())]
    if causes:
        return AssetState(key, "stale", tuple(causes))
    return AssetState(key, "failed", ("its last run failed",)) if failed else AssetState(key, "fresh")


def _recorded_tags(last: dg.EventLogEntry | None) -> Mapping[str, str] | None:
    materialization = last.asset_materialization if last else None
    return (materialization.tags or {}) if materialization else None


def _failed_since_built(instance: dg.DagsterInstance, planned: str | None, last: dg.EventLogEntry | None) -> bool:
    """Whether the run that was last to make an asset ended without doing so."""
    if planned is None or (last is not None and last.run_id == planned):
        return False
    run = instance.get_run_by_id(planned)
    return run is not None and run.status in (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
