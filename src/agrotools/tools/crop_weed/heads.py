"""Separation of crop and weeds with a trained head.

A head is data: a JSON file that says what it was trained on and an ``.npz`` of plain arrays, both in the user's cache.
It is a kernel expansion, ``sum_k weight_k exp(-gamma |x - landmark_k|^2) + bias`` over standardised features of cells
(logistic regression on a Nyström approximation of the Gaussian kernel; Williams and Seeger 2001).

A head is never used on a picture it was trained on: not on the same file, and not on a copy that was encoded anew,
resized, turned or mirrored. (A part cut out of a training picture is not recognised.)
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import FiniteFloat, ValidationError

from agrotools.core import FrozenModel, ToolError
from agrotools.tools.crop_weed.measure_crop_weed_area import head_files, heads_folder
from agrotools.vision.nets import checked_arrays, pack_arrays, unusable_weights

if TYPE_CHECKING:
    from agrotools.tools.crop_weed.features import Cells

SMOOTHING_CELLS = 6.0
"""Standard deviation of the Gaussian, in cells, by which neighbouring plants share what they look like."""
SAME_PICTURE_BITS = 40
"""Fingerprints of 256 bits that differ in at most this many are taken for one picture."""
CLIP = 4.0
"""Standardised features are cut off here."""
FALSE_COLOUR_GAP = 4.0
"""Mean difference of red and blue (0..255) below which a picture is a two-band composite: both show the same band."""


class TrainingImage(FrozenModel):
    """A picture a head has seen: hash of its file, and a fingerprint that survives re-encoding."""

    sha256: str
    fingerprint: str


class HeadInfo(FrozenModel):
    """Description of a head: enough to decide on its use on a picture and to know its accuracy."""

    name: str
    features_version: str
    source: str
    licence_note: str
    training: tuple[TrainingImage, ...]
    false_colour: bool
    """True if the training pictures are two-band composites."""
    threshold: FiniteFloat
    """Crop where the smoothed probability exceeds this; chosen by cross-validation within the training pictures."""
    familiar: FiniteFloat
    """Least familiarity (see :func:`Head.familiarity`) of a picture for it to count as like the training pictures."""
    metrics: dict[str, float]
    """Cross-validated within the training pictures: an estimate made without any other picture."""
    weights_sha256: str


@dataclass(frozen=True, eq=False)
class Head:
    """A loaded head. ``mean``, ``scale``: (features,); ``landmarks``: (k, features); ``weights``: (k,); all float32."""

    info: HeadInfo
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    landmarks: NDArray[np.float32]
    weights: NDArray[np.float32]
    gamma: float
    bias: float

    def similarity(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Gaussian kernel between cells (n, features) and landmarks: (n, k), 0..1."""
        return kernel(standardise(values, self.mean, self.scale), self.landmarks, self.gamma)

    def probability(self, similarity: NDArray[np.float32]) -> NDArray[np.float32]:
        """Probability of crop per cell, (n,)."""
        return np.asarray(1 / (1 + np.exp(-(similarity @ self.weights + np.float32(self.bias)))), np.float32)


@dataclass(frozen=True, eq=False)
class CropWeed:
    """``crop``: bool (rows, columns), a part of the vegetation mask; ``familiarity``: how like the training pictures
    this one is, against ``head.familiar``."""

    crop: NDArray[np.bool_]
    head: HeadInfo
    familiarity: float

    @property
    def is_familiar(self) -> bool:
        return self.familiarity >= self.head.familiar


def list_heads() -> tuple[list[HeadInfo], list[str]]:
    """The heads in the user's cache by name, and what is wrong with those that cannot be used."""
    from agrotools.tools.crop_weed.features import FEATURES_VERSION

    heads: list[HeadInfo] = []
    faults: list[str] = []
    for path in head_files():
        if path.suffix != ".json":
            continue
        try:
            info = HeadInfo.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            faults.append(f"{path.name} is no description of a head")
            continue
        if info.name != path.stem:
            faults.append(f"{path.name} describes a head of another name ({info.name})")
        elif info.features_version != FEATURES_VERSION:
            faults.append(f"{info.name} was trained for features {info.features_version}, not {FEATURES_VERSION}")
        else:
            heads.append(info)
    return heads, faults


def applicable_heads(heads: Sequence[HeadInfo], sha256: str, pixels: NDArray[np.uint8]) -> list[HeadInfo]:
    """Heads that have not seen this picture, the one with the most training pictures first, then by name.

    Args:
        sha256: hash of the picture's file.
        pixels: the picture, uint8 (rows, columns, 3).
    """
    square = _square(pixels)
    looks = [_thumbnail_bits(np.rot90(side, quarter)) for side in (square, square[:, ::-1]) for quarter in range(4)]

    def is_known(image: TrainingImage) -> bool:
        apart = min(_bit_distance(image.fingerprint, look) for look in looks)
        return image.sha256 == sha256 or apart <= SAME_PICTURE_BITS

    unseen = [head for head in heads if not any(is_known(image) for image in head.training)]
    return sorted(unseen, key=lambda head: (-len(head.training), head.name))


