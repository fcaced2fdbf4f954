"""Drawn forests and orchards from the air: picture, canopy height model, and the truth about every tree.

A block of 128 x 112 m at 25 cm has trees that can be counted; a tract of several hectares at 0.5 or 1 m has stands of
different age and open ground. Forests have gamma-distributed heights and allometric crowns, orchards a rotated grid
with gaps. Places of trees are in metres, in the frame of the picture: x to the right, y down, origin at its upper left
corner. There are also trees in a margin around it, so that their crowns and shadows extend into the picture.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from agrotools_build.scenes.scene import (
    Difficulty,
    Level,
    Mask,
    Plane,
    Rng,
    Scene,
    blurred,
    fractal_field,
    jpeg_of,
    levels,
    one_of,
    one_thread,
    smooth_field,
    spectra,
    spectrum,
    srgb_of,
)

Kind = Literal["conifer", "broadleaf", "fruit", "shrub"]

LEAST_TREE_M = 3.0
"""Minimum height of trees; shrubs are at most :data:`TALLEST_SHRUB_M`, so a height break of 2 m separates them."""
TALLEST_SHRUB_M = 1.7
MARGIN_M = 12.0


@dataclass(frozen=True)
class Tree:
    """A tree.

    ``lobes``: parts of the crown with separate apexes, the leader first: offset (x, y), height and radius, as shares of
    the tree's; ``power``: 1 for a cone, 2 and more for a dome; ``skirt``: height of the crown's rim as a share of the
    top; ``tone`` and ``hue``: deviation of its colour from that of its kind.
    """

    x: float
    y: float
    height: float
    radius: float
    kind: Kind
    lobes: list[tuple[float, float, float, float]]
    power: float
    skirt: float
    tone: float
    hue: float


def _stand(rng: Rng, level: Level, tall_m: tuple[float, float]) -> Level:
    """Draw a forest stand: mean height, and the parameters of ``level`` with a share of conifers."""
    conifers = float(rng.choice([0.0, 0.3, 0.8, 1.0]))
    return Level(
        height_m=float(rng.uniform(*tall_m)), spread=float(rng.uniform(*level.spread)),
        closeness=float(rng.uniform(*level.closeness)), conifers=conifers, level=level,
    )  # fmt: skip


def plant_forest(
    rng: Rng, width_m: float, height_m: float, stand: Level, area: Mask | None = None
) -> list[Tree]:
    """Place trees at random where their crowns have room, in ``area``, bool (rows, columns), or everywhere for None.

    Heights have a gamma distribution; crowns touch at a ``closeness`` of 1 and overlap below.
    """
    room = (width_m + 2 * MARGIN_M) * (height_m + 2 * MARGIN_M)
    typical = 0.8 + 0.62 * stand.height_m**0.62
    throws = int(np.clip(2.6 * room / typical**2, 300, 9000))
    heights = np.maximum(
        rng.gamma(1 / stand.spread**2, stand.height_m * stand.spread**2, throws), LEAST_TREE_M + 0.3
    )
    heights = np.minimum(heights, 2.0 * stand.height_m + 3.0)
    places = rng.uniform(
        (-MARGIN_M, -MARGIN_M), (width_m + MARGIN_M, height_m + MARGIN_M), (throws, 2)
    )
    conifer = rng.uniform(size=throws) < stand.conifers
    radii = np.where(conifer, 0.7 + 0.125 * heights, 0.8 + 0.62 * heights**0.62) * rng.lognormal(
        0, 0.13, throws
    )
    radii = np.clip(radii, 0.9, 7.0)
    inside = np.ones(throws, bool) if area is None else _inside(area, places, width_m, height_m)
    level = stand.level
    return [
        _tree(
            rng, places[number], float(heights[number]), float(radii[number]),
            "conifer" if conifer[number] else "broadleaf", level.several, level.discoloured,
        )
        for number in _with_room(places, radii * stand.closeness, inside)
    ]  # fmt: skip


def plant_orchard(
    rng: Rng, width_m: float, height_m: float, gaps: float, several: float, discoloured: float
) -> tuple[list[Tree], tuple[float, float]]:
    """Return trees of one age on a rotated grid, its rotation in radians and the metres between its rows.

    ``gaps``: share of empty positions.
    """
    angle = float(rng.uniform(-0.7, 0.7) + (np.pi / 2 if rng.uniform() < 0.5 else 0.0))
    along = rng.uniform(4.5, 8.0)
    between = along * rng.uniform(1.0, 1.45)
    reach = float(np.hypot(width_m, height_m)) / 2 + MARGIN_M
    us, vs = (np.arange(-reach, reach, step) + rng.uniform(0, step) for step in (along, between))
    u, v = (plane.ravel() for plane in np.meshgrid(us, vs))
    x = width_m / 2 + u * np.cos(angle) - v * np.sin(angle)
    y = height_m / 2 + u * np.sin(angle) + v * np.cos(angle)
    there = (x > -MARGIN_M) & (x < width_m + MARGIN_M) & (y > -MARGIN_M) & (y < height_m + MARGIN_M)
    x, y = x[there], y[there]
    edge = 0.6
    planted = (x > edge) & (x < width_m - edge) & (y > edge) & (y < height_m - edge)
    mean = rng.uniform(4.0, 7.0)
    trees: list[Tree] = []
    standing = rng.uniform(size=x.size) >= gaps
    for number in np.flatnonzero(standing):
        # A stem on the picture's edge is neither inside nor outside, so no tree is placed there.
        if (
            not planted[number]
            and -edge <= x[number] <= width_m + edge
            and -edge <= y[number] <= height_m + edge
        ):
            continue
        young = 0.72 if rng.uniform() < 0.4 * gaps + 0.02 else 1.0
        height = max(LEAST_TREE_M + 0.2, float(rng.normal(mean, 0.09 * mean)) * young)
        radius = float(np.clip(0.40 * height * rng.lognormal(0, 0.08), 0.9, 0.47 * along))
        place = np.array([x[number], y[number]]) + rng.normal(0, 0.15, 2)
        trees.append(_tree(rng, place, height, radius, "fruit", several, discoloured))
    return trees, (angle, between)


def scatter_shrubs(
    rng: Rng, width_m: float, height_m: float, number: int, area: Mask | None = None
) -> list[Tree]:
    """Return understorey shrubs below :data:`TALLEST_SHRUB_M`, which do not count as trees."""
    places = rng.uniform((0, 0), (width_m, height_m), (number, 2))
    inside = np.ones(number, bool) if area is None else _inside(area, places, width_m, height_m)
    shrubs: list[Tree] = []
    for place in places[inside]:
        height = rng.uniform(0.4, TALLEST_SHRUB_M)
        shrubs.append(_tree(rng, place, height, rng.uniform(0.5, 0.5 + height), "shrub", 0.5, 0.05))
    return shrubs


def _inside(area: Mask, places: NDArray[np.float64], width_m: float, height_m: float) -> Mask:
    """Return True for positions in the area; the margin takes the values of the nearest pixels in the picture."""
    rows, columns = area.shape
    column = np.clip((places[:, 0] / width_m * columns).astype(int), 0, columns - 1)
    row = np.clip((places[:, 1] / height_m * rows).astype(int), 0, rows - 1)
    return area[row, column]


def _with_room(places: NDArray[np.float64], radii: NDArray[np.float64], inside: Mask) -> list[int]:
    """Return the trees kept by a greedy rule: no earlier one is nearer than the sum of both radii."""
    spaced: list[int] = []
    px, py, pr = np.empty(len(places)), np.empty(len(places)), np.empty(len(places))
    count = 0
    for number in np.flatnonzero(inside):
        (x, y), r = places[number], radii[number]
        if ((px[:count] - x) ** 2 + (py[:count] - y) ** 2 > (pr[:count] + r) ** 2).all():
            px[count], py[count], pr[count] = x, y, r
            count += 1
            spaced.append(int(number))
    return spaced


def _tree(
    rng: Rng,
    place: NDArray[np.float64],
    height: float,
    radius: float,
    kind: Kind,
    several: float,
    discoloured: float,
) -> Tree:
    lobes = [(0.0, 0.0, 1.0, 1.0)]
    if kind != "conifer" and rng.uniform() < several:
        turn = rng.uniform(0, 2 * np.pi)
        lobes[0] = (0.0, 0.0, 1.0, rng.uniform(0.72, 0.88))
        for _ in range(int(rng.integers(1, 4))):
            turn += rng.uniform(1.3, 2.6)
            out = rng.uniform(0.38, 0.62)
            height_share, radius_share = rng.uniform((0.80, 0.45), (0.97, 0.68)).tolist()
            lobes.append(
                (out * float(np.cos(turn)), out * float(np.sin(turn)), height_share, radius_share)
            )
    power, skirt = {
        "conifer": (rng.uniform(1.0, 1.35), rng.uniform(0.12, 0.3)),
        "broadleaf": (rng.uniform(1.9, 2.8), rng.uniform(0.45, 0.62)),
        "fruit": (rng.uniform(1.8, 2.6), rng.uniform(0.40, 0.55)),
        "shrub": (rng.uniform(1.6, 2.4), rng.uniform(0.3, 0.5)),
    }[kind]
    hue = rng.normal(0, 0.10)
    if rng.uniform() < discoloured:
        hue += rng.uniform(0.5, 1.0)
    tone = rng.lognormal(0, 0.13)
    return Tree(
        float(place[0]),
        float(place[1]),
        height,
        radius,
        kind,
        lobes,
        float(power),
        float(skirt),
        tone,
        hue,
    )


NO_TREE = -1


@dataclass(frozen=True, eq=False)
class Surface:
    """Surface of trees over ground.

    ``heights``: metres above ground, float32 (rows, columns); ``owner``: number of the tree with the uppermost crown,
    int16, :data:`NO_TREE` on open ground.
    """

    heights: Plane
    owner: NDArray[np.int16]
    gsd_m: float


def grow(rng: Rng, trees: Sequence[Tree], shape: tuple[int, int], gsd_m: float) -> Surface:
    """Return the surface of these trees over bare ground, with clumps of leaves 0.5 to 1 m wide."""
    owner = np.full(shape, NO_TREE, np.int16)
    surface = Surface(np.zeros(shape, np.float32), owner, gsd_m)
    clumps = fractal_field(rng, shape, max(1.6, 1.3 / gsd_m), 2, 0.8)
    for number, tree in enumerate(trees):
        _raise(rng, surface, clumps, number, tree)
    return surface


def _seen_from_above(surface: Surface, trees: Sequence[Tree]) -> list[Tree]:
    """Return the trees whose highest point is in the picture and under no other crown, so that it can be counted."""
    rows, columns = surface.heights.shape
    visible: list[Tree] = []
    for number, tree in enumerate(trees):
        column, row = int(np.floor(tree.x / surface.gsd_m)), int(np.floor(tree.y / surface.gsd_m))
        inside = 0 <= column < columns and 0 <= row < rows
        if tree.kind != "shrub" and inside and surface.owner[row, column] == number:
            visible.append(tree)
    return visible


def _on_grid(heights: Plane, factor: int) -> Plane:
    """Return the highest point in each cell of ``factor`` pixels, as in height models."""
    rows, columns = (side // factor for side in heights.shape)
    cells = heights[: rows * factor, : columns * factor].reshape(rows, factor, columns, factor)
    return np.ascontiguousarray(cells.max(axis=(1, 3)))


def _scanned(rng: Rng, heights: Plane, gsd_m: float, level: Level) -> Plane:
    """Return the height model of an airborne laser scan; it is never below 0."""
    out = heights + rng.normal(0, level.noise_m, heights.shape).astype(np.float32) * (
        0.3 + (heights > 0.3)
    )
    if level.terrain_m:
        out += np.float32(level.terrain_m) * smooth_field(rng, heights.shape, 30.0 / gsd_m)
    deep = rng.uniform(size=heights.shape) < level.pits
    out[deep] *= rng.uniform(0.05, 0.7, int(deep.sum())).astype(np.float32)
    return np.maximum(out, 0).astype(np.float32)


def _raise(rng: Rng, surface: Surface, clumps: Plane, number: int, tree: Tree) -> None:
    heights, gsd_m = surface.heights, surface.gsd_m
    rows, columns = heights.shape
    reach = 1.35 * tree.radius
    x0, x1 = max(0, int((tree.x - reach) / gsd_m)), min(columns, int((tree.x + reach) / gsd_m) + 2)
    y0, y1 = max(0, int((tree.y - reach) / gsd_m)), min(rows, int((tree.y + reach) / gsd_m) + 2)
    if x0 >= x1 or y0 >= y1:
        return
    xs = (np.arange(x0, x1, dtype=np.float32)[None, :] + 0.5) * np.float32(gsd_m) - np.float32(
        tree.x
    )
    ys = (np.arange(y0, y1, dtype=np.float32)[:, None] + 0.5) * np.float32(gsd_m) - np.float32(
        tree.y
    )
    crown = np.zeros((y1 - y0, x1 - x0), np.float32)
    ragged = 1.0 + 0.10 * clumps[y0:y1, x0:x1]
    waves = rng.normal(0, 0.07, 2), rng.uniform(0, 2 * np.pi, 2)
    for lobe_x, lobe_y, lobe_height, lobe_radius in tree.lobes:
        dx, dy = xs - np.float32(lobe_x * tree.radius), ys - np.float32(lobe_y * tree.radius)
        away = np.sqrt(dx * dx + dy * dy) / np.float32(lobe_radius * tree.radius)
        if tree.radius > 3 * gsd_m:
            turn, ((first, second), (shift, other)) = np.arctan2(dy, dx), waves
            away = away * (
                1.0 + first * np.sin(2 * turn + shift) + second * np.sin(3 * turn + other)
            )
        away = away * ragged
        shape = 1.0 - (1.0 - tree.skirt) * np.minimum(away, 1.0) ** np.float32(tree.power)
        np.maximum(
            crown, np.where(away < 1.0, np.float32(lobe_height * tree.height) * shape, 0), out=crown
        )
    rough = np.float32(min(0.35, 0.05 * tree.height))
    crown = np.where(
        crown > 0, np.clip(crown - rough * np.abs(clumps[y0:y1, x0:x1]), 0.1, tree.height), 0
    )
    view = heights[y0:y1, x0:x1]
    above = crown > view
    view[above] = crown[above]
    surface.owner[y0:y1, x0:x1][above] = number


_TONES = spectra("stands")


@dataclass(frozen=True)
class Daylight:
    """Direction of shadows (unit vector in the picture), tangent of the sun's elevation, share of scattered light."""

    dx: float
    dy: float
    tangent: float
    sky: float


