"""A recorded worker in the graph: exactly what an edited file, mapping or gold answer rebuilds, and nobody is asked."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trinity_assets.by_hand import ask_worker
from trinity_assets.catalog.loading import load_catalog
from trinity_assets.checkpoints.directory import Checkpoint, load_checkpoint
from trinity_assets.cli import app
from trinity_assets.defs import keys
from trinity_assets.defs.lineage import newest_materialization, recorded_metadata
from trinity_assets.errors import RecordedError
from trinity_assets.files import file_sha256
from trinity_assets.store.tables import read_table
from trinity_assets_tests.graph.scripted_models import SUMS, TASKS, solved
from trinity_assets_tests.graph.small_catalog import ALL_ASSETS, ROUTER, Site, built_site, cell_names

WIDE, LONG = "scores.csv", "capitals_log.jsonl"
MODEL = "m_terse"
"""The scripted model whose outcomes the files hold, as if it had been asked elsewhere."""

DECLARED = f"""\
  logged:
    model: terse-2024
    recorded:
      sums: {{path: {WIDE}, task: {{id: id}}, score: terse}}
      capitals: {{path: {LONG}, task: {{question: query}}, where: {{by: terse}}, completion: said, cost_usd: usd}}
"""


def write_outcomes(directory: Path, changed: dict[str, float] | None = None, city: str | None = None) -> None:
    """A wide table of scores and a long log of completions; ``changed`` scores, and one other word for right cities."""
    with (directory / WIDE).open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "direct", "terse"])
        for task in TASKS["sums"]:
            score = (changed or {}).get(task.id, 0.5 * solved(MODEL, task))
            writer.writerow([task.id, 0, score])
    with (directory / LONG).open("w") as log:
        for task in TASKS["capitals"]:
            said = (city or task.answer) if solved(MODEL, task) else "Atlantis"
            row = {"query": f"  {task.question}", "by": "terse", "said": f"The answer is {said}.", "usd": 0.25}
            log.write(json.dumps(row) + "\n" + json.dumps(row | {"by": "direct"}) + "\n")


def declare(site: Site) -> None:
    """Write the files and put the recorded worker into the pool."""
    write_outcomes(site.catalog.directory)
    site.catalog.edit("workers.yaml", "prompts:\n", DECLARED + "prompts:\n")
    site.catalog.edit("workers.yaml", "[direct, terse, long]", "[direct, terse, long, logged]")


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The small catalog with the recorded worker, everything built; for tests that only look."""
    with built_site(tmp_path_factory.getbasetemp(), tmp_path_factory.mktemp("recorded") / "site") as site:
        declare(site)
        assert site.build().messages == {}
        yield site


@pytest.fixture
def recorded(untouched: Site, site: Site) -> Site:
    """The same on a site of its own."""
    declare(site)
    shutil.rmtree(site.home)
    shutil.copytree(untouched.home, site.home, symlinks=True)
    return site


def test_a_recorded_worker_joins_a_built_pool_and_nobody_is_asked(site: Site) -> None:
    declare(site)
    built = site.build()
    assert built.messages == {}
    assert built.built == {*cell_names("answers", ["logged"]), *cell_names("solves", ["logged"]), *ROUTER}
    assert built.requests == {}
    sums = {task.id: 0.5 * solved(MODEL, task) for task in TASKS["sums"][:SUMS]}
    capitals = {task.id: float(solved(MODEL, task)) for task in TASKS["capitals"]}
    assert site.scores("logged", "sums") == sums
    assert site.scores("logged", "capitals") == capitals
    frame = read_table(site.store, "solves", site.sha256("solves/logged/sums")).frame
    assert set(frame["rule"]) == {"recorded"}
    table = read_table(site.store, "router_table", site.sha256("routers/small/table")).frame.set_index("task_id")
    assert table["score__logged"].to_dict() == sums | capitals
    assert table["cost__logged"].dropna().to_dict() == dict.fromkeys(capitals, 0.25)


def test_what_fitted_nowhere_is_counted_and_named(untouched: Site) -> None:
    with untouched.instance() as instance:
        materialization = newest_materialization(instance, keys.answers("logged", "sums"))
    assert materialization is not None
    metadata = {name: value.value for name, value in materialization.metadata.items()}
    unselected = len(TASKS["sums"]) - SUMS
    assert (metadata["rows"], metadata["coverage"], metadata["tasks_missing"]) == (SUMS, 1.0, 0)
    assert (metadata["file_rows"], metadata["rows_unmatched"]) == (len(TASKS["sums"]), unselected)
    assert f"- `{WIDE} row {SUMS} ('sums_{SUMS}')`" in str(metadata["unmatched"])


def test_a_fresh_catalog_with_a_recorded_worker_has_exactly_these_assets(empty_site: Site) -> None:
    declare(empty_site)
    built = empty_site.build()
    assert built.built == {*ALL_ASSETS, *cell_names("answers", ["logged"]), *cell_names("solves", ["logged"])}
    assert built.result.complete
    assert set(built.requests) == {"m_direct", "m_terse", "m_long"}


def test_recorded_answers_take_no_place_in_a_pool(untouched: Site) -> None:
    definitions = untouched.definitions()
    pools = {
        key.to_user_string(): definitions.resolve_assets_def(key).op.pool
        for key in definitions.resolve_all_asset_keys()
        if key.path[0] == "answers"
    }
    assert pools.pop("answers/logged/sums") is None
    assert pools.pop("answers/logged/capitals") is None
    assert set(pools.values()) == {"llm_scripted"}


