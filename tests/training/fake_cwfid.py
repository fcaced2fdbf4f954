"""A made-up data set in the two layouts of CWFID: blobs on noise, red and near infrared as false colour."""

import json
from pathlib import Path

import numpy as np
from PIL import Image

WIDTH, HEIGHT = 320, 240


def fake_field(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Picture (rows, columns, 3), class mask (0, 1 crop, 2 weed), vegetation mask with plants that are left unnamed."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    classes = np.zeros((HEIGHT, WIDTH), np.uint8)
    for value, count in ((1, int(rng.integers(2, 5))), (2, int(rng.integers(2, 12)))):
        for _ in range(count):
            centre, radius = rng.uniform((0, 0), (WIDTH, HEIGHT)), rng.uniform(8, 22)
            classes[np.hypot(x - centre[0], y - centre[1]) < radius] = value
    vegetation = classes > 0
    if seed % 3:
        centre = rng.uniform((20, 20), (WIDTH - 20, HEIGHT - 20))
        vegetation |= np.hypot(x - centre[0], y - centre[1]) < 5
    red = np.where(vegetation, 35, 95) + rng.normal(0, 6, classes.shape)
    infrared = np.where(vegetation, 190, 100) + rng.normal(0, 8, classes.shape)
    picture = np.clip(np.stack([red, infrared, red], axis=-1), 0, 255).astype(np.uint8)
    return picture, classes, vegetation


def write_prepared(folder: Path, count: int) -> Path:
    """The layout with ``truth.json``."""
    items = []
    for part in ("images", "masks", "vegetation"):
        (folder / part).mkdir(parents=True)
    for number in range(count):
        picture, classes, vegetation = fake_field(number)
        name = f"{number:03d}"
        Image.fromarray(picture).save(folder / f"images/{name}.jpg", quality=93)
        Image.fromarray(classes).save(folder / f"masks/{name}.png")
        Image.fromarray(vegetation.astype(np.uint8)).save(folder / f"vegetation/{name}.png")
        paths = {
            "image": f"images/{name}.jpg",
            "mask": f"masks/{name}.png",
            "vegetation": f"vegetation/{name}.png",
        }
        items.append({"id": name, **paths})
    (folder / "truth.json").write_text(json.dumps(items))
    return folder


def write_original(folder: Path, count: int, plants_black: bool) -> Path:
    """The layout of the authors' repository."""
    for part in ("images", "annotations", "masks"):
        (folder / part).mkdir(parents=True)
    for number in range(count):
        picture, classes, vegetation = fake_field(number)
        colours = np.zeros((*classes.shape, 3), np.uint8)
        colours[classes == 1] = (0, 255, 0)
        colours[classes == 2] = (255, 0, 0)
        shown = np.where(vegetation ^ plants_black, 255, 0).astype(np.uint8)
        name = f"{number + 1:03d}"
        Image.fromarray(picture).save(folder / f"images/{name}_image.png")
        Image.fromarray(colours).save(folder / f"annotations/{name}_annotation.png")
        Image.fromarray(shown).save(folder / f"masks/{name}_mask.png")
    return folder
