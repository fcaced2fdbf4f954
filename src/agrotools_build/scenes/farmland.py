"""Drawn farmland on two dates: crops change, and in some pairs cropland is lost to one of :data:`BECOMES`."""

import zlib
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools_build.scenes.countryside import (
    LAND,
    Crown,
    Ground,
    House,
    build_town,
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
    sun_at,
    value_at,
)

_BASE_GSD_M = 0.5
"""Pixel size of the drawing, metres; satellite pictures are resampled to larger pixels."""
_CLOSE_PX = 12
_TRIES = 60


@dataclass(frozen=True, eq=False)
class Patch:
    """An area that replaces cropland.

    ``cover``: covered share of each pixel, float32 (rows, columns); ``inward``: distance from its edge in pixels,
    positive inside; ``look``: number from 0 to 1 that determines its appearance; ``faint``: visibility of the former
    ground.
    """

    kind: str
    cover: Plane
    inward: Plane
    look: float
    faint: float
    trees: list[Crown] = field(default_factory=list)
    houses: list[House] = field(default_factory=list)


def _lay_patch(
    rng: Rng, ground: Ground, level: Level, kind: str, others: list[Patch]
) -> Patch | None:
    """Return a lot somewhere on the fields, or a road across them; None if there is no room."""
    occupied = _occupied_ground(ground, others)
    look = rng.uniform()
    for _ in range(_TRIES):
        inward = (
            _road(rng, ground)
            if kind == "road"
            else _lot(rng, ground, kind, level.half_m, level.ragged)
        )
        if kind == "road":
            inward = np.where(occupied, -1.0, inward).astype(np.float32)
        elif occupied[inward > -4].any():
            continue
        cover = np.clip(inward + 0.5, 0, 1).astype(np.float32)
        if np.count_nonzero(cover >= 0.5) < 900:
            continue
        patch = Patch(kind, cover, inward, look, level.faint * rng.uniform())
        # Remove trees in the patch, on both dates.
        ground.trees[:] = [
            tree for tree in ground.trees if value_at(inward, tree.x, tree.y) < -0.5 * tree.radius
        ]
        if kind == "building":
            patch.houses.extend(_roofs(rng, ground, patch))
        if kind == "forest":
            patch.trees.extend(_saplings(rng, ground, patch))
        return patch
    return None


def _fill_patch(rng: Rng, bands: Plane, ground: Ground, patch: Patch, sun: Sun) -> None:
    """Paint the ground of a patch over the fields, in place; its trees and houses are painted with all others."""
    fine = fractal_field(rng, ground.parcels.shape, 5, 3, 0.9)
    coarse = fractal_field(rng, ground.parcels.shape, 30, 3, 0.7)
    tone = (1 + 0.06 * fine + 0.08 * coarse)[..., None]
    if patch.kind == "water":
        colour = (
            LAND["waters"][int(patch.look * len(LAND["waters"]))] * (1 + 0.02 * coarse)[..., None]
        )
        rim = np.exp(-((np.minimum(patch.inward, 0) / 3.0) ** 2)) * (patch.inward < 1)
        bands += (0.6 * rim)[..., None] * (1.2 * ground.soil * tone - bands)
    elif patch.kind == "road":
        # The road is slightly wider than its surface, because the shoulders are bare.
        kind = "asphalt" if patch.look < 0.5 else "dirt_road" if patch.look < 0.7 else "concrete"
        surface = LAND[kind] * tone
        shoulder = np.clip((2.2 - patch.inward) / 1.5, 0, 1)[..., None]
        colour = surface + shoulder * (1.1 * ground.soil * tone - surface)
    elif patch.kind == "building":
        # Concrete or gravel, because a yard of plain earth would have no visible edge.
        yard = (
            LAND["concrete"] if patch.look < 0.55 else 0.65 * LAND["concrete"] + 0.45 * ground.soil
        )
        green = np.clip(0.5 * coarse - 0.2, 0, 0.7)[..., None]
        colour = yard * tone + green * (LAND["green_grass"] - yard * tone)
    elif patch.kind == "forest":
        floor = 0.6 * LAND["green_grass"] + 0.25 * ground.soil
        colour = (0.8 + 0.2 * patch.look) * floor * tone
    else:
        colour = _stripped(rng, ground, patch, sun, fine, coarse)
    opacity = (1 - (patch.faint if patch.kind in ("bare", "forest") else 0.0)) * patch.cover
    bands += opacity[..., None] * (colour - bands)
    np.clip(bands, 0.004, 1.0, out=bands)


