"""Land use that replaces cropland: its outline, warped and soft as on the ground, and what it looks like."""

from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.build.scenes.countryside import (
    ASPHALT,
    DIRT_ROAD,
    GRASS_GREEN,
    TOWN_ROOFS,
    Ground,
    House,
    Light,
    Plane,
    Tree,
    spectrum,
)
from agrotools.build.scenes.scene import fractal_field, smooth_field

_BASE_GSD_M = 0.5
_WATERS = (
    spectrum(0.030, 0.030, 0.022, 0.012),
    spectrum(0.060, 0.058, 0.040, 0.016),
    spectrum(0.034, 0.062, 0.040, 0.040),
    spectrum(0.062, 0.088, 0.096, 0.048),
)
_CONCRETE = spectrum(0.200, 0.215, 0.225, 0.260)
_CLOSE_PX = 12
_TRIES = 60


@dataclass(frozen=True, eq=False)
class Patch:
    """``cover``: 0..1, float32 (rows, columns), how much of a pixel was taken; ``inward``: distance from its edge in
    pixels, positive inside. ``look``: a number in 0..1 that what it looks like follows from; ``faint``: how much of
    what was there before still shows."""

    kind: str
    cover: Plane
    inward: Plane
    look: float
    faint: float
    trees: list[Tree] = field(default_factory=list)
    houses: list[House] = field(default_factory=list)


def lay_patch(
    rng: np.random.Generator,
    ground: Ground,
    kind: str,
    half_m: tuple[float, float],
    ragged: float,
    faint: float,
    others: list[Patch],
) -> Patch | None:
    """A lot somewhere on the fields, or a road across them; None where there is no room.

    Args:
        half_m: half the side of a lot, metres, from and to. ragged: how far its outline strays.
    """
    taken = _taken(ground, others)
    look = float(rng.uniform())
    for _ in range(_TRIES):
        inward = _road(rng, ground) if kind == "road" else _lot(rng, ground, kind, half_m, ragged)
        if kind == "road":
            inward = np.where(taken, -1.0, inward).astype(np.float32)
        elif taken[inward > -4].any():
            continue
        cover = np.clip(inward + 0.5, 0, 1).astype(np.float32)
        if np.count_nonzero(cover >= 0.5) < 900:
            continue
        patch = Patch(kind, cover, inward, look, faint * float(rng.uniform()))
        _clear(ground, patch)
        if kind == "building":
            patch.houses.extend(_roofs(rng, ground, patch))
        if kind == "forest":
            patch.trees.extend(_saplings(rng, ground, patch))
        return patch
    return None


def fill_patch(rng: np.random.Generator, bands: Plane, ground: Ground, patch: Patch, sun: Light) -> None:
    """Lay the ground of a patch over the fields, in place; its trees and houses are stood up with all others."""
    rows, columns = ground.parcels.shape
    fine = fractal_field(rng, rows, columns, 5, 3, 0.9)
    coarse = fractal_field(rng, rows, columns, 30, 3, 0.7)
    tone = (1 + 0.06 * fine + 0.08 * coarse)[..., None]
    if patch.kind == "water":
        colour = _WATERS[int(patch.look * len(_WATERS))] * (1 + 0.02 * coarse)[..., None]
        rim = np.exp(-((np.minimum(patch.inward, 0) / 3.0) ** 2)) * (patch.inward < 1)
        bands += (0.6 * rim)[..., None] * (1.2 * ground.soil * tone - bands)
    elif patch.kind == "road":
        # A little broader than its surface: the shoulders are bare.
        surface = (ASPHALT if patch.look < 0.5 else DIRT_ROAD if patch.look < 0.7 else _CONCRETE) * tone
        shoulder = np.clip((2.2 - patch.inward) / 1.5, 0, 1)[..., None]
        colour = surface + shoulder * (1.1 * ground.soil * tone - surface)
    elif patch.kind == "building":
        # Concrete or gravel: a yard of plain earth would end nowhere.
        yard = _CONCRETE if patch.look < 0.55 else 0.65 * _CONCRETE + 0.45 * ground.soil
        green = np.clip(0.5 * coarse - 0.2, 0, 0.7)[..., None]
        colour = yard * tone + green * (GRASS_GREEN - yard * tone)
    elif patch.kind == "forest":
        floor = 0.6 * GRASS_GREEN + 0.25 * ground.soil
        colour = (0.8 + 0.2 * patch.look) * floor * tone
    else:
        colour = _stripped(rng, ground, patch, sun, fine, coarse)
    shown = (1 - (patch.faint if patch.kind in ("bare", "forest") else 0.0)) * patch.cover
    bands += shown[..., None] * (colour - bands)
    np.clip(bands, 0.004, 1.0, out=bands)


