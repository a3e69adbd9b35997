"""What a router declares about its training: the split, the trainers with their settings, the one it exports.

The registry of trainers is here, and names its functions as text, so that reading a catalog imports neither numpy nor
any trainer.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, SerializeAsAny, TypeAdapter, WithJsonSchema, field_validator, model_validator

from trinity_assets.spec import Spec

if TYPE_CHECKING:
    from trinity_assets.routing.objective import Objective, TableObjective
    from trinity_assets.routing.trainers.head import Start, TrainedHead


TABLE_VERSION = 1
"""Raise it when equal solves and tasks would be joined or split differently."""

EVALUATION_VERSION = 5
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
        if not alphas or not all(0 < alpha < math.inf for alpha in alphas):
            raise ValueError("alphas must be one or more positive numbers")
        return alphas


class SepCMAESSettings(Spec):
    """Separable CMA-ES. ``population`` is per generation; None means 4 + 3 ln(dimensions).

    ``mirrored`` draws half of each generation and mirrors it at the mean.

    ``patience`` keeps one fold from the search, to validate the distribution's mean on after each generation: the best
    validated mean is the head, and this many generations without a better one end the search. None searches on all
    tasks to the last generation, as does a search from a given head, which has learnt from every fold.

    ``sigma0`` has no effect on a reward that only looks at the argmax of a bias-free head, which has no scale, unless
    the search starts from a given head, whose elements it is relative to.
    """

    generations: int = Field(default=60, ge=1)
    sigma0: float = Field(default=0.5, gt=0, allow_inf_nan=False)
    population: int | None = Field(default=None, ge=4)
    mirrored: bool = True
    patience: int | None = Field(default=None, ge=1)
    seed: int = 0


class ConstantSettings(Spec):
    """The best single worker, always. There is nothing to set."""


@dataclass(frozen=True)
class TrainerEntry:
    """A trainer as the registry knows it. Raise ``version`` when its code gives other heads from equal inputs.

    ``searches`` says that it starts somewhere, and so may start from a head trained before.
    """

    settings: type[Spec]
    module: str
    version: int = 1
    searches: bool = False

    def load(self) -> Trainer:
        """The trainer's function ``train``, imported now."""
        return importlib.import_module(self.module).train

    def load_sweep(self) -> Sweep:
        """The trainer's function ``sweep``, imported now."""
        return importlib.import_module(self.module).sweep


TRAINERS: dict[str, TrainerEntry] = {
    "ridge": TrainerEntry(RidgeSettings, "trinity_assets.routing.trainers.ridge", version=2),
    "sep_cma_es": TrainerEntry(
        SepCMAESSettings, "trinity_assets.routing.trainers.sep_cma_es", version=3, searches=True
    ),
    "constant": TrainerEntry(ConstantSettings, "trinity_assets.routing.trainers.constant", version=2),
}


def _trainers_schema() -> dict[str, Any]:
    """The JSON Schema of ``trainers``: one optional entry per registered trainer."""
    settings = {name: trainer.settings.model_json_schema() for name, trainer in TRAINERS.items()}
    return {"type": "object", "properties": settings, "additionalProperties": False, "minProperties": 1}


OnIncomplete = Literal["wait", "drop_worker"]


class RouterTraining(Spec):
    """The part of a router's declaration that this package reads; the catalog adds pool, benchmarks and backbone.

    ``cost_weights`` ask every trainer for one more head each, which weighs a worker's cost against its score: the score
    that 1 USD per 1000 answers is worth. Such a head is named ``<trainer>@<weight>``, and can be exported.

    ``training_seeds`` is with how many seeds the evaluation trains each trainer that draws. ``on_incomplete`` says what
    a router does about a worker with an incomplete cell: wait for it, or be trained without it until the cell is
    complete.

    ``warm_start`` starts searches from the head that the router had before, fitted to the pool as it is now. Heads then
    depend on what was built before, which is why it has to be asked for.
    """

    trainers: Annotated[dict[str, SerializeAsAny[Spec]], WithJsonSchema(_trainers_schema())] = Field(min_length=1)
    export: str
    cost_weights: tuple[float, ...] = ()
    split: SplitSpec = SplitSpec()
    gate: GateSpec = GateSpec()
    training_seeds: int = Field(default=3, ge=1)
    on_incomplete: OnIncomplete = "wait"
    warm_start: bool = False

    @field_validator("trainers", mode="before")
    @classmethod
    def _settings_of_each_trainer(cls, trainers: Any) -> Any:
        if not isinstance(trainers, Mapping):
            return trainers
        return {name: _settings(str(name), values) for name, values in trainers.items()}

    @field_validator("cost_weights")
    @classmethod
    def _rising_and_positive(cls, weights: tuple[float, ...]) -> tuple[float, ...]:
        if any(not (0 < weight < math.inf) for weight in weights) or len(set(weights)) < len(weights):
            raise ValueError("cost_weights must be different positive numbers; a head without one is trained anyway")
        return tuple(sorted(weights))

    @model_validator(mode="after")
    def _exports_a_trainer(self) -> RouterTraining:
        if self.export not in self.heads:
            weighted = f" or their heads {list(self.heads[len(self.trainers) :])}" if self.cost_weights else ""
            raise ValueError(
                f"export is {self.export!r}, which is not among the trainers {list(self.trainers)}{weighted}"
            )
        if self.warm_start and not self.searching:
            searches = ", ".join(name for name, entry in TRAINERS.items() if entry.searches)
            raise ValueError(
                f"warm_start is of trainers that search ({searches}), and there is none among {list(self.trainers)}"
            )
        return self

    @property
    def searching(self) -> tuple[str, ...]:
        """The trainers that start somewhere."""
        return tuple(name for name in self.trainers if TRAINERS[name].searches)

    @property
    def heads(self) -> tuple[str, ...]:
        """The names of the heads that are trained: each trainer's own, then those at each cost weight."""
        weighted = [weighted_head(name, weight) for name in self.trainers for weight in self.cost_weights]
        return (*self.trainers, *weighted)

    @property
    def judged(self) -> tuple[str, ...]:
        """The heads that the evaluation trains again and again: each trainer's own and the exported one.

        Those at cost weights are many and differ little.
        """
        return tuple(dict.fromkeys((*self.trainers, self.export)))

    def head_identity(self) -> dict[str, Any]:
        """What decides the trained heads, besides the table, the features and, with cost weights, the prices."""
        identity: dict[str, Any] = {
            name: {"settings": settings.model_dump(mode="json"), "version": TRAINERS[name].version}
            for name, settings in self.trainers.items()
        }
        if self.cost_weights:  # later fields, which change no version of a head that has no use for them
            identity["cost_weights"] = list(self.cost_weights)
        if self.warm_start:
            identity["warm_start"] = True
        return identity


def weighted_head(trainer: str, cost_weight: float) -> str:
    """The name of a trainer's head at a cost weight, with all its digits: the weight is read back from it."""
    return f"{trainer}@{repr(cost_weight).removesuffix('.0')}"


def trainer_of(head: str) -> str:
    """The trainer of the head of that name, which it may have trained at a cost weight."""
    return head.partition("@")[0]


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
        """Learns a head for ``objective``; equal inputs give equal weights, wherever a killed training goes on from."""

        def __call__(self, objective: Objective, settings: Any, start: Start = ...) -> TrainedHead: ...

    class Sweep(Protocol):
        """Learns a head for ``objective`` at each cost weight."""

        def __call__(
            self, objective: TableObjective, settings: Any, cost_weights: Sequence[float], start: Start = ...
        ) -> dict[float, TrainedHead]: ...
