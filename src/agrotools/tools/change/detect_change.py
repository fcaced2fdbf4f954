"""Change between two pictures, rasters or masks of the same place."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal, cast

from pydantic import Field

from agrotools.core import Arguments, Artifact, ToolError
from agrotools.tools.arguments import Bands, LabelMap, PixelSize, ReferenceCall, drop_arguments
from agrotools.tools.contract import Agree, ImageFile, MaskFile, Region, ToolResult, tool
from agrotools.tools.result import ResultPart
from agrotools.tools.workspace import file_info
from agrotools.vision import Box

Target = Literal["farmland", "pond", "vegetation", "any"]
MethodChoice = Literal["auto", "post_class", "mask_diff"]

_OF_LABELS: tuple[MethodChoice, ...] = ("auto", "mask_diff")
_MARKED: dict[Target, str] = {"farmland": "farmland", "pond": "water", "vegetation": "vegetation", "any": "marked"}
Method = Literal["mask_diff", "index_difference", "post_class", "water_masks"]
PondEvent = Literal["constructed", "demolished", "dried", "wetted", "none"]


class Transition(ResultPart):
    """One cell of the transition matrix: what was one class before and is another after."""

    from_class: str = Field(alias="from")
    """class before"""
    to_class: str = Field(alias="to")
    """class after"""
    px: int
    """pixels"""
    pct: float
    """percent of all pixels with data in both"""
    area_ha: float | None
    """hectares; null without a known scale"""


class TransitionMatrix(ResultPart):
    """Areas from each class (row) to each class (column), the unchanged on the diagonal."""

    classes: tuple[str, ...]
    """names of rows and columns, in order"""
    px: tuple[tuple[int, ...], ...]
    """pixels"""
    pct: tuple[tuple[float, ...], ...]
    """percent of all pixels with data in both"""
    ha: tuple[tuple[float, ...], ...] | None
    """hectares; null without a known scale"""


class PondChange(ResultPart):
    """Change of standing water."""

    event: PondEvent | None
    """what happened; null where it cannot be told"""
    area_before_px: int
    """water before, pixels"""
    area_after_px: int
    """water after, pixels"""
    delta_pct: float | None
    """change of the water area, percent of the area before; null without water before"""


class VegetationChange(ResultPart):
    """Change of plants."""

    index: str
    """vegetation index that was compared"""
    mean_before: float | None
    """mean index before; null where only plants and no plants were told apart"""
    mean_after: float | None
    """mean index after"""
    threshold: float | None
    """least difference of the index that counts as gain or loss"""
    cover_before_pct: float | None
    """plant cover before, percent; null where the index alone was compared"""
    cover_after_pct: float | None
    """plant cover after, percent"""


class ChangeResult(ToolResult):
    changed: bool | None
    """whether there is change of the kind asked for; null where the evidence is too weak to say"""
    change_px: int | None
    """changed pixels; null, like every figure of change, where the evidence is too weak for a map"""
    change_pct: float | None
    """changed, percent of total_px"""
    change_area_m2: float | None
    """changed area, m^2; null without a known scale"""
    change_area_ha: float | None
    """changed area, hectares; null without a known scale"""
    total_px: int
    """pixels with data on both dates; percentages refer to these"""
    gain_px: int | None
    """pixels gained (plants, water or the marked class); null where change has no direction"""
    loss_px: int | None
    """pixels lost; null where change has no direction or only gains are looked for"""
    gain_area_m2: float | None
    """gained area, m^2"""
    loss_area_m2: float | None
    """lost area, m^2"""
    transitions: tuple[Transition, ...]
    """from one class to another, largest first; empty where no classes are told apart"""
    dominant_transition: str | None
    """the largest transition as 'from->to'; null where there is none"""
    transition_matrix: TransitionMatrix | None
    """all transitions, with what stayed the same; null where no classes are told apart"""
    pond: PondChange | None
    """for target pond"""
    vegetation: VegetationChange | None
    """for target vegetation"""
    registration_shift_px: tuple[float, float] | None
    """how far the picture after lay to the right and down, pixels, before it was moved back; null: not compared"""
    gsd_m: float | None
    """ground sampling distance that was used, metres per pixel"""
    method: Method
    """how change was found"""
    mask: Artifact
    """0 no change, 1 gained, 2 lost, 3 changed without direction, 255 no data or outside"""
    overlay: Artifact
    """before, after and the map of change side by side"""


@dataclass(frozen=True)
class ChangeRequest:
    """Arguments that every method of :func:`detect_change` uses."""

    gsd_m: float | None = None
    region: Box | None = None
    min_area_px: int | None = None
    min_area_m2: float | None = None

    def least_px(self, gsd_m: float | None, default: int) -> int:
        """Return the size in pixels of the smallest patch that counts, or ``default`` if the call sets none.
        ToolError ``missing_metadata``: square metres without a scale; ``invalid_argument``: pixels and square
        metres."""
        if self.min_area_px is not None and self.min_area_m2 is not None:
            why = "min_area_px and min_area_m2 are both given"
            raise ToolError("invalid_argument", why, argument="min_area_m2", hint="give one of the two")
        if self.min_area_px is not None:
            return self.min_area_px
        if self.min_area_m2 is None:
            return default
        if gsd_m is None:
            why = "min_area_m2 needs the ground sampling distance, which is not known"
            hint = "give gsd_m (metres per pixel), or min_area_px"
            raise ToolError("missing_metadata", why, argument="gsd_m", hint=hint)
        return max(1, round(self.min_area_m2 / gsd_m**2))


def _resolve(call: Arguments, known: ReferenceCall) -> Arguments:
    """Resolve pictures or labels, the method, and the smallest patch in pixels."""

    before, after = call["before"], call["after"]
    first, second = call["before_mask"] or before, call["after_mask"] or after
    marked = [file is not None and file.kind == "mask" for file in map(known.file, (before, after))]
    is_labels = first != before or call["method"] == "mask_diff" or call["label_map"] is not None or all(marked)
    names = (first, second, before, after) if is_labels else (before, after)
    call = {**call, "gsd_m": known.gsd_m(call["gsd_m"], *names), "bands": known.bands(call["bands"], before)}
    if call["min_area_m2"] is not None and call["gsd_m"] is not None:
        least = cast("int | None", call["min_area_px"])
        request = ChangeRequest(min_area_px=least, min_area_m2=cast(float, call["min_area_m2"]))
        call = drop_arguments({**call, "min_area_px": request.least_px(cast(float, call["gsd_m"]), 1)}, "min_area_m2")
    if is_labels:
        refuse_unfit(cast(MethodChoice, call["method"]), _OF_LABELS, "masks and label rasters are compared exactly")
        call = {**call, "before_mask": first, "after_mask": second}
        return drop_arguments(call, "before", "after", "method", "bands", "register", "threshold")
    if call["target"] in ("any", "farmland") and call["method"] == "auto":
        call = {**call, "method": "post_class"}
    return call if call["target"] == "vegetation" else drop_arguments(call, "threshold")


@tool(category="change", version="3", resolves=_resolve, data_files=("pond_evidence.json",))
def detect_change(
    before: ImageFile,
    after: ImageFile,
    target: Target = "any",
    gsd_m: PixelSize | None = None,
    bands: Bands | None = None,
    register: Annotated[bool, Field(description="undo a shift")] = True,
    min_area_px: Annotated[int | None, Field(ge=1, le=10_000_000)] = None,
    min_area_m2: Annotated[float | None, Field(gt=0)] = None,
    threshold: Annotated[float | Literal["otsu"], Agree("choice"), Field(description="of NDVI")] = "otsu",
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
            ``nothing_found`` (no data in common), ``invalid_argument``.

    Sources: NDVI, Rouse et al. 1974; NDWI, McFeeters 1996; threshold, Otsu 1979.
    """
    from agrotools.tools.change.label_change import LabelFiles, label_change, pond_of_masks
    from agrotools.tools.change.measuring import measure_change
    from agrotools.tools.change.result import change_result

    if (before_mask is None) != (after_mask is None):
        mask_argument, missing = ("before_mask", "after_mask") if before_mask else ("after_mask", "before_mask")
        why = f"{mask_argument} is given without {missing}"
        raise ToolError("invalid_argument", why, argument=missing, hint="give masks of both dates")
    request = ChangeRequest(gsd_m, region, min_area_px, min_area_m2)
    are_labels = all(info is not None and info.kind == "mask" for info in (file_info(before), file_info(after)))
    if before_mask is not None or method == "mask_diff" or label_map is not None or are_labels:
        files = LabelFiles(before, after)
        if before_mask is not None and after_mask is not None:
            files = LabelFiles(before_mask, after_mask, ("before_mask", "after_mask"), (before, after))
        refuse_unfit(method, _OF_LABELS, "masks and label rasters are compared exactly")
        inputs = label_change(files, label_map, marked=_MARKED[target], request=request)
        return change_result(replace(inputs, pond=pond_of_masks(inputs.counts)) if target == "pond" else inputs)
    return change_result(
        measure_change(before, after, target, method, bands, register=register, threshold=threshold, request=request)
    )


def refuse_unfit(method: MethodChoice, possible: tuple[MethodChoice, ...], why: str) -> None:
    if method not in possible:
        raise ToolError(
            "invalid_argument",
            f"method {method} does not go with these inputs: {why}",
            argument="method",
            hint=f"use {' or '.join(possible)}",
        )
