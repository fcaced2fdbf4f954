"""Count and positions of objects of one kind in a picture."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar, cast, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue

from agrotools.calling.arguments import PixelSize, ReferenceCall, drop_arguments
from agrotools.calling.contract import FileArgument, ImageFile, Region, tool
from agrotools.calling.services import VLM
from agrotools.calling.workspace import backend_in_use, file_info, shown_name
from agrotools.core import Arguments, ToolError
from agrotools.vision import Box
from agrotools.vision.formats import clipped_region, file_format
from agrotools.vision.reading import read_image, refuse_grey
from agrotools_tools.counting.result import (
    Counted,
    Detector,
    FruitName,
    Mode,
    ObjectCount,
    count_result,
)
from agrotools_tools.vision import STRANGENESS_FILES

if TYPE_CHECKING:
    from agrotools.vision.rasters import RasterSource

_Fact = TypeVar("_Fact")
ChmFile = Annotated[Path, FileArgument("raster", "canopy height model of the place")]
RULES = "rules"
"""Back-end that finds fruit by colour, without the net."""
NET_FILES = ("nets/fruits.json", "nets/fruits.onnx", *STRANGENESS_FILES)
"""Files of the fruit net and of strangeness, relative to ``data``; part of the fingerprint of tools that use it."""
_SAME_EXTENT = 0.02
"""Largest relative difference of the ratios of sides at which a picture and a height model may have the same extent."""
_OF_CROWNS_IN_HEIGHTS = ("min_height_m", "window_a_m", "window_b")


def _resolve(call: Arguments, known: ReferenceCall) -> Arguments:
    """Resolve the detector, the target in its terms, and the file that it uses."""
    recorded = known.result.get("mode")
    if recorded is not None and recorded not in get_args(Mode):
        return call  # a model counted, and it has none of these detectors
    image, chm, target, mode = call["image"], call["chm"], cast(str, call["target"]), call["mode"]
    if mode == "auto":
        mode = mode_for(target, chm is not None or _height_evidence(image, known))
    if mode == "fruit":  # kinds of fruit and their colour are what matters of the target
        target = "_".join((*fruits_of_net(target), "{:g}_{:g}".format(*colour_direction(target))))
    call = {**call, "mode": mode, "target": target if mode == "fruit" else mode}
    if mode != "crown_chm":
        return drop_arguments(call, "chm", *_OF_CROWNS_IN_HEIGHTS)
    heights = image if chm is None else chm
    call = drop_arguments({**call, "chm": heights}, "expected_size_px")
    # Positions and sizes are in pixels of the image, which equal those of a height model of the same size.
    size = known.size(image)
    return (
        drop_arguments(call, "image")
        if image == heights or (size and size == known.size(heights))
        else call
    )


def _height_evidence(image: JsonValue, known: ReferenceCall) -> bool:
    """Return True if the band names of the sample or the reference's result show that an image holds heights."""
    file, reference = known.file(image), known.reference
    counted_in = reference.get("chm") or reference.get("image")
    if known.result.get("mode") == "crown_chm" and image == counted_in:
        return True
    return (
        file is not None
        and file.kind == "raster"
        and file.bands is not None
        and len(file.bands) == 1
    )


@tool(
    category="measurement",
    version="8",
    data_files=NET_FILES,
    backends=("offline", RULES, VLM),
    resolves=_resolve,
    expert=("expected_size_px", "mode", "score_min", "window_a_m", "window_b"),
    example={"image": "image", "target": "tree"},
)
def count_objects(
    image: ImageFile,
    target: Annotated[
        str, Field(min_length=1, max_length=100, description="e.g. tree, plant, apple, spot")
    ],
    region: Region | None = None,
    gsd_m: PixelSize | None = None,
    expected_size_px: Annotated[float | None, Field(ge=2, le=10_000)] = None,
    chm: ChmFile | None = None,
    min_height_m: Annotated[float, Field(ge=0, le=100)] = 2.0,
    mode: Literal["auto", "crown_chm", "crown_rgb", "fruit", "blob", "plant"] = "auto",
    score_min: Annotated[float, Field(ge=0, le=1)] = 0.3,
    window_a_m: Annotated[float, Field(gt=0, le=20, description="crown_chm: search radius")] = 0.6,
    window_b: Annotated[float, Field(ge=0, le=1)] = 0.085,
) -> ObjectCount:
    """Count objects of one kind: count, density_per_ha, sizes, boxes, centres, scores.

    Targets: trees in a canopy height raster (chm or image; reliable) or a colour picture (unreliable); plants on soil;
    fruit; round spots on a plain background. Others are refused.

    Raises:
        ToolError: ``backend_unavailable`` (no detector for the target), ``missing_metadata`` (crown_chm without pixel
            size or without heights), ``low_confidence`` (plants, but no field is seen), ``invalid_argument``
            (elevations or classes instead of heights), ``region_empty``, ``nothing_found`` (no data), and those of a
            file that cannot be read.

    Sources: crowns, :mod:`agrotools_tools.counting.crowns`; spots, :mod:`agrotools_tools.counting.measure`; plants,
        :mod:`agrotools_tools.vision.vegetation`; fruit, :mod:`agrotools_tools.counting.measure`; touching objects
        parted by the distance to their edge (Beucher and Lantuejoul 1979).
    """
    backend = backend_in_use() or "offline"
    is_auto = mode == "auto"
    has_heights = is_auto and (chm is not None or _is_heights(image))
    notes: tuple[str, ...] = ()
    if backend == VLM and not has_heights and mode != "crown_chm":  # models cannot read heights
        chosen: Detector = "vlm"
        notes = () if is_auto else (f"mode={mode!r} is of the offline back-end alone",)
    elif mode == "auto":
        chosen = mode_for(target, has_heights)
    else:
        chosen, notes = mode, _doubt_notes(target, mode)
    if chosen == "crown_chm":
        found = _find_in_heights(
            image, chm, region, gsd_m, min_height_m, (window_a_m, window_b), score_min, notes
        )
    elif chosen == "plant":
        found = _find_plants(image, region, gsd_m, expected_size_px, score_min, notes)
    else:
        found = _find_in_colours(
            image, region, gsd_m, expected_size_px, score_min, notes, chosen, backend, target
        )
    return count_result(found, chosen, target)


