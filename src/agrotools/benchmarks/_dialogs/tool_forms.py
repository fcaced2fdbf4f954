"""What published tools share: how they are declared, what they give back, and how they write boxes."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

from pydantic import Field

from agrotools.core import Artifact, ToolError
from agrotools.tools.contract import Agree, FileArgument, Tool, ToolResult, tool
from agrotools.vision import Box

P = ParamSpec("P")
R = TypeVar("R", bound=ToolResult)

PictureFile = Annotated[Path, FileArgument("image", "path of the image")]
PicturePath = Annotated[Path, FileArgument("image", "path of the image, as text"), Agree("text")]
"""An image that a published tool declares as text: whether the file is there is no matter of its type."""
Description = Annotated[str, Field(min_length=1, max_length=500, description="the description of the object")]
BoxText = Annotated[str, Field(max_length=200, description="the box, in the form (x1, y1, x2, y2)")]
NONE_FOUND = "No object found."
_NUMBER = re.compile(r"[-+]?\d*\.?\d+")


class PublishedText(ToolResult):
    text: str
    """what the tool says"""


class PublishedImage(ToolResult):
    image: Artifact
    """the picture that the tool made"""


def published(like: Tool[..., Any]) -> Callable[[Callable[P, R]], Tool[P, R]]:
    """Declare a published tool that does its work by another one, whose back-ends it has."""
    return tool(
        category="published",
        version=like.version,
        significant_digits=None,
        backends=like.backends,
        data_files=lambda: like.data_files,
        backend_files=like.files_for,
        cacheable=like.cacheable,
        files_by_last_part=True,
    )


def said(text: object, by: ToolResult) -> PublishedText:
    """A text output, with the notes and flags of the result that it was made of."""
    return PublishedText(text=str(text), notes=by.notes, flags=by.flags)


def drawn(image: Artifact, by: ToolResult) -> PublishedImage:
    """An image output, with the notes and flags of the result that it was made of."""
    return PublishedImage(image=image, notes=by.notes, flags=by.flags)


def read_box(text: str) -> Box:
    """A box out of text: four numbers, whatever stands between them.

    Raises:
        ToolError: ``invalid_argument``: not four numbers, or not in the order x1, y1, x2, y2.
    """
    numbers = [float(number) for number in _NUMBER.findall(text)]
    if len(numbers) != 4:
        raise ToolError(
            "invalid_argument",
            f"bbox holds {len(numbers)} numbers, not four: {text[:60]!r}",
            argument="bbox",
            hint="write (x1, y1, x2, y2) in pixels",
        )
    x0, y0, x1, y1 = (round(max(-1e9, min(1e9, number))) for number in numbers)
    if x1 <= x0 or y1 <= y0:
        raise ToolError(
            "invalid_argument",
            f"the box ({x0}, {y0}, {x1}, {y1}) is empty",
            argument="bbox",
            hint="x1 < x2 and y1 < y2: upper left corner, then lower right corner",
        )
    return x0, y0, x1, y1


def box_text(box: Sequence[float]) -> str:
    """``(x1, y1, x2, y2)`` in whole pixels."""
    return f"({', '.join(f'{edge:.0f}' for edge in box)})"


def scored_text(box: Sequence[float], score: float, name: str = "") -> str:
    """``name (x1, y1, x2, y2), score 76``."""
    return f"{name + ' ' if name else ''}{box_text(box)}, score {100 * score:.0f}"
