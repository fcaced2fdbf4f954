"""Segmentation of lesions on a leaf: the shipped model (a small neural network as plain arrays) and a colour rule.

``data/lesion_model.json`` describes the model, its training data and its accuracy; ``data/lesion_model.npz`` holds the
weights; ``training/train_lesion_model.py`` writes both. ``data/lesion_model.md`` documents the training and the
limitations.

Features of a pixel are relative to the leaf itself (its median colour, its local mean), at a size set by the leaf's
area, so that exposure and resolution have little influence. The rules need no training and apply to any leaf: a lesion
is no longer the leaf's own healthy green, but yellow, brown, grey or black. As they use only colour, they cannot
distinguish a lesion from dirt or a dry vein.

Files that are missing or inconsistent raise a ``ToolError`` of the kind ``backend_unavailable``.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat

from agrotools.core import FrozenModel
from agrotools.tools.contract import shipped_file
from agrotools.tools.lesions.result import MODEL_FILES, Lab
from agrotools.vision import Box
from agrotools.vision.colours import lab_of
from agrotools.vision.nets import Arrays, checked_arrays, read_description, unusable_weights
from agrotools.vision.vegetation import hull_px

SIDE_PX = 280
"""Square root of the leaf area, pixels, to which leaves are resized."""
FEATURES_VERSION = 1
_FINE = 0.8
_SCALES = (2.0, 5.0)
_LOCAL = (12.0, 35.0)
_MARGIN_PX = 4


@dataclass(frozen=True, eq=False)
class LeafView:
    """Leaf cut out of the picture and resized.

    ``lab``: float32 (rows, columns, 3). ``mask``: bool (rows, columns). ``box``: the part of the picture.
    """

    lab: NDArray[np.float32]
    mask: NDArray[np.bool_]
    box: Box

    @property
    def median(self) -> NDArray[np.float32]:
        """Median Lab of the leaf."""
        return np.median(self.lab[self.mask], axis=0).astype(np.float32)


def leaf_view(pixels: NDArray[np.uint8], mask: NDArray[np.bool_], box: Box, side: int = SIDE_PX) -> LeafView:
    """Cut out and resize a leaf.

    Args:
        pixels: uint8 (rows, columns, 3), sRGB.
        mask: the leaf, bool (rows, columns), not empty.
        box: bounds of the mask.
    """
    factor = side / float(np.sqrt(np.count_nonzero(mask)))
    margin = int(np.ceil(_MARGIN_PX / factor))
    x0, y0 = max(0, box[0] - margin), max(0, box[1] - margin)
    x1, y1 = min(mask.shape[1], box[2] + margin), min(mask.shape[0], box[3] + margin)
    size = (max(1, round((x1 - x0) * factor)), max(1, round((y1 - y0) * factor)))
    how = cv2.INTER_AREA if factor < 1 else cv2.INTER_LINEAR
    cut = np.asarray(cv2.resize(np.ascontiguousarray(pixels[y0:y1, x0:x1]), size, interpolation=how), np.uint8)
    share = cv2.resize(mask[y0:y1, x0:x1].astype(np.uint8) * np.uint8(255), size, interpolation=how)
    inside = np.asarray(share) >= 128
    if not inside.any():
        inside = np.asarray(share) >= np.asarray(share).max()
    return LeafView(lab_of(cut), inside, (x0, y0, x1, y1))


def local_mean(values: NDArray[np.float32], mask: NDArray[np.bool_], sigma: float) -> NDArray[np.float32]:
    """Return the Gaussian mean over the pixels of the mask; pixels outside get the mean of mask pixels nearby.

    Wide means are computed at a smaller size.
    """
    weight = mask.astype(np.float32)
    height, width = mask.shape
    step = max(1, int(sigma // 4))
    masked = values * (weight[..., None] if values.ndim == 3 else weight)
    if step > 1:
        size = (max(1, width // step), max(1, height // step))
        masked = cv2.resize(masked, size, interpolation=cv2.INTER_AREA)
        weight = cv2.resize(weight, size, interpolation=cv2.INTER_AREA)
    sums = np.asarray(cv2.GaussianBlur(masked, (0, 0), sigma / step), np.float32)
    weights = np.maximum(np.asarray(cv2.GaussianBlur(weight, (0, 0), sigma / step), np.float32), np.float32(1e-4))
    mean = sums / (weights[..., None] if values.ndim == 3 else weights)
    if step > 1:
        mean = cv2.resize(mean, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(mean, np.float32)


def pixel_features(view: LeafView) -> NDArray[np.float32]:
    """Compute features of the leaf's pixels, float32 (pixels of the mask, features), in the order of ``lab[mask]``."""
    lab, mask = view.lab, view.mask
    median = view.median
    fine = local_mean(lab, mask, _FINE)[mask]
    means = [local_mean(lab, mask, sigma) for sigma in _SCALES]
    local = [local_mean(lab, mask, sigma)[mask] for sigma in _LOCAL]
    smooth = means[0]
    rough = np.sqrt(np.maximum(0, local_mean((lab - smooth) ** 2, mask, 3.0)))[mask]
    spread = np.median(np.abs(lab[mask] - median), axis=0).astype(np.float32)
    inset = np.asarray(cv2.distanceTransform(np.pad(mask, 1).astype(np.uint8), cv2.DIST_L2, 3))[1:-1, 1:-1][mask]
    chroma = np.hypot(fine[:, 1], fine[:, 2])
    columns = [
        fine - median,
        *(mean[mask] - median for mean in means),
        *(fine - mean for mean in local),
        means[1][mask] - local[1],
        rough,
        (chroma - float(np.median(chroma)))[:, None],
        np.degrees(np.arctan2(fine[:, 1], np.maximum(fine[:, 2], 1)))[:, None],
        np.minimum(inset, 30)[:, None],
        np.broadcast_to(median, fine.shape),
        np.broadcast_to(spread, fine.shape),
    ]
    return np.concatenate(columns, axis=1).astype(np.float32)


