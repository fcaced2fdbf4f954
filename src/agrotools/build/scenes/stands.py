"""Forests and orchards from the air, drawn from nothing: a picture, a canopy height model, and every tree known.

Marked synthetic wherever it is used. Two scenes: a block of 128 x 112 m at 25 cm (:func:`make_block`), whose trees can
be counted one by one, and a tract of several hectares at 0.5 or 1 m (:func:`make_tract`), where stands of different age
lie beside open ground.
"""

import zlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from agrotools.build.scenes.scene import Difficulty, Scene, fractal_field, one_thread, smooth_field
from agrotools.build.scenes.stand_picture import (
    Camera,
    Surface,
    draw_sun,
    grow,
    on_grid,
    paint_forest_floor,
    paint_orchard_floor,
    photographed,
    scanned,
    seen_from_above,
)
from agrotools.build.scenes.stand_trees import Stand, Tree, plant_forest, plant_orchard, scatter_shrubs

BlockKind = Literal["forest", "orchard"]
ROWS_PX, COLUMNS_PX = 448, 512
BLOCK_GSD_M = 0.25
TRACT_PX = 256
OPEN, YOUNG, OLD = 0, 1, 2
"""Parts of a tract, as in its mask ``parts``."""


@dataclass(frozen=True)
class _Level:
    """Parameters of a difficulty level. Ranges are (from, to)."""

    chm_factor: int
    """Pixels of the height model of a block, in pixels of its picture."""
    tract_gsd_m: float
    several: float
    """Share of crowns with several apexes."""
    gaps: tuple[float, float]
    closeness: tuple[float, float]
    spread: tuple[float, float]
    shrubs_per_ha: tuple[float, float]
    discoloured: float
    pits: float
    noise_m: float
    terrain_m: float
    """Spread of the terrain model's error."""
    sun: tuple[float, float]
    """Tangent of the sun's height."""
    noise: float
    haze: float
    blur_px: tuple[float, float]
    quality: tuple[int, int]


_LEVELS: tuple[_Level, ...] = (
    _Level(1, 0.5, 0.05, (0.02, 0.08), (0.84, 1.0), (0.15, 0.22), (0, 25), 0.0, 0.002, 0.05, 0.0, (1.4, 2.4), 0.006,
           0.004, (0.4, 0.6), (90, 96)),
    _Level(2, 0.5, 0.20, (0.03, 0.14), (0.76, 0.94), (0.20, 0.30), (10, 70), 0.02, 0.006, 0.08, 0.12, (1.1, 2.1), 0.010,
           0.010, (0.4, 0.8), (86, 95)),
    _Level(4, 1.0, 0.40, (0.05, 0.20), (0.70, 0.88), (0.25, 0.40), (30, 140), 0.05, 0.010, 0.12, 0.22, (0.9, 1.8),
           0.014, 0.018, (0.5, 1.0), (80, 93)),
    _Level(4, 1.0, 0.60, (0.06, 0.26), (0.64, 0.82), (0.30, 0.50), (60, 220), 0.09, 0.015, 0.16, 0.32, (0.75, 1.6),
           0.020, 0.030, (0.6, 1.2), (74, 90)),
)  # fmt: skip


def make_block(seed: int, difficulty: Difficulty, kind: BlockKind | None = None) -> Scene:
    """A block of trees. Same arguments, same scene.

    ``images``: ``rgb`` uint8 (448, 512, 3); ``chm`` float32, metres above ground, of the same extent in pixels of 0.25,
    0.5 or 1 m. ``masks``: ``heights`` float32, those of the surface without the faults of the model; ``crowns`` int16
    (448, 512), number of the tree whose crown is seen there, from 1, shrubs and trees outside included.
    ``truth``: ``kind``; ``trees``, a list of [x, y, height, radius] in pixels of the picture and metres, of the trees
    whose tops can be seen; ``planted``: places of the grid (None for a forest).

    Args:
        kind: None: drawn from the seed.

    Raises:
        ValueError: a strange argument.
    """
    rng, level = _start(seed, difficulty, b"block")
    drawn: BlockKind = "orchard" if rng.uniform() < 0.5 else "forest"
    with one_thread():
        return _block(rng, level, kind or drawn)


def make_tract(seed: int, difficulty: Difficulty) -> Scene:
    """A tract of land, 256 x 256 px of 0.5 or 1 m: old and young stands, open ground between. Same arguments, same
    scene.

    ``images``: ``rgb`` uint8 (256, 256, 3); ``chm`` float32 (256, 256). ``masks``: ``heights`` as for a block;
    ``parts`` uint8 (256, 256), :data:`OPEN`, :data:`YOUNG` or :data:`OLD`. ``truth``: ``trees`` as for a block.

    Raises:
        ValueError: a strange argument.
    """
    rng, level = _start(seed, difficulty, b"tract")
    with one_thread():
        return _tract(rng, level)


def _start(seed: int, difficulty: Difficulty, name: bytes) -> tuple[np.random.Generator, _Level]:
    if difficulty not in (0, 1, 2, 3):
        raise ValueError(f"difficulty is {difficulty}; it is one of 0, 1, 2, 3")
    if seed < 0:
        raise ValueError(f"seed is {seed}; it is 0 or more")
    return np.random.default_rng([seed, zlib.crc32(name), difficulty]), _LEVELS[difficulty]


