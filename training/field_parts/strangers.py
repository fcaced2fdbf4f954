"""Photographs of something else that take the place of the one asked about (``strangers.toml``).

A question about an insect then shows a tree, one about a leaf an insect: whoever looks sees that there is no answer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.core import SampleFile
from agrotools.core.files import read_table
from agrotools_benchmarks.field.pack import Box, Mark, Size
from agrotools_build.sources.part import DataSet
from agrotools_build.templates.thing import Subject
from field_parts.converted import as_photo
from prepared import read_items

STRANGE = "strange"
"""Kind of ``instead`` of a subject."""


def with_strangers(data: DataSet, subjects: Sequence[Subject]) -> list[Subject]:
    """Return the subjects, as many as there are photographs of something else for with these in their place.

    Each photograph is used once, since questions that share a photograph are one cluster.
    """
    left = _pictures(data)
    done: list[Subject] = []
    for subject in subjects:
        files = {
            file.path: file for n in range(subject.things) for file in subject.shown(n, 1).files
        }
        taken = [picture for _, picture in zip(files, left, strict=False)]
        if len(taken) < len(files):
            done.append(subject)
            continue
        strange = {
            path: _in_place_of(data, file, *picture)
            for (path, file), picture in zip(files.items(), taken, strict=True)
        }
        done.append(replace(subject, instead={**subject.instead, STRANGE: strange}))
    return done


def _pictures(data: DataSet) -> Iterator[tuple[DataSet, dict[str, Any]]]:
    """Yield the photographs listed for a part, each with its data set."""
    table = read_table(Path(__file__).with_name("strangers.toml")).get(data.listing.part, {})
    for folder, hashes in table.items():
        home = DataSet(data.folder.parent / folder, data.listing, 0)
        home.originals = data.originals
        items = _items_by_hash(home.folder) if home.folder.is_dir() else {}
        yield from ((home, items[digits]) for digits in hashes if digits in items)


@cache
def _items_by_hash(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the items of a data set by the first digits of the hash of their picture."""
    items = read_items(folder, files=("image",))
    return {sha256((folder / item["image"]).read_bytes()).hexdigest()[:6]: item for item in items}


def _in_place_of(
    data: DataSet, file: SampleFile, home: DataSet, item: dict[str, Any]
) -> SampleFile:
    """Return a photograph that is listed like ``file``: with its number of pixels and its note."""
    pixels = (file.width_px or 0, file.height_px or 0)
    own = data.originals.file(home.folder / item["image"])
    size = (own.width_px or 0, own.height_px or 0)
    if size == pixels:
        return own.model_copy(update={"note": file.note})
    return as_photo(home, item, part=middle_part(size, pixels), pixels=pixels, note=file.note)


def middle_part(size: Size, shape: Size) -> Box:
    """Return the largest box in the middle of a picture of ``size`` that has the shape of ``shape``."""
    scale = min(size[0] / shape[0], size[1] / shape[1])
    columns, rows = round(shape[0] * scale), round(shape[1] * scale)
    x0, y0 = (size[0] - columns) // 2, (size[1] - rows) // 2
    return (x0, y0, x0 + columns, y0 + rows)


_TRIED_PLACES, _APART_PX = 4_000, 12
"""Places tried for a frame, and least pixels between two frames, and between one and the edge of the picture."""
_BARE = 0.002
"""Largest share of pixels of what is asked about in a moved frame: a few, too small to be one of them."""


def moved_frames(marks: Sequence[Mark], there: NDArray[np.bool_]) -> tuple[Mark, ...]:
    """Return frames of the same colours and sizes where ``there`` is False; empty if there are too few such places.

    ``there`` is True at pixels (rows, columns) that may show what is asked about.
    """
    rng = np.random.default_rng([edge for _, box in marks for edge in box])
    moved: list[Mark] = []
    for colour, box in marks:
        free = _free_box(there, box, [other for _, other in moved], rng)
        if free is None:
            return ()
        moved.append((colour, free))
    return tuple(moved)


def _free_box(
    there: NDArray[np.bool_], box: Box, taken: Sequence[Box], rng: np.random.Generator
) -> Box | None:
    rows, columns = there.shape
    width, height = box[2] - box[0], box[3] - box[1]
    for _ in range(_TRIED_PLACES):
        x0 = int(rng.integers(_APART_PX, columns - width - _APART_PX))
        y0 = int(rng.integers(_APART_PX, rows - height - _APART_PX))
        x1, y1 = x0 + width, y0 + height
        is_apart = all(
            x1 + _APART_PX < other[0]
            or other[2] + _APART_PX < x0
            or y1 + _APART_PX < other[1]
            or other[3] + _APART_PX < y0
            for other in taken
        )
        if is_apart and there[y0:y1, x0:x1].mean() <= _BARE:
            return (x0, y0, x1, y1)
    return None
