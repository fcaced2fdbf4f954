"""Drawn crop rows with weeds: a scene in which the class of every pixel is known exactly.

Soil and plants are seen from above, painted leaf by leaf with shadows. Each species is a function that yields leaves,
lowest first. Shapes follow field plants at the 2 to 8 leaf stage; no two leaves of a plant are equal.
"""

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools_build.scenes.scene import (
    TABLES,
    Axes,
    Difficulty,
    Kind,
    Level,
    Plane,
    Rng,
    Scene,
    Sun,
    fractal_field,
    levels,
    moved,
    one_thread,
    smooth_field,
    spectra,
    srgb_of,
    sun_at,
    with_spectra,
)

BANDS = ("B", "G", "R", "RE", "NIR")
"""Band order of every scene: blue 475, green 560, red 668, red edge 717, near infrared 842 nm."""


SOILS = tuple(with_spectra(soil, "dry", "stone") for soil in TABLES["soils"])
SURFACES = spectra("rows")
"""Reflectances of straw, dead leaves and leaves of plants."""

_SUBPIXEL_BITS = 4
_SUBPIXELS = 1 << _SUBPIXEL_BITS
_SHADE_BY_BAND = np.array([0.78, 0.88, 0.95, 0.92, 0.80], dtype=np.float32)
"""Strength of a shadow in each band: sky light brightens blue, light through leaves the near infrared."""


@dataclass(frozen=True)
class Leaf:
    """A flat leaf: base point, direction, length and half width in pixels, and its appearance.

    The midrib is a parabola that leaves the straight axis by ``bend * length`` at the tip. ``widths`` are the half
    widths of the left and right sides at equal steps from base to tip, relative to ``half_width``.
    """

    x: float
    y: float
    angle: float
    length: float
    half_width: float
    widths: NDArray[np.float64]
    bend: float = 0.0
    height: float = 4.0
    veins: float = 6.0
    fold: float = 0.15
    gloss: float = 0.0
    brightness: float = 1.0

    @property
    def outline(self) -> NDArray[np.float64]:
        """The outline as points (n, 2)."""
        t = np.arange(self.widths.shape[1]) / (self.widths.shape[1] - 1)
        along, across = t * self.length, self.bend * self.length * t * t
        left = across + self.half_width * self.widths[0]
        right = across - self.half_width * self.widths[1]
        s = np.concatenate([along, along[::-1]])
        n = np.concatenate([left, right[::-1]])
        c, d = math.cos(self.angle), math.sin(self.angle)
        points = np.empty((s.size, 2))
        points[:, 0] = self.x + s * c - n * d
        points[:, 1] = self.y + s * d + n * c
        return points


