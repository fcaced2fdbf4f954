"""Tools of a task as functions of Python."""

import inspect
from typing import Any

from agrotools.agents.task import ToolDescription, ToolFunctions


def test_an_argument_that_python_does_not_take_is_given_by_its_name():
    properties = {"from": {"type": "string"}, "days": {"type": "integer", "default": 7}}
    described = ToolDescription(
        name="rain",
        description="Rain of some days.",
        parameters={"type": "object", "properties": properties, "required": ["from"]},
    )
    made: list[dict[str, Any]] = []

    def call(_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        made.append(arguments)
        return {"result": {"mm": 3}}

    rain = ToolFunctions([described], call).rain
    assert rain(**{"from": "2026-05-01"}) == {"mm": 3}
    assert made == [{"from": "2026-05-01"}]
    assert list(inspect.signature(rain).parameters) == ["days"]
    assert "from: from" in (rain.__doc__ or "")
