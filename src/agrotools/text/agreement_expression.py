"""When two calls of a calculation agree: both expressions, with their variables, have the same value."""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice, product
from typing import Any, cast

from pydantic import JsonValue

from agrotools.core.action import Arguments
from agrotools.core.refs import iter_refs, literal_value
from agrotools.text.agreement_values import Number, as_number, numbers_agree
from agrotools.text.expressions import evaluate, numbers_written
from agrotools.text.function_arguments import ExpressionError
from agrotools.text.normalise import normalise

RELATIVE = 1e-9
"""Relative tolerance of the values; absolute 1e-12, so that a difference of 0 agrees with one of 1e-17."""
MOST_ROUNDING = 0.006
"""No number is further from its rounding to three digits, relative to it."""
MOST_READINGS = 256
"""Ways tried to read rounded numbers as measured ones."""
MOST_NUMBERS = 100
"""With more numbers than this in a call, all are read as measured ones, or none."""


def expressions_agree(
    predicted: tuple[JsonValue, JsonValue], reference: tuple[JsonValue, JsonValue], measured: Sequence[Number]
) -> tuple[bool, dict[str, JsonValue]]:
    """Whether two (expression, variables) have the same value, and how that came about.

    A number of the prediction, in its expression or its variables, that agrees with one of ``measured`` (values that
    the reference took from observations) stands for that exact value. So ``8.89 / 1.03`` agrees with ``a / b`` where a
    is 8.8912 and b 1.0263, both measured. Where a number may also be meant as written, both readings are tried.
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
        return True, detail
    for replaced in _readings(expression, variables, measured):
        try:
            value = replaced()
        except ExpressionError:
            continue
        if same_value(value, expected):
            return True, {**detail, "predicted": value, "read_as_measured": True}
    return False, detail


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
    return [number for _, _, literal in iter_refs(dict(arguments)) for number in _numbers(literal)]


def _text(expression: JsonValue) -> str:
    expression = literal_value(expression)
    if not isinstance(expression, str):
        raise ExpressionError("the expression is no text", hint="write it in quotes")
    return expression


def _variables(variables: JsonValue) -> dict[str, Any]:
    return dict(variables) if isinstance(variables, dict) else {}


def _numbers(value: JsonValue) -> Iterator[Number]:
    number = as_number(value)
    if number is not None:
        yield number
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _numbers(item)


def _readings(
    expression: str, variables: Mapping[str, JsonValue], measured: Sequence[Number]
) -> Iterator[Callable[[], JsonValue]]:
    """Evaluations of the prediction with some of its numbers replaced by measured ones, the likeliest first."""
    written = [*numbers_written(expression, variables), *_numbers(dict(variables))]
    in_expression = len(written) - sum(1 for _ in _numbers(dict(variables)))
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
