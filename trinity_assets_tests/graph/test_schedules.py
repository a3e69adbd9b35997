"""The schedules that a catalog declares: when, of what, and with which tags a tick launches its run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from trinity_assets.catalog.loading import load_catalog
from trinity_assets.defs.drift import NO_DRIFT
from trinity_assets.defs.runs import NEW_EPOCH_TAG
from trinity_assets.errors import CatalogError
from trinity_assets_tests.graph.scripted_models import CAPITALS, SUMS, WORKERS
from trinity_assets_tests.graph.small_catalog import DRIFT, Site, cell_names, names
from trinity_assets_tests.workers.test_ledger import rows

TICK = datetime(2026, 11, 2, 5, 30, tzinfo=UTC)

DECLARED = """\
rebaseline: {cron: "30 6 * * mon", timezone: Europe/Berlin}
sentinel: {tasks: 6, schedule: {cron: "0 5 * * *"}}
"""


def declare(site: Site, text: str) -> Path:
    path = site.catalog.directory / "operations.yaml"
    path.write_text(text)
    return path


def test_a_catalog_without_operations_has_no_schedule(empty_site: Site) -> None:
    assert list(empty_site.definitions().schedules or ()) == []


def test_schedules_are_stopped_and_come_when_they_are_declared(empty_site: Site) -> None:
    declare(empty_site, DECLARED)
    definitions = empty_site.definitions()
    found = {one.name: one for one in map(definitions.resolve_schedule_def, ("rebaseline", "sentinel"))}
    assert {name: (one.cron_schedule, one.execution_timezone) for name, one in found.items()} == {
        "rebaseline": ("30 6 * * mon", "Europe/Berlin"),
        "sentinel": ("0 5 * * *", "UTC"),
    }
    assert {one.default_status for one in found.values()} == {dg.DefaultScheduleStatus.STOPPED}


def test_a_tick_opens_an_epoch_of_its_own_name(empty_site: Site) -> None:
    declare(empty_site, DECLARED)
    definitions = empty_site.definitions()
    sentinels = {f"sentinels/{worker}/{what}" for worker in WORKERS for what in ("answers", "drift")}
    expected = {"rebaseline": cell_names("answers") | {DRIFT}, "sentinel": sentinels}
    for name, selected in expected.items():
        with empty_site.instance() as instance:
            context = dg.build_schedule_context(instance, scheduled_execution_time=TICK)
            (request,) = definitions.resolve_schedule_def(name).evaluate_tick(context).run_requests or ()
        opened_by = f"{name} 2026-11-02T05:30:00+00:00"
        assert request.run_key == opened_by
        assert request.tags[NEW_EPOCH_TAG] == opened_by
        assert names(definitions.resolve_job_def(name).asset_layer.selected_asset_keys) == selected


def test_what_a_tick_launches_asks_again_and_compares(site: Site) -> None:
    declare(site, DECLARED)
    definitions = site.definitions()
    with site.instance() as instance:
        for name, asked in (("rebaseline", SUMS + CAPITALS), ("sentinel", 6 * 2)):
            job, tags = definitions.resolve_job_def(name), {NEW_EPOCH_TAG: f"{name} at some time"}
            result = job.execute_in_process(instance=instance, tags=tags)
            assert result.success
            assert site.new_requests() == dict.fromkeys(WORKERS.values(), asked)
            assert all(one.passed for one in result.get_asset_check_evaluations() if one.check_name == NO_DRIFT)
    opened = "select distinct opened_by from epochs where epoch = 2 or benchmark = 'sentinel/' order by 1"
    assert rows(site.ledger_url, opened) == [("rebaseline at some time",), ("sentinel at some time",)]


def test_a_sentinel_without_a_schedule_is_asked_by_hand(empty_site: Site) -> None:
    declare(empty_site, "sentinel: {tasks: 6}\n")
    assert list(empty_site.definitions().schedules or ()) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            'rebaseline:\n  cron: "0 0 30 2 *"\n',
            ":2: rebaseline.cron: no month of '0 0 30 2 *' has a day 30; it would never come on one",
        ),
        (
            'sentinel:\n  schedule:\n    cron: "0 25 * * *"\n',
            ":3: sentinel.schedule.cron: '25' is no hour; allowed: 0-23",
        ),
        (
            'rebaseline:\n  cron: "0 0 1 * *"\n  timezone: Berlin\n',
            ":3: rebaseline.timezone: there is no time zone 'Berlin'; give one as in Europe/Berlin",
        ),
    ],
)
def test_a_schedule_that_never_comes_is_a_fault_of_the_catalog(empty_site: Site, text: str, fault: str) -> None:
    path = declare(empty_site, text)
    with pytest.raises(CatalogError) as raised:
        load_catalog(empty_site.catalog.directory)
    assert f"{path}{fault}" in str(raised.value)
