"""Solve tables: every settled answer of a cell with its score, its status and the reason."""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa

from trinity_assets.errors import GraderError
from trinity_assets.grading.processes import Graders, cores
from trinity_assets.grading.specs import TAKEN_AS_THEY_ARE, GradingSpec
from trinity_assets.grading.verdicts import Verdict
from trinity_assets.progress import Progress
from trinity_assets.spec import digest
from trinity_assets.workers.outcomes import Status

logger = logging.getLogger(__name__)

CARRIED = ("input_tokens", "output_tokens", "cost_usd", "latency_s")
"""Columns of the answers that nothing here decides on: evaluations price and time with them."""

SOLVES_SCHEMA = pa.schema(
    {
        "task_id": pa.string(),
        "sample": pa.int64(),
        "score": pa.float64(),
        "status": pa.string(),
        "rule": pa.string(),
        "ambiguous": pa.bool_(),
        "reason": pa.string(),
        "answer_digest": pa.string(),
        "input_tokens": pa.float64(),
        "output_tokens": pa.float64(),
        "cost_usd": pa.float64(),
        "latency_s": pa.float64(),
    }
)


@dataclass(frozen=True)
class Graded:
    """A solve table, and what of the machine it was graded with (sandbox, versions): facts that are in no digest."""

    frame: pd.DataFrame
    facts: dict[str, str]


def grade_answers(answers: pd.DataFrame, gold: pd.DataFrame, spec: GradingSpec, *, label: str = "grading") -> Graded:
    """Grade a cell's ``answers`` against ``gold``: one row per answer, in the same order, columns of ``SOLVES_SCHEMA``.

    An answer is graded; any other settled status takes the score of the settlement policy, null where that says
    missing. Tokens, cost and latency are carried along so that nothing below needs the answers themselves.

    Raises:
        GraderError: an answer's task has no gold, or a completion could not be graded; no table is made then.
    """
    payloads = {task: json.loads(text) for task, text in zip(gold["task_id"], gold["payload"], strict=True)}
    unknown = sorted(set(answers["task_id"]) - payloads.keys())
    if unknown:
        raise GraderError(f"{label}: {len(unknown)} answered tasks have no gold, {unknown[0]!r} first")
    texts = [None if pd.isna(text) else str(text) for text in answers["text"]]
    progress = Progress(logger, label, len(answers), "answers")

    judged: list[tuple[float | None, Verdict | None]] = []
    size = cores()
    with Graders(spec.grader, size) as graders:

        def judge(task_id: str, status: str, text: str | None) -> tuple[float | None, Verdict | None]:
            if status != Status.ANSWERED:
                return spec.settlement.score(status), None
            try:
                verdict = graders.grade(text or "", payloads[task_id])
            except GraderError as error:
                raise type(error)(f"{label}, task {task_id!r}: {error}") from error
            return verdict.score, verdict

        pool = ThreadPoolExecutor(size)
        try:
            for judgement in pool.map(judge, answers["task_id"], answers["status"], texts):
                judged.append(judgement)
                progress.advance()
        finally:
            pool.shutdown(cancel_futures=True)
    frame = pd.DataFrame(
        {
            "task_id": answers["task_id"].tolist(),
            "sample": answers["sample"].tolist(),
            "score": pd.array([score for score, _ in judged], dtype="Float64"),
            "status": answers["status"].tolist(),
            "rule": [verdict.rule if verdict else "" for _, verdict in judged],
            "ambiguous": [verdict.ambiguous if verdict else False for _, verdict in judged],
            "reason": [
                verdict.reason if verdict else status
                for (_, verdict), status in zip(judged, answers["status"], strict=True)
            ],
            "answer_digest": answer_digests(answers),
            **{name: answers[name].tolist() for name in CARRIED},
        }
    )
    return Graded(frame, graders.facts)


def answer_digests(answers: pd.DataFrame) -> list[str]:
    """What of each answer decides its verdict: the digest of status and text."""
    texts = [None if pd.isna(text) else str(text) for text in answers["text"]]
    return [digest([status, text]) for status, text in zip(answers["status"], texts, strict=True)]


def take_scores(outcomes: pd.DataFrame) -> Graded:
    """The solve table of recorded ``outcomes`` that have scores, which are taken as they are, by the rule of that name.

    Same rows, same order; the tasks that are not among them stay missing.
    """
    texts = [None if pd.isna(text) else str(text) for text in outcomes["text"]]
    decided = zip(outcomes["status"], texts, outcomes["score"], strict=True)
    frame = outcomes[["task_id", "sample", "score", "status", *CARRIED]].assign(
        rule=TAKEN_AS_THEY_ARE["rule"],
        ambiguous=False,
        reason="",
        answer_digest=[digest([status, text, float(score)]) for status, text, score in decided],
    )
    return Graded(frame[SOLVES_SCHEMA.names], {})


def solves_data_version(solves: pd.DataFrame) -> str:
    """The digest of what is decided on below: score and status of every task and sample."""
    scores = [None if pd.isna(score) else float(score) for score in solves["score"]]
    rows = zip(solves["task_id"], solves["sample"], scores, solves["status"], strict=True)
    return digest([list(row) for row in rows])
