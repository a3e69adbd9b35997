"""What is built, in which wave, and what is asked for it, after each kind of change.

A wave that a test lists is what one Dagster run materialized; a list of waves is the whole build. Assets that are not
in it were not touched.
"""

from __future__ import annotations

import dataclasses

import pytest

from trinity_assets.checkpoints.directory import load_checkpoint
from trinity_assets.routing.specs import SplitSpec
from trinity_assets.store.tables import read_table
from trinity_assets_tests.graph.scripted_models import (
    ALL_SUMS,
    CAPITALS,
    LOUD,
    SUMS,
    TASKS,
    WORKERS,
    Task,
    solved,
    truncated,
)
from trinity_assets_tests.graph.small_catalog import (
    ALL_ASSETS,
    CHECKPOINT,
    CONTAMINATION,
    DRIFT,
    EVALUATION,
    FEATURES,
    HEAD,
    IN_TURN,
    TABLE,
    WITH_DRIFT,
    Site,
    cell_names,
    names,
)

SNAPSHOT_OF_SUMS = {"benchmarks/sums/tasks", "benchmarks/sums/gold"}


def with_answer(task: Task, answer: str) -> Task:
    return dataclasses.replace(task, answer=answer)


# --- the first build --------------------------------------------------------------------------------------------------


def test_a_cold_start_builds_everything_in_one_wave_and_asks_each_worker_each_task_once(empty_site: Site) -> None:
    built = empty_site.build()
    assert built.waves == [ALL_ASSETS]
    assert built.built == ALL_ASSETS
    assert built.result.complete
    assert built.requests == {"m_direct": SUMS + CAPITALS, "m_terse": SUMS + CAPITALS, "m_long": SUMS + CAPITALS}
    asked = [(one.body["model"], one.messages[-1]["content"]) for one in empty_site.server.received()]
    assert len(set(asked)) == len(asked) == 3 * (SUMS + CAPITALS)
    for worker, model in WORKERS.items():
        for benchmark, count in {"sums": SUMS, "capitals": CAPITALS}.items():
            expected = {task.id: float(solved(model, task)) for task in TASKS[benchmark][:count]}
            assert empty_site.scores(worker, benchmark) == expected


def test_nothing_is_built_or_asked_when_nothing_changed(site: Site) -> None:
    built = site.build()
    assert built.waves == []
    assert built.result.complete
    assert built.requests == {}


# --- workers ----------------------------------------------------------------------------------------------------------


def test_a_prompt_style_is_asked_again_and_the_chain_goes_on_only_where_texts_changed(site: Site) -> None:
    before = site.data_versions(cell_names("answers", ["terse"]) | cell_names("solves", ["terse"]) | {TABLE})
    site.catalog.edit("workers.yaml", "Be brief.", LOUD)
    built = site.build()
    assert built.requests == {"m_terse": SUMS + CAPITALS}
    # PARIS is another text than Paris and the same answer; 42 stays 42. The head's rows name the worker's new digest.
    assert built.waves == [cell_names("answers", ["terse"]), {"solves/terse/capitals"}, *WITH_DRIFT]
    after = site.data_versions(before)
    assert {name for name in before if before[name] != after[name]} == {"answers/terse/capitals"}
    pool = {entry.name: entry for entry in load_checkpoint(site.checkpoint_path()).manifest.pool}
    assert pool["terse"].prompt["system"] == LOUD
    # The old style's answers are still in the ledger.
    site.catalog.edit("workers.yaml", LOUD, "Be brief.")
    built = site.build()
    assert built.requests == {}
    assert built.waves == [cell_names("answers", ["terse"]), {"solves/terse/capitals"}, *WITH_DRIFT]


def test_a_worker_that_is_asked_otherwise_reaches_the_checkpoint_though_no_text_changed(site: Site) -> None:
    """A checkpoint that still names the old digest could not ask its worker any more."""
    site.catalog.edit("workers.yaml", "max_tokens: 32", "max_tokens: 40")
    built = site.build()
    assert built.requests == {"m_direct": SUMS + CAPITALS}
    assert built.waves == [cell_names("answers", ["direct"]), *WITH_DRIFT]
    pool = {entry.name: entry for entry in load_checkpoint(site.checkpoint_path()).manifest.pool}
    assert pool["direct"].sampling["max_tokens"] == 40
    assert site.build().waves == []


