"""The specs of this room: where a backbone's weights lie, and everything that a feature depends on.

Light: read while the definitions load, so pydantic only.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from trinity_assets.spec import NonEmpty, Revision, Sha256, Slug, Spec, digest

FEATURE_VERSION = 1
"""The version of the code that makes features: raise it when equal specs would give other features."""

Transcript = Literal["raw", "chat"]
"""How a question becomes a prompt: ``raw`` lines ``{role}: {content}``, or the tokenizer's own ``chat`` template."""

Dtype = Literal["float32", "bfloat16"]
"""What the forward pass computes in. Part of identity: bfloat16 moves a feature by 1.7% and flips about 1.4% of random
heads against float32."""

Overlong = Literal["keep_tail", "keep_head", "refuse"]
"""What happens to a prompt of more than ``max_tokens``: its last tokens stay, its first tokens stay, or an error."""


class PackageGGUF(Spec):
    """A GGUF file that an installed Python distribution carries; the distribution is never imported."""

    kind: Literal["package_gguf"] = "package_gguf"
    package: NonEmpty
    file: NonEmpty

    @property
    def source(self) -> str:
        """The weights as one readable word."""
        return f"{self.package}/{self.file}"


class Directory(Spec):
    """A local directory in the Hugging Face layout: ``config.json``, safetensors, tokenizer files."""

    kind: Literal["directory"] = "directory"
    path: NonEmpty

    @property
    def source(self) -> str:
        """The weights as one readable word."""
        return self.path


class Hub(Spec):
    """A model repository on the Hugging Face hub at one revision: a commit or a tag, not a moving branch."""

    kind: Literal["huggingface"] = "huggingface"
    repo: NonEmpty
    revision: Revision

    @property
    def source(self) -> str:
        """The weights as one readable word."""
        return f"{self.repo}@{self.revision}"


WeightsSpec = Annotated[PackageGGUF | Directory | Hub, Field(discriminator="kind")]


class BackboneSpec(Spec):
    """A declared backbone.

    ``position`` counts from the prompt's end: -2, the default, is the last but one token. The state there never depends
    on the last token, which is why engines with last-token pooling can compute it from ``ids[:-1]``.
    """

    name: Slug
    weights: WeightsSpec
    transcript: Transcript = "raw"
    position: int = Field(default=-2, le=-1)
    dtype: Dtype = "float32"
    max_tokens: int = Field(default=2048, ge=2, validate_default=True)
    overlong: Overlong = "keep_tail"

    @field_validator("max_tokens")
    @classmethod
    def _position_lies_within(cls, max_tokens: int, info: ValidationInfo) -> int:
        position = info.data.get("position", -1)
        if max_tokens < -position:
            raise ValueError(f"a prompt of {max_tokens} tokens has none at position {position}; at least {-position}")
        return max_tokens

    def identity(self) -> dict[str, Any]:
        """What decides the features and is known before the weights are read: all but the name, and the code."""
        return self.model_dump(mode="json", exclude={"name"}) | {"feature_version": FEATURE_VERSION}


class WeightsIdentity(Spec):
    """Resolved weights: the bytes decide; ``source`` only tells a reader where they came from."""

    source: str
    sha256: Sha256


class FeatureSpec(Spec):
    """Everything a feature depends on. A checkpoint carries it, and a coordinator with another one is refused.

    ``digest`` and ``differences`` look at the weights' bytes and not at their source, so that a checkpoint trained on a
    hub snapshot serves from a local copy of it.
    """

    weights: WeightsIdentity
    hidden_size: int = Field(gt=0)
    transcript: Transcript
    position: int
    dtype: Dtype
    max_tokens: int
    overlong: Overlong
    runtime: Literal["transformers"] = "transformers"
    version: int = FEATURE_VERSION

    def _facts(self) -> dict[str, Any]:
        facts = self.model_dump(mode="json", exclude={"weights"})
        return {"weights sha256": self.weights.sha256, **facts}

    @property
    def digest(self) -> str:
        """The sha256 that features made under equal specs share."""
        return digest(self._facts())

    def differences(self, other: FeatureSpec) -> list[str]:
        """The fields that differ, each as ``dtype: float32 here, bfloat16 there``; empty for equal features."""
        here, there = self._facts(), other._facts()
        return [f"{field}: {here[field]} here, {there[field]} there" for field in here if here[field] != there[field]]