CLIP = 8.0
"""Bound of the absolute value of standardised features."""
_BLOCK = 65_536
_HINT = "install agrotools again, or choose the back-end rules"
_WHAT = "the lesion model"


class Domain(FrozenModel):
    """Range of the training leaves; the model is not used outside it.

    ``centre``, ``precision``: mean and inverse covariance of :func:`leaf_traits`. ``limit``: largest squared
    Mahalanobis distance of a training leaf. ``board_lightness`` (least, most), ``board_chroma`` (most): limits of the
    background.
    """

    centre: tuple[FiniteFloat, ...]
    precision: tuple[tuple[FiniteFloat, ...], ...]
    limit: FiniteFloat
    board_lightness: tuple[FiniteFloat, FiniteFloat]
    board_chroma: FiniteFloat


DOUBTFUL = (0.15, 0.7)
"""Bounds of the probability of pixels that count as doubtful."""


def doubtful_pct(probability: NDArray[np.float32]) -> float:
    """Return the share of a leaf's pixels that are doubtful, percent."""
    return 100 * float(((probability > DOUBTFUL[0]) & (probability <= DOUBTFUL[1])).mean())


class SeverityInterval(FrozenModel):
    """Conformal interval of a severity: wider on leaves with more doubtful pixels (Lei et al. 2018, locally weighted).

    ``error``: quantile of the absolute errors of leaves that the model had not seen, in units of the doubtful share of
    the leaf plus ``floor``, percent. ``level``: share of such leaves that intervals cover, of each kind of damage.
    ``leaves``: their number.
    """

    level: FiniteFloat
    floor: Annotated[FiniteFloat, Field(gt=0)]
    error: Annotated[FiniteFloat, Field(gt=0)]
    leaves: int

    def half_width(self, doubtful_pct: float) -> float:
        """Return half the width of the interval, points."""
        return self.error * (doubtful_pct + self.floor)


class ModelInfo(FrozenModel):
    """Description of the lesion model."""

    name: str
    features_version: int
    trained_on: str
    licence: str
    threshold: FiniteFloat
    """Probability above which a pixel is lesion, chosen out of fold for the error and the bias of the severity."""
    members: int
    domain: Domain
    metrics: dict[str, float]
    """Metrics on leaves that were not trained on (five-fold over leaves)."""
    interval: SeverityInterval
    weights_sha256: str


