"""Where a picture shows what a text names."""

from typing import Annotated, cast

import numpy as np
from pydantic import Field

from agrotools.core import Arguments, Artifact
from agrotools.tools.contract import ImageFile, Region, ToolResult, tool
from agrotools.tools.general.looking import Looked, chosen_backend, look_at, marked, whole_box
from agrotools.tools.learned import LEARNED, find_learned, weight_files
from agrotools.tools.resolving import Known
from agrotools.tools.vlm import VLM
from agrotools.tools.vlm.said import Pointed

EXAMPLE = "IDEA-Research/grounding-dino-tiny"
ANY_SCORE = 0.05
"""A detector gives hundreds of boxes below this, which mean nothing."""


class LocatedObjects(ToolResult):
    count: int
    """how many were found"""
    boxes: tuple[tuple[int, int, int, int], ...]
    """[x0, y0, x1, y1] in pixels, the surest first"""
    scores: tuple[float, ...]
    """0..1 in the order of boxes; no probabilities"""
    overlay: Artifact
    """the picture with the boxes drawn in"""


def _resolved(call: Arguments, _known: Known) -> Arguments:
    """The score that counts: for the surest thing alone hardly any is too low."""
    return {**call, "score_min": _least_score(cast(float, call["score_min"]), top1=call["top1"] is True)}


def _least_score(score_min: float, *, top1: bool) -> float:
    return min(score_min, ANY_SCORE) if top1 else score_min


@tool(
    category="general",
    version="1",
    backends=("offline", LEARNED, VLM),
    backend_files=weight_files,
    resolves=_resolved,
)
def locate_objects(
    image: ImageFile,
    text: Annotated[str, Field(min_length=1, max_length=200, description="what to find, in a few words")],
    top1: Annotated[bool, Field(description="only the surest one")] = True,
    region: Region | None = None,
    score_min: Annotated[float, Field(ge=0, le=1, description="leave out what is less sure than this")] = 0.3,
) -> LocatedObjects:
    """Find what a text names in a picture and give its boxes.

    Needs a large model: vlm, or learned with GroundingDINO or OWLv2. With top1 the surest thing is given, however
    unsure, unless nothing is found at all.

    Raises:
        ToolError: ``backend_unavailable``, ``region_empty``, and as the readers.
    """
    backend = chosen_backend("finding what a text names", learned=EXAMPLE)
    looked = look_at(image, region)
    found = pointed_at(backend, looked, text, _least_score(score_min, top1=top1))
    boxes, scores = found.boxes[:1] if top1 else found.boxes, found.scores[:1] if top1 else found.scores
    edges = [whole_box(box) for box in boxes.tolist()]
    labels = [f"{score:.2f}" for score in scores.tolist()]
    return LocatedObjects(
        count=len(edges),
        boxes=tuple(edges),
        scores=tuple(scores.tolist()),
        overlay=marked("located_overlay.png", looked, edges, labels, f"{len(edges)} found"),
        notes=(*looked.notes, *found.notes),
        flags=tuple(dict.fromkeys((*looked.flags, *found.flags))),
    )


def pointed_at(backend: str, looked: Looked, text: str, score_min: float) -> Pointed:
    """What a back-end takes for ``text``, the surest first, with a score of ``score_min`` at least.

    Raises:
        ToolError: as :func:`locate_objects`.
    """
    if backend == VLM:
        from agrotools.tools.vlm.counting import point_out

        found = point_out(looked.pixels, looked.box, text)
    else:
        found = find_learned(backend, looked.pixels, looked.box, text, score_min)
    kept = np.flatnonzero(found.scores >= score_min)
    return found._replace(boxes=found.boxes[kept], scores=found.scores[kept])
