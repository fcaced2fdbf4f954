"""Pairs of registered pictures on one grid: photographs must have the same size, rasters are resampled."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.calling.pictures import choose_scale, known_roles
from agrotools.calling.workspace import file_info, shown_name
from agrotools.core import ToolError
from agrotools.vision import Box, Role
from agrotools.vision.formats import clipped_region, file_format
from agrotools.vision.rasters import RasterSource, Scale, open_raster
from agrotools.vision.reading import picture_of, read_image
from agrotools_tools.change.result import PANEL_PX, ChangeRequest
from agrotools_tools.vision.alignment import align, check_sizes
from agrotools_tools.vision.blocks import block_boxes, sample_into, tile_shape

_TALLEST_BLOCK = 1024
"""Largest height, rows, of stored blocks that are read whole."""
BLOCK_PX = 2_000_000
"""Approximate size, pixels, of the parts in which rasters are read."""
_LARGEST_WHOLE_PX = 25_000_000
"""Largest picture, pixels, for steps that need the whole picture in memory (specks, photographs)."""
_LONGEST_SIDE = 1024
"""Longest side, pixels, at which pictures are compared; larger ones are shrunk, which costs subpixel accuracy only."""
_SMALLEST_SIDE = 32
"""Shorter side, pixels, of pictures below which no shift is measured."""
_CLEAR_GAIN = 0.02
"""Least increase of the correlation by undoing a shift of a pixel or more, for the shift to be clear."""
_CLEAR_AGREEMENT = 0.12
"""Least correlation of edge strengths of two pictures that show the same outlines; rebuilt scenes have less."""
_AGREEMENT_TO_MOVE = 0.2
"""Least correlation to undo a shift. It is higher than the one for "no shift", since a wrong move does harm."""
_LARGEST_SHIFT = 0.05
"""Largest shift, share of the width; pictures further apart are refused."""
_DARK = 12.0
"""Mean of all channels, 0 to 255, below which a picture is too dark."""
_FLAT = 1.0
"""Standard deviation of every channel, 0 to 255, below which a picture is featureless."""
_SAMPLE_PX = 100_000
"""Approximate number of pixels by which darkness and features are judged."""


class RasterPair(NamedTuple):
    """Two open rasters on the grid of the first, so that the same boxes apply to both."""

    first: RasterSource
    second: RasterSource
    notes: tuple[str, ...]
    flags: tuple[str, ...]

    @property
    def tile(self) -> tuple[int, int]:
        return tile_of(self.first)


def are_rasters(before: Path, after: Path) -> bool:
    """Return True if raster drivers read the pair, because at least one file is a GeoTIFF or an ENVI file."""
    files = {"before": before, "after": after}
    kinds = {
        file_format(path, argument=argument, shown_as=shown_name(path))
        for argument, path in files.items()
    }
    return not kinds.isdisjoint({"tiff", "envi"})


@contextmanager
def open_raster_pair(
    before: Path,
    after: Path,
    *,
    labels: bool = False,
    arguments: tuple[str, ...] = ("before", "after"),
) -> Iterator[RasterPair]:
    """Open two rasters on the grid of the first; errors as of ``open_raster`` and ``align``."""
    with (
        open_raster(before, argument=arguments[0], shown_as=shown_name(before)) as first,
        open_raster(after, argument=arguments[1], shown_as=shown_name(after)) as second,
    ):
        aligned = align(first, second, labels=labels)
        notes = (*dict.fromkeys((*first.sampling.notes, *second.sampling.notes)),)
        flags = (*dict.fromkeys((*first.sampling.flags, *second.sampling.flags)),)
        if aligned is not second:
            notes = (*notes, f"{second.name} was resampled to the grid of {first.name}")
            flags = (*flags, "resampled_to_before")
        yield RasterPair(first, aligned, notes, flags)


def check_common(is_known: bool, before: Path, after: Path) -> None:
    """Raise a ToolError ``nothing_found`` unless it ``is_known`` that a pixel has data in both files."""
    if not is_known:
        why = f"no pixel has data in both {shown_name(before)} and {shown_name(after)}"
        hint = "check the files' nodata values, and that they show the same place"
        raise ToolError("nothing_found", why, argument="after", hint=hint)


def tile_of(source: RasterSource) -> tuple[int, int]:
    """Return rows and columns of the stored blocks of a raster, a row where they are too high to be read whole."""
    rows, columns = tile_shape(source)
    return (rows if rows <= _TALLEST_BLOCK else 1), columns


def slices_of(box: Box) -> tuple[slice, slice]:
    return slice(box[1], box[3]), slice(box[0], box[2])


class Frame(NamedTuple):
    """Compared part of a pair, its scale, and the size of the smallest patch that counts, pixels."""

    box: Box
    scale: Scale
    least_px: int
    flags: tuple[str, ...]

    def parts(self, tile: tuple[int, int]) -> Iterator[Box]:
        """Yield blocks of the box, or the whole box if small patches are removed, as these can cross blocks."""
        return block_boxes(self.box, tile, BLOCK_PX) if self.least_px == 1 else iter((self.box,))


def frame_of(
    request: ChangeRequest, size: tuple[int, int], files: Sequence[Path], in_file: float | None
) -> Frame:
    """Return the part of a pair of ``size`` (width, height) that the call requests. The scale is that of the call, else
    the one known of any of the files, else ``in_file``, that of the raster itself."""
    name = shown_name(files[0])
    box, clipped = clipped_region(request.region, *size, name)
    known = next((info.gsd_m for info in map(file_info, files) if info and info.gsd_m), None)
    scale = choose_scale(request.gsd_m, known, in_file)
    least = request.least_px(scale.gsd_m, 1)
    if least > 1:
        refuse_too_large(box[2] - box[0], box[3] - box[1], name, "taking out small patches")
    return Frame(box, scale, least, (*scale.flags, *clipped))


def refuse_too_large(width: int, height: int, name: str, why: str) -> None:
    """Raise a ToolError ``limit`` if an area is too large to be held in memory as a whole."""
    if width * height > _LARGEST_WHOLE_PX:
        most = f"{why} is done up to {_LARGEST_WHOLE_PX // 1_000_000} million"
        why = f"{name} has {width} x {height} pixels here; {most}"
        raise ToolError("limit", why, argument="before", hint="take a part with region")


def thumbnail(source: RasterSource, bands: Sequence[int]) -> NDArray[np.float32]:
    """Read bands of the whole raster at the size of a panel, float32 (bands, rows, columns), NaN without data: every
    n-th pixel of blocks, so rasters of any size fit in memory."""
    step = max(1, int(np.ceil(max(source.width, source.height) / (2 * PANEL_PX))))
    if step == 1:
        return source.read(bands)
    whole = (0, 0, source.width, source.height)
    picture = np.empty(
        (len(bands), -(-source.height // step), -(-source.width // step)), np.float32
    )
    for box in block_boxes(whole, tile_of(source), BLOCK_PX):
        for part, values in zip(picture, source.read(bands, box), strict=True):
            sample_into(part, box, values, whole, step)
    return picture


def grey_pair(
    first: NDArray[np.float32], second: NDArray[np.float32]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return two bands as grey pictures with the same stretch, so that equal values look equal; no data is white."""
    sample = np.concatenate([band[np.isfinite(band)] for band in (first, second)])
    low, high = np.percentile(sample, (1, 99)) if sample.size else (0.0, 1.0)

    def grey(band: NDArray[np.float32]) -> NDArray[np.uint8]:
        scaled = (np.where(np.isfinite(band), band, high) - low) / max(float(high - low), 1e-9)
        grey_levels = np.where(np.isfinite(band), np.clip(scaled, 0, 1) * 235, 255).astype(np.uint8)
        return np.dstack([grey_levels, grey_levels, grey_levels])

    return grey(first), grey(second)


class Shift(NamedTuple):
    """Displacement of the content of the second picture to the right and down, pixels.

    ``is_clear``: True if the shift can be trusted; otherwise it is 0.
    """

    dx: float
    dy: float
    is_clear: bool


def shift_between(
    before: NDArray[np.uint8], after: NDArray[np.uint8], valid: NDArray[np.bool_]
) -> Shift:
    """Measure the shift of ``after`` against ``before``, (rows, columns, 3), by phase correlation of edge strengths
    (Kuglin and Hines 1975), which change less with light and season than brightness does. It is clear if the edge
    strengths correlate after it is undone, and better than before."""
    height, width = valid.shape
    if min(height, width) < _SMALLEST_SIDE:
        return Shift(0.0, 0.0, is_clear=False)
    shrink = min(1.0, _LONGEST_SIDE / max(height, width))
    size = (max(1, round(width * shrink)), max(1, round(height * shrink)))
    small_valid = cv2.resize(valid.astype(np.float32), size, interpolation=cv2.INTER_AREA) > 0.99
    first, second = (_edges(picture, small_valid, size) for picture in (before, after))
    if not first.any() or not second.any():
        return Shift(0.0, 0.0, is_clear=False)
    window = np.asarray(cv2.createHanningWindow(size, cv2.CV_32F), np.float32)
    (dx, dy), _ = cv2.phaseCorrelate(first, second, window)
    still = _correlation(first, second)
    back = np.array([[1, 0, -dx], [0, 1, -dy]], np.float32)
    moved = _correlation(
        first, np.asarray(cv2.warpAffine(second, back, second.shape[::-1]), np.float32)
    )
    small = max(abs(dx), abs(dy)) < 1
    is_clear = moved > (_CLEAR_AGREEMENT if small else _AGREEMENT_TO_MOVE) and (
        small or moved > still + _CLEAR_GAIN
    )
    if not is_clear:
        return Shift(0.0, 0.0, is_clear=still > _CLEAR_AGREEMENT)
    return Shift(float(dx / shrink), float(dy / shrink), is_clear=True)


def _edges(
    picture: NDArray[np.uint8], valid: NDArray[np.bool_], size: tuple[int, int]
) -> NDArray[np.float32]:
    """Return the root of the gradient of lightness, which tames strong edges, with mean 0 over valid pixels."""
    grey = cv2.cvtColor(
        cv2.resize(picture, size, interpolation=cv2.INTER_AREA), cv2.COLOR_RGB2GRAY
    ).astype(np.float32)
    grey = cv2.GaussianBlur(grey, (0, 0), 1.0)
    strength = np.sqrt(
        np.hypot(cv2.Sobel(grey, cv2.CV_32F, 1, 0), cv2.Sobel(grey, cv2.CV_32F, 0, 1))
    )
    inside = cv2.erode(valid.astype(np.uint8), np.ones((5, 5), np.uint8), borderValue=1) > 0
    if not inside.any():
        return np.zeros_like(strength)
    strength = strength - strength[inside].mean()
    strength[~inside] = 0
    return np.asarray(strength, np.float32)


def _correlation(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    size = float(
        np.sqrt((first * first).sum(dtype=np.float64) * (second * second).sum(dtype=np.float64))
    )
    return float((first * second).sum(dtype=np.float64)) / size if size else 0.0


class Pictures(NamedTuple):
    """Registered pair of pictures on one grid.

    ``before``, ``after``: uint8 (rows, columns, 3). ``infrared``: near infrared of both dates on the scale of the
    colours, None without it.
    """

    before: NDArray[np.uint8]
    after: NDArray[np.uint8]
    valid: NDArray[np.bool_]
    box: Box
    gsd_m: float | None
    shift_px: tuple[float, float] | None
    infrared: tuple[NDArray[np.float32], NDArray[np.float32]] | None
    notes: tuple[str, ...]
    flags: tuple[str, ...]


def read_pictures(
    before: Path,
    after: Path,
    bands: Mapping[str, int | str] | None,
    request: ChangeRequest,
    register: bool,
) -> Pictures:
    """Read a pair, resample it to one grid and undo a shift if ``register`` is True.

    The shift is measured in any case: the flag ``registration_uncertain`` says that the two may not show the same
    ground, ``shift_not_undone`` that a clear shift was left.

    Raises:
        ToolError: ``shape_mismatch`` (sizes; a shift of over 5 % of the width that was to be undone), ``crs_mismatch``,
            ``limit``, ``region_empty``, ``nothing_found``, and those of a file that cannot be read.
    """
    views = _read_views(before, after, bands)
    first, second = views.first.pixels, views.second.pixels
    valid = views.first.valid & views.second.valid
    height, width = valid.shape
    refuse_too_large(width, height, shown_name(before), "comparing pictures")
    check_common(bool(valid.any()), before, after)
    whole_request = request._replace(min_area_px=None, min_area_m2=None)
    frame = frame_of(whole_request, (width, height), (before, after), views.in_file_m)

    # Rasters with a coordinate system lie on each other already.
    registration = _Registration()
    if not views.is_located:
        names = shown_name(before), shown_name(after)
        registration = _register(first, second, valid, names, undo=register)
    is_moved = registration.move_px != (0, 0)
    if is_moved:
        second, valid = _move_back(second, valid, registration.move_px)

    infrared = None
    first_infrared, second_infrared = views.first.infrared, views.second.infrared
    if first_infrared is not None and second_infrared is not None and not is_moved:
        infrared = first_infrared, second_infrared
    flags = (
        *views.flags,
        *frame.flags,
        *registration.flags,
        *_flags_of_content((first, second), valid),
    )
    return Pictures(
        before=first,
        after=second,
        valid=valid,
        box=frame.box,
        gsd_m=frame.scale.gsd_m,
        shift_px=registration.shift_px,
        infrared=infrared,
        notes=(*views.notes, *frame.scale.notes, *registration.notes),
        flags=tuple(dict.fromkeys(flags)),
    )


class _Registration(NamedTuple):
    """How the second picture of a pair is laid on the first.

    ``shift_px``: measured shift to the right and down that is undone, None if none is. ``move_px``: the same in whole
    pixels, by which the second picture is moved back.
    """

    shift_px: tuple[float, float] | None = None
    move_px: tuple[int, int] = (0, 0)
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def _register(
    first: NDArray[np.uint8],
    second: NDArray[np.uint8],
    valid: NDArray[np.bool_],
    names: tuple[str, str],
    *,
    undo: bool,
) -> _Registration:
    """Measure the shift of the second picture, and say whether it is to be undone. ToolError ``shape_mismatch`` if it
    is to be undone and too large."""
    shift = shift_between(first, second, valid)
    width = valid.shape[1]
    is_far = max(abs(shift.dx), abs(shift.dy)) > _LARGEST_SHIFT * width
    if is_far and undo:
        off = f"{shift.dx:.0f}, {shift.dy:.0f} px"
        why = f"{names[1]} is shifted by {off} against {names[0]}, over 5 % of its width"
        hint = "cut both to the same ground, or give georeferenced rasters"
        raise ToolError("shape_mismatch", why, argument="after", hint=hint)
    # Whoever leaves a shift as it is has still to hear that two pictures show different ground.
    flags = ("registration_uncertain",) if is_far or not shift.is_clear else ()
    dx, dy = round(shift.dx), round(shift.dy)
    notes: tuple[str, ...] = ()
    if undo:
        if (dx, dy) != (0, 0):
            notes = (f"{names[1]} moved back by {dx}, {dy} px (phase correlation)",)
        shift_px = round(shift.dx, 2), round(shift.dy, 2)
        return _Registration(shift_px, (dx, dy), notes, flags)
    if (dx, dy) != (0, 0):
        flags = (*flags, "shift_not_undone")
        notes = (f"{names[1]} lies {dx}, {dy} px off (phase correlation) and was not moved",)
    return _Registration(notes=notes, flags=flags)


def _move_back(
    picture: NDArray[np.uint8], valid: NDArray[np.bool_], move_px: tuple[int, int]
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Move a picture to the left and up, and leave out the pixels of ``valid`` that it then has no data for.

    Whole pixels alone are moved: interpolation would blur this picture but not the other, and contrast counts.
    """
    dx, dy = move_px
    height, width = valid.shape
    back = np.array([[1, 0, -dx], [0, 1, -dy]], np.float32)
    moved = cv2.warpAffine(
        picture,
        back,
        (width, height),
        flags=cv2.INTER_NEAREST,
        borderMode=cv2.BORDER_REPLICATE,
    )
    has_data = cv2.warpAffine(
        valid.astype(np.uint8), back, (width, height), flags=cv2.INTER_NEAREST, borderValue=0
    )
    return np.asarray(moved, np.uint8), valid & (has_data > 0)


def _flags_of_content(pictures: Sequence[NDArray[np.uint8]], valid: NDArray[np.bool_]) -> list[str]:
    """Return flags of pictures that are too dark or of one colour, judged by every n-th valid pixel."""
    step = max(1, valid.size // _SAMPLE_PX)
    sampled = np.ascontiguousarray(valid.ravel()[::step]).view(np.uint8)[None]
    flags: list[str] = []
    if not sampled.any():
        return flags
    for picture in pictures:
        pixels = np.ascontiguousarray(picture.reshape(1, -1, 3)[:, ::step])
        mean, spread = cv2.meanStdDev(pixels, mask=sampled)
        if float(mean.mean()) < _DARK:
            flags.append("too_dark")
        if float(spread.max()) < _FLAT:
            flags.append("featureless_image")
    return flags


class _View(NamedTuple):
    """Picture of one date: uint8 (rows, columns, 3), and what is valid of it."""

    pixels: NDArray[np.uint8]
    valid: NDArray[np.bool_]
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    infrared: NDArray[np.float32] | None = None


class _Views(NamedTuple):
    """Views of both dates on one grid.

    ``in_file_m``: ground sampling distance that the first raster states, metres. ``is_located``: True if its place on
    the ground is known, so that the two need no registration.
    """

    first: _View
    second: _View
    in_file_m: float | None
    is_located: bool
    notes: tuple[str, ...]
    flags: tuple[str, ...]


def _read_views(before: Path, after: Path, bands: Mapping[str, int | str] | None) -> _Views:
    """Read both dates: rasters on the grid of the first, photographs of the same size."""
    in_file_m: float | None = None
    is_located = False
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    if bands is not None or are_rasters(before, after):
        with open_raster_pair(before, after) as pair:
            source = pair.first
            refuse_too_large(source.width, source.height, shown_name(before), "comparing pictures")
            first = _view_of_raster(pair.first, before, bands)
            second = _view_of_raster(pair.second, after, bands)
            in_file_m, is_located = source.sampling.gsd_m, source.dataset.crs is not None
            notes, flags = pair.notes, pair.flags
    else:
        first, second = _view_of_photo(before, "before"), _view_of_photo(after, "after")
        names = shown_name(before), shown_name(after)
        check_sizes(first.valid.shape, second.valid.shape, names, "after")
    return _Views(
        first,
        second,
        in_file_m,
        is_located,
        notes=(*notes, *first.notes, *second.notes),
        flags=(*flags, *first.flags, *second.flags),
    )


def _view_of_photo(path: Path, argument: str) -> _View:
    name = shown_name(path)
    image = read_image(path, argument=argument, shown_as=name)
    valid, borders, flags = image.without_border(name)
    return _View(
        image.pixels,
        valid,
        (*(f"{name}: {note}" for note in image.notes), *borders),
        (*image.flags, *flags),
    )


def _view_of_raster(
    source: RasterSource, path: Path, bands: Mapping[str, int | str] | None
) -> _View:
    known = known_roles(source, bands, file_info(path))
    roles = known.roles
    numbers = source.data_bands if bands is None else list(roles.values())
    values = source.read(numbers)
    valid = np.asarray(np.isfinite(values).all(axis=0))
    by_role: dict[Role, NDArray[np.float32]] = {
        role: values[numbers.index(number)] for role, number in roles.items() if number in numbers
    }
    if not valid.any() or not {"R", "G", "B"} <= by_role.keys():
        picture = picture_of(source, argument=source.argument)
        common_valid = valid if picture.valid is None else valid & picture.valid
        notes = tuple(f"{source.name}: {note}" for note in (*known.notes, *picture.notes))
        return _View(picture.pixels, common_valid, notes)
    colours = np.stack([by_role[role] for role in ("R", "G", "B")])
    top = 255.0 if source.dtype == "uint8" else float(np.percentile(colours[:, valid], 99.9))
    factor = np.float32(255.0 / top if top > 0 else 1.0)
    scaled = np.clip(np.where(valid, colours, 0) * factor, 0, 255).round().astype(np.uint8)
    infrared = (
        np.where(valid, by_role["NIR"] * factor, 0).astype(np.float32) if "NIR" in by_role else None
    )
    notes = tuple(f"{source.name}: {note}" for note in known.notes)
    if top != 255.0:
        notes = (*notes, f"{source.name}: bands scaled by one factor ({top:.4g} to 255)")
    return _View(np.ascontiguousarray(scaled.transpose(1, 2, 0)), valid, notes, infrared=infrared)