def test_a_price_judges_again_and_asks_nobody(site: Site) -> None:
    site.catalog.edit("workers.yaml", "input_per_mtok: 3.0", "input_per_mtok: 4.0")
    built = site.build()
    assert built.requests == {}
    assert built.waves == [{EVALUATION}]


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("providers.yaml", "http://127.0.0.1", "http://localhost"),
        ("providers.yaml", "limits: {concurrency: 4}", "limits: {concurrency: 2, rpm: 600}"),
        ("providers.yaml", "timeout_s: 20", "timeout_s: 30\n    key_env: SOME_KEY"),
        ("providers.yaml", "providers:", "# the provider of the tests\nproviders:"),
        ("workers.yaml", "prompt: plain", "prompt: bare"),
    ],
)
def test_where_and_how_fast_a_provider_is_asked_changes_nothing(site: Site, file: str, old: str, new: str) -> None:
    if "bare" in new:
        site.catalog.edit("workers.yaml", "  plain:", "  bare:")
    site.catalog.edit(file, old, new)
    built = site.build()
    assert built.waves == []
    assert built.requests == {}


def test_a_worker_that_leaves_the_pool_costs_nothing(site: Site) -> None:
    site.catalog.edit("workers.yaml", "[direct, terse, long]", "[direct, long]")
    built = site.build()
    assert built.requests == {}
    assert built.waves == WITH_DRIFT
    assert load_checkpoint(site.checkpoint_path()).manifest.workers == ["direct", "long"]
    # When it comes back, its cells are as they were.
    site.catalog.edit("workers.yaml", "[direct, long]", "[direct, terse, long]")
    built = site.build()
    assert built.requests == {}
    assert built.waves == WITH_DRIFT
    assert load_checkpoint(site.checkpoint_path()).manifest.workers == ["direct", "terse", "long"]


def test_a_new_worker_is_asked_beside_what_exists(site: Site) -> None:
    fourth = "  fourth:\n    provider: scripted\n    model: m_terse\n    prompt: plain\n    sampling: {max_tokens: 8}\n"
    site.catalog.edit("workers.yaml", "prompts:\n", f"{fourth}prompts:\n")
    site.catalog.edit("workers.yaml", "terse, long]", "terse, long, fourth]")
    built = site.build()
    assert built.requests == {"m_terse": SUMS + CAPITALS}
    assert built.waves == [cell_names("answers", ["fourth"]) | cell_names("solves", ["fourth"]), *WITH_DRIFT]


def test_the_pools_order_is_the_order_of_the_heads_rows(site: Site) -> None:
    site.catalog.edit("workers.yaml", "[direct, terse, long]", "[long, direct, terse]")
    built = site.build()
    assert built.requests == {}
    assert built.waves == IN_TURN
    assert load_checkpoint(site.checkpoint_path()).manifest.workers == ["long", "direct", "terse"]


# --- benchmarks -------------------------------------------------------------------------------------------------------


def test_a_larger_limit_asks_only_the_new_tasks(site: Site) -> None:
    site.catalog.edit("benchmarks.yaml", "limit: 24", "limit: 28")
    built = site.build()
    assert built.requests == {"m_direct": 4, "m_terse": 4, "m_long": 4}
    assert built.waves == [
        SNAPSHOT_OF_SUMS,
        {CONTAMINATION, "features/tiny/sums", *cell_names("answers", benchmarks=["sums"])},
        cell_names("solves", benchmarks=["sums"]),
        *WITH_DRIFT,
    ]
    new = [one.messages[-1]["content"] for one in site.server.received("m_direct")[-4:]]
    assert sorted(new) == sorted(f"{task.question} Give a number." for task in TASKS["sums"][SUMS:])
    assert len(site.scores("long", "sums")) == ALL_SUMS


def test_a_corrected_gold_answer_asks_nobody_and_reaches_the_verdict(site: Site) -> None:
    """Of a held-out task: the heads that come out are the same, and what is said of them is not."""
    frame = read_table(site.store, "router_table", site.sha256(TABLE)).frame
    held_out = set(frame["task_id"][frame["split"] == "test"])
    task = next(task for task in TASKS["sums"][:SUMS] if task.id in held_out and solved("m_terse", task))
    before = site.data_versions(ALL_ASSETS)
    site.catalog.write_tasks(with_answer(one, "7") if one == task else one for one in TASKS["sums"])
    built = site.build()
    assert built.requests == {}
    assert built.waves == [SNAPSHOT_OF_SUMS, cell_names("solves", benchmarks=["sums"]), *WITH_DRIFT]
    after = site.data_versions(ALL_ASSETS)
    wrong_now = {f"solves/{worker}/sums" for worker, model in WORKERS.items() if solved(model, task)}
    changed = {name for name in ALL_ASSETS if before[name] != after[name]}
    assert changed == {"benchmarks/sums/gold", *wrong_now, TABLE, EVALUATION, CHECKPOINT}


