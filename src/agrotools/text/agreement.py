"""Agreement of a predicted tool call with the reference call, argument by argument.

Plain equality of dictionaries counts ``3*2`` and ``2*3``, or an omitted default, as different. Here every argument of a
tool declares how two values are compared (``ToolSpec.agreement``). Defaults are filled in before the comparison, and a
tool may resolve its arguments first (``resolved``). The result of plain equality is reported in ``equal``. Two charts
agree if they are of an equivalent kind and have the same series of points.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from pydantic import JsonValue

from agrotools.core.frozen_model import FrozenModel
from agrotools.core.record import Arguments, literal_value
from agrotools.core.taxonomy import AgreementKind, ToolSpec
from agrotools.text.agreement_values import (
    BOX_IOU,
    MEASURED_TOLERANCE,
    TEXT_F1,
    Number,
    as_box,
    as_number,
    box_iou,
    categories_agree,
    category,
    clipped,
    expressions_agree,
    literal_and_measured,
    measured_numbers,
    numbers_agree,
    one_to_one,
    same_json,
    text_f1,
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
    """True if two kinds of chart are equal or both are bar charts ("bar", "column", "grouped_bar")."""
    return first == second or {first, second} <= _BARS


def charts_agree(
    predicted: JsonValue, reference: JsonValue, kind: str
) -> tuple[bool, dict[str, JsonValue]]:
    """Compare two lists of series ``{name, x, y}`` of a chart of ``kind``; return the verdict and its details.

    Numbers agree within 1e-3 relative (measured numbers also if rounded), categories by name. The order of series and
    of points does not matter. Series are paired by name if the names are the same, otherwise any one-to-one pairing
    counts. If x is omitted, points are numbered from 1, except for raw values (hist, box), which have no order.
    """
    called, gold = (
        _chart_series(predicted, False, kind),
        _chart_series(*literal_and_measured(reference), kind),
    )
    if called is None or gold is None:
        return False, {"reason": "no list of series with x and y of equal length"}
    if len(called) != len(gold):
        return False, {"reason": f"{len(called)} series instead of {len(gold)}"}
    names = {series.name for series in gold}
    if len(names) == len(gold) and names == {series.name for series in called}:
        by_name = {series.name: series for series in called}
        apart: list[JsonValue] = [
            str(series.name)
            for series in gold
            if not _points_agree(by_name[series.name].points, series.points)
        ]
        return not apart, {"paired": "by name", "apart": apart}
    matrix = [[_points_agree(mine.points, theirs.points) for theirs in gold] for mine in called]
    return one_to_one(matrix), {"paired": "by values"}


def _chart_series(value: JsonValue, measured: bool, kind: str) -> list[_Series] | None:
    if not isinstance(value, list):
        return None
    series: list[_Series] = []
    for item in value:
        literal, of_ref = literal_and_measured(item, measured)
        if not isinstance(literal, dict) or (points := _points(literal, of_ref, kind)) is None:
            return None
        name = category(literal_value(literal.get("name")))
        series.append(_Series("" if name is None else name, points))
    return series


def _points(series: dict[str, JsonValue], measured: bool, kind: str) -> list[_Point] | None:
    ys, y_of_ref = literal_and_measured(series.get("y"), measured)
    xs, x_of_ref = literal_and_measured(series.get("x"), measured)
    if not isinstance(ys, list):
        return None
    if xs is None:
        xs = [""] * len(ys) if kind in ("hist", "box") else [*range(1, len(ys) + 1)]
    if not isinstance(xs, list) or len(xs) != len(ys):
        return None
    points: list[_Point] = []
    for given_x, given_y in zip(xs, ys, strict=True):
        x, x_measured = literal_and_measured(given_x, x_of_ref)
        y, y_measured = literal_and_measured(given_y, y_of_ref)
        key, number = category(x), as_number(y)
        if key is None or number is None:
            return None
        points.append(_Point(key, number, x_measured, y_measured))
    return points


def _points_agree(predicted: Sequence[_Point], reference: Sequence[_Point]) -> bool:
    """True if the points agree, in the written order or sorted (rounding may swap nearly equal points)."""
    if len(predicted) != len(reference):
        return False
    if all(map(_agree, predicted, reference)):
        return True
    ordered = (
        sorted(each, key=lambda point: (isinstance(point.x, str), point.x, point.y))
        for each in (predicted, reference)
    )
    return all(map(_agree, *ordered))


def _agree(predicted: _Point, reference: _Point) -> bool:
    return categories_agree(
        predicted.x, reference.x, measured=reference.x_measured
    ) and numbers_agree(
        predicted.y, reference.y, measured=reference.y_measured, relative=MEASURED_TOLERANCE
    )


Frame = tuple[float, float]
"""Width and height in pixels of the image to which boxes refer."""
MOST_ELEMENTS = 100_000
"""Values with more elements and characters than this are compared only for equality; no tool accepts them."""
DEEPEST = 100
MOST_UNKNOWN = 1000
"""Maximum number of rows for arguments that the tool does not have."""
_HERE = re.compile(r"\A(?:\./+)+")


class ArgumentAgreement(FrozenModel):
    """Comparison of one argument of a predicted call with the reference.

    ``agrees`` is the verdict by the rule of its kind, ``equal`` the verdict of plain equality (no defaults, no
    rounding); ``kind`` is None for an argument that the tool does not have. ``detail`` holds the reasons: IoU of boxes,
    F1 of texts, values of expressions.
    """

    argument: str
    kind: AgreementKind | None
    agrees: bool
    equal: bool
    detail: dict[str, JsonValue] = {}


class StepAgreement(NamedTuple):
    """Comparison of a call with one reference step that calls the same tool, one row per argument."""

    step: int
    rows: list[ArgumentAgreement]

    @property
    def agrees(self) -> bool:
        return all(row.agrees for row in self.rows)

    @property
    def share(self) -> float:
        return sum(row.agrees for row in self.rows) / max(1, len(self.rows))


def best_step(compared: Sequence[StepAgreement]) -> StepAgreement:
    """Return the first step that the call agrees with, else the one with the largest share of agreeing arguments.

    ``compared`` holds at least one step.
    """
    return next((each for each in compared if each.agrees), None) or max(
        compared, key=lambda each: each.share
    )


_Verdict = tuple[bool, dict[str, JsonValue]]
"""True if two arguments agree, and the details."""


class _Call(NamedTuple):
    """Arguments of both calls, for kinds that are compared together with another argument."""

    spec: ToolSpec
    predicted: Arguments
    reference: Arguments
    frame: Frame | None
    observed: Sequence[Number]


def compare_arguments(
    spec: ToolSpec,
    predicted: Arguments,
    reference: Arguments,
    *,
    frame: Frame | None = None,
    resolved: tuple[Arguments, Arguments] | None = None,
    observed: Sequence[Number] = (),
) -> list[ArgumentAgreement]:
    """Compare the arguments of two calls of the same tool.

    Args:
        spec: the tool that both calls name.
        predicted: arguments as the policy wrote them, of any shape.
        reference: arguments of the reference; values from earlier steps are ``{"$ref", "value"}``.
        frame: size of the image to which boxes refer; without it boxes are only clipped at 0.
        resolved: arguments of both calls as the tool resolves them, with literals instead of references and without
            arguments that make no difference. None: the arguments are compared unchanged.
        observed: further numbers from observations that an expression may use instead of the reference's.

    Returns:
        One row per argument that is present in either call or differs, in the order of the tool's schema.

    An argument present in only one call is compared with its default; if it has no default, it does not agree. An
    argument that no model is shown (``spec.expert``) counts only if the policy gives it.
    """
    arguments, gold = (
        (predicted, reference)
        if resolved is None
        else (resolved[0], _with_refs(resolved[1], reference))
    )
    call = _Call(spec, _with_defaults(spec, arguments), _with_defaults(spec, gold), frame, observed)
    merged = {**reference, **predicted}
    names = [
        name for name in spec.agreement if name in merged or (resolved and not _same(name, call))
    ]
    names = [name for name in names if name not in spec.expert or name in predicted]
    names += list(islice((name for name in merged if name not in spec.agreement), MOST_UNKNOWN))
    return [_row(name, call, predicted, reference) for name in names]


def _with_refs(resolved: Arguments, reference: Arguments) -> Arguments:
    """Return the resolved arguments; values equal to the reference's keep its form (``$ref`` to a measured value)."""
    return {
        name: reference[name]
        if same_json(value, literal_value(reference.get(name))) and name in reference
        else value
        for name, value in resolved.items()
    }


