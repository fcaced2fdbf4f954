"""What the class numbers of a pair of label rasters mean, and which of them count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError

_MOST_CLASSES = 100
_IGNORED = frozenset({"ignore", "nodata", "no data", "no_data", "unlabelled", "unlabeled"})
NOTHING = "other"


@dataclass(frozen=True, eq=False)
class ClassTable:
    """``numbers``: all class numbers present, ascending; ``places``: of each, its row in ``names``, -1 for no data.

    ``is_marked``: the rasters mark one thing (0 for the rest), so change has a direction.
    """

    numbers: NDArray[np.int32]
    places: NDArray[np.int64]
    names: tuple[str, ...]
    is_marked: bool
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    def places_of(self, classes: NDArray[np.int32]) -> NDArray[np.int64]:
        """The row of each pixel's class; -1 where it does not count."""
        return self.places[np.searchsorted(self.numbers, classes)]


def class_table(
    present: tuple[NDArray[np.int32], NDArray[np.int32]],
    label_map: Mapping[str, Sequence[int]] | None,
    classes: tuple[Mapping[str, str] | None, Mapping[str, str] | None],
    marked: str,
    names: tuple[str, str],
) -> ClassTable:
    """Names for the numbers of a pair.

    Args:
        present: the class numbers of each raster.
        label_map: name to class numbers, as the caller says; ``ignore`` is not counted.
        classes: class number, as text, to name, as known of each file.
        marked: name of what a mask marks where it holds 0 and one other number and nobody says what they mean.
        names: of the two files.

    Raises:
        ToolError: ``invalid_argument`` (a number with two names, too many classes).
    """
    numbers = np.union1d(*present).astype(np.int32)
    if numbers.size > _MOST_CLASSES:
        raise ToolError(
            "invalid_argument",
            f"{names[0]} and {names[1]} hold {numbers.size} different values: these are no class numbers",
            argument="before",
            hint=f"label rasters have up to {_MOST_CLASSES} classes; for pictures leave out label_map and mask_diff",
        )
    named = _from_map(label_map) if label_map is not None else _from_files(classes, names)
    if not named:
        # Each date may write its marks with a number of its own (1 here, 255 there).
        if all(np.count_nonzero(values) <= 1 and (values >= 0).all() for values in present):
            places = (numbers != 0).astype(np.int64)
            note = f"masks: what is not 0 is {marked}"
            return ClassTable(numbers, places, (NOTHING, marked), is_marked=True, notes=(note,))
        notes: tuple[str, ...] = ("names of the classes are not known: give label_map for names",)
        flags: tuple[str, ...] = ("unnamed_classes",)
    else:
        unnamed = [int(number) for number in numbers if int(number) not in named]
        notes = (f"class numbers {unnamed[:12]} have no name",) if unnamed else ()
        flags = ("unnamed_classes",) if unnamed else ()
    titles = [named.get(int(number), f"class {number}") for number in numbers]
    counted = list(dict.fromkeys(title for title in titles if title.lower() not in _IGNORED))
    places = np.array([counted.index(title) if title in counted else -1 for title in titles], np.int64)
    is_marked = len(counted) <= 2 and 0 in numbers and all(np.count_nonzero(values) <= 1 for values in present)
    return ClassTable(numbers, places, tuple(counted), is_marked, notes, flags)


def _from_map(label_map: Mapping[str, Sequence[int]]) -> dict[int, str]:
    named: dict[int, str] = {}
    for name, members in label_map.items():
        title = name.strip()
        if not title:
            raise ToolError("invalid_argument", "label_map has a class without a name", argument="label_map")
        for number in members:
            if named.setdefault(number, title) != title:
                raise ToolError("invalid_argument", f"label_map: {number} has two names", argument="label_map")
    return named


def _from_files(classes: tuple[Mapping[str, str] | None, ...], files: tuple[str, str]) -> dict[int, str]:
    named: dict[int, str] = {}
    for known in classes:
        for number, title in (known or {}).items():
            if number.strip().lstrip("-").isdigit() and named.setdefault(int(number), title) != title:
                raise ToolError(
                    "invalid_argument",
                    f"class {number} has another name in {files[0]} than in {files[1]}",
                    argument="label_map",
                    hint="say with label_map what the numbers mean in both",
                )
    return named
