"""The shipped lesion model: a small neural network per pixel of a leaf, as plain arrays.

``data/lesion_model.json`` says what it is, what it was trained on and how well it does; ``data/lesion_model.npz`` holds
the weights; both are written by ``training/train_lesion_model.py``. How it was trained and where it fails is told in
``data/lesion_model.md``.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import FiniteFloat, ValidationError

from agrotools.core import FrozenModel, ToolError
from agrotools.vision.lesions.features import FEATURES_VERSION, LeafView, pixel_features
from agrotools.vision.lesions.leaf import Lab
from agrotools.vision.weights_file import Arrays, checked_arrays, unusable

CLIP = 8.0
"""Standardised features are cut off here."""
_BLOCK = 65_536
_HINT = "install agrotools again, or choose the back-end rules"


class Domain(FrozenModel):
    """What the training leaves looked like: outside of it the model is not used.

    ``centre`` and ``precision`` (inverse covariance) are of :func:`leaf_traits`; ``limit`` is the largest squared
    Mahalanobis distance of a training leaf. ``board_lightness`` (least, most) and ``board_chroma`` (most) are of the
    background.
    """

    centre: tuple[FiniteFloat, ...]
    precision: tuple[tuple[FiniteFloat, ...], ...]
    limit: FiniteFloat
    board_lightness: tuple[FiniteFloat, FiniteFloat]
    board_chroma: FiniteFloat


class ModelInfo(FrozenModel):
    """What the model is."""

    name: str
    features_version: int
    trained_on: str
    licence: str
    threshold: FiniteFloat
    """Lesion where the probability exceeds this: chosen out of fold for the error and the bias of the severity."""
    members: int
    domain: Domain
    metrics: dict[str, float]
    """Of leaves that were not trained on (five-fold over leaves)."""
    weights_sha256: str


@dataclass(frozen=True, eq=False)
class LesionModel:
    """``mean``, ``scale``: (features,) float32; ``members``: for each network its layers, (weights, bias) float32."""

    info: ModelInfo
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    members: tuple[tuple[tuple[NDArray[np.float32], NDArray[np.float32]], ...], ...]

    def probability(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Probability of lesion per row, float32 (rows,): the mean of the members."""
        found = np.empty(len(features), np.float32)
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
            found[start : start + _BLOCK] = total / len(self.members)
        return found

    def level(self, view: LeafView) -> NDArray[np.float32]:
        """Probability of lesion per pixel of the leaf, float32 (pixels of the mask,)."""
        return self.probability(pixel_features(view))


def model_files() -> list[Path]:
    """The files that the model's answers depend on."""
    folder = Path(str(files("agrotools"))) / "data"
    return [folder / "lesion_model.json", folder / "lesion_model.npz"]


@lru_cache(maxsize=1)
def load_lesion_model() -> LesionModel:
    """The shipped model.

    Raises:
        ToolError: ``backend_unavailable`` where its files are missing, or are not those that were shipped.
    """
    description, weights = model_files()
    return read_lesion_model(description, weights)


def read_lesion_model(description: Path, weights: Path) -> LesionModel:
    """A model from its two files.

    Raises:
        ToolError: ``backend_unavailable`` where they are missing, do not belong together or are damaged.
    """
    try:
        info = ModelInfo.model_validate_json(description.read_bytes())
    except (OSError, ValidationError) as error:
        raise _unavailable("cannot be read") from error
    if info.features_version != FEATURES_VERSION:
        raise _unavailable("was trained for other features")
    arrays = checked_arrays(weights, info.weights_sha256, what="the weights of the lesion model", hint=_HINT)
    try:
        mean, scale = np.asarray(arrays["mean"], np.float32), np.asarray(arrays["scale"], np.float32)
        members = tuple(_layers(arrays, number) for number in range(info.members))
    except (ValueError, KeyError) as error:
        raise _unavailable("is damaged") from error
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
    """Median L, a, b, the logarithm of length over breadth (by second moments), and the share of its convex hull that
    a leaf fills, float64 (5,)."""
    import cv2

    rows, columns = np.nonzero(view.mask)
    spread = np.cov(np.stack([columns, rows]).astype(np.float64)) if len(rows) > 1 else np.eye(2)
    small, large = np.linalg.eigvalsh(spread + np.eye(2) / 12)
    outlines, _ = cv2.findContours(view.mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    hull = cv2.convexHull(np.concatenate(list(outlines)))
    around = np.zeros(view.mask.shape, np.uint8)
    cv2.fillConvexPoly(around, hull, 1)
    solidity = len(rows) / max(1, int(around.sum()))
    return np.array([*view.median.astype(np.float64), 0.5 * math.log(large / small), solidity])


def unlike_training(domain: Domain, view: LeafView, background: Lab | None) -> tuple[str, ...]:
    """In what a leaf is unlike those that the model was trained on; empty where it is like them."""
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
    """Squared Mahalanobis distance of a leaf's traits from those of the training leaves."""
    off = traits - np.array(domain.centre)
    return float(off @ np.array(domain.precision) @ off)


def _unavailable(why: str) -> ToolError:
    return unusable("the lesion model", why, _HINT)
