"""Functions that expressions may call, on numbers and lists, including statistics of one or two lists.

Arguments are plain JSON values; every error has a hint on what to write instead. Sums are rounded once
(``math.fsum``), means and variances computed in exact fractions (:mod:`statistics`).
"""

import itertools
import math
import operator
import statistics
from collections.abc import Callable, Sequence
from typing import cast

from pydantic import JsonValue

from agrotools.core.errors import AgrotoolsError

Number = int | float
Function = Callable[..., JsonValue]


class ExpressionError(AgrotoolsError):
    """An expression that cannot be evaluated. ``message`` is the reason, ``hint`` (required) what to write instead."""

    hint: str

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message, hint=hint)


def kind_of(value: object) -> str:
    """Return the plain name of a value's type: ``a number``, ``a list``, ``text``..."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, (list, tuple)) else "an object"


def number(value: object, of: str) -> Number:
    """Return ``value`` as a number; true is 1 and false is 0, so that comparisons can be summed.

    Raises:
        ExpressionError: ``value`` is not a number; ``of`` names it in the message.
    """
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (int, float)):
        return value
    raise ExpressionError(
        f"{of} needs a number, not {kind_of(value)}", hint=f"got {excerpt(value)}"
    )


def numbers(value: object, of: str, least: int = 1) -> list[Number]:
    """Return ``value`` as a list of at least ``least`` numbers.

    Raises:
        ExpressionError: ``value`` is not a list, has an element that is not a number, or is too short.
    """
    if not isinstance(value, list):
        raise ExpressionError(
            f"{of} needs a list of numbers, not {kind_of(value)}",
            hint="write the numbers as [1.5, 2, 3.25]",
        )
    items = cast("list[object]", value)
    if len(items) < least:
        need = "one number" if least == 1 else f"{least} numbers"
        raise ExpressionError(
            f"{of} needs at least {need}, not {len(items)}", hint="give a longer list"
        )
    for position, item in enumerate(items):
        if not isinstance(item, (int, float)):
            why = f"{of} needs a list of numbers, but element [{position}] is {kind_of(item)}"
            raise ExpressionError(why, hint="leave out what is not a number")
    return [int(item) if isinstance(item, bool) else item for item in cast("list[Number]", items)]


def paired(
    first: object, second: object, of: str, least: int = 1
) -> tuple[list[Number], list[Number]]:
    """Return two lists of numbers of the same length, at least ``least``."""
    left, right = numbers(first, of), numbers(second, of)
    if len(left) != len(right):
        why = f"{of} needs two lists of the same length, not {len(left)} and {len(right)}"
        raise ExpressionError(why, hint="pair each value of the first list with one of the second")
    numbers(first, of, least)
    return left, right


def excerpt(value: object) -> str:
    """Return ``value`` as text of at most 60 characters for a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def spread(values: Sequence[object], of: str) -> list[Number]:
    """Return numbers passed either as one list or as separate arguments."""
    if len(values) == 1 and isinstance(values[0], list):
        return numbers(cast(object, values[0]), of)
    if not values:
        raise ExpressionError(f"{of} needs at least one number", hint=f"write {of}([1, 2, 3])")
    return [number(value, of) for value in values]


def whole(value: object, of: str, low: int, high: int) -> int:
    """Return ``value`` as a whole number from ``low`` to ``high``."""
    as_number = number(value, of)
    if as_number != int(as_number) or not low <= as_number <= high:
        least, most = (f"{limit:g}" if abs(limit) > 1e15 else str(limit) for limit in (low, high))
        what = "a whole number"
        if as_number == int(as_number):
            what = f"at least {least}" if as_number < low else f"at most {most}"
        raise ExpressionError(
            f"{of} must be {what}, not {excerpt(value)}",
            hint=f"give a whole number from {least} to {most}",
        )
    return int(as_number)


# --- numbers -------------------------------------------------------------------------------------------------------


def real_function(name: str, function: Callable[[float], float], domain: str) -> Function:
    """Wrap a function of one real number, so that an error outside its domain names the domain."""

    def apply(x: JsonValue) -> JsonValue:
        value = number(x, name)
        try:
            return function(value)
        except ValueError:
            raise ExpressionError(
                f"{name}({excerpt(value)}) does not exist", hint=f"{name} takes {domain}"
            ) from None

    apply.__doc__ = f"``{name}(x)``; {domain}."
    return apply


def rounded(x: JsonValue, digits: JsonValue = 0) -> JsonValue:
    """Round to ``digits`` decimals (-15..15), ties to even; an integer for ``digits <= 0``."""
    places = whole(digits, "round: digits", -15, 15)
    value = number(x, "round")
    return round(value, places) if places > 0 else int(round(value, places))


