"""What a router's table says about routing before anything is trained, in the graph."""

from __future__ import annotations

import dagster as dg
import pytest

from trinity_assets.defs.headroom import WORTH_ROUTING
from trinity_assets.defs.lineage import newest_materialization
from trinity_assets.routing.headroom import headroom
from trinity_assets.routing.pool_admission import admissions, admissions_lines
from trinity_assets.routing.table import ROUTER_TABLE
from trinity_assets.store.tables import read_table
from trinity_assets_tests.graph.scripted_models import WORKERS
from trinity_assets_tests.graph.small_catalog import TABLE, Site
from trinity_assets_tests.scripted_server import answer

KEY = dg.AssetKey(TABLE.split("/"))
UP_TO_TABLE = f'+key:"{TABLE}"'


def checked(site: Site) -> tuple[bool, str]:
    """Whether the newest check of the table passed, and what it says; it never blocks."""
    key = dg.AssetCheckKey(KEY, WORTH_ROUTING)
    with site.instance() as instance:
        record = instance.event_log_storage.get_latest_asset_check_execution_by_key([key])[key]
    assert record.event is not None and record.event.dagster_event is not None
    evaluation = record.event.dagster_event.asset_check_evaluation_data
    assert (evaluation.severity, evaluation.blocking) == (dg.AssetCheckSeverity.WARN, False)
    return evaluation.passed, str(evaluation.description)


def test_the_page_of_a_table_says_what_a_router_could_gain(site: Site) -> None:
    frame = read_table(site.store, ROUTER_TABLE, site.sha256(TABLE)).frame
    found = headroom(frame, list(WORKERS))
    assert found.oracle is not None and found.nothing_to_route is not None
    with site.instance() as instance:
        materialization = newest_materialization(instance, KEY)
    assert materialization is not None
    shown = {name: value.value for name, value in materialization.metadata.items()}
    assert shown["headroom_oracle"] == pytest.approx(found.oracle.value, rel=1e-5)
    assert shown["detectable"] == pytest.approx(found.detectable, rel=1e-5)
    assert "headroom_cross_fitted" not in shown
    assert str(shown["headroom"]).startswith("- **Nothing to route**: too few tasks")
    added = admissions_lines(admissions(frame, list(WORKERS)))
    assert len(added) == 1 + len(WORKERS)
    assert all(line in str(shown["headroom"]) for line in added)
    assert checked(site) == (False, f"nothing to route: {found.nothing_to_route}")


def test_workers_that_answer_alike_are_warned_of(empty_site: Site) -> None:
    for model in WORKERS.values():
        empty_site.server.script(model, answer("Paris"))
    assert empty_site.build(UP_TO_TABLE).result.complete
    passed, said = checked(empty_site)
    assert not passed
    assert said.startswith("nothing to route: all workers score the same on each of ")


def test_several_samples_take_the_noise_out(empty_site: Site) -> None:
    for model in WORKERS.values():
        empty_site.catalog.edit("workers.yaml", f"model: {model}\n", f"model: {model}\n    samples: 2\n")
    assert empty_site.build(UP_TO_TABLE).result.complete
    with empty_site.instance() as instance:
        materialization = newest_materialization(instance, KEY)
    assert materialization is not None
    shown = {name: value.value for name, value in materialization.metadata.items()}
    # These models answer alike each time, so there is no noise to take out.
    assert shown["headroom_cross_fitted"] == shown["headroom_oracle"]
