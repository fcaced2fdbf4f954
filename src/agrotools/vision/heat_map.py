"""Values per pixel as colours, with a colour bar and a scale bar, for a person to read off."""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.overlay import Layer, with_legend

if TYPE_CHECKING:
    from PIL.Image import Image

_VIRIDIS = """
440154 470d60 48186a 482374 472d7b 453781 424086 3e4989 3b528b 375b8d 33638d
2f6b8e 2c728e 297a8e 26828e 23898e 21918c 1f988b 1fa088 22a785 28ae80 32b67a
3fbc73 4ec36b 5ec962 70cf57 84d44b 98d83e addc30 c2df23 d8e219 ece51b fde725
"""
"""The colour map viridis (van der Walt and Smith 2015, CC0) at 33 places: brighter is more, for any colour vision."""
NO_DATA_COLOUR = (255, 255, 255)
_SMALLEST_SIDE = 640
"""Smaller pictures are enlarged to about this, each pixel as a square."""
_STEPS = 256


def viridis(values: NDArray[np.float32], low: float, high: float) -> NDArray[np.uint8]:
    """Colours of values, uint8 (..., 3): dark violet at ``low`` and below, yellow at ``high`` and above.

    White where a value is NaN.
    """
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
    grey_below: float | None = None,
    title: str = "",
    legend: tuple[Layer, ...] = (),
    gsd_m: float | None = None,
) -> "Image":
    """A picture of values with its colour bar beside it, and title, legend and scale bar below.

    Args:
        values: float32 (rows, columns), NaN where there is no data; as large as the picture is to be.
        low: value at the lower end of the colours.
        high: value at their upper end.
        unit: written at the colour bar.
        grey_below: values below this are grey, so that what counts stands out.
        title: first line of the legend.
        legend: what colours besides those of the bar mean.
        gsd_m: metres per pixel of ``values``, for a scale bar.
    """
    from PIL import Image

    colours = viridis(values, low, high)
    if grey_below is not None:
        with np.errstate(invalid="ignore"):
            below = values < grey_below
        shade = 90 + 110 * np.clip((values[below] - low) / max(grey_below - low, 1e-12), 0, 1)
        colours[below] = shade.astype(np.uint8)[:, None]
    height, width = values.shape
    enlarge = max(1, _SMALLEST_SIDE // max(height, width))
    picture = Image.fromarray(colours).resize((width * enlarge, height * enlarge), Image.Resampling.NEAREST)
    sheet = _with_colour_bar(picture, low, high, unit, grey_below)
    return with_legend(sheet, legend, title, gsd_m / enlarge if gsd_m else None)


def _with_colour_bar(picture: "Image", low: float, high: float, unit: str, grey_below: float | None) -> "Image":
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
    if grey_below is not None:
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
    """Round values in the range, five or so."""
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
