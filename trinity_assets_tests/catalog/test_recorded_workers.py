"""Recorded workers in a catalog: what may be written, every fault with its place, and what a digest follows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import TypeAdapter

from trinity_assets.catalog.catalog import DEFAULT_CATALOG, Catalog
from trinity_assets.catalog.entries import RecordedWorkerEntry, json_schema
from trinity_assets.catalog.loading import load_catalog
from trinity_assets.errors import CatalogError
from trinity_assets.files import file_sha256
from trinity_assets.recorded.formats import FORMATS
from trinity_assets.recorded.specs import RecordedWorkerSpec

GPT = {
    "recorded": {
        "starter": {"path": "table.csv", "task": {"id": "task_id"}, "score": "gpt"},
        "humaneval": {"path": "samples.jsonl", "format": "lm_eval"},
    }
}


class Draft:
    """The embedded catalog with recorded workers beside its own, written anew by each ``load``."""

    def __init__(self, directory: Path) -> None:
        self.directory = Path(shutil.copytree(DEFAULT_CATALOG, directory))
        self.workers: dict[str, Any] = yaml.safe_load((self.directory / "workers.yaml").read_text())
        self.workers["workers"]["gpt"] = yaml.safe_load(yaml.safe_dump(GPT))
        self.workers["pools"]["starter"].append("gpt")
        (self.directory / "table.csv").write_text("task_id,gpt\n1,1\n")
        (self.directory / "samples.jsonl").write_text("{}\n")

    @property
    def gpt(self) -> dict[str, Any]:
        entry: dict[str, Any] = self.workers["workers"]["gpt"]
        return entry

    @property
    def starter(self) -> dict[str, Any]:
        cell: dict[str, Any] = self.gpt["recorded"]["starter"]
        return cell

    def load(self) -> Catalog:
        text = yaml.safe_dump(self.workers, sort_keys=False)
        (self.directory / "workers.yaml").write_text(text)
        return load_catalog(self.directory)

    def worker(self) -> RecordedWorkerSpec:
        worker = self.load().workers["gpt"]
        assert isinstance(worker, RecordedWorkerSpec)
        return worker

    def faults(self) -> str:
        with pytest.raises(CatalogError) as caught:
            self.load()
        return str(caught.value)


@pytest.fixture
def draft(tmp_path: Path) -> Draft:
    return Draft(tmp_path / "catalog")


def test_a_recorded_worker_stands_in_a_pool_beside_others(draft: Draft) -> None:
    catalog = draft.load()
    assert [(worker.name, benchmark.name) for worker, benchmark in catalog.cells][-2:] == [
        ("gpt", "starter"),
        ("gpt", "humaneval"),
    ]
    worker = catalog.routers["starter"].workers[-1]
    assert isinstance(worker, RecordedWorkerSpec)
    assert worker.model == "gpt"
    cell = worker.cells["starter"]
    assert cell.files == (file_sha256(draft.directory / "table.csv"),)
    assert cell.takes_scores
    # The benchmark's own mapping tells where lm-eval's documents hold the id.
    logged = worker.cells["humaneval"].outcomes
    assert logged.task is not None
    assert (logged.task.kind, logged.task.column, logged.score) == ("id", "doc.task_id", "score")
    jsonschema.validate(draft.workers, json_schema("workers.yaml"))


def test_a_catalog_of_recorded_workers_alone_needs_no_providers_and_no_prompts(draft: Draft) -> None:
    (draft.directory / "providers.yaml").unlink()
    draft.workers["workers"] = {"gpt": draft.gpt, "llama": draft.gpt}
    draft.workers["pools"]["starter"] = ["gpt", "llama"]
    del draft.workers["prompts"]
    catalog = draft.load()
    assert catalog.providers == {}
    assert len(catalog.cells) == 4
    jsonschema.validate(draft.workers, json_schema("workers.yaml"))


def test_an_asked_worker_without_its_provider_is_still_a_fault(draft: Draft) -> None:
    (draft.directory / "providers.yaml").unlink()
    assert "workers.smollm2_direct.provider: unknown provider 'local'; declared: none" in draft.faults()


def test_a_router_on_a_benchmark_that_a_recorded_worker_lacks_is_a_fault(draft: Draft) -> None:
    del draft.gpt["recorded"]["humaneval"]
    assert (
        "routers.starter.benchmarks.1: gpt in pool 'starter' cannot be asked and have no outcomes recorded on "
        "'humaneval'; add them in workers.yaml, or take them out of the pool"
    ) in draft.faults()


def test_outcomes_on_an_unknown_benchmark_and_in_an_absent_file_are_faults_together(draft: Draft) -> None:
    draft.gpt["recorded"]["mmlu"] = {"path": "a.csv", "task": {"id": "id"}, "score": "s"}
    draft.starter["path"] = ["table.csv", "gone.csv"]
    found = draft.faults()
    assert "workers.gpt.recorded.mmlu: unknown benchmark 'mmlu'; declared: humaneval, starter" in found
    assert f"workers.gpt.recorded.mmlu.path: no file {draft.directory / 'a.csv'}" in found
    assert f"workers.gpt.recorded.starter.path: no file {draft.directory / 'gone.csv'}" in found


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"task": None}, "recorded.starter: task is missing: the column that tells the task, as in"),
        ({"score": None}, "recorded.starter: name the column of the score, or that of the completion to be graded"),
        (
            {"task": {"id": "a", "row": "b"}},
            "recorded.starter.task: name the one column that tells the task: id, quest",
        ),
        ({"task": {}}, "recorded.starter.task: name the one column"),
        ({"task": {"id": "a", "first": 1}}, "recorded.starter.task: first is where the numbers in row begin"),
        ({"task": {"column": "a"}}, "recorded.starter.task.column: unknown field; allowed: id, question, row, first"),
        ({"scores": "gpt"}, "recorded.starter.scores: unknown field; allowed: path, format, task, where, score"),
        ({"format": "helm"}, "recorded.starter.format: unknown value 'helm'; allowed: table, lm_eval, inspect"),
        ({"samples": "median"}, "recorded.starter.samples: unknown value 'median'; allowed: mean or first"),
        ({"min_coverage": 0}, "recorded.starter.min_coverage: it has to be greater than 0"),
        ({"min_coverage": 99}, "recorded.starter.min_coverage: it has to be less than or equal to 1"),
        ({"values": {"good": 2}}, "recorded.starter.values.good: it has to be less than or equal to 1"),
        ({"path": "s3://bucket/table.csv"}, "s3://bucket/table.csv is a URL; fetch the file and give its path"),
        ({"path": "table.pkl"}, "table.pkl is a pickle, which runs code when it is read; write it as .parquet"),
        ({"path": "log.eval"}, "convert it: inspect log convert --to json --output-dir OUT log.eval"),
        ({"path": "table.txt"}, "the name of the file table.txt ends in none of .jsonl, .json, .csv"),
        ({"path": []}, "recorded.starter.path"),
    ],
)
def test_each_fault_says_where_and_what_is_allowed(draft: Draft, change: dict[str, Any], expected: str) -> None:
    draft.starter.update(change)
    assert expected in draft.faults()


def test_values_of_a_score_that_is_not_named_are_a_fault(draft: Draft) -> None:
    del draft.starter["score"]
    draft.starter.update({"completion": "gpt", "values": {"good": 1.0}})
    assert "recorded.starter: values are those of a score, and no score is named" in draft.faults()


def test_a_worker_is_either_asked_or_recorded(draft: Draft) -> None:
    draft.gpt["provider"] = "local"
    assert "workers.gpt.provider: unknown field; allowed: recorded, model, price" in draft.faults()


def test_a_worker_that_is_neither_is_told_what_is_missing(draft: Draft) -> None:
    draft.workers["workers"]["gpt"] = {"price": {"input_per_mtok": 1, "output_per_mtok": 1}}
    assert "workers.gpt.provider: " in draft.faults()


def test_a_format_that_cannot_tell_the_task_is_a_fault_of_that_benchmark(draft: Draft) -> None:
    benchmarks = yaml.safe_load((draft.directory / "benchmarks.yaml").read_text())
    mapping = {"id": None, "question": "question", "choices": "options"}
    benchmarks["benchmarks"]["starter"]["fields"] = mapping
    (draft.directory / "benchmarks.yaml").write_text(yaml.safe_dump(benchmarks))
    draft.gpt["recorded"]["starter"] = {"path": "samples.jsonl", "format": "lm_eval"}
    assert "workers.gpt.recorded.starter: task is missing, and the format lm_eval cannot tell it" in draft.faults()


def test_the_digest_follows_the_bytes_and_the_mapping_and_not_the_place(draft: Draft) -> None:
    before = draft.worker().digest
    (draft.directory / "elsewhere").mkdir()
    shutil.copy(draft.directory / "table.csv", draft.directory / "elsewhere" / "renamed.csv")
    draft.starter["path"] = "elsewhere/renamed.csv"
    draft.gpt["price"] = {"input_per_mtok": 1.0, "output_per_mtok": 1.0}
    assert draft.worker().digest == before
    (draft.directory / "elsewhere" / "renamed.csv").write_text("task_id,gpt\n1,0\n")
    changed = draft.worker().digest
    assert changed != before
    draft.starter["completion"] = "gpt"
    assert draft.worker().digest not in (before, changed)


def test_a_router_depends_on_the_outcomes_on_its_own_benchmarks_only(draft: Draft) -> None:
    routers = yaml.safe_load((draft.directory / "routers.yaml").read_text())
    routers["routers"]["starter"]["benchmarks"] = ["starter"]
    (draft.directory / "routers.yaml").write_text(yaml.safe_dump(routers))
    before = draft.load().routers["starter"].workers[-1].digest
    (draft.directory / "samples.jsonl").write_text('{"doc_id": 0}\n')
    after = draft.load()
    assert after.routers["starter"].workers[-1].digest == before
    assert after.workers["gpt"].digest != before


def test_a_benchmark_whose_scores_are_all_recorded_needs_no_gold_and_no_other_grader(draft: Draft) -> None:
    benchmarks = yaml.safe_load((draft.directory / "benchmarks.yaml").read_text())
    benchmarks["benchmarks"]["starter"]["grader"] = {"kind": "recorded"}
    (draft.directory / "benchmarks.yaml").write_text(yaml.safe_dump(benchmarks))
    found = draft.faults()
    assert "benchmarks.starter.grader: recorded grades nothing, and smollm2_direct has no recorded scores here" in found
    draft.workers["workers"] = {"gpt": draft.gpt, "llama": draft.gpt}
    draft.workers["pools"]["starter"] = ["gpt", "llama"]
    assert draft.load().benchmarks["starter"].snapshot.fields.gold == {}
    draft.starter.update({"completion": "gpt"})
    del draft.starter["score"]
    assert "recorded grades nothing, and gpt has no recorded scores here; give a grader" in draft.faults()


def test_the_readmes_workers_are_workers() -> None:
    text = (DEFAULT_CATALOG.parents[1] / "README.md").read_text().split("### Bring your own outcomes")[1]
    written = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])
    entries = TypeAdapter(dict[str, RecordedWorkerEntry]).validate_python(written["workers"])
    assert list(entries) == ["gpt_4", "llama", "phi", "mixtral"]
    assert entries["llama"].recorded["gsm8k"].paths == ("results_1.jsonl", "results_2.jsonl")
    formats = {line.split("`")[1] for line in text.split("| format |")[1].splitlines() if line.startswith("| `")}
    assert formats >= set(FORMATS)
