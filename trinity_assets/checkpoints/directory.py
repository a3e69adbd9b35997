"""A checkpoint as a directory: ``manifest.json`` beside ``head.safetensors``, written whole and verified whole."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load, save

from trinity_assets.checkpoints.manifest import Manifest, ManifestFields
from trinity_assets.checkpoints.versions import MANIFEST_FORMAT, MANIFEST_VERSION
from trinity_assets.errors import CheckpointError

MANIFEST = "manifest.json"
HEAD_FILE = "head.safetensors"
HEAD_KEY = "head"
_REMEDY = "export the router again"


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint: ``head`` is (rows.workers + rows.roles, hidden) float32."""

    path: Path
    manifest: Manifest
    head: np.ndarray


def write_checkpoint(directory: Path, fields: ManifestFields, head: np.ndarray) -> Path:
    """Write a checkpoint below ``directory`` and return its path, ``<router>-<digest of its content>``.

    The same content is the same path, and a path never changes what it holds, so a server may keep reading it. The
    directory appears under its name complete or not at all.

    Raises:
        CheckpointError: the head does not fit the fields, or the files cannot be written.
    """
    data = save({HEAD_KEY: np.ascontiguousarray(head, dtype=np.float32)})
    manifest = Manifest(
        **fields.model_dump(),
        created_at=datetime.now(UTC).replace(microsecond=0),
        files={HEAD_FILE: hashlib.sha256(data).hexdigest()},
    )
    target = directory / f"{manifest.router}-{manifest.digest[:12]}"
    _check_head(head, manifest, target)
    with contextlib.suppress(CheckpointError):
        return load_checkpoint(target).path
    temporary = directory / f".{target.name}.{uuid.uuid4().hex}.tmp"
    try:
        temporary.mkdir(parents=True)
        _write_durably(temporary / HEAD_FILE, data)
        text = json.dumps(manifest.model_dump(mode="json"), indent=2, sort_keys=True, allow_nan=False)
        _write_durably(temporary / MANIFEST, f"{text}\n".encode())
        if target.exists():  # damaged, or it would have been returned above
            shutil.rmtree(target)
        temporary.rename(target)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        with contextlib.suppress(CheckpointError):  # another process may have published the same content meanwhile
            return load_checkpoint(target).path
        raise CheckpointError(
            f"cannot write checkpoint {target}: {error}; nothing was published, free space or fix the permissions "
            "and run again"
        ) from error
    return target


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint, trusting nothing: every listed file is hashed and the head is held against the manifest.

    Raises:
        CheckpointError: anything is missing, damaged, of another format, or does not fit together.
    """
    manifest = _read_manifest(path)
    contents = {name: _read_listed(path, name, sha256) for name, sha256 in manifest.files.items()}
    if HEAD_FILE not in contents:
        raise CheckpointError(f"{path / MANIFEST} does not list {HEAD_FILE} among its files; {_REMEDY}")
    head = _read_head(contents[HEAD_FILE], path / HEAD_FILE)
    _check_head(head, manifest, path)
    return Checkpoint(path, manifest, head)


def _read_manifest(path: Path) -> Manifest:
    file = path / MANIFEST
    try:
        declared = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise CheckpointError(f"{path} holds no {MANIFEST}: it is not a checkpoint, or only part of one") from None
    except OSError as error:
        raise CheckpointError(f"cannot read {file}: {error}") from error
    except ValueError as error:
        raise CheckpointError(f"{file} is not JSON: {error}; {_REMEDY}") from error
    if not isinstance(declared, Mapping) or declared.get("format") != MANIFEST_FORMAT:
        raise CheckpointError(f"{file} is not the manifest of a {MANIFEST_FORMAT}; give the path of one")
    if declared.get("version") != MANIFEST_VERSION:
        raise CheckpointError(
            f"{file} has version {declared.get('version')!r}, this release reads version {MANIFEST_VERSION}; "
            f"use the release that wrote it, or {_REMEDY}"
        )
    try:
        return Manifest.model_validate_json(json.dumps(declared))
    except ValidationError as error:
        faults = "; ".join(_fault(fault) for fault in error.errors())
        raise CheckpointError(f"{file} is not a valid manifest: {faults}; {_REMEDY}") from error


def _fault(fault: Any) -> str:
    where = ".".join(str(part) for part in fault["loc"])
    return f"{where}: {fault['msg']}" if where else fault["msg"]


def _read_listed(path: Path, name: str, sha256: str) -> bytes:
    """The bytes of a listed file, which must lie in the directory and hash to what the manifest says."""
    file = path / name
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or not file.resolve().is_relative_to(path.resolve()):
        raise CheckpointError(f"{path / MANIFEST} lists {name!r}, which leaves the directory; do not use it")
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        raise CheckpointError(f"{file} is missing though the manifest lists it; copy the whole directory") from None
    except OSError as error:
        raise CheckpointError(f"cannot read {file}: {error}") from error
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise CheckpointError(
            f"{file} is damaged: its bytes hash to {found[:12]}, the manifest says {sha256[:12]}; "
            f"copy it again or {_REMEDY}"
        )
    return data


def _read_head(data: bytes, file: Path) -> np.ndarray:
    try:
        tensors = load(data)
    except (SafetensorError, KeyError) as error:
        raise CheckpointError(f"{file} is not a safetensors file: {error}; {_REMEDY}") from error
    if set(tensors) != {HEAD_KEY}:
        raise CheckpointError(f"{file} holds tensors {sorted(tensors)}, expected {HEAD_KEY!r} alone; {_REMEDY}")
    return tensors[HEAD_KEY]


def _check_head(head: np.ndarray, manifest: Manifest, where: Path) -> None:
    expected = (manifest.rows.workers + manifest.rows.roles, manifest.feature_spec.hidden_size)
    if head.shape != expected:
        raise CheckpointError(
            f"the head of {where} has shape {head.shape}; {manifest.rows.workers} workers, {manifest.rows.roles} roles "
            f"and features of width {manifest.feature_spec.hidden_size} need {expected}; {_REMEDY}"
        )
    if head.dtype != np.float32:
        raise CheckpointError(f"the head of {where} is {head.dtype}, expected float32; {_REMEDY}")
    if not np.isfinite(head).all():
        raise CheckpointError(f"the head of {where} holds values that are not finite; train it again")


def _write_durably(file: Path, data: bytes) -> None:
    with file.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
