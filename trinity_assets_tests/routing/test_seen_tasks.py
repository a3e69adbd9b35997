"""How many held-out tasks were learnt from before, by what tasks are known again."""

from __future__ import annotations

import pandas as pd

from trinity_assets.routing.seen_tasks import learnt_marks, seen_held_out


def table(groups: dict[str, str], split: str, benchmark: str = "quiz") -> pd.DataFrame:
    """Tasks of these ids and groups, all on one side."""
    return pd.DataFrame({"task_id": list(groups), "group": list(groups.values()), "benchmark": benchmark}).assign(
        split=split
    )


def test_a_task_is_known_by_id_question_or_group_in_whatever_benchmark():
    before = table({"a": "a", "b": "b"}, "train")
    unseen = pd.concat([before, table({"h": "h"}, "test")], ignore_index=True)
    learnt = learnt_marks(unseen, ["What?", "Why?", "How?"])
    assert len(learnt) == 4 and all(len(mark) == 12 for mark in learnt)
    now = table({"a": "a", "c": "c", "d": "b", "h": "h", "e": "e"}, "test", "renamed")
    assert seen_held_out(now, learnt) == 2, "a by its id, d by the group of b"
    assert seen_held_out(now, learnt, ["What?", "Why?", "x", "How?", "y"]) == 3, "c by its question"
    assert seen_held_out(now.assign(split="train"), learnt) == 0


def test_a_near_duplicate_of_what_was_learnt_has_been_seen():
    """Groups are named by the first row, so in another order they have another name."""
    learnt = learnt_marks(table({"a": "a", "b": "a", "c": "c"}, "train"))
    assert seen_held_out(table({"n": "n", "b": "n", "x": "x"}, "test"), learnt) == 2
    apart = pd.concat([table({"c": "one"}, "train"), table({"x": "one"}, "test", "other")], ignore_index=True)
    assert seen_held_out(apart, learnt) == 0, "the groups of two benchmarks only share a name"
