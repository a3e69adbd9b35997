"""Outcomes that others published train routers through the whole graph, read in place, and nobody is asked.

The features come from a tiny random backbone: what is held here is that every score arrives where it belongs, not what
a router makes of it.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
import yaml

from trinity_assets.checkpoints.directory import load_checkpoint
from trinity_assets.defs import keys
from trinity_assets.defs.lineage import recorded_metadata
from trinity_assets.routing.results import read_evaluation
from trinity_assets.store.tables import read_table
from trinity_assets_tests.graph import small_catalog
from trinity_assets_tests.graph.small_catalog import Built, Site, cell_names

GSM8K = "recorded/gsm8k_6models/solve_table.csv"
NINE_MODELS = "recorded/llmrouter_9models/solve_table.csv"
NINE_MODELS_QUERIES = "recorded/llmrouter_9models/default_query_train.jsonl"
COMPLETIONS = "recorded/humaneval_completions"

ASKED_TWICE = [2548, 2837, 4631, 4670, 5011, 5109, 5531, 5536]
"""Lines of the nine models' queries that repeat an earlier one; the table has no row of them."""

SIX = {
    "gpt3_6b_finetuned": "openai-gpt3/6b_finetuning",
    "gpt3_6b_verified": "openai-gpt3/6b_verification",
    "gpt3_175b_finetuned": "openai-gpt3/175b_finetuning",
    "gpt3_175b_verified": "openai-gpt3/175b_verification",
    "mixtral": "routellm/mistralai/Mixtral-8x7B-Instruct-v0.1",
    "gpt_4": "routellm/gpt-4-1106-preview",
}
NINE = {
    "codegemma": "codegemma-7b",
    "gemma_2": "gemma-2-9b-it",
    "llama_3_1_8b": "llama-3.1-8b-instruct",
    "nemotron_51b": "llama-3.1-nemotron-51b-instruct",
    "nemotron_49b": "llama-3.3-nemotron-super-49b-v1",
    "chatqa_70b": "llama3-chatqa-1.5-70b",
    "chatqa_8b": "llama3-chatqa-1.5-8b",
    "mistral": "mistral-7b-instruct-v0.3",
    "qwen": "qwen2.5-7b-instruct",
}
FOUR = {
    "claude_plus": "Claude_Plus_custom_md",
    "claude": "Claude_custom",
    "gpt_3": "gpt3_final_500c_long",
    "wizard": "TheBloke_WizardLM-30B-GPTQ_VICUNA_MEDIUM",
}

HUMANEVAL_TASKS = 24
NINE_MODELS_TASKS = 300

Find = Callable[[str], Path]


def catalog_files(find: Find) -> dict[str, object]:
    """A catalog of recorded workers alone: no providers, no prompts."""
    gsm8k, nine = str(find(GSM8K)), str(find(NINE_MODELS))
    workers: dict[str, object] = {}
    for name, column in SIX.items():
        workers[name] = {"recorded": {"gsm8k": {"path": gsm8k, "task": {"row": "gsm8k_test_index"}, "score": column}}}
    for name, column in NINE.items():
        mapping = {"path": nine, "where": {"query_file": "train"}, "task": {"row": "query_line"}, "score": column}
        workers[name] = {"recorded": {"mixed": mapping}}
    for name, file in FOUR.items():
        path = str(find(f"{COMPLETIONS}/{file}.jsonl"))
        mapping = {"path": path, "task": {"id": "task_id"}, "completion": "completion", "empty": "no_answer"}
        workers[name] = {"recorded": {"humaneval": mapping}}
    benchmarks = {
        "gsm8k": {"source": {"kind": "file", "path": str(find("gsm8k/test.jsonl"))}, "preset": "gsm8k"},
        "mixed": {
            "source": {"kind": "file", "path": str(find(NINE_MODELS_QUERIES))},
            "fields": {"id": None, "question": "query"},
            "category": "task_name",
            "grader": {"kind": "recorded"},
            "limit": NINE_MODELS_TASKS,
            "seed": 1,
            "quarantine": [
                {"id": f"mixed/{line}", "reason": "asked twice", "date": "2026-01-01"} for line in ASKED_TWICE
            ],
        },
        "humaneval": {
            "source": {"kind": "file", "path": str(find("humaneval/HumanEval.jsonl.gz"))},
            "preset": "humaneval",
            "limit": HUMANEVAL_TASKS,
        },
    }
    pools = {"six": list(SIX), "nine": list(NINE), "four": list(FOUR)}
    routers = {
        pool: {
            "pool": pool,
            "benchmarks": [benchmark],
            "backbone": "tiny",
            "trainers": {"ridge": {}},
            "export": "ridge",
        }
        for pool, benchmark in (("six", "gsm8k"), ("nine", "mixed"), ("four", "humaneval"))
    }
    return {
        "workers.yaml": {"workers": workers, "pools": pools},
        "benchmarks.yaml": {"benchmarks": benchmarks},
        "routers.yaml": {"routers": routers},
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, shared_data: Find) -> Iterator[tuple[Site, Built]]:
    """All three data sets, built once."""
    files = catalog_files(shared_data)
    base = tmp_path_factory.getbasetemp()
    with small_catalog.empty_site(base, tmp_path_factory.mktemp("recorded") / "site") as site:
        (site.catalog.directory / "providers.yaml").unlink()
        for name, content in files.items():
            (site.catalog.directory / name).write_text(yaml.safe_dump(content, sort_keys=False))
        yield site, site.build()


