"""Pictures of made-up plants in two or more classes, in folders or with a table, for training packs."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

PLANTS: Mapping[str, tuple[int, int, int]] = {
    "green leaf": (60, 150, 60),
    "yellow leaf": (190, 180, 60),
    "brown leaf": (120, 80, 50),
}


def plant_picture(colour: tuple[int, int, int], seed: int, size: int = 48) -> np.ndarray:
    """A patch of that colour with leaf-like stripes, uint8 (size, size, 3); no two alike."""
    draw = np.random.default_rng(seed)
    y, x = np.mgrid[0:size, 0:size]
    stripes = 12 * np.sin(x * draw.uniform(0.2, 0.5) + y * draw.uniform(0.2, 0.5))
    tint = draw.normal(0, 6, 3)
    return np.clip(
        np.array(colour) + tint + stripes[..., None] + draw.normal(0, 5, (size, size, 3)), 0, 255
    ).astype(np.uint8)


def write_folders(
    root: Path, names: Sequence[str] = tuple(PLANTS), each: int = 8, seed: int = 0
) -> Path:
    """A folder per class."""
    for number, name in enumerate(names):
        (root / name).mkdir(parents=True)
        for place in range(each):
            picture = plant_picture(PLANTS[name], seed + 1000 * number + place)
            Image.fromarray(picture).save(root / name / f"{place}.png")
    return root


def write_kind(folder: Path, colour: tuple[int, int, int], seeds: Sequence[int]) -> Path:
    """A folder of pictures of one colour."""
    folder.mkdir(parents=True)
    for seed in seeds:
        Image.fromarray(plant_picture(colour, seed)).save(folder / f"{seed}.png")
    return folder


def write_table(
    path: Path, rows: Sequence[Sequence[str]], header: Sequence[str] = ("image", "label")
) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path
