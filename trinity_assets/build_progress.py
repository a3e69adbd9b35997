"""What the commands that build have in common: making ready, saying what is built, an interruption, how it ended."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import typer

from trinity_assets.catalog.catalog import Catalog
from trinity_assets.printing import REASON_CHARACTERS
from trinity_assets.texts import counted, printable

if TYPE_CHECKING:
    from dagster import AssetKey, DagsterInstance, Definitions

    from trinity_assets.defs.build import BuildResult, Execute
    from trinity_assets.defs.staleness import AssetState

REASON_LINES = 2
"""Of why an asset failed: how many answers are missing, and why the asking ended before its end."""


def prepare(
    catalog: Catalog,
    definitions: Definitions,
    instance: DagsterInstance,
    selected: frozenset[AssetKey],
    wanted: Sequence[AssetState],
    tags: Mapping[str, str],
) -> Execute:
    """Make ready to build ``wanted`` of ``selected``; gives what runs steps in processes, with ``tags``.

    Runs that were killed before are ended, and said to be.

    Raises:
        MissingKeyError: a provider that may have to be asked has a key that is not set.
    """
    from trinity_assets.defs.build import require_keys
    from trinity_assets.defs.execution import execute_in_processes
    from trinity_assets.defs.orphaned_runs import release_dead_runs
    from trinity_assets.defs.pools import apply_pool_limits

    require_keys(catalog, definitions, selected, wanted)
    if released := release_dead_runs(instance):
        print(f"{counted(len(released), 'earlier run was', 'earlier runs were')} killed; what had settled is kept.")
    apply_pool_limits(instance, catalog)
    return partial(execute_in_processes, tags=tags)


@contextlib.contextmanager
def interruptible(advice: str) -> Iterator[None]:
    """An interruption within the block ends the command with 130, and with ``advice`` on how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"\nInterrupted. Everything that settled is kept; {advice}")
        raise typer.Exit(130) from None


def announce(listed: Sequence[AssetState], wave: Sequence[AssetState]) -> None:
    """Say what a wave builds; why is said only of assets that were not ``listed`` before."""
    print(f"\nBuilding {counted(len(wave), 'asset')}")
    known = {state.key for state in listed}
    if new := [state for state in wave if state.key not in known]:
        print_states(new)
    sys.stdout.flush()


def print_states(states: Sequence[AssetState]) -> None:
    """A line per asset, with its state and the causes."""
    width = max(len(state.key.to_user_string()) for state in states)
    for state in states:
        print(f"  {state.key.to_user_string():{width}}  {state.state:7}  {'; '.join(state.causes)}")


def outcome_lines(result: BuildResult) -> Iterator[str]:
    """How many assets were built, failed and wait; then a line per failed one, with its reason where known."""
    built = counted(len(result.built), "asset")
    yield f"\n{built} built, {len(result.failed)} failed, {len(result.waiting)} waiting for those."
    for key in result.failed:
        asset = key.to_user_string()
        said = "; ".join(result.reasons.get(asset, "").split("\n")[:REASON_LINES])
        yield f"  failed: {asset}" + (f": {printable(said, REASON_CHARACTERS)}" if said else "")
