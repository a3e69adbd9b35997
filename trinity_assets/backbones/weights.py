"""Finding a backbone's weights and hashing them, without loading them.

A resolved backbone knows its files, the sha256 of their bytes and its hidden size: enough for a feature spec, so a step
can tell that it has nothing to compute before torch is imported. (A GGUF file is converted when it is first resolved.)
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from trinity_assets.backbones.conversion import converted_directory
from trinity_assets.backbones.specs import (
    BackboneSpec,
    Directory,
    FeatureSpec,
    Hub,
    PackageGGUF,
    WeightsIdentity,
    WeightsSpec,
)
from trinity_assets.errors import BackboneError, DistributionError
from trinity_assets.files import distribution_file, file_sha256
from trinity_assets.spec import digest

MODEL_FILES = (
    "config.json",
    "*.safetensors",
    "*.safetensors.index.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
)
"""The files of a model directory that a feature can depend on. Weights in any other format (pickles) are not read."""


@dataclass(frozen=True)
class ResolvedWeights:
    """Weights found on this machine.

    ``path`` is the model directory; ``files`` are the files that were hashed, in name order: those of the directory, or
    the one GGUF file that it was converted from. ``sha256`` is the digest of every file's name and sha, or that file's.
    """

    path: Path
    files: tuple[Path, ...]
    sha256: str
    hidden_size: int
    source: str


def resolve_weights(weights: WeightsSpec) -> ResolvedWeights:
    """Find and hash ``weights``; a hub repository is downloaded, or taken from the cache.

    Raises:
        BackboneError: the weights are missing, incomplete or cannot be downloaded; the message says what to do.
    """
    match weights:
        case PackageGGUF():
            return _resolve_gguf(_package_file(weights), weights.source)
        case Directory():
            return _resolve_directory(Path(weights.path).expanduser(), weights.source)
        case Hub():
            return _resolve_directory(_hub_snapshot(weights), weights.source)


def feature_spec(spec: BackboneSpec, resolved: ResolvedWeights) -> FeatureSpec:
    """The spec of the features that ``spec`` gives with the weights it resolved to."""
    return FeatureSpec(
        weights=WeightsIdentity(source=resolved.source, sha256=resolved.sha256),
        hidden_size=resolved.hidden_size,
        transcript=spec.transcript,
        position=spec.position,
        dtype=spec.dtype,
        max_tokens=spec.max_tokens,
        overlong=spec.overlong,
    )


def _package_file(weights: PackageGGUF) -> Path:
    try:
        return distribution_file(weights.package, weights.file)
    except DistributionError as error:
        raise BackboneError(f"cannot find the weights {weights.source}: {error}") from None


def _hub_snapshot(weights: Hub) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        return Path(snapshot_download(weights.repo, revision=weights.revision, allow_patterns=list(MODEL_FILES)))
    except GatedRepoError as error:
        remedy = "accept its licence on the hub and set HF_TOKEN to a token of that account"
        cause: Exception = error
    except RepositoryNotFoundError as error:
        remedy = "check the name; for a private repository set HF_TOKEN"
        cause = error
    except LocalEntryNotFoundError as error:
        remedy = (
            "it is not in the local cache and the hub cannot be reached: connect, unset HF_HUB_OFFLINE, or declare "
            "`kind: directory` with a copy of it"
        )
        cause = error
    except (OSError, ValueError) as error:  # hub HTTP errors are OSErrors: wrong revision, disk full, proxy
        remedy = f"{type(error).__name__}; check the revision, the network (HF_HUB_OFFLINE, HF_TOKEN) and the disk"
        cause = error
    raise BackboneError(f"cannot get the weights {weights.source} from the hub: {remedy}") from cause


def _resolve_gguf(path: Path, source: str) -> ResolvedWeights:
    sha256 = file_sha256(path)
    directory = converted_directory(path, sha256)
    return ResolvedWeights(directory, (path,), sha256, _config_hidden_size(directory / "config.json"), source)


def _resolve_directory(path: Path, source: str) -> ResolvedWeights:
    if not path.is_dir():
        raise BackboneError(f"the backbone's directory {path} does not exist; download the model there or fix the path")
    files = tuple(
        file
        for file in sorted(path.iterdir())
        if file.is_file() and any(fnmatch(file.name, pattern) for pattern in MODEL_FILES)
    )
    if not any(file.suffix == ".safetensors" for file in files):
        raise BackboneError(f"{path} holds no *.safetensors file; weights in other formats are not read")
    sha256 = digest([[file.name, file_sha256(file)] for file in files])
    return ResolvedWeights(path, files, sha256, _config_hidden_size(path / "config.json"), source)


def _config_hidden_size(path: Path) -> int:
    try:
        config: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BackboneError(f"cannot read the model's configuration {path}: {error}") from error
    hidden_size = config.get("text_config", config).get("hidden_size", config.get("n_embd"))
    if not isinstance(hidden_size, int):
        raise BackboneError(f"{path} does not state hidden_size; it is not a language model's configuration")
    return hidden_size
