"""Validated items of ``truth.json``: an odd value is one line that names folder, item and field."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from PIL import Image

from agrotools.core import BenchmarkError, ToolError
from agrotools.vision.formats import file_format
from agrotools.vision.rasters import open_raster
from agrotools_build.sources.reading import is_outside
from prepared import read_items

_MOST = 1_000_000
_PICTURES = (
    "image",
    "mask",
    "vegetation",
    "depth_mm_uint16",
    "before",
    "after",
    "chm",
    "ndvi",
    "lulc",
)
_FILES = (*_PICTURES, "boxes")


class Item(dict[str, Any]):
    """Object of ``truth.json``; a field that it lacks raises a BenchmarkError. ``place``: folder, file and item."""

    def __init__(self, content: dict[str, Any], place: str) -> None:
        super().__init__(content)
        self.place = place

    def __missing__(self, key: str) -> Any:
        raise BenchmarkError(f"{self.place} lacks the field {key!r}")


def read_truth(folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the items of a folder whose pictures can be read, and the names of those that are left out.

    Where some items have a label, those without are left out, too.

    Raises:
        BenchmarkError: ``truth.json`` is missing, invalid or empty, or no item is left.
    """
    items: list[dict[str, Any]] = []
    unreadable: list[str] = []
    contents = read_items(folder)
    has_labels = any(content.get("label") for content in contents)
    for number, content in enumerate(contents):
        if has_labels and not content.get("label"):
            unreadable.append(f"{content.get('id', number)} (no label)")
            continue
        item = _checked(
            content, f"{folder.name}/truth.json, item {content.get('id', number)!r}", folder
        )
        bad = [
            item[key] for key in _PICTURES if key in item and not _is_readable(folder / item[key])
        ]
        unreadable += bad
        if not bad:
            items.append(item)
    if unreadable and not items:
        raise BenchmarkError(f"no picture of {folder.name} can be read, e.g. {unreadable[0]}")
    if not items:
        raise BenchmarkError(
            f"{folder.name}/truth.json is an empty list; expected one object per picture"
        )
    return items, list(dict.fromkeys(unreadable))


def _checked(content: dict[str, Any], place: str, folder: Path) -> Item:
    item = Item(content, place)
    for key, value in content.items():
        if key in _FILES:
            _require(isinstance(value, str) and not is_outside(value) and (folder / value).is_file(), place, key, value,
                     f"a file in {folder.name}")  # fmt: skip
        elif key in _FIELDS:
            expected, fits = _FIELDS[key]
            _require(fits(value), place, key, value, expected)
        if key == "stats":
            statistics = item[key] = Item(cast(dict[str, Any], value), f"{place}, stats")
            for name, number in statistics.items():
                if name in _STATISTICS:
                    _require(_is_number(number), f"{place}, stats", name, number, "a number")
        elif key == "fruits":
            item[key] = [
                _checked(one, f"{place}, fruit {n}", folder)
                for n, one in enumerate(cast(list[Any], value))
            ]
    return item


def _require(fits: bool, place: str, key: str, value: Any, expected: str) -> None:
    if not fits:
        raise BenchmarkError(
            f"{place}, field {key!r} is {str(repr(value))[:60]}; expected {expected}"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


def _is_box(value: Any) -> bool:
    sides = cast(list[Any], value)
    return isinstance(value, list) and len(sides) == 4 and all(map(_is_number, sides))


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in cast(list[Any], value))


_STATISTICS = ("mean", "std", "max", "valid", "res_m", "fraction_over_2m", "fraction_over_5m")
_FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "id": ("text", _is_text),
    "label": ("text", _is_text),
    "count": (f"a whole number from 0 to {_MOST:,}", _is_count),
    "gsd_m": (
        "metres per pixel, a positive number, or null",
        lambda value: value is None or _is_positive(value),
    ),
    "caliber_mm": ("millimetres, a positive number", lambda value: _is_positive(value)),
    "box": ("four numbers: left, top, right, bottom", _is_box),
    "stats": ("an object of numbers", lambda value: isinstance(value, dict)),
    "mask_classes": ("an object of names by number", lambda value: isinstance(value, dict)),
    "fruits": ("a list of objects", _are_objects),
}


def _is_positive(value: Any) -> bool:
    return _is_number(value) and value > 0


def _is_readable(path: Path) -> bool:
    try:
        if file_format(path) in ("tiff", "envi"):
            with open_raster(path) as raster:
                raster.read([1])
        else:
            with Image.open(path) as image:
                image.load()
    except ToolError as error:
        return error.kind != "unreadable_file"
    except (OSError, SyntaxError, ValueError):
        return False
    return True
