"""The coordinator: a checkpoint and a way to compute features, answering "which worker for this question"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trinity_assets.backbones.specs import FeatureSpec
from trinity_assets.checkpoints.directory import Checkpoint
from trinity_assets.errors import CheckpointError

Extract = Callable[[list[str]], np.ndarray]
"""Questions to features (n, hidden) float32, under the checkpoint's feature spec."""


@dataclass(frozen=True)
class Decision:
    """Which worker to ask.

    Attributes:
        worker: its name.
        scores: per worker in pool order, what the policy compared; empty under a constant policy.
        margin: the best score minus the second best; None where there was nothing to compare.
        policy: ``head`` or ``constant``.
    """

    worker: str
    scores: dict[str, float]
    margin: float | None
    policy: str


class Coordinator:
    """Routes questions by a checkpoint's policy. Equal scores go to the earlier worker of the pool."""

    def __init__(self, checkpoint: Checkpoint, extract: Extract) -> None:
        self._manifest = checkpoint.manifest
        self._weights = checkpoint.head[: checkpoint.manifest.rows.workers]
        self._offsets = np.asarray(checkpoint.manifest.offsets, dtype=np.float32)
        self._extract = extract

    def route(self, question: str) -> Decision:
        """The decision for one question; a constant policy computes no feature."""
        return self.route_many([question])[0]

    def route_many(self, questions: list[str]) -> list[Decision]:
        """The decision for each question.

        Raises:
            CheckpointError: the features have another width than the head, or are not finite.
        """
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
        return [self._decide(scores) for scores in features @ self._weights.T + self._offsets]

    def _decide(self, scores: np.ndarray) -> Decision:
        ranked = np.argsort(-scores, kind="stable")
        margin = float(scores[ranked[0]] - scores[ranked[1]]) if len(scores) > 1 else None
        by_name = dict(zip(self._manifest.workers, scores.tolist(), strict=True))
        return Decision(self._manifest.workers[ranked[0]], by_name, margin, self._manifest.policy.kind)


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
