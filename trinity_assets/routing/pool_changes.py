"""What becomes of a head when its pool changes. A row belongs to a worker's digest, wherever that worker stands.

Offering fewer workers, reordering and removing need no training: rows are masked, moved or dropped, and the remaining
ones decide between themselves as they did. A worker that joins gets a row fitted beside the old ones (``fit_to_pool``),
which is a policy that can be used as it is and the head from which a search for the new pool starts
(``Start.initial``). Where only the order of a router's workers has changed, nothing else that its heads learnt from,
their rows are moved (``reordered``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from trinity_assets.errors import TrainingError
from trinity_assets.routing.head import HeadRow, Heads
from trinity_assets.routing.inputs import RouterData
from trinity_assets.routing.objective import TableObjective
from trinity_assets.routing.routed_score import arrays_digest
from trinity_assets.routing.specs import RidgeSettings, RouterTraining
from trinity_assets.routing.split import TRAIN
from trinity_assets.routing.trainers.head import TrainedHead, TrainingRecord
from trinity_assets.routing.trainers.ridge import RidgePath, narrowed, squared_errors, strongest_of_best, widened
from trinity_assets.spec import digest


@dataclass(frozen=True)
class PoolHead:
    """A head whose rows are known: ``weights`` (L, H) float32, a row of it per worker in ``rows``."""

    weights: np.ndarray
    rows: tuple[HeadRow, ...]

    def __post_init__(self) -> None:
        if self.weights.ndim != 2 or len(self.weights) != len(self.rows):
            raise TrainingError(
                f"a head of shape {self.weights.shape} does not have one row for each of the {len(self.rows)} workers "
                f"{[row.name for row in self.rows]}"
            )


def route_offered(features: np.ndarray, head: PoolHead, offered: Collection[str]) -> np.ndarray:
    """The row (n,) picked for each feature (n, H) when only the workers of the digests ``offered`` can be asked.

    Raises:
        TrainingError: one of them has no row, or none is offered.
    """
    strangers = set(offered) - {row.digest for row in head.rows}
    if strangers or not offered:
        raise TrainingError(
            f"{len(strangers)} of the {len(offered)} workers offered have no row in the head of "
            f"{[row.name for row in head.rows]}; offer some of these, or fit the head to another pool"
        )
    places = [place for place, row in enumerate(head.rows) if row.digest in offered]
    return offered_scores(features @ head.weights.T, places).argmax(axis=1)


def offered_scores(scores: np.ndarray, places: Sequence[int]) -> np.ndarray:
    """``scores`` (n, L) of a pool's workers, minus infinity for those that do not stand at ``places``."""
    masked = np.full_like(scores, -np.inf)
    masked[:, places] = scores[:, places]
    return masked


def select_rows(head: PoolHead, pool: Sequence[HeadRow]) -> PoolHead:
    """The head for a pool of the same workers in another order, or of some of them.

    Raises:
        TrainingError: a worker of the pool has no row.
    """
    places = _places(head)
    if new := [row.name for row in pool if row.digest not in places]:
        raise TrainingError(
            f"workers {new} have no row in the head of {[row.name for row in head.rows]}: they joined the pool or are "
            "asked otherwise now; fit the head to the pool with a table that has their scores, or train it again"
        )
    return PoolHead(head.weights[[places[row.digest] for row in pool]], tuple(pool))


def learnt_digest(data: RouterData, objective: TableObjective, training: RouterTraining) -> str:
    """What heads of ``training`` learn from ``data`` and how, whatever the order of its workers: 64 hex digits.

    Costs in every case: they break the ties of ``constant``.
    """
    order = sorted(range(len(data.pool)), key=lambda place: data.pool[place].digest)
    train = data.table.loc[data.table["split"] == TRAIN, ["benchmark", "task_id", "group", "fold"]]
    costs = objective.costs[:, order]
    return digest(
        {
            "workers": [data.pool[place].digest for place in order],
            "tasks": train.to_numpy().tolist(),
            "table": arrays_digest(objective.features, objective.scores[:, order], objective.folds, costs),
            "trainers": training.head_identity(),
        }
    )


