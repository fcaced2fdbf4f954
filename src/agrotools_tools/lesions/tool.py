"""Diseased area of a leaf, lesion by lesion."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from agrotools.calling.arguments import ReferenceCall, drop_arguments, round_converted
from agrotools.calling.contract import Agree, ImageFile, MaskFile, Region, tool
from agrotools.calling.workspace import file_info, shown_name
from agrotools.core import Arguments
from agrotools.vision.formats import clipped_region
from agrotools_tools.lesions.result import (
    IN_FIELD,
    MODEL_FILES,
    RULES,
    GradeScale,
    LeafLesions,
    lesion_result,
)
from agrotools_tools.vision import STRANGENESS_FILES

_LEAST_DETAIL_PX = 100
"""Side, pixels, of a square with the area of a leaf, below which the resolution is low."""
_SENSITIVITY, _MIN_LESION_PX = 0.5, 12
"""Settings that the interval of the severity was measured with."""


def _resolve(call: Arguments, known: ReferenceCall) -> Arguments:
    """Resolve the leaf: by mask, or in the field if the reference call found no board."""
    if call["leaf_mask"] is not None:
        call = drop_arguments(call, "mode")
    elif (
        call["mode"] == "leaf"
        and known.has_value("mode", "leaf")
        and IN_FIELD in known.list_field("flags")
    ):
        call = {**call, "mode": "field"}
    file = known.file(call["image"])
    if call["scale_mm_px"] is None and file and file.gsd_m:
        call = {**call, "scale_mm_px": round_converted(1000 * file.gsd_m)}
    return call


@tool(
    category="segmentation",
    version="5",
    resolves=_resolve,
    data_files=(*MODEL_FILES, *STRANGENESS_FILES),
    backends=("offline", RULES),
    expert=("healthy_reference", "min_lesion_px", "sensitivity"),
    example={"image": "image"},
)
def analyze_lesions(
    image: ImageFile,
    leaf_mask: MaskFile | None = None,
    region: Region | None = None,
    mode: Annotated[Literal["leaf", "field"], Field(description="field: busy background")] = "leaf",
    healthy_reference: Annotated[
        tuple[
            Annotated[float, Field(ge=0, le=100)],
            Annotated[float, Field(ge=-128, le=128)],
            Annotated[float, Field(ge=-128, le=128)],
        ]
        | None,
        Agree("number"),
        Field(description="L, a, b"),
    ] = None,
    min_lesion_px: Annotated[int, Field(ge=1, le=1_000_000)] = _MIN_LESION_PX,
    sensitivity: Annotated[float, Field(ge=0, le=1)] = _SENSITIVITY,
    scale_mm_px: Annotated[float | None, Field(gt=0, le=1000)] = None,
    grade_scale: Annotated[GradeScale, Field(description="0-4 coffee, 1-9 rice")] = "percent",
) -> LeafLesions:
    """Measure diseased tissue on one leaf: severity_pct, leaf_area_px, lesion_area_px, lesions, grade.

    Areas in mm2 need scale_mm_px. It names no cause.

    Raises:
        ToolError: ``nothing_found`` (no leaf, empty mask), ``band_not_found`` (a grey picture), ``region_empty``,
            ``shape_mismatch`` (a mask of another size), and those of a file that cannot be read.

    Sources: leaf, distance from the board's colour; lesions, a small network per pixel (its card in
        ``data/lesion_model.md``) or loss of green against the leaf's own healthy colour, both in
        :mod:`agrotools_tools.lesions.measure`; scales in :mod:`agrotools_tools.lesions.result`.
    """
    from agrotools.calling.pictures import choose_scale, read_mask_pixels
    from agrotools.vision.reading import crop_pixels, read_image, refuse_grey
    from agrotools_tools.lesions.measure import (
        find_lesions,
        leaf_of,
        leaf_view,
        refuse_other_things,
    )
    from agrotools_tools.vision.strangeness import FLAG, strangeness

    info, name = file_info(image), shown_name(image)
    picture = read_image(image, shown_as=name)
    box, clipped = clipped_region(region, picture.width, picture.height, name)
    inside = np.s_[box[1] : box[3], box[0] : box[2]]
    pixels = crop_pixels(picture.pixels, box)
    valid = None if picture.valid is None else picture.valid[inside]

    # The leaf, as marked or found.
    mask_name, marked = "", None
    if leaf_mask is not None:
        mask_name = shown_name(leaf_mask)
        marked = read_mask_pixels(
            leaf_mask,
            (picture.height, picture.width),
            image,
            argument="leaf_mask",
            called="a leaf mask",
        )[inside]
    leaf = leaf_of(pixels, valid, marked, mode, mask_name)
    refuse_grey(picture, name, ": without colour, lesions cannot be told from healthy tissue")
    if leaf_mask is not None:
        refuse_other_things(pixels[leaf.mask], mask_name)

    view = leaf_view(pixels, leaf.mask, leaf.box)
    lesions = find_lesions(view, leaf, healthy_reference, sensitivity)
    # A marked leaf is judged by its own part of the picture.
    judged = pixels if leaf_mask is None else crop_pixels(pixels, view.box)
    is_strange = strangeness(judged, "leaf").is_strange
    has_measured_settings = (sensitivity, min_lesion_px) == (_SENSITIVITY, _MIN_LESION_PX)
    if is_strange or not has_measured_settings:
        lesions = lesions._replace(half_width=None)

    given_gsd_m = None if scale_mm_px is None else scale_mm_px / 1000
    scale = choose_scale(given_gsd_m, info.gsd_m if info and info.gsd_m else None)
    flags = [*picture.flags, *clipped, *leaf.flags, *lesions.flags]
    strange: list[str] = []
    if is_strange:
        flags.append(FLAG)
        strange = [
            "unlike single leaves in focus: it may be no leaf, and then the severity says nothing"
        ]
    flags += scale.flags
    if leaf.area_px < _LEAST_DETAIL_PX**2:
        flags.append("low_resolution")
    return lesion_result(
        picture.pixels,
        box,
        leaf,
        lesions,
        None if scale.gsd_m is None else 1000 * scale.gsd_m,
        min_lesion_px,
        grade_scale,
        [*picture.notes, *leaf.notes, *lesions.notes, *strange, *scale.notes],
        flags,
    )
