"""Pictures that calls name, read from the folder of the server."""

from pathlib import Path

import numpy as np
from mcp.server.mcpserver.exceptions import ToolError
from numpy.typing import NDArray
from PIL import Image, ImageOps

Pixels = NDArray[np.uint8]
"""Picture, (rows, columns, 3)."""
Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels; the first corner is in the box, the second one is not."""


def read_picture(folder: Path, name: str) -> Pixels:
    """Return a picture of the folder, upright, by an absolute path or by one relative to the folder.

    Raises:
        ToolError: there is no such file in the folder, or it is no picture.
    """
    path = (folder / name).resolve()
    if not path.is_relative_to(folder) or not path.is_file():
        raise ToolError(f"the folder of this server has no file {name[:200]!r}")
    try:
        with Image.open(path) as picture:
            return np.array(ImageOps.exif_transpose(picture).convert("RGB"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ToolError(f"{path.name} is no picture that can be read: {error}") from error


def box_in(pixels: Pixels, region: list[int] | None) -> Box:
    """Return a region as a box in the picture, all of it without one.

    Raises:
        ToolError: the region has other than four numbers, or shows nothing of the picture.
    """
    rows, columns = pixels.shape[:2]
    if region is None:
        return 0, 0, columns, rows
    if len(region) != 4:
        raise ToolError(f"region has {len(region)} numbers; it is [x0, y0, x1, y1] in pixels")
    x0, y0, x1, y1 = region
    box = max(0, x0), max(0, y0), min(columns, x1), min(rows, y1)
    if box[0] >= box[2] or box[1] >= box[3]:
        raise ToolError(
            f"region {region} shows nothing of the picture of {columns} x {rows} pixels"
        )
    return box


def crop(pixels: Pixels, box: Box) -> Image.Image:
    """Return the part of a picture that is in a box."""
    x0, y0, x1, y1 = box
    return Image.fromarray(pixels[y0:y1, x0:x1])
