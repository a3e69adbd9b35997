"""A pool in another order: its router's heads keep their rows, and are trained where anything else has changed."""

from __future__ import annotations

from dataclasses import replace

import dagster as dg
import pytest

from trinity_assets.defs.lineage import newest_materialization
from trinity_assets.routing.head import read_heads
from trinity_assets.routing.trainers import ridge
from trinity_assets.store.tables import read_table
from trinity_assets_tests.graph.scripted_models import TASKS
from trinity_assets_tests.graph.small_catalog import HEAD, TABLE, Site

UP_TO_HEAD = f'+key:"{HEAD}"'


def page(site: Site) -> dict[str, object]:
    """What the page of the newest heads says."""
    with site.instance() as instance:
        made = newest_materialization(instance, dg.AssetKey(HEAD.split("/")))
    assert made is not None
    return {name: value.value for name, value in made.metadata.items()}


def test_another_order_moves_rows_and_trains_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_heads(site.store, site.sha256(HEAD))
    assert "seconds_ridge" in page(site) and "reordered" not in page(site)
    site.catalog.edit("workers.yaml", "[direct, terse, long]", "[long, direct, terse]")
    with monkeypatch.context() as patch:
        patch.delattr(ridge, "train")
        built = site.build(UP_TO_HEAD)
    assert built.result.complete and built.built == {TABLE, HEAD} and built.requests == {}
    after = read_heads(site.store, site.sha256(HEAD))
    assert [row.name for row in after.spec.workers] == ["long", "direct", "terse"]
    assert after.weights.keys() == before.weights.keys() == {"ridge", "sep_cma_es"}
    for name, head in before.weights.items():
        assert after.weights[name].tobytes() == head[[2, 0, 1]].tobytes()
    assert after.spec.trainers == before.spec.trainers
    assert after.spec.table_sha256 == site.sha256(TABLE)
    said = page(site)
    assert said["reordered"] == (
        f"nothing was trained: only the pool's order has changed since the heads in {before.sha256}"
    )
    assert not [name for name in said if str(name).startswith("seconds_")]

    # With one answer's verdict changed as well there is something to learn.
    table = read_table(site.store, "router_table", site.sha256(TABLE)).frame
    solved = table[(table["split"] == "train") & (table["benchmark"] == "capitals") & (table["score__direct"] == 1)]
    wrong = solved["task_id"].iloc[0]
    site.catalog.write_tasks(
        replace(task, answer="nowhere") if task.id == wrong else task for tasks in TASKS.values() for task in tasks
    )
    site.catalog.edit("workers.yaml", "[long, direct, terse]", "[direct, terse, long]")
    assert site.build(UP_TO_HEAD).result.complete
    assert "reordered" not in page(site) and "seconds_ridge" in page(site)
    trained = read_heads(site.store, site.sha256(HEAD))
    assert trained.weights["ridge"].tobytes() != before.weights["ridge"].tobytes()
