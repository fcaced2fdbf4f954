"""Readers of boxes and outlines in the formats of YOLO, COCO, VOC and the VGG Image Annotator."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from agrotools.build.sources.reading import read_json, read_lines
from agrotools.core import BenchmarkError

Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels, ends excluded."""
Outline = list[NDArray[np.int32]]
"""Polygons, each (points, 2): an apple behind a twig is in several pieces."""
_LARGEST_LABELS = 5_000_000
_LARGEST_XML = 500_000
_LARGEST_PX = 20_000
_ROUNDING = 1e-3
"""By how much a YOLO box may reach beyond where a picture can have it, from digits cut off."""


def count_yolo_boxes(path: Path, kind: str = "0") -> int:
    """Number of boxes in a YOLO label file, all of class ``kind``; a box written twice is counted once.

    Raises:
        BenchmarkError: it cannot be read, or a line is no box of that class in a picture.
    """
    boxes: set[tuple[float, ...]] = set()
    for number, line in read_lines(path, _LARGEST_LABELS):
        at = f"{path}, line {number}"
        try:
            of, *numbers = line.split()
            _, _, width, height = box = tuple(map(float, numbers))
        except ValueError as error:
            raise BenchmarkError(f"{at} is not a box (class, centre x, centre y, width, height)") from error
        if of != kind:
            raise BenchmarkError(f"{at} is of class {of[:20]}, and all are of class {kind}")
        if not all(-_ROUNDING <= value <= 1 + _ROUNDING for value in box) or min(width, height) <= 0:
            raise BenchmarkError(f"{at} has a box that no picture holds: {line[:80]}")
        boxes.add(box)
    return len(boxes)


def read_coco(path: Path) -> tuple[dict[Any, str], dict[Any, str], set[tuple[Any, Any, tuple[float, ...]]]]:
    """Of a COCO file the names of pictures by id, the names of categories by id, and the boxes: id of the picture, id
    of the category, x, y, width and height; a box written twice is there once.

    Raises:
        BenchmarkError: it is no COCO file.
    """
    try:
        coco = cast("dict[str, Any]", read_json(path))
        pictures = {one["id"]: Path(str(one["file_name"])).name for one in coco["images"]}
        categories = {one["id"]: str(one["name"]) for one in coco["categories"]}
        boxes = {(one["image_id"], one["category_id"], tuple(one["bbox"])) for one in coco["annotations"]}
    except (KeyError, TypeError) as error:
        raise BenchmarkError(f"{path} holds no COCO annotations: {error!r}") from error
    return pictures, categories, boxes


def read_voc(path: Path) -> tuple[tuple[int, int], list[tuple[str, Box]]]:
    """Of a VOC annotation the width and height of the picture, and name and box of each object.

    Raises:
        ValueError: it cannot be read, or is too large for the annotation of a picture.
    """
    try:
        if path.stat().st_size > _LARGEST_XML:
            raise ValueError("too large for the annotation of a picture")
        text = path.read_text("utf-8")
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            raise ValueError("an annotation declares no entities")
        tree = ElementTree.fromstring(text)
    except (OSError, ElementTree.ParseError) as error:
        raise ValueError(str(error)) from error
    size = int(tree.findtext("size/width", "")), int(tree.findtext("size/height", ""))
    return size, [(one.findtext("name", ""), _voc_box(one)) for one in tree.iter("object")]


def _voc_box(one: ElementTree.Element) -> Box:
    x0, y0, x1, y1 = (round(float(one.findtext(f"bndbox/{edge}", ""))) for edge in ("xmin", "ymin", "xmax", "ymax"))
    return x0, y0, x1, y1


def read_outlines(path: Path, left_out: Counter[str]) -> dict[str, dict[int, Outline]]:
    """The pieces of every apple that has a number, by picture and number, from a file of the VGG Image Annotator.

    By the picture's name and not by the file's own key, which holds a size that need not be the same in two files.
    ``left_out`` counts what cannot be used.

    Raises:
        BenchmarkError: the file cannot be read, or is not of that form.
    """
    entries = read_json(path)
    if not isinstance(entries, dict):
        raise BenchmarkError(f"{path} is not a file of the VGG Image Annotator")
    outlines: dict[str, dict[int, Outline]] = {}
    for key, entry in cast("dict[str, Any]", entries).items():
        try:
            name, regions = entry["filename"], entry["regions"]
            if Path(name).name != name or name in outlines:
                raise ValueError(f"picture {name!r} is named twice or leads elsewhere")
            outlines[name] = _pieces(regions.values() if isinstance(regions, dict) else regions, left_out)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise BenchmarkError(f"{path}: the regions of {key[:80]} cannot be read: {error!r}") from error
    return outlines


def _pieces(regions: Any, left_out: Counter[str]) -> dict[int, Outline]:
    outlines: dict[int, Outline] = {}
    for region in regions:
        number = int(str(region["region_attributes"].get("apple_ID", "")).strip() or 0)
        if number == 0:
            left_out["outlines without the number of an apple"] += 1
            continue
        shape = region["shape_attributes"]
        if "all_points_x" not in shape:
            left_out["outlines that are not polygons"] += 1
            continue
        xs, ys = (np.asarray(shape[f"all_points_{axis}"], np.float64) for axis in "xy")
        if xs.ndim != 1 or xs.shape != ys.shape or not np.isfinite([xs, ys]).all():
            raise ValueError(f"the outline of apple {number} is not a list of points")
        if len(xs) and max(np.abs(xs).max(), np.abs(ys).max()) > _LARGEST_PX:
            raise ValueError(f"the outline of apple {number} reaches beyond any picture")
        if len(xs) < 3:
            left_out["outlines of fewer than three points"] += 1
            continue
        outlines.setdefault(number, []).append(np.round(np.stack([xs, ys], axis=1)).astype(np.int32))
    return outlines


def box_of(outline: Outline) -> Box:
    """The box around all pieces."""
    points = np.concatenate(outline)
    (x0, y0), (x1, y1) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    return x0, y0, x1 + 1, y1 + 1


def mask_of(outline: Outline, box: Sequence[int]) -> NDArray[np.bool_]:
    """Pixels of the box that lie in one of the pieces."""
    import cv2

    drawn = np.zeros((box[3] - box[1], box[2] - box[0]), np.uint8)
    for piece in outline:
        # One by one: drawn together, pieces that overlap would leave a hole.
        cv2.fillPoly(drawn, [piece - np.array(box[:2], np.int32)], 1)
    return drawn > 0