def _same(name: str, call: _Call) -> bool:
    return same_json(call.predicted.get(name), literal_value(call.reference.get(name)))


def _row(name: str, call: _Call, predicted: Arguments, reference: Arguments) -> ArgumentAgreement:
    kind = call.spec.agreement.get(name)
    equal = False
    verdict: _Verdict = False, {"reason": "nested too deep"}
    with suppress(RecursionError):
        same = (
            name in predicted
            and name in reference
            and same_json(predicted[name], literal_value(reference[name]))
        )
        equal, verdict = same, _compared(name, call, same)
    return ArgumentAgreement(
        argument=name, kind=kind, agrees=verdict[0], equal=equal, detail=verdict[1]
    )


def _with_defaults(spec: ToolSpec, arguments: Arguments) -> Arguments:
    """Return the arguments with defaults filled in; null also stands for a default."""
    explicit = {
        name: value
        for name, value in arguments.items()
        if value is not None or name not in spec.defaults
    }
    return {**spec.defaults, **explicit}


def _compared(name: str, call: _Call, equal: bool) -> _Verdict:
    kind = call.spec.agreement.get(name)
    if kind == "presentation":
        return True, {"rule": "never compared"}
    if _is_too_large(call.predicted.get(name)):
        return equal, {"reason": "too large to be compared"}
    if name not in call.predicted and name not in call.reference:
        return True, {"rule": "makes no difference in these calls"}
    if name not in call.predicted or name not in call.reference:
        return False, {
            "reason": f"missing in the {'predicted' if name in call.reference else 'reference'} call"
        }
    if kind is None:
        return equal, {"reason": "the tool has no such argument"}
    if name == "kind" and "chart" in call.spec.agreement.values():  # the kind of a chart
        first, second = call.predicted[name], literal_value(call.reference[name])
        return isinstance(first, str) and isinstance(second, str) and equivalent_kinds(
            first, second
        ), {}
    return _RULES[kind](name, call)


