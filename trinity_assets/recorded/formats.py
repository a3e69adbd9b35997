"""Other programs' logs as plain rows: for each format, how an entry becomes a row and which columns are what.

Field names were compared with the programs' public sources and documentation as noted at each format; no log of theirs
was at hand, so the tests' logs are written by hand to that shape.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trinity_assets.benchmarks.specs import FieldMapping
from trinity_assets.recorded.specs import RecordedOutcomes

Row = dict[str, Any]
Columns = dict[str, Any]
"""Fields of ``RecordedOutcomes`` that a format fills in."""

SOLE_SCORE = "score"
"""The column in which a format puts a score that is the only one."""


@dataclass(frozen=True)
class Format:
    """A format: ``flat`` makes a row of an entry, ``columns`` says which column is what for a model and a benchmark.

    ``made_from`` names the file's column for those that ``flat`` adds, ``samples_in`` the field of a JSON object that
    holds the entries, and ``hint`` is said when a column is missing.
    """

    flat: Callable[[Row], Row]
    columns: Callable[[str, FieldMapping], Columns]
    made_from: Mapping[str, str] = field(default_factory=dict)
    samples_in: str | None = None
    hint: str = ""


def resolved(outcomes: RecordedOutcomes, model: str, fields: FieldMapping) -> RecordedOutcomes:
    """``outcomes`` with what its format fills in; what is written in the catalog wins.

    A score or a completion that is written takes the place of both: it says what the outcome is.

    Raises:
        ValueError: the format cannot tell which column names the task of this benchmark.
    """
    filled = FORMATS[outcomes.format].columns(model, fields)
    if outcomes.score is not None or outcomes.completion is not None:
        replaced = ("score", "completion") if outcomes.score is not None else ("score", "completion", "values")
        filled = {name: value for name, value in filled.items() if name not in replaced}
    written = outcomes.model_dump(exclude_unset=True)
    for name in ("where", "values"):
        if name in filled:
            written[name] = filled[name] | written.get(name, {})
    merged = RecordedOutcomes.model_validate(filled | written)
    if merged.task is None:
        raise ValueError(
            f"task is missing, and the format {outcomes.format} cannot tell it for this benchmark: name the column, as "
            "in `task: {row: doc_id}`"
        )
    return merged


def _as_it_is(entry: Row) -> Row:
    return entry


def _nothing(_model: str, _fields: FieldMapping) -> Columns:
    return {}


# lm-evaluation-harness, `--log_samples`: samples_<task>_<date>.jsonl, one entry per document and filter. These are the
# fields that its evaluator.py writes beside one per metric; `metrics`, which lists those, is in newer versions only.
_LM_EVAL_OWN = {
    "doc_id",
    "doc",
    "target",
    "arguments",
    "resps",
    "filtered_resps",
    "filter",
    "metrics",
    "doc_hash",
    "prompt_hash",
    "target_hash",
}


def _lm_eval(entry: Row) -> Row:
    """``doc_id``, ``filter``, each metric, ``doc.<field>``, and ``resp`` and ``filtered_resp`` where there is one text.

    The only metric is also the column ``score``.
    """
    listed = entry.get("metrics")
    metrics = listed if isinstance(listed, list) else [name for name in entry if name not in _LM_EVAL_OWN]
    row: Row = {name: entry[name] for name in ("doc_id", "filter", "target", *metrics) if name in entry}
    if len(metrics) == 1 and metrics[0] in entry:
        row[SOLE_SCORE] = entry[metrics[0]]
    doc = entry.get("doc")
    if isinstance(doc, dict):
        row |= {f"doc.{name}": value for name, value in doc.items()}
    for column, field_name in (("resp", "resps"), ("filtered_resp", "filtered_resps")):
        if (text := _only_text(entry.get(field_name))) is not None:
            row[column] = text
    return row


def _only_text(value: Any) -> str | None:
    """The text inside lists of one, None where there are several or what is inside is no text (a log-likelihood)."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, str) else None


def _lm_eval_columns(_model: str, fields: FieldMapping) -> Columns:
    """``doc`` is the row of the data set, so the benchmark's own mapping names the id or the question in it.

    The options of multiple choice are part of our question and not of that field; there the row number is left.
    """
    if fields.id is not None:
        return {"task": {"id": f"doc.{fields.id}"}, "score": SOLE_SCORE}
    if fields.choices is None:
        return {"task": {"question": f"doc.{fields.question}"}, "score": SOLE_SCORE}
    return {"score": SOLE_SCORE}


_ATTACHED = "attachment://"


