"""A router that drops workers: who is in it after which outage, what is built for that, and how it heals."""

from __future__ import annotations

from pathlib import Path

from trinity_assets.checkpoints.directory import load_checkpoint
from trinity_assets.checkpoints.manifest import Manifest
from trinity_assets.defs import keys
from trinity_assets.defs.build import pending, select
from trinity_assets.defs.dropping import dropped_workers
from trinity_assets.defs.lineage import recorded_metadata
from trinity_assets.routing.results import read_evaluation
from trinity_assets.store.tables import read_table
from trinity_assets_tests.graph.scripted_models import CAPITALS, SUMS, TASKS, behaving
from trinity_assets_tests.graph.small_catalog import ALL_ASSETS, CONTAMINATION, DRIFT, ROUTER, Site, cell_names, names
from trinity_assets_tests.scripted_server import Behaviour, Received, Reply, status

TABLE, HEAD, EVALUATION, CHECKPOINT = ROUTER
IN_TURN = [{TABLE}, {HEAD}, {EVALUATION}, {CHECKPOINT}]
WITH_DRIFT = [{TABLE, DRIFT}, *IN_TURN[1:]]
CELLS_OF_LONG = cell_names("answers", ["long"]) | cell_names("solves", ["long"])
NEVER = "answers on sums were never complete; answers on capitals were never complete"


def drop_workers(site: Site) -> None:
    site.catalog.edit("routers.yaml", "export: ridge", "export: ridge\n    on_incomplete: drop_worker")


def go_down(site: Site, model: str) -> None:
    """Refuse ``model`` from now on: a failure that nobody waits for."""
    site.server.script(model, status(401))


def knowing_only(site: Site, benchmark: str) -> Behaviour:
    """A model that answers the questions of one benchmark and refuses the others."""
    questions = [task.question for task in TASKS[benchmark]]

    def behave(received: Received) -> Reply:
        known = any(question in received.messages[-1]["content"] for question in questions)
        return (behaving(site.server) if known else status(401))(received)

    return behave


def come_up(site: Site, model: str) -> None:
    site.server.script(model, behaving(site.server))


def manifest(site: Site) -> Manifest:
    with site.instance() as instance:
        path = recorded_metadata(instance, keys.checkpoint("small"), "path")
    assert path is not None
    return load_checkpoint(Path(path)).manifest


def said_dropped(manifest: Manifest) -> dict[str, str]:
    return {worker.name: worker.reason for worker in manifest.dropped}


def test_an_outage_leaves_its_worker_out_until_it_is_over(site: Site, empty_site: Site) -> None:
    undisturbed, disturbed = site, empty_site
    drop_workers(disturbed)
    go_down(disturbed, "m_long")
    broken = disturbed.build()
    assert broken.waves == [ALL_ASSETS, {*ROUTER, DRIFT}]
    assert broken.built == ALL_ASSETS - CELLS_OF_LONG
    assert names(broken.result.failed) == set(broken.messages) == cell_names("answers", ["long"])
    assert names(broken.result.waiting) == cell_names("solves", ["long"])
    assert not broken.result.complete
    assert broken.result.dropped == {"small": {"long": NEVER}}
    assert broken.requests["m_direct"] == broken.requests["m_terse"] == SUMS + CAPITALS

    table = read_table(disturbed.store, "router_table", disturbed.sha256(TABLE))
    scores = table.frame.columns[table.frame.columns.str.startswith("score__")]
    assert scores.tolist() == ["score__direct", "score__terse"]
    assert [row["name"] for row in table.spec["pool"]] == ["direct", "terse"]
    evaluation = read_evaluation(disturbed.store, disturbed.sha256(EVALUATION)).evaluation
    assert evaluation.workers == ("direct", "terse")
    assert [worker.model_dump() for worker in evaluation.dropped] == [{"name": "long", "reason": NEVER}]
    published = manifest(disturbed)
    assert (published.workers, said_dropped(published)) == (["direct", "terse"], {"long": NEVER})
    assert (published.rows.workers, published.offsets) == (2, (0.0, 0.0))
    assert set(published.data.solves) == set(published.data.answers)
    assert set(published.data.solves) == {f"{worker}/{b}" for worker in ("direct", "terse") for b in TASKS}
    with disturbed.instance() as instance:
        for key in (keys.table("small"), keys.checkpoint("small")):
            assert dropped_workers(instance, key) == {"long": NEVER}

    # What failed is tried again, and nothing is trained again for that.
    still = disturbed.build()
    assert still.waves == [CELLS_OF_LONG]
    assert still.built == set()
    assert set(still.requests) == {"m_long"}
    assert still.result.dropped == {"small": {"long": NEVER}}

    # One cell of two is complete now: another reason, which the checkpoint is to say.
    disturbed.server.script("m_long", knowing_only(disturbed, "capitals"))
    partly = disturbed.build()
    assert partly.waves == [CELLS_OF_LONG, *WITH_DRIFT]
    assert names(partly.result.failed) == {"answers/long/sums"}
    assert said_dropped(manifest(disturbed)) == {"long": "answers on sums were never complete"}

    come_up(disturbed, "m_long")
    disturbed.new_requests()
    healed = disturbed.build()
    assert healed.waves == [{"answers/long/sums", "solves/long/sums"}, *WITH_DRIFT]
    assert healed.requests == {"m_long": SUMS}
    assert healed.result.complete
    assert healed.result.dropped == {}
    published = manifest(disturbed)
    assert (published.workers, published.dropped) == (["direct", "terse", "long"], ())
    decided = ALL_ASSETS - {CHECKPOINT}
    assert disturbed.data_versions(decided) == undisturbed.data_versions(decided)
    assert disturbed.build().waves == []


