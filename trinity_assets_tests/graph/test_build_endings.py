"""Builds that do not simply go through: edits meanwhile, outages, selections, damaged artifacts; their pages.

A wave that a test lists is what one Dagster run materialized.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest

from trinity_assets.checkpoints.directory import load_checkpoint
from trinity_assets.defs.benchmarks import shown_gold
from trinity_assets.defs.build import Executed, build, select
from trinity_assets.defs.lineage import recorded_metadata
from trinity_assets.errors import SelectionError
from trinity_assets.workers import collection
from trinity_assets.workers.retrying import RetryPolicy
from trinity_assets_tests.graph.scripted_models import (
    ALL_SUMS,
    CAPITALS,
    LOUD,
    SUMS,
    TASKS,
    WORKERS,
    behaving,
)
from trinity_assets_tests.graph.small_catalog import (
    ALL_ASSETS,
    CHECKPOINT,
    DRIFT,
    EVALUATION,
    HEAD,
    ROUTER,
    TABLE,
    WITH_DRIFT,
    Site,
    cell_names,
    execute_here,
    names,
)
from trinity_assets_tests.scripted_server import status

# --- editing while a build runs ---------------------------------------------------------------------------------------


def test_an_edit_during_a_build_ends_it_instead_of_building_for_ever(site: Site) -> None:
    site.catalog.edit("routers.yaml", "generations: 5", "generations: 6")
    known = site.definitions()
    waves: list[set[str]] = []

    def execute(instance: dg.DagsterInstance, keys: Sequence[dg.AssetKey]) -> Executed:
        if not waves:
            site.catalog.edit("routers.yaml", "generations: 6", "generations: 7")
        assert len(waves) < 3
        waves.append(names(keys))
        return execute_here(site.definitions())(instance, keys)

    with site.instance() as instance:
        result = build(known, instance, select(known, None), execute, lambda wave: None)
    assert waves == [{HEAD}]
    assert not result.complete
    assert names(result.waiting) == {HEAD, EVALUATION, CHECKPOINT}
    assert site.build().waves == [{EVALUATION}, {CHECKPOINT}]


# --- outages ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries as many as ever, without the waiting."""
    monkeypatch.setattr(collection, "RetryPolicy", lambda: RetryPolicy(base_s=0.001, cap_s=0.002))


@pytest.mark.usefixtures("hasty")
def test_an_outage_keeps_what_was_answered_and_is_healed_by_asking_for_the_rest(site: Site, empty_site: Site) -> None:
    undisturbed, disturbed = site, empty_site
    good = behaving(disturbed.server)
    disturbed.server.script("m_long", *[good] * 10, status(500))
    broken = disturbed.build()
    cells = cell_names("answers", ["long"])
    waiting = cell_names("solves", ["long"]) | set(ROUTER)
    assert broken.waves == [ALL_ASSETS, {DRIFT}], "what failed holds up no comparison"
    assert names(broken.result.failed) == cells
    assert names(broken.result.waiting) == waiting
    assert broken.built == ALL_ASSETS - cells - waiting
    assert broken.requests["m_direct"] == broken.requests["m_terse"] == SUMS + CAPITALS
    assert set(broken.messages) == cells
    assert sum("are missing (provider scripted: " in message for message in broken.messages.values()) == 2
    kept = [int(m.rpartition("\nthe ")[2].split(" ")[0]) for m in broken.messages.values()]
    assert sum(kept) == 10

    disturbed.server.script("m_long", good)
    healed = disturbed.build()
    assert healed.waves == [cells | waiting, {DRIFT}]
    assert healed.result.complete
    assert healed.requests == {"m_long": SUMS + CAPITALS - 10}
    # The checkpoint names its artifacts, and those hold latencies.
    decided = ALL_ASSETS - {CHECKPOINT}
    assert disturbed.data_versions(decided) == undisturbed.data_versions(decided)


@pytest.mark.usefixtures("hasty")
def test_an_outage_of_a_changed_worker_leaves_the_router_as_it_was(site: Site) -> None:
    site.server.script("m_terse", status(503))
    site.catalog.edit("workers.yaml", "Be brief.", LOUD)
    broken = site.build()
    assert broken.waves == [cell_names("answers", ["terse"]), {DRIFT}]
    assert names(broken.result.failed) == cell_names("answers", ["terse"])
    assert names(broken.result.waiting) == {TABLE, HEAD}
    assert load_checkpoint(site.checkpoint_path()).manifest.pool[1].prompt["system"] == "Be brief."
    site.server.script("m_terse", behaving(site.server))
    site.new_requests()
    healed = site.build()
    assert healed.requests == {"m_terse": SUMS + CAPITALS}
    assert healed.waves == [cell_names("answers", ["terse"]), {"solves/terse/capitals"}, *WITH_DRIFT]


# --- selections -------------------------------------------------------------------------------------------------------