def _inspect(sample: Row) -> Row:
    """``id``, ``epoch``, ``input``, ``completion``, ``score.<scorer>``, tokens, cost and seconds of one ``EvalSample``.

    The only score is also the column ``score``. A sample that ended in an error has no outcome, and a score that is NaN
    is none: that is how Inspect marks what it could not score.
    """
    output = sample.get("output") or {}
    attached = sample.get("attachments") or {}
    asked = _inspect_input(sample.get("input"))
    row: Row = {"id": sample.get("id"), "epoch": sample.get("epoch"), "input": _whole(asked, attached)}
    usage = [one for one in (sample.get("model_usage") or {}).values() if isinstance(one, dict)]
    row["input_tokens"] = _total(usage, "input_tokens")
    row["output_tokens"] = _total(usage, "output_tokens")
    row["cost_usd"] = _total(usage, "total_cost")
    row["latency_s"] = sample.get("working_time") or sample.get("total_time")
    row["completion"] = None if sample.get("error") else _whole(output.get("completion"), attached)
    scores = {name: score.get("value") for name, score in (sample.get("scores") or {}).items()}
    if sample.get("error"):
        scores = dict.fromkeys(scores)
    scores = {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in scores.items()}
    row |= {f"score.{name}": value for name, value in scores.items()}
    if len(scores) == 1:
        row[SOLE_SCORE] = next(iter(scores.values()))
    return row


def _inspect_input(value: Any) -> str | None:
    """The input as text: what it is, or what the last message of the user says."""
    if isinstance(value, list):
        said = [one.get("content") for one in value if isinstance(one, dict) and one.get("role") == "user"]
        value = said[-1] if said else None
    return value if isinstance(value, str) else None


def _whole(text: Any, attached: Mapping[str, str]) -> Any:
    """The text itself, where the log holds it apart and refers to it."""
    return attached.get(text.removeprefix(_ATTACHED), text) if isinstance(text, str) else text


def _total(usage: list[Row], name: str) -> Any:
    """The sum over models, None where one of them does not say."""
    values = [one.get(name) for one in usage]
    known = [value for value in values if isinstance(value, int | float)]
    return sum(known) if known and len(known) == len(values) else None


def _inspect_columns(_model: str, _fields: FieldMapping) -> Columns:
    """The values are those that Inspect's own ``value_to_float`` gives its four letters."""
    return {
        "task": {"id": "id"},
        "score": SOLE_SCORE,
        "completion": "completion",
        "values": {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0},
        "cost_usd": "cost_usd",
        "latency_s": "latency_s",
        "input_tokens": "input_tokens",
        "output_tokens": "output_tokens",
    }


def _routerbench(entry: Row) -> Row:
    """The row, and its ``prompt`` as ``question``: where that is a list of texts in Python's notation, its texts."""
    if "prompt" not in entry:
        return entry
    prompt = entry["prompt"]
    if isinstance(prompt, str) and prompt.startswith("["):
        try:
            read = ast.literal_eval(prompt)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            read = None
        if isinstance(read, list) and all(isinstance(text, str) for text in read):
            prompt = "\n".join(read)
    return entry | {"question": prompt}


def _routerbench_columns(model: str, _fields: FieldMapping) -> Columns:
    return {
        "task": {"id": "sample_id"},
        "score": model,
        "completion": f"{model}|model_response",
        "cost_usd": f"{model}|total_cost",
    }


def _llmrouter_columns(model: str, _fields: FieldMapping) -> Columns:
    return {
        "task": {"question": "query"},
        "where": {"model_name": model},
        "score": "performance",
        "completion": "response",
        "latency_s": "response_time",
        "input_tokens": "input_tokens",
        "output_tokens": "output_tokens",
    }


FORMATS: dict[str, Format] = {
    "table": Format(_as_it_is, _nothing),
    "lm_eval": Format(
        _lm_eval,
        _lm_eval_columns,
        hint="score is the only metric; where there are several, name one (score: exact_match). resp and filtered_resp "
        "are the only answer; where a document has several filters, keep one (where: {filter: ...})",
    ),
    # Inspect's JSON log (`inspect log convert --to json`): EvalLog.samples, as its _log.py, _metric.py and
    # _model_output.py declare them.
    "inspect": Format(
        _inspect,
        _inspect_columns,
        samples_in="samples",
        hint="score is the only scorer's; where there are several, name one (score: score.match)",
    ),
    # RouterBench (withmartian/routerbench on the hub) as a wide table. It is published as pickles of data frames with
    # sample_id, prompt, eval_name, oracle_model_to_route_to and, per model, <model>, <model>|total_cost and
    # <model>|model_response; these names were seen in public code that reads it and in an excerpt of a CSV copy.
    "routerbench": Format(
        _routerbench,
        _routerbench_columns,
        made_from={"question": "prompt"},
        hint="the worker's model is the name of its column",
    ),
    # LLMRouter's routing data, as llmrouter/data/README.md lists its fields.
    "llmrouter": Format(
        _as_it_is, _llmrouter_columns, hint="the worker's model is what the file calls it in model_name"
    ),
}
"""Format name -> format."""
