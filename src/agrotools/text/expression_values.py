"""What values an expression may hold, how large they may be, and what its operators do with them."""

import ast
import keyword
import math
import operator
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from pydantic import JsonValue

from agrotools.text.function_arguments import ExpressionError, Number, kind_of, number, shown

MAX_ELEMENTS = 10_000
"""Longest list, counting the elements of lists inside it."""
MAX_ELEMENTS_READ = 40_000
"""List elements that one evaluation may read in all: bounds its time."""
MAX_LIST_DEPTH = 8
"""Deepest nesting of lists and objects."""
MAX_TEXT = 10_000
"""Longest text, in characters."""

Value = JsonValue


def named(variables: Mapping[str, Any]) -> dict[str, Value]:
    """Variables as the evaluator takes them: plain names (as Python normalises them), finite values, not too many."""
    named: dict[str, Value] = {}
    left = MAX_ELEMENTS_READ
    for given, value in variables.items():
        name = unicodedata.normalize("NFKC", given)
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise ExpressionError(
                f"{shown(given)} cannot name a variable", hint="use letters, digits and _, and begin with a letter"
            )
        if name in named:
            raise ExpressionError(f"variable {name} is given twice", hint="use different names")
        left -= element_count(value)
        if left < 0:
            raise ExpressionError(
                f"the variables hold more than {MAX_ELEMENTS_READ} list elements", hint="pass shorter lists"
            )
        named[name] = _variable(value, f"variable {name}")
    return named


def _variable(value: object, what: str) -> Value:
    if value is None or not isinstance(value, (bool, int, float, str, list, tuple, dict)):
        raise ExpressionError(f"{what} is {kind_of(value)}", hint="pass a number, a list of numbers, or text")
    count = element_count(cast(object, value))
    if count > MAX_ELEMENTS:
        raise ExpressionError(f"{what} has {count} elements, more than {MAX_ELEMENTS}", hint="pass a shorter list")
    return _copied(cast(object, value), what)


def _copied(value: object, what: str) -> Value:
    """``value`` as plain data. Null may stand inside lists and objects; it takes part in no calculation."""
    if value is None:
        return None
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise ExpressionError(f"{what} has text of more than {MAX_TEXT} characters", hint="pass shorter text")
    if isinstance(value, (list, tuple)):
        return [
            item if type(item) is float and math.isfinite(item) else _copied(item, what)
            for item in cast("Sequence[object]", value)
        ]
    if isinstance(value, dict):
        return {str(key): _copied(item, what) for key, item in cast("dict[object, object]", value).items()}
    return checked(value, what)


def element_count(value: object, depth: int = 0) -> int:
    """Elements of a list and of all lists and objects inside it; 0 for anything else."""
    if depth > MAX_LIST_DEPTH:
        raise ExpressionError("a list is nested too deep", hint="use flat lists of numbers")
    if isinstance(value, dict):
        return element_count(list(cast("dict[object, object]", value).values()), depth)
    if not isinstance(value, (list, tuple)):
        return 0
    items = cast("Sequence[object]", value)
    return len(items) + sum(element_count(item, depth + 1) for item in items if type(item) in _CONTAINERS)


_CONTAINERS = frozenset({list, tuple, dict})


def checked(value: object, what: str) -> Value:
    """``value``, if it is a value: finite, real, not too large."""
    if isinstance(value, (int, float)):
        if isinstance(value, int) and abs(value) > sys.float_info.max:
            raise ExpressionError(f"{what} is too large", hint="keep numbers below 1e308")
        if not math.isfinite(value):
            raise ExpressionError(f"{what} is not a finite number", hint="keep numbers below 1e308")
    elif isinstance(value, complex):
        raise ExpressionError(f"{what} is no real number", hint="write cbrt(x) for a cube root")
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            if type(item) is not float or not math.isfinite(item):
                checked(item, what)
    elif not isinstance(value, (str, dict)) and value is not None:
        raise ExpressionError(f"{what} is {kind_of(value)}", hint="pass a number, a list of numbers, or text")
    return cast(Value, value)


# --- operators -----------------------------------------------------------------------------------------------------


def _power(base: Number, exponent: Number) -> object:
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0 and abs(base) > 1:
        if exponent * math.log2(abs(base)) > 1024:
            raise OverflowError
        return base**exponent
    return float(base) ** exponent if exponent < 0 or isinstance(base, float) else base**exponent


def _divide(left: Number, right: Number) -> object:
    return left / right


def _floor_divide(left: Number, right: Number) -> object:
    return left // right


_ARITHMETIC: dict[type[ast.operator], tuple[str, Callable[[Number, Number], object]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", _divide),
    ast.FloorDiv: ("//", _floor_divide),
    ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", _power),
}


def apply(op: ast.operator, left: Value, right: Value) -> object:
    sign, function = _ARITHMETIC[type(op)]
    if isinstance(left, list) or isinstance(right, list):
        raise ExpressionError(
            f"{sign} works on numbers, not on lists",
            hint="use scale(values, factor), diff(values), sum(values)..., or write [a*2, b*2]",
        )
    return function(number(left, sign), number(right, sign))


def _ordered(sign: str, compare: Callable[[Number, Number], bool]) -> Callable[[Value, Value], bool]:
    return lambda left, right: compare(number(left, sign), number(right, sign))


def _negative(value: Value) -> object:
    return -number(value, "-")


def _positive(value: Value) -> object:
    return +number(value, "+")


def _contains(item: Value, container: Value) -> bool:
    if isinstance(container, list):
        return item in container
    if isinstance(container, str) and isinstance(item, str):
        return item in container
    raise ExpressionError(f"'in' needs a list on its right, not {kind_of(container)}", hint="write x in [1, 2, 3]")


def _lacks(item: Value, container: Value) -> bool:
    return not _contains(item, container)


def element(container: Value, key: object) -> Value:
    if isinstance(container, dict):
        if isinstance(key, str) and key in container:
            return container[key]
        raise ExpressionError(f"there is no field {shown(key)}", hint=f"fields: {shown(', '.join(container))}")
    if not isinstance(container, (list, str)):
        raise ExpressionError(
            f"[{shown(key)}] works on lists, not on {kind_of(container)}",
            hint="write values[0] for the first",
        )
    if isinstance(key, slice):
        start, stop, step = cast("tuple[object, object, object]", (key.start, key.stop, key.step))
        if not all(bound is None or type(bound) is int for bound in (start, stop, step)) or step == 0:
            raise ExpressionError("a slice takes whole numbers, its step not 0", hint="write values[1:3]")
        return container[key]
    if type(key) is not int:
        raise ExpressionError(f"a position is a whole number, not {shown(key)}", hint="positions count from 0")
    if not -len(container) <= key < len(container):
        raise ExpressionError(
            f"there is no position {key} in a list of {len(container)}", hint="positions count from 0, from the end -1"
        )
    return container[key]


OPERATORS: dict[type[ast.AST], Callable[..., object]] = {
    ast.USub: _negative,
    ast.UAdd: _positive,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: _ordered("<", operator.lt),
    ast.LtE: _ordered("<=", operator.le),
    ast.Gt: _ordered(">", operator.gt),
    ast.GtE: _ordered(">=", operator.ge),
    ast.In: _contains,
    ast.NotIn: _lacks,
}
