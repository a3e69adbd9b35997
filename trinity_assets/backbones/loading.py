"""Loading the base model and its tokenizer from resolved weights, quietly.

The base model has no LM head: the vocabulary projection is a fifth of a small model's work and no feature reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trinity_assets.backbones.quiet import quiet_loading
from trinity_assets.backbones.weights import ResolvedWeights
from trinity_assets.errors import BackboneError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def load_model(resolved: ResolvedWeights, dtype: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The base model in evaluation mode with its parameters in ``dtype``, and its tokenizer. Nothing is downloaded.

    Raises:
        BackboneError: transformers cannot make a model of these files.
    """
    from transformers import AutoModel, AutoTokenizer

    with quiet_loading():
        try:
            tokenizer = AutoTokenizer.from_pretrained(resolved.path, local_files_only=True)
            model = AutoModel.from_pretrained(resolved.path, dtype=dtype, local_files_only=True, use_safetensors=True)
        except (OSError, ValueError, KeyError, ImportError, NotImplementedError, RuntimeError) as error:
            raise BackboneError(
                f"transformers cannot load the weights {resolved.source} at {resolved.path}: {error!r}. "
                "Check that the files are whole and of a supported causal language model."
            ) from error
    return model.eval(), tokenizer
