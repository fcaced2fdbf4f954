"""Drawing of frames and text on a picture."""

import math
import re
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from agrotools.calling.contract import Agree, ImageFile, Region, ToolResult, tool
from agrotools.calling.workspace import save_artifact
from agrotools.core import Artifact, ToolError
from agrotools.core.libraries import DRAWING, READERS
from agrotools_tools.general.images import open_image

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont


Rgb = tuple[int, int, int]
ColourName = Annotated[
    str, Agree("presentation"), Field(max_length=40, description="name of a colour, or #rrggbb")
]


def font_for(text: str, size_px: int) -> tuple["FreeTypeFont", bool]:
    """Return the installed font that has the most characters of ``text``, and whether it has all of them."""
    from matplotlib import font_manager
    from PIL import ImageFont

    from agrotools_tools.plotting.sheet import font_families, missing_letters

    letters = {letter for letter in text if not letter.isspace()}
    paths = [font_manager.findfont(family) for family in font_families([text])[0]]
    path = min(paths, key=lambda each: len(missing_letters(each, letters)))
    return ImageFont.truetype(path, size_px), not missing_letters(path, letters)


def rgb(colour: str) -> Rgb:
    """Parse a colour given by its name or as #rrggbb; ToolError ``invalid_argument`` if it is none."""
    from PIL import ImageColor

    try:
        red, green, blue = ImageColor.getrgb(colour.strip())[:3]
    except ValueError:
        hint = "use a name such as red, white or blue, or #rrggbb"
        raise ToolError(
            "invalid_argument", f"{colour[:40]!r} is not a colour", argument="colour", hint=hint
        ) from None
    return min(red, 255), min(green, 255), min(blue, 255)


def contrast(colour: Rgb) -> Rgb:
    """Return black or white, whichever has more contrast with ``colour``."""
    red, green, blue = colour
    return (0, 0, 0) if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else (255, 255, 255)


class BoxDrawing(ToolResult):
    image: Artifact
    """the picture with the frame, of the same size"""


