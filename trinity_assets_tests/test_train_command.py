"""``trinity-assets train``: what it prints and writes, how it refuses, and that the README's examples hold."""

from __future__ import annotations

import functools
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from trinity_assets.catalog.catalog import DEFAULT_CATALOG
from trinity_assets.files import file_sha256
from trinity_assets.routing.fitted_files import FittedHeadsSpec
from trinity_assets.routing.head import METADATA_KEY
from trinity_assets.routing.objective import training_objective
from trinity_assets.routing.results import Evaluation
from trinity_assets.routing.specs import RouterTraining, SepCMAESSettings, SplitSpec
from trinity_assets.routing.split import with_split
from trinity_assets.routing.trainers import sep_cma_es
from trinity_assets.routing.trainers.all_heads import train_heads
from trinity_assets.routing.trainers.head import Start
from trinity_assets.workers.specs import Price
from trinity_assets_tests.routing.planted import WORKERS, features, planted_scores, table_of

N, HIDDEN = 240, 8

Train = Callable[..., tuple[int, str, str]]


@pytest.fixture
def train(tmp_path: Path, run: Train, monkeypatch: pytest.MonkeyPatch) -> Train:
    """``trinity-assets train`` with these arguments in ``tmp_path``: its exit status, its output, its complaint."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRINITY_HOME", str(tmp_path / "home"))
    return functools.partial(run, "train")


@pytest.fixture
def planted(tmp_path: Path) -> pd.DataFrame:
    """A router table that a head can learn, its outcomes in outcomes.csv, and the features in features.npy."""
    drawn = features(N, HIDDEN)
    table = table_of(planted_scores(drawn, len(WORKERS))[0], WORKERS, benchmark="table")
    table.drop(columns=["benchmark", "group", "split", "fold"]).to_csv(tmp_path / "outcomes.csv", index=False)
    np.save(tmp_path / "features.npy", drawn)
    return table


@pytest.fixture
def _unpictured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws nothing, which takes longer than training."""
    monkeypatch.setattr("trinity_assets.routing.fitted_files.router_pictures", lambda *_: [])


GIVEN = ("--table", "outcomes.csv", "--features", "features.npy")


def test_heads_are_those_of_the_assets_functions(planted: pd.DataFrame, train: Train, tmp_path: Path) -> None:
    status, printed, _ = train(*GIVEN, "--generations", "3", "--out", "fitted")
    assert status == 0
    declared = {"trainers": {"ridge": {}, "sep_cma_es": {"generations": 3}}, "export": "ridge"}
    objective = training_objective(planted, features(N, HIDDEN), WORKERS)
    wanted = train_heads(objective, RouterTraining.model_validate(declared))
    found = load_file(tmp_path / "fitted" / "heads.safetensors")
    assert found.keys() == wanted.keys()
    for name, head in wanted.items():
        assert found[name].tobytes() == head.weights.tobytes()
    spec = read_spec(tmp_path / "fitted" / "heads.safetensors")
    assert spec.trainers == {name: head.record for name, head in wanted.items()}
    assert (spec.workers, spec.export, spec.always) == (("ada", "bob", "cyd"), "ridge", None)
    assert spec.origin.table_sha256 == file_sha256(tmp_path / "outcomes.csv")
    assert spec.origin.features_sha256 == file_sha256(tmp_path / "features.npy")

    judged = Evaluation.model_validate_json((tmp_path / "fitted" / "evaluation.json").read_text())
    assert judged.policy("ridge").verdict == "win"
    assert re.search(r"^ridge +\d\d\.\d% ", printed, re.MULTILINE)
    assert f"gate:            passed: {judged.gate('ridge').reason}\n" in printed
    assert "would publish:   the head of ridge\n" in printed
    report = (tmp_path / "fitted" / "report.md").read_text()
    assert (
        "**Would be published:** the head of ridge. The head of ridge passed the gate: its cross-fitted gain" in report
    )
    assert "On held-out tasks it is a win." in report
    pictures = re.findall(r"!\[.*\]\((.*)\)", report)
    assert sorted(path.name for path in (tmp_path / "fitted").iterdir()) == sorted(
        ["heads.safetensors", "evaluation.json", "report.md", "report.html", *pictures]
    )
    assert {"comparison.png", "chosen_ridge.png", "convergence_sep_cma_es.png"} <= set(pictures)
    page = (tmp_path / "fitted" / "report.html").read_text()
    assert page.count("<img ") == page.count('<img src="data:image/png;base64,') == len(pictures)


