"""FPCD as its authors lay it out, small: ``FPCD/{T0,T1}/District_Village_YYYYMM_index.jpg``, masks without the date.

With what makes such folders hard to read: a village whose name has an underscore, archives that hold a folder of their
own name, a train list that names pictures and has pairs of the test list, a test list that names masks, blurred masks
of tasks, and hidden files.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

WIDTH, HEIGHT = 256, 192
VILLAGE = "Akola_Old_Akhatwada"

Ponds = Sequence[tuple[int, int, int, int]]
"""Of each pond what happened to it (1 to 4, 0 nothing), its left and upper corner, its side in pixels."""


def draw_pair(seed: int, ponds: Ponds) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
    """Fields with ponds on two dates, and the classes of what happened."""
    draw = np.random.default_rng([51, seed])
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    colours = np.array([(150, 128, 92), (138, 140, 84), (164, 140, 108)], np.float64)
    ground = colours[(rows // 48 + columns // 61) % 3] + draw.normal(0, 5, (HEIGHT, WIDTH, 3))
    dates = [ground.copy(), ground + draw.normal(0, 3, ground.shape)]
    codes = np.zeros((HEIGHT, WIDTH), np.uint8)
    basin, water, bank = np.array((188, 170, 140)), np.array((34, 66, 62)), np.array((214, 202, 176))
    states = {0: (water, water), 1: (None, water), 2: (water, None), 3: (water, basin), 4: (basin, water)}
    for event, x, y, side in ponds:
        for picture, inside in zip(dates, states[event], strict=True):
            if inside is not None:
                picture[max(0, y - 4) : y + side + 4, max(0, x - 4) : x + side + 4] = bank
                picture[y : y + side, x : x + side] = inside
        codes[y : y + side, x : x + side] = event
    before, after = (np.clip(one, 0, 255).astype(np.uint8) for one in dates)
    return before, after, codes


def key(number: int) -> str:
    return f"{VILLAGE}_{number}"


def write_fpcd(folder: Path, pairs: Sequence[Ponds], train: int = 2) -> Path:
    """Pairs of the test list, and ``train`` more. Returns ``folder``."""
    root = folder / "FPCD"
    nested = {name: root / name / name for name in ("T0", "multi_class_masks")}
    places = {name: nested.get(name, root / name) for name in ("T0", "T1", "multi_class_masks")}
    for place in places.values():
        place.mkdir(parents=True)
    every = [*pairs, *([[(1, 20, 20, 40)]] * train)]
    for number, ponds in enumerate(every):
        before, after, codes = draw_pair(number, ponds)
        Image.fromarray(before).save(places["T0"] / f"{VILLAGE}_200703_{number}.jpg", quality=90)
        Image.fromarray(after).save(places["T1"] / f"{VILLAGE}_201502_{number}.jpg", quality=90)
        mask = Image.fromarray(codes)
        mask.putpalette([0, 0, 0, 0, 255, 0, 255, 0, 0, 255, 255, 0, 0, 0, 255])
        mask.save(places["multi_class_masks"] / f"{key(number)}.png")
        (places["multi_class_masks"] / f"._{key(number)}.png").write_bytes(b"\0\5\26\7")
    (root / "cd_dataset_test.txt").write_text("".join(f"{key(number)}\n" for number in range(len(pairs))))
    return folder
