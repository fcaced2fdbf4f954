"""Drawn fruit of one variety among leaves, seen by a colour camera with depth; every diameter is known.

Leaves, twigs and fruit in perspective are painted from far to near over a background. Fruit are bodies of one or more
ellipsoids with ground colour, blush, hollow and highlight.
"""

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.vision.reading import bounds
from agrotools_build.scenes.scene import (
    TABLES,
    Box,
    Difficulty,
    Floats,
    Kind,
    Level,
    Plane,
    Rng,
    Scene,
    blurred,
    depth_frame,
    fractal_field,
    infrared_frame,
    levels,
    one_of,
    one_thread,
    overlap,
    resized,
    smooth_field,
    snapshot,
    spectra,
    spectrum,
    value_at,
    with_spectra,
)

NOTHING = np.float32(np.inf)
_SPRITE_LENGTH, _SPRITE_WIDTH = 72, 52
_SPRITES = 8
_TEETH = 18
"""Teeth of the margin of a leaf."""
FOLIAGE = spectra("foliage")
"""Reflectances of leaves, bark, ground and sky."""


@dataclass(frozen=True)
class Sunlight:
    """Direct and scattered light, and the ``share`` of all light that comes directly from the sun.

    ``towards``: unit vector to the sun, with x to the right, y down, z away from the camera.
    """

    towards: tuple[float, float, float]
    share: float


