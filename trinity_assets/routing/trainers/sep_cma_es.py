"""Separable CMA-ES: an evolution strategy with a diagonal covariance, which needs nothing but rewards.

Ros and Hansen, "A Simple Modification in CMA-ES Achieving Linear Time and Space Complexity" (PPSN X, 2008), in the
implementation of pycma. The head returned is the mean of a distribution, the last or the best validated one: the best
candidate ever seen owes its reward partly to luck on the tasks of training, the mean much less.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

import numpy as np

from trinity_assets.errors import TrainingError
from trinity_assets.progress import Progress
from trinity_assets.routing.objective import Objective, TableObjective, mirrored_rewards
from trinity_assets.routing.specs import TRAINERS, SepCMAESSettings
from trinity_assets.routing.trainers.head import FROM_ZERO, Start, TrainedHead, TrainingRecord, require_scores
from trinity_assets.routing.trainers.journal import Journal, JournalDivergedError
from trinity_assets.spec import digest

if TYPE_CHECKING:
    from cma import CMAEvolutionStrategy

NAME = "sep_cma_es"

logger = logging.getLogger(__name__)


def train(objective: Objective, settings: SepCMAESSettings, start: Start = FROM_ZERO) -> TrainedHead:
    """Search from the zero head or ``start.initial``, in the objective's reduced space where it has one.

    Where every head has the same reward there is nothing to learn, and the head that was started from is returned.

    Patience takes a fold that the search has not learnt from. An objective of less than two folds, or of which no fold
    can be spared, has none. Nor is there one for a search from ``start.initial``, which comes from all tasks of train:
    on any of them it would look better than what is found without them. These are searched whole and to the last
    generation, and the record's ``unused`` names the patience.

    Raises:
        TrainingError: nothing is known of a worker, or the initial head has another shape than the objective's.
        ArtifactError: an interrupted training could not be kept.
    """
    began = time.perf_counter()
    require_scores(objective)
    validated = settings.patience is not None and start.initial is None
    searched, validation = (objective.validation() if validated else None) or (objective, None)
    unused = {"unused": ["patience"]} if settings.patience is not None and validation is None else {}
    if unused and not start.quiet:
        logger.info("%s: patience is unused: no fold can be spared that the start has not learnt from", NAME)
    space = _Space.of(searched, start.initial)
    journal = Journal(NAME, _identity(objective, settings, start), start)
    try:
        outcome = _search(space, validation, settings, journal, start.quiet)
    except JournalDivergedError as difference:
        logger.warning("%s: the interrupted training drew other numbers (%s) and is begun anew", NAME, difference)
        journal.begin_anew()
        outcome = _search(space, validation, settings, journal, start.quiet)
    weights = space.head(outcome.mean).astype(np.float32)
    record = TrainingRecord(
        settings=settings.model_dump(mode="json"),
        chosen={"generations": len(outcome.history), "stopped": outcome.stopped} | outcome.validated | unused,
        reward=float(objective(weights[None])[0]),
        history=tuple(outcome.history),
        evaluations=outcome.evaluations,
    )
    journal.remove()
    return TrainedHead(weights, record, time.perf_counter() - began)


def sweep(
    objective: TableObjective,
    settings: SepCMAESSettings,
    cost_weights: Sequence[float],
    start: Start = FROM_ZERO,
) -> dict[float, TrainedHead]:
    """A search per cost weight, each of its own objective.

    Raises:
        TrainingError: as ``train``, or nothing is known of what a worker costs.
    """
    trained = {weight: train(objective.at(weight), settings, start) for weight in cost_weights}
    return {weight: head.weighted(weight) for weight, head in trained.items()}


@dataclass(frozen=True)
class _Space:
    """Where the search takes place: ``objective`` over heads (L, r) that ``basis`` (r, H) widens, if there is one.

    ``origin`` (L, r) is the head that is started from, its elements being 1 in the root mean square, and ``beyond`` the
    part of it (L, H) that no task of the objective can see and that is therefore kept.
    """

    objective: Objective
    basis: np.ndarray | None
    origin: np.ndarray
    beyond: np.ndarray | None = None

    @classmethod
    def of(cls, searched: Objective, initial: np.ndarray | None) -> _Space:
        objective, basis = searched.reduced()
        if initial is None:
            return cls(objective, basis, np.zeros(objective.shape))
        if initial.shape != searched.shape or not np.isfinite(initial).all():
            raise TrainingError(
                f"the initial head has shape {initial.shape} or values that are not finite; this pool and these "
                f"features need finite numbers of shape {searched.shape}; fit it to the pool (pool_changes)"
            )
        initial = initial.astype(np.float64)
        origin = initial if basis is None else initial @ basis.T
        size = float(np.sqrt(np.mean(origin**2))) or 1.0
        beyond = None if basis is None else (initial - origin @ basis) / size
        return cls(objective, basis, origin / size, beyond)

    def head(self, mean: np.ndarray) -> np.ndarray:
        """The head (L, H) of a point of the search (L * r,)."""
        narrow = mean.reshape(self.origin.shape)
        wide = narrow if self.basis is None else narrow @ self.basis
        return wide if self.beyond is None else wide + self.beyond


@dataclass(frozen=True)
class _Outcome:
    """How a search ended: the point (L * r,) it settled on, why, and what it took."""

    mean: np.ndarray
    stopped: list[str]
    history: list[dict[str, float]]
    evaluations: int
    validated: dict[str, float]


def _search(
    space: _Space, validation: Objective | None, settings: SepCMAESSettings, journal: Journal, quiet: bool
) -> _Outcome:
    strategy = _strategy(space.origin.ravel(), settings)
    progress = Progress(logger, NAME, settings.generations, "generations")
    history: list[dict[str, float]] = []
    stopped: list[str] = []
    flat = True
    best: tuple[float, int, np.ndarray] | None = None
    for generation in range(1, settings.generations + 1):
        candidates = strategy.ask()
        recorded = journal.recorded()
        if recorded and len(recorded.rewards) != len(candidates):
            raise JournalDivergedError(f"generation {generation}")
        rewards = np.array(recorded.rewards) if recorded else _rewards(space, strategy, candidates, settings)
        strategy.tell(candidates, (-rewards).tolist())
        validated = None
        if validation is not None:
            head = space.head(strategy.mean).astype(np.float32)
            validated = recorded.validation if recorded else float(validation(head[None])[0])
        journal.tell(rewards, validated, strategy.mean)
        history.append(_row(generation, rewards, strategy, validated))
        flat = flat and rewards.max() == rewards.min()
        if validated is not None and (best is None or validated > best[0]):
            best = validated, generation, np.array(strategy.mean)
        if not quiet:
            progress.advance()
        stopped = sorted(strategy.stop() or ())
        if best and settings.patience and generation - best[1] >= settings.patience:
            stopped.append("patience")
        if stopped:
            if not quiet:
                logger.info("%s: stopped after generation %d: %s", NAME, generation, ", ".join(stopped))
            break
    mean = space.origin.ravel() if flat else best[2] if best else np.asarray(strategy.mean)
    chosen = {"generation": best[1], "validation": best[0]} if best else {}
    return _Outcome(mean, stopped, history, len(history) * strategy.popsize, chosen)


def _rewards(
    space: _Space, strategy: CMAEvolutionStrategy, candidates: Sequence[np.ndarray], settings: SepCMAESSettings
) -> np.ndarray:
    """The reward of each candidate, in their order."""
    points, mean, shape = np.asarray(candidates), np.asarray(strategy.mean), space.origin.shape
    pairs = _mirrored_pairs(points, mean, strategy.number_of_injections) if settings.mirrored else None
    if pairs is None:
        return space.objective(points.astype(np.float32).reshape(-1, *shape))
    first, second = pairs
    steps = (points[first] - mean).astype(np.float32).reshape(-1, *shape)
    ahead_and_back = mirrored_rewards(space.objective, mean.astype(np.float32).reshape(shape), steps)
    rewards = np.empty(len(points))
    rewards[first] = ahead_and_back[: len(first)]
    rewards[second] = ahead_and_back[len(first) :][: len(second)]
    return rewards


def _mirrored_pairs(points: np.ndarray, mean: np.ndarray, injected: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Which points are on opposite sides of the mean; of an odd population, the last of the first has no mirror.

    pycma puts the pair by which it adapts the step size before those drawn. Should another release order them in
    another way, the outermost pairs show it, and there are no pairs to make use of.
    """
    places = np.arange(len(points))
    drawn = places[injected:]
    half = _pairs(len(drawn))
    first = np.concatenate([places[:injected:2], drawn[:half]])
    second = np.concatenate([places[1:injected:2], drawn[half:]])
    outermost = [0, len(second) - 1]
    between = (points[first[outermost]] + points[second[outermost]]) / 2
    # What np.allclose says, which takes a twentieth of a small generation to say it.
    return (first, second) if (np.abs(between - mean) <= 1e-9 + 1e-6 * np.abs(mean)).all() else None


