"""Expressions as the published Calculator takes them: Python with the names of its module ``math``.

They are evaluated by our own evaluator, which runs no code; the functions of ``math`` that it lacks are given to it.
What Python takes beyond that (comprehensions, tuples, methods...) is refused with a hint.
"""

import math
import re

from pydantic import JsonValue

from agrotools.core import ToolError
from agrotools.text.expression_functions import ExpressionError, Function, number, numbers, of_real, paired, whole
from agrotools.text.expressions import evaluate

_MODULE = re.compile(r"(?<![\w.])math\.(?=[a-z])")
_IN_ANOTHER_BASE = re.compile(r"(?<![\w.])0(?:[xX][\da-fA-F]+|[oO][0-7]+|[bB][01]+)(?![\w.])")
_LARGEST = 10**300
_LONGEST = 1_000
"""A text much longer than the longest expression is not read to its end."""


def calculated(expression: str) -> str:
    """The value of an expression as Python prints it.

    Raises:
        ToolError: ``invalid_argument``: it cannot be read, has no value, or would cost too much.
    """
    text = _IN_ANOTHER_BASE.sub(lambda written: str(int(written[0], 0)), _MODULE.sub("", expression[:_LONGEST]))
    try:
        return str(evaluate(text, {"tau": math.tau}, functions=_FUNCTIONS))
    except ExpressionError as error:
        raise ToolError("invalid_argument", error.message, argument="expression", hint=error.hint) from None


def power(x: JsonValue, y: JsonValue) -> JsonValue:
    """``x`` to the power ``y``, never a whole number."""
    return math.pow(number(x, "pow"), number(y, "pow"))


def remainder_like_x(x: JsonValue, y: JsonValue) -> JsonValue:
    """Remainder of ``x`` divided by ``y``, with the sign of ``x``."""
    return math.fmod(number(x, "fmod"), number(y, "fmod"))


def remainder_nearest(x: JsonValue, y: JsonValue) -> JsonValue:
    """``x`` minus the nearest multiple of ``y``."""
    return math.remainder(number(x, "remainder"), number(y, "remainder"))


def with_sign(x: JsonValue, y: JsonValue) -> JsonValue:
    """``x`` with the sign of ``y``."""
    return math.copysign(number(x, "copysign"), number(y, "copysign"))


def exact_sum(values: JsonValue) -> JsonValue:
    """The sum of a list, rounded once."""
    return math.fsum(numbers(values, "fsum", least=0))


def distance(p: JsonValue, q: JsonValue) -> JsonValue:
    """Distance between two points, lists of as many coordinates."""
    return math.dist(*paired(p, q, "dist"))


def hypotenuse(*coordinates: JsonValue) -> JsonValue:
    """Distance of a point from the origin."""
    return math.hypot(*(number(each, "hypot") for each in coordinates))


def permutations(n: JsonValue, k: JsonValue = None) -> JsonValue:
    """Ways to choose ``k`` (default: all) of ``n`` in order; whole numbers, 0 to 1000."""
    chosen = None if k is None else whole(k, "perm: k", 0, 1000)
    return math.perm(whole(n, "perm: n", 0, 1000), chosen)


def whole_root(n: JsonValue) -> JsonValue:
    """The whole part of the square root of a whole number."""
    return math.isqrt(whole(n, "isqrt: n", 0, _LARGEST))


def common_divisor(*values: JsonValue) -> JsonValue:
    """The greatest common divisor of whole numbers."""
    return math.gcd(*(whole(each, "gcd", -_LARGEST, _LARGEST) for each in values))


def common_multiple(*values: JsonValue) -> JsonValue:
    """The least common multiple of whole numbers."""
    multiple = 1
    for each in values:
        multiple = math.lcm(multiple, whole(each, "lcm", -_LARGEST, _LARGEST))
        if multiple > _LARGEST:
            raise OverflowError
    return multiple


_OF_ANY_NUMBER = {
    "asinh": math.asinh,
    "cosh": math.cosh,
    "erf": math.erf,
    "erfc": math.erfc,
    "exp2": math.exp2,
    "expm1": math.expm1,
    "fabs": math.fabs,
    "sinh": math.sinh,
    "tanh": math.tanh,
    "trunc": math.trunc,
}
_FUNCTIONS: dict[str, Function] = {
    **{name: of_real(name, function, "any number") for name, function in _OF_ANY_NUMBER.items()},
    "acosh": of_real("acosh", math.acosh, "a number from 1"),
    "atanh": of_real("atanh", math.atanh, "a number between -1 and 1"),
    "gamma": of_real("gamma", math.gamma, "any number but 0, -1, -2..."),
    "lgamma": of_real("lgamma", math.lgamma, "any number but 0, -1, -2..."),
    "log1p": of_real("log1p", math.log1p, "a number above -1"),
    "copysign": with_sign,
    "dist": distance,
    "fmod": remainder_like_x,
    "fsum": exact_sum,
    "gcd": common_divisor,
    "hypot": hypotenuse,
    "isqrt": whole_root,
    "lcm": common_multiple,
    "perm": permutations,
    "pow": power,
    "remainder": remainder_nearest,
}
"""Functions of Python's ``math`` that ordinary expressions lack, or have in another form."""