def _radiance(
    rng: Rng, surface: Surface, trees: Sequence[Tree], ground: Plane, sun: Daylight
) -> Plane:
    """Return the light (rows, columns, 3) from ``ground`` (reflectance) with these trees on it."""
    heights, owner = surface.heights, surface.owner
    colours = ground + 0.0
    if trees:
        table = np.stack([_colour(tree) for tree in trees])
        crowns = owner >= 0
        leaves = 1.0 + 0.16 * fractal_field(
            rng, heights.shape, max(1.5, 0.9 / surface.gsd_m), 2, 0.9
        )
        edge = blurred(crowns.astype(np.float32), 0.6)[..., None]
        colours += edge * (table[np.maximum(owner, 0)] * leaves[..., None] - colours)
    light = _light(heights, surface.gsd_m, sun)
    # Areas lit only by the sky are bluish.
    lit = light[0][..., None] + light[1][..., None] * spectrum(0.86, 0.97, 1.22)
    return np.asarray(colours * lit, np.float32)


def paint_forest_floor(rng: Rng, shape: tuple[int, int], gsd_m: float, grass: float) -> Plane:
    """Return the reflectance of the ground of a forest or meadow, (rows, columns, 3); ``grass``: 0 bare to 1 closed."""
    soil = _soil(rng, shape, gsd_m)
    patch = fractal_field(rng, shape, 14.0 / gsd_m, 4, 0.7)
    cover = np.clip(grass + 0.45 * patch, 0, 1)[..., None]
    return (soil + cover * (_sward(rng, shape, gsd_m) - soil)).astype(np.float32)


