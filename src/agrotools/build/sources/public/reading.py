"""Readers that the adapters share: unpacked folders, tables, pictures and outlines, and even choices of items."""

import csv
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import orjson
from numpy.typing import NDArray

from agrotools.core import BenchmarkError, ToolError
from agrotools.vision.reading import read_image

T = TypeVar("T")
_DEPTH = 3
_MOST_FOLDERS = 500
_MOST_ROWS = 2_000_000
_IGNORED = {"__MACOSX", ".DS_Store"}


def find_root(folder: Path, markers: Sequence[str], *, get_it: str) -> Path:
    """The folder at or below ``folder`` (to three levels) that holds all of ``markers``; archives often nest one.

    Raises:
        BenchmarkError: there is none; the hint says where to get the data set (``get_it``) and what must lie there.
    """
    level = [folder] if folder.is_dir() else []
    for _ in range(_DEPTH + 1):
        for place in level:
            if all((place / marker).exists() for marker in markers):
                return place
        inside = [inner for place in level for inner in sorted(place.iterdir()) if inner.name not in _IGNORED]
        level = [inner for inner in inside if inner.is_dir()][:_MOST_FOLDERS]
    raise BenchmarkError(f"{folder} has no {' and '.join(markers)}", hint=get_it)


def read_table(path: Path, columns: Sequence[str], *, get_it: str) -> list[dict[str, str]]:
    """The rows of a CSV file with a header that has at least ``columns``.

    Raises:
        BenchmarkError: it cannot be read, is no UTF-8, lacks a column, or has over two million rows.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            lacking = [name for name in columns if name not in (reader.fieldnames or ())]
            if lacking:
                raise BenchmarkError(f"{path} has no column {', '.join(lacking)}", hint=get_it)
            rows: list[dict[str, str]] = []
            for row in reader:
                rows.append({key: value or "" for key, value in row.items() if isinstance(key, str)})
                if len(rows) > _MOST_ROWS:
                    raise BenchmarkError(f"{path} has more than {_MOST_ROWS} rows", hint=get_it)
            return rows
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BenchmarkError(f"{path} cannot be read: {error}", hint=get_it) from error


def spread(items: Iterable[T], kind: Callable[[T], Hashable], count: int, seed: int) -> list[T]:
    """At most ``count`` items drawn so that every kind has as many as the others, while it has any."""
    by_kind: dict[Hashable, list[T]] = {}
    for item in items:
        by_kind.setdefault(kind(item), []).append(item)
    draw = np.random.default_rng(seed)
    shuffled = [[some[int(place)] for place in draw.permutation(len(some))] for some in by_kind.values()]
    nothing = object()
    in_turn = (item for item in chain.from_iterable(zip_longest(*shuffled, fillvalue=nothing)) if item is not nothing)
    return [item for item, _ in zip(in_turn, range(count), strict=False)]  # pyright: ignore[reportReturnType]


SUFFIXES = (".jpg", ".jpeg", ".png")


def upright_size(path: Path, *, get_it: str) -> tuple[int, int]:
    """Width and height of a picture as tools and people see it, turned as its EXIF orientation says.

    Raises:
        BenchmarkError: it is missing, cut short or no picture.
    """
    try:
        picture = read_image(path, shown_as=str(path))
    except ToolError as error:
        raise BenchmarkError(error.message, hint=get_it) from error
    return picture.width, picture.height


Outline = list[NDArray[np.int32]]
"""Polygons, each (points, 2): an apple behind a twig is in several pieces."""
Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels, ends excluded."""
_LARGEST_PX = 20_000


def read_outlines(path: Path, left_out: Counter[str], *, get_it: str) -> dict[str, dict[int, Outline]]:
    """The pieces of every apple that has a number, by picture and number.

    By the picture's name and not by the file's own key, which holds a size that need not be the same in two files.
    ``left_out`` counts what cannot be used.

    Raises:
        BenchmarkError: the file cannot be read, or is not of that form.
    """
    try:
        entries = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise BenchmarkError(f"{path} cannot be read: {error}", hint=get_it) from error
    if not isinstance(entries, dict):
        raise BenchmarkError(f"{path} is not a file of the VGG Image Annotator", hint=get_it)
    found: dict[str, dict[int, Outline]] = {}
    for key, entry in cast("dict[str, Any]", entries).items():
        try:
            name, regions = entry["filename"], entry["regions"]
            if Path(name).name != name or name in found:
                raise ValueError(f"picture {name!r} is named twice or leads elsewhere")
            found[name] = _pieces(regions.values() if isinstance(regions, dict) else regions, left_out)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise BenchmarkError(f"{path}: the regions of {key[:80]} cannot be read: {error!r}", hint=get_it) from error
    return found


def _pieces(regions: Any, left_out: Counter[str]) -> dict[int, Outline]:
    found: dict[int, Outline] = {}
    for region in regions:
        number = int(str(region["region_attributes"].get("apple_ID", "")).strip() or 0)
        if number == 0:
            left_out["outlines without the number of an apple"] += 1
            continue
        shape = region["shape_attributes"]
        if "all_points_x" not in shape:
            left_out["outlines that are not polygons"] += 1
            continue
        xs, ys = (np.asarray(shape[f"all_points_{axis}"], np.float64) for axis in "xy")
        if xs.ndim != 1 or xs.shape != ys.shape or not np.isfinite([xs, ys]).all():
            raise ValueError(f"the outline of apple {number} is not a list of points")
        if len(xs) and max(np.abs(xs).max(), np.abs(ys).max()) > _LARGEST_PX:
            raise ValueError(f"the outline of apple {number} reaches beyond any picture")
        if len(xs) < 3:
            left_out["outlines of fewer than three points"] += 1
            continue
        found.setdefault(number, []).append(np.round(np.stack([xs, ys], axis=1)).astype(np.int32))
    return found


def box_of(outline: Outline) -> Box:
    """The box around all pieces."""
    points = np.concatenate(outline)
    (x0, y0), (x1, y1) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    return x0, y0, x1 + 1, y1 + 1


def mask_of(outline: Outline, box: Box) -> NDArray[np.bool_]:
    """Pixels of the box that lie in one of the pieces."""
    import cv2

    drawn = np.zeros((box[3] - box[1], box[2] - box[0]), np.uint8)
    for piece in outline:
        # One by one: drawn together, pieces that overlap would leave a hole.
        cv2.fillPoly(drawn, [piece - np.array(box[:2], np.int32)], 1)
    return drawn > 0
