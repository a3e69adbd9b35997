"""A benchmark's tasks and gold as a build would use them now, read without building anything.

What is materialized and up to date is read from the store; anything else is taken from the source, as the step of the
snapshot would take it. Nothing is written, so commands that only look at what a build will ask can use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg

from trinity_assets.benchmarks.snapshots import Snapshot, rendered_prompts, take_snapshot
from trinity_assets.catalog.catalog import Benchmark, Catalog
from trinity_assets.defs import keys
from trinity_assets.defs.instance import open_instance
from trinity_assets.defs.lineage import artifact_sha256
from trinity_assets.defs.staleness import asset_states
from trinity_assets.home import dagster_home, store_url, trinity_home
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets.store.tables import read_table

if TYPE_CHECKING:
    import pandas as pd


class PresentSnapshots:
    """The snapshots of ``catalog``, whose graph ``definitions`` is; each table is read once, when it is asked for."""

    def __init__(self, catalog: Catalog, definitions: dg.Definitions) -> None:
        self._directory = catalog.directory
        self._artifacts = _fresh_artifacts(catalog, definitions)
        self._taken: dict[str, Snapshot] = {}

    def tasks(self, benchmark: Benchmark) -> pd.DataFrame:
        """What ``benchmark`` asks, in the columns of ``TASKS_SCHEMA``.

        Raises:
            TaskSourceError: they are to be taken from the source, which cannot be read or holds rows that are no tasks.
            ArtifactError: they are materialized, and the artifact is damaged or gone.
        """
        return self._table("tasks", keys.tasks(benchmark.name), benchmark)

    def prompts(self, benchmark: Benchmark) -> dict[str, str]:
        """Task id -> rendered prompt of ``benchmark``; raises as :meth:`tasks` does."""
        return rendered_prompts(benchmark.snapshot, self.tasks(benchmark))

    def gold(self, benchmark: Benchmark) -> pd.DataFrame:
        """How ``benchmark`` is graded, in the columns of ``GOLD_SCHEMA``; raises as :meth:`tasks` does."""
        return self._table("gold", keys.gold(benchmark.name), benchmark)

    def _table(self, kind: str, key: dg.AssetKey, benchmark: Benchmark) -> pd.DataFrame:
        sha256 = self._artifacts.get(key)
        if sha256 is not None:
            return read_table(ArtifactStore(store_url(trinity_home())), kind, sha256).frame
        if benchmark.name not in self._taken:
            self._taken[benchmark.name] = take_snapshot(benchmark.snapshot, self._directory)
        taken = self._taken[benchmark.name]
        return taken.tasks if kind == "tasks" else taken.gold


def _fresh_artifacts(catalog: Catalog, definitions: dg.Definitions) -> dict[dg.AssetKey, str]:
    """The artifacts of those tables that are up to date; none where there is no Dagster instance yet."""
    if not dagster_home().is_dir():
        return {}
    wanted = [key(benchmark.name) for benchmark in catalog.learned for key in (keys.tasks, keys.gold)]
    with open_instance() as instance:
        states = asset_states(definitions, instance)
        found = {key: artifact_sha256(instance, key) for key in wanted if states[key].state in ("fresh", "failed")}
    return {key: sha256 for key, sha256 in found.items() if sha256 is not None}
