"""Finding and hashing weights."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from trinity_assets.backbones.specs import Directory, Hub, PackageGGUF
from trinity_assets.backbones.weights import resolve_weights
from trinity_assets.errors import BackboneError


def resolved_sha(path: Path) -> str:
    return resolve_weights(Directory(path=str(path))).sha256


def test_a_directory_hashes_the_files_that_decide_features_and_no_others(model_directory: Path, tmp_path: Path) -> None:
    resolved = resolve_weights(Directory(path=str(model_directory)))
    assert {file.name for file in resolved.files} >= {"config.json", "model.safetensors", "tokenizer.json"}
    assert resolved.hidden_size == 64
    copy = tmp_path / "elsewhere"
    shutil.copytree(model_directory, copy)
    (copy / "README.md").write_text("notes")
    assert resolved_sha(copy) == resolved.sha256
    tokenizer = copy / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text() + "\n")
    assert resolved_sha(copy) != resolved.sha256


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(BackboneError, match="nowhere does not exist"):
        resolve_weights(Directory(path=str(tmp_path / "nowhere")))


def test_a_directory_of_pickled_weights_is_refused(model_directory: Path, tmp_path: Path) -> None:
    shutil.copy(model_directory / "config.json", tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80")
    with pytest.raises(BackboneError, match=r"no \*\.safetensors file"):
        resolve_weights(Directory(path=str(tmp_path)))


def test_a_missing_package_or_file_says_to_run_the_set_up() -> None:
    with pytest.raises(BackboneError, match=r"no-such-model is not installed.*make setup"):
        resolve_weights(PackageGGUF(package="no-such-model", file="model.gguf"))
    with pytest.raises(BackboneError, match=r"numpy has no file model.gguf.*make setup"):
        resolve_weights(PackageGGUF(package="numpy", file="model.gguf"))


@pytest.mark.parametrize(
    ("error_name", "remedy"),
    [("GatedRepoError", "HF_TOKEN"), ("RepositoryNotFoundError", "HF_TOKEN"), ("LocalEntryNotFoundError", "OFFLINE")],
)
def test_a_hub_failure_names_the_repository_and_the_remedy(
    error_name: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub
    from huggingface_hub import errors

    def fail(*args: object, **kwargs: object) -> None:
        error_class = getattr(errors, error_name)
        raise error_class.__new__(error_class)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(BackboneError, match=f"org/model@v1 .*{remedy}"):
        resolve_weights(Hub(repo="org/model", revision="v1"))
