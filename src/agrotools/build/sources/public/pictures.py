"""Pictures of a data set that samples will show: a file that no tool can read is found before anything is asked."""

from pathlib import Path

from agrotools.core import BenchmarkError, ToolError
from agrotools.vision.reading import read_image

SUFFIXES = (".jpg", ".jpeg", ".png")


def upright_size(path: Path, *, get_it: str) -> tuple[int, int]:
    """Width and height of a picture as tools and people see it, turned as its EXIF orientation says.

    Raises:
        BenchmarkError: it is missing, cut short or no picture.
    """
    try:
        picture = read_image(path, shown_as=str(path))
    except ToolError as error:
        raise BenchmarkError(error.message, hint=get_it) from error
    return picture.width, picture.height
