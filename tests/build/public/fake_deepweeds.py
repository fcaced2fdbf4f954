"""DeepWeeds as its authors lay it out, small: ``images/`` flat, ``labels/test_subset0.csv`` with two columns."""

from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = 9


def write_deepweeds(folder: Path, of_each: int = 2) -> Path:
    """``of_each`` pictures of every class; returns ``folder``."""
    (folder / "images").mkdir(parents=True)
    (folder / "labels").mkdir()
    rows = ["Filename,Label"]
    for label in range(CLASSES):
        for number in range(of_each):
            name = f"2017{label + 1:02d}{number + 10:02d}-101010-{number % 4}.jpg"
            draw = np.random.default_rng([label, number])
            pixels = np.clip(draw.normal((90, 110 + 8 * label, 60), 40, (256, 256, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / "images" / name)
            rows.append(f"{name},{label}")
    (folder / "labels" / "test_subset0.csv").write_text("\n".join(rows) + "\n")
    return folder