def paint_orchard_floor(
    rng: Rng, shape: tuple[int, int], gsd_m: float, grid: tuple[float, float]
) -> Plane:
    """Return the reflectance of an orchard's ground: grass or soil between rows, bare strips, wheel tracks."""
    rows, columns = shape
    y, x = np.mgrid[0:rows, 0:columns].astype(np.float32) * np.float32(gsd_m)
    x, y = x - columns * gsd_m / 2, y - rows * gsd_m / 2
    angle, between_m = grid
    across = -x * np.sin(angle) + y * np.cos(angle)
    phase = rng.uniform(0, between_m)
    soil, sward = _soil(rng, shape, gsd_m), _sward(rng, shape, gsd_m)
    fine = fractal_field(rng, shape, 3.0 / gsd_m, 3, 0.8)
    from_row = np.abs((across - phase + between_m / 2) % between_m - between_m / 2)
    grassy = float(rng.choice([0.15, 0.6, 0.9]))
    cover = np.clip(grassy + 0.35 * fine, 0, 1) * np.clip(
        (from_row - 0.9 + 0.25 * fine) / 0.5, 0, 1
    )
    track = np.exp(-(((from_row - 0.5 * between_m + 0.85) / 0.22) ** 2)) * np.float32(
        rng.uniform(0.0, 0.6)
    )
    cover = np.clip(cover - track * (1 + 0.5 * fine), 0, 1)[..., None]
    return (soil * (1 - 0.06 * track)[..., None] + cover * (sward - soil)).astype(np.float32)


