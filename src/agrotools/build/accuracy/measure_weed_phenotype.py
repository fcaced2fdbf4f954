"""Accuracy of measure_weed_phenotype: leaf counts on photographs, and drawn plants of known size."""

import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agrotools.build.accuracy.study import Bench, Columns, Figure, Study
from agrotools.core import ToolError

_FINER = 4
"""Factor of oversampling when plants are drawn, so that their edges are mixed pixels as in a photograph."""
_JPEG_QUALITY = 88


@dataclass(frozen=True, eq=False)
class DrawnPlant:
    """Drawn plant. ``jpeg``: the picture; ``mask``: bool (rows, columns), pixels at least half covered by the plant."""

    jpeg: bytes
    mask: NDArray[np.bool_]
    view: Literal["top", "side"]
    leaves: int
    ground_y_px: int | None
    cm_px: float
    disc_cm: float
    """diameter of the round marker next to the plant, cm"""

    @property
    def area_cm2(self) -> float:
        return float(self.mask.sum()) * self.cm_px**2

    @property
    def height_cm(self) -> float:
        assert self.ground_y_px is not None
        return (self.ground_y_px - int(np.flatnonzero(self.mask.any(axis=1))[0])) * self.cm_px

    @property
    def width_cm(self) -> float:
        return float(np.ptp(np.flatnonzero(self.mask.any(axis=0))) + 1) * self.cm_px


def drawn_plant(seed: int, view: Literal["top", "side"], size: tuple[int, int] = (640, 480)) -> DrawnPlant:
    """Draw a plant with 2 to 9 leaves (some may touch) next to a white disc, with noise, shade and JPEG loss."""
    rng = np.random.default_rng([seed, view == "side"])
    width, height = size
    fine = np.zeros((height * _FINER, width * _FINER), np.uint8)
    leaves = int(rng.integers(2, 10))
    ground = round(height * rng.uniform(0.85, 0.93)) if view == "side" else None
    if ground is None:
        _rosette(fine, leaves, rng)
    else:
        _upright(fine, leaves, ground * _FINER, rng)
    cover = cv2.resize(fine.astype(np.float32) / 255, size, interpolation=cv2.INTER_AREA)
    scene = _background(size, ground, rng)
    radius = float(rng.uniform(16, 26))
    centre = (width - 45.0, 45.0)
    disc = np.zeros((height * _FINER, width * _FINER), np.uint8)
    cv2.circle(disc, tuple(round(v * _FINER) for v in centre), round(radius * _FINER), 255, -1)
    disc_cover = cv2.resize(disc.astype(np.float32) / 255, size, interpolation=cv2.INTER_AREA)[..., None]
    scene = scene * (1 - disc_cover) + 236 * disc_cover
    hue = rng.normal(0, 8, 3)
    green = np.array([70, 135, 45]) + hue + 12 * _smooth_noise(size, 12, rng)[..., None]
    scene = scene * (1 - cover[..., None]) + green * cover[..., None]
    lit = scene * (1 + 0.08 * _smooth_noise(size, 120, rng)[..., None]) + rng.normal(0, 3, scene.shape)
    buffer = io.BytesIO()
    Image.fromarray(np.clip(lit, 0, 255).astype(np.uint8)).save(buffer, "JPEG", quality=_JPEG_QUALITY)
    cm_px = float(rng.uniform(0.02, 0.12))
    diameter = 2 * round(radius * _FINER) / _FINER
    return DrawnPlant(buffer.getvalue(), cover >= 0.5, view, leaves, ground, cm_px, diameter * cm_px)


def _leaf(canvas: NDArray[np.uint8], foot: NDArray[np.float64], angle: float, length: float, width: float) -> None:
    """Draw a lens-shaped blade of the given length on a stalk of a third of it."""
    along = np.array([math.cos(angle), math.sin(angle)])
    across = np.array([-along[1], along[0]])
    start = foot + length / 3 * along
    cv2.line(canvas, _px(foot), _px(start + 0.1 * length * along), 255, max(2 * _FINER, round(0.12 * width)))
    t = np.linspace(0, 1, 60)[:, None]
    swell = width / 2 * np.sin(math.pi * t) ** 0.8
    edge = np.concatenate([start + length * t * along + swell * across,
                           (start + length * t * along - swell * across)[::-1]])  # fmt: skip
    cv2.fillPoly(canvas, [np.round(edge).astype(np.int32)], 255)


def _rosette(canvas: NDArray[np.uint8], leaves: int, rng: np.random.Generator) -> None:
    height, width = canvas.shape
    centre = np.array([width * 0.45, height * 0.52])
    turn = rng.uniform(0, 2 * math.pi)
    for number in range(leaves):
        angle = turn + 2 * math.pi * (number + rng.uniform(-0.12, 0.12)) / leaves
        length = height * rng.uniform(0.17, 0.27)
        broadest = 2 * math.tan(min(0.8, 0.75 * math.pi / leaves)) * 0.75 * length
        _leaf(canvas, centre, angle, length, min(length * rng.uniform(0.35, 0.55), broadest))