def _stripped(
    rng: Rng, ground: Ground, patch: Patch, sun: Sun, fine: Plane, coarse: Plane
) -> Plane:
    """Return subsoil without plants: heaps, hollows and wheel tracks in all directions."""
    relief = cv2.GaussianBlur(
        1.4 * fractal_field(rng, ground.parcels.shape, 16, 3, 0.8), (0, 0), 0.8
    )
    gy, gx = np.gradient(relief)
    light = np.clip(1 - 0.5 * (gx * sun.dx + gy * sun.dy), 0.5, 1.5)
    bend = smooth_field(rng, ground.parcels.shape, 60)
    tracks = np.exp(-((np.abs(np.sin(0.10 * bend * 60 + coarse)) / 0.10) ** 2)) * 0.12
    subsoil = ground.soil * (1.25 + 0.5 * patch.look)
    return (subsoil * (light * (1 + 0.07 * fine + 0.10 * coarse) - tracks)[..., None]).astype(
        np.float32
    )


def _occupied_ground(ground: Ground, others: list[Patch]) -> Mask:
    occupied = cv2.dilate((ground.road > 0).astype(np.uint8), np.ones((7, 7), np.uint8)) > 0
    for house in ground.houses:
        reach = house.half_length + 6
        y0, x0 = max(0, int(house.y - reach)), max(0, int(house.x - reach))
        occupied[y0 : max(0, int(house.y + reach)), x0 : max(0, int(house.x + reach))] = True
    for patch in others:
        occupied |= patch.inward > -_CLOSE_PX
    return occupied


def _lot(rng: Rng, ground: Ground, kind: str, half_m: tuple[float, float], ragged: float) -> Plane:
    """Return the distance inwards from the edge of a rounded quadrangle along the fields, or of a warped blob."""
    rows, columns = ground.parcels.shape
    long = float(rng.uniform(*half_m)) / _BASE_GSD_M * (1.25 if kind == "forest" else 1.0)
    short = long * rng.uniform(0.55, 1.0)
    margin = 0.6 * long
    x, y = rng.uniform(margin, columns - margin), rng.uniform(margin, rows - margin)
    turn = ground.angle + rng.normal(0, 0.06) + (np.pi / 2 if rng.uniform() < 0.5 else 0.0)
    power = {"building": 8.0, "water": float(rng.choice([2.2, 3.5, 7.0]))}.get(
        kind, float(rng.choice([2.5, 4.0, 8.0]))
    )
    ys, xs = np.mgrid[0:rows, 0:columns].astype(np.float32)
    warp = ragged * (0.10 if power < 4 else 0.05) * long
    small = ragged * 1.1
    xs = (
        xs
        + warp * smooth_field(rng, (rows, columns), 0.9 * long)
        + small * smooth_field(rng, (rows, columns), 7)
        - x
    )
    ys = (
        ys
        + warp * smooth_field(rng, (rows, columns), 0.9 * long)
        + small * smooth_field(rng, (rows, columns), 7)
        - y
    )
    axes = Axes.double(turn)
    along, across = axes.along(xs, ys), axes.across(xs, ys)
    out = ((np.abs(along) / long) ** power + (np.abs(across) / short) ** power) ** (1 / power)
    return ((1 - out) * short).astype(np.float32)


def _road(rng: Rng, ground: Ground) -> Plane:
    """Return the distance from the edge, positive inside, of a winding band across the scene."""
    rows, columns = ground.parcels.shape
    turn = ground.angle + (np.pi / 2 if rng.uniform() < 0.5 else 0.0) + rng.normal(0, 0.25)
    ys, xs = np.mgrid[0:rows, 0:columns].astype(np.float32)
    across = -Axes.double(turn).across(xs - columns / 2, ys - rows / 2)
    across = (
        across
        + 16.0 * smooth_field(rng, (rows, columns), 230)
        + 0.5 * smooth_field(rng, (rows, columns), 9)
    )
    half = rng.uniform(9, 16)
    return (half - np.abs(across - rng.uniform(-0.3, 0.3) * rows)).astype(np.float32)


