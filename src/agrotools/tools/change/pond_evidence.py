"""The two trained tests on ponds: logistic regression on features, their squares and products.

Weights: ``data/pond_evidence.json``, written by ``training/fit_pond_evidence.py`` from drawn pairs.
"""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.tools.contract import shipped_file

_CLIP = 4.0


@dataclass(frozen=True)
class Evidence:
    """Logistic regression on features standardised by ``mean`` and ``scale``, held within 4, and on their squares and
    products (``products``: of each feature with each later one, in order; none where empty).

    What has a feature below ``low`` or above ``high`` is unlike anything right that was learnt from: its probability
    is 0, whatever the weights make of it.
    """

    bias: float
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    linear: tuple[float, ...]
    square: tuple[float, ...]
    products: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()

    def probability(self, features: NDArray[np.float64]) -> float:
        """0 to 1."""
        if self.low and (np.any(features < self.low) or np.any(features > self.high)):
            return 0.0
        standard = np.clip((features - np.asarray(self.mean)) / np.asarray(self.scale), -_CLIP, _CLIP)
        value = self.bias + float(standard @ np.asarray(self.linear)) + float(standard**2 @ np.asarray(self.square))
        if self.products:
            first, second = np.triu_indices(len(standard), 1)
            value += float((standard[first] * standard[second]) @ np.asarray(self.products))
        return float(1.0 / (1.0 + np.exp(-np.clip(value, -50, 50))))


_WEIGHTS: dict[str, Any] = json.loads(shipped_file("pond_evidence.json").read_bytes())


def _read_weights(name: str) -> Evidence:
    weights = _WEIGHTS[name]
    return Evidence(weights["bias"], **{key: tuple(values) for key, values in weights.items() if key != "bias"})


RING_TEST = _read_weights("ring_test")
BASIN_TEST = _read_weights("basin_test")
