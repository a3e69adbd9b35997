"""Which tasks heads have learnt from, as marks that are kept beside them, and how many of them are held out now.

A task is known again by its id, its question or its near-duplicate group, whichever is the same. Not by its benchmark:
a side of the split depends on what that is called, so under another name held-out tasks are others, and train tasks
among them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence

import pandas as pd

from trinity_assets.routing.split import TEST, TRAIN
from trinity_assets.spec import canonical_json

MARK_DIGITS = 12
"""Hex digits of a mark: among ten thousand tasks held against as many, a mark is shared by chance once in millions."""


def learnt_marks(table: pd.DataFrame, questions: Sequence[str] | None = None) -> tuple[str, ...]:
    """The marks of the train tasks of ``table`` (n rows, with a split), sorted; ``questions`` (n,) where known."""
    marked = _marks(table, questions)
    return tuple(sorted(set().union(*marked[(table["split"] == TRAIN).to_numpy()])))


def seen_held_out(table: pd.DataFrame, learnt: Collection[str], questions: Sequence[str] | None = None) -> int:
    """How many test tasks of ``table`` have a mark in ``learnt``, or a near-duplicate that has one."""
    known = frozenset(learnt)
    seen = _marks(table, questions).map(lambda marks: not known.isdisjoint(marks)).astype(bool)
    within = seen.groupby([table["benchmark"].to_numpy(), table["group"].to_numpy()]).transform("any")
    return int((within & (table["split"] == TEST).to_numpy()).sum())


def _marks(table: pd.DataFrame, questions: Sequence[str] | None) -> pd.Series:
    """The marks of each row, a set each."""
    # A group is named by one of its tasks, so both are marked as names.
    names = zip(table["task_id"], table["group"], strict=True)
    named = [{_mark("name", task_id), _mark("name", group)} for task_id, group in names]
    if questions is not None:
        named = [marks | {_mark("question", question)} for marks, question in zip(named, questions, strict=True)]
    return pd.Series(named, index=range(len(table)), dtype=object)


def _mark(kind: str, text: str) -> str:
    return hashlib.sha256(canonical_json([kind, text]).encode()).hexdigest()[:MARK_DIGITS]
