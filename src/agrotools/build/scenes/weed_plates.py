"""One weed from above on bare ground, drawn by its leaves and flowers: schematic, never a stand-in for photographs."""

import zlib

import numpy as np

from agrotools.build.scenes.camera import colour_photo
from agrotools.build.scenes.canvas import Canvas, Sun
from agrotools.build.scenes.grounds import outlined, photographed
from agrotools.build.scenes.noise import fractal_field
from agrotools.build.scenes.plants import WEEDS, Habit, paint_plant
from agrotools.build.scenes.scene import Difficulty, Scene
from agrotools.build.scenes.soil import paint_soil
from agrotools.build.scenes.spectra import SOILS
from agrotools.build.scenes.threads import one_thread
from agrotools.build.scenes.weed_shapes import WEED_SHAPES

ROWS_PX, COLUMNS_PX = 384, 512
_RADIUS = ((0.40, 0.47), (0.34, 0.46), (0.28, 0.44), (0.22, 0.42))
"""Radius of the plant, share of the shorter side, by difficulty."""
_OTHERS = (0, 3, 7, 12)
"""Seedlings and tufts of other plants around it."""


def make_weed_plate(seed: int, difficulty: Difficulty, species: str | None = None) -> Scene:
    """One plant, 512 x 384 px. ``truth``: ``species`` (slug), ``box`` of the plant [x0, y0, x1, y1].

    Raises:
        KeyError: no such species is drawn.
    """
    rng = np.random.default_rng([seed, zlib.crc32(b"weed plate"), difficulty])
    slug = list(WEED_SHAPES)[int(rng.integers(len(WEED_SHAPES)))] if species is None else species
    with one_thread():
        canvas = _bare(rng, difficulty)
        radius = ROWS_PX * rng.uniform(*_RADIUS[difficulty])
        x, y = (COLUMNS_PX / 2 + rng.normal(0, 18), ROWS_PX / 2 + rng.normal(0, 10))
        box = _grow(rng, canvas, slug, x, y, radius, 1)
        rgb = photographed(rng, colour_photo(rng, canvas.bands, 0.004).astype(np.float32), difficulty)
    return Scene({"rgb": rgb}, truth={"species": slug, "box": box}, masks={"plants": canvas.plants})


def make_marked_weeds(seed: int, difficulty: Difficulty, species: str | None = None) -> Scene:
    """Two or three species side by side, one of them in a red box.

    ``truth``: ``species`` of the marked one, ``others``, ``box`` inside the stroke [x0, y0, x1, y1].

    Raises:
        KeyError: no such species is drawn.
    """
    rng = np.random.default_rng([seed, zlib.crc32(b"marked weeds"), difficulty])
    order = [list(WEED_SHAPES)[int(k)] for k in rng.permutation(len(WEED_SHAPES))]
    first = order[0] if species is None else species
    shown = [first, *(slug for slug in order if slug != first)][: 2 + (difficulty >= 2)]
    with one_thread():
        canvas = _bare(rng, difficulty)
        width = COLUMNS_PX / len(shown)
        radius = min(0.44 * width, 0.40 * ROWS_PX)
        boxes: list[list[int]] = []
        for place, k in enumerate(rng.permutation(len(shown))):
            x, y = width * (place + 0.5), ROWS_PX / 2 + rng.uniform(-0.4, 0.4) * (ROWS_PX - 2.4 * radius)
            box = _grow(rng, canvas, shown[int(k)], x, y, radius * rng.uniform(0.88, 1.0), 1 + place)
            if k == 0:
                boxes = [box]
        picture = colour_photo(rng, canvas.bands, 0.004).astype(np.float32)
        x0, y0, x1, y1 = boxes[0]
        rgb, box = outlined(photographed(rng, picture, difficulty), (x0 - 6, y0 - 6, x1 + 6, y1 + 6))
    truth = {"species": first, "others": shown[1:], "box": box, "shape": "box"}
    return Scene({"rgb": rgb}, truth=truth)


def _bare(rng: np.random.Generator, difficulty: Difficulty) -> Canvas:
    """Bare soil with a few small plants of other kinds."""
    fall = rng.uniform(0, 2 * np.pi)
    darkness = float(rng.uniform(0.30, 0.40 + 0.08 * difficulty))
    sun = Sun(float(np.cos(fall)), float(np.sin(fall)), float(rng.uniform(0.4, 1.0)), darkness)
    soil = SOILS[int(rng.integers(len(SOILS)))]
    ground = paint_soil(rng, ROWS_PX, COLUMNS_PX, soil, sun, float(rng.uniform(0.1, 0.5 + 0.15 * difficulty)))
    canvas = Canvas(ground, sun, fractal_field(rng, ROWS_PX, COLUMNS_PX, 12, 3, 0.8))
    for _ in range(int(rng.integers(0, _OTHERS[difficulty] + 1))):
        kind = WEEDS[("seedling", "grass")[int(rng.integers(2))]]
        where = Habit(
            rng.uniform(0, COLUMNS_PX), rng.uniform(0, ROWS_PX), rng.uniform(8, 22), rng.uniform(0, 6.28), 0.95
        )
        paint_plant(rng, canvas, kind, where, 2, 0, 0.0)
    return canvas


def _grow(
    rng: np.random.Generator, canvas: Canvas, slug: str, x: float, y: float, radius: float, number: int
) -> list[int]:
    at = Habit(float(x), float(y), float(radius), float(rng.uniform(0, 2 * np.pi)), 1.0)
    stray = rng.normal(1.0, 0.05, 5)
    for leaf, colour in WEED_SHAPES[slug](rng, at):
        canvas.paint(leaf, (colour * stray * rng.normal(1.0, 0.04)).astype(np.float32), 2, number)
    ys, xs = np.nonzero(canvas.plants == number)
    return [int(xs.min()), int(ys.min()), int(xs.max()) + 1, int(ys.max()) + 1]