def _find_plants(
    image: Path,
    region: Box | None,
    gsd_m: float | None,
    expected_size_px: float | None,
    score_min: float,
    notes: tuple[str, ...],
) -> Counted:
    """Find plants on soil; a photograph without a field is refused, and one that is unlike fields gets a flag."""
    from agrotools.calling.pictures import choose_scale, colour_bands, read_field_picture
    from agrotools_tools.counting.measure import has_huge_part, plants_on_soil, shows_no_field
    from agrotools_tools.vision.strangeness import FLAG, strangeness
    from agrotools_tools.vision.vegetation import (
        choose_index,
        has_patchy_ground,
        refuse_doubtful_plants,
        segment,
        weakness_of_cover,
    )

    picture = read_field_picture(image, None, None, file_info(image))
    box, clipped = clipped_region(region, picture.shape[1], picture.shape[0], shown_name(image))
    if picture.photo is not None and shows_no_field(picture.photo):
        raise ToolError(
            "low_confidence",
            f"{shown_name(image)} does not look like a field from above, and only plants on its soil are counted",
            argument="image",
            hint="use a picture of the field from above; for a leaf, analyze_lesions or diagnose_pest_disease",
        )
    index = choose_index("auto", picture.bands)
    plants = segment(index, colour_bands(picture)[0], picture.valid)
    if picture.photo is not None:
        refuse_doubtful_plants(picture.photo, plants)
    objects = plants_on_soil(plants.mask, expected_size_px)
    scale = choose_scale(gsd_m, picture.gsd_m)
    notes, flags = (*notes, *picture.notes, *plants.notes), (*picture.flags, *plants.flags)
    if weakness := weakness_of_cover(picture.photo, plants):
        notes = (*notes, f"the count is uncertain: {weakness}")
        flags = (*flags, "vegetation_uncertain")
    is_strange = has_huge_part(plants.mask, picture.valid)
    if is_strange:
        notes = (*notes, "one part covers too much of the picture to be a single plant on soil")
    if picture.photo is not None:
        is_strange = (
            is_strange
            or strangeness(picture.photo, "field").is_strange
            or has_patchy_ground(picture.photo, plants.mask)
        )
    if is_strange:
        flags = (*flags, FLAG)
        notes = (
            *notes,
            "unlike single plants on soil: what is counted may be no plants, or several as one",
        )
    return Counted(
        objects.centred_in(box, score_min),
        None,
        picture.display,
        1.0,
        region and box,
        _pixels_inside(picture.valid, box),
        scale.gsd_m,
        (*notes, *scale.notes),
        (*flags, *clipped, *scale.flags),
    )


