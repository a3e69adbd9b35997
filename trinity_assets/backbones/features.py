"""Computing features: the one function that training and serving share.

A feature is the final-norm hidden state at ``position`` (-2: the last but one token) of the question's transcript. The
state at a token never depends on the tokens after it, so the forward pass runs over ``ids[:position + 1]`` and reads
its last position. A prompt is never padded or batched with another, so a question has the same feature, to the bit,
alone (serving) and among others (training).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trinity_assets.backbones.cores import core_pool
from trinity_assets.backbones.loading import load_model
from trinity_assets.backbones.prompts import encode_question
from trinity_assets.backbones.specs import BackboneSpec, FeatureSpec
from trinity_assets.backbones.weights import ResolvedWeights, feature_spec, resolve_weights
from trinity_assets.errors import BackboneError
from trinity_assets.progress import Progress

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Backbone:
    """A loaded base model with its tokenizer, and the spec of the features that it gives."""

    name: str
    spec: FeatureSpec
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase

    def encode(self, questions: Sequence[str]) -> list[list[int]]:
        """Each question's token ids: rendered as the spec's transcript and within its length policy.

        Raises:
            BackboneError: a question is too short or, where the spec refuses, too long.
        """
        return [encode_question(question, self.spec, self.tokenizer) for question in questions]

    def hidden_states(self, prompts: Sequence[list[int]]) -> np.ndarray:
        """The feature of each of the encoded ``prompts``, float32 ``(len(prompts), hidden_size)``.

        Raises:
            BackboneError: the model gave a state that is not finite.
        """
        features = np.empty((len(prompts), self.spec.hidden_size), dtype=np.float32)
        progress = Progress(logger, f"features of {self.name}", sum(map(len, prompts)), "tokens")
        with core_pool() as pool:
            for row, state in enumerate(pool.map(self._hidden_state, prompts)):
                features[row] = state
                progress.advance(len(prompts[row]))
        if not np.isfinite(features).all():
            row = int(np.flatnonzero(~np.isfinite(features).all(axis=1))[0])
            raise BackboneError(
                f"the backbone {self.name} gave a state that is not finite for prompt {row + 1} of {len(prompts)}; "
                f"its weights are damaged, or {self.spec.dtype} does not hold its range"
            )
        return features

    def _hidden_state(self, ids: list[int]) -> np.ndarray:
        import torch

        seen = ids[: len(ids) + self.spec.position + 1]
        with torch.inference_mode():
            states = self.model(input_ids=torch.tensor([seen]), use_cache=False).last_hidden_state
            return states[0, -1].float().numpy()

    def extract(self, questions: Sequence[str]) -> np.ndarray:
        """The feature of each question, float32 ``(len(questions), hidden_size)``.

        Every question is encoded before any is computed, so one that has to be refused costs no time.

        Raises:
            BackboneError: a question is too short or, where the spec refuses, too long.
        """
        return self.hidden_states(self.encode(questions))


def load_backbone(spec: BackboneSpec, resolved: ResolvedWeights | None = None) -> Backbone:
    """Load the backbone that ``spec`` declares. ``resolved`` spares finding and hashing the weights once more.

    Raises:
        BackboneError: the weights are missing or unusable, or do not fit what the spec asks of them.
    """
    resolved = resolved or resolve_weights(spec.weights)
    model, tokenizer = load_model(resolved, spec.dtype)
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if context is not None and spec.max_tokens > context:
        raise BackboneError(
            f"the backbone {spec.name} asks for max_tokens {spec.max_tokens}, but {resolved.source} has a context of "
            f"{context} tokens; lower max_tokens"
        )
    if spec.transcript == "chat" and not getattr(tokenizer, "chat_template", None):
        raise BackboneError(f"{resolved.source} has no chat template; declare `transcript: raw` for {spec.name}")
    return Backbone(spec.name, feature_spec(spec, resolved), model, tokenizer)