class Canvas:
    """Reflectance (rows, columns, bands) and class of each pixel."""

    def __init__(self, ground: Plane, sun: Sun, texture: Plane) -> None:
        self.bands = ground
        self.sun = sun
        self.classes = np.zeros(ground.shape[:2], dtype=np.uint8)
        self._texture = texture

    def paint(self, leaf: Leaf, reflectance: Plane, class_id: int) -> None:
        """Cast the leaf's shadow, then paint the pixels of which it covers at least half."""
        outline = np.round(leaf.outline * _SUBPIXELS).astype(np.int32)
        shift_x = self.sun.dx * self.sun.length * leaf.height
        shift_y = self.sun.dy * self.sun.length * leaf.height
        box = self._box(outline, shift_x, shift_y)
        if box is None:
            return
        x0, y0, x1, y1 = box
        alpha = np.zeros((y1 - y0, x1 - x0), dtype=np.uint8)
        cv2.fillPoly(
            alpha, [outline - (x0 * _SUBPIXELS, y0 * _SUBPIXELS)], 255, cv2.LINE_AA, _SUBPIXEL_BITS
        )
        view = self.bands[y0:y1, x0:x1]
        soft = cv2.GaussianBlur(moved(alpha, shift_x, shift_y), (0, 0), 0.6 + 0.08 * leaf.height)
        view *= (
            1.0
            - (self.sun.darkness * (soft.astype(np.float32) / 255.0))[..., None] * _SHADE_BY_BAND
        )
        cover = (alpha.astype(np.float32) / 255.0)[..., None]
        if leaf.half_width < 1.5:
            colour = np.float32(leaf.brightness) * reflectance
        else:
            colour = self._leaf_shading(leaf, x0, y0, alpha.shape)[..., None] * reflectance
        view += cover * (colour - view)
        self.classes[y0:y1, x0:x1][alpha >= 128] = class_id

    def _box(
        self, outline: NDArray[np.int32], dx: float, dy: float
    ) -> tuple[int, int, int, int] | None:
        """Return the box of pixels that leaf and shadow may touch; None if it is outside the picture."""
        left, top, width, height = (value / _SUBPIXELS for value in cv2.boundingRect(outline))
        rows, columns = self.bands.shape[:2]
        x0, y0 = max(0, int(left + min(0.0, dx)) - 3), max(0, int(top + min(0.0, dy)) - 3)
        x1, y1 = (
            min(columns, int(left + width + max(0.0, dx)) + 4),
            min(rows, int(top + height + max(0.0, dy)) + 4),
        )
        return (x0, y0, x1, y1) if x1 - x0 > 1 and y1 - y0 > 1 else None

    def _leaf_shading(self, leaf: Leaf, x0: int, y0: int, shape: tuple[int, ...]) -> Plane:
        axes = Axes.plain(leaf.angle)
        ys = (np.arange(shape[0], dtype=np.float32) + (y0 - leaf.y))[:, None]
        xs = (np.arange(shape[1], dtype=np.float32) + (x0 - leaf.x))[None, :]
        u = np.clip(axes.along(xs, ys) / leaf.length, 0.0, 1.0)
        v = (axes.across(xs, ys) - leaf.bend * leaf.length * u * u) / max(leaf.half_width, 1.0)
        lit = math.copysign(leaf.fold, self.sun.dx * axes.sine - self.sun.dy * axes.cosine)
        rib = np.exp(-((v / (0.10 + 0.6 / max(leaf.half_width, 2.0))) ** 2))
        shading = 0.86 + lit * np.tanh(3.0 * v) + 0.16 * u + 0.16 * rib * (1.0 - 0.6 * u)
        if leaf.veins:
            shading += 0.045 * np.cos(2 * np.pi * (leaf.veins * u - 0.9 * np.abs(v)))
        if leaf.gloss:
            shading += leaf.gloss * np.exp(-(((u - 0.45) / 0.22) ** 2))
        shading += 0.10 * self._texture[y0 : y0 + shape[0], x0 : x0 + shape[1]]
        return (leaf.brightness * np.clip(shading, 0.25, 1.8)).astype(np.float32)


def paint_soil(rng: Rng, shape: tuple[int, int], soil: Kind, sun: Sun, roughness: float) -> Plane:
    """Return the reflectance of bare soil, (rows, columns, 5). ``roughness`` is 0 (rolled seedbed) to 1 (cloddy)."""
    height, stones = _surface(rng, shape, roughness)
    light = _lit(height, sun)
    moisture = np.clip(0.35 + 0.35 * fractal_field(rng, shape, 220, 3), 0.0, 1.0)
    tone = 1.0 - (1.0 - soil.moist) * moisture
    tone = tone * (1.0 + 0.09 * fractal_field(rng, shape, 8, 4, 0.95))
    brightness = (light * tone).astype(np.float32)
    ground = brightness[..., None] * soil.dry
    hue = 1.0 + 0.035 * smooth_field(rng, shape, 60)
    ground[..., 0] *= 2.0 - hue
    ground[..., 2] *= hue
    ground += (stones * light)[..., None] * (soil.stone - ground) * 0.75
    return ground.astype(np.float32)