def _soil(rng: Rng, shape: tuple[int, int], gsd_m: float) -> Plane:
    base = one_of(rng, _TONES["soils"]) * np.float32(rng.uniform(0.8, 1.2))
    fine = fractal_field(rng, shape, 3.0 / gsd_m, 4, 0.9)
    tone = 1 + 0.08 * fine + 0.10 * smooth_field(rng, shape, 25.0 / gsd_m)
    return np.asarray(np.clip(tone, 0.4, 1.7)[..., None] * base, np.float32)


def _sward(rng: Rng, shape: tuple[int, int], gsd_m: float) -> Plane:
    dry = np.clip(rng.uniform(0, 0.9) + 0.25 * fractal_field(rng, shape, 10.0 / gsd_m, 3), 0, 1)[
        ..., None
    ]
    tone = 1 + 0.13 * fractal_field(rng, shape, 1.5 / gsd_m, 3, 0.9)
    return (
        (_TONES["grass"] + dry * (_TONES["dry_grass"] - _TONES["grass"])) * tone[..., None]
    ).astype(np.float32)


def _colour(tree: Tree) -> Plane:
    base = _TONES[tree.kind]
    turned = np.float32(np.clip(tree.hue, 0, 1))
    mixed = base + turned * (_TONES["turned"] - base)
    yellower = 0.6 * min(max(tree.hue, -0.3), 0.3)
    return (
        mixed * tree.tone * spectrum(1 + yellower, 1 + 0.2 * yellower, 1 - 0.5 * yellower)
    ).astype(np.float32)


