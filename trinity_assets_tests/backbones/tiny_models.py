"""A random Llama of two layers with a byte tokenizer, as a model directory and as a GGUF file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trinity_assets.backbones.specs import BackboneSpec, Directory

CHAT_TEMPLATE = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}<assistant>"
HEADS, KEY_VALUE_HEADS = 4, 2
CONTEXT = 256


MERGE = ("~", "~")
"""The tokenizer's one merge (a GGUF tokenizer needs some): text without it has one token to a byte."""


def vocabulary() -> list[str]:
    """The 256 bytes as byte-level tokenizers spell them, and the one merge."""
    from tokenizers.pre_tokenizers import ByteLevel

    return [*sorted(ByteLevel.alphabet()), "".join(MERGE)]


def save_model_directory(directory: Path) -> Path:
    """Write the model to ``directory`` in the Hugging Face layout, the same weights every time."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(vocabulary())}, merges=[MERGE]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    fast.chat_template = CHAT_TEMPLATE
    fast.save_pretrained(directory)
    config = LlamaConfig(
        vocab_size=257,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        num_key_value_heads=KEY_VALUE_HEADS,
        max_position_embeddings=CONTEXT,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        LlamaForCausalLM(config).save_pretrained(directory)
    return directory


def tiny_spec(directory: Path, **changes: object) -> BackboneSpec:
    """A spec of the model in ``directory``."""
    fields: dict[str, object] = {"name": "tiny", "weights": Directory(path=str(directory)), "max_tokens": 64}
    return BackboneSpec.model_validate(fields | changes)


def rotated(weights: np.ndarray, heads: int) -> np.ndarray:
    """A query or key projection in llama.cpp's row order (``permute`` in its ``convert_hf_to_gguf.py``)."""
    halves = weights.reshape(heads, 2, weights.shape[0] // heads // 2, *weights.shape[1:])
    return halves.swapaxes(1, 2).reshape(weights.shape)


def save_gguf(directory: Path, path: Path, *, quantized: bool = False, **scalars: str) -> Path:
    """Write the model of ``directory`` as a GGUF file; ``quantized`` stores its matrices as Q8_0."""
    import gguf
    from safetensors.numpy import load_file

    weights = load_file(directory / "model.safetensors")
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(64)
    writer.add_block_count(2)
    writer.add_feed_forward_length(96)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_VALUE_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(16)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(257)
    for key, value in scalars.items():
        writer.add_string(key.replace("__", "."), value)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(vocabulary())
    writer.add_token_types([1] * 257)
    writer.add_token_merges([" ".join(MERGE)])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 2)
    for name, values in weights.items():
        target = names.get_name(name, try_suffixes=(".weight",))
        assert target is not None, name
        if ".q_proj." in name:
            values = rotated(values, HEADS)
        if ".k_proj." in name:
            values = rotated(values, KEY_VALUE_HEADS)
        values = np.ascontiguousarray(values)
        kind = gguf.GGMLQuantizationType.Q8_0 if quantized and values.ndim == 2 else None
        writer.add_tensor(target, gguf.quantize(values, kind) if kind else values, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