def reordered(heads: Heads, pool: Sequence[HeadRow]) -> dict[str, TrainedHead]:
    """The heads for a ``pool`` of the same workers in another order: the rows that they had, and nothing trained.

    Raises:
        TrainingError: the pool is no other order of these workers, or two of them are asked alike.
    """
    before = [row.digest for row in heads.spec.workers]
    now = [row.digest for row in pool]
    if before == now or sorted(before) != sorted(now) or len(set(now)) < len(now):
        raise TrainingError(
            f"the pool {[row.name for row in pool]} is not {[row.name for row in heads.spec.workers]} in another "
            "order; train its heads"
        )
    return {
        name: TrainedHead(
            select_rows(PoolHead(weights, heads.spec.workers), pool).weights,
            _moved(heads.spec.trainers[name], [now.index(worker) for worker in before]),
            seconds=0.0,
        )
        for name, weights in heads.weights.items()
    }


def _moved(record: TrainingRecord, places: Sequence[int]) -> TrainingRecord:
    """The record of a head whose rows have moved to ``places``, by which it names a constant worker."""
    if record.constant is None:
        return record
    return record.model_copy(update={"chosen": record.chosen | {"constant": places[record.constant]}})


def fit_to_pool(
    head: PoolHead, pool: Sequence[HeadRow], objective: TableObjective, settings: RidgeSettings | None = None
) -> PoolHead:
    """The head for ``pool``: rows of old workers as they are, those of new ones fitted to their scores.

    Old logits are on a scale of their own, that of scores after a regression and any other after a search. So the line
    is found by which old logits predict old scores, the new worker's scores are put on the logits' side of it, and
    ridge predicts those, with the penalty of the smallest cross-validated error. A row of zeros would do neither as a
    policy, winning wherever all other logits happen to be negative, nor as a start, being as far from right for a good
    worker as for a bad one. Where old logits do not rise with scores, or no old worker is left, the new rows are those
    of ridge alone.

    Args:
        objective: of a table whose columns are ``pool``.

    Raises:
        TrainingError: the objective is not of this pool and width, or a new worker has no known score.
    """
    if objective.shape != (len(pool), head.weights.shape[1]):
        raise TrainingError(
            f"the objective takes heads of shape {objective.shape}, the pool of {len(pool)} workers and the head's "
            f"width need {(len(pool), head.weights.shape[1])}; make it from the new pool's table"
        )
    places = _places(head)
    old = np.array([row.digest in places for row in pool])
    weights = np.empty(objective.shape, dtype=np.float32)
    weights[old] = head.weights[[places[row.digest] for row in pool if row.digest in places]]
    if not old.all():
        slope, level = _scale(objective.features @ weights[old].T, objective.rewarded[:, old])
        targets = (objective.rewarded[:, ~old] - level) / slope
        weights[~old] = _regressed(objective, targets, settings or RidgeSettings())
    return PoolHead(weights, tuple(pool))


def _places(head: PoolHead) -> dict[str, int]:
    """The row of each digest, the first of several."""
    return {row.digest: place for place, row in reversed(list(enumerate(head.rows)))}


def _scale(logits: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
    """Slope and level of the least-squares line ``score = slope * logit + level``; 1 and 0 if it does not rise."""
    known = ~np.isnan(scores)
    if not known.any():
        return 1.0, 0.0
    drawn, scored = logits[known].astype(np.float64), scores[known]
    centred = drawn - drawn.mean()
    covariance = float(centred @ (scored - scored.mean()))
    if covariance <= 0:
        return 1.0, 0.0
    slope = covariance / float(centred @ centred)
    return slope, float(scored.mean() - slope * drawn.mean())


def _regressed(objective: TableObjective, targets: np.ndarray, settings: RidgeSettings) -> np.ndarray:
    """Ridge's rows (k, H) for targets (n, k), each with the penalty that predicts it best."""
    if missing := np.flatnonzero(np.isnan(targets).all(axis=0)).tolist():
        raise TrainingError(
            f"{len(missing)} of the workers that joined the pool have no known score to learn from; settle their "
            "answers or leave them out of the pool"
        )
    features, basis = narrowed(objective.features)
    alphas = sorted(settings.alphas)
    errors = np.array(squared_errors(features, targets, objective.folds, alphas))
    path = RidgePath(features, targets)
    rows = [path.head(strongest_of_best(error, alphas))[column] for column, error in enumerate(errors.T)]
    return widened(np.stack(rows), basis)
