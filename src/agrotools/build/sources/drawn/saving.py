"""Writing drawn pictures as cameras would, and marks on them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.build.references import PlannedCall, ref
from agrotools.build.scenes.marks import Box, MarkShape, apart, draw_mark, mark_truth
from agrotools.core import SampleFile


def save_photo(path: Path, rgb: NDArray[Any], quality: int = 93) -> None:
    """A JPEG of uint8 (rows, columns, 3) with full colour, so that thin coloured strokes stay what they are."""
    from PIL import Image

    Image.fromarray(rgb).save(path, "JPEG", quality=quality, subsampling=0)


def save_labels(path: Path, classes: NDArray[np.uint8]) -> None:
    """A PNG of class numbers (rows, columns)."""
    from PIL import Image

    Image.fromarray(classes).save(path, "PNG")


def save_raster(path: Path, bands: NDArray[np.uint16], names: Sequence[str], gsd_m: float, number: int) -> None:
    """A GeoTIFF (bands, rows, columns) in UTM coordinates of nowhere in particular, with band names and the scale of
    reflectance times 10,000; ``number`` moves it, so that no two lie on one place."""
    import rasterio
    from rasterio.transform import from_origin

    profile = {
        "driver": "GTiff", "count": bands.shape[0], "height": bands.shape[1], "width": bands.shape[2],
        "dtype": "uint16", "crs": "EPSG:32632", "compress": "deflate", "predictor": 2,
        "transform": from_origin(500_000 + 10 * number, 5_800_000, gsd_m, gsd_m),
    }  # fmt: skip
    with rasterio.open(path, "w", **profile) as target:
        target.write(bands)
        for index, name in enumerate(names, start=1):
            target.set_band_description(index, name)
        target.scales = (1e-4,) * len(names)


JPEG_QUALITY = 92
_GAP_PX = 8


def save_jpeg(photo: NDArray[np.uint8], path: Path) -> None:
    """An 8-bit colour picture (rows, columns, 3) as JPEG."""
    from PIL import Image

    Image.fromarray(photo).save(path, "JPEG", quality=JPEG_QUALITY)


def save_png(plane: NDArray[Any], path: Path) -> None:
    """A plane of 8 or 16 bits, lossless."""
    from PIL import Image

    Image.fromarray(plane).save(path, "PNG")


def mark_each(
    photo: NDArray[np.uint8],
    boxes: Sequence[Box],
    colours: Sequence[str],
    rng: np.random.Generator,
    shapes: Sequence[MarkShape] = ("box", "box", "ellipse"),
) -> list[dict[str, Any]]:
    """Draw a mark around each box for which there is room, each in a colour of its own, in place.

    Returns:
        For each mark ``place`` (which box), ``color`` and ``truth`` of finding it.
    """
    stroke = int(rng.integers(3, 5))
    rows, columns = photo.shape[:2]
    drawn_boxes: list[Box] = []
    marks: list[dict[str, Any]] = []
    for place, inner in enumerate(boxes):
        if len(marks) == len(colours):
            break
        outer = (inner[0] - stroke, inner[1] - stroke, inner[2] + stroke, inner[3] + stroke)
        inside = outer[0] >= 1 and outer[1] >= 1 and outer[2] < columns and outer[3] < rows
        if not inside or not apart(outer, drawn_boxes, _GAP_PX):
            continue
        shape = shapes[int(rng.integers(len(shapes)))]
        colour = colours[len(marks)]
        drawn_boxes.append(draw_mark(photo, inner, colour, shape, stroke))
        truth = mark_truth(inner, drawn_boxes[-1], colour, shape, stroke)
        marks.append({"place": place, "color": colour, "truth": truth})
    return marks


def find_mark(image: str, colour: str, truth: dict[str, JsonValue]) -> PlannedCall:
    """The call that finds the one mark of that colour; what it encloses is ``crop_box`` of its result."""
    thought = f"First I need to know what the {colour} mark in {image} encloses."
    return PlannedCall("extract_marked_region", {"image": image, "mark_color": colour}, truth, thought=thought)


def grown(box: Sequence[int], by_px: int) -> Box:
    """The box with a margin on all sides."""
    return box[0] - by_px, box[1] - by_px, box[2] + by_px, box[3] + by_px


INSIDE = ref(0, "regions[0].inner_box")
"""Region inside the stroke, for the measurement that follows."""


def outline_call(file: SampleFile, item: Mapping[str, Any]) -> PlannedCall:
    """``item["box"]``: bounds inside the stroke [x0, y0, x1, y1], pixels."""
    truth: dict[str, JsonValue] = {
        "regions": [{"index": 1, "inner_box": item["box"], "color": "red"}],
        "crop_box": item["box"],
    }
    thought = f"First I need where the red outline is in {file.name}."
    return PlannedCall("extract_marked_region", {"image": file.name, "mark_color": "red"}, truth, thought=thought)
