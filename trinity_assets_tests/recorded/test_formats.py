"""The logs of other programs, written here by hand to the shape that their sources declare."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from trinity_assets.benchmarks.specs import FieldMapping
from trinity_assets.errors import RecordedError
from trinity_assets.recorded.files import file_versions
from trinity_assets.recorded.formats import resolved
from trinity_assets.recorded.outcomes import Recorded, import_outcomes
from trinity_assets.recorded.specs import RecordedCell, RecordedOutcomes

QUESTIONS = ["What is 1+1?", "What is 2+2?"]
TASKS = pd.DataFrame({"task_id": ["a", "b"], "question": QUESTIONS, "source_row": [0, 1]})
BY_ID = FieldMapping(id="key", question="ask")
BY_QUESTION = FieldMapping(id=None, question="ask")


def imported(path: Path, fields: FieldMapping = BY_ID, model: str = "gpt-4", **written: Any) -> Recorded:
    outcomes = resolved(RecordedOutcomes.model_validate({"path": path.name, **written}), model, fields)
    recorded = RecordedCell(outcomes=outcomes, files=file_versions(outcomes, path.parent))
    return import_outcomes(recorded, TASKS, path.parent, label="gpt on sums")


def rows(recorded: Recorded, *columns: str) -> list[list[Any]]:
    return recorded.frame[["task_id", *columns]].values.tolist()


def lines(path: Path, entries: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(json.dumps(entry) for entry in entries) + "\n")
    return path


def lm_eval_entry(number: int, **changes: Any) -> dict[str, Any]:
    """What ``lm_eval --log_samples`` writes for a document of a generation task."""
    text = f"It is {number}."
    return {
        "doc_id": number,
        "doc": {"key": "ab"[number], "ask": QUESTIONS[number], "answer": "x"},
        "target": "x",
        "arguments": [[QUESTIONS[number], {"until": ["\n"]}]],
        "resps": [[text]],
        "filtered_resps": [str(number)],
        "filter": "strict-match",
        "metrics": ["exact_match"],
        "doc_hash": "00",
        "prompt_hash": "00",
        "target_hash": "00",
        "exact_match": float(number),
    } | changes


@pytest.mark.parametrize("fields", [BY_ID, BY_QUESTION])
@pytest.mark.parametrize("with_metrics", [True, False])
def test_lm_eval_scores_need_no_mapping(tmp_path: Path, fields: FieldMapping, with_metrics: bool) -> None:
    entries = [lm_eval_entry(number) for number in (1, 0)]
    if not with_metrics:
        for entry in entries:
            del entry["metrics"]
    path = lines(tmp_path / "samples_sums.jsonl", entries)
    assert rows(imported(path, fields, format="lm_eval"), "score") == [["a", 0.0], ["b", 1.0]]


def test_lm_eval_answers_are_graded_when_they_are_named(tmp_path: Path) -> None:
    path = lines(tmp_path / "samples_sums.jsonl", [lm_eval_entry(number) for number in (0, 1)])
    raw = imported(path, format="lm_eval", completion="resp")
    assert rows(raw, "text") == [["a", "It is 0."], ["b", "It is 1."]]
    assert raw.frame["score"].isna().all()
    filtered = imported(path, format="lm_eval", completion="filtered_resp", task={"row": "doc_id"})
    assert rows(filtered, "text") == [["a", "0"], ["b", "1"]]


def test_lm_eval_with_several_metrics_or_filters_asks_which(tmp_path: Path) -> None:
    several = [lm_eval_entry(n, metrics=["acc", "acc_norm"], acc=0.0, acc_norm=1.0) for n in (0, 1)]
    path = lines(tmp_path / "samples_sums.jsonl", several)
    with pytest.raises(
        RecordedError, match=r"no column 'score' \(score\); there are acc, acc_norm, doc.answer.*name on"
    ):
        imported(path, format="lm_eval")
    assert rows(imported(path, format="lm_eval", score="acc_norm"), "score") == [["a", 1.0], ["b", 1.0]]
    flexible = [lm_eval_entry(n, filter="flexible-extract", exact_match=1.0) for n in (0, 1)]
    path = lines(tmp_path / "samples_sums.jsonl", [lm_eval_entry(0), lm_eval_entry(1), *flexible])
    with pytest.raises(RecordedError, match="2 tasks have several rows"):
        imported(path, format="lm_eval")
    kept = imported(path, format="lm_eval", where={"filter": "flexible-extract"})
    assert rows(kept, "score") == [["a", 1.0], ["b", 1.0]]


def test_lm_eval_log_likelihoods_are_no_answers(tmp_path: Path) -> None:
    entries = [lm_eval_entry(n, resps=[[[-1.0, True]], [[-2.0, False]]], filtered_resps=[[-1.0, True]]) for n in (0, 1)]
    path = lines(tmp_path / "samples_sums.jsonl", entries)
    assert rows(imported(path, format="lm_eval"), "score") == [["a", 0.0], ["b", 1.0]]
    with pytest.raises(RecordedError, match=r"no column 'resp' \(completion\)"):
        imported(path, format="lm_eval", completion="resp")


def test_lm_eval_cannot_tell_the_task_of_multiple_choice_without_an_id(tmp_path: Path) -> None:
    fields = FieldMapping(id=None, question="ask", choices="options")
    path = lines(tmp_path / "samples_sums.jsonl", [lm_eval_entry(number) for number in (0, 1)])
    with pytest.raises(
        ValueError, match=r"lm_eval cannot tell it for this benchmark: name the column, as in `task: {row"
    ):
        imported(path, fields, format="lm_eval")
    assert rows(imported(path, fields, format="lm_eval", task={"row": "doc_id"}), "score") == [["a", 0.0], ["b", 1.0]]


def inspect_sample(name: str, value: Any, **changes: Any) -> dict[str, Any]:
    """What Inspect's JSON log holds of a sample, as far as it matters here."""
    return {
        "id": name,
        "epoch": 1,
        "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTIONS["ab".index(name)]}],
        "target": "x",
        "messages": [],
        "output": {"model": "openai/gpt-4", "choices": [], "completion": f"said {name}", "time": 1.0},
        "scores": {"match": {"value": value, "answer": name}},
        "model_usage": {
            "openai/gpt-4": {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12, "total_cost": 0.25}
        },
        "total_time": 3.0,
        "working_time": 2.0,
    } | changes


