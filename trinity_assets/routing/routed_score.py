"""The mean score that heads collect on a table, for a whole population of them in a few matrix products."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

CHUNK_LOGITS = 1 << 16
"""Logits computed at once: 256 KiB of float32, which a core's cache holds beside their sums until they are reduced."""


class RoutedScore:
    """The mean score of the worker that each head picks, over tasks that tell workers apart.

    Tasks on which all known scores are equal add a constant to every head; they enter as their sum and count only.

    Args:
        features: (n, H) float32.
        scores: (n, L), NaN where unknown, each row with at least one known score.
        other_reward: the summed score of the tasks left out for telling no workers apart.
        other_tasks: their number.
    """

    def __init__(self, features: np.ndarray, scores: np.ndarray, other_reward: float, other_tasks: int) -> None:
        self._features = np.ascontiguousarray(features, dtype=np.float32)
        unknown = np.ascontiguousarray(np.isnan(scores).T)
        self._unknown = unknown if unknown.any() else None
        self._scores = np.where(unknown, 0.0, scores.T).astype(np.float32)  # (L, n), as they are read
        self._other_reward = other_reward
        self._tasks = len(scores) + other_tasks
        self._other_tasks = other_tasks

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._scores), self._features.shape[1]

    def __call__(self, heads: np.ndarray) -> np.ndarray:
        """Rewards of (P, L, H) heads as one matrix product per chunk of tasks, which are then reduced."""
        total = np.full(len(heads), self._other_reward, dtype=np.float64)
        for rows, logits in self._products(heads):
            total += self._collected(rows, logits)
        return total / self._tasks

    def mirrored(self, mean: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """As a logit is linear in the head, a pair costs the product of one head; the mean's product is shared."""
        pairs = len(steps)
        total = np.full(2 * pairs, self._other_reward, dtype=np.float64)
        for rows, products in self._products(np.concatenate([mean[None], steps])):
            centre, sides = products[:, :1], products[:, 1:]
            logits = np.empty((len(products), 2 * pairs, products.shape[2]), dtype=np.float32)
            np.add(centre, sides, out=logits[:, :pairs])
            np.subtract(centre, sides, out=logits[:, pairs:])
            total += self._collected(rows, logits)
        return total / self._tasks

    def _products(self, heads: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Chunks of tasks with their logits (L, P, chunk) under every head."""
        population, workers, hidden = heads.shape
        by_worker = np.ascontiguousarray(heads.transpose(1, 0, 2), dtype=np.float32).reshape(-1, hidden)
        chunk = max(1, CHUNK_LOGITS // len(by_worker))
        for start in range(0, len(self._features), chunk):
            rows = slice(start, start + chunk)
            yield rows, (by_worker @ self._features[rows].T).reshape(workers, population, -1)

    def _collected(self, rows: slice, logits: np.ndarray) -> np.ndarray:
        """The summed scores (P,) of the workers that the logits (L, P, chunk), which are overwritten, pick.

        Worker by worker along the tasks, which numpy does in long vectors; its argmax over a few workers does not.
        """
        if self._unknown is not None:
            np.copyto(logits, -np.inf, where=self._unknown[:, None, rows])
        highest, collected = logits[0], np.broadcast_to(self._scores[0, rows], logits.shape[1:])
        for challenger, score in zip(logits[1:], self._scores[1:, rows], strict=True):
            collected = np.where(challenger > highest, score, collected)
            np.maximum(highest, challenger, out=highest)
        return collected.sum(axis=1, dtype=np.float64)

    def reduced(self) -> tuple[RoutedScore, np.ndarray | None]:
        """With fewer tasks than features, heads differ only within the row space of the features."""
        if not 0 < len(self._features) < self._features.shape[1]:
            return self, None
        coordinates, basis = row_space(self._features)
        return RoutedScore(coordinates, self._masked_scores(), self._other_reward, self._other_tasks), basis

    def validation(self) -> None:
        return None

    def digest(self) -> str:
        return arrays_digest(
            self._features, self._masked_scores(), np.array([self._other_reward, self._other_tasks], dtype=np.float64)
        )

    def _masked_scores(self) -> np.ndarray:
        return self._scores.T if self._unknown is None else np.where(self._unknown, np.nan, self._scores).T


def row_space(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates (n, r) and orthonormal basis (r, H), float32, with ``features = coordinates @ basis``.

    The principal axes, from the eigenvectors of the (n, n) Gram matrix in float64, which takes half the time of a
    singular value decomposition; r is the numerical rank in float32, far above what squaring loses.
    """
    wide = features.astype(np.float64)
    values, left = np.linalg.eigh(wide @ wide.T)
    singular = np.sqrt(np.maximum(values, 0.0))
    smallest = singular[-1] * max(features.shape) * np.finfo(np.float32).eps
    kept = np.flatnonzero(singular > smallest)[::-1] if singular[-1] > 0 else np.array([len(singular) - 1])
    basis = (left[:, kept] / np.where(singular[kept] > 0, singular[kept], 1.0)).T @ wide
    return (left[:, kept] * singular[kept]).astype(np.float32), basis.astype(np.float32)


def arrays_digest(*arrays: np.ndarray) -> str:
    """The sha256 of the arrays' shapes, types and values."""
    state = hashlib.sha256()
    for array in arrays:
        state.update(f"{array.shape}{array.dtype.str}".encode())
        state.update(np.ascontiguousarray(array).tobytes())
    return state.hexdigest()
