"""The feature artifact: a Parquet index over matrices of features, and extracting only what it lacks.

A matrix (shard) is one ``.npy`` object of the store, float16: half the size, read some fifty times faster than vectors
in Parquet, and no routing decision flipped in 1,800 against float32. The index says which shard and row hold a task's
feature; it carries the feature spec, and questions are known by digest, so that a later extraction reuses every
row whose spec and question are unchanged.
"""

from __future__ import annotations

import hashlib
import io
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from pydantic import ValidationError

from trinity_assets.backbones.features import Backbone
from trinity_assets.backbones.specs import FeatureSpec
from trinity_assets.errors import ArtifactError, BackboneError
from trinity_assets.spec import canonical_json, digest
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets.store.tables import Table, read_table, write_table

logger = logging.getLogger(__name__)

INDEX_KIND = "features"
INDEX_SCHEMA = pa.schema(
    [
        pa.field("task_id", pa.string(), nullable=False),
        pa.field("question_digest", pa.string(), nullable=False),
        pa.field("shard", pa.string(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
    ]
)

Place = tuple[str, int]
"""Where one feature lies: a shard's sha256 and a row in it."""


@dataclass(frozen=True)
class FeatureTable:
    """Features read back: ``matrix`` float32 ``(len(task_ids), hidden_size)`` in the order of ``task_ids``."""

    task_ids: tuple[str, ...]
    question_digests: tuple[str, ...]
    matrix: np.ndarray
    spec: FeatureSpec


@dataclass(frozen=True)
class Extraction:
    """What an extraction made: the index, the version of its content, and how much was computed for it.

    ``new`` and ``reused`` count tasks, ``tokens`` those of the computed prompts, ``seconds`` the whole extraction
    including loading the model.
    """

    index_sha: str
    data_version: str
    new: int
    reused: int
    tokens: int
    seconds: float


def read_features(store: ArtifactStore, index_sha: str) -> FeatureTable:
    """The features that an index points at, as float32.

    Raises:
        ArtifactError: the index or one of its shards is missing, damaged or does not fit the other, or the index was
            made under a spec of an older form.
    """
    table = read_table(store, INDEX_KIND, index_sha)
    spec = _index_spec(table)
    frame = table.frame
    places: list[Place] = list(zip(frame["shard"], frame["row"], strict=True))
    matrix = _gather(store, places, spec.hidden_size)
    return FeatureTable(tuple(frame["task_id"]), tuple(frame["question_digest"]), matrix, spec)


def extract_features(
    store: ArtifactStore,
    spec: FeatureSpec,
    load: Callable[[], Backbone],
    tasks: Sequence[tuple[str, str]],
    previous_index_sha: str | None = None,
    *,
    inputs: Mapping[str, str] | None = None,
) -> Extraction:
    """Features of ``tasks`` (pairs of task id and question), computing only those that the previous index lacks.

    ``load`` is called only if something is missing. A question that several tasks share is computed once. A previous
    index made under another spec, or no longer readable, is not used. ``inputs`` (sha256 by name: what the tasks and
    the weights were read from) is kept in the index.

    Raises:
        BackboneError: there are no tasks, ``load`` gives a backbone of another spec, or a question is refused.
    """
    if not tasks:
        raise BackboneError("there are no tasks to extract features of; the benchmark's snapshot is empty")
    started = time.monotonic()
    questions = {digest(question): question for _, question in tasks}
    digests = [digest(question) for _, question in tasks]
    known = _known_places(store, spec, previous_index_sha)
    missing = [question_digest for question_digest in questions if question_digest not in known]
    tokens = 0
    if missing:
        backbone = load()
        if differences := spec.differences(backbone.spec):
            raise BackboneError(f"the loaded backbone gives other features than asked for: {'; '.join(differences)}")
        prompts = backbone.encode([questions[question_digest] for question_digest in missing])
        tokens = sum(map(len, prompts))
        shard = _write_shard(store, backbone.hidden_states(prompts))
        known |= {question_digest: (shard, row) for row, question_digest in enumerate(missing)}
    index_sha, version = _write_index(
        store,
        spec,
        [task_id for task_id, _ in tasks],
        digests,
        [known[question_digest] for question_digest in digests],
        inputs,
    )
    computed = set(missing)
    new = sum(question_digest in computed for question_digest in digests)
    return Extraction(index_sha, version, new, len(tasks) - new, tokens, time.monotonic() - started)


def _known_places(store: ArtifactStore, spec: FeatureSpec, previous_index_sha: str | None) -> dict[str, Place]:
    """Where the previous index keeps each question (by digest), if its features are those of ``spec``."""
    if previous_index_sha is None:
        return {}
    try:
        previous = read_table(store, INDEX_KIND, previous_index_sha)
        differences = spec.differences(_index_spec(previous))
        if differences:
            logger.info("the previous features are of another spec (%s); computing all", "; ".join(differences))
            return {}
        places = list(zip(previous.frame["shard"], previous.frame["row"], strict=True))
        _gather(store, places, spec.hidden_size)
    except ArtifactError as error:
        logger.warning("the previous features cannot be used, computing all: %s", error)
        return {}
    return dict(zip(previous.frame["question_digest"], places, strict=True))


def _index_spec(table: Table) -> FeatureSpec:
    try:
        return FeatureSpec.model_validate(table.spec)
    except ValidationError as error:
        fields = ", ".join(sorted({".".join(map(str, fault["loc"])) for fault in error.errors()}))
        raise ArtifactError(
            f"the features {table.sha256[:12]} were made under a spec of another form (it differs in {fields}); "
            "materialize the features again"
        ) from error


def _write_index(
    store: ArtifactStore,
    spec: FeatureSpec,
    task_ids: list[str],
    digests: list[str],
    places: list[Place],
    inputs: Mapping[str, str] | None,
) -> tuple[str, str]:
    if len(set(task_ids)) != len(task_ids):
        raise BackboneError("two tasks have the same id; a feature is found by its task's id")
    frame = pd.DataFrame(
        {
            "task_id": task_ids,
            "question_digest": digests,
            "shard": [shard for shard, _ in places],
            "row": [row for _, row in places],
        }
    )
    index_sha = write_table(store, INDEX_KIND, frame, INDEX_SCHEMA, spec.model_dump(mode="json"), inputs)
    return index_sha, _data_version(spec, task_ids, _gather(store, places, spec.hidden_size))


def _data_version(spec: FeatureSpec, task_ids: list[str], matrix: np.ndarray) -> str:
    """The sha256 of what routing reads: spec, task ids and values as kept; not of how they are cut into shards."""
    version = hashlib.sha256(canonical_json([spec.digest, task_ids]).encode())
    version.update(np.ascontiguousarray(matrix, dtype="<f4").data)
    return version.hexdigest()


def as_kept(matrix: np.ndarray) -> np.ndarray:
    """``matrix`` as a shard keeps it: float16, or float32 where float16 would overflow."""
    with np.errstate(over="ignore"):
        kept = matrix.astype("<f2")
    return kept if np.isfinite(kept).all() else matrix.astype("<f4")


def _write_shard(store: ArtifactStore, matrix: np.ndarray) -> str:
    """Keep ``matrix``; return its sha256."""
    buffer = io.BytesIO()
    np.save(buffer, as_kept(matrix), allow_pickle=False)
    return store.put(buffer.getvalue())


def _gather(store: ArtifactStore, places: Sequence[Place], hidden_size: int) -> np.ndarray:
    """The rows at ``places``, float32 ``(len(places), hidden_size)``; each shard is read once."""
    matrix = np.empty((len(places), hidden_size), dtype=np.float32)
    rows_by_shard: dict[str, list[int]] = {}
    for position, (shard, _) in enumerate(places):
        rows_by_shard.setdefault(shard, []).append(position)
    for shard, positions in rows_by_shard.items():
        kept = np.load(io.BytesIO(store.get(shard)), allow_pickle=False)
        rows = [places[position][1] for position in positions]
        if kept.ndim != 2 or kept.shape[1] != hidden_size or not 0 <= min(rows) <= max(rows) < len(kept):
            raise ArtifactError(
                f"the feature matrix {shard[:12]} of shape {kept.shape} does not hold rows {min(rows)} to {max(rows)} "
                f"of hidden size {hidden_size}; materialize the features again"
            )
        matrix[positions] = kept[rows]
    return matrix
