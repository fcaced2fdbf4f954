"""Words written on a picture."""

import math
import re
from typing import Annotated

from pydantic import Field

from agrotools.core import Arguments, Artifact, ToolError
from agrotools.tools.contract import Agree, ImageFile, ToolResult, tool
from agrotools.tools.general.lettering import contrast, font_for, rgb
from agrotools.tools.general.looking import look_at
from agrotools.tools.resolving import Known
from agrotools.tools.workspace import save_artifact

_POINT = re.compile(r"\s*[\(\[]?\s*([-+]?\d*\.?\d+)\s*[,\s]\s*([-+]?\d*\.?\d+)\s*[\)\]]?\s*")
_ACROSS, _DOWN = {"l": 0.0, "m": 0.5, "r": 1.0}, {"t": 0.0, "m": 0.5, "b": 1.0}
_MARGIN = 0.02


class TextAdded(ToolResult):
    image: Artifact
    """the picture with the words, of the same size"""
    box: tuple[int, int, int, int]
    """[x0, y0, x1, y1] of the words in pixels"""


def _resolved(call: Arguments, _known: Known) -> Arguments:
    return {**call, "position": place(str(call["position"]))}


@tool(category="general", version="1", resolves=_resolved)
def add_text(
    image: ImageFile,
    text: Annotated[str, Field(min_length=1, max_length=500, description="what to write; may have several lines")],
    position: Annotated[
        str,
        Agree("choice"),
        Field(
            min_length=2,
            max_length=60,
            description="'(x, y)' of the lower left corner in pixels, or two letters: l, m or r and t, m or b",
        ),
    ],
    colour: Annotated[
        str, Agree("presentation"), Field(max_length=40, description="name of a colour, or #rrggbb")
    ] = "red",
) -> TextAdded:
    """Write words on a picture and keep the picture. 'lt' is left top, 'mm' the middle, 'rb' right bottom.

    Raises:
        ToolError: ``invalid_argument`` (no such position or colour; a point outside of the picture), and as the
            readers.
    """
    from PIL import Image, ImageDraw

    text = "".join(letter for letter in text if letter == "\n" or letter.isprintable() or not letter.isascii())
    looked = look_at(image)
    ink = rgb(colour, "colour")
    picture = Image.fromarray(looked.pixels)
    draw = ImageDraw.Draw(picture)
    size = max(12, round(max(picture.size) / 25))
    font, complete = font_for(text, size)
    stroke = max(1, size // 16)
    left, top, right, bottom = draw.multiline_textbbox((0, 0), text, font=font, stroke_width=stroke)
    width, height = right - left, bottom - top
    x, y = _corner(position, picture.size, width, height)
    draw.multiline_text((x - left, y - top), text, fill=ink, font=font, stroke_width=stroke, stroke_fill=contrast(ink))
    box = (round(x), round(y), round(x + width), round(y + height))
    flags = [*looked.flags]
    if box[0] < 0 or box[1] < 0 or box[2] > picture.width or box[3] > picture.height:
        flags.append("text_over_edge")
    if not complete:
        flags.append("letters_missing")
    return TextAdded(
        image=save_artifact("added_text.png", "image", picture), box=box, notes=looked.notes, flags=tuple(flags)
    )


def place(position: str) -> str:
    """A position in one form: its letters, across before down, or ``(x, y)``; as it is where it is none."""
    letters = position.strip().lower()
    if len(letters) == 2 and letters.isalpha():
        for first, second in (letters, letters[::-1]):
            if first in _ACROSS and second in _DOWN:
                return f"{first}{second}"
    point = _POINT.fullmatch(position)
    return position if point is None else f"({float(point[1]):g}, {float(point[2]):g})"


def _corner(position: str, size: tuple[int, int], width: float, height: float) -> tuple[float, float]:
    """Where the upper left corner of words of that size belongs."""
    across, down = size
    letters = place(position)
    if len(letters) == 2 and letters[0] in _ACROSS and letters[1] in _DOWN:
        margin = _MARGIN * max(size)
        free = (across - width - 2 * margin, down - height - 2 * margin)
        return margin + _ACROSS[letters[0]] * free[0], margin + _DOWN[letters[1]] * free[1]
    point = _POINT.fullmatch(position)
    if point is None:
        raise ToolError(
            "invalid_argument",
            f"{position[:40]!r} is no position",
            argument="position",
            hint="write '(x, y)' in pixels, or one of l m r and one of t m b, e.g. mt for the middle of the top",
        )
    x, y = float(point[1]), float(point[2])
    if not (math.isfinite(x) and math.isfinite(y) and 0 <= x < across and 0 <= y <= down):
        raise ToolError(
            "invalid_argument",
            f"({x:g}, {y:g}) is not inside the picture, which is {across} x {down} pixels",
            argument="position",
            hint="the point is the lower left corner of the words, x to the right and y down",
        )
    return x, y - height
