"""Drift: what changed between two askings of the same questions, and whether asking again alone would change as much.

Providers change models without a word. What they say that they ran, and what it answered, is compared question by
question. **What is a pair.** Tests need pairs that do not depend on each other: one per task, its first sample in
either asking. A verdict is whether the task is solved (score 1); a pair with a verdict missing is left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import pandas as pd
import pyarrow as pa

from trinity_assets.grading.significance import (
    FALSE_DISCOVERY_RATE,
    exceeds_floor_p,
    false_discovery_adjusted,
    mcnemar_p,
)
from trinity_assets.grading.solves import answer_digests, grade_answers
from trinity_assets.grading.specs import GradingSpec
from trinity_assets.spec import digest
from trinity_assets.workers.sentinels import SENTINEL_ANSWERS_SCHEMA

ONE_EPOCH = "one epoch so far"

MEASURES = ("cost_usd", "input_tokens", "output_tokens")
"""What is averaged over the answers that both askings have."""

DRIFT_SCHEMA = pa.schema(
    [
        pa.field("worker", pa.string(), nullable=False),
        pa.field("benchmark", pa.string(), nullable=False),
        pa.field("note", pa.string()),
        pa.field("earlier_epoch", pa.int64()),
        pa.field("epoch", pa.int64()),
        pa.field("pairs", pa.int64(), nullable=False),
        pa.field("left_out", pa.int64(), nullable=False),
        pa.field("newly_solved", pa.list_(pa.string()), nullable=False),
        pa.field("newly_lost", pa.list_(pa.string()), nullable=False),
        pa.field("mcnemar_p", pa.float64()),
        pa.field("mcnemar_adjusted", pa.float64()),
        pa.field("floor_source", pa.string()),
        pa.field("floor_changed", pa.int64()),
        pa.field("floor_pairs", pa.int64()),
        pa.field("floor_p", pa.float64()),
        pa.field("floor_adjusted", pa.float64()),
        pa.field("models_earlier", pa.list_(pa.string()), nullable=False),
        pa.field("models_now", pa.list_(pa.string()), nullable=False),
        pa.field("fingerprints_earlier", pa.list_(pa.string()), nullable=False),
        pa.field("fingerprints_now", pa.list_(pa.string()), nullable=False),
        *(pa.field(f"{measure}_{when}", pa.float64()) for measure in MEASURES for when in ("earlier", "now")),
    ]
)
"""One row per comparison; ``*_p`` are of one test, ``*_adjusted`` of it among all tests of the report."""

SENTINEL_VERDICTS_SCHEMA = pa.schema([*SENTINEL_ANSWERS_SCHEMA, pa.field("score", pa.float64())])
"""A sentinel's answers with their scores, null where missing."""


@dataclass(frozen=True)
class NoiseFloor:
    """How often a verdict changes by asking again: ``changed`` of ``pairs`` of askings within one epoch.

    ``source`` says whose: the cell's own ``samples``, or those of its ``sentinel``.
    """

    source: str
    changed: int
    pairs: int