def _upright(canvas: NDArray[np.uint8], leaves: int, ground: int, rng: np.random.Generator) -> None:
    height, width = canvas.shape
    foot = np.array([width * 0.45 + rng.uniform(-20, 20) * _FINER, float(ground)])
    stem = height * rng.uniform(0.3, 0.5)
    top = foot + np.array([rng.uniform(-0.08, 0.08) * stem, -stem])
    cv2.line(canvas, _px(foot), _px(top), 255, 5 * _FINER)
    canvas[ground:] = 0
    for number in range(leaves):
        share = 1.0 if number == leaves - 1 else 0.3 + 0.6 * number / max(1, leaves - 1)
        side = -1 if number % 2 else 1
        angle = -math.pi / 2 + (rng.uniform(-0.2, 0.2) if share == 1.0 else side * rng.uniform(0.85, 1.25))
        length = height * rng.uniform(0.16, 0.24)
        spacing = 2.4 * 0.6 * stem / leaves
        _leaf(canvas, foot + share * (top - foot), angle, length, min(length * rng.uniform(0.25, 0.4), spacing))


def _px(point: NDArray[np.float64]) -> tuple[int, int]:
    return round(float(point[0])), round(float(point[1]))


def _background(size: tuple[int, int], ground: int | None, rng: np.random.Generator) -> NDArray[np.float64]:
    width, height = size
    soil = np.array([118, 96, 76]) + 14 * _smooth_noise(size, 3, rng)[..., None] + rng.normal(0, 6, (height, width, 3))
    if ground is None:
        return soil
    wall = np.array([188, 186, 182]) + 5 * _smooth_noise(size, 60, rng)[..., None]
    return np.where(np.arange(height)[:, None, None] < ground, wall, soil)


def _smooth_noise(size: tuple[int, int], grain_px: int, rng: np.random.Generator) -> NDArray[np.float64]:
    width, height = size
    coarse = rng.normal(size=(height // grain_px + 2, width // grain_px + 2))
    return np.asarray(cv2.resize(coarse, size, interpolation=cv2.INTER_CUBIC), np.float64)


DRAWN = 24
"""Number of plants of each view. Their seeds were not used during development of the tool."""
_FIRST_SEED = 1000


def _leaf_count(bench: Bench) -> list[Figure]:
    columns = Columns()
    for item in bench.items():
        result = bench.call(image=bench.folder / item["image"], view="top")
        bias = result.plants[0].leaf_count_est - item["count"]
        columns.add(bias=bias, error=abs(bias))
    hidden = "central leaflets and leaves on top of each other are not seen"
    return [
        columns.mean_error("leaves, mean absolute error", "error", goal=1.0),
        columns.mean("leaves, mean error", "bias", note=hidden),
    ]


def _plants(bench: Bench) -> Iterator[tuple[DrawnPlant, Path]]:
    for seed in range(_FIRST_SEED, _FIRST_SEED + DRAWN):
        for view in ("side", "top"):
            plant = drawn_plant(seed, view)
            path = bench.scratch / f"{view}_{seed}.jpg"
            path.write_bytes(plant.jpeg)
            yield plant, path


def _drawn_plants(bench: Bench) -> list[Figure]:
    columns = Columns()
    for plant, path in _plants(bench):
        result = bench.call(image=path, view=plant.view, scale_cm_px=plant.cm_px, ground_y_px=plant.ground_y_px)
        with Image.open(bench.artifact_path(result.mask)) as opened:
            mask = np.asarray(opened) > 0
        largest = result.plants[0]
        columns.add(
            mask=(mask & plant.mask).sum() / (mask | plant.mask).sum(),
            area=100 * abs(largest.area_cm2 / plant.area_cm2 - 1),
            height=100 * abs(largest.height_cm / plant.height_cm - 1) if plant.view == "side" else None,
            width=100 * abs(largest.width_cm / plant.width_cm - 1),
            leaves=abs(largest.leaf_count_est - plant.leaves),
        )
    return [
        columns.mean("plant mask, IoU", "mask", goal=0.95),
        columns.median_error("area, median absolute error, %", "area", goal=3.0),
        columns.median_error("height, median absolute error, %", "height", goal=2.0),
        columns.median_error("width, median absolute error, %", "width", goal=2.0),
        columns.mean_error("leaves, mean absolute error", "leaves", goal=1.0),
    ]


def _markers(bench: Bench) -> list[Figure]:
    columns = Columns()
    for plant, path in _plants(bench):
        marker = {"type": "circle", "size_cm": plant.disc_cm}
        try:
            result = bench.call(image=path, view=plant.view, scale_marker=marker)
        except ToolError:
            columns.add(found=0.0)
        else:
            columns.add(found=100.0, error=100 * abs(result.scale_cm_px / plant.cm_px - 1))
    return [
        columns.mean("round marker, found, %", "found", goal=95.0),
        columns.median_error("scale by round marker, median absolute error, %", "error", goal=2.0),
    ]


STUDIES = (
    Study("measure_weed_phenotype", "leaf_count", _leaf_count),
    Study("measure_weed_phenotype", "drawn plants", _drawn_plants, needs_folder=False),
    Study("measure_weed_phenotype", "drawn plants with a disc", _markers, needs_folder=False),
)
