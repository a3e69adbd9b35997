"""Features that somebody extracted elsewhere: a matrix in a file, aligned to the tasks of a table.

``.npy`` holds (n, H) in the order of the table's rows. ``.npz`` and ``.safetensors`` name their rows: an array
``features`` (m, H), and the ids of its tasks as an array ``task_ids`` of text, or in a safetensors file as a JSON list
of the metadata's key ``task_ids``, since that format has no arrays of text. Pickles are not read.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors import SafetensorError, safe_open

from trinity_assets.errors import TrainingError, listed
from trinity_assets.texts import counted, quoted

FEATURES = "features"
TASK_IDS = "task_ids"

_DAMAGE = (
    SafetensorError, zipfile.BadZipFile, zlib.error, OSError, EOFError, TypeError, ValueError, AttributeError,
    RuntimeError, MemoryError, OverflowError,
)  # fmt: skip
"""What the readers of these formats raise at damaged, encrypted, oversized and unknown contents."""

Named = tuple[Sequence[str] | None, np.ndarray]
"""The task ids of a matrix's rows, None where they are the table's, and the matrix."""


def read_features(path: Path, task_ids: Sequence[str]) -> np.ndarray:
    """The feature of each of the tasks: (n, H) float32, in the order of ``task_ids``.

    Raises:
        TrainingError: the file cannot be read, or is no matrix of finite numbers with a row for every task.
    """
    if path.suffix not in _READERS:
        raise TrainingError(f"features are read from {', '.join(_READERS)}; the name of {path} ends otherwise")
    try:
        ids, matrix = _READERS[path.suffix](path)
    except FileNotFoundError:
        raise TrainingError(f"there is no file {path}") from None
    except KeyError as error:
        raise TrainingError(f"{path} holds no {error}; it needs {FEATURES} and {TASK_IDS}") from None
    except _DAMAGE as error:
        raise TrainingError(f"cannot read features from {path}: {error or type(error).__name__}") from error
    if matrix.ndim != 2 or not matrix.shape[1] or matrix.dtype.kind not in "fiu":
        raise TrainingError(
            f"{path}: features are a matrix of real numbers, a row per task; this is {matrix.dtype} of shape "
            f"{matrix.shape}"
        )
    with np.errstate(over="ignore"):
        aligned = _aligned(path, ids, matrix, task_ids).astype(np.float32)
    endless = np.flatnonzero(~np.isfinite(aligned).all(axis=1))
    if len(endless):
        raise TrainingError(
            f"{path}: {counted(len(endless), 'feature')} of values that are not finite, first that of task "
            f"{quoted(task_ids[endless[0]])}; extract them again in float32"
        )
    return aligned


def _aligned(path: Path, ids: Sequence[str] | None, matrix: np.ndarray, task_ids: Sequence[str]) -> np.ndarray:
    rows = len(task_ids) if ids is None else len(ids)
    if len(matrix) != rows:
        whose = "the table has" if ids is None else "it names"
        raise TrainingError(f"{path} has {counted(len(matrix), 'feature')} and {whose} {counted(rows, 'task')}")
    if ids is None:
        return matrix
    index = pd.Index(ids)
    if not index.is_unique:
        raise TrainingError(f"{path} names the task {quoted(index[index.duplicated()][0])} twice")
    found = index.get_indexer(pd.Index(task_ids))
    if missing := [quoted(task) for task, row in zip(task_ids, found, strict=True) if row < 0]:
        raise TrainingError(f"{path} has no feature of {counted(len(missing), 'task')}: {listed(missing, ', ')}")
    return matrix[found]


def _read_npy(path: Path) -> Named:
    loaded = np.load(path, allow_pickle=False)
    if not isinstance(loaded, np.ndarray):
        raise ValueError("it is an .npz archive by another name")
    return None, loaded


def _read_npz(path: Path) -> Named:
    loaded = np.load(path, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        raise ValueError("it is an .npy array by another name")
    with loaded:
        return [str(task) for task in np.atleast_1d(loaded[TASK_IDS])], loaded[FEATURES]


def _read_safetensors(path: Path) -> Named:
    with safe_open(path, framework="numpy") as file:
        if FEATURES not in file.keys():  # noqa: SIM118 - a handle, which cannot be asked otherwise
            raise KeyError(FEATURES)
        ids = json.loads((file.metadata() or {})[TASK_IDS])
        if not isinstance(ids, list):
            raise ValueError(f"the metadata's {TASK_IDS} are no JSON list")
        return [str(task) for task in ids], file.get_tensor(FEATURES)


_READERS: dict[str, Callable[[Path], Named]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
}
