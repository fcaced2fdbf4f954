"""What two cameras make of a reflectance scene: a colour photo and a five-band raster."""

import cv2
import numpy as np
from numpy.typing import NDArray

_BLUE, _GREEN, _RED, _EDGE = 0, 1, 2, 3


def colour_photo(rng: np.random.Generator, bands: NDArray[np.float32], noise: float) -> NDArray[np.uint8]:
    """An 8-bit sRGB picture (rows, columns, 3) in natural colours, with vignette, lens blur and sensor noise.

    ``noise`` is the spread of the sensor noise at full scale (0.004 a good, 0.02 a poor camera).
    """
    red = 0.92 * bands[..., _RED] + 0.06 * bands[..., _EDGE]
    green = 0.90 * bands[..., _GREEN] + 0.08 * bands[..., _RED]
    blue = 0.94 * bands[..., _BLUE] + 0.05 * bands[..., _GREEN]
    linear = np.stack([red, green, blue], axis=-1)
    rows, columns = linear.shape[:2]
    y = np.linspace(-1, 1, rows, dtype=np.float32)[:, None]
    x = np.linspace(-1, 1, columns, dtype=np.float32)[None, :]
    linear *= (1.0 - rng.uniform(0.03, 0.12) * (x * x + y * y))[..., None].astype(np.float32)
    warmth = rng.normal(0, 0.03)
    linear *= np.array([1.0 + warmth, 1.0, 1.12 - warmth], dtype=np.float32)
    exposure = 0.50 * rng.uniform(0.8, 1.2) / max(float(np.quantile(linear[::4, ::4], 0.98)), 1e-3)
    linear = cv2.GaussianBlur(linear * np.float32(exposure), (0, 0), 0.55)
    grain = rng.standard_normal(linear.shape, dtype=np.float32)
    linear += grain * np.float32(noise) * np.sqrt(np.clip(linear, 0.02, None))
    linear = np.clip(linear, 0.0, None)
    grey = linear.mean(axis=2, keepdims=True)
    linear = np.clip(grey + 1.18 * (linear - grey), 0.0, None)
    linear = 1.12 * linear**1.12 / (1.0 + 0.25 * linear * linear)
    srgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * np.power(np.maximum(linear, 1e-6), 1 / 2.4) - 0.055)
    return np.clip(srgb * 255.0 + 0.5, 0, 255).astype(np.uint8)


def band_raster(
    rng: np.random.Generator, bands: NDArray[np.float32], noise: float, shift_px: float
) -> NDArray[np.uint16]:
    """Calibrated reflectance times 10,000, (bands, rows, columns).

    Each band but the green is moved by up to ``shift_px`` pixels, as the lenses of a multi-camera do.
    """
    count = bands.shape[2]
    raster = np.empty((count, *bands.shape[:2]), dtype=np.uint16)
    for k in range(count):
        plane = np.ascontiguousarray(bands[..., k])
        dx, dy = (rng.uniform(-shift_px, shift_px, 2)) if k != _GREEN else (0.0, 0.0)
        move = np.array([[1, 0, dx], [0, 1, dy]], dtype=np.float32)
        size = (plane.shape[1], plane.shape[0])
        plane = cv2.warpAffine(plane, move, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        plane = cv2.GaussianBlur(plane, (0, 0), 0.5)
        grain = rng.standard_normal(plane.shape, dtype=np.float32)
        plane = plane * np.float32(rng.normal(1.0, 0.01)) + grain * np.float32(noise) * np.sqrt(
            np.clip(plane, 0.01, None)
        )
        raster[k] = np.clip(plane * 1e4 + 0.5, 0, 65535).astype(np.uint16)
    return raster
