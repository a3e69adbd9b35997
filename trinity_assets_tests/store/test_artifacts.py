"""The store keeps bytes by their sha and never hands out others."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from trinity_assets.errors import ArtifactError
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets.store.tables import read_table, write_table

SCHEMA = pa.schema({"task_id": pa.string(), "score": pa.float64()})


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(str(tmp_path / "store"))


def test_bytes_come_back_under_their_sha(store: ArtifactStore) -> None:
    sha256 = store.put(b"a head")
    assert sha256 == hashlib.sha256(b"a head").hexdigest()
    assert store.get(sha256) == b"a head"
    assert store.put(b"a head") == sha256


def test_any_fsspec_url_is_a_store() -> None:
    store = ArtifactStore("memory://artifacts")
    assert store.get(store.put(b"in memory")) == b"in memory"


def test_a_damaged_object_is_refused_and_named(store: ArtifactStore) -> None:
    sha256 = store.put(b"twelve bytes")
    Path(store.path(sha256)).write_bytes(b"twelve bytez")
    with pytest.raises(ArtifactError, match=f"{sha256[:12]}.*build --rebuild"):
        store.get(sha256)


def test_a_missing_object_says_what_to_do(store: ArtifactStore) -> None:
    with pytest.raises(ArtifactError, match=r"not in the store.*build --rebuild"):
        store.get("0" * 64)


@pytest.mark.parametrize("damaged", [b"twel", b"twelve bytez"])
def test_a_damaged_object_is_written_again(store: ArtifactStore, damaged: bytes) -> None:
    sha256 = store.put(b"twelve bytes")
    Path(store.path(sha256)).write_bytes(damaged)
    store.put(b"twelve bytes")
    assert store.get(sha256) == b"twelve bytes"


def test_a_failed_write_leaves_nothing_and_says_so(store: ArtifactStore, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file where the store's directory should be")
    with pytest.raises(ArtifactError, match="Nothing was recorded"):
        store.put(b"lost?")


def test_tables_carry_kind_spec_and_inputs(store: ArtifactStore) -> None:
    frame = pd.DataFrame({"score": [1.0, None], "task_id": ["a", "b"], "not kept": [0, 0]})
    sha256 = write_table(store, "solves", frame, SCHEMA, {"grader": "exact"}, {"answers/w/b": "f" * 64})
    table = read_table(store, "solves", sha256)
    assert table.frame.columns.tolist() == ["task_id", "score"]
    assert table.frame["score"].isna().tolist() == [False, True]
    assert table.spec == {"grader": "exact"}
    assert table.inputs == {"answers/w/b": "f" * 64}


def test_equal_tables_are_equal_bytes(store: ArtifactStore) -> None:
    frame = pd.DataFrame({"task_id": ["a"], "score": [0.5]})
    assert write_table(store, "solves", frame, SCHEMA, {}) == write_table(store, "solves", frame.copy(), SCHEMA, {})


def test_a_table_of_another_kind_is_refused(store: ArtifactStore) -> None:
    sha256 = write_table(store, "solves", pd.DataFrame({"task_id": ["a"], "score": [1.0]}), SCHEMA, {})
    with pytest.raises(ArtifactError, match="holds solves, expected answers"):
        read_table(store, "answers", sha256)
    with pytest.raises(ArtifactError, match="not a Parquet file"):
        read_table(store, "answers", store.put(b"neither"))


def test_a_frame_that_does_not_fit_is_refused(store: ArtifactStore) -> None:
    with pytest.raises(ArtifactError, match="does not fit its columns"):
        write_table(store, "solves", pd.DataFrame({"task_id": ["a"]}), SCHEMA, {})


def test_a_table_of_another_spec_is_refused_by_field(store: ArtifactStore) -> None:
    frame = pd.DataFrame({"task_id": ["a"], "score": [1.0]})
    sha256 = write_table(store, "solves", frame, SCHEMA, {"sampling": {"max_tokens": 512, "stop": ["x"]}, "model": "m"})
    same = read_table(store, "solves", sha256, {"model": "m", "sampling": {"max_tokens": 512, "stop": ("x",)}})
    assert same.frame["score"].tolist() == [1.0]
    with pytest.raises(ArtifactError, match=r"sampling\.max_tokens: 512 -> 768\. Build that asset first"):
        read_table(store, "solves", sha256, {"model": "m", "sampling": {"max_tokens": 768, "stop": ["x"]}})
