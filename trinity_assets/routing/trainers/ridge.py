"""Closed-form ridge: one regression per worker on its scores; the worker with the highest prediction is asked.

For worker w with scores y (n,) and features F (n, H), with means removed:
``W_w = (Fc' Fc + a I)^-1 Fc' yc`` and intercept ``b_w = mean(y) - W_w mean(F)`` (Hoerl and Kennard, Technometrics
12(1), 1970). A head has no bias, so b is folded into it through the direction v whose product with a feature is as
near to one as can be, ``v = argmin |F v - 1|^2``, giving ``W_w + b_w v``. One penalty for all workers is chosen by
cross-validation of what matters, the score of the worker that the folded head picks.

**Cost-aware heads.** Scores and costs are regressed apart, and the head of a cost weight is the difference of both, so
that a sweep fits nothing anew. There a prediction has to be right in size, not only in rank: a strong penalty shrinks
the differences between predicted scores, which a routing reward need not notice and any cost then outweighs. The
penalties are therefore those of the smallest cross-validated squared error.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence

import numpy as np

from trinity_assets.routing.objective import ANSWERS_PER_COST, Objective, TableObjective
from trinity_assets.routing.routed_score import row_space
from trinity_assets.routing.specs import RidgeSettings
from trinity_assets.routing.trainers.head import (
    FROM_ZERO,
    Start,
    TrainedHead,
    TrainingRecord,
    require_scores,
    require_table,
)
from trinity_assets.routing.trainers.normal_equations import Factored, Moments

ONES_PENALTY = 1e-6
"""Penalty of the direction v, relative to the mean eigenvalue of F'F: it keeps v finite and hardly moves it."""

logger = logging.getLogger(__name__)


def train(objective: Objective, settings: RidgeSettings, start: Start = FROM_ZERO) -> TrainedHead:
    """Fit on the objective's table. A worker's unknown scores are left out of its own regression.

    At a cost weight the rewarded value, score less weighted cost, is regressed in the score's place.

    Raises:
        TrainingError: the objective has no table, or a worker has no known score.
    """
    began = time.perf_counter()
    table = require_table(objective, "ridge")
    require_scores(table)
    features, basis = narrowed(table.features)
    alphas = sorted(settings.alphas)
    rewards = _cross_validated_rewards(features, table.rewarded, table.folds, alphas)
    alpha = max(zip(rewards, alphas, strict=True))[1]
    head = RidgePath(features, table.rewarded).head(alpha)
    weights = widened(head, basis)
    if not start.quiet:
        logger.info("ridge: %d tasks, alpha %g, cross-validated reward %.4f", len(features), alpha, max(rewards))
    record = TrainingRecord(
        settings=settings.model_dump(mode="json"),
        chosen={"alpha": alpha},
        reward=float(objective(weights[None])[0]),
        history=tuple({"alpha": a, "reward": r} for a, r in zip(alphas, rewards, strict=True)),
        evaluations=len(alphas) * len(np.unique(table.folds)),
    )
    return TrainedHead(weights, record, time.perf_counter() - began)


def sweep(
    objective: TableObjective, settings: RidgeSettings, cost_weights: Sequence[float], start: Start = FROM_ZERO
) -> dict[float, TrainedHead]:
    """One head per cost weight, from one regression of the scores and one of the costs.

    Raises:
        TrainingError: a worker has no known score, or nothing is known of what it costs.
    """
    began = time.perf_counter()
    require_scores(objective)
    features, basis = narrowed(objective.features)
    workers = objective.shape[0]
    targets = np.hstack([objective.scores, ANSWERS_PER_COST * objective.charged()])
    alphas = sorted(settings.alphas)
    errors = np.array(squared_errors(features, targets, objective.folds, alphas))
    score_alpha = strongest_of_best(errors[:, :workers].mean(axis=1), alphas)
    cost_alpha = strongest_of_best(errors[:, workers:].mean(axis=1), alphas)
    path = RidgePath(features, targets)
    scores = widened(path.head(score_alpha)[:workers], basis)
    costs = widened(path.head(cost_alpha)[workers:], basis)
    seconds = (time.perf_counter() - began) / max(1, len(cost_weights))
    if not start.quiet:
        logger.info("ridge: %d cost weights, alphas %g and %g", len(cost_weights), score_alpha, cost_alpha)

    def trained(cost_weight: float) -> TrainedHead:
        weights = scores - np.float32(cost_weight) * costs
        record = TrainingRecord(
            settings=settings.model_dump(mode="json"),
            chosen={"alpha": score_alpha, "cost_alpha": cost_alpha},
            reward=float(objective.at(cost_weight)(weights[None])[0]),
            history=(),
            evaluations=len(alphas) * len(np.unique(objective.folds)),
        )
        return TrainedHead(weights, record, seconds).weighted(cost_weight)

    return {weight: trained(weight) for weight in cost_weights}