@tool(category="general", version="1", libraries=(*READERS, *DRAWING))
def draw_box(
    image: ImageFile,
    region: Region,
    label: Annotated[
        str | None,
        Agree("presentation"),
        Field(max_length=200, description="written at the frame; none: nothing"),
    ] = None,
    colour: ColourName = "red",
) -> BoxDrawing:
    """Draw a frame around a region of a picture, with a label if one is given, and keep the picture.

    What of the region lies outside of the picture is cut off (flag region_clipped).

    Raises:
        ToolError: ``region_empty`` (nothing of it is inside), ``invalid_argument`` (no colour), and those of a file
            that cannot be read.
    """
    from PIL import Image, ImageDraw

    source = open_image(image, region)
    ink = rgb(colour)
    picture = Image.fromarray(source.pixels)
    draw = ImageDraw.Draw(picture)
    line = max(2, round(max(picture.size) / 300))
    x0, y0, x1, y1 = source.box
    draw.rectangle((x0, y0, x1 - 1, y1 - 1), outline=ink, width=line)
    flags = list(source.flags)
    if label and label.strip():
        text = " ".join(label.split())
        font, complete = font_for(text, max(12, round(max(picture.size) / 40)))
        flags += [] if complete else ["letters_missing"]
        left, top, right, bottom = (round(edge) for edge in draw.textbbox((0, 0), text, font=font))
        pad = max(2, line // 2)
        width, height = right - left + 2 * pad, bottom - top + 2 * pad
        x = max(0, min(x0, picture.width - width))
        y = y0 - height if y0 >= height else min(y0 + line, max(0, picture.height - height))
        draw.rectangle((x, y, x + width - 1, y + height - 1), fill=ink)
        draw.text((x + pad - left, y + pad - top), text, fill=contrast(ink), font=font)
    return BoxDrawing(
        image=save_artifact("drawn_box.png", "image", picture),
        notes=source.notes,
        flags=tuple(dict.fromkeys(flags)),
    )


_POINT = re.compile(r"\s*[\(\[]?\s*([-+]?\d*\.?\d+)\s*[,\s]\s*([-+]?\d*\.?\d+)\s*[\)\]]?\s*")
_ACROSS, _DOWN = {"l": 0.0, "m": 0.5, "r": 1.0}, {"t": 0.0, "m": 0.5, "b": 1.0}
_MARGIN = 0.02


class TextDrawing(ToolResult):
    image: Artifact
    """the picture with the words, of the same size"""
    box: tuple[int, int, int, int]
    """[x0, y0, x1, y1] of the words in pixels"""


@tool(
    category="general",
    version="1",
    resolves=lambda call, _: {**call, "position": normalise_position(str(call["position"]))},
    libraries=(*READERS, *DRAWING),
)
def add_text(
    image: ImageFile,
    text: Annotated[
        str,
        Field(min_length=1, max_length=500, description="what to write; may have several lines"),
    ],
    position: Annotated[
        str,
        Agree("choice"),
        Field(
            min_length=2,
            max_length=60,
            description="'(x, y)' of the lower left corner in pixels, or two letters: l, m or r and t, m or b",
        ),
    ],
    colour: ColourName = "red",
) -> TextDrawing:
    """Write words on a picture and keep the picture. 'lt' is left top, 'mm' the middle, 'rb' right bottom.

    Raises:
        ToolError: ``invalid_argument`` (no such position or colour; a point outside of the picture), and as the
            readers.
    """
    from PIL import Image, ImageDraw

    text = "".join(
        letter for letter in text if letter == "\n" or letter.isprintable() or not letter.isascii()
    )
    source = open_image(image)
    ink = rgb(colour)
    picture = Image.fromarray(source.pixels)
    draw = ImageDraw.Draw(picture)
    size = max(12, round(max(picture.size) / 25))
    font, complete = font_for(text, size)
    stroke = max(1, size // 16)
    left, top, right, bottom = draw.multiline_textbbox((0, 0), text, font=font, stroke_width=stroke)
    width, height = right - left, bottom - top
    x, y = _corner(position, picture.size, width, height)
    draw.multiline_text(
        (x - left, y - top),
        text,
        fill=ink,
        font=font,
        stroke_width=stroke,
        stroke_fill=contrast(ink),
    )
    box = (round(x), round(y), round(x + width), round(y + height))
    flags = [*source.flags]
    if box[0] < 0 or box[1] < 0 or box[2] > picture.width or box[3] > picture.height:
        flags.append("text_over_edge")
    if not complete:
        flags.append("letters_missing")
    return TextDrawing(
        image=save_artifact("added_text.png", "image", picture),
        box=box,
        notes=source.notes,
        flags=tuple(flags),
    )


def normalise_position(position: str) -> str:
    """Normalise a valid position to two letters, horizontal before vertical, or to ``(x, y)``."""
    letters = position.strip().lower()
    if len(letters) == 2 and letters.isalpha():
        for first, second in (letters, letters[::-1]):
            if first in _ACROSS and second in _DOWN:
                return f"{first}{second}"
    point = _POINT.fullmatch(position)
    return position if point is None else f"({float(point[1]):g}, {float(point[2]):g})"


def _corner(
    position: str, size: tuple[int, int], width: float, height: float
) -> tuple[float, float]:
    """Return the upper left corner of text of this size at a position."""
    across, down = size
    letters = normalise_position(position)
    if len(letters) == 2 and letters[0] in _ACROSS and letters[1] in _DOWN:
        margin = _MARGIN * max(size)
        free = (across - width - 2 * margin, down - height - 2 * margin)
        return margin + _ACROSS[letters[0]] * free[0], margin + _DOWN[letters[1]] * free[1]
    point = _POINT.fullmatch(position)
    if point is None:
        hint = "write '(x, y)' in pixels, or one of l m r and one of t m b, e.g. mt for the middle of the top"
        raise ToolError(
            "invalid_argument",
            f"{position[:40]!r} is not a position",
            argument="position",
            hint=hint,
        )
    x, y = float(point[1]), float(point[2])
    if not (math.isfinite(x) and math.isfinite(y) and 0 <= x < across and 0 <= y <= down):
        why = f"({x:g}, {y:g}) is not inside the picture, which is {across} x {down} pixels"
        hint = "the point is the lower left corner of the words, x to the right and y down"
        raise ToolError("invalid_argument", why, argument="position", hint=hint)
    return x, y - height