def test_an_edited_file_reruns_its_own_answers_and_what_follows(recorded: Site) -> None:
    write_outcomes(recorded.catalog.directory, changed={"sums_03": 1.0})
    built = recorded.build()
    assert built.waves[0] == {"answers/logged/sums"}
    assert built.built == {"answers/logged/sums", "solves/logged/sums", *ROUTER}
    assert built.requests == {}
    assert recorded.scores("logged", "sums")["sums_03"] == 1.0


def test_other_words_for_the_same_verdicts_stop_at_the_solves_but_name_the_file(recorded: Site) -> None:
    before = recorded.data_versions(["solves/logged/capitals", "routers/small/table"])
    path = recorded.catalog.directory / LONG
    path.write_text(path.read_text().replace("The answer is", "It is"))
    built = recorded.build()
    assert built.waves[0] == {"answers/logged/capitals"}
    assert {"answers/logged/capitals", "solves/logged/capitals", "routers/small/table"} <= built.built
    assert recorded.data_versions(before) == before


def test_rows_of_others_in_the_same_file_change_no_answer(recorded: Site) -> None:
    before = recorded.data_version("answers/logged/sums")
    path = recorded.catalog.directory / WIDE
    path.write_text(path.read_text() + "elsewhere,1,1\n")
    built = recorded.build()
    assert "answers/logged/sums" in built.built
    assert "solves/logged/sums" not in built.built
    assert recorded.data_version("answers/logged/sums") == before


def test_a_moved_file_rebuilds_nothing(recorded: Site) -> None:
    directory = recorded.catalog.directory
    (directory / WIDE).rename(directory / "moved.csv")
    recorded.catalog.edit("workers.yaml", WIDE, "moved.csv")
    assert recorded.build().built == set()


def test_a_new_grader_regrades_completions_and_leaves_recorded_scores_alone(recorded: Site) -> None:
    for benchmark, old in (("sums", "truncated: unsolved"), ("capitals", "refused: unsolved")):
        recorded.catalog.edit("benchmarks.yaml", old, old.replace("unsolved", "missing"))
        built = recorded.build()
        assert (f"solves/logged/{benchmark}" in built.built) == (benchmark == "capitals")
        assert f"solves/direct/{benchmark}" in built.built
        assert built.requests == {}


def test_a_file_that_lacks_tasks_fails_its_cell_and_nothing_is_trained_on_half(recorded: Site) -> None:
    path = recorded.catalog.directory / WIDE
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith("sums_05")))
    built = recorded.build()
    assert set(built.messages) == {"answers/logged/sums"}
    message = built.messages["answers/logged/sums"]
    assert f"logged on sums: {SUMS - 1} of {SUMS} tasks have an outcome" in message
    assert "1 tasks have none: sums_05" in message
    assert built.built == set()
    recorded.catalog.edit("workers.yaml", "score: terse}", "score: terse, min_coverage: 0.9}")
    built = recorded.build()
    assert built.built == {"answers/logged/sums", "solves/logged/sums", *ROUTER}
    table = read_table(recorded.store, "router_table", recorded.sha256("routers/small/table")).frame
    missing = table.set_index("task_id")["score__logged"].isna()
    assert missing[missing].index.tolist() == ["sums_05"]


def test_a_router_may_do_without_a_recorded_worker_whose_files_lack_tasks(recorded: Site) -> None:
    recorded.catalog.edit("routers.yaml", "export: ridge", "export: ridge\n    on_incomplete: drop_worker")
    path = recorded.catalog.directory / WIDE
    whole = path.read_text()
    path.write_text("".join(line for line in whole.splitlines(keepends=True) if not line.startswith("sums_05")))
    built = recorded.build()
    assert set(built.messages) == {"answers/logged/sums"}
    assert built.built == set(ROUTER)
    manifest = checkpoint(recorded).manifest
    assert manifest.workers == ["direct", "terse", "long"]
    ((name, reason),) = [(worker.name, worker.reason) for worker in manifest.dropped]
    assert name == "logged"
    assert reason.startswith("answers on sums were made with other settings (files: [")
    path.write_text(whole)
    assert recorded.build().requests == {}
    assert checkpoint(recorded).manifest.workers == ["direct", "terse", "long", "logged"]


def checkpoint(site: Site) -> Checkpoint:
    with site.instance() as instance:
        path = recorded_metadata(instance, keys.checkpoint("small"), "path")
    assert path is not None
    return load_checkpoint(Path(path))


def test_a_checkpoint_names_the_files_and_how_they_were_read(untouched: Site) -> None:
    catalog = load_catalog(untouched.catalog.directory)
    entry = checkpoint(untouched).manifest.pool[-1]
    assert (entry.name, entry.model, entry.prompt, entry.sampling) == ("logged", "terse-2024", {}, {})
    assert entry.digest == catalog.routers["small"].workers[-1].digest
    assert entry.provider["name"] == "recorded"
    sums = entry.provider["cells"]["sums"]
    assert sums["files"] == [file_sha256(untouched.catalog.directory / WIDE)]
    assert (sums["task"]["id"], sums["score"]) == ("id", "terse")


def test_a_recorded_worker_cannot_be_asked(untouched: Site) -> None:
    catalog = load_catalog(untouched.catalog.directory)
    with pytest.raises(
        RecordedError, match=r"logged \(terse-2024\) cannot be asked: its outcomes were read from files"
    ):
        ask_worker(catalog, checkpoint(untouched), "logged", "What is 1 plus 1?")


def test_the_table_of_cells_shows_what_is_recorded(untouched: Site) -> None:
    result = CliRunner().invoke(app, ["catalog", "check", "--catalog", str(untouched.catalog.directory)])
    assert result.exit_code == 0
    (row,) = [" ".join(line.replace("│", " ").split()) for line in result.output.splitlines() if "logged" in line]
    assert row == "logged recorded terse-2024 scores on sums, completions on capitals"
