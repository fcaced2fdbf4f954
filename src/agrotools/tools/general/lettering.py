"""Letters on pictures: a font that has them, and a colour by its name."""

from typing import TYPE_CHECKING

from agrotools.core import ToolError
from agrotools.tools.analytics.text_on_figures import font_families

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

Rgb = tuple[int, int, int]


def font_for(text: str, size_px: int) -> tuple["FreeTypeFont", bool]:
    """The installed font that has most letters of ``text``, and whether it has all of them."""
    from matplotlib import font_manager
    from PIL import ImageFont

    families, _ = font_families([text])
    letters = {letter for letter in text if not letter.isspace()}
    missing = {
        path: sum(not font_manager.get_font(path).get_char_index(ord(letter)) for letter in letters)
        for path in (font_manager.findfont(family) for family in families)
    }
    path = min(missing, key=lambda each: missing[each])
    return ImageFont.truetype(path, size_px), missing[path] == 0


def rgb(colour: str, argument: str) -> Rgb:
    """A colour by its name or as #rrggbb.

    Raises:
        ToolError: ``invalid_argument``: it is none.
    """
    from PIL import ImageColor

    try:
        red, green, blue = ImageColor.getrgb(colour.strip())[:3]
    except ValueError:
        raise ToolError(
            "invalid_argument",
            f"{colour[:40]!r} is no colour",
            argument=argument,
            hint="use a name such as red, white or blue, or #rrggbb",
        ) from None
    return min(red, 255), min(green, 255), min(blue, 255)


def contrast(colour: Rgb) -> Rgb:
    """Black or white, whichever stands out against a colour."""
    red, green, blue = colour
    return (0, 0, 0) if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else (255, 255, 255)
