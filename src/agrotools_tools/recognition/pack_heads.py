"""The heads of a pack: one names a class, one tells shipped strangers, and one the other things that a user gave."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools_tools.recognition.net import fit_distribution
from agrotools_tools.recognition.packs import NameHead, PackHead, StrangerHead
from agrotools_tools.recognition.strangers import Strangers

Ints = NDArray[np.int64]
Floats32 = NDArray[np.float32]

STRANGER_STRENGTH = 10.0
"""Inverse penalty strength of heads that tell other things: the middle one of those tried for names."""
_FLOOR = 1e-4
"""Least divisor of a feature, which keeps features that never vary finite."""
_LEAST_SPREAD = 0.5
"""Least divisor of a feature as a share of the typical one of its block."""
_NEVER = 20
"""How far the logit of a class that was not learnt lies below the others."""


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Training data.

    ``features``: (n, features). ``blocks``: their widths, the shipped encoder's first. ``classes``: number of the class
    of each. ``groups``: units that are never split. ``digests``: hashes of the files.
    """

    features: Floats32
    blocks: tuple[int, ...]
    classes: Ints
    groups: tuple[str, ...]
    names: tuple[str, ...]
    digests: tuple[str, ...]


def fit_head(data: TrainingData, places: Ints, strangers: Strangers, strength: float) -> PackHead:
    """Fit all heads to the pictures at ``places``."""
    names = fit_names(data, places, strength)
    of_user = strangers.of_user
    look_alikes = fit_look_alikes(data, places, of_user) if len(of_user) else None
    return PackHead(names, fit_strangers(data, places, strangers.shipped), look_alikes)


def fit_names(data: TrainingData, places: Ints, strength: float) -> NameHead:
    """Fit a head for all classes of ``data`` to the pictures at ``places``; it never predicts classes absent there.

    ``strength``: inverse penalty strength of the logistic regression.
    """
    from sklearn.linear_model import LogisticRegression

    rows, classes = data.features[places], data.classes[places]
    mean = rows.mean(axis=0)
    scale = _scale(rows, data.blocks)
    standard = (rows - mean) / scale
    model = LogisticRegression(C=strength, class_weight="balanced", max_iter=2000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(standard.astype(np.float64), classes)
    weights: Any = model.coef_
    bias: Any = model.intercept_
    if len(model.classes_) == 2:
        weights, bias = np.concatenate([-weights, weights]) / 2, np.concatenate([-bias, bias]) / 2
    count = len(data.names)
    all_weights = np.zeros((standard.shape[1], count), np.float32)
    all_bias = np.full(count, float(np.min(bias)) - _NEVER, np.float32)
    all_weights[:, model.classes_], all_bias[model.classes_] = weights.T, bias
    present = np.searchsorted(model.classes_, classes)
    seen = standard[:, : data.blocks[0]]
    familiar = fit_distribution(seen, present, len(model.classes_))
    return NameHead(mean.astype(np.float32), scale, all_weights, all_bias, familiar)


def fit_strangers(data: TrainingData, places: Ints, strangers: Strangers) -> StrangerHead:
    """Fit the head that tells shipped strangers from the pictures at ``places``, by the features of the shipped
    encoder, the first block."""
    width = data.blocks[0]
    own = data.features[places, :width]
    return _told_apart(own, strangers.features[:, :width], (width,))


def fit_look_alikes(data: TrainingData, places: Ints, strangers: Strangers) -> StrangerHead:
    """Fit the head that tells the other things of a user from the pictures at ``places``, by all features.

    It is a head of its own because it tells them better than one that also learns all shipped strangers: on the seven
    packs of ``training/measure_look_alikes.py``, 10 of 651 further look-alikes got a name instead of 41, and 235 of
    310 of the packs' own pictures instead of 249. (Measured before everyday photographs were learnt,
    and with the encoder as it was published.)
    """
    return _told_apart(data.features[places], strangers.features, data.blocks)


def _told_apart(own: Floats32, others: Floats32, blocks: Sequence[int]) -> StrangerHead:
    """Fit a head that tells other things from own pictures; both count the same, however many there are of each."""
    from sklearn.linear_model import LogisticRegression

    rows = np.concatenate([own, others])
    is_other = np.repeat([0, 1], [len(own), len(others)])
    mean = rows.mean(axis=0)
    scale = _scale(rows, blocks)
    model = LogisticRegression(C=STRANGER_STRENGTH, class_weight="balanced", max_iter=2000)
    standard = ((rows - mean) / scale).astype(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(standard, is_other)
    coefficients: Any = model.coef_
    intercepts: Any = model.intercept_
    # For features as they are: the standardisation is folded into weights and bias.
    weights = np.asarray(coefficients[0], np.float64) / scale
    bias = float(intercepts[0]) - float(weights @ mean.astype(np.float64))
    return StrangerHead(weights.astype(np.float32), bias)


def _scale(rows: Floats32, blocks: Sequence[int]) -> Floats32:
    """Return divisors of the features, float32 (features,), that give every block the same weight.

    With few pictures many features hardly vary (such as empty histogram bins), and dividing by their tiny spread would
    make any new value an extreme outlier. The divisors are therefore bounded by the typical spread of the block.
    """
    parts: list[Floats32] = []
    for part in np.split(rows.std(axis=0), np.cumsum(blocks)[:-1]):
        typical = float(np.sqrt((part**2).mean()))
        least = max(_LEAST_SPREAD * typical, _FLOOR)
        parts.append(np.maximum(part, least) * np.float32(np.sqrt(len(part))))
    return np.concatenate(parts).astype(np.float32)
