"""Farmland on two dates, drawn from nothing: crops that come and go, and now and then a field that is a field no more.

Marked synthetic wherever it is used. Roads, houses and groves stand there from the first date on, and so may a pond or
a bare lot; what counts as change is ground that was cropland and became one of :data:`BECOMES`.
"""

import zlib
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.build.scenes.camera import cloud_shadow, photographed, shifted
from agrotools.build.scenes.countryside import (
    Ground,
    Light,
    build_town,
    draw_stages,
    lay_ground,
    paint_date,
    stand_things,
)
from agrotools.build.scenes.fields_lost import Patch, fill_patch, lay_patch
from agrotools.build.scenes.scene import Difficulty, Scene, one_thread

Becomes = Literal["building", "road", "water", "bare", "forest"]
BECOMES: tuple[Becomes, ...] = get_args(Becomes)
Look = Literal["aerial", "satellite"]

_DRAWN: tuple[Becomes | Literal["none"], ...] = (
    "building", "building", "building", "building", "building", "road", "road", "road", "water", "water", "bare",
    "bare", "forest", "forest", "none", "none", "none",
)  # fmt: skip
"""Frequencies of events: most cropland that is lost is built over."""
_BASE_GSD_M = 0.5
"""Of what is drawn; a satellite's picture is made coarser."""


@dataclass(frozen=True)
class _Camera:
    rows: int
    columns: int
    gsd_m: float
    trees: float
    hamlet: int
    """Houses of a hamlet there from the first date on, at most."""


_CAMERAS: dict[Look, _Camera] = {
    "aerial": _Camera(384, 512, 0.5, 1.0, 16),
    "satellite": _Camera(320, 400, 0.8, 1.7, 40),
}


@dataclass(frozen=True)
class _Level:
    """Parameters of a difficulty level. Ranges are (from, to)."""

    half_m: tuple[float, float]
    """Half the side of what replaces cropland."""
    ragged: float
    faint: float
    """Visibility of the crop through a new forest or bare ground."""
    old: int
    """Lots of the same kinds that were there before, at most."""
    kept: float
    """Share of fields that look the same on both dates."""
    shift_px: float
    balance: float
    haze: float
    noise: float
    cloud: float


_LEVELS: tuple[_Level, ...] = (
    _Level((26, 42), 0.6, 0.0, 0, 0.75, 0.0, 0.015, 0.010, 0.004, 0.0),
    _Level((20, 40), 1.0, 0.1, 1, 0.50, 0.5, 0.03, 0.02, 0.006, 0.0),
    _Level((16, 36), 1.4, 0.2, 2, 0.25, 1.0, 0.05, 0.03, 0.009, 0.15),
    _Level((13, 32), 1.8, 0.35, 3, 0.10, 1.0, 0.08, 0.045, 0.013, 0.30),
)


def make_farmland_pair(
    seed: int, difficulty: Difficulty, look: Look = "aerial", becomes: Becomes | Literal["none"] | None = None
) -> Scene:
    """Draw one pair of pictures. Same arguments, same pair.

    ``images``: ``before``, ``after`` uint8, natural colours, (384, 512, 3) at 0.5 m a pixel from the air, (320, 400, 3)
    at 0.8 m from a satellite. ``masks``: ``lost`` uint8, 0 or 1 + the place in :data:`BECOMES` of what cropland became,
    in the frame of the first picture. ``truth``: ``becomes`` (a kind, or none), ``sites``: kind and pixels of each;
    ``shift_px``, to the right and down, of the second picture.

    Args:
        becomes: what fields became; None: drawn from the seed. One kind in a pair.

    Raises:
        ValueError: a strange argument.
    """
    if difficulty not in (0, 1, 2, 3):
        raise ValueError(f"difficulty is {difficulty}; it is one of 0, 1, 2, 3")
    if seed < 0:
        raise ValueError(f"seed is {seed}; it is 0 or more")
    if becomes is not None and becomes not in (*BECOMES, "none"):
        raise ValueError(f"becomes is {becomes!r}; it is one of {', '.join(BECOMES)}, none")
    rng = np.random.default_rng([seed, zlib.crc32(f"farmland {look}".encode()), difficulty])
    drawn = _DRAWN[int(rng.integers(len(_DRAWN)))]
    with one_thread():
        return _draw(rng, _LEVELS[difficulty], _CAMERAS[look], becomes or drawn)


