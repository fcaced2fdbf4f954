"""One of our tools, for tests of bindings: it measures a leaf, in units that a server does not use."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from agrotools.calling import Agree, ImageFile, Region, ToolResult, tool
from agrotools.calling.contract import Tool
from agrotools.calling.result import ResultPart
from agrotools.core import UsageError


class Leaf(ResultPart):
    area_cm2: float
    """Area."""


class Leaves(ToolResult):
    leaves: list[Leaf]
    """Leaves."""
    total_cm2: float
    """Area of all."""


@tool(category="measurement", libraries=())
def measure_leaf(
    image: ImageFile,
    crop: Annotated[str, Agree("text"), Field(description="crop")] = "coffee",
    region: Region | None = None,
) -> Leaves:
    """Measure a leaf."""
    area = Path(image).stat().st_size / 100
    return Leaves(leaves=[Leaf(area_cm2=area)], total_cm2=area)


def find_tool(name: str) -> Tool:
    if name != "measure_leaf":
        raise UsageError(f"there is no tool {name!r}", hint="known: measure_leaf")
    return measure_leaf
