"""The published tools by name: which benchmark has which, in which order they take what, and which make images.

From toolmeta.json of GTA and its kin (open-compass/GTA, mbzuai-oryx/ThinkGeo, mbzuai-oryx/Agent-X).
"""

from collections.abc import Mapping

GTA_TOOLS = (
    "Calculator", "OCR", "CountGivenObject", "ImageDescription", "GoogleSearch", "RegionAttributeDescription",
    "TextToBbox", "Plot", "MathOCR", "Solver", "DrawBox", "AddText", "TextToImage", "ImageStylization",
)  # fmt: skip
THINKGEO_TOOLS = (
    "Calculator", "GoogleSearch", "Plot", "Solver", "OCR", "DrawBox", "AddText", "RegionAttributeDescription",
    "SegmentObjectPixels", "ObjectDetection", "ChangeDetection", "ImageDescription", "TextToBbox", "CountGivenObject",
)  # fmt: skip
AGENT_X_TOOLS = (
    "Calculator", "OCR", "ObjectCounter", "SceneDescriber", "WebSearch", "RegionDescriber", "LocateObjectByText",
    "CodePlotter", "MathOCR", "Solver", "DrawBoundingBox", "OverlayText", "ImageGenerator", "ImageStylization",
)  # fmt: skip

IMAGE_TOOLS: Mapping[str, frozenset[str]] = {
    "gta": frozenset({"DrawBox", "AddText", "Plot", "TextToImage", "ImageStylization"}),
    "thinkgeo": frozenset({"DrawBox", "AddText", "Plot"}),
    "agent-x": frozenset({"DrawBoundingBox", "OverlayText", "CodePlotter", "ImageGenerator", "ImageStylization"}),
}
"""The tools of a benchmark that return an image."""

AGENT_X_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "Calculator": ("expression",),
    "OCR": ("image",),
    "ObjectCounter": ("image", "text"),
    "SceneDescriber": ("image",),
    "WebSearch": ("query",),
    "RegionDescriber": ("image", "bbox", "attribute"),
    "LocateObjectByText": ("image", "text"),
    "CodePlotter": ("command",),
    "MathOCR": ("image",),
    "Solver": ("command",),
    "DrawBoundingBox": ("image", "bbox", "annotation"),
    "OverlayText": ("image", "text", "position"),
    "ImageGenerator": ("keywords",),
    "ImageStylization": ("image", "instruction"),
}
"""What the tools of Agent-X take, in order."""


def known_tool(name: str) -> bool:
    """Whether a tool of that name is published with one of the benchmarks, or installed here."""
    from agrotools.tools import tool_names

    return name in {*GTA_TOOLS, *THINKGEO_TOOLS, *AGENT_X_TOOLS} or name in tool_names()


CATEGORIES: Mapping[str, str] = {
    **dict.fromkeys(("OCR", "ImageDescription", "RegionAttributeDescription", "TextToBbox"), "perception"),
    **dict.fromkeys(("ChangeDetection", "ObjectDetection", "SegmentObjectPixels"), "perception"),
    **dict.fromkeys(("DrawBox", "AddText", "GoogleSearch"), "operation"),
    **dict.fromkeys(("Calculator", "Solver", "Plot", "MathOCR", "CountGivenObject"), "logic"),
    **dict.fromkeys(("TextToImage", "ImageStylization"), "creativity"),
    **dict.fromkeys(("SceneDescriber", "RegionDescriber", "LocateObjectByText"), "perception"),
    **dict.fromkeys(("DrawBoundingBox", "OverlayText", "WebSearch"), "operation"),
    **dict.fromkeys(("ObjectCounter", "CodePlotter"), "logic"),
    "ImageGenerator": "creativity",
}
"""The categories of GTA's and ThinkGeo's scorers; tools of Agent-X are in that of the tool of GTA that they are."""