class View:
    """A picture that is painted from far to near.

    ``light`` (rows, columns, 4); ``distance_mm`` (rows, columns), infinite for empty background; ``ids`` (rows,
    columns), 0 for pixels without fruit; ``dapple``: 0 in the shade of leaves outside the picture, 1 in full sun.
    """

    def __init__(
        self,
        backdrop: Floats,
        backdrop_mm: Floats,
        sun: Sunlight,
        dapple: Floats,
        focal_px: float = 1.0,
    ) -> None:
        self.light = np.ascontiguousarray(backdrop, dtype=np.float32)
        self.distance_mm = backdrop_mm.astype(np.float32)
        self.ids: NDArray[np.int16] = np.zeros(backdrop_mm.shape, dtype=np.int16)
        self.sun = sun
        self.dapple = dapple
        self.focal_px = focal_px

    @property
    def size(self) -> tuple[int, int]:
        rows, columns = self.ids.shape
        return rows, columns

    def halved(self) -> "View":
        """Return a view of half the size with the same backdrop, for objects that are out of focus."""
        size = (self.ids.shape[1] // 2, self.ids.shape[0] // 2)
        light, dapple = (resized(each, *size, cv2.INTER_AREA) for each in (self.light, self.dapple))
        distance = resized(self.distance_mm, *size, cv2.INTER_NEAREST)
        return View(light, distance, self.sun, dapple, self.focal_px / 2)

    def doubled(self, whole: "View") -> "View":
        """Return this view, blurred, at the size of ``whole`` and with its pattern of sun and shade."""
        rows, columns = whole.size
        light = resized(blurred(self.light, 0.6), columns, rows)
        distance = resized(self.distance_mm, columns, rows, cv2.INTER_NEAREST)
        return View(light, distance, self.sun, whole.dapple, whole.focal_px)

    def lay(
        self,
        alpha: Floats,
        light: Floats,
        distance_mm: Floats | float,
        x0: int,
        y0: int,
        number: int,
    ) -> None:
        """Paint a patch with its corner at (x0, y0) over the view; it may extend beyond the view."""
        inside, place = overlap(alpha.shape, self.ids.shape, x0, y0)
        part = self.light[place]
        part += alpha[inside][..., None] * (light[inside] - part)
        solid = alpha[inside] > 0.5
        where = distance_mm[inside][solid] if isinstance(distance_mm, np.ndarray) else distance_mm
        self.distance_mm[place][solid] = where
        self.ids[place][solid] = number

    def flecks(self, x0: int, y0: int, side: int) -> Floats:
        """Return sun and shade on a square patch, which may extend beyond the view."""
        rows, columns = self.ids.shape
        return self.dapple[np.clip(np.arange(y0, y0 + side), 0, rows - 1)][
            :, np.clip(np.arange(x0, x0 + side), 0, columns - 1)
        ]

    def shade(self, alpha: Floats, x0: int, y0: int, darkness: float) -> None:
        """Darken the view under a patch: the shadow of an object that is painted next."""
        inside, place = overlap(alpha.shape, self.ids.shape, x0, y0)
        self.light[place] *= (1.0 - np.float32(darkness) * alpha[inside])[..., None]


def backdrop(rng: Rng, shape: tuple[int, int], sky: float, horizon: float) -> tuple[Plane, Floats]:
    """Return the background: sky, the next row of trees, and the ground.

    ``sky``: its brightness, 1 for white paper in the sun; ``horizon``: its lower edge, as a share of the height.
    """
    rows, columns = shape
    y = np.linspace(0.0, 1.0, rows, dtype=np.float32)[:, None]
    skyline = (
        horizon + 0.10 * smooth_field(rng, shape, 110) + 0.05 * fractal_field(rng, shape, 34, 3)
    )
    trees = np.clip((y - skyline) * 14.0, 0.0, 1.0)
    mottle = np.clip(0.55 + 0.45 * fractal_field(rng, shape, 26, 4, 0.8), 0.06, 1.9)
    ground = np.clip(
        (y - rng.uniform(0.66, 0.95) + 0.02 * smooth_field(rng, shape, 60)) * 9.0, 0.0, 1.0
    )
    far = FOLIAGE["greens"][0] * np.float32(rng.uniform(0.45, 0.9))
    soil = rng.uniform(0.0, 1.0) ** 2
    floor = FOLIAGE["grass"] * (1 - soil) + FOLIAGE["soil"] * soil
    light: Floats = np.broadcast_to(FOLIAGE["sky"] * np.float32(sky), (rows, columns, 4)).copy()
    light += trees[..., None] * (mottle[..., None] * far - light)
    light += ground[..., None] * ((0.6 + 0.4 * mottle)[..., None] * floor - light)
    distance = np.where(trees > 0.5, np.float32(rng.uniform(4200, 6500)), NOTHING)
    light = blurred(light, 1.6)
    return light, (distance + np.where(trees > 0.5, 350.0 * mottle, 0.0)).astype(np.float32)


def leaf_sprites(rng: Rng, slim: float = 1.0) -> list[NDArray[np.uint8]]:
    """Return leaves along the x axis, with three channels: cover, relief (128 is flat), and half of the leaf."""
    u = ((np.arange(_SPRITE_LENGTH, dtype=np.float32) - 1.5) / (_SPRITE_LENGTH - 4))[None, :]
    v = (
        (np.arange(_SPRITE_WIDTH, dtype=np.float32) - _SPRITE_WIDTH / 2 + 0.5) / (_SPRITE_WIDTH / 2)
    )[:, None]
    inside = np.clip(u, 1e-4, 1.0 - 1e-4)
    sprites: list[NDArray[np.uint8]] = []
    for _ in range(_SPRITES):
        rise, fall = rng.uniform(0.42, 0.62), rng.uniform(0.60, 0.95)
        shape = inside**rise * (1.0 - inside) ** fall
        shape = shape / shape.max() * np.float32(slim * rng.uniform(0.66, 0.86))
        bend = rng.normal(0, 0.16)
        across = v - bend * (4.0 * inside * (1.0 - inside) - 0.4)
        margin = shape * (
            1.0 + 0.07 * np.abs((inside * _TEETH + 0.3 * np.sign(across)) % 1.0 - 0.5)
        )
        cover = np.clip((margin - np.abs(across)) * 9.0 + 0.5, 0.0, 1.0) * ((u > 0) & (u < 1))
        stalk = (np.abs(across) < 0.055) & (u <= 0.06)
        cover = np.maximum(cover, stalk)
        side = across / np.maximum(shape, 0.05)
        rib = np.exp(-((across / 0.055) ** 2)) * (1.0 - 0.5 * inside)
        veins = np.cos(2 * np.pi * (rng.uniform(5, 7.5) * inside - 1.3 * np.abs(side)))
        cup = rng.uniform(-0.30, 0.30) * (np.abs(side) - 0.5)
        droop = rng.uniform(-0.35, 0.35) * (inside - 0.5)
        relief = 1.0 + 0.30 * rib + 0.055 * np.clip(veins, -1, 1) + cup + droop
        relief += 0.08 * fractal_field(rng, (_SPRITE_WIDTH, _SPRITE_LENGTH), 14, 2)
        half = np.clip(0.5 + 6.0 * across, 0.0, 1.0)
        planes = (
            255 * cover,
            np.clip(128 * relief, 0, 255),
            255 * np.broadcast_to(half, cover.shape),
        )
        sprites.append(np.stack(planes, axis=-1).astype(np.uint8))
    return sprites


def lay_leaf(
    view: View,
    sprite: NDArray[np.uint8],
    at: tuple[float, float],
    *,
    angle: float,
    length: float,
    turned: float,
    distance_mm: float,
    colour: Floats,
    lit: tuple[float, float],
    gloss: float,
    shadow: tuple[int, int] | None,
) -> None:
    """Paint one leaf and its shadow, if it has one.

    ``at``: position of its stalk, px; ``length``: px; ``turned``: 1 if it faces the camera, 0.2 if it is almost edge
    on; ``lit``: light on each half; ``shadow``: its offset, px.
    """
    c, s = math.cos(angle), math.sin(angle)
    along = length / _SPRITE_LENGTH
    wide = along * turned
    ex, ey = _SPRITE_LENGTH * along * c, _SPRITE_LENGTH * along * s
    hx, hy = -s * wide * _SPRITE_WIDTH / 2, c * wide * _SPRITE_WIDTH / 2
    x0 = math.floor(at[0] + min(0.0, ex) - abs(hx)) - 1
    y0 = math.floor(at[1] + min(0.0, ey) - abs(hy)) - 1
    width, height = math.ceil(abs(ex) + 2 * abs(hx)) + 3, math.ceil(abs(ey) + 2 * abs(hy)) + 3
    rows, columns = view.size
    if x0 >= columns or y0 >= rows or x0 + width <= 0 or y0 + height <= 0:
        return
    move = np.array(
        [[along * c, -wide * s, at[0] - x0 + s * wide * _SPRITE_WIDTH / 2],
         [along * s, wide * c, at[1] - y0 - c * wide * _SPRITE_WIDTH / 2]]
    )  # fmt: skip
    patch = cv2.warpAffine(sprite, move, (width, height), flags=cv2.INTER_LINEAR).astype(np.float32)
    alpha = patch[..., 0] / 255.0
    half = patch[..., 2] / 255.0
    relief = patch[..., 1] / 128.0
    shine = lit[1] + (lit[0] - lit[1]) * half
    light = (shine * relief)[..., None] * colour
    if gloss:
        light += (gloss * shine * np.clip(relief - 0.9, 0.0, 0.4))[..., None]
    if shadow is not None:
        view.shade(alpha, x0 + shadow[0], y0 + shadow[1], 0.42)
    view.lay(alpha, light, distance_mm, x0, y0, 0)


def twig(
    view: View,
    points: Sequence[tuple[float, float]],
    widths: Sequence[float],
    distance_mm: float,
    tone: float,
) -> None:
    """Paint a branch along ``points`` (px) with thicknesses ``widths`` (px), lit from the side of the sun."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    pad = int(max(widths)) + 3
    x0, y0 = int(min(xs)) - pad, int(min(ys)) - pad
    size = (int(max(ys)) + pad - y0, int(max(xs)) + pad - x0)
    alpha = np.zeros(size, dtype=np.uint8)
    ridge = np.zeros(size, dtype=np.uint8)
    fall = (view.sun.towards[0], view.sun.towards[1])
    for (xa, ya), (xb, yb), wide in zip(points[:-1], points[1:], widths, strict=False):
        a, b = (
            (int((xa - x0) * 16), int((ya - y0) * 16)),
            (int((xb - x0) * 16), int((yb - y0) * 16)),
        )
        cv2.line(alpha, a, b, 255, max(1, round(wide)), cv2.LINE_AA, 4)
        lift = 0.22 * wide
        a, b = ((int(p[0] + 16 * lift * fall[0]), int(p[1] + 16 * lift * fall[1])) for p in (a, b))
        cv2.line(ridge, a, b, 255, max(1, round(0.5 * wide)), cv2.LINE_AA, 4)
    lit = blurred(ridge.astype(np.float32), max(0.8, 0.18 * max(widths))).astype(np.float32) / 255.0
    light = (tone * (0.45 + 0.9 * lit))[..., None] * FOLIAGE["bark"]
    view.lay(alpha.astype(np.float32) / 255.0, light.astype(np.float32), distance_mm, x0, y0, 0)


Vector = NDArray[np.float64]


KINDS: dict[str, Kind] = {
    name: Kind(**{
        "lobed": False, **table, "name": name,
        "skins": {one: with_spectra(skin, "ground", "blush") for one, skin in table["skins"].items()},
    })
    for name, table in TABLES["fruits"].items()
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Fruit:
    """A fruit in the view.

    ``centre_px``: x, y; ``distance_mm``: distance of its centre; ``axis``: unit vector of its stalk; ``blush``: share
    of the skin that is blushed, 0 to 1.
    """

    kind: Kind
    skin: Kind
    centre_px: tuple[float, float]
    distance_mm: float
    diameter_mm: float
    flat: float
    axis: tuple[float, float, float]
    blush: float
    seed: int


Seen = tuple[int, Box]
"""Unoccluded extent of a fruit: number of pixels and box (x0, y0, x1, y1), half-open."""


def lay_fruit(view: View, fruit: Fruit, number: int, in_sun: float) -> Seen:
    """Paint one fruit with the id ``number``. ``in_sun``: 0 in full shade of leaves, 1 in full sun."""
    scale = view.focal_px / fruit.distance_mm
    bodies = _bodies(fruit)
    reach = (
        max(float(np.hypot(*(offset[:2]))) + size * max(1.0, flat) for offset, size, flat in bodies)
        + 3.0 / scale
    )
    x0, y0 = (
        math.floor(fruit.centre_px[0] - reach * scale),
        math.floor(fruit.centre_px[1] - reach * scale),
    )
    side = math.ceil(2 * reach * scale) + 2
    xs = (
        np.arange(side, dtype=np.float32)[None, :] + (x0 + 0.5 - fruit.centre_px[0])
    ) / np.float32(scale)
    ys = (
        np.arange(side, dtype=np.float32)[:, None] + (y0 + 0.5 - fruit.centre_px[1])
    ) / np.float32(scale)
    alpha, depth, normal, axial = _surface(bodies, np.asarray(fruit.axis), xs, ys, scale)
    flecks = view.flecks(x0, y0, side)
    light = _lit(view, fruit, normal, axial, 0.3 * in_sun + 0.7 * flecks)
    lift = 0.35 * fruit.diameter_mm * scale
    towards = view.sun.towards
    soft = blurred(alpha, max(0.8, 0.06 * side))
    view.shade(
        soft,
        x0 - round(lift * towards[0]),
        y0 - round(lift * towards[1]),
        0.5 * (0.3 + 0.7 * in_sun),
    )
    if fruit.kind.hollow:
        _stalk(view, fruit, scale)
    view.lay(alpha, light, depth + np.float32(fruit.distance_mm), x0, y0, number)
    solid = alpha > 0.5
    left, top, right, bottom = bounds(solid)
    return int(solid.sum()), (x0 + left, y0 + top, x0 + right, y0 + bottom)


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
    bodies: Sequence[tuple[Vector, float, float]],
    axis: Vector,
    xs: Floats,
    ys: Floats,
    scale: float,
) -> tuple[Floats, Floats, Plane, Floats]:
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
        cover = np.clip(
            (1.0 - np.sqrt(np.clip(1.0 - inward, 0.0, None))) * np.float32(radius * scale) + 0.5,
            0.0,
            1.0,
        )
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


def _lit(view: View, fruit: Fruit, normal: Plane, axial: Floats, in_sun: Floats) -> Plane:
    rng = np.random.default_rng([fruit.seed, 1])
    rows, columns = axial.shape
    sun = np.asarray(view.sun.towards, np.float32)
    facing = normal @ sun
    mottle = fractal_field(rng, (rows, columns), max(4.0, 0.4 * columns), 4, 0.7)
    streak = _streaks(rng, fruit, normal) if fruit.skin.streaks > 0.1 else np.float32(0.0)
    # The side facing the light blushes first: with a share of 0.5, the half facing it is red.
    coloured = 3.2 * (
        facing * 0.6 - (1.0 - 2.0 * fruit.blush) + 0.35 * mottle + fruit.skin.streaks * streak
    )
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


def _streaks(rng: Rng, fruit: Fruit, normal: Plane) -> Floats:
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


@dataclass(frozen=True, eq=False)
class Foliage:
    """The leaves of one plant: shapes, usual colour and length."""

    sprites: list[NDArray[np.uint8]]
    base: Floats
    leaf_mm: float
    odd_leaves: float
    """Share of leaves with another colour."""
    odd: tuple[str, ...]
    """Colours of these leaves: yellow, red or brown."""


def random_position(rng: Rng, view: View) -> tuple[float, float]:
    """Return a random position in the picture or just outside it, pixels."""
    rows, columns = view.size
    return float(rng.uniform(-0.04, 1.04) * columns), float(rng.uniform(-0.04, 1.04) * rows)


_MANY_FRUITS = 4
"""Fruits in a picture from which on each gets its share of the leaves near fruits."""


def position_near_fruit(
    rng: Rng, view: View, hung: list[Fruit], over: float
) -> tuple[float, float]:
    """Return the position of a leaf's stalk: near a fruit with probability ``over``, otherwise anywhere.

    The probability is less where few fruits hang, so that a single one is not buried in leaves.
    """
    if hung and rng.uniform() < over * min(1.0, len(hung) / _MANY_FRUITS):
        fruit = hung[int(rng.integers(len(hung)))]
        turn = rng.uniform(0, 2 * np.pi)
        return fruit.centre_px[0] + 34 * math.cos(turn), fruit.centre_px[1] - 12 + 30 * math.sin(
            turn
        )
    return random_position(rng, view)


def lay_cluster(
    rng: Rng, view: View, foliage: Foliage, at: tuple[float, float], distance: float, dim: float
) -> None:
    """Paint the leaves of one spur or shoot tip, which spread from about one point."""
    turn = rng.uniform(0, 2 * np.pi)
    scatter = 0.10 * foliage.leaf_mm * view.focal_px / distance
    for _ in range(int(rng.integers(4, 9))):
        turn += 2.4 + rng.normal(0, 0.3)
        x, y = at[0] + rng.normal(0, scatter), at[1] + rng.normal(0, scatter)
        lay_one(rng, view, foliage, (x, y), distance * rng.uniform(0.98, 1.02), dim, turn)


def lay_one(
    rng: Rng,
    view: View,
    foliage: Foliage,
    at: tuple[float, float],
    distance: float,
    dim: float,
    turn: float | None = None,
) -> None:
    """Paint one leaf whose stalk is at ``at``. ``dim``: share of light on it, 1 at the front of the crown."""
    sunny = value_at(view.dapple, *at) * (0.3 + 0.7 * dim)
    tone = foliage.base * rng.uniform(0.5, 1.0) + one_of(rng, FOLIAGE["greens"]) * 0.4
    tone = tone * rng.normal(1.0, 0.10, 4).clip(0.7, 1.35)
    chance = rng.uniform()
    if chance < foliage.odd_leaves:
        tone = tone + (FOLIAGE[str(rng.choice(foliage.odd))] - tone) * rng.uniform(0.5, 1.0)
    elif chance > 0.86:
        tone = tone + (FOLIAGE["underside"] - tone) * 0.6
    elif chance > 0.76 and sunny > 0.5:
        tone = tone * np.array([1.7, 1.75, 0.8, 1.0])  # light from the sun behind it shines through
    sky = (1.0 - view.sun.share) * rng.uniform(0.35, 0.9)
    first, second = (
        max(0.0, rng.normal(0.5, 0.38)) * view.sun.share * 2.4 * sunny for _ in range(2)
    )
    depth = 0.2 + 0.8 * dim
    shadow = None
    if dim > 0.6:
        drop = rng.uniform(4, 12)
        shadow = (round(-drop * view.sun.towards[0]), round(-drop * view.sun.towards[1]))
    angle = rng.normal(np.pi / 2, 1.1) if turn is None else turn
    length = foliage.leaf_mm * rng.uniform(0.6, 1.15) * view.focal_px / distance
    turned = float(np.clip(abs(rng.normal(0.8, 0.25)), 0.2, 1.0))
    gloss = rng.uniform(0.05, 0.3) if rng.uniform() < 0.3 else 0.0
    sprite = foliage.sprites[int(rng.integers(len(foliage.sprites)))]
    lay_leaf(
        view,
        sprite,
        at,
        angle=angle,
        length=length,
        turned=turned,
        distance_mm=distance,
        colour=tone.astype(np.float32),
        lit=((sky + first) * depth, (sky + second) * depth),
        gloss=gloss,
        shadow=shadow,
    )


def lay_branches(
    rng: Rng, view: View, distance: float, count: int, tone: float, step_px: float
) -> None:
    """Paint ``count`` branches with segments of ``step_px`` that rise through the picture."""
    rows, columns = view.size
    for _ in range(count):
        x, y = rng.uniform(0, columns), float(rows * rng.uniform(0.5, 1.25))
        turn, wide = -np.pi / 2 + rng.normal(0, 0.7), rng.uniform(8, 30) * view.focal_px / distance
        points, widths = [(x, y)], [wide]
        for _ in range(7):
            turn += rng.normal(0, 0.22)
            x, y = x + step_px * math.cos(turn), y + step_px * math.sin(turn)
            points.append((x, y))
            widths.append(widths[-1] * 0.86)
        twig(view, points, widths, distance, tone * rng.uniform(0.5, 1.2))


ROWS_PX, COLUMNS_PX = SIZE = 480, 640
WELL_SEEN = 0.6
"""Minimum visible share of a fruit that counts as measurable."""
LEAST_SEEN = 0.15
"""Minimum visible share of a fruit that counts as visible at all."""


@one_thread()
def make_orchard(
    seed: int,
    difficulty: Difficulty = 1,
    kind: str = "apple",
    *,
    fruits: int | None = None,
    skin: str | None = None,
    mean_mm: float | None = None,
) -> Scene:
    """Draw a picture of 640 x 480 px with its depth. The same arguments give the same scene.

    Args:
        kind: one of :data:`KINDS`.
        fruits: number of fruits; None: drawn. There are fewer if there is not enough room.
        skin: variety; None: drawn.
        mean_mm: mean diameter of the fruit on this plant; None: drawn.

    Returns:
        ``images``: ``rgb`` uint8 (480, 640, 3); ``nir`` uint8 (480, 640); ``depth`` uint16 (480, 640), millimetres
        along the optical axis, 0 unknown. ``masks``: ``ids`` int16 (480, 640), 0 for pixels without fruit. ``truth``:
        ``fruits``, from near to far, each with ``id``, ``diameter_mm`` (across the axis), ``distance_mm`` (from the
        camera to the centre), ``centre_px``, ``box`` (of the whole fruit including hidden parts, clipped to the
        picture) and ``visibility`` (visible share of its outline); ``skin``. ``sidecar``: ``fx_px``, the focal
        length in pixels.
    """
    rng = np.random.default_rng(
        [seed, zlib.crc32(b"orchard"), zlib.crc32(kind.encode()), difficulty]
    )
    level, fruit_kind = levels("orchard")[difficulty], KINDS[kind]
    variety = str(rng.choice(varieties_of(kind, difficulty))) if skin is None else skin
    # Small fruit is photographed from nearer, to cover enough pixels.
    near = rng.uniform(760, 1150) * (fruit_kind.diameter_mm[0] / 74.0) ** 0.75
    focal_px = rng.uniform(760, 1000)
    low, high = level.fruits
    count = int(rng.integers(low, high + 1)) if fruits is None else fruits
    if kind == "cherry" and fruits is None:
        count *= 3
    view = _empty(rng, level, focal_px)
    hung = _hang(rng, fruit_kind, variety, count, focal_px, near, mean_mm)
    view, seen = _paint(rng, view, level, near, hung)
    light = view.light
    photo = snapshot(rng, light, float(rng.uniform(*level.exposure)), level.electrons)
    infrared = infrared_frame(rng, light[..., 3], 1.6)
    depth = depth_frame(rng, view.distance_mm, level.depth_noise, level.holes, level.flying)
    images = {"rgb": photo, "nir": infrared, "depth": depth}
    return Scene(
        images,
        {"fx_px": focal_px},
        {"fruits": _truth(view, hung, seen), "skin": variety},
        {"ids": view.ids},
    )


def varieties_of(kind: str, difficulty: Difficulty) -> tuple[str, ...]:
    """Return the varieties of a fruit that are drawn at a difficulty."""
    return levels("orchard")[difficulty].skins if kind == "apple" else tuple(KINDS[kind].skins)


def _empty(rng: Rng, level: Level, focal_px: float) -> View:
    towards = np.array(
        [rng.uniform(-0.8, 0.8), rng.uniform(-1.0, -0.45), rng.uniform(-0.95, -0.05)]
    )
    towards /= np.linalg.norm(towards)
    sun = Sunlight(
        (float(towards[0]), float(towards[1]), float(towards[2])), float(rng.uniform(*level.sun))
    )
    light, distance = backdrop(
        rng, SIZE, float(rng.uniform(*level.sky)), float(rng.uniform(*level.horizon))
    )
    flecks = fractal_field(rng, SIZE, 95, 3)
    dapple = 1.0 / (1.0 + np.exp(-4.0 * (flecks + 0.9 - 1.9 * level.shade)))
    return View(light, distance, sun, dapple.astype(np.float32), focal_px)


def _hang(
    rng: Rng,
    kind: Kind,
    variety: str,
    wanted: int,
    focal_px: float,
    near_mm: float,
    mean_mm: float | None,
) -> list[Fruit]:
    """Return fruits that do not touch each other, singly and in clusters."""
    skin = kind.skins[variety]
    drawn = float(rng.normal(kind.diameter_mm[0], 0.6 * kind.diameter_mm[1]))
    mean = drawn if mean_mm is None else mean_mm
    fruits_hung: list[Fruit] = []
    places: list[tuple[np.ndarray, float]] = []
    for _ in range(40 * wanted):
        if len(fruits_hung) >= wanted:
            break
        diameter = float(
            np.clip(rng.normal(mean, 0.75 * kind.diameter_mm[1]), 0.68 * mean, 1.35 * mean)
        )
        distance = near_mm * rng.uniform(1.0, 1.32)
        radius_px = focal_px * diameter / (2 * distance)
        if places and rng.uniform() < 0.45:
            other, size = places[int(rng.integers(len(places)))]
            turn, near = rng.uniform(0, 2 * np.pi), (size + diameter) / 2 * rng.uniform(1.0, 1.25)
            spot = other + near * np.array(
                [math.cos(turn), 0.75 * math.sin(turn), rng.uniform(-0.4, 0.4)]
            )
            distance = float(spot[2])
            x, y = (
                float(spot[k]) * focal_px / distance + (COLUMNS_PX / 2, ROWS_PX / 2)[k]
                for k in (0, 1)
            )
        else:
            x = float(rng.uniform(0.7 * radius_px, COLUMNS_PX - 0.7 * radius_px))
            y = float(rng.uniform(0.7 * radius_px, ROWS_PX - 0.7 * radius_px))
        inside = (
            -0.2 * radius_px < x < COLUMNS_PX + 0.2 * radius_px and -0.2 * radius_px < y < ROWS_PX
        )
        if not inside or distance < 0.8 * near_mm:
            continue
        spot = np.array([(x - COLUMNS_PX / 2), (y - ROWS_PX / 2), focal_px]) * distance / focal_px
        long = max(1.0, kind.flat[1]) if kind.lobed else 1.0
        if any(
            np.linalg.norm(spot - other) < long * (diameter + size) / 2 for other, size in places
        ):
            continue
        axis = np.array([rng.normal(0, 0.45), -1.0, rng.normal(-0.15, 0.5)])
        axis /= np.linalg.norm(axis)
        places.append((spot, diameter))
        fruits_hung.append(
            Fruit(
                kind, skin, (x, y), distance, diameter, float(rng.uniform(*kind.flat)),
                (float(axis[0]), float(axis[1]), float(axis[2])), float(rng.uniform(*skin.share)),
                int(rng.integers(2**31)),
            )
        )  # fmt: skip
    return sorted(fruits_hung, key=lambda fruit: -fruit.distance_mm)


def _paint(
    rng: Rng, view: View, level: Level, near: float, hung: list[Fruit]
) -> tuple[View, list[Seen]]:
    """Paint everything from far to near. The far background is drawn at half size, because it is out of focus."""
    sprites = leaf_sprites(rng, rng.uniform(0.8, 1.1))
    foliage = Foliage(
        sprites, one_of(rng, FOLIAGE["greens"]), rng.uniform(70, 100) * near / 1100.0,
        level.odd_leaves, level.odd,
    )  # fmt: skip
    far = view.halved()
    lay_branches(rng, far, near * 1.8, 3, 0.5, 31.0)
    for distance in np.sort(rng.uniform(1.45 * near, 1.95 * near, 105))[::-1]:
        lay_cluster(rng, far, foliage, random_position(rng, far), float(distance), 0.42)
    view = far.doubled(view)
    lay_branches(rng, view, near * 1.42, 4, 0.9, 62.0)
    density = np.clip(0.62 + 0.5 * fractal_field(rng, SIZE, 150, 2), 0.05, 1.0)
    for distance in np.sort(rng.uniform(1.2 * near, 1.42 * near, 72))[::-1]:
        at = random_position(rng, view)
        if rng.uniform() < value_at(density, *at):
            lay_cluster(rng, view, foliage, at, float(distance), 0.75)
    among = list(np.sort(rng.uniform(near, 1.32 * near, 50))[::-1])
    seen: list[Seen] = []
    for number, fruit in enumerate(hung, start=1):
        while among and among[0] > fruit.distance_mm:
            lay_one(rng, view, foliage, random_position(rng, view), float(among.pop(0)), 0.95)
        seen.append(lay_fruit(view, fruit, number, value_at(view.dapple, *fruit.centre_px)))
    low, high = level.front_leaves
    for distance in np.sort(
        rng.uniform(0.86 * near, 0.99 * near, int(rng.integers(low, high + 1)))
    )[::-1]:
        at = position_near_fruit(rng, view, hung, level.over_fruit)
        lay_one(rng, view, foliage, at, float(distance), 1.0)
    return view, seen


def _truth(view: View, hung: list[Fruit], seen: list[Seen]) -> list[dict[str, Any]]:
    counted = np.bincount(view.ids.ravel(), minlength=len(hung) + 1)
    rows: list[dict[str, Any]] = []
    for number, (fruit, (whole_px, (x0, y0, x1, y1))) in enumerate(
        zip(hung, seen, strict=True), start=1
    ):
        x, y = fruit.centre_px[0] - COLUMNS_PX / 2, fruit.centre_px[1] - ROWS_PX / 2
        slant = math.sqrt(1.0 + (x * x + y * y) / view.focal_px**2)
        rows.append(
            {
                "id": number,
                "diameter_mm": round(fruit.diameter_mm, 2),
                "distance_mm": round(fruit.distance_mm * slant, 1),
                "centre_px": [round(fruit.centre_px[0], 2), round(fruit.centre_px[1], 2)],
                "box": [max(0, x0), max(0, y0), min(COLUMNS_PX, x1), min(ROWS_PX, y1)],
                "visibility": round(int(counted[number]) / max(1, whole_px), 4),
            }
        )
    return rows[::-1]
