"""Drawn crop rows with weeds: a scene in which the class of every pixel is known exactly."""

import zlib
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.build.scenes.plants import (
    BANDS,
    CROPS,
    SOILS,
    SURFACES,
    WEEDS,
    Canvas,
    Habit,
    Leaf,
    Species,
    Sun,
    paint_plant,
    paint_soil,
)
from agrotools.build.scenes.scene import (
    Difficulty,
    Level,
    Plane,
    Rng,
    Scene,
    fractal_field,
    levels,
    moved,
    one_thread,
    smooth_field,
    srgb_of,
)

_BLUE, _GREEN, _RED, _EDGE = 0, 1, 2, 3


def colour_photo(rng: Rng, bands: Plane, noise: float) -> NDArray[np.uint8]:
    """Return an 8-bit sRGB picture (rows, columns, 3) in natural colours, with vignette, lens blur and sensor noise.

    ``noise``: standard deviation of the sensor noise at full scale (0.004 for a good camera, 0.02 for a poor one).
    """
    red = 0.92 * bands[..., _RED] + 0.06 * bands[..., _EDGE]
    green = 0.90 * bands[..., _GREEN] + 0.08 * bands[..., _RED]
    blue = 0.94 * bands[..., _BLUE] + 0.05 * bands[..., _GREEN]
    linear = np.stack([red, green, blue], axis=-1)
    rows, columns = linear.shape[:2]
    y = np.linspace(-1, 1, rows, dtype=np.float32)[:, None]
    x = np.linspace(-1, 1, columns, dtype=np.float32)[None, :]
    linear *= (1.0 - rng.uniform(0.03, 0.12) * (x * x + y * y))[..., None].astype(np.float32)
    warmth = rng.normal(0, 0.03)
    linear *= np.array([1.0 + warmth, 1.0, 1.12 - warmth], dtype=np.float32)
    exposure = 0.50 * rng.uniform(0.8, 1.2) / max(float(np.quantile(linear[::4, ::4], 0.98)), 1e-3)
    linear = cv2.GaussianBlur(linear * np.float32(exposure), (0, 0), 0.55)
    grain = rng.standard_normal(linear.shape, dtype=np.float32)
    linear += grain * np.float32(noise) * np.sqrt(np.clip(linear, 0.02, None))
    linear = np.clip(linear, 0.0, None)
    grey = linear.mean(axis=2, keepdims=True)
    linear = np.clip(grey + 1.18 * (linear - grey), 0.0, None)
    linear = 1.12 * linear**1.12 / (1.0 + 0.25 * linear * linear)
    return srgb_of(linear)


def band_raster(rng: Rng, bands: Plane, noise: float, shift_px: float) -> NDArray[np.uint16]:
    """Return reflectance x 10,000 (bands, rows, columns); bands but green are shifted by up to ``shift_px`` pixels."""
    count = bands.shape[2]
    raster = np.empty((count, *bands.shape[:2]), dtype=np.uint16)
    for k in range(count):
        plane = np.ascontiguousarray(bands[..., k])
        dx, dy = (rng.uniform(-shift_px, shift_px, 2)) if k != _GREEN else (0.0, 0.0)
        plane = cv2.GaussianBlur(moved(plane, dx, dy, cv2.BORDER_REPLICATE), (0, 0), 0.5)
        grain = rng.standard_normal(plane.shape, dtype=np.float32)
        plane = plane * np.float32(rng.normal(1.0, 0.01)) + grain * np.float32(noise) * np.sqrt(
            np.clip(plane, 0.01, None)
        )
        raster[k] = np.clip(plane * 1e4 + 0.5, 0, 65535).astype(np.uint16)
    return raster


ROWS_PX, COLUMNS_PX = 480, 640
SOIL, CROP, WEED = 0, 1, 2
CLASSES = {SOIL: "soil", CROP: "crop", WEED: "weed"}
UNSURVEYED = 255
_SQUARE_PX, _SQUARES_EACH = 14, 18


@dataclass(frozen=True)
class _Field:
    """Geometry of the rows: direction, spacing and first offset in pixels, from the centre of the picture."""

    angle: float
    spacing: float
    offset: float
    centre: tuple[float, float]

    def point(self, along: float, across: float) -> tuple[float, float]:
        c, s = np.cos(self.angle), np.sin(self.angle)
        return self.centre[0] + along * c - across * s, self.centre[1] + along * s + across * c

    def across(self, x: float, y: float) -> float:
        """Return the distance to the nearest row line, in row spacings (0 on it, 0.5 midway)."""
        c, s = np.cos(self.angle), np.sin(self.angle)
        d = ((y - self.centre[1]) * c - (x - self.centre[0]) * s - self.offset) / self.spacing
        return abs(d - round(d))


