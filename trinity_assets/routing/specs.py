"""What a router declares about its training: the split, the trainers with their settings, the one it exports.

The registry of trainers is here, and names its functions as text, so that reading a catalog imports neither numpy nor
any trainer.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, SerializeAsAny, TypeAdapter, WithJsonSchema, field_validator, model_validator

from trinity_assets.spec import Spec

if TYPE_CHECKING:
    from trinity_assets.routing.objective import Objective
    from trinity_assets.routing.trainers.head import TrainedHead


TABLE_VERSION = 1
"""Raise it when equal solves and tasks would be joined or split differently."""

EVALUATION_VERSION = 2
"""Raise it when equal tables and heads would be judged differently."""


class SplitSpec(Spec):
    """Which tasks a head may learn from: ``test`` of them are held out, the rest is cut into ``folds``."""

    seed: int = 0
    test: float = Field(default=0.4, gt=0, lt=1)
    folds: int = Field(default=5, ge=2)


class GateSpec(Spec):
    """When a router publishes its head, and not the best single worker, always.

    Then, if the head's cross-fitted gain in accuracy is above zero at 95% confidence. With ``saving``, a share of the
    best single worker's cost, also if it saves at least that much and loses at most ``tolerance`` of accuracy, both at
    95% confidence.
    """

    saving: float | None = Field(default=None, gt=0, lt=1)
    tolerance: float = Field(default=0.01, ge=0, lt=1)


class RidgeSettings(Spec):
    """Closed-form ridge: the penalties to choose from, relative to the features' mean eigenvalue."""

    alphas: tuple[float, ...] = tuple(10.0**exponent for exponent in range(-6, 7))

    @field_validator("alphas")
    @classmethod
    def _positive(cls, alphas: tuple[float, ...]) -> tuple[float, ...]:
        if not alphas or min(alphas) <= 0:
            raise ValueError("alphas must be one or more positive numbers")
        return alphas


class SepCMAESSettings(Spec):
    """Separable CMA-ES. ``population`` is per generation; None means 4 + 3 ln(dimensions).

    ``mirrored`` draws half of each generation and mirrors it at the mean.

    ``sigma0`` has no effect on a reward that only looks at the argmax of a bias-free head, which has no scale; it
    matters for objectives that do.
    """

    generations: int = Field(default=60, ge=1)
    sigma0: float = Field(default=0.5, gt=0)
    population: int | None = Field(default=None, ge=4)
    mirrored: bool = False
    seed: int = 0


@dataclass(frozen=True)
class TrainerEntry:
    """A trainer as the registry knows it. Raise ``version`` when its code gives other heads from equal inputs."""

    settings: type[Spec]
    function: str
    version: int = 1

    def load(self) -> Trainer:
        """The trainer's function, imported now."""
        module, _, name = self.function.partition(":")
        return getattr(importlib.import_module(module), name)


TRAINERS: dict[str, TrainerEntry] = {
    "ridge": TrainerEntry(RidgeSettings, "trinity_assets.routing.trainers.ridge:train"),
    "sep_cma_es": TrainerEntry(SepCMAESSettings, "trinity_assets.routing.trainers.sep_cma_es:train"),
}


def _trainers_schema() -> dict[str, Any]:
    """The JSON Schema of ``trainers``: one optional entry per registered trainer."""
    settings = {name: trainer.settings.model_json_schema() for name, trainer in TRAINERS.items()}
    return {"type": "object", "properties": settings, "additionalProperties": False, "minProperties": 1}


OnIncomplete = Literal["wait", "drop_worker"]


class RouterTraining(Spec):
    """The part of a router's declaration that this package reads; the catalog adds pool, benchmarks and backbone.

    ``training_seeds`` is with how many seeds the evaluation trains each trainer that draws. ``on_incomplete`` says what
    a router does about a worker with an incomplete cell: wait for it, or be trained without it until the cell is
    complete.
    """

    trainers: Annotated[dict[str, SerializeAsAny[Spec]], WithJsonSchema(_trainers_schema())] = Field(min_length=1)
    export: str
    split: SplitSpec = SplitSpec()
    gate: GateSpec = GateSpec()
    training_seeds: int = Field(default=3, ge=1)
    on_incomplete: OnIncomplete = "wait"

    @field_validator("trainers", mode="before")
    @classmethod
    def _settings_of_each_trainer(cls, trainers: Any) -> Any:
        if not isinstance(trainers, Mapping):
            return trainers
        return {name: _settings(str(name), values) for name, values in trainers.items()}

    @model_validator(mode="after")
    def _exports_a_trainer(self) -> RouterTraining:
        if self.export not in self.trainers:
            raise ValueError(f"export is {self.export!r}, which is not among the trainers {list(self.trainers)}")
        return self

    def head_identity(self) -> dict[str, Any]:
        """What decides the trained heads, besides the table and the features."""
        return {
            name: {"settings": settings.model_dump(mode="json"), "version": TRAINERS[name].version}
            for name, settings in self.trainers.items()
        }


def _settings(name: str, values: Any) -> Spec:
    if name not in TRAINERS:
        raise ValueError(f"unknown trainer {name!r}; there are {', '.join(TRAINERS)}")
    if isinstance(values, Spec):
        values = values.model_dump()
    # Validated under its name, so that a fault's path says which trainer it is in.
    by_name: Any = GenericAlias(dict, (str, TRAINERS[name].settings))
    return TypeAdapter(by_name).validate_python({name: values or {}})[name]


if TYPE_CHECKING:
    from typing import Protocol

    class Trainer(Protocol):
        """Learns a head for ``objective``; equal inputs give equal weights."""

        def __call__(self, objective: Objective, settings: Any) -> TrainedHead: ...