def _find_in_colours(
    image: Path,
    region: Box | None,
    gsd_m: float | None,
    expected_size_px: float | None,
    score_min: float,
    notes: tuple[str, ...],
    chosen: Detector,
    backend: str,
    target: str,
) -> Counted:
    """Find crowns, fruit, spots, or what a model finds, in a picture of colours."""
    from agrotools.calling.pictures import choose_scale
    from agrotools_tools.counting import measure
    from agrotools_tools.counting.result import objects_in_boxes

    name, info = shown_name(image), file_info(image)
    picture = read_image(image, shown_as=name)
    box, clipped = clipped_region(region, picture.width, picture.height, name)
    if chosen in ("crown_rgb", "fruit"):
        hint = "use a colour picture, mode='blob', or a canopy height model for trees"
        refuse_grey(picture, name, f", and {chosen} goes by colour", hint)
    pixels = picture.pixels
    valid, borders, flags = picture.without_border(name)
    notes, flags = (*notes, *borders, *picture.notes), (*picture.flags, *flags)
    known = (info.gsd_m if info else None) or _of_raster(
        image, lambda source: source.sampling.gsd_m
    )
    scale = choose_scale(gsd_m, known)
    if chosen == "vlm":
        from agrotools_tools.vision_questions import locate_by_model

        located = locate_by_model(pixels, box, target)
        objects = objects_in_boxes(located.boxes, located.scores)
        notes, flags = (*located.notes, *notes), (*located.flags, *flags)
    elif chosen == "crown_rgb":
        objects = measure.crowns_in_colours(pixels, scale.gsd_m, expected_size_px)
    elif chosen == "fruit" and backend != RULES and (kinds := fruits_of_net(target)):
        objects = measure.fruit_by_net(pixels, kinds, expected_size_px)
    elif chosen == "fruit":
        objects = measure.fruit_by_colour(pixels, colour_direction(target), expected_size_px)
    else:
        objects = measure.round_spots(pixels, expected_size_px)
    counted = objects.centred_in(box, score_min)
    interval = objects.interval_of and objects.interval_of(
        len(counted), objects.centred_in(box).scores
    )
    if interval is not None and score_min != measure.DEFAULT_SCORE:
        interval, flags = None, (*flags, "count_not_calibrated")
        note = (
            f"counts are calibrated at a score_min of {measure.DEFAULT_SCORE:g} alone: no interval"
        )
        notes = (*notes, note)
    measured, all_flags = _pixels_inside(valid, box), (*flags, *clipped, *scale.flags)
    part = region and box
    return Counted(
        counted,
        interval,
        pixels,
        1.0,
        part,
        measured,
        scale.gsd_m,
        (*notes, *scale.notes),
        all_flags,
    )


def _pixels_inside(valid: NDArray[np.bool_], box: Box) -> float:
    return float(np.count_nonzero(valid[box[1] : box[3], box[0] : box[2]]))


def _find_in_heights(
    image: Path,
    chm: Path | None,
    region: Box | None,
    gsd_m: float | None,
    min_height_m: float,
    window_m: tuple[float, float],
    score_min: float,
    notes: tuple[str, ...],
) -> Counted:
    """Find trees in a canopy height model, in pixels of the image."""
    from agrotools.calling.pictures import choose_scale
    from agrotools.vision.rasters import Scale, open_raster
    from agrotools_tools.counting.crowns import crowns_of_raster

    if chm is None and not _is_heights(image):
        why = "crown_chm needs heights, and the image is a picture"
        hint = "pass a canopy height model as chm, or use mode='crown_rgb'"
        raise ToolError("missing_metadata", why, argument="chm", hint=hint)
    heights = chm or image
    name, info = shown_name(heights), file_info(heights)
    with open_raster(heights, argument="chm" if chm else "image", shown_as=name) as source:
        per_px, flags = _pixels_per_pixel(image, chm, source.width, source.height)
        known = info.gsd_m if info else None
        if (
            chm
            and not (known or source.sampling.gsd_m)
            and (of_image := file_info(image))
            and of_image.gsd_m
        ):
            known = of_image.gsd_m * per_px
        scale = choose_scale(gsd_m * per_px if gsd_m else None, known, source.sampling.gsd_m)
        if scale.gsd_m is None:
            why = f"{name} does not say how wide its pixels are on the ground"
            why = f"{why}, and the window for tree tops is in metres"
            raise ToolError(
                "missing_metadata", why, argument="gsd_m", hint="pass gsd_m, metres per pixel"
            )
        inside: Box | None = None
        if region is not None:
            x0, y0, x1, y1 = (edge / per_px for edge in region)
            inside = (
                round(x0),
                round(y0),
                max(round(x0) + 1, round(x1)),
                max(round(y0) + 1, round(y1)),
            )
        box, clipped = clipped_region(inside, source.width, source.height, name)
        found = crowns_of_raster(
            source, scale.gsd_m, box, min_height_m=min_height_m, window_m=window_m
        )
        sampling = source.sampling if scale.gsd_m == source.sampling.gsd_m else Scale()
    objects = found.objects.chosen(found.objects.scores >= score_min)
    shown, shown_per_px = found.shown, found.shown_per_px / per_px
    if chm is not None and chm != image and not flags:
        shown, shown_per_px = (
            read_image(image, shown_as=shown_name(image), may_be_blank=True).pixels,
            1.0,
        )
    return Counted(
        objects.scaled(per_px),
        found.interval if len(objects) == len(found.objects) else None,
        shown,
        shown_per_px,
        region,
        found.measured_px * per_px**2,
        scale.gsd_m / per_px,
        (*notes, *found.notes, *sampling.notes, *scale.notes),
        (*found.flags, *clipped, *flags, *sampling.flags, *scale.flags),
    )


