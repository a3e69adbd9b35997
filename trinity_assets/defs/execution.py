"""How steps run, and how many at once."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence

import dagster as dg

from trinity_assets.catalog.catalog import Catalog
from trinity_assets.defs.build import Executed
from trinity_assets.defs.console import failure_text, step_name
from trinity_assets.defs.orphaned_runs import PROCESS_TAG, process_tag
from trinity_assets.errors import SelectionError
from trinity_assets.workers.specs import LiteLLMProvider

_ENDS = (dg.DagsterEventType.RUN_FAILURE, dg.DagsterEventType.RUN_CANCELED)

_CHILD_ERROR = re.compile(r"^In process (\d+): (?:([\w.]+): )?(.*)$", re.MULTILINE)
"""How Dagster's ``DagsterSubprocessError`` begins what it says of a step's process that ended too early."""

_EDITED = "the catalog was edited while this was built, and has it no longer"


def concurrent_steps(catalog: Catalog) -> int:
    """How many steps run at once: one per core, and those of remote providers, which wait for the network."""
    remote = [provider for provider in catalog.providers.values() if isinstance(provider, LiteLLMProvider)]
    return (os.cpu_count() or 1) + sum(provider.parallel_steps for provider in remote)


def executor(catalog: Catalog) -> dg.ExecutorDefinition:
    """Each step in a process of its own, forked from one that has imported what is slow to import."""
    return dg.multiprocess_executor.configured(
        {
            "max_concurrent": concurrent_steps(catalog),
            "start_method": {"forkserver": {"preload_modules": ["trinity_assets.defs.preload"]}},
        }
    )


def execute_in_processes(
    instance: dg.DagsterInstance, keys: Sequence[dg.AssetKey], *, tags: Mapping[str, str]
) -> Executed:
    """Run the steps of ``keys`` as one Dagster run with ``tags``.

    Reasons are those of the run's events: what a step says as it ends may be missing from the console.

    Raises:
        KeyboardInterrupt: the run was interrupted, which Dagster records as its failure.
        SelectionError: the catalog, which is read anew for each run, no longer has one of the assets.
    """
    from trinity_assets.definitions import everything_job

    with contextlib.ExitStack() as stack:
        try:
            result = stack.enter_context(
                dg.execute_job(
                    dg.reconstructable(everything_job),
                    instance,
                    run_config={"loggers": {"console": {"config": {}}}},
                    tags={PROCESS_TAG: process_tag(), **tags},
                    asset_selection=list(keys),
                )
            )
        except dg.DagsterInvalidSubsetError as error:
            names = ", ".join(re.findall(r"'([^']+)'", str(error).partition("]")[0]))
            raise SelectionError(f"{names}: {_EDITED}; run the same command again for what it has now") from error
        ends = [event for event in result.all_events if event.event_type in _ENDS]
        if any("interrupted" in (event.message or "") for event in ends):
            raise KeyboardInterrupt
        made = [event.asset_key for event in result.all_events if event.is_step_materialization]
        failures = [event for event in result.all_events if event.event_type is dg.DagsterEventType.STEP_FAILURE]
        reasons = _unended(result.all_events) | {step_name(one.step_key): failure_text(one) for one in failures}
        return Executed(frozenset(key for key in made if key), reasons)


def _unended(events: Sequence[dg.DagsterEvent]) -> dict[str, str]:
    """Why the processes of steps ended before the steps began, by asset's name: only the end of the run tells.

    So ends a step that the catalog, which each step loads anew, no longer has.
    """
    texts = [
        event.job_failure_data.error.message
        for event in events
        if event.event_type is dg.DagsterEventType.RUN_FAILURE and event.job_failure_data.error
    ]
    said = {
        process: _EDITED if kind.endswith(dg.DagsterInvalidSubsetError.__name__) else error
        for text in texts
        for process, kind, error in _CHILD_ERROR.findall(text)
    }
    processes = {
        event.engine_event_data.metadata["pid"].value: step_name(event.step_key)
        for event in events
        if event.event_type is dg.DagsterEventType.STEP_WORKER_STARTED
    }
    return {step: said[process] for process, step in processes.items() if process in said}
