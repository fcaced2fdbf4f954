"""All common things that a picture shows, with their names."""

from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from agrotools.core import Artifact
from agrotools.tools.contract import ImageFile, ToolResult, tool
from agrotools.tools.general.looking import chosen_backend, look_at, marked, whole_box
from agrotools.tools.learned import LEARNED, name_common, weight_files
from agrotools.tools.vlm import VLM

COCO_NAMES = tuple(
    "person|bicycle|car|motorcycle|airplane|bus|train|truck|boat|traffic light|fire hydrant|stop sign|parking meter|"
    "bench|bird|cat|dog|horse|sheep|cow|elephant|bear|zebra|giraffe|backpack|umbrella|handbag|tie|suitcase|frisbee|"
    "skis|snowboard|sports ball|kite|baseball bat|baseball glove|skateboard|surfboard|tennis racket|bottle|wine glass|"
    "cup|fork|knife|spoon|bowl|banana|apple|sandwich|orange|broccoli|carrot|hot dog|pizza|donut|cake|chair|couch|"
    "potted plant|bed|dining table|toilet|tv|laptop|mouse|remote|keyboard|cell phone|microwave|oven|toaster|sink|"
    "refrigerator|book|clock|vase|scissors|teddy bear|hair drier|toothbrush".split("|")
)
"""The 80 kinds of things of COCO (Lin et al. 2014, arXiv 1405.0312)."""


class NamedObject(BaseModel):
    """One thing."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    name: str
    """what it is"""
    box: tuple[int, int, int, int]
    """[x0, y0, x1, y1] in pixels"""
    score: float
    """0..1, no probability"""


class DetectedObjects(ToolResult):
    objects: tuple[NamedObject, ...]
    """all things found, the surest first"""
    counts: dict[str, int]
    """how many of each name"""
    overlay: Artifact
    """the picture with names and boxes"""


@tool(category="general", version="1", backends=("offline", LEARNED, VLM), backend_files=weight_files)
def detect_objects(
    image: ImageFile,
    score_min: Annotated[float, Field(ge=0, le=1, description="leave out what is less sure than this")] = 0.5,
) -> DetectedObjects:
    """Find all common things in a picture and name them, by the 80 names of COCO: person, car, cow, apple, chair...

    Needs a large model: vlm, or learned with RT-DETR or DETR, which give the names that they were taught.

    Raises:
        ToolError: ``backend_unavailable``, and as the readers.
    """
    backend = chosen_backend("finding all common things", learned="PekingU/rtdetr_r50vd")
    looked = look_at(image)
    if backend == VLM:
        from agrotools.tools.vlm.general import name_things

        found = name_things(looked.pixels, looked.box, COCO_NAMES)
    else:
        found = name_common(backend, looked.pixels, score_min)
    kept = [index for index in np.argsort(-found.scores, kind="stable").tolist() if found.scores[index] >= score_min]
    objects = tuple(
        NamedObject(
            name=found.labels[index], box=whole_box(found.boxes[index].tolist()), score=float(found.scores[index])
        )
        for index in kept
    )
    names = [each.name for each in objects]
    return DetectedObjects(
        objects=objects,
        counts={name: names.count(name) for name in dict.fromkeys(names)},
        overlay=marked(
            "detected_overlay.png", looked, [each.box for each in objects], names, f"{len(objects)} things found"
        ),
        notes=(*looked.notes, *found.notes),
        flags=tuple(dict.fromkeys((*looked.flags, *found.flags))),
    )
