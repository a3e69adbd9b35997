"""The best single worker, whatever the question: what a routed head has to beat, and what is shipped when none does."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from trinity_assets.routing.baselines import best_single
from trinity_assets.routing.objective import Objective, TableObjective, route
from trinity_assets.routing.specs import ConstantSettings
from trinity_assets.routing.trainers.head import FROM_ZERO, Start, TrainedHead, TrainingRecord, require_table
from trinity_assets.routing.trainers.ridge import ones_direction


def train(objective: Objective, settings: ConstantSettings, start: Start = FROM_ZERO) -> TrainedHead:
    """Choose the worker with the highest mean reward, by the rules for missing scores and ties of ``baselines``.

    The record's ``constant`` is that worker's position. Its row of the head is the direction whose product with a
    feature is as near to one as can be, the others are zero: it wins wherever that product is positive, on a share
    ``agreement`` of the tasks.

    Raises:
        TrainingError: the objective has no table.
    """
    began = time.perf_counter()
    table = require_table(objective, "constant")
    best = best_single(table.rewarded, table.costs)
    weights = np.zeros(table.shape, dtype=np.float32)
    weights[best] = ones_direction(table.features)
    record = TrainingRecord(
        settings=settings.model_dump(mode="json"),
        chosen={"constant": best, "agreement": float((route(table.features, weights) == best).mean())},
        reward=float(table.constant_rewards()[best]),
        history=(),
        evaluations=table.shape[0],
    )
    return TrainedHead(weights, record, time.perf_counter() - began)


def sweep(
    objective: TableObjective,
    settings: ConstantSettings,
    cost_weights: Sequence[float],
    start: Start = FROM_ZERO,
) -> dict[float, TrainedHead]:
    """The best single worker at each cost weight.

    Raises:
        TrainingError: nothing is known of what a worker costs.
    """
    return {weight: train(objective.at(weight), settings).weighted(weight) for weight in cost_weights}