def test_only_the_selection_is_built(site: Site) -> None:
    site.catalog.edit("workers.yaml", "Be brief.", LOUD)
    site.catalog.edit("workers.yaml", "max_tokens: 32", "max_tokens: 33")
    built = site.build("tag:worker=terse")
    assert built.requests == {"m_terse": SUMS + CAPITALS}
    assert built.waves == [cell_names("answers", ["terse"]), {"solves/terse/capitals"}]
    assert built.result.complete


def test_a_selection_can_bring_what_it_needs(empty_site: Site) -> None:
    built = empty_site.build('+(tag:worker=terse and tag:benchmark=capitals and key:"solves/*")')
    assert built.requests == {"m_terse": CAPITALS}
    assert built.waves == [
        {"benchmarks/capitals/tasks", "benchmarks/capitals/gold", "answers/terse/capitals", "solves/terse/capitals"}
    ]
    assert built.result.complete


def test_a_selection_whose_upstream_was_never_built_waits(empty_site: Site) -> None:
    built = empty_site.build("tag:worker=terse")
    assert built.waves == []
    assert built.requests == {}
    assert names(built.result.waiting) == cell_names("answers", ["terse"]) | cell_names("solves", ["terse"])


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        ('key:"answers', "cannot read the selection 'key:\"answers'"),
        ("worker=terse", "cannot read the selection 'worker=terse'"),
        ("tag:worker=nobody", "holds no asset; `trinity-assets build --dry-run` shows those to build"),
    ],
)
def test_a_bad_selection_is_refused(site: Site, selection: str, said: str) -> None:
    with pytest.raises(SelectionError, match=said):
        select(site.definitions(), selection)


# --- artifacts --------------------------------------------------------------------------------------------------------


def test_a_damaged_artifact_fails_the_step_that_reads_it_with_what_to_do(site: Site) -> None:
    sha256 = site.sha256("answers/long/capitals")
    damaged = Path(site.store.path(sha256))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    site.catalog.edit("benchmarks.yaml", "refused: unsolved", "refused: missing")
    built = site.build()
    assert built.waves == [cell_names("solves", benchmarks=["capitals"]), {DRIFT}]
    assert built.built == {"solves/direct/capitals", "solves/terse/capitals", DRIFT}
    assert names(built.result.failed) == {"solves/long/capitals"}
    assert names(built.result.waiting) == set()
    message = built.messages["solves/long/capitals"]
    assert message.startswith(f"artifact {damaged} is damaged: its bytes hash to ")
    assert "build the asset that made it again (`trinity-assets build --rebuild`)" in message


def test_the_manifest_names_the_artifacts_that_the_checkpoint_was_made_from(site: Site) -> None:
    data = load_checkpoint(site.checkpoint_path()).manifest.data
    assert data.table == site.sha256(TABLE)
    for benchmark in TASKS:
        assert data.tasks[benchmark] == site.sha256(f"benchmarks/{benchmark}/tasks")
        assert data.gold[benchmark] == site.sha256(f"benchmarks/{benchmark}/gold")
        assert data.features[benchmark] == site.sha256(f"features/tiny/{benchmark}")
        for worker in WORKERS:
            cell = f"{worker}/{benchmark}"
            assert data.answers[cell] == site.sha256(f"answers/{cell}")
            assert data.solves[cell] == site.sha256(f"solves/{cell}")
    assert len(data.answers) == len(data.solves) == 6
    assert set(data.tasks) == set(data.gold) == set(data.features) == set(TASKS)


def test_a_benchmarks_page_says_where_its_tasks_come_from(site: Site) -> None:
    names_of_facts = ("source", "source_rows", "limit", "seed", "inputs")
    with site.instance() as instance:
        found = {
            benchmark: [
                recorded_metadata(instance, dg.AssetKey(["benchmarks", benchmark, "tasks"]), name)
                for name in names_of_facts
            ]
            for benchmark in ("sums", "capitals")
        }
    assert found == {
        "sums": ["file sums.jsonl", str(ALL_SUMS), str(SUMS), None, None],
        "capitals": ["file capitals.jsonl", str(CAPITALS), None, None, None],
    }


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        ({"answer": "4"}, "4"),
        (
            {"answer": "She has " + "many " * 40 + "of them.\n#### 42"},
            "She has" + " many" * 7 + " ..." + " many" * 5 + " of them. #### 42",
        ),
        ({"answer": ["Paris", "paris"]}, '["Paris","paris"]'),
        (
            {"test": "def check(f):\n    assert f(1) == 2\n    assert f(2) == 3\n", "entry_point": "f"},
            "assert f(1) == 2",
        ),
        ({"tests": ["assert g(1) == 1", "assert g(2)"], "imports": []}, "assert g(1) == 1"),
        ({"dataset": "maze", "entry": {"answer": "3"}}, '{"answer":"3"}'),
    ],
)
def test_gold_is_shown_as_a_person_looks_for_it(payload: dict[str, object], shown: str) -> None:
    assert shown_gold(payload) == shown
