"""When two calls of a calculation agree: both expressions, with their variables, have the same value."""

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice, product
from typing import Any, cast
from unicodedata import normalize

from pydantic import JsonValue

from agrotools.core.refs import iter_refs, literal_value
from agrotools.core.trajectory import Arguments
from agrotools.text.agreement_values import Number, as_number, numbers_agree, opened
from agrotools.text.expressions import evaluate, numbers_written
from agrotools.text.function_arguments import ExpressionError
from agrotools.text.normalise import normalise

RELATIVE = 1e-9
"""Relative tolerance of the values; absolute 1e-12, so that a difference of 0 agrees with one of 1e-17."""
MOST_ROUNDING = 0.006
"""No number is further from its rounding to three digits, relative to it."""
MOST_READINGS = 256
"""Ways tried to read rounded numbers as measured ones."""
MOST_COMMON = 100
"""Whole numbers up to this are as likely constants as observations."""
_SHIFTS = (1, 100, 0.01, 10, 0.1, 1000, 0.001, 10_000, 0.0001, 1_000_000, 0.000001)
_NAME = re.compile(r"[^\W\d]\w*")
MOST_NUMBERS = 100
"""With more numbers than this in a call, all are read as measured ones, or none."""


def expressions_agree(
    predicted: tuple[JsonValue, JsonValue],
    reference: tuple[JsonValue, JsonValue],
    measured: Sequence[Number],
    observed: Sequence[Number] = (),
) -> tuple[bool, dict[str, JsonValue]]:
    """Whether two (expression, variables) have the same value, and how that came about.

    A number of the prediction, in its expression or its variables, that agrees with one of ``measured`` (values that
    the reference took from observations) stands for that exact value. So ``8.89 / 1.03`` agrees with ``a / b`` where a
    is 8.8912 and b 1.0263, both measured. Where a number may also be meant as written, both readings are tried.

    The right value is not enough where the reference calculates it from observations: they have to be in the
    prediction too, else it was worked out before the call (``in_head`` in the detail). Constants may be drawn together,
    and a unit may be converted by a power of ten. Other numbers of ``observed`` may stand in place of the reference's.
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
        found = evaluate(expression, variables)
    except ExpressionError as error:
        return False, {**detail, "refused": str(error)}
    detail["predicted"] = found
    if same_value(found, expected):
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
    """Whether a prediction of the right value holds the observations that the reference calculates with."""
    operands = {abs(number) for number in _operands(*reference)} - {0}
    if not operands:
        return True, detail
    used = _used(expression, variables)
    written = {abs(number) for number in (*numbers_written(expression, variables), *numbers_in(used))} - {0}
    missing = [operand for operand in operands if not _stands_in(operand, sorted(written))]
    if missing:
        ordered = sorted(operands)
        others = [number for number in written if not _stands_in(number, ordered)]
        seen = sorted({abs(number) for number in observed if number != round(number) or abs(number) > MOST_COMMON})
        missing = missing[sum(_stands_in(number, seen) for number in others) :]
    return not missing, {**detail, "in_head": True} if missing else detail


def _operands(expression: JsonValue, variables: JsonValue) -> list[Number]:
    """The numbers that the expression of a reference takes from observations."""
    literal, measured = opened(variables)
    used = _used(_text(expression), literal if isinstance(literal, dict) else {})
    return list(numbers_in(used)) if measured else measured_numbers(used)


def _used(expression: str, variables: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The variables that an expression names."""
    names = set(_NAME.findall(normalize("NFKC", expression)))
    return {name: value for name, value in variables.items() if normalize("NFKC", name) in names}


def _stands_in(operand: Number, ordered: Sequence[Number]) -> bool:
    """Whether a positive number stands among others, rounded or in a unit that differs by a power of ten."""
    for shift in _SHIFTS:
        value = operand * shift
        at = bisect_left(ordered, value)
        for number in ordered[max(0, at - 1) : at + 2]:
            if numbers_agree(number, value, measured=True) or numbers_agree(value, number, measured=True):
                return True
    return False


def same_value(first: JsonValue, second: JsonValue) -> bool:
    """Whether two values of expressions are the same: numbers up to 1e-9 relative, texts after normalisation."""
    a, b = as_number(first), as_number(second)
    if a is not None and b is not None:
        return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=1e-12)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same_value, first, second))
    if isinstance(first, str) and isinstance(second, str):
        return normalise(first).strip() == normalise(second).strip()
    return type(first) is type(second) and first == second


def measured_numbers(arguments: Arguments) -> list[Number]:
    """All numbers that the arguments of a reference take from observations."""
    return [number for _, _, literal in iter_refs(dict(arguments)) for number in numbers_in(literal)]


def _text(expression: JsonValue) -> str:
    expression = literal_value(expression)
    if not isinstance(expression, str):
        raise ExpressionError("the expression is no text", hint="write it in quotes")
    return expression


def _variables(variables: JsonValue) -> dict[str, Any]:
    return dict(variables) if isinstance(variables, dict) else {}


def numbers_in(value: JsonValue) -> Iterator[Number]:
    """All numbers in a value, at any depth."""
    number = as_number(value)
    if number is not None:
        yield number
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from numbers_in(item)


def _readings(
    expression: str, variables: Mapping[str, JsonValue], measured: Sequence[Number]
) -> Iterator[Callable[[], JsonValue]]:
    """Evaluations of the prediction with some of its numbers replaced by measured ones, the likeliest first."""
    written = [*numbers_written(expression, variables), *numbers_in(dict(variables))]
    in_expression = len(written) - sum(1 for _ in numbers_in(dict(variables)))
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
        apart = (list(choice) for choice in product(*(options[number] for number in written))) if ambiguous else ()
        readings = chain(readings, islice(alike, MOST_READINGS), islice(apart, MOST_READINGS))
    for reading in readings:
        constants, values = reading[:in_expression], iter(reading[in_expression:])
        replaced = {name: _replaced(value, values) for name, value in variables.items()}
        yield lambda replaced=replaced, constants=constants: evaluate(expression, replaced, constants=constants)


def _options(number: Number, ordered: Sequence[Number]) -> list[Number]:
    """What ``number`` may stand for: the measured values that it agrees with, nearest first, and itself."""
    reach = MOST_ROUNDING * abs(number)
    near = ordered[bisect_left(ordered, number - reach) : bisect_right(ordered, number + reach)]
    agreeing = [value for value in near if numbers_agree(number, value, measured=True)]
    return [*dict.fromkeys([*sorted(agreeing, key=lambda value: abs(value - number))[:3], number])]


def _replaced(value: JsonValue, numbers: Iterator[Number]) -> JsonValue:
    if as_number(value) is not None:
        return next(numbers)
    if isinstance(value, list):
        return [_replaced(item, numbers) for item in value]
    if isinstance(value, dict):
        return {key: _replaced(item, numbers) for key, item in value.items()}
    return cast(JsonValue, value)
