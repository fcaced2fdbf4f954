"""A frame drawn on a picture."""

from typing import Annotated

from pydantic import Field

from agrotools.core import Artifact
from agrotools.tools.contract import Agree, ImageFile, Region, ToolResult, tool
from agrotools.tools.general.lettering import contrast, font_for, rgb
from agrotools.tools.general.looking import look_at
from agrotools.tools.workspace import save_artifact


class BoxDrawn(ToolResult):
    image: Artifact
    """the picture with the frame, of the same size"""


@tool(category="general", version="1")
def draw_box(
    image: ImageFile,
    region: Region,
    label: Annotated[
        str | None, Agree("presentation"), Field(max_length=200, description="written at the frame; none: nothing")
    ] = None,
    colour: Annotated[
        str, Agree("presentation"), Field(max_length=40, description="name of a colour, or #rrggbb")
    ] = "red",
) -> BoxDrawn:
    """Draw a frame around a region of a picture, with a label if one is given, and keep the picture.

    What of the region lies outside of the picture is cut off (flag region_clipped).

    Raises:
        ToolError: ``region_empty`` (nothing of it is inside), ``invalid_argument`` (no colour), and as the readers.
    """
    from PIL import Image, ImageDraw

    looked = look_at(image, region)
    ink = rgb(colour, "colour")
    picture = Image.fromarray(looked.pixels)
    draw = ImageDraw.Draw(picture)
    line = max(2, round(max(picture.size) / 300))
    x0, y0, x1, y1 = looked.box
    draw.rectangle((x0, y0, x1 - 1, y1 - 1), outline=ink, width=line)
    flags = list(looked.flags)
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
    return BoxDrawn(
        image=save_artifact("drawn_box.png", "image", picture), notes=looked.notes, flags=tuple(dict.fromkeys(flags))
    )
