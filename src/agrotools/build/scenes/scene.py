"""Scenes with their difficulty, random fields, smoothing, and files."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.core.files import read_table

Difficulty = Literal[0, 1, 2, 3]
"""Level of occlusion, light, noise and look-alikes; set by the scene alone, never by the results of a tool."""


TABLES: dict[str, Any] = read_table(Path(__file__).with_name("kinds.toml"))
"""Kinds of things in scenes, by the name of their table."""


Level = SimpleNamespace
"""Parameters of a scene at one difficulty, described in ``levels.toml``."""


@cache
def levels(scene: str) -> tuple[Level, ...]:
    """Return the parameters of a scene by difficulty."""
    columns = read_table(Path(__file__).with_name("levels.toml"))[scene]
    return tuple(Level(**{name: values[place] for name, values in columns.items()}) for place in range(4))


@dataclass(frozen=True, eq=False)
class Scene:
    """A drawn scene.

    Attributes:
        images: arrays as a camera or sensor delivers them, e.g. ``rgb`` uint8 (rows, columns, 3), ``bands`` uint16
            (bands, rows, columns) reflectance x 10,000, ``depth`` uint16.
        sidecar: metadata of the images (gsd_m, bands, intrinsics).
        truth: numbers and labels.
        masks: truth per pixel, e.g. ``classes`` uint8.
    """

    images: Mapping[str, NDArray[Any]]
    sidecar: Mapping[str, Any] = field(default_factory=dict)
    truth: Mapping[str, Any] = field(default_factory=dict)
    masks: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def spectrum(*values: float) -> NDArray[np.float32]:
    """Return reflectances, one for each band of a scene."""
    return np.asarray(values, dtype=np.float32)


def spectra(place: str) -> dict[str, NDArray[np.float32]]:
    """Return the reflectances of a table of ``kinds.toml``: each is (bands,), or (kinds, bands) for several kinds."""
    return {name: np.asarray(values, np.float32) for name, values in TABLES["spectra"][place].items()}


def one_of(rng: np.random.Generator, kinds: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return one row of ``kinds``, drawn at random."""
    return kinds[int(rng.integers(len(kinds)))]


def bounds(mask: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """Return the smallest box around the pixels of a mask: x0, y0, x1, y1, half-open."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def srgb_of(linear: NDArray[np.floating[Any]]) -> NDArray[np.uint8]:
    """Convert linear light, 0 to 1, to 8-bit sRGB values."""
    srgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * np.maximum(linear, 1e-6) ** (1 / 2.4) - 0.055)
    return np.clip(srgb * 255 + 0.5, 0, 255).astype(np.uint8)


def jpeg_of(pixels: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    """Return a picture (rows, columns, 3) after JPEG compression."""
    coded = cv2.imencode(".jpg", pixels[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return np.ascontiguousarray(np.asarray(cv2.imdecode(coded, cv2.IMREAD_COLOR), np.uint8)[..., ::-1])


def smooth_field(rng: np.random.Generator, rows: int, columns: int, cell: float) -> NDArray[np.float32]:
    """Return a random field with mean about 0 and standard deviation about 1 that varies over ``cell`` pixels."""
    small = rng.standard_normal((max(2, round(rows / cell) + 2), max(2, round(columns / cell) + 2))).astype(np.float32)
    return np.asarray(cv2.resize(small, (columns, rows), interpolation=cv2.INTER_CUBIC), dtype=np.float32)


def fractal_field(
    rng: np.random.Generator, rows: int, columns: int, largest: float, octaves: int, fall: float = 0.55
) -> NDArray[np.float32]:
    """Return the sum, of deviation 1, of smooth fields: each has half the cell and ``fall`` times the last weight."""
    total = np.zeros((rows, columns), dtype=np.float32)
    weight, power, cell = 1.0, 0.0, largest
    for _ in range(octaves):
        total += weight * smooth_field(rng, rows, columns, cell)
        power += weight * weight
        weight *= fall
        cell = max(1.0, cell / 2)
    return total / np.float32(np.sqrt(power))


Floats = NDArray[np.float32]


def moved(
    plane: NDArray[Any], dx: float, dy: float, border: int = cv2.BORDER_CONSTANT, how: int = cv2.INTER_LINEAR
) -> NDArray[Any]:
    """Return a plane or stack moved right and down by ``dx`` and ``dy`` pixels; ``border``, ``how``: modes of cv2."""
    move = np.array([[1, 0, dx], [0, 1, dy]], np.float32)
    return cv2.warpAffine(plane, move, (plane.shape[1], plane.shape[0]), flags=how, borderMode=border)


Window = tuple[slice, slice]


def overlap(patch: tuple[int, ...], picture: tuple[int, ...], x0: int, y0: int) -> tuple[Window, Window]:
    """Return the part of a patch with its corner at (x0, y0) that is in the picture, and its place there."""
    left, top = max(0, -x0), max(0, -y0)
    right, bottom = max(left, min(patch[1], picture[1] - x0)), max(top, min(patch[0], picture[0] - y0))
    place = slice(y0 + top, y0 + bottom), slice(x0 + left, x0 + right)
    return (slice(top, bottom), slice(left, right)), place


def blurred(plane: NDArray[np.floating[Any]], sigma: float) -> Floats:
    """Smooth a plane or stack (rows, columns[, bands]) by a Gaussian with standard deviation ``sigma``, pixels."""
    return np.asarray(cv2.GaussianBlur(np.asarray(plane, np.float32), (0, 0), sigma), dtype=np.float32)


def resized(plane: NDArray[np.floating[Any]], columns: int, rows: int, how: int = cv2.INTER_LINEAR) -> Floats:
    """Resize a plane or stack; ``how`` is one of the interpolations of cv2."""
    return np.asarray(cv2.resize(np.asarray(plane, np.float32), (columns, rows), interpolation=how), dtype=np.float32)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit cv2 to one thread, as threads slow down thousands of tiny drawings. Also a decorator."""
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(threads)


def save_picture(path: Path, pixels: NDArray[np.uint8], quality: int = 92) -> None:
    """Save ``pixels``, uint8 (rows, columns, 3), as a JPEG with colours at half resolution, as is usual."""
    content = cv2.imencode(".jpg", pixels[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    path.write_bytes(content.tobytes())