def _surface(rng: Rng, shape: tuple[int, int], roughness: float) -> tuple[Plane, Plane]:
    rows, columns = shape
    height = 1.6 * fractal_field(rng, shape, 70, 3)
    height += (0.45 + 0.35 * roughness) * fractal_field(rng, shape, 5, 3, 0.9)
    clods = np.zeros(shape, dtype=np.float32)
    patchy = smooth_field(rng, shape, 160)
    for _ in range(int(420 + 1100 * roughness)):
        x, y = rng.uniform(0, columns), rng.uniform(0, rows)
        size = float(rng.pareto(2.4) * (2.0 + 2.6 * roughness) + 2.0)
        size = min(size, 7.0 + 17.0 * roughness)
        if patchy[int(y), int(x)] + rng.normal() < -0.4:
            continue
        _raise(
            clods,
            x,
            y,
            size,
            size * rng.uniform(0.6, 1.0),
            rng.uniform(0, np.pi),
            size * rng.uniform(0.35, 0.6),
        )
    stones = np.zeros(shape, dtype=np.float32)
    for _ in range(int(rng.integers(2, 26))):
        size = float(min(rng.pareto(2.2) * 1.6 + 1.4, 8.0))
        x, y = rng.uniform(0, columns), rng.uniform(0, rows)
        short, turn = size * rng.uniform(0.55, 1.0), rng.uniform(0, np.pi)
        _raise(clods, x, y, size, short, turn, size * 0.4)
        centre, axes = (int(x * 16), int(y * 16)), (int(size * 14), int(short * 14))
        cv2.ellipse(stones, centre, axes, np.degrees(turn), 0, 360, 1.0, -1, cv2.LINE_8, 4)
    # Clods are not ellipses: warp the whole field by a few pixels so that their edges become ragged.
    dx = 1.3 * fractal_field(rng, shape, 9, 2, 0.7)
    dy = 1.3 * fractal_field(rng, shape, 9, 2, 0.7)
    grid_y, grid_x = np.mgrid[0:rows, 0:columns].astype(np.float32)
    clods = cv2.remap(
        clods, grid_x + dx, grid_y + dy, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT
    )
    stones = cv2.GaussianBlur(stones, (0, 0), 0.7)
    clods *= 1.0 + 0.14 * fractal_field(rng, shape, 6, 3, 0.8)
    return np.asarray(height + clods, dtype=np.float32), np.asarray(stones, dtype=np.float32)


def _raise(
    field: Plane, x: float, y: float, long: float, short: float, angle: float, height: float
) -> None:
    """Raise a flattened dome on ``field``."""
    x0, x1 = max(0, int(x - long)), min(field.shape[1], int(x + long) + 2)
    y0, y1 = max(0, int(y - long)), min(field.shape[0], int(y + long) + 2)
    if x0 >= x1 or y0 >= y1:
        return
    ys = np.arange(y0, y1, dtype=np.float32)[:, None] - y
    xs = np.arange(x0, x1, dtype=np.float32)[None, :] - x
    axes = Axes.double(angle)
    r2 = (axes.along(xs, ys) / long) ** 2 + (axes.across(xs, ys) / short) ** 2
    dome = height * np.sqrt(np.clip(1.0 - r2, 0.0, 1.0)).astype(np.float32)
    np.maximum(field[y0:y1, x0:x1], dome, out=field[y0:y1, x0:x1])


def _lit(height: Plane, sun: Sun) -> Plane:
    """Return Lambert shading combined with the short shadows of clods."""
    gx = cv2.Sobel(height, cv2.CV_32F, 1, 0, ksize=3) / 8.0
    gy = cv2.Sobel(height, cv2.CV_32F, 0, 1, ksize=3) / 8.0
    slope = gx * sun.dx + gy * sun.dy
    rise = 1.0 / max(sun.length, 0.2)
    lambert = np.clip(
        (rise + slope) / np.sqrt((1.0 + gx * gx + gy * gy) * (1.0 + rise * rise)), 0.0, 1.0
    )
    lambert *= np.sqrt(1.0 + rise * rise) / rise
    blocked = np.zeros_like(height)
    for k in (1, 2, 3, 5, 7, 10):
        upwind = moved(height, sun.dx * k, sun.dy * k, cv2.BORDER_REFLECT)
        np.maximum(blocked, upwind - k * rise - height, out=blocked)
    shadow = cv2.GaussianBlur(np.clip(blocked * 1.2, 0.0, 1.0), (0, 0), 0.7)
    direct = lambert * (1.0 - shadow)
    return (1.0 - sun.darkness) + sun.darkness * direct


_POINTS = 26
_T = np.linspace(0.0, 1.0, _POINTS)
_KNOTS = np.linspace(0.0, 1.0, 7)
GOLDEN = np.pi * (3.0 - np.sqrt(5.0))


