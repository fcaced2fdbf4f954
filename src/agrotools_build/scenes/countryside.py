"""Drawn farmland at half a metre per pixel: ground that is the same on both dates, and its look on each."""

from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools_build.scenes.scene import (
    Axes,
    Plane,
    Rng,
    Sun,
    fractal_field,
    one_of,
    smooth_field,
    spectra,
)

LAND = spectra("land")
"""Reflectances of soils, plants, roads, roofs and water: blue, green, red, near infrared."""
_FARM_ROOFS = 4
"""Number of kinds of roofs on farms, the first ones; towns have all kinds."""


@dataclass(frozen=True)
class Crown:
    """Crown centre and radius in pixels, and the seed of its outline."""

    x: float
    y: float
    radius: float
    seed: int


@dataclass(frozen=True)
class House:
    """Roof: centre, half sides, direction and roof kind; pixels and radians."""

    x: float
    y: float
    half_length: float
    half_width: float
    angle: float
    roof: int


@dataclass(frozen=True, eq=False)
class Ground:
    """The parts of a landscape that are the same on both dates.

    ``parcels``: int32 (rows, columns), field numbers; ``along``: tillage coordinate in pixels, float32; ``border``:
    distance to the nearest parcel border, pixels; ``road``: coverage 0 to 1; ``paved``: True for asphalt.
    """

    parcels: NDArray[np.int32]
    along: Plane
    border: Plane
    road: Plane
    paved: bool
    angle: float
    soil: Plane
    relief: Plane
    verge: float
    trees: list[Crown] = field(default_factory=list)
    houses: list[House] = field(default_factory=list)


Stages = dict[int, Plane]
"""By field, its look on one day: share of ground under plants, soil brightness, strength and period of its lines,
patchiness, and the reflectance of its plants.
"""


def lay_ground(rng: Rng, shape: tuple[int, int], trees: float, houses: int) -> Ground:
    """Draw the ground. ``trees``: density of trees, 1 is usual; ``houses``: maximum number of houses."""
    rows, columns = shape
    angle = rng.uniform(-0.6, 0.6)
    y, x = np.mgrid[0:rows, 0:columns].astype(np.float32)
    bend = 2.2 * smooth_field(rng, shape, 170)
    axes = Axes.double(angle)
    u = axes.along(x - columns / 2, y - rows / 2) + bend
    v = axes.across(x - columns / 2, y - rows / 2) + bend[::-1, ::-1]
    parcels = np.zeros(shape, np.int32)
    along = np.zeros(shape, np.float32)
    reach = float(np.hypot(*shape)) / 2 + 10
    for number, (u0, v0, u1, v1) in enumerate(_split(rng, (-reach, -reach, reach, reach)), start=1):
        inside = (u >= u0) & (u < u1) & (v >= v0) & (v < v1)
        parcels[inside] = number
        along[inside] = (v if (u1 - u0) > (v1 - v0) else u)[inside]
    edge = np.zeros(shape, np.uint8)
    edge[:, 1:] |= parcels[:, 1:] != parcels[:, :-1]
    edge[1:] |= parcels[1:] != parcels[:-1]
    border = np.asarray(cv2.distanceTransform(1 - edge, cv2.DIST_L2, 3), np.float32)
    road = np.zeros(shape, np.float32)
    for _ in range(int(rng.integers(1, 3))):
        axis = u if rng.uniform() < 0.5 else v
        place = rng.uniform(-0.35, 0.35) * (columns if axis is u else rows)
        sway = 4.0 * smooth_field(rng, shape, 260)
        half = rng.uniform(2.5, 5.0)
        road = np.maximum(road, np.clip(half + 0.5 - np.abs(axis - place + sway), 0, 1))
    ground = Ground(
        parcels, along, border, road.astype(np.float32), bool(rng.uniform() < 0.4), angle, one_of(rng, LAND["soils"]),
        fractal_field(rng, shape, 120, 4), rng.uniform(1.0, 3.0),
    )  # fmt: skip
    _stand_trees(rng, ground, trees)
    for _ in range(int(rng.integers(0, houses + 1))):
        x0, y0, half_length, half_width = rng.uniform((0, 0, 8, 5), (columns, rows, 17, 9))
        turn = angle + rng.normal(0, 0.1)
        ground.houses.append(
            House(x0, y0, half_length, half_width, turn, int(rng.integers(_FARM_ROOFS)))
        )
    return ground