def test_a_gold_answer_that_changes_no_verdict_ends_there(site: Site) -> None:
    paris = TASKS["capitals"][0]
    site.catalog.write_tasks(with_answer(one, "PARIS") if one == paris else one for one in TASKS["capitals"])
    built = site.build()
    assert built.requests == {}
    assert built.waves == [
        {"benchmarks/capitals/tasks", "benchmarks/capitals/gold"},
        cell_names("solves", benchmarks=["capitals"]),
        {DRIFT},
    ]


def test_a_reworded_question_asks_for_that_task_alone(site: Site) -> None:
    paris = TASKS["capitals"][0]
    reworded = dataclasses.replace(paris, question="Tell me: What is the capital city of France?")
    site.catalog.write_tasks(reworded if one == paris else one for one in TASKS["capitals"])
    built = site.build()
    assert built.requests == {"m_direct": 1, "m_terse": 1, "m_long": 1}
    # The answers are the same texts, so nothing is graded again; the features are others.
    assert built.waves == [
        {"benchmarks/capitals/tasks", "benchmarks/capitals/gold"},
        {CONTAMINATION, "features/tiny/capitals", *cell_names("answers", benchmarks=["capitals"])},
        *WITH_DRIFT,
    ]


def test_a_quarantined_task_asks_nobody_and_leaves_every_table(site: Site) -> None:
    out, reason = TASKS["capitals"][3], "has | two capitals"
    before = site.data_version(CONTAMINATION)
    entry = f'quarantine: [{{id: {out.id}, reason: "{reason}", date: 2026-01-31}}]'
    site.catalog.edit("benchmarks.yaml", "settlement: {refused", f"{entry}\n    settlement: {{refused")
    built = site.build()
    assert built.requests == {}
    assert built.waves == [
        {"benchmarks/capitals/tasks", "benchmarks/capitals/gold"},
        {CONTAMINATION, "features/tiny/capitals", *cell_names("answers", benchmarks=["capitals"])},
        cell_names("solves", benchmarks=["capitals"]),
        *WITH_DRIFT,
    ]
    assert set(site.scores("direct", "capitals")) == {task.id for task in TASKS["capitals"]} - {out.id}
    assert site.data_version(CONTAMINATION) == before
    assert site.metadata("benchmarks/capitals/tasks", "quarantined") == "1"
    assert site.metadata("benchmarks/capitals/tasks", "quarantine") == f"- `{out.id}` (2026-01-31): {reason}"
    site.catalog.edit("benchmarks.yaml", reason, "another reason")
    assert site.build().waves == []
    # Back again: it was paid for, and nothing is asked.
    site.catalog.edit("benchmarks.yaml", entry.replace(reason, "another reason"), "")
    assert site.build().requests == {}
    assert len(site.scores("direct", "capitals")) == CAPITALS


def test_a_task_of_another_benchmark_is_reported(site: Site) -> None:
    assert site.metadata(CONTAMINATION, "rows") == "0"
    twin = dataclasses.replace(TASKS["sums"][0], question=TASKS["capitals"][5].question.upper())
    site.catalog.write_tasks([twin, *TASKS["sums"][1:]])
    assert CONTAMINATION in site.build().built
    report = read_table(site.store, "contamination", site.sha256(CONTAMINATION))
    capital = TASKS["capitals"][5].id
    assert report.frame.values.tolist() == [
        ["sums", twin.id, "capitals", capital, "exact", 1.0],
        ["capitals", capital, "sums", twin.id, "exact", 1.0],
    ]
    assert set(report.inputs) == {"benchmarks/sums/tasks", "benchmarks/capitals/tasks"}
    assert site.metadata(CONTAMINATION, "rows") == "2"
    assert site.metadata(CONTAMINATION, "pairs").splitlines()[2:] == [
        "| sums | capitals | 1 | 0 | 0 | 0 |",
        "| capitals | sums | 1 | 0 | 0 | 0 |",
    ]
    asked = TASKS["capitals"][5].question
    assert site.metadata(CONTAMINATION, "preview").splitlines()[2:] == [
        f"| sums | {twin.id} | {asked.upper()} | capitals | {capital} | {asked} | exact | 1.000 |"
    ]


