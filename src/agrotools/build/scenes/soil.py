"""Bare soil as a lit surface: crumbs, clods, stones, moist patches and the low dam of each row."""

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.build.scenes.canvas import SoilKind, Sun
from agrotools.build.scenes.scene import fractal_field, smooth_field

_AREA_PX = 480 * 640
"""Area that the numbers of clods and stones are given for."""


def paint_soil(
    rng: np.random.Generator, rows: int, columns: int, soil: SoilKind, sun: Sun, roughness: float
) -> NDArray[np.float32]:
    """Reflectance of bare soil, (rows, columns, 5). ``roughness`` 0 (rolled seedbed) to 1 (cloddy)."""
    height, stones = _surface(rng, rows, columns, roughness)
    light = _lit(height, sun)
    moisture = np.clip(0.35 + 0.35 * fractal_field(rng, rows, columns, 220, 3), 0.0, 1.0)
    tone = 1.0 - (1.0 - soil.moist) * moisture
    tone = tone * (1.0 + 0.09 * fractal_field(rng, rows, columns, 8, 4, 0.95))
    brightness = (light * tone).astype(np.float32)
    ground = brightness[..., None] * soil.dry
    hue = 1.0 + 0.035 * smooth_field(rng, rows, columns, 60)
    ground[..., 0] *= 2.0 - hue
    ground[..., 2] *= hue
    ground += (stones * light)[..., None] * (soil.stone - ground) * 0.75
    return ground.astype(np.float32)


def _surface(
    rng: np.random.Generator, rows: int, columns: int, roughness: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    height = 1.6 * fractal_field(rng, rows, columns, 70, 3)
    height += (0.45 + 0.35 * roughness) * fractal_field(rng, rows, columns, 5, 3, 0.9)
    clods = np.zeros((rows, columns), dtype=np.float32)
    patchy = smooth_field(rng, rows, columns, 160)
    area = rows * columns / _AREA_PX
    for _ in range(int((420 + 1100 * roughness) * area)):
        x, y = rng.uniform(0, columns), rng.uniform(0, rows)
        size = float(rng.pareto(2.4) * (2.0 + 2.6 * roughness) + 2.0)
        size = min(size, 7.0 + 17.0 * roughness)
        if patchy[int(y), int(x)] + rng.normal() < -0.4:
            continue
        _raise(clods, x, y, size, size * rng.uniform(0.6, 1.0), rng.uniform(0, np.pi), size * rng.uniform(0.35, 0.6))
    stones = np.zeros((rows, columns), dtype=np.float32)
    for _ in range(int(int(rng.integers(2, 26)) * area)):
        size = float(min(rng.pareto(2.2) * 1.6 + 1.4, 8.0))
        x, y = rng.uniform(0, columns), rng.uniform(0, rows)
        shape = (size * rng.uniform(0.55, 1.0), rng.uniform(0, np.pi))
        _raise(clods, x, y, size, *shape, size * 0.4)
        centre, axes = (int(x * 16), int(y * 16)), (int(size * 14), int(shape[0] * 14))
        cv2.ellipse(stones, centre, axes, np.degrees(shape[1]), 0, 360, 1.0, -1, cv2.LINE_8, 4)
    # A clod is no ellipse: pull the whole field about by a few pixels so that edges become ragged.
    dx = 1.3 * fractal_field(rng, rows, columns, 9, 2, 0.7)
    dy = 1.3 * fractal_field(rng, rows, columns, 9, 2, 0.7)
    grid_y, grid_x = np.mgrid[0:rows, 0:columns].astype(np.float32)
    clods = cv2.remap(clods, grid_x + dx, grid_y + dy, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
    stones = cv2.GaussianBlur(stones, (0, 0), 0.7)
    clods *= 1.0 + 0.14 * fractal_field(rng, rows, columns, 6, 3, 0.8)
    return np.asarray(height + clods, dtype=np.float32), np.asarray(stones, dtype=np.float32)


def _raise(
    field: NDArray[np.float32], x: float, y: float, long: float, short: float, angle: float, height: float
) -> None:
    """Raise a flattened dome on ``field``."""
    x0, x1 = max(0, int(x - long)), min(field.shape[1], int(x + long) + 2)
    y0, y1 = max(0, int(y - long)), min(field.shape[0], int(y + long) + 2)
    if x0 >= x1 or y0 >= y1:
        return
    ys = np.arange(y0, y1, dtype=np.float32)[:, None] - y
    xs = np.arange(x0, x1, dtype=np.float32)[None, :] - x
    c, s = np.cos(angle), np.sin(angle)
    r2 = ((xs * c + ys * s) / long) ** 2 + ((ys * c - xs * s) / short) ** 2
    dome = height * np.sqrt(np.clip(1.0 - r2, 0.0, 1.0)).astype(np.float32)
    np.maximum(field[y0:y1, x0:x1], dome, out=field[y0:y1, x0:x1])


def _lit(height: NDArray[np.float32], sun: Sun) -> NDArray[np.float32]:
    """Lambert shading plus the short shadows that clods cast."""
    gx = cv2.Sobel(height, cv2.CV_32F, 1, 0, ksize=3) / 8.0
    gy = cv2.Sobel(height, cv2.CV_32F, 0, 1, ksize=3) / 8.0
    slope = gx * sun.dx + gy * sun.dy
    rise = 1.0 / max(sun.length, 0.2)
    lambert = np.clip((rise + slope) / np.sqrt((1.0 + gx * gx + gy * gy) * (1.0 + rise * rise)), 0.0, 1.0)
    lambert *= np.sqrt(1.0 + rise * rise) / rise
    blocked = np.zeros_like(height)
    for k in (1, 2, 3, 5, 7, 10):
        move = np.array([[1, 0, sun.dx * k], [0, 1, sun.dy * k]], dtype=np.float32)
        upwind = cv2.warpAffine(
            height, move, (height.shape[1], height.shape[0]), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT
        )
        np.maximum(blocked, upwind - k * rise - height, out=blocked)
    shadow = cv2.GaussianBlur(np.clip(blocked * 1.2, 0.0, 1.0), (0, 0), 0.7)
    direct = lambert * (1.0 - shadow)
    return (1.0 - sun.darkness) + sun.darkness * direct
