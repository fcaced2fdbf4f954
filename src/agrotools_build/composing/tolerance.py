"""Tolerance of a number that is bound to results, from what the tools state of their errors.

The error of a measured value is, in this order: half of the interval that the result states beside it
(``severity_interval_pct`` of ``severity_pct``), the tolerance of the quantity (``measures.toml`` and
``stated_errors.toml``). Errors of several values that a number is calculated from are taken as independent, but those
of one tool on the same files add up: whatever misleads it once misleads it again.
"""

import math
import re
import tomllib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from pydantic import JsonValue

from agrotools.calling import get_tool
from agrotools.core import Arguments, ReferenceStep, ToolError, UnresolvedRef
from agrotools.core.record import (
    REF_PATTERN,
    Results,
    iter_refs,
    literal_value,
    resolve_ref,
)
from agrotools.loading.sample_checks import tool_or_none
from agrotools.text.expressions import ExpressionError, evaluate_from
from agrotools.text.json_kinds import is_number
from agrotools_build.composing.reasons import CannotCompose
from agrotools_build.composing.running import results_of
from agrotools_build.own_photos.plan import measures
from agrotools_build.references import steps_used, without_artifacts
from agrotools_build.templates.template import result_after

EXACT_TOOLS = frozenset({"calculate", "plot", "lookup_agronomy"})
"""Tools whose results have no error of their own."""
_ROUNDING = 0.01
"""Relative tolerance of a number without a measured value in it: whoever answers may round it to two digits."""
_LEAST_SHARE = 0.001
"""Share of a calculated number that the errors of its measured values must reach: no tool measures so exactly, so that
less means a number that hardly rests on them, as ``100 + 0.0001 * a``."""
_PARTS = 10
"""Values to each side of a measured one, within its error, of which an expression is calculated."""
_DIGITS_OF_FLOATS = 12
"""Digits of a calculated number that are written: of the 16 of a float, sums and differences lose some."""
_INTERVAL = "interval"
_INDEX = re.compile(r"\[\d+\]")

Basis = Literal["interval", "quantity", "calculated", "exact"]


class StatedTolerance(NamedTuple):
    """Tolerance of a number, and what it rests on."""

    abs_tol: float
    rel_tol: float
    basis: Basis

    def margin_of(self, value: float) -> float:
        """Return how far an answer may stray from a value."""
        return max(self.abs_tol, self.rel_tol * abs(value))


class Root(NamedTuple):
    """A value that a tool measured and an answer rests on: the step, and the path in its result."""

    step: int
    path: str


def tolerance_of(expression: str, steps: Sequence[ReferenceStep]) -> StatedTolerance:
    """Return the tolerance of the number that ``expression`` gives.

    Raises:
        CannotCompose: a tool states no error for a value that the number rests on, or no value changes it.
    """
    roots = roots_of(expression, steps)
    results = results_of(steps)
    if not roots:
        return StatedTolerance(0.0, _ROUNDING, "exact")
    named = REF_PATTERN.fullmatch(expression.strip())
    only = roots[0]
    if named and steps[int(named["step"])].tool not in EXACT_TOOLS:
        return stated_error(steps[only.step].tool, only.path, results[only.step])
    value = _number(evaluate_from(expression, results))
    errors: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for root in roots:
        changes = [
            abs(_number(changed) - value)
            for changed in values_within_error(expression, steps, root)
        ]
        errors[_looks_at(steps[root.step])] += max(changes, default=0.0)
    error = math.hypot(*errors.values())
    if error <= _LEAST_SHARE * abs(value):
        raise CannotCompose(
            "not_measured",
            f"{expression} is (nearly) the same whatever the tools measure",
            hint="calculate with the measured value",
        )
    return StatedTolerance(_rounded(error), 0.0, "calculated")


def tolerance_source(expression: str, steps: Sequence[ReferenceStep]) -> str:
    """Return in words what the tolerance of the number that ``expression`` gives rests on.

    Raises:
        CannotCompose: as :func:`tolerance_of`.
    """
    basis = tolerance_of(expression, steps).basis
    roots = roots_of(expression, steps)
    if basis == "exact":
        return "rounding alone, as no tool measures it"
    if basis != "calculated":
        return _error_source(roots[0], steps)
    results = results_of(steps)
    errors: list[str] = []
    for root in roots:
        value = _number(value_at(root.path, results[root.step]))
        margin = stated_error(steps[root.step].tool, root.path, results[root.step]).margin_of(value)
        errors.append(f"{root.path} {value:g} ± {margin:.3g} ({_error_source(root, steps)})")
    return f"calculated from {'; '.join(errors)}"


def _error_source(root: Root, steps: Sequence[ReferenceStep]) -> str:
    """Return where the error of a measured value stands."""
    tool, result = steps[root.step].tool, results_of(steps)[root.step]
    interval = _interval_beside(root.path, result or {})
    if interval is None or stated_error(tool, root.path, result).basis != "interval":
        return f"the stated error of {tool}"
    low, high = interval
    return f"{tool} states {low:.3g} to {high:.3g}"


