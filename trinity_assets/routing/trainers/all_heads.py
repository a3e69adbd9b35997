"""Every head that a router declares: one per trainer, and one per trainer and cost weight."""

from __future__ import annotations

from trinity_assets.routing.objective import TableObjective
from trinity_assets.routing.specs import TRAINERS, RouterTraining, weighted_head
from trinity_assets.routing.trainers.head import FROM_ZERO, Start, TrainedHead


def train_heads(
    objective: TableObjective, training: RouterTraining, start: Start = FROM_ZERO
) -> dict[str, TrainedHead]:
    """The heads by name, in the order of ``training.heads``.

    Raises:
        TrainingError: a trainer cannot learn from the objective, or a cost weight meets a worker of unknown cost.
    """
    trained = {name: TRAINERS[name].load()(objective, settings, start) for name, settings in training.trainers.items()}
    if training.cost_weights:
        for name, settings in training.trainers.items():
            swept = TRAINERS[name].load_sweep()(objective, settings, training.cost_weights, start)
            trained |= {weighted_head(name, weight): head for weight, head in swept.items()}
    return trained
