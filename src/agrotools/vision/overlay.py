"""Pictures for checking results: class overlays, heat maps and marked objects, with title, legend and scale bar.

Colours are from the palette of Okabe and Ito (2008), which is distinguishable for people with any kind of colour
vision. Marks are outlines with short labels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agrotools.vision import Box

if TYPE_CHECKING:
    from PIL.Image import Image


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
"""Share of its colour in the area of a layer; the rest is the grey of the picture."""
_DIMMED = 0.45
"""Share of the brightness that is left outside of a region."""
_MOST_LABELS = 150
"""Maximum number of labels; if there are more, none is drawn, because they would hide the picture."""
_LENGTH_UNITS = ((1000, "km"), (1, "m"), (0.01, "cm"), (0, "mm"))
NO_DATA_COLOUR = (255, 255, 255)
_SMALLEST_SIDE = 640
"""Smaller heat maps are enlarged to about this size, each pixel as a square."""
_SWATCHES = 5
"""Number of colours of a heat map that its legend names."""


@dataclass(frozen=True)
class Layer:
    """Class to be drawn: its number in the class picture, its colour, and its line in the legend."""

    value: int
    colour: Colour
    label: str


@dataclass(frozen=True, eq=False)
class Mark:
    """Marked object: its outline ``points`` ((x, y), ...), pixels, and a short label at its top left."""

    colour: Colour
    points: Sequence[tuple[float, float]]
    label: str = ""


def box_points(box: Sequence[float]) -> Sequence[tuple[float, float]]:
    """Return the outline of a box x0, y0, x1, y1."""
    x0, y0, x1, y1 = box
    return (x0, y0), (x1, y0), (x1, y1), (x0, y1)


def circle_points(x: float, y: float, radius: float) -> Sequence[tuple[float, float]]:
    """Return the outline of a circle."""
    turns = (2 * math.pi * step / 24 for step in range(24))
    return [(x + radius * math.cos(turn), y + radius * math.sin(turn)) for turn in turns]


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
    picture, scale = resized(pixels, min(1.0, LONGEST_SIDE / max(classes.shape)))
    tint_layers(picture, classes, layers)
    dim_outside(picture, region, scale)
    return with_legend(picture, layers, title, gsd_m / scale if gsd_m else None)


def draw_marks(
    pixels: NDArray[np.uint8],
    marks: Sequence[Mark],
    *,
    legend: Sequence[tuple[Colour, str]] = (),
    region: Box | None = None,
    gsd_m: float | None = None,
    title: str = "",
    zoom: float = 1,
) -> NDArray[np.uint8]:
    """Return the picture, enlarged by ``zoom``, with all marks; the rest of the picture around
    ``region`` is dimmed; title, legend and scale bar are below."""
    picture, scale = resized(pixels, min(zoom, LONGEST_SIDE / max(pixels.shape)))
    dim_outside(picture, region, scale)
    outlines = [np.rint(np.array(mark.points) * scale).astype(np.int32) for mark in marks]
    _draw_outlines(picture, marks, outlines)
    if sum(bool(mark.label) for mark in marks) <= _MOST_LABELS:
        picture = _with_labels(picture, marks, outlines)
    layers = [Layer(number, colour, label) for number, (colour, label) in enumerate(legend)]
    return with_legend(picture, layers, title, gsd_m / scale if gsd_m else None)


def _draw_outlines(
    picture: NDArray[np.uint8], marks: Sequence[Mark], outlines: Sequence[NDArray[np.int32]]
) -> None:
    """Draw the outlines of marks, (points, 2) in pixels of the picture, in place."""
    import cv2

    line_px = max(2, round(max(picture.shape) / 400))
    for mark, outline in zip(marks, outlines, strict=True):
        # A dark line below the coloured one makes it visible on any background.
        cv2.polylines(picture, [outline], True, BLACK, line_px + 2)
        cv2.polylines(picture, [outline], True, mark.colour, line_px)


def _with_labels(
    picture: NDArray[np.uint8], marks: Sequence[Mark], outlines: Sequence[NDArray[np.int32]]
) -> NDArray[np.uint8]:
    """Return a picture with the labels of marks above the top left of their outlines, or as near as they fit."""
    from PIL import Image, ImageDraw, ImageFont

    canvas = Image.fromarray(picture)
    draw = ImageDraw.Draw(canvas)
    font = ImageFont.load_default(size=max(11, round(max(canvas.size) / 75)))
    for mark, outline in zip(marks, outlines, strict=True):
        left, top = outline.min(axis=0)
        _, _, wide, high = draw.textbbox((0, 0), mark.label, font=font)
        most = np.maximum(0, (canvas.width - wide - 2, canvas.height - high - 2))
        place = np.clip((left, top - high - 2), 0, most)
        draw.text(
            (place[0], place[1]),
            mark.label,
            fill=(255, 255, 255),
            font=font,
            stroke_width=2,
            stroke_fill=BLACK,
        )
    return np.asarray(canvas)


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
    """Return a picture of values, (rows, columns), NaN for missing data, with title, legend (also of five values from
    ``low`` to ``high``) and scale bar (``gsd_m``: metres per pixel of ``values``) below. Values below ``grey_below``
    are grey."""
    colours = viridis(values, low, high)
    with np.errstate(invalid="ignore"):
        below = values < grey_below
    shade = 90 + 110 * np.clip((values[below] - low) / max(grey_below - low, 1e-12), 0, 1)
    colours[below] = shade.astype(np.uint8)[:, None]
    picture, scale = resized(colours, max(1, _SMALLEST_SIDE // max(values.shape)))
    steps = np.linspace(max(low, grey_below), high, _SWATCHES, dtype=np.float32)
    named = zip(steps.tolist(), viridis(steps, low, high).tolist(), strict=True)
    layers = [
        Layer(0, (red, green, blue), f"{value:.3g} {unit}") for value, (red, green, blue) in named
    ]
    return with_legend(picture, (*layers, *legend), title, gsd_m / scale if gsd_m else None)


def viridis(values: NDArray[np.float32], low: float, high: float) -> NDArray[np.uint8]:
    """Return colours of values, uint8 (..., 3), of the map viridis (van der Walt and Smith 2015, CC0): dark violet up
    to ``low``, yellow from ``high``, white for NaN."""
    import cv2

    table = cv2.applyColorMap(np.arange(256, dtype=np.uint8)[None], cv2.COLORMAP_VIRIDIS)[
        0, :, ::-1
    ]
    there = np.isfinite(values)
    share = (np.where(there, values, low) - low) / max(high - low, 1e-12)
    colours = np.asarray(table[(np.clip(share, 0, 1) * 255 + 0.5).astype(np.intp)], np.uint8)
    colours[~there] = NO_DATA_COLOUR
    return colours


def resized(pixels: NDArray[np.uint8], scale: float) -> tuple[NDArray[np.uint8], float]:
    """Return a copy of a picture ``scale`` times as large, and the scale; enlarged pixels stay squares."""
    import cv2

    height, width = pixels.shape[:2]
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST
    return np.array(cv2.resize(pixels, size, interpolation=method), np.uint8), scale


def tint_layers(
    picture: NDArray[np.uint8], classes: NDArray[np.uint8], layers: Sequence[Layer]
) -> None:
    """Fill the area of each layer of ``classes`` (rows, columns) over grey, because over green leaves its colour would
    not match the legend, and outline it in full colour, in place."""
    import cv2

    size = (picture.shape[1], picture.shape[0])
    for layer in layers:
        part = (classes == layer.value).astype(np.float32)
        area = (cv2.resize(part, size, interpolation=cv2.INTER_AREA) >= 0.5).astype(np.uint8)
        inside = area.view(np.bool_)
        greys = picture[inside].mean(axis=1, keepdims=True, dtype=np.float32)
        picture[inside] = (_FILL * np.array(layer.colour) + (1 - _FILL) * greys).astype(np.uint8)
        edge = area - cv2.erode(area, np.ones((3, 3), np.uint8), borderValue=0)
        picture[edge.view(np.bool_)] = layer.colour


def dim_outside(picture: NDArray[np.uint8], region: Box | None, scale: float = 1.0) -> None:
    """Reduce the brightness outside of a region, in pixels that ``scale`` converts to those of the picture, in place;
    nothing without a region."""
    if region is not None:
        x0, y0, x1, y1 = (round(edge * scale) for edge in region)
        outside = np.ones(picture.shape[:2], np.bool_)
        outside[y0:y1, x0:x1] = False
        picture[outside] = (picture[outside] * _DIMMED).astype(np.uint8)


def class_picture(classes: NDArray[np.uint8], colours: dict[int, Colour]) -> "Image":
    """Return classes as a palette picture: values are the class numbers, colours are for viewing only."""
    from PIL import Image

    picture = Image.frombytes(
        "P", (classes.shape[1], classes.shape[0]), np.ascontiguousarray(classes).tobytes()
    )
    table = np.zeros((256, 3), np.uint8)
    for value, colour in colours.items():
        table[value] = colour
    picture.putpalette(table.tobytes())
    return picture


def with_legend(
    picture: NDArray[np.uint8],
    layers: Sequence[Layer],
    title: str = "",
    metres_per_px: float | None = None,
) -> NDArray[np.uint8]:
    """Return a picture, uint8 (rows, columns, 3), with title, legend and, if the scale is known, a scale bar below it.

    The result is as wide as its longest line if the picture is narrower.
    """
    from PIL import Image, ImageDraw, ImageFont

    height, width = picture.shape[:2]
    text_px = max(12, min(24, width // 42))
    font = ImageFont.load_default(size=text_px)
    pad_px = text_px // 2
    line_px = text_px + text_px // 2
    # An entry is a square of its colour in a line of its height, its label, and a space.
    widths = [round(font.getlength(layer.label)) + line_px + pad_px for layer in layers]
    bar = _scale_bar(width, metres_per_px)
    title_width = round(font.getlength(title)) + 2 * pad_px
    sheet_width = max(width, title_width, *(wide + pad_px for wide in widths))
    # As high as one line for each entry may need; what is left empty is cut off below.
    most_lines = len(layers) + 2 + bool(bar)
    below = Image.new("RGB", (sheet_width, line_px * most_lines + pad_px), (255, 255, 255))
    draw = ImageDraw.Draw(below)
    draw.text((pad_px, pad_px), title, fill=BLACK, font=font)
    x, y = pad_px, pad_px + (line_px if title else 0)
    for layer, wide in zip(layers, widths, strict=True):
        if x > pad_px and x + wide > sheet_width:
            x, y = pad_px, y + line_px
        draw.rectangle((x, y + 2, x + text_px, y + text_px), fill=layer.colour, outline=BLACK)
        draw.text((x + line_px, y), layer.label, fill=BLACK, font=font)
        x += wide + 2 * pad_px
    if layers:
        y += line_px
    if bar:
        length_px, label = bar
        draw.rectangle((pad_px, y + pad_px, pad_px + length_px, y + pad_px + 3), fill=BLACK)
        draw.text((2 * pad_px + length_px, y), label, fill=BLACK, font=font)
        y += line_px
    sheet = np.full((height + y, sheet_width, 3), 255, np.uint8)
    sheet[:height, :width] = picture
    sheet[height:] = np.asarray(below)[:y]
    return sheet


def _scale_bar(width: int, metres_per_px: float | None) -> tuple[int, str] | None:
    """Return length in pixels and label of a bar of 1, 2 or 5 times a power of ten, about a fifth of the width."""
    if not metres_per_px:
        return None
    target_m = 0.2 * width * metres_per_px
    power = 10.0 ** math.floor(math.log10(target_m))
    metres = max(step * power for step in (1, 2, 5) if step * power <= target_m * 1.0000001)
    least, unit = next(each for each in _LENGTH_UNITS if metres >= each[0])
    return max(2, round(metres / metres_per_px)), f"{metres / (least or 0.001):g} {unit}"
