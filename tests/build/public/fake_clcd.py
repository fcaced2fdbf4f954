"""CLCD as its authors lay it out, small: ``CLCD/{train,val,test}/{time1,time2,label}/NNNNN.png``.

With what makes such folders hard to read: the numbers of the train split come again in the test split, one mask has
three channels, one pair of pictures are TIFF files, and a Mac left a hidden file beside each mask.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIZE = 160


def draw_pair(seed: int, share_pct: float, size: int = SIZE) -> tuple[NDArray, NDArray, NDArray[np.bool_]]:
    """Fields of two dates, and where bright blocks took the place of at least that share of them."""
    draw = np.random.default_rng([41, seed])
    rows, columns = np.mgrid[0:size, 0:size]
    fields = (rows // 40 + columns // 53) % 3
    colours = np.array([(92, 124, 66), (128, 142, 84), (150, 122, 88)], np.float64)
    before = colours[fields] + 6 * np.sin(columns / 2.5)[..., None] + draw.normal(0, 5, (size, size, 3))
    after = colours[(fields + 1) % 3] + draw.normal(0, 5, (size, size, 3))
    changed = np.zeros((size, size), np.bool_)
    while 100 * changed.mean() < share_pct:
        x, y = (int(draw.integers(0, size - 24)) for _ in range(2))
        changed[y : y + 14 + int(draw.integers(8)), x : x + 20] = True
    after[changed] = np.array((205, 200, 194)) + draw.normal(0, 9, (int(changed.sum()), 3))
    before, after = (np.clip(one, 0, 255).astype(np.uint8) for one in (before, after))
    return before, after, changed


def write_clcd(folder: Path, shares_pct: list[float], dates: tuple[str, str] = ("time1", "time2")) -> Path:
    """Test pairs of which at least these shares changed, and a train split; returns ``folder``."""
    for split, number_of_pairs in (("train", 1), ("test", len(shares_pct))):
        places = [folder / "CLCD" / split / name for name in (*dates, "label")]
        for place in places:
            place.mkdir(parents=True)
        for number in range(number_of_pairs):
            share = shares_pct[number] if split == "test" else 50.0
            before, after, changed = draw_pair(number + 1000 * (split == "train"), share)
            suffix = ".tif" if number == 1 else ".png"
            Image.fromarray(before).save(places[0] / f"{number:05d}{suffix}")
            Image.fromarray(after).save(places[1] / f"{number:05d}{suffix}")
            label = changed.astype(np.uint8) * 255
            Image.fromarray(np.dstack([label] * 3) if number == 2 else label).save(places[2] / f"{number:05d}.png")
            (places[2] / f"._{number:05d}.png").write_bytes(b"\0\5\26\7")
    return folder
