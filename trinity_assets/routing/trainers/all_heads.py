"""Every head that a router declares: one per trainer, and one per trainer and cost weight."""

from __future__ import annotations

from collections.abc import Callable

from trinity_assets.routing.objective import TableObjective
from trinity_assets.routing.specs import TRAINERS, RouterTraining, trainer_of, weighted_head
from trinity_assets.routing.trainers.head import FROM_ZERO, Start, TrainedHead
from trinity_assets.spec import Spec


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


def learners(training: RouterTraining, head: str) -> list[Callable[[TableObjective], TrainedHead]]:
    """How the head of that name is learnt, with each of ``training.training_seeds``, that of its settings first.

    One for a trainer that draws nothing. They say nothing while they learn: what is learnt so is looked at once, and no
    head that is kept.
    """
    trainer = trainer_of(head)
    settings = training.trainers[trainer]
    seeds = [settings]
    if "seed" in type(settings).model_fields:
        first = settings.model_dump()["seed"]
        seeds = [settings.model_copy(update={"seed": first + more}) for more in range(training.training_seeds)]
    cost_weight = {weighted_head(trainer, weight): weight for weight in training.cost_weights}.get(head)
    return [_learner(trainer, one, cost_weight) for one in seeds]


def _learner(trainer: str, settings: Spec, cost_weight: float | None) -> Callable[[TableObjective], TrainedHead]:
    entry, start = TRAINERS[trainer], Start(quiet=True)

    def learn(objective: TableObjective) -> TrainedHead:
        if cost_weight is None:
            return entry.load()(objective, settings, start)
        return entry.load_sweep()(objective, settings, (cost_weight,), start)[cost_weight]

    return learn
