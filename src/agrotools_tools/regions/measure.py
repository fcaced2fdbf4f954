"""Picture or label raster of a region, and its measurements: colours, plants, indices, classes, bands, form, texture.

Texture is measured by grey-level co-occurrence (Haralick, Shanmugam and Dinstein 1973).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from skimage.feature import graycomatrix
from skimage.measure import regionprops

from agrotools.calling.pictures import known_roles, notes_on_unsure
from agrotools.core import SampleFile, ToolError
from agrotools.vision import Box, Role, overlay
from agrotools.vision.formats import MAX_PIXELS, clipped_region, file_format
from agrotools.vision.overlay import Colour, Layer
from agrotools.vision.rasters import RasterSource, chosen_roles, open_raster, roles_by_name
from agrotools.vision.reading import bounds, read_image, refuse_without_data, stretched_picture
from agrotools_tools.regions.result import (
    BandValues,
    DominantColour,
    HealthHints,
    RegionShape,
    TextureValues,
)
from agrotools_tools.vision import Index
from agrotools_tools.vision.colours import dominant_colours
from agrotools_tools.vision.vegetation import (
    INDICES,
    Vegetation,
    choose_index,
    hull_px,
    index_values,
    segment,
)

_CHANNELS = ("red", "green", "blue")
_WHOLE_PX = 16_000_000
"""Largest raster, pixels, that is read whole; of larger ones only the region is read."""
_MOST_BANDS = 12


@dataclass(frozen=True, eq=False)
class RegionPicture:
    """Picture or raster with a region.

    ``pixels``: uint8 (rows, columns, 3), for display. ``natural``: True if they are natural colours. ``bands``: values
    (rows, columns) by role. ``values``: values by band name, for rasters and grey pictures. ``valid``: bool, pixels
    with data. ``box``: the region within these arrays. ``origin``: x, y of their first pixel in the file. ``size``:
    width and height of the file.
    """

    pixels: NDArray[np.uint8]
    natural: bool
    bands: dict[Role, NDArray[Any]]
    values: dict[str, NDArray[np.float32]]
    valid: NDArray[np.bool_]
    box: Box
    origin: tuple[int, int]
    size: tuple[int, int]
    gsd_m: float | None
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def read_region_picture(
    path: Path, bands: Mapping[str, int | str] | None, region: Box | None, info: SampleFile | None
) -> RegionPicture:
    """Read a photograph or raster for the description of a region."""
    name = info.name if info else path.name
    if file_format(path, shown_as=name) in ("tiff", "envi"):
        with open_raster(path, shown_as=name) as source:
            return _read_raster(source, bands, region, info)
    image = read_image(path, shown_as=name)
    box, flags = clipped_region(region, image.width, image.height, name)
    known = info.bands if info and info.bands and len(info.bands) == len(_CHANNELS) else None
    roles = (
        chosen_roles(bands, known or _CHANNELS, file=name)
        if bands is not None
        else roles_by_name(known or _CHANNELS).known
    )
    _, borders, border_flags = image.without_border(name)
    natural = bands is None and all(
        roles.get(role) == k for k, role in enumerate(("R", "G", "B"), start=1)
    )
    return RegionPicture(
        pixels=image.pixels,
        natural=natural,
        bands={}
        if image.is_grey and natural
        else {role: image.pixels[..., n - 1] for role, n in roles.items()},
        values={"grey": image.pixels[..., 0].astype(np.float32)}
        if image.is_grey and natural
        else {},
        valid=np.ones(image.pixels.shape[:2], np.bool_) if image.valid is None else image.valid,
        box=box,
        origin=(0, 0),
        size=(image.width, image.height),
        gsd_m=info.gsd_m if info else None,
        notes=(*image.notes, *borders),
        flags=(
            *image.flags,
            *flags,
            *border_flags,
            *(("no_colour",) if image.is_grey and natural else ()),
        ),
    )


def _read_raster(
    source: RasterSource,
    bands: Mapping[str, int | str] | None,
    region: Box | None,
    info: SampleFile | None,
) -> RegionPicture:
    known = known_roles(source, bands, info)
    roles, names = known.roles, known.names
    notes = [*source.sampling.notes, *known.notes, *notes_on_unsure(source, known)]
    flags = [*source.sampling.flags]
    colours = source.data_bands
    box, clipped = clipped_region(region, source.width, source.height, source.name)
    window = (
        box if source.width * source.height > _WHOLE_PX else (0, 0, source.width, source.height)
    )
    numbers = list(dict.fromkeys([*roles.values(), *colours[:_MOST_BANDS]]))
    if len(colours) > _MOST_BANDS:
        notes.append(f"of {len(colours)} bands the first {_MOST_BANDS} are described")
    read = dict(zip(numbers, source.read(numbers, window), strict=True))
    valid = np.asarray(np.any([np.isfinite(values) for values in read.values()], axis=0))
    refuse_without_data(valid, source.name)
    by_role: dict[Role, NDArray[Any]] = {role: read[number] for role, number in roles.items()}
    natural = {"R", "G", "B"} <= by_role.keys()
    if natural:
        pixels = _natural_colours(by_role, source.dtype == "uint8", notes)
    else:
        flags.append("no_natural_colours")
        pixels = stretched_picture(by_role or {"R": read[colours[0]]})
    if not roles and not known.unsure and len(colours) > 1:
        flags.append("bands_unknown")
        notes.append(
            "the file does not say which band is which: give bands, e.g. {'R': 3, 'NIR': 4}"
        )
    left, top = window[:2]
    return RegionPicture(
        pixels=pixels,
        natural=natural,
        bands=by_role,
        values={names[n - 1] or f"band {n}": read[n] for n in colours[:_MOST_BANDS]},
        valid=valid,
        box=(box[0] - left, box[1] - top, box[2] - left, box[3] - top),
        origin=(left, top),
        size=(source.width, source.height),
        gsd_m=(info.gsd_m if info and info.gsd_m else None) or source.sampling.gsd_m,
        notes=tuple(notes),
        flags=(*flags, *clipped),
    )


def _natural_colours(
    bands: Mapping[Role, NDArray[Any]], is_8_bit: bool, notes: list[str]
) -> NDArray[np.uint8]:
    stack = np.dstack([bands[role] for role in ("R", "G", "B")])
    if not is_8_bit:
        there = stack[np.isfinite(stack)]
        top = float(np.percentile(there, 99.9)) if there.size else 1.0
        stack = stack * np.float32(255.0 / top if top > 0 else 1.0)
        notes.append(f"red, green and blue scaled by one factor ({top:.4g} to 255)")
    return np.clip(np.where(np.isfinite(stack), stack, 255), 0, 255).round().astype(np.uint8)


_COLOURS: tuple[Colour, ...] = (
    overlay.BROWN,
    overlay.SKY_BLUE,
    overlay.VERMILLION,
    overlay.YELLOW,
    overlay.BLUISH_GREEN,
    overlay.ORANGE,
    overlay.BLUE,
    overlay.REDDISH_PURPLE,
    (60, 60, 60),
    (150, 150, 150),
)
_MOST_CLASSES = 64
"""Largest number of colours of a palette picture that is a map of classes; one with more is a photograph."""


def is_label_file(
    path: Path, info: SampleFile | None, label_map: Mapping[str, Sequence[int]] | None
) -> Literal["known", "guessed", ""]:
    """Return the evidence that the values of a file are class numbers: ``known`` if the call or the sample says so;
    ``guessed`` for a palette PNG of up to 64 values, or a grey PNG of up to 16 values that are hard to tell by eye
    (at most 32), or of 0 and 255 alone."""
    if label_map is not None or (info is not None and (info.kind == "mask" or info.classes)):
        return "known"
    if file_format(path, shown_as=info.name if info else None) != "png":
        return ""
    try:
        with Image.open(path, formats=["PNG"]) as image:
            if image.mode not in ("P", "L", "1") or image.width * image.height > MAX_PIXELS:
                return ""
            used = {value for value, count in enumerate(image.histogram()) if count}
            if image.mode == "P":
                return "guessed" if len(used) <= _MOST_CLASSES else ""
            is_small = len(used) <= 16 and max(used, default=0) <= 32
            return "guessed" if is_small or used == {0, 255} else ""
    except Exception:  # the reader, which is called next, reports the error
        return ""


def class_counts(
    classes: NDArray[np.int32], inside: NDArray[np.bool_], names: Mapping[int, str]
) -> tuple[dict[str, int], tuple[str, ...], tuple[str, ...]]:
    """Count the pixels of each class where ``inside``, largest first; also return notes and flags."""
    present, counts = (part.tolist() for part in np.unique(classes[inside], return_counts=True))
    pixel_counts: Counter[str] = Counter()
    for number, count in zip(present, counts, strict=True):
        pixel_counts[_class_name(number, names)] += count
    ranked = dict(sorted(pixel_counts.items(), key=lambda item: (-item[1], item[0])))
    unnamed = [str(number) for number in present if number not in names]
    if not unnamed:
        return ranked, (), ()
    listed = ", ".join(unnamed[:12]) + (" ..." if len(unnamed) > 12 else "")
    return (
        ranked,
        (f"what class numbers {listed} mean is not known: give label_map",),
        ("unnamed_classes",),
    )


def class_layers(
    classes: NDArray[np.int32],
    inside: NDArray[np.bool_],
    counts: Mapping[str, int],
    names: Mapping[int, str],
) -> tuple[NDArray[np.uint8], list[Layer]]:
    """Return a picture of the classes, uint8 (rows, columns), and its layers: nine classes, then the rest as one."""
    total = sum(counts.values())
    places = {name: place for place, name in enumerate(list(counts)[: len(_COLOURS) - 1], start=1)}
    layer_values = np.zeros(classes.shape, np.uint8)
    for number in np.unique(classes[inside]).tolist():
        layer_values[inside & (classes == number)] = places.get(
            _class_name(number, names), len(_COLOURS)
        )
    layers = [
        Layer(place, _COLOURS[place - 1], f"{name} {100 * counts[name] / total:.2f} %")
        for name, place in places.items()
    ]
    rest = total - sum(counts[name] for name in places)
    if rest:
        layers.append(
            Layer(len(_COLOURS), _COLOURS[-1], f"other classes {100 * rest / total:.2f} %")
        )
    return layer_values, layers


def _class_name(number: int, names: Mapping[int, str]) -> str:
    return names.get(number, f"class {number}")


def plants_of(picture: RegionPicture) -> Vegetation | None:
    """Segment plants in the whole picture, which helps to find the threshold; None if the bands do not allow it."""
    try:
        index = choose_index("auto", picture.bands)
    except ToolError:
        return None
    bands = dict(picture.bands)
    if "B" in INDICES[index].bands:
        bands |= {role: picture.pixels[..., k] for k, role in enumerate(("R", "G", "B"))}
    valid = picture.valid & np.all(
        [np.isfinite(bands[role]) for role in INDICES[index].bands], axis=0
    )
    return segment(index, bands, valid) if valid.any() else None


def mean_index(index: Index, picture: RegionPicture, inside: NDArray[np.bool_]) -> float | None:
    """Return the mean of an index over a region, or None if its bands are missing."""
    if not all(role in picture.bands for role in INDICES[index].bands):
        return None
    x0, y0, x1, y1 = picture.box
    values = index_values(index, {role: band[y0:y1, x0:x1] for role, band in picture.bands.items()})
    there = values[inside[y0:y1, x0:x1]]
    there = there[np.isfinite(there)]
    return float(there.mean(dtype=np.float64)) if there.size else None


def colours_of(samples: NDArray[np.uint8]) -> tuple[DominantColour, ...]:
    """Return the dominant colours of pixels, uint8 (pixels, 3)."""
    return tuple(
        DominantColour(name=colour.name, rgb=colour.rgb, pct=100 * colour.share)
        for colour in dominant_colours(samples)
    )


def health_of(lab: NDArray[np.float32]) -> HealthHints:
    """Return the shares of green, yellow and brown pixels by their hue in Lab.

    Green is 105 to 180 degrees; yellow 80 to 105 with lightness of at least 45; brown 25 to 105 with lightness below 60
    if not yellow. Pixels with a chroma below 10 are grey and belong to none of them.
    """
    lightness, a, b = lab.T
    hue = np.degrees(np.arctan2(b, a))
    coloured = np.hypot(a, b) >= 10
    green = coloured & (hue >= 105) & (hue < 180)
    yellow = coloured & (hue >= 80) & (hue < 105) & (lightness >= 45)
    brown = coloured & (hue >= 25) & ~yellow & (hue < 105) & (lightness < 60)
    return HealthHints(
        green_pct=100 * float(green.mean()),
        yellow_pct=100 * float(yellow.mean()),
        brown_pct=100 * float(brown.mean()),
    )


def band_values(picture: RegionPicture, inside: NDArray[np.bool_]) -> tuple[BandValues, ...]:
    """Return the statistics of each band of a raster over a region; bands without data in it are omitted."""
    statistics: list[BandValues] = []
    for name, values in picture.values.items():
        there = values[inside & np.isfinite(values)].astype(np.float64)
        if there.size:
            mean, sd, low, high = (
                float(of()) for of in (there.mean, there.std, there.min, there.max)
            )
            statistics.append(BandValues(name=name, mean=mean, sd=sd, low=low, high=high))
    return tuple(statistics)


def shape_of(mask: NDArray[np.bool_]) -> RegionShape:
    """Measure the form of a mask with at least one pixel: moments, hull and perimeter (Crofton's formula over four
    directions) are those of the largest piece (8-connected), with its holes left open."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats(
        mask.astype(np.uint8), connectivity=8
    )
    areas = stats[1:count, cv2.CC_STAT_AREA]
    largest = 1 + int(np.argmax(areas))
    x, y, w, h = (int(stats[largest, key]) for key in range(4))
    piece = np.asarray(labels)[y : y + h, x : x + w] == largest
    form = regionprops(piece.astype(np.uint8))[0]
    area, perimeter = float(piece.sum()), float(form.perimeter_crofton)
    return RegionShape(
        pieces=count - 1,
        box=bounds(mask),
        largest_px=int(area),
        perimeter_px=perimeter,
        equivalent_diameter_px=float(np.sqrt(4 * area / np.pi)),
        eccentricity=float(form.eccentricity),
        solidity=min(1.0, area / hull_px(piece)),
        circularity=min(1.0, 4 * np.pi * area / perimeter**2) if perimeter > 0 else 1.0,
    )


