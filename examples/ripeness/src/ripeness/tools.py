"""Tool of the benchmark."""

from typing import Annotated

from pydantic import Field

from agrotools import ToolError
from agrotools.calling import ToolResult, tool

_GRADES = {"green": 1, "turning": 2, "pink": 3, "red": 4, "dark red": 5}


class Grade(ToolResult):
    """A grade of ripeness."""

    grade: int


@tool(category="recognition", version="1")
def grade_colour(
    colour: Annotated[str, Field(description="colour of the skin, e.g. pink")],
) -> Grade:
    """Grade the ripeness of a tomato by its colour, from 1 (green) to 5 (dark red)."""
    if colour not in _GRADES:
        raise ToolError(
            "invalid_argument", f"no grade for the colour {colour!r}", argument="colour"
        )
    return Grade(grade=_GRADES[colour])