@dataclass(frozen=True)
class Comparison:
    """One worker on one benchmark, asked twice; ``note`` says why there is nothing to compare, where there is not.

    ``mcnemar_p`` says whether more tasks changed in one direction than in the other, ``floor_p`` whether more changed
    at all than asking again changes by itself, None where no floor is known. Models and fingerprints are what the
    provider said; means are over the answers that both askings have, None where none is known.
    """

    worker: str
    benchmark: str
    note: str | None = None
    earlier_epoch: int | None = None
    epoch: int | None = None
    pairs: int = 0
    left_out: int = 0
    newly_solved: tuple[str, ...] = ()
    newly_lost: tuple[str, ...] = ()
    mcnemar_p: float | None = None
    mcnemar_adjusted: float | None = None
    floor: NoiseFloor | None = None
    floor_p: float | None = None
    floor_adjusted: float | None = None
    models_earlier: tuple[str, ...] = ()
    models_now: tuple[str, ...] = ()
    fingerprints_earlier: tuple[str, ...] = ()
    fingerprints_now: tuple[str, ...] = ()
    means: dict[str, float | None] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The cell in words."""
        return f"{self.worker} on {self.benchmark}"

    @property
    def changed(self) -> int:
        """How many verdicts changed."""
        return len(self.newly_solved) + len(self.newly_lost)

    @property
    def significant(self) -> bool:
        """Whether either test is, among all tests of the report."""
        adjusted = (self.mcnemar_adjusted, self.floor_adjusted)
        return any(p is not None and p <= FALSE_DISCOVERY_RATE for p in adjusted)

    @property
    def model_changed(self) -> bool:
        """Whether the provider says that it ran other models; one that says nothing has not changed its word."""
        return bool(self.models_earlier and self.models_now) and self.models_earlier != self.models_now

    @property
    def fingerprint_changed(self) -> bool:
        """As ``model_changed``, of the fingerprints, which change with every deployment."""
        return (
            bool(self.fingerprints_earlier and self.fingerprints_now)
            and self.fingerprints_earlier != self.fingerprints_now
        )

    def between(self, earlier: int | None, now: int) -> Comparison:
        """This comparison, of the epochs ``earlier`` (None: of several) and ``now``."""
        return replace(self, earlier_epoch=earlier, epoch=now)


def with_scores(
    answers: pd.DataFrame, gold: pd.DataFrame, spec: GradingSpec, known: pd.DataFrame | None, *, label: str
) -> pd.DataFrame:
    """``answers`` with a column ``score``, null where it is missing.

    An answer with the status and the text of one to the same task in ``known``, a solve table by the same ``spec``
    and ``gold``, has its score; every other is graded.

    Raises:
        GraderError: as ``grade_answers``.
    """
    keys = list(zip(answers["task_id"], answer_digests(answers), strict=True))
    scores: dict[tuple[str, str], Any] = {}
    if known is not None:
        scores = dict(zip(zip(known["task_id"], known["answer_digest"], strict=True), known["score"], strict=True))
    unknown = answers[[key not in scores for key in keys]]
    if len(unknown):
        graded = grade_answers(unknown, gold, spec, label=label).frame
        scores |= dict(zip(zip(graded["task_id"], graded["answer_digest"], strict=True), graded["score"], strict=True))
    return answers.assign(score=pd.array([scores[key] for key in keys], dtype="Float64"))


def repeats_floor(scored: pd.DataFrame, source: str) -> NoiseFloor | None:
    """The floor of one asking with several samples per task, None where no two samples of a task have verdicts.

    Samples are paired without using one twice, (0, 1), (2, 3), ..., so that the pairs do not depend on each other.
    """
    solved = _solved(scored)
    pairs = [
        (first, second)
        for (task_id, sample), first in solved.items()
        if sample % 2 == 0 and (second := solved.get((task_id, sample + 1))) is not None and first is not None
    ]
    return NoiseFloor(source, sum(one != other for one, other in pairs), len(pairs)) if pairs else None


def compare(
    worker: str, benchmark: str, earlier: pd.DataFrame, now: pd.DataFrame, floor: NoiseFloor | None
) -> Comparison:
    """The comparison of two askings, each with a column ``score``, of the questions that both settled.

    ``earlier`` and ``now`` hold the columns of ``ANSWERS_SCHEMA`` and ``score``, one row per task and sample.
    """
    index = ["task_id", "sample"]
    common = earlier[index].merge(now[index])
    earlier, now = common.merge(earlier), common.merge(now)
    before, after = _solved(earlier), _solved(now)
    tasks = [task_id for task_id, sample in after if sample == 0]
    verdicts = {task_id: (before[task_id, 0], after[task_id, 0]) for task_id in tasks}
    known = {task_id: pair for task_id, pair in verdicts.items() if None not in pair}
    gained = tuple(task_id for task_id, pair in known.items() if pair == (False, True))
    lost = tuple(task_id for task_id, pair in known.items() if pair == (True, False))
    changed = len(gained) + len(lost)
    return Comparison(
        worker,
        benchmark,
        pairs=len(known),
        left_out=len(verdicts) - len(known),
        newly_solved=gained,
        newly_lost=lost,
        mcnemar_p=mcnemar_p(len(gained), len(lost)) if known else None,
        floor=floor,
        floor_p=exceeds_floor_p(changed, len(known), floor.changed, floor.pairs) if floor and known else None,
        models_earlier=_said(earlier["model_returned"]),
        models_now=_said(now["model_returned"]),
        fingerprints_earlier=_said(earlier["fingerprint"]),
        fingerprints_now=_said(now["fingerprint"]),
        means={
            f"{measure}_{when}": _mean(frame[measure])
            for measure in MEASURES
            for when, frame in (("earlier", earlier), ("now", now))
        },
    )


def with_adjusted_p(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """``comparisons`` with the adjusted p of every test: all tests of all of them are one family."""
    made = [p for one in comparisons for p in (one.mcnemar_p, one.floor_p) if p is not None]
    adjusted = iter(false_discovery_adjusted(made))
    return [
        replace(
            one,
            mcnemar_adjusted=None if one.mcnemar_p is None else next(adjusted),
            floor_adjusted=None if one.floor_p is None else next(adjusted),
        )
        for one in comparisons
    ]


def drift_frame(comparisons: Iterable[Comparison]) -> pd.DataFrame:
    """One row per comparison, in the columns of :data:`DRIFT_SCHEMA`."""
    return pd.DataFrame([_row(one) for one in comparisons], columns=pd.Index(DRIFT_SCHEMA.names)).astype(
        dict.fromkeys(("earlier_epoch", "epoch", "floor_changed", "floor_pairs"), "Int64")
    )


def drift_data_version(comparisons: Iterable[Comparison]) -> str:
    """The digest of the report without costs and tokens."""
    return digest([asdict(replace(one, means={})) for one in comparisons])


def sentinel_verdicts_data_version(scored: pd.DataFrame) -> str:
    """The digest of what is decided on: score and status of every task and repeat."""
    scores = [None if pd.isna(score) else float(score) for score in scored["score"]]
    rows = zip(scored["benchmark"], scored["task_id"], scored["sample"], scores, scored["status"], strict=True)
    return digest([list(row) for row in rows])


def _row(one: Comparison) -> dict[str, Any]:
    row = {item.name: getattr(one, item.name) for item in fields(one)}
    del row["floor"], row["means"]
    floor = {f"floor_{name}": value for name, value in asdict(one.floor).items()} if one.floor else {}
    return {**row, **floor, **one.means}


def _solved(scored: pd.DataFrame) -> dict[tuple[str, int], bool | None]:
    """Whether each (task, sample) is solved, None where that is not known."""
    return {
        (str(task_id), int(sample)): None if pd.isna(score) else bool(score == 1)
        for task_id, sample, score in zip(scored["task_id"], scored["sample"], scored["score"], strict=True)
    }


def _said(values: pd.Series) -> tuple[str, ...]:
    return tuple(sorted({str(value) for value in values.dropna()}))


def _mean(values: pd.Series) -> float | None:
    known = pd.to_numeric(values).dropna()
    return float(known.mean()) if len(known) else None
