"""Features by which crop and weeds differ: how leaves are cut, how wide, how they are arranged and shaded.

All are averages over the plants within a Gaussian window, at several widths, so that they depend neither on the
direction in which a plant grows nor, much, on the light. Computed at half resolution, on a grid of cells of four
pixels.
"""

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Map = NDArray[np.floating[Any]]
"""float32 in effect; NumPy's types do not keep track of it."""

FEATURES_VERSION = "1"
"""To be raised with any change of the features: heads of another version are not used."""
CELL_PX = 4
WINDOWS = (3, 6, 12, 24, 48)
"""Standard deviations of the windows, in pixels at half resolution."""
LEAST_COVER = 0.1
"""Share of a cell that must be plants for the cell to be looked at."""

_TEXTURE_WINDOWS = (6, 12, 24)
_SOIL_WINDOWS = (12, 24, 48)
_OPENINGS = (1, 2, 3, 4, 6, 9)
_GAPS = (2, 4, 8)
_DERIVATIVES = (1, 2, 4)
_WIDEST = 64.0
_LEAF_LEVEL = 60
"""Grey value of an average leaf where patterns are read, so that they do not depend on exposure."""


@dataclass(frozen=True, eq=False)
class Cells:
    """``values``: float32 (cells, features) of the cells where ``used`` (bool, grid rows, grid columns), row by row;
    ``cover``: float32 (grid rows, grid columns), share of plants in each cell."""

    values: Map
    used: NDArray[np.bool_]
    cover: Map