@dataclass(frozen=True)
class Habit:
    """Pose of a plant: centre (px), radius of its crown (px), rotation, and vigour (0.6 poor to 1.2 lush)."""

    x: float
    y: float
    radius: float
    turn: float
    vigour: float


def profile(
    rng: Rng,
    rise: float,
    fall: float,
    ragged: float = 0.03,
    teeth: int = 0,
    depth: float = 0.0,
    lobes: int = 0,
) -> NDArray[np.float64]:
    """Return half widths (2, points): ``t**rise * (1-t)**fall`` with a peak of 1, roughened, toothed or lobed."""
    shape = _T**rise * (1.0 - _T) ** fall
    shape = shape / shape.max()
    sides = []
    for _ in range(2):
        wave = np.interp(_T, _KNOTS, rng.normal(0, ragged, 7))
        side = shape * (1.0 + wave)
        if teeth:
            side = side * (
                1.0 + depth * (np.abs((_T * teeth + rng.uniform(0, 0.3)) % 1.0 - 0.5) * 2.0 - 0.5)
            )
        if lobes:
            side = side * (
                1.0 - depth * (0.5 + 0.5 * np.cos(2 * np.pi * lobes * _T + rng.uniform(-0.5, 0.5)))
            )
        sides.append(np.clip(side, 0.0, None))
    return np.stack(sides)


def stalk_of(
    x: float, y: float, angle: float, length: float, width: float, height: float, bend: float
) -> Leaf:
    widths = np.full((2, _POINTS), 1.0)
    return Leaf(
        x, y, angle, length, width, widths, bend, height, veins=0.0, fold=0.0, brightness=1.05
    )


def tip_of(stalk: Leaf) -> tuple[float, float, float]:
    """Return the end of a stalk's midrib and its direction there."""
    c, d = np.cos(stalk.angle), np.sin(stalk.angle)
    along, across = stalk.length, stalk.bend * stalk.length
    return (
        stalk.x + along * c - across * d,
        stalk.y + along * d + across * c,
        stalk.angle + np.arctan(2 * stalk.bend),
    )


def _beet(rng: Rng, at: Habit) -> Iterator[Leaf]:
    count = int(rng.integers(6, 11))
    for k in range(count):
        young = k / count
        reach = at.radius * (1.0 - 0.62 * young) * rng.uniform(0.82, 1.08)
        angle = at.turn + k * GOLDEN + rng.normal(0, 0.22)
        height = 5.0 + 9.0 * young
        stalk = stalk_of(
            at.x,
            at.y,
            angle,
            reach * 0.40,
            max(0.9, reach * 0.032),
            height * 0.6,
            rng.normal(0, 0.05),
        )
        yield stalk
        x, y, direction = tip_of(stalk)
        lean = rng.uniform(0.75, 1.0)
        yield Leaf(
            x, y, direction, reach * 0.66 * lean, reach * rng.uniform(0.22, 0.29),
            profile(rng, 0.42, 0.50, 0.09), rng.normal(0, 0.10), height,
            veins=5.0, fold=rng.uniform(0.05, 0.2), gloss=rng.uniform(0, 0.12), brightness=0.84 + 0.26 * young,
        )  # fmt: skip


def _bean(rng: Rng, at: Habit) -> Iterator[Leaf]:
    count = int(rng.integers(4, 8))
    for k in range(count):
        young = k / count
        reach = at.radius * (1.0 - 0.5 * young) * rng.uniform(0.85, 1.1)
        angle = at.turn + k * GOLDEN * 1.02 + rng.normal(0, 0.25)
        height = 6.0 + 10.0 * young
        stalk = stalk_of(
            at.x,
            at.y,
            angle,
            reach * 0.48,
            max(0.7, reach * 0.02),
            height * 0.6,
            rng.normal(0, 0.08),
        )
        yield stalk
        x, y, direction = tip_of(stalk)
        for turn in (-1.45, 1.45, 0.0):
            size = reach * (0.46 if turn else 0.52) * rng.uniform(0.85, 1.05)
            yield Leaf(
                x, y, direction + turn + rng.normal(0, 0.18), size, size * rng.uniform(0.30, 0.37),
                profile(rng, 0.45, 0.62, 0.04), rng.normal(0, 0.07), height + rng.uniform(0, 2),
                veins=5.0, fold=rng.uniform(0.05, 0.25), brightness=0.85 + 0.25 * young,
            )  # fmt: skip


