"""The calculate tool: exact values, honest steps, and typed errors for everything else."""

import builtins
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import ToolError
from agrotools.text.expressions import FUNCTIONS
from agrotools_tools import calculate
from agrotools_tools.general.calculate import round_values


def refusal(expression: Any, variables: Any = None, **others: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        calculate(expression=expression, variables=variables, **others)
    assert caught.value.kind == "invalid_argument"
    return caught.value


@pytest.mark.parametrize(
    ("expression", "variables", "value"),
    [
        ("(a - b) / a * 100", {"a": 4, "b": 3}, 25.0), ("1 / 3", {}, 0.333333), ("1e-7 * 3", {}, 3e-7),
        ("mean(values)", {"values": [1, 2, 6]}, 3), ("max(values) > 5", {"values": [1, 2, 6]}, True),
        ("label_of_max(names, values)", {"names": ["crop", "weed"], "values": [3, 5]}, "weed"),
        ("[a, 1 / 3]", {"a": 1}, [1, 0.333333]), ("1234567.891", {}, 1234567.891),
    ],
)  # fmt: skip
def test_an_expression_has_its_value(expression, variables, value):
    assert calculate(expression, variables).value == value


def test_steps_show_how_the_value_came_about_up_to_the_last_ones():
    found = calculate("(a - b) / a * 100", {"a": 3, "b": 1}, unit="%")
    assert found.steps == ("a - b = 2", "(a - b) / a = 0.666667", "(a - b) / a * 100 = 66.666667")
    assert (found.unit, found.expression) == ("%", "(a - b) / a * 100")
    found = calculate("+".join(["1"] * 60))
    assert (found.value, len(found.steps)) == (60, 20)
    assert found.steps[-1].endswith("= 60")
    assert found.notes == ("the first 39 steps are left out",)


@pytest.mark.parametrize(
    ("precision", "value"), [(0, 67), (1, 66.7), (6, 66.666667), (12, 66.666666666667)]
)
def test_precision_counts_decimals(precision, value):
    assert calculate("200 / 3", precision=precision).value == value


@given(
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e9, max_value=1e9),
    st.integers(1, 12),
)
def test_rounding_errs_by_half_a_unit_of_the_last_digit_at_most(value, precision):
    found: Any = round_values(value, precision)
    step = 10.0**-precision * (1 if abs(value) >= 1 else abs(value) * 10)
    assert abs(found - value) <= step * 0.5000001 + 1e-15 * abs(value)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("1 / 0", "division by zero"),
        ("x + 1", "x is not defined"),
        ("sqrt(-1)", "sqrt"),
        ("a +", "expression"),
    ],
)
def test_a_value_that_does_not_exist_says_why(expression, says):
    assert says in refusal(expression, {"a": 1}).message


def test_functions_are_described_and_the_argument_at_fault_named():
    for variables in ({"_a": 1}, {"a": float("nan")}, {"a": {"b": 1}}, [1], {"a": [1] * 20_000}):
        assert refusal("1", variables).argument == "variables"
    assert [refusal(expression).argument for expression in ("", "1" * 501, 5)] == ["expression"] * 3
    assert [refusal("1", precision=precision).argument for precision in (13, 1.5)] == [
        "precision"
    ] * 2
    assert refusal("1", unit=3).argument == "unit"
    words = set(re.findall(r"[a-z]\w*", calculate.spec.description))
    usual = {name for name in FUNCTIONS if any(hasattr(of, name) for of in (builtins, math, np))}
    assert {*FUNCTIONS} - words - usual == {
        "corr",
        "mae",
        "mape",
    }  # beside linreg and rmse, which are named