def test_a_worker_that_fails_after_an_edit_is_left_out_and_comes_back_though_it_answers_the_same(site: Site) -> None:
    """With the same answers its solves are what they were, and nothing tells Dagster that the table is to change."""
    drop_workers(site)
    site.catalog.edit("workers.yaml", "max_tokens: 32", "max_tokens: 40")
    go_down(site, "m_direct")
    reason = "; ".join(
        f"answers on {benchmark} were made with other settings (sampling.max_tokens: 32 -> 40)"
        for benchmark in ("sums", "capitals")
    )
    broken = site.build()
    assert broken.waves == [cell_names("answers", ["direct"]), *WITH_DRIFT]
    assert names(broken.result.failed) == cell_names("answers", ["direct"])
    assert set(broken.requests) == {"m_direct"}
    assert (manifest(site).workers, said_dropped(manifest(site))) == (["terse", "long"], {"direct": reason})
    assert site.build().waves == [cell_names("answers", ["direct"])]

    come_up(site, "m_direct")
    site.new_requests()
    asked = site.build("tag:worker=direct")
    assert asked.waves == [cell_names("answers", ["direct"])]
    assert asked.requests == {"m_direct": SUMS + CAPITALS}
    assert asked.result.dropped == {}, "the router is not selected"
    with site.instance() as instance:
        definitions = site.definitions()
        (state,) = pending(definitions, instance, select(definitions, None))
    assert (state.key, state.state, state.causes) == (keys.table("small"), "stale", ("direct is complete now",))
    assert site.build().waves == IN_TURN
    assert manifest(site).dropped == ()
    assert manifest(site).pool[0].sampling["max_tokens"] == 40
    assert site.build().waves == []


def test_answers_to_some_of_the_tasks_are_said_to_be_some(site: Site) -> None:
    drop_workers(site)
    site.catalog.edit("benchmarks.yaml", "limit: 24", "limit: 26")
    go_down(site, "m_long")
    broken = site.build()
    assert broken.waves == [
        {"benchmarks/sums/tasks", "benchmarks/sums/gold"},
        {CONTAMINATION, "features/tiny/sums", *cell_names("answers", benchmarks=["sums"])},
        cell_names("solves", ["direct", "terse"], ["sums"]),
        *WITH_DRIFT,
    ]
    assert names(broken.result.failed) == {"answers/long/sums"}
    assert (broken.requests["m_direct"], broken.requests["m_terse"]) == (2, 2)
    assert said_dropped(manifest(site)) == {"long": "answers on sums cover 24 of 26 tasks"}
    come_up(site, "m_long")
    site.new_requests()
    healed = site.build()
    assert healed.waves == [{"answers/long/sums"}, {"solves/long/sums"}, *WITH_DRIFT]
    assert healed.requests == {"m_long": 2}
    assert manifest(site).workers == ["direct", "terse", "long"]


def test_earlier_answers_that_cover_every_task_are_as_good_though_the_newest_attempt_failed(site: Site) -> None:
    drop_workers(site)
    (site.home / "ledger.sqlite").unlink()
    site.catalog.edit("benchmarks.yaml", "limit: 24", "limit: 20")
    go_down(site, "m_long")
    built = site.build()
    assert names(built.result.failed) == {"answers/long/sums"}
    assert built.waves[-4:] == WITH_DRIFT
    assert built.result.dropped == {}
    assert manifest(site).workers == ["direct", "terse", "long"]
    frame = read_table(site.store, "router_table", site.sha256(TABLE)).frame
    assert len(frame) == 20 + CAPITALS
    assert frame["score__long"].notna().all()


def test_with_fewer_than_two_workers_left_nothing_is_trained(empty_site: Site) -> None:
    drop_workers(empty_site)
    go_down(empty_site, "m_long")
    go_down(empty_site, "m_terse")
    broken = empty_site.build()
    assert broken.waves == [ALL_ASSETS, {*ROUTER, DRIFT}]
    assert names(broken.result.failed) == {*cell_names("answers", ["terse", "long"]), TABLE}
    assert names(broken.result.waiting) == {*cell_names("solves", ["terse", "long"]), HEAD, EVALUATION, CHECKPOINT}
    assert broken.messages[TABLE] == (
        "router small has direct left to choose, and needs 2 workers with complete cells:\n"
        f"  without terse: {NEVER}\n"
        f"  without long: {NEVER}\n"
        "Build again to ask for what is missing, or give the router a pool of other workers"
    )
    assert broken.result.dropped == {}


def test_a_worker_that_nobody_asked_is_waited_for(empty_site: Site) -> None:
    """Left out is who was tried in vain, not who was not selected."""
    drop_workers(empty_site)
    empty_site.build("+(tag:worker=direct or tag:worker=terse)")
    empty_site.build('+key:"features/*"')
    built = empty_site.build("tag:router=small")
    assert built.waves == []
    assert names(built.result.waiting) == set(ROUTER)
    assert built.requests == {}
