"""Stands of trees: forests with gamma-distributed heights and allometric crowns, orchards on a rotated grid with gaps.

All lengths are metres, in the frame of the picture: x to the right, y down, origin at its upper left corner. There are
also trees in a margin around it, so that their crowns and shadows extend into the picture.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["conifer", "broadleaf", "fruit", "shrub"]

LEAST_TREE_M = 3.0
"""Minimum height of trees; shrubs are at most :data:`TALLEST_SHRUB_M`, so a height break of 2 m separates them."""
TALLEST_SHRUB_M = 1.7
MARGIN_M = 12.0


@dataclass(frozen=True)
class Lobe:
    """A part of a crown with a separate apex: offset of the apex, height and radius, as shares of the tree's."""

    dx: float
    dy: float
    height: float
    radius: float


@dataclass(frozen=True)
class Tree:
    """A tree.

    ``lobes``: parts of the crown, the leader first; ``power``: 1 for a cone, 2 and more for a dome; ``skirt``: height
    of the crown's rim as a share of the top; ``tone`` and ``hue``: deviation of its colour from that of its kind.
    """

    x: float
    y: float
    height: float
    radius: float
    kind: Kind
    lobes: tuple[Lobe, ...]
    power: float
    skirt: float
    tone: float
    hue: float


@dataclass(frozen=True)
class Stand:
    """Parameters of a forest stand.

    ``height_m``: mean height; ``spread``: relative standard deviation of heights (gamma distribution); ``closeness``: 1
    if crowns touch, less if they overlap; ``conifers``, ``several``, ``discoloured``: shares of conifers, of crowns
    with several apexes, and of dead or discoloured trees.
    """

    height_m: float
    spread: float
    closeness: float
    conifers: float
    several: float
    discoloured: float


def plant_forest(
    rng: np.random.Generator, width_m: float, height_m: float, stand: Stand, area: NDArray[np.bool_] | None = None
) -> list[Tree]:
    """Place trees at random where their crowns have room, in ``area``, bool (rows, columns), or everywhere for None."""
    room = (width_m + 2 * MARGIN_M) * (height_m + 2 * MARGIN_M)
    typical = 0.8 + 0.62 * stand.height_m**0.62
    throws = int(np.clip(2.6 * room / typical**2, 300, 9000))
    heights = np.maximum(rng.gamma(1 / stand.spread**2, stand.height_m * stand.spread**2, throws), LEAST_TREE_M + 0.3)
    heights = np.minimum(heights, 2.0 * stand.height_m + 3.0)
    places = rng.uniform((-MARGIN_M, -MARGIN_M), (width_m + MARGIN_M, height_m + MARGIN_M), (throws, 2))
    conifer = rng.uniform(size=throws) < stand.conifers
    radii = np.where(conifer, 0.7 + 0.125 * heights, 0.8 + 0.62 * heights**0.62) * rng.lognormal(0, 0.13, throws)
    radii = np.clip(radii, 0.9, 7.0)
    inside = np.ones(throws, bool) if area is None else _inside(area, places, width_m, height_m)
    spaced = _with_room(places, radii * stand.closeness, inside)
    trees: list[Tree] = []
    for number in spaced:
        kind: Kind = "conifer" if conifer[number] else "broadleaf"
        height, radius = float(heights[number]), float(radii[number])
        trees.append(_tree(rng, places[number], height, radius, kind, stand.several, stand.discoloured))
    return trees


@dataclass(frozen=True)
class Rows:
    """An orchard's grid: rotation in radians, metres between rows."""

    angle: float
    between_m: float


