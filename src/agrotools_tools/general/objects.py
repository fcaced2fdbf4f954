"""Objects in a picture: detected, located, counted, segmented."""

from typing import Annotated, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agrotools.calling.arguments import ReferenceCall
from agrotools.calling.contract import ImageFile, Region, ToolResult, tool
from agrotools.calling.result import ResultPart
from agrotools.calling.services import VLM
from agrotools.calling.workspace import save_artifact
from agrotools.core import Arguments, Artifact, ToolError
from agrotools.vision.overlay import Layer, draw_overlay
from agrotools.vision.reading import bounds
from agrotools_tools.general.images import (
    COLOURS,
    OpenedImage,
    chosen_backend,
    draw_boxes,
    open_image,
    remarks,
    whole_box,
)
from agrotools_tools.vision_questions import (
    FoundObjects,
    locate_by_model,
    name_things,
    outline_things,
)

COCO_NAMES = tuple(
    "person|bicycle|car|motorcycle|airplane|bus|train|truck|boat|traffic light|fire hydrant|stop sign|parking meter|"
    "bench|bird|cat|dog|horse|sheep|cow|elephant|bear|zebra|giraffe|backpack|umbrella|handbag|tie|suitcase|frisbee|"
    "skis|snowboard|sports ball|kite|baseball bat|baseball glove|skateboard|surfboard|tennis racket|bottle|wine glass|"
    "cup|fork|knife|spoon|bowl|banana|apple|sandwich|orange|broccoli|carrot|hot dog|pizza|donut|cake|chair|couch|"
    "potted plant|bed|dining table|toilet|tv|laptop|mouse|remote|keyboard|cell phone|microwave|oven|toaster|sink|"
    "refrigerator|book|clock|vase|scissors|teddy bear|hair drier|toothbrush".split("|")
)
"""The 80 object classes of COCO (Lin et al. 2014, arXiv 1405.0312)."""


class NamedObject(ResultPart):
    """One thing."""

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


@tool(category="general", version="1", backends=("offline", VLM))
def detect_objects(
    image: ImageFile,
    score_min: Annotated[
        float, Field(ge=0, le=1, description="leave out what is less sure than this")
    ] = 0.5,
) -> DetectedObjects:
    """Find all common things in a picture and name them, by the 80 names of COCO: person, car, cow, apple, chair...

    Needs a vision model (vlm).

    Raises:
        ToolError: ``backend_unavailable``, and those of a file that cannot be read.
    """
    chosen_backend("finding all common things")
    source = open_image(image)
    found = name_things(source.pixels, source.box, COCO_NAMES)
    selected = _best_first(found.scores, score_min)
    names, boxes = [found.names[index] for index in selected], _whole_boxes(found.boxes[selected])
    return DetectedObjects(
        objects=tuple(
            NamedObject(name=name, box=box, score=score)
            for name, box, score in zip(names, boxes, found.scores[selected].tolist(), strict=True)
        ),
        counts={name: names.count(name) for name in dict.fromkeys(names)},
        overlay=draw_boxes(
            "detected_overlay.png", source, boxes, names, f"{len(names)} things found"
        ),
        **remarks(source, found),
    )


def _best_first(scores: NDArray[np.float64], score_min: float) -> list[int]:
    """Return the indices of scores of at least ``score_min``, largest first."""
    return [
        index for index in np.argsort(-scores, kind="stable").tolist() if scores[index] >= score_min
    ]


def _whole_boxes(boxes: NDArray[np.float64]) -> list[tuple[int, int, int, int]]:
    return [whole_box(box) for box in boxes.tolist()]


ANY_SCORE = 0.05
"""Smallest meaningful score; detectors return hundreds of random boxes below it."""


class LocatedObjects(ToolResult):
    count: int
    """how many were found"""
    boxes: tuple[tuple[int, int, int, int], ...]
    """[x0, y0, x1, y1] in pixels, the surest first"""
    scores: tuple[float, ...]
    """0..1 in the order of boxes; no probabilities"""
    overlay: Artifact
    """the picture with the boxes drawn in"""


def _resolve(call: Arguments, _known: ReferenceCall) -> Arguments:
    """Replace ``score_min`` by its effective value, which is very low if only the best object is requested."""
    return {
        **call,
        "score_min": _least_score(cast(float, call["score_min"]), top1=call["top1"] is True),
    }


def _least_score(score_min: float, *, top1: bool) -> float:
    return min(score_min, ANY_SCORE) if top1 else score_min


@tool(category="general", version="1", backends=("offline", VLM), resolves=_resolve)
def locate_objects(
    image: ImageFile,
    text: Annotated[
        str, Field(min_length=1, max_length=200, description="what to find, in a few words")
    ],
    top1: Annotated[bool, Field(description="only the surest one")] = True,
    region: Region | None = None,
    score_min: Annotated[
        float, Field(ge=0, le=1, description="leave out what is less sure than this")
    ] = 0.3,
) -> LocatedObjects:
    """Find what a text names in a picture and give its boxes.

    Needs a vision model (vlm). With top1 the surest thing is given, however unsure, unless nothing is found at all.

    Raises:
        ToolError: ``backend_unavailable``, ``region_empty``, and those of a file that cannot be read.
    """
    chosen_backend("finding what a text names")
    source = open_image(image, region)
    found = _locate(source, text, _least_score(score_min, top1=top1))
    most = 1 if top1 else None
    boxes, scores = _whole_boxes(found.boxes[:most]), found.scores[:most].tolist()
    labels = [f"{score:.2f}" for score in scores]
    return LocatedObjects(
        count=len(boxes),
        boxes=tuple(boxes),
        scores=tuple(scores),
        overlay=draw_boxes("located_overlay.png", source, boxes, labels, f"{len(boxes)} found"),
        **remarks(source, found),
    )


