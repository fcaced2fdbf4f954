"""Pictures for checking results: class overlays with legend and scale bar, heat maps, and marked objects.

Colours are from the palette of Okabe and Ito (2008), which is distinguishable for people with any kind of colour
vision. Marks are boxes, circles and outlines with short labels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agrotools.vision import Box

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
"""Longest side of pictures that models see; overlays are not larger."""
_FILL = 0.6
_DIMMED = 0.45


@dataclass(frozen=True)
class Layer:
    """Class to be drawn: its number in the class picture, its colour, and its line in the legend."""

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
) -> NDArray[np.uint8]:
    """Return the picture with the layers drawn in, and title, legend and scale bar (``gsd_m``: metres per pixel)
    below; classes without a layer are not drawn, and the rest of the picture around ``region`` is dimmed."""
    import cv2

    height, width = classes.shape
    shrink = min(1.0, LONGEST_SIDE / max(height, width))
    size = (max(1, round(width * shrink)), max(1, round(height * shrink)))
    whole = size == (width, height)
    small = pixels if whole else np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
    picture = small.copy()
    for layer in layers:
        inside = classes == layer.value
        if not whole:
            inside = cv2.resize(inside.astype(np.float32), size, interpolation=cv2.INTER_AREA) >= 0.5
        # Layers are drawn over grey, because over green leaves their colours would not match the legend.
        greys = small[inside].sum(axis=1, keepdims=True, dtype=np.float32) / np.float32(3)
        tint(picture, inside, layer.colour, greys, _FILL)
    if region is not None:
        x0, y0, x1, y1 = (round(edge * shrink) for edge in region)
        dim_outside(picture, (x0, y0, x1, y1))
        cv2.rectangle(picture, (x0, y0), (x1 - 1, y1 - 1), (255, 255, 255), 2)
    return with_legend(picture, layers, title, gsd_m / shrink if gsd_m else None)


def tint(
    picture: NDArray[Any], inside: NDArray[np.bool_], colour: Colour, below: NDArray[np.float32], fill: float
) -> None:
    """Fill an area of a picture over ``below`` (pixels of the area, 1 or 3) with partial opacity, and outline it in
    full colour, in place."""
    import cv2

    shade = np.array(colour, np.float32)
    picture[inside] = (fill * shade + (1 - fill) * below).astype(picture.dtype)
    area = inside.view(np.uint8)
    edge = area - cv2.erode(area, np.ones((3, 3), np.uint8), borderValue=0)
    picture[edge.view(np.bool_)] = shade.astype(picture.dtype)


def dim_outside(picture: NDArray[Any], region: Box, share: float = _DIMMED) -> None:
    """Reduce the brightness outside of ``region`` to ``share``, in place."""
    x0, y0, x1, y1 = region
    outside = np.ones(picture.shape[:2], np.bool_)
    outside[y0:y1, x0:x1] = False
    picture[outside] = (picture[outside] * share).astype(picture.dtype)


def class_picture(classes: NDArray[np.uint8], colours: dict[int, Colour]) -> "Image":
    """Return classes as a palette picture: values are the class numbers, colours are for viewing only."""
    from PIL import Image

    picture = Image.frombytes("P", (classes.shape[1], classes.shape[0]), np.ascontiguousarray(classes).tobytes())
    table = np.zeros((256, 3), np.uint8)
    for value, colour in colours.items():
        table[value] = colour
    picture.putpalette(table.tobytes())
    return picture


def with_legend(
    picture: NDArray[np.uint8], layers: Sequence[Layer], title: str = "", metres_per_px: float | None = None
) -> NDArray[np.uint8]:
    """Return a picture, uint8 (rows, columns, 3), with title, legend and, if the scale is known, a scale bar below it.

    The result is as wide as its longest line if the picture is narrower.
    """
    from PIL import Image, ImageDraw, ImageFont

    height, width = picture.shape[:2]
    text_px = max(12, min(24, width // 42))
    font = ImageFont.load_default(size=text_px)
    pad = text_px // 2
    entries = [(layer.colour, layer.label) for layer in layers]
    rows = _rows_of_legend(entries, font, width - 2 * pad, text_px)
    bar = _scale_bar(width, metres_per_px)
    lines = len(rows) + (1 if title else 0) + (1 if bar else 0)
    widest = max([font.getlength(title), *(font.getlength(label) + text_px + pad for _, label in entries)])
    size = (max(width, round(widest) + 2 * pad), lines * (text_px + pad) + pad)
    below = Image.new("RGB", size, (255, 255, 255))
    draw = ImageDraw.Draw(below)
    y = pad
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
    sheet = np.full((height + size[1], size[0], 3), 255, np.uint8)
    sheet[:height, :width] = picture
    sheet[height:] = np.asarray(below)
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
    """Return length in pixels and label of a bar of 1, 2 or 5 times a power of ten, about a fifth of the width."""
    if not metres_per_px:
        return None
    target_m = 0.2 * width * metres_per_px
    power = 10.0 ** math.floor(math.log10(target_m))
    metres = max(step * power for step in (1, 2, 5) if step * power <= target_m * 1.0000001)
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


_VIRIDIS = """
440154 470d60 48186a 482374 472d7b 453781 424086 3e4989 3b528b 375b8d 33638d
2f6b8e 2c728e 297a8e 26828e 23898e 21918c 1f988b 1fa088 22a785 28ae80 32b67a
3fbc73 4ec36b 5ec962 70cf57 84d44b 98d83e addc30 c2df23 d8e219 ece51b fde725
"""
"""Colour map viridis (van der Walt and Smith 2015, CC0) at 33 positions: brighter is more, for any colour vision."""
NO_DATA_COLOUR = (255, 255, 255)
_SMALLEST_SIDE = 640
"""Smaller pictures are enlarged to about this size, each pixel as a square."""
_STEPS = 256


def viridis(values: NDArray[np.float32], low: float, high: float) -> NDArray[np.uint8]:
    """Return colours of values, uint8 (..., 3): dark violet up to ``low``, yellow from ``high``, white for NaN."""
    table = _table()
    there = np.isfinite(values)
    share = (np.where(there, values, low) - low) / max(high - low, 1e-12)
    colours = table[(np.clip(share, 0, 1) * (_STEPS - 1) + 0.5).astype(np.intp)]
    colours[~there] = NO_DATA_COLOUR
    return colours


def draw_heat_map(
    values: NDArray[np.float32],
    *,
    low: float,
    high: float,
    unit: str,
    grey_below: float,
    title: str,
    legend: tuple[Layer, ...],
    gsd_m: float | None,
) -> NDArray[np.uint8]:
    """Return a picture of values, (rows, columns), NaN for missing data, with a colour bar from ``low`` to ``high``,
    and with title, legend and scale bar (``gsd_m``: metres per pixel of ``values``) below. Values below
    ``grey_below`` are grey."""
    from PIL import Image

    colours = viridis(values, low, high)
    with np.errstate(invalid="ignore"):
        below = values < grey_below
    shade = 90 + 110 * np.clip((values[below] - low) / max(grey_below - low, 1e-12), 0, 1)
    colours[below] = shade.astype(np.uint8)[:, None]
    height, width = values.shape
    enlarge = max(1, _SMALLEST_SIDE // max(height, width))
    picture = Image.fromarray(colours).resize((width * enlarge, height * enlarge), Image.Resampling.NEAREST)
    sheet = _with_colour_bar(picture, low, high, unit, grey_below)
    return with_legend(np.asarray(sheet), legend, title, gsd_m / enlarge if gsd_m else None)


def _with_colour_bar(picture: "Image", low: float, high: float, unit: str, grey_below: float) -> "Image":
    from PIL import Image, ImageDraw, ImageFont

    text_px = max(12, min(24, max(picture.size) // 42))
    font = ImageFont.load_default(size=text_px)
    ticks = _ticks(low, high)
    labels = [f"{tick:g} {unit}" for tick in ticks]
    label_width = round(max(font.getlength(label) for label in labels))
    tall = max(picture.height, 8 * text_px)
    sheet = Image.new("RGB", (picture.width + text_px * 3 + label_width, tall), (255, 255, 255))
    sheet.paste(picture, (0, 0))
    top, bottom = text_px, tall - text_px
    column = np.linspace(high, low, bottom - top, dtype=np.float32)[:, None]
    bar = viridis(np.repeat(column, text_px, axis=1), low, high)
    bar[column[:, 0] < grey_below] = 150
    left = picture.width + text_px // 2
    sheet.paste(Image.fromarray(bar), (left, top))
    draw = ImageDraw.Draw(sheet)
    draw.rectangle((left, top, left + text_px, bottom), outline=(0, 0, 0))
    for tick, label in zip(ticks, labels, strict=True):
        y = bottom - (tick - low) / max(high - low, 1e-12) * (bottom - top)
        draw.line((left + text_px, y, left + text_px + 4, y), fill=(0, 0, 0), width=2)
        draw.text((left + text_px + 8, y - text_px * 0.6), label, fill=(0, 0, 0), font=font)
    return sheet


def _ticks(low: float, high: float) -> list[float]:
    """Return about five round values in the range."""
    if not high > low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = next(part * power for part in (1, 2, 2.5, 5, 10) if (high - low) / (part * power) <= 6)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _table() -> NDArray[np.uint8]:
    corners = np.array([list(bytes.fromhex(colour)) for colour in _VIRIDIS.split()], np.float64)
    places = np.linspace(0, len(corners) - 1, _STEPS)
    return np.stack([np.interp(places, np.arange(len(corners)), corners[:, k]) for k in range(3)], 1).astype(np.uint8)


_HALO: Colour = (0, 0, 0)
_MOST_LABELS = 150
"""Maximum number of labels; if there are more, none is drawn, because they would hide the picture."""


@dataclass(frozen=True)
class Mark:
    """Marked object: a ``box`` (x0, y0, x1, y1), a ``circle`` (x, y, radius) or an ``outline`` ((x, y), ...), pixels.

    If several are given, all are drawn.
    """

    colour: Colour
    label: str = ""
    box: tuple[float, float, float, float] | None = None
    circle: tuple[float, float, float] | None = None
    outline: tuple[tuple[float, float], ...] | None = None


def draw_marks(
    pixels: NDArray[np.uint8],
    marks: Sequence[Mark],
    *,
    legend: Sequence[tuple[Colour, str]] = (),
    region: Box | None = None,
    gsd_m: float | None = None,
    title: str = "",
    zoom: int = 1,
) -> NDArray[np.uint8]:
    """Return the picture, enlarged by the integer ``zoom``, with all marks; the rest of the picture around
    ``region`` is dimmed; title, legend and scale bar are below."""
    import cv2
    from PIL import Image, ImageDraw, ImageFont

    pixels = pixels.repeat(zoom, axis=0).repeat(zoom, axis=1)
    height, width = pixels.shape[:2]
    shrink = min(1.0, LONGEST_SIDE / max(height, width))
    size = (max(1, round(width * shrink)), max(1, round(height * shrink)))
    picture = np.array(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)) if shrink < 1 else pixels
    scale = zoom * shrink
    if region is not None:
        x0, y0, x1, y1 = (round(edge * scale) for edge in region)
        dim_outside(picture, (x0, y0, x1, y1))
    canvas = Image.fromarray(picture)
    draw = ImageDraw.Draw(canvas)
    line = max(2, round(max(canvas.size) / 400))
    for mark in marks:
        # A dark line below the coloured one makes it visible on any background.
        for colour, thickness in ((_HALO, line + 2), (mark.colour, line)):
            if mark.box is not None:
                x0, y0, x1, y1 = (edge * scale for edge in mark.box)
                draw.rectangle((x0, y0, max(x0, x1 - 1), max(y0, y1 - 1)), outline=colour, width=thickness)
            if mark.circle is not None:
                x, y, radius = (part * scale for part in mark.circle)
                draw.ellipse((x - radius, y - radius, x + radius, y + radius), outline=colour, width=thickness)
            if mark.outline is not None and len(mark.outline) > 1:
                points = [(x * scale, y * scale) for x, y in (*mark.outline, mark.outline[0])]
                draw.line(points, fill=colour, width=thickness, joint="curve")
    if sum(bool(mark.label) for mark in marks) <= _MOST_LABELS:
        font = ImageFont.load_default(size=max(11, round(max(canvas.size) / 75)))
        for mark in marks:
            if mark.label:
                x, y = _corner(mark, scale)
                box = draw.textbbox((0, 0), mark.label, font=font)
                x = min(max(0.0, x), max(0.0, canvas.width - box[2] - 2))
                y = min(max(0.0, y - box[3] - 2), max(0.0, canvas.height - box[3] - 2))
                draw.text((x, y), mark.label, fill=(255, 255, 255), font=font, stroke_width=2, stroke_fill=(0, 0, 0))
    layers = [Layer(number, colour, label) for number, (colour, label) in enumerate(legend)]
    return with_legend(np.asarray(canvas), layers, title, gsd_m / scale if gsd_m else None)


def _corner(mark: Mark, scale: float) -> tuple[float, float]:
    """Return the lower left corner of the label, at the top left of the marked object."""
    if mark.box is not None:
        return mark.box[0] * scale, mark.box[1] * scale
    if mark.circle is not None:
        x, y, radius = mark.circle
        return (x - 0.7 * radius) * scale, (y - 0.7 * radius) * scale
    points = mark.outline or ((0.0, 0.0),)
    return min(x for x, _ in points) * scale, min(y for _, y in points) * scale
