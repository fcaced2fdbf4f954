"""Things in a picture as a vision model points them out."""

from typing import Annotated, Any

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import AliasChoices, Field, model_validator

from agrotools.tools.vlm.asking import FLAG, ModelReply, asked
from agrotools.tools.vlm.picture import picture_for_model
from agrotools.tools.vlm.said import Pointed
from agrotools.vision.formats import Box

MOST_OBJECTS = 500
_OVER_EDGE = 0.02
"""A box may stand over the edge by this share of the side: models round."""
_OUTPUT_TOKENS = 12_000
"""Enough for 300 boxes; a budget sets this much aside for each question."""


class SeenObject(ModelReply):
    """One of the things."""

    box: Annotated[
        tuple[float, float, float, float],
        Field(
            validation_alias=AliasChoices("box", "bbox_2d", "bbox"),
            description="[x0, y0, x1, y1] in pixels of the picture as shown, x to the right, y down",
        ),
    ]
    score: Annotated[float, Field(ge=0, le=1, description="how sure you are that it is one, 0 to 1")] = 1.0


class SeenObjects(ModelReply):
    """All things of the kind that was asked for."""

    objects: Annotated[list[SeenObject], Field(max_length=MOST_OBJECTS, description="each thing once; [] for none")]

    @model_validator(mode="before")
    @classmethod
    def _of_bare_list(cls, value: Any) -> Any:
        return {"objects": value} if isinstance(value, list) else value


def point_out(pixels: NDArray[np.uint8], box: Box, target: str) -> Pointed:
    """What a vision model takes for ``target`` in the part ``box`` of a picture, uint8 (rows, columns, 3).

    Raises:
        ToolError: see :func:`agrotools.tools.vlm.asking.asked`.
    """
    picture = picture_for_model(pixels, box)
    width, height = picture.width_px, picture.height_px
    text = (
        f"Find every {_quoted(target)} in this picture of {width} x {height} pixels. Give each one a box that fits it "
        f"closely, in pixels of this picture: x from 0 to {width}, y from 0 to {height}. Count nothing twice, and "
        "leave out nothing that is partly hidden but surely there."
    )

    def fault(seen: SeenObjects) -> str | None:
        for number, thing in enumerate(seen.objects):
            x0, y0, x1, y1 = thing.box
            across, down = _OVER_EDGE * width, _OVER_EDGE * height
            if not (-across <= x0 < x1 <= width + across and -down <= y0 < y1 <= height + down):
                return (
                    f"objects.{number}.box {list(thing.box)} is no box inside the picture of {width} x {height} pixels"
                )
        return None

    seen, note = asked(text, picture.jpeg, SeenObjects, fault, max_output_tokens=_OUTPUT_TOKENS)
    boxes = np.array([thing.box for thing in seen.objects], np.float64).reshape(-1, 4)
    scores = np.array([thing.score for thing in seen.objects], np.float64)
    boxes = picture.original(boxes)
    left, top = (boxes[:, 0], boxes[:, 1]) if len(boxes) else (scores, scores)
    order = np.lexsort((left, top, -scores))
    notes = (note, "scores are the model's own word")
    return Pointed(boxes[order], scores[order], notes, (FLAG,))


def _quoted(target: str) -> str:
    return orjson.dumps(target).decode()