def _roofs(rng: Rng, ground: Ground, patch: Patch) -> list[House]:
    """Return halls or houses on the yard that do not overlap."""
    spots = np.argwhere(patch.inward > 7)
    if not len(spots):
        return []
    halls = rng.uniform() < 0.5
    roof = int(rng.integers(len(LAND["roofs"])))
    roofs: list[House] = []
    for _ in range(80):
        if len(roofs) >= (3 if halls else 9):
            break
        row, column = spots[int(rng.integers(len(spots)))]
        half = (
            (rng.uniform(14, 26), rng.uniform(8, 13))
            if halls
            else (rng.uniform(7, 12), rng.uniform(5, 8))
        )
        turn = ground.angle + (np.pi / 2 if rng.uniform() < 0.4 else 0.0)
        reach = half[0]
        if any(
            np.hypot(one.x - column, one.y - row) < reach + 0.9 * one.half_length for one in roofs
        ):
            continue
        if patch.inward[row, column] < 0.75 * half[1]:
            continue
        kind = roof if halls or rng.uniform() < 0.5 else int(rng.integers(len(LAND["roofs"])))
        roofs.append(
            House(float(column), float(row), float(half[0]), float(half[1]), float(turn), kind)
        )
    return roofs


def _saplings(rng: Rng, ground: Ground, patch: Patch) -> list[Crown]:
    """Return trees of a plantation in loose lines, or of self-sown woodland."""
    ys, xs = np.where(patch.inward > 1.5)
    step = rng.uniform(6.5, 9.5)
    planted = rng.uniform() < 0.6
    along, across = np.meshgrid(np.arange(-400, 400, step), np.arange(-400, 400, step))
    stray = 0.6 if planted else 0.35 * step
    x_lines, y_lines = Axes.double(ground.angle).point(along.ravel(), across.ravel())
    places = np.stack([x_lines, y_lines], axis=1)
    places += np.array([xs.mean(), ys.mean()]) + rng.normal(0, stray, places.shape)
    rows, columns = patch.inward.shape
    inside = (places >= 0).all(axis=1) & (places[:, 0] < columns) & (places[:, 1] < rows)
    trees: list[Crown] = []
    for x, y in places[inside]:
        if patch.inward[int(y), int(x)] > 1.5 and rng.uniform() < 0.93:
            radius = step * rng.uniform(0.42, 0.64)
            trees.append(Crown(float(x), float(y), radius, int(rng.integers(1 << 30))))
    return trees


Becomes = Literal["building", "road", "water", "bare", "forest"]
BECOMES: tuple[Becomes, ...] = get_args(Becomes)
Look = Literal["aerial", "satellite"]

_DRAWN: tuple[Becomes | Literal["none"], ...] = (
    "building", "building", "building", "building", "building", "road", "road", "road", "water", "water", "bare",
    "bare", "forest", "forest", "none", "none", "none",
)  # fmt: skip
"""Frequencies of events: most lost cropland is built over."""


class _Camera(NamedTuple):
    """``hamlet``: maximum number of houses of a hamlet that exists on both dates."""

    rows: int
    columns: int
    gsd_m: float
    trees: float
    hamlet: int


_CAMERAS: dict[Look, _Camera] = {
    "aerial": _Camera(384, 512, 0.5, 1.0, 16),
    "satellite": _Camera(320, 400, 0.8, 1.7, 40),
}