def _block(rng: np.random.Generator, level: _Level, kind: BlockKind) -> Scene:
    width_m, height_m = COLUMNS_PX * BLOCK_GSD_M, ROWS_PX * BLOCK_GSD_M
    planted = None
    if kind == "orchard":
        trees, grid = plant_orchard(
            rng, width_m, height_m, float(rng.uniform(*level.gaps)), 0.6 * level.several, level.discoloured
        )
        planted = grid.planted
        ground = paint_orchard_floor(rng, (ROWS_PX, COLUMNS_PX), BLOCK_GSD_M, grid)
        bushes = 0.3
    else:
        trees = plant_forest(rng, width_m, height_m, _stand(rng, level, (9.0, 21.0)))
        ground = paint_forest_floor(rng, ROWS_PX, COLUMNS_PX, BLOCK_GSD_M, float(rng.uniform(0.1, 0.9)))
        bushes = 1.0
    per_ha = bushes * float(rng.uniform(*level.shrubs_per_ha))
    trees += scatter_shrubs(rng, width_m, height_m, int(per_ha * width_m * height_m / 1e4))
    surface = grow(rng, trees, ROWS_PX, COLUMNS_PX, BLOCK_GSD_M)
    return _scene(rng, level, surface, trees, ground, level.chm_factor, {"kind": kind, "planted": planted}, {})


def _tract(rng: np.random.Generator, level: _Level) -> Scene:
    gsd_m = level.tract_gsd_m
    side_m = TRACT_PX * gsd_m
    relief = smooth_field(rng, TRACT_PX, TRACT_PX, float(rng.uniform(70, 150)))
    ragged = 0.12 * fractal_field(rng, TRACT_PX, TRACT_PX, 18, 3)
    field = relief + ragged
    open_share, old_share = float(rng.uniform(0.15, 0.5)), float(rng.uniform(0.25, 0.6))
    low = float(np.quantile(field, open_share))
    high = float(np.quantile(field, open_share + (1 - open_share) * (1 - old_share)))
    parts = np.where(field < low, OPEN, np.where(field < high, YOUNG, OLD)).astype(np.uint8)
    old = _stand(rng, level, (13.0, 21.0))
    young = _stand(rng, level, (4.5, 7.0))
    trees = plant_forest(rng, side_m, side_m, old, parts == OLD) + plant_forest(
        rng, side_m, side_m, young, parts == YOUNG
    )
    lone = int(rng.integers(0, 8 + int(side_m * side_m / 4000)))
    trees += plant_forest(rng, side_m, side_m, old, parts == OPEN)[:lone]
    per_ha = float(rng.uniform(*level.shrubs_per_ha))
    trees += scatter_shrubs(rng, side_m, side_m, int(0.5 * per_ha * side_m * side_m / 1e4), parts == OPEN)
    ground = paint_forest_floor(rng, TRACT_PX, TRACT_PX, gsd_m, float(rng.uniform(0.3, 1.0)))
    surface = grow(rng, trees, TRACT_PX, TRACT_PX, gsd_m)
    return _scene(rng, level, surface, trees, ground, 1, {}, {"parts": parts})


def _stand(rng: np.random.Generator, level: _Level, tall_m: tuple[float, float]) -> Stand:
    mixed = float(rng.choice([0.0, 0.3, 0.8, 1.0]))
    return Stand(
        height_m=float(rng.uniform(*tall_m)),
        spread=float(rng.uniform(*level.spread)),
        closeness=float(rng.uniform(*level.closeness)),
        conifers=mixed,
        several=level.several,
        discoloured=level.discoloured,
    )


def _scene(
    rng: np.random.Generator,
    level: _Level,
    surface: Surface,
    trees: list[Tree],
    ground: NDArray[np.float32],
    factor: int,
    truth: dict[str, Any],
    masks: dict[str, NDArray[Any]],
) -> Scene:
    camera = Camera(
        level.noise, level.haze, 0.04, float(rng.uniform(*level.blur_px)), int(rng.integers(*level.quality))
    )
    rgb = photographed(rng, surface, trees, ground, draw_sun(rng, level.sun), camera)
    heights = on_grid(surface.heights, factor)
    chm_gsd_m = surface.gsd_m * factor
    chm = scanned(rng, heights, chm_gsd_m, pits=level.pits, noise_m=level.noise_m, terrain_m=level.terrain_m)
    counted = [trees[number] for number in seen_from_above(surface, trees)]
    listed = [
        [round(tree.x / surface.gsd_m, 2), round(tree.y / surface.gsd_m, 2), round(tree.height, 2),
         round(tree.radius, 2)]
        for tree in counted
    ]  # fmt: skip
    return Scene(
        images={"rgb": rgb, "chm": chm},
        sidecar={"gsd_m": surface.gsd_m, "chm_gsd_m": chm_gsd_m},
        truth={**truth, "trees": listed},
        masks={"heights": heights, "crowns": surface.owner + 1, **masks},
    )
