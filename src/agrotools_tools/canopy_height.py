"""Height and ground cover of vegetation from rasters of heights."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agrotools.calling.arguments import PixelSize, ReferenceCall, drop_arguments
from agrotools.calling.contract import FileArgument, ImageFile, Region, ToolResult, tool
from agrotools.calling.result import ResultPart
from agrotools.calling.workspace import (
    MapLayer,
    add_map_layer,
    file_info,
    save_artifact,
    shown_name,
)
from agrotools.core import Arguments, Artifact, SampleFile, ToolError
from agrotools.text.units import read_unit
from agrotools.vision import Box
from agrotools.vision.formats import clipped_region, file_format

if TYPE_CHECKING:
    from agrotools.vision.rasters import RasterSource
    from agrotools_tools.vision.blocks import RasterThumbnail, RunningStatistics

TALLEST_M = 130.0
"""Height, metres, that no known tree exceeds (the tallest is 116 m)."""
_MOST_CLASSES = 12
"""Most different values of a map of classes."""
_LEAST_MAP_PX = 1000
"""Least number of measured pixels from which values are judged to be classes or an index."""
INDEX_NOTE = "all values are at most 1, and some are negative: is it an index such as NDVI?"
_COARSE_M = 5.0
"""Pixel size, metres, from which a raster without bare ground and without heights above 1 m may be an index."""
_BARE_M = 0.05
"""Height, metres, up to which a pixel is bare ground."""
_SMOOTHEST = 0.005
"""Roughness below which heights are those of bare ground: half of that of the smoothest model of a canopy."""
_STEP_M, _STEP_PX = 1.0, 8
"""Distance to the neighbours that roughness compares, in metres, and in pixels of unknown size."""
_LEAST_ROUGH_PX = 400
"""Least number of pixels of trees by which roughness is judged."""
_LEAST_TREE_M = 2.0
"""Least height of a tree, metres."""
_BELOW_GROUND_M = -0.5
"""Height, metres, below which a pixel is below the ground; smaller differences are not counted."""
_LARGE_SHARE = 0.01
"""Share of pixels below the ground from which there is a flag."""
_MAP_SIDE = 1024
"""Longest side of the map of heights, pixels."""
_HEIGHT_UNITS = ("m", "dm", "cm", "mm", "ft")
"""Units of heights in files; any other length would be a mistake of the file."""
_OTHER_FEET = {
    "international foot": 0.3048,
    **dict.fromkeys(
        ("us survey foot", "us survey feet", "us_survey_foot", "ftus", "us-ft"), 1200 / 3937
    ),
}
"""Metres per foot, by names that GeoTIFF files have for it and answers do not."""

HeightFile = Annotated[Path, FileArgument("raster", "")]


class HeightBin(ResultPart):
    """A class of height."""

    lo_m: float
    """lower limit, included, metres"""
    hi_m: float | None
    """upper limit, excluded, metres; null for the last class, which has none"""
    pct: float
    """share of the measured pixels, percent"""


class CanopyHeight(ToolResult):
    mean_m: float
    """mean height over all measured pixels, low ones and bare ground included, metres"""
    mean_canopy_m: float | None
    """mean height over canopy pixels alone (at or above veg_min_height_m), metres; null without canopy"""
    median_m: float
    """median height over all measured pixels, metres"""
    p95_m: float
    """height that 95 % of the measured pixels stay below, metres"""
    p99_5_m: float
    """height that 99.5 % stay below, metres: the top without single spikes"""
    max_m: float
    """largest value, metres; a single spike (bird, wire, noise) makes it"""
    sd_m: float
    """standard deviation of height over all measured pixels, metres"""
    cover_pct: float
    """canopy cover: pixels at or above veg_min_height_m, percent of the measured pixels"""
    canopy_area_m2: float | None
    """ground below canopy, m^2; null where the size of a pixel is not known"""
    area_m2: float | None
    """ground that was measured (pixels with data), m^2; null where the size of a pixel is not known"""
    bins: tuple[HeightBin, ...]
    """shares of the measured pixels by height; together 100 %"""
    measured_px: int
    """pixels with data in the region; all statistics are over these"""
    nodata_pct: float
    """pixels of the region without data, percent of the region"""
    gsd_m: float | None
    """ground sampling distance that was used, metres per pixel"""
    source: Literal["chm", "dsm_dtm"]
    """what the heights were taken from"""
    map: Artifact
    """the heights as colours, with a colour bar; grey where below veg_min_height_m"""


def _resolved(call: Arguments, _known: ReferenceCall) -> Arguments:
    """Drop an image that is given in addition to heights."""
    return (
        drop_arguments(call, "image")
        if call["chm"] is not None or call["dsm"] is not None
        else call
    )


@tool(
    category="segmentation",
    version="2",
    resolves=_resolved,
    expert=("image", "height_bins_m"),
    example={"chm": "raster"},
)
def estimate_canopy_height(
    image: ImageFile | None = None,
    chm: HeightFile | None = None,
    dsm: HeightFile | None = None,
    dtm: HeightFile | None = None,
    region: Region | None = None,
    gsd_m: PixelSize | None = None,
    veg_min_height_m: Annotated[float, Field(ge=0, le=200)] = 2.0,
    height_bins_m: Annotated[tuple[float, ...], Field(min_length=1, max_length=50)] = (
        2.0,
        5.0,
        10.0,
        15.0,
        20.0,
    ),
    height_scale: Annotated[
        float | None, Field(gt=0, le=1000, description="metres per unit")
    ] = None,
) -> CanopyHeight:
    """Measure height and cover of vegetation in chm (heights) or dsm and dtm (surface and ground elevation).

    Returns mean_m, median_m, p95_m, max_m, sd_m, cover_pct, bins, canopy_area_m2, map.

    Raises:
        ToolError: ``missing_metadata`` (no heights given), ``invalid_argument`` (chm beside dsm, limits that do not
            rise, several bands), ``crs_mismatch``, ``shape_mismatch``, ``nothing_found`` (no data, no overlap),
            ``region_empty``, and those of a file that cannot be read.

    Sources: canopy cover as the share of returns or cells above a height break, as in FUSION (McGaughey 2009, USDA
        Forest Service). Mean, shares and extremes are exact; how fine percentiles are is in the notes.
    """
    from agrotools.calling.pictures import choose_scale
    from agrotools.vision.rasters import Scale, open_raster
    from agrotools_tools.vision.blocks import RunningStatistics

    _refuse_without_heights(image, chm, dsm, dtm)
    is_in_range = all(0 < limit < 1e6 for limit in height_bins_m)
    if not is_in_range or sorted(set(height_bins_m)) != list(height_bins_m):
        why = "height_bins_m must rise and be above 0"
        hint = "e.g. [2, 5, 10, 15, 20]"
        raise ToolError("invalid_argument", why, argument="height_bins_m", hint=hint)

    # One raster of heights, or two of elevations, of which the second is the ground.
    statistics = RunningStatistics(height_bins_m, mean_from=veg_min_height_m)
    with ExitStack() as files:
        named = {"chm": chm} if chm else {"dsm": dsm, "dtm": dtm}
        source, *others = [
            files.enter_context(open_raster(path, argument=argument, shown_as=shown_name(path)))
            for argument, path in named.items()
            if path is not None
        ]
        terrain = others[0] if others else None
        info = file_info(chm or dsm or Path())
        scale = choose_scale(gsd_m, info.gsd_m if info else None, source.sampling.gsd_m)
        measured = _measure(source, terrain, region, height_scale, scale.gsd_m, statistics)
        # What the file says of its pixel size counts if that size is used.
        from_file = source.sampling if scale.gsd_m == source.sampling.gsd_m else Scale()

    canopy_px = statistics.at_least(veg_min_height_m)
    notes = [*measured.notes, *from_file.notes, *scale.notes]
    if image is not None:
        notes.append("image was not used: the heights are in the other raster")
    notes.append(f"canopy is where height >= {veg_min_height_m:g} m")
    precision = "exact"
    if statistics.resolution:
        precision = f"exact to {statistics.resolution:.2g} m (histogram)"
    notes.append(f"percentiles are {precision}")
    flags = [*measured.flags, *from_file.flags, *scale.flags]
    if scale.gsd_m is None:
        flags.append("no_scale")
    if not canopy_px:
        flags.append("no_canopy")

    measured_px = statistics.count
    pixel_m2 = None if scale.gsd_m is None else scale.gsd_m**2
    return CanopyHeight(
        mean_m=statistics.mean,
        mean_canopy_m=statistics.mean_above if canopy_px else None,
        median_m=statistics.percentile(50),
        p95_m=statistics.percentile(95),
        p99_5_m=statistics.percentile(99.5),
        max_m=statistics.maximum,
        sd_m=statistics.sd,
        cover_pct=100 * canopy_px / measured_px,
        canopy_area_m2=canopy_px * pixel_m2 if pixel_m2 else None,
        area_m2=measured_px * pixel_m2 if pixel_m2 else None,
        bins=_bins(statistics, height_bins_m),
        measured_px=measured_px,
        nodata_pct=100 * (1 - measured_px / measured.region_px),
        gsd_m=scale.gsd_m,
        source="chm" if chm else "dsm_dtm",
        map=_map(measured, statistics, veg_min_height_m, scale.gsd_m),
        notes=tuple(notes),
        flags=tuple(dict.fromkeys(flags)),
    )


_JUDGED_PX = 10_000_000
"""Pixels of a large raster by which its heights are judged: a third of a second."""


def judge_heights(source: "RasterSource", info: SampleFile | None) -> tuple[list[str], list[str]]:
    """Return notes and flags on the heights of a raster: may they be heights, what is their unit?

    A raster of over 20 million pixels is judged by blocks spread over it.

    Raises:
        ToolError: as :func:`estimate_canopy_height`.
    """
    from agrotools.calling.pictures import WHOLE_PX, choose_scale
    from agrotools_tools.vision.blocks import (
        BLOCK_PX,
        RunningStatistics,
        block_boxes,
        spread_boxes,
        tile_shape,
    )

    scale = choose_scale(None, info.gsd_m if info else None, source.sampling.gsd_m)
    boxes: list[Box] | None = None
    notes: list[str] = []
    if source.width * source.height > WHOLE_PX:
        every = [*block_boxes((0, 0, source.width, source.height), tile_shape(source))]
        boxes = spread_boxes(every, _JUDGED_PX // BLOCK_PX)
    statistics = RunningStatistics([_LEAST_TREE_M])
    try:
        measured = _measure(source, None, None, None, scale.gsd_m, statistics, boxes)
        if boxes is not None:
            looked_at = f"{measured.region_px / 1e6:.0f} million pixels spread over the raster"
            notes.append(f"heights are judged by {looked_at}")
    except ToolError as error:
        if error.kind != "nothing_found" or boxes is None:
            raise
        statistics = RunningStatistics([_LEAST_TREE_M])  # there may be data beside these blocks
        measured = _measure(source, None, None, None, scale.gsd_m, statistics)
    flags = [*measured.flags, *scale.flags]
    if scale.gsd_m is None:
        flags.append("no_scale")
    low = "" if statistics.at_least(_LEAST_TREE_M) else "; all is lower here, so it is 0"
    canopy = (
        f"cover_pct is the share of the pixels of {_LEAST_TREE_M:g} m and more, as trees are{low}"
    )
    return [*measured.notes, *scale.notes, *notes, canopy], flags


class _Measurement(NamedTuple):
    box: Box
    region_px: int
    """pixels of the region"""
    picture: "RasterThumbnail"
    """reduced picture of the heights"""
    notes: list[str]
    flags: list[str]


def _refuse_without_heights(
    image: Path | None, chm: Path | None, dsm: Path | None, dtm: Path | None
) -> None:
    from agrotools.vision.rasters import open_raster

    if chm is not None and (dsm is not None or dtm is not None):
        why = "chm and dsm, dtm are two ways to give heights"
        raise ToolError("invalid_argument", why, argument="chm", hint="pass one of them")
    if chm is not None or (dsm is not None and dtm is not None):
        return
    lacking, hint = "chm", "pass chm (heights above ground), or dsm and dtm"
    why = "a colour picture alone does not show how tall things are: that needs a trained model, and none is here"
    if dsm is not None or dtm is not None:
        present, lacking = ("dsm", "dtm") if dsm is not None else ("dtm", "dsm")
        why = f"{present} alone gives elevations, not heights above ground"
        hint = f"pass {lacking} too, or a canopy height model as chm"
    elif image is None:
        why, hint = "no heights are given", "pass chm, or dsm and dtm"
    elif file_format(image, shown_as=shown_name(image)) in ("tiff", "envi"):
        with open_raster(image, shown_as=shown_name(image)) as source:
            if source.count == 1:
                why = f"{source.name} has one band, and nobody says that its values are heights above ground"
                hint = "if they are, pass it as chm (or as dsm with a dtm)"
    raise ToolError("missing_metadata", why, argument=lacking, hint=hint)


class HeightCheck:
    """Check of heights that are added in parts: are they classes, or as smooth as bare ground?

    Roughness is the mean difference between a pixel above 2 m and the mean of its four neighbours 1 m (or a pixel)
    away, over the mean height. Of two measured models of canopies it is 0.06 to 0.18 at pixels of 0.1 to 8 m, and 0.009
    after a Gaussian of 2 m; of hills at pixels of 1 to 5 m, their lowest point set to 0, 0.0001 to 0.003.
    """

    def __init__(self, source: "RasterSource", gsd_m: float | None) -> None:
        self._are_floats = source.dtype.startswith("float")
        self.distinct: set[float] = set()
        """Different values, until they are more than classes are; of fractions one is enough."""
        self._step = max(1, round(_STEP_M / gsd_m)) if gsd_m else _STEP_PX
        self._count, self._difference, self._height = 0, 0.0, 0.0

    def add(self, heights: NDArray[np.float32]) -> None:
        """Add heights, metres, NaN without data, (rows, columns)."""
        if len(self.distinct) <= _MOST_CLASSES:
            known = heights[np.isfinite(heights)]
            fractions = known[known != np.rint(known)] if self._are_floats else known[:0]
            self.distinct.update(
                fractions[:1].tolist() if fractions.size else np.unique(known).tolist()
            )
        k = self._step
        if min(heights.shape) <= 2 * k:
            return
        inner = heights[k:-k, k:-k]
        around = (
            heights[: -2 * k, k:-k]
            + heights[2 * k :, k:-k]
            + heights[k:-k, : -2 * k]
            + heights[k:-k, 2 * k :]
        )
        difference = np.abs(inner - around / 4)
        used = (inner > _LEAST_TREE_M) & np.isfinite(difference)
        self._count += int(np.count_nonzero(used))
        self._difference += float(difference[used].sum(dtype=np.float64))
        self._height += float(inner[used].sum(dtype=np.float64))

    def are_classes(self, measured: int) -> bool:
        """Return True if the values of ``measured`` pixels are few whole numbers, as in a map of classes."""
        whole = all(value == round(value) for value in self.distinct)
        few = 2 <= len(self.distinct) <= _MOST_CLASSES
        return measured >= _LEAST_MAP_PX and few and whole and max(self.distinct) >= 1

    @property
    def is_smooth(self) -> bool:
        """True if the heights vary less than those of any canopy."""
        return self._count >= _LEAST_ROUGH_PX and self._difference < _SMOOTHEST * self._height


def _measure(
    source: "RasterSource",
    terrain: "RasterSource | None",
    region: Box | None,
    given_scale: float | None,
    gsd_m: float | None,
    statistics: "RunningStatistics",
    boxes: Sequence[Box] | None = None,
) -> _Measurement:
    """Measure a region, or the ``boxes`` alone, which tile a part of it: add its heights to ``statistics``.

    ``terrain``: elevation of the ground, which is subtracted from that of the surface, None for heights above ground.
    """
    from agrotools_tools.vision.alignment import align
    from agrotools_tools.vision.blocks import RasterThumbnail

    refuse_many_bands(source)
    unit = height_scale_of(source, given_scale)
    box, clipped = clipped_region(region, source.width, source.height, source.name)
    notes, flags = [*unit.notes], [*unit.flags, *clipped]
    ground = None
    if terrain is not None:
        refuse_many_bands(terrain)
        ground = align(source, terrain)
        notes.append(f"heights are {source.name} less {terrain.name}")
        if ground is not terrain:
            notes.append(_note_on_warping(source, terrain))

    picture = RasterThumbnail(box, _MAP_SIDE)
    check = HeightCheck(source, gsd_m)
    negative_px = below_ground_px = 0
    for part, values in _values_by_part(source, ground, box, boxes):
        heights = in_metres(values, unit.metres)
        if terrain is None:
            check.add(heights)
        has_data = np.isfinite(heights)
        known = heights.ravel() if has_data.all() else heights[has_data]
        if known.size and known.min() < 0:
            negative_px += int(np.count_nonzero(known < 0))
            below_ground_px += int(np.count_nonzero(known < _BELOW_GROUND_M))
            heights = np.maximum(heights, np.float32(0))
            known = np.maximum(known, np.float32(0))
        statistics.add(known)
        picture.add(part, heights)

    region_px = sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in boxes or [box])
    measured_px = statistics.count
    if not measured_px:
        raise _no_data(source, terrain, region)
    if negative_px:
        share_pct = 100 * negative_px / measured_px
        notes.append(f"{share_pct:.3g} % of the values are below 0 and count as 0")
    if below_ground_px > _LARGE_SHARE * measured_px:
        flags.append("dsm_below_dtm" if terrain is not None else "negative_heights")
    if statistics.percentile(99.5) <= TALLEST_M < statistics.maximum:
        flags.append("spikes_possible")
    elif doubt := _doubt_of_heights(
        statistics, check, gsd_m, has_terrain=terrain is not None, has_negative=negative_px > 0
    ):
        flags.append("implausible_heights")
        notes.append(doubt)
    if measured_px < region_px / 2:
        flags.append("mostly_no_data")
    return _Measurement(box, region_px, picture, notes, flags)


def _values_by_part(
    source: "RasterSource",
    ground: "RasterSource | None",
    box: Box,
    boxes: Sequence[Box] | None,
) -> Iterator[tuple[Box, NDArray[np.float32]]]:
    """Yield parts of a box, or the ``boxes`` alone, and their values, from which those of the ground are subtracted."""
    from agrotools_tools.vision.blocks import Block, raster_blocks

    if boxes is None:
        blocks = raster_blocks(source, [1], box)
    else:
        blocks = (Block(part, part, source.read([1], part)) for part in boxes)
    for block in blocks:
        values = block.values[0]
        if ground is not None:
            values = values - ground.read([1], block.box)[0]
        yield block.box, values


def _note_on_warping(source: "RasterSource", terrain: "RasterSource") -> str:
    has_same_crs = source.dataset.crs == terrain.dataset.crs
    of_crs = "" if has_same_crs else " and in another coordinate system"
    return f"{terrain.name} is on another grid{of_crs}: warped to that of {source.name} (bilinear)"


def _no_data(
    source: "RasterSource", terrain: "RasterSource | None", region: Box | None
) -> ToolError:
    names = source.name if terrain is None else f"{source.name} and {terrain.name}"
    why = f"{names} hold no data {'in the region' if region else 'anywhere'}"
    hint = "check the nodata value of the file, and the part that was asked for"
    argument = "region" if region else source.argument
    return ToolError("nothing_found", why, argument=argument, hint=hint)


def _doubt_of_heights(
    statistics: "RunningStatistics",
    check: HeightCheck,
    gsd_m: float | None,
    *,
    has_terrain: bool,
    has_negative: bool,
) -> str:
    """Return why the values may be no heights of vegetation, empty if they may be."""
    if statistics.maximum > TALLEST_M:
        return "taller than any tree: is it an elevation, or in another unit (height_scale)?"
    if check.are_classes(statistics.count):
        return f"only {len(check.distinct)} different whole numbers: is it a map of classes?"
    if not has_terrain and statistics.maximum <= 1:
        if has_negative:
            return INDEX_NOTE
        if (
            (gsd_m or 0) >= _COARSE_M
            and statistics.count >= _LEAST_MAP_PX
            and statistics.minimum > _BARE_M
        ):
            return (
                "no pixel of 5 m or more is bare ground or above 1 m: is it an index such as NDVI?"
            )
    return "as smooth as bare ground: is it an elevation?" if check.is_smooth else ""


def _bins(statistics: "RunningStatistics", limits: tuple[float, ...]) -> tuple[HeightBin, ...]:
    counts = [statistics.count, *(statistics.at_least(limit) for limit in limits), 0]
    edges = pairwise((0.0, *limits, None))
    return tuple(
        HeightBin(lo_m=low or 0.0, hi_m=high, pct=100 * (above - above_next) / statistics.count)
        for (low, high), (above, above_next) in zip(edges, pairwise(counts), strict=True)
    )


def _map(
    measured: _Measurement,
    statistics: "RunningStatistics",
    veg_min_height_m: float,
    gsd_m: float | None,
) -> Artifact:
    from agrotools.vision.overlay import NO_DATA_COLOUR, Layer, draw_heat_map

    heights = measured.picture.means
    cover = 100 * statistics.at_least(veg_min_height_m) / statistics.count
    empty = 100 * (1 - statistics.count / measured.region_px)
    layers = [Layer(0, (150, 150, 150), f"below {veg_min_height_m:g} m {100 - cover:.1f} %")]
    if empty:
        layers.append(Layer(1, NO_DATA_COLOUR, f"no data {empty:.1f} % of the region"))
    picture = draw_heat_map(
        heights,
        low=0.0,
        high=max(statistics.percentile(99.5), veg_min_height_m + 1),
        unit="m",
        grey_below=veg_min_height_m,
        title=f"height: mean {statistics.mean:.2f} m, max {statistics.maximum:.2f} m; canopy cover {cover:.1f} %",
        legend=tuple(layers),
        gsd_m=None if gsd_m is None else gsd_m * measured.picture.factor,
    )
    named = ("canopy_height", heights, "height, metres")
    add_map_layer(lambda: MapLayer(*named, heights >= veg_min_height_m, "canopy", measured.box))
    return save_artifact("canopy_height_map.png", "overlay", picture)


class HeightScale(NamedTuple):
    """Scale of heights. ``metres``: metres per unit of the values."""

    metres: float = 1.0
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def _metres_per_unit(name: str) -> float | None:
    """Return the length of the unit of a GeoTIFF's band; None if it is no unit of heights."""
    unit = read_unit(name) if name else None
    return unit.factor if unit and unit.symbol in _HEIGHT_UNITS else _OTHER_FEET.get(name)


