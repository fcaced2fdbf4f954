"""Crop rows with weeds, drawn from nothing: a scene whose class of every pixel is known exactly.

Marked synthetic wherever it is used. Not a stand-in for photographs: it tests whether an agent uses its tools well on
inputs that nobody can have seen in training.
"""

import zlib
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.construct.scenes.camera import band_raster, colour_photo
from agrotools.construct.scenes.canvas import Canvas, Leaf, Sun
from agrotools.construct.scenes.noise import fractal_field, smooth_field
from agrotools.construct.scenes.plants import CROPS, WEEDS, Habit, Species, paint_plant
from agrotools.construct.scenes.soil import paint_soil
from agrotools.construct.scenes.spectra import BANDS, DEAD_LEAF, SOILS, STRAW, STRAW_WEATHERED
from agrotools.construct.scenes.threads import one_thread

ROWS_PX, COLUMNS_PX = 480, 640
SOIL, CROP, WEED = 0, 1, 2
CLASSES = {SOIL: "soil", CROP: "crop", WEED: "weed"}
Difficulty = Literal[0, 1, 2, 3]


@dataclass(frozen=True)
class _Level:
    """What a difficulty means. Ranges are (from, to)."""

    weed_pct: tuple[float, float]
    in_row: float
    """Share of weeds that stand in the rows instead of between them."""
    weed_growth: tuple[float, float]
    """Weed crown radius within its species' range, 0..1."""
    gaps: float
    wander_m: float
    tilt: float
    roughness: tuple[float, float]
    straws: tuple[int, int]
    darkness: tuple[float, float]
    noise: float
    band_shift_px: float
    yellowing: float
    cloud: float
    """Strength of uneven light over the scene."""


_LEVELS: tuple[_Level, ...] = (
    _Level((1.0, 5.0), 0.05, (0.0, 0.6), 0.04, 0.004, 0.10, (0.1, 0.5), (0, 30), (0.30, 0.45), 0.006, 0.0, 0.0, 0.05),
    _Level((1.5, 7.0), 0.15, (0.0, 0.8), 0.08, 0.010, 0.60, (0.2, 0.7), (10, 70), (0.40, 0.58), 0.010, 0.5, 0.0, 0.12),
    _Level(
        (2.5, 10.0), 0.30, (0.1, 1.0), 0.14, 0.020, 1.57, (0.3, 0.9), (20, 130), (0.48, 0.66), 0.014, 0.8, 0.06, 0.2
    ),
    _Level(
        (3.0, 12.0), 0.45, (0.2, 1.25), 0.24, 0.030, 1.57, (0.4, 1.0), (40, 220), (0.52, 0.70), 0.020, 1.0, 0.15, 0.35
    ),
)


@dataclass(frozen=True, eq=False)
class Scene:
    """A drawn scene.

    ``images``: ``rgb`` uint8 (480, 640, 3) natural colours; ``bands`` uint16 (5, 480, 640) reflectance x 10,000 in the
    order of ``sidecar["bands"]``. ``masks``: ``classes`` uint8 (0 soil, 1 crop, 2 weed) and ``plants`` int32 (0 none).
    ``truth``: pixel counts and percentages of the class mask, and what was planted.
    """

    images: dict[str, NDArray[np.uint8] | NDArray[np.uint16]]
    sidecar: dict[str, object]
    truth: dict[str, object]
    masks: dict[str, NDArray[np.uint8] | NDArray[np.int32]]


@dataclass(frozen=True)
class _Field:
    """Geometry of the rows: direction, spacing and first offset in pixels."""

    angle: float
    spacing: float
    offset: float

    def point(self, along: float, across: float) -> tuple[float, float]:
        c, s = np.cos(self.angle), np.sin(self.angle)
        return COLUMNS_PX / 2 + along * c - across * s, ROWS_PX / 2 + along * s + across * c

    def across(self, x: float, y: float) -> float:
        """Distance to the nearest row line, in row spacings (0 on it, 0.5 midway)."""
        c, s = np.cos(self.angle), np.sin(self.angle)
        d = ((y - ROWS_PX / 2) * c - (x - COLUMNS_PX / 2) * s - self.offset) / self.spacing
        return abs(d - round(d))


def make_scene(seed: int, difficulty: Difficulty = 1) -> Scene:
    """Draw one scene of 640 x 480 px (1.9 x 1.4 m at 3 mm a pixel). Same arguments, same scene.

    Raises:
        ValueError: ``difficulty`` is not 0, 1, 2 or 3, or ``seed`` is negative.
    """
    if difficulty not in (0, 1, 2, 3):
        raise ValueError(f"difficulty is {difficulty}; it is one of 0, 1, 2, 3")
    if seed < 0:
        raise ValueError(f"seed is {seed}; it is 0 or more")
    with one_thread():
        return _draw(seed, difficulty)


