"""Leaves, twigs and background in perspective, painted from far to near: the view in which fruit hangs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.build.scenes.scene import blurred, fractal_field, overlap, resized, smooth_field, spectra

Rng = np.random.Generator
Plane = NDArray[np.floating[Any]]
Colour = NDArray[np.floating[Any]]
"""Reflectance in red, green, blue, near infrared."""

NOTHING = np.float32(np.inf)
_SPRITE_LENGTH, _SPRITE_WIDTH = 72, 52
_SPRITES = 8
FOLIAGE = spectra("foliage")
"""Reflectances of leaves, bark, ground and sky."""


@dataclass(frozen=True)
class Sunlight:
    """Direct and scattered light.

    ``towards``: unit vector to the sun, with x to the right, y down, z away from the camera; ``share``: share of all
    light that comes directly from the sun, the rest coming from the whole sky.
    """

    towards: tuple[float, float, float]
    share: float


class View:
    """A picture that is painted from far to near.

    ``light`` (rows, columns, 4); ``distance_mm`` (rows, columns), infinite for empty background; ``ids`` (rows,
    columns), 0 for pixels without fruit.
    """

    def __init__(self, backdrop: NDArray[np.floating[Any]], backdrop_mm: Plane, sun: Sunlight, dapple: Plane) -> None:
        self.light = np.ascontiguousarray(backdrop, dtype=np.float32)
        self.distance_mm = backdrop_mm.astype(np.float32)
        rows, columns = backdrop_mm.shape
        self.ids = np.zeros((rows, columns), dtype=np.int16)
        self.sun = sun
        self.dapple = dapple
        """0 in the shade of leaves outside the picture, 1 in full sun."""

    @property
    def size(self) -> tuple[int, int]:
        rows, columns = self.ids.shape
        return rows, columns

    def halved(self) -> "View":
        """Return a view of half the size with the same backdrop, for objects that are out of focus."""
        size = (self.ids.shape[1] // 2, self.ids.shape[0] // 2)
        light, dapple = (resized(each, *size, cv2.INTER_AREA) for each in (self.light, self.dapple))
        return View(light, resized(self.distance_mm, *size, cv2.INTER_NEAREST), self.sun, dapple)

    def doubled(self, whole: "View") -> "View":
        """Return this view, blurred, at the size of ``whole`` and with its pattern of sun and shade."""
        size = (whole.ids.shape[1], whole.ids.shape[0])
        light = resized(blurred(self.light, 0.6), *size, cv2.INTER_LINEAR)
        distance = resized(self.distance_mm, *size, cv2.INTER_NEAREST)
        return View(light, distance, self.sun, whole.dapple)

    def lay(
        self, alpha: Plane, light: NDArray[np.floating[Any]], distance_mm: Plane | float, x0: int, y0: int, number: int
    ) -> None:
        """Paint a patch with its corner at (x0, y0) over the view; it may extend beyond the view."""
        inside, place = overlap(alpha.shape, self.ids.shape, x0, y0)
        part = self.light[place]
        part += alpha[inside][..., None] * (light[inside] - part)
        solid = alpha[inside] > 0.5
        where = distance_mm[inside][solid] if isinstance(distance_mm, np.ndarray) else distance_mm
        self.distance_mm[place][solid] = where
        self.ids[place][solid] = number

    def flecks(self, x0: int, y0: int, side: int) -> Plane:
        """Return sun and shade on a square patch, which may extend beyond the view."""
        rows, columns = self.ids.shape
        return self.dapple[np.clip(np.arange(y0, y0 + side), 0, rows - 1)][
            :, np.clip(np.arange(x0, x0 + side), 0, columns - 1)
        ]

    def shade(self, alpha: Plane, x0: int, y0: int, darkness: float) -> None:
        """Darken the view under a patch: the shadow of an object that is painted next."""
        inside, place = overlap(alpha.shape, self.ids.shape, x0, y0)
        self.light[place] *= (1.0 - np.float32(darkness) * alpha[inside])[..., None]


def backdrop(rng: Rng, rows: int, columns: int, sky: float, horizon: float) -> tuple[NDArray[np.float32], Plane]:
    """Return the background: sky, the next row of trees, and the ground.

    Args:
        sky: its brightness (1 is white paper in the sun; higher values burn out in a photograph).
        horizon: lower edge of the sky, as a share of the height from the top.
    """
    y = np.linspace(0.0, 1.0, rows, dtype=np.float32)[:, None]
    skyline = horizon + 0.10 * smooth_field(rng, rows, columns, 110) + 0.05 * fractal_field(rng, rows, columns, 34, 3)
    trees = np.clip((y - skyline) * 14.0, 0.0, 1.0)
    mottle = np.clip(0.55 + 0.45 * fractal_field(rng, rows, columns, 26, 4, 0.8), 0.06, 1.9)
    ground = np.clip((y - rng.uniform(0.66, 0.95) + 0.02 * smooth_field(rng, rows, columns, 60)) * 9.0, 0.0, 1.0)
    far = FOLIAGE["greens"][0] * np.float32(rng.uniform(0.45, 0.9))
    soil = float(rng.uniform(0.0, 1.0)) ** 2
    floor = FOLIAGE["grass"] * (1 - soil) + FOLIAGE["soil"] * soil
    light: NDArray[np.floating[Any]] = np.broadcast_to(FOLIAGE["sky"] * np.float32(sky), (rows, columns, 4)).copy()
    light += trees[..., None] * (mottle[..., None] * far - light)
    light += ground[..., None] * ((0.6 + 0.4 * mottle)[..., None] * floor - light)
    distance = np.where(trees > 0.5, np.float32(rng.uniform(4200, 6500)), NOTHING)
    light = blurred(light, 1.6)
    return light, (distance + np.where(trees > 0.5, 350.0 * mottle, 0.0)).astype(np.float32)


def leaf_sprites(rng: Rng, slim: float = 1.0, teeth: int = 18) -> list[NDArray[np.uint8]]:
    """Return leaves along the x axis, with three channels: cover, relief (128 is flat), and half of the leaf."""
    u = ((np.arange(_SPRITE_LENGTH, dtype=np.float32) - 1.5) / (_SPRITE_LENGTH - 4))[None, :]
    v = ((np.arange(_SPRITE_WIDTH, dtype=np.float32) - _SPRITE_WIDTH / 2 + 0.5) / (_SPRITE_WIDTH / 2))[:, None]
    inside = np.clip(u, 1e-4, 1.0 - 1e-4)
    sprites: list[NDArray[np.uint8]] = []
    for _ in range(_SPRITES):
        rise, fall = rng.uniform(0.42, 0.62), rng.uniform(0.60, 0.95)
        shape = inside**rise * (1.0 - inside) ** fall
        shape = shape / shape.max() * np.float32(slim * rng.uniform(0.66, 0.86))
        bend = rng.normal(0, 0.16)
        across = v - bend * (4.0 * inside * (1.0 - inside) - 0.4)
        margin = shape * (1.0 + 0.07 * np.abs((inside * teeth + 0.3 * np.sign(across)) % 1.0 - 0.5))
        cover = np.clip((margin - np.abs(across)) * 9.0 + 0.5, 0.0, 1.0) * ((u > 0) & (u < 1))
        stalk = (np.abs(across) < 0.055) & (u <= 0.06)
        cover = np.maximum(cover, stalk)
        side = across / np.maximum(shape, 0.05)
        rib = np.exp(-((across / 0.055) ** 2)) * (1.0 - 0.5 * inside)
        veins = np.cos(2 * np.pi * (rng.uniform(5, 7.5) * inside - 1.3 * np.abs(side)))
        cup = rng.uniform(-0.30, 0.30) * (np.abs(side) - 0.5)
        droop = rng.uniform(-0.35, 0.35) * (inside - 0.5)
        relief = 1.0 + 0.30 * rib + 0.055 * np.clip(veins, -1, 1) + cup + droop
        relief += 0.08 * fractal_field(rng, _SPRITE_WIDTH, _SPRITE_LENGTH, 14, 2)
        half = np.clip(0.5 + 6.0 * across, 0.0, 1.0)
        planes = (255 * cover, np.clip(128 * relief, 0, 255), 255 * np.broadcast_to(half, cover.shape))
        sprites.append(np.stack(planes, axis=-1).astype(np.uint8))
    return sprites


@dataclass(frozen=True)
class LeafAt:
    """A leaf in the view: position of its stalk (px), direction, length (px), distance, colour, and light on each half.

    ``turned``: 1 if it faces the camera, 0.2 if it is almost edge on.
    """

    x: float
    y: float
    angle: float
    length: float
    turned: float
    distance_mm: float
    colour: Colour
    lit: tuple[float, float]
    gloss: float
    shadow: tuple[int, int] | None


def lay_leaf(view: View, sprite: NDArray[np.uint8], leaf: LeafAt) -> None:
    """Paint one leaf and its shadow, if it has one."""
    c, s = math.cos(leaf.angle), math.sin(leaf.angle)
    along = leaf.length / _SPRITE_LENGTH
    wide = along * leaf.turned
    ex, ey = _SPRITE_LENGTH * along * c, _SPRITE_LENGTH * along * s
    hx, hy = -s * wide * _SPRITE_WIDTH / 2, c * wide * _SPRITE_WIDTH / 2
    x0 = math.floor(leaf.x + min(0.0, ex) - abs(hx)) - 1
    y0 = math.floor(leaf.y + min(0.0, ey) - abs(hy)) - 1
    width = math.ceil(abs(ex) + 2 * abs(hx)) + 3
    height = math.ceil(abs(ey) + 2 * abs(hy)) + 3
    rows, columns = view.size
    if x0 >= columns or y0 >= rows or x0 + width <= 0 or y0 + height <= 0:
        return
    move = np.array(
        [
            [along * c, -wide * s, leaf.x - x0 + s * wide * _SPRITE_WIDTH / 2],
            [along * s, wide * c, leaf.y - y0 - c * wide * _SPRITE_WIDTH / 2],
        ],
        dtype=np.float64,
    )
    patch = cv2.warpAffine(sprite, move, (width, height), flags=cv2.INTER_LINEAR).astype(np.float32)
    alpha = patch[..., 0] / 255.0
    half = patch[..., 2] / 255.0
    relief = patch[..., 1] / 128.0
    shine = leaf.lit[1] + (leaf.lit[0] - leaf.lit[1]) * half
    light = (shine * relief)[..., None] * leaf.colour
    if leaf.gloss:
        light += (leaf.gloss * shine * np.clip(relief - 0.9, 0.0, 0.4))[..., None]
    if leaf.shadow is not None:
        view.shade(alpha, x0 + leaf.shadow[0], y0 + leaf.shadow[1], 0.42)
    view.lay(alpha, light, leaf.distance_mm, x0, y0, 0)


def twig(
    view: View, points: Sequence[tuple[float, float]], widths: Sequence[float], distance_mm: float, tone: float
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
        a, b = (int((xa - x0) * 16), int((ya - y0) * 16)), (int((xb - x0) * 16), int((yb - y0) * 16))
        cv2.line(alpha, a, b, 255, max(1, round(wide)), cv2.LINE_AA, 4)
        lift = 0.22 * wide
        a, b = ((int(p[0] + 16 * lift * fall[0]), int(p[1] + 16 * lift * fall[1])) for p in (a, b))
        cv2.line(ridge, a, b, 255, max(1, round(0.5 * wide)), cv2.LINE_AA, 4)
    lit = blurred(ridge.astype(np.float32), max(0.8, 0.18 * max(widths))).astype(np.float32) / 255.0
    light = (tone * (0.45 + 0.9 * lit))[..., None] * FOLIAGE["bark"]
    view.lay(alpha.astype(np.float32) / 255.0, light.astype(np.float32), distance_mm, x0, y0, 0)
