"""``trinity-assets train`` beside the graph: the same outcomes give the same router, bit for bit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file

from trinity_assets import cli
from trinity_assets.catalog.loading import load_catalog
from trinity_assets.routing.fitted_files import EVALUATION_FILE, HEADS_FILE
from trinity_assets.routing.fitting import FittedRouter, fit_router
from trinity_assets.routing.head import read_heads
from trinity_assets.routing.inputs import RouterData, read_router_data
from trinity_assets.routing.results import Evaluation, read_evaluation
from trinity_assets.store.tables import read_table
from trinity_assets_tests.graph import small_catalog
from trinity_assets_tests.graph.scripted_models import TASKS
from trinity_assets_tests.graph.small_catalog import EVALUATION, HEAD, TABLE, Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Everything is built, and nothing here changes it."""
    directory = tmp_path_factory.mktemp("training_command")
    with small_catalog.built_site(tmp_path_factory.getbasetemp(), directory / "built") as site:
        yield site


@pytest.fixture(scope="module")
def data(site: Site) -> RouterData:
    """What the graph's router learnt from."""
    return read_router_data(site.store, site.sha256(TABLE))


def recorded_evaluation(site: Site) -> Evaluation:
    """What the asset found."""
    return read_evaluation(site.store, site.sha256(EVALUATION)).evaluation


def test_the_library_gives_what_the_assets_recorded(site: Site, data: RouterData) -> None:
    router = load_catalog(site.catalog.directory).routers["small"]
    prices = {worker.name: worker.price for worker in router.workers}
    fitted: FittedRouter = fit_router(data.table, data.features, router.training, prices=prices)
    recorded = read_heads(site.store, site.sha256(HEAD))
    assert list(fitted.heads) == list(recorded.weights)
    for name, head in fitted.heads.items():
        assert head.weights.tobytes() == recorded.weights[name].tobytes()
        assert head.record == recorded.spec.trainers[name]
    assert fitted.evaluation == recorded_evaluation(site).model_copy(update={"looks": None})
    assert fitted.best_single_on_train == recorded.spec.best_single_on_train
    pd.testing.assert_frame_equal(fitted.table, data.table)


def test_the_command_extracts_groups_and_trains_as_the_graph_does(
    site: Site, data: RouterData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table holds neither groups nor a split: both follow from the questions and the seed."""
    questions = pd.concat(
        read_table(site.store, "tasks", site.sha256(f"benchmarks/{benchmark}/tasks")).frame for benchmark in TASKS
    ).set_index("task_id")["question"]
    wide = data.table.drop(columns=["group", "split", "fold"])
    wide = wide.assign(question=wide["task_id"].map(questions))
    wide.to_csv(tmp_path / "outcomes.csv", index=False)
    out = tmp_path / "fitted"
    arguments = ["train", "--table", str(tmp_path / "outcomes.csv"), "--backbone", "tiny", "--generations", "5"]
    where = ["--catalog", str(site.catalog.directory), "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["trinity-assets", *arguments, *where])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    trained = load_file(out / HEADS_FILE)
    recorded = read_heads(site.store, site.sha256(HEAD)).weights
    assert trained.keys() == recorded.keys()
    for name, head in trained.items():
        np.testing.assert_array_equal(head, recorded[name])
    judged = Evaluation.model_validate_json((out / EVALUATION_FILE).read_text())
    assert judged == recorded_evaluation(site)
    assert judged.looks == 1, "the same heads on the same tasks, in the log that both keep"