@one_thread()
def make_scene(
    seed: int, difficulty: Difficulty = 1, weed_pct: float | None = None, size: tuple[int, int] = (ROWS_PX, COLUMNS_PX)
) -> Scene:
    """Draw a scene of 640 x 480 px, 1.9 x 1.4 m at 3 mm per pixel. The same arguments give the same scene.

    ``weed_pct``: approximate weed cover, percent; None: drawn, 1 to 12 by difficulty. ``size``: rows and columns;
    another size is another scene of the same density. ``images``: ``rgb`` uint8 (*size, 3), ``bands`` uint16
    (5, *size) reflectance x 10,000. ``masks``: ``classes`` uint8, see :data:`CLASSES`.
    """
    rng = np.random.default_rng([seed, difficulty, zlib.crc32(b"rows")])
    level = levels("rows")[difficulty]
    gsd_m = 0.003
    fall = rng.uniform(0, 2 * np.pi)
    sun = Sun(
        float(np.cos(fall)), float(np.sin(fall)), float(rng.uniform(0.35, 1.1)), float(rng.uniform(*level.darkness))
    )
    soil = SOILS[int(rng.integers(len(SOILS)))]
    ground = paint_soil(rng, *size, soil, sun, float(rng.uniform(*level.roughness)))
    canvas = Canvas(ground, sun, fractal_field(rng, *size, 12, 3, 0.8))
    _litter(rng, canvas, int(rng.integers(*level.straws)))

    quarter = rng.integers(2) * np.pi / 2
    spacing_m = float(rng.choice([0.38, 0.45, 0.50]))
    spacing = spacing_m / gsd_m
    angle = float(quarter + rng.uniform(-level.tilt, level.tilt))
    field = _Field(angle, spacing, float(rng.uniform(0, spacing)), (size[1] / 2, size[0] / 2))
    crop = CROPS[str(rng.choice(list(CROPS)))]
    drawn_pct = float(rng.uniform(*level.weed_pct))
    weed_pct = drawn_pct if weed_pct is None else weed_pct
    # Weeds that emerged before the crop are below its leaves, later ones above them.
    _plant_weeds(rng, canvas, field, level, 0.5 * weed_pct, gsd_m)
    _plant_crop(rng, canvas, field, crop, level, gsd_m)
    _plant_weeds(rng, canvas, field, level, weed_pct, gsd_m)
    _uneven_light(rng, canvas, level.cloud)

    images: dict[str, NDArray[np.uint8] | NDArray[np.uint16]] = {
        "rgb": colour_photo(rng, canvas.bands, level.noise),
        "bands": band_raster(rng, canvas.bands, 0.35 * level.noise, level.band_shift_px),
    }
    sidecar = {"bands": list(BANDS), "gsd_m": gsd_m, "row_spacing_m": spacing_m}
    truth = {"weed_pct": 100.0 * int(np.count_nonzero(canvas.classes == WEED)) / canvas.classes.size}
    return Scene(images, sidecar, truth, {"classes": canvas.classes})


