"""How much a picture is like those that a pack was trained on, by its features alone.

A Gaussian for each class with a covariance that all share: free along the main directions within classes, even in all
others (probabilistic PCA: Tipping and Bishop 1999; distance to the nearest class: Lee et al. 2018).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_DIRECTIONS = 24
_LEAST_VARIANCE = 1e-6
Features = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Familiar:
    """``centres``: (classes, features); ``directions``: (features, k), orthonormal; ``spread``: (k,), variances along
    them; ``rest``: variance along any other direction."""

    centres: Features
    directions: Features
    spread: Features
    rest: float

    def score(self, features: Features) -> NDArray[np.float64]:
        """Minus the distance to the nearest class, in standard deviations per feature, float64 (n,)."""
        nearest = np.full(len(features), np.inf)
        for centre in self.centres.astype(np.float64):
            off = features - centre
            along = off @ self.directions
            left = np.maximum((off * off).sum(axis=1) - (along * along).sum(axis=1), 0)
            nearest = np.minimum(nearest, (along * along / self.spread).sum(axis=1) + left / self.rest)
        return -np.sqrt(nearest / features.shape[1])


def fit_familiar(features: Features, classes: NDArray[np.int64], count: int) -> Familiar:
    """From features (n, features) of pictures of ``count`` classes, each of them with a picture."""
    centres = np.stack([features[classes == number].mean(axis=0) for number in range(count)])
    within = (features - centres[classes]).astype(np.float64)
    degrees = max(1, len(features) - count)
    kept = max(1, min(MOST_DIRECTIONS, degrees // 3, features.shape[1] - 1))
    _, lengths, directions = np.linalg.svd(within, full_matrices=False)
    variances = lengths**2 / degrees
    spread = np.maximum(variances[:kept], _LEAST_VARIANCE)
    rest = max(float(variances[kept:].sum()) / max(1, features.shape[1] - kept), _LEAST_VARIANCE)
    return Familiar(centres, directions[:kept].T.astype(np.float32), spread.astype(np.float32), rest)
