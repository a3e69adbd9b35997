"""When workers are asked again by the clock: a schedule per declaration in ``operations.yaml``, stopped at first.

A tick launches one run that opens a new epoch of what it selects, and compares that with what was there.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from trinity_assets.catalog.catalog import Catalog
from trinity_assets.defs import keys
from trinity_assets.defs.runs import NEW_EPOCH_TAG
from trinity_assets.defs.sentinels import watched_workers
from trinity_assets.workers.operations import Schedule

REBASELINE = "rebaseline"
SENTINEL = "sentinel"


def schedules(catalog: Catalog) -> list[dg.ScheduleDefinition]:
    """The schedules that the catalog declares for workers that it asks."""
    operations = catalog.operations
    cells, watched = catalog.asked_cells, watched_workers(catalog)
    found = []
    if operations.rebaseline and cells:
        answers = [keys.answers(worker.name, benchmark.name) for worker, benchmark in cells]
        said = "Asks every worker everything again, and compares the answers with those before."
        found.append(_schedule(REBASELINE, operations.rebaseline, [*answers, keys.drift()], said))
    if operations.sentinel and operations.sentinel.schedule and watched:
        assets = (keys.sentinel_answers, keys.sentinel_drift)
        selected = [asset(worker.name) for worker, _ in watched for asset in assets]
        said = "Asks every worker the tasks of its sentinel again, and compares the answers with those in use."
        found.append(_schedule(SENTINEL, operations.sentinel.schedule, selected, said))
    return found


def _schedule(name: str, when: Schedule, selected: Sequence[dg.AssetKey], description: str) -> dg.ScheduleDefinition:
    job = dg.define_asset_job(name, selection=dg.AssetSelection.assets(*selected), description=description)

    @dg.schedule(
        name=name,
        job=job,
        cron_schedule=when.cron,
        execution_timezone=when.timezone,
        default_status=dg.DefaultScheduleStatus.STOPPED,  # it spends; somebody has to want it
        description=description,
    )
    def tick(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        opened_by = f"{name} {context.scheduled_execution_time.isoformat()}"
        return dg.RunRequest(run_key=opened_by, tags={NEW_EPOCH_TAG: opened_by})

    return tick
