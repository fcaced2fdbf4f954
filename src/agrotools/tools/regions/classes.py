"""Label rasters of a region: counts of their classes, by name if names are known."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agrotools.core import SampleFile, ToolError
from agrotools.vision.formats import MAX_PIXELS, file_format
from agrotools.vision.overlay import (
    BLUE,
    BLUISH_GREEN,
    BROWN,
    ORANGE,
    REDDISH_PURPLE,
    SKY_BLUE,
    VERMILLION,
    YELLOW,
    Colour,
    Layer,
)

_COLOURS: tuple[Colour, ...] = (
    BROWN,
    SKY_BLUE,
    VERMILLION,
    YELLOW,
    BLUISH_GREEN,
    ORANGE,
    BLUE,
    REDDISH_PURPLE,
    (60, 60, 60),
    (150, 150, 150),
)
_MOST_CLASSES = 64
"""A palette picture with more colours is a photograph of few colours rather than a map of classes."""


def is_label_file(
    path: Path, info: SampleFile | None, label_map: Mapping[str, Sequence[int]] | None
) -> Literal["known", "guessed", ""]:
    """Reason why the values of a file are class numbers, as given or by their look; empty if they are not.

    By its looks a palette PNG of up to 64 values is one, and a grey PNG of up to 16 values that a person could not tell
    apart (up to 32, or 0 and 255 alone).
    """
    if label_map is not None or (info is not None and (info.kind == "mask" or info.classes)):
        return "known"
    if file_format(path, shown_as=info.name if info else None) != "png":
        return ""
    try:
        with Image.open(path, formats=["PNG"]) as image:
            if image.mode not in ("P", "L", "1") or image.width * image.height > MAX_PIXELS:
                return ""
            used = {value for value, count in enumerate(image.histogram()) if count}
            if image.mode == "P":
                return "guessed" if len(used) <= _MOST_CLASSES else ""
            is_small = len(used) <= 16 and max(used, default=0) <= 32
            return "guessed" if is_small or used == {0, 255} else ""
    except Exception:  # the reader, which comes next, says what is wrong with the file
        return ""


def class_counts(
    classes: NDArray[np.int32],
    inside: NDArray[np.bool_],
    label_map: Mapping[str, Sequence[int]] | None,
    names: Mapping[str, str] | None,
) -> tuple[dict[str, int], tuple[str, ...], tuple[str, ...]]:
    """Pixels of each class where ``inside``, the largest first, with notes and flags.

    Args:
        label_map: name to class numbers.
        names: class number, as text, to name; used for numbers that ``label_map`` does not name.

    Raises:
        ToolError: ``invalid_argument``, a number stands for two names in ``label_map``.
    """
    named = _names(label_map, names)
    present, counts = np.unique(classes[inside], return_counts=True)
    found: dict[str, int] = {}
    unnamed: list[int] = []
    for number, count in zip(present.tolist(), counts.tolist(), strict=True):
        if number not in named:
            unnamed.append(number)
        name = named.get(number, f"class {number}")
        found[name] = found.get(name, 0) + count
    ranked = dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
    if not unnamed:
        return ranked, (), ()
    listed = ", ".join(str(number) for number in unnamed[:12]) + (" ..." if len(unnamed) > 12 else "")
    return ranked, (f"what class numbers {listed} mean is not known: give label_map",), ("unnamed_classes",)


def class_layers(
    classes: NDArray[np.int32],
    inside: NDArray[np.bool_],
    counts: Mapping[str, int],
    label_map: Mapping[str, Sequence[int]] | None,
    names: Mapping[str, str] | None,
) -> tuple[NDArray[np.uint8], list[Layer]]:
    """A picture of the classes, uint8 (rows, columns), and the layers that draw it: nine, then the rest."""
    named = _names(label_map, names)
    total = sum(counts.values())
    numbers = {name: place for place, name in enumerate(list(counts)[: len(_COLOURS) - 1], start=1)}
    shown = np.zeros(classes.shape, np.uint8)
    for number in np.unique(classes[inside]).tolist():
        name = named.get(number, f"class {number}")
        shown[inside & (classes == number)] = numbers.get(name, len(_COLOURS))
    layers = [
        Layer(place, _COLOURS[place - 1], f"{name} {100 * counts[name] / total:.2f} %")
        for name, place in numbers.items()
    ]
    rest = total - sum(counts[name] for name in numbers)
    if rest:
        layers.append(Layer(len(_COLOURS), _COLOURS[-1], f"other classes {100 * rest / total:.2f} %"))
    return shown, layers


def _names(label_map: Mapping[str, Sequence[int]] | None, names: Mapping[str, str] | None) -> dict[int, str]:
    named: dict[int, str] = {}
    for number, name in (names or {}).items():
        if number.strip().lstrip("-").isdigit():
            named[int(number)] = name
    given: dict[int, str] = {}
    for name, numbers in (label_map or {}).items():
        for number in numbers:
            if given.setdefault(number, name) != name:
                raise ToolError(
                    "invalid_argument",
                    f"label_map: {number} stands for {given[number]} and for {name}",
                    argument="label_map",
                )
    named |= given
    return named