def _light(heights: Plane, gsd_m: float, sun: Daylight) -> tuple[Plane, Plane]:
    """Return direct and scattered light on each point of the surface."""
    smooth = blurred(heights, 0.8)
    gy, gx = np.gradient(smooth, np.float32(gsd_m))
    # Crown rims are steps of some metres within a pixel, but their leaves are not as bright as a wall would be.
    gx, gy = 1.6 * np.tanh(gx / 1.6), 1.6 * np.tanh(gy / 1.6)
    cosine = 1 / np.sqrt(1 + sun.tangent**2)
    sine = sun.tangent * cosine
    direct = np.clip((gx * sun.dx + gy * sun.dy) * cosine + sine, 0, None) / np.sqrt(
        1 + gx * gx + gy * gy
    )
    direct = direct / sine * (1 - _shadow(smooth, gsd_m, sun))
    # Less of the sky is visible deep between crowns.
    around = blurred(heights, 2.5 / gsd_m)
    depth = np.clip((around - heights) / 7.0, 0, 1)
    return ((1 - sun.sky) * direct).astype(np.float32), (sun.sky * (1 - 0.55 * depth)).astype(
        np.float32
    )


def _shadow(heights: Plane, gsd_m: float, sun: Daylight) -> Plane:
    """Return shadow, 0 to 1, by marching towards the sun in steps of about a pixel, which grow with the distance."""
    rows, columns = heights.shape
    longest = int(float(heights.max()) / sun.tangent / gsd_m) + 1
    cast = np.zeros_like(heights)
    step, away = 1, 1
    while away <= longest:
        down, right = round(sun.dy * away), round(sun.dx * away)
        here = (
            slice(max(0, down), min(rows, rows + down)),
            slice(max(0, right), min(columns, columns + right)),
        )
        there = (
            slice(max(0, -down), min(rows, rows - down)),
            slice(max(0, -right), min(columns, columns - right)),
        )
        if here[0].stop <= here[0].start or here[1].stop <= here[1].start:
            break
        blocked = heights[there] - np.float32(away * gsd_m * sun.tangent) - heights[here]
        np.maximum(cast[here], blocked, out=cast[here])
        away += step
        step = 1 + away // 12
    return blurred(np.clip(cast / 0.6, 0, 1), 0.7)


