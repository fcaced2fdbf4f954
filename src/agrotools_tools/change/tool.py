"""Change between two pictures, rasters or masks of the same place."""

from typing import Annotated, Literal, cast

from pydantic import Field

from agrotools.calling.arguments import Bands, LabelMap, PixelSize, ReferenceCall, drop_arguments
from agrotools.calling.contract import Agree, ImageFile, MaskFile, Region, tool
from agrotools.calling.workspace import file_info
from agrotools.core import Arguments, ToolError
from agrotools_tools.change.result import (
    ChangeRequest,
    ChangeResult,
    MethodChoice,
    Target,
    refuse_unfit,
)

_OF_LABELS: tuple[MethodChoice, ...] = ("auto", "mask_diff")


def _resolve(call: Arguments, known: ReferenceCall) -> Arguments:
    """Resolve pictures or labels, the method, and the smallest patch in pixels."""

    before, after = call["before"], call["after"]
    first, second = call["before_mask"] or before, call["after_mask"] or after
    marked = [file is not None and file.kind == "mask" for file in map(known.file, (before, after))]
    is_labels = (
        first != before
        or call["method"] == "mask_diff"
        or call["label_map"] is not None
        or all(marked)
    )
    names = (first, second, before, after) if is_labels else (before, after)
    call = {
        **call,
        "gsd_m": known.gsd_m(call["gsd_m"], *names),
        "bands": known.bands(call["bands"], before),
    }
    if call["min_area_m2"] is not None and call["gsd_m"] is not None:
        least = cast("int | None", call["min_area_px"])
        request = ChangeRequest(min_area_px=least, min_area_m2=cast(float, call["min_area_m2"]))
        call = drop_arguments(
            {**call, "min_area_px": request.least_px(cast(float, call["gsd_m"]), 1)}, "min_area_m2"
        )
    if is_labels:
        refuse_unfit(
            cast(MethodChoice, call["method"]),
            _OF_LABELS,
            "masks and label rasters are compared exactly",
        )
        call = {**call, "before_mask": first, "after_mask": second}
        return drop_arguments(call, "before", "after", "method", "bands", "register", "threshold")
    if call["target"] in ("any", "farmland") and call["method"] == "auto":
        call = {**call, "method": "post_class"}
    return call if call["target"] == "vegetation" else drop_arguments(call, "threshold")


@tool(
    category="change",
    version="7",
    resolves=_resolve,
    data_files=("pond_evidence.json",),
    expert=("register", "min_area_m2", "threshold", "label_map", "method"),
    example={"before": "image", "after": "image", "target": "farmland"},
)
def detect_change(
    before: ImageFile,
    after: ImageFile,
    target: Target = "any",
    gsd_m: PixelSize | None = None,
    bands: Bands | None = None,
    register: Annotated[bool, Field(description="undo a shift")] = True,
    min_area_px: Annotated[int | None, Field(ge=1, le=10_000_000)] = None,
    min_area_m2: Annotated[float | None, Field(gt=0)] = None,
    threshold: Annotated[
        float | Literal["otsu"], Agree("choice"), Field(description="of NDVI")
    ] = "otsu",
    before_mask: MaskFile | None = None,
    after_mask: MaskFile | None = None,
    label_map: Annotated[LabelMap | None, Field(description="{'building': [2]}")] = None,
    method: MethodChoice = "auto",
    region: Region | None = None,
) -> ChangeResult:
    """Find what changed between two dates: changed (null if unclear), change_px, change_pct, change_area_ha.

    Label rasters are compared exactly (transitions), vegetation by NDVI or cover, ponds by water, land by bands.
    Photographs give no map of buildings. Hectares need gsd_m, or a file that has it.

    When changed is said:
        Masks and labels: always. Plants: true from 1 % of the area on, but null where over half the scene moves one
        way. Ponds: where the event is clear and the two are known to lie on each other. Land classes by index: false
        where nothing differs, else null (flag scene_wide_shift where most of the scene differs). Photographs with
        target any or farmland: false where the two are equal, else null without a map and figures (flag
        buildings_not_mapped).

    Raises:
        ToolError: a file cannot be read or is too large; ``shape_mismatch`` (sizes differ, or the shift is too large),
            ``crs_mismatch``, ``band_not_found``, ``region_empty``, ``missing_metadata`` (min_area_m2 without a scale),
            ``nothing_found`` (no data in common), ``invalid_argument``, ``low_confidence`` (vegetation: the plants of
            a photograph cannot be told from the ground).

    Sources: NDVI, Rouse et al. 1974; NDWI, McFeeters 1996; threshold, Otsu 1979.
    """
    from agrotools_tools.change.measure import label_change, measure_change

    if (before_mask is None) != (after_mask is None):
        mask_argument, missing = (
            ("before_mask", "after_mask") if before_mask else ("after_mask", "before_mask")
        )
        why = f"{mask_argument} is given without {missing}"
        raise ToolError("invalid_argument", why, argument=missing, hint="give masks of both dates")
    request = ChangeRequest(gsd_m, region, min_area_px, min_area_m2)
    are_labels = all(
        info is not None and info.kind == "mask" for info in (file_info(before), file_info(after))
    )
    if before_mask is not None or method == "mask_diff" or label_map is not None or are_labels:
        refuse_unfit(method, _OF_LABELS, "masks and label rasters are compared exactly")
        if before_mask is not None and after_mask is not None:
            masks, images = {"before_mask": before_mask, "after_mask": after_mask}, (before, after)
        else:
            masks, images = {"before": before, "after": after}, ()
        return label_change(masks, images, label_map, target, request)
    return measure_change(before, after, target, method, bands, register, threshold, request)
