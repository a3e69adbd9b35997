"""Contamination: tasks whose text also occurs in another benchmark of the catalog.

A router that trains on one benchmark and is judged on the other has then seen what it is asked. This is a report:
which task to quarantine, or which benchmark to leave out, is for a person to decide.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from trinity_assets.benchmarks.near_duplicates import GRAM_WORDS, SimilarityJoin, shingles_of_words, words_of
from trinity_assets.spec import digest

KINDS = ("exact", "near_duplicate", "contained", "contains")
"""From the strongest: the same words; a near duplicate; the whole question inside the other; the reverse."""

_MARKS = frozenset(["Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "Sk"])
_OPERATORS = frozenset("-*/%^&#@\\")
"""What Unicode calls punctuation and a question may turn on, unlike the marks that only typesetting changes."""

PAIR_COLUMNS = [
    "benchmark",
    "task_id",
    "question",
    "other_benchmark",
    "other_task_id",
    "other_question",
    "kind",
    "similarity",
]

CONTAMINATION_SCHEMA = pa.schema(
    {
        "benchmark": pa.string(),
        "task_id": pa.string(),
        "other_benchmark": pa.string(),
        "other_task_id": pa.string(),
        "kind": pa.string(),
        "similarity": pa.float64(),
    }
)


@dataclass(frozen=True)
class _Finding:
    """``task`` and ``other`` are numbers of tasks, counted through all benchmarks."""

    task: int
    other: int
    kind: str
    similarity: float

    @property
    def weakness(self) -> tuple[int, float, int]:
        """What orders the findings about a task, the strongest first."""
        return KINDS.index(self.kind), -self.similarity, self.other


def find_contamination(tasks: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The strongest finding of each task in each other benchmark, in the order of the tasks.

    Texts are compared as ``CONTAMINATION_DEFINITION`` says. ``similarity`` is the Jaccard similarity of their word
    5-grams.

    Args:
        tasks: per benchmark, columns ``task_id, question``.

    Returns:
        A frame with the columns of ``CONTAMINATION_SCHEMA``.
    """
    owners = [name for name, frame in tasks.items() for _ in range(len(frame))]
    ids = [task_id for frame in tasks.values() for task_id in frame["task_id"]]
    questions = [question for frame in tasks.values() for question in frame["question"]]
    places = {name: place for place, name in enumerate(tasks)}

    strongest: dict[tuple[int, int], _Finding] = {}
    for finding in _findings(questions, owners):
        key = finding.task, places[owners[finding.other]]
        if key not in strongest or finding.weakness < strongest[key].weakness:
            strongest[key] = finding
    rows = [
        (owners[one.task], ids[one.task], owners[one.other], ids[one.other], one.kind, one.similarity)
        for _, one in sorted(strongest.items())
    ]
    return pd.DataFrame(rows, columns=CONTAMINATION_SCHEMA.names)


def pairs(found: pd.DataFrame, tasks: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Each pair of tasks that is found, once, with both questions: columns ``PAIR_COLUMNS``, in the report's order."""
    questions = {
        (name, task_id): question
        for name, frame in tasks.items()
        for task_id, question in zip(frame["task_id"], frame["question"], strict=True)
    }
    rows: dict[frozenset[tuple[str, str]], tuple[object, ...]] = {}
    for benchmark, task_id, other, other_id, kind, similarity in found.itertuples(index=False, name=None):
        one, two = (benchmark, task_id), (other, other_id)
        rows.setdefault(frozenset([one, two]), (*one, questions[one], *two, questions[two], kind, similarity))
    return pd.DataFrame(list(rows.values()), columns=PAIR_COLUMNS)


def counts_by_kind(found: pd.DataFrame) -> pd.DataFrame:
    """How many tasks of ``benchmark`` occur in ``other_benchmark``, in one column for each kind.

    One row for each pair and direction in which there are some, in the order in which the report comes to them.
    """
    pairs = found[["benchmark", "other_benchmark"]].drop_duplicates()
    counts = found.groupby(["benchmark", "other_benchmark", "kind"]).size()
    rows = [
        (benchmark, other, *(int(counts.get((benchmark, other, kind), 0)) for kind in KINDS))
        for benchmark, other in pairs.itertuples(index=False)
    ]
    return pd.DataFrame(rows, columns=["benchmark", "other_benchmark", *KINDS])


def contamination_data_version(found: pd.DataFrame) -> str:
    """The digest of the whole report."""
    return digest(found.values.tolist())


def _findings(questions: list[str], owners: list[str]) -> Iterator[_Finding]:
    """What is found between tasks of different owners, in both directions."""
    words = [_compared_words(question) for question in questions]
    texts = [f" {' '.join(own)} " for own in words]
    sizes = [len(own) for own in words]
    first_of: dict[tuple[str, str], int] = {}
    for number, (text, owner) in enumerate(zip(texts, owners, strict=True)):
        first_of.setdefault((text, owner), number)
    names = list(dict.fromkeys(owners))
    for number, (text, owner) in enumerate(zip(texts, owners, strict=True)):
        for name in names:
            if name != owner and (text, name) in first_of:
                yield _Finding(number, first_of[text, name], "exact", 1.0)

    sets = [shingles_of_words(own) for own in words]
    join = SimilarityJoin(sets)
    for number, owner in enumerate(owners):
        for other, similarity in join.earlier(number):
            if owners[other] != owner:
                yield _Finding(number, other, "near_duplicate", similarity)
                yield _Finding(other, number, "near_duplicate", similarity)
        if sizes[number] < GRAM_WORDS:
            continue
        for other in join.holding_all_of(number):
            if owners[other] != owner and texts[number] in texts[other]:
                similarity = len(sets[number]) / len(np.union1d(sets[number], sets[other]))
                yield _Finding(number, other, "contained", similarity)
                yield _Finding(other, number, "contains", similarity)


def _compared_words(question: str) -> Sequence[str]:
    """The words and operators of ``question``; where it has nothing but marks of prose, those."""
    words = words_of(question)
    return [word for word in words if not _mark_of_prose(word)] or words


def _mark_of_prose(word: str) -> bool:
    return len(word) == 1 and word not in _OPERATORS and unicodedata.category(word) in _MARKS