def _row(
    generation: int, rewards: np.ndarray, strategy: CMAEvolutionStrategy, validated: float | None
) -> dict[str, float]:
    row = {
        "generation": generation,
        "best": float(rewards.max()),
        "mean": float(rewards.mean()),
        "sigma": float(strategy.sigma),
    }
    return row if validated is None else row | {"validation": validated}


def _identity(objective: Objective, settings: SepCMAESSettings, start: Start) -> str:
    """What decides the head, libraries included: an interrupted training is gone on from only by an equal one."""
    return digest(
        {
            "version": TRAINERS[NAME].version,
            "settings": settings.model_dump(mode="json"),
            "objective": objective.digest() if start.directory else None,
            "initial": None if start.initial is None else start.initial.astype(np.float64).tolist(),
            "libraries": {name: metadata.version(name) for name in ("cma", "numpy")},
        }
    )


def _pairs(population: int) -> int:
    """How many draws a mirrored generation takes; of an odd one, the last draw has no mirror."""
    return (population + 1) // 2


def _strategy(origin: np.ndarray, settings: SepCMAESSettings) -> CMAEvolutionStrategy:
    """pycma, silent, without files, and drawing from its own generator instead of numpy's global one.

    Mirroring is done in the draws: pycma's own option rounds its number of mirrors by numpy's global generator. The
    draws come first, then their mirrors.
    """
    import cma

    generator = np.random.default_rng(settings.seed)

    def draw(number: int, dimensions: int) -> np.ndarray:
        if not settings.mirrored:
            return generator.standard_normal((number, dimensions))
        half = _pairs(number)
        drawn = np.empty((number, dimensions))
        drawn[:half] = generator.standard_normal((half, dimensions))
        np.negative(drawn[: number - half], out=drawn[half:])
        return drawn

    options = {
        "CMA_diagonal": True,
        "randn": draw,
        "seed": np.nan,
        "verbose": -10,
    }
    if settings.population is not None:
        options["popsize"] = settings.population
    return cma.CMAEvolutionStrategy(origin, settings.sigma0, options)
