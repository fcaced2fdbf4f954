"""Crop and weeds: photographs of a carrot field (CWFID).

Answers come from the annotators' masks. They left part of the vegetation unlabelled; a question is only asked if its
answer does not depend on whether those plants are crop or weeds. The images are in false colour, as from a farmer's
red-and-infrared camera.

The images form fixed pairs in the order of their hashes, and a question about two images stays within a pair. So there
are as many clusters as pairs, and a head trained on other pairs has never seen the images of a question.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue
from scipy import ndimage

from agrotools.core import BenchmarkError, SampleFile
from agrotools.core.errors import NoFileError
from agrotools_benchmarks.field.pack import Box, Mark
from agrotools_build.area_truth import AreaTruth, Region, count_area
from agrotools_build.references import ref
from agrotools_build.sources.land import describe_separation
from agrotools_build.sources.part import Adapter, DataSet, Part, named, pairs_of, photo_thing
from agrotools_build.templates import Thing, load_templates
from agrotools_build.templates.field import FieldPicture, field_picture
from agrotools_build.templates.template import field_templates
from agrotools_build.templates.thing import Subject
from field_parts.converted import PEN_NAMES, as_photo, framed, without_frames
from field_parts.kept import is_kept
from field_parts.strangers import moved_frames
from prepared import TRUTH_FILE, read_items, require_files

NOTE = (
    "Carrot field seen straight from above, two-band camera shown in false colour: the green channel is near infrared,"
    " the red and blue channels both show red, so plants look green."
)


@dataclass(frozen=True, eq=False)
class FieldImage:
    """A photograph; ``classes`` (rows, columns): 0 other, 1 crop, 2 weed; ``vegetation``: True for plants."""

    name: str
    path: Path
    classes: NDArray[np.uint8]
    vegetation: NDArray[np.bool_]

    @property
    def width(self) -> int:
        return self.classes.shape[1]

    @property
    def height(self) -> int:
        return self.classes.shape[0]


def read_cwfid(folder: Path) -> list[FieldImage]:
    """Read all images of the data set in ``folder``, or in its subfolder ``cwfid``.

    Raises:
        BenchmarkError: the folder does not exist or has another layout, or files are missing or do not match.
    """
    if not folder.is_dir():
        raise NoFileError(f"{folder} is not a folder", hint="give the folder of the data set")
    if (folder / "cwfid").is_dir():
        folder = folder / "cwfid"
    entries = list(_entries(folder))
    if not entries:
        raise BenchmarkError(
            f"{folder} holds no CWFID images",
            hint="expected truth.json, or images/, annotations/ and masks/, there or in a folder cwfid",
        )
    require_files(
        folder, (str(path.relative_to(folder)) for entry in entries for path in entry[1:])
    )
    return [_read(*entry) for entry in entries]


def _entries(folder: Path) -> Iterator[tuple[str, Path, Path, Path]]:
    """Yield name, image, class mask and vegetation mask of each item."""
    if (folder / TRUTH_FILE).is_file():
        for item in read_items(folder, ("id",), ("image", "mask", "vegetation")):
            yield (
                str(item["id"]),
                folder / item["image"],
                folder / item["mask"],
                folder / item["vegetation"],
            )
        return
    for image in sorted((folder / "images").glob("*_image.png")):
        name = image.name.removesuffix("_image.png")
        yield (
            name,
            image,
            folder / f"annotations/{name}_annotation.png",
            folder / f"masks/{name}_mask.png",
        )


def _read(name: str, image: Path, classes: Path, vegetation: Path) -> FieldImage:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(image) as picture:
            size = picture.size
            picture.load()  # verify() does not detect truncated JPEG files
        with Image.open(classes) as picture:
            labels = np.asarray(
                picture.convert("RGB") if picture.mode in ("RGB", "RGBA") else picture
            )
        with Image.open(vegetation) as picture:
            plants = (
                np.asarray(picture.convert("L") if picture.mode in ("RGB", "RGBA") else picture) > 0
            )
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise BenchmarkError(f"a file of image {name} cannot be read: {error}") from error
    mask = _classes_of_colours(labels) if labels.ndim == 3 else labels.astype(np.uint8)
    if mask.shape != plants.shape or (mask.shape[1], mask.shape[0]) != size:
        raise BenchmarkError(f"image {name} and its masks differ in size")
    if mask.max(initial=0) > 2:
        raise BenchmarkError(f"the mask of image {name} has classes other than 0, 1, 2")
    marked = mask > 0
    if marked.any() and plants[marked].mean() < 0.5:
        plants = (
            ~plants
        )  # Plants are black in this mask, because labelled pixels are always plants.
    return FieldImage(name, image, mask, plants | marked)


def _classes_of_colours(labels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    red, green = labels[..., 0] > 127, labels[..., 1] > 127
    return np.where(green & ~red, 1, np.where(red & ~green, 2, 0)).astype(np.uint8)


@partial(Adapter, "field.cwfid")
def weeds(data: DataSet) -> Part:
    """Areas of crop and weeds; at least four images are needed."""
    images = read_cwfid(data.folder)
    photos = [
        (
            data.originals.file(
                image.path, note=NOTE, width_px=image.width, height_px=image.height
            ),
            image,
        )
        for image in images
    ]
    pairs = [pair for pair in pairs_of(photos) if len(pair) == 2]
    if len(pairs) < 2:
        raise BenchmarkError(f"{data.folder} holds {len(images)} images; at least four are needed")
    # A pair is left out as a whole, so that each head still belongs to the pairs that it was trained for.
    kept = [
        (n, pair) for n, pair in enumerate(pairs) if all(is_kept(data, file) for file, _ in pair)
    ]
    subjects = [_subject(number, pair) for number, pair in kept]
    counts = {"images": len(data.originals.files), "pairs": len(pairs)}
    questions = [*field_templates(), *load_templates("surely"), *load_templates("treating")]
    if (data.folder / TRUTH_FILE).is_file():
        vegetation = {image.name: image.vegetation for image in images}
        for item in read_items(data.folder, ("id",), ("image",)):
            ours = vegetation[str(item["id"])]
            plants = _single_plants(ours)
            if len(plants) < _FEWEST_PLANTS:
                continue
            framed_too = _framed_plants(data, item, plants, ours)
            if framed_too is not None:
                subjects.append(framed_too)
        questions += load_templates("framed_plants")
    return data.part(subjects, questions, counts, describe_separation)


_FEWEST_PLANTS = 2
_LEAST_PLANT_PX = 2_500
_MARGIN_PX, _GAP_PX = 4, 6
"""Pixels between a plant and its frame, and least gap to other plants."""


def _single_plants(vegetation: NDArray[np.bool_]) -> list[tuple[Box, dict[str, Any]]]:
    """Return frames around plants that stand alone, and what a perfect tool measures inside each."""
    rows, columns = vegetation.shape
    groups, _ = ndimage.label(ndimage.binary_dilation(vegetation, iterations=_GAP_PX))
    found: list[tuple[int, Box, dict[str, Any]]] = []
    for number, (down, across) in enumerate(ndimage.find_objects(groups), start=1):
        ys, xs = np.nonzero((groups[down, across] == number) & vegetation[down, across])
        if not ys.size:
            continue
        ys, xs = ys + down.start, xs + across.start
        x0, y0, x1, y1 = int(xs.min()), int(ys.min()), int(xs.max()) + 1, int(ys.max()) + 1
        box = (x0 - _MARGIN_PX, y0 - _MARGIN_PX, x1 + _MARGIN_PX, y1 + _MARGIN_PX)
        inside = np.count_nonzero(vegetation[max(0, box[1]) : box[3], max(0, box[0]) : box[2]])
        is_whole = (
            box[0] >= _GAP_PX
            and box[1] >= _GAP_PX
            and box[2] <= columns - _GAP_PX
            and box[3] <= rows - _GAP_PX
        )
        if is_whole and ys.size >= _LEAST_PLANT_PX and inside <= 1.01 * ys.size:
            found.append((ys.size, box, {"area_px": int(ys.size), "width_px": x1 - x0}))
    largest = sorted(found, key=lambda each: -each[0])[: len(PEN_NAMES)]
    # In reading order, so that a colour does not tell the size.
    return [(box, plant) for _, box, plant in sorted(largest, key=lambda each: each[1])]


def _framed_soil(
    data: DataSet,
    item: dict[str, Any],
    vegetation: NDArray[np.bool_],
    marks: Sequence[Mark],
) -> SampleFile | None:
    """Return the photograph with frames of the same colours and sizes around bare soil; None if it has too little."""
    moved = moved_frames(marks, vegetation)
    return as_photo(data, item, marks=moved, note=NOTE) if moved else None


def _framed_plants(
    data: DataSet,
    item: dict[str, Any],
    plants: list[tuple[Box, dict[str, Any]]],
    vegetation: NDArray[np.bool_],
) -> Subject | None:
    marks = tuple((colour, box) for colour, (box, _) in zip(PEN_NAMES, plants, strict=False))
    marked, plain = as_photo(data, item, marks=marks, note=NOTE), as_photo(data, item, note=NOTE)
    if not is_kept(data, marked):
        return None
    beside = _framed_soil(data, item, vegetation, marks)
    file = named(marked, "image", 1)

    def shown(index: int, _: int) -> Thing:
        (colour, box), (_, plant) = marks[index], plants[index]
        truth = {"n_plants": 1, "plants": [plant], "view": "top"}
        thought = f"Now the plant inside the {colour} frame."
        words = {"colour": colour}
        before = (framed(file.name, colour, box),)
        more = {"view": "top", "region": ref(0, "crop_box")}
        return photo_thing(file, "measure_weed_phenotype", truth, thought, words, before, **more)

    metadata: dict[str, JsonValue] = {"image": str(item["id"])}
    instead = without_frames(marked, plain)
    if beside is not None:
        instead["beside"] = {marked.path: beside}
    return Subject(f"plants-{item['id']}", len(plants), shown, metadata, "framed_plant", instead)


def _subject(number: int, pair: list[tuple[SampleFile, FieldImage]]) -> Subject:
    def picture(index: int, position: int) -> FieldPicture:
        file, image = pair[index]
        file = named(file, "image", position)

        def area(region: Region | None) -> AreaTruth:
            return count_area(image.classes, image.vegetation, region)

        return field_picture((file,), {"image": file.name}, area, image.width, image.height)

    names: list[JsonValue] = [image.name for _, image in pair]
    return Subject(f"pair-{number}", 2, picture, {"pair": number, "images": names})
