"""Which assets need building, and which can be built now."""

from __future__ import annotations

import dagster as dg
import pytest

from trinity_assets.defs.build import next_wave
from trinity_assets.defs.staleness import AssetState, State, asset_state

TASKS, GOLD, ANSWERS, SOLVES, TABLE = (dg.AssetKey([name]) for name in ("tasks", "gold", "answers", "solves", "table"))
PARENTS = {TASKS: [], GOLD: [], ANSWERS: [TASKS], SOLVES: [ANSWERS, GOLD], TABLE: [SOLVES]}
STEPS = {
    TASKS: frozenset({TASKS, GOLD}),
    GOLD: frozenset({TASKS, GOLD}),
    ANSWERS: frozenset({ANSWERS}),
    SOLVES: frozenset({SOLVES}),
    TABLE: frozenset({TABLE}),
}
ALL = frozenset(PARENTS)


def tags(code: str, data: str, **inputs: str) -> dict[str, str]:
    versions = {f"dagster/input_data_version/{name}": version for name, version in inputs.items()}
    return {"dagster/code_version": code, "dagster/data_version": data, **versions}


RECORDED = {
    TASKS: tags("c", "t1"),
    GOLD: tags("c", "g1"),
    ANSWERS: tags("c", "a1", tasks="t1"),
    SOLVES: tags("c", "s1", answers="a1", gold="g1"),
}


def test_an_asset_is_fresh_when_nothing_that_it_recorded_has_changed() -> None:
    assert asset_state(SOLVES, "c", PARENTS[SOLVES], RECORDED, False) == AssetState(SOLVES, "fresh")


@pytest.mark.parametrize(
    ("changed", "code", "parents", "causes"),
    [
        ({}, "d", [ANSWERS, GOLD], ("its settings or its source changed",)),
        ({ANSWERS: tags("c", "a2", tasks="t1")}, "c", [ANSWERS, GOLD], ("answers changed",)),
        ({GOLD: tags("c", "g2")}, "c", [ANSWERS, GOLD], ("gold changed",)),
        ({}, "c", [ANSWERS], ("no longer depends on gold",)),
        ({}, "c", [ANSWERS, GOLD, TASKS], ("depends on tasks now",)),
        ({TASKS: tags("c", "t2")}, "c", [ANSWERS, GOLD], ()),  # only direct dependencies count
    ],
)
def test_an_asset_is_stale_for_each_cause_by_name(
    changed: dict[dg.AssetKey, dict[str, str]], code: str, parents: list[dg.AssetKey], causes: tuple[str, ...]
) -> None:
    state = asset_state(SOLVES, code, parents, {**RECORDED, **changed}, False)
    assert state == AssetState(SOLVES, "stale" if causes else "fresh", causes)


def test_a_dependency_that_was_never_built_is_no_change_while_it_is_not() -> None:
    recorded = {**RECORDED, SOLVES: None, TABLE: tags("c", "t", solves="INITIAL")}
    assert asset_state(TABLE, "c", [SOLVES], recorded, False).state == "fresh"
    assert asset_state(TABLE, "c", [SOLVES], recorded | {SOLVES: tags("c", "s1")}, False).causes == ("solves changed",)


def test_never_built_and_failed_are_told_apart() -> None:
    assert asset_state(TABLE, "c", [SOLVES], {**RECORDED, TABLE: None}, False).state == "missing"
    assert asset_state(SOLVES, "c", PARENTS[SOLVES], RECORDED, True) == AssetState(
        SOLVES, "failed", ("its last run failed",)
    )


def wave(
    states: dict[dg.AssetKey, State],
    selected: frozenset[dg.AssetKey] = ALL,
    given_up: frozenset[dg.AssetKey] = frozenset(),
) -> list[dg.AssetKey]:
    full = {key: AssetState(key, states.get(key, "fresh")) for key in PARENTS}
    return [state.key for state in next_wave(full, PARENTS, STEPS, selected, failed=given_up)]


def test_what_was_never_built_is_built_in_one_wave() -> None:
    assert wave(dict.fromkeys(PARENTS, "missing")) == [TASKS, GOLD, ANSWERS, SOLVES, TABLE]


def test_what_exists_waits_to_see_whether_its_upstream_really_changes() -> None:
    assert wave({ANSWERS: "stale", SOLVES: "stale"}) == [ANSWERS]
    assert wave({ANSWERS: "stale", TABLE: "missing"}) == [ANSWERS]


def test_a_step_makes_all_its_assets_together() -> None:
    assert wave({GOLD: "stale"}) == [TASKS, GOLD]


def test_a_failed_asset_is_tried_once_and_holds_up_only_what_needs_it() -> None:
    assert wave({ANSWERS: "failed"}) == [ANSWERS]
    assert wave({ANSWERS: "missing", SOLVES: "missing"}, given_up=frozenset({ANSWERS})) == []
    assert wave({ANSWERS: "missing", GOLD: "stale"}, given_up=frozenset({ANSWERS})) == [TASKS, GOLD]


def test_what_may_be_lacking_is_waited_for_until_it_cannot_be_had() -> None:
    """GOLD stands for what else the solves need, and TABLE for a table that may lack them."""
    full = {key: AssetState(key, "missing" if key == TABLE else "fresh") for key in PARENTS}
    may_lack = {TABLE: frozenset({SOLVES})}

    def built(failed: set[dg.AssetKey], selected: frozenset[dg.AssetKey] = ALL, **states: State) -> list[dg.AssetKey]:
        changed = {dg.AssetKey([name]): AssetState(dg.AssetKey([name]), state) for name, state in states.items()}
        found = next_wave(full | changed, PARENTS, STEPS, selected, failed=failed, may_lack=may_lack)
        return [state.key for state in found]

    assert built({ANSWERS}, answers="failed") == [TABLE]
    assert built({ANSWERS}, answers="missing", solves="missing") == [TABLE]
    assert built({SOLVES}, solves="missing") == [TABLE]
    assert built({ANSWERS}, answers="failed", table="fresh") == []
    assert built(set(), answers="stale", solves="stale", table="stale") == [ANSWERS]
    # Not tried in this build.
    assert built(set(), frozenset({TABLE}), answers="missing", solves="missing") == []


def test_what_may_not_be_lacking_still_blocks() -> None:
    parents = {**PARENTS, TABLE: [SOLVES, TASKS]}
    full = {key: AssetState(key, "missing") for key in PARENTS}
    may_lack = {TABLE: frozenset({SOLVES})}
    assert next_wave(full, parents, STEPS, ALL, failed={TASKS, GOLD}, may_lack=may_lack) == []
    full |= {key: AssetState(key, "fresh") for key in (TASKS, GOLD)}
    assert next_wave(full, parents, STEPS, ALL, outrun={ANSWERS}, may_lack=may_lack) == []
    assert next_wave(full, parents, STEPS, ALL, failed={ANSWERS}, may_lack=may_lack) == [full[TABLE]]


def test_only_the_selection_is_built() -> None:
    assert wave({SOLVES: "stale", TABLE: "stale"}, frozenset({SOLVES})) == [SOLVES]
    assert wave({ANSWERS: "stale", SOLVES: "stale"}, frozenset({SOLVES})) == []
    assert wave({TASKS: "stale", SOLVES: "stale"}, frozenset({SOLVES})) == []
    assert wave({ANSWERS: "missing", SOLVES: "missing"}, frozenset({SOLVES})) == []


def test_nothing_is_built_when_all_is_fresh() -> None:
    assert wave({}) == []