def cell_features(pixels: NDArray[np.uint8], mask: NDArray[np.bool_]) -> Cells:
    """Features of every cell with plants.

    Args:
        pixels: uint8 (rows, columns, 3). The middle channel is the one in which leaves are bright (green, or near
            infrared in false colour), the outer ones those in which they are dark.
        mask: bool (rows, columns), the plants. The picture is at least 16 pixels wide and high.
    """
    size = (pixels.shape[1] // 2, pixels.shape[0] // 2)

    def half(image: NDArray[np.generic]) -> Map:
        return np.asarray(cv2.resize(np.asarray(image, np.float32), size, interpolation=cv2.INTER_AREA), np.float32)

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
    features += [np.sqrt(np.maximum(b - a * a, 0)) for a, b in zip(darkness, darkness_squared, strict=True)]
    inward = _inward(plants)
    for shape in (*_width_maps(plants, inward), *_fork_maps(plants, inward), *_gap_maps(bright, plants)):
        features += pool.over_plants(shape)
    for edge in _edges(bright, plants):
        strength = pool.sums(edge.strength)
        features += pool.shares(strength) + pool.over_plants(edge.ridge)
        features += pool.alignment(edge.double, strength) + pool.alignment(edge.fourfold, strength)
    for pattern in _patterns(bright):
        features += pool.over_plants(pattern, _TEXTURE_WINDOWS)
    features += pool.over_soil(dark) + pool.over_soil(dark * dark)
    used = pool.cover > LEAST_COVER
    return Cells(np.stack([feature[used] for feature in features], axis=-1).astype(np.float32), used, pool.cover)


@dataclass(frozen=True, eq=False)
class _Edge:
    """Derivatives at one scale: their strength, the weaker curvature, and direction as vectors of twice and four times
    the angle (so that opposite, or perpendicular, directions are the same)."""

    strength: Map
    ridge: Map
    double: tuple[Map, Map]
    fourfold: tuple[Map, Map]


class _Pool:
    """Averages over plants, or over soil, within Gaussian windows, on the grid of cells."""

    def __init__(self, plants: NDArray[np.bool_]) -> None:
        self.plants = plants.astype(np.float32)
        self.grid = (max(1, plants.shape[1] // 2), max(1, plants.shape[0] // 2))
        self.cover = self.on_grid(self.plants)
        self._plants_near = {width: self.blurred(self.cover, width) + np.float32(1e-4) for width in WINDOWS}
        self._soil_near = {width: self.blurred(1 - self.cover, width) + np.float32(1e-4) for width in _SOIL_WINDOWS}

    def on_grid(self, image: Map) -> Map:
        return np.asarray(cv2.resize(image, self.grid, interpolation=cv2.INTER_AREA), np.float32)

    def blurred(self, image: Map, width: int) -> Map:
        return np.asarray(cv2.GaussianBlur(image, (0, 0), width / 2, borderType=cv2.BORDER_REFLECT), np.float32)

    def over_plants(self, image: Map, windows: tuple[int, ...] = WINDOWS) -> list[Map]:
        return self.shares(self.sums(image * self.plants, windows))

    def sums(self, image: Map, windows: tuple[int, ...] = WINDOWS) -> dict[int, Map]:
        """An image that is 0 beside the plants, added up within each window."""
        cells = self.on_grid(image)
        return {width: self.blurred(cells, width) for width in windows}

    def shares(self, sums: dict[int, Map]) -> list[Map]:
        return [total / self._plants_near[width] for width, total in sums.items()]

    def over_soil(self, image: Map) -> list[Map]:
        cells = self.on_grid(image * (1 - self.plants))
        return [self.blurred(cells, width) / self._soil_near[width] for width in _SOIL_WINDOWS]

    def alignment(self, direction: tuple[Map, Map], strength: dict[int, Map]) -> list[Map]:
        """Agreement of directions within the window: 0 for all directions alike, 1 for one direction."""
        first, second = (self.on_grid(part) for part in direction)
        return [
            np.hypot(self.blurred(first, width), self.blurred(second, width)) / (total + 1e-6)
            for width, total in strength.items()
        ]


def _inward(plants: NDArray[np.bool_]) -> Map:
    """Distance to the edge of the leaf, cut off where it says nothing of leaves any more."""
    distance = cv2.distanceTransform(plants.astype(np.uint8), cv2.DIST_L2, 5)
    return np.minimum(np.asarray(distance, np.float32), np.float32(_WIDEST))


def _width_maps(plants: NDArray[np.bool_], inward: Map) -> list[Map]:
    """Distance to the edge of the leaf, its square, and what is left of the plants when thin parts are opened away."""
    area = plants.astype(np.uint8)
    opened = [np.asarray(cv2.morphologyEx(area, cv2.MORPH_OPEN, _disc(radius)), np.float32) for radius in _OPENINGS]
    return [inward, inward * inward, *opened]


def _fork_maps(plants: NDArray[np.bool_], inward: Map) -> list[Map]:
    """Ends and forks of the leaves' skeleton, and leaf width along it."""
    from skimage.morphology import skeletonize

    skeleton = skeletonize(plants)
    lines = skeleton.astype(np.float32)
    around = cv2.filter2D(lines, -1, np.ones((3, 3), np.float32)) - lines
    ends = skeleton & (np.rint(around) == 1)
    forks = skeleton & (np.rint(around) >= 3)
    return [ends.astype(np.float32), forks.astype(np.float32), lines * inward]


def _gap_maps(bright: Map, plants: NDArray[np.bool_]) -> list[Map]:
    """Dark gaps and veins within leaves, by width."""
    there = plants.astype(np.float32)
    return [np.asarray(cv2.morphologyEx(bright, cv2.MORPH_BLACKHAT, _disc(r)), np.float32) * there for r in _GAPS]


def _edges(bright: Map, plants: NDArray[np.bool_]) -> list[_Edge]:
    there = plants.astype(np.float32)

    def slope(image: Map, x: int, y: int) -> Map:
        return np.asarray(cv2.Sobel(image, -1, x, y) / np.float32(8), np.float32)

    edges: list[_Edge] = []
    for scale in _DERIVATIVES:
        smooth = np.asarray(cv2.GaussianBlur(bright, (0, 0), scale, borderType=cv2.BORDER_REFLECT), np.float32)
        gx, gy = slope(smooth, 1, 0), slope(smooth, 0, 1)
        strength = np.hypot(gx, gy) + np.float32(1e-9)
        gxx, gxy, gyy = slope(gx, 1, 0), slope(gx, 0, 1), slope(gy, 0, 1)
        mean = (gxx + gyy) / 2
        spread = np.sqrt(((gxx - gyy) / 2) ** 2 + gxy**2)
        double = ((gx * gx - gy * gy) / strength, 2 * gx * gy / strength)
        fourfold = ((double[0] ** 2 - double[1] ** 2) / strength, 2 * double[0] * double[1] / strength)
        edges.append(
            _Edge(
                strength=strength * there,
                ridge=np.abs(mean - spread) * there * scale,
                double=(double[0] * there, double[1] * there),
                fourfold=(fourfold[0] * there, fourfold[1] * there),
            )
        )
    return edges


def _patterns(bright: Map) -> list[Map]:
    """Uniform local binary patterns (Ojala et al. 2002) with eight neighbours, at radius 1 and, smoothed, at radius 3:
    one map for each of the ten patterns."""
    from skimage.feature import local_binary_pattern

    maps: list[Map] = []
    smooth = np.asarray(cv2.GaussianBlur(bright, (0, 0), 1.5, borderType=cv2.BORDER_REFLECT), np.float32)
    for image, radius in ((bright, 1), (smooth, 3)):
        grey = np.minimum(np.clip(image, 0, 4) * _LEAF_LEVEL, 255).astype(np.uint8)
        pattern = local_binary_pattern(grey, 8, radius, "uniform").astype(np.uint8)
        maps += [(pattern == code).astype(np.float32) for code in range(10)]
    return maps


def _disc(radius: int) -> NDArray[np.uint8]:
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1)), np.uint8)