def _split(
    rng: Rng, box: tuple[float, float, float, float]
) -> list[tuple[float, float, float, float]]:
    u0, v0, u1, v1 = box
    long, short = max(u1 - u0, v1 - v0), min(u1 - u0, v1 - v0)
    if long < 95 or (long < 200 and short < 110 and rng.uniform() < 0.5):
        return [box]
    at = rng.uniform(0.35, 0.65)
    if u1 - u0 > v1 - v0:
        middle = u0 + at * (u1 - u0)
        return _split(rng, (u0, v0, middle, v1)) + _split(rng, (middle, v0, u1, v1))
    middle = v0 + at * (v1 - v0)
    return _split(rng, (u0, v0, u1, middle)) + _split(rng, (u0, middle, u1, v1))


def _stand_trees(rng: Rng, ground: Ground, amount: float) -> None:
    """Place trees alone, along borders and in small groves, but never on the road."""
    rows, columns = ground.parcels.shape
    spots = [(rng.uniform(0, columns), rng.uniform(0, rows)) for _ in range(int(12 * amount))]
    on_border = np.argwhere(ground.border < 2.0)
    for _ in range(int(rng.integers(0, 2 + int(3 * amount)))):
        cy, cx = on_border[int(rng.integers(len(on_border)))]
        near = on_border[np.hypot(on_border[:, 0] - cy, on_border[:, 1] - cx) < 60]
        chosen = near[rng.integers(len(near), size=int(rng.integers(4, 12)))]
        spots += [(px + rng.normal(0, 1.5), py + rng.normal(0, 1.5)) for py, px in chosen]
    for _ in range(int(rng.integers(0, 1 + int(2 * amount)))):
        cx, cy = rng.uniform(0, columns), rng.uniform(0, rows)
        spots += [
            (rng.normal(cx, 14), rng.normal(cy, 11)) for _ in range(int(rng.integers(10, 34)))
        ]
    for px, py in spots:
        if 0 <= px < columns and 0 <= py < rows and ground.road[int(py), int(px)] == 0:
            ground.trees.append(Crown(px, py, rng.uniform(3.0, 8.5), int(rng.integers(1 << 30))))


def build_town(rng: Rng, ground: Ground, houses: int) -> None:
    """Place ``houses`` houses with all kinds of roofs along loose streets."""
    rows, columns = ground.parcels.shape
    c, s = np.cos(ground.angle), np.sin(ground.angle)
    for _ in range(houses):
        along, across = (
            rng.uniform(-columns, columns),
            34.0 * round(rng.uniform(-rows, rows) / 34.0),
        )
        x, y = columns / 2 + along * c - across * s, rows / 2 + along * s + across * c
        if 0 <= x < columns and 0 <= y < rows:
            half = rng.uniform(6, 22), rng.uniform(5, 12)
            turn = ground.angle + rng.normal(0, 0.04) + (np.pi / 2 if rng.uniform() < 0.3 else 0.0)
            ground.houses.append(
                House(float(x), float(y), *half, float(turn), int(rng.integers(len(LAND["roofs"]))))
            )


