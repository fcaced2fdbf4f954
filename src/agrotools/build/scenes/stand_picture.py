"""A stand as a camera sees it from an aircraft: crowns lit from one side, shadows cast on what is lower, soil and
grass between."""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.build.scenes.scene import fractal_field, smooth_field
from agrotools.build.scenes.stand_trees import Rows, Tree

Plane = NDArray[np.float32]

NOBODY = -1
_OUTLINE_STEPS = 24


@dataclass(frozen=True, eq=False)
class Surface:
    """``heights``: metres above ground, float32 (rows, columns); ``owner``: number of the tree whose crown is
    uppermost, int16, :data:`NOBODY` where there is none."""

    heights: Plane
    owner: NDArray[np.int16]
    gsd_m: float


def grow(rng: np.random.Generator, trees: Sequence[Tree], rows: int, columns: int, gsd_m: float) -> Surface:
    """The surface of these trees over bare ground, with clumps of leaves 0.5 to 1 m wide."""
    heights = np.zeros((rows, columns), np.float32)
    owner = np.full((rows, columns), NOBODY, np.int16)
    clumps = fractal_field(rng, rows, columns, max(1.6, 1.3 / gsd_m), 2, 0.8)
    for number, tree in enumerate(trees):
        _raise(rng, heights, owner, clumps, number, tree, gsd_m)
    return Surface(heights, owner, gsd_m)


def seen_from_above(surface: Surface, trees: Sequence[Tree]) -> list[int]:
    """The trees whose highest point lies in the picture and under no other crown: what anybody could count."""
    rows, columns = surface.heights.shape
    found: list[int] = []
    for number, tree in enumerate(trees):
        column, row = int(np.floor(tree.x / surface.gsd_m)), int(np.floor(tree.y / surface.gsd_m))
        if tree.kind == "shrub" or not (0 <= column < columns and 0 <= row < rows):
            continue
        if surface.owner[row, column] == number:
            found.append(number)
    return found


