"""Tables as Parquet bytes that carry their kind, the whole spec that made them, and the shas of their inputs.

They ride in the file's schema metadata, so that two artifacts can be compared field by field, a reader that meets
another spec than it expects can refuse, and lineage can be walked without the event log.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from trinity_assets.errors import ArtifactError
from trinity_assets.spec import canonical_json
from trinity_assets.store.artifacts import ArtifactStore

METADATA_KEY = b"trinity_assets"


@dataclass(frozen=True)
class Table:
    """A table read back: its rows, the spec that made it, the shas of its inputs by name, and its own sha."""

    frame: pd.DataFrame
    spec: dict[str, Any]
    inputs: dict[str, str]
    sha256: str


def write_table(
    store: ArtifactStore,
    kind: str,
    frame: pd.DataFrame,
    schema: pa.Schema,
    spec: Mapping[str, Any],
    inputs: Mapping[str, str] | None = None,
) -> str:
    """Keep ``frame`` in ``schema`` (exactly its columns, in its order) and return the artifact's sha256.

    Raises:
        ArtifactError: a column is missing or does not fit its type.
    """
    try:
        table = pa.Table.from_pandas(frame[schema.names], schema=schema, preserve_index=False)
    except (KeyError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ArtifactError(f"the {kind} table does not fit its columns {schema.names}: {error}") from error
    header = {"kind": kind, "spec": dict(spec), "inputs": dict(inputs or {})}
    table = table.replace_schema_metadata({METADATA_KEY: canonical_json(header).encode()})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return store.put(buffer.getvalue())


def read_table(store: ArtifactStore, kind: str, sha256: str, expected_spec: Mapping[str, Any] | None = None) -> Table:
    """Read a table back, refusing one of another kind or, where one is expected, of another spec.

    Raises:
        ArtifactError: missing, damaged, not a table of this project, of another ``kind``, or made from another spec;
            the message names the fields that differ.
    """
    data = store.get(sha256)
    try:
        table = pq.read_table(io.BytesIO(data))
    except pa.ArrowInvalid as error:
        raise ArtifactError(f"artifact {sha256[:12]} is not a Parquet file: {error}") from error
    metadata = (table.schema.metadata or {}).get(METADATA_KEY)
    header: dict[str, Any] = json.loads(metadata) if metadata else {"kind": "no table of this project"}
    if header["kind"] != kind:
        raise ArtifactError(f"artifact {sha256[:12]} holds {header['kind']}, expected {kind}")
    if expected_spec is not None:
        differences = spec_differences(header["spec"], json.loads(canonical_json(dict(expected_spec))))
        if differences:
            raise ArtifactError(
                f"the {kind} in artifact {sha256[:12]} were made from other settings than the catalog's: "
                f"{'; '.join(differences)}. Build that asset first"
            )
    return Table(table.to_pandas(), header["spec"], header["inputs"], sha256)


def spec_differences(found: Any, expected: Any, path: str = "") -> list[str]:
    """Where two specs (JSON values) differ, as ``sampling.max_tokens: 512 -> 768``."""
    if isinstance(found, dict) and isinstance(expected, dict):
        names = sorted(found.keys() | expected.keys())
        inner = [spec_differences(found.get(n), expected.get(n), f"{path}.{n}" if path else n) for n in names]
        return [difference for differences in inner for difference in differences]
    return [] if found == expected else [f"{path}: {json.dumps(found)} -> {json.dumps(expected)}"]
