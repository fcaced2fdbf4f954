"""Statistics that expressions may call: of one list, and of two lists of the same length.

Sums are rounded once (``math.fsum``), means and variances computed in exact fractions (:mod:`statistics`).
"""

import math
import statistics

from pydantic import JsonValue

from agrotools.text.expression_functions import (
    ExpressionError,
    Function,
    Number,
    number,
    numbers,
    paired,
    shown,
    spread,
    whole,
)

# --- statistics of one list ----------------------------------------------------------------------------------------


def minimum(*values: JsonValue) -> JsonValue:
    """Smallest number of a list or of several numbers."""
    return min(spread(values, "min"))


def maximum(*values: JsonValue) -> JsonValue:
    """Largest number of a list or of several numbers."""
    return max(spread(values, "max"))


def total(*values: JsonValue) -> JsonValue:
    """Sum of a list or of several numbers, rounded once: exact for whole numbers."""
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


def mean(*values: JsonValue) -> JsonValue:
    """Arithmetic mean of a list or of several numbers, rounded once."""
    return statistics.mean(spread(values, "mean"))


def median(*values: JsonValue) -> JsonValue:
    """Median of a list or of several numbers; of an even number of them the mean of the middle two."""
    return statistics.median(spread(values, "median"))


def variance(values: JsonValue, ddof: JsonValue = 1) -> JsonValue:
    """Variance: of a sample (``ddof=1``, the default) or of a whole population (``ddof=0``)."""
    degrees = whole(ddof, "var: ddof", 0, 1)
    items = numbers(values, "var", least=1 + degrees)
    return statistics.variance(items) if degrees else statistics.pvariance(items)


def deviation(values: JsonValue, ddof: JsonValue = 1) -> JsonValue:
    """Standard deviation: of a sample (``ddof=1``, the default) or of a whole population (``ddof=0``)."""
    degrees = whole(ddof, "std: ddof", 0, 1)
    items = numbers(values, "std", least=1 + degrees)
    return statistics.stdev(items) if degrees else statistics.pstdev(items)


def coefficient_of_variation(values: JsonValue) -> JsonValue:
    """Sample standard deviation over the mean, in percent."""
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
        raise ExpressionError(f"percentile: q must be from 0 to 100, not {shown(share)}", hint="write 95 for the 95th")
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
        raise ExpressionError("weighted_mean: weights must not be negative and not all 0", hint="check the weights")
    return math.fsum(item * weight for item, weight in zip(items, by, strict=True)) / math.fsum(by)


def count_above(values: JsonValue, limit: JsonValue) -> JsonValue:
    """How many values are greater than ``limit``."""
    bound = number(limit, "count_above: limit")
    return sum(item > bound for item in numbers(values, "count_above", least=0))


def count_below(values: JsonValue, limit: JsonValue) -> JsonValue:
    """How many values are less than ``limit``."""
    bound = number(limit, "count_below: limit")
    return sum(item < bound for item in numbers(values, "count_below", least=0))


# --- two lists: agreement and relation -----------------------------------------------------------------------------


def correlation(x: JsonValue, y: JsonValue) -> JsonValue:
    """Pearson's correlation coefficient, -1..1, of two lists of the same length (at least 2)."""
    left, right = paired(x, y, "corr", least=2)
    if min(left) == max(left) or min(right) == max(right):
        raise ExpressionError(
            "corr does not exist where all values of a list are equal", hint="give values that differ"
        )
    return max(-1.0, min(1.0, statistics.correlation(left, right)))


def linear_regression(x: JsonValue, y: JsonValue) -> JsonValue:
    """Least-squares line through the points: ``[slope, intercept, r_squared]``."""
    left, right = paired(x, y, "linreg", least=2)
    if min(left) == max(left):
        raise ExpressionError("linreg does not exist where all x are equal", hint="give at least two different x")
    slope, intercept = statistics.linear_regression(left, right)
    constant = max(right) == min(right)
    return [slope, intercept, 1.0 if constant else statistics.correlation(left, right) ** 2]


def root_mean_square_error(observed: JsonValue, predicted: JsonValue) -> JsonValue:
    """Root of the mean squared difference of two lists."""
    left, right = paired(observed, predicted, "rmse")
    return math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(left, right, strict=True)) / len(left))


def mean_absolute_error(observed: JsonValue, predicted: JsonValue) -> JsonValue:
    """Mean absolute difference of two lists."""
    left, right = paired(observed, predicted, "mae")
    return math.fsum(abs(a - b) for a, b in zip(left, right, strict=True)) / len(left)


def mean_absolute_percentage_error(observed: JsonValue, predicted: JsonValue) -> JsonValue:
    """Mean absolute difference relative to the observed value, in percent; no observed value may be 0."""
    left, right = paired(observed, predicted, "mape")
    if 0 in left:
        raise ExpressionError("mape does not exist where an observed value is 0", hint="use mae or rmse")
    return 100 * math.fsum(abs((a - b) / a) for a, b in zip(left, right, strict=True)) / len(left)


def percent_change(before: JsonValue, after: JsonValue) -> JsonValue:
    """Change from ``before`` to ``after`` in percent of ``before``; negative for a loss."""
    start, end = number(before, "percent_change: before"), number(after, "percent_change: after")
    if start == 0:
        raise ExpressionError("percent_change does not exist from 0", hint="report the difference instead")
    return 100 * (end - start) / abs(start)


STATISTICAL_FUNCTIONS: dict[str, Function] = {
    "min": minimum,
    "max": maximum,
    "sum": total,
    "prod": product,
    "mean": mean,
    "median": median,
    "var": variance,
    "std": deviation,
    "cv": coefficient_of_variation,
    "percentile": percentile,
    "weighted_mean": weighted_mean,
    "count_above": count_above,
    "count_below": count_below,
    "corr": correlation,
    "linreg": linear_regression,
    "rmse": root_mean_square_error,
    "mae": mean_absolute_error,
    "mape": mean_absolute_percentage_error,
    "percent_change": percent_change,
}
"""Name in an expression to function."""
