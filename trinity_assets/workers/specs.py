"""How workers and their providers are declared. Light: read while definitions load."""

from __future__ import annotations

import importlib.metadata
import os
from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, model_validator

from trinity_assets.spec import NonEmpty, Slug, Spec, digest

PLACEHOLDER = "{prompt}"
MAX_STOP_SEQUENCES = 4
"""What the OpenAI protocol accepts."""

PARALLEL_STEPS = 4
"""Steps that ask one remote provider at a time; each is a process of some 300 MB that waits for the network."""

MINUTE_S = 60.0
"""For what limits per minute count, in seconds."""

Messages = list[dict[str, str]]


class Shot(Spec):
    """One worked example in front of the question."""

    user: str
    assistant: str


class PromptStyle(Spec):
    """How a benchmark's rendered prompt becomes a conversation: system text, examples, and a frame around it.

    ``user`` holds ``{prompt}``, which is replaced literally; every other brace stays as it is.
    """

    system: str | None = None
    shots: tuple[Shot, ...] = ()
    user: str = PLACEHOLDER

    @model_validator(mode="after")
    def _asks_the_prompt(self) -> Self:
        if PLACEHOLDER not in self.user:
            raise ValueError(f"user must contain {PLACEHOLDER}, or every task would be asked the same question")
        return self

    def messages(self, prompt: str) -> Messages:
        """The conversation that asks ``prompt``: system, examples, question."""
        conversation: Messages = []
        if self.system is not None:
            conversation.append({"role": "system", "content": self.system})
        for shot in self.shots:
            conversation.append({"role": "user", "content": shot.user})
            conversation.append({"role": "assistant", "content": shot.assistant})
        conversation.append({"role": "user", "content": self.user.replace(PLACEHOLDER, prompt)})
        return conversation


class Sampling(Spec):
    """The parameters of generation. ``max_tokens`` counts generated tokens, reasoning included."""

    temperature: float = Field(default=0.0, ge=0)
    max_tokens: int = Field(gt=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    stop: tuple[str, ...] = Field(default=(), max_length=MAX_STOP_SEQUENCES)
    seed: int | None = None
    extra: dict[str, JsonValue] = Field(
        default={}, description="Parameters of this provider, sent in the body as they are: reasoning switches, top_k."
    )

    def parameters(self, sample: int = 0) -> dict[str, Any]:
        """What is sent for one sample, and nothing that is not.

        Sample k has the seed ``seed + k``: the same one would give the same text again. A field that is added later
        with an unset default changes no digest.
        """
        sent: dict[str, Any] = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        optional = {
            "top_p": self.top_p,
            "stop": list(self.stop) or None,
            "seed": None if self.seed is None else self.seed + sample,
            "extra": self.extra or None,
        }
        return sent | {name: value for name, value in optional.items() if value is not None}


class Price(Spec):
    """USD per million tokens."""

    input_per_mtok: float = Field(ge=0, allow_inf_nan=False)
    output_per_mtok: float = Field(ge=0, allow_inf_nan=False)

    @property
    def version(self) -> str:
        """What the ledger calls this price: 12 hex digits of its digest."""
        return digest(self)[:12]


class Limits(Spec):
    """What a provider lets all processes together do: open requests, requests and tokens per minute."""

    concurrency: int = Field(default=8, gt=0)
    rpm: int | None = Field(default=None, gt=0)
    tpm: int | None = Field(default=None, gt=0)


class WorkerLimits(Spec):
    """What one worker may do, within its provider's limits; None: as much as those let it."""

    concurrency: int | None = Field(default=None, gt=0)
    rpm: int | None = Field(default=None, gt=0)
    tpm: int | None = Field(default=None, gt=0)

    def within(self, limits: Limits) -> Limits:
        """The tighter of the two, limit by limit."""
        return Limits(
            concurrency=min(limits.concurrency, self.concurrency or limits.concurrency),
            rpm=_tighter(limits.rpm, self.rpm),
            tpm=_tighter(limits.tpm, self.tpm),
        )


def _tighter(one: int | None, other: int | None) -> int | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)


class EmbeddedProvider(Spec):
    """A GGUF file inside an installed package, served in process by the step that asks.

    ``slots`` requests are answered at a time, each with a ``context`` of that many tokens.

    ``threads`` is 1 because llama.cpp's threads wait for each other by spinning, many times per token: where another
    program takes turns on one of their cores, two threads on two cores were measured 5 to 10 times slower than one.
    Steps side by side use the cores instead (``parallel_steps``).
    """

    kind: Literal["embedded"] = "embedded"
    name: Slug
    package: NonEmpty = Field(description="The distribution that ships the file, as pip names it.")
    file: NonEmpty
    slots: int = Field(default=4, gt=0)
    threads: int = Field(default=1, gt=0)
    context: int = Field(default=2048, gt=0)

    @property
    def parallel_steps(self) -> int:
        """How many steps may serve this model at once on this machine: as many as together use its cores."""
        return max(1, (os.cpu_count() or 1) // self.threads)

    def identity(self) -> dict[str, str | int]:
        """What identifies the answers: the file, whose bytes a version fixes, and the context, which some exceed.

        The version is "missing" where the package is not installed: definitions load there, answers cannot be made.
        """
        return {
            "name": self.name,
            "package": self.package,
            "version": _installed_version(self.package),
            "file": self.file,
            "context": self.context,
        }


class LiteLLMProvider(Spec):
    """An endpoint that litellm can reach.

    ``api_base`` None: the route's own URL. ``key_env`` None: no key when ``api_base`` is given, else the variable that
    the route reads by convention. ``timeout_s`` bounds one call as a whole.
    """

    kind: Literal["litellm"] = "litellm"
    name: Slug
    route: str = Field(description='A litellm route: "openai", "nvidia_nim", "openrouter", "anthropic", ...')
    api_base: str | None = None
    key_env: str | None = None
    limits: Limits = Limits()
    timeout_s: float = Field(default=45.0, gt=0, allow_inf_nan=False)

    @property
    def parallel_steps(self) -> int:
        """How many steps may ask this provider at once; its limits hold for all of them together (``permits``)."""
        return PARALLEL_STEPS

    def identity(self) -> dict[str, str | int]:
        """What identifies the answers: the name. The URL, the key and the limits may change under it."""
        return {"name": self.name}


def _installed_version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


ProviderSpec = Annotated[EmbeddedProvider | LiteLLMProvider, Field(discriminator="kind")]


class WorkerSpec(Spec):
    """One way to ask one language model.

    ``prompt_name`` is what the catalog calls ``prompt``; ``samples`` is how often each task is asked. ``timeout_s``
    bounds one call as a whole (None: the provider's), and ``budget_usd`` what this worker may cost in one epoch,
    whichever runs ask; neither is part of its identity, and nor are its ``limits``.
    """

    name: Slug
    provider: ProviderSpec
    model: str
    prompt_name: str
    prompt: PromptStyle
    sampling: Sampling
    price: Price | None = None
    samples: int = Field(default=1, gt=0)
    timeout_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    limits: WorkerLimits = WorkerLimits()
    budget_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    def answer_identity(self) -> dict[str, Any]:
        """Everything an answer depends on; names of styles, prices, limits, URLs and keys are not in it."""
        return {
            "provider": self.provider.identity(),
            "model": self.model,
            "prompt": self.prompt.model_dump(mode="json"),
            "sampling": self.sampling.parameters(),
            "samples": self.samples,
        }

    @property
    def digest(self) -> str:
        """The sha256 of :meth:`answer_identity`."""
        return digest(self.answer_identity())
