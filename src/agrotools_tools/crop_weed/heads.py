"""Separation of crop and weeds with a trained head, and the plant features that a head uses.

A head is data in the user's cache: a JSON file that describes its training and an ``.npz`` file of plain arrays.
It is a kernel expansion, ``sum_k weight_k exp(-gamma |x - landmark_k|^2) + bias`` over standardised features of cells
(logistic regression on a Nyström approximation of the Gaussian kernel; Williams and Seeger 2001).

A head is never used on a picture it was trained on: neither on the same file nor on a copy that was re-encoded,
resized, rotated or mirrored. (Crops of training pictures are not recognised.)

The features describe how leaves are cut, how wide they are, and how they are arranged and shaded. All are averages
over the plants within a Gaussian window, at several widths, so that they do not depend on the direction in which a
plant grows and depend little on the light. They are computed at half resolution, on a grid of cells of four pixels.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import FiniteFloat, ValidationError

from agrotools.core import FrozenModel, ToolError
from agrotools.core.files import write_whole
from agrotools_tools.crop_weed.result import head_files, heads_folder
from agrotools_tools.vision.nets import checked_arrays, pack_arrays, unusable_weights
from agrotools_tools.vision.vegetation import disc

Map = NDArray[np.floating[Any]]
"""float32 at run time; NumPy's types do not track the precision."""

FEATURES_VERSION = "1"
"""Version of the features; increase it with any change of them, so that heads of other versions are not used."""
WINDOWS = (3, 6, 12, 24, 48)
"""Widths of the windows, pixels: twice the standard deviations of the Gaussians on the grid of half resolution."""
LEAST_COVER = 0.1
"""Least share of plants in a cell for which features are computed."""

_TEXTURE_WINDOWS = (6, 12, 24)
"""Those of :data:`WINDOWS` in which patterns of texture are averaged over plants."""
_SOIL_WINDOWS = (12, 24, 48)
"""Those of :data:`WINDOWS` in which brightness is averaged over soil."""
_OPENINGS_PX = (1, 2, 3, 4, 6, 9)
"""Radii of the discs whose openings show how thick plants are."""
_GAPS_PX = (2, 4, 8)
"""Radii of the discs that are wider than the dark gaps which they show between leaves."""
_DERIVATIVES_PX = (1, 2, 4)
"""Standard deviations of the Gaussians before brightness is differentiated."""
_WIDEST_PX = 64.0
"""Largest distance from the outline of plants that features tell apart."""
_LEAF_LEVEL = 60
"""Grey value to which an average leaf is scaled for local binary patterns, so that they are independent of exposure."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Features of the cells of a picture.

    ``values``: float32 (cells, features) of the used cells, row by row. ``used``: bool (grid rows, grid columns).
    ``cover``: float32 (grid rows, grid columns), share of plants in each cell.
    """

    values: Map
    used: NDArray[np.bool_]
    cover: Map


