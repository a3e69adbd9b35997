"""Closed-form ridge: one regression per worker on its scores; the worker with the highest prediction is asked.

For worker w with scores y (n,) and features F (n, H), with means removed:
``W_w = (Fc' Fc + a I)^-1 Fc' yc`` and intercept ``b_w = mean(y) - W_w mean(F)`` (Hoerl and Kennard, Technometrics
12(1), 1970). A head has no bias, so b is folded into it through the direction v whose product with a feature is as
near to one as can be, ``v = argmin |F v - 1|^2``, giving ``W_w + b_w v``. One penalty for all workers is chosen by
cross-validation of what matters, the score of the worker that the folded head picks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

import numpy as np

from trinity_assets.errors import TrainingError
from trinity_assets.routing.objective import Objective, TableObjective, route, row_space
from trinity_assets.routing.specs import RidgeSettings
from trinity_assets.routing.trainers.head import TrainedHead, TrainingRecord

ONES_PENALTY = 1e-6
"""Penalty of the direction v, relative to the mean eigenvalue of F'F: it keeps v finite and hardly moves it."""

logger = logging.getLogger(__name__)


def train(objective: Objective, settings: RidgeSettings) -> TrainedHead:
    """Fit on the objective's table. A worker's unknown scores are left out of its own regression.

    Raises:
        TrainingError: the objective has no table, or a worker has no known score.
    """
    if not isinstance(objective, TableObjective):
        raise TrainingError(
            f"ridge learns from a table of scores, which {type(objective).__name__} does not have; use sep_cma_es"
        )
    started = time.perf_counter()
    features, basis = objective.features, None
    if len(features) < features.shape[1]:
        features, basis = row_space(features)
    features = features.astype(np.float64)
    alphas = sorted(settings.alphas)
    rewards = _cross_validate(features, objective.scores, objective.folds, alphas)
    alpha = max(zip(rewards, alphas, strict=True))[1]
    head = RidgePath(features, objective.scores).head(alpha)
    weights = (head if basis is None else head @ basis).astype(np.float32)
    logger.info("ridge: %d tasks, alpha %g, cross-validated reward %.4f", len(features), alpha, max(rewards))
    record = TrainingRecord(
        settings=settings.model_dump(mode="json"),
        chosen={"alpha": alpha},
        reward=float(objective(weights[None])[0]),
        history=tuple({"alpha": a, "reward": r} for a, r in zip(alphas, rewards, strict=True)),
        evaluations=len(alphas) * len(np.unique(objective.folds)),
    )
    return TrainedHead(weights, record, time.perf_counter() - started)


class RidgePath:
    """The ridge solutions of one table for every penalty, from one eigendecomposition.

    Workers whose scores are known on the same tasks share it, which is all of them in a complete table.

    Args:
        features: (n, H) float64.
        scores: (n, L), NaN where unknown.
    """

    def __init__(self, features: np.ndarray, scores: np.ndarray) -> None:
        known = ~np.isnan(scores)
        if not known.any(axis=0).all():
            raise TrainingError(
                f"workers {np.flatnonzero(~known.any(axis=0)).tolist()} (by pool position) have no known score "
                "to learn from; settle their answers or leave them out of the pool"
            )
        self._shape = scores.shape[1], features.shape[1]
        self._ones = _ones_direction(features)
        patterns, pattern_of = np.unique(known, axis=1, return_inverse=True)
        self._regressions = [
            (np.flatnonzero(pattern_of == p), *_decompose(features[mask], scores[mask][:, pattern_of == p]))
            for p, mask in enumerate(patterns.T)
        ]

    def head(self, alpha: float) -> np.ndarray:
        """The bias-free head (L, H) float64 for a penalty relative to the mean eigenvalue."""
        weights = np.empty(self._shape)
        for workers, values, vectors, targets, feature_mean, score_mean in self._regressions:
            penalty = alpha * values.mean() if values.mean() > 0 else 1.0
            slopes = ((vectors / (values + penalty)) @ targets).T
            intercepts = score_mean - slopes @ feature_mean
            weights[workers] = slopes + np.outer(intercepts, self._ones)
        return weights


def _decompose(features: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, ...]:
    """Eigenvalues (H,) and vectors (H, H) of Fc'Fc, the targets (H, k) in that basis, and both means."""
    feature_mean, score_mean = features.mean(axis=0), scores.mean(axis=0)
    centred = features - feature_mean
    values, vectors = np.linalg.eigh(centred.T @ centred)
    targets = vectors.T @ (centred.T @ (scores - score_mean))
    return np.maximum(values, 0.0), vectors, targets, feature_mean, score_mean


def _ones_direction(features: np.ndarray) -> np.ndarray:
    """v (H,) with ``features @ v`` as near to one as possible."""
    gram = features.T @ features
    ridge = ONES_PENALTY * np.trace(gram) / len(gram)
    return np.linalg.solve(gram + max(ridge, np.finfo(float).tiny) * np.eye(len(gram)), features.sum(axis=0))


def _cross_validate(
    features: np.ndarray, scores: np.ndarray, folds: np.ndarray, alphas: Sequence[float]
) -> list[float]:
    """Per penalty, the mean score of the workers picked for tasks outside the fold they were learnt from.

    With fewer than two folds nothing can be compared: every penalty gets 0, and the strongest will be taken.
    """
    present = np.unique(folds)
    if len(present) < 2:
        return [0.0] * len(alphas)
    known = ~np.isnan(scores)
    totals = np.zeros(len(alphas))
    for fold in present:
        held_out = folds == fold
        learn = ~held_out
        if not known[learn].any(axis=0).all():
            continue
        path = RidgePath(features[learn], scores[learn])
        for i, alpha in enumerate(alphas):
            picked = route(features[held_out], path.head(alpha), known[held_out])
            totals[i] += scores[held_out][np.arange(len(picked)), picked].sum()
    return (totals / len(features)).tolist()
