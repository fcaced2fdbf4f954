"""The error of an invalid call ends with a valid call of this tool on the files of the question."""

import json
from pathlib import Path
from typing import Any

import pytest

from agrotools.calling import get_tool, tool
from agrotools.calling.contract import ToolDeclarationError, ToolResult
from agrotools.calling.example_calls import example_call
from agrotools.calling.execution import ToolExecutor
from agrotools.calling.workspace import Workspace
from agrotools.core import SampleFile, ToolCall, ToolError
from agrotools_tools import AGROTOOLS


def file(name: str, kind: Any) -> SampleFile:
    return SampleFile(name=name, path=f"/data/{name}", kind=kind)


FILES = (
    file("image_1.jpg", "image"),
    file("image_2.jpg", "image"),
    file("depth_1.png", "depth"),
    file("heights_1.tif", "raster"),
)


@pytest.mark.parametrize("name", AGROTOOLS)
def test_every_agricultural_tool_has_an_example_that_is_valid_on_files_of_a_question(name: str):
    call = example_call(get_tool(name), {}, FILES)
    assert call is not None
    get_tool(name).validate(call)
    files = [value for value in call.values() if isinstance(value, str) and "_1." in value]
    assert {*files} <= {each.name for each in FILES}


def test_files_that_a_call_names_stay_and_two_files_differ():
    change = get_tool("detect_change")
    assert example_call(change, {}, FILES) == {
        "before": "image_1.jpg",
        "after": "image_2.jpg",
        "target": "farmland",
    }
    count = get_tool("count_objects")
    assert (example_call(count, {"image": "image_2.jpg"}, FILES) or {})["image"] == "image_2.jpg"
    heights = get_tool("estimate_canopy_height")
    assert example_call(heights, {}, FILES) == {"chm": "heights_1.tif"}
    assert example_call(get_tool("measure_fruit_size"), {}, FILES[:2]) is None


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("calculate", {"expression": "a + 1", "variables": {"heights_1.tif": 2}}),
        ("plot", {"kind": "bar", "series": [{"name": "yield", "y": [1, 2]}]}),
        ("count_objects", {"image": "image_1.jpg", "colour": "red"}),
    ],
)
async def test_an_invalid_call_is_answered_with_a_valid_one(
    tmp_path: Path, name: str, arguments: Any
):
    workspace = Workspace(FILES, tmp_path)
    async with ToolExecutor(1) as executor:
        outcome = await executor.run(ToolCall(tool=name, arguments=arguments), workspace, (name,))
    error = outcome.observation.error
    assert error is not None
    assert error.kind == "invalid_argument"
    _, _, shown = (error.hint or "").rpartition(f"a valid call: {name} ")
    get_tool(name).validate(json.loads(shown))


def test_an_example_that_is_no_valid_call_is_refused_when_the_tool_is_declared():
    with pytest.raises(ToolDeclarationError, match="the example is no valid call"):

        @tool(category="measurement", example={"size": "large"})
        def own(size: int) -> ToolResult:  # pyright: ignore[reportUnusedFunction]
            """Measure."""
            raise ToolError("tool_failed", str(size))
