"""WeedMap's tiles as their authors lay them out, small: two maps, each with channels and labels.

Of a map's tiles most are whole; one reaches over the edge of the map, one lies mostly outside it, one holds crop alone,
one nothing that grows.
"""

from functools import cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

CHANNELS = {"003": ("B", "G", "R", "RE", "NIR"), "005": ("G", "R", "RE", "NIR")}
SENSORS = {"003": "RedEdge", "005": "Sequoia"}
PLANT = {"B": 40, "G": 95, "R": 50, "RE": 130, "NIR": 190}
WEED = {"B": 42, "G": 99, "R": 62, "RE": 104, "NIR": 176}
SOIL = {"B": 70, "G": 90, "R": 115, "RE": 120, "NIR": 125}
ROWS_PX, COLUMNS_PX = 240, 320
EDGE, OUTSIDE, CROP_ALONE, EMPTY = 3, 4, 5, 6
"""Frames that are not like the others."""


def write_weedmap(folder: Path, *, frames: int = 8, maps: str = "003 005") -> Path:
    """Returns ``folder``, in which the sensors' folders lie nested."""
    for name in maps.split():
        root = folder / "Tiles" / SENSORS[name] / name
        for place in ("groundtruth", *(f"tile/{one}" for one in (*CHANNELS[name], "CIR", "NDVI"))):
            (root / place).mkdir(parents=True)
            (root / place / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
        for frame in range(frames):
            _write_tile(root, name, frame)
        (root / "groundtruth" / f"._{name}_frame0000_GroundTruth_color.png").write_bytes(b"\0\5\x16\7")
    (folder / "__MACOSX").mkdir()
    return folder


@cache
def draw_labels(name: str, frame: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Classes (0 other, 1 crop, 2 weed) and where there is data."""
    rng = np.random.default_rng([int(name), frame])
    classes = np.zeros((ROWS_PX, COLUMNS_PX), np.uint8)
    if frame != EMPTY:
        for y in range(30, ROWS_PX, 60):
            for x in range(10, COLUMNS_PX, 34):
                size = (int(rng.integers(7, 15)), int(rng.integers(6, 12)))
                cv2.ellipse(classes, (x + int(rng.integers(-3, 4)), y), size, float(rng.uniform(0, 180)), 0, 360, 1, -1)
    if frame not in (EMPTY, CROP_ALONE):
        for _ in range(20 + 25 * (frame % 3)):
            at = (int(rng.integers(0, COLUMNS_PX)), int(rng.integers(0, ROWS_PX)))
            cv2.circle(classes, at, int(rng.integers(4, 10)), 2, -1)
    y, x = np.mgrid[0:ROWS_PX, 0:COLUMNS_PX]
    limit = {EDGE: 87, OUTSIDE: 467}.get(frame, -1)
    return classes, x + y > limit


@cache
def draw_bands(name: str, frame: int) -> NDArray[np.uint8]:
    """Channels, rows, columns; 0 where there is no data, and hardly ever elsewhere."""
    classes, valid = draw_labels(name, frame)
    rng = np.random.default_rng([int(name), frame, 1])
    bands = []
    for channel in CHANNELS[name]:
        means = np.array([SOIL[channel], PLANT[channel], WEED[channel]])
        values = means[classes] + rng.normal(0, 8, classes.shape)
        values[rng.random(classes.shape) < 0.001] = 0
        bands.append(np.where(valid, np.clip(values, 0, 255), 0).astype(np.uint8))
    return np.array(bands)


def _write_tile(root: Path, name: str, frame: int) -> None:
    classes, _ = draw_labels(name, frame)
    bands = dict(zip(CHANNELS[name], draw_bands(name, frame), strict=True))
    stem = f"frame{frame:04d}"
    for channel, values in bands.items():
        Image.fromarray(values).save(root / "tile" / channel / f"{stem}.png")
    composite = Image.fromarray(np.dstack([bands["NIR"], bands["R"], bands["G"]]))
    composite.save(root / "tile" / "CIR" / f"{stem}.png")
    composite.save(root / "groundtruth" / f"{name}_{stem}.png")
    Image.fromarray(bands["NIR"]).save(root / "tile" / "NDVI" / f"{stem}.png")
    labels = root / "groundtruth" / f"{name}_{stem}_GroundTruth"
    colours = np.array([(0, 0, 0), (0, 255, 0), (255, 0, 0)], np.uint8)[classes]
    Image.fromarray(colours).save(f"{labels}_color.png")
