"""The call that finds the red outline in a drawn picture, and what it truly returns."""

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from agrotools.build.references import PlannedCall, ref
from agrotools.core import SampleFile

INSIDE = ref(0, "regions[0].inner_box")
"""What lies inside the stroke, for the measurement that follows."""


def outline_call(file: SampleFile, item: Mapping[str, Any]) -> PlannedCall:
    """``item["box"]``: bounds inside the stroke [x0, y0, x1, y1], pixels."""
    truth: dict[str, JsonValue] = {
        "regions": [{"index": 1, "inner_box": item["box"], "color": "red"}],
        "crop_box": item["box"],
    }
    thought = f"First I need where the red outline is in {file.name}."
    return PlannedCall("extract_marked_region", {"image": file.name, "mark_color": "red"}, truth, thought=thought)