def _draw(seed: int, difficulty: Difficulty) -> Scene:
    rng = np.random.default_rng([seed, difficulty, zlib.crc32(b"rows")])
    level = _LEVELS[difficulty]
    gsd_m = 0.003
    fall = rng.uniform(0, 2 * np.pi)
    sun = Sun(
        float(np.cos(fall)), float(np.sin(fall)), float(rng.uniform(0.35, 1.1)), float(rng.uniform(*level.darkness))
    )
    soil = SOILS[int(rng.integers(len(SOILS)))]
    ground = paint_soil(rng, ROWS_PX, COLUMNS_PX, soil, sun, float(rng.uniform(*level.roughness)))
    canvas = Canvas(ground, sun, fractal_field(rng, ROWS_PX, COLUMNS_PX, 12, 3, 0.8))
    _litter(rng, canvas, int(rng.integers(*level.straws)))

    quarter = rng.integers(2) * np.pi / 2
    spacing_m = float(rng.choice([0.38, 0.45, 0.50]))
    field = _Field(float(quarter + rng.uniform(-level.tilt, level.tilt)), spacing_m / gsd_m, 0.0)
    field = _Field(field.angle, field.spacing, float(rng.uniform(0, field.spacing)))
    crop = CROPS[str(rng.choice(list(CROPS)))]
    weed_pct = float(rng.uniform(*level.weed_pct))
    # Weeds that came up before the crop stand below its leaves, the later ones above them.
    early = _plant_weeds(rng, canvas, field, level, 0.5 * weed_pct, gsd_m, first=1)
    crops = _plant_crop(rng, canvas, field, crop, level, gsd_m, first=1 + early)
    late = _plant_weeds(rng, canvas, field, level, weed_pct, gsd_m, first=1 + early + crops)
    _uneven_light(rng, canvas, level.cloud)

    images: dict[str, NDArray[np.uint8] | NDArray[np.uint16]] = {
        "rgb": colour_photo(rng, canvas.bands, level.noise),
        "bands": band_raster(rng, canvas.bands, 0.35 * level.noise, level.band_shift_px),
    }
    sidecar: dict[str, object] = {
        "bands": list(BANDS),
        "gsd_m": gsd_m,
        "row_spacing_m": spacing_m,
        "classes": {str(k): v for k, v in CLASSES.items()},
    }
    truth = class_counts(canvas.classes) | {"crop": crop.name, "crop_plants": crops, "weed_plants": early + late}
    return Scene(images, sidecar, truth, {"classes": canvas.classes, "plants": canvas.plants})


def class_counts(classes: NDArray[np.uint8]) -> dict[str, object]:
    """Pixel counts of soil, crop and weed in a class mask, and their percentages of all pixels."""
    total = classes.size
    soil, crop, weed = (int(n) for n in np.bincount(classes.ravel(), minlength=3)[:3])
    return {
        "soil_px": soil,
        "crop_px": crop,
        "weed_px": weed,
        "soil_pct": 100.0 * soil / total,
        "crop_pct": 100.0 * crop / total,
        "weed_pct": 100.0 * weed / total,
    }


