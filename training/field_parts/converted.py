"""Files that are converted when they are downloaded: what the questions show, and how it is made from the original."""

import hashlib
from pathlib import Path
from typing import Any

from agrotools.core import SampleFile
from agrotools_benchmarks.field.pack import (
    JPEG_QUALITY,
    Box,
    Mark,
    Numbers,
    PackedFile,
    Size,
    as_jpeg,
    as_tiff,
)
from agrotools_build.references import PlannedCall
from agrotools_build.sources.drawn import find_mark
from agrotools_build.sources.part import DataSet

PEN_NAMES = ("red", "yellow", "blue")
RECIPES: dict[str, PackedFile] = {}
"""Converted files by SHA-256."""


def as_photo(
    data: DataSet,
    item: dict[str, Any],
    key: str = "image",
    marks: tuple[Mark, ...] = (),
    quality: int = JPEG_QUALITY,
    part: Box | None = None,
    pixels: Size | None = None,
    **more: Any,
) -> SampleFile:
    """Return a photograph as a JPEG with frames. A copy that is a JPEG was stored with this quality, or as it was.

    ``part``: only this part of it, in ``pixels`` columns and rows.
    """
    crop = item["source"].get("crop")
    content = (data.folder / item[key]).read_bytes()
    as_it_is, *_, again = as_jpeg(content, quality, None, marks, part, pixels)
    how = {"convert": "jpeg", "quality": quality, "crop": crop and tuple(crop), "marks": marks}
    how |= {"part": part, "pixels": pixels}
    return _stored(
        data, item, key, as_it_is if str(item[key]).endswith(".jpg") else again, ".jpg", how, more
    )


def as_plane(data: DataSet, item: dict[str, Any], key: str, **more: Any) -> SampleFile:
    """Return a mask, a depth or other values as a TIFF without compression."""
    numbers = numbers_of(item)
    content = as_tiff((data.folder / item[key]).read_bytes(), None, numbers)[0]
    how = {"convert": "tiff", "layer": item["source"].get("index"), "numbers": numbers}
    return _stored(data, item, key, content, ".tif", how, more)


def numbers_of(item: dict[str, Any]) -> Numbers | None:
    """Return the place of the values of an item in a file of R; None if its file is of another kind."""
    place = item["source"].get("numbers")
    return place and Numbers.model_validate(place)


def _stored(
    data: DataSet,
    item: dict[str, Any],
    key: str,
    content: bytes,
    suffix: str,
    how: dict[str, Any],
    more: dict[str, Any],
) -> SampleFile:
    place = more.pop("place", 0)
    digest = hashlib.sha256(content).hexdigest()
    source = item["source"]
    RECIPES[digest] = PackedFile(
        path=f"files/{digest[:16]}{suffix}",
        sha256=digest,
        repo=source["repo"],
        commit=source["commit"],
        source=source["paths"][place],
        local=f"{data.folder.name}/{Path(item[key]).as_posix()}",
        **how,
    )
    return data.originals.add_content(content, suffix, **more)


def framed(image: str, colour: str, box: Box) -> PlannedCall:
    """Return the call that finds the only frame of that colour in a picture."""
    inside = [
        box[0] + 1,
        box[1] + 1,
        box[2] - 1,
        box[3] - 1,
    ]  # the tool leaves a pixel inside the stroke out
    return find_mark(
        image,
        colour,
        {"regions": [{"index": 1, "inner_box": inside, "color": colour}], "crop_box": inside},
    )


def without_frames(marked: SampleFile, plain: SampleFile) -> dict[str, dict[str, SampleFile]]:
    """Return what makes questions about frames unanswerable: the photograph without them in place of that with them."""
    return {"unmarked": {marked.path: plain}}
