"""Outlines that people drew with the VGG Image Annotator (version 1): an object is one polygon or several."""

from collections import Counter
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson
from numpy.typing import NDArray

from agrotools.core import BenchmarkError

Outline = list[NDArray[np.int32]]
"""Polygons, each (points, 2): an apple behind a twig is in several pieces."""
Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels, ends excluded."""
_LARGEST_PX = 20_000


def read_outlines(path: Path, left_out: Counter[str], *, get_it: str) -> dict[str, dict[int, Outline]]:
    """The pieces of every apple that has a number, by picture and number.

    By the picture's name and not by the file's own key, which holds a size that need not be the same in two files.
    ``left_out`` counts what cannot be used.

    Raises:
        BenchmarkError: the file cannot be read, or is not of that form.
    """
    try:
        entries = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise BenchmarkError(f"{path} cannot be read: {error}", hint=get_it) from error
    if not isinstance(entries, dict):
        raise BenchmarkError(f"{path} is no file of the VGG Image Annotator", hint=get_it)
    found: dict[str, dict[int, Outline]] = {}
    for key, entry in cast("dict[str, Any]", entries).items():
        try:
            name, regions = entry["filename"], entry["regions"]
            if Path(name).name != name or name in found:
                raise ValueError(f"picture {name!r} is named twice or leads elsewhere")
            found[name] = _pieces(regions.values() if isinstance(regions, dict) else regions, left_out)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise BenchmarkError(f"{path}: the regions of {key[:80]} cannot be read: {error!r}", hint=get_it) from error
    return found


def _pieces(regions: Any, left_out: Counter[str]) -> dict[int, Outline]:
    found: dict[int, Outline] = {}
    for region in regions:
        number = int(str(region["region_attributes"].get("apple_ID", "")).strip() or 0)
        if number == 0:
            left_out["outlines without the number of an apple"] += 1
            continue
        shape = region["shape_attributes"]
        if "all_points_x" not in shape:
            left_out["outlines that are no polygons"] += 1
            continue
        xs, ys = (np.asarray(shape[f"all_points_{axis}"], np.float64) for axis in "xy")
        if xs.ndim != 1 or xs.shape != ys.shape or not np.isfinite([xs, ys]).all():
            raise ValueError(f"the outline of apple {number} is no list of points")
        if len(xs) and max(np.abs(xs).max(), np.abs(ys).max()) > _LARGEST_PX:
            raise ValueError(f"the outline of apple {number} reaches beyond any picture")
        if len(xs) < 3:
            left_out["outlines of fewer than three points"] += 1
            continue
        found.setdefault(number, []).append(np.round(np.stack([xs, ys], axis=1)).astype(np.int32))
    return found


def box_of(outline: Outline) -> Box:
    """The box around all pieces."""
    points = np.concatenate(outline)
    (x0, y0), (x1, y1) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    return x0, y0, x1 + 1, y1 + 1


def mask_of(outline: Outline, box: Box) -> NDArray[np.bool_]:
    """Pixels of the box that lie in one of the pieces."""
    import cv2

    drawn = np.zeros((box[3] - box[1], box[2] - box[0]), np.uint8)
    for piece in outline:
        # One by one: drawn together, pieces that overlap would leave a hole.
        cv2.fillPoly(drawn, [piece - np.array(box[:2], np.int32)], 1)
    return drawn > 0