def logarithm(x: JsonValue, base: JsonValue = math.e) -> JsonValue:
    """Logarithm of ``x > 0``: natural, or to ``base`` (> 0, not 1)."""
    value, to_base = number(x, "log"), number(base, "log: base")
    if value <= 0:
        raise ExpressionError(
            f"log({excerpt(value)}) does not exist", hint="log takes a number above 0"
        )
    if to_base <= 0 or to_base == 1:
        raise ExpressionError(
            f"log: base {excerpt(to_base)} is no base", hint="give a base above 0 other than 1"
        )
    exact: dict[Number, Callable[[float], float]] = {math.e: math.log, 2: math.log2, 10: math.log10}
    return exact[to_base](value) if to_base in exact else math.log(value) / math.log(to_base)


def hypotenuse(x: JsonValue, y: JsonValue) -> JsonValue:
    """Length of the hypotenuse, ``sqrt(x**2 + y**2)``."""
    return math.hypot(number(x, "hypot"), number(y, "hypot"))


def atan2(y: JsonValue, x: JsonValue) -> JsonValue:
    """Angle of the point (x, y) in radians, -pi..pi."""
    return math.atan2(number(y, "atan2"), number(x, "atan2"))


def factorial(n: JsonValue) -> JsonValue:
    """``n!`` for whole n from 0 to 170."""
    return math.factorial(whole(n, "factorial: n", 0, 170))


def combinations(n: JsonValue, k: JsonValue) -> JsonValue:
    """Number of ways to choose ``k`` of ``n`` (whole numbers, 0 to 1000)."""
    return math.comb(whole(n, "comb: n", 0, 1000), whole(k, "comb: k", 0, 1000))


def clip(x: JsonValue, low: JsonValue, high: JsonValue) -> JsonValue:
    """``x`` limited to the range from ``low`` to ``high``."""
    bottom, top = number(low, "clip: low"), number(high, "clip: high")
    if bottom > top:
        raise ExpressionError("clip: low is above high", hint="write clip(x, low, high)")
    return min(max(number(x, "clip"), bottom), top)


# --- lists ---------------------------------------------------------------------------------------------------------


def length(values: JsonValue) -> JsonValue:
    """Number of elements of a list (or of characters of a text)."""
    if not isinstance(values, (list, str)):
        raise ExpressionError(
            f"len needs a list, not {kind_of(values)}", hint="write the values as [1, 2, 3]"
        )
    return len(values)


def sorted_numbers(values: JsonValue, descending: JsonValue = False) -> JsonValue:
    """The numbers in ascending order, or descending with ``descending=True``."""
    return [*sorted(numbers(values, "sorted", least=0), reverse=bool(descending))]


def differences(values: JsonValue) -> JsonValue:
    """Differences of consecutive numbers; one element shorter than the list."""
    items = numbers(values, "diff")
    return [later - earlier for earlier, later in itertools.pairwise(items)]


def scaled(values: JsonValue, factor: JsonValue) -> JsonValue:
    """Each number of a list times ``factor``."""
    by = number(factor, "scale: factor")
    return [item * by for item in numbers(values, "scale", least=0)]


def pluck(items: JsonValue, field: JsonValue) -> JsonValue:
    """The value of ``field`` of each object of a list."""
    if not isinstance(items, list) or not isinstance(field, str):
        raise ExpressionError(
            "pluck needs a list of objects and a field name", hint="write pluck(items, 'area_px')"
        )
    values: list[JsonValue] = []
    for position, item in enumerate(items):
        if not isinstance(item, dict) or field not in item:
            known = (
                f"its fields: {', '.join(item)}"
                if isinstance(item, dict)
                else f"it is {kind_of(item)}"
            )
            raise ExpressionError(f"pluck: element [{position}] has no field {field!r}", hint=known)
        values.append(item[field])
    return values


# --- choice by value -----------------------------------------------------------------------------------------------


def _labelled(
    labels: JsonValue, values: JsonValue, of: str
) -> tuple[list[JsonValue], list[Number]]:
    items = numbers(values, of)
    if not isinstance(labels, list) or len(labels) != len(items):
        raise ExpressionError(
            f"{of} needs one label for each value", hint=f"write {of}(['a', 'b'], [1, 2])"
        )
    return labels, items


def _position_of(name: str, chosen: Callable[[list[Number]], Number]) -> Function:
    def position(values: JsonValue) -> JsonValue:
        """Position (from 0) of the largest or smallest number; the first one if there are several."""
        items = numbers(values, name)
        return items.index(chosen(items))

    return position


def _label_of(name: str, chosen: Callable[[list[Number]], Number]) -> Function:
    def label(labels: JsonValue, values: JsonValue) -> JsonValue:
        """Label of the largest or smallest value; the first one if there are several."""
        names, items = _labelled(labels, values, name)
        return names[items.index(chosen(items))]

    return label