def _is_too_large(value: JsonValue) -> bool:
    """True if a value has more than :data:`MOST_ELEMENTS` elements and characters, or is nested too deeply."""
    left, open_values = MOST_ELEMENTS, [(value, 0)]
    while open_values:
        item, depth = open_values.pop()
        if isinstance(item, (str, list, dict)):
            left -= len(item)
        if left < 0 or depth > DEEPEST:
            return True
        if isinstance(item, (list, dict)):
            open_values += [
                (each, depth + 1) for each in (item.values() if isinstance(item, dict) else item)
            ]
    return False


# --- one rule for each kind ----------------------------------------------------------------------------------------


def _nested(
    predicted: JsonValue,
    reference: JsonValue,
    measured: bool,
    leaf: Callable[[JsonValue, JsonValue, bool], bool],
) -> bool:
    """True if lists agree element by element and objects field by field; ``leaf`` compares the values."""
    literal, of_ref = literal_and_measured(reference, measured)
    if isinstance(literal, list):
        return (
            isinstance(predicted, list)
            and len(predicted) == len(literal)
            and all(
                _nested(mine, theirs, of_ref, leaf)
                for mine, theirs in zip(predicted, literal, strict=True)
            )
        )
    if isinstance(literal, dict):
        return (
            isinstance(predicted, dict)
            and predicted.keys() == literal.keys()
            and all(_nested(predicted[key], literal[key], of_ref, leaf) for key in literal)
        )
    return leaf(predicted, literal, of_ref)


def _numbers_or_same(predicted: JsonValue, reference: JsonValue, measured: bool) -> bool:
    mine, theirs = as_number(predicted), as_number(reference)
    if mine is None or theirs is None:
        return same_json(predicted, reference)
    return numbers_agree(mine, theirs, measured=measured)


def _files_same(predicted: JsonValue, reference: JsonValue, _measured: bool) -> bool:
    if isinstance(predicted, str) and isinstance(reference, str):
        return _HERE.sub("", predicted.strip(), count=1) == _HERE.sub(
            "", reference.strip(), count=1
        )
    return same_json(predicted, reference)


def _plain(name: str, call: _Call) -> _Verdict:
    return _nested(call.predicted[name], call.reference[name], False, _numbers_or_same), {}


def _text(name: str, call: _Call) -> _Verdict:
    worst = 1.0

    def close(predicted: JsonValue, reference: JsonValue, _measured: bool) -> bool:
        nonlocal worst
        if not isinstance(predicted, str) or not isinstance(reference, str):
            return same_json(predicted, reference)
        f1 = text_f1(predicted, reference)
        worst = min(worst, f1)
        return f1 >= TEXT_F1

    agrees = _nested(call.predicted[name], call.reference[name], False, close)
    return agrees, {"f1": worst} if worst < 1 else {}


def _box(name: str, call: _Call) -> _Verdict:
    """Compare two boxes by IoU. If the image size is known, a missing box means the whole image."""
    box, gold = call.predicted[name], literal_value(call.reference[name])
    if box is None and gold is None:
        return True, {}
    whole: list[JsonValue] | None = [0, 0, *call.frame] if call.frame else None
    first, second = as_box(whole if box is None else box), as_box(whole if gold is None else gold)
    if first is None or second is None:
        return same_json(box, gold), {"reason": "not both are boxes [x0, y0, x1, y1]"}
    iou = (
        1.0 if first == second else box_iou(clipped(first, call.frame), clipped(second, call.frame))
    )
    return iou >= BOX_IOU, {"iou": iou}


def _expression(name: str, call: _Call) -> _Verdict:
    beside = next((other for other, kind in call.spec.agreement.items() if kind == "variables"), "")
    return expressions_agree(
        (call.predicted[name], call.predicted.get(beside)),
        (call.reference[name], call.reference.get(beside)),
        measured_numbers(call.reference),
        call.observed,
    )


def _variables(name: str, call: _Call) -> _Verdict:
    if "expression" in call.spec.agreement.values():
        return True, {"rule": "compared with the expression"}
    return _plain(name, call)


def _chart(name: str, call: _Call) -> _Verdict:
    kind = literal_value(call.reference.get("kind"))
    return charts_agree(
        call.predicted[name], call.reference[name], kind if isinstance(kind, str) else ""
    )


_RULES: Mapping[AgreementKind, Callable[[str, _Call], _Verdict]] = {
    "file": lambda name, call: (
        _nested(call.predicted[name], call.reference[name], False, _files_same),
        {},
    ),
    "choice": _plain,
    "number": _plain,
    "box": _box,
    "text": _text,
    "expression": _expression,
    "variables": _variables,
    "series": _plain,
    "chart": _chart,
}
