"""deepNIR's fruit boxes as their authors lay them out, small: ``FRUIT/{train,valid,test}/{images,labels}``, YOLO lines.

Traps: class 0 in every folder, a label file that is missing and one that is empty, boxes that touch borders, a box
written twice, names as Roboflow writes them, many more pictures of wheat than of anything else.
"""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

FRUITS = (
    "apple", "avocado", "blueberry", "capsicum", "cherry", "kiwi", "mango", "orange", "rockmelon", "strawberry",
    "wheat",
)  # fmt: skip
COUNTS = (3, 12, 0, 7, 25, 5, 1, 16)
"""Fruits of the pictures of a folder, in turn; of the picture with none, every other has no label file at all."""
_COLOURS = {"apple": (190, 40, 40), "cherry": (150, 20, 40), "orange": (235, 140, 30), "strawberry": (210, 30, 50)}


def write_deepnir(folder: Path, of_each: int = 4, wheat: int = 12) -> Path:
    """``of_each`` test pictures of every fruit but wheat, and one for training that must not be shown."""
    for fruit in FRUITS:
        number_of = wheat if fruit == "wheat" else of_each
        _write(folder / fruit, fruit, "test", number_of)
        _write(folder / fruit, fruit, "train", 1)
        (folder / fruit / "data.yaml").write_text(f"nc: 1\nnames: ['{fruit}']\n")
    return folder


def _write(folder: Path, fruit: str, part: str, number_of: int) -> None:
    images, labels = folder / part / "images", folder / part / "labels"
    images.mkdir(parents=True)
    labels.mkdir()
    for number in range(number_of):
        count = COUNTS[(number + FRUITS.index(fruit)) % len(COUNTS)]
        draw = np.random.default_rng([FRUITS.index(fruit), number, len(part)])
        width, height = int(draw.integers(300, 420)), int(draw.integers(260, 360))
        pixels = np.clip(draw.normal((60, 110, 50), 14, (height, width, 3)), 0, 255).astype(np.uint8)
        picture = Image.fromarray(pixels)
        brush = ImageDraw.Draw(picture)
        lines: list[str] = []
        for place in range(count):
            x, y = 20 + 52 * (place % 5), 20 + 45 * (place // 5)
            brush.ellipse((x - 20, y - 20, x + 20, y + 20), fill=_COLOURS.get(fruit, (200, 180, 90)))
            lines.append(f"0 {x / width:.6f} {y / height:.6f} {40 / width:.6f} {40 / height:.6f}")
        stem = f"{fruit}{number}_jpg.rf.{number:08x}"
        picture.save(images / f"{stem}.jpg", quality=92)
        if lines and number % 2:
            lines.append(lines[0])
        if lines or number % 2:
            (labels / f"{stem}.txt").write_text("".join(f"{line}\n" for line in lines))
