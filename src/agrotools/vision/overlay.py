"""Pictures for a person to check a segmentation at a glance: classes drawn in, legend, shares, scale bar.

Colours are from the palette of Okabe and Ito (2008), which people with any kind of colour vision can tell apart.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.formats import Box

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

Colour = tuple[int, int, int]

SKY_BLUE: Colour = (86, 180, 233)
VERMILLION: Colour = (213, 94, 0)
YELLOW: Colour = (240, 228, 66)
BROWN: Colour = (94, 70, 50)
ORANGE: Colour = (230, 159, 0)
BLUISH_GREEN: Colour = (0, 158, 115)
BLUE: Colour = (0, 114, 178)
REDDISH_PURPLE: Colour = (204, 121, 167)
BLACK: Colour = (0, 0, 0)
LONGEST_SIDE = 1568
"""What models see is at most this large; an overlay is not drawn larger."""
_FILL = 0.6
_DIMMED = 0.45


@dataclass(frozen=True)
class Layer:
    """A class to be drawn: its number in the class picture, its colour, and its line in the legend."""

    value: int
    colour: Colour
    label: str


def draw_overlay(
    pixels: NDArray[np.uint8],
    classes: NDArray[np.uint8],
    layers: Sequence[Layer],
    *,
    region: Box | None = None,
    gsd_m: float | None = None,
    title: str = "",
) -> "Image":
    """The picture with each layer tinted and outlined, and a legend below it.

    Args:
        pixels: uint8 (rows, columns, 3).
        classes: uint8 (rows, columns), class numbers; those without a layer are left as they are.
        layers: what to draw, in the order of the legend.
        region: what lies outside is dimmed.
        gsd_m: metres per pixel, for a scale bar.
        title: first line of the legend.
    """
    import cv2
    from PIL import Image

    height, width = classes.shape
    shrink = min(1.0, LONGEST_SIDE / max(height, width))
    size = (max(1, round(width * shrink)), max(1, round(height * shrink)))
    small = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
    picture = small.copy()
    for layer in layers:
        inside = classes == layer.value
        if size != (width, height):
            inside = cv2.resize(inside.astype(np.float32), size, interpolation=cv2.INTER_AREA) >= 0.5
        # Colour laid over green leaves would be another colour than the legend's: fill over grey.
        grey = small[inside].astype(np.float32).sum(axis=1, keepdims=True) / 3
        tint(picture, inside, layer.colour, grey, _FILL)
    if region is not None:
        x0, y0, x1, y1 = (round(edge * shrink) for edge in region)
        dim_outside(picture, (x0, y0, x1, y1))
        cv2.rectangle(picture, (x0, y0), (x1 - 1, y1 - 1), (255, 255, 255), 2)
    return with_legend(Image.fromarray(picture), layers, title, gsd_m / shrink if gsd_m else None)


def tint(
    picture: NDArray[Any], inside: NDArray[np.bool_], colour: Colour, below: NDArray[np.float32], fill: float
) -> None:
    """Fill an area of a picture, so that ``below`` shines through, and outline it in full colour, in place.

    Args:
        picture: (rows, columns, 3), 0..255.
        below: (pixels of the area, 1 or 3), what was or would be there, 0..255.
    """
    import cv2

    area = inside.astype(np.uint8)
    edge = area - cv2.erode(area, np.ones((3, 3), np.uint8), borderValue=0)
    full = np.array(colour, np.float32)
    picture[inside] = (fill * full + (1 - fill) * below).astype(picture.dtype)
    picture[edge.view(np.bool_)] = full.astype(picture.dtype)


def dim_outside(picture: NDArray[Any], region: Box, share: float = _DIMMED) -> None:
    """Leave only that share of the brightness of what lies outside of ``region``, in place."""
    x0, y0, x1, y1 = region
    outside = np.ones(picture.shape[:2], np.bool_)
    outside[y0:y1, x0:x1] = False
    picture[outside] = (picture[outside] * share).astype(picture.dtype)


def class_picture(classes: NDArray[np.uint8], colours: dict[int, Colour]) -> "Image":
    """Classes as a palette PNG: values are the class numbers, colours only for looking at it."""
    from PIL import Image

    picture = Image.frombytes("P", (classes.shape[1], classes.shape[0]), np.ascontiguousarray(classes).tobytes())
    table = np.zeros((256, 3), np.uint8)
    for value, colour in colours.items():
        table[value] = colour
    picture.putpalette(table.tobytes())
    return picture


def with_legend(
    picture: "Image", layers: Sequence[Layer], title: str = "", metres_per_px: float | None = None
) -> "Image":
    """The picture with its title, its legend and, where the scale is known, a scale bar below it.

    Below a narrow picture the sheet is as wide as its longest line.
    """
    from PIL import Image, ImageDraw, ImageFont

    text_px = max(12, min(24, picture.width // 42))
    font = ImageFont.load_default(size=text_px)
    pad = text_px // 2
    entries = [(layer.colour, layer.label) for layer in layers]
    rows = _rows_of_legend(entries, font, picture.width - 2 * pad, text_px)
    bar = _scale_bar(picture.width, metres_per_px)
    lines = len(rows) + (1 if title else 0) + (1 if bar else 0)
    widest = max([font.getlength(title), *(font.getlength(label) + text_px + pad for _, label in entries)])
    size = (max(picture.width, round(widest) + 2 * pad), picture.height + lines * (text_px + pad) + pad)
    sheet = Image.new("RGB", size, (255, 255, 255))
    sheet.paste(picture, (0, 0))
    draw = ImageDraw.Draw(sheet)
    y = picture.height + pad
    if title:
        draw.text((pad, y), title, fill=(0, 0, 0), font=font)
        y += text_px + pad
    for row in rows:
        x = pad
        for colour, label in row:
            draw.rectangle((x, y + 2, x + text_px, y + text_px), fill=colour, outline=(0, 0, 0))
            draw.text((x + text_px + pad, y), label, fill=(0, 0, 0), font=font)
            x += round(font.getlength(label)) + text_px + 4 * pad
        y += text_px + pad
    if bar:
        _draw_scale_bar(draw, pad, y, text_px, *bar, font)
    return sheet


def _rows_of_legend(
    entries: Sequence[tuple[Colour, str]], font: "FreeTypeFont | ImageFont", width: int, text_px: int
) -> list[list[tuple[Colour, str]]]:
    rows: list[list[tuple[Colour, str]]] = []
    used = math.inf
    for colour, label in entries:
        needed = font.getlength(label) + text_px * 3
        if used + needed > width:
            rows.append([])
            used = 0.0
        rows[-1].append((colour, label))
        used += needed
    return rows


def _scale_bar(width: int, metres_per_px: float | None) -> tuple[int, str] | None:
    """Length in pixels and label of a bar of 1, 2 or 5 times a power of ten, about a fifth of the picture long."""
    if not metres_per_px:
        return None
    wanted = 0.2 * width * metres_per_px
    power = 10.0 ** math.floor(math.log10(wanted))
    metres = max(step * power for step in (1, 2, 5) if step * power <= wanted * 1.0000001)
    if metres >= 1000:
        label = f"{metres / 1000:g} km"
    elif metres >= 1:
        label = f"{metres:g} m"
    elif metres >= 0.01:
        label = f"{metres * 100:g} cm"
    else:
        label = f"{metres * 1000:g} mm"
    return max(2, round(metres / metres_per_px)), label


def _draw_scale_bar(
    draw: "ImageDraw", x: int, y: int, text_px: int, length: int, label: str, font: "FreeTypeFont | ImageFont"
) -> None:
    middle = y + text_px // 2
    draw.line((x, middle, x + length, middle), fill=(0, 0, 0), width=3)
    for end in (x, x + length):
        draw.line((end, middle - text_px // 3, end, middle + text_px // 3), fill=(0, 0, 0), width=3)
    draw.text((x + length + text_px // 2, y), label, fill=(0, 0, 0), font=font)