def read_spec(path: Path) -> FittedHeadsSpec:
    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()[METADATA_KEY])
    assert header["kind"] == "fitted_heads"
    return FittedHeadsSpec.model_validate(header["spec"])


@pytest.mark.usefixtures("_unpictured")
def test_a_dominated_pool_publishes_the_best_single_worker(train: Train, tmp_path: Path) -> None:
    table_of(np.tile([0.0, 1.0, 0.5], (N, 1)), WORKERS).to_csv(tmp_path / "outcomes.csv", index=False)
    np.save(tmp_path / "features.npy", features(N, HIDDEN))
    status, printed, _ = train(*GIVEN, "--trainer", "ridge", "--out", "fitted")
    assert status == 0
    assert printed.splitlines()[2].startswith("Nothing to route: too few tasks: on none of")
    assert "would publish:   always bob\n" in printed
    assert read_spec(tmp_path / "fitted" / "heads.safetensors").always == "bob"


def test_a_head_at_a_cost_weight_can_be_exported(planted: pd.DataFrame, train: Train, tmp_path: Path) -> None:
    options = ["--trainer", "ridge", "--cost-weight", "0.1", "--export", "ridge@0.1", "--gate-saving", "0.2"]
    status, printed, _ = train(*GIVEN, *options, "--seed", "3", "--test", "0.3")
    assert status == 0
    assert "would publish:   the head of ridge@0.1\n" in printed
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["home"]
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == ["looks.jsonl", "looks.jsonl.lock"]


def test_looks_at_the_same_held_out_tasks_are_counted(planted: pd.DataFrame, train: Train) -> None:
    def looked(*options: str) -> list[str]:
        _, printed, _ = train(*GIVEN, *options)
        return re.findall(r"Heads trained and judged on these tasks so far: (\d) times", printed)

    assert looked("--trainer", "ridge") == [], "the first look is no news"
    assert looked("--trainer", "ridge") == [], "nor is the same once more"
    assert looked("--trainer", "constant") == ["2"]
    assert looked("--trainer", "constant", "--seed", "1") == [], "other tasks are held out"


@pytest.mark.usefixtures("_unpictured")
def test_prices_say_what_workers_cost(planted: pd.DataFrame, train: Train, tmp_path: Path) -> None:
    """A price takes the place of what the table says a worker cost, for cost weights and in the evaluation."""
    (tmp_path / "prices.json").write_text('{"cyd": {"input_per_mtok": 100, "output_per_mtok": 1000}}')
    options = ("--trainer", "ridge", "--cost-weight", "0.02", "--prices", "prices.json", "--out", "fitted")
    assert train(*GIVEN, *options)[0] == 0
    prices = {"cyd": Price(input_per_mtok=100, output_per_mtok=1000)}
    objective = training_objective(planted, features(N, HIDDEN), WORKERS, prices)
    declared = {"trainers": {"ridge": {}}, "export": "ridge", "cost_weights": [0.02]}
    wanted = train_heads(objective, RouterTraining.model_validate(declared))
    found = load_file(tmp_path / "fitted" / "heads.safetensors")
    assert {name: weights.tobytes() for name, weights in found.items()} == {
        name: head.weights.tobytes() for name, head in wanted.items()
    }
    judged = Evaluation.model_validate_json((tmp_path / "fitted" / "evaluation.json").read_text())
    shares = judged.policy("random").shares
    by_table = 0.001 * shares["ada"] + 0.002 * shares["bob"]
    assert judged.policy("random").cost_usd == pytest.approx(by_table + shares["cyd"] * (10 * 1e-4 + 2 * 1e-3))


