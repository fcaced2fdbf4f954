"""Drawn wheat ears from above: upright, leaning or lying, some hidden; number and position of each are known."""

import math
import zlib

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools_build.scenes.orchard import Sunlight, View
from agrotools_build.scenes.scene import (
    Axes,
    Difficulty,
    Floats,
    Level,
    Rng,
    Scene,
    blurred,
    fractal_field,
    infrared_frame,
    levels,
    one_thread,
    snapshot,
    spectrum,
)

ROWS_PX, COLUMNS_PX = SIZE = 512, 512
LEAST_SEEN = 0.25
"""Minimum visible share of an ear for it to count."""

_EAR_GREEN, _EAR_RIPE = spectrum(0.20, 0.26, 0.11, 0.48), spectrum(0.50, 0.38, 0.19, 0.55)
_BLADE_GREEN, _BLADE_RIPE = spectrum(0.060, 0.110, 0.032, 0.50), spectrum(0.36, 0.29, 0.14, 0.46)
_GROUND = spectrum(0.085, 0.068, 0.050, 0.16)


@one_thread()
def make_wheat(seed: int, difficulty: Difficulty = 1, ears: int | None = None) -> Scene:
    """Draw a picture of 512 x 512 px, about 0.22 to 0.33 m wide. The same arguments give the same scene.

    ``ears``: number of ears; None: drawn.

    Returns:
        ``images``: ``rgb`` uint8 (512, 512, 3), ``nir`` uint8 (512, 512). ``masks``: ``ids`` int16 (512, 512), 0 for
        pixels without ears. ``truth``: ``heads``, each with ``id``, ``box`` (of the visible part) and ``visibility``;
        ``count``, the number of ears of which at least a quarter is visible; ``area_m2`` of ground. ``sidecar``:
        ``gsd_m``.
    """
    rng = np.random.default_rng([seed, zlib.crc32(b"wheat"), difficulty])
    level = levels("wheat")[difficulty]
    ripe = float(rng.uniform(*level.ripe))
    turn = rng.uniform(0, 2 * np.pi)
    towards = np.array([math.cos(turn), math.sin(turn), -rng.uniform(0.6, 1.6)])
    towards /= np.linalg.norm(towards)
    sun = Sunlight(
        (float(towards[0]), float(towards[1]), float(towards[2])), float(rng.uniform(*level.sun))
    )
    dapple = 1.0 / (1.0 + np.exp(-3.0 * (fractal_field(rng, SIZE, 120, 2) + 1.0)))
    floor = np.clip(0.55 + 0.4 * fractal_field(rng, SIZE, 20, 4, 0.8), 0.1, 1.6)
    ground = floor[..., None] * _GROUND
    view = View(ground, np.full(SIZE, 1500.0, np.float32), sun, dapple.astype(np.float32))
    scale = rng.uniform(0.85, 1.25)
    blade = _BLADE_GREEN + (_BLADE_RIPE - _BLADE_GREEN) * np.float32(
        np.clip(ripe * 1.1 - 0.15, 0, 1)
    )
    for _ in range(250):
        _blade(rng, view, blade, scale, rng.uniform(0.15, 0.6))
    low, high = level.ears
    count = int(rng.integers(low, high + 1)) if ears is None else ears
    whole: list[int] = []
    awned = rng.uniform(0.0, 1.0) ** 2
    heads = _places(rng, count, scale)
    overs = sorted(rng.integers(0, max(1, len(heads)), level.over).tolist())
    for number, (x, y) in enumerate(heads, start=1):
        for _ in range(3):
            _blade(rng, view, blade, scale, rng.uniform(0.5, 0.9), (x, y))
        whole.append(_ear(rng, view, (x, y), number, ripe, level, scale, awned))
        for _ in range(overs.count(number - 1)):
            _blade(rng, view, blade, scale, 1.0)
    light = view.light
    if level.blur:
        light = blurred(light, level.blur)
    photo = snapshot(rng, light, float(rng.uniform(*level.exposure)), level.electrons)
    rows = _truth(view.ids, whole)
    gsd_m = round(0.28 / COLUMNS_PX / scale, 6)
    return Scene(
        images={"rgb": photo, "nir": infrared_frame(rng, light[..., 3], 1.1)},
        sidecar={"gsd_m": gsd_m},
        truth={
            "heads": rows,
            "count": sum(row["visibility"] >= LEAST_SEEN for row in rows),
            "area_m2": round(ROWS_PX * COLUMNS_PX * gsd_m**2, 6),
        },
        masks={"ids": view.ids},
    )


