"""Drawn settlements without ponds, whose roofs, roads and yards must not be mistaken for water.

Part of ``fit_pond_evidence.py`` and of ``fit_strangeness.py``.
"""

import zlib

import numpy as np
from numpy.typing import NDArray

from agrotools_build.scenes.countryside import (
    build_town,
    draw_stages,
    lay_ground,
    paint_date,
    paint_objects,
)
from agrotools_build.scenes.ponds import COLUMNS_PX, ROWS_PX
from agrotools_build.scenes.scene import Difficulty, levels, one_thread, photographed, sun_at


@one_thread()
def make_town(seed: int, difficulty: Difficulty = 1) -> NDArray[np.uint8]:
    """Draw a settlement among fields without ponds; its roofs, roads and yards must not be mistaken for water.

    Returns:
        uint8 (384, 512, 3), natural colours.
    """
    rng = np.random.default_rng([seed, difficulty, zlib.crc32(b"town")])
    level = levels("ponds")[difficulty]
    ground = lay_ground(rng, (ROWS_PX, COLUMNS_PX), level.trees, 0)
    build_town(rng, ground, int(rng.integers(40, 260)))
    sun = sun_at(rng.uniform(0, 2 * np.pi), rng.uniform(0.4, 1.2))
    stages = draw_stages(rng, ground, float(rng.uniform(0.1, 0.6)))
    bands = paint_date(rng, ground, stages, sun, float(rng.uniform()))
    paint_objects(rng, bands, ground, sun, float(rng.uniform(0.8, 1.35)))
    picture, _ = photographed(rng, bands, noise=level.noise, haze=level.haze, balance=level.balance)
    return picture
