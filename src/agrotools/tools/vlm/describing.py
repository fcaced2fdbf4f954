"""A picture in words, as a vision model says them."""

from typing import Annotated

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import Field, StringConstraints

from agrotools.tools.vlm.asking import FLAG, ModelReply, asked
from agrotools.tools.vlm.picture import picture_for_model
from agrotools.tools.vlm.said import Said
from agrotools.vision.formats import Box

LONGEST_DESCRIPTION = 1500


class SeenRegion(ModelReply):
    """What the picture shows."""

    description: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_DESCRIPTION),
        Field(description="plain text, a few sentences"),
    ]


def describe(pixels: NDArray[np.uint8], box: Box, question: str | None) -> Said:
    """What a vision model says of the part ``box`` of a picture, or its answer to ``question``.

    Raises:
        ToolError: see :func:`agrotools.tools.vlm.asking.asked`.
    """
    picture = picture_for_model(pixels, box)
    wanted = (
        f"Answer this question about the picture: {orjson.dumps(question).decode()}"
        if question
        else "Describe what this picture shows: plants and their state, soil, water, buildings, damage."
    )
    text = f"{wanted} Give no amounts that would have to be measured."
    seen, note = asked(text, picture.jpeg, SeenRegion)
    return Said(seen.description, (f"description: {note}",), (FLAG,))
