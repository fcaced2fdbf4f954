"""Fruit in perspective: bodies of one or more ellipsoids with ground colour, blush, hollow and highlight."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.build.scenes.foliage import Colour, Plane, View
from agrotools.build.scenes.scene import TABLES, blurred, bounds, fractal_field, spectrum

Rng = np.random.Generator
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Skin:
    """Colours of a skin: ground colour and blush.

    ``share``: range of the share of the fruit that the blush covers; ``streaks``: strength of streaks; ``gloss``:
    glossiness.
    """

    ground: Colour
    blush: Colour
    share: tuple[float, float]
    streaks: float = 0.3
    gloss: float = 0.35


@dataclass(frozen=True)
class FruitKind:
    """A kind of fruit.

    ``diameter_mm``: mean and standard deviation across the axis; ``flat``: range of the length along the axis over the
    diameter; ``lobed``: True for three bodies side by side.
    """

    name: str
    plural: str
    skins: dict[str, Skin]
    diameter_mm: tuple[float, float]
    flat: tuple[float, float]
    hollow: float = 0.5
    """Depth of the hollow around the stalk, 0 to 1."""
    lobed: bool = False


def _kind(name: str, table: dict[str, Any]) -> FruitKind:
    skins = {
        variety: Skin(**{**skin, "ground": spectrum(*skin["ground"]), "blush": spectrum(*skin["blush"])})
        for variety, skin in table["skins"].items()
    }
    return FruitKind(**{**table, "name": name, "skins": skins})


KINDS: dict[str, FruitKind] = {name: _kind(name, table) for name, table in TABLES["fruits"].items()}


@dataclass(frozen=True, eq=False)
class Fruit:
    """A fruit in the view.

    ``centre_px``: x, y; ``distance_mm``: distance of its centre; ``axis``: unit vector of its stalk; ``blush``: share
    of the skin that is blushed, 0 to 1.
    """

    kind: FruitKind
    skin: Skin
    centre_px: tuple[float, float]
    distance_mm: float
    diameter_mm: float
    flat: float
    axis: tuple[float, float, float]
    blush: float
    seed: int


@dataclass(frozen=True)
class Seen:
    """Unoccluded extent of a fruit: number of pixels and box (x0, y0, x1, y1), half-open."""

    whole_px: int
    box: tuple[int, int, int, int]


def lay_fruit(view: View, fruit: Fruit, number: int, focal_px: float, in_sun: float) -> Seen:
    """Paint one fruit with the id ``number``. ``in_sun``: 0 in full shade of leaves, 1 in full sun."""
    scale = focal_px / fruit.distance_mm
    bodies = _bodies(fruit)
    reach = max(float(np.hypot(*(offset[:2]))) + size * max(1.0, flat) for offset, size, flat in bodies) + 3.0 / scale
    x0, y0 = math.floor(fruit.centre_px[0] - reach * scale), math.floor(fruit.centre_px[1] - reach * scale)
    side = math.ceil(2 * reach * scale) + 2
    xs = (np.arange(side, dtype=np.float32)[None, :] + (x0 + 0.5 - fruit.centre_px[0])) / np.float32(scale)
    ys = (np.arange(side, dtype=np.float32)[:, None] + (y0 + 0.5 - fruit.centre_px[1])) / np.float32(scale)
    alpha, depth, normal, axial = _surface(bodies, np.asarray(fruit.axis), xs, ys, scale)
    flecks = view.flecks(x0, y0, side)
    light = _lit(view, fruit, normal, axial, 0.3 * in_sun + 0.7 * flecks)
    lift = 0.35 * fruit.diameter_mm * scale
    towards = view.sun.towards
    soft = blurred(alpha, max(0.8, 0.06 * side))
    view.shade(soft, x0 - round(lift * towards[0]), y0 - round(lift * towards[1]), 0.5 * (0.3 + 0.7 * in_sun))
    if fruit.kind.hollow:
        _stalk(view, fruit, scale)
    view.lay(alpha, light, depth + np.float32(fruit.distance_mm), x0, y0, number)
    solid = alpha > 0.5
    left, top, right, bottom = bounds(solid)
    return Seen(int(solid.sum()), (x0 + left, y0 + top, x0 + right, y0 + bottom))


def _bodies(fruit: Fruit) -> list[tuple[Vector, float, float]]:
    """Return offset from the centre (mm), radius across the axis (mm) and flatness of each ellipsoid."""
    radius, axis = fruit.diameter_mm / 2, np.asarray(fruit.axis)
    if fruit.kind.lobed:
        rng = np.random.default_rng([fruit.seed, 3])
        turn = rng.uniform(0, 2 * np.pi)
        first, second = _across(axis)
        lobes: list[tuple[Vector, float, float]] = []
        for k in range(3):
            angle = turn + 2 * np.pi * k / 3
            offset = 0.42 * radius * (math.cos(angle) * first + math.sin(angle) * second)
            lobes.append((offset, 0.60 * radius, fruit.flat / 0.60 * rng.uniform(0.88, 1.0)))
        return lobes
    return [(np.zeros(3), radius, fruit.flat)]


def _surface(
    bodies: Sequence[tuple[Vector, float, float]], axis: Vector, xs: Plane, ys: Plane, scale: float
) -> tuple[Plane, Plane, NDArray[np.float32], Plane]:
    """Return cover, depth from the centre (mm, negative in front), unit normals and place along the axis (-1 to 1)."""
    shape = np.broadcast_shapes(xs.shape, ys.shape)
    alpha = np.zeros(shape, np.float32)
    depth = np.full(shape, 1e6, np.float32)
    normal = np.zeros((*shape, 3), np.float32)
    axial = np.zeros(shape, np.float32)
    for offset, radius, flat in bodies:
        squeeze = 1.0 / flat**2 - 1.0
        m = (np.eye(3) + squeeze * np.outer(axis, axis)).astype(np.float32)
        x, y = xs - np.float32(offset[0]), ys - np.float32(offset[1])
        half_b = m[0, 2] * x + m[1, 2] * y
        rest = m[0, 0] * x * x + 2 * m[0, 1] * x * y + m[1, 1] * y * y
        free = half_b * half_b - m[2, 2] * (rest - np.float32(radius * radius))
        # In units of the radius this is 1 - distance^2 from the middle of the outline, which is an ellipse.
        inward = free / np.float32(m[2, 2] * radius * radius)
        cover = np.clip((1.0 - np.sqrt(np.clip(1.0 - inward, 0.0, None))) * np.float32(radius * scale) + 0.5, 0.0, 1.0)
        z = (-half_b - np.sqrt(np.clip(free, 0.0, None))) / m[2, 2]
        nearer = (cover > 0) & (z + np.float32(offset[2]) < depth)
        depth = np.where(nearer, z + np.float32(offset[2]), depth)
        n = np.stack(
            [m[0, 0] * x + m[0, 1] * y + m[0, 2] * z, m[0, 1] * x + m[1, 1] * y + m[1, 2] * z,
             m[0, 2] * x + m[1, 2] * y + m[2, 2] * z], axis=-1,
        )  # fmt: skip
        n /= np.maximum(np.sqrt((n * n).sum(axis=-1, keepdims=True)), 1e-6)
        normal = np.where(nearer[..., None], n, normal)
        along = (axis[0] * x + axis[1] * y + axis[2] * z) / (radius * flat)
        axial = np.where(nearer, along.astype(np.float32), axial)
        alpha = np.maximum(alpha, cover)
    return alpha, np.where(depth < 1e5, depth, 0.0).astype(np.float32), normal, axial


def _lit(view: View, fruit: Fruit, normal: NDArray[np.float32], axial: Plane, in_sun: Plane) -> NDArray[np.float32]:
    rng = np.random.default_rng([fruit.seed, 1])
    rows, columns = axial.shape
    sun = np.asarray(view.sun.towards, np.float32)
    facing = normal @ sun
    mottle = fractal_field(rng, rows, columns, max(4.0, 0.4 * columns), 4, 0.7)
    streak = _streaks(rng, fruit, normal) if fruit.skin.streaks > 0.1 else np.float32(0.0)
    # The side facing the light blushes first: with a share of 0.5, the half facing it is red.
    coloured = 3.2 * (facing * 0.6 - (1.0 - 2.0 * fruit.blush) + 0.35 * mottle + fruit.skin.streaks * streak)
    blush = 1.0 / (1.0 + np.exp(-np.clip(coloured, -8, 8)))
    specks = 1.0 + 0.05 * rng.standard_normal((rows, columns), dtype=np.float32)
    skin = fruit.skin.ground + blush[..., None] * (fruit.skin.blush - fruit.skin.ground)
    cavity = fruit.kind.hollow * np.exp(-(((1.0 - axial) / 0.10) ** 2))
    calyx = 0.5 * fruit.kind.hollow * np.exp(-(((1.0 + axial) / 0.035) ** 2))
    direct = np.clip(facing, 0.0, 1.0) * (np.float32(view.sun.share * 2.2) * in_sun)
    # The sky is above; leaves and ground reflect a little green light from all sides.
    around = (1.0 - view.sun.share) * (0.62 - 0.38 * normal[..., 1]) + 0.06
    light = (direct + around) * (1.0 - 0.75 * cavity - calyx) * specks
    light *= 0.80 + 0.20 * np.clip(-normal[..., 2], 0.0, 1.0)
    out = light[..., None] * skin
    half = sun + np.asarray([0, 0, -1], np.float32)
    half /= max(float(np.linalg.norm(half)), 1e-6)
    glint = np.clip(normal @ half, 0.0, 1.0)
    shine = fruit.skin.gloss * (0.85 * glint**60 * in_sun + 0.16 * glint**9 * (0.3 + 0.7 * in_sun))
    sheen = 0.05 * fruit.skin.gloss * np.clip(-normal[..., 1] - 0.2, 0.0, 1.0)
    return (out + (shine * view.sun.share * 1.4 + sheen)[..., None]).astype(np.float32)


def _across(axis: Vector) -> tuple[Vector, Vector]:
    """Return two unit vectors perpendicular to the axis and to each other."""
    first = np.cross(axis, [0.31, 0.17, 0.93])
    first /= np.linalg.norm(first)
    return first, np.cross(axis, first)


def _streaks(rng: Rng, fruit: Fruit, normal: NDArray[np.float32]) -> Plane:
    first, second = _across(np.asarray(fruit.axis))
    around = np.arctan2(normal @ second.astype(np.float32), normal @ first.astype(np.float32))
    table = np.convolve(rng.standard_normal(128 + 2), [0.3, 0.5, 0.3], "valid").astype(np.float32)
    place = (around / np.float32(2 * np.pi) % 1.0) * 127.0
    below = place.astype(np.int32)
    part = place - below
    return 0.6 * (table[below] * (1 - part) + table[np.minimum(below + 1, 127)] * part)


def _stalk(view: View, fruit: Fruit, scale: float) -> None:
    """Paint a short stalk; the fruit is painted after it, so only the part above it is visible."""
    x, y = fruit.centre_px
    reach = fruit.diameter_mm * scale * 0.62
    thick = max(1, round(2.6 * scale))
    end = (int((x + fruit.axis[0] * reach) * 16), int((y + fruit.axis[1] * reach) * 16))
    mask = np.zeros(view.size, np.uint8)
    cv2.line(mask, (int(x * 16), int(y * 16)), end, 255, thick, cv2.LINE_AA, 4)
    x0, x1 = int(min(x, end[0] / 16)) - thick - 2, int(max(x, end[0] / 16)) + thick + 3
    y0, y1 = int(min(y, end[1] / 16)) - thick - 2, int(max(y, end[1] / 16)) + thick + 3
    x0, y0 = max(0, x0), max(0, y0)
    patch = mask[y0:y1, x0:x1].astype(np.float32) / 255.0
    if patch.size:
        wood = np.broadcast_to(spectrum(0.11, 0.085, 0.04, 0.35), (*patch.shape, 4))
        view.lay(patch, np.asarray(wood, np.float32), fruit.distance_mm, x0, y0, 0)
