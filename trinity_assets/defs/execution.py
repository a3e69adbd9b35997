"""How steps run: one process each, forked from one that has imported what is slow to import."""

from __future__ import annotations

import os
from collections.abc import Sequence

import dagster as dg

from trinity_assets.defs.build import PROCESS_TAG, process_tag

# Answers wait for the network or keep a core busy, as their provider's pool allows; everything else is short, and two
# more steps keep it from waiting for them.
MAX_CONCURRENT_STEPS = (os.cpu_count() or 1) + 2

EXECUTOR = dg.multiprocess_executor.configured(
    {
        "max_concurrent": MAX_CONCURRENT_STEPS,
        "start_method": {"forkserver": {"preload_modules": ["trinity_assets.defs.preload"]}},
    }
)


def execute_in_processes(instance: dg.DagsterInstance, keys: Sequence[dg.AssetKey]) -> set[dg.AssetKey]:
    """Run the steps of ``keys`` as one Dagster run and return the assets that were materialized."""
    from trinity_assets.definitions import everything_job

    with dg.execute_job(
        dg.reconstructable(everything_job),
        instance,
        run_config={"loggers": {"console": {"config": {}}}},
        tags={PROCESS_TAG: process_tag()},
        asset_selection=list(keys),
    ) as result:
        return {event.asset_key for event in result.all_events if event.is_step_materialization and event.asset_key}