def _maize(rng: Rng, at: Habit) -> Iterator[Leaf]:
    count = int(rng.integers(5, 9))
    for k in range(count):
        young = k / count
        length = (
            at.radius
            * (0.75 + 0.55 * np.sin(np.pi * (0.25 + 0.65 * young)))
            * rng.uniform(0.85, 1.1)
        )
        angle = at.turn + (k % 2) * np.pi + rng.normal(0, 0.32)
        yield Leaf(
            at.x, at.y, angle, length, max(1.4, at.radius * rng.uniform(0.055, 0.085)),
            profile(rng, 0.22, 0.80, 0.06), rng.normal(0, 0.30), 6.0 + 9.0 * young,
            veins=0.0, fold=rng.uniform(0.05, 0.22), gloss=rng.uniform(0.08, 0.30), brightness=0.86 + 0.24 * young,
        )  # fmt: skip


def _pairs(
    rng: Rng, at: Habit, profile: Callable[[], NDArray[np.float64]], slim: float, tint: float
) -> Iterator[Leaf]:
    """Yield opposite pairs of leaves, each at a right angle to the pair below and smaller."""
    pairs = int(rng.integers(2, 5))
    for k in range(pairs):
        young = k / pairs
        reach = at.radius * (1.0 - 0.72 * young) * rng.uniform(0.88, 1.1)
        for side in range(2):
            if rng.uniform() < 0.06:
                continue
            angle = at.turn + k * np.pi / 2 + side * np.pi + rng.normal(0, 0.20)
            height = 3.0 + 7.0 * young
            stalk = stalk_of(
                at.x,
                at.y,
                angle,
                reach * 0.36,
                max(0.6, reach * 0.03),
                height * 0.6,
                rng.normal(0, 0.06),
            )
            yield stalk
            x, y, direction = tip_of(stalk)
            size = reach * 0.68 * rng.uniform(0.85, 1.08)
            yield Leaf(
                x, y, direction, size, size * slim * rng.uniform(0.88, 1.12), profile(), rng.normal(0, 0.09), height,
                veins=4.0, fold=rng.uniform(0.04, 0.2), brightness=(0.85 + 0.28 * young) * tint,
            )  # fmt: skip


def _goosefoot(rng: Rng, at: Habit) -> Iterator[Leaf]:
    return _pairs(rng, at, lambda: profile(rng, 0.55, 0.85, 0.06, teeth=5, depth=0.35), 0.36, 1.06)


def _amaranth(rng: Rng, at: Habit) -> Iterator[Leaf]:
    return _pairs(rng, at, lambda: profile(rng, 0.50, 0.70, 0.04), 0.33, 0.95)


def _thistle(rng: Rng, at: Habit) -> Iterator[Leaf]:
    count = int(rng.integers(6, 11))
    for k in range(count):
        young = k / count
        length = at.radius * (1.0 - 0.55 * young) * rng.uniform(0.85, 1.1)
        yield Leaf(
            at.x, at.y, at.turn + k * GOLDEN + rng.normal(0, 0.15), length, length * rng.uniform(0.16, 0.22),
            profile(rng, 0.55, 0.45, 0.06, depth=0.55, lobes=int(rng.integers(3, 5))),
            rng.normal(0, 0.12), 2.5 + 4.0 * young, veins=0.0, fold=0.1, brightness=0.85 + 0.25 * young,
        )  # fmt: skip


def _seedling(rng: Rng, at: Habit) -> Iterator[Leaf]:
    spread = at.radius * 0.9
    for side in range(2):
        angle = at.turn + side * np.pi + rng.normal(0, 0.15)
        yield Leaf(
            at.x, at.y, angle, spread * rng.uniform(0.85, 1.1), spread * rng.uniform(0.20, 0.34),
            profile(rng, 0.75, 0.42, 0.03), rng.normal(0, 0.05), 3.0, veins=0.0, fold=0.08,
        )  # fmt: skip
    for side in range(2):
        angle = at.turn + np.pi / 2 + side * np.pi + rng.normal(0, 0.2)
        size = spread * rng.uniform(0.35, 0.75)
        widths = profile(rng, 0.6, 0.6, 0.05)
        yield Leaf(
            at.x, at.y, angle, size, size * 0.30, widths, 0.0, 4.5, veins=0.0, brightness=1.08
        )


