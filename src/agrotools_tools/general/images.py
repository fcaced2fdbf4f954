"""Steps shared by general tools: reading an image, choosing a back-end, drawing boxes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.calling.services import NAME_A_MODEL, VLM
from agrotools.calling.workspace import backend_in_use, save_artifact, shown_name
from agrotools.core import Artifact, ToolError
from agrotools.vision import Box
from agrotools.vision.formats import clipped_region
from agrotools.vision.overlay import (
    BLUISH_GREEN,
    ORANGE,
    REDDISH_PURPLE,
    SKY_BLUE,
    VERMILLION,
    YELLOW,
    Mark,
    box_points,
    draw_marks,
)
from agrotools.vision.reading import read_image
from agrotools_tools.vision_questions import FoundObjects, TextAnswer

COLOURS = (SKY_BLUE, ORANGE, YELLOW, BLUISH_GREEN, VERMILLION, REDDISH_PURPLE)
_SMALLEST_SIDE = 1000
"""Longest side, in pixels, to which smaller pictures are enlarged so that marks do not cover their objects."""


@dataclass(frozen=True, eq=False)
class OpenedImage:
    """Picture, uint8 (rows, columns, 3), the part ``box`` to use, and the notes and flags from reading it."""

    pixels: NDArray[np.uint8]
    box: Box
    notes: tuple[str, ...]
    flags: tuple[str, ...]


def open_image(path: Path, region: Box | None = None, argument: str = "image") -> OpenedImage:
    """Read a picture and clip ``region`` (None: the whole picture) to its bounds. A plain picture is no error: it
    can be drawn on, and a model that is asked sees that it is plain."""
    name = shown_name(path)
    picture = read_image(path, argument=argument, shown_as=name, may_be_blank=True)
    box, clipped = clipped_region(region, picture.width, picture.height, name)
    return OpenedImage(picture.pixels, box, picture.notes, (*picture.flags, *clipped))


def chosen_backend(does: str, choice: str = f"{VLM}: {NAME_A_MODEL}") -> str:
    """Return the back-end in use; ToolError ``backend_unavailable`` if it is ``offline``, with the one to choose
    instead. ``does``: task of the tool, as the beginning of a message."""
    backend = backend_in_use() or "offline"
    if backend != "offline":
        return backend
    raise ToolError(
        "backend_unavailable",
        f"{does} is not done offline by a method of our own",
        setup=f"choose its back-end with --backend: {choice}",
    )


def remarks(
    *sources: OpenedImage | TextAnswer | FoundObjects, more: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the notes and flags of a result, from reading pictures and from a model, each flag once."""
    flags = [flag for source in sources for flag in source.flags]
    return {
        "notes": tuple(note for source in sources for note in source.notes),
        "flags": tuple(dict.fromkeys((*flags, *more))),
    }


def whole_box(box: Sequence[float]) -> tuple[int, int, int, int]:
    """Round the edges of a box to whole pixels."""
    x0, y0, x1, y1 = (round(edge) for edge in box)
    return x0, y0, x1, y1


def draw_boxes(
    name: str,
    source: OpenedImage,
    boxes: Sequence[Sequence[float]],
    labels: Sequence[str],
    title: str,
) -> Artifact:
    """Save the picture with labelled boxes, one colour per label (colours repeat after six labels)."""
    colours = {
        label: COLOURS[number % len(COLOURS)] for number, label in enumerate(dict.fromkeys(labels))
    }
    height, width = source.pixels.shape[:2]
    marks = [
        Mark(colours[label], box_points(box), label)
        for box, label in zip(boxes, labels, strict=True)
    ]
    part = None if source.box == (0, 0, width, height) else source.box
    zoom = max(1, _SMALLEST_SIDE // max(height, width))
    return save_artifact(
        name, "overlay", draw_marks(source.pixels, marks, region=part, title=title, zoom=zoom)
    )
