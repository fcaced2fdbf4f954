"""Scale and masks of an image, as several tools read them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.tools.workspace import shown_name
from agrotools.vision.reading import read_labels

_WORTH_SAYING = 0.02


@dataclass(frozen=True)
class Scale:
    """``gsd_m``: metres per pixel, None where nobody knows."""

    gsd_m: float | None = None
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def choose_scale(given: float | None, known: float | None, in_file: float | None = None) -> Scale:
    """The ground sampling distance to use.

    Args:
        given: the caller's argument, which wins.
        known: what the sample or a sidecar says of the file.
        in_file: what the raster's own coordinate reference system says.

    Returns:
        With flag ``gsd_differs_from_file`` where the caller's value differs from what else is known by over 2 %.
    """
    elsewhere = known or in_file
    if given is None:
        return Scale(elsewhere)
    if elsewhere and abs(given / elsewhere - 1) > _WORTH_SAYING:
        note = f"gsd_m is {given:g}, while the file says {elsewhere:.6g}; gsd_m was used"
        return Scale(given, (note,), ("gsd_differs_from_file",))
    return Scale(given)


def read_mask_pixels(
    path: Path, image_shape: tuple[int, int], image_name: str, *, argument: str, called: str
) -> NDArray[np.bool_]:
    """Pixels where a mask holds data and is not 0, bool (rows, columns).

    Args:
        image_shape: rows and columns of the image it belongs to.
        called: what it is, for the hint: "a leaf mask".

    Raises:
        ToolError: ``shape_mismatch``, and as :func:`read_labels`.
    """
    name = shown_name(path)
    labels = read_labels(path, argument=argument, shown_as=name)
    rows, columns = labels.classes.shape
    refuse_other_size(image_shape, (rows, columns), (image_name, name), argument=argument, called=called)
    marked = labels.classes != 0
    return marked if labels.valid is None else marked & labels.valid


def refuse_other_size(
    of_image: tuple[int, int], of_mask: tuple[int, int], names: tuple[str, str], *, argument: str, called: str
) -> None:
    """Refuse a mask whose rows and columns are not those of its image.

    Raises:
        ToolError: ``shape_mismatch``.
    """
    if of_image != of_mask:
        raise ToolError(
            "shape_mismatch",
            f"{names[0]} is {of_image[1]} x {of_image[0]} pixels and {names[1]} {of_mask[1]} x {of_mask[0]}",
            argument=argument,
            hint=f"{called} has the size of its image",
        )
