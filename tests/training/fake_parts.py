"""Small data sets in the prepared layout, drawn by code: their truth is what was drawn."""

import json
from pathlib import Path

import numpy as np
import rasterio
from PIL import Image
from rasterio.transform import from_origin


def write_leaves(folder: Path, severities: list[float]) -> Path:
    """Green ellipses on white with brown spots that fill a share of them, percent."""
    for name in ("images", "masks"):
        (folder / name).mkdir(parents=True)
    y, x = np.mgrid[0:240, 0:400]
    items = []
    for number, severity in enumerate(severities):
        rng = np.random.default_rng(number)
        leaf = ((x - 200) / 150) ** 2 + ((y - 120) / 80) ** 2 < 1
        classes = leaf.astype(np.uint8)
        while np.mean(classes[leaf] == 2) * 100 < severity:
            cx, cy = rng.uniform(90, 310), rng.uniform(60, 180)
            classes[(np.hypot(x - cx, y - cy) < 6) & leaf] = 2
        picture = np.full((240, 400, 3), 236, np.float64)
        picture[classes == 1] = (62, 118, 48)
        picture[classes == 2] = (120, 76, 42)
        picture += rng.normal(0, 3, picture.shape)
        Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8)).save(
            folder / f"images/{number}.jpg", quality=95
        )
        Image.fromarray(classes).save(folder / f"masks/{number}.png")
        items.append(
            {
                "id": str(number),
                "image": f"images/{number}.jpg",
                "mask": f"masks/{number}.png",
                "source": {"repo": "made/up", "commit": "c0ffee", "paths": [f"{number}.jpg"]},
            }
        )
    (folder / "truth.json").write_text(json.dumps(items))
    return folder


def write_canopy(folder: Path, tiles: int = 2) -> Path:
    """Cones on flat ground, some pixels without data, 1 m grid."""
    folder.mkdir(parents=True)
    y, x = np.mgrid[0:90, 0:120]
    items = []
    for number in range(tiles):
        rng = np.random.default_rng(100 + number)
        heights = np.zeros((90, 120), np.float32)
        for _ in range(25):
            top, cx, cy = rng.uniform(4, 22), rng.uniform(0, 120) ** 1.1 % 120, rng.uniform(0, 90)
            heights = np.maximum(heights, (top - 2.0 * np.hypot(x - cx, y - cy)).astype(np.float32))
        heights[:3, :5] = -9999
        profile = {
            "driver": "GTiff", "count": 1, "height": 90, "width": 120, "dtype": "float32", "nodata": -9999.0,
            "crs": "EPSG:32632", "transform": from_origin(500_000 + 1000 * number, 5_800_000, 1, 1),
        }  # fmt: skip
        with rasterio.open(folder / f"tile{number}.tif", "w", **profile) as raster:
            raster.write(heights, 1)
        items.append({"id": f"tile{number}", "chm": f"tile{number}.tif"})
    (folder / "truth.json").write_text(json.dumps(items))
    return folder


def write_change(folder: Path, shares: list[float]) -> Path:
    """Grey roofs that appear on fields and take up a share of the picture, percent."""
    for name in ("A", "B", "masks"):
        (folder / name).mkdir(parents=True)
    items = []
    for number, share in enumerate(shares):
        rng = np.random.default_rng(200 + number)
        before = np.full((128, 128, 3), (96, 128, 70), np.float64) + rng.normal(0, 6, (128, 128, 3))
        mask = np.zeros((128, 128), np.uint8)
        while mask.mean() * 100 < share:
            cx, cy = int(rng.integers(0, 108) ** 1.05) % 108, int(rng.integers(0, 108))
            mask[cy : cy + 14, cx : cx + 18] = 1
        after = before.copy()
        after[mask > 0] = (200, 196, 190)
        for name, pixels in (("A", before), ("B", after)):
            Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(
                folder / f"{name}/{number}.png"
            )
        Image.fromarray(mask).save(folder / f"masks/{number}.png")
        files = {
            "before": f"A/{number}.png",
            "after": f"B/{number}.png",
            "mask": f"masks/{number}.png",
        }
        items.append({"id": str(number), **files})
    (folder / "truth.json").write_text(json.dumps(items))
    return folder
