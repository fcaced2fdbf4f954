"""Evidence from several features as one probability."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_CLIP = 4.0


@dataclass(frozen=True)
class Evidence:
    """Logistic regression on features standardised by ``mean`` and ``scale``, held within 4, and on their squares."""

    bias: float
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    linear: tuple[float, ...]
    square: tuple[float, ...]

    def probability(self, features: NDArray[np.float64]) -> float:
        """0 to 1."""
        standard = np.clip((features - np.asarray(self.mean)) / np.asarray(self.scale), -_CLIP, _CLIP)
        value = self.bias + float(standard @ np.asarray(self.linear)) + float(standard**2 @ np.asarray(self.square))
        return float(1.0 / (1.0 + np.exp(-np.clip(value, -50, 50))))
