"""Agreement of single values: numbers (constant or measured), texts, boxes, categories, plain JSON, calculations.

A *measured* number is one that the reference takes from an earlier observation (``$ref``); a prediction may round it.
Two calculations agree if both expressions, with their variables, have the same value.
"""

import math
import re
import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from itertools import chain, islice, product
from typing import Any, cast

from pydantic import JsonValue

from agrotools.core.lazy import np, optimize
from agrotools.core.record import Arguments, is_ref, iter_refs, literal_value
from agrotools.text.expression_functions import ExpressionError
from agrotools.text.expressions import evaluate, numbers_written
from agrotools.text.normalise import TOKEN, late_pattern, normalise

MEASURED_TOLERANCE = 1e-3
"""Relative tolerance of measured numbers."""
LEAST_DIGITS = 3
"""Minimum number of significant digits of a rounded number."""
TEXT_F1 = 0.8
BOX_IOU = 0.5

Number = int | float
Box = tuple[float, float, float, float]

_IMAGE_EXTENSION = late_pattern(r"\.(?:jpe?g|png|tiff?|bmp|webp)$")
_NUMBER = late_pattern(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def as_number(value: object) -> Number | None:
    """Return ``value`` if it is a finite number, not a boolean; else None."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return value if abs(value) <= sys.float_info.max else None


def literal_and_measured(reference: JsonValue, measured: bool = False) -> tuple[JsonValue, bool]:
    """Return the literal of a reference value, and whether it is measured."""
    if is_ref(reference):
        return cast("dict[str, JsonValue]", reference).get("value"), True
    return reference, measured


def same_json(first: JsonValue, second: JsonValue, *, rounded: bool = False) -> bool:
    """True if two JSON values are equal: 1 equals 1.0, but true does not equal 1.

    ``rounded``: numbers may differ by the rounding of floats (relative 1e-9, absolute 1e-12).
    """
    same = partial(same_json, rounded=rounded)
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if rounded and isinstance(first, int | float) and isinstance(second, int | float):
        return math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-12)
    return first == second


def is_rounding(predicted: Number, reference: Number) -> bool:
    """True if ``predicted`` is ``reference`` rounded to its written digits, at least three significant ones.

    38.2 is a rounding of 38.1973, and 12,000 of 12,043 (three digits); 38 is not a rounding of 38.1973. Trailing zeros
    do not count as written digits because JSON does not preserve them. A tie may be rounded up or down.
    """
    rounded, exact = Decimal(repr(predicted)), Decimal(repr(reference))
    if not rounded or not exact:
        return rounded == exact
    digits = max(LEAST_DIGITS, len(rounded.normalize().as_tuple().digits))
    return abs(rounded - exact) * 2 <= Decimal(1).scaleb(exact.adjusted() - digits + 1)


def numbers_agree(
    predicted: Number, reference: Number, *, measured: bool, relative: float = 0.0
) -> bool:
    """True if two numbers agree: measured ones up to rounding or 1e-3, constants up to ``relative`` (0: exactly)."""
    reach = MEASURED_TOLERANCE if measured else relative
    is_close = predicted == reference or abs(predicted - reference) <= reach * abs(reference)
    return is_close or (measured and is_rounding(predicted, reference))


def text_f1(predicted: str, reference: str) -> float:
    """Return the F1 of the tokens (words, CJK characters) of two texts, 0..1; 1 if equal after normalisation."""
    first, second = normalise(predicted).strip(), normalise(reference).strip()
    if first == second:
        return 1.0
    tokens, gold = Counter(TOKEN.findall(first)), Counter(TOKEN.findall(second))
    shared = (tokens & gold).total()
    return 2 * shared / (tokens.total() + gold.total()) if shared else 0.0


def as_box(value: JsonValue) -> Box | None:
    """Return ``[x0, y0, x1, y1]`` as a tuple of numbers; None for any other value."""
    if not isinstance(value, list) or len(value) != 4:
        return None
    edges = [as_number(edge) for edge in value]
    return None if None in edges else cast(Box, tuple(edges))


def clipped(box: Box, frame: tuple[float, float] | None) -> Box:
    """Clip ``box`` to the image of size ``frame`` (width, height); without ``frame`` only at 0."""
    width, height = frame or (math.inf, math.inf)
    x0, y0, x1, y1 = box
    return max(x0, 0), max(y0, 0), min(x1, width), min(y1, height)


def box_iou(first: Box, second: Box) -> float:
    """Return the intersection over union of two boxes [x0, y0, x1, y1], 0..1; 0 for a box without area."""

    def area(x0: float, y0: float, x1: float, y1: float) -> float:
        return max(0.0, x1 - x0) * max(0.0, y1 - y0)

    shared = area(
        max(first[0], second[0]),
        max(first[1], second[1]),
        min(first[2], second[2]),
        min(first[3], second[3]),
    )
    return shared / (area(*first) + area(*second) - shared) if shared else 0.0


def category(value: JsonValue) -> str | Number | None:
    """Return a category in the form used for comparison.

    Text loses case, image extension and differences in separators; a number written as text becomes a number.
    """
    if not isinstance(value, str):
        return as_number(value)
    text = _IMAGE_EXTENSION.sub("", normalise(value).strip())
    if _NUMBER.fullmatch(text):
        number = as_number(float(text))
        return number if number is not None else text
    return " ".join(re.split(r"[\s_-]+", text)).strip()


def categories_agree(
    predicted: str | Number, reference: str | Number, *, measured: bool = False
) -> bool:
    """True if two categories are the same.

    Numbers agree within 1e-3 relative, but whole numbers (years, doses) must be equal unless they are measured.
    """
    if isinstance(predicted, str) or isinstance(reference, str):
        return predicted == reference
    if predicted == round(predicted) and reference == round(reference) and not measured:
        return predicted == reference
    return numbers_agree(predicted, reference, measured=measured, relative=MEASURED_TOLERANCE)


def one_to_one(agree: Sequence[Sequence[bool]]) -> bool:
    """True if each row of a square matrix can be matched to a distinct column that it agrees with (bipartite)."""
    matrix = np.array(agree, dtype=bool)
    return bool(matrix[optimize.linear_sum_assignment(matrix, maximize=True)].all())


MOST_ROUNDING = 0.006
"""Upper bound of the relative difference between a number and its rounding to three digits."""
MOST_READINGS = 256
"""Maximum number of ways tried to replace rounded numbers by measured ones."""
MOST_COMMON = 100
"""Whole numbers up to this value may as well be constants and do not count as observations."""
_SHIFTS = (1, 100, 0.01, 10, 0.1, 1000, 0.001, 10_000, 0.0001, 1_000_000, 0.000001)
_FACTORS = (2, 0, 1000, -1000)
"""Factors of a number that tell whether it has an effect on a result, also by a limit or as the largest of several."""
MOST_NUMBERS = 100
"""In a call with more numbers than this, either all or none of them are replaced by measured ones."""


def expressions_agree(
    predicted: tuple[JsonValue, JsonValue],
    reference: tuple[JsonValue, JsonValue],
    measured: Sequence[Number],
    observed: Sequence[Number] = (),
) -> tuple[bool, dict[str, JsonValue]]:
    """Compare the values of two (expression, variables) pairs; return the verdict and its details.

    A number of the prediction, in its expression or its variables, that agrees with one of ``measured`` (values that
    the reference took from observations) stands for that exact value. So ``8.89 / 1.03`` agrees with ``a / b`` if a is
    8.8912 and b is 1.0263, both measured. If a number may also be meant as written, both readings are tried.

    If the reference calculates with observations, the right value is not enough: the prediction must calculate with the
    observations too, otherwise the result was worked out before the call (``in_head`` in the details). A number that
    never changes the result, as in ``915 + 0*61``, is not calculated with. Constants may be combined, and a unit may be
    converted by a power of ten. Other numbers from ``observed`` may replace the reference's.
    """
    detail: dict[str, JsonValue] = {}
    try:
        expected = evaluate(_text(reference[0]), _variables(literal_value(reference[1])))
    except ExpressionError as error:
        same = normalise(str(predicted[0])).split() == normalise(str(reference[0])).split()
        return same, {"reference": f"cannot be evaluated: {error}"}
    detail["reference"] = expected
    try:
        expression, variables = _text(predicted[0]), _variables(predicted[1])
        result = evaluate(expression, variables)
    except ExpressionError as error:
        return False, {**detail, "refused": str(error)}
    detail["predicted"] = result
    if same_value(result, expected):
        return _from_observations(expression, variables, reference, observed, detail)
    for replaced in _readings(expression, variables, measured):
        try:
            value = replaced()
        except ExpressionError:
            continue
        if same_value(value, expected):
            detail |= {"predicted": value, "read_as_measured": True}
            return _from_observations(expression, variables, reference, observed, detail)
    return False, detail


def _from_observations(
    expression: str,
    variables: Mapping[str, JsonValue],
    reference: tuple[JsonValue, JsonValue],
    observed: Sequence[Number],
    detail: dict[str, JsonValue],
) -> tuple[bool, dict[str, JsonValue]]:
    """Check that a prediction with the right value contains the observations used by the reference."""
    literal, all_measured = literal_and_measured(reference[1])
    values = _variables(literal_value(literal))
    measured = numbers_in(values) if all_measured else measured_numbers(_variables(literal))
    operands = {abs(number) for number in measured} - {0}
    operands &= _of_effect(_text(reference[0]), values) if operands else set()
    if not operands:
        return True, detail
    written = _of_effect(expression, variables)
    missing = [operand for operand in operands if not _stands_in(operand, sorted(written))]
    if missing:
        ordered = sorted(operands)
        others = [number for number in written if not _stands_in(number, ordered)]
        seen = sorted(
            {
                abs(number)
                for number in observed
                if number != round(number) or abs(number) > MOST_COMMON
            }
        )
        missing = missing[sum(_stands_in(number, seen) for number in others) :]
    return not missing, {**detail, "in_head": True} if missing else detail


def _of_effect(expression: str, variables: Mapping[str, JsonValue]) -> set[Number]:
    """Return the absolute values of the numbers in a call other than 0, without those that never change its result.

    In a call with more than :data:`MOST_NUMBERS` all of them count, because each takes several evaluations.
    """
    in_expression = numbers_written(expression, variables)
    written = [*in_expression, *numbers_in(dict(variables))]
    different = {abs(each) for each in written} - {0}
    if len(written) > MOST_NUMBERS:
        return different

    def changes(number: Number) -> bool:
        results: list[JsonValue] = []
        for factor in (1, *_FACTORS):
            reading = [each * factor if abs(each) == number else each for each in written]
            with suppress(ExpressionError):
                results.append(_evaluated(expression, variables, reading, len(in_expression)))
                if not same_value(results[0], results[-1]):
                    return True
        return len(results) < 2

    return {number for number in different if changes(number)}


def _stands_in(operand: Number, ordered: Sequence[Number]) -> bool:
    """True if a positive number is among ``ordered`` ones, possibly rounded or shifted by a power of ten."""
    for shift in _SHIFTS:
        value = operand * shift
        at = bisect_left(ordered, value)
        for number in ordered[max(0, at - 1) : at + 2]:
            if numbers_agree(number, value, measured=True) or numbers_agree(
                value, number, measured=True
            ):
                return True
    return False


def same_value(first: JsonValue, second: JsonValue) -> bool:
    """True if two values of expressions are equal: numbers within 1e-9 relative, texts after normalisation."""
    a, b = as_number(first), as_number(second)
    if a is not None and b is not None:
        return math.isclose(
            a, b, rel_tol=1e-9, abs_tol=1e-12
        )  # a difference of 0 agrees with one of 1e-17
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same_value, first, second))
    if isinstance(first, str) and isinstance(second, str):
        return normalise(first).strip() == normalise(second).strip()
    return type(first) is type(second) and first == second


def measured_numbers(arguments: Arguments) -> list[Number]:
    """Return all numbers that the arguments of a reference take from observations."""
    return [
        number for _, _, literal in iter_refs(dict(arguments)) for number in numbers_in(literal)
    ]


def _text(expression: JsonValue) -> str:
    expression = literal_value(expression)
    if not isinstance(expression, str):
        raise ExpressionError("the expression is no text", hint="write it in quotes")
    return expression


def _variables(variables: JsonValue) -> dict[str, Any]:
    return dict(variables) if isinstance(variables, dict) else {}


def numbers_in(value: JsonValue) -> Iterator[Number]:
    """Yield all numbers in a value, at any depth."""
    number = as_number(value)
    if number is not None:
        yield number
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from numbers_in(item)


def _readings(
    expression: str, variables: Mapping[str, JsonValue], measured: Sequence[Number]
) -> Iterator[Callable[[], JsonValue]]:
    """Yield evaluations of the prediction with some of its numbers replaced by measured ones, most likely first."""
    constants = numbers_written(expression, variables)
    written = [*constants, *numbers_in(dict(variables))]
    ordered = sorted({*measured, *(-value for value in measured if value < 0)})
    options = {number: _options(number, ordered) for number in dict.fromkeys(written)}
    open_numbers = [number for number, choices in options.items() if len(choices) > 1]
    if not open_numbers:
        return
    nearest = {number: choices[0] for number, choices in options.items()}
    readings = iter([[nearest[number] for number in written]])
    if len(written) <= MOST_NUMBERS:
        alike = (
            [dict(zip(open_numbers, choice, strict=True)).get(number, number) for number in written]
            for choice in product(*(options[number] for number in open_numbers))
        )
        counts = Counter(written)
        ambiguous = any(len(options[number]) > 1 and counts[number] > 1 for number in open_numbers)
        apart = (
            (list(choice) for choice in product(*(options[number] for number in written)))
            if ambiguous
            else ()
        )
        readings = chain(readings, islice(alike, MOST_READINGS), islice(apart, MOST_READINGS))
    for reading in readings:
        yield partial(_evaluated, expression, variables, reading, len(constants))


def _options(number: Number, ordered: Sequence[Number]) -> list[Number]:
    """Return the values that ``number`` may stand for: up to three measured values, nearest first, and itself."""
    reach = MOST_ROUNDING * abs(number)
    near = ordered[bisect_left(ordered, number - reach) : bisect_right(ordered, number + reach)]
    agreeing = [value for value in near if numbers_agree(number, value, measured=True)]
    return [*dict.fromkeys([*sorted(agreeing, key=lambda value: abs(value - number))[:3], number])]


def _evaluated(
    expression: str, variables: Mapping[str, JsonValue], reading: Sequence[Number], n_constants: int
) -> JsonValue:
    """Return the value with other numbers: first those of the expression, then those of the variables."""
    values = iter(reading[n_constants:])
    replaced = {name: _replaced(value, values) for name, value in variables.items()}
    return evaluate(expression, replaced, constants=reading[:n_constants])


def _replaced(value: JsonValue, numbers: Iterator[Number]) -> JsonValue:
    if as_number(value) is not None:
        return next(numbers)
    if isinstance(value, list):
        return [_replaced(item, numbers) for item in value]
    if isinstance(value, dict):
        return {key: _replaced(item, numbers) for key, item in value.items()}
    return cast(JsonValue, value)