def _photographed(
    rng: Rng, radiance: Plane, level: Level, blur_px: float, quality: int
) -> NDArray[np.uint8]:
    linear = blurred(radiance, blur_px) + level.haze * spectrum(0.55, 0.75, 1.0)
    linear = linear * (1 + 0.04 * rng.standard_normal(3, dtype=np.float32))
    linear *= np.float32(
        rng.uniform(0.42, 0.62) / max(float(np.quantile(linear[::3, ::3], 0.985)), 1e-3)
    )
    grain = rng.standard_normal(linear.shape, dtype=np.float32)
    linear += np.float32(level.noise) * grain * np.sqrt(np.clip(linear, 0.01, None))
    return jpeg_of(srgb_of(np.clip(linear, 0, 1)), quality)


BlockKind = Literal["forest", "orchard"]
ROWS_PX, COLUMNS_PX = SIZE = 448, 512
BLOCK_GSD_M = 0.25
TRACT_PX = 256
_TRACT_SIZE = (TRACT_PX, TRACT_PX)


@one_thread()
def make_block(seed: int, difficulty: Difficulty, kind: BlockKind | None = None) -> Scene:
    """Draw a block of trees. The same arguments give the same scene.

    ``images``: ``rgb`` uint8 (448, 512, 3); ``chm`` float32, metres above ground, of the same extent in pixels of 0.25,
    0.5 or 1 m. ``masks``: ``heights`` float32, heights without the errors of the model; ``crowns`` int16 (448, 512),
    number of the tree whose crown is visible, from 1, including shrubs and trees outside the picture. ``truth``:
    ``trees``, a list of [x, y, height, radius] (pixels of the picture, metres) of trees with visible tops.

    ``kind``: forest or orchard; None: drawn from the seed.
    """
    rng, level = (
        np.random.default_rng([seed, zlib.crc32(b"block"), difficulty]),
        levels("stands")[difficulty],
    )
    kind_drawn: BlockKind = "orchard" if rng.uniform() < 0.5 else "forest"
    width_m, height_m = COLUMNS_PX * BLOCK_GSD_M, ROWS_PX * BLOCK_GSD_M
    if (kind or kind_drawn) == "orchard":
        trees, grid = plant_orchard(
            rng,
            width_m,
            height_m,
            float(rng.uniform(*level.gaps)),
            0.6 * level.several,
            level.discoloured,
        )
        ground = paint_orchard_floor(rng, SIZE, BLOCK_GSD_M, grid)
        bushes = 0.3
    else:
        trees = plant_forest(rng, width_m, height_m, _stand(rng, level, (9.0, 21.0)))
        ground = paint_forest_floor(rng, SIZE, BLOCK_GSD_M, rng.uniform(0.1, 0.9))
        bushes = 1.0
    per_ha = bushes * float(rng.uniform(*level.shrubs_per_ha))
    trees += scatter_shrubs(rng, width_m, height_m, int(per_ha * width_m * height_m / 1e4))
    surface = grow(rng, trees, SIZE, BLOCK_GSD_M)
    return _scene(rng, level, surface, trees, ground, level.chm_factor)


