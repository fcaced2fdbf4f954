"""The upper surface of a stand: how high plants reach above each spot, whose crown that is, and what a laser makes of
it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agrotools.build.scenes.noise import fractal_field, smooth_field
from agrotools.build.scenes.stand_trees import Tree

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
    """What an airborne laser's height model says: noise, pits where pulses went through crowns, and the error of the
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