def labels_by_value(
    labels: JsonValue, values: JsonValue, descending: JsonValue = True
) -> JsonValue:
    """Labels sorted by value, largest first (smallest first with ``descending=False``); ties keep their order."""
    names, items = _labelled(labels, values, "labels_by_value")
    sense = -1 if descending else 1
    return [
        names[position]
        for position in sorted(range(len(items)), key=lambda position: sense * items[position])
    ]


CONSTANTS: dict[str, JsonValue] = {
    "pi": math.pi,
    "π": math.pi,
    "e": math.e,
    "true": True,
    "false": False,
}
"""Names with a fixed value; a variable of the same name takes precedence."""

GENERAL_FUNCTIONS: dict[str, Function] = {
    "abs": real_function("abs", abs, "any number"),
    "round": rounded,
    "floor": real_function("floor", math.floor, "any number"),
    "ceil": real_function("ceil", math.ceil, "any number"),
    "int": real_function("int", math.trunc, "any number; the part behind the point is dropped"),
    "float": real_function("float", float, "any number"),
    "sign": real_function(
        "sign", lambda value: (value > 0) - (value < 0), "any number; -1, 0 or 1"
    ),
    "sqrt": real_function("sqrt", math.sqrt, "a number from 0"),
    "cbrt": real_function("cbrt", math.cbrt, "any number"),
    "exp": real_function("exp", math.exp, "any number up to 709"),
    "log": logarithm,
    "ln": real_function("ln", math.log, "a number above 0"),
    "log2": real_function("log2", math.log2, "a number above 0"),
    "log10": real_function("log10", math.log10, "a number above 0"),
    "sin": real_function("sin", math.sin, "an angle in radians"),
    "cos": real_function("cos", math.cos, "an angle in radians"),
    "tan": real_function("tan", math.tan, "an angle in radians"),
    "asin": real_function("asin", math.asin, "a number from -1 to 1"),
    "acos": real_function("acos", math.acos, "a number from -1 to 1"),
    "atan": real_function("atan", math.atan, "any number"),
    "atan2": atan2,
    "degrees": real_function("degrees", math.degrees, "an angle in radians"),
    "radians": real_function("radians", math.radians, "an angle in degrees"),
    "hypot": hypotenuse,
    "factorial": factorial,
    "comb": combinations,
    "clip": clip,
    "len": length,
    "sorted": sorted_numbers,
    "diff": differences,
    "scale": scaled,
    "pluck": pluck,
    "argmax": _position_of("argmax", max),
    "argmin": _position_of("argmin", min),
    "label_of_max": _label_of("label_of_max", max),
    "label_of_min": _label_of("label_of_min", min),
    "labels_by_value": labels_by_value,
}
"""Functions by their name in an expression."""


# --- statistics of one list ------------------------------------------------------------------------------------------


def _of_numbers(name: str, function: Callable[[list[Number]], Number]) -> Function:
    def apply(*values: JsonValue) -> JsonValue:
        """Smallest, largest, mean or median number of a list or of several numbers; a mean is rounded once."""
        return function(spread(values, name))

    return apply


def total(*values: JsonValue) -> JsonValue:
    """Sum of a list or of several numbers, rounded once; exact for whole numbers."""
    items = spread(values, "sum")
    return sum(items) if all(isinstance(item, int) for item in items) else math.fsum(items)


def product(*values: JsonValue) -> JsonValue:
    """Product of a list or of several numbers."""
    result: Number = 1
    for item in spread(values, "prod"):
        result *= item
        if isinstance(result, int) and result.bit_length() > 1100:
            raise ExpressionError("prod: the result is too large", hint="keep numbers below 1e308")
    return result


def _spread_of(
    name: str,
    of_sample: Callable[[list[Number]], Number],
    of_population: Callable[[list[Number]], Number],
) -> Function:
    def apply(values: JsonValue, ddof: JsonValue = 1) -> JsonValue:
        """Spread of a sample (``ddof=1``, the default) or of a whole population (``ddof=0``)."""
        degrees = whole(ddof, f"{name}: ddof", 0, 1)
        items = numbers(values, name, least=1 + degrees)
        return of_sample(items) if degrees else of_population(items)

    return apply


def coefficient_of_variation(values: JsonValue) -> JsonValue:
    """Sample standard deviation divided by the absolute value of the mean, in percent."""
    items = numbers(values, "cv", least=2)
    centre = statistics.mean(items)
    if centre == 0:
        raise ExpressionError("cv does not exist where the mean is 0", hint="use std")
    return 100 * statistics.stdev(items) / abs(centre)