def test_three_data_sets_come_in_and_train_a_router_each(built: tuple[Site, Built]) -> None:
    site, done = built
    assert done.messages == {}
    assert done.result.complete
    assert done.requests == {}
    for pool, workers in (("six", SIX), ("nine", NINE), ("four", FOUR)):
        with site.instance() as instance:
            path = recorded_metadata(instance, keys.checkpoint(pool), "path")
        assert path is not None
        manifest = load_checkpoint(Path(path)).manifest
        assert manifest.workers == list(workers)
    assert done.built >= cell_names("solves", SIX, ["gsm8k"]) | cell_names("solves", NINE, ["mixed"])
    assert not Path(site.home / "ledger.sqlite").exists()


def test_the_six_models_scores_are_those_of_the_table(built: tuple[Site, Built], shared_data: Find) -> None:
    site, _ = built
    rows = list(csv.DictReader(shared_data(GSM8K).open()))
    for name, column in SIX.items():
        assert site.scores(name, "gsm8k") == {f"gsm8k/{row['gsm8k_test_index']}": float(row[column]) for row in rows}
    table = read_table(site.store, "router_table", site.sha256("routers/six/table")).frame
    scores = table[[f"score__{name}" for name in SIX]]
    assert len(table) == 1319
    assert scores["score__gpt_4"].mean() == pytest.approx(0.857, abs=5e-4)
    assert scores.max(axis="columns").mean() == pytest.approx(0.949, abs=5e-4)
    evaluation = read_evaluation(site.store, site.sha256("routers/six/evaluation")).evaluation
    assert evaluation.reference_worker == "gpt_4"
    assert evaluation.n_missing == 0


def test_the_nine_models_scores_are_those_of_the_table(built: tuple[Site, Built], shared_data: Find) -> None:
    site, _ = built
    tasks = read_table(site.store, "tasks", site.sha256("benchmarks/mixed/tasks")).frame
    assert len(tasks) in range(NINE_MODELS_TASKS - len(ASKED_TWICE), NINE_MODELS_TASKS + 1)
    rows = {
        row["query_line"]: row
        for row in csv.DictReader(shared_data(NINE_MODELS).open())
        if row["query_file"] == "train"
    }
    queries = [json.loads(line)["query"] for line in shared_data(NINE_MODELS_QUERIES).open()]
    for name, column in NINE.items():
        scores = site.scores(name, "mixed")
        assert scores == {
            task_id: float(rows[str(row)][column])
            for task_id, row in zip(tasks["task_id"], tasks["source_row"], strict=True)
        }
    assert all(queries[row] == question for row, question in zip(tasks["source_row"], tasks["question"], strict=True))


def test_completions_are_graded_as_their_publisher_graded_them(built: tuple[Site, Built], shared_data: Find) -> None:
    site, _ = built
    passed = pd.read_csv(shared_data(f"{COMPLETIONS}/pass.csv")).set_index("task_id").head(HUMANEVAL_TASKS)
    for name, column in FOUR.items():
        assert site.scores(name, "humaneval") == passed[column].astype(float).to_dict()