def inspect_log(path: Path, samples: list[dict[str, Any]]) -> Path:
    log = {"version": 2, "status": "success", "eval": {"task": "sums"}, "samples": samples}
    data = json.dumps(log).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["log.json", "log.json.gz"])
@pytest.mark.parametrize(
    ("value", "score"), [("C", 1.0), ("I", 0.0), ("P", 0.5), ("N", 0.0), (True, 1.0), (0.3, 0.3), (1, 1.0)]
)
def test_inspect_scores_need_no_mapping(tmp_path: Path, name: str, value: Any, score: float) -> None:
    path = inspect_log(tmp_path / name, [inspect_sample("a", "C"), inspect_sample("b", value)])
    recorded = imported(path, format="inspect")
    columns = ["score", "text", "input_tokens", "output_tokens", "cost_usd", "latency_s"]
    assert rows(recorded, *columns) == [["a", 1.0, "said a", 5, 7, 0.25, 2.0], ["b", score, "said b", 5, 7, 0.25, 2.0]]


def test_inspect_completions_are_graded_and_matched_as_is_written(tmp_path: Path) -> None:
    held_apart = inspect_sample("b", "C", attachments={"f00": "a long answer"})
    held_apart["output"]["completion"] = "attachment://f00"
    path = inspect_log(tmp_path / "log.json", [inspect_sample("a", "I"), held_apart])
    recorded = imported(path, format="inspect", completion="completion", task={"question": "input"})
    assert rows(recorded, "text") == [["a", "said a"], ["b", "a long answer"]]
    assert recorded.frame["score"].isna().all()


def test_inspect_samples_that_failed_or_were_not_scored_have_no_outcome(tmp_path: Path) -> None:
    failed = inspect_sample("a", "I", error={"message": "timeout", "traceback": "", "traceback_ansi": ""})
    path = inspect_log(tmp_path / "log.json", [failed, inspect_sample("b", float("nan"))])
    with pytest.raises(RecordedError, match=r"0 of 2 tasks.*\n.*\n  2 rows are empty: log.json row 0, log.json row 1"):
        imported(path, format="inspect")


