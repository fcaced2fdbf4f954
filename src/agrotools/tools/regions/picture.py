"""Picture or label raster of a region: colours to show, bands by role, valid pixels, scale, and counts of classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agrotools.core import SampleFile, ToolError
from agrotools.vision import Box, Role
from agrotools.vision.band_roles import chosen_roles, roles_by_name
from agrotools.vision.formats import MAX_PIXELS, clipped_region, file_format
from agrotools.vision.overlay import (
    BLUE,
    BLUISH_GREEN,
    BROWN,
    ORANGE,
    REDDISH_PURPLE,
    SKY_BLUE,
    VERMILLION,
    YELLOW,
    Colour,
    Layer,
)
from agrotools.vision.rasters import RasterSource, open_raster
from agrotools.vision.reading import read_image, stretched_picture

_CHANNELS = ("red", "green", "blue")
_WHOLE_PX = 16_000_000
"""Larger rasters are read around the region only."""
_MOST_BANDS = 12


@dataclass(frozen=True, eq=False)
class RegionPicture:
    """``pixels``: uint8 (rows, columns, 3) to look at. ``natural``: whether these are natural colours.

    ``bands``: role to values (rows, columns); ``values``: band name to values, of rasters. ``valid``: bool, where there
    is data. ``box``: the region within these arrays; ``origin``: where they begin in the file; ``size``: width and
    height of the file.
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
    """Read a photograph or raster of which a region is to be described.

    Raises:
        ToolError: as the readers; ``band_not_found``, ``region_empty``.
    """
    name = info.name if info else path.name
    if file_format(path, shown_as=name) in ("tiff", "envi"):
        with open_raster(path, shown_as=name) as source:
            return _read_raster(source, bands, region, info)
    image = read_image(path, shown_as=name)
    box, flags = clipped_region(region, image.width, image.height, name)
    known = info.bands if info and info.bands and len(info.bands) == len(_CHANNELS) else None
    roles = (
        chosen_roles(bands, known or _CHANNELS, file=name) if bands is not None else roles_by_name(known or _CHANNELS)
    )
    natural = bands is None and all(roles.get(role) == k for k, role in enumerate(("R", "G", "B"), start=1))
    return RegionPicture(
        pixels=image.pixels,
        natural=natural,
        bands={} if image.is_grey and natural else {role: image.pixels[..., n - 1] for role, n in roles.items()},
        values={},
        valid=np.ones(image.pixels.shape[:2], np.bool_) if image.valid is None else image.valid,
        box=box,
        origin=(0, 0),
        size=(image.width, image.height),
        gsd_m=info.gsd_m if info else None,
        notes=image.notes,
        flags=(*image.flags, *flags, *(("no_colour",) if image.is_grey and natural else ())),
    )


def _read_raster(
    source: RasterSource, bands: Mapping[str, int | str] | None, region: Box | None, info: SampleFile | None
) -> RegionPicture:
    known = info.bands if info and info.bands and len(info.bands) == source.count else None
    names = known or source.band_names
    roles = chosen_roles(bands, names, file=source.name) if bands is not None else roles_by_name(names) or source.roles
    notes, flags = [*source.sampling.notes], [*source.sampling.flags]
    colours = [n for n in range(1, source.count + 1) if n != source.alpha_band]
    if not roles and len(colours) == 3 and source.dtype == "uint8":
        roles = roles_by_name(_CHANNELS)
        notes.append("bands without names: taken as red, green, blue")
    box, clipped = clipped_region(region, source.width, source.height, source.name)
    window = box if source.width * source.height > _WHOLE_PX else (0, 0, source.width, source.height)
    numbers = list(dict.fromkeys([*roles.values(), *colours[:_MOST_BANDS]]))
    if len(colours) > _MOST_BANDS:
        notes.append(f"of {len(colours)} bands the first {_MOST_BANDS} are described")
    read = dict(zip(numbers, source.read(numbers, window), strict=True))
    valid = np.asarray(np.any([np.isfinite(values) for values in read.values()], axis=0))
    if not valid.any():
        raise ToolError(
            "nothing_found",
            f"{source.name} holds no data there: all pixels are no-data",
            argument="image",
            hint="choose another region, or check the file's nodata value",
        )
    by_role: dict[Role, NDArray[Any]] = {role: read[number] for role, number in roles.items()}
    natural = {"R", "G", "B"} <= by_role.keys()
    if natural:
        pixels = _natural_colours(by_role, source.dtype == "uint8", notes)
    else:
        flags.append("no_natural_colours")
        pixels = stretched_picture(by_role or {"R": read[colours[0]]})
    if not roles and len(colours) > 1:
        flags.append("bands_unknown")
        notes.append("the file does not say which band is which: give bands, e.g. {'R': 3, 'NIR': 4}")
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