def _grass(rng: Rng, at: Habit) -> Iterator[Leaf]:
    count = int(rng.integers(4, 13))
    lean = rng.uniform(0, 2 * np.pi)
    for k in range(count):
        angle = rng.uniform(0, 2 * np.pi) if rng.uniform() < 0.7 else lean + rng.normal(0, 0.5)
        length = at.radius * rng.uniform(0.55, 1.15)
        x, y = at.x + rng.normal(0, 0.05 * at.radius), at.y + rng.normal(0, 0.05 * at.radius)
        yield Leaf(
            x, y, angle, length, max(0.85, at.radius * rng.uniform(0.040, 0.062)),
            profile(rng, 0.18, 0.70, 0.04), rng.normal(0, 0.22), 2.0 + 5.0 * k / count,
            veins=0.0, fold=rng.uniform(0.05, 0.25), gloss=rng.uniform(0, 0.2), brightness=rng.uniform(0.82, 1.12),
        )  # fmt: skip


@dataclass(frozen=True)
class Species:
    """A species: its name, arrangement of its leaves, and range of its crown radius in metres."""

    name: str
    leaves: Callable[[Rng, Habit], Iterator[Leaf]]
    radius_m: tuple[float, float]


CROPS = (
    Species("beet", _beet, (0.075, 0.120)), Species("bean", _bean, (0.070, 0.115)),
    Species("maize", _maize, (0.100, 0.150)),
)  # fmt: skip
WEEDS = (
    Species("goosefoot", _goosefoot, (0.020, 0.070)), Species("amaranth", _amaranth, (0.020, 0.065)),
    Species("thistle", _thistle, (0.030, 0.090)), Species("seedling", _seedling, (0.010, 0.024)),
    Species("grass", _grass, (0.025, 0.085)),
)  # fmt: skip


def paint_plant(
    rng: Rng, canvas: Canvas, species: Species, habit: Habit, class_id: int, yellowing: float
) -> None:
    """Paint one plant; its spectrum varies from the species' by a few percent in each band, and from leaf to leaf."""
    stray = rng.normal(1.0, 0.05, 5)
    reflectance = (
        SURFACES[species.name]
        * np.float32(habit.vigour) ** np.array([-0.35, -0.25, -0.5, 0.2, 0.45])
        * stray
    )
    for leaf in species.leaves(rng, habit):
        old = (
            float(np.clip(rng.normal(yellowing, 0.10), 0.0, 0.85))
            if yellowing
            else abs(rng.normal(0, 0.04))
        )
        colour = (reflectance * (1.0 - old) + SURFACES["yellowed"] * old) * rng.normal(1.0, 0.04)
        canvas.paint(leaf, colour.astype(np.float32), class_id)


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


ROWS_PX, COLUMNS_PX = SIZE = 480, 640
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
        axes = Axes.double(self.angle)
        distance = axes.across(x - self.centre[0], y - self.centre[1]) - self.offset
        in_spacings = distance / self.spacing
        return abs(in_spacings - round(in_spacings))