def _litter(rng: np.random.Generator, canvas: Canvas, straws: int) -> None:
    """Straw and dead leaves of the previous crop."""
    taper = np.tile(np.interp(np.linspace(0, 1, 12), [0, 0.1, 0.7, 1], [0.7, 1.0, 0.9, 0.4]), (2, 1))
    for _ in range(straws):
        length = float(min(rng.pareto(1.6) * 6.0 + 3.0, 75.0))
        x, y = rng.uniform(-20, COLUMNS_PX + 20), rng.uniform(-20, ROWS_PX + 20)
        leaf = Leaf(
            x, y, rng.uniform(0, 2 * np.pi), length, rng.uniform(0.35, 1.15), taper, rng.normal(0, 0.07),
            rng.uniform(0.5, 1.8), veins=0.0, fold=0.12, brightness=rng.uniform(0.45, 1.0),
        )  # fmt: skip
        worn = rng.beta(2.0, 1.2)
        canvas.paint(leaf, (STRAW * (1 - worn) + STRAW_WEATHERED * worn).astype(np.float32), SOIL, 0)
    for _ in range(int(rng.integers(0, 4 + straws // 12))):
        size = rng.uniform(5, 14)
        shape = np.sin(np.linspace(0, np.pi, 12)) ** 0.7
        widths = np.stack([shape * rng.uniform(0.7, 1.1, 12), shape * rng.uniform(0.7, 1.1, 12)])
        x, y = rng.uniform(0, COLUMNS_PX), rng.uniform(0, ROWS_PX)
        leaf = Leaf(x, y, rng.uniform(0, 2 * np.pi), size, size * 0.3, widths, rng.normal(0, 0.2), 1.5, veins=3.0)
        canvas.paint(leaf, DEAD_LEAF, SOIL, 0)


def _plant_crop(
    rng: np.random.Generator, canvas: Canvas, field: _Field, crop: Species, level: _Level, gsd_m: float, first: int
) -> int:
    """Sow the rows and return how many plants touch the picture; they are numbered from ``first``."""
    growth = rng.uniform(0.15, 0.85)
    low, high = crop.radius_m
    radius = (low + growth * (high - low)) / gsd_m
    step = radius * rng.uniform(1.15, 1.75)
    reach = float(np.hypot(ROWS_PX, COLUMNS_PX)) / 2 + 2 * radius
    lines = int(np.ceil(reach / field.spacing)) + 1
    wander = level.wander_m / gsd_m
    plants = 0
    for line in range(-lines, lines + 1):
        across = field.offset + line * field.spacing
        bow = rng.normal(0, wander, 3)
        along = -reach + rng.uniform(0, step)
        while along < reach:
            spot = along + rng.normal(0, 0.10 * step)
            along += step * rng.uniform(0.85, 1.15)
            if rng.uniform() < level.gaps:
                continue
            sway = float(np.interp(spot, [-reach, 0.0, reach], bow)) + rng.normal(0, 0.4 + 0.35 * wander)
            x, y = field.point(spot, across + sway)
            if not (-radius < x < COLUMNS_PX + radius and -radius < y < ROWS_PX + radius):
                continue
            size = radius * float(np.clip(rng.normal(1.0, 0.13), 0.55, 1.3))
            habit = Habit(x, y, size, rng.uniform(0, 2 * np.pi), float(np.clip(rng.normal(0.97, 0.08), 0.7, 1.2)))
            paint_plant(rng, canvas, crop, habit, CROP, first + plants, level.yellowing)
            plants += 1
    return plants


def _plant_weeds(
    rng: np.random.Generator,
    canvas: Canvas,
    field: _Field,
    level: _Level,
    weed_pct: float,
    gsd_m: float,
    first: int,
) -> int:
    """Set weeds in loose patches until they cover ``weed_pct`` percent of the picture; numbered from ``first``."""
    patches = smooth_field(rng, ROWS_PX, COLUMNS_PX, 170)
    names = list(WEEDS)
    shares = rng.dirichlet(np.full(len(names), 1.2))
    goal = weed_pct / 100.0 * canvas.classes.size
    weeds = 0
    for _ in range(4000):
        x, y = rng.uniform(0, COLUMNS_PX), rng.uniform(0, ROWS_PX)
        if patches[int(y), int(x)] + 0.8 * rng.normal() < 0:
            continue
        near = field.across(x, y)
        if near < 0.20 and rng.uniform() > level.in_row:
            continue
        species = WEEDS[names[int(rng.choice(len(names), p=shares))]]
        low, high = species.radius_m
        growth = rng.uniform(*level.weed_growth) ** 1.4
        radius = (low + growth * (high - low)) / gsd_m
        habit = Habit(x, y, radius, rng.uniform(0, 2 * np.pi), float(np.clip(rng.normal(0.95, 0.1), 0.65, 1.2)))
        paint_plant(rng, canvas, species, habit, WEED, first + weeds, 0.5 * level.yellowing)
        weeds += 1
        if np.count_nonzero(canvas.classes == WEED) >= goal:
            break
    return weeds


def _uneven_light(rng: np.random.Generator, canvas: Canvas, strength: float) -> None:
    """Thin cloud and, in half of the uneven scenes, the edge of a large shadow (a tractor, a tree)."""
    shape = (ROWS_PX, COLUMNS_PX)
    light = 1.0 + 0.5 * strength * np.clip(smooth_field(rng, *shape, 300), -1.2, 1.2)
    if strength > 0.15 and rng.uniform() < 0.5:
        y, x = np.mgrid[0 : shape[0], 0 : shape[1]].astype(np.float32)
        angle = rng.uniform(0, 2 * np.pi)
        side = (x - rng.uniform(0.2, 0.8) * shape[1]) * np.cos(angle) + (y - rng.uniform(0.2, 0.8) * shape[0]) * np.sin(
            angle
        )
        side += 12.0 * smooth_field(rng, *shape, 70)
        light *= 1.0 - 0.55 * cv2.GaussianBlur((side > 0).astype(np.float32), (0, 0), 5.0)
    canvas.bands *= light[..., None].astype(np.float32)
