"""Conversions of files of public repositories into the files that questions show.

Every conversion gives the same bytes on every machine: JPEG of a fixed quality, or TIFF without compression.
"""

from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

Box = tuple[int, int, int, int]
Mark = tuple[str, Box]
"""Colour of a frame, and the box inside it in pixels."""
STROKE_PX = 4
PENS: Mapping[str, tuple[int, int, int]] = {
    "red": (255, 0, 0), "yellow": (255, 255, 0), "blue": (0, 0, 255), "magenta": (255, 0, 255), "cyan": (0, 255, 255),
}  # fmt: skip


def as_jpeg(content: bytes, quality: int, crop: Box | None, marks: Iterable[Mark]) -> list[bytes]:
    """Return the picture as it is, cut to ``crop`` and whole as a JPEG, with ``marks``; empty if it is no picture."""
    made: list[bytes] = [content]
    try:
        with _opened(content) as picture:
            made += [_jpeg(each.convert("RGB"), quality) for each in (*([picture.crop(crop)] if crop else ()), picture)]
        return [with_marks(each, quality, marks) for each in made]
    except (OSError, ValueError, SyntaxError):
        return []


def with_marks(content: bytes, quality: int, marks: Iterable[Mark]) -> bytes:
    """Return a picture with drawn frames as a JPEG; unchanged without marks."""
    from PIL import Image

    if not (drawn := [*marks]):
        return content
    with _opened(content) as picture:
        pixels = np.array(picture.convert("RGB"))
    before = pixels.copy()
    for colour, (x0, y0, x1, y1) in drawn:
        pixels[max(0, y0 - STROKE_PX) : y1 + STROKE_PX, max(0, x0 - STROKE_PX) : x1 + STROKE_PX] = PENS[colour]
        pixels[y0:y1, x0:x1] = before[y0:y1, x0:x1]
    return _jpeg(Image.fromarray(pixels), quality)


def as_tiff(content: bytes, layer: int | None) -> list[bytes]:
    """Return the values of a plane as TIFF files: as they are, and as 0 and 1; empty if they cannot be read.

    A plane is read from a picture, from an array of NumPy (``layer``: place in its first dimension) or from the
    variable ``transformed_depth`` of a MATLAB file.
    """
    from PIL import Image

    plane = _plane(content, layer)
    if plane is None or plane.ndim != 2:
        return []
    stored = plane.astype(np.float32 if plane.dtype.kind == "f" else np.uint8 if plane.max() < 256 else np.uint16)
    return [_saved(Image.fromarray(each), "TIFF") for each in (stored, (stored > 0).astype(np.uint8))]


def _plane(content: bytes, layer: int | None) -> NDArray[Any] | None:
    try:
        if content.startswith(b"\x93NUMPY"):
            return np.load(BytesIO(content), allow_pickle=False)[layer or 0].squeeze()
        if content.startswith(b"MATLAB"):
            from scipy.io import loadmat

            return loadmat(BytesIO(content))["transformed_depth"].astype(np.uint16)
        with _opened(content) as picture:
            return np.asarray(picture)
    except (OSError, ValueError, SyntaxError, KeyError, IndexError, NotImplementedError):  # the last: MATLAB 7.3
        return None


def class_planes(content: bytes) -> list[NDArray[np.uint8]]:
    """Return the classes of a mask in colours: green 1, red 2; classes as they are in a mask without colours."""
    pixels = _pixels(content)
    if pixels is None or pixels.ndim == 2:
        return [] if pixels is None else [pixels]
    red, green = pixels[..., 0] > 127, pixels[..., 1] > 127
    return [np.where(green & ~red, 1, np.where(red & ~green, 2, 0)).astype(np.uint8)]


def plant_planes(content: bytes) -> list[NDArray[np.uint8]]:
    """Return a mask of plants as 0 and 1, and its inverse: plants are black in some."""
    pixels = _pixels(content)
    if pixels is None:
        return []
    plants = (pixels if pixels.ndim == 2 else pixels.max(axis=2)) > 0
    return [plants.astype(np.uint8), (~plants).astype(np.uint8)]


PLANES: Mapping[str, Callable[[bytes], list[NDArray[np.uint8]]]] = {"classes": class_planes, "plants": plant_planes}


def as_png(plane: NDArray[np.uint8]) -> bytes:
    """Return a plane as a PNG file."""
    from PIL import Image

    return _saved(Image.fromarray(plane), "PNG")


def _pixels(content: bytes) -> NDArray[np.uint8] | None:
    try:
        with _opened(content) as picture:
            colours = picture.mode in ("RGB", "RGBA", "P")
            return np.asarray(picture.convert("RGB") if colours else picture).astype(np.uint8)
    except (OSError, ValueError, SyntaxError):
        return None


def _opened(content: bytes) -> "Image":
    from PIL import Image

    return Image.open(BytesIO(content))


def _jpeg(picture: "Image", quality: int) -> bytes:
    return _saved(picture, "JPEG", quality=quality)


def _saved(picture: "Image", form: str, **options: int) -> bytes:
    buffer = BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()
