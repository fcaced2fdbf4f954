"""Remarks on photographs of fields whose plant cover is measured."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agrotools_tools.crop_weed.heads import is_false_colour
from agrotools_tools.vision.vegetation import Vegetation, weakness_of_cover


class Remarks(NamedTuple):
    notes: tuple[str, ...]
    flags: tuple[str, ...]


def remarks_on_photo(photo: NDArray[np.uint8], plants: Vegetation) -> Remarks:
    """Return why the plant cover of a photograph, uint8 (rows, columns, 3), may be wrong, but is given."""
    notes: list[str] = []
    flags: list[str] = []
    if weakness := weakness_of_cover(photo, plants):
        flags.append("vegetation_uncertain")
        notes.append(f"plant cover is uncertain: {weakness}")
    if is_false_colour(photo):
        flags.append("false_colour_suspected")
    return Remarks(tuple(notes), tuple(flags))
