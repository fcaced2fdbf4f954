"""The section on intervals and probabilities: complete, about existing fields, and with stored figures."""

import typing
from typing import Any

from accuracy import STUDIES
from accuracy.uncertainty import quantities
from agrotools.tools import get_tool

_NO_MEASUREMENT = {"lookup_agronomy", "calculate", "plot", "extract_marked_region"}


def _has_number(annotation: Any) -> bool:
    return annotation in (int, float) or any(_has_number(part) for part in typing.get_args(annotation))


def test_every_number_of_a_result_is_a_quantity_or_said_to_be_none():
    listed, not_measured = quantities()
    for tool in {one.tool for one in listed} | set(not_measured):
        fields = get_tool(tool).result_type.model_fields
        named = {name for one in listed if one.tool == tool for name in one.fields} | set(not_measured.get(tool, ()))
        assert named <= set(fields), f"{tool} has no such field"
        numbers = {name for name, field in fields.items() if _has_number(field.annotation)}
        assert numbers <= named, tool
    assert {one.tool for one in listed} | _NO_MEASUREMENT >= set(STUDIES)
