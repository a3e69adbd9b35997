"""A GGUF file becomes a model directory with the weights that were written, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from trinity_assets.backbones.conversion import converted_directory
from trinity_assets.backbones.loading import load_model
from trinity_assets.backbones.specs import Directory
from trinity_assets.backbones.weights import ResolvedWeights, resolve_weights
from trinity_assets.errors import BackboneError
from trinity_assets_tests.backbones.tiny_models import save_gguf

SHA256 = "0" * 64


def test_a_converted_file_gives_the_weights_that_were_written(model_directory: Path, tmp_path: Path) -> None:
    import torch

    path = save_gguf(model_directory, tmp_path / "tiny.gguf")
    converted = ResolvedWeights(converted_directory(path, SHA256, tmp_path / "cache"), (path,), SHA256, 64, "tiny")
    written, written_tokenizer = load_model(resolve_weights(Directory(path=str(model_directory))), "float32")
    loaded, tokenizer = load_model(converted, "float32")
    assert loaded.state_dict().keys() == written.state_dict().keys()
    assert all(torch.equal(loaded.state_dict()[name], value) for name, value in written.state_dict().items())
    ids = torch.tensor([[5, 80, 200, 7]])
    assert torch.equal(loaded(ids).last_hidden_state, written(ids).last_hidden_state)
    assert tokenizer("café ~~12").input_ids == written_tokenizer("café ~~12").input_ids


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_quantized_file_gives_the_bits_that_transformers_gives(
    model_directory: Path, tmp_path: Path, dtype: str
) -> None:
    import torch
    from transformers import AutoModel

    path = save_gguf(model_directory, tmp_path / "tiny.gguf", quantized=True)
    converted = ResolvedWeights(converted_directory(path, SHA256, tmp_path / "cache"), (path,), SHA256, 64, "tiny")
    ours, _ = load_model(converted, dtype)
    theirs = AutoModel.from_pretrained(tmp_path, gguf_file=path.name, dtype=getattr(torch, dtype)).eval()
    assert all(torch.equal(ours.state_dict()[name], value) for name, value in theirs.state_dict().items())


def test_a_file_is_converted_once_and_the_copy_does_not_need_it(model_directory: Path, tmp_path: Path) -> None:
    path = save_gguf(model_directory, tmp_path / "tiny.gguf")
    first = converted_directory(path, SHA256, tmp_path / "cache")
    path.unlink()
    assert converted_directory(path, SHA256, tmp_path / "cache") == first
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == [SHA256]


@pytest.mark.parametrize("keep", [0, 20, 2000, -5000])
def test_damaged_files_are_refused_and_leave_nothing(model_directory: Path, tmp_path: Path, keep: int) -> None:
    path = save_gguf(model_directory, tmp_path / "tiny.gguf")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(BackboneError, match=r"cannot convert .*tiny.gguf"):
        converted_directory(path, SHA256, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []
