"""What is measured in zones: the quantities of a raster, their values by block, and their statistics in a zone."""

import math
import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from agrotools.calling.pictures import WHOLE_PX, contradicted_roles, read_field_raster
from agrotools.calling.workspace import file_info
from agrotools.core import ToolError
from agrotools.core.readings import Choice, ReadingQuestion
from agrotools.vision import Box, Role
from agrotools.vision.formats import MAX_PIXELS
from agrotools.vision.rasters import RasterSource, band_number
from agrotools_tools.crop_weed.large_rasters import sample_threshold
from agrotools_tools.vision import Index
from agrotools_tools.vision.blocks import tile_shape
from agrotools_tools.vision.index_bands import find_index_bands, index_bands
from agrotools_tools.vision.vegetation import (
    INDICES,
    SMALLEST_PX,
    SMOOTHING_PX,
    doubt_of_cover,
    segment,
)
from agrotools_tools.zones.numbers import doubts_on_numbers
from agrotools_tools.zones.units import has_known_unit

Bands = Mapping[str, int | str] | None
Limits = tuple[float, float]
_ANY: Limits = (-math.inf, math.inf)
_NORMALISED: frozenset[str] = frozenset({"ndvi", "ndre", "gndvi"})
"""Indices that are normalised differences, which lie between -1 and 1 unless a band is negative."""
_ROUNDING = 1e-6
"""Distance beyond a limit that float32 values may have."""
_SIDE_PX = 512
"""Side of blocks, pixels: that of usual tiles. Smaller ones would read the halo around plants again and again."""
_BLOCK_PX = 2**20
"""Largest number of pixels of a block of whole rows."""
_LARGEST_PX = 2**22
"""Largest number of pixels of a block where the file has larger tiles."""
_AT_ONCE = 2**15
"""Number of values summed at once, which fit in the processor's cache."""
_BREAK_EVEN, _BREAK_EVEN_WITH_HALO = 0.85, 1.9
"""Pixels of the boxes of zones per pixel of the blocks that they touch from which reading by block is faster. Measured
with 1,000 plots (1.09 pixels per pixel): heights took 16 s by block and 20 s by box, plant cover 41 s and 24 s."""
_KEPT_VALUES = 2**25
"""Values of blocks that are kept for the next zones, 128 MB."""
_HOW_COVER_IS_CUT = (
    f"veg_pct: the index is smoothed before the threshold (Gaussian, SD {SMOOTHING_PX:g} pixel); plants and gaps of "
    f"fewer than {SMALLEST_PX} pixels are then removed"
)


class Quantity(NamedTuple):
    """A quantity that is measured in zones.

    ``value``: what the user asked for, as a start of columns. ``name``: start of its columns. ``limits``: least and
    largest possible value.
    """

    value: str
    name: str
    limits: Limits = _ANY

    @property
    def columns(self) -> tuple[str, ...]:
        return _columns_of(self)


class Layers(NamedTuple):
    """Quantities that are computed together.

    ``read``: returns the values of a box, float32 (rows, columns), of each. ``has_halo``: it reads more than the box.
    """

    quantities: tuple[Quantity, ...]
    read: Callable[[Box], Sequence[NDArray[np.float32]]]
    has_halo: bool = False


class Measured(NamedTuple):
    """What is measured in a raster.

    ``untold``: columns that stay empty; the notes say why. ``are_several``: several values were asked for.
    """

    layers: tuple[Layers, ...]
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    are_several: bool = False

    @property
    def quantities(self) -> list[Quantity]:
        return [quantity for layers in self.layers for quantity in layers.quantities]


HEIGHT, COVER = "height", "cover"
CANOPY_M = 2.0
"""Height from which plants are canopy, metres, as in ``estimate_canopy_height``."""
WHOLE_SHARE = 1 - 1e-6
"""Share of a pixel in a zone from which it lies whole in it: outlines along the edges of pixels are rounded."""
_HEIGHT_COLUMNS = ("mean_m", "median_m", "p95_m", "max_m", "sd_m", "cover_pct")


def _columns_of(quantity: Quantity) -> tuple[str, ...]:
    if quantity.name == HEIGHT:
        return _HEIGHT_COLUMNS
    if quantity.name == COVER:
        return ("veg_pct",)
    return tuple(f"{quantity.name}_{what}" for what in ("mean", "sd", "min", "max"))


def quantities_of(
    source: RasterSource, path: Path, values: Sequence[str], bands: Bands
) -> Measured:
    """Return what is measured in a raster. ToolError as of the tools."""
    was_asked = bool(values)
    remarks: list[str] = []
    what = _index_in(path.stem) or _light_in(path.stem)
    if not values and what and len(source.data_bands) == 1:
        remarks = [f"measured as {what}, as the name of the file says, not as heights"]
    values = values_of(source, path, values)
    read = _LastRead(source)
    parts = [_quantity_of(source, path, value, bands, read) for value in dict.fromkeys(values)]
    notes = [note for part in parts for note in part.notes]
    flags = [flag for part in parts for flag in part.flags]
    return Measured(
        tuple(layer for part in parts for layer in part.layers),
        (*source.sampling.notes, *remarks, *dict.fromkeys(notes)),
        (*source.sampling.flags, *dict.fromkeys(flags)),
        tuple(column for part in parts for column in part.untold),
        are_several=len(set(values)) > 1 and was_asked,
    )


def values_of(source: RasterSource, path: Path, values: Sequence[str]) -> Sequence[str]:
    """Return the values to measure in a raster: those that are asked for, or by its bands and its name."""
    if values:
        return values
    if len(source.data_bands) > 1:
        return ("cover",)
    if _index_in(path.stem) or _light_in(path.stem):
        return ("1",)
    return (HEIGHT, "1")


def questions_on_bands(
    source: RasterSource, path: Path, values: Sequence[str], bands: Bands
) -> dict[Role, ReadingQuestion]:
    """Return a question for each role of the indices asked for that several bands may have."""
    questions: dict[Role, ReadingQuestion] = {}
    for value in values_of(source, path, values):
        if value != COVER and value not in INDICES:
            continue
        wanted = cast(Index, "auto" if value == COVER else value)
        try:
            found = find_index_bands(source, wanted, bands, file_info(path))
        except ToolError:
            continue  # raised again where the raster is measured
        for role, numbers in found.unsure.items():
            choices = [_choice_of_band(source, role, number) for number in numbers]
            text = f"{source.name}: which of these bands is {role}?"
            questions.setdefault(role, ReadingQuestion(text, "--band", tuple(choices)))
    return questions


def _choice_of_band(source: RasterSource, role: Role, number: int) -> Choice:
    """Return the choice of a band for a role: by its name, which other rasters may have at another place, else by its
    number."""
    name = source.band_names[number - 1] or ""
    is_unique = [text.casefold() for text in filter(None, source.band_names)].count(
        name.casefold()
    ) == 1
    if is_unique and not name.strip().isdigit():
        return Choice(f"{role}={name}", f"band {number}")
    return Choice(f"{role}={number}", name)


def _index_in(name: str) -> str:
    """Return the index of vegetation that the name of a raster holds, as a word of its own; empty if it holds none."""
    words = re.split(r"[^a-z]+", name.casefold())
    return next((index.upper() for index in INDICES if index in words), "")


def _light_in(name: str) -> str:
    """Return the band of light that the name of a raster holds, as a word of its own; empty if it holds none."""
    words = [word for word in re.split(r"[^a-z]+", name.casefold()) if word]
    if _WORDS_OF_HEIGHTS.intersection(words):
        return ""
    found = next((word for word in words if word in _WORDS_OF_LIGHT), "")
    # Cameras of DJI name the files of their bands so: DJI_20240611103012_0001_MS_NIR.
    is_of_camera = "ms" in words and words[-1] in _BANDS_OF_CAMERAS
    return words[-1].upper() if is_of_camera else found


_WORDS_OF_LIGHT = frozenset("red green blue nir rededge edge reflectance radiance".split())
_WORDS_OF_HEIGHTS = frozenset("chm dsm dtm dem height heights ndsm".split())
_BANDS_OF_CAMERAS = frozenset("g r re nir".split())


class _LastRead:
    """Reader of bands that keeps what it read last: height and the band that holds it are the same numbers."""

    def __init__(self, source: RasterSource) -> None:
        self._source = source
        self._place: tuple[tuple[int, ...], Box] | None = None
        self._values = np.empty((0, 0, 0), np.float32)

    def __call__(self, bands: Sequence[int], box: Box) -> NDArray[np.float32]:
        """Return the bands of a box, float32 (bands, rows, columns), which nobody may change."""
        if self._place != (tuple(bands), box):
            self._values = self._source.read(bands, box)
            self._place = tuple(bands), box
        return self._values


