"""The tiny model, written and loaded once for the room's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from trinity_assets.backbones.features import Backbone, load_backbone
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets_tests.backbones.tiny_models import save_model_directory, tiny_spec


@pytest.fixture(scope="session")
def model_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama in the Hugging Face layout."""
    return save_model_directory(tmp_path_factory.mktemp("tiny_llama"))


@pytest.fixture(scope="session")
def backbone(model_directory: Path) -> Backbone:
    """The tiny model, loaded with the default spec."""
    return load_backbone(tiny_spec(model_directory))


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    """An empty artifact store."""
    return ArtifactStore(str(tmp_path / "store"))
