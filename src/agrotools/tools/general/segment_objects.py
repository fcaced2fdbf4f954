"""How many pixels each thing covers that a text names."""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agrotools.core import Artifact, ToolError
from agrotools.tools.contract import ImageFile, ToolResult, tool
from agrotools.tools.general.looking import COLOURS, Looked, chosen_backend, look_at, whole_box
from agrotools.tools.learned import LEARNED, outline_learned, weight_files
from agrotools.tools.vlm import VLM
from agrotools.tools.workspace import save_artifact
from agrotools.vision.overlay import Layer, draw_overlay

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


@tool(category="general", version="1", backends=("offline", LEARNED, VLM), backend_files=weight_files)
def segment_objects(
    image: ImageFile,
    text: Annotated[str, Field(min_length=1, max_length=200, description="what to outline, in a few words")],
    score_min: Annotated[float, Field(ge=0, le=1, description="leave out what is less sure than this")] = 0.4,
) -> SegmentedObjects:
    """Outline what a text names in a picture and count the pixels of each.

    Needs large models: learned with a detector and SAM 2 (learned:DETECTOR+SAM2), or vlm, whose outlines are rough
    polygons. For plants, crop, weeds and lesions other tools work without one.

    Raises:
        ToolError: ``backend_unavailable``, ``limit`` (more things than can be outlined), and as the readers.

    Sources: as :mod:`agrotools.vision.learned.detection` and :mod:`agrotools.vision.learned.masks`.
    """
    backend = chosen_backend(
        "outlining what a text names", learned="IDEA-Research/grounding-dino-tiny+facebook/sam2.1-hiera-tiny"
    )
    looked = look_at(image)
    if backend == VLM:
        masks, scores, notes, flags = _by_model(looked, text)
    else:
        found, masks = outline_learned(backend, looked.pixels, text, score_min)
        scores, notes, flags = found.scores, found.notes, found.flags
    kept = [index for index in np.argsort(-scores, kind="stable").tolist() if scores[index] >= score_min]
    kept = [index for index in kept if masks[index].any()]
    if len(kept) > MOST_OBJECTS:
        raise ToolError("limit", f"{len(kept)} things were found, {MOST_OBJECTS} at most", hint="raise score_min")
    sizes = [int(np.count_nonzero(masks[index])) for index in kept]
    union = np.any(masks[kept], axis=0) if kept else np.zeros(looked.pixels.shape[:2], np.bool_)
    return SegmentedObjects(
        count=len(kept),
        pixels=tuple(sizes),
        total_px=int(np.count_nonzero(union)),
        boxes=tuple(_box_of(masks[index]) for index in kept),
        scores=tuple(float(scores[index]) for index in kept),
        overlay=_overlay(looked, masks, kept, sizes),
        notes=(*looked.notes, *notes),
        flags=tuple(dict.fromkeys((*looked.flags, *flags))),
    )


def _by_model(
    looked: Looked, text: str
) -> tuple[NDArray[np.bool_], NDArray[np.float64], tuple[str, ...], tuple[str, ...]]:
    import cv2

    from agrotools.tools.vlm.general import outline_things

    said = outline_things(looked.pixels, looked.box, text)
    height, width = looked.pixels.shape[:2]
    if len(said.outlines) * height * width > _MOST_MASK_PX:
        raise ToolError("limit", f"{len(said.outlines)} outlines in so large a picture", hint="use a smaller picture")
    masks = np.zeros((len(said.outlines), height, width), np.uint8)
    for mask, outline in zip(masks, said.outlines, strict=True):
        cv2.fillPoly(mask, [np.rint(outline).astype(np.int32)], 1)
    return masks.view(np.bool_), np.array(said.scores, np.float64), said.notes, (*said.flags, "rough_outlines")


def _box_of(mask: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return whole_box((columns[0], rows[0], columns[-1] + 1, rows[-1] + 1))


def _overlay(looked: Looked, masks: NDArray[np.bool_], kept: list[int], sizes: list[int]) -> Artifact:
    classes = np.zeros(looked.pixels.shape[:2], np.uint8)
    layers: list[Layer] = []
    for number, index in reversed(list(enumerate(kept, start=1))):  # the surest on top
        classes[masks[index]] = number
    for number, size in enumerate(sizes, start=1):
        layers.append(Layer(number, COLOURS[(number - 1) % len(COLOURS)], f"{number}: {size} px"))
    picture = draw_overlay(looked.pixels, classes, layers, title=f"{len(kept)} outlined")
    return save_artifact("segmented_overlay.png", "overlay", picture)
