"""Marks drawn on a photograph, and the regions inside them."""

import io
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agrotools.calling.arguments import ReferenceCall
from agrotools.calling.contract import ImageFile, ToolResult, tool
from agrotools.calling.result import ResultPart
from agrotools.calling.workspace import save_artifact, shown_name
from agrotools.core import Arguments, Artifact, ToolError
from agrotools.vision import Box
from agrotools.vision.reading import read_image
from agrotools_tools.marks import MarkColour, MarkShape

if TYPE_CHECKING:
    from agrotools_tools.marks.measure import DrawnMark


class MarkedRegion(ResultPart):
    """One mark and what it encloses."""

    index: int
    """number of the mark, from 1, in reading order"""
    box: tuple[int, int, int, int]
    """bounds of the mark with its stroke, [x0, y0, x1, y1] in pixels, x1 and y1 excluded"""
    inner_box: tuple[int, int, int, int]
    """bounds of what lies inside the stroke: what to give other tools as region"""
    polygon: tuple[tuple[float, float], ...]
    """middle of the stroke, [x, y] in pixels; of an arrow its tail and its tip"""
    color: MarkColour
    """colour of the stroke"""
    shape: MarkShape
    """box (upright), ellipse, polygon or arrow"""
    area_px: int
    """pixels inside the stroke; of an arrow its own"""
    stroke_px: float
    """width of the stroke, pixels"""
    score: float
    """0..1, how much of the outline is there in one colour, with something else on both sides"""


class MarkedRegions(ToolResult):
    regions: tuple[MarkedRegion, ...]
    """all marks of the colour and shape asked for, in reading order"""
    selected: int
    """index of the mark that was cut out"""
    crop_box: tuple[int, int, int, int]
    """where the cut-out lies in the image, [x0, y0, x1, y1] in pixels"""
    crop: Artifact
    """the cut-out; transparent outside an ellipse or polygon when the stroke is cut off"""
    overlay: Artifact
    """the picture with the marks that were found"""


def _resolve(call: Arguments, known: ReferenceCall) -> Arguments:
    """Resolve the index to 1 if none is given, and the colour and shape if all marks of the reference share one."""
    for argument, open_to_all, mark_key in (
        ("mark_color", "auto", "color"),
        ("shape", "any", "shape"),
    ):
        marks = [
            mark.get(mark_key) for mark in known.list_field("regions") if isinstance(mark, dict)
        ]
        if (
            call[argument] == open_to_all
            and known.has_value(argument, open_to_all)
            and len(set(map(str, marks))) == 1
        ):
            call = {**call, argument: marks[0]}
    return {**call, "index": call["index"] or 1}


@tool(
    category="measurement",
    version="3",
    resolves=_resolve,
    expert=("pad_px", "inner"),
    example={"image": "image", "mark_color": "red"},
)
def extract_marked_region(
    image: ImageFile,
    mark_color: Literal[
        "red", "green", "blue", "yellow", "magenta", "cyan", "white", "auto"
    ] = "auto",
    shape: Literal["box", "ellipse", "polygon", "arrow", "any"] = "any",
    index: Annotated[int | None, Field(ge=1, description="from 1, in reading order")] = None,
    pad_px: Annotated[int, Field(ge=0, le=200)] = 0,
    inner: Annotated[bool, Field(description="without the stroke")] = True,
) -> MarkedRegions:
    """Find marks drawn on a photo in one pure colour, and cut out what one of them encloses.

    Returns regions (all marks with box and area), crop_box, and crop: a file for other tools.

    Raises:
        ToolError: the file cannot be read; ``nothing_found`` where there is no such mark, with the colours seen and the
            marks of other kinds; ``invalid_argument`` for an index beyond the last mark.

    Sources: outlines of holes, Suzuki and Abe 1985; ellipses, Fitzgibbon et al. 1999; corners, Douglas and Peucker
        1973; the order of the steps is ours, in :mod:`agrotools_tools.marks.measure`.
    """
    from agrotools_tools.marks.measure import COLOURS, find_marks_in_large

    name = shown_name(image)
    picture = read_image(image, shown_as=name)
    colours = COLOURS if mark_color == "auto" else (mark_color,)
    drawn_marks, looked = find_marks_in_large(picture.pixels, colours)
    marks = [mark for mark in drawn_marks if shape in ("any", mark.shape)]
    if not marks:
        raise _no_marks(picture.pixels, name, mark_color, shape, drawn_marks)
    if index is not None and index > len(marks):
        raise ToolError(
            "invalid_argument",
            f"index is {index}, but {name} has {len(marks)} such mark{'s' if len(marks) > 1 else ''}",
            argument="index",
            hint=f"give 1 to {len(marks)}, or a mark_color",
            candidates=tuple(_in_words(number, mark) for number, mark in enumerate(marks, start=1))[
                :20
            ],
        )
    chosen = marks[(index or 1) - 1]
    notes = [*picture.notes, *looked, "box: the stroke included; inner_box: without it"]
    flags = [*picture.flags]
    if index is None and len(marks) > 1:
        flags.append("several_marks")
    if chosen.score < 0.8:
        flags.append("outline_incomplete")
    crop_box = _crop_box(chosen, inner, pad_px, picture.width, picture.height)
    if chosen.shape == "arrow":
        flags.append("extent_unknown")
    x0, y0, x1, y1 = crop_box
    cut = picture.pixels[y0:y1, x0:x1]
    if inner and not pad_px and chosen.shape in ("ellipse", "polygon"):
        cut = np.dstack([cut, 255 * _inside_stroke(chosen, crop_box).astype(np.uint8)])
    return MarkedRegions(
        selected=(index or 1),
        regions=tuple(
            MarkedRegion(
                index=number,
                color=mark.colour,
                **{
                    name: value
                    for name, value in vars(mark).items()
                    if name not in ("colour", "rgb")
                },
            )
            for number, mark in enumerate(marks, start=1)
        ),
        crop_box=crop_box,
        crop=save_artifact("marked_region.png", "image", _png(cut)),
        overlay=save_artifact(
            "marked_region_overlay.jpg", "overlay", _overlay(picture.pixels, marks, chosen)
        ),
        notes=tuple(notes),
        flags=tuple(flags),
    )


