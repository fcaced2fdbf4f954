"""Reading the Crop/Weed Field Image Dataset (Haug and Ostermann 2014, ECCV workshop CVPPP).

Two layouts: the authors' repository (``images/001_image.png``, ``annotations/001_annotation.png`` with weeds in red and
crop in green, ``masks/001_mask.png``), and a prepared folder with ``truth.json`` that names an image, a class mask
(0 background, 1 crop, 2 weed) and a vegetation mask for each item.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agrotools.build.sources.prepared import TRUTH_FILE, read_items
from agrotools.build.sources.wording import first_few
from agrotools.core import BenchmarkError

LICENCE = "All data is subject to copyright and may only be used for non-commercial research."
"""As the data set's README puts it."""


@dataclass(frozen=True, eq=False)
class FieldImage:
    """A photograph with its truth: ``classes`` (rows, columns) 0 other, 1 crop, 2 weed; ``vegetation`` plant or not."""

    name: str
    path: Path
    sha256: str
    classes: NDArray[np.uint8]
    vegetation: NDArray[np.bool_]

    @property
    def width(self) -> int:
        return self.classes.shape[1]

    @property
    def height(self) -> int:
        return self.classes.shape[0]


def read_cwfid(folder: Path) -> list[FieldImage]:
    """All images of the data set in ``folder``, or in its folder ``cwfid`` where several data sets lie side by side.

    Raises:
        BenchmarkError: no such folder, neither layout, or the files that are missing or do not fit together, all named.
    """
    if not folder.is_dir():
        raise BenchmarkError(f"{folder} is not a folder", hint="give the folder of the data set: --source field=DIR")
    if (folder / "cwfid").is_dir():
        folder = folder / "cwfid"
    entries = list(_entries(folder))
    if not entries:
        raise BenchmarkError(
            f"{folder} holds no CWFID images",
            hint="expected truth.json, or images/, annotations/ and masks/, there or in a folder cwfid",
        )
    missing = [path.relative_to(folder) for entry in entries for path in entry[1:] if not path.is_file()]
    if missing:
        hint = "fetch the data set again, with all its folders"
        raise BenchmarkError(f"{folder} lacks {first_few(missing, 5)}", hint=hint)
    return [_read(*entry) for entry in entries]


def _entries(folder: Path) -> Iterator[tuple[str, Path, Path, Path]]:
    """Name, image, class mask and vegetation mask of each item."""
    if (folder / TRUTH_FILE).is_file():
        for item in read_items(folder, ("id",), ("image", "mask", "vegetation")):
            yield str(item["id"]), folder / item["image"], folder / item["mask"], folder / item["vegetation"]
        return
    for image in sorted((folder / "images").glob("*_image.png")):
        name = image.name.removesuffix("_image.png")
        yield name, image, folder / f"annotations/{name}_annotation.png", folder / f"masks/{name}_mask.png"


def _read(name: str, image: Path, classes: Path, vegetation: Path) -> FieldImage:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(image) as picture:
            size = picture.size
            picture.load()  # verify() does not see that a JPEG is cut short
        with Image.open(classes) as picture:
            labels = np.asarray(picture.convert("RGB") if picture.mode in ("RGB", "RGBA") else picture)
        with Image.open(vegetation) as picture:
            plants = np.asarray(picture.convert("L") if picture.mode in ("RGB", "RGBA") else picture) > 0
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise BenchmarkError(f"a file of image {name} cannot be read: {error}", hint="fetch it again") from error
    mask = _classes_of_colours(labels) if labels.ndim == 3 else labels.astype(np.uint8)
    if mask.shape != plants.shape or (mask.shape[1], mask.shape[0]) != size:
        raise BenchmarkError(f"image {name} and its masks differ in size", hint="fetch the data set again")
    if mask.max(initial=0) > 2:
        raise BenchmarkError(f"the mask of image {name} has classes other than 0, 1, 2", hint="fetch it again")
    named = mask > 0
    if named.any() and plants[named].mean() < 0.5:
        plants = ~plants  # Masks with plants in black: whatever was named is a plant.
    return FieldImage(name, image, hashlib.sha256(image.read_bytes()).hexdigest(), mask, plants | named)


def _classes_of_colours(labels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    red, green = labels[..., 0] > 127, labels[..., 1] > 127
    return np.where(green & ~red, 1, np.where(red & ~green, 2, 0)).astype(np.uint8)