def _pixels_per_pixel(
    image: Path, chm: Path | None, width: int, height: int
) -> tuple[float, tuple[str, ...]]:
    """Return pixels of the image per pixel of the height model; 1 and a flag if their extents differ."""
    if chm is None or chm == image:
        return 1.0, ()
    size = _of_raster(image, lambda source: (source.width, source.height))
    if size is None:
        pixels = read_image(image, shown_as=shown_name(image), may_be_blank=True)
        size = pixels.width, pixels.height
    across, down = size
    if abs(across / width / (down / height) - 1) > _SAME_EXTENT:
        return 1.0, ("coordinates_of_chm",)
    return (across * down / (width * height)) ** 0.5, ()


def _is_heights(image: Path) -> bool:
    """Return True if a file is a raster of one band and not a grey picture."""
    return _of_raster(image, lambda source: source.count == 1 and source.dtype != "uint8") or False


def _of_raster(image: Path, fact: "Callable[[RasterSource], _Fact]") -> _Fact | None:
    """Return a fact of a raster file, None for a photograph."""
    from agrotools.vision.rasters import open_raster

    name = shown_name(image)
    if file_format(image, shown_as=name) not in ("tiff", "envi"):
        return None
    with open_raster(image, shown_as=name) as source:
        return fact(source)


def _doubt_notes(target: str, mode: Mode) -> tuple[str, ...]:
    """Return a note if the requested detector is not the one for the target."""
    with suppress(ToolError):
        if mode_for(target, mode == "crown_chm") == mode:
            return ()
    return (f"{mode} does not know what {target[:60]!r} is: it counts all that its method finds",)


DETECTORS: dict[Mode, str] = {
    "crown_chm": "tree crowns in a canopy height model",
    "crown_rgb": "tree crowns in a colour picture from above",
    "fruit": "fruit on the plant",
    "plant": "single plants on soil",
    "blob": "round spots",
}
_WORDS: dict[Mode, frozenset[str]] = {
    "crown_rgb": frozenset("tree crown palm canopy conifer pine spruce".split()),
    "fruit": frozenset(
        "fruit apple orange tomato cherry peach nectarine strawberry plum citrus mandarin pear".split()
    ),
    "plant": frozenset(
        "plant seedling crop weed lettuce cabbage beet sunflower maize corn rosette".split()
    ),
    "blob": frozenset("blob spot dot disc colony bale".split()),
}
_TOWARDS: dict[str, tuple[float, float]] = {
    "orange": (0.75, 0.65), "citrus": (0.75, 0.65), "mandarin": (0.75, 0.65), "peach": (0.9, 0.4),
    "nectarine": (0.9, 0.4), "pear": (0.7, 0.7),
}  # fmt: skip
"""Direction in (a*, b*) of Lab in which a fruit differs from leaves; for red fruits, a* alone."""


def mode_for(target: str, has_chm: bool) -> Mode:
    """Choose the detector for a target; ToolError ``backend_unavailable`` if no offline detector fits."""
    words = _words_of(target)
    last = singular(words[-1]) if words else ""
    for mode, known in _WORDS.items():
        if last in known:
            return "crown_chm" if mode == "crown_rgb" and has_chm else mode
    offline = ", ".join(f"{mode} ({what})" for mode, what in DETECTORS.items())
    why = f"no offline detector finds {target[:60]!r}: that needs a model; offline detectors: {offline}"
    hint = "for round things on a plain background, give the target 'spot'"
    raise ToolError("backend_unavailable", why, argument="target", hint=hint)


def colour_direction(target: str) -> tuple[float, float]:
    """Return the direction in (a*, b*) in which a fruit differs from leaves."""
    return _TOWARDS.get(singular((target.lower().split() or [""])[-1]), (1.0, 0.0))


def _words_of(target: str) -> list[str]:
    return target.lower().replace("_", " ").replace("-", " ").split()


def singular(word: str) -> str:
    """Return the singular of a regular English noun."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("oes", "ches", "shes", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def fruits_of_net(target: str) -> tuple[FruitName, ...]:
    """Return the kinds of fruit known to the net that a target means, empty for other targets."""
    words = _words_of(target)
    last = singular(words[-1]) if words else ""
    names: tuple[FruitName, ...] = get_args(FruitName)
    return (
        names
        if last == "fruit" and len(words) == 1
        else tuple(name for name in names if name == last)
    )
