"""When two charts agree: an equivalent kind, and the same series of points."""

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

from agrotools.core.refs import literal_value
from agrotools.text.agreement_values import (
    MEASURED_TOLERANCE,
    Number,
    as_number,
    categories_agree,
    category,
    numbers_agree,
    one_to_one,
    opened,
)

_BARS = frozenset({"bar", "column", "grouped_bar"})


class _Point(NamedTuple):
    x: str | Number
    y: Number
    x_measured: bool
    y_measured: bool


class _Series(NamedTuple):
    name: str | Number
    points: list[_Point]


def equivalent_kinds(first: str, second: str) -> bool:
    """Whether two kinds of chart show the same: bars lie or stand, side by side or alone."""
    return first == second or {first, second} <= _BARS


def charts_agree(predicted: JsonValue, reference: JsonValue, kind: str) -> tuple[bool, dict[str, JsonValue]]:
    """Whether two lists of series ``{name, x, y}``, both of a chart of ``kind``, hold the same points.

    Numbers agree at 1e-3 relative (measured ones also by rounding), categories by name. Neither the order of series nor
    that of points counts. Series of the same names belong together; named otherwise, any pairing will do. Where x is
    left out, points are numbered from 1, except raw values (hist, box), which have no order.
    """
    own, gold = _series(predicted, False, kind), _series(*opened(reference), kind)
    if own is None or gold is None:
        return False, {"reason": "no list of series with x and y of equal length"}
    if len(own) != len(gold):
        return False, {"reason": f"{len(own)} series instead of {len(gold)}"}
    names = {series.name for series in gold}
    if len(names) == len(gold) and names == {series.name for series in own}:
        by_name = {series.name: series for series in own}
        apart: list[JsonValue] = [
            str(series.name) for series in gold if not _points_agree(by_name[series.name].points, series.points)
        ]
        return not apart, {"paired": "by name", "apart": apart}
    matrix = [[_points_agree(mine.points, theirs.points) for theirs in gold] for mine in own]
    return one_to_one(matrix), {"paired": "by values"}


def _series(value: JsonValue, measured: bool, kind: str) -> list[_Series] | None:
    if not isinstance(value, list):
        return None
    series: list[_Series] = []
    for item in value:
        literal, of_ref = opened(item, measured)
        points = _points(literal, of_ref, kind) if isinstance(literal, dict) else None
        if not isinstance(literal, dict) or points is None:
            return None
        name = category(literal_value(literal.get("name")))
        series.append(_Series("" if name is None else name, points))
    return series


def _points(series: dict[str, JsonValue], measured: bool, kind: str) -> list[_Point] | None:
    ys, y_of_ref = opened(series.get("y"), measured)
    xs, x_of_ref = opened(series.get("x"), measured)
    if not isinstance(ys, list):
        return None
    if xs is None:
        xs = [""] * len(ys) if kind in ("hist", "box") else [*range(1, len(ys) + 1)]
    if not isinstance(xs, list) or len(xs) != len(ys):
        return None
    points: list[_Point] = []
    for given_x, given_y in zip(xs, ys, strict=True):
        (x, x_measured), (y, y_measured) = opened(given_x, x_of_ref), opened(given_y, y_of_ref)
        key, number = category(x), as_number(y)
        if key is None or number is None:
            return None
        points.append(_Point(key, number, x_measured, y_measured))
    return points


def _points_agree(predicted: Sequence[_Point], reference: Sequence[_Point]) -> bool:
    """Whether the points are the same, as they are written or sorted: rounding may turn the order of near ones."""
    if len(predicted) != len(reference):
        return False
    if all(map(_agree, predicted, reference)):
        return True
    return all(map(_agree, sorted(predicted, key=_order), sorted(reference, key=_order)))


def _order(point: _Point) -> tuple[bool, str, float, float]:
    if isinstance(point.x, str):
        return True, point.x, 0.0, point.y
    return False, "", point.x, point.y


def _agree(predicted: _Point, reference: _Point) -> bool:
    return categories_agree(predicted.x, reference.x, measured=reference.x_measured) and numbers_agree(
        predicted.y, reference.y, measured=reference.y_measured, relative=MEASURED_TOLERANCE
    )
