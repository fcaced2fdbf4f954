"""How many of what a text names a picture shows."""

from typing import Annotated

from pydantic import Field

from agrotools.core import Artifact
from agrotools.tools.contract import ImageFile, Region, ToolResult, tool
from agrotools.tools.general.locate_objects import EXAMPLE, pointed_at
from agrotools.tools.general.looking import chosen_backend, look_at, marked, whole_box
from agrotools.tools.learned import LEARNED, weight_files
from agrotools.tools.vlm import VLM


class GivenObjectCount(ToolResult):
    count: int
    """how many were found"""
    boxes: tuple[tuple[int, int, int, int], ...]
    """[x0, y0, x1, y1] in pixels of each, the surest first"""
    overlay: Artifact
    """the picture with what was counted"""


@tool(category="general", version="1", backends=("offline", LEARNED, VLM), backend_files=weight_files)
def count_given_object(
    image: ImageFile,
    text: Annotated[str, Field(min_length=1, max_length=200, description="what to count, in a few words")],
    region: Region | None = None,
    score_min: Annotated[float, Field(ge=0, le=1, description="leave out what is less sure than this")] = 0.3,
) -> GivenObjectCount:
    """Count what a text names in a picture of any kind, or in a region of it.

    Needs a large model: vlm, or learned with GroundingDINO or OWLv2. For trees, plants and fruit count_objects works
    without one.

    Raises:
        ToolError: ``backend_unavailable``, ``region_empty``, and as the readers.
    """
    backend = chosen_backend("counting what a text names", learned=EXAMPLE)
    looked = look_at(image, region)
    found = pointed_at(backend, looked, text, score_min)
    edges = [whole_box(box) for box in found.boxes.tolist()]
    numbers = [str(number) for number in range(1, len(edges) + 1)]
    return GivenObjectCount(
        count=len(edges),
        boxes=tuple(edges),
        overlay=marked("counted_overlay.png", looked, edges, numbers, f"{len(edges)} counted"),
        notes=(*looked.notes, *found.notes),
        flags=tuple(dict.fromkeys((*looked.flags, *found.flags))),
    )
