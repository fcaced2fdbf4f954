"""IP102 as its authors lay it out, small: ``Classification/ip102_v1.1`` with images and splits.

Traps: a PNG with alpha and a grey picture that call themselves .jpg, a thumbnail, a test picture that is a train
picture too, one named among those known to be, a line with spaces before its label, a folder of the Mac.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

LABELS = (0, 1, 3, 7, 14, 18, 21, 24, 28, 30, 36, 37, 47, 50, 52, 57, 62, 67, 74, 76, 88, 89, 97, 98)
"""Classes with pictures, of all eight crops."""
SHELL = 13
"""A class that nobody can tell."""


def write_ip102(folder: Path, of_each: int = 4, labels: Sequence[int] = LABELS) -> Path:
    """``of_each`` test pictures of every class and one for training. Returns ``folder``."""
    root = folder / "IP102_v1.1" / "Classification" / "ip102_v1.1"
    (root / "images").mkdir(parents=True)
    (folder / "__MACOSX").mkdir()
    splits: dict[str, list[str]] = {"train": [], "val": [], "test": []}
    number = 2
    for label in (*labels, SHELL):
        for split in ("train", "val", *["test"] * of_each):
            name = f"{number:05d}.jpg"
            _picture(label, number).save(root / "images" / name)
            splits[split].append(f"{name} {label}")
            number += 1
    first = splits["test"][0].split()[0]
    _save_as(root / "images" / first, "PNG", "RGBA")
    _save_as(root / "images" / splits["test"][1].split()[0], "JPEG", "L")
    Image.new("RGB", (52, 80), (90, 140, 60)).save(root / "images" / splits["test"][2].split()[0])
    shutil.copyfile(root / "images" / splits["test"][1].split()[0], root / "images" / splits["test"][3].split()[0])
    _picture(labels[0], 40410).save(root / "images" / "40410.jpg")
    splits["test"].append(f"40410.jpg   {labels[0]} ")
    for split, lines in splits.items():
        (root / f"{split}.txt").write_text("\n".join(lines) + "\n")
    return folder


def _picture(label: int, number: int) -> Image.Image:
    draw = np.random.default_rng([label, number])
    width, height = int(draw.integers(180, 320)), int(draw.integers(160, 280))
    pixels = np.clip(draw.normal((90, 130, 60), 14, (height, width, 3)), 0, 255).astype(np.uint8)
    picture = Image.fromarray(pixels)
    _insect(ImageDraw.Draw(picture), (width // 3, height // 3), label)
    return picture


def _insect(brush: ImageDraw.ImageDraw, at: tuple[int, int], label: int, size: int = 14) -> None:
    x, y = at
    brush.ellipse((x - size, y - size // 2, x + size, y + size // 2), fill=(30 + label // 2, 40, 30))


def _save_as(path: Path, kind: str, mode: str) -> None:
    with Image.open(path) as picture:
        changed = picture.convert(mode)
    changed.save(path, kind)
