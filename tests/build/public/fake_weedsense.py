"""WeedSense's test split as its authors lay it out, small: ``test/{images,mmseg_masks}`` and a table.

Traps: class numbers in no order that names have, neighbouring frames, a folder nested by its archive, a Mac's copies,
undecided pixels at the edge of each plant, weeks written as 3.0.
"""

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

CODES = (
    "ABUTH", "AMAPA", "AMARE", "AMATU", "AMBEL", "CHEAL", "CYPES", "DIGSA", "ECHCG", "ERICA", "PANDI", "SETFA",
    "SETPU", "SIDSP", "SORHA", "SORVU",
)  # fmt: skip
NUMBERS = {code: 1 + (5 * place + 3) % 16 for place, code in enumerate(CODES)}
WIDTH, HEIGHT = 240, 320
WEEKS = (1, 3, 5, 8, 11)


def write_weedsense(folder: Path, codes: int = 16, frames: int = 2) -> Path:
    """``frames`` of each of the first ``codes`` species in each of :data:`WEEKS`."""
    root = folder / "test"
    images, masks = root / "images" / "images", root / "mmseg_masks"
    for place in (images, masks, root / "images" / "__MACOSX" / "images"):
        place.mkdir(parents=True)
    lines = ["img,species,height,week"]
    for code in CODES[:codes]:
        for week in WEEKS:
            for frame in range(1, frames + 1):
                stem = f"{code}_week_{week}_IMG_{1000 + week}_frame_{frame:03d}"
                plant, values = draw_mask(code, week, frame)
                Image.fromarray(_picture(plant, week)).save(images / f"{stem}.jpg", quality=92)
                Image.fromarray(values).save(masks / f"{stem}.png")
                (root / "images" / "__MACOSX" / "images" / f"._{stem}.jpg").write_bytes(b"\0\5\x16\7")
                lines.append(f"{stem}.jpg,{code},{3.5 * week:.1f},{week}.0")
    (root / "test_data.csv").write_text("\n".join(lines) + "\n")
    return folder


def draw_mask(code: str, week: int, frame: int) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
    """Where the plant is, and the mask: its number, with some undecided pixels beside it."""
    rng = np.random.default_rng([CODES.index(code), week, frame])
    drawn = np.zeros((HEIGHT, WIDTH), np.uint8)
    foot, top = 270, 270 - 18 * week
    cv2.line(drawn, (120, foot), (120, top), 1, 5)
    for leaf in range(2 + week):
        y = int(foot - (foot - top) * (leaf + 1) / (2 + week))
        long = int(rng.integers(14, 20)) + 5 * week
        side = 1 if leaf % 2 else -1
        cv2.ellipse(drawn, (120 + side * long // 2, y), (long // 2, 4 + week), 12 * side, 0, 360, 1, -1)
    plant = drawn > 0
    values = np.where(plant, NUMBERS[code], 0).astype(np.uint8)
    values[foot + 10 : foot + 14, 100:140] = 255
    return plant, values


def _picture(plant: NDArray[np.bool_], week: int) -> NDArray[np.uint8]:
    rng = np.random.default_rng([week, int(plant.sum())])
    pixels = rng.normal((205, 203, 200), 6, (HEIGHT, WIDTH, 3))
    pixels[275:, 70:170] = rng.normal((90, 70, 60), 6, (HEIGHT - 275, 100, 3))
    pixels[plant] = rng.normal((60, 130, 45), 8, (int(plant.sum()), 3))
    return np.clip(pixels, 0, 255).astype(np.uint8)
