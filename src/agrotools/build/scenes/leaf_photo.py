"""Drawn leaves with lesions on a board, a cloth or soil; the diseased pixels are known exactly."""

import zlib
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.build.scenes.lesions import BLADES, KINDS, TONES, Blade, blade_colour, lay_out
from agrotools.build.scenes.plants import SOILS, Sun, paint_soil
from agrotools.build.scenes.scene import (
    Difficulty,
    Floats,
    Level,
    Mask,
    Plane,
    Rng,
    Scene,
    blurred,
    fractal_field,
    levels,
    moved,
    one_of,
    one_thread,
    overlap,
    smooth_field,
    snapshot,
    spectrum,
)

ROWS_PX, COLUMNS_PX = 480, 640
BACKGROUND, HEALTHY, LESION = 0, 1, 2
LEAST_LESION_PX = 12
"""Minimum size of a lesion in ``n_lesions``; pixels of smaller patches still count as diseased."""
MOST_LEAVES = 3


@one_thread()
def make_leaf_photo(
    seed: int, difficulty: Difficulty = 1, crop: str | None = None, lesion: str | None = None, *,
    leaves: int = 1, severity_pct: float | None = None,
) -> Scene:  # fmt: skip
    """Draw a photograph of 640 x 480 px with one to three leaves of one crop. The same arguments give the same scene.

    Args:
        crop: one of :data:`agrotools.build.scenes.lesions.BLADES`; None: drawn.
        lesion: one of :data:`agrotools.build.scenes.lesions.KINDS`; None: drawn, one or two kinds.
        leaves: number of leaves side by side, at most :data:`MOST_LEAVES`.
        severity_pct: approximate diseased share of each leaf, percent; None: drawn, sometimes 0.

    Returns:
        ``images``: ``rgb`` uint8 (480, 640, 3). ``masks``: ``classes`` uint8 (480, 640), 0 background, 1 healthy leaf,
        2 diseased; ``leaves`` uint8, number of the leaf from left to right. ``truth``: ``leaves``, each with
        ``leaf_area_px``, ``lesion_area_px``, ``severity_pct``, ``n_lesions`` (8-connected, at least 12 px) and
        ``box``; ``ground``.
    """
    rng = np.random.default_rng([seed, zlib.crc32(b"leaf_photo"), difficulty])
    level = levels("leaf_photo")[difficulty]
    crop = crop or str(rng.choice(list(BLADES)))
    kinds = [lesion] if lesion else [str(k) for k in rng.permutation(list(KINDS))[: rng.integers(1, level.kinds + 1)]]
    turn = rng.uniform(0, 2 * np.pi)
    low_sun = float(rng.uniform(0.5, 1.3))
    sun = Sun(float(np.cos(turn)), float(np.sin(turn)), low_sun, float(rng.uniform(0.35, 0.6)))
    ground = str(rng.choice(level.grounds))
    light = _ground(rng, ground, sun)
    classes = np.zeros((ROWS_PX, COLUMNS_PX), np.uint8)
    numbers = np.zeros((ROWS_PX, COLUMNS_PX), np.uint8)
    for number in range(1, leaves + 1):
        blade = _placed(rng, crop, number, leaves, level.curl)
        surface = blade_colour(rng, blade, float(rng.uniform(*level.age)))
        diseased = _infect(rng, level, blade, surface, kinds, severity_pct)
        _lay(rng, light, blade, surface, sun, level)
        blade_window, window = overlap(blade.cover.shape, classes.shape, blade.x0, blade.y0)
        inside = blade.inside[blade_window]
        classes[window][inside] = HEALTHY
        classes[window][inside & diseased[blade_window]] = LESION
        numbers[window][inside] = number
    if rng.uniform() < level.shadow:
        _shadow_over(rng, light)
    # The exposure is limited, so that a leaf on dark ground does not turn white.
    bright = max(float(np.quantile(light[::4, ::4, :3].max(axis=2), 0.97)) * 1.05, 0.5)
    photo = snapshot(rng, light, float(rng.uniform(1.0, 1.25)) / bright, level.electrons)
    rows = [_counted(classes, numbers, number) for number in range(1, leaves + 1)]
    return Scene(
        images={"rgb": photo}, truth={"leaves": rows, "ground": ground}, masks={"classes": classes, "leaves": numbers}
    )