def test_one_benchmark_has_no_contamination_report(site: Site) -> None:
    site.catalog.edit("routers.yaml", "[sums, capitals]", "[sums]")
    assert CONTAMINATION not in names(site.definitions().resolve_all_asset_keys())


def test_a_benchmarks_prompt_is_asked_again_and_leaves_the_features_alone(site: Site) -> None:
    site.catalog.edit("benchmarks.yaml", "Give a number.", "Give one number.")
    built = site.build()
    assert built.requests == {"m_direct": SUMS, "m_terse": SUMS, "m_long": SUMS}
    assert built.waves == [cell_names("answers", benchmarks=["sums"]), {DRIFT}]


def test_another_grader_asks_nobody(site: Site) -> None:
    site.catalog.edit("benchmarks.yaml", "exact}\n    settlement: {truncated", "number}\n    settlement: {truncated")
    built = site.build()
    assert built.requests == {}
    # The verdicts are the same, so it ends there.
    assert built.waves == [cell_names("solves", benchmarks=["sums"]), {DRIFT}]


def test_another_settlement_asks_nobody_and_goes_as_far_as_scores_change(site: Site) -> None:
    site.catalog.edit("benchmarks.yaml", "truncated: unsolved", "truncated: missing")
    built = site.build()
    assert built.requests == {}
    assert built.waves == [cell_names("solves", benchmarks=["sums"]), *WITH_DRIFT]
    cut = {task.id for task in TASKS["sums"][:SUMS] if truncated("m_long", task)}
    scores = site.scores("long", "sums")
    assert len(cut) == 3
    assert {task_id for task_id, score in scores.items() if score is None} == cut


# --- backbones and routers --------------------------------------------------------------------------------------------


def test_a_backbones_setting_extracts_again_and_asks_nobody(site: Site) -> None:
    site.catalog.edit("backbones.yaml", "position: -2", "position: -1")
    built = site.build()
    assert built.requests == {}
    assert built.waves == [FEATURES, *IN_TURN]


def test_a_trainers_setting_trains_again(site: Site) -> None:
    site.catalog.edit("routers.yaml", "generations: 5", "generations: 9")
    built = site.build()
    assert built.requests == {}
    assert built.waves == [{HEAD}, {EVALUATION}, {CHECKPOINT}]


def test_the_exported_trainer_is_the_checkpoints_alone(site: Site) -> None:
    site.catalog.edit("routers.yaml", "export: ridge", "export: sep_cma_es")
    built = site.build()
    assert built.requests == {}
    assert built.waves == [{CHECKPOINT}]
    assert load_checkpoint(site.checkpoint_path()).manifest.trainer.kind == "sep_cma_es"


def test_another_split_is_the_routers_alone(site: Site) -> None:
    site.catalog.edit("routers.yaml", "seed: 0", "seed: 1")
    built = site.build()
    assert built.requests == {}
    assert built.waves == IN_TURN
    spec = read_table(site.store, "router_table", site.sha256(TABLE)).spec
    assert SplitSpec.model_validate(spec["split"]) == SplitSpec(seed=1, test=0.4)


def test_looks_at_the_held_out_tasks_are_counted_and_the_published_checkpoint_is_challenged(site: Site) -> None:
    """Another head is another look; the same one judged again is none."""
    published = site.checkpoint_path().name
    assert site.metadata(EVALUATION, "looks") == "1"
    site.catalog.edit("routers.yaml", "generations: 5", "generations: 6")
    assert site.build().built == {HEAD, EVALUATION, CHECKPOINT}
    assert site.metadata(EVALUATION, "looks") == "2"
    assert f"against {published}, which is published and has " in site.metadata(EVALUATION, "report")
    site.catalog.edit("workers.yaml", "input_per_mtok: 1.0", "input_per_mtok: 4.0")
    assert EVALUATION in site.build().built
    assert site.metadata(EVALUATION, "looks") == "2"
    # Another router's heads have looked at the same tasks as well.
    site.catalog.edit("routers.yaml", "  small:", "  other:")
    site.catalog.edit("routers.yaml", "generations: 6", "generations: 7")
    assert site.build('+key:"routers/other/evaluation"').result.complete
    assert site.metadata("routers/other/evaluation", "looks") == "3"