def _locate(source: OpenedImage, text: str, score_min: float) -> FoundObjects:
    """Find the objects named by ``text``, best first, with scores of at least ``score_min``."""
    found = locate_by_model(source.pixels, source.box, text)
    selected = _best_first(found.scores, score_min)
    return found._replace(boxes=found.boxes[selected], scores=found.scores[selected])


class GivenObjectCount(ToolResult):
    count: int
    """how many were found"""
    boxes: tuple[tuple[int, int, int, int], ...]
    """[x0, y0, x1, y1] in pixels of each, the surest first"""
    overlay: Artifact
    """the picture with what was counted"""


@tool(category="general", version="1", backends=("offline", VLM))
def count_given_object(
    image: ImageFile,
    text: Annotated[
        str, Field(min_length=1, max_length=200, description="what to count, in a few words")
    ],
    region: Region | None = None,
    score_min: Annotated[
        float, Field(ge=0, le=1, description="leave out what is less sure than this")
    ] = 0.3,
) -> GivenObjectCount:
    """Count what a text names in a picture of any kind, or in a region of it.

    Needs a vision model (vlm). For trees, plants and fruit count_objects works without one.

    Raises:
        ToolError: ``backend_unavailable``, ``region_empty``, and those of a file that cannot be read.
    """
    chosen_backend("counting what a text names")
    source = open_image(image, region)
    found = _locate(source, text, score_min)
    boxes = _whole_boxes(found.boxes)
    numbers = [str(number) for number in range(1, len(boxes) + 1)]
    return GivenObjectCount(
        count=len(boxes),
        boxes=tuple(boxes),
        overlay=draw_boxes("counted_overlay.png", source, boxes, numbers, f"{len(boxes)} counted"),
        **remarks(source, found),
    )


MOST_OBJECTS = 100
_MOST_MASK_PX = 2_000_000_000


class SegmentedObjects(ToolResult):
    count: int
    """how many were found"""
    pixels: tuple[int, ...]
    """pixels that each covers, the surest first"""
    total_px: int
    """pixels that they cover together; what two share counts once"""
    boxes: tuple[tuple[int, int, int, int], ...]
    """[x0, y0, x1, y1] of what each covers, pixels"""
    scores: tuple[float, ...]
    """0..1, how sure the model is that it is one"""
    overlay: Artifact
    """the picture with each of them tinted"""


@tool(category="general", version="1", backends=("offline", VLM))
def segment_objects(
    image: ImageFile,
    text: Annotated[
        str, Field(min_length=1, max_length=200, description="what to outline, in a few words")
    ],
    score_min: Annotated[
        float, Field(ge=0, le=1, description="leave out what is less sure than this")
    ] = 0.4,
) -> SegmentedObjects:
    """Outline what a text names in a picture and count the pixels of each.

    Needs a vision model (vlm), whose outlines are rough polygons. For plants, crop, weeds and lesions other tools
    work without one.

    Raises:
        ToolError: ``backend_unavailable``, ``limit`` (more things than can be outlined), and those of a file that
            cannot be read.
    """
    chosen_backend("outlining what a text names")
    source = open_image(image)
    found, masks = _outline(source, text)
    selected = [index for index in _best_first(found.scores, score_min) if masks[index].any()]
    if len(selected) > MOST_OBJECTS:
        raise ToolError(
            "limit",
            f"{len(selected)} things were found, {MOST_OBJECTS} at most",
            hint="raise score_min",
        )
    sizes = [int(np.count_nonzero(masks[index])) for index in selected]
    union = (
        np.any(masks[selected], axis=0) if selected else np.zeros(source.pixels.shape[:2], np.bool_)
    )
    return SegmentedObjects(
        count=len(selected),
        pixels=tuple(sizes),
        total_px=int(np.count_nonzero(union)),
        boxes=tuple(bounds(masks[index]) for index in selected),
        scores=tuple(found.scores[selected].tolist()),
        overlay=_overlay(source, masks, selected, sizes),
        **remarks(source, found),
    )


def _outline(source: OpenedImage, text: str) -> tuple[FoundObjects, NDArray[np.bool_]]:
    import cv2

    outlines, scores, notes, flags = outline_things(source.pixels, source.box, text)
    height, width = source.pixels.shape[:2]
    if len(outlines) * height * width > _MOST_MASK_PX:
        raise ToolError(
            "limit", f"{len(outlines)} outlines in so large a picture", hint="use a smaller picture"
        )
    masks = np.zeros((len(outlines), height, width), np.uint8)
    for mask, outline in zip(masks, outlines, strict=True):
        cv2.fillPoly(mask, [np.rint(outline).astype(np.int32)], 1)
    found = FoundObjects(
        np.zeros((0, 4)), np.array(scores, np.float64), [], notes, (*flags, "rough_outlines")
    )
    return found, masks.view(np.bool_)


def _overlay(
    source: OpenedImage, masks: NDArray[np.bool_], selected: list[int], sizes: list[int]
) -> Artifact:
    classes = np.zeros(source.pixels.shape[:2], np.uint8)
    layers: list[Layer] = []
    for number, index in reversed(list(enumerate(selected, start=1))):  # the surest on top
        classes[masks[index]] = number
    for number, size in enumerate(sizes, start=1):
        layers.append(Layer(number, COLOURS[(number - 1) % len(COLOURS)], f"{number}: {size} px"))
    picture = draw_overlay(source.pixels, classes, layers, title=f"{len(selected)} outlined")
    return save_artifact("segmented_overlay.png", "overlay", picture)
