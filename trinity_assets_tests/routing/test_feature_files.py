"""Features from a file: aligned to the table's tasks, or refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from trinity_assets.errors import TrainingError
from trinity_assets.routing.feature_files import read_features

MATRIX = np.arange(6, dtype=np.float16).reshape(3, 2)
IDS = ["a", "b", "c"]


def npz(path: Path, ids: list[str], matrix: np.ndarray = MATRIX) -> Path:
    np.savez(path, task_ids=np.array(ids), features=matrix)
    return path


def npy(path: Path, matrix: np.ndarray) -> Path:
    np.save(path, matrix)
    return path


def test_a_plain_matrix_is_in_the_order_of_the_rows(tmp_path: Path) -> None:
    found = read_features(npy(tmp_path / "f.npy", MATRIX), IDS)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, MATRIX)


def test_named_rows_are_put_in_the_order_of_the_tasks(tmp_path: Path) -> None:
    wanted = MATRIX[[2, 0]]
    np.testing.assert_array_equal(read_features(npz(tmp_path / "f.npz", IDS), ["c", "a"]), wanted)
    file = tmp_path / "f.safetensors"
    save_file({"features": MATRIX}, file, metadata={"task_ids": json.dumps(IDS)})
    np.testing.assert_array_equal(read_features(file, ["c", "a"]), wanted)


def test_features_that_are_not_those_of_the_table_are_refused(tmp_path: Path) -> None:
    for path, message in [
        (npy(tmp_path / "short.npy", MATRIX[:2]), "short.npy has 2 features and the table has 3 tasks"),
        (npz(tmp_path / "short.npz", IDS, MATRIX[:2]), "short.npz has 2 features and it names 3 tasks"),
        (npz(tmp_path / "other.npz", ["a", "b", "d"]), "other.npz has no feature of 1 task: 'c'"),
        (npz(tmp_path / "twice.npz", ["a", "b", "b"]), "twice.npz names the task 'b' twice"),
        (npy(tmp_path / "flat.npy", MATRIX[0]), "a matrix of real numbers, a row per task; this is float16 of shape"),
        (npy(tmp_path / "empty.npy", MATRIX[:, :0]), "a matrix of real numbers"),
        (npy(tmp_path / "complex.npy", MATRIX.astype(complex)), "this is complex128"),
        (npy(tmp_path / "words.npy", np.array([["a"], ["b"], ["c"]])), "a matrix of real numbers"),
        (npy(tmp_path / "nan.npy", np.where(MATRIX == 3, np.nan, MATRIX)), "1 feature .* first that of task 'b'"),
        (npy(tmp_path / "huge.npy", MATRIX.astype(float) * 1e300), "3 features of values that are not finite"),
        (npy(tmp_path / "objects.npy", np.array([[{}], [{}], [{}]])), "cannot read features from .*objects.npy"),
    ]:
        with pytest.raises(TrainingError, match=message):
            read_features(path, IDS)


def test_files_that_are_none_of_features_are_refused(tmp_path: Path) -> None:
    (tmp_path / "f.npz").write_bytes(b"PK\x03\x04 torn")
    (tmp_path / "torn.npy").write_bytes(b"")
    (tmp_path / "torn.safetensors").write_bytes(b"\x00")
    np.savez(tmp_path / "unnamed.npz", features=MATRIX)
    save_file({"features": MATRIX}, tmp_path / "unnamed.safetensors")
    npy(tmp_path / "matrix.npy", MATRIX).rename(tmp_path / "matrix.npz")
    np.savez_compressed(tmp_path / "damaged.npz", task_ids=IDS, features=np.zeros((300, 40)))
    packed = bytearray((tmp_path / "damaged.npz").read_bytes())
    packed[len(packed) // 2 - 40 : len(packed) // 2 + 40] = bytes(80)
    (tmp_path / "damaged.npz").write_bytes(packed)
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1000000000000), }"
    (tmp_path / "endless.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    npy(tmp_path / "times.npy", np.array([[1], [2], [3]], dtype="timedelta64[s]"))
    for name, message in [
        ("absent.npy", "there is no file"),
        ("f.csv", "features are read from .npy, .npz, .safetensors"),
        ("f.npz", "cannot read features"),
        ("torn.npy", "cannot read features"),
        ("torn.safetensors", "cannot read features"),
        ("unnamed.npz", "holds no .*task_ids.*; it needs features and task_ids"),
        ("unnamed.safetensors", "holds no 'task_ids'; it needs features and task_ids"),
        ("matrix.npz", "an .npy array by another name"),
        ("damaged.npz", "cannot read features from .*damaged.npz: "),
        ("endless.npy", "cannot read features from .*endless.npy: "),
        ("times.npy", "a matrix of real numbers"),
    ]:
        with pytest.raises(TrainingError, match=message):
            read_features(tmp_path / name, IDS)
