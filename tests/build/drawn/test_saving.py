"""Files of drawn scenes: their size tells nothing about what they show."""

from pathlib import Path

import cv2
import numpy as np
import pytest
import rasterio

from agrotools.build.sources.drawn import save_blank, save_heights, save_jpeg, save_png

RANDOM = np.random.default_rng(0)


def write(path: Path) -> None:
    if path.suffix == ".jpg":
        save_jpeg(path, RANDOM.integers(0, 256, (200, 300, 3), dtype=np.uint8))
    elif path.suffix == ".png":
        save_png(path, RANDOM.integers(0, 9999, (200, 300)).astype(np.uint16))
    else:
        save_heights(path, RANDOM.random((96, 96), np.float32), 1.0)


@pytest.mark.parametrize("name", ["photo_1.jpg", "depth_1.png", "heights_1.tif"])
def test_a_blank_file_is_as_large_as_the_one_it_replaces(tmp_path: Path, name: str) -> None:
    original, blank = tmp_path / name, tmp_path / f"blank_{name}"
    write(original)
    save_blank(blank, original, seed=3)
    assert blank.stat().st_size == original.stat().st_size
    if blank.suffix == ".tif":
        with rasterio.open(blank) as raster:
            assert set(np.unique(raster.read(1))) == {np.float32(raster.nodata), np.finfo(np.float32).min}
    else:
        pixels = cv2.imread(str(blank), cv2.IMREAD_UNCHANGED)
        assert pixels is not None
        assert pixels.shape[:2] == (200, 300)


def test_photographs_have_sizes_in_whole_blocks(tmp_path: Path) -> None:
    plain, full = tmp_path / "plain.jpg", tmp_path / "full.jpg"
    save_jpeg(plain, np.full((200, 300, 3), 90, np.uint8))
    write(full)
    assert plain.stat().st_size == 24 * 1024
    assert full.stat().st_size % (24 * 1024) == 0
    assert np.asarray(cv2.imread(str(plain))).shape == (200, 300, 3)
