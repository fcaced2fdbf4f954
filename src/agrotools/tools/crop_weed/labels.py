"""Label rasters: class numbers that mean crop, weeds and soil."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.vision.reading import LabelImage

Area = Literal["crop", "weed", "soil", "ignore"]

_WORDS: dict[str, Area] = {
    "crop": "crop",
    "crops": "crop",
    "weed": "weed",
    "weeds": "weed",
    "soil": "soil",
    "bare soil": "soil",
    "ground": "soil",
    "background": "soil",
    "ignore": "ignore",
    "nodata": "ignore",
    "no data": "ignore",
}


@dataclass(frozen=True, eq=False)
class LabelAreas:
    """Masks, bool (rows, columns). ``valid``: pixels that count; what is none of crop, weeds and soil is ``other``."""

    crop: NDArray[np.bool_]
    weed: NDArray[np.bool_]
    soil: NDArray[np.bool_]
    valid: NDArray[np.bool_]
    notes: tuple[str, ...]
    flags: tuple[str, ...]


def label_areas(
    labels: LabelImage, label_map: Mapping[str, Sequence[int]] | None, classes: Mapping[str, str] | None, name: str
) -> LabelAreas:
    """Crop, weeds and soil in a label raster.

    Args:
        label_map: ``crop``, ``weed``, ``soil`` or ``ignore`` to class numbers; None: by the meanings in ``classes``.
            Without ``soil``, every number that is named nowhere counts as soil.
        classes: class number, as text, to its meaning, as known of the file.

    Raises:
        ToolError: ``missing_metadata`` where neither says what the numbers mean, ``invalid_argument``.
    """
    present = sorted(int(value) for value in np.unique(labels.classes))
    numbers, notes, flags = meaning_of_classes(label_map, classes, name, present)
    there = np.ones(labels.classes.shape, np.bool_) if labels.valid is None else labels.valid
    valid = there & ~np.isin(labels.classes, numbers["ignore"])
    if not valid.any():
        raise ToolError("nothing_found", f"{name} holds no class that counts", argument="label_raster")
    crop, weed, soil = (valid & np.isin(labels.classes, numbers[area]) for area in ("crop", "weed", "soil"))
    return LabelAreas(crop, weed, soil, valid, notes, flags)


class ClassMeaning(NamedTuple):
    """Class numbers of each area, with what is to be said of them."""

    numbers: dict[Area, list[int]]
    notes: tuple[str, ...]
    flags: tuple[str, ...]


def meaning_of_classes(
    label_map: Mapping[str, Sequence[int]] | None, classes: Mapping[str, str] | None, name: str, present: Sequence[int]
) -> ClassMeaning:
    """Class numbers of crop, weeds and soil among those that are ``present``; arguments as of :func:`label_areas`.

    Raises:
        ToolError: as :func:`label_areas`.
    """
    numbers, notes = _numbers(label_map, classes, name, present)
    named = {number for members in numbers.values() for number in members}
    unnamed = [number for number in present if number not in named]
    if not unnamed:
        return ClassMeaning(numbers, notes, ())
    if numbers["soil"]:
        note = f"class numbers {_list_numbers(unnamed)} are named nowhere: neither crop, weeds nor soil"
        return ClassMeaning(numbers, (*notes, note), ("unnamed_classes",))
    note = f"class numbers {_list_numbers(unnamed)} counted as soil, since nothing else was named soil"
    return ClassMeaning({**numbers, "soil": unnamed}, (*notes, note), ())


def _numbers(
    label_map: Mapping[str, Sequence[int]] | None, classes: Mapping[str, str] | None, name: str, present: Sequence[int]
) -> tuple[dict[Area, list[int]], tuple[str, ...]]:
    numbers: dict[Area, list[int]] = {"crop": [], "weed": [], "soil": [], "ignore": []}
    if label_map is not None:
        for key, members in label_map.items():
            area = _WORDS.get(key.strip().lower())
            if area is None:
                raise ToolError(
                    "invalid_argument",
                    f"label_map: {key!r} is no area that is measured here",
                    argument="label_map",
                    hint="use crop, weed, soil or ignore, e.g. {'crop': [1], 'weed': [2], 'soil': [0]}",
                )
            numbers[area] += members
        notes: tuple[str, ...] = ()
    elif classes:
        for number, meaning in classes.items():
            area = _WORDS.get(meaning.strip().lower())
            if area is not None and number.strip().lstrip("-").isdigit():
                numbers[area].append(int(number))
        notes = ("meaning of the class numbers as known of the file",)
    else:
        notes = ()
    if not numbers["crop"] and not numbers["weed"]:
        raise ToolError(
            "missing_metadata",
            f"what the class numbers of {name} mean is not known; it holds {_list_numbers(present)}",
            argument="label_map",
            hint="give label_map, e.g. {'crop': [1], 'weed': [2], 'soil': [0]}",
        )
    counts = Counter(number for members in numbers.values() for number in members)
    twice = sorted(number for number, count in counts.items() if count > 1)
    if twice:
        raise ToolError(
            "invalid_argument", f"label_map: {_list_numbers(twice)} stands for two areas", argument="label_map"
        )
    return numbers, notes


def _list_numbers(numbers: Sequence[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:12])
    return f"{shown} and {len(numbers) - 12} more" if len(numbers) > 12 else shown