def test_inspect_with_several_scorers_or_epochs_asks_which(tmp_path: Path) -> None:
    scores = {"match": {"value": "C"}, "judge": {"value": "I"}}
    samples = [inspect_sample(name, "C", scores=scores, epoch=epoch) for epoch in (1, 2) for name in "ab"]
    path = inspect_log(tmp_path / "log.json", samples)
    with pytest.raises(RecordedError, match=r"no column 'score'.*score.judge, score.match.*name one"):
        imported(path, format="inspect", samples="mean")
    recorded = imported(path, format="inspect", score="score.judge", samples="mean")
    assert rows(recorded, "sample", "score") == [["a", 0, 0.0], ["a", 1, 0.0], ["b", 0, 0.0], ["b", 1, 0.0]]
    only = imported(path, format="inspect", score="score.judge", where={"epoch": 2})
    assert len(only.frame) == 2


@pytest.mark.parametrize("content", ["[]", '{"eval": {}}', '{"samples": [1]}', "{"])
def test_what_is_no_inspect_log_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(content)
    with pytest.raises(RecordedError, match=r"log\.json"):
        imported(path, format="inspect")


ROUTERBENCH = [
    {
        "sample_id": name,
        "prompt": str([QUESTIONS[n]]),
        "eval_name": "sums",
        "gpt-4": score,
        "llama": 1.0,
        "gpt-4|model_response": f"['{name}']",
        "gpt-4|total_cost": 0.125,
        "llama|total_cost": 0.0,
        "oracle_model_to_route_to": "llama",
    }
    for n, (name, score) in enumerate([("a", 0.5), ("b", 1.0)])
]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
@pytest.mark.parametrize("task", [None, {"question": "question"}])
def test_routerbench_is_wide_and_the_model_names_its_columns(tmp_path: Path, suffix: str, task: Any) -> None:
    path = tmp_path / f"routerbench{suffix}"
    frame = pd.DataFrame(ROUTERBENCH)
    match suffix:
        case ".csv":
            frame.to_csv(path, index=False)
        case ".parquet":
            frame.to_parquet(path, index=False)
        case _:
            lines(path, ROUTERBENCH)
    recorded = imported(path, format="routerbench", **({"task": task} if task else {}))
    assert rows(recorded, "score", "cost_usd", "text") == [["a", 0.5, 0.125, "['a']"], ["b", 1.0, 0.125, "['b']"]]
    llama = imported(
        path, model="llama", format="routerbench", completion=None, score="llama", cost_usd="llama|total_cost"
    )
    assert rows(llama, "score", "cost_usd") == [["a", 1.0, 0.0], ["b", 1.0, 0.0]]
    with pytest.raises(RecordedError, match=r"no column 'gpt-5' .*the worker's model is the name of its column"):
        imported(path, model="gpt-5", format="routerbench")


def test_llmrouter_is_long_and_the_model_names_its_rows(tmp_path: Path) -> None:
    entries = [
        {
            "task_name": "sums",
            "query": query,
            "ground_truth": "x",
            "metric": "em",
            "choices": None,
            "task_id": None,
            "model_name": model,
            "response": f"{model} says",
            "token_num": 10,
            "input_tokens": 8,
            "output_tokens": 2,
            "response_time": 1.5,
            "performance": 0.75 if model == "gpt-4" else 0.0,
            "embedding_id": 1,
        }
        for query in [*QUESTIONS, "Something else?"]
        for model in ("gpt-4", "llama")
    ]
    path = lines(tmp_path / "routing.jsonl", entries)
    recorded = imported(path, format="llmrouter")
    columns = ["score", "text", "input_tokens", "output_tokens", "latency_s"]
    assert rows(recorded, *columns) == [[task, 0.75, "gpt-4 says", 8, 2, 1.5] for task in "ab"]
    assert recorded.account.unmatched == ["routing.jsonl row 4 ('Something else?')"]
    graded = imported(path, format="llmrouter", completion="response", where={"task_name": "sums"})
    assert rows(graded, "text") == [["a", "gpt-4 says"], ["b", "gpt-4 says"]]
    assert graded.frame["score"].isna().all()
    with pytest.raises(RecordedError, match=r"no row of routing.jsonl is where .*model_name holds gpt-4, llama"):
        imported(path, model="gpt-5", format="llmrouter")