def _places(rng: Rng, wanted: int, scale: float) -> list[tuple[float, float]]:
    spacing, angle = 88.0 * scale, rng.uniform(0, np.pi)
    axes = Axes.plain(angle)
    shift = rng.uniform(0, spacing)
    places: list[tuple[float, float]] = []
    for _ in range(80 * wanted):
        if len(places) >= wanted:
            break
        x, y = rng.uniform(14, COLUMNS_PX - 14), rng.uniform(14, ROWS_PX - 14)
        off = ((axes.across(x, y) + shift) / spacing) % 1.0 - 0.5
        if abs(off) > 0.22 and rng.uniform() < 0.6:
            continue
        if all((x - a) ** 2 + (y - b) ** 2 > (26 * scale) ** 2 for a, b in places):
            places.append((x, y))
    return places


def _blade(
    rng: Rng,
    view: View,
    tone: Floats,
    scale: float,
    lit: float,
    near: tuple[float, float] | None = None,
) -> None:
    """Paint a leaf or stem of wheat: a long arched strip."""
    if near is None:
        x, y = rng.uniform(-30, COLUMNS_PX + 30), rng.uniform(-30, ROWS_PX + 30)
    else:
        x, y = near[0] + rng.normal(0, 20), near[1] + rng.normal(0, 20)
    turn, bend = rng.uniform(0, 2 * np.pi), rng.normal(0, 0.10)
    length, wide = rng.uniform(70, 190) * scale, rng.uniform(3.5, 9.5) * scale
    steps = 9
    points = [(x, y)]
    for _ in range(steps):
        turn += bend
        x, y = x + length / steps * math.cos(turn), y + length / steps * math.sin(turn)
        points.append((x, y))
    line = np.asarray(points)
    direction = np.gradient(line, axis=0)
    normal = np.stack([-direction[:, 1], direction[:, 0]], axis=1)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-6)
    half = (wide / 2 * np.sin(np.linspace(0.35, np.pi - 0.02, steps + 1)) ** 0.6)[:, None]
    blade_tone = (
        tone * np.float32(rng.uniform(0.7, 1.3)) * rng.normal(1.0, 0.07, 4).astype(np.float32)
    )
    facing = rng.uniform(0.2, 1.0, 2)
    for side, face in ((1.0, facing[0]), (-1.0, facing[1])):
        strip = np.concatenate([line, (line + side * normal * half)[::-1]])
        _fill(
            view,
            strip,
            blade_tone,
            lit * (0.55 * (1 - view.sun.share) + 1.5 * view.sun.share * face),
            side > 0,
            0,
        )


def _fill(
    view: View, outline: NDArray[np.float64], tone: Floats, bright: float, shadow: bool, number: int
) -> None:
    x0, y0 = np.floor(outline.min(axis=0)).astype(int) - 2
    x1, y1 = np.ceil(outline.max(axis=0)).astype(int) + 3
    if x1 <= 0 or y1 <= 0 or x0 >= COLUMNS_PX or y0 >= ROWS_PX:
        return
    mask = np.zeros((int(y1 - y0), int(x1 - x0)), np.uint8)
    cv2.fillPoly(mask, [np.round((outline - [x0, y0]) * 16).astype(np.int32)], 255, cv2.LINE_AA, 4)
    alpha = mask.astype(np.float32) / 255.0
    if shadow:
        drop = 5.0
        view.shade(
            alpha, int(x0 - drop * view.sun.towards[0]), int(y0 - drop * view.sun.towards[1]), 0.35
        )
    light = np.broadcast_to(tone * np.float32(bright), (*alpha.shape, 4))
    view.lay(alpha, np.asarray(light, np.float32), 1200.0, int(x0), int(y0), number)