def percentile(values: JsonValue, q: JsonValue) -> JsonValue:
    """``q``-th percentile, q from 0 to 100, linear between order statistics (type 7 of Hyndman & Fan, 1996)."""
    items = sorted(numbers(values, "percentile"))
    share = number(q, "percentile: q")
    if not 0 <= share <= 100:
        raise ExpressionError(
            f"percentile: q must be from 0 to 100, not {excerpt(share)}",
            hint="write 95 for the 95th",
        )
    rank = share * (len(items) - 1) / 100
    below = math.floor(rank)
    if below == rank:
        return items[below]
    low, high = items[below], items[below + 1]
    return low + (high - low) * (rank - below)


def weighted_mean(values: JsonValue, weights: JsonValue) -> JsonValue:
    """Mean of ``values`` with ``weights`` (not negative, not all 0)."""
    items, by = paired(values, weights, "weighted_mean")
    if min(by) < 0 or max(by) == 0:
        raise ExpressionError(
            "weighted_mean: weights must not be negative and not all 0", hint="check the weights"
        )
    return math.fsum(item * weight for item, weight in zip(items, by, strict=True)) / math.fsum(by)


def _count(name: str, counts: Callable[[Number, Number], bool]) -> Function:
    def apply(values: JsonValue, limit: JsonValue) -> JsonValue:
        """Number of values greater or less than ``limit``."""
        bound = number(limit, f"{name}: limit")
        return sum(counts(item, bound) for item in numbers(values, name, least=0))

    return apply


# --- statistics of two lists ---------------------------------------------------------------------------------------


def correlation(x: JsonValue, y: JsonValue) -> JsonValue:
    """Pearson's correlation coefficient, -1..1, of two lists of the same length (at least 2)."""
    left, right = paired(x, y, "corr", least=2)
    if min(left) == max(left) or min(right) == max(right):
        raise ExpressionError(
            "corr does not exist where all values of a list are equal",
            hint="give values that differ",
        )
    return max(-1.0, min(1.0, statistics.correlation(left, right)))


def linear_regression(x: JsonValue, y: JsonValue) -> JsonValue:
    """Least-squares line through the points, as ``[slope, intercept, r_squared]``."""
    left, right = paired(x, y, "linreg", least=2)
    if min(left) == max(left):
        raise ExpressionError(
            "linreg does not exist where all x are equal", hint="give at least two different x"
        )
    slope, intercept = statistics.linear_regression(left, right)
    constant = max(right) == min(right)
    return [slope, intercept, 1.0 if constant else statistics.correlation(left, right) ** 2]


def _error(
    name: str, of_difference: Callable[[Number], Number], of_mean: Callable[[float], float]
) -> Function:
    def apply(observed: JsonValue, predicted: JsonValue) -> JsonValue:
        """Root mean squared or mean absolute difference of two lists."""
        left, right = paired(observed, predicted, name)
        return of_mean(
            math.fsum(of_difference(a - b) for a, b in zip(left, right, strict=True)) / len(left)
        )

    return apply


def mean_absolute_percentage_error(observed: JsonValue, predicted: JsonValue) -> JsonValue:
    """Mean absolute difference relative to the observed value, in percent; no observed value may be 0."""
    left, right = paired(observed, predicted, "mape")
    if 0 in left:
        raise ExpressionError(
            "mape does not exist where an observed value is 0", hint="use mae or rmse"
        )
    return 100 * math.fsum(abs((a - b) / a) for a, b in zip(left, right, strict=True)) / len(left)


def percent_change(before: JsonValue, after: JsonValue) -> JsonValue:
    """Change from ``before`` to ``after`` in percent of ``before``; negative for a loss."""
    start, end = number(before, "percent_change: before"), number(after, "percent_change: after")
    if start == 0:
        raise ExpressionError(
            "percent_change does not exist from 0", hint="report the difference instead"
        )
    return 100 * (end - start) / abs(start)


STATISTICAL_FUNCTIONS: dict[str, Function] = {
    "min": _of_numbers("min", min),
    "max": _of_numbers("max", max),
    "sum": total,
    "prod": product,
    "mean": _of_numbers("mean", statistics.mean),
    "median": _of_numbers("median", statistics.median),
    "var": _spread_of("var", statistics.variance, statistics.pvariance),
    "std": _spread_of("std", statistics.stdev, statistics.pstdev),
    "cv": coefficient_of_variation,
    "percentile": percentile,
    "weighted_mean": weighted_mean,
    "count_above": _count("count_above", operator.gt),
    "count_below": _count("count_below", operator.lt),
    "corr": correlation,
    "linreg": linear_regression,
    "rmse": _error("rmse", lambda error: error**2, math.sqrt),
    "mae": _error("mae", abs, float),
    "mape": mean_absolute_percentage_error,
    "percent_change": percent_change,
}
"""Functions by their name in an expression."""
