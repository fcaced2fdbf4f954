"""Form and size of weeds in a picture."""

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from agrotools.calling.arguments import ReferenceCall, drop_arguments, round_converted
from agrotools.calling.contract import Agree, ImageFile, Region, ToolResult, tool
from agrotools.calling.result import ResultPart
from agrotools.calling.workspace import file_info, save_artifact, shown_name
from agrotools.core import Arguments, Artifact, ToolError
from agrotools.vision import Box, Role
from agrotools.vision.formats import clipped_region
from agrotools.vision.reading import RgbImage, read_image, refuse_grey

if TYPE_CHECKING:
    from agrotools_tools.plants.measure import Plant

_LEAVES_AT_END = 9
"""Number of true leaves at BBCH 19: nine or more, so further stages cannot be derived from the number of leaves."""
_FEW_LEAVES = 2
"""Leaves of a seedling, which are taken as its cotyledons."""
_OPEN = 0.55
"""Largest solidity of a plant whose leaves are counted: four rosettes of 0.59 to 0.67 showed 17 of 25 leaves."""


class ScaleMarker(BaseModel):
    """An object of known size in the picture."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    type: Literal["ruler", "color_card", "circle"]
    size_cm: Annotated[float, Field(gt=0, le=1000)]
    """length; of a circle, the diameter"""


class PlantForm(ResultPart):
    """One plant."""

    box: Box
    """x0, y0, x1, y1 in pixels"""
    area_px: int
    area_cm2: float | None
    height_px: int | None
    """from the ground line to the apex; null in a view from above"""
    height_cm: float | None
    width_px: int
    width_cm: float | None
    convex_hull_px: float
    """area of the convex hull, pixels"""
    convex_hull_cm2: float | None
    solidity: float
    """area over area of the convex hull, 0 to 1"""
    leaf_count_est: int | None
    """leaves that can be told apart in the outline; null where it is compact (solidity over 0.55) and hides leaves"""
    mean_exg: float
    """mean excess green, 2g - r - b of the shares of the three colours, -1 to 2"""
    skeleton_length_px: float
    skeleton_length_cm: float | None


class GrowthStage(ResultPart):
    """Growth stage of the largest plant, by the number of its leaves."""

    label: Literal["seedling", "leaf development", "nine or more leaves"]
    bbch: int
    """BBCH code, 10 to 19"""
    week_est: float | None
    """age in weeks; null: it needs a growth curve of the species"""
    method: str


class WeedPhenotype(ToolResult):
    n_plants: int
    """plants in the picture, listed below or not"""
    plants: tuple[PlantForm, ...]
    """the largest 200 plants, largest first"""
    growth_stage: GrowthStage | None
    """null where the leaves of the largest plant are not counted"""
    view: Literal["top", "side"]
    ground_y_px: int | None
    """row of the ground line that was given; null where the foot of each plant was taken"""
    scale_cm_px: float | None
    """centimetres per pixel that were used"""
    mask: Artifact
    """number of the plant per pixel, in the order of the list, 0 for none"""
    overlay: Artifact
    """the picture with outlines, hulls, leaf tips and heights"""


def _resolve(call: Arguments, known: ReferenceCall) -> Arguments:
    """Resolve the scale: from the argument, else by the marker, else from the known pixel size of the file."""
    file = known.file(call["image"])
    if call["scale_cm_px"] is None and call["scale_marker"] is None and file and file.gsd_m:
        call = {**call, "scale_cm_px": round_converted(100 * file.gsd_m)}
    return call if call["scale_cm_px"] is None else drop_arguments(call, "scale_marker")


@tool(
    category="measurement",
    version="4",
    resolves=_resolve,
    expert=("ground_y_px",),
    example={"image": "image", "scale_marker": {"type": "circle", "size_cm": 2.5}},
)
def measure_weed_phenotype(
    image: ImageFile,
    scale_cm_px: Annotated[float | None, Field(gt=0, le=1000)] = None,
    scale_marker: Annotated[ScaleMarker | None, Agree("choice")] = None,
    view: Literal["top", "side"] = "side",
    ground_y_px: Annotated[int | None, Field(ge=0, description="ground line")] = None,
    region: Region | None = None,
) -> WeedPhenotype:
    """Measure each green plant in a photo: area, height (side view), width, hull, solidity, leaves, growth stage.

    Centimetres need scale_cm_px or a scale_marker of type circle.

    Raises:
        ToolError: the file cannot be read; ``nothing_found`` (no plant), ``low_confidence`` (shade, a colour
            cast or pale greens may hide plants, or soil), ``missing_metadata`` (a marker that cannot be found),
            ``region_empty``, ``band_not_found`` (a grey picture), ``invalid_argument`` (a ground line outside the
            picture or in a view from above).

    Sources: index and threshold as in measure_crop_weed_area; tips by skeleton, Gehan et al. 2017 (PlantCV 2); leaf
        stages, Meier 2001 (BBCH monograph, principal growth stage 1).
    """
    from agrotools_tools.plants.measure import (
        MOST_PLANTS,
        draw_plants,
        find_plants,
        numbered_mask,
        scale_of,
    )
    from agrotools_tools.vision.vegetation import refuse_doubtful_plants, segment, weakness_of_cover

    name = shown_name(image)
    picture = read_image(image, shown_as=name)
    box, clipped = clipped_region(region, picture.width, picture.height, name)
    _check_ground(ground_y_px, view, picture.height)
    refuse_grey(picture, name, ": without colour, plants cannot be told from the background")

    # Plants are what is green in the region and above the ground line.
    channels: dict[Role, NDArray[np.uint8]] = {
        "R": picture.pixels[..., 0],
        "G": picture.pixels[..., 1],
        "B": picture.pixels[..., 2],
    }
    green = segment("lab_a", channels, picture.valid)
    inside = np.zeros_like(green.mask)
    x0, y0, x1, y1 = box
    inside[y0:y1, x0:x1] = green.mask[y0:y1, x0:x1]
    if ground_y_px is not None:
        inside[ground_y_px:] = False
    refuse_doubtful_plants(picture.pixels, green)
    found = find_plants(inside, side_view=view == "side")
    if not found.plants:
        why = f"there is no plant in {'the region of ' if region else ''}{name}"
        argument = "region" if region else "image"
        hint = "plants are found by their green; choose another picture or region"
        raise ToolError("nothing_found", why, argument=argument, hint=hint)

    info = file_info(image)
    known_gsd_m = info.gsd_m if info else None
    scale = scale_of(scale_cm_px, scale_marker, known_gsd_m, picture.pixels, green.mask, name)
    forms = tuple(_form(plant, picture, scale.cm_px, view, ground_y_px) for plant in found.plants)

    notes = [*picture.notes, *green.notes, *scale.notes]
    flags = [*picture.flags, *clipped, *green.flags, *scale.flags]
    if weakness := weakness_of_cover(picture.pixels, green):
        flags.append("vegetation_uncertain")
        notes.append(f"the plants are uncertain: {weakness}")
    if scale.cm_px is None:
        flags.append("no_scale")
    if view == "side" and ground_y_px is None:
        flags.append("ground_line_from_plant")
        notes.append(
            "height is from the lowest pixel of each plant; ground_y_px gives a ground line"
        )
    if any(_touches_edge(plant.box, box) for plant in found.plants):
        flags.append("plant_cut_by_edge")
    if found.count > MOST_PLANTS:
        flags.append("not_all_plants_listed")
    if found.left_out_px:
        notes.append(
            f"{found.left_out_px} px in specks under 2 % of the largest plant are left out"
        )
    if any(form.leaf_count_est is None for form in forms):
        flags.append("leaves_hidden")

    overlay = draw_plants(
        picture.pixels,
        found.plants,
        scale,
        ground_y_px=ground_y_px,
        heights=view == "side",
        region=box if region else None,
        title=_title(found.count, forms[0]),
    )
    leaves = forms[0].leaf_count_est
    return WeedPhenotype(
        n_plants=found.count,
        plants=forms,
        growth_stage=None if leaves is None else growth_stage(leaves),
        view=view,
        ground_y_px=ground_y_px,
        scale_cm_px=scale.cm_px,
        mask=save_artifact("plants_mask.png", "mask", numbered_mask(found.plants, inside.shape)),
        overlay=save_artifact("plants_overlay.png", "overlay", overlay),
        notes=tuple(notes),
        flags=tuple(dict.fromkeys(flags)),
    )


def _touches_edge(box: Box, region: Box) -> bool:
    """Return True if a box reaches an edge of the region."""
    return any(edge == limit for edge, limit in zip(box, region, strict=True))


def growth_stage(leaves: int) -> GrowthStage:
    """Return the BBCH stage (principal growth stage 1) from the number of visible leaves, including cotyledons."""
    if leaves <= _FEW_LEAVES:
        label = "seedling"
    else:
        label = "leaf development" if leaves < _LEAVES_AT_END else "nine or more leaves"
    code = 10 if leaves <= _FEW_LEAVES else 10 + min(_LEAVES_AT_END, leaves - _FEW_LEAVES)
    return GrowthStage(label=label, bbch=code, week_est=None,
                       method="leaf count, the first two taken as cotyledons")  # fmt: skip


def _form(
    plant: "Plant",
    picture: RgbImage,
    cm_px: float | None,
    view: Literal["top", "side"],
    ground: int | None,
) -> PlantForm:
    x0, y0, x1, y1 = plant.box
    height = (y1 if ground is None else ground) - y0 if view == "side" else None
    area = None if cm_px is None else cm_px**2
    red, green, blue = picture.pixels[y0:y1, x0:x1][plant.mask].T.astype(np.float64)
    return PlantForm(
        box=plant.box,
        area_px=plant.area_px,
        area_cm2=area and plant.area_px * area,
        height_px=height,
        height_cm=height * cm_px if height is not None and cm_px else None,
        width_px=x1 - x0,
        width_cm=cm_px and (x1 - x0) * cm_px,
        convex_hull_px=plant.hull_area_px,
        convex_hull_cm2=area and plant.hull_area_px * area,
        solidity=plant.solidity,
        leaf_count_est=max(1, len(plant.tips)) if plant.solidity <= _OPEN else None,
        mean_exg=float(((2 * green - red - blue) / np.maximum(red + green + blue, 1.0)).mean()),
        skeleton_length_px=plant.skeleton_length_px,
        skeleton_length_cm=cm_px and plant.skeleton_length_px * cm_px,
    )


def _check_ground(ground_y_px: int | None, view: Literal["top", "side"], height: int) -> None:
    if ground_y_px is None:
        return
    if view == "top":
        raise ToolError("invalid_argument", "a view from above has no ground line", argument="ground_y_px",
                        hint="leave ground_y_px out, or say view='side'")  # fmt: skip
    if not 0 < ground_y_px <= height:
        raise ToolError("invalid_argument", f"ground_y_px is {ground_y_px}; the picture has rows 0 to {height}",
                        argument="ground_y_px", hint="it is counted in pixels from the top of the picture")  # fmt: skip


def _title(count: int, largest: PlantForm) -> str:
    size = f"{largest.area_px} px" if largest.area_cm2 is None else f"{largest.area_cm2:.3g} cm2"
    high = ""
    if largest.height_px is not None:
        high = (
            f", {largest.height_px} px"
            if largest.height_cm is None
            else f", {largest.height_cm:.3g} cm"
        )
        high += " high"
    plants = "1 plant" if count == 1 else f"{count} plants, the largest"
    return f"{plants}: {size}{high}"