@one_thread()
def make_farmland_pair(
    seed: int,
    difficulty: Difficulty,
    look: Look = "aerial",
    becomes: Becomes | Literal["none"] | None = None,
) -> Scene:
    """Draw a pair of pictures. The same arguments give the same pair.

    ``images``: ``before``, ``after`` uint8, natural colours, (384, 512, 3) at 0.5 m per pixel from the air, (320, 400,
    3) at 0.8 m from a satellite. ``masks``: ``lost`` uint8, 0 or 1 + the index in :data:`BECOMES` of the new use of
    cropland, in the frame of the first picture. ``truth``: ``becomes`` (a kind, or none).

    ``becomes``: new use of the lost fields, a single one per pair; None: drawn from the seed.
    """
    rng = np.random.default_rng([seed, zlib.crc32(f"farmland {look}".encode()), difficulty])
    drawn_kind = _DRAWN[int(rng.integers(len(_DRAWN)))]
    becomes = becomes or drawn_kind
    level, camera = levels("farmland")[difficulty], _CAMERAS[look]
    factor = camera.gsd_m / _BASE_GSD_M
    rows, columns = round(camera.rows * factor), round(camera.columns * factor)
    ground = lay_ground(rng, (rows, columns), camera.trees, 3)
    if rng.uniform() < 0.6:
        _add_hamlet(rng, ground, int(rng.integers(3, camera.hamlet)))
    kinds = [
        str(rng.choice(["water", "bare", "forest"]))
        for _ in range(int(rng.integers(0, level.old + 1)))
    ]
    old = _lots(rng, ground, level, kinds, [])
    number = 0 if becomes == "none" else 1 if becomes == "road" else int(rng.integers(1, 6))
    # Three or more sites are smaller.
    half_m = (level.half_m[0], level.half_m[1] * (1.0 if number < 3 else 0.75))
    new = _lots(rng, ground, Level(**{**vars(level), "half_m": half_m}), [becomes] * number, old)
    first, second = two_stages(rng, ground, level.kept)
    shift = rng.uniform(-level.shift_px, level.shift_px, 2) if level.shift_px else np.zeros(2)
    fall = rng.uniform(0, 2 * np.pi)
    images: dict[str, NDArray[Any]] = {}
    for name, stages, patches in (("before", first, old), ("after", second, [*old, *new])):
        sun = sun_at(fall + rng.normal(0, 0.4), rng.uniform(0.4, 1.1))
        bands = paint_date(rng, ground, stages, sun, rng.uniform())
        trees, houses = list(ground.trees), list(ground.houses)
        for patch in patches:
            _fill_patch(rng, bands, ground, patch, sun)
            trees += patch.trees
            houses += patch.houses
        paint_objects(
            rng, bands, replace(ground, trees=trees, houses=houses), sun, rng.uniform(0.8, 1.35)
        )
        if rng.uniform() < level.cloud:
            bands *= cloud_shadow(rng, (rows, columns))[..., None]
        if name == "after":
            bands = shifted(bands, shift * factor)
        bands = cv2.resize(bands, (camera.columns, camera.rows), interpolation=cv2.INTER_AREA)
        images[name], _ = photographed(
            rng, bands, noise=level.noise, haze=level.haze, balance=level.balance
        )
    lost = _lost_cropland(new, camera)
    return Scene(
        images, {"gsd_m": camera.gsd_m}, {"becomes": becomes if new else "none"}, {"lost": lost}
    )


def _add_hamlet(rng: Rng, ground: Ground, houses: int) -> None:
    """Place a cluster of houses near a road, like a village of a few farms."""
    rows, columns = ground.parcels.shape
    spots = np.argwhere(ground.road > 0.5)
    row, column = spots[int(rng.integers(len(spots)))] if len(spots) else (rows // 2, columns // 2)
    before = len(ground.houses)
    build_town(rng, ground, 12 * houses)
    near = sorted(
        ground.houses[before:], key=lambda house: (house.x - column) ** 2 + (house.y - row) ** 2
    )
    ground.houses[before:] = [
        house for house in near[:houses] if ground.road[int(house.y), int(house.x)] == 0
    ]


def _lots(
    rng: Rng, ground: Ground, level: Level, kinds: list[str], others: list[Patch]
) -> list[Patch]:
    """Return patches on cropland, apart from each other, houses and roads; patches without room are omitted."""
    patches: list[Patch] = []
    for kind in kinds:
        patch = _lay_patch(rng, ground, level, kind, [*others, *patches])
        if patch is not None:
            patches.append(patch)
    return patches


def _lost_cropland(patches: list[Patch], camera: _Camera) -> NDArray[np.uint8]:
    """Return the mask of lost cropland; a pixel is lost if at least half of it is."""
    loss_mask = np.zeros((camera.rows, camera.columns), np.uint8)
    for patch in patches:
        cover = cv2.resize(patch.cover, (camera.columns, camera.rows), interpolation=cv2.INTER_AREA)
        loss_mask[cover >= 0.5] = 1 + BECOMES.index(patch.kind)  # pyright: ignore[reportArgumentType]
    return loss_mask