def _litter(rng: Rng, canvas: Canvas, straws: int) -> None:
    rows, columns = canvas.bands.shape[:2]
    area = canvas.classes.size / (ROWS_PX * COLUMNS_PX)
    taper = np.tile(np.interp(np.linspace(0, 1, 12), [0, 0.1, 0.7, 1], [0.7, 1.0, 0.9, 0.4]), (2, 1))
    for _ in range(int(straws * area)):
        length = float(min(rng.pareto(1.6) * 6.0 + 3.0, 75.0))
        x, y = rng.uniform(-20, columns + 20), rng.uniform(-20, rows + 20)
        leaf = Leaf(
            x, y, rng.uniform(0, 2 * np.pi), length, rng.uniform(0.35, 1.15), taper, rng.normal(0, 0.07),
            rng.uniform(0.5, 1.8), veins=0.0, fold=0.12, brightness=rng.uniform(0.45, 1.0),
        )  # fmt: skip
        worn = rng.beta(2.0, 1.2)
        straw = SURFACES["straw"] * (1 - worn) + SURFACES["weathered_straw"] * worn
        canvas.paint(leaf, straw.astype(np.float32), SOIL)
    for _ in range(int(int(rng.integers(0, 4 + straws // 12)) * area)):
        size = rng.uniform(5, 14)
        shape = np.sin(np.linspace(0, np.pi, 12)) ** 0.7
        widths = np.stack([shape * rng.uniform(0.7, 1.1, 12), shape * rng.uniform(0.7, 1.1, 12)])
        x, y = rng.uniform(0, columns), rng.uniform(0, rows)
        leaf = Leaf(x, y, rng.uniform(0, 2 * np.pi), size, size * 0.3, widths, rng.normal(0, 0.2), 1.5, veins=3.0)
        canvas.paint(leaf, SURFACES["dead_leaf"], SOIL)


def _plant_crop(rng: Rng, canvas: Canvas, field: _Field, crop: Species, level: Level, gsd_m: float) -> None:
    rows, columns = canvas.bands.shape[:2]
    growth = rng.uniform(0.15, 0.85)
    low, high = crop.radius_m
    radius = (low + growth * (high - low)) / gsd_m
    step = radius * rng.uniform(1.15, 1.75)
    reach = float(np.hypot(rows, columns)) / 2 + 2 * radius
    lines = int(np.ceil(reach / field.spacing)) + 1
    wander = level.wander_m / gsd_m
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
            if not (-radius < x < columns + radius and -radius < y < rows + radius):
                continue
            size = radius * float(np.clip(rng.normal(1.0, 0.13), 0.55, 1.3))
            habit = Habit(x, y, size, rng.uniform(0, 2 * np.pi), float(np.clip(rng.normal(0.97, 0.08), 0.7, 1.2)))
            paint_plant(rng, canvas, crop, habit, CROP, level.yellowing)


def _plant_weeds(rng: Rng, canvas: Canvas, field: _Field, level: Level, weed_pct: float, gsd_m: float) -> None:
    """Place weeds in loose patches until they cover ``weed_pct`` percent."""
    rows, columns = canvas.bands.shape[:2]
    patches = smooth_field(rng, rows, columns, 170)
    names = list(WEEDS)
    shares = rng.dirichlet(np.full(len(names), 1.2))
    goal = weed_pct / 100.0 * canvas.classes.size
    for _ in range(int(4000 * canvas.classes.size / (ROWS_PX * COLUMNS_PX))):
        x, y = rng.uniform(0, columns), rng.uniform(0, rows)
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
        paint_plant(rng, canvas, species, habit, WEED, 0.5 * level.yellowing)
        if np.count_nonzero(canvas.classes == WEED) >= goal:
            break


def _uneven_light(rng: Rng, canvas: Canvas, strength: float) -> None:
    """Apply thin cloud and, in half of the uneven scenes, the edge of a large shadow (a tractor, a tree)."""
    rows, columns = canvas.bands.shape[:2]
    light = 1.0 + 0.5 * strength * np.clip(smooth_field(rng, rows, columns, 300), -1.2, 1.2)
    if strength > 0.15 and rng.uniform() < 0.5:
        y, x = np.mgrid[0:rows, 0:columns].astype(np.float32)
        angle = rng.uniform(0, 2 * np.pi)
        side = (x - rng.uniform(0.2, 0.8) * columns) * np.cos(angle) + (y - rng.uniform(0.2, 0.8) * rows) * np.sin(
            angle
        )
        side += 12.0 * smooth_field(rng, rows, columns, 70)
        light *= 1.0 - 0.55 * cv2.GaussianBlur((side > 0).astype(np.float32), (0, 0), 5.0)
    canvas.bands *= light[..., None].astype(np.float32)


def surveyed(classes: NDArray[np.uint8], rng: Rng) -> NDArray[np.uint8]:
    """Return the classes in small squares around random pixels of each class; all others are :data:`UNSURVEYED`."""
    squares = np.full_like(classes, UNSURVEYED)
    for number in CLASSES:
        ys, xs = np.nonzero(classes == number)
        for place in rng.permutation(len(ys))[:_SQUARES_EACH]:
            y = int(np.clip(ys[place] - _SQUARE_PX // 2, 0, classes.shape[0] - _SQUARE_PX))
            x = int(np.clip(xs[place] - _SQUARE_PX // 2, 0, classes.shape[1] - _SQUARE_PX))
            part = (slice(y, y + _SQUARE_PX), slice(x, x + _SQUARE_PX))
            squares[part] = classes[part]
    return squares