class RidgePath:
    """The ridge solutions of one table for every penalty, from one factorization of each Gram matrix.

    Targets that are known on the same tasks share it, which is all workers' scores in a complete table.

    Args:
        features: (n, H) float64.
        targets: (n, K), NaN where unknown, each column with a known value.
    """

    def __init__(self, features: np.ndarray, targets: np.ndarray) -> None:
        self._fits = [
            (columns, Factored(Moments.of(features[rows], targets[rows][:, columns])))
            for columns, rows in _patterns(targets)
        ]
        self._shape = targets.shape[1], features.shape[1]
        self._ones = ones_direction(features)

    def head(self, alpha: float) -> np.ndarray:
        """The bias-free head (K, H) float64 for a penalty relative to the mean eigenvalue."""
        weights = np.empty(self._shape)
        for columns, fit in self._fits:
            slopes, intercepts = fit.solutions([alpha])
            weights[columns] = slopes[0] + np.outer(intercepts[0], self._ones)
        return weights


def ones_direction(features: np.ndarray) -> np.ndarray:
    """v (H,) with ``features @ v`` as near to one as possible."""
    wide = features.astype(np.float64, copy=False)
    return _towards_one(wide.T @ wide, wide.sum(axis=0))


def _towards_one(gram: np.ndarray, total: np.ndarray) -> np.ndarray:
    ridge = ONES_PENALTY * np.trace(gram) / len(gram)
    return np.linalg.solve(gram + max(ridge, np.finfo(float).tiny) * np.eye(len(gram)), total)


def squared_errors(
    features: np.ndarray, targets: np.ndarray, folds: np.ndarray, alphas: Sequence[float]
) -> list[np.ndarray]:
    """Per penalty, each target's (K,) mean squared error on tasks outside the fold that predicts them.

    With fewer than two folds every error is 0.
    """
    known = ~np.isnan(targets)
    totals = np.zeros((len(alphas), targets.shape[1]))
    for held_out, heads in _fold_heads(features, targets, folds, alphas):
        errors = np.where(known[held_out], features[held_out] @ heads.transpose(0, 2, 1) - targets[held_out], 0.0)
        totals += (errors**2).sum(axis=1)
    return list(totals / np.maximum(known.sum(axis=0), 1))


def _cross_validated_rewards(
    features: np.ndarray, rewarded: np.ndarray, folds: np.ndarray, alphas: Sequence[float]
) -> list[float]:
    """Per penalty, the mean reward of the workers picked for tasks outside the fold they were learnt from.

    With fewer than two folds nothing can be compared: every penalty gets 0, and the strongest will be taken.
    """
    known = ~np.isnan(rewarded)
    totals = np.zeros(len(alphas))
    for held_out, heads in _fold_heads(features, rewarded, folds, alphas):
        logits = np.where(known[held_out], features[held_out] @ heads.transpose(0, 2, 1), -np.inf)
        picked = np.take_along_axis(rewarded[held_out][None], logits.argmax(axis=2)[:, :, None], axis=2)
        totals += picked[:, :, 0].sum(axis=1)
    return (totals / len(features)).tolist()


def _fold_heads(
    features: np.ndarray, targets: np.ndarray, folds: np.ndarray, alphas: Sequence[float]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each fold's rows (n,) and the folded heads (A, K, H) learnt from all others, at every penalty.

    What the others sum up to is all tasks' sums less the fold's, so each Gram matrix is computed twice in all and not
    once per fold. The features are centred first, or the difference would be one of large numbers. A fold without
    which some target is unknown is left out.
    """
    present = np.unique(folds)
    if len(present) < 2:
        return
    known = ~np.isnan(targets)
    centre = features.mean(axis=0)
    centred = features - centre
    patterns = _patterns(targets)
    whole = [Moments.of(centred[rows], targets[rows][:, columns]) for columns, rows in patterns]
    gram, total = features.T @ features, features.sum(axis=0)
    for fold in present:
        held_out = folds == fold
        if not known[~held_out].any(axis=0).all():
            continue
        own = features[held_out]
        ones = _towards_one(gram - own.T @ own, total - own.sum(axis=0))
        heads = np.empty((len(alphas), targets.shape[1], features.shape[1]))
        for (columns, rows), moments in zip(patterns, whole, strict=True):
            both = rows & held_out
            fit = Factored(moments - Moments.of(centred[both], targets[both][:, columns]))
            slopes, intercepts = fit.solutions(alphas)
            heads[:, columns] = slopes + (intercepts - slopes @ centre)[:, :, None] * ones
        yield held_out, heads


def _patterns(targets: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Columns (k,) whose targets are known on the same rows (n,), with those rows."""
    patterns, pattern_of = np.unique(~np.isnan(targets), axis=1, return_inverse=True)
    return [(np.flatnonzero(pattern_of == p), rows) for p, rows in enumerate(patterns.T)]


def narrowed(features: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """The features in float64, by their coordinates in the row space where there are fewer tasks than features."""
    basis = None
    if len(features) < features.shape[1]:
        features, basis = row_space(features)
    return features.astype(np.float64), basis


def widened(head: np.ndarray, basis: np.ndarray | None) -> np.ndarray:
    """The head (L, H) float32 of one over narrowed features."""
    return (head if basis is None else head @ basis).astype(np.float32)


def strongest_of_best(errors: np.ndarray, alphas: Sequence[float]) -> float:
    """The penalty (of A) with the smallest error (A,), the strongest of several."""
    return max(zip((-errors).tolist(), alphas, strict=True))[1]