def _natural_colours(bands: Mapping[Role, NDArray[Any]], is_8_bit: bool, notes: list[str]) -> NDArray[np.uint8]:
    stack = np.dstack([bands[role] for role in ("R", "G", "B")])
    if not is_8_bit:
        there = stack[np.isfinite(stack)]
        top = float(np.percentile(there, 99.9)) if there.size else 1.0
        stack = stack * np.float32(255.0 / top if top > 0 else 1.0)
        notes.append(f"red, green and blue scaled by one factor ({top:.4g} to 255)")
    return np.clip(np.where(np.isfinite(stack), stack, 255), 0, 255).round().astype(np.uint8)


_COLOURS: tuple[Colour, ...] = (
    BROWN,
    SKY_BLUE,
    VERMILLION,
    YELLOW,
    BLUISH_GREEN,
    ORANGE,
    BLUE,
    REDDISH_PURPLE,
    (60, 60, 60),
    (150, 150, 150),
)
_MOST_CLASSES = 64
"""A palette picture with more colours is a photograph of few colours rather than a map of classes."""


def is_label_file(
    path: Path, info: SampleFile | None, label_map: Mapping[str, Sequence[int]] | None
) -> Literal["known", "guessed", ""]:
    """Reason why the values of a file are class numbers, as given or by their look; empty if they are not.

    By its looks a palette PNG of up to 64 values is one, and a grey PNG of up to 16 values that a person could not tell
    apart (up to 32, or 0 and 255 alone).
    """
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
    except Exception:  # the reader, which comes next, says what is wrong with the file
        return ""


def class_counts(
    classes: NDArray[np.int32],
    inside: NDArray[np.bool_],
    label_map: Mapping[str, Sequence[int]] | None,
    names: Mapping[str, str] | None,
) -> tuple[dict[str, int], tuple[str, ...], tuple[str, ...]]:
    """Pixels of each class where ``inside``, the largest first, with notes and flags.

    Args:
        label_map: name to class numbers.
        names: class number, as text, to name; used for numbers that ``label_map`` does not name.

    Raises:
        ToolError: ``invalid_argument``, a number stands for two names in ``label_map``.
    """
    class_names = _names(label_map, names)
    present, counts = np.unique(classes[inside], return_counts=True)
    pixel_counts: dict[str, int] = {}
    unnamed: list[int] = []
    for number, count in zip(present.tolist(), counts.tolist(), strict=True):
        if number not in class_names:
            unnamed.append(number)
        name = class_names.get(number, f"class {number}")
        pixel_counts[name] = pixel_counts.get(name, 0) + count
    ranked = dict(sorted(pixel_counts.items(), key=lambda item: (-item[1], item[0])))
    if not unnamed:
        return ranked, (), ()
    listed = ", ".join(str(number) for number in unnamed[:12]) + (" ..." if len(unnamed) > 12 else "")
    return ranked, (f"what class numbers {listed} mean is not known: give label_map",), ("unnamed_classes",)


def class_layers(
    classes: NDArray[np.int32],
    inside: NDArray[np.bool_],
    counts: Mapping[str, int],
    label_map: Mapping[str, Sequence[int]] | None,
    names: Mapping[str, str] | None,
) -> tuple[NDArray[np.uint8], list[Layer]]:
    """A picture of the classes, uint8 (rows, columns), and the layers that draw it: nine, then the rest."""
    class_names = _names(label_map, names)
    total = sum(counts.values())
    numbers = {name: place for place, name in enumerate(list(counts)[: len(_COLOURS) - 1], start=1)}
    layer_values = np.zeros(classes.shape, np.uint8)
    for number in np.unique(classes[inside]).tolist():
        name = class_names.get(number, f"class {number}")
        layer_values[inside & (classes == number)] = numbers.get(name, len(_COLOURS))
    layers = [
        Layer(place, _COLOURS[place - 1], f"{name} {100 * counts[name] / total:.2f} %")
        for name, place in numbers.items()
    ]
    rest = total - sum(counts[name] for name in numbers)
    if rest:
        layers.append(Layer(len(_COLOURS), _COLOURS[-1], f"other classes {100 * rest / total:.2f} %"))
    return layer_values, layers


def _names(label_map: Mapping[str, Sequence[int]] | None, names: Mapping[str, str] | None) -> dict[int, str]:
    class_names: dict[int, str] = {}
    for number, name in (names or {}).items():
        if number.strip().lstrip("-").isdigit():
            class_names[int(number)] = name
    mapped_names: dict[int, str] = {}
    for name, numbers in (label_map or {}).items():
        for number in numbers:
            if mapped_names.setdefault(number, name) != name:
                raise ToolError(
                    "invalid_argument",
                    f"label_map: {number} stands for {mapped_names[number]} and for {name}",
                    argument="label_map",
                )
    class_names |= mapped_names
    return class_names