def height_scale_of(source: "RasterSource", height_scale: float | None) -> HeightScale:
    """Return the metres per unit of the values: the argument, else the unit in the file, else 1."""
    unit_name = (source.dataset.units[0] or "").strip().lower()
    factor, note = _metres_per_unit(unit_name), f"values are in {unit_name}, as the file says"
    if height_scale is not None:
        factor, note = (
            height_scale,
            f"values times {height_scale:g} are metres, as height_scale says",
        )
    if factor is not None:
        return HeightScale(factor, (note,) if factor != 1 else ())
    if unit_name:
        note = f"the file gives its unit as {unit_name[:20]!r}, which is not known here; values taken as metres"
        return HeightScale(1.0, (note,), ("height_unit_unknown",))
    crs = source.dataset.crs
    if crs is not None and crs.is_projected and crs.linear_units_factor[1] < 0.5:
        note = (
            "the map is in feet and the file does not say in what its heights are; taken as metres"
        )
        return HeightScale(1.0, (note,), ("height_unit_assumed_metres",))
    return HeightScale()


def refuse_many_bands(source: "RasterSource") -> None:
    """Raise a ToolError ``invalid_argument`` if a raster has more than one band."""
    if (bands := len(source.data_bands)) != 1:
        why = f"{source.name} has {bands} bands; a raster of heights has one"
        hint = "pass the raster whose values are heights; a colour picture holds none"
        raise ToolError("invalid_argument", why, argument=source.argument, hint=hint)


def in_metres(values: NDArray[np.float32], scale: float) -> NDArray[np.float32]:
    """Return values times the scale, rounded once, so that 23 dm become the float32 nearest to 2.3."""
    return values if scale == 1 else (values.astype(np.float64) * scale).astype(np.float32)