def _looks_at(step: ReferenceStep) -> tuple[str, ...]:
    """Return the tool of a call and the files that it is given; of a tool that is not installed, all its texts."""
    kinds = agreement_of(step.tool)
    texts = {
        value
        for name, value in cast(Arguments, literal_value(dict(step.arguments))).items()
        if isinstance(value, str) and kinds.get(name, "file") == "file"
    }
    return step.tool, *sorted(texts)


def agreement_of(tool: str) -> Mapping[str, Any]:
    """Return what each argument of a tool is: a file, a box, a choice; empty if the tool is not installed."""
    known = tool_or_none(tool)
    return known.spec.agreement if known else {}


def defaults_of(tool: str) -> dict[str, JsonValue]:
    """Return the defaults of the arguments of a tool; empty if it is not installed."""
    known = tool_or_none(tool)
    return known.spec.defaults if known else {}


def roots_of(expression: str, steps: Sequence[ReferenceStep]) -> list[Root]:
    """Return the measured values that an expression rests on, through steps that only calculate."""
    found: dict[Root, None] = {}
    for match in REF_PATTERN.finditer(expression):
        number, path = int(match["step"]), match["path"].lstrip(".")
        if number >= len(steps):
            continue
        step = steps[number]
        if step.tool not in EXACT_TOOLS:
            found[Root(number, path)] = None
            continue
        for _, target, _ in iter_refs(dict(step.arguments)):
            found.update(dict.fromkeys(roots_of(target, steps[:number])))
    return list(found)


def stated_error(tool: str, path: str, result: Mapping[str, JsonValue] | None) -> StatedTolerance:
    """Return the tolerance of a value in the result of a tool.

    Raises:
        CannotCompose: ``no_stated_error``.
    """
    interval = _interval_beside(path, result or {})
    value = value_at(path, result)
    if interval is not None and is_number(value):
        low, high = interval
        # Half of it, wherever the value is: the place of a label in the interval, or outside, is no error of the tool.
        half = (high - low) / 2
        if half > 0:
            return StatedTolerance(_rounded(half), 0.0, "interval")
    known = _tolerances().get((tool, _INDEX.sub("", path)))
    if known is None:
        raise CannotCompose(
            "no_stated_error",
            f"{tool} states no error of {path}, so that nobody knows which answers are right",
            hint=f"bind the answer to one of {', '.join(known_paths(tool)) or 'the results of another tool'}",
        )
    return known


def values_within_error(
    expression: str, steps: Sequence[ReferenceStep], root: Root
) -> list[JsonValue]:
    """Return what an expression gives if one measured value lies elsewhere within its error.

    Raises:
        CannotCompose: the error of the value is not known.
    """
    results = results_of(steps)
    value = value_at(root.path, results[root.step])
    if not is_number(value):
        return []
    number = _number(value)
    error = stated_error(steps[root.step].tool, root.path, results[root.step])
    changed: list[JsonValue] = []
    for other in _values_around(number, error.margin_of(number)):
        try:
            changed.append(evaluate_from(expression, recalculated(steps, {root: other})))
        except (ValueError, ExpressionError):
            continue
        except CannotCompose as failed:
            if failed.reason != "no_value":
                raise
    return changed


def _values_around(value: float, margin: float) -> list[float]:
    """Return values within an error of one, evenly spread: the ends alone hide what is made of those between."""
    return [value + margin * part / _PARTS for part in range(-_PARTS, _PARTS + 1)]


def recalculated(steps: Sequence[ReferenceStep], changes: Mapping[Root, JsonValue]) -> Results:
    """Return the results of the steps with other measured values, and what is calculated from them anew.

    What a label says of an earlier result changes what is calculated from it, too. A call that failed stays without
    a result.

    Raises:
        CannotCompose: a calculation has no value any more (``no_value``), or a look-up fails (``call_fails``).
    """
    results: list[dict[str, JsonValue] | None] = []
    touched: set[int] = set()
    for number, (step, result) in enumerate(zip(steps, results_of(steps), strict=True)):
        if step.truth is not None:
            touched.add(number)
        is_calculated = step.tool in EXACT_TOOLS and steps_used(step.arguments) & touched
        if is_calculated and result is not None:
            result = {**result, **_calculated(number, step, results)}
            touched.add(number)
        for root, value in changes.items():
            if root.step == number and result is not None:
                result = _with_value(result, root.path, value)
                touched.add(number)
        results.append(result)
    return results


