"""Steps of several general tools: reading an image, the choice of a back-end, drawing boxes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agrotools.core import Artifact, ToolError
from agrotools.core.base import install_command
from agrotools.tools.services import LEARNED, NAME_A_MODEL, VLM
from agrotools.tools.workspace import backend_in_use, save_artifact, shown_name
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
    draw_marks,
)
from agrotools.vision.reading import read_image

COLOURS = (SKY_BLUE, ORANGE, YELLOW, BLUISH_GREEN, VERMILLION, REDDISH_PURPLE)
Edges = tuple[float, float, float, float]
_SMALLEST_SIDE = 1000
"""Smaller pictures are enlarged to about this, so that marks do not hide what they mark."""


@dataclass(frozen=True, eq=False)
class OpenedImage:
    """A picture, uint8 (rows, columns, 3), the part that counts, and what is to be said of reading it."""

    pixels: NDArray[np.uint8]
    box: Box
    notes: tuple[str, ...]
    flags: tuple[str, ...]


def open_image(path: Path, region: Box | None = None, argument: str = "image") -> OpenedImage:
    """Read a picture and cut ``region`` (None: all of it) to what is inside of it.

    Raises:
        ToolError: as :func:`agrotools.vision.reading.read_image`; ``region_empty``.
    """
    name = shown_name(path)
    picture = read_image(path, argument=argument, shown_as=name)
    box, clipped = clipped_region(region, picture.width, picture.height, name)
    return OpenedImage(picture.pixels, box, picture.notes, (*picture.flags, *clipped))


def chosen_backend(does: str, *, learned: str | None = None, vlm: bool = True, more: str = "") -> str:
    """The back-end in use, where that is one that can do the work.

    Args:
        does: what the tool does, as a message begins.
        learned: a model that does it, where the back-end ``learned:`` may be used.
        vlm: whether the back-end ``vlm`` may be used.
        more: another way, in words.

    Raises:
        ToolError: ``backend_unavailable``: none is chosen; the hint says how to choose one.
    """
    backend = backend_in_use() or "offline"
    if backend != "offline":
        return backend
    ways = [f"{VLM}: {NAME_A_MODEL}"] if vlm else []
    if learned:
        ways.append(f"{LEARNED}{learned} ({install_command('learned')})")
    ways += [more] if more else []
    raise ToolError(
        "backend_unavailable",
        f"{does} is not done offline by a method of our own",
        hint=f"choose its back-end with --backend: {'; or '.join(ways)}",
    )


def whole_box(box: Sequence[float]) -> tuple[int, int, int, int]:
    """Edges in whole pixels."""
    x0, y0, x1, y1 = (round(edge) for edge in box)
    return x0, y0, x1, y1


def draw_boxes(
    name: str, looked: OpenedImage, boxes: Sequence[Sequence[float]], labels: Sequence[str], title: str
) -> Artifact:
    """Keep the picture with boxes drawn in, one colour per label, and a legend where there are few labels."""
    colours = {label: COLOURS[number % len(COLOURS)] for number, label in enumerate(dict.fromkeys(labels))}
    height, width = looked.pixels.shape[:2]
    enlarge = max(1, _SMALLEST_SIDE // max(height, width))
    enlarged = looked.pixels.repeat(enlarge, axis=0).repeat(enlarge, axis=1)
    marks = [
        Mark(colours[label], label=label, box=(box[0] * enlarge, box[1] * enlarge, box[2] * enlarge, box[3] * enlarge))
        for box, label in zip(boxes, labels, strict=True)
    ]
    x0, y0, x1, y1 = (edge * enlarge for edge in looked.box)
    part = None if looked.box == (0, 0, width, height) else (x0, y0, x1, y1)
    return save_artifact(name, "overlay", draw_marks(enlarged, marks, region=part, title=title))