def _quantity_of(
    source: RasterSource, path: Path, value: str, bands: Bands, read: _LastRead
) -> Measured:
    if value == HEIGHT:
        return _heights(source, path, read)
    if value == COVER or value in INDICES:
        return _plants(source, path, value, bands)
    number = band_number(value, source.band_names, source.name)
    # A border is in all bands, so that all are read to find it.
    others = source.data_bands if source.border is not None else []
    numbers = [number, *others]
    limits = (-1.0, 1.0) if _is_index(source, number) else _ANY
    quantity = Quantity(f"band_{number}", f"band_{number}", limits)
    layers = Layers((quantity,), lambda box: [read(numbers, box)[0]])
    name = source.band_names[number - 1]
    return Measured((layers,), (f"band_{number} is {name}",) if name else ())


def _is_index(source: RasterSource, number: int) -> bool:
    """Return True if the name of a band, or of a file with one band, says that it holds a normalised difference."""
    said = source.band_names[number - 1] or ""
    if len(source.data_bands) == 1:
        said += f" {source.name}"
    return any(name in said.casefold() for name in _NORMALISED)


def _heights(source: RasterSource, path: Path, read: _LastRead) -> Measured:
    from agrotools_tools.canopy_height import TALLEST_M, height_scale_of, in_metres, judge_heights

    notes, flags = judge_heights(source, file_info(path))
    metres = height_scale_of(source, None).metres
    if not has_known_unit(source):
        notes.append(
            "heights are whole numbers, and the file does not say their unit: taken as metres "
            "(--scale 0.01 for centimetres, --scale 1 for metres)"
        )
        flags.append("height_unit_assumed_metres")

    def heights_of(box: Box) -> Sequence[NDArray[np.float32]]:
        heights = in_metres(read([1], box)[0], metres)
        return [np.maximum(heights, np.float32(0))]

    quantity = Quantity(HEIGHT, HEIGHT, (0.0, TALLEST_M))
    return Measured((Layers((quantity,), heights_of),), tuple(notes), tuple(flags))


def _plants(source: RasterSource, path: Path, value: str, bands: Bands) -> Measured:
    """Return plant cover as the tool for it finds plants in the whole raster, and its index; or an index alone."""
    wanted = cast(Index, "auto" if value == COVER else value)
    found = index_bands(source, wanted, bands, file_info(path))
    index, used = found.index, found.used
    try:
        sampled = sample_threshold(source, used, index, (0, 0, source.width, source.height))
    except ToolError as error:
        if error.kind != "nothing_found":
            raise
        # The hint of the tool is about a region, which zones do not have.
        hint = "check the file's nodata value"
        raise ToolError(error.kind, error.message, argument="rasters", hint=hint) from error
    read = partial(sampled.read, source, used)
    limits = (-1.0, 1.0) if index in _NORMALISED else _ANY
    of_index = Quantity(value, index, limits)
    doubts, of_numbers = doubts_on_numbers(source, used)
    if bands is not None and contradicted_roles(source, source.band_names, used):
        of_numbers = (*of_numbers, "bands_contradict")
    notes = (found.said, *found.assumed, *doubts)
    if value != COVER:
        only = Layers((of_index,), lambda box: read(box)[:1], has_halo=True)
        return Measured((only,), notes, of_numbers)
    notes = (*notes, *sampled.notes, *sampled.cut.notes)
    flags = (*of_numbers, *sampled.cut.flags)
    is_whole = source.width * source.height <= WHOLE_PX and bands is None
    more_notes, more_flags, doubt = (), (), ""
    if is_whole:
        more_notes, more_flags, doubt = _remarks(source, path, index)
    elif bands is None:
        doubt = sampled.doubt or ""
    if doubt:
        notes = (*notes, f"plants cannot be told from the ground: {doubt}")
        only_index = Layers((of_index,), lambda box: read(box)[:1], has_halo=True)
        return Measured((only_index,), notes, (*of_numbers, "low_confidence"), ("veg_pct",))
    if sampled.cut.threshold is not None:
        notes = (*notes, _HOW_COVER_IS_CUT)
    both = Layers((Quantity(value, COVER), of_index), lambda box: read(box)[::-1], has_halo=True)
    return Measured((both,), (*notes, *more_notes), (*flags, *more_flags))


