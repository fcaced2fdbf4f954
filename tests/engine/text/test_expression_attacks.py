"""Hostile expressions: every one is refused or answered, quickly, and reaches nothing outside the evaluator."""

import random

import pytest

from agrotools.text.expressions import ExpressionError, evaluate

REACHING_OUT = [
    "__import__('os').system('true')", "().__class__.__bases__[0].__subclasses__()", "''.__class__.__mro__[1]",
    "mean.__globals__", "eval('1')", "open('/etc/passwd')", "rand()", "'{0.__class__}'.format(1)",
    "f'{().__class__}'", "(lambda: 1)()", "[x for x in (1, 2)]", "(yield)", "a := 1", "a = 1", "import os",
    "a; b", "1 if 1 else exit()", "mean", "abs(sum)", "(sum if 1 else max)([1])",
]  # fmt: skip

TOO_MUCH = [
    "9**9**9**9", "10**400", "(10**300)**1000", "1e308 * 1e10", "1" + "0" * 400, "'a' * 10**9", "[0] * 10**9",
    "'%1000000000d' % 1", "factorial(10**6)", "factorial(170)**100", "comb(10**9, 10**8)", "round(1, 10**10)",
    "(" * 41 + "1" + ")" * 41, "-" * 499 + "1", "abs(" * 99 + "1" + ")" * 99, "1 if 1 else " * 41 + "0",
    "[1," * 60 + "1" + "]" * 60, "1" * 501, "prod([" + ",".join(["1e30"] * 20) + "])",
]  # fmt: skip


def error_of(expression, variables=None):
    try:
        evaluate(expression, variables)
    except ExpressionError as error:
        return error
    return None


@pytest.mark.parametrize("expression", REACHING_OUT)
def test_nothing_outside_is_reached(expression):
    with pytest.raises(ExpressionError):
        evaluate(expression, {"a": 1, "b": 2})


@pytest.mark.parametrize("expression", TOO_MUCH, ids=lambda expression: expression[:20])
def test_too_much_is_refused_at_once(expression):
    assert error_of(expression).hint


def _lists():
    source = random.Random(7)
    yield [source.random() for _ in range(10_000)]
    yield [source.random() * 10.0 ** source.randint(-300, 300) for _ in range(10_000)]
    yield [10**300 + source.randint(0, 10**300) for _ in range(10_000)]


@pytest.mark.parametrize("values", list(_lists()), ids=["plain", "all magnitudes", "huge"])
@pytest.mark.parametrize(
    "expression",
    [
        "+".join(["std(a)"] * 60), "[" + ",".join(["a"] * 240) + "]", "sum([" + ",".join(["sum(a)"] * 60) + "])",
        "corr(a,sorted(a))+linreg(a,sorted(a))[0]+corr(a,a)", "==".join(["a"] * 160),
        " + ".join(["(0 in a)"] * 40), "percentile(a,5)+median(a)+percentile(a,9)+max(a)", "prod(a)",
    ],
    ids=lambda expression: expression[:14],
)  # fmt: skip
def test_long_lists_have_a_value_or_a_typed_error(expression, values):
    error_of(expression, {"a": values})  # what is not bounded takes minutes


def test_long_and_nested_variables_are_refused():
    with pytest.raises(ExpressionError, match="variables hold more than"):
        evaluate("1", {f"a{index}": [0] * 9_000 for index in range(100)})
    nested: list = []
    for _ in range(5_000):
        nested = [nested]
    with pytest.raises(ExpressionError, match="nested"):
        evaluate("1", {"a": nested})
    with pytest.raises(ExpressionError, match="nested"):
        evaluate("1", {"a": {"b": nested}})