def draw_stages(rng: Rng, ground: Ground, green: float) -> Stages:
    """Draw a stage for each parcel; ``green``: probability that a field has green plants on that day."""
    stages: Stages = {}
    for number in np.unique(ground.parcels):
        lines = rng.uniform(0.0, 0.16) if rng.uniform() < 0.75 else 0.0
        period = rng.uniform(4.0, 11.0)
        draw, tone = rng.uniform(), rng.normal(1.0, 0.10)
        patchy = rng.uniform(0.02, 0.16)
        if draw < green:
            blend = rng.uniform(0, 1)
            plants = (blend * LAND["dense_crop"] + (1 - blend) * LAND["pale_crop"]).astype(
                np.float32
            )
            cover = rng.uniform(0.35, 1.0)
        elif draw < green + 0.35 * (1 - green):
            cover = rng.uniform(0.4, 0.95)
            plants = LAND["ripe_crop"] if rng.uniform() < 0.5 else LAND["stubble"]
        else:
            tone *= 0.62 if rng.uniform() < 0.3 else 1.0  # moist soil
            cover, plants = rng.uniform(0.0, 0.12), LAND["green_grass"]
        stages[int(number)] = np.array([cover, tone, lines, period, patchy, *plants], np.float32)
    return stages


def two_stages(rng: Rng, ground: Ground, kept: float) -> tuple[Stages, Stages]:
    """Draw stages on two dates; ``kept``: share of fields that look the same on both."""
    green = rng.uniform(0.15, 0.7, 2)
    first, later = (draw_stages(rng, ground, float(share)) for share in green)
    return first, {
        number: first[number] if rng.uniform() < kept else later[number] for number in first
    }


def paint_date(rng: Rng, ground: Ground, stages: Stages, sun: Sun, wet_season: float) -> Plane:
    """Return the reflectance of fields, borders and roads on one day, (rows, columns, 4), without trees and houses."""
    fine = fractal_field(rng, ground.parcels.shape, 5, 3, 0.9)
    coarse = fractal_field(rng, ground.parcels.shape, 45, 3, 0.7)
    table = np.zeros((int(ground.parcels.max()) + 1, 9), np.float32)
    for number, stage in stages.items():
        table[number] = stage
    cover, tone, lines, period, patchy = np.moveaxis(table[:, :5][ground.parcels], -1, 0)
    wave = lines * np.sin(2 * np.pi * ground.along / np.maximum(period, 1.0) + 0.5 * coarse)
    share = np.clip(cover + patchy * coarse + 0.06 * fine + wave * (cover > 0.2), 0, 1)
    bright = tone * (1.0 + 0.10 * ground.relief + 0.045 * fine) + 0.7 * wave * (cover <= 0.2)
    soil = np.clip(bright, 0.3, 1.8)[..., None] * ground.soil
    leaf = (1.0 + 0.07 * fine + 0.05 * coarse)[..., None] * table[:, 5:][ground.parcels]
    out = soil + share[..., None] * (leaf - soil)
    grass = (wet_season * LAND["green_grass"] + (1 - wet_season) * LAND["dry_grass"]) * (
        1 + 0.10 * fine
    )[..., None]
    bund = np.clip(ground.verge + 0.6 * fine - ground.border, 0, 1)[..., None]
    out += bund * (grass - out)
    verge = np.clip(cv2.GaussianBlur(ground.road, (0, 0), 2.5) * 2.5, 0, 1)[..., None] * 0.7
    out += verge * (grass - out)
    surface = (LAND["asphalt"] if ground.paved else LAND["dirt_road"]) * (
        1 + 0.05 * fine + 0.04 * coarse
    )[..., None]
    out += ground.road[..., None] * (surface - out)
    gy, gx = np.gradient(cv2.GaussianBlur(ground.relief, (0, 0), 3.0))
    out *= 1.0 + 0.8 * (gx * sun.dx + gy * sun.dy)[..., None]
    return np.clip(out, 0.004, 1.0).astype(np.float32)


