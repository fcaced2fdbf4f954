"""How a function of an expression reads its arguments: plain JSON values in, numbers out, or a refusal that helps."""

from collections.abc import Callable, Sequence
from typing import cast

from pydantic import JsonValue

from agrotools.core.errors import AgrotoolsError

Number = int | float
Function = Callable[..., JsonValue]


class ExpressionError(AgrotoolsError):
    """An expression that cannot be evaluated. ``message`` says why, ``hint`` what to write instead: never without."""

    hint: str

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message, hint=hint)


def kind_of(value: object) -> str:
    """What a caller would call the value: ``a number``, ``a list``, ``text``..."""
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
    """``value`` as a number; true counts as 1 and false as 0, so that comparisons can be summed.

    Raises:
        ExpressionError: not a number.
    """
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (int, float)):
        return value
    raise ExpressionError(f"{of} needs a number, not {kind_of(value)}", hint=f"got {shown(value)}")


def numbers(value: object, of: str, least: int = 1) -> list[Number]:
    """``value`` as a list of at least ``least`` numbers.

    Raises:
        ExpressionError: not a list, an element that is no number, or too few of them.
    """
    if not isinstance(value, list):
        raise ExpressionError(
            f"{of} needs a list of numbers, not {kind_of(value)}", hint="write the numbers as [1.5, 2, 3.25]"
        )
    items = cast("list[object]", value)
    if len(items) < least:
        need = "one number" if least == 1 else f"{least} numbers"
        raise ExpressionError(f"{of} needs at least {need}, not {len(items)}", hint="give a longer list")
    for position, item in enumerate(items):
        if not isinstance(item, (int, float)):
            raise ExpressionError(
                f"{of} needs a list of numbers, but element [{position}] is {kind_of(item)}",
                hint="leave out what is not a number",
            )
    return [int(item) if isinstance(item, bool) else item for item in cast("list[Number]", items)]


def paired(first: object, second: object, of: str, least: int = 1) -> tuple[list[Number], list[Number]]:
    """Two lists of numbers of the same length."""
    left, right = numbers(first, of), numbers(second, of)
    if len(left) != len(right):
        raise ExpressionError(
            f"{of} needs two lists of the same length, not {len(left)} and {len(right)}",
            hint="pair each value of the first list with one of the second",
        )
    numbers(first, of, least)
    return left, right


def shown(value: object) -> str:
    """``value`` as it may stand in a message: short."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def spread(values: Sequence[object], of: str) -> list[Number]:
    """Numbers given either as one list or one by one."""
    if len(values) == 1 and isinstance(values[0], list):
        return numbers(cast(object, values[0]), of)
    if not values:
        raise ExpressionError(f"{of} needs at least one number", hint=f"write {of}([1, 2, 3])")
    return [number(value, of) for value in values]


def whole(value: object, of: str, low: int, high: int) -> int:
    """``value`` as a whole number from ``low`` to ``high``."""
    as_number = number(value, of)
    if as_number != int(as_number) or not low <= as_number <= high:
        least, most = (f"{limit:g}" if abs(limit) > 1e15 else str(limit) for limit in (low, high))
        what = "a whole number"
        if as_number == int(as_number):
            what = f"at least {least}" if as_number < low else f"at most {most}"
        raise ExpressionError(
            f"{of} must be {what}, not {shown(value)}", hint=f"give a whole number from {least} to {most}"
        )
    return int(as_number)