@one_thread()
def make_scene(
    seed: int,
    difficulty: Difficulty = 1,
    weed_pct: float | None = None,
    size: tuple[int, int] = SIZE,
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
    sun = sun_at(fall, rng.uniform(0.35, 1.1), rng.uniform(*level.darkness))
    soil = SOILS[int(rng.integers(len(SOILS)))]
    ground = paint_soil(rng, size, soil, sun, float(rng.uniform(*level.roughness)))
    canvas = Canvas(ground, sun, fractal_field(rng, size, 12, 3, 0.8))
    _litter(rng, canvas, int(rng.integers(*level.straws)))

    quarter = rng.integers(2) * np.pi / 2
    spacing_m = float(rng.choice([0.38, 0.45, 0.50]))
    spacing = spacing_m / gsd_m
    angle = float(quarter + rng.uniform(-level.tilt, level.tilt))
    field = _Field(angle, spacing, rng.uniform(0, spacing), (size[1] / 2, size[0] / 2))
    crop = CROPS[int(rng.choice(len(CROPS)))]
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
    truth = {
        "weed_pct": 100.0 * int(np.count_nonzero(canvas.classes == WEED)) / canvas.classes.size
    }
    return Scene(images, sidecar, truth, {"classes": canvas.classes})


def _litter(rng: Rng, canvas: Canvas, straws: int) -> None:
    rows, columns = canvas.bands.shape[:2]
    area = canvas.classes.size / (ROWS_PX * COLUMNS_PX)
    taper = np.tile(
        np.interp(np.linspace(0, 1, 12), [0, 0.1, 0.7, 1], [0.7, 1.0, 0.9, 0.4]), (2, 1)
    )
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
        leaf = Leaf(
            x,
            y,
            rng.uniform(0, 2 * np.pi),
            size,
            size * 0.3,
            widths,
            rng.normal(0, 0.2),
            1.5,
            veins=3.0,
        )
        canvas.paint(leaf, SURFACES["dead_leaf"], SOIL)


def _plant_crop(
    rng: Rng, canvas: Canvas, field: _Field, crop: Species, level: Level, gsd_m: float
) -> None:
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
            sway = float(np.interp(spot, [-reach, 0.0, reach], bow)) + rng.normal(
                0, 0.4 + 0.35 * wander
            )
            x, y = field.point(spot, across + sway)
            if not (-radius < x < columns + radius and -radius < y < rows + radius):
                continue
            size = radius * float(np.clip(rng.normal(1.0, 0.13), 0.55, 1.3))
            habit = Habit(
                x,
                y,
                size,
                rng.uniform(0, 2 * np.pi),
                float(np.clip(rng.normal(0.97, 0.08), 0.7, 1.2)),
            )
            paint_plant(rng, canvas, crop, habit, CROP, level.yellowing)


def _plant_weeds(
    rng: Rng, canvas: Canvas, field: _Field, level: Level, weed_pct: float, gsd_m: float
) -> None:
    """Place weeds in loose patches until they cover ``weed_pct`` percent."""
    rows, columns = canvas.bands.shape[:2]
    patches = smooth_field(rng, (rows, columns), 170)
    shares = rng.dirichlet(np.full(len(WEEDS), 1.2))
    goal = weed_pct / 100.0 * canvas.classes.size
    for _ in range(int(4000 * canvas.classes.size / (ROWS_PX * COLUMNS_PX))):
        x, y = rng.uniform(0, columns), rng.uniform(0, rows)
        if patches[int(y), int(x)] + 0.8 * rng.normal() < 0:
            continue
        near = field.across(x, y)
        if near < 0.20 and rng.uniform() > level.in_row:
            continue
        species = WEEDS[int(rng.choice(len(WEEDS), p=shares))]
        low, high = species.radius_m
        growth = rng.uniform(*level.weed_growth) ** 1.4
        radius = (low + growth * (high - low)) / gsd_m
        habit = Habit(
            x,
            y,
            radius,
            rng.uniform(0, 2 * np.pi),
            float(np.clip(rng.normal(0.95, 0.1), 0.65, 1.2)),
        )
        paint_plant(rng, canvas, species, habit, WEED, 0.5 * level.yellowing)
        if np.count_nonzero(canvas.classes == WEED) >= goal:
            break


def _uneven_light(rng: Rng, canvas: Canvas, strength: float) -> None:
    """Apply thin cloud and, in half of the uneven scenes, the edge of a large shadow (a tractor, a tree)."""
    rows, columns = canvas.bands.shape[:2]
    light = 1.0 + 0.5 * strength * np.clip(smooth_field(rng, (rows, columns), 300), -1.2, 1.2)
    if strength > 0.15 and rng.uniform() < 0.5:
        y, x = np.mgrid[0:rows, 0:columns].astype(np.float32)
        angle = rng.uniform(0, 2 * np.pi)
        x_edge = rng.uniform(0.2, 0.8) * columns
        y_edge = rng.uniform(0.2, 0.8) * rows
        side = Axes.double(angle).along(x - x_edge, y - y_edge)
        side += 12.0 * smooth_field(rng, (rows, columns), 70)
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
