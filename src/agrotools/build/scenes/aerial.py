"""How a landscape of four bands comes to its user: shifted against an earlier picture, under clouds, as a colour
picture and as calibrated bands."""

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.build.scenes.noise import smooth_field

Plane = NDArray[np.float32]


def cloud_shadow(rng: np.random.Generator, rows: int, columns: int) -> Plane:
    """Share of the light that is left, (rows, columns), under clouds that cover 8 to 25 % of the scene."""
    field = smooth_field(rng, rows, columns, float(rng.uniform(120, 260)))
    soft = 1.0 / (1.0 + np.exp(-7.0 * (field - float(np.quantile(field, rng.uniform(0.75, 0.92))))))
    return np.asarray(1.0 - rng.uniform(0.3, 0.5) * soft, np.float32)


def shifted(plane: NDArray[Any], shift: NDArray[np.float64]) -> NDArray[Any]:
    """The same moved to the right and down by ``shift`` pixels; masks (uint8) keep their values."""
    flags = cv2.INTER_NEAREST if plane.dtype == np.uint8 else cv2.INTER_LINEAR
    move = np.array([[1, 0, shift[0]], [0, 1, shift[1]]], np.float32)
    size = (plane.shape[1], plane.shape[0])
    return cv2.warpAffine(plane, move, size, flags=flags, borderMode=cv2.BORDER_REPLICATE)


def photographed(
    rng: np.random.Generator, reflectance: NDArray[Any], *, noise: float, haze: float, balance: float
) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    """A satellite's or aircraft's natural-colour picture, uint8 (rows, columns, 3), through JPEG; and calibrated
    reflectance x 10,000, uint16 (4, rows, columns).

    Args:
        reflectance: (rows, columns, 4) in the order of :data:`agrotools.build.scenes.countryside.BANDS`.
        noise: spread of the sensor's noise at full scale; haze: reflectance that air adds to blue; balance: spread of
            the white-balance gains.
    """
    sharp = cv2.GaussianBlur(np.asarray(reflectance, np.float32), (0, 0), float(rng.uniform(0.5, 0.9)))
    grain = rng.standard_normal(sharp.shape, dtype=np.float32)
    raster = sharp * (1 + 0.01 * rng.standard_normal(4, dtype=np.float32)) + 0.25 * noise * grain * np.sqrt(sharp)
    bands = np.clip(raster * 1e4 + 0.5, 0, 65535).astype(np.uint16).transpose(2, 0, 1)
    air = rng.uniform(0.2, 1.0) * haze * np.array([1.0, 0.72, 0.5], np.float32)
    linear = sharp[..., :3] + air
    linear = linear * (1 + balance * rng.standard_normal(3, dtype=np.float32))
    linear *= np.float32(rng.uniform(0.34, 0.56) / max(float(np.quantile(linear, 0.98)), 1e-3))
    linear += noise * grain[..., :3] * np.sqrt(np.clip(linear, 0.01, None)) * 0.8
    linear = np.clip(linear, 0, 1)
    srgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * np.maximum(linear, 1e-6) ** (1 / 2.4) - 0.055)
    encoded = cv2.imencode(
        ".jpg",
        np.clip(srgb * 255 + 0.5, 0, 255).astype(np.uint8),
        [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(82, 97))],
    )[1]
    decoded = np.asarray(cv2.imdecode(encoded, cv2.IMREAD_COLOR), np.uint8)
    return np.ascontiguousarray(decoded[..., ::-1]), np.ascontiguousarray(bands)