def test_prices_that_fit_no_table_are_refused_together(planted: pd.DataFrame, train: Train, tmp_path: Path) -> None:
    table = pd.read_csv(tmp_path / "outcomes.csv")
    table.drop(columns="output_tokens__bob").to_csv(tmp_path / "outcomes.csv", index=False)
    (tmp_path / "prices.yaml").write_text(
        "ada: {input_per_mtok: cheap}\nbob: {input_per_mtok: 1, output_per_mtok: 2}\ndee: {}\n"
    )
    status, _, complained = train(*GIVEN, "--prices", "prices.yaml")
    assert (status, complained) == (
        1,
        "error: prices.yaml: ada.input_per_mtok: not a number; ada.output_per_mtok: missing; bob: a price is per token "
        "and the table has no number in output_tokens__bob; 'dee' is no worker of the table; those are ada, bob, cyd\n",
    )
    (tmp_path / "prices.yaml").write_text("ada: {}\nada: {}\n")
    assert "prices.yaml:2: ada: declared twice" in train(*GIVEN, "--prices", "prices.yaml")[2]
    (tmp_path / "prices.yaml").write_text("- ada\n")
    assert "prices.yaml holds no prices; give a mapping" in train(*GIVEN, "--prices", "prices.yaml")[2]


SEARCH = ("--trainer", "sep_cma_es", "--generations", "6", "--population", "8")


