"""IP102 as its authors lay it out, small: ``Classification/ip102_v1.1`` with images and splits, ``Detection/VOC2007``.

Traps: a PNG with alpha and a grey picture that call themselves .jpg, a thumbnail, a test picture that is a train
picture too, one named among those known to be, a line with spaces before its label, a folder of the Mac; boxed pictures
of two classes, without boxes, of another size than written, turned by EXIF, whose prefix and number disagree, whose
only box touches the edge. Prefixes count as the authors' do.
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
_ORIENTATION = 0x0112


def write_ip102(folder: Path, of_each: int = 4, labels: Sequence[int] = LABELS, *, boxed: int = 24) -> Path:
    """``of_each`` test pictures of every class and one for training; ``boxed`` test pictures with boxes (0: no
    detection part). Returns ``folder``."""
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
    if boxed:
        _write_boxed(folder / "IP102_v1.1" / "Detection" / "VOC2007", labels, boxed)
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


def _write_boxed(root: Path, labels: Sequence[int], count: int) -> None:
    for place in ("Annotations", "JPEGImages", "ImageSets/Main"):
        (root / place).mkdir(parents=True)
    stems: list[str] = []
    for number in range(count):
        label = labels[number % len(labels)]
        boxes = [(30 + 55 * (k % 5), 40 + 60 * (k // 5)) for k in range(1 + (number * 3) % 8)]
        stems.append(_write_one(root, label, number, boxes))
    stems += [
        _write_one(root, labels[0], 900, [(60, 60), (150, 60)], second=labels[1]),
        _write_one(root, labels[1], 901, []),
        _write_one(root, labels[2], 902, [(60, 60)], written_size=(640, 480)),
        _write_one(root, labels[3], 903, [(60, 60)], turned=True),
        _write_one(root, labels[4], 904, [(60, 60)], prefix=labels[0]),
        _write_one(root, labels[5], 905, [(12, 60)]),
    ]
    (root / "ImageSets" / "Main" / "test.txt").write_text("\n".join(stems) + "\n")
    (root / "ImageSets" / "Main" / "trainval.txt").write_text("IP000009999\n")


def _write_one(
    root: Path,
    label: int,
    number: int,
    at: Sequence[tuple[int, int]],
    *,
    second: int | None = None,
    written_size: tuple[int, int] | None = None,
    turned: bool = False,
    prefix: int | None = None,
) -> str:
    width, height = 330, 260
    draw = np.random.default_rng([label, number, 7])
    pixels = np.clip(draw.normal((80, 120, 60), 12, (height, width, 3)), 0, 255).astype(np.uint8)
    picture = Image.fromarray(pixels)
    brush = ImageDraw.Draw(picture)
    named = label if prefix is None else prefix
    stem = f"IP{named if named <= 30 else named + 1:03d}{number:06d}"
    shown_width, shown_height = written_size or (width, height)
    objects: list[str] = []
    for place, centre in enumerate(at):
        _insect(brush, centre, label, 12)
        x, y = centre
        of = label if second is None or place == 0 else second
        objects.append(
            f"<object><name>{of + 1}</name><bndbox><xmin>{max(1, x - 16)}</xmin><ymin>{y - 12}</ymin>"
            f"<xmax>{x + 16}</xmax><ymax>{y + 12}</ymax></bndbox></object>"
        )
    exif = Image.Exif()
    if turned:
        exif[_ORIENTATION] = 6
    picture.save(root / "JPEGImages" / f"{stem}.jpg", quality=93, exif=exif)
    (root / "Annotations" / f"{stem}.xml").write_text(
        f"<annotation><filename>{stem}.jpg</filename><size><width>{shown_width}</width>"
        f"<height>{shown_height}</height><depth>3</depth></size>{''.join(objects)}</annotation>"
    )
    return stem