def _placed(rng: Rng, crop: str, number: int, leaves: int, curl: float) -> Blade:
    kind = BLADES[crop]
    widest = 2 * kind.slim[1] * (1 + kind.lobes + kind.wave)
    if leaves == 1:
        length = min(ROWS_PX * 0.88 / max(widest, 0.62), COLUMNS_PX * 0.80) * float(rng.uniform(0.88, 1.0))
        angle = float(rng.choice([0.0, np.pi])) + float(rng.normal(0, 0.18))
        centre = (COLUMNS_PX / 2 + float(rng.normal(0, 10)), ROWS_PX / 2 + float(rng.normal(0, 6)))
    else:
        room = COLUMNS_PX / leaves
        length = min(ROWS_PX * 0.84, 0.86 * room / widest) * float(rng.uniform(0.85, 1.0))
        angle = -np.pi / 2 + float(rng.normal(0, 0.07))
        centre = (room * (number - 0.5) + float(rng.normal(0, 3)), ROWS_PX / 2 + float(rng.normal(0, 10)))
    return lay_out(rng, kind, centre, length, angle, curl * float(rng.normal(0, 1.0)))


def _infect(rng: Rng, level: Level, blade: Blade, surface: Plane, kinds: list[str], severity_pct: float | None) -> Mask:
    diseased = np.zeros(blade.cover.shape, np.bool_)
    low, high = np.log(level.severity_pct[0]), np.log(level.severity_pct[1])
    healthy, intensity = rng.uniform() < level.healthy, float(np.exp(rng.uniform(low, high)))
    if healthy and severity_pct is None:
        return diseased
    share = intensity if severity_pct is None else severity_pct
    goal = share / 100.0 * float(np.count_nonzero(blade.inside))
    for kind in kinds:
        diseased |= KINDS[kind](rng, blade, surface, int(goal / len(kinds)), float(rng.uniform(*level.strength)))
    return diseased


def _lay(rng: Rng, light: Plane, blade: Blade, surface: Plane, sun: Sun, level: Level) -> None:
    """Paint the leaf's shadow on the ground, then the leaf, lit according to its relief."""
    blade_window, window = overlap(blade.cover.shape, light.shape, blade.x0, blade.y0)
    raised = 4.0 + 7.0 * level.curl * float(rng.uniform(0.2, 1.0))
    shape = np.maximum(blade.cover, blade.stalk)
    whole = np.zeros((ROWS_PX, COLUMNS_PX), np.float32)
    whole[window] = shape[blade_window]
    cast = blurred(moved(whole, sun.dx * sun.length * raised, sun.dy * sun.length * raised), 1.0 + 0.5 * raised)
    contact = blurred(whole, 5.0)
    light *= (1.0 - sun.darkness * 0.9 * cast)[..., None] * (1.0 - 0.25 * contact)[..., None]
    smooth = blurred(blade.height, 1.2)
    gx, gy = cv2.Sobel(smooth, cv2.CV_32F, 1, 0, ksize=3) / 8.0, cv2.Sobel(smooth, cv2.CV_32F, 0, 1, ksize=3) / 8.0
    rise = 1.0 / max(sun.length, 0.3)
    norm = np.sqrt(1.0 + gx * gx + gy * gy)
    lambert = np.clip((rise + gx * sun.dx + gy * sun.dy) / (norm * np.sqrt(1.0 + rise * rise)), 0.0, 1.0)
    lambert *= np.sqrt(1.0 + rise * rise) / rise
    shine = (1.0 - sun.darkness) + sun.darkness * lambert
    lit = shine[..., None] * surface
    # The cuticle reflects the sky where the blade tilts half way towards the sun.
    tilt = ((gx + 0.22 * sun.dx) ** 2 + (gy + 0.22 * sun.dy) ** 2) / 0.02
    gloss = blade.kind.gloss * level.gloss * 0.16 * np.exp(-np.clip(tilt, 0.0, 30.0))
    lit += gloss[..., None] * np.array([0.95, 1.0, 1.08, 0.6], np.float32)
    stalk = shine[..., None] * spectrum(0.11, 0.15, 0.055, 0.46)
    part = light[window]
    part += blade.stalk[blade_window][..., None] * (stalk[blade_window] - part)
    part += blade.cover[blade_window][..., None] * (lit[blade_window] - part)


