"""Asset keys: the names under which the floors of the graph know each other."""

from __future__ import annotations

import dagster as dg


def tasks(benchmark: str) -> dg.AssetKey:
    """What a benchmark asks."""
    return dg.AssetKey(["benchmarks", benchmark, "tasks"])


def gold(benchmark: str) -> dg.AssetKey:
    """How a benchmark's answers are graded."""
    return dg.AssetKey(["benchmarks", benchmark, "gold"])


def contamination() -> dg.AssetKey:
    """Which tasks also occur in another benchmark."""
    return dg.AssetKey(["benchmarks", "contamination"])


def backbone(name: str) -> dg.AssetKey:
    """A backbone's weights."""
    return dg.AssetKey(["backbones", name])


def features(backbone_name: str, benchmark: str) -> dg.AssetKey:
    """A benchmark's questions as a backbone sees them."""
    return dg.AssetKey(["features", backbone_name, benchmark])


def answers(worker: str, benchmark: str) -> dg.AssetKey:
    """What a worker answered to a benchmark."""
    return dg.AssetKey(["answers", worker, benchmark])


def is_answers(key: dg.AssetKey) -> bool:
    """Whether ``key`` is that of some worker's answers, to a benchmark or to its sentinel."""
    return key.path[0] == "answers" or (key.path[0] == "sentinels" and key.path[-1] == "answers")


def solves(worker: str, benchmark: str) -> dg.AssetKey:
    """What those answers are worth."""
    return dg.AssetKey(["solves", worker, benchmark])


def drift() -> dg.AssetKey:
    """What changed in the workers since their epochs before."""
    return dg.AssetKey(["workers", "drift"])


def sentinel_answers(worker: str) -> dg.AssetKey:
    """What a worker answered to its sentinel."""
    return dg.AssetKey(["sentinels", worker, "answers"])


def sentinel_drift(worker: str) -> dg.AssetKey:
    """Those answers beside the worker's solve tables."""
    return dg.AssetKey(["sentinels", worker, "drift"])


def is_drift(key: dg.AssetKey) -> bool:
    """Whether ``key`` is that of a comparison, which notes what it lacks and holds up nothing."""
    return key.path[0] in ("workers", "sentinels") and key.path[-1] == "drift"


def table(router: str) -> dg.AssetKey:
    """Features, scores and split of a router's tasks, joined."""
    return dg.AssetKey(["routers", router, "table"])


def head(router: str) -> dg.AssetKey:
    """The heads that a router's trainers learned."""
    return dg.AssetKey(["routers", router, "head"])


def evaluation(router: str) -> dg.AssetKey:
    """Those heads on held-out tasks, beside the baselines."""
    return dg.AssetKey(["routers", router, "evaluation"])


def checkpoint(router: str) -> dg.AssetKey:
    """The published coordinator."""
    return dg.AssetKey(["routers", router, "checkpoint"])
