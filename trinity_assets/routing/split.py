"""Which tasks are held out, decided by a hash of each task's own identity.

A task's side depends on the seed, its benchmark and its near-duplicate group, and on nothing else: new tasks move no
old one, a corrected gold answer or category moves none, and near-duplicates stay together. Each benchmark and each
category is therefore cut in the declared proportion *in expectation*; an exact cut would need the other tasks.

Names of groups are a benchmark's own, so equal names in two of them are two groups. One that begins with ``SHARED`` is
a group of tasks of several benchmarks, and one group in all of them.
"""

from __future__ import annotations

import hashlib

import pandas as pd

from trinity_assets.routing.specs import SplitSpec
from trinity_assets.spec import canonical_json

TRAIN = "train"
TEST = "test"
NO_FOLD = -1

SHARED = "shared/"
"""How the name of a group of tasks of several benchmarks begins."""


def group_home(benchmark: str, group: str) -> str:
    """The benchmark that the name ``group`` of one of its tasks belongs to, "" where it is shared."""
    return "" if group.startswith(SHARED) else benchmark


def assign_split(benchmark: str, groups: pd.Series, spec: SplitSpec) -> pd.DataFrame:
    """Columns ``split`` (train or test) and ``fold`` (0..folds-1 in train, -1 in test) for one benchmark's groups."""
    placed = {group: _place(benchmark, str(group), spec) for group in groups.unique()}
    rows = [placed[group] for group in groups]
    return pd.DataFrame(rows, columns=["split", "fold"], index=groups.index).astype({"fold": "int64"})


def with_split(table: pd.DataFrame, spec: SplitSpec) -> pd.DataFrame:
    """``table`` (columns ``benchmark, group``) with the columns ``split`` and ``fold`` by ``spec``, whatever it had."""
    placed = [
        assign_split(str(benchmark), groups, spec)
        for benchmark, groups in table["group"].groupby(table["benchmark"], sort=False)
    ]
    by_row = pd.concat(placed).reindex(table.index)
    return table.assign(split=by_row["split"], fold=by_row["fold"])


def _place(benchmark: str, group: str, spec: SplitSpec) -> tuple[str, int]:
    home = group_home(benchmark, group)
    if _uniform(spec.seed, "split", home, group) < spec.test:
        return TEST, NO_FOLD
    return TRAIN, int(_uniform(spec.seed, "fold", home, group) * spec.folds)


def _uniform(*identity: str | int) -> float:
    """A number in [0, 1) that is a pure function of ``identity``."""
    first_bytes = hashlib.sha256(canonical_json(identity).encode()).digest()[:6]
    return int.from_bytes(first_bytes, "big") / 2**48
