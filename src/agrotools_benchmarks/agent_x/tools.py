"""Tools of Agent-X (Ashraf et al. 2025, arXiv 2505.24876) that are tools of GTA under other names."""

from functools import wraps
from typing import ParamSpec, TypeVar

from agrotools.calling.contract import Tool, ToolResult
from agrotools_benchmarks._dialogs.tools import (
    AddText,
    CountGivenObject,
    Description,
    DrawBox,
    GoogleSearch,
    ImageDescription,
    PictureFile,
    Plot,
    PublishedText,
    RegionAttributeDescription,
    TextToBbox,
    TextToImage,
    published,
)
from agrotools_tools.general.objects import count_given_object

P = ParamSpec("P")
R = TypeVar("R", bound=ToolResult)


def _renamed(name: str, tool: Tool[P, R]) -> Tool[P, R]:
    """Return ``tool`` under another published name."""

    @wraps(tool.function)
    def function(*arguments: P.args, **named: P.kwargs) -> R:
        return tool.function(*arguments, **named)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__  # workers import a tool from its module
    return published(tool)(function)


@published(count_given_object)
def ObjectCounter(image: PictureFile, text: Description) -> PublishedText:
    """Count an object in an image. Gives a whole number."""
    return CountGivenObject.function(image, text)


SceneDescriber = _renamed("SceneDescriber", ImageDescription)
WebSearch = _renamed("WebSearch", GoogleSearch)
RegionDescriber = _renamed("RegionDescriber", RegionAttributeDescription)
LocateObjectByText = _renamed("LocateObjectByText", TextToBbox)
CodePlotter = _renamed("CodePlotter", Plot)
DrawBoundingBox = _renamed("DrawBoundingBox", DrawBox)
OverlayText = _renamed("OverlayText", AddText)
ImageGenerator = _renamed("ImageGenerator", TextToImage)