def on_grid(heights: Plane, factor: int) -> Plane:
    """Heights in cells ``factor`` times as wide: the highest point of each, as height models are made."""
    rows, columns = (side // factor for side in heights.shape)
    cells = heights[: rows * factor, : columns * factor].reshape(rows, factor, columns, factor)
    return np.ascontiguousarray(cells.max(axis=(1, 3)))


def scanned(
    rng: np.random.Generator, heights: Plane, gsd_m: float, *, pits: float, noise_m: float, terrain_m: float
) -> Plane:
    """Height model of an airborne laser: noise, pits where pulses went through crowns, and the error of the
    terrain model below it, which varies over tens of metres. Never below 0."""
    rows, columns = heights.shape
    out = heights + rng.normal(0, noise_m, heights.shape).astype(np.float32) * (0.3 + (heights > 0.3))
    if terrain_m:
        out += np.float32(terrain_m) * smooth_field(rng, rows, columns, 30.0 / gsd_m)
    deep = rng.uniform(size=heights.shape) < pits
    out[deep] *= rng.uniform(0.05, 0.7, int(deep.sum())).astype(np.float32)
    return np.maximum(out, 0).astype(np.float32)


def _raise(
    rng: np.random.Generator,
    heights: Plane,
    owner: NDArray[np.int16],
    clumps: Plane,
    number: int,
    tree: Tree,
    gsd_m: float,
) -> None:
    rows, columns = heights.shape
    reach = 1.35 * tree.radius
    x0, x1 = max(0, int((tree.x - reach) / gsd_m)), min(columns, int((tree.x + reach) / gsd_m) + 2)
    y0, y1 = max(0, int((tree.y - reach) / gsd_m)), min(rows, int((tree.y + reach) / gsd_m) + 2)
    if x0 >= x1 or y0 >= y1:
        return
    xs = (np.arange(x0, x1, dtype=np.float32)[None, :] + 0.5) * np.float32(gsd_m) - np.float32(tree.x)
    ys = (np.arange(y0, y1, dtype=np.float32)[:, None] + 0.5) * np.float32(gsd_m) - np.float32(tree.y)
    crown = np.zeros((y1 - y0, x1 - x0), np.float32)
    ragged = 1.0 + 0.10 * clumps[y0:y1, x0:x1]
    waves = rng.normal(0, 0.07, 2), rng.uniform(0, 2 * np.pi, 2)
    for lobe in tree.lobes:
        dx, dy = xs - np.float32(lobe.dx * tree.radius), ys - np.float32(lobe.dy * tree.radius)
        away = np.sqrt(dx * dx + dy * dy) / np.float32(lobe.radius * tree.radius)
        turn = np.arctan2(dy, dx) if tree.radius > 3 * gsd_m else None
        if turn is not None:
            away = away * (
                1.0 + waves[0][0] * np.sin(2 * turn + waves[1][0]) + waves[0][1] * np.sin(3 * turn + waves[1][1])
            )
        away = away * ragged
        shape = 1.0 - (1.0 - tree.skirt) * np.minimum(away, 1.0) ** np.float32(tree.power)
        np.maximum(crown, np.where(away < 1.0, np.float32(lobe.height * tree.height) * shape, 0), out=crown)
    rough = np.float32(min(0.35, 0.05 * tree.height))
    crown = np.where(crown > 0, np.clip(crown - rough * np.abs(clumps[y0:y1, x0:x1]), 0.1, tree.height), 0)
    view = heights[y0:y1, x0:x1]
    above = crown > view
    view[above] = crown[above]
    owner[y0:y1, x0:x1][above] = number


def _rgb(*values: float) -> Plane:
    return np.asarray(values, np.float32)


_SOILS = (_rgb(0.175, 0.135, 0.095), _rgb(0.235, 0.190, 0.140), _rgb(0.120, 0.095, 0.070), _rgb(0.205, 0.125, 0.080))
_GRASS = _rgb(0.062, 0.092, 0.036)
_DRY_GRASS = _rgb(0.165, 0.142, 0.082)
_LEAVES = {
    "conifer": _rgb(0.030, 0.046, 0.024),
    "broadleaf": _rgb(0.044, 0.074, 0.026),
    "fruit": _rgb(0.046, 0.076, 0.032),
    "shrub": _rgb(0.060, 0.080, 0.036),
}
"""Round figures of ours for red, green and blue, as in published libraries."""
_TURNED = _rgb(0.150, 0.115, 0.055)
"""A tree that is dying, or has its autumn colours."""


@dataclass(frozen=True)
class Sun:
    """Direction of shadows (unit vector in the picture), tangent of the sun's height, share of the light that is
    scattered."""

    dx: float
    dy: float
    tangent: float
    sky: float


@dataclass(frozen=True)
class Camera:
    """``noise``: spread of the sensor's noise; ``haze``: light added by air; ``warmth``: spread of the colour balance;
    ``blur_px``: width of the lens's blur; ``quality``: of the JPEG that the picture went through."""

    noise: float
    haze: float
    warmth: float
    blur_px: float
    quality: int


def draw_sun(rng: np.random.Generator, tangent: tuple[float, float]) -> Sun:
    """A sun from anywhere; ``tangent``: range of the tangent of its height (0.8 low, 2 high)."""
    turn = float(rng.uniform(0, 2 * np.pi))
    return Sun(float(np.cos(turn)), float(np.sin(turn)), float(rng.uniform(*tangent)), float(rng.uniform(0.22, 0.38)))


def photographed(
    rng: np.random.Generator,
    surface: Surface,
    trees: Sequence[Tree],
    ground: Plane,
    sun: Sun,
    camera: Camera,
) -> NDArray[np.uint8]:
    """The picture, uint8 (rows, columns, 3), of ``ground`` (reflectance) with these trees on it."""
    heights, owner = surface.heights, surface.owner
    colours = ground + 0.0
    if trees:
        table = np.stack([_colour(tree) for tree in trees])
        crowns = owner >= 0
        rows, columns = heights.shape
        leaves = 1.0 + 0.16 * fractal_field(rng, rows, columns, max(1.5, 0.9 / surface.gsd_m), 2, 0.9)
        edge = np.asarray(cv2.GaussianBlur(crowns.astype(np.float32), (0, 0), 0.6))[..., None]
        colours += edge * (table[np.maximum(owner, 0)] * leaves[..., None] - colours)
    light = _light(heights, surface.gsd_m, sun)
    # What is lit by the sky alone is bluish.
    lit = light[0][..., None] + light[1][..., None] * _rgb(0.86, 0.97, 1.22)
    return _exposed(rng, np.asarray(colours * lit, np.float32), camera)


def paint_forest_floor(rng: np.random.Generator, rows: int, columns: int, gsd_m: float, grass: float) -> Plane:
    """Reflectance of the ground of a forest or a meadow, (rows, columns, 3): ``grass`` 0 (bare) to 1 (closed)."""
    soil = _soil(rng, rows, columns, gsd_m)
    patch = fractal_field(rng, rows, columns, 14.0 / gsd_m, 4, 0.7)
    cover = np.clip(grass + 0.45 * patch, 0, 1)[..., None]
    return (soil + cover * (_sward(rng, rows, columns, gsd_m) - soil)).astype(np.float32)


def paint_orchard_floor(rng: np.random.Generator, shape: tuple[int, int], gsd_m: float, grid: Rows) -> Plane:
    """Grass or soil between the rows, strips kept bare along them, wheel tracks."""
    rows, columns = shape
    y, x = np.mgrid[0:rows, 0:columns].astype(np.float32) * np.float32(gsd_m)
    x, y = x - columns * gsd_m / 2, y - rows * gsd_m / 2
    across = -x * np.sin(grid.angle) + y * np.cos(grid.angle)
    phase = rng.uniform(0, grid.between_m)
    soil, sward = _soil(rng, rows, columns, gsd_m), _sward(rng, rows, columns, gsd_m)
    fine = fractal_field(rng, rows, columns, 3.0 / gsd_m, 3, 0.8)
    from_row = np.abs((across - phase + grid.between_m / 2) % grid.between_m - grid.between_m / 2)
    grassy = float(rng.choice([0.15, 0.6, 0.9]))
    cover = np.clip(grassy + 0.35 * fine, 0, 1) * np.clip((from_row - 0.9 + 0.25 * fine) / 0.5, 0, 1)
    track = np.exp(-(((from_row - 0.5 * grid.between_m + 0.85) / 0.22) ** 2)) * np.float32(rng.uniform(0.0, 0.6))
    cover = np.clip(cover - track * (1 + 0.5 * fine), 0, 1)[..., None]
    return (soil * (1 - 0.06 * track)[..., None] + cover * (sward - soil)).astype(np.float32)


def _soil(rng: np.random.Generator, rows: int, columns: int, gsd_m: float) -> Plane:
    base = _SOILS[int(rng.integers(len(_SOILS)))] * np.float32(rng.uniform(0.8, 1.2))
    tone = (
        1
        + 0.08 * fractal_field(rng, rows, columns, 3.0 / gsd_m, 4, 0.9)
        + 0.10 * smooth_field(rng, rows, columns, 25.0 / gsd_m)
    )
    return np.asarray(np.clip(tone, 0.4, 1.7)[..., None] * base, np.float32)


def _sward(rng: np.random.Generator, rows: int, columns: int, gsd_m: float) -> Plane:
    dry = np.clip(rng.uniform(0, 0.9) + 0.25 * fractal_field(rng, rows, columns, 10.0 / gsd_m, 3), 0, 1)[..., None]
    tone = 1 + 0.13 * fractal_field(rng, rows, columns, 1.5 / gsd_m, 3, 0.9)
    return ((_GRASS + dry * (_DRY_GRASS - _GRASS)) * tone[..., None]).astype(np.float32)


def _colour(tree: Tree) -> Plane:
    base = _LEAVES[tree.kind]
    turned = np.float32(np.clip(tree.hue, 0, 1))
    mixed = base + turned * (_TURNED - base)
    yellower = 0.6 * min(max(tree.hue, -0.3), 0.3)
    return (mixed * tree.tone * _rgb(1 + yellower, 1 + 0.2 * yellower, 1 - 0.5 * yellower)).astype(np.float32)


def _light(heights: Plane, gsd_m: float, sun: Sun) -> tuple[Plane, Plane]:
    """Direct and scattered light on each spot of the surface."""
    smooth = np.asarray(cv2.GaussianBlur(heights, (0, 0), 0.8), np.float32)
    gy, gx = np.gradient(smooth, np.float32(gsd_m))
    # Rims of crowns are cliffs of some metres in a pixel: leaves there do not shine like a wall.
    gx, gy = 1.6 * np.tanh(gx / 1.6), 1.6 * np.tanh(gy / 1.6)
    cosine = 1 / np.sqrt(1 + sun.tangent**2)
    sine = sun.tangent * cosine
    direct = np.clip((gx * sun.dx + gy * sun.dy) * cosine + sine, 0, None) / np.sqrt(1 + gx * gx + gy * gy)
    direct = direct / sine * (1 - _shadow(smooth, gsd_m, sun))
    # Deep between crowns, less of the sky is seen.
    around = np.asarray(cv2.GaussianBlur(heights, (0, 0), 2.5 / gsd_m), np.float32)
    depth = np.clip((around - heights) / 7.0, 0, 1)
    return ((1 - sun.sky) * direct).astype(np.float32), (sun.sky * (1 - 0.55 * depth)).astype(np.float32)


def _shadow(heights: Plane, gsd_m: float, sun: Sun) -> Plane:
    """0..1, by marching towards the sun in steps of about a pixel near by and more further off."""
    rows, columns = heights.shape
    longest = int(float(heights.max()) / sun.tangent / gsd_m) + 1
    cast = np.zeros_like(heights)
    step, away = 1, 1
    while away <= longest:
        down, right = round(sun.dy * away), round(sun.dx * away)
        here = (slice(max(0, down), min(rows, rows + down)), slice(max(0, right), min(columns, columns + right)))
        there = (slice(max(0, -down), min(rows, rows - down)), slice(max(0, -right), min(columns, columns - right)))
        if here[0].stop <= here[0].start or here[1].stop <= here[1].start:
            break
        blocked = heights[there] - np.float32(away * gsd_m * sun.tangent) - heights[here]
        np.maximum(cast[here], blocked, out=cast[here])
        away += step
        step = 1 + away // 12
    return np.asarray(cv2.GaussianBlur(np.clip(cast / 0.6, 0, 1), (0, 0), 0.7), np.float32)


def _exposed(rng: np.random.Generator, radiance: Plane, camera: Camera) -> NDArray[np.uint8]:
    linear = np.asarray(cv2.GaussianBlur(radiance, (0, 0), camera.blur_px), np.float32)
    linear = linear + camera.haze * _rgb(0.55, 0.75, 1.0)
    linear = linear * (1 + camera.warmth * rng.standard_normal(3, dtype=np.float32))
    linear *= np.float32(rng.uniform(0.42, 0.62) / max(float(np.quantile(linear[::3, ::3], 0.985)), 1e-3))
    linear += (
        np.float32(camera.noise)
        * rng.standard_normal(linear.shape, dtype=np.float32)
        * np.sqrt(np.clip(linear, 0.01, None))
    )
    linear = np.clip(linear, 0, 1)
    srgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * np.maximum(linear, 1e-6) ** (1 / 2.4) - 0.055)
    eight = np.clip(srgb * 255 + 0.5, 0, 255).astype(np.uint8)
    coded = cv2.imencode(".jpg", eight[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, camera.quality])[1]
    return np.ascontiguousarray(np.asarray(cv2.imdecode(coded, cv2.IMREAD_COLOR), np.uint8)[..., ::-1])
