"""Arithmetic on values measured by other tools."""

from typing import Annotated

from pydantic import Field, JsonValue

from agrotools.calling.contract import Agree, ToolResult, tool
from agrotools.core import ToolError
from agrotools.text.expression_functions import ExpressionError
from agrotools.text.expressions import evaluate, evaluate_steps

MOST_STEPS = 20

Number = int | float
Variables = dict[str, Number | str | list[Number | str | list[Number]]]
NO_VARIABLES: Variables = {}


class Calculation(ToolResult):
    value: JsonValue
    """the value: a number, a list, true or false, or text"""
    expression: str
    """the expression as it was read"""
    unit: str | None
    """the unit given in the call"""
    steps: tuple[str, ...]
    """the parts of the expression in the order of evaluation, each with its value"""


@tool(
    category="analytics",
    version="1",
    significant_digits=None,
    cacheable=False,
    expert=("precision",),
    example={"expression": "a / b * 100", "variables": {"a": 12, "b": 48}},
)
def calculate(
    expression: Annotated[str, Agree("expression"), Field(min_length=1, max_length=500)],
    variables: Annotated[
        Variables, Agree("variables"), Field(description="values by name")
    ] = NO_VARIABLES,
    unit: Annotated[
        str | None, Agree("presentation"), Field(max_length=40, description="of the value")
    ] = None,
    precision: Annotated[int, Agree("presentation"), Field(ge=0, le=12)] = 6,
) -> Calculation:
    """Calculate an arithmetic expression exactly.

    It takes Python's operators, lists, usual functions (ln, mean, std, percentile, argmax, linreg, rmse...), also cv
    weighted_mean diff scale label_of_max label_of_min labels_by_value count_above count_below pluck percent_change ndvi
    gndvi ndre ndwi savi evi exg lai_beer severity incidence disease_index audpc efficacy_abbott plants_per_ha
    seeding_rate gdd rgr jm oif, and convert(x, 'm^2', 'ha').

    Raises:
        ToolError: ``invalid_argument`` where the expression cannot be read, names something unknown, has no value
            (division by zero...), or would cost too much.
    """
    try:
        steps = evaluate_steps(expression, variables)
    except ExpressionError as error:
        at_fault = "expression" if _are_finite(variables) else "variables"
        raise ToolError(
            "invalid_argument", error.message, argument=at_fault, hint=error.hint
        ) from None
    parts = [
        f"{step.expression} = {_excerpt(round_values(step.value, precision))}" for step in steps
    ]
    left_out = len(parts) - MOST_STEPS
    return Calculation(
        value=round_values(steps[-1].value, precision),
        expression=steps[-1].expression,
        unit=unit,
        steps=tuple(parts[-MOST_STEPS:]),
        notes=(f"the first {left_out} steps are left out",) if left_out > 0 else (),
    )


def round_values(value: JsonValue, precision: int) -> JsonValue:
    """Round floats to ``precision`` decimals; floats below 1 to that many significant digits, to keep their value."""
    if isinstance(value, float):
        if precision == 0 or abs(value) >= 1:
            return round(value, precision) if precision else float(round(value))
        return float(f"{value:.{precision}g}")
    if isinstance(value, list):
        return [round_values(item, precision) for item in value]
    if isinstance(value, dict):
        return {key: round_values(item, precision) for key, item in value.items()}
    return value


def _are_finite(variables: Variables) -> bool:
    try:
        evaluate("0", variables)
    except ExpressionError:
        return False
    return True


def _excerpt(value: JsonValue) -> str:
    text = str(value)
    return text if len(text) <= 200 else text[:197] + "..."