@dataclass(frozen=True, eq=False)
class LesionModel:
    """Loaded lesion model, an ensemble of networks.

    ``mean``, ``scale``: (features,) float32. ``members``: layers of each network, (weights, bias) float32.
    """

    info: ModelInfo
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    members: tuple[tuple[tuple[NDArray[np.float32], NDArray[np.float32]], ...], ...]

    def probability(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the probability of lesion of each row, float32 (rows,), as the mean over the members."""
        probabilities = np.empty(len(features), np.float32)
        for start in range(0, len(features), _BLOCK):
            block = np.clip((features[start : start + _BLOCK] - self.mean) / self.scale, -CLIP, CLIP)
            total = np.zeros(len(block), np.float32)
            for layers in self.members:
                values = block
                for number, (weights, bias) in enumerate(layers):
                    values = values @ weights + bias
                    if number < len(layers) - 1:
                        np.maximum(values, 0, out=values)
                total += 1 / (1 + np.exp(-np.clip(values[:, 0], -60, 60)))
            probabilities[start : start + _BLOCK] = total / len(self.members)
        return probabilities

    def level(self, view: LeafView) -> NDArray[np.float32]:
        """Return the probability of lesion of each pixel of the leaf, float32 (pixels of the mask,)."""
        return self.probability(pixel_features(view))


@lru_cache(maxsize=1)
def load_lesion_model() -> LesionModel:
    """Load the shipped model."""
    description, weights = map(shipped_file, MODEL_FILES)
    return read_lesion_model(description, weights)


def read_lesion_model(description: Path, weights: Path) -> LesionModel:
    """Read a model from its two files."""
    info = read_description(description, ModelInfo, what=_WHAT, hint=_HINT)
    if info.features_version != FEATURES_VERSION:
        raise unusable_weights(_WHAT, "was trained for other features", _HINT)
    arrays = checked_arrays(weights, info.weights_sha256, what=f"the weights of {_WHAT}", hint=_HINT)
    try:
        mean, scale = np.asarray(arrays["mean"], np.float32), np.asarray(arrays["scale"], np.float32)
        members = tuple(_layers(arrays, number) for number in range(info.members))
    except (ValueError, KeyError) as error:
        raise unusable_weights(_WHAT, "is damaged", _HINT) from error
    return LesionModel(info, mean, scale, members)


def _layers(arrays: Arrays, member: int) -> tuple[tuple[NDArray[np.float32], NDArray[np.float32]], ...]:
    depth = sum(name.startswith(f"weights_{member}_") for name in arrays)
    return tuple(
        (
            np.asarray(arrays[f"weights_{member}_{layer}"], np.float32),
            np.asarray(arrays[f"bias_{member}_{layer}"], np.float32),
        )
        for layer in range(depth)
    )


def leaf_traits(view: LeafView) -> NDArray[np.float64]:
    """Return the traits of a leaf, float64 (5,).

    They are the median L, a, b, the logarithm of length over breadth (by second moments), and the share of its convex
    hull that the leaf fills.
    """
    rows, columns = np.nonzero(view.mask)
    spread = np.cov(np.stack([columns, rows]).astype(np.float64)) if len(rows) > 1 else np.eye(2)
    small, large = np.linalg.eigvalsh(spread + np.eye(2) / 12)
    solidity = len(rows) / hull_px(view.mask)
    return np.array([*view.median.astype(np.float64), 0.5 * math.log(large / small), solidity])


def is_unlike_training(domain: Domain, view: LeafView, background: Lab | None) -> tuple[str, ...]:
    """Return the ways in which a leaf is unlike the training leaves; empty if it is like them."""
    apart: list[str] = []
    if background is None:
        apart.append("a busy background")
    elif (
        not domain.board_lightness[0] <= background[0] <= domain.board_lightness[1]
        or math.hypot(background[1], background[2]) > domain.board_chroma
    ):
        apart.append("a background of another colour")
    if mahalanobis(domain, leaf_traits(view)) > domain.limit:
        apart.append("a leaf of another colour or shape")
    return tuple(apart)


def mahalanobis(domain: Domain, traits: NDArray[np.float64]) -> float:
    """Return the squared Mahalanobis distance of a leaf's traits from the training leaves."""
    off = traits - np.array(domain.centre)
    return float(off @ np.array(domain.precision) @ off)


SMOOTHING_PX = 1.2
LEAST_SHIFT = 12.0
"""Loss of green, in units of a*, from which tissue is diseased, for leaves with uniform healthy tissue.

This and :data:`SPREADS` minimise the error in severity on the 343 coffee leaves with masks of esgario/lara2018.
"""
SPREADS = 4.0
MOST_SHIFT = 18.0
"""Largest threshold of the loss of green, for leaves whose healthy tissue varies a lot (light, blur)."""
MOST_SHIFT_IN_FIELD = 25.0
"""Largest threshold in the field, where other plants may be included in the leaf."""
_RIM_PX = 5
_MOSTLY_RIM = 0.5
NO_GREEN = -4.0
"""a* of the greenest tissue above which a leaf has no healthy tissue."""
GENERIC_GREEN: Lab = (45.0, -16.0, 26.0)
"""Assumed healthy colour of leaves without healthy tissue: the green of a typical broad leaf in daylight."""


def healthy_colour(view: LeafView) -> Lab:
    """Return the median Lab of the greener half of the leaf (by hue angle, which is independent of shade)."""
    lab = view.lab[view.mask]
    hue = np.arctan2(lab[:, 1], np.maximum(lab[:, 2], 1))
    green = lab[hue <= np.median(hue)]
    lightness, a, b = (float(value) for value in np.median(green, axis=0))
    return lightness, a, b


def loss_of_green(view: LeafView, healthy: Lab) -> tuple[NDArray[np.float32], float]:
    """Return the loss of green of each pixel against the healthy colour, and the scatter of healthy tissue.

    The healthy colour is scaled with lightness, along a line through black, to account for light and shade. Glare is
    bluish and light, and counts as healthy.

    Returns:
        float32 (pixels of the mask,) in units of a*, and a robust standard deviation in the same units.
    """
    lab = local_mean(view.lab, view.mask, SMOOTHING_PX)[view.mask]
    shade = np.clip(lab[:, 0] / max(healthy[0], 5.0), 0.35, 1.15).astype(np.float32)
    shift = lab[:, 1] - np.float32(healthy[1]) * shade
    glare = (lab[:, 0] > healthy[0] + 8) & (lab[:, 2] < 0.75 * healthy[2]) & (lab[:, 1] < 0)
    shift = np.where(glare, np.float32(0), shift)
    even = shift[shift <= np.median(shift)]
    spread = 1.4826 * float(np.median(np.abs(even - np.median(shift)))) if even.size else 0.0
    return np.asarray(shift, np.float32), spread


def lesion_level(view: LeafView, healthy: Lab, most_shift: float = MOST_SHIFT) -> NDArray[np.float32]:
    """Return the lesion level, float32 (pixels of the mask,); 1 and more is diseased at the default sensitivity."""
    shift, spread = loss_of_green(view, healthy)
    return shift / np.float32(min(max(LEAST_SHIFT, SPREADS * spread), most_shift))


def remove_rim(view: LeafView, level: NDArray[np.float32]) -> NDArray[np.float32]:
    """Set the level to 0 in patches along the leaf's outline, which are background if the background is busy.

    A patch that extends further inwards is left unchanged.
    """
    lesion = np.zeros(view.mask.shape, np.uint8)
    lesion[view.mask] = level >= 1
    inset = np.asarray(cv2.distanceTransform(np.pad(view.mask, 1).astype(np.uint8), cv2.DIST_L2, 3))[1:-1, 1:-1]
    count, labels = cv2.connectedComponents(lesion, connectivity=8)
    numbers = np.asarray(labels, np.intp)
    areas = np.maximum(np.bincount(numbers.ravel(), minlength=count), 1)
    share = np.bincount(numbers.ravel(), (inset <= _RIM_PX).ravel(), count) / areas
    at_rim: NDArray[np.bool_] = np.asarray(share > _MOSTLY_RIM)
    at_rim[0] = False
    return np.where(at_rim[numbers][view.mask], np.float32(0), level)