def _crop_box(mark: "DrawnMark", inner: bool, pad_px: int, width: int, height: int) -> Box:
    x0, y0, x1, y1 = mark.inner_box if inner else mark.box
    if mark.shape == "arrow":
        (tail_x, tail_y), (tip_x, tip_y) = mark.polygon
        half = max(8, round(float(np.hypot(tip_x - tail_x, tip_y - tail_y)) / 2))
        x, y = min(max(0, round(tip_x)), width - 1), min(max(0, round(tip_y)), height - 1)
        x0, y0, x1, y1 = x - half, y - half, x + half + 1, y + half + 1
    return (
        max(0, x0 - pad_px),
        max(0, y0 - pad_px),
        min(width, x1 + pad_px),
        min(height, y1 + pad_px),
    )


def _inside_stroke(mark: "DrawnMark", box: Box) -> NDArray[np.bool_]:
    """Return the mask of the pixels of a box that are inside the stroke of a mark."""
    import cv2

    x0, y0, x1, y1 = box
    corners = np.rint((np.array(mark.polygon) - (x0, y0)) * 16).astype(np.int32)
    inside = np.zeros((y1 - y0, x1 - x0), np.uint8)
    cv2.fillPoly(inside, [corners], 1, shift=4)
    cv2.polylines(inside, [corners], True, 0, int(np.ceil(mark.stroke_px)) + 2, shift=4)
    return inside.astype(bool)


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """Encode as PNG: lossless for later colour measurements, and lightly compressed, which is ten times as fast."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def _overlay(pixels: NDArray[np.uint8], marks: "list[DrawnMark]", chosen: "DrawnMark"):
    from agrotools.vision.overlay import SKY_BLUE, VERMILLION, Mark, box_points, draw_marks

    mark_list = [
        Mark(
            VERMILLION if mark is chosen else SKY_BLUE,
            box_points(mark.box) if mark.shape == "box" else mark.polygon,
            f"{number} {mark.colour} {mark.shape}",
        )
        for number, mark in enumerate(marks, start=1)
    ]
    legend = [(VERMILLION, "cut out")] + ([(SKY_BLUE, "other marks")] if len(marks) > 1 else [])
    title = f"{len(marks)} mark{'s' if len(marks) > 1 else ''} found; bounds with the stroke"
    return draw_marks(pixels, mark_list, legend=legend, title=title)


def _in_words(number: int, mark: "DrawnMark") -> str:
    return f"{number} {mark.colour} {mark.shape} {list(mark.box)}"


def _no_marks(
    pixels: NDArray[np.uint8],
    name: str,
    mark_color: str,
    shape: str,
    drawn_marks: "list[DrawnMark]",
) -> ToolError:
    from agrotools_tools.marks.measure import COLOURS, colour_shares, find_marks_in_large

    description = (
        " ".join(part for part in (mark_color, shape) if part not in ("auto", "any")) or "drawn"
    )
    others = drawn_marks or (
        [] if mark_color == "auto" else find_marks_in_large(pixels, COLOURS)[0]
    )
    seen = [f"{colour} {100 * share:.2g} %" for colour, share in colour_shares(pixels).items()]
    listed = tuple(_in_words(number, mark) for number, mark in enumerate(others, start=1))
    hint = (
        f"marks of other kinds: {'; '.join(listed[:6])}"
        if listed
        else "give region coordinates to other tools instead"
    )
    return ToolError(
        "nothing_found",
        f"no closed {description} outline found on {name}; pure colours seen: {', '.join(seen) or 'none'}",
        argument="image" if mark_color == "auto" else "mark_color",
        hint=hint,
        candidates=listed[:20],
    )