def load_head(info: HeadInfo) -> Head:
    """The weights of a head.

    Raises:
        ToolError: ``backend_unavailable`` where they are missing, are not those the head was saved with, or do not fit.
    """
    what, hint = f"the weights of head {info.name}", "train the heads again: agrotools packs train crop-weed --data DIR"
    arrays = checked_arrays(heads_folder() / f"{info.name}.npz", info.weights_sha256, what=what, hint=hint)
    try:
        mean, scale, landmarks, weights = (
            np.asarray(arrays[name], np.float32) for name in ("mean", "scale", "landmarks", "weights")
        )
        gamma, bias = float(arrays["gamma"]), float(arrays["bias"])
    except (ValueError, KeyError, TypeError) as error:
        raise unusable_weights(what, "are damaged", hint) from error
    fits = landmarks.shape == (len(weights), len(mean)) and mean.shape == scale.shape and gamma > 0
    if not (fits and (scale > 0).all()):
        raise unusable_weights(what, "are damaged: its arrays do not fit together", hint)
    return Head(info, mean, scale, landmarks, weights, gamma, bias)


def save_head(info: HeadInfo, arrays: dict[str, NDArray[np.float32]]) -> HeadInfo:
    """Write a head to the user's cache; ``info.weights_sha256`` is filled in. The description is written last."""
    folder = heads_folder()
    folder.mkdir(parents=True, exist_ok=True)
    content, sha256 = pack_arrays({**arrays})
    saved = info.model_copy(update={"weights_sha256": sha256})
    for path, data in (
        (folder / f"{info.name}.npz", content),
        (folder / f"{info.name}.json", saved.model_dump_json(indent=1).encode()),
    ):
        temporary = path.with_name(f".{path.name}.part")
        temporary.write_bytes(data)
        temporary.replace(path)
    return saved


def separate_crop(pixels: NDArray[np.uint8], mask: NDArray[np.bool_], head: Head) -> CropWeed:
    """Crop among the plants in ``mask``, by ``head``.

    Args:
        pixels: uint8 (rows, columns, 3) in the colours the head was trained on.
        mask: bool (rows, columns), the plants; not empty.

    Raises:
        ToolError: ``backend_unavailable`` where the head expects other features than these.
    """
    from agrotools.tools.crop_weed.features import cell_features

    cells = cell_features(pixels, mask)
    if cells.values.shape[1] != len(head.mean):
        raise ToolError("backend_unavailable", f"head {head.info.name} expects other features")
    similarity = head.similarity(cells.values)
    smooth = spread_over_plants(cells, head.probability(similarity), (mask.shape[0], mask.shape[1]))
    return CropWeed(mask & (smooth > head.info.threshold), head.info, familiarity(similarity))


def familiarity(similarity: NDArray[np.float32]) -> float:
    """Mean over cells of the similarity to the nearest landmark, 0..1; 0 without any cell."""
    return float(similarity.max(axis=1).mean()) if len(similarity) else 0.0


def spread_over_plants(cells: "Cells", probability: NDArray[np.float32], shape: tuple[int, int]) -> NDArray[np.float32]:
    """Probabilities of cells, averaged with those of neighbouring plants, as float32 (rows, columns)."""
    weight = np.where(cells.used, cells.cover, np.float32(0)).astype(np.float32)
    values = np.zeros(cells.used.shape, np.float32)
    values[cells.used] = probability
    near = cv2.GaussianBlur(weight, (0, 0), SMOOTHING_CELLS) + np.float32(1e-6)
    smooth = cv2.GaussianBlur(values * weight, (0, 0), SMOOTHING_CELLS) / near
    return np.asarray(cv2.resize(smooth, (shape[1], shape[0]), interpolation=cv2.INTER_LINEAR), np.float32)


def standardise(
    values: NDArray[np.float32], mean: NDArray[np.float32], scale: NDArray[np.float32]
) -> NDArray[np.float32]:
    return np.clip((values - mean) / scale, -CLIP, CLIP)


def kernel(values: NDArray[np.float32], landmarks: NDArray[np.float32], gamma: float) -> NDArray[np.float32]:
    """Gaussian kernel between rows: (n, features), (k, features) -> (n, k)."""
    squares = (values * values).sum(axis=1)[:, None] + (landmarks * landmarks).sum(axis=1)[None, :]
    apart = np.asarray(values @ landmarks.T, np.float32)
    apart *= -2
    apart += squares
    np.maximum(apart, 0, out=apart)
    apart *= np.float32(-gamma)
    return np.exp(apart, out=apart)


def is_false_colour(pixels: NDArray[np.uint8]) -> bool:
    """True if red and blue show the same band, as in composites of red and near infrared."""
    red, blue = pixels[::4, ::4, 0].astype(np.int16), pixels[::4, ::4, 2].astype(np.int16)
    return bool(np.abs(red - blue).mean() < FALSE_COLOUR_GAP)


def fingerprint(pixels: NDArray[np.uint8]) -> str:
    """64 hexadecimal digits that change little when a picture is re-encoded or resized (difference hash, 16 x 16)."""
    return _thumbnail_bits(_square(pixels))


def _square(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    side = 16 * 17
    small = cv2.resize(pixels, (side, side), interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.float32).mean(axis=2)


def _thumbnail_bits(square: NDArray[np.float32]) -> str:
    small = square.reshape(16, 17, 17, 16).mean(axis=(1, 3))
    return np.packbits(small[:, 1:] > small[:, :-1]).tobytes().hex()


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _bit_distance(first: str, second: str) -> int:
    try:
        return (int(first, 16) ^ int(second, 16)).bit_count() if len(first) == len(second) else 256
    except ValueError:
        return 0  # an unreadable fingerprint could be anything's: the head is not used
