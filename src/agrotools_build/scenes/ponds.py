"""Drawn farm ponds on two dates, which are built, filled in, dry out or fill; water and event are known exactly."""

import zlib
from dataclasses import dataclass, replace
from typing import Literal, get_args

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools_build.scenes.countryside import (
    LAND,
    Ground,
    lay_ground,
    paint_date,
    paint_objects,
    two_stages,
)
from agrotools_build.scenes.scene import (
    Axes,
    Difficulty,
    Level,
    Mask,
    Plane,
    Rng,
    Scene,
    Sun,
    cloud_shadow,
    fractal_field,
    levels,
    one_thread,
    photographed,
    shifted,
    smooth_field,
    spectra,
    sun_at,
    value_at,
)

ROWS_PX, COLUMNS_PX = SIZE = 384, 512
PondEvent = Literal["constructed", "demolished", "dried", "wetted", "none"]
EVENTS: tuple[PondEvent, ...] = get_args(PondEvent)

WATERS = spectra("ponds")
"""Reflectance of water in ponds, in the order of the bands: from clear to laden with clay or algae."""


@dataclass(frozen=True, eq=False)
class _Basin:
    """A basin. ``inward``: signed distance to the rim in pixels, positive inside; other sizes are in pixels too."""

    inward: Plane
    bank_px: float
    slope_px: float
    wobble: Plane
    bank_grass: float
    floor_grass: float
    tone: float


@dataclass(frozen=True)
class _State:
    """A basin on one date: dry if ``water`` is None; ``fill`` is the water level, 1 at the rim."""

    fill: float
    water: str | None


@one_thread()
def make_pond_pair(
    seed: int,
    difficulty: Difficulty = 1,
    event: PondEvent | None = None,
    *,
    others_change: bool = False,
) -> Scene:
    """Draw a pair of pictures, 512 x 384 px. The same arguments give the same pair.

    ``event``: event of the pond; None: drawn from the seed. ``others_change``: there are other ponds, as far as there
    is room, each with an event of its own.

    Returns:
        ``images``: ``before``, ``after`` uint8 (384, 512, 3) natural colours; ``before_bands``, ``after_bands`` uint16
        (4, 384, 512) reflectance x 10,000 in the order of ``sidecar["bands"]``. ``masks``, uint8 (384, 512):
        ``water_before``, ``water_after`` (1 water), ``basins_before``, ``basins_after`` (1 inside a pond's embankment,
        wet or dry), each in the frame of its own picture. ``truth``: the event.
    """
    rng = np.random.default_rng([seed, difficulty, zlib.crc32(b"ponds")])
    drawn_event, level = EVENTS[int(rng.integers(len(EVENTS)))], levels("ponds")[difficulty]
    event, gsd_m = event or drawn_event, rng.uniform(0.35, 0.65)
    ground = lay_ground(rng, SIZE, level.trees, level.houses)
    basins, states = _place_basins(rng, ground, level, event, gsd_m, others_change=others_change)
    filled_in = [basin for basin, (_, now) in zip(basins, states, strict=True) if now is None]
    scars = [_scar(rng, basin, level) for basin in filled_in]
    first, second = two_stages(rng, ground, kept=0.25)
    images: dict[str, NDArray[np.uint8] | NDArray[np.uint16]] = {}
    masks: dict[str, NDArray[np.uint8]] = {}
    shift = rng.uniform(-level.shift_px, level.shift_px, 2) if level.shift_px else np.zeros(2)
    fall = rng.uniform(0, 2 * np.pi)
    for name, stages, when in (("before", first, 0), ("after", second, 1)):
        sun = sun_at(fall + rng.normal(0, 0.5), rng.uniform(0.4, 1.2))
        wet_season = rng.uniform(0.0, 1.0)
        bands = paint_date(rng, ground, stages, sun, wet_season)
        if when:
            for scar in scars:
                bands *= scar[..., None]
        water = np.zeros(SIZE, bool)
        inside = np.zeros(SIZE, bool)
        for basin, both in zip(basins, states, strict=True):
            state = both[when]
            if state is not None:
                water |= _paint_basin(rng, bands, ground, basin, state, sun, wet_season)
                inside |= basin.inward > 0
        paint_objects(rng, bands, ground, sun, rng.uniform(0.8, 1.35))
        if rng.uniform() < level.cloud:
            bands *= cloud_shadow(rng, SIZE)[..., None]
        moved = [
            np.asarray(plane) for plane in (bands, water.astype(np.uint8), inside.astype(np.uint8))
        ]
        if when:
            moved = [shifted(plane, shift) for plane in moved]
        images[name], images[f"{name}_bands"] = photographed(
            rng, moved[0], noise=level.noise, haze=level.haze, balance=level.balance
        )
        masks[f"water_{name}"], masks[f"basins_{name}"] = (
            np.asarray(plane, np.uint8) for plane in moved[1:]
        )
    return Scene(images, {"gsd_m": gsd_m, "bands": ["B", "G", "R", "NIR"]}, {"event": event}, masks)


