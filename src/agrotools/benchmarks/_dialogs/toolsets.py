"""What is to be known of published tools by name: which make images, and in which order Agent-X gives arguments.

From toolmeta.json of GTA and its kin (open-compass/GTA, mbzuai-oryx/ThinkGeo, mbzuai-oryx/Agent-X).
"""

from collections.abc import Mapping

IMAGE_TOOLS: Mapping[str, frozenset[str]] = {
    "gta": frozenset({"DrawBox", "AddText", "Plot", "TextToImage", "ImageStylization"}),
    "gta-2": frozenset({"DrawBox", "AddText", "Plot", "TextToImage", "ImageStylization"}),
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
