"""Separable CMA-ES: an evolution strategy with a diagonal covariance, which needs nothing but rewards.

Ros and Hansen, "A Simple Modification in CMA-ES Achieving Linear Time and Space Complexity" (PPSN X, 2008), in the
implementation of pycma. The head returned is the mean of the final distribution: the best candidate ever seen owes its
reward partly to luck on the tasks of training, the mean much less.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import numpy as np

from trinity_assets.progress import Progress
from trinity_assets.routing.objective import Objective
from trinity_assets.routing.specs import SepCMAESSettings
from trinity_assets.routing.trainers.head import TrainedHead, TrainingRecord

if TYPE_CHECKING:
    from cma import CMAEvolutionStrategy

logger = logging.getLogger(__name__)


def train(objective: Objective, settings: SepCMAESSettings) -> TrainedHead:
    """Search from the zero head, in the objective's reduced space where it has one.

    Where every head has the same reward there is nothing to learn, and the zero head is returned.
    """
    started = time.perf_counter()
    space, basis = objective.reduced()
    workers, width = space.shape
    strategy = _strategy(workers * width, settings)
    progress = Progress(logger, "sep_cma_es", settings.generations, "generations")
    history: list[dict[str, float]] = []
    stopped: list[str] = []
    flat = True
    for generation in range(1, settings.generations + 1):
        candidates = strategy.ask()
        rewards = space(np.asarray(candidates, dtype=np.float32).reshape(-1, workers, width))
        strategy.tell(candidates, (-rewards).tolist())
        history.append(
            {
                "generation": generation,
                "best": float(rewards.max()),
                "mean": float(rewards.mean()),
                "sigma": float(strategy.sigma),
            }
        )
        flat = flat and rewards.max() == rewards.min()
        progress.advance()
        stopped = sorted(strategy.stop() or ())
        if stopped:
            logger.info("sep_cma_es: stopped after generation %d: %s", generation, ", ".join(stopped))
            break
    head = np.zeros((workers, width)) if flat else np.asarray(strategy.mean).reshape(workers, width)
    weights = (head if basis is None else head @ basis).astype(np.float32)
    record = TrainingRecord(
        settings=settings.model_dump(mode="json"),
        chosen={"generations": len(history), "stopped": stopped},
        reward=float(objective(weights[None])[0]),
        history=tuple(history),
        evaluations=len(history) * strategy.popsize,
    )
    return TrainedHead(weights, record, time.perf_counter() - started)


def _strategy(dimensions: int, settings: SepCMAESSettings) -> CMAEvolutionStrategy:
    """pycma, silent, without files, and drawing from its own generator instead of numpy's global one.

    Mirroring is done in the draws: pycma's own option rounds its number of mirrors by numpy's global generator.
    """
    import cma

    generator = np.random.default_rng(settings.seed)

    def draw(number: int, dimensions: int) -> np.ndarray:
        if not settings.mirrored:
            return generator.standard_normal((number, dimensions))
        half = generator.standard_normal(((number + 1) // 2, dimensions))
        return np.concatenate([half, -half])[:number]

    options = {
        "CMA_diagonal": True,
        "randn": draw,
        "seed": np.nan,
        "verbose": -10,
    }
    if settings.population is not None:
        options["popsize"] = settings.population
    return cma.CMAEvolutionStrategy(np.zeros(dimensions), settings.sigma0, options)