_States = tuple[_State | None, _State | None]
"""A basin on both dates; None: it does not exist."""


def _place_basins(
    rng: Rng, ground: Ground, level: Level, event: PondEvent, gsd_m: float, *, others_change: bool
) -> tuple[list[_Basin], list[_States]]:
    """Place the pond of the event and others; trees and houses at these places are removed.

    The others are unchanged unless ``others_change``.
    """
    free = cv2.dilate((ground.road > 0).astype(np.uint8), np.ones((9, 9), np.uint8)) == 0
    basins: list[_Basin] = []
    states: list[_States] = []
    plain = rng.uniform()
    others = int(
        rng.integers(1, _OTHERS_THAT_CHANGE + 1)
        if others_change
        else rng.integers(0, level.others + 1)
    )
    for number in range(1 + others):
        basin = _find_place(rng, free, ground, level, gsd_m)
        if basin is None and number:
            continue
        if basin is None:
            # The roads leave no room for the pond, so it is placed on a ground without roads.
            without_roads = replace(ground, road=np.zeros_like(ground.road))
            return _place_basins(
                rng, without_roads, level, event, gsd_m, others_change=others_change
            )
        wet = _wet(rng, level, None)
        pair: _States
        if number and others_change:
            pair = _states_of(rng, level, EVENTS[int(rng.integers(len(EVENTS)))], wet)
        elif number:
            pair = (wet, _wet(rng, level, wet)) if rng.uniform() < 0.8 else (_DRY, _DRY)
        elif event == "none":
            if plain < 0.2:
                continue
            pair = (_DRY, _DRY) if plain < 0.4 else (wet, _wet(rng, level, wet))
        else:
            pair = _states_of(rng, level, event, wet)
        basins.append(basin)
        states.append(pair)
        free &= basin.inward < -2.5 * basin.bank_px - 6
        # Trees and houses in a basin or on its bank are removed; trees outside the bank stay.
        inward, bank = basin.inward, basin.bank_px
        ground.trees[:] = [
            one
            for one in ground.trees
            if value_at(inward, one.x, one.y) < -(bank + 0.6 * one.radius)
        ]
        ground.houses[:] = [
            one for one in ground.houses if value_at(inward, one.x, one.y) < -(2 * bank + 18)
        ]
    return basins, states


_DRY = _State(0.0, None)
_OTHERS_THAT_CHANGE = 2
"""Maximum number of other ponds that change: with more, a picture has no room for a mark around one alone."""


def _states_of(rng: Rng, level: Level, event: PondEvent, wet: _State) -> _States:
    """Return a basin on both dates; ``wet``: the state in which it holds water."""
    match event:
        case "constructed":
            return None, wet
        case "demolished":
            return wet, None
        case "dried":
            return wet, _DRY
        case "wetted":
            return _DRY, wet
        case "none":
            return wet, _wet(rng, level, wet)


def _wet(rng: Rng, level: Level, earlier: _State | None) -> _State:
    """Return a filled basin, or with ``earlier`` the same pond on another date."""
    water = str(rng.choice(level.waters))
    if earlier is None:
        return _State(float(rng.uniform(*level.fill)), water)
    fill = float(np.clip(earlier.fill + rng.uniform(-level.refill, level.refill), 0.25, 1.0))
    return _State(fill, earlier.water if rng.uniform() < 0.6 else water)


def _find_place(rng: Rng, free: Mask, ground: Ground, level: Level, gsd_m: float) -> _Basin | None:
    low, high = level.half_side_m
    for _ in range(40):
        half = float(low + (high - low) * rng.beta(1.3, 2.0)) / gsd_m
        squeeze = rng.uniform(0.6, 1.0)
        margin = half + 10
        x, y = rng.uniform(margin, COLUMNS_PX - margin), rng.uniform(margin, ROWS_PX - margin)
        basin = _shape_basin(rng, x, y, half, squeeze * half, ground.angle, level, gsd_m)
        if free[basin.inward > -2.0 * basin.bank_px].all():
            return basin
    return None


def _shape_basin(
    rng: Rng,
    x: float,
    y: float,
    long: float,
    short: float,
    angle: float,
    level: Level,
    gsd_m: float,
) -> _Basin:
    """Return a dug pond: between a rounded rectangle and an ellipse, with a more or less regular outline."""
    turn = angle + rng.normal(0, 0.08) + (np.pi / 2 if rng.uniform() < 0.5 else 0.0)
    power = float(rng.choice([2.0, 3.0, 5.0, 8.0], p=[0.3, 0.2, 0.25, 0.25]))
    ys, xs = np.mgrid[0:ROWS_PX, 0:COLUMNS_PX].astype(np.float32)
    warp = level.irregular * (0.08 * long if power < 4 else 0.035 * long)
    xs = xs + warp * smooth_field(rng, SIZE, 1.3 * long) - x
    ys = ys + warp * smooth_field(rng, SIZE, 1.3 * long) - y
    axes = Axes.double(turn)
    along, across = axes.along(xs, ys), axes.across(xs, ys)
    inside = (np.abs(along) / long) ** power + (np.abs(across) / short) ** power <= 1.0
    inward = cv2.distanceTransform(inside.astype(np.uint8), cv2.DIST_L2, 5) - cv2.distanceTransform(
        (~inside).astype(np.uint8), cv2.DIST_L2, 5
    )
    return _Basin(
        inward=np.asarray(cv2.GaussianBlur(inward, (0, 0), 1.0), np.float32),
        bank_px=float(rng.uniform(*level.bank_m)) / gsd_m,
        slope_px=float(min(rng.uniform(2.0, 4.5) / gsd_m, 0.45 * short)),
        wobble=0.5 * fractal_field(rng, SIZE, 14, 3),
        bank_grass=float(rng.uniform(*level.bank_grass)),
        floor_grass=float(rng.uniform(*level.floor_grass)),
        tone=rng.uniform(0.95, 1.35),
    )