@one_thread()
def make_tract(seed: int, difficulty: Difficulty) -> Scene:
    """Draw a tract of 256 x 256 px at 0.5 or 1 m with old and young stands and open ground.

    The same arguments give the same scene. ``images``: ``rgb`` uint8 (256, 256, 3); ``chm`` float32 (256, 256).
    ``masks`` and ``truth``: as for a block.
    """
    rng, level = (
        np.random.default_rng([seed, zlib.crc32(b"tract"), difficulty]),
        levels("stands")[difficulty],
    )
    gsd_m = level.tract_gsd_m
    side_m = TRACT_PX * gsd_m
    relief = smooth_field(rng, _TRACT_SIZE, rng.uniform(70, 150))
    ragged = 0.12 * fractal_field(rng, _TRACT_SIZE, 18, 3)
    field = relief + ragged
    open_share, old_share = rng.uniform(0.15, 0.5), rng.uniform(0.25, 0.6)
    low = float(np.quantile(field, open_share))
    high = float(np.quantile(field, open_share + (1 - open_share) * (1 - old_share)))
    is_open, is_old = field < low, (field >= low) & (field >= high)
    old = _stand(rng, level, (13.0, 21.0))
    young = _stand(rng, level, (4.5, 7.0))
    trees = plant_forest(rng, side_m, side_m, old, is_old)
    trees += plant_forest(rng, side_m, side_m, young, ~is_open & ~is_old)
    lone = int(rng.integers(0, 8 + int(side_m * side_m / 4000)))
    trees += plant_forest(rng, side_m, side_m, old, is_open)[:lone]
    per_ha = float(rng.uniform(*level.shrubs_per_ha))
    trees += scatter_shrubs(rng, side_m, side_m, int(0.5 * per_ha * side_m * side_m / 1e4), is_open)
    ground = paint_forest_floor(rng, _TRACT_SIZE, gsd_m, rng.uniform(0.3, 1.0))
    surface = grow(rng, trees, _TRACT_SIZE, gsd_m)
    return _scene(rng, level, surface, trees, ground, 1)


def _scene(
    rng: Rng, level: Level, surface: Surface, trees: list[Tree], ground: Plane, factor: int
) -> Scene:
    gsd_m = surface.gsd_m
    blur_px, quality = float(rng.uniform(*level.blur_px)), int(rng.integers(*level.quality))
    turn = float(rng.uniform(0, 2 * np.pi))
    sun = Daylight(
        float(np.cos(turn)),
        float(np.sin(turn)),
        float(rng.uniform(*level.sun)),
        rng.uniform(0.22, 0.38),
    )
    radiance = _radiance(rng, surface, trees, ground, sun)
    rgb = _photographed(rng, radiance, level, blur_px, quality)
    heights, chm_gsd_m = _on_grid(surface.heights, factor), gsd_m * factor
    chm = _scanned(rng, heights, chm_gsd_m, level)
    listed = [
        [round(value, 2) for value in (tree.x / gsd_m, tree.y / gsd_m, tree.height, tree.radius)]
        for tree in _seen_from_above(surface, trees)
    ]
    return Scene(
        images={"rgb": rgb, "chm": chm},
        sidecar={"gsd_m": gsd_m, "chm_gsd_m": chm_gsd_m},
        truth={"trees": listed},
        masks={"heights": heights, "crowns": surface.owner + 1},
    )
