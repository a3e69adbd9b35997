"""The feature artifact and its reuse."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from trinity_assets.backbones.features import Backbone
from trinity_assets.backbones.index import INDEX_KIND, INDEX_SCHEMA, extract_features, read_features
from trinity_assets.errors import ArtifactError, BackboneError
from trinity_assets.spec import digest
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets.store.tables import read_table, write_table

TASKS = [("t1", "How many legs has a spider?"), ("t2", "2+2"), ("t3", "2+2")]


def never() -> Backbone:
    raise AssertionError("the model was loaded though nothing was missing")


def test_features_come_back_in_order_at_half_precision(store: ArtifactStore, backbone: Backbone) -> None:
    matrix = backbone.extract(["a", "b"])
    made = extract_features(store, backbone.spec, lambda: backbone, [("x", "a"), ("y", "b")])
    table = read_features(store, made.index_sha)
    assert table.task_ids == ("x", "y")
    assert table.question_digests == (digest("a"), digest("b"))
    assert table.spec == backbone.spec
    assert table.matrix.dtype == np.float32
    np.testing.assert_array_equal(table.matrix, matrix.astype(np.float16).astype(np.float32))


def test_the_data_version_follows_the_ids_and_the_values(
    store: ArtifactStore, backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(tasks: list[tuple[str, str]]) -> str:
        return extract_features(store, backbone.spec, lambda: backbone, tasks).data_version

    first = version([("x", "a"), ("y", "b")])
    assert version([("x", "a"), ("y", "b")]) == first
    assert version([("x", "a"), ("z", "b")]) != first
    states = Backbone.hidden_states
    monkeypatch.setattr(Backbone, "hidden_states", lambda self, prompts: states(self, prompts) + 1)
    assert version([("x", "a"), ("y", "b")]) != first


def test_values_beyond_half_precision_are_kept_whole(
    store: ArtifactStore, backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = np.full((1, 64), 1e6, dtype=np.float32)
    monkeypatch.setattr(Backbone, "hidden_states", lambda self, prompts: matrix)
    made = extract_features(store, backbone.spec, lambda: backbone, [("x", "a")])
    np.testing.assert_array_equal(read_features(store, made.index_sha).matrix, matrix)


def test_the_index_carries_its_spec_and_inputs(store: ArtifactStore, backbone: Backbone) -> None:
    inputs = {"smollm2": "a" * 64, "starter/tasks": "b" * 64}
    made = extract_features(store, backbone.spec, lambda: backbone, TASKS, inputs=inputs)
    table = read_table(store, INDEX_KIND, made.index_sha)
    assert (table.spec, table.inputs) == (backbone.spec.model_dump(mode="json"), inputs)


def test_features_under_a_spec_of_an_older_form_are_an_error_to_read_and_computed_again(
    store: ArtifactStore, backbone: Backbone, caplog: pytest.LogCaptureFixture
) -> None:
    first = extract_features(store, backbone.spec, lambda: backbone, TASKS)
    older = backbone.spec.model_dump(mode="json") | {"pooling": "last"}
    del older["overlong"]
    frame = read_table(store, INDEX_KIND, first.index_sha).frame
    index_sha = write_table(store, INDEX_KIND, frame, INDEX_SCHEMA, older)
    with pytest.raises(ArtifactError, match=r"another form \(it differs in overlong, pooling\); materialize"):
        read_features(store, index_sha)
    again = extract_features(store, backbone.spec, lambda: backbone, TASKS, index_sha)
    assert (again.new, again.data_version) == (3, first.data_version)
    assert "the previous features cannot be used, computing all" in caplog.text


def test_a_shared_question_is_computed_once(store: ArtifactStore, backbone: Backbone) -> None:
    made = extract_features(store, backbone.spec, lambda: backbone, TASKS)
    lengths = {question: len(f"user: {question}") for _, question in TASKS}
    assert (made.new, made.reused, made.tokens) == (3, 0, sum(lengths.values()))
    matrix = read_features(store, made.index_sha).matrix
    np.testing.assert_array_equal(matrix[1], matrix[2])
    expected = backbone.extract([question for _, question in TASKS]).astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(matrix, expected)


def test_only_what_is_missing_is_computed(store: ArtifactStore, backbone: Backbone) -> None:
    first = extract_features(store, backbone.spec, lambda: backbone, TASKS)
    grown = [("t0", "Who?"), *TASKS[:2]]
    second = extract_features(store, backbone.spec, lambda: backbone, grown, first.index_sha)
    assert (second.new, second.reused, second.tokens) == (1, 2, len("user: Who?"))
    fresh = extract_features(store, backbone.spec, lambda: backbone, grown)
    assert second.data_version == fresh.data_version != first.data_version
    np.testing.assert_array_equal(
        read_features(store, second.index_sha).matrix, read_features(store, fresh.index_sha).matrix
    )


def test_nothing_missing_loads_no_model(store: ArtifactStore, backbone: Backbone) -> None:
    first = extract_features(store, backbone.spec, lambda: backbone, TASKS)
    again = extract_features(store, backbone.spec, never, TASKS, first.index_sha)
    assert (again.new, again.reused, again.tokens) == (0, 3, 0)
    assert (again.index_sha, again.data_version) == (first.index_sha, first.data_version)


def test_features_of_another_spec_are_not_reused(store: ArtifactStore, backbone: Backbone) -> None:
    first = extract_features(store, backbone.spec, lambda: backbone, TASKS)
    other = dataclasses.replace(backbone, spec=backbone.spec.model_copy(update={"max_tokens": 32}))
    second = extract_features(store, other.spec, lambda: other, TASKS, first.index_sha)
    assert (second.new, second.reused) == (3, 0)
    assert second.data_version != first.data_version


def test_a_damaged_shard_is_an_error_to_read_and_is_computed_again(store: ArtifactStore, backbone: Backbone) -> None:
    first = extract_features(store, backbone.spec, lambda: backbone, TASKS)
    for path in Path(store.path("00")).parent.parent.glob("*/*"):
        if path.name != first.index_sha:
            path.unlink()
    with pytest.raises(ArtifactError, match="build --rebuild"):
        read_features(store, first.index_sha)
    again = extract_features(store, backbone.spec, lambda: backbone, TASKS, first.index_sha)
    assert (again.new, again.data_version) == (3, first.data_version)


def test_a_backbone_of_another_spec_is_refused(store: ArtifactStore, backbone: Backbone) -> None:
    asked = backbone.spec.model_copy(update={"dtype": "bfloat16"})
    with pytest.raises(BackboneError, match="dtype: bfloat16 here, float32 there"):
        extract_features(store, asked, lambda: backbone, TASKS)


def test_no_tasks_and_doubled_ids_are_refused(store: ArtifactStore, backbone: Backbone) -> None:
    with pytest.raises(BackboneError, match="no tasks"):
        extract_features(store, backbone.spec, never, [])
    with pytest.raises(BackboneError, match="same id"):
        extract_features(store, backbone.spec, lambda: backbone, [("t", "a"), ("t", "b")])