def with_calculations(
    steps: Sequence[ReferenceStep], changed: Collection[int]
) -> list[ReferenceStep]:
    """Return the steps, of which those that calculate from ``changed`` ones have what follows as their truth.

    The changed ones have what a label says.

    Raises:
        CannotCompose: as :func:`recalculated`.
    """
    followed = [*steps]
    touched = {*changed}
    for number, (step, result) in enumerate(zip(steps, recalculated(steps, {}), strict=True)):
        follows = step.tool in EXACT_TOOLS and steps_used(step.arguments) & touched
        if number in changed or not follows or step.observation is None or result is None:
            continue
        truth = without_artifacts(result, step.observation)
        followed[number] = step.model_copy(update={"truth": truth})
        touched.add(number)
    return followed


def _calculated(number: int, step: ReferenceStep, results: Results) -> dict[str, JsonValue]:
    where = f"step {number + 1} ({step.tool})"
    try:
        result = result_after(step.tool, step.arguments, results)
    except ToolError as error:  # a look-up of a name that the knowledge base does not have
        raise CannotCompose(
            "call_fails",
            f"{where} fails on what labels say: {error.message}",
            hint=error.hint or "bind the answer to an earlier step",
        ) from error
    except (ValueError, ExpressionError) as error:
        raise CannotCompose(
            "no_value",
            f"{where} cannot be calculated from what labels say: {error}",
            hint="change the calculation, or bind the answer to an earlier step",
        ) from error
    if step.tool == "calculate" and isinstance(value := result["value"], float):
        return {**result, "value": without_noise(value)}
    return result


def without_noise(value: float) -> float:
    """Return a calculated number as the calculation means it: 0.116, where 1 - 0.884 is 0.11599999999999999."""
    return float(f"{value:.{_DIGITS_OF_FLOATS}g}")


def _with_value(
    result: Mapping[str, JsonValue], path: str, value: JsonValue
) -> dict[str, JsonValue]:
    changed = deepcopy(dict(result))
    *parents, last = _keys(path)
    place: Any = changed
    for key in parents:
        place = place[key]
    place[last] = value
    return changed


def _keys(path: str) -> list[str | int]:
    parts = re.findall(r"([A-Za-z_]\w*)|\[(\d+)\]", path)
    return [name or int(index) for name, index in parts]


def value_at(path: str, result: Mapping[str, JsonValue] | None) -> JsonValue:
    try:
        return resolve_ref(f"steps[0].observation.{path}", [dict(result) if result else None])
    except UnresolvedRef:
        return None


def _interval_beside(path: str, result: Mapping[str, JsonValue]) -> tuple[float, float] | None:
    """Return the interval that a result states for the value at a path: ``count_interval`` of ``count``."""
    for key, value in result.items():
        is_pair = isinstance(value, list) and len(value) == 2 and all(map(is_number, value))
        if _field_of_interval(key) == path and is_pair:
            low, high = cast("list[JsonValue]", value)
            return _number(low), _number(high)
    return None


def _field_of_interval(name: str) -> str | None:
    """Return the field whose interval a field holds: ``count`` for ``count_interval``; None if it holds none."""
    words = name.split("_")
    if _INTERVAL not in words:
        return None
    return "_".join(word for word in words if word != _INTERVAL)


@cache
def _tolerances() -> dict[tuple[str, str], StatedTolerance]:
    """Return the tolerances of quantities, by tool and path without places in lists."""
    known = {
        (measure.tool, _INDEX.sub("", measure.answer)): StatedTolerance(
            measure.abs_tol, measure.rel_tol, "quantity"
        )
        for measure in measures().values()
        if measure.kind == "number"
    }
    more = tomllib.loads(Path(__file__).with_name("stated_errors.toml").read_text("utf-8"))
    for tool, fields in more.items():
        for path, tolerance in fields.items():
            known[tool, path] = StatedTolerance(
                tolerance.get("abs_tol", 0.0), tolerance.get("rel_tol", 0.0), "quantity"
            )
    return known


def known_paths(tool: str) -> list[str]:
    """Return the paths in the results of a tool whose error is known."""
    return [path for of, path in _tolerances() if of == tool]


def askable_fields(tool: str) -> list[str]:
    """Return the fields in the results of a tool that a question can ask for.

    These are the fields whose error is known. Of a tool that has none of them, such as a tool of the user's own, they
    are the fields beside which its result has an interval.
    """
    if paths := known_paths(tool):
        return paths
    fields: list[str] = [*get_tool(tool).result_type.model_fields]
    with_interval = {_field_of_interval(name) for name in fields}
    return [name for name in fields if name in with_interval]


def _number(value: JsonValue) -> float:
    """Return a value as a number; CannotCompose if it is none."""
    if not is_number(value):
        raise CannotCompose(
            "wrong_kind",
            f"{value!r} is no number",
            hint="bind the part to a number, or choose another form of answer",
        )
    return float(cast(float, value))


def _rounded(value: float) -> float:
    """Round to three significant digits, so that tolerances are readable in files."""
    return float(f"{value:.3g}")