LEVELS = 32
_MOST_PX = 1_000_000


def cooccurrence(grey: NDArray[np.uint8], valid: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the symmetric shares of pairs of neighbouring ``valid`` levels, (32, 32), in four directions."""
    levels = np.where(valid, grey >> 3, LEVELS).astype(np.uint8)
    counts = graycomatrix(levels, [1], np.arange(4) * np.pi / 4, LEVELS + 1, symmetric=True)
    pairs = counts.sum(axis=(2, 3))[:LEVELS, :LEVELS].astype(np.float64)
    return pairs / max(float(pairs.sum()), 1.0)


def texture_of(pixels: NDArray[np.uint8], valid: NDArray[np.bool_]) -> TextureValues | None:
    """Measure the texture of the luma where ``valid``; None without a pair of neighbours. Of pictures above a
    megapixel only the middle rows are measured, at full resolution, because texture depends on resolution."""
    rows = max(2, _MOST_PX // max(1, pixels.shape[1]))
    if pixels.shape[0] > rows:
        top = (pixels.shape[0] - rows) // 2
        pixels, valid = pixels[top : top + rows], valid[top : top + rows]
    grey = np.asarray(cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY), np.uint8)
    shares = cooccurrence(grey, valid)
    if not shares.any():
        return None
    i, j = np.mgrid[0:LEVELS, 0:LEVELS]
    some = shares[shares > 0]
    marginal = shares.sum(axis=1)
    level = np.arange(LEVELS)
    mean = float((marginal * level).sum())
    variance = float((marginal * (level - mean) ** 2).sum())
    covariance = float((shares * (i - mean) * (j - mean)).sum())
    return TextureValues(
        entropy=max(0.0, float(-(some * np.log2(some)).sum())),
        contrast=float((shares * (i - j) ** 2).sum()),
        homogeneity=float((shares / (1 + (i - j) ** 2)).sum()),
        correlation=covariance / variance if variance > 1e-12 else None,
    )
