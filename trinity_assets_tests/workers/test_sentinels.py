"""Which tasks a sentinel asks."""

from __future__ import annotations

from collections import Counter

from trinity_assets.workers.operations import SentinelSpec
from trinity_assets.workers.sentinels import sentinel_tasks

TASKS = {"many": [f"m{n}" for n in range(50)], "few": ["f0", "f1"], "some": [f"s{n}" for n in range(20)]}


def sizes(drawn: dict[str, list[str]]) -> dict[str, int]:
    return {name: len(ids) for name, ids in drawn.items()}


def test_each_benchmark_gives_equally_many_as_far_as_it_has_them() -> None:
    assert sizes(sentinel_tasks(SentinelSpec(tasks=6), TASKS)) == {"many": 2, "few": 2, "some": 2}
    assert sizes(sentinel_tasks(SentinelSpec(tasks=20), TASKS)) == {"many": 9, "few": 2, "some": 9}
    assert sizes(sentinel_tasks(SentinelSpec(tasks=1), TASKS)) == {"many": 1, "few": 0, "some": 0}
    assert sizes(sentinel_tasks(SentinelSpec(tasks=500), TASKS)) == {"many": 50, "few": 2, "some": 20}


def test_tasks_come_in_task_order_by_the_seed() -> None:
    drawn = sentinel_tasks(SentinelSpec(tasks=20), TASKS)
    assert drawn["many"] == [task for task in TASKS["many"] if task in drawn["many"]]
    assert drawn == sentinel_tasks(SentinelSpec(tasks=20), TASKS)
    assert drawn["many"] != sentinel_tasks(SentinelSpec(tasks=20, seed=1), TASKS)["many"]


def test_a_new_task_takes_the_place_of_one_at_most_and_the_order_of_none() -> None:
    before = sentinel_tasks(SentinelSpec(tasks=20), TASKS)
    replaced: Counter[int] = Counter()
    for number in range(30):
        after = sentinel_tasks(SentinelSpec(tasks=20), {**TASKS, "many": [f"new{number}", *TASKS["many"]]})
        assert after["few"] == before["few"] and after["some"] == before["some"]
        replaced[len(set(before["many"]) - set(after["many"]))] += 1
    assert set(replaced) == {0, 1}
    turned = sentinel_tasks(SentinelSpec(tasks=20), {name: ids[::-1] for name, ids in TASKS.items()})
    assert {name: sorted(ids) for name, ids in turned.items()} == {name: sorted(ids) for name, ids in before.items()}
