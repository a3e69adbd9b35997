"""The coordinator: a checkpoint and a way to compute features, answering "which worker for this question"."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from trinity_assets.backbones.specs import FeatureSpec
from trinity_assets.checkpoints.directory import Checkpoint
from trinity_assets.errors import CheckpointError
from trinity_assets.routing.pool_changes import offered_scores
from trinity_assets.texts import quoted

Extract = Callable[[list[str]], np.ndarray]
"""Questions to features (n, hidden) float32, under the checkpoint's feature spec."""


@dataclass(frozen=True)
class Decision:
    """Which worker to ask.

    Attributes:
        worker: its name.
        scores: per offered worker in pool order, what the policy compared; empty under a constant policy.
        margin: the best score minus the second best; None where there was nothing to compare.
        policy: ``head`` or ``constant``.
    """

    worker: str
    scores: dict[str, float]
    margin: float | None
    policy: str


class Coordinator:
    """Routes questions by a checkpoint's policy. Equal scores go to the earlier worker of the pool.

    Only some of the pool may be offered; the head decides among these. A constant policy has no second choice: its
    checkpoint does not say who is next best, and the head that lies beside it has not shown that it knows.
    """

    def __init__(self, checkpoint: Checkpoint, extract: Extract) -> None:
        self._manifest = checkpoint.manifest
        self._weights = checkpoint.head[: checkpoint.manifest.rows.workers]
        self._offsets = np.asarray(checkpoint.manifest.offsets, dtype=np.float32)
        self._extract = extract

    def route(self, question: str, offered: Collection[str] | None = None) -> Decision:
        """The decision for one question; a constant policy computes no feature."""
        return self.route_many([question], offered)[0]

    def route_many(self, questions: list[str], offered: Collection[str] | None = None) -> list[Decision]:
        """The decision for each question, among the workers of the names ``offered``; None offers the whole pool.

        Raises:
            CheckpointError: a worker that is offered is not in the pool, none is, or the policy is a constant one whose
                worker is not; or the features have another width than the head, or are not finite.
        """
        places = self._places(offered)
        policy = self._manifest.policy
        if policy.worker is not None:
            return [Decision(policy.worker, {}, None, policy.kind) for _ in questions]
        features = np.asarray(self._extract(questions), dtype=np.float32)
        expected = (len(questions), self._weights.shape[1])
        if features.shape != expected or not np.isfinite(features).all():
            raise CheckpointError(
                f"the backbone gave features of shape {features.shape}, or values that are not finite; the head needs "
                f"finite numbers of shape {expected}: serve it with the backbone it was trained for"
            )
        masked = offered_scores(features @ self._weights.T + self._offsets, places)
        return [self._decide(scores, places) for scores in masked]

    def _places(self, offered: Collection[str] | None) -> list[int]:
        """The rows of the workers that are offered, in pool order."""
        manifest = self._manifest
        pool, constant = manifest.workers, manifest.policy.worker
        if offered is None:
            return list(range(len(pool)))
        strangers = [name for name in offered if name not in pool]
        if strangers or not offered:
            wrong = f"{', '.join(map(quoted, strangers))} is not in" if strangers else "nobody is offered of"
            raise CheckpointError(f"{wrong} the pool of {manifest.router}; offer some of {', '.join(pool)}")
        if constant is not None and constant not in offered:
            raise CheckpointError(
                f"the policy of {manifest.router} is to ask {constant} whatever the question, which is not offered, "
                f"and it says nothing of the others; offer {constant}, or build a router whose pool is what you can "
                "offer (what its workers have answered is not asked again)"
            )
        return [place for place, name in enumerate(pool) if name in offered]

    def _decide(self, scores: np.ndarray, places: list[int]) -> Decision:
        best, *others = np.argsort(-scores, kind="stable")
        margin = float(scores[best] - scores[others[0]]) if len(places) > 1 else None
        names = self._manifest.workers
        return Decision(
            names[best], {names[place]: float(scores[place]) for place in places}, margin, self._manifest.policy.kind
        )


def check_feature_spec(checkpoint: Checkpoint, spec: FeatureSpec) -> None:
    """Refuse a checkpoint whose features were computed otherwise than ``spec`` computes them.

    Raises:
        CheckpointError: naming each differing field.
    """
    differences = checkpoint.manifest.feature_spec.differences(spec)
    if differences:
        raise CheckpointError(
            f"checkpoint {checkpoint.path} was made for other features ('here' is the checkpoint, 'there' the "
            f"backbone offered): {'; '.join(differences)}; use the backbone it was trained with, or train for this one"
        )
