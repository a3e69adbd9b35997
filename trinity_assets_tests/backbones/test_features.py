"""The feature is the state it says it is, alone and among others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trinity_assets.backbones.features import Backbone, load_backbone
from trinity_assets.backbones.prompts import Message, clip, raw_transcript
from trinity_assets.errors import BackboneError
from trinity_assets_tests.backbones.tiny_models import tiny_spec

QUESTIONS = ["How many legs has a spider?", "2+2", "", "naïve café", "A" * 50]


def reference(backbone: Backbone, text: str, position: int = -2) -> np.ndarray:
    """The last of a whole forward pass's hidden states at ``position``, as an outsider would compute it."""
    import torch

    ids = backbone.tokenizer(text, return_tensors="pt").input_ids
    with torch.inference_mode():
        states = backbone.model(input_ids=ids, output_hidden_states=True).hidden_states
    return states[-1][0, position].float().numpy()


def test_a_feature_is_the_final_state_at_the_last_but_one_token(backbone: Backbone) -> None:
    features = backbone.extract(QUESTIONS)
    assert features.shape == (len(QUESTIONS), 64)
    assert features.dtype == np.float32
    for question, feature in zip(QUESTIONS, features, strict=True):
        np.testing.assert_allclose(feature, reference(backbone, f"user: {question}"), atol=1e-5)


def test_many_at_once_equal_one_by_one_to_the_bit(backbone: Backbone) -> None:
    alone = np.concatenate([backbone.extract([question]) for question in QUESTIONS])
    np.testing.assert_array_equal(backbone.extract(QUESTIONS), alone)
    np.testing.assert_array_equal(backbone.extract(QUESTIONS[::-1])[::-1], alone)


def test_the_last_token_does_not_matter_and_the_one_before_does(backbone: Backbone) -> None:
    one, other, third = backbone.extract(["What now?", "What now!", "What nov?"])
    np.testing.assert_array_equal(one, other)
    assert np.abs(one - third).max() > 1e-3


def test_the_number_of_cores_does_not_matter_and_is_left_as_it_was(backbone: Backbone) -> None:
    import torch

    cores, features = torch.get_num_threads(), backbone.extract(QUESTIONS)
    try:
        torch.set_num_threads(3)
        np.testing.assert_array_equal(backbone.extract(QUESTIONS), features)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(cores)


def test_the_last_position_reads_the_last_token(model_directory: Path) -> None:
    last = load_backbone(tiny_spec(model_directory, position=-1))
    np.testing.assert_allclose(last.extract(["2+2"])[0], reference(last, "user: 2+2", -1), atol=1e-5)


def test_the_chat_transcript_is_the_tokenizers_template(model_directory: Path) -> None:
    chat = load_backbone(tiny_spec(model_directory, transcript="chat"))
    np.testing.assert_allclose(chat.extract(["2+2"])[0], reference(chat, "<user>2+2<assistant>"), atol=1e-5)


def test_bfloat16_gives_other_features_that_are_close(model_directory: Path, backbone: Backbone) -> None:
    halved = load_backbone(tiny_spec(model_directory, dtype="bfloat16"))
    exact, rounded = backbone.extract(QUESTIONS), halved.extract(QUESTIONS)
    assert rounded.dtype == np.float32
    assert 0 < np.abs(rounded - exact).max() < 0.1
    assert halved.spec.differences(backbone.spec) == ["dtype: bfloat16 here, float32 there"]


def test_a_transcript_is_lines_of_role_and_content() -> None:
    messages = [Message(role="system", content="Be short."), Message(role="user", content="Hi\nthere")]
    assert raw_transcript(messages) == "system: Be short.\nuser: Hi\nthere"


def test_clipping_keeps_the_end_that_the_policy_names() -> None:
    assert clip([1, 2, 3, 4], 3, "keep_tail") == [2, 3, 4]
    assert clip([1, 2, 3, 4], 3, "keep_head") == [1, 2, 3]
    assert clip([1, 2, 3], 3, "keep_tail") == [1, 2, 3]


@pytest.mark.parametrize(("overlong", "seen"), [("keep_tail", "fghij"), ("keep_head", "user:")])
def test_an_overlong_prompt_is_read_as_its_policy_says(model_directory: Path, overlong: str, seen: str) -> None:
    short = load_backbone(tiny_spec(model_directory, max_tokens=5, overlong=overlong))
    np.testing.assert_allclose(short.extract(["abcdefghij"])[0], reference(short, seen), atol=1e-5)


def test_an_overlong_prompt_is_refused_where_the_spec_says_so(model_directory: Path) -> None:
    strict = load_backbone(tiny_spec(model_directory, max_tokens=10, overlong="refuse"))
    assert strict.extract(["abcd"]).shape == (1, 64)
    with pytest.raises(BackboneError, match="'abcde' has 11 tokens, more than max_tokens 10"):
        strict.extract(["abcd", "abcde"])


def test_a_prompt_without_a_token_at_the_position_is_refused(model_directory: Path) -> None:
    deep = load_backbone(tiny_spec(model_directory, position=-8))
    assert deep.extract(["ab"]).shape == (1, 64)
    with pytest.raises(BackboneError, match="'a' has 7 token"):
        deep.extract(["a"])


def test_more_tokens_than_the_context_are_refused_on_loading(model_directory: Path) -> None:
    with pytest.raises(BackboneError, match=r"max_tokens 257.*context of 256"):
        load_backbone(tiny_spec(model_directory, max_tokens=257))


def test_loading_says_nothing(model_directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    load_backbone(tiny_spec(model_directory))
    assert capfd.readouterr() == ("", "")
