"""Crop and weeds: photographs of a carrot field (CWFID).

Answers come from the annotators' masks. Part of the vegetation was not named by them; a question is only asked where
its answer is the same whether those plants are crop or weeds. The images are false colour, as a farmer's
red-and-infrared camera gives them.

The images form fixed pairs by rank of their hash, and a question about two images stays within a pair: so there are as
many clusters as pairs, and a head trained on other pairs has never seen the images of a question.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.build.area_truth import AreaTruth, Region, count_area
from agrotools.build.sources.part import TRUTH_FILE, Part, first_few, read_items
from agrotools.build.templates.field import MEASURE, FieldPicture, field_picture, field_templates
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, Sample, SampleFile
from agrotools.core.files import pairs_by_hash
from agrotools.formats.benchmark import SourceNote
from agrotools.formats.folder import FILES_FOLDER
from agrotools.tools.crop_weed.heads import list_heads

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


SAMPLES = 100
NOTE = (
    "Carrot field seen straight from above, two-band camera shown in false colour: the green channel is near infrared,"
    " the red and blue channels both show red, so plants look green."
)
SOURCE = SourceNote(
    name="CWFID",
    licence=LICENCE,
    url="https://github.com/cwfid/dataset",
    citation="Haug, S. and Ostermann, J.: A Crop/Weed Field Image Dataset for the Evaluation of Computer Vision Based"
    " Precision Agriculture Tasks. ECCV Workshops (CVPPP), 2014.",
    note="Questions, reference calls and tolerances are by agrotools; images and masks are the authors'.",
)


def weeds(folder: Path) -> Part:
    """Raises BenchmarkError: the data set is incomplete, or has fewer than four images."""
    images = read_cwfid(folder)
    by_hash = {image.sha256: image for image in images}
    pairs = [[by_hash[member] for member in pair] for pair in pairs_by_hash(by_hash)]
    pairs = [pair for pair in pairs if len(pair) == 2]
    if len(pairs) < 2:
        raise BenchmarkError(f"{folder} holds {len(images)} images; at least four are needed")
    return Part(
        "weeds",
        SOURCE,
        [_subject(number, pair) for number, pair in enumerate(pairs)],
        field_templates(),
        SAMPLES,
        {_stored(image): image.path for image in by_hash.values()},
        {"images": len(by_hash), "pairs": len(pairs)},
        how_parted,
    )


def how_parted(samples: Sequence[Sample]) -> dict[str, JsonValue]:
    """Methods that parted crop from weeds in the recorded observations: calls by method, and the heads it used.

    With ``none`` the observation holds no crop and no weeds, and no agent that trusts the tool can answer.
    """
    observations = [
        step.observation.result
        for sample in samples
        for step in (sample.reference.steps if sample.reference else ())
        if step.tool == MEASURE and step.observation and step.observation.result
    ]
    methods = Counter(str(result.get("method")) for result in observations)
    notes = " ".join(str(result.get("notes")) for result in observations)
    used = set(re.findall(r"by head ([\w.-]+)", notes))
    heads: dict[str, JsonValue] = {head.name: head.weights_sha256 for head in list_heads()[0] if head.name in used}
    how: dict[str, JsonValue] = {"separation": dict(methods), "heads": heads}
    if methods["none"]:
        how["note"] = (
            f"In {methods['none']} of {methods.total()} recorded measurements crop and weeds were not told apart. Train"
            " heads (agrotools packs train crop-weed) and build again: each pair then has a head that never saw it."
        )
    return how


def _stored(image: FieldImage) -> str:
    return f"{FILES_FOLDER}/{image.sha256[:16]}{image.path.suffix.lower()}"


def _subject(number: int, pair: list[FieldImage]) -> Subject:
    def picture(index: int, position: int) -> FieldPicture:
        image = pair[index]
        file = SampleFile(
            name=f"image_{position}{image.path.suffix.lower()}",
            path=_stored(image),
            kind="image",
            sha256=image.sha256,
            width_px=image.width,
            height_px=image.height,
            note=NOTE,
        )

        def area(region: Region | None) -> AreaTruth:
            return count_area(image.classes, image.vegetation, region)

        return field_picture((file,), {"image": file.name}, area, image.width, image.height)

    names: list[str] = [image.name for image in pair]
    return Subject(f"pair-{number}", 2, picture, {"pair": number, "images": [*names]})