def _stripped(rng: np.random.Generator, ground: Ground, patch: Patch, sun: Light, fine: Plane, coarse: Plane) -> Plane:
    """Subsoil without a plant: heaps and hollows, wheel tracks that go everywhere."""
    rows, columns = ground.parcels.shape
    relief = cv2.GaussianBlur(1.4 * fractal_field(rng, rows, columns, 16, 3, 0.8), (0, 0), 0.8)
    gy, gx = np.gradient(relief)
    light = np.clip(1 - 0.5 * (gx * sun.dx + gy * sun.dy), 0.5, 1.5)
    bend = smooth_field(rng, rows, columns, 60)
    tracks = np.exp(-((np.abs(np.sin(0.10 * bend * 60 + coarse)) / 0.10) ** 2)) * 0.12
    subsoil = ground.soil * (1.25 + 0.5 * patch.look)
    return (subsoil * (light * (1 + 0.07 * fine + 0.10 * coarse) - tracks)[..., None]).astype(np.float32)


def _taken(ground: Ground, others: list[Patch]) -> NDArray[np.bool_]:
    taken = cv2.dilate((ground.road > 0).astype(np.uint8), np.ones((7, 7), np.uint8)) > 0
    for house in ground.houses:
        reach = house.half_length + 6
        rows, columns = taken.shape
        y0, y1 = max(0, int(house.y - reach)), min(rows, int(house.y + reach))
        x0, x1 = max(0, int(house.x - reach)), min(columns, int(house.x + reach))
        taken[y0:y1, x0:x1] = True
    for patch in others:
        taken |= patch.inward > -_CLOSE_PX
    return taken


def _lot(rng: np.random.Generator, ground: Ground, kind: str, half_m: tuple[float, float], ragged: float) -> Plane:
    """Distance inwards of a rounded quadrangle along the fields, or of a blob, its outline warped."""
    rows, columns = ground.parcels.shape
    long = float(rng.uniform(*half_m)) / _BASE_GSD_M * (1.25 if kind == "forest" else 1.0)
    short = long * float(rng.uniform(0.55, 1.0))
    margin = 0.6 * long
    x, y = rng.uniform(margin, columns - margin), rng.uniform(margin, rows - margin)
    turn = ground.angle + rng.normal(0, 0.06) + (np.pi / 2 if rng.uniform() < 0.5 else 0.0)
    power = {"building": 8.0, "water": float(rng.choice([2.2, 3.5, 7.0]))}.get(kind, float(rng.choice([2.5, 4.0, 8.0])))
    ys, xs = np.mgrid[0:rows, 0:columns].astype(np.float32)
    warp = ragged * (0.10 if power < 4 else 0.05) * long
    small = ragged * 1.1
    xs = xs + warp * smooth_field(rng, rows, columns, 0.9 * long) + small * smooth_field(rng, rows, columns, 7) - x
    ys = ys + warp * smooth_field(rng, rows, columns, 0.9 * long) + small * smooth_field(rng, rows, columns, 7) - y
    along, across = xs * np.cos(turn) + ys * np.sin(turn), ys * np.cos(turn) - xs * np.sin(turn)
    out = ((np.abs(along) / long) ** power + (np.abs(across) / short) ** power) ** (1 / power)
    return ((1 - out) * short).astype(np.float32)


