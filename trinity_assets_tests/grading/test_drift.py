"""What two askings of the same questions have in common, and what is said of what they have not."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pandas as pd
import pytest

from trinity_assets.grading import drift
from trinity_assets.grading.drift import (
    DRIFT_SCHEMA,
    Comparison,
    NoiseFloor,
    compare,
    drift_data_version,
    drift_frame,
    repeats_floor,
    with_adjusted_p,
    with_scores,
)
from trinity_assets.grading.drift_report import changed_tasks, drift_table, warnings
from trinity_assets.grading.solves import grade_answers
from trinity_assets.grading.specs import ExactGrader, GradingSpec
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets.store.tables import read_table, write_table

SPEC = GradingSpec(grader=ExactGrader(kind="exact"))
GOLD = pd.DataFrame({"task_id": [f"t{n}" for n in range(30)], "payload": [json.dumps({"answer": "yes"})] * 30})


def asked(
    texts: list[str | None],
    *,
    samples: int = 1,
    model: str | None = "m-1",
    fingerprint: str | None = None,
    cost_usd: float | None = None,
) -> pd.DataFrame:
    """Answers to t0, t1, ..., ``samples`` to each; None is a truncated one."""
    return pd.DataFrame(
        {
            "task_id": [f"t{n // samples}" for n in range(len(texts))],
            "sample": [n % samples for n in range(len(texts))],
            "status": ["truncated" if text is None else "answered" for text in texts],
            "text": texts,
            "model_returned": model,
            "fingerprint": fingerprint,
            "input_tokens": 10,
            "output_tokens": 5,
            "cost_usd": cost_usd,
            "latency_s": 0.1,
        }
    )


def scored(frame: pd.DataFrame, scores: Sequence[float | None]) -> pd.DataFrame:
    return frame.assign(score=pd.array(list(scores), dtype="Float64"))


def two(before: Sequence[float | None], after: Sequence[float | None], floor: NoiseFloor | None = None) -> Comparison:
    """The comparison of two askings with these scores."""
    earlier, now = (scored(asked(["x"] * len(one)), one) for one in (before, after))
    return compare("w", "b", earlier, now, floor).between(1, 2)


def test_the_same_status_and_text_have_the_same_verdict_and_all_else_is_graded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graded: list[str] = []

    def spied(answers: pd.DataFrame, *arguments: object, **named: object) -> object:
        graded.extend(answers["task_id"])
        return grade_answers(answers, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(drift, "grade_answers", spied)
    known = grade_answers(asked(["yes", "no", None, "yes"]), GOLD, SPEC).frame
    now = with_scores(asked(["yes", "yes", None, "no"]), GOLD, SPEC, known, label="l")
    assert now["score"].tolist() == [1.0, 1.0, 0.0, 0.0]
    assert graded == ["t1", "t3"]
    assert with_scores(asked(["yes", "no"]), GOLD, SPEC, None, label="l")["score"].tolist() == [1.0, 0.0]
    # The text of another task says nothing of this one.
    assert graded == ["t1", "t3", "t0", "t1"]


def test_a_missing_verdict_stays_missing() -> None:
    spec = GradingSpec.model_validate({"grader": {"kind": "exact"}, "settlement": {"truncated": "missing"}})
    assert with_scores(asked([None]), GOLD, spec, None, label="l")["score"].isna().tolist() == [True]


def test_changed_verdicts_are_counted_by_direction_and_missing_ones_are_left_out() -> None:
    found = two([1, 1, 0, 0, None, 1, 0.5], [1, 0, 1, 0, 1, None, 1])
    assert (found.pairs, found.left_out) == (5, 2)
    assert (found.newly_solved, found.newly_lost) == (("t2", "t6"), ("t1",))
    assert found.mcnemar_p == 1.0
    assert found.floor is None and found.floor_p is None


def test_only_what_both_askings_hold_is_compared() -> None:
    earlier = scored(asked(["a", "b", "c"], model="m-1"), [1, 1, 0])
    now = scored(asked(["a", "b"], model="m-2", cost_usd=0.5), [1, 0]).iloc[::-1]
    found = compare("w", "b", earlier.assign(output_tokens=[1, 3, 100]), now, None)
    assert (found.pairs, found.newly_lost) == (2, ("t1",))
    assert (found.models_earlier, found.models_now, found.model_changed) == (("m-1",), ("m-2",), True)
    assert found.means == {
        "cost_usd_earlier": None,
        "cost_usd_now": 0.5,
        "input_tokens_earlier": 10.0,
        "input_tokens_now": 10.0,
        "output_tokens_earlier": 2.0,
        "output_tokens_now": 5.0,
    }


def test_a_provider_that_says_nothing_has_not_changed_its_word() -> None:
    earlier = scored(asked(["a"], model=None, fingerprint="fp-1"), [1])
    found = compare("w", "b", earlier, scored(asked(["a"], model="m-1", fingerprint="fp-2"), [1]), None)
    assert (found.model_changed, found.fingerprint_changed) == (False, True)
    assert warnings(with_adjusted_p([found])) == []


def test_the_floor_comes_from_pairs_of_samples_that_share_none() -> None:
    three = scored(asked(["x"] * 9, samples=3), [1, 1, 0, 1, 0, 1, None, 1, 1])
    assert repeats_floor(three, "samples") == NoiseFloor("samples", changed=1, pairs=2)
    four = scored(asked(["x"] * 4, samples=4), [1, 0, 0, 1])
    assert repeats_floor(four, "samples") == NoiseFloor("samples", changed=2, pairs=2)
    assert repeats_floor(scored(asked(["x"] * 3), [1, 0, 1]), "samples") is None


def test_all_tests_of_all_cells_are_one_family() -> None:
    lost = two([1] * 20, [0] * 8 + [1] * 12, NoiseFloor("sentinel", 1, 20))
    same = two([1] * 20, [1] * 20)
    none = Comparison("w", "c", note="one epoch so far")
    assert lost.mcnemar_p == 2 / 256
    found = with_adjusted_p([lost, none, same])
    # 8 of 20 against 1 of 20 by Fisher: (C(20, 8) C(20, 1) + C(20, 9)) / C(40, 9). The family: 0.0078, this, and 1.
    assert lost.floor_p is not None
    assert lost.floor_p == pytest.approx((125970 * 20 + 167960) / 273438880, rel=1e-12)
    assert found[0].mcnemar_adjusted == found[0].floor_adjusted == lost.floor_p * 3 / 2
    assert [one.significant for one in found] == [True, False, False]
    assert (found[1].mcnemar_adjusted, found[1].floor_adjusted) == (None, None)
    alone = with_adjusted_p([two([1] * 20, [0] * 6 + [1] * 14)])[0]
    among = with_adjusted_p([two([1] * 20, [0] * 6 + [1] * 14), same, same])[0]
    assert (alone.mcnemar_adjusted, alone.significant) == (2 / 64, True)
    assert (among.mcnemar_adjusted, among.significant) == (6 / 64, False)


def test_a_warning_says_which_cell_which_tasks_and_which_model() -> None:
    lost = two([1] * 20, [0] * 8 + [1] * 12)
    tasks = ", ".join(f"t{n}" for n in range(8))
    assert warnings(with_adjusted_p([lost, two([1, 0], [0, 1])])) == [
        f"w on b: 8 of 20 verdicts changed (McNemar p 0.00781 (adjusted 0.0156)); newly lost: {tasks}"
    ]
    earlier, now = (scored(asked(["a"], model=model), [1]) for model in ("m-1", "m-2"))
    assert warnings(with_adjusted_p([compare("w", "b", earlier, now, None)])) == [
        "w on b: the provider says that it ran m-1 → m-2"
    ]


def test_the_table_shows_what_is_known_and_what_is_not() -> None:
    rows = drift_table(
        with_adjusted_p(
            [two([1, 1, 0, None], [1, 0, 0, 1], NoiseFloor("samples", 1, 3)), Comparison("w", "c", note="one epoch")]
        )
    )
    first, second = rows.to_dict("records")
    assert first == {
        "worker": "w",
        "benchmark": "b",
        "epochs": "1 → 2",
        "verdicts": "3, 1 left out",
        "newly solved": "0",
        "newly lost": "1",
        "McNemar": "1 (adjusted 1)",
        "floor": "1 of 3 (samples)",
        "above floor": "0.8 (adjusted 1)",
        "model": "m-1",
        "fingerprint": "-",
        "USD per answer": "-",
        "output tokens": "5.0",
    }
    assert (second["epochs"], second["McNemar"], second["model"]) == ("one epoch", "-", "-")
    assert changed_tasks([two([1, 1], [1, 0])]) == "- w on b, newly lost: t1"


def test_the_report_is_kept_and_read_back_and_its_version_knows_no_costs(tmp_path: object) -> None:
    compared = with_adjusted_p(
        [two([1, 1], [1, 0], NoiseFloor("samples", 0, 2)), Comparison("w", "c", note="one epoch so far")]
    )
    store = ArtifactStore(str(tmp_path))
    frame = read_table(store, "drift", write_table(store, "drift", drift_frame(compared), DRIFT_SCHEMA, {})).frame
    assert [list(tasks) for tasks in frame["newly_lost"]] == [["t1"], []]
    assert frame["floor_source"].tolist()[0] == "samples"
    assert frame["note"].tolist()[1] == "one epoch so far"
    earlier = scored(asked(["x", "x"], cost_usd=3.0), [1, 1])
    dearer = compare("w", "b", earlier, scored(asked(["x", "x"]), [1, 0]), NoiseFloor("samples", 0, 2)).between(1, 2)
    assert drift_data_version(with_adjusted_p([dearer, compared[1]])) == drift_data_version(compared)
    assert drift_data_version([compared[1]]) != drift_data_version(compared)