@pytest.mark.usefixtures("_unpictured")
def test_a_killed_search_goes_on_where_it_stopped(
    planted: pd.DataFrame, train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SepCMAESSettings(generations=6, population=8)
    undisturbed = sep_cma_es.train(training_objective(planted, features(N, HIDDEN), WORKERS), settings)
    rewards, asked = sep_cma_es._rewards, 0

    def asking(*given: Any) -> np.ndarray:
        nonlocal asked
        asked += 1
        if asked == 4:
            raise KeyboardInterrupt
        return rewards(*given)

    with monkeypatch.context() as patch:
        patch.setattr("trinity_assets.routing.trainers.head.Start", partial(Start, save_every_s=0.0))
        patch.setattr(sep_cma_es, "_rewards", asking)
        assert train(*GIVEN, *SEARCH, "--out", "fitted")[0] != 0
        assert not (tmp_path / "fitted").exists()
        assert len(list((tmp_path / "home" / "trainings").iterdir())) == 1
        _, _, said = train(*GIVEN, *SEARCH, "--out", "fitted")
    assert "sep_cma_es: going on after generation 3 of an interrupted training" in said
    found = load_file(tmp_path / "fitted" / "heads.safetensors")["sep_cma_es"]
    assert found.tobytes() == undisturbed.weights.tobytes()
    assert read_spec(tmp_path / "fitted" / "heads.safetensors").trainers == {"sep_cma_es": undisturbed.record}
    assert list((tmp_path / "home" / "trainings").iterdir()) == []


@pytest.mark.usefixtures("_unpictured")
def test_a_search_starts_from_heads_fitted_before_worker_by_name(
    planted: pd.DataFrame, train: Train, tmp_path: Path
) -> None:
    """Bob and ada were there, in the other order, and cyd joins."""
    assert train(*GIVEN, "--score-columns", "score__bob,score__ada", *SEARCH, "--out", "before")[0] == 0
    step = ("--sigma0", "0.000000001")
    status, printed, _ = train(*GIVEN, *SEARCH, *step, "--start", "before", "--out", "after")
    assert status == 0
    assert "\nstarted from:    before\n" in printed
    earlier, found = (load_file(tmp_path / name / "heads.safetensors")["sep_cma_es"] for name in ("before", "after"))
    size = np.linalg.norm(found[:2]) / np.linalg.norm(earlier)
    np.testing.assert_allclose(found[:2], size * earlier[::-1], rtol=1e-4, atol=1e-6)
    (record,) = read_spec(tmp_path / "after" / "heads.safetensors").trainers.values()
    assert record.chosen["started_from"] == file_sha256(tmp_path / "before" / "heads.safetensors")
    np.save(tmp_path / "features.npy", features(N, HIDDEN + 1))
    assert "is for features of width 8, and these have 9" in train(*GIVEN, *SEARCH, "--start", "before")[2]
    np.save(tmp_path / "features.npy", features(N, HIDDEN))
    table = pd.read_csv(tmp_path / "outcomes.csv")
    renamed = table.rename(columns={f"score__{old}": f"score__{old}2" for old in WORKERS}).filter(regex="task_id|score")
    renamed.to_csv(tmp_path / "outcomes.csv", index=False)
    assert "none of them is in the pool ['ada2'" in train(*GIVEN, *SEARCH, "--start", "before")[2]


@pytest.mark.usefixtures("_unpictured")
def test_heads_that_have_learnt_from_held_out_tasks_are_no_start(
    planted: pd.DataFrame, train: Train, tmp_path: Path
) -> None:
    """A task's side depends on the seed, the share, and on what its benchmark is called."""

    def held_out(benchmark: str, split: SplitSpec) -> set[str]:
        placed = with_split(planted.assign(benchmark=benchmark), split)
        return set(placed["task_id"][placed["split"] == "test"])

    def complaint(*options: str) -> str:
        return train(*GIVEN, *SEARCH, "--start", "before", *options)[2].splitlines()[-1]

    def refusal(seen: int) -> str:
        return f"error: the head to start from has learnt from {seen} of the tasks that are held out now, or from "

    learnt = {*planted["task_id"]} - held_out("table", SplitSpec())
    table = pd.read_csv(tmp_path / "outcomes.csv").assign(question=[f"q{row} {row * row}" for row in range(N)])
    table["group"] = table["task_id"]
    table.to_csv(tmp_path / "outcomes.csv", index=False)
    assert train(*GIVEN, *SEARCH, "--out", "before")[0] == 0
    assert complaint("--test", "0.5").startswith(refusal(len(learnt & held_out("table", SplitSpec(test=0.5)))))
    assert complaint("--seed", "1").startswith(refusal(len(learnt & held_out("table", SplitSpec(seed=1)))))
    assert train(*GIVEN, *SEARCH, "--test", "0.3", "--start", "before")[0] == 0, "held out of what was held out then"

    # The heads after know what those before have seen: these tasks are others.
    fresh = table.assign(task_id=[f"other{row}" for row in range(N)], question=[f"another {row}" for row in range(N)])
    fresh["group"] = fresh["task_id"]
    fresh.to_csv(tmp_path / "outcomes.csv", index=False)
    assert train(*GIVEN, *SEARCH, "--start", "before", "--out", "after")[0] == 0
    again = table.assign(benchmark="renamed")
    again.to_csv(tmp_path / "outcomes.csv", index=False)
    seen = refusal(len(learnt & held_out("renamed", SplitSpec())))
    assert complaint().startswith(seen)
    assert complaint("--start", "after").startswith(seen)
    # Under other ids it is the questions that were seen: as many as are held out of what was learnt.
    named = again.assign(task_id=fresh["task_id"], group=fresh["task_id"])
    named.to_csv(tmp_path / "outcomes.csv", index=False)
    placed = with_split(named, SplitSpec())
    taken = placed["task_id"][(placed["split"] == "test").to_numpy() & table["task_id"].isin(learnt).to_numpy()]
    assert complaint().startswith(refusal(len(taken)))


def test_it_says_what_each_worker_adds(planted: pd.DataFrame, train: Train, tmp_path: Path) -> None:
    table = pd.read_csv(tmp_path / "outcomes.csv")
    table["score__dee"] = table["score__ada"]
    table.to_csv(tmp_path / "outcomes.csv", index=False)
    status, printed, _ = train(*GIVEN, "--trainer", "ridge")
    assert status == 0
    said = printed.split("Is each worker worth having beside the others?\n")[1].split("\n\n")[0].splitlines()
    assert [line.split(",")[0] for line in said] == ["ada: unclear", "bob: unclear", "cyd: unclear", "dee: unclear"]
    # Of 149 train tasks none is one that ada adds to, which leaves a share of 1 - 0.025^(1/149) possible.
    assert said[0].endswith("at most +2.4 points to a perfect router")


def test_what_cannot_be_is_refused_in_one_line(planted: pd.DataFrame, train: Train, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "notes.txt").write_text("mine")
    np.save(tmp_path / "short.npy", features(3, HIDDEN))
    (tmp_path / "bad.csv").write_text("task_id,score__a,score__b\nt1,2,\nt2,1,0\n")
    table = ("--table", "outcomes.csv")
    for arguments, complaint in [
        (table, "give either --features FILE or --backbone NAME"),
        ((*GIVEN, "--backbone", "smollm2"), "give either --features FILE or --backbone NAME"),
        ((*table, "--backbone", "none", "--catalog", str(DEFAULT_CATALOG)), "there is no backbone 'none'; declared: "),
        ((*GIVEN, "--trainer", "forest"), "unknown trainer 'forest'; there are ridge, sep_cma_es, constant"),
        ((*GIVEN, "--export", "constant"), "export is 'constant', which is not among the trainers"),
        ((*GIVEN, "--test", "1"), "split.test: "),
        ((*GIVEN, "--generations", "0"), "trainers.sep_cma_es.generations: "),
        ((*GIVEN, "--trainer", "ridge", "--generations", "5"), "--generations is of sep_cma_es, which is not among"),
        (
            (*GIVEN, "--trainer", "ridge", "--start", "there"),
            "--start is of sep_cma_es, which is not among the trainers",
        ),
        ((*GIVEN, "--start", "there"), "there/heads.safetensors does not hold the heads of a fitted router: "),
        ((*GIVEN, "--prices", "no.yaml"), "no.yaml: there is no such file"),
        ((*GIVEN, "--out", "there"), "there exists already; give another directory"),
        ((*GIVEN, "--out", "short.npy/fitted"), "cannot write to short.npy/fitted: "),
        ((*GIVEN, "--out", "n" * 300), "cannot write to nnn"),
        ((*table, "--features", "short.npy"), "short.npy has 3 features and the table has 240 tasks"),
        (("--table", "bad.csv", "--features", "short.npy"), "bad.csv: row 0: column score__a: the score 2 is not in"),
        (("--table", "no.csv", "--features", "short.npy"), "there is no file "),
        (
            (*table, "--backbone", "smollm2", "--catalog", str(DEFAULT_CATALOG)),
            "outcomes.csv has no column question for a backbone to read",
        ),
    ]:
        status, _, complained = train(*arguments)
        assert status == 1
        assert complained.startswith("error: ") and complained.count("\n") == 1, complained
        assert complaint in complained
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["notes.txt"]


@pytest.mark.usefixtures("_unpictured")
def test_nothing_is_left_where_the_directory_cannot_be_renamed(
    planted: pd.DataFrame, train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    before = sorted([*tmp_path.iterdir(), tmp_path / "home"])
    status, _, complained = train(*GIVEN, "--trainer", "ridge", "--out", "fitted")
    assert (status, complained.splitlines()[-1].endswith("No space left on device; nothing was written")) == (1, True)
    assert sorted(tmp_path.iterdir()) == before


def _readme_section() -> str:
    text = (DEFAULT_CATALOG.parents[1] / "README.md").read_text()
    return text.split("### Train on your own table\n")[1].split("\n## ")[0].split("\n### ")[0]


def test_the_readme_s_examples_hold(train: Train, tmp_path: Path) -> None:
    """Its Python makes the files that its command reads, and both come to the same policy."""
    blocks = dict(re.findall(r"```(\w+)\n(.*?)```", _readme_section(), re.DOTALL))
    python = subprocess.run(
        [sys.executable, "-c", blocks["python"]], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    command = shlex.split(blocks["sh"], comments=True)
    assert command[:2] == ["trinity-assets", "train"]
    status, printed, _ = train(*command[2:])
    assert status == 0
    assert python.stdout.splitlines()[0] == "win the head of ridge"
    assert "would publish:   the head of ridge\n" in printed
    assert (tmp_path / "fitted" / "report.md").is_file()