def _remarks(
    source: RasterSource, path: Path, index: Index
) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Return notes and flags on a photograph, and why its plant cover cannot be told, if so."""
    from agrotools_tools.crop_weed.photographs import remarks_on_photo

    picture = read_field_raster(source, None, None, file_info(path))
    if picture.photo is None:
        return (), (), ""
    plants = segment(index, picture.bands, picture.valid)
    remarks = remarks_on_photo(picture.photo, plants)
    doubt = doubt_of_cover(picture.photo, plants) or ""
    return tuple(remarks.notes), tuple(remarks.flags), doubt


class BlockCache:
    """Values of a raster around zones. A block is read and computed once while zones near it are measured.

    Where the boxes of zones hold far fewer pixels than the blocks that they touch, each box is computed alone; GDAL
    keeps some of the tiles that neighbours share.

    Args:
        boxes: of the zones that will be read, int (n, 4): x0, y0, x1, y1.

    Attributes:
        width, height: of a block, pixels.
    """

    def __init__(
        self, source: RasterSource, layers: Sequence[Layers], boxes: NDArray[np.int64]
    ) -> None:
        self._source = source
        self._layers = layers
        self._depth = sum(len(each.quantities) for each in layers)
        self.width, self.height = _block_of(source)
        self._most = max(2, _KEPT_VALUES // (self.width * self.height * self._depth))
        self._blocks: OrderedDict[tuple[int, int], NDArray[np.float32]] = OrderedDict()
        has_halo = any(each.has_halo for each in layers)
        break_even = _BREAK_EVEN_WITH_HALO if has_halo else _BREAK_EVEN
        pixels_of_boxes = int(np.prod(boxes[:, 2:] - boxes[:, :2], axis=1).sum())
        self._by_block = pixels_of_boxes > break_even * self._pixels_of_blocks(boxes)

    def _pixels_of_blocks(self, boxes: NDArray[np.int64]) -> int:
        """Return the number of pixels of all blocks that the boxes touch."""
        size = np.array([self.width, self.height])
        firsts, lasts = boxes[:, :2] // size, (boxes[:, 2:] - 1) // size
        touched = {
            (row, column)
            for (left, top), (right, bottom) in zip(firsts.tolist(), lasts.tolist(), strict=True)
            for row in range(top, bottom + 1)
            for column in range(left, right + 1)
        }
        return len(touched) * self.width * self.height

    def read(self, box: Box) -> NDArray[np.float32]:
        """Return the values of a box, float32 (quantities, rows, columns), NaN without data."""
        x0, y0, x1, y1 = box
        if not self._by_block:
            return self._computed(box)
        values = np.empty((self._depth, y1 - y0, x1 - x0), np.float32)
        for row in range(y0 // self.height, -(-y1 // self.height)):
            for column in range(x0 // self.width, -(-x1 // self.width)):
                left, top = column * self.width, row * self.height
                block = self._block(row, column)
                right, bottom = left + block.shape[2], top + block.shape[1]
                from_x, to_x = max(x0, left), min(x1, right)
                from_y, to_y = max(y0, top), min(y1, bottom)
                part = block[:, from_y - top : to_y - top, from_x - left : to_x - left]
                values[:, from_y - y0 : to_y - y0, from_x - x0 : to_x - x0] = part
        return values

    def _block(self, row: int, column: int) -> NDArray[np.float32]:
        place = row, column
        if place not in self._blocks:
            while len(self._blocks) >= self._most:
                self._blocks.popitem(last=False)
            left, top = column * self.width, row * self.height
            right = min(left + self.width, self._source.width)
            bottom = min(top + self.height, self._source.height)
            self._blocks[place] = self._computed((left, top, right, bottom))
        self._blocks.move_to_end(place)
        return self._blocks[place]

    def _computed(self, box: Box) -> NDArray[np.float32]:
        return np.stack([values for each in self._layers for values in each.read(box)])


def _block_of(source: RasterSource) -> tuple[int, int]:
    """Return width and height of blocks: squares of whole tiles if the file has tiles, else whole rows."""
    rows, columns = tile_shape(source)
    width = columns * max(1, _SIDE_PX // columns)
    height = rows * max(1, min(_SIDE_PX, _BLOCK_PX // width) // rows)
    return width, min(height, max(1, _LARGEST_PX // width))


@dataclass
class Statistics:
    """Weighted statistics of the values of a quantity, which are added in parts."""

    quantity: Quantity
    weight: float = 0.0
    _mean: float = 0.0
    _squares: float = 0.0
    _least: float = math.inf
    _largest: float = -math.inf
    _heights: list[tuple[NDArray[np.float32], NDArray[np.float64]]] = field(
        default_factory=list[tuple[NDArray[np.float32], NDArray[np.float64]]]
    )

    def add(self, values: NDArray[np.float32], weights: NDArray[np.float64]) -> None:
        """Add values with data, (n,)."""
        if self.quantity.name == HEIGHT:
            self._heights.append((values, weights))
        for start in range(0, values.size, _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            self._add(values[part], weights[part])

    def _add(self, values: NDArray[np.float32], weights: NDArray[np.float64]) -> None:
        weight = float(weights.sum())
        if not weight:
            return
        exact = values.astype(np.float64)
        # Not by the product @, which starts threads that wait for each other.
        mean = float((weights * exact).sum()) / weight
        exact -= mean
        squares = float((weights * np.square(exact, out=exact)).sum())
        total = self.weight + weight
        apart = mean - self._mean
        # Means and squared distances of two parts, joined (Chan, Golub and LeVeque 1979).
        self._squares += squares + apart**2 * self.weight * weight / total
        self._mean += apart * weight / total
        self.weight = total
        self._least = min(self._least, float(values.min()))
        self._largest = max(self._largest, float(values.max()))

    @property
    def is_beyond(self) -> bool:
        """True if a value is beyond what is possible."""
        low, high = self.quantity.limits
        return self._least < low - _ROUNDING or self._largest > high + _ROUNDING

    def figures(self) -> dict[str, float | None]:
        """Return the columns of the quantity; None without data."""
        columns = self.quantity.columns
        if not self.weight:
            return dict.fromkeys(columns)
        sd = (self._squares / self.weight) ** 0.5
        if self.quantity.name == HEIGHT:
            heights, weights = map(np.concatenate, zip(*self._heights, strict=True))
            order = _WeightedOrder(heights, weights)
            median, p95 = order.quantile(0.5), order.quantile(0.95)
            cover = 100 * order.share_from(CANOPY_M)
            figures = (self._mean, median, p95, self._largest, sd, cover)
        elif self.quantity.name == COVER:
            figures = (100 * self._mean,)
        else:
            figures = (self._mean, sd, self._least, self._largest)
        return dict(zip(columns, figures, strict=True))


class _WeightedOrder:
    """Heights in their order, each with its weight.

    All but those at the edge of a zone have weight 1. So the heights are sorted alone, 4 times as fast as with their
    weights, and the few others are then found among them.
    """

    def __init__(self, heights: NDArray[np.float32], weights: NDArray[np.float64]) -> None:
        self._heights = np.sort(heights)
        parts = np.flatnonzero(weights < WHOLE_SHARE)
        parts = parts[np.argsort(heights[parts])]
        of_parts = heights[parts]
        # Equal heights stand side by side, and each takes a place of its own.
        among_equals = np.arange(parts.size) - np.searchsorted(of_parts, of_parts)
        self._places = np.searchsorted(self._heights, of_parts) + among_equals
        self._lacking = 1 - weights[parts]
        self._lacking_before = np.concatenate([[0.0], np.cumsum(self._lacking)])
        self._last = heights.size - 1

    def share_from(self, height: float) -> float:
        """Return the share of the weight that heights of ``height`` or more have."""
        place = int(np.searchsorted(self._heights, np.float32(height)))
        whole = self._heights.size - float(self._lacking_before[-1])
        return 1 - self._weight_before(place) / whole

    def quantile(self, share: float) -> float:
        """Return the height below which a share of the weight is, interpolated by rank, as by numpy."""
        if not self._last:
            return float(self._heights[0])
        sought = share * self._rank(self._last)
        above = bisect_right(range(1, self._last), sought, key=self._rank) + 1
        ranks = self._rank(above - 1), self._rank(above)
        return float(np.interp(sought, ranks, self._heights[above - 1 : above + 1]))

    def _weight_before(self, place: int) -> float:
        return place - float(self._lacking_before[np.searchsorted(self._places, place)])

    def _rank(self, place: int) -> float:
        """Return the rank of the height at a place: the place, if all weights are equal, times a constant."""
        weight = self._weight_before(place + 1) - self._weight_before(place)
        return self._weight_before(place) * self._last + weight * place


def refuse_large_zones(layers: Sequence[Layers], areas: Any) -> None:
    """Raise a ToolError ``limit`` for a zone too large for percentiles of height."""
    measured = {quantity.name for each in layers for quantity in each.quantities}
    if HEIGHT in measured and max(areas) > MAX_PIXELS:
        millions = MAX_PIXELS // 1_000_000
        why = f"a zone has over {millions} million pixels, too many for percentiles of height"
        hint = "cut it into parts, or measure the band alone"
        raise ToolError("limit", why, argument="zones", hint=hint)
