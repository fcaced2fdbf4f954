"""The tools of GTA and ThinkGeo as arguments are compared: what each parameter is, and its declared default.

Names and defaults are those of GTA's toolmeta.json and ThinkGeo's tools (both Apache-2.0).
"""

from collections.abc import Mapping
from functools import cache

from pydantic import JsonValue

from agrotools.core import AgreementKind, ToolSpec

_PARAMETERS: Mapping[str, Mapping[str, AgreementKind]] = {
    "Calculator": {"expression": "expression"},
    "OCR": {"image": "file"},
    "CountGivenObject": {"image": "file", "text": "text", "bbox": "box"},
    "ImageDescription": {"image": "file"},
    "GoogleSearch": {"query": "text", "k": "number"},
    "RegionAttributeDescription": {"image": "file", "bbox": "box", "attribute": "text"},
    "TextToBbox": {"image": "file", "text": "text", "top1": "choice"},
    "Plot": {"command": "text"},
    "MathOCR": {"image": "file"},
    "Solver": {"command": "text"},
    "DrawBox": {"image": "file", "bbox": "box", "annotation": "text"},
    "AddText": {"image": "file", "text": "text", "position": "choice", "color": "choice"},
    "TextToImage": {"keywords": "text"},
    "ImageStylization": {"image": "file", "instruction": "text"},
    "ObjectDetection": {"image": "file"},
    "ChangeDetection": {"text": "text", "pre_image": "file", "post_image": "file"},
    "SegmentObjectPixels": {"image": "file", "text": "text", "flag": "choice"},
}
_DEFAULTS: Mapping[str, dict[str, JsonValue]] = {
    "GoogleSearch": {"k": 10},
    "TextToBbox": {"top1": True},
    "DrawBox": {"annotation": None},
    "AddText": {"color": "red"},
    "CountGivenObject": {"bbox": None},
    "SegmentObjectPixels": {"flag": True},
}


@cache
def published_specs() -> Mapping[str, ToolSpec]:
    """The tools by name, with no more than the comparison of arguments needs."""
    return {
        name: ToolSpec(
            name=name,
            category="published",
            version="1",
            description="",
            parameters={},
            agreement=dict(kinds),
            defaults=_DEFAULTS.get(name, {}),
        )
        for name, kinds in _PARAMETERS.items()
    }
