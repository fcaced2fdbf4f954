"""Confidence of classifiers: calibrated probabilities, and scores of familiarity.

Familiarity by features: a Gaussian for each class with a covariance that all share, free along the main directions
within classes, even in all others (probabilistic PCA: Tipping and Bishop 1999; distance to the nearest class: Lee et
al. 2018).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Score = Literal["max_softmax", "energy", "margin", "likeness"]
"""Scores that are low for pictures of no known class. ``energy``: Liu et al. 2020, its sign turned; ``likeness``: to
the pictures learnt from (Sun et al. 2022), which a net says itself."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """A classifier's answer for one picture: ``logits`` float64 (classes,); ``score``: how much like what it knows."""

    classes: tuple[str, ...]
    logits: Floats
    temperature: float
    score: float
    threshold: float

    @property
    def is_known(self) -> bool:
        """True if the picture is enough like the training pictures for an answer to be given."""
        return self.score >= self.threshold

    def probabilities(self, allowed: NDArray[np.bool_] | None = None) -> Floats:
        """Calibrated probabilities, float64 (classes,); with ``allowed`` of a choice among those classes alone."""
        return probabilities(self.logits[None], self.temperature, allowed)[0]


def probabilities(logits: Floats, temperature: float, allowed: NDArray[np.bool_] | None = None) -> Floats:
    """Probabilities (n, classes) of logits (n, classes) divided by ``temperature`` (Guo et al. 2017).

    With ``allowed``, bool (classes,), they are of a choice among those classes alone, and 0 for the others.
    """
    scaled = logits / temperature
    if allowed is not None:
        scaled = np.where(allowed, scaled, -np.inf)
    powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def familiarity_score(score: Score, logits: Floats, temperature: float, likeness: Floats | None = None) -> Floats:
    """Familiarity of each row of logits (n, classes), float64 (n,); the scale is the score's own."""
    if score == "likeness":
        if likeness is None:
            raise ValueError("likeness is not made from logits")
        return likeness
    if score == "energy":
        scaled = logits / temperature
        top = scaled.max(axis=1)
        return temperature * (top + np.log(np.exp(scaled - top[:, None]).sum(axis=1)))
    ordered = np.sort(probabilities(logits, temperature), axis=1)
    return ordered[:, -1] if score == "max_softmax" else ordered[:, -1] - ordered[:, -2]


def fit_temperature(logits: Floats, classes: NDArray[np.int64]) -> float:
    """The divisor of logits (n, classes) with the least negative log-likelihood, within 0.05..20, by golden section on
    its logarithm."""

    def loss(logarithm: float) -> float:
        shares = probabilities(logits, float(np.exp(logarithm)))[np.arange(len(classes)), classes]
        return float(-np.log(np.maximum(shares, 1e-12)).mean())

    low, high = np.log(0.05), np.log(20.0)
    ratio = (np.sqrt(5) - 1) / 2
    for _ in range(48):
        one, two = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, two) if loss(one) < loss(two) else (one, high)
    return round(float(np.exp((low + high) / 2)), 4)


def threshold_for_share(scores: Floats, keep: float = 0.9) -> float:
    """The largest threshold at which at least ``keep`` of ``scores`` (n,) lie on it or above."""
    ordered = np.sort(scores)
    return float(ordered[int(np.floor((1 - keep) * len(ordered) + 1e-9))])


def wilson(right: float, count: int, z: float = 1.96) -> tuple[float, float]:
    """95 % interval of a share (Wilson 1927); ``right`` may be fractional where ``count`` is an effective number."""
    if count == 0:
        return (0.0, 1.0)
    share, weight = right / count, z * z / count
    middle = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * float(np.sqrt(share * (1 - share) / count + weight / (4 * count)))
    return (max(0.0, middle - half), min(1.0, middle + half))


MOST_DIRECTIONS = 24
_LEAST_VARIANCE = 1e-6
Features = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class FeatureDistribution:
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
            residual = np.maximum((off * off).sum(axis=1) - (along * along).sum(axis=1), 0)
            nearest = np.minimum(nearest, (along * along / self.spread).sum(axis=1) + residual / self.rest)
        return -np.sqrt(nearest / features.shape[1])


def fit_distribution(features: Features, classes: NDArray[np.int64], count: int) -> FeatureDistribution:
    """Distribution of features (n, features) of pictures of ``count`` classes, each of them with a picture."""
    centres = np.stack([features[classes == number].mean(axis=0) for number in range(count)])
    within = (features - centres[classes]).astype(np.float64)
    degrees = max(1, len(features) - count)
    rank = max(1, min(MOST_DIRECTIONS, degrees // 3, features.shape[1] - 1))
    _, lengths, directions = np.linalg.svd(within, full_matrices=False)
    variances = lengths**2 / degrees
    spread = np.maximum(variances[:rank], _LEAST_VARIANCE)
    rest = max(float(variances[rank:].sum()) / max(1, features.shape[1] - rank), _LEAST_VARIANCE)
    return FeatureDistribution(centres, directions[:rank].T.astype(np.float32), spread.astype(np.float32), rest)
