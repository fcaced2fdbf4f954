"""When two single values agree: numbers (constant or measured), texts, boxes, categories, plain JSON.

A *measured* number is one that a reference takes from an earlier observation (``$ref``): whoever repeats it may round.
"""

import math
import re
import sys
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import cast

from pydantic import JsonValue

from agrotools.core.refs import is_ref
from agrotools.text.normalise import CJK, WORD, normalise

MEASURED_TOLERANCE = 1e-3
"""Relative tolerance of measured numbers."""
LEAST_DIGITS = 3
"""Significant digits that a rounded number must keep at least."""
TEXT_F1 = 0.8
BOX_IOU = 0.5

Number = int | float
Box = tuple[float, float, float, float]

_TOKEN = re.compile(rf"{WORD}+|[{CJK}]")
_IMAGE_EXTENSION = re.compile(r"\.(?:jpe?g|png|tiff?|bmp|webp)$")
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def as_number(value: object) -> Number | None:
    """``value`` if it is a finite number (true and false are none), else None."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return value if abs(value) <= sys.float_info.max else None


def opened(reference: JsonValue, measured: bool = False) -> tuple[JsonValue, bool]:
    """The literal of a reference value, and whether it is measured."""
    if is_ref(reference):
        return cast("dict[str, JsonValue]", reference).get("value"), True
    return reference, measured


def same_json(first: JsonValue, second: JsonValue) -> bool:
    """Equality of JSON values: 1 equals 1.0, but true does not equal 1."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same_json, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same_json(first[key], second[key]) for key in first)
    return first == second


def is_rounding(predicted: Number, reference: Number) -> bool:
    """Whether ``predicted`` is ``reference`` rounded to the digits that it gives, at least three significant.

    38.2 is a rounding of 38.1973, and 12,000 of 12,043 (three digits); 38 is not one of 38.1973. Zeros at the end tell
    nothing of the digits given, since JSON does not keep them. Half a unit counts as rounded either way.
    """
    given, exact = Decimal(repr(predicted)), Decimal(repr(reference))
    if not given or not exact:
        return given == exact
    digits = max(LEAST_DIGITS, len(given.normalize().as_tuple().digits))
    return abs(given - exact) * 2 <= Decimal(1).scaleb(exact.adjusted() - digits + 1)


def close(predicted: Number, reference: Number, relative: float) -> bool:
    """Whether ``predicted`` is within ``relative`` of ``reference``."""
    return predicted == reference or abs(predicted - reference) <= relative * abs(reference)


def numbers_agree(predicted: Number, reference: Number, *, measured: bool, relative: float = 0.0) -> bool:
    """Whether two numbers agree: measured ones up to rounding or 1e-3, constants up to ``relative`` (exactly)."""
    if measured:
        return close(predicted, reference, MEASURED_TOLERANCE) or is_rounding(predicted, reference)
    return close(predicted, reference, relative)


def text_f1(predicted: str, reference: str) -> float:
    """F1 of the tokens (words, CJK characters) of two texts, 0..1; 1 if both are the same after normalisation."""
    first, second = normalise(predicted).strip(), normalise(reference).strip()
    if first == second:
        return 1.0
    tokens, gold = Counter(_TOKEN.findall(first)), Counter(_TOKEN.findall(second))
    shared = (tokens & gold).total()
    return 2 * shared / (tokens.total() + gold.total()) if shared else 0.0


def as_box(value: JsonValue) -> Box | None:
    """``[x0, y0, x1, y1]`` as numbers, else None."""
    if not isinstance(value, list) or len(value) != 4:
        return None
    edges = [as_number(edge) for edge in value]
    return None if None in edges else cast(Box, tuple(edges))


def clipped(box: Box, frame: tuple[float, float] | None) -> Box:
    """``box`` inside the image: not below 0 and, where the image's (width, height) is known, not beyond it."""
    width, height = frame or (math.inf, math.inf)
    x0, y0, x1, y1 = box
    return max(x0, 0), max(y0, 0), min(x1, width), min(y1, height)


def box_iou(first: Box, second: Box) -> float:
    """Intersection over union of two boxes [x0, y0, x1, y1], 0..1; 0 for a box without area."""

    def area(x0: float, y0: float, x1: float, y1: float) -> float:
        return max(0.0, x1 - x0) * max(0.0, y1 - y0)

    shared = area(
        max(first[0], second[0]), max(first[1], second[1]), min(first[2], second[2]), min(first[3], second[3])
    )
    return shared / (area(*first) + area(*second) - shared) if shared else 0.0


def category(value: JsonValue) -> str | Number | None:
    """A category as it is compared: text without case, separators and image extension; a written number is a number."""
    if not isinstance(value, str):
        return as_number(value)
    text = _IMAGE_EXTENSION.sub("", normalise(value).strip())
    if _NUMBER.fullmatch(text):
        number = as_number(float(text))
        return number if number is not None else text
    return " ".join(re.split(r"[\s_-]+", text)).strip()


def categories_agree(predicted: str | Number, reference: str | Number, *, measured: bool = False) -> bool:
    """Whether two categories are the same. Numbers are up to 1e-3, but whole numbers (years, doses) exactly."""
    if isinstance(predicted, str) or isinstance(reference, str):
        return predicted == reference
    if predicted == round(predicted) and reference == round(reference) and not measured:
        return predicted == reference
    return numbers_agree(predicted, reference, measured=measured, relative=MEASURED_TOLERANCE)


def one_to_one(agree: Sequence[Sequence[bool]]) -> bool:
    """Whether each row can be given a column of its own that it agrees with (bipartite matching, Kuhn 1955)."""
    if any(len(row) != len(agree) for row in agree):
        return False
    row_of: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for column, agrees in enumerate(agree[row]):
            if agrees and column not in tried:
                tried.add(column)
                if column not in row_of or place(row_of[column], tried):
                    row_of[column] = row
                    return True
        return False

    return all(place(row, set()) for row in range(len(agree)))
