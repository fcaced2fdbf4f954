"""The crown that fruit hangs in: leaves singly and in clusters, branches behind them."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agrotools.build.scenes.foliage import (
    LEAF_BROWN,
    LEAF_GREENS,
    LEAF_PALE,
    LEAF_RED,
    LEAF_YELLOW,
    Colour,
    LeafAt,
    Rng,
    View,
    lay_leaf,
    twig,
)
from agrotools.build.scenes.fruits import Fruit

_ODD = {"yellow": LEAF_YELLOW, "red": LEAF_RED, "brown": LEAF_BROWN}


@dataclass(frozen=True)
class Camera:
    """Focal length, and how far off the plant is."""

    focal_px: float
    near_mm: float
    """Distance of the front of the crown."""


@dataclass(frozen=True, eq=False)
class Foliage:
    """The leaves of one plant: forms, usual colour and length."""

    sprites: list[NDArray[np.uint8]]
    base: Colour
    leaf_mm: float
    odd_leaves: float
    """Share of leaves of another colour."""
    odd: tuple[str, ...]
    """Which colours: yellow, red or brown."""


def anywhere(rng: Rng, view: View) -> tuple[float, float]:
    """A place in the picture or just beside it, pixels."""
    rows, columns = view.size
    return float(rng.uniform(-0.04, 1.04) * columns), float(rng.uniform(-0.04, 1.04) * rows)


def beside(rng: Rng, view: View, hung: list[Fruit], over: float) -> tuple[float, float]:
    """Where the stalk of a leaf is: beside a fruit with that chance, else anywhere."""
    if hung and rng.uniform() < over:
        fruit = hung[int(rng.integers(len(hung)))]
        turn = rng.uniform(0, 2 * np.pi)
        return fruit.centre_px[0] + 34 * math.cos(turn), fruit.centre_px[1] - 12 + 30 * math.sin(turn)
    return anywhere(rng, view)


def lay_cluster(
    rng: Rng, view: View, foliage: Foliage, at: tuple[float, float], distance: float, camera: Camera, dim: float
) -> None:
    """The leaves of one spur or shoot tip, which spread from about one point."""
    turn = rng.uniform(0, 2 * np.pi)
    scatter = 0.10 * foliage.leaf_mm * camera.focal_px / distance
    for _ in range(int(rng.integers(4, 9))):
        turn += 2.4 + rng.normal(0, 0.3)
        x, y = at[0] + rng.normal(0, scatter), at[1] + rng.normal(0, scatter)
        lay_one(rng, view, foliage, (x, y), distance * float(rng.uniform(0.98, 1.02)), camera, dim, turn)


def lay_one(
    rng: Rng, view: View, foliage: Foliage, at: tuple[float, float], distance: float, camera: Camera, dim: float,
    turn: float | None = None,
) -> None:  # fmt: skip
    """One leaf, its stalk ``at`` a place. ``dim``: how much light reaches it, 1 at the front of the crown."""
    (x, y), (rows, columns) = at, view.size
    sunny = float(view.dapple[min(max(int(y), 0), rows - 1), min(max(int(x), 0), columns - 1)]) * (0.3 + 0.7 * dim)
    own = foliage.base * rng.uniform(0.5, 1.0) + LEAF_GREENS[int(rng.integers(len(LEAF_GREENS)))] * 0.4
    own = own * rng.normal(1.0, 0.10, 4).clip(0.7, 1.35)
    chance = rng.uniform()
    if chance < foliage.odd_leaves:
        own = own + (_ODD[str(rng.choice(foliage.odd))] - own) * rng.uniform(0.5, 1.0)
    elif chance > 0.86:
        own = own + (LEAF_PALE - own) * 0.6
    elif chance > 0.76 and sunny > 0.5:
        own = own * np.array([1.7, 1.75, 0.8, 1.0])  # the sun behind it shines through
    sky = (1.0 - view.sun.share) * rng.uniform(0.35, 0.9)
    first, second = (max(0.0, float(rng.normal(0.5, 0.38))) * view.sun.share * 2.4 * sunny for _ in range(2))
    depth = 0.2 + 0.8 * dim
    shadow = None
    if dim > 0.6:
        drop = rng.uniform(4, 12)
        shadow = (round(-drop * view.sun.towards[0]), round(-drop * view.sun.towards[1]))
    leaf = LeafAt(
        x, y, float(rng.normal(np.pi / 2, 1.1)) if turn is None else turn,
        foliage.leaf_mm * float(rng.uniform(0.6, 1.15)) * camera.focal_px / distance,
        float(np.clip(abs(rng.normal(0.8, 0.25)), 0.2, 1.0)), distance, own.astype(np.float32),
        ((sky + first) * depth, (sky + second) * depth),
        float(rng.uniform(0.05, 0.3)) if rng.uniform() < 0.3 else 0.0, shadow,
    )  # fmt: skip
    lay_leaf(view, foliage.sprites[int(rng.integers(len(foliage.sprites)))], leaf)


def lay_branches(
    rng: Rng,
    view: View,
    distance: float,
    camera: Camera,
    count: int,
    tone: float,
    step_px: float,
) -> None:
    """``count`` branches of pieces ``step_px`` long that rise through the picture."""
    rows, columns = view.size
    for _ in range(count):
        x, y = float(rng.uniform(0, columns)), float(rows * rng.uniform(0.5, 1.25))
        turn, wide = -np.pi / 2 + rng.normal(0, 0.7), rng.uniform(8, 30) * camera.focal_px / distance
        points, widths = [(x, y)], [wide]
        for _ in range(7):
            turn += rng.normal(0, 0.22)
            x, y = x + step_px * math.cos(turn), y + step_px * math.sin(turn)
            points.append((x, y))
            widths.append(widths[-1] * 0.86)
        twig(view, points, widths, distance, tone * rng.uniform(0.5, 1.2))