def _paint_basin(
    rng: Rng,
    bands: Plane,
    ground: Ground,
    basin: _Basin,
    state: _State,
    sun: Sun,
    wet_season: float,
) -> Mask:
    """Paint embankment, slopes, floor and water in place, and return the mask of water."""
    inward = basin.inward
    outward = np.maximum(-inward, 0.0)
    if not (inward > 0).any():
        return np.zeros(inward.shape, bool)
    crest = np.exp(-((outward / basin.bank_px) ** 2))
    descent = np.clip(inward / basin.slope_px, 0.0, 1.0)
    height = np.where(inward > 0, 1.0 - 2.4 * descent, crest) * basin.bank_px
    gy, gx = np.gradient(cv2.GaussianBlur(height.astype(np.float32), (0, 0), 0.8))
    light = np.clip(1.0 - 0.30 * (gx * sun.dx + gy * sun.dy), 0.45, 1.6)
    fine = fractal_field(rng, SIZE, 5, 3, 0.9)
    grass = wet_season * LAND["green_grass"] + (1 - wet_season) * LAND["dry_grass"]
    subsoil = (ground.soil * basin.tone) * (1 + 0.07 * fine + 0.06 * basin.wobble)[..., None]
    overgrown = np.clip(basin.bank_grass + 0.45 * basin.wobble, 0, 1)[..., None]
    bank = subsoil + overgrown * (grass * (1 + 0.12 * fine)[..., None] - subsoil)
    floor_grass = np.clip(basin.floor_grass * (0.4 + wet_season) + 0.5 * basin.wobble - 0.15, 0, 1)[
        ..., None
    ]
    moist = 1.0 - rng.uniform(0.0, 0.35) * np.clip((inward - basin.slope_px) / basin.slope_px, 0, 1)
    floor = subsoil * (0.92 * moist)[..., None]
    floor = floor + floor_grass * (grass * (1 + 0.12 * fine)[..., None] - floor)
    basin_ground = (
        np.where((inward > 0.3 * basin.slope_px)[..., None], floor, bank) * light[..., None]
    )
    cover = np.clip(1.2 * crest - 0.1, 0, 1)[..., None]
    bands += cover * (basin_ground.astype(np.float32) - bands)
    if state.water is None:
        return np.zeros(inward.shape, bool)
    shore = (1.0 - state.fill) * 0.9 * basin.slope_px + 0.8 + 0.7 * basin.wobble
    depth = inward - shore
    colour = WATERS[state.water] * np.float32(rng.uniform(0.85, 1.15))
    ripple = 0.012 * fractal_field(rng, SIZE, 6, 2) + 0.03 * smooth_field(rng, SIZE, 50)
    water = colour * (1.0 + ripple)[..., None]
    shallow = 0.35 * np.exp(-np.clip(depth, 0, None) / (0.6 * basin.slope_px))[..., None]
    water = water + shallow * (0.8 * subsoil * (1.0, 0.95, 0.85, 0.35) - water)
    glint = rng.uniform(0.0, 0.02) * np.clip(1 + smooth_field(rng, SIZE, 130), 0, 2)
    water = water + glint[..., None]
    shade = cv2.GaussianBlur((depth > 0).astype(np.float32), (0, 0), 1.0)
    lee = np.roll(height > 0.3 * basin.bank_px, (round(sun.dy * 2), round(sun.dx * 2)), (0, 1))
    water = water * np.where(lee, 0.75, 1.0)[..., None]
    alpha = np.clip(1.6 * shade - 0.3, 0, 1)[..., None]
    bands += alpha * (water.astype(np.float32) - bands)
    return np.asarray(depth > 0)


def _scar(rng: Rng, basin: _Basin, level: Level) -> Plane:
    """Return the brightness of a filled-in basin, a soft patch that differs because the earth comes from elsewhere."""
    soft = cv2.GaussianBlur((basin.inward > -basin.bank_px).astype(np.float32), (0, 0), 7.0)
    strength = float(rng.uniform(*level.scar)) * (1 if rng.uniform() < 0.5 else -1)
    return np.asarray(1.0 + strength * soft * (1 + 0.4 * basin.wobble), np.float32)
