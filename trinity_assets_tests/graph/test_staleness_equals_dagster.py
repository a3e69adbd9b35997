"""What the build takes for up to date is what the UI shows as such, asked through the API that the UI asks."""

from __future__ import annotations

import dataclasses

import dagster as dg
import pytest

# Dagster has no public way to its API without a server; a code server for each question would take seconds.
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster_graphql.cli import execute_query

from trinity_assets.defs.staleness import asset_states
from trinity_assets.workers import collection
from trinity_assets.workers.retrying import RetryPolicy
from trinity_assets_tests.graph.scripted_models import LOUD, TASKS, WORKERS, behaving
from trinity_assets_tests.graph.small_catalog import ALL_ASSETS, DRIFT, Site, cell_names
from trinity_assets_tests.scripted_server import status

QUERY = "{ assetNodes { assetKey { path } staleStatus } }"

# Dagster calls an asset fresh that its last run failed to make anew, as long as what exists is of the current versions.
SHOWN_AS = {"fresh": "FRESH", "failed": "FRESH", "stale": "STALE", "missing": "MISSING"}


def shown_by_dagster(instance: dg.DagsterInstance) -> dict[str, str]:
    """The stale status of every asset of the catalog as it is written now."""
    origin = InProcessCodeLocationOrigin(
        LoadableTargetOrigin(module_name="trinity_assets.definitions", executable_path=None),
        location_name="trinity_assets",
    )
    with WorkspaceProcessContext(instance, InProcessWorkspaceLoadTarget(origin)) as context:
        reply = execute_query(context, QUERY)
    assert "errors" not in reply, reply
    return {"/".join(node["assetKey"]["path"]): node["staleStatus"] for node in reply["data"]["assetNodes"]}


def compare(site: Site) -> dict[str, str]:
    """Hold the two against each other and return what both say."""
    with site.instance() as instance:
        shown = shown_by_dagster(instance)
        ours = asset_states(site.definitions(), instance)
    assert {key.to_user_string(): SHOWN_AS[state.state] for key, state in ours.items()} == shown
    return shown


def not_fresh(shown: dict[str, str]) -> dict[str, str]:
    return {name: state for name, state in shown.items() if state != "FRESH"}


def test_before_the_first_build(empty_site: Site) -> None:
    assert compare(empty_site) == dict.fromkeys(ALL_ASSETS, "MISSING")


def test_after_edits_of_every_kind(site: Site) -> None:
    assert compare(site) == dict.fromkeys(ALL_ASSETS, "FRESH")

    site.catalog.edit("workers.yaml", "Be brief.", LOUD)
    router = {"routers/small/table": "STALE", "routers/small/head": "STALE", DRIFT: "STALE"}
    cells = {"answers/terse/sums": "STALE", "answers/terse/capitals": "STALE"}
    assert not_fresh(compare(site)) == router | cells

    site.build("tag:worker=terse")
    assert not_fresh(compare(site)) == router

    paris = TASKS["capitals"][0]
    wrong = [dataclasses.replace(one, answer="Rome") if one == paris else one for one in TASKS["capitals"]]
    site.catalog.write_tasks(wrong)
    snapshot = {"benchmarks/capitals/tasks": "STALE", "benchmarks/capitals/gold": "STALE"}
    assert not_fresh(compare(site)) == router | snapshot

    site.build("tag:benchmark=capitals and group:benchmarks")
    graded = {f"solves/{worker}/capitals": "STALE" for worker in WORKERS}
    assert not_fresh(compare(site)) == router | graded

    site.catalog.edit("workers.yaml", "[direct, terse, long]", "[direct, long]")
    gone = cell_names("answers", ["terse"]) | cell_names("solves", ["terse"])
    shown = compare(site)
    assert set(shown) == ALL_ASSETS - gone
    changed = {"routers/small/evaluation": "STALE"}  # it knows the pool's prices
    left = {name: state for name, state in graded.items() if name not in gone}
    assert not_fresh(shown) == router | left | changed

    site.build()
    assert not_fresh(compare(site)) == {}


def test_after_a_failure(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "RetryPolicy", lambda: RetryPolicy(attempts=1))
    site.server.script("m_long", status(401))
    site.catalog.edit("benchmarks.yaml", "limit: 24", "limit: 26")
    site.build()
    kept = {"answers/long/sums", "solves/long/sums"}
    stale = kept | {"routers/small/table"}
    assert not_fresh(compare(site)) == dict.fromkeys(stale, "STALE")
    site.server.script("m_long", behaving(site.server))
    site.build()
    assert not_fresh(compare(site)) == {}


def test_after_a_worker_was_dropped(empty_site: Site) -> None:
    empty_site.catalog.edit("routers.yaml", "export: ridge", "export: ridge\n    on_incomplete: drop_worker")
    empty_site.server.script("m_long", status(401))
    empty_site.build()
    never = cell_names("answers", ["long"]) | cell_names("solves", ["long"])
    assert not_fresh(compare(empty_site)) == dict.fromkeys(never, "MISSING")
