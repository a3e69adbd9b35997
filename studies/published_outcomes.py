"""The outcomes that LLMRouter publishes (github.com/ulab-uiuc/LLMRouter, MIT), as a router table, read in place.

``solve_table.csv`` has a row per query and a column of scores per model, ``default_query_<part>.jsonl`` the queries,
``default_llm.json`` each model's prices in USD per million tokens. Nothing counts the tokens of a single answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from trinity_assets.errors import TrainingError
from trinity_assets.routing.outcome_tables import OutcomeTable, outcome_table
from trinity_assets.routing.table import MEASURES, TOKENS_PER_MTOK, score_matrix, table_workers
from trinity_assets.texts import quoted

FOLDER = "recorded/llmrouter_9models"
"""Where the files lie, in a directory of test data."""

BENCHMARKS = ("human_eval", "gsm8k", "mbpp", "mmlu", "math")
"""Public benchmarks of code, mathematics and knowledge; each of their scores is right or wrong."""

NOMINAL_TOKENS = {"input": 500, "output": 500}
"""What a question and its answer are taken to have. The nine models cost the same for either."""

_OF_THE_QUERY = ("task_name", "task_id", "query_file", "query_line", "dc_split")
"""The columns of ``solve_table.csv`` that are no model's."""


def read_published(folder: Path, benchmarks: Sequence[str] = BENCHMARKS) -> OutcomeTable:
    """The tasks of ``benchmarks`` with every model's score, their questions, and what an answer costs at list prices.

    A task is named by its place in the files of queries. The pool has the order of the table's columns.

    Raises:
        TrainingError: a file is missing or cannot be read, or the files do not fit each other.
    """
    try:
        scores = pd.read_csv(folder / "solve_table.csv")
        scores = scores[scores["task_name"].isin(benchmarks)]
        queries = {part: _queries(folder / f"default_query_{part}.jsonl") for part in scores["query_file"].unique()}
        listed = json.loads((folder / "default_llm.json").read_text(encoding="utf-8"))
        models = [name for name in scores.columns if name not in _OF_THE_QUERY]
        costs = {f"cost__{model}": _cost_usd(listed[model]) for model in models}
        rows = [
            {
                "task_id": f"{row['query_file']}/{row['query_line']}",
                "benchmark": row["task_name"],
                "question": queries[row["query_file"]][row["query_line"]]["query"],
                **{f"score__{model}": row[model] for model in models},
                **costs,
            }
            for row in scores.to_dict("records")
        ]
    except (OSError, ValueError, LookupError) as error:
        raise TrainingError(
            f"{folder} does not hold the files of LLMRouter that belong together: {error!r}; name the directory that "
            f"holds {FOLDER}"
        ) from error
    return outcome_table(rows, str(folder))


def among(table: pd.DataFrame, workers: Sequence[str]) -> pd.DataFrame:
    """``table`` with these workers of its pool only."""
    others = set(table_workers(table)) - set(workers)
    return table.drop(columns=[f"{measure}__{worker}" for worker in others for measure in MEASURES])


def dominated_pool(table: pd.DataFrame) -> list[str]:
    """The best single worker, and those that it beats on every benchmark; by the mean scores of all tasks.

    Raises:
        TrainingError: it beats nobody everywhere.
    """
    workers = table_workers(table)
    scores = pd.DataFrame(score_matrix(table, workers), columns=workers)
    best = str(scores.mean().idxmax())
    by_benchmark = scores.groupby(table["benchmark"].to_numpy()).mean()
    pool = [w for w in workers if w == best or (by_benchmark[best] > by_benchmark[w]).all()]
    if pool == [best]:
        raise TrainingError(f"{quoted(best)} beats no other worker on every benchmark, so no pool of it is dominated")
    return pool


def _queries(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _cost_usd(listed: Mapping[str, float]) -> float:
    """USD per answer of ``NOMINAL_TOKENS``."""
    return sum(listed[f"{side}_price"] * tokens for side, tokens in NOMINAL_TOKENS.items()) / TOKENS_PER_MTOK
