"""PlantSeg as its authors lay it out, small: ``images/{train,val,test}``, ``annotations/...``, ``Metadata.csv``.

Traps: names that lie about the suffix, dots in names, a picture turned by EXIF, labels that no knowledge base has, one
disease with many pictures, a mask whose value is another class, pictures for training that must not be shown.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

DISEASES = {
    "apple": ("apple black rot", "apple mosaic virus", "apple rust", "apple scab"),
    "bell pepper": ("bell pepper bacterial spot", "bell pepper blossom end rot", "bell pepper powdery mildew"),
    "coffee": ("coffee leaf rust", "coffee brown eye spot"),
    "cucumber": ("cucumber angular leaf spot", "cucumber bacterial wilt", "cucumber powdery mildew"),
    "grape": ("grape downy mildew", "grapevine leafroll disease", "grape black rot"),
    "maple": ("maple tar spot",),
    "potato": ("potato early blight", "potato late blight"),
    "tomato": ("tomato early blight", "tomato late blight", "tomato mosaic virus", "tomato bacterial leaf spot"),
    "wheat": ("wheat stem rust", "wheat bacterial leaf streak (black chaff)", "wheat head scab"),
}
UNKNOWN = "tomato purple wobble"
_ORIENTATION = 0x0112
_COLUMNS = (
    "Index", "Name", "Plant", "Disease", "Resolution", "Label file", "Mask ratio", "URL", "License", "Split",
)  # fmt: skip
_FOLDER = {"Training": "train", "Validation": "val", "Test": "test"}


def write_plantseg(
    folder: Path, of_each: int = 3, table: str = "Metadata.csv", all_diseases: Mapping[str, Sequence[str]] = DISEASES
) -> Path:
    """``of_each`` test pictures of every disease, thrice as many of the first, some for training too."""
    rows: list[dict[str, object]] = []
    for plant, diseases in all_diseases.items():
        for label in (*diseases, *([UNKNOWN] if plant == "tomato" else [])):
            many = of_each * (3 if label == "apple scab" else 1)
            splits = ["Test"] * many + (["Training", "Validation"] if all_diseases is DISEASES else [])
            for number, split in enumerate(splits):
                rows.append(_written(folder, len(rows), plant, label, number, split))
    with (folder / table).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return folder


def _written(folder: Path, index: int, plant: str, label: str, number: int, split: str) -> dict[str, object]:
    images, masks = folder / "images" / _FOLDER[split], folder / "annotations" / _FOLDER[split]
    images.mkdir(parents=True, exist_ok=True)
    masks.mkdir(parents=True, exist_ok=True)
    # A prefix that is another disease's: only the metadata tell.
    stem = f"{'apple_scab' if number % 2 else label.replace(' ', '_')}_{index}{'.v2' if number == 1 else ''}"
    draw = np.random.default_rng(index)
    width, height = int(draw.integers(120, 200)), int(draw.integers(90, 160))
    pixels = np.clip(draw.normal((60, 130, 50), 12, (height, width, 3)), 0, 255).astype(np.uint8)
    mask = np.zeros((height, width), np.uint8)
    for _ in range(4):
        x, y = int(draw.integers(0, width - 20)), int(draw.integers(0, height - 20))
        pixels[y : y + 16, x : x + 16] = (120, 80, 30)
        mask[y : y + 16, x : x + 16] = 1 + index % 115
    picture = Image.fromarray(pixels)
    if number == 2:
        picture.save(images / f"{stem}.png")
    elif index % 5 == 0:
        exif = Image.Exif()
        exif[_ORIENTATION] = 6
        picture.save(images / f"{stem}.jpg", exif=exif)
    else:
        picture.save(images / f"{stem}.{'jpeg' if index % 3 else 'JPG'}")
    Image.fromarray(mask).save(masks / f"{stem}.png")
    told = (index, f"{stem}.jpg", plant.title(), label, f"{width}x{height}", f"{stem}.png", float((mask > 0).mean()))
    return dict(zip(_COLUMNS, (*told, "", "CC BY-NC 4.0", split), strict=True))
