"""The normal equations of penalized least squares: the sums that make them, and their solutions at many penalties.

Sums over tasks add up, so those of all tasks less those of a fold are the other folds' own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Moments:
    """Sums over tasks: their number, features (H,), targets (k,), Gram matrix (H, H), features by targets (H, k)."""

    count: int
    features: np.ndarray
    targets: np.ndarray
    gram: np.ndarray
    cross: np.ndarray

    @classmethod
    def of(cls, features: np.ndarray, targets: np.ndarray) -> Moments:
        return cls(
            len(features), features.sum(axis=0), targets.sum(axis=0), features.T @ features, features.T @ targets
        )

    def __sub__(self, part: Moments) -> Moments:
        return Moments(
            self.count - part.count,
            self.features - part.features,
            self.targets - part.targets,
            self.gram - part.gram,
            self.cross - part.cross,
        )


class Factored:
    """``Fc'Fc = Q T Q'`` with T tridiagonal, after which a penalty costs O(H) instead of a factorization.

    Half the time of the eigenvectors, which would serve as well (Golub and Van Loan, 4th edition, section 8.3.1).
    """

    def __init__(self, moments: Moments) -> None:
        from scipy.linalg import lapack

        self._feature_mean = moments.features / moments.count
        self._target_mean = moments.targets / moments.count
        gram = moments.gram - np.outer(moments.features, self._feature_mean)
        cross = moments.cross - np.outer(moments.features, self._target_mean)
        self._scale = float(np.trace(gram)) / len(gram)
        if len(gram) == 1:
            self._reflectors = self._taus = None
            self._diagonal, self._beside, self._targets = gram[0], np.empty(0), cross
            return
        work, _ = lapack.dsytrd_lwork(len(gram), lower=1)
        reduced, self._diagonal, self._beside, self._taus, _ = lapack.dsytrd(gram, lower=1, lwork=int(work))
        self._reflectors = np.asfortranarray(reduced[1:, :-1])
        self._targets = self._rotated(cross, "T")

    def solutions(self, alphas: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        """Slopes (A, k, H) and intercepts (A, k) for penalties relative to the mean eigenvalue."""
        from scipy.linalg import lapack

        width, columns = self._targets.shape
        solved = np.empty((width, len(alphas), columns))
        for i, alpha in enumerate(alphas):
            penalty = alpha * self._scale if self._scale > 0 else 1.0
            if width == 1:  # which LAPACK's binding takes for an error
                solved[:, i] = self._targets / (self._diagonal + penalty)[:, None]
            else:
                solved[:, i] = lapack.dptsv(self._diagonal + penalty, self._beside, self._targets)[2]
        slopes = self._rotated(solved.reshape(width, -1), "N").reshape(width, len(alphas), columns).transpose(1, 2, 0)
        return slopes, self._target_mean - slopes @ self._feature_mean

    def _rotated(self, columns: np.ndarray, transposed: str) -> np.ndarray:
        """``Q columns``, or ``Q' columns`` for "T"; Q leaves the first element alone."""
        from scipy.linalg import lapack

        if self._reflectors is None:
            return columns
        rotated = np.array(columns)
        work = lapack.dormqr("L", transposed, self._reflectors, self._taus, rotated[1:], lwork=-1)[1]
        rotated[1:] = lapack.dormqr("L", transposed, self._reflectors, self._taus, rotated[1:], lwork=int(work[0]))[0]
        return rotated