def _road(rng: np.random.Generator, ground: Ground) -> Plane:
    """Distance inwards of a band that swings across the scene."""
    rows, columns = ground.parcels.shape
    turn = ground.angle + (np.pi / 2 if rng.uniform() < 0.5 else 0.0) + rng.normal(0, 0.25)
    ys, xs = np.mgrid[0:rows, 0:columns].astype(np.float32)
    across = (xs - columns / 2) * np.sin(turn) - (ys - rows / 2) * np.cos(turn)
    across = across + 16.0 * smooth_field(rng, rows, columns, 230) + 0.5 * smooth_field(rng, rows, columns, 9)
    half = float(rng.uniform(9, 16))
    return (half - np.abs(across - rng.uniform(-0.3, 0.3) * rows)).astype(np.float32)


def _clear(ground: Ground, patch: Patch) -> None:
    """Nothing stands any more, on either date, where a patch lies."""
    rows, columns = patch.inward.shape

    def off(x: float, y: float, reach: float) -> bool:
        return bool(patch.inward[min(max(int(y), 0), rows - 1), min(max(int(x), 0), columns - 1)] < -reach)

    ground.trees[:] = [tree for tree in ground.trees if off(tree.x, tree.y, 0.5 * tree.radius)]


def _roofs(rng: np.random.Generator, ground: Ground, patch: Patch) -> list[House]:
    """Halls or houses on the yard, none on another."""
    spots = np.argwhere(patch.inward > 7)
    if not len(spots):
        return []
    halls = rng.uniform() < 0.5
    roof = int(rng.integers(len(TOWN_ROOFS)))
    roofs: list[House] = []
    for _ in range(80):
        if len(roofs) >= (3 if halls else 9):
            break
        row, column = spots[int(rng.integers(len(spots)))]
        half = (rng.uniform(14, 26), rng.uniform(8, 13)) if halls else (rng.uniform(7, 12), rng.uniform(5, 8))
        turn = ground.angle + (np.pi / 2 if rng.uniform() < 0.4 else 0.0)
        reach = half[0]
        if any(np.hypot(one.x - column, one.y - row) < reach + 0.9 * one.half_length for one in roofs):
            continue
        if patch.inward[row, column] < 0.75 * half[1]:
            continue
        kind = roof if halls or rng.uniform() < 0.5 else int(rng.integers(len(TOWN_ROOFS)))
        roofs.append(House(float(column), float(row), float(half[0]), float(half[1]), float(turn), kind))
    return roofs


def _saplings(rng: np.random.Generator, ground: Ground, patch: Patch) -> list[Tree]:
    """A plantation in loose lines, or self-sown woodland."""
    ys, xs = np.where(patch.inward > 1.5)
    step = float(rng.uniform(6.5, 9.5))
    planted = rng.uniform() < 0.6
    c, s = np.cos(ground.angle), np.sin(ground.angle)
    u, v = np.meshgrid(np.arange(-400, 400, step), np.arange(-400, 400, step))
    stray = 0.6 if planted else 0.35 * step
    places = np.stack([u.ravel() * c - v.ravel() * s, u.ravel() * s + v.ravel() * c], axis=1)
    places += np.array([xs.mean(), ys.mean()]) + rng.normal(0, stray, places.shape)
    rows, columns = patch.inward.shape
    inside = (places >= 0).all(axis=1) & (places[:, 0] < columns) & (places[:, 1] < rows)
    trees: list[Tree] = []
    for x, y in places[inside]:
        if patch.inward[int(y), int(x)] > 1.5 and rng.uniform() < 0.93:
            radius = step * float(rng.uniform(0.42, 0.64))
            trees.append(Tree(float(x), float(y), radius, int(rng.integers(1 << 30))))
    return trees


__all__ = ["Patch", "fill_patch", "lay_patch"]
