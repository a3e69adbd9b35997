"""From a question to the token ids that the backbone reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

from trinity_assets.backbones.specs import FeatureSpec, Overlong, Transcript
from trinity_assets.errors import BackboneError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SHOWN_CHARACTERS = 60


class Message(TypedDict):
    """One turn of a transcript."""

    role: str
    content: str


def raw_transcript(messages: Sequence[Message]) -> str:
    """Lines ``{role}: {content}`` joined by newlines."""
    return "\n".join(f"{message['role']}: {message['content']}" for message in messages)


def encode_question(question: str, spec: FeatureSpec, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The token ids of a transcript with ``question`` as its one user message, within ``spec.max_tokens``.

    Raises:
        BackboneError: too short to have a token at ``spec.position``, or too long where the spec says to refuse.
    """
    text = _render([Message(role="user", content=question)], spec.transcript, tokenizer)
    # A chat template writes its special tokens itself; raw text gets those that the tokenizer adds by default.
    ids = tokenizer(text, add_special_tokens=spec.transcript == "raw", verbose=False).input_ids
    if len(ids) < -spec.position:
        raise BackboneError(
            f"the prompt of {_shown(question)} has {len(ids)} token(s); the feature is the state at token "
            f"{spec.position}, so {-spec.position} are needed. Remove or lengthen this question."
        )
    if len(ids) > spec.max_tokens and spec.overlong == "refuse":
        raise BackboneError(
            f"the prompt of {_shown(question)} has {len(ids)} tokens, more than max_tokens {spec.max_tokens}, and "
            "overlong is `refuse`. Raise max_tokens, choose `keep_tail` or `keep_head`, or remove this question."
        )
    return clip(ids, spec.max_tokens, spec.overlong)


def clip(ids: list[int], max_tokens: int, overlong: Overlong) -> list[int]:
    """At most ``max_tokens`` of ``ids``: the first of them for ``keep_head``, else the last."""
    if len(ids) <= max_tokens:
        return ids
    return ids[:max_tokens] if overlong == "keep_head" else ids[-max_tokens:]


def _render(messages: list[Message], transcript: Transcript, tokenizer: PreTrainedTokenizerBase) -> str:
    if transcript == "raw":
        return raw_transcript(messages)
    turns = [{"role": message["role"], "content": message["content"]} for message in messages]
    rendered = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True, enable_thinking=False)
    return str(rendered)


def _shown(question: str) -> str:
    shortened = question if len(question) <= SHOWN_CHARACTERS else question[: SHOWN_CHARACTERS - 1] + "…"
    return repr(shortened)