def _draw(rng: np.random.Generator, level: _Level, camera: _Camera, becomes: Becomes | Literal["none"]) -> Scene:
    factor = camera.gsd_m / _BASE_GSD_M
    rows, columns = round(camera.rows * factor), round(camera.columns * factor)
    ground = lay_ground(rng, rows, columns, camera.trees, 3)
    if rng.uniform() < 0.6:
        _add_hamlet(rng, ground, int(rng.integers(3, camera.hamlet)))
    old = _lots(rng, ground, level, [str(rng.choice(["water", "bare", "forest"])) for _ in range(_old(rng, level))], [])
    number = 0 if becomes == "none" else 1 if becomes == "road" else int(rng.integers(1, 6))
    # Where there are many, they are smaller.
    half_m = (level.half_m[0], level.half_m[1] * (1.0 if number < 3 else 0.75))
    new = _lots(rng, ground, replace(level, half_m=half_m), [becomes] * number, old)
    green = rng.uniform(0.15, 0.7, 2)
    first, later = draw_stages(rng, ground, float(green[0])), draw_stages(rng, ground, float(green[1]))
    kept = {number for number in first if rng.uniform() < level.kept}
    second = {number: first[number] if number in kept else later[number] for number in first}
    shift = rng.uniform(-level.shift_px, level.shift_px, 2) if level.shift_px else np.zeros(2)
    fall = rng.uniform(0, 2 * np.pi)
    images: dict[str, NDArray[Any]] = {}
    for name, stages, patches in (("before", first, old), ("after", second, [*old, *new])):
        turn = fall + rng.normal(0, 0.4)
        sun = Light(float(np.cos(turn)), float(np.sin(turn)), float(rng.uniform(0.4, 1.1)))
        bands = paint_date(rng, ground, stages, sun, float(rng.uniform()))
        trees, houses = list(ground.trees), list(ground.houses)
        for patch in patches:
            fill_patch(rng, bands, ground, patch, sun)
            trees += patch.trees
            houses += patch.houses
        stand_things(rng, bands, replace(ground, trees=trees, houses=houses), sun, float(rng.uniform(0.8, 1.35)))
        if rng.uniform() < level.cloud:
            bands *= cloud_shadow(rng, rows, columns)[..., None]
        if name == "after":
            bands = shifted(bands, shift * factor)
        bands = cv2.resize(bands, (camera.columns, camera.rows), interpolation=cv2.INTER_AREA)
        images[name] = photographed(rng, bands, noise=level.noise, haze=level.haze, balance=level.balance)[0]
    lost, sites = _lost(new, camera)
    truth = {
        "becomes": becomes if sites else "none",
        "sites": sites,
        "shift_px": [float(shift[0]), float(shift[1])],
    }
    return Scene(images, {"gsd_m": camera.gsd_m}, truth, {"lost": lost})


def _old(rng: np.random.Generator, level: _Level) -> int:
    return int(rng.integers(0, level.old + 1))


def _add_hamlet(rng: np.random.Generator, ground: Ground, houses: int) -> None:
    """Houses close together somewhere near a road, as in a village of a few farms."""
    rows, columns = ground.parcels.shape
    spots = np.argwhere(ground.road > 0.5)
    row, column = spots[int(rng.integers(len(spots)))] if len(spots) else (rows // 2, columns // 2)
    before = len(ground.houses)
    build_town(rng, ground, 12 * houses)
    near = sorted(ground.houses[before:], key=lambda house: (house.x - column) ** 2 + (house.y - row) ** 2)
    ground.houses[before:] = [house for house in near[:houses] if ground.road[int(house.y), int(house.x)] == 0]


def _lots(
    rng: np.random.Generator, ground: Ground, level: _Level, kinds: list[str], others: list[Patch]
) -> list[Patch]:
    """Patches on cropland, apart from each other, from houses and from roads; those that find no room are left out."""
    patches: list[Patch] = []
    for kind in kinds:
        patch = lay_patch(rng, ground, kind, level.half_m, level.ragged, level.faint, [*others, *patches])
        if patch is not None:
            patches.append(patch)
    return patches


def _lost(patches: list[Patch], camera: _Camera) -> tuple[NDArray[np.uint8], list[dict[str, Any]]]:
    """Cropland that was lost, in pixels of the pictures; a pixel is lost where half of it is."""
    lost = np.zeros((camera.rows, camera.columns), np.uint8)
    sites: list[dict[str, Any]] = []
    for patch in patches:
        cover = cv2.resize(patch.cover, (camera.columns, camera.rows), interpolation=cv2.INTER_AREA)
        lost[cover >= 0.5] = 1 + BECOMES.index(patch.kind)  # pyright: ignore[reportArgumentType]
        sites.append({"kind": patch.kind, "px": int(np.count_nonzero(cover >= 0.5))})
    return lost, sites