def cell_features(pixels: NDArray[np.uint8], mask: NDArray[np.bool_]) -> Cells:
    """Compute the features of every cell with plants. ``pixels``: at least 16 wide and high; leaves are bright in
    the middle channel (green, or near infrared in false colour) and dark in the outer ones. ``mask``: the plants."""
    size = (pixels.shape[1] // 2, pixels.shape[0] // 2)

    def half(image: NDArray[np.generic]) -> Map:
        return np.asarray(
            cv2.resize(np.asarray(image, np.float32), size, interpolation=cv2.INTER_AREA),
            np.float32,
        )

    plants = half(mask) > 0.5
    bright = half(pixels[..., 1])
    dark = half(pixels[..., 0] / np.float32(2) + pixels[..., 2] / np.float32(2))
    bright /= bright[plants].mean() + 1e-6 if plants.any() else 1.0
    dark /= dark[~plants].mean() + 1e-6 if (~plants).any() else 1.0
    pool = _Pool(plants)
    features: list[Map] = []
    darkness = pool.over_plants(dark)
    darkness_squared = pool.over_plants(dark * dark)
    features += darkness + darkness_squared
    features += [
        np.sqrt(np.maximum(b - a * a, 0)) for a, b in zip(darkness, darkness_squared, strict=True)
    ]
    # Distances beyond the widest carry no information on leaves.
    distance = cv2.distanceTransform(plants.astype(np.uint8), cv2.DIST_L2, 5)
    inward = np.minimum(np.asarray(distance, np.float32), np.float32(_WIDEST_PX))
    gaps = [
        cv2.morphologyEx(bright, cv2.MORPH_BLACKHAT, disc(r)) * plants.astype(np.float32)
        for r in _GAPS_PX
    ]
    # openings remove thin parts
    opened = [
        cv2.morphologyEx(plants.astype(np.uint8), cv2.MORPH_OPEN, disc(r)).astype(np.float32)
        for r in _OPENINGS_PX
    ]
    for shape in (inward, inward * inward, *opened, *_fork_maps(plants, inward), *gaps):
        features += pool.over_plants(shape)
    for strength, ridge, double, fourfold in _edges(bright, plants):
        strengths = pool.sums(strength)
        features += pool.shares(strengths) + pool.over_plants(ridge)
        features += pool.alignment(double, strengths) + pool.alignment(fourfold, strengths)
    for pattern in _patterns(bright):
        features += pool.over_plants(pattern, _TEXTURE_WINDOWS)
    features += pool.over_soil(dark) + pool.over_soil(dark * dark)
    used = pool.cover > LEAST_COVER
    return Cells(
        np.stack([feature[used] for feature in features], axis=-1).astype(np.float32),
        used,
        pool.cover,
    )


class _Pool:
    """Averages over plants, or over soil, within Gaussian windows, on the grid of cells."""

    def __init__(self, plants: NDArray[np.bool_]) -> None:
        self.plants = plants.astype(np.float32)
        self.grid = (max(1, plants.shape[1] // 2), max(1, plants.shape[0] // 2))
        self.cover = self.on_grid(self.plants)
        self._plants_near = {
            width: self.blurred(self.cover, width) + np.float32(1e-4) for width in WINDOWS
        }
        self._soil_near = {
            width: self.blurred(1 - self.cover, width) + np.float32(1e-4) for width in _SOIL_WINDOWS
        }

    def on_grid(self, image: Map) -> Map:
        return np.asarray(cv2.resize(image, self.grid, interpolation=cv2.INTER_AREA), np.float32)

    def blurred(self, image: Map, width: int) -> Map:
        return np.asarray(
            cv2.GaussianBlur(image, (0, 0), width / 2, borderType=cv2.BORDER_REFLECT), np.float32
        )

    def over_plants(self, image: Map, windows: tuple[int, ...] = WINDOWS) -> list[Map]:
        return self.shares(self.sums(image * self.plants, windows))

    def sums(self, image: Map, windows: tuple[int, ...] = WINDOWS) -> dict[int, Map]:
        """Sum an image that is 0 outside the plants within each window."""
        cells = self.on_grid(image)
        return {width: self.blurred(cells, width) for width in windows}

    def shares(self, sums: dict[int, Map]) -> list[Map]:
        return [total / self._plants_near[width] for width, total in sums.items()]

    def over_soil(self, image: Map) -> list[Map]:
        cells = self.on_grid(image * (1 - self.plants))
        return [self.blurred(cells, width) / self._soil_near[width] for width in _SOIL_WINDOWS]

    def alignment(self, direction: tuple[Map, Map], strength: dict[int, Map]) -> list[Map]:
        """Return the agreement of directions within each window: 0 if all are equally common, 1 for one direction."""
        first, second = (self.on_grid(part) for part in direction)
        return [
            np.hypot(self.blurred(first, width), self.blurred(second, width)) / (total + 1e-6)
            for width, total in strength.items()
        ]


def _fork_maps(plants: NDArray[np.bool_], inward: Map) -> list[Map]:
    """Return the ends and forks of the leaves' skeleton, and the leaf width along it."""
    from skimage.morphology import skeletonize

    skeleton = skeletonize(plants)
    lines = skeleton.astype(np.float32)
    around = cv2.filter2D(lines, -1, np.ones((3, 3), np.float32)) - lines
    ends = skeleton & (np.rint(around) == 1)
    forks = skeleton & (np.rint(around) >= 3)
    return [ends.astype(np.float32), forks.astype(np.float32), lines * inward]


def _edges(
    bright: Map, plants: NDArray[np.bool_]
) -> Iterator[tuple[Map, Map, tuple[Map, Map], tuple[Map, Map]]]:
    """Yield the derivatives at each scale: gradient magnitude, the smaller curvature, and the direction as vectors of
    twice and four times the angle, so that opposite or perpendicular directions are equal."""
    there = plants.astype(np.float32)

    def slope(image: Map, x: int, y: int) -> Map:
        return np.asarray(cv2.Sobel(image, -1, x, y) / np.float32(8), np.float32)

    for scale in _DERIVATIVES_PX:
        smooth = np.asarray(
            cv2.GaussianBlur(bright, (0, 0), scale, borderType=cv2.BORDER_REFLECT), np.float32
        )
        gx, gy = slope(smooth, 1, 0), slope(smooth, 0, 1)
        strength = np.hypot(gx, gy) + np.float32(1e-9)
        gxx, gxy, gyy = slope(gx, 1, 0), slope(gx, 0, 1), slope(gy, 0, 1)
        mean = (gxx + gyy) / 2
        spread = np.sqrt(((gxx - gyy) / 2) ** 2 + gxy**2)
        double = ((gx * gx - gy * gy) / strength, 2 * gx * gy / strength)
        fourfold = (
            (double[0] ** 2 - double[1] ** 2) / strength,
            2 * double[0] * double[1] / strength,
        )
        yield (
            strength * there,
            np.abs(mean - spread) * there * scale,
            (double[0] * there, double[1] * there),
            (fourfold[0] * there, fourfold[1] * there),
        )


def _patterns(bright: Map) -> list[Map]:
    """Return uniform local binary patterns (Ojala et al. 2002), one map for each of the ten patterns and two radii."""
    from skimage.feature import local_binary_pattern

    maps: list[Map] = []
    smooth = np.asarray(
        cv2.GaussianBlur(bright, (0, 0), 1.5, borderType=cv2.BORDER_REFLECT), np.float32
    )
    for image, radius in ((bright, 1), (smooth, 3)):
        grey = np.minimum(np.clip(image, 0, 4) * _LEAF_LEVEL, 255).astype(np.uint8)
        pattern = local_binary_pattern(grey, 8, radius, "uniform").astype(np.uint8)
        maps += [(pattern == code).astype(np.float32) for code in range(10)]
    return maps


SMOOTHING_CELLS = 6.0
"""Standard deviation, in cells, of the Gaussian that averages the probabilities of neighbouring plants."""
SAME_PICTURE_BITS = 40
"""Largest number of differing bits, of 256, between fingerprints of the same picture."""
CLIP = 4.0
"""Bound of the absolute value of standardised features."""
FALSE_COLOUR_GAP = 4.0
"""Mean difference of red and blue (0 to 255) below which a picture is a two-band composite: both show the same band."""


class TrainingImage(FrozenModel):
    """Training picture of a head: hash of its file, and a fingerprint that is robust to re-encoding."""

    sha256: str
    fingerprint: str


class HeadInfo(FrozenModel):
    """Description of a head, sufficient to decide on its use for a picture and to know its accuracy."""

    name: str
    features_version: str
    source: str
    licence_note: str
    training: tuple[TrainingImage, ...]
    false_colour: bool
    """True if the training pictures are two-band composites."""
    threshold: FiniteFloat
    """Smoothed probability above which plants are crop, chosen by cross-validation within the training pictures."""
    familiar: FiniteFloat
    """Least :func:`familiarity` of a picture that resembles the training pictures."""
    metrics: dict[str, float]
    """Metrics cross-validated within the training pictures; no other picture was used."""
    weights_sha256: str


@dataclass(frozen=True, eq=False)
class Head:
    """Weights of a head, float32: ``mean``, ``scale`` (features,), ``landmarks`` (k, features), ``weights`` (k,)."""

    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    landmarks: NDArray[np.float32]
    weights: NDArray[np.float32]
    gamma: float
    bias: float

    def similarity(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the Gaussian kernel between cells (n, features) and landmarks: (n, k), 0 to 1."""
        return kernel(standardise(values, self.mean, self.scale), self.landmarks, self.gamma)

    def probability(self, similarity: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the probability of crop of each cell, (n,)."""
        return np.asarray(
            1 / (1 + np.exp(-(similarity @ self.weights + np.float32(self.bias)))), np.float32
        )


def list_heads() -> tuple[list[HeadInfo], list[str]]:
    """Return the usable heads in the user's cache, sorted by file name, and the faults of the others."""
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
            faults.append(
                f"{info.name} was trained for features {info.features_version}, not {FEATURES_VERSION}"
            )
        else:
            heads.append(info)
    return heads, faults


def applicable_heads(
    heads: Sequence[HeadInfo], sha256: str, pixels: NDArray[np.uint8]
) -> list[HeadInfo]:
    """Return the heads that have not seen this picture (hash of its file, pixels), sorted by number of training
    pictures (most first) and name."""
    square = _square(pixels)
    looks = [
        _thumbnail_bits(np.rot90(side, quarter))
        for side in (square, square[:, ::-1])
        for quarter in range(4)
    ]

    def is_known(image: TrainingImage) -> bool:
        apart = min(_bit_distance(image.fingerprint, look) for look in looks)
        return image.sha256 == sha256 or apart <= SAME_PICTURE_BITS

    unseen = [head for head in heads if not any(is_known(image) for image in head.training)]
    return sorted(unseen, key=lambda head: (-len(head.training), head.name))


def load_head(info: HeadInfo) -> Head:
    """Load a head; ToolError ``backend_unavailable`` if its weights are missing, damaged or of another hash."""
    what = f"the weights of head {info.name}"
    hint = "train the heads again: agrotools tools packs train crop-weed --data DIR"
    arrays = checked_arrays(
        heads_folder() / f"{info.name}.npz", info.weights_sha256, what=what, hint=hint
    )
    try:
        head = head_of(arrays)
    except (ValueError, KeyError, TypeError) as error:
        raise unusable_weights(what, "are damaged", hint) from error
    fits = (
        head.landmarks.shape == (len(head.weights), len(head.mean))
        and head.mean.shape == head.scale.shape
    )
    if not (fits and head.gamma > 0 and (head.scale > 0).all()):
        raise unusable_weights(what, "are damaged: its arrays do not fit together", hint)
    return head


def head_of(arrays: Mapping[str, NDArray[Any]]) -> Head:
    """Return the head of its saved arrays, named as its fields."""
    names = ("mean", "scale", "landmarks", "weights")
    mean, scale, landmarks, weights = (np.asarray(arrays[name], np.float32) for name in names)
    return Head(mean, scale, landmarks, weights, float(arrays["gamma"]), float(arrays["bias"]))


def save_head(info: HeadInfo, arrays: dict[str, NDArray[np.float32]]) -> HeadInfo:
    """Write a head to the user's cache, description last, and return the description with ``weights_sha256`` set."""
    folder = heads_folder()
    folder.mkdir(parents=True, exist_ok=True)
    content, sha256 = pack_arrays({**arrays})
    saved = info.model_copy(update={"weights_sha256": sha256})
    write_whole(folder / f"{info.name}.npz", content)
    write_whole(folder / f"{info.name}.json", saved.model_dump_json(indent=1).encode())
    return saved


def separate_crop(
    pixels: NDArray[np.uint8], mask: NDArray[np.bool_], head: Head, info: HeadInfo
) -> tuple[NDArray[np.bool_], bool]:
    """Return the crop among the plants in ``mask`` (not empty), and True if the picture resembles the training
    pictures."""
    cells = cell_features(pixels, mask)
    if cells.values.shape[1] != len(head.mean):
        raise ToolError("backend_unavailable", f"head {info.name} expects other features")
    similarity = head.similarity(cells.values)
    smooth = spread_over_plants(cells, head.probability(similarity), (mask.shape[0], mask.shape[1]))
    return mask & (smooth > info.threshold), familiarity(similarity) >= info.familiar


def familiarity(similarity: NDArray[np.float32]) -> float:
    """Return the mean over cells of the similarity to the nearest landmark, 0 to 1; 0 without cells."""
    return float(similarity.max(axis=1).mean()) if len(similarity) else 0.0


def spread_over_plants(
    cells: Cells, probability: NDArray[np.float32], shape: tuple[int, int]
) -> NDArray[np.float32]:
    """Average the probabilities of cells with those of neighbouring plants; return float32 (rows, columns)."""
    weight = np.where(cells.used, cells.cover, np.float32(0)).astype(np.float32)
    values = np.zeros(cells.used.shape, np.float32)
    values[cells.used] = probability
    near = cv2.GaussianBlur(weight, (0, 0), SMOOTHING_CELLS) + np.float32(1e-6)
    smooth = cv2.GaussianBlur(values * weight, (0, 0), SMOOTHING_CELLS) / near
    return np.asarray(
        cv2.resize(smooth, (shape[1], shape[0]), interpolation=cv2.INTER_LINEAR), np.float32
    )


def standardise(
    values: NDArray[np.float32], mean: NDArray[np.float32], scale: NDArray[np.float32]
) -> NDArray[np.float32]:
    return np.clip((values - mean) / scale, -CLIP, CLIP)


def kernel(
    values: NDArray[np.float32], landmarks: NDArray[np.float32], gamma: float
) -> NDArray[np.float32]:
    """Return the Gaussian kernel between rows: (n, features), (k, features) -> (n, k)."""
    squares = (values * values).sum(axis=1)[:, None] + (landmarks * landmarks).sum(axis=1)[None, :]
    apart = np.asarray(values @ landmarks.T, np.float32)
    apart *= -2
    apart += squares
    np.maximum(apart, 0, out=apart)
    apart *= np.float32(-gamma)
    return np.exp(apart, out=apart)


def is_false_colour(pixels: NDArray[np.uint8]) -> bool:
    """Return True if red and blue show the same band, as in composites of red and near infrared."""
    red, blue = pixels[::4, ::4, 0].astype(np.int16), pixels[::4, ::4, 2].astype(np.int16)
    return bool(np.abs(red - blue).mean() < FALSE_COLOUR_GAP)


def fingerprint(pixels: NDArray[np.uint8]) -> str:
    """Return a 16 x 16 difference hash, 64 hexadecimal digits that are robust to re-encoding and resizing."""
    return _thumbnail_bits(_square(pixels))


def _square(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    side = 16 * 17
    small = cv2.resize(pixels, (side, side), interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.float32).mean(axis=2)


def _thumbnail_bits(square: NDArray[np.float32]) -> str:
    small = square.reshape(16, 17, 17, 16).mean(axis=(1, 3))
    return np.packbits(small[:, 1:] > small[:, :-1]).tobytes().hex()


def _bit_distance(first: str, second: str) -> int:
    try:
        return (int(first, 16) ^ int(second, 16)).bit_count() if len(first) == len(second) else 256
    except ValueError:
        return 0  # an unreadable fingerprint may belong to any picture, so the head is not used
