"""Options are shown below the question, and the gold answer becomes the right one's label, however it is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from trinity_assets.benchmarks.snapshots import Snapshot, take_snapshot
from trinity_assets.benchmarks.specs import FieldMapping, FileSource, SnapshotSpec
from trinity_assets.errors import TaskSourceError

PLANETS = ["Venus", "Mars", "Pluto"]


def snapshot(directory: Path, rows: list[dict[str, Any]], choices: Any = "choices") -> Snapshot:
    (directory / "t.json").write_text(
        json.dumps([{"id": n, "question": "Which is red?", **r} for n, r in enumerate(rows)])
    )
    fields = FieldMapping(choices=choices)
    return take_snapshot(
        SnapshotSpec(name="b", source=FileSource(kind="file", path="t.json"), fields=fields), directory
    )


def faults(directory: Path, rows: list[dict[str, Any]], choices: Any = "choices") -> list[str]:
    with pytest.raises(TaskSourceError) as caught:
        snapshot(directory, rows, choices)
    header, *lines = str(caught.value).splitlines()
    assert header == f"benchmark b: {len(lines)} of {len(rows)} rows are not tasks:"
    return [line.strip() for line in lines]


@pytest.mark.parametrize(
    ("row", "choices", "labels"),
    [
        ({"choices": PLANETS, "answer": 1}, "choices", ["A", "B", "C"]),
        ({"choices": PLANETS, "answer": "B"}, "choices", ["A", "B", "C"]),
        ({"choices": PLANETS, "answer": " B "}, "choices", ["A", "B", "C"]),
        ({"choices": PLANETS, "answer": "Mars"}, "choices", ["A", "B", "C"]),
        ({"choices": {"text": PLANETS, "label": ["1", "2", "3"]}, "answer": "2"}, "choices", ["1", "2", "3"]),
        ({"choices": {"text": PLANETS, "label": ["0", "1", "2"]}, "answer": 1}, "choices", ["0", "1", "2"]),
        ({"A": "Venus", "B": "Mars", "C": "Pluto", "answer": "B"}, ["A", "B", "C"], ["A", "B", "C"]),
    ],
)
def test_the_right_option_is_kept_by_its_label(
    row: dict[str, Any], choices: Any, labels: list[str], tmp_path: Path
) -> None:
    taken = snapshot(tmp_path, [row], choices)
    lines = [f"{label}. {planet}" for label, planet in zip(labels, PLANETS, strict=True)]
    assert taken.tasks["question"].tolist() == ["Which is red?\n\n" + "\n".join(lines)]
    assert json.loads(taken.gold["payload"][0]) == {"answer": labels[1], "choices": PLANETS, "labels": labels}


def test_a_label_is_understood_before_a_text(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"choices": ["B", "A"], "answer": "A"},
        {"choices": {"text": ["3", "1", "2"], "label": ["1", "2", "3"]}, "answer": "3"},
        {"choices": ["0", "1", "2"], "answer": "1"},
    ]
    assert [json.loads(payload)["answer"] for payload in snapshot(tmp_path, rows).gold["payload"]] == ["A", "3", "B"]


def test_the_same_question_with_other_options_is_another_task(tmp_path: Path) -> None:
    rows = [{"choices": PLANETS, "answer": 1}, {"choices": PLANETS[::-1], "answer": 1}]
    assert snapshot(tmp_path, rows).tasks["task_digest"].nunique() == 2
    assert faults(tmp_path, [rows[0], rows[0] | {"answer": 2}]) == [
        "row 1 asks the same as row 0; quarantine one of them or correct the source"
    ]


def test_an_option_decides_both_tables_and_the_answer_gold_alone(tmp_path: Path) -> None:
    before = snapshot(tmp_path, [{"choices": PLANETS, "answer": 1}])
    regraded = snapshot(tmp_path, [{"choices": PLANETS, "answer": 0}])
    assert regraded.tasks_version == before.tasks_version
    assert regraded.gold_version != before.gold_version
    reworded = snapshot(tmp_path, [{"choices": [*PLANETS[:2], "Ceres"], "answer": 1}])
    assert reworded.tasks_version != before.tasks_version
    assert reworded.gold_version != before.gold_version


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"answer": 3}, "the answer 3 is no index of 3 options, which are counted from 0"),
        ({"answer": -1}, "the answer -1 is no index of 3 options"),
        (
            {"answer": "D"},
            "the answer 'D' is neither an index, nor one of the labels A, B, C, nor the text of an option",
        ),
        ({"answer": "1"}, "the answer '1' is neither an index, nor one of the labels"),
        (
            {"choices": {"text": PLANETS, "label": ["1", "2", "3"]}, "answer": 1},
            "the answer 1 may be a label or an index, which is counted from 0; if it is a label, quote it in the "
            'source ("1")',
        ),
        ({"choices": {"text": PLANETS, "label": ["1", "2", "3"]}, "answer": 3}, "the answer 3 may be a label"),
        ({"answer": True}, "the answer True is neither an index"),
        ({"answer": 1.0}, "the answer 1.0 is neither an index"),
        ({"answer": ["B"]}, "the answer ['B'] is neither an index"),
        ({"answer": "Mars", "choices": ["Mars", "Venus", "Mars"]}, "'Mars' is the text of several options: A, C"),
        ({"choices": ["Mars"]}, "the options in field 'choices' are fewer than two"),
        ({"choices": "Mars"}, "the options in field 'choices' are not a list of texts that say something: 'Mars'"),
        ({"choices": ["Mars", " "]}, "are not a list of texts that say something: ['Mars', ' ']"),
        ({"choices": [1, 2]}, "are not a list of texts that say something: [1, 2]"),
        ({"choices": [str(n) for n in range(27)]}, "are more than there are letters to label them"),
        ({"choices": {"text": PLANETS}}, "field 'choices' has 'text' and should have 'text' and 'label'"),
        ({"choices": {"text": PLANETS, "label": ["A", "B"]}}, "do not give each of 3 options its own: ['A', 'B']"),
        ({"choices": {"text": PLANETS, "label": ["A", "B", "B"]}}, "do not give each of 3 options its own"),
        ({"choices": {"text": PLANETS, "label": [1, 2, 3]}}, "the labels in field 'choices' are not a list of texts"),
        ({"choices": None}, "no field 'choices' (it has answer, choices, id, question)"),
    ],
)
def test_options_and_answers_that_fit_nothing_are_faults_of_their_row(
    row: dict[str, Any], said: str, tmp_path: Path
) -> None:
    good = {"choices": PLANETS, "answer": 1}
    found = faults(tmp_path, [good, good | {"question": "Which is blue?"} | row])
    assert len(found) == 1
    assert found[0].startswith("row 1: ")
    assert said in found[0]


def test_an_absent_column_of_options_is_named(tmp_path: Path) -> None:
    assert faults(tmp_path, [{"A": "x", "answer": "A"}], ["A", "B"]) == [
        "row 0: no field 'B' (it has A, answer, id, question)"
    ]


def test_a_mapping_without_an_answer_or_with_its_own_labels_is_refused() -> None:
    with pytest.raises(ValidationError, match="gold has no 'answer'"):
        FieldMapping(choices="choices", gold={"key": "answer"})
    with pytest.raises(ValidationError, match="gold maps labels, which are filled from the choices; leave them out"):
        FieldMapping(choices="choices", gold={"answer": "answer", "labels": "labels"})
    with pytest.raises(ValidationError):
        FieldMapping(choices=("A",))