def _ear(
    rng: Rng,
    view: View,
    at: tuple[float, float],
    number: int,
    ripe: float,
    level: Level,
    scale: float,
    awned: float,
) -> int:
    """Paint an ear of alternating spikelets with its awns, and return its number of pixels before anything hides it."""
    lean = level.lean * rng.uniform(0.25, 1.0)
    long = scale * (26 + 62 * lean) * rng.uniform(0.85, 1.15)
    wide = scale * rng.uniform(14, 19.5)
    turn, bend = float(rng.uniform(0, 2 * np.pi)), rng.normal(0, 0.14)
    reach = int(long + wide + 8)
    x0, y0 = int(at[0]) - reach, int(at[1]) - reach
    ys = np.arange(2 * reach, dtype=np.float32)[:, None] + (y0 - at[1])
    xs = np.arange(2 * reach, dtype=np.float32)[None, :] + (x0 - at[0])
    # u: from the stalk, 0, to the tip, 1; v: to the right of the bent axis, in half widths of the ear.
    axes = Axes.plain(turn)
    u = axes.along(xs, ys) / long + 0.5
    v = axes.across(xs, ys) / (wide / 2) - bend * 4.0 * (u - 0.5) ** 2 * long / wide
    body = np.clip(u, 1e-3, 1 - 1e-3)
    outline = (body**0.35) * ((1 - body) ** 0.62) * 1.72
    pairs = max(3.0, long / (7.2 * scale))
    # Spikelets alternate left and right of the axis and bulge at the edge.
    phase = np.where(v > 0, 0.0, 0.5) + rng.uniform()
    beads = np.abs(np.sin(np.pi * (u * pairs + phase + 0.25 * np.abs(v))))
    margin = outline * (0.80 + 0.24 * beads)
    alpha = np.clip((margin - np.abs(v)) * (wide / 2) + 0.5, 0, 1) * np.clip(
        (0.5 - np.abs(u - 0.5)) * long + 0.5, 0, 1
    )
    alpha = alpha.astype(np.float32)
    across = v / np.maximum(margin, 0.1)
    tilt = axes.across(view.sun.towards[0], view.sun.towards[1])
    round_ = np.sqrt(np.clip(1 - 0.85 * across * across, 0.0, 1.0))
    relief = 0.35 + 0.65 * beads
    face = np.clip(round_ * -view.sun.towards[2] + across * tilt * 0.8, 0.0, None) * relief
    sunny = view.dapple[int(np.clip(at[1], 0, ROWS_PX - 1)), int(np.clip(at[0], 0, COLUMNS_PX - 1))]
    own_ripe = float(np.clip(ripe + rng.normal(0, 0.12), 0, 1))
    tone = (_EAR_GREEN + (_EAR_RIPE - _EAR_GREEN) * own_ripe) * rng.normal(1.0, 0.06, 4).astype(
        np.float32
    )
    shine = (1 - view.sun.share) * (0.45 + 0.4 * relief) + view.sun.share * 1.7 * face * np.float32(
        sunny
    )
    shine *= 1.0 + 0.10 * fractal_field(rng, (2 * reach, 2 * reach), 7, 2)
    light = shine[..., None] * tone
    drop = 11.0
    soft = blurred(alpha, 2.0)
    view.shade(
        soft, round(x0 - drop * view.sun.towards[0]), round(y0 - drop * view.sun.towards[1]), 0.55
    )
    view.lay(alpha, light.astype(np.float32), 1000.0, x0, y0, number)
    if awned > 0.12:
        _awns(rng, view, at, turn, long, wide, tone, awned)
    return int((alpha > 0.5).sum())


def _awns(
    rng: Rng,
    view: View,
    at: tuple[float, float],
    turn: float,
    long: float,
    wide: float,
    tone: Floats,
    awned: float,
) -> None:
    pad = int(long + 3 * wide)
    x0, x1 = max(0, int(at[0]) - pad), min(COLUMNS_PX, int(at[0]) + pad)
    y0, y1 = max(0, int(at[1]) - pad), min(ROWS_PX, int(at[1]) + pad)
    layer = np.zeros((y1 - y0, x1 - x0), np.uint8)
    for _ in range(int(10 + 14 * awned)):
        along = rng.uniform(-0.3, 0.5) * long
        side = float(rng.choice([-1.0, 1.0])) * wide * 0.35
        x = at[0] - x0 + along * math.cos(turn) - side * math.sin(turn)
        y = at[1] - y0 + along * math.sin(turn) + side * math.cos(turn)
        way = turn + math.copysign(rng.uniform(0.1, 0.5), side)
        reach = wide * rng.uniform(0.9, 2.1)
        end = (int(16 * (x + reach * math.cos(way))), int(16 * (y + reach * math.sin(way))))
        cv2.line(
            layer, (int(16 * x), int(16 * y)), end, int(rng.uniform(70, 150)), 1, cv2.LINE_AA, 4
        )
    alpha = np.minimum(layer.astype(np.float32) / 255.0, 0.49)
    light = np.broadcast_to(tone * np.float32(1.25), (*alpha.shape, 4))
    view.lay(alpha, np.asarray(light, np.float32), 950.0, x0, y0, 0)


def _truth(ids: NDArray[np.int16], whole: list[int]) -> list[dict]:
    rows: list[dict] = []
    for number, pixels in enumerate(whole, start=1):
        where = np.argwhere(ids == number)
        seen = len(where)
        box = [0, 0, 0, 0]
        if seen:
            (y0, x0), (y1, x1) = where.min(axis=0), where.max(axis=0)
            box = [int(x0), int(y0), int(x1) + 1, int(y1) + 1]
        rows.append({"id": number, "box": box, "visibility": round(seen / max(1, pixels), 4)})
    return rows
