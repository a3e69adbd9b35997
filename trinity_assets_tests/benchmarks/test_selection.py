"""A sample is nested and keeps its groups, and what is quarantined is left out without drawing anything in."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from trinity_assets.benchmarks.snapshots import take_snapshot
from trinity_assets.benchmarks.specs import FieldMapping, FileSource, Quarantined, SnapshotSpec
from trinity_assets.errors import TaskSourceError

LONG = "One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen number"
"""Two questions that begin so and end in another word are near duplicates."""


def write(directory: Path, rows: list[dict[str, Any]]) -> None:
    (directory / "t.jsonl").write_text("\n".join(json.dumps(row) for row in rows))


def rows(count: int) -> list[dict[str, Any]]:
    """Every fifth question is a near duplicate of the others among these."""
    return [
        {"id": f"t{n}", "question": f"{LONG} {n}" if n % 5 == 0 else f"What is {n}?", "answer": str(n)}
        for n in range(count)
    ]


def spec(**changes: Any) -> SnapshotSpec:
    return SnapshotSpec(name="b", source=FileSource(kind="file", path="t.jsonl"), **changes)


def quarantine(*ids: str | int, reason: str = "wrong key") -> tuple[Quarantined, ...]:
    return tuple(Quarantined(id=one, reason=reason, date=datetime.date(2026, 1, 31)) for one in ids)


# --- sampling ---------------------------------------------------------------------------------------------------------


def test_a_larger_sample_holds_the_smaller_with_its_groups_in_source_order(tmp_path: Path) -> None:
    write(tmp_path, rows(100))
    smaller: dict[str, str] = {}
    for limit in (1, 10, 40, 80, None):
        tasks = take_snapshot(spec(seed=7, limit=limit), tmp_path).tasks
        assert len(tasks) == (limit or 100)
        assert tasks["source_row"].is_monotonic_increasing
        assert tasks["task_id"].tolist() == [f"t{n}" for n in tasks["source_row"]]
        groups = dict(zip(tasks["task_id"], tasks["group"], strict=True))
        assert smaller.items() <= groups.items()
        smaller = groups
    alike = {smaller[f"t{n}"] for n in range(0, 100, 5)}
    assert len(alike) == 1
    assert alike != {"t0"}, "the first of the group is the first in the order of selection, not in the source"


def test_a_seed_decides_which_tasks_and_neither_their_place_nor_the_others_do(tmp_path: Path) -> None:
    write(tmp_path, rows(100))
    seven = set(take_snapshot(spec(seed=7, limit=40), tmp_path).tasks["task_id"])
    assert sorted(take_snapshot(spec(seed=7, limit=5), tmp_path).tasks["task_id"]) == ["t18", "t41", "t56", "t73", "t8"]
    assert seven != set(take_snapshot(spec(seed=8, limit=40), tmp_path).tasks["task_id"])
    assert seven != {f"t{n}" for n in range(40)}
    write(tmp_path, rows(100)[::-1])
    assert set(take_snapshot(spec(seed=7, limit=40), tmp_path).tasks["task_id"]) == seven
    write(tmp_path, rows(120))
    more = set(take_snapshot(spec(seed=7, limit=120), tmp_path).tasks["task_id"])
    assert seven < more


def test_without_a_seed_the_first_rows_are_taken(tmp_path: Path) -> None:
    write(tmp_path, rows(100))
    tasks = take_snapshot(spec(limit=40), tmp_path).tasks
    assert tasks["task_id"].tolist() == [f"t{n}" for n in range(40)]
    assert set(tasks["group"][::5]) == {"t0"}


def test_rows_without_a_name_are_sampled_by_their_number(tmp_path: Path) -> None:
    write(tmp_path, rows(20))
    fields = FieldMapping(id=None)
    small = take_snapshot(spec(fields=fields, seed=1, limit=5), tmp_path).tasks
    large = take_snapshot(spec(fields=fields, seed=1, limit=10), tmp_path).tasks
    assert set(small["task_id"]) < set(large["task_id"]) < {f"b/{n}" for n in range(20)}


def test_a_seed_cannot_order_rows_that_have_no_id(tmp_path: Path) -> None:
    write(tmp_path, [*rows(3), {"question": "Q?", "answer": "1"}])
    assert len(take_snapshot(spec(limit=3), tmp_path).tasks) == 3
    with pytest.raises(TaskSourceError, match=r"there is none in field 'id' of row 3; name another field, or null"):
        take_snapshot(spec(limit=3, seed=1), tmp_path)


def test_limit_and_seed_decide_both_tables() -> None:
    for one, other in [(spec(limit=3), spec(limit=4)), (spec(limit=3), spec(limit=3, seed=0))]:
        assert one.asked_identity("v") != other.asked_identity("v")
        assert one.gold_identity("v") != other.gold_identity("v")


# --- quarantine -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [None, 7])
def test_quarantine_takes_out_of_the_selection_and_draws_nothing_in(seed: int | None, tmp_path: Path) -> None:
    write(tmp_path, rows(20))
    before = take_snapshot(spec(limit=10, seed=seed), tmp_path)
    out = before.tasks["task_id"].tolist()[3]
    taken = take_snapshot(spec(limit=10, seed=seed, quarantine=quarantine(out)), tmp_path)
    assert taken.tasks["task_id"].tolist() == [one for one in before.tasks["task_id"] if one != out]
    assert taken.gold["task_id"].tolist() == taken.tasks["task_id"].tolist()
    assert [one.task_id for one in taken.quarantined] == [out]
    assert before.quarantined == ()
    unselected = next(f"t{n}" for n in range(20) if f"t{n}" not in set(before.tasks["task_id"]))
    beside = take_snapshot(spec(limit=10, seed=seed, quarantine=quarantine(unselected)), tmp_path)
    assert beside.tasks.equals(before.tasks)
    assert beside.quarantined == ()


def test_what_is_quarantined_still_names_its_group(tmp_path: Path) -> None:
    """Otherwise the others of the group would change sides in a split, with their answers and their training."""
    write(tmp_path, rows(11))
    taken = take_snapshot(spec(quarantine=quarantine("t0")), tmp_path).tasks
    groups = dict(zip(taken["task_id"], taken["group"], strict=True))
    assert (groups["t5"], groups["t10"]) == ("t0", "t0")
    assert groups["t1"] == "t1"


def test_an_id_that_no_row_has_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, rows(3))
    with pytest.raises(TaskSourceError, match=r"benchmark b: .* no row of the source has: 'x', 'y'; correct or remove"):
        take_snapshot(spec(quarantine=quarantine("y", "t1", "x")), tmp_path)


def test_a_quarantined_row_may_be_faulty_in_any_way_but_its_id(tmp_path: Path) -> None:
    good = rows(4)
    bad = [
        {"id": "empty", "question": " ", "answer": "1"},
        {"id": "bare"},
        {"id": "twin", "question": good[1]["question"], "answer": "1"},
        {"id": "t1", "question": "Another of that id?", "answer": "1"},
        {"id": 9, "question": "Half a \ud83d?", "answer": "1"},
    ]
    write(tmp_path, good + bad)
    with pytest.raises(TaskSourceError, match="5 of 9 rows are not tasks"):
        take_snapshot(spec(), tmp_path)
    taken = take_snapshot(spec(quarantine=quarantine("empty", "bare", "twin", "t1", 9)), tmp_path)
    assert taken.tasks["task_id"].tolist() == ["t0", "t2", "t3"]
    assert [one.task_id for one in taken.quarantined] == ["t1", "empty", "bare", "twin", "t1", "9"]


def test_everything_quarantined_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, rows(2))
    with pytest.raises(TaskSourceError, match="every selected task is quarantined"):
        take_snapshot(spec(quarantine=quarantine("t0", "t1")), tmp_path)


def test_only_the_ids_are_part_of_the_identity() -> None:
    base = spec(quarantine=quarantine("a", "b"))
    same = spec(quarantine=quarantine("b", "a", reason="another"))
    for identity in ("asked_identity", "gold_identity"):
        assert getattr(base, identity)("v") == getattr(same, identity)("v")
        assert getattr(base, identity)("v") != getattr(spec(quarantine=quarantine("a")), identity)("v")
        assert getattr(base, identity)("v")["quarantine"] == ["a", "b"]


def test_an_entry_says_why_and_since_when_and_stands_once() -> None:
    entry = Quarantined.model_validate({"id": 12, "reason": "wrong key", "date": "2026-01-31"})
    assert (entry.task_id, entry.date) == ("12", datetime.date(2026, 1, 31))
    for lacking in ({"reason": ""}, {"date": "soon"}):
        with pytest.raises(ValidationError):
            Quarantined.model_validate({"id": "a", "reason": "r", "date": "2026-01-31"} | lacking)
    with pytest.raises(ValidationError, match="'1' are quarantined twice; keep one entry of each"):
        spec(quarantine=quarantine("1", 1, "2"))


# --- duplicates -------------------------------------------------------------------------------------------------------


def test_exact_duplicates_name_both_rows(tmp_path: Path) -> None:
    twice = [*rows(4), {"id": "again", "question": "What is 2?", "answer": "two"}]
    write(tmp_path, twice)
    with pytest.raises(TaskSourceError) as caught:
        take_snapshot(spec(), tmp_path)
    assert str(caught.value) == (
        "benchmark b: 1 of 5 rows are not tasks:\n"
        "  row 4 asks the same as row 2; quarantine one of them or correct the source"
    )
    assert len(take_snapshot(spec(limit=4), tmp_path).tasks) == 4
    assert len(take_snapshot(spec(quarantine=quarantine("again")), tmp_path).tasks) == 4
    assert len(take_snapshot(spec(quarantine=quarantine("t2")), tmp_path).tasks) == 4


def test_the_same_question_with_another_shown_field_is_another_task(tmp_path: Path) -> None:
    write(tmp_path, [{"id": n, "question": "Who?", "answer": "x", "hint": str(n)} for n in range(2)])
    assert len(take_snapshot(spec(prompt="{question} {hint}"), tmp_path).tasks) == 2
    with pytest.raises(TaskSourceError, match="row 1 asks the same as row 0"):
        take_snapshot(spec(), tmp_path)