def _ground(rng: Rng, kind: str, sun: Sun) -> Plane:
    if kind == "soil":
        soil = paint_soil(
            rng, ROWS_PX, COLUMNS_PX, SOILS[int(rng.integers(len(SOILS)))], sun, float(rng.uniform(0, 0.6))
        )
        return np.ascontiguousarray(soil[..., [2, 1, 0, 4]])
    if kind == "cloth":
        return _cloth(rng)
    tone = spectrum(0.72, 0.71, 0.70, 0.7) * np.float32(rng.uniform(0.75, 1.1))
    tone = tone * rng.normal(1.0, 0.03, 4).astype(np.float32)
    even = (
        1.0 + 0.05 * smooth_field(rng, ROWS_PX, COLUMNS_PX, 400) + 0.008 * fractal_field(rng, ROWS_PX, COLUMNS_PX, 6, 3)
    )
    return np.asarray(even[..., None] * tone, np.float32)


def _cloth(rng: Rng) -> Plane:
    """Return woven cloth, dark or coloured, with a few folds."""
    tone = one_of(rng, TONES["cloths"])
    y, x = np.mgrid[0:ROWS_PX, 0:COLUMNS_PX].astype(np.float32)
    pitch, turn = float(rng.uniform(2.6, 4.2)), float(rng.uniform(-0.3, 0.3))
    c, s = np.float32(np.cos(turn)), np.float32(np.sin(turn))
    weave: Floats = np.sin((x * c + y * s) * np.float32(2 * np.pi / pitch)) * np.sin(
        (y * c - x * s) * np.float32(2 * np.pi / pitch)
    )
    folds = fractal_field(rng, ROWS_PX, COLUMNS_PX, 240, 2)
    light = 1.0 + 0.10 * weave + 0.13 * folds + 0.05 * fractal_field(rng, ROWS_PX, COLUMNS_PX, 4, 2, 0.8)
    return np.asarray(np.clip(light, 0.2, 2.0)[..., None] * tone, np.float32)


def _shadow_over(rng: Rng, light: Plane) -> None:
    """Darken one side of an edge, like the shadow of a hand or of the photographer."""
    y, x = np.mgrid[0:ROWS_PX, 0:COLUMNS_PX].astype(np.float32)
    turn = rng.uniform(0, 2 * np.pi)
    side = (x - rng.uniform(0.25, 0.75) * COLUMNS_PX) * np.cos(turn) + (y - rng.uniform(0.3, 0.7) * ROWS_PX) * np.sin(
        turn
    )
    side += 14.0 * smooth_field(rng, ROWS_PX, COLUMNS_PX, 90)
    soft = blurred((side > 0).astype(np.float32), 6.0)
    light *= (1.0 - float(rng.uniform(0.3, 0.55)) * soft)[..., None]


def _counted(classes: NDArray[np.uint8], numbers: NDArray[np.uint8], number: int) -> dict[str, Any]:
    of_leaf = numbers == number
    leaf, lesion = int(np.count_nonzero(of_leaf)), of_leaf & (classes == LESION)
    ys, xs = np.nonzero(of_leaf)
    _, _, stats, _ = cv2.connectedComponentsWithStats(lesion.astype(np.uint8), connectivity=8)
    return {
        "leaf_area_px": leaf,
        "lesion_area_px": int(np.count_nonzero(lesion)),
        "severity_pct": round(100.0 * int(np.count_nonzero(lesion)) / leaf, 4),
        "n_lesions": int(np.count_nonzero(stats[1:, cv2.CC_STAT_AREA] >= LEAST_LESION_PX)),
        "box": [int(xs.min()), int(ys.min()), int(xs.max()) + 1, int(ys.max()) + 1],
    }
