"""The command line on the small catalog: what it prints, and with which status it ends."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest

from trinity_assets import cli
from trinity_assets.benchmarks.specs import CONTAMINATION_DEFINITION
from trinity_assets.catalog.catalog import DEFAULT_CATALOG
from trinity_assets.catalog.loading import load_catalog
from trinity_assets.checkpoints.directory import load_checkpoint
from trinity_assets.defs import keys
from trinity_assets.defs.build import BuildResult
from trinity_assets.defs.lineage import recorded_metadata
from trinity_assets.defs.staleness import asset_states
from trinity_assets.workers.specs import WorkerSpec
from trinity_assets_tests import scripted_server
from trinity_assets_tests.graph import scripted_models, small_catalog
from trinity_assets_tests.graph.scripted_models import CAPITALS, SUMS, TASKS, WORKERS
from trinity_assets_tests.graph.small_catalog import ALL_ASSETS, Site

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[Site]:
    """Everything is built."""
    with small_catalog.built_site(tmp_path_factory.getbasetemp(), tmp_path / "built") as site:
        yield site


@pytest.fixture
def empty_site(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[Site]:
    """Nothing is built yet."""
    with small_catalog.empty_site(tmp_path_factory.getbasetemp(), tmp_path / "empty") as site:
        yield site


@pytest.fixture
def checkpoint(site: Site, tmp_path: Path) -> Path:
    """A copy of the built checkpoint as it would be if its head had passed the gate, for which there is too little."""
    with site.instance() as instance:
        path = recorded_metadata(instance, keys.checkpoint("small"), "path")
    assert path is not None
    copy = Path(shutil.copytree(path, tmp_path / "checkpoint"))
    manifest = json.loads((copy / "manifest.json").read_text())
    assert (manifest["policy"]["kind"], manifest["gate"]["passed"]) == ("constant", False)
    manifest |= {"policy": {"kind": "head"}, "gate": None}
    (copy / "manifest.json").write_text(json.dumps(manifest))
    return copy


def states(site: Site) -> dict[str, str]:
    with site.instance() as instance:
        return {key.to_user_string(): s.state for key, s in asset_states(site.definitions(), instance).items()}


def test_a_good_catalog_is_shown_by_workers_and_benchmarks(empty_site: Site, run: Run) -> None:
    status, printed, _ = run("catalog", "check")
    assert status == 0
    rows = [re.split(r"  +", line.strip()) for line in printed.splitlines()]
    assert [row[:3] for row in rows if row[0] in WORKERS] == [[name, "scripted", m] for name, m in WORKERS.items()]
    assert [row for row in rows if row[0] in TASKS] == [
        ["sums", "file", "24", "exact", "small"],
        ["capitals", "file", "all", "exact", "small"],
    ]
    assert "6 cells (worker x benchmark)\n" in printed


def test_a_benchmark_of_no_router_is_shown_too(empty_site: Site, run: Run) -> None:
    empty_site.catalog.edit("routers.yaml", "[sums, capitals]", "[sums]")
    _, printed, _ = run("catalog", "check")
    assert ["capitals", "file", "all", "exact", "-"] in [
        re.split(r"  +", line.strip()) for line in printed.splitlines()
    ]
    assert "In no router, and so not built: capitals\n" in printed


@pytest.mark.parametrize("name", ["offline", "live"])
def test_every_word_of_a_catalog_is_whole_on_a_terminal_of_80_columns(
    name: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    directory = DEFAULT_CATALOG.parent / name
    catalog = load_catalog(directory)
    status, printed, _ = run("catalog", "check", "--catalog", str(directory))
    assert status == 0
    words = {word.strip(",") for word in printed.split()}
    for worker in catalog.workers.values():
        assert isinstance(worker, WorkerSpec)
        assert {worker.name, worker.provider.name, worker.model, worker.prompt_name} <= words
    for benchmark in catalog.benchmarks.values():
        assert {benchmark.name, benchmark.snapshot.source.kind, benchmark.grading.grader.kind} <= words
    assert catalog.routers.keys() <= words


def test_contamination_is_shown_from_the_sources(empty_site: Site, run: Run) -> None:
    assert run("catalog", "contamination")[1] == (
        f"0 pairs of tasks in common between sums ({SUMS} tasks), capitals ({CAPITALS} tasks)\n"
    )
    asked = TASKS["capitals"][5]
    twin = dataclasses.replace(TASKS["sums"][0], question=asked.question.upper())
    empty_site.catalog.write_tasks([twin, *TASKS["sums"][1:]])
    status, printed, _ = run("catalog", "contamination")
    assert status == 0
    lines = [re.split(r"  +", line.strip()) for line in printed.splitlines()]
    assert ["exact", "1.00", f"sums: {twin.id}", asked.question.upper()] in lines
    assert [f"capitals: {asked.id}", asked.question] in lines
    assert CONTAMINATION_DEFINITION in printed
    assert "1 pair of tasks in common" in printed
    assert set(states(empty_site).values()) == {"missing"}


def test_a_bad_catalog_is_refused_with_every_fault(empty_site: Site, run: Run) -> None:
    empty_site.catalog.edit("workers.yaml", "prompt: plain", "prompt: shout")
    empty_site.catalog.edit("routers.yaml", "generations: 5", "generations: many")
    status, printed, complaint = run("catalog", "check", "--catalog", str(empty_site.catalog.directory))
    assert status == 1
    assert printed == ""
    assert complaint.startswith(f"error: the catalog {empty_site.catalog.directory} has 2 faults:\n")
    assert "workers.direct.prompt: unknown prompt 'shout'" in complaint
    assert "routers.small.trainers.sep_cma_es.generations" in complaint


def test_a_bad_catalog_is_not_built(empty_site: Site, run: Run) -> None:
    empty_site.catalog.edit("workers.yaml", "prompt: plain", "prompt: shout")
    status, _, complaint = run("build")
    assert status == 1
    assert "unknown prompt 'shout'" in complaint
    assert empty_site.new_requests() == {}


def test_home_prepares_dagsters_home_inside_ours(
    empty_site: Site, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "another"
    monkeypatch.setenv("TRINITY_HOME", str(home))
    monkeypatch.setenv("DAGSTER_HOME", "")
    status, printed, _ = run("home")
    assert (status, printed) == (0, f"{home / 'dagster'}\n")
    assert "telemetry:\n  enabled: false" in (home / "dagster" / "dagster.yaml").read_text()


def test_a_dry_run_says_what_a_build_would_do_and_does_nothing(empty_site: Site, run: Run) -> None:
    status, printed, _ = run("build", "--dry-run")
    assert status == 0
    assert "25 of 25 assets need building:" in printed
    assert {line.split()[0] for line in printed.splitlines() if line.endswith("missing  never built")} == ALL_ASSETS
    assert set(states(empty_site).values()) == {"missing"}
    assert empty_site.new_requests() == {}


def test_a_dry_run_after_an_edit_names_the_reason(site: Site, run: Run) -> None:
    site.catalog.edit("routers.yaml", "export: ridge", "export: sep_cma_es")
    status, printed, _ = run("build", "--dry-run")
    assert status == 0
    assert "1 of 25 assets needs building:" in printed
    assert "  routers/small/checkpoint  stale    its settings or its source changed\n" in printed
    assert {name for name, state in states(site).items() if state != "fresh"} == {"routers/small/checkpoint"}


def test_there_is_nothing_to_do_twice(site: Site, run: Run) -> None:
    assert run("build")[:2] == (0, "All 25 assets are up to date.\n")


def test_a_catalog_can_be_named(site: Site, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRINITY_CATALOG", "/nowhere")
    monkeypatch.chdir(site.catalog.directory.parent)
    named = "--catalog", site.catalog.directory.name
    assert run("show", *named)[1].startswith("\nrouter small\n")
    assert run("build", *named)[:2] == (0, "All 25 assets are up to date.\n")
    assert os.environ["TRINITY_CATALOG"] == str(site.catalog.directory)  # what the steps will read
    assert "Asked again, in a new epoch: 6 assets" in run("rebaseline", "--dry-run", *named)[1]


def test_what_is_up_to_date_is_built_again_only_when_asked(site: Site, run: Run) -> None:
    selection = 'key:"answers/terse/sums"'
    assert run("build", selection)[:2] == (0, "The asset is up to date.\n")
    status, printed, _ = run("build", selection, "--rebuild", "--dry-run")
    assert status == 0
    assert "1 of 1 asset needs building:\n  answers/terse/sums  stale    asked for\n" in printed


def test_a_bad_selection_is_an_error_and_not_an_empty_build(site: Site, run: Run) -> None:
    status, _, complaint = run("build", "tag:worker=nobody")
    assert status == 1
    assert complaint.startswith("error: the selection 'tag:worker=nobody' holds no asset")


def test_show_before_and_after_the_build(empty_site: Site, site: Site, run: Run) -> None:
    with empty_site.environment():
        assert run("show")[:2] == (0, "router small: not built yet; run `trinity-assets build`\n")
    with site.environment():
        status, printed, _ = run("show", "small")
        assert status == 0
        assert "router small" in printed
        for policy in ("ridge", "sep_cma_es", "best_single", "oracle"):
            assert policy in printed
        with site.instance() as instance:
            path = recorded_metadata(instance, keys.checkpoint("small"), "path")
        assert f"checkpoint: {path}\n" in printed
        page = Path(re.findall(r"^report: +(.*)$", printed, re.MULTILINE)[0])
        assert "<h1>The router small</h1>" in (site.home / "reports" / page.name).read_text()
        status, _, complaint = run("show", "large")
        assert status == 1
        assert complaint == "error: there is no router 'large'; declared: small\n"


def test_route_prints_the_decision_and_asks_when_it_is_told_to(site: Site, checkpoint: Path, run: Run) -> None:
    task = TASKS["sums"][0]
    status, printed, _ = run("route", task.question, "--checkpoint", str(checkpoint))
    assert status == 0
    first, *scores, margin = printed.splitlines()
    values = {line.split()[0]: float(line.split()[1]) for line in scores}
    chosen = max(values, key=lambda name: values[name])
    assert first == f"worker: {chosen}   (policy head of small)"
    assert list(values) == list(WORKERS)
    best, second, _ = sorted(values.values(), reverse=True)
    assert margin.startswith("margin: ")
    assert float(margin.removeprefix("margin: ")) == pytest.approx(best - second, abs=2e-4)
    assert site.new_requests() == {}

    status, asked, _ = run("route", task.question, "--checkpoint", str(checkpoint), "--ask")
    assert status == 0
    assert asked.startswith(printed)
    assert site.new_requests() == {WORKERS[chosen]: 1}
    said = scripted_models.model_text(WORKERS[chosen], task)
    assert asked.splitlines()[-1] == f"answer: {said}"

    assert run("route", task.question, "--checkpoint", str(checkpoint), "--ask")[1] == asked
    assert site.new_requests() == {}, "the ledger has the answer"

    # This one was asked in the same words as a task of the benchmark.
    status, asked, _ = run("route", TASKS["capitals"][0].question, "--checkpoint", str(checkpoint), "--ask")
    assert status == 0
    assert asked.splitlines()[-1].startswith("answer: ")
    assert site.new_requests() == {}


def test_route_chooses_among_the_workers_that_are_offered(site: Site, checkpoint: Path, run: Run) -> None:
    question = TASKS["sums"][0].question
    status, printed, _ = run("route", question, "--checkpoint", str(checkpoint), "--offer", "long, terse")
    assert status == 0
    first, *scores, _ = printed.splitlines()
    values = {line.split()[0]: float(line.split()[1]) for line in scores}
    assert list(values) == ["terse", "long"]
    assert first.startswith(f"worker: {max(values, key=lambda name: values[name])} ")
    status, _, complaint = run("route", question, "--checkpoint", str(checkpoint), "--offer", "long,other")
    assert (status, complaint) == (
        1,
        "error: 'other' is not in the pool of small; offer some of direct, terse, long\n",
    )
    constant = load_checkpoint(site.checkpoint_path()).manifest.policy.worker
    others = ",".join(name for name in WORKERS if name != constant)
    status, _, complaint = run("route", question, "--checkpoint", str(site.checkpoint_path()), "--offer", others)
    assert status == 1
    assert complaint.startswith(f"error: the policy of small is to ask {constant} whatever the question, which is not")


def test_a_damaged_checkpoint_is_refused(checkpoint: Path, run: Run) -> None:
    head = checkpoint / "head.safetensors"
    head.write_bytes(head.read_bytes()[:-1] + b"?")
    status, printed, complaint = run("route", "What is 2 plus 3?", "--checkpoint", str(checkpoint))
    assert (status, printed) == (1, "")
    assert complaint.startswith(f"error: {head} is damaged: its bytes hash to ")


def test_another_backbone_is_refused_with_the_field_that_differs(site: Site, checkpoint: Path, run: Run) -> None:
    site.catalog.edit("backbones.yaml", "position: -2", "position: -1")
    status, printed, complaint = run("route", "What is 2 plus 3?", "--checkpoint", str(checkpoint))
    assert (status, printed) == (1, "")
    assert "backbone tiny: " in complaint
    assert "position: -2 here, -1 there" in complaint
    assert "dtype" not in complaint


def test_another_worker_under_the_same_name_is_not_asked(site: Site, checkpoint: Path, run: Run) -> None:
    for model in WORKERS.values():
        site.catalog.edit("workers.yaml", f"model: {model}\n", f"model: {model}_next\n")
    status, _, complaint = run("route", TASKS["capitals"][0].question, "--checkpoint", str(checkpoint), "--ask")
    assert status == 1
    assert "as the checkpoint knew it (model m_" in complaint
    assert site.new_requests() == {}


def test_only_the_keys_of_selected_workers_are_asked_for(
    empty_site: Site, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRINITY_CATALOG", str(DEFAULT_CATALOG.parent / "live"))
    for variable in ("NVIDIA_NIM_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    status, _, complaint = run("build", "+tag:worker=llama_3_3_70b")
    assert status == 1
    assert "NVIDIA_NIM_API_KEY (provider nim)." in complaint
    assert "OPENAI_API_KEY" not in complaint


def test_grade_prints_a_table_and_writes_the_reasons(run: Run, empty_site: Site, tmp_path: Path) -> None:
    answers = [task.answer for task in TASKS["sums"]]
    file = tmp_path / "mine.jsonl"
    rows = [{"task_id": f"sums_{n:02d}", "completion": f"#### {answers[n] if n else '-1'}"} for n in range(3)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    status, out, err = run("grade", str(file), "--benchmark", "sums")
    assert (status, "error" in err) == (0, False)
    results = [json.loads(line) for line in (tmp_path / "mine.graded.jsonl").read_text().splitlines()]
    assert [(row["task_id"], row["score"]) for row in results] == [("sums_00", 0.0), ("sums_01", 1.0), ("sums_02", 1.0)]
    assert "66.7%" in out
    assert "unsolved: sums_00" in out
    assert f"results: {tmp_path / 'mine.graded.jsonl'}" in out


def test_grade_refuses_an_unknown_benchmark_and_to_overwrite_its_input(
    run: Run, empty_site: Site, tmp_path: Path
) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text('{"task_id": "sums_00", "completion": "1"}\n')
    assert run("grade", str(file), "--benchmark", "gsm8k")[2] == (
        "error: there is no benchmark 'gsm8k'; declared: sums, capitals\n"
    )
    assert "would overwrite" in run("grade", str(file), "--benchmark", "sums", "--out", str(file))[2]
    assert file.read_text() == '{"task_id": "sums_00", "completion": "1"}\n'


def test_grade_says_which_sample_and_by_which_rule_and_its_table_fits_80_columns(
    run: Run, empty_site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    answer = TASKS["sums"][0].answer
    rows = [{"task_id": "sums_00", "completion": f"#### {number}"} for number in (answer, "-1")]
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    status, out, _ = run("grade", str(file), "--benchmark", "sums")
    assert status == 0
    lines = [line.strip() for line in out.splitlines()]
    header = next(line for line in lines if line.startswith("category"))
    assert re.split("  +", header) == [
        "category",
        "tasks",
        "completions",
        "solved",
        "missing",
        "mean score",
        "ambiguous",
    ]
    assert [re.split("  +", line)[:5] for line in lines if line.startswith("all ")] == [["all", "1", "2", "1", "0"]]
    assert "unsolved: sums_00, sample 1: answered '-1' (read as hash_line)" in lines
    one = tmp_path / "one.jsonl"
    one.write_text(json.dumps(rows[1]) + "\n")
    out = run("grade", str(one), "--benchmark", "sums")[1]
    assert "  unsolved: sums_00: answered '-1' (read as hash_line)\n" in out


@pytest.mark.parametrize("name", ["", ".", "loop.jsonl"])
def test_grade_refuses_what_is_no_file_without_a_traceback(
    name: str, run: Run, empty_site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop.jsonl").symlink_to("loop.jsonl")
    status, printed, complaint = run("grade", name, "--benchmark", "sums")
    assert (status, printed) == (1, "")
    assert complaint.startswith("error: ")


def test_what_an_error_quotes_does_not_act_on_the_terminal(run: Run, empty_site: Site, tmp_path: Path) -> None:
    file = tmp_path / "\x1b[2J.jsonl"
    assert run("grade", str(file), "--benchmark", "sums")[2] == (f"error: there is no file {tmp_path}/\\x1b[2J.jsonl\n")


def test_a_build_that_drops_a_worker_fails_and_says_so_and_so_does_show(
    site: Site, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.catalog.edit("routers.yaml", "export: ridge", "export: ridge\n    on_incomplete: drop_worker")
    site.catalog.edit("workers.yaml", "max_tokens: 64", "max_tokens: 65")
    site.server.script("m_long", scripted_server.status(401))
    with site.instance():  # Dagster reads definitions with the instance that is open
        execute = small_catalog.execute_here(site.definitions())
    here = "trinity_assets.defs.execution.execute_in_processes"
    monkeypatch.setattr(here, lambda instance, wanted, **tags: execute(instance, wanted))
    status, printed, _ = run("build")
    assert status == 1
    reason = "; ".join(
        f"answers on {benchmark} were made with other settings (sampling.max_tokens: 64 -> 65)" for benchmark in TASKS
    )
    *_, counts, first, second, dropped, advice = printed.splitlines()
    assert counts == "5 assets built, 2 failed, 0 waiting for those."
    failed = {line.partition(": long on ")[0] for line in (first, second)}
    assert failed == {f"  failed: answers/long/{benchmark}" for benchmark in TASKS}
    assert dropped == f"  router small is trained without long: {reason}"
    assert advice == "Everything that settled is kept; run the same command again to ask only for the rest."

    status, printed, _ = run("show")
    assert status == 0
    assert f"trained without long: {reason}.\n" in printed
    path = printed.rpartition("checkpoint: ")[2].splitlines()[0]
    published = next(line for line in printed.splitlines() if line.startswith("published:"))
    assert published in ("published:  always direct", "published:  always terse")
    status, printed, _ = run("route", TASKS["sums"][0].question, "--checkpoint", path)
    assert (status, printed) == (0, f"worker: {published.split()[-1]}   (policy constant of small)\n")
    assert [entry.name for entry in load_checkpoint(Path(path)).manifest.pool] == ["direct", "terse"]


@pytest.mark.parametrize("command", ["build", "rebaseline"])
@pytest.mark.parametrize("budget", ["0", "-1", "inf", "nan"])
def test_a_budget_that_is_no_amount_is_refused_before_anything_runs(
    command: str, budget: str, empty_site: Site, run: Run
) -> None:
    status, printed, complaint = run(command, f"--budget={budget}")
    assert (status, printed) == (1, "")
    assert complaint.startswith(f"error: the budget is {float(budget)!r}; give a number of USD above 0")
    assert set(states(empty_site).values()) == {"missing"}


ANSWERS, GOLD, TABLE = (dg.AssetKey(path) for path in (["answers", "w", "b"], ["benchmarks", "b", "gold"], ["r", "t"]))


@pytest.mark.parametrize(
    ("failed", "advice"),
    [
        ([ANSWERS], ["Everything that settled is kept; run the same command again to ask only for the rest."]),
        ([GOLD], ["Correct what the errors name, then run the same command again."]),
        (
            [ANSWERS, GOLD],
            [
                "Everything that settled is kept; run the same command again to ask only for the rest.",
                "Correct what the errors name, then run the same command again.",
            ],
        ),
    ],
)
def test_a_failed_build_says_what_would_help(failed: list[dg.AssetKey], advice: list[str]) -> None:
    reasons = {"answers/w/b": "w on b: 3 of 9 answers are missing\nstopped early: outage"}
    lines = list(cli._outcome(BuildResult((TABLE,), tuple(failed), (), reasons=reasons), None))
    assert lines[0] == f"\n1 asset built, {len(failed)} failed, 0 waiting for those."
    said = {ANSWERS: ": w on b: 3 of 9 answers are missing; stopped early: outage", GOLD: ""}
    assert lines[1 : 1 + len(failed)] == [f"  failed: {key.to_user_string()}{said[key]}" for key in failed]
    assert lines[1 + len(failed) :] == advice


@pytest.mark.parametrize(("redirected", "status"), [(">&-", 0), ("2>&-", 0), ("| true", 0)])
def test_a_closed_output_is_no_traceback(redirected: str, status: int) -> None:
    program = "from trinity_assets.cli import main; main()"
    command = f'"{sys.executable}" -c "{program}" catalog check {redirected}'
    done = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (status, "")