def paint_objects(rng: Rng, bands: Plane, ground: Ground, sun: Sun, leaf_tone: float) -> None:
    """Paint houses and trees with their shadows over the ground, in place."""
    for house in ground.houses:
        c, s = np.cos(house.angle), np.sin(house.angle)
        corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)], np.float32) * (
            house.half_length,
            house.half_width,
        )
        outline = corners @ np.array([[c, s], [-s, c]]) + (house.x, house.y)
        cast = outline + np.array([sun.dx, sun.dy]) * sun.length * 8.0
        hull = cv2.convexHull(np.concatenate([outline, cast]).astype(np.float32)).reshape(-1, 2)
        _fill(bands, hull, 0.0, shade=0.55)
        roof = LAND["roofs"][house.roof] * np.float32(rng.uniform(0.85, 1.1))
        _fill(bands, outline, 1.0, roof)
        lit = 0.75 if sun.dy * c - sun.dx * s > 0 else 1.15
        half = np.array([(-1, 0), (1, 0), (1, 1), (-1, 1)], np.float32) * (
            house.half_length,
            house.half_width,
        )
        _fill(
            bands,
            half @ np.array([[c, s], [-s, c]]) + (house.x, house.y),
            1.0,
            roof * np.float32(lit),
        )
    texture = fractal_field(rng, bands.shape[:2], 4, 2, 0.8)
    for tree in ground.trees:
        outline = _crown(tree)
        _fill(
            bands,
            outline + np.array([sun.dx, sun.dy]) * sun.length * tree.radius * 0.9,
            0.0,
            shade=0.55,
        )
    for tree in ground.trees:
        outline = _crown(tree)
        _fill(
            bands,
            outline,
            0.95,
            LAND["tree"] * np.float32(leaf_tone),
            texture=texture,
            lit=(sun, tree),
        )


def _crown(tree: Crown) -> NDArray[np.float64]:
    crown_rng = np.random.default_rng(tree.seed)
    t = np.linspace(0, 2 * np.pi, 22, endpoint=False)
    radius = tree.radius * (
        1
        + sum(
            crown_rng.normal(0, 0.12 / k**0.5) * np.sin(k * t + crown_rng.uniform(0, 6))
            for k in (2, 3, 5)
        )
    )
    return np.stack([tree.x + radius * np.cos(t), tree.y + radius * np.sin(t)], axis=1)


def _fill(
    bands: Plane,
    outline: NDArray[Any],
    opacity: float,
    colour: Plane | None = None,
    shade: float = 0.0,
    texture: Plane | None = None,
    lit: tuple[Sun, Crown] | None = None,
) -> None:
    """Paint a polygon over the picture: a colour, or a shadow that removes the share ``shade`` of the light."""
    rows, columns = bands.shape[:2]
    low, high = np.floor(outline.min(0)).astype(int) - 2, np.ceil(outline.max(0)).astype(int) + 3
    x0, y0, x1, y1 = max(0, low[0]), max(0, low[1]), min(columns, high[0]), min(rows, high[1])
    if x0 >= x1 or y0 >= y1:
        return
    alpha = np.zeros((y1 - y0, x1 - x0), np.uint8)
    cv2.fillPoly(alpha, [np.round((outline - (x0, y0)) * 16).astype(np.int32)], 255, cv2.LINE_AA, 4)
    cover = (alpha.astype(np.float32) / 255.0)[..., None]
    view = bands[y0:y1, x0:x1]
    if colour is None:
        view *= 1.0 - shade * cover * np.array([0.85, 0.95, 1.0, 0.9], np.float32)
        return
    paint = np.broadcast_to(colour, view.shape)
    if texture is not None and lit is not None:
        sun, tree = lit
        ys, xs = np.mgrid[y0:y1, x0:x1]
        side = ((xs - tree.x) * sun.dx + (ys - tree.y) * sun.dy) / max(tree.radius, 1.0)
        tone = 1.0 - 0.35 * side + 0.22 * texture[y0:y1, x0:x1]
        paint = np.clip(tone, 0.35, 2.2)[..., None] * colour
    view += opacity * cover * (paint - view)
