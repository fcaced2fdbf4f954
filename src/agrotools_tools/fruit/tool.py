"""Sizes of the fruits in a picture."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agrotools.calling.arguments import ReferenceCall, drop_arguments, round_converted
from agrotools.calling.contract import Agree, DepthFile, ImageFile, Region, tool
from agrotools.calling.workspace import file_info, shown_name
from agrotools.core import Arguments, ToolError
from agrotools.vision import Box
from agrotools.vision.formats import clipped_region
from agrotools.vision.reading import RgbImage, read_image
from agrotools_tools.counting.tool import NET_FILES
from agrotools_tools.fruit.result import Fruit, FruitSizes, fruit_result

if TYPE_CHECKING:
    from agrotools_tools.fruit.camera import DepthMap
    from agrotools_tools.fruit.finding import FruitMask
    from agrotools_tools.fruit.measure import FruitMeasurement, View

_PALE_CONTRAST = 25.0
"""Difference of fruit and foliage, Lab units, below which fruit is pale; red fruit differs by 30 and more."""
_MOST_BY_COLOUR = 0.5
"""Share of fruits outlined by colour below which their edges are doubted."""
_ABOUT_FINDING = ("size_guessed", "weak_detector")
"""Flags of the search that apply to sizes too."""
_SPARSE_DEPTH = 0.4
"""Share of the pixels of fruit colour with a depth, below which fruits are missed."""
_MOST_BOXES = 2000
_UNLIKE_FRUIT = (
    "unlike the pictures of fruit that the search by colour is made for: other things of this colour may be measured"
    " as fruit"
)


def _resolve(call: Arguments, known: ReferenceCall) -> Arguments:
    """Resolve the camera to intrinsics at the size of the image, and drop the depth unit if there is no depth."""
    from agrotools_tools.fruit.camera import CameraArguments, choose_camera

    if call["depth"] is None:
        call = drop_arguments(call, "depth_unit_mm")
    file, size = known.file(call["image"]), known.size(call["image"])
    of_camera = CameraArguments._fields
    intrinsics = CameraArguments(*cast(Any, [call[name] for name in of_camera]))
    if size is None or (
        intrinsics.fx_px is None and intrinsics.focal_mm is None and not (file and file.intrinsics)
    ):
        return call
    camera = choose_camera(
        intrinsics, file, Path(str(call["image"])), size, str(call["image"])
    ).camera
    seen = {name: round_converted(value) for name, value in camera._asdict().items()}
    return {**drop_arguments(call, *of_camera), **seen}


@tool(
    category="measurement",
    version="3",
    resolves=_resolve,
    data_files=NET_FILES,
    expert=(
        "fy_px",
        "cx_px",
        "cy_px",
        "focal_mm",
        "sensor_width_mm",
        "calibrated_width_px",
        "calibrated_height_px",
        "depth_unit_mm",
        "min_diameter_mm",
        "max_diameter_mm",
        "min_visibility",
    ),
    example={"image": "image", "depth": "depth"},
)
def measure_fruit_size(
    image: ImageFile,
    depth: DepthFile | None = None,
    distance_mm: Annotated[
        float | None, Field(ge=20, le=200_000, description="from the camera")
    ] = None,
    fx_px: Annotated[float | None, Field(ge=1, le=1e6)] = None,
    fy_px: Annotated[float | None, Field(ge=1, le=1e6)] = None,
    cx_px: Annotated[float | None, Field(ge=-1e6, le=1e6, description="optical axis")] = None,
    cy_px: Annotated[float | None, Field(ge=-1e6, le=1e6)] = None,
    focal_mm: Annotated[float | None, Field(gt=0, le=5000)] = None,
    sensor_width_mm: Annotated[float | None, Field(gt=0, le=500)] = None,
    calibrated_width_px: Annotated[int | None, Field(ge=1, le=100_000)] = None,
    calibrated_height_px: Annotated[int | None, Field(ge=1, le=100_000)] = None,
    depth_unit_mm: Annotated[float | None, Field(gt=0, le=10_000)] = None,
    boxes: Annotated[
        list[Region] | None,
        Agree("series"),
        Field(min_length=1, max_length=_MOST_BOXES, description="one fruit each"),
    ] = None,
    region: Region | None = None,
    fruit: Fruit = "apple",
    min_diameter_mm: Annotated[float, Field(gt=0, le=1000)] = 25,
    max_diameter_mm: Annotated[float, Field(gt=0, le=1000)] = 120,
    min_visibility: Annotated[float, Field(ge=0, le=1)] = 0.6,
) -> FruitSizes:
    """Measure the diameter of each fruit: fruits, mean_diameter_mm, median_diameter_mm, size_classes.

    Needs depth or distance_mm, and the focal length fx_px unless the file has it.
    Other kinds of fruit need boxes.

    Raises:
        ToolError: ``missing_metadata`` (no distance, no focal length, unit of depth not known), ``shape_mismatch``
            (depth or intrinsics of another size), ``nothing_found``, ``region_empty``, ``backend_unavailable`` (the net
            cannot be loaded), and those of a file that cannot be read.

    Sources: outline completed by a circle, and its distance from depth, as Gené-Mola et al. 2021 and Ferrer-Ferrer et
        al. 2023 (amodal sizing of apples) define the task; methods as named in :mod:`agrotools_tools.fruit.measure`
        and :mod:`agrotools_tools.fruit.finding`.
    """
    from agrotools_tools.fruit.camera import CameraArguments, choose_camera
    from agrotools_tools.fruit.finding import find_fruit_pixels
    from agrotools_tools.fruit.measure import View

    if min_diameter_mm >= max_diameter_mm:
        why = f"min_diameter_mm = {min_diameter_mm:g} is not below max_diameter_mm = {max_diameter_mm:g}"
        raise ToolError("invalid_argument", why, argument="min_diameter_mm")
    if boxes is not None and region is not None:
        raise ToolError("invalid_argument", "give boxes or region, not both", argument="region")

    # What is seen, from how far, and through which camera.
    name = shown_name(image)
    picture = read_image(image, shown_as=name)
    size = (picture.width, picture.height)
    measured, distance_of_all = _distances(depth, depth_unit_mm, distance_mm, picture, name)
    camera_arguments = CameraArguments(
        fx_px=fx_px,
        fy_px=fy_px,
        cx_px=cx_px,
        cy_px=cy_px,
        focal_mm=focal_mm,
        sensor_width_mm=sensor_width_mm,
        calibrated_width_px=calibrated_width_px,
        calibrated_height_px=calibrated_height_px,
    )
    chosen = choose_camera(camera_arguments, file_info(image), image, size, name)
    box, clipped = clipped_region(region, *size, name)
    colour = find_fruit_pixels(picture.pixels, picture.valid, fruit)
    depth_mm = None if measured is None else measured.mm
    limits = float(min_diameter_mm), float(max_diameter_mm)
    view = View(
        camera=chosen.camera,
        fruit=colour.mask,
        depth=depth_mm,
        depth_mm=distance_of_all,
        diameters_mm=limits,
    )

    notes = [*picture.notes, *chosen.notes]
    flags = [*picture.flags, *chosen.flags, *clipped]
    if measured is not None:
        notes.append(measured.note)
    else:
        flags.append("one_distance_for_all")
    if picture.is_grey:
        flags.append("no_colour")

    # Fruits, in the boxes or searched.
    inside = np.s_[box[1] : box[3], box[0] : box[2]]
    in_colour = colour.mask[inside]
    depth_of_fruit = None if depth_mm is None else np.isfinite(depth_mm[inside][in_colour])
    if boxes is not None:
        sized = _in_boxes(view, colour, picture, boxes, name)
    else:
        sized = _searched(view, colour, picture, fruit, box, depth_of_fruit)
    if not sized.fruits:
        raise _no_fruits(name, bool(in_colour.any()), depth_of_fruit, boxes)
    return fruit_result(
        pixels=picture.pixels,
        view=view,
        fruits=sized.fruits,
        region=None if region is None else box,
        min_visibility=min_visibility,
        boxes=boxes or (),
        failed=sized.failed,
        notes=[*notes, *sized.notes],
        flags=[*flags, *sized.flags],
    )


def _distances(
    depth: Path | None,
    unit_mm: float | None,
    distance_mm: float | None,
    picture: RgbImage,
    name: str,
) -> "tuple[DepthMap | None, float | None]":
    """Return the depth per pixel or the distance of all fruits, whichever is given."""
    from agrotools_tools.fruit.camera import read_depth

    hint = "pass either depth (a depth image of the same view) or distance_mm"
    if depth is None:
        if distance_mm is None:
            why = "how far away the fruits are is not known"
            raise ToolError("missing_metadata", why, argument="depth", hint=hint)
        return None, distance_mm
    if distance_mm is not None:
        why = "depth and distance_mm were both given"
        raise ToolError("invalid_argument", why, argument="distance_mm", hint=hint)
    known = file_info(depth)
    if unit_mm is None and known is not None:
        unit_mm = known.depth_unit_mm
    depth_name = shown_name(depth)
    measured = read_depth(depth, unit_mm, shown_as=depth_name)
    height, width = measured.mm.shape
    if (width, height) != (picture.width, picture.height):
        hint = "pass depth that is registered to the colour image, pixel by pixel"
        if (height, width) == (picture.width, picture.height):
            hint = "turn the depth as the picture's EXIF orientation turns the picture"
        sizes = f"{width} x {height} pixels and {name} {picture.width} x {picture.height}"
        raise ToolError("shape_mismatch", f"{depth_name} is {sizes}", argument="depth", hint=hint)
    return measured, None


class _SizedFruits(NamedTuple):
    """Fruits with their numbers. ``failed``: numbers of boxes without a fruit."""

    fruits: "list[tuple[int, FruitMeasurement]]"
    failed: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def _in_boxes(
    view: "View", colour: "FruitMask", picture: RgbImage, boxes: list[Box], name: str
) -> _SizedFruits:
    """Measure the fruit in each box. ToolError ``region_empty`` if a box is outside the picture."""
    from agrotools_tools.fruit.finding import fruit_in_box

    fruits: list[tuple[int, FruitMeasurement]] = []
    failed: list[int] = []
    by_colour = 0
    for number, box in enumerate(boxes, start=1):
        x0, y0 = max(0, box[0]), max(0, box[1])
        x1, y1 = min(picture.width, box[2]), min(picture.height, box[3])
        if x0 >= x1 or y0 >= y1:
            why = f"box {number} {list(box)} is not inside {name}, which is {picture.width} x {picture.height} pixels"
            hint = "boxes are [x0, y0, x1, y1] in pixels of the original image"
            raise ToolError("region_empty", why, argument="boxes", hint=hint)
        measurement, is_coloured = fruit_in_box(view, colour, picture.pixels, (x0, y0, x1, y1))
        by_colour += is_coloured
        if measurement is None:
            failed.append(number)
        else:
            fruits.append((number, measurement))
    is_pale = by_colour < _MOST_BY_COLOUR * len(boxes)
    flags = ("pale_fruit_possible",) if is_pale else ()
    return _SizedFruits(fruits, tuple(failed), flags=flags)


def _searched(
    view: "View",
    colour: "FruitMask",
    picture: RgbImage,
    fruit: Fruit,
    region: Box,
    has_depth: NDArray[np.bool_] | None,
) -> _SizedFruits:
    """Find and measure the fruits of a region. ``has_depth``: whether each pixel of its colour has a depth."""
    from agrotools_tools.fruit.finding import search_fruits
    from agrotools_tools.vision.strangeness import FLAG, strangeness

    found = search_fruits(view, colour, picture.pixels, fruit, region)
    notes = [*found.notes]
    flags = [flag for flag in found.flags if flag in _ABOUT_FINDING]
    if found.with_net:
        # Of a strange picture, the note of the net says so.
        is_pale = found.by_colour < _MOST_BY_COLOUR
        is_strange = FLAG in found.flags
    else:
        is_pale = colour.contrast < _PALE_CONTRAST
        # Depth shows round things by itself, if they were found by colour.
        is_strange = has_depth is None and strangeness(picture.pixels, "fruit").is_strange
        if is_strange:
            notes.append(_UNLIKE_FRUIT)
    if is_pale:
        flags.append("pale_fruit_possible")
    if is_strange:
        flags.append(FLAG)
    if has_depth is not None and has_depth.size and has_depth.mean() < _SPARSE_DEPTH:
        flags.append("depth_sparse")
    numbered = list(enumerate(found.fruits, start=1))
    return _SizedFruits(numbered, notes=tuple(notes), flags=tuple(flags))


def _no_fruits(
    name: str, in_colour: bool, depth_of_fruit: NDArray[np.bool_] | None, boxes: list[Box] | None
) -> ToolError:
    if boxes is not None:
        place = "the box" if len(boxes) == 1 else f"any of the {len(boxes)} boxes"
        message = f"no round outline with a known distance in {place}"
        hint = "check that boxes, image and depth show the same view, and the limits of diameter"
    elif in_colour and depth_of_fruit is not None and not depth_of_fruit.any():
        message = "pixels of fruit colour were found, but none of them has a depth"
        hint = "pass depth that covers the fruits, or distance_mm"
    elif in_colour:
        message = "pixels of fruit colour were found, but nothing round of the size of a fruit"
        hint = "check distance, focal length and the limits of diameter, or pass boxes"
    else:
        message = "no fruit was found"
        hint = "pass boxes around the fruits"
    return ToolError("nothing_found", f"{message} ({name})", argument="image", hint=hint)