def plant_orchard(
    rng: np.random.Generator, width_m: float, height_m: float, gaps: float, several: float, discoloured: float
) -> tuple[list[Tree], Rows]:
    """Return trees of one age on a rotated grid, and the grid; ``gaps``: share of empty positions."""
    angle = float(rng.uniform(-0.7, 0.7) + (np.pi / 2 if rng.uniform() < 0.5 else 0.0))
    along = float(rng.uniform(4.5, 8.0))
    between = along * float(rng.uniform(1.0, 1.45))
    reach = float(np.hypot(width_m, height_m)) / 2 + MARGIN_M
    us, vs = (np.arange(-reach, reach, step) + rng.uniform(0, step) for step in (along, between))
    u, v = (plane.ravel() for plane in np.meshgrid(us, vs))
    x = width_m / 2 + u * np.cos(angle) - v * np.sin(angle)
    y = height_m / 2 + u * np.sin(angle) + v * np.cos(angle)
    there = (x > -MARGIN_M) & (x < width_m + MARGIN_M) & (y > -MARGIN_M) & (y < height_m + MARGIN_M)
    x, y = x[there], y[there]
    edge = 0.6
    planted = (x > edge) & (x < width_m - edge) & (y > edge) & (y < height_m - edge)
    mean = float(rng.uniform(4.0, 7.0))
    trees: list[Tree] = []
    standing = rng.uniform(size=x.size) >= gaps
    for number in np.flatnonzero(standing):
        # A stem on the picture's edge is neither inside nor outside, so no tree is placed there.
        if not planted[number] and -edge <= x[number] <= width_m + edge and -edge <= y[number] <= height_m + edge:
            continue
        young = 0.72 if rng.uniform() < 0.4 * gaps + 0.02 else 1.0
        height = max(LEAST_TREE_M + 0.2, float(rng.normal(mean, 0.09 * mean)) * young)
        radius = float(np.clip(0.40 * height * rng.lognormal(0, 0.08), 0.9, 0.47 * along))
        place = np.array([x[number], y[number]]) + rng.normal(0, 0.15, 2)
        trees.append(_tree(rng, place, height, radius, "fruit", several, discoloured))
    return trees, Rows(angle, between)


def scatter_shrubs(
    rng: np.random.Generator, width_m: float, height_m: float, number: int, area: NDArray[np.bool_] | None = None
) -> list[Tree]:
    """Return understorey shrubs below :data:`TALLEST_SHRUB_M`, which do not count as trees."""
    places = rng.uniform((0, 0), (width_m, height_m), (number, 2))
    inside = np.ones(number, bool) if area is None else _inside(area, places, width_m, height_m)
    shrubs: list[Tree] = []
    for place in places[inside]:
        height = float(rng.uniform(0.4, TALLEST_SHRUB_M))
        shrubs.append(_tree(rng, place, height, float(rng.uniform(0.5, 0.5 + height)), "shrub", 0.5, 0.05))
    return shrubs


def _inside(area: NDArray[np.bool_], places: NDArray[np.float64], width_m: float, height_m: float) -> NDArray[np.bool_]:
    """Return True for positions in the area; the margin takes the values of the nearest pixels in the picture."""
    rows, columns = area.shape
    column = np.clip((places[:, 0] / width_m * columns).astype(int), 0, columns - 1)
    row = np.clip((places[:, 1] / height_m * rows).astype(int), 0, rows - 1)
    return area[row, column]


def _with_room(places: NDArray[np.float64], radii: NDArray[np.float64], inside: NDArray[np.bool_]) -> list[int]:
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
    rng: np.random.Generator, place: NDArray[np.float64], height: float, radius: float, kind: Kind,
    several: float, discoloured: float,
) -> Tree:  # fmt: skip
    lobes = [Lobe(0.0, 0.0, 1.0, 1.0)]
    if kind != "conifer" and rng.uniform() < several:
        turn = rng.uniform(0, 2 * np.pi)
        lobes[0] = Lobe(0.0, 0.0, 1.0, float(rng.uniform(0.72, 0.88)))
        for _ in range(int(rng.integers(1, 4))):
            turn += rng.uniform(1.3, 2.6)
            out = float(rng.uniform(0.38, 0.62))
            height_share, radius_share = rng.uniform((0.80, 0.45), (0.97, 0.68)).tolist()
            lobes.append(Lobe(out * float(np.cos(turn)), out * float(np.sin(turn)), height_share, radius_share))
    power, skirt = {
        "conifer": (rng.uniform(1.0, 1.35), rng.uniform(0.12, 0.3)),
        "broadleaf": (rng.uniform(1.9, 2.8), rng.uniform(0.45, 0.62)),
        "fruit": (rng.uniform(1.8, 2.6), rng.uniform(0.40, 0.55)),
        "shrub": (rng.uniform(1.6, 2.4), rng.uniform(0.3, 0.5)),
    }[kind]
    hue = float(rng.normal(0, 0.10))
    if rng.uniform() < discoloured:
        hue += float(rng.uniform(0.5, 1.0))
    tone = float(rng.lognormal(0, 0.13))
    return Tree(
        float(place[0]), float(place[1]), height, radius, kind, tuple(lobes), float(power), float(skirt), tone, hue
    )
