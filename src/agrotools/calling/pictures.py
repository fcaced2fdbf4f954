"""Field pictures from photographs and rasters (bands by role, valid pixels, a display picture, scale and masks), and
pictures and arrays in memory as arguments of tools that take files: they are written for the time of one call."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agrotools.calling.workspace import shown_name
from agrotools.core import SampleFile, ToolError
from agrotools.vision import Box, Role
from agrotools.vision.formats import clipped_region, file_format
from agrotools.vision.rasters import (
    RasterSource,
    Scale,
    chosen_roles,
    listed_bands,
    open_raster,
    place_of,
    role_of,
    roles_by_name,
)
from agrotools.vision.reading import (
    read_image,
    read_labels,
    refuse_grey,
    refuse_without_data,
    stretched_picture,
)

if TYPE_CHECKING:
    from PIL.Image import Image

_GSD_TOLERANCE = 0.02
_CHANNELS = ("red", "green", "blue")
_NATURAL: tuple[Role, ...] = ("R", "G", "B")
WHOLE_PX = 20_000_000
"""Pixels above which only the region is read; smaller rasters are read whole, which gives a better threshold."""
_PNG_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA", "I;16"})
_WIDER = {
    "bool": "uint8",
    "float16": "float32",
    "int8": "int16",
    "int64": "int32",
    "uint64": "uint32",
}
"""Types of values that TIFF or its readers lack, and the type that they are written as."""
_MOST_BANDS = 512


def choose_scale(given: float | None, known: float | None, in_file: float | None = None) -> Scale:
    """Choose the ground sampling distance, metres per pixel: ``given`` by the caller, else ``known`` of the sample
    or a sidecar file, else that of the raster. Flag ``gsd_differs_from_file`` if ``given`` differs from the other
    value by more than 2 %."""
    elsewhere = known or in_file
    if given is None:
        return Scale(elsewhere)
    if elsewhere and abs(given / elsewhere - 1) > _GSD_TOLERANCE:
        note = f"gsd_m is {given:g}, while the file says {elsewhere:.6g}; gsd_m was used"
        return Scale(given, (note,), ("gsd_differs_from_file",))
    return Scale(given)


def read_mask_pixels(
    path: Path, image_shape: tuple[int, int], image: Path, *, argument: str, called: str
) -> NDArray[np.bool_]:
    """Read the pixels of a mask of ``image`` that have data and are not 0.

    ``called``: the mask in a message, such as "a leaf mask".
    """
    name = shown_name(path)
    labels = read_labels(path, argument=argument, shown_as=name)
    rows, columns = labels.classes.shape
    refuse_other_size(
        image_shape, (rows, columns), (shown_name(image), name), argument=argument, called=called
    )
    refuse_other_place(image, path, argument=argument)
    marked = labels.classes != 0
    return marked if labels.valid is None else marked & labels.valid


def refuse_other_size(
    of_image: tuple[int, int],
    of_mask: tuple[int, int],
    names: tuple[str, str],
    *,
    argument: str,
    called: str,
) -> None:
    """Raise a ToolError ``shape_mismatch`` if a mask and its image differ in size, both (rows, columns)."""
    if of_image != of_mask:
        why = f"{names[0]} is {of_image[1]} x {of_image[0]} pixels and {names[1]} {of_mask[1]} x {of_mask[0]}"
        raise ToolError(
            "shape_mismatch", why, argument=argument, hint=f"{called} has the size of its image"
        )


_SAME_PLACE_PX = 0.5
"""Largest distance of two corners at one place, pixels: files of other programs round their corners."""


def refuse_other_place(image: Path, mask: Path, *, argument: str) -> None:
    """Raise a ToolError if an image and its mask of the same size both say where they lie, and differ.

    Raises:
        ToolError: ``crs_mismatch`` (another coordinate reference system), ``shape_mismatch`` (another place).
    """
    of_image, of_mask = place_of(image), place_of(mask)
    if of_image is None or of_mask is None:
        return
    names = f"{shown_name(image)} and {shown_name(mask)}"
    if of_image.crs != of_mask.crs:
        raise ToolError(
            "crs_mismatch", f"{names} have different coordinate systems", argument=argument
        )
    pixel = abs(of_image.transform.a) + abs(of_image.transform.b)
    corners = zip(of_image.corners(), of_mask.corners(), strict=True)
    if any(max(abs(x - u), abs(y - v)) > _SAME_PLACE_PX * pixel for (x, y), (u, v) in corners):
        raise ToolError(
            "shape_mismatch",
            f"{names} have the same size, but lie at different places",
            argument=argument,
            hint="cut both to the same area",
        )


@dataclass(frozen=True, eq=False)
class FieldPicture:
    """Picture of a field.

    ``bands``: role to values (rows, columns), uint8 for photographs, else float32 with NaN for missing data.
    ``valid``: bool (rows, columns). ``display``: display picture, uint8 (rows, columns, 3). ``photo``: the same picture
    if it has its natural colours, else None. ``box``: the requested part within these arrays. ``is_8_bit``: True if
    the stored colour bands are 0..255. ``is_raster``: True if the picture comes from a raster file.
    """

    bands: dict[Role, NDArray[Any]]
    valid: NDArray[np.bool_]
    display: NDArray[np.uint8]
    photo: NDArray[np.uint8] | None
    box: Box
    is_8_bit: bool = True
    is_raster: bool = False
    gsd_m: float | None = None
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        return self.valid.shape[0], self.valid.shape[1]


def read_field_picture(
    path: Path, bands: Mapping[str, int | str] | None, region: Box | None, info: SampleFile | None
) -> FieldPicture:
    """Read a photograph or a raster; more than ``region`` is read if that helps to find the threshold between plants
    and soil.

    Raises:
        ToolError: ``band_not_found``, ``region_empty``, ``nothing_found``, and those of a file that cannot be read.
    """
    name = info.name if info else path.name
    if file_format(path, shown_as=name) in ("tiff", "envi"):
        with open_raster(path, shown_as=name) as source:
            return read_field_raster(source, bands, region, info)
    return _read_photo(path, bands, region, info, name)


def _read_photo(
    path: Path,
    bands: Mapping[str, int | str] | None,
    region: Box | None,
    info: SampleFile | None,
    name: str,
) -> FieldPicture:
    image = read_image(path, shown_as=name)
    box, flags = clipped_region(region, image.width, image.height, name)
    known = info.bands if info and info.bands and len(info.bands) == len(_CHANNELS) else None
    natural = bands is None and not (known and roles_by_name(known).known)
    if bands is not None:
        roles = chosen_roles(bands, known or _CHANNELS, file=name)
    else:
        roles = roles_by_name(known or _CHANNELS).known or roles_by_name(_CHANNELS).known
    if natural:
        hint = "use a colour picture, a raster with a near infrared band, or a label raster"
        refuse_grey(image, name, ": without colour, plants cannot be told from soil", hint)
    valid, borders, border_flags = image.without_border(name)
    return FieldPicture(
        bands={role: image.pixels[..., number - 1] for role, number in roles.items()},
        valid=valid,
        display=image.pixels,
        photo=image.pixels,
        box=box,
        gsd_m=info.gsd_m if info else None,
        notes=(*image.notes, *borders),
        flags=(*image.flags, *flags, *border_flags),
    )


def read_field_raster(
    source: RasterSource,
    bands: Mapping[str, int | str] | None,
    region: Box | None,
    info: SampleFile | None,
) -> FieldPicture:
    """Read an open raster as :func:`read_field_picture` does."""
    known = raster_roles(source, bands, info)
    roles = known.roles
    if not roles:
        refuse_unsure(source, known, known.unsure)
    notes = [*source.sampling.notes, *known.notes, *notes_on_unsure(source, known)]
    box, clipped = clipped_region(region, source.width, source.height, source.name)
    window: Box | None = None
    is_large = source.width * source.height > WHOLE_PX
    if is_large and region is not None:
        x0, y0, x1, y1 = box
        window = box
        box = (0, 0, x1 - x0, y1 - y0)
        notes.append("the raster is large: the region was looked at alone")
    values = source.read(list(roles.values()), window)
    has_data = values.any()  # a raster that is all black has none
    valid: NDArray[np.bool_] = np.asarray(np.isfinite(values).all(axis=0) & has_data)
    refuse_without_data(valid, source.name)
    by_role = dict(zip(roles, values, strict=True))
    is_8_bit = source.dtype == "uint8"
    photo = None
    if is_8_bit and all(role in by_role for role in _NATURAL):
        channels = [np.where(valid, by_role[role], 255).astype(np.uint8) for role in _NATURAL]
        photo = np.dstack(channels)
    return FieldPicture(
        bands=by_role,
        valid=valid,
        display=stretched_picture(by_role) if photo is None else photo,
        photo=photo,
        box=box,
        is_8_bit=is_8_bit,
        is_raster=True,
        gsd_m=info.gsd_m if info and info.gsd_m else source.sampling.gsd_m,
        notes=tuple(notes),
        flags=(*source.sampling.flags, *clipped),
    )


class KnownRoles(NamedTuple):
    """Bands of a raster by role, its band names, and notes on what was assumed.

    ``unsure``: the bands that may have a role, where several may; none of them is in ``roles``.
    """

    roles: dict[Role, int]
    names: tuple[str | None, ...]
    notes: tuple[str, ...] = ()
    unsure: Mapping[Role, tuple[int, ...]] = {}


def known_roles(
    source: RasterSource, bands: Mapping[str, int | str] | None, info: SampleFile | None
) -> KnownRoles:
    """Return the bands of a raster by role: from the caller, else from the sample, else from the file."""
    names = source.names(info.bands if info else None)
    if bands is not None:
        chosen = chosen_roles(bands, names, file=source.name)
        return KnownRoles(chosen, names, contradicted_roles(source, names, chosen))
    for said in dict.fromkeys((names, source.band_names)):
        by_name = roles_by_name(said)
        if by_name.known or by_name.unsure:
            return KnownRoles(by_name.known, names, (), by_name.unsure)
    by_wavelength = source.roles.known
    if by_wavelength:
        titles = [f"{role} = {source.band_title(n)}" for role, n in by_wavelength.items()]
        notes = (f"bands taken by their wavelengths: {', '.join(titles)}",)
        return KnownRoles(by_wavelength, names, notes)
    if len(source.data_bands) == len(_CHANNELS) and source.dtype == "uint8":
        notes = ("bands without names: taken as red, green, blue",)
        return KnownRoles(roles_by_name(_CHANNELS).known, names, notes)
    return KnownRoles({}, names)


def notes_on_unsure(source: RasterSource, known: KnownRoles) -> tuple[str, ...]:
    """Return a note on each role that several bands may have, for results that need none of these roles."""
    notes: list[str] = []
    for role, numbers in known.unsure.items():
        titles = " or ".join(source.band_title(number, known.names) for number in numbers)
        notes.append(
            f"{role} of {source.name} may be band {titles}: none of them is taken as {role}"
        )
    return tuple(notes)


def refuse_unsure(source: RasterSource, known: KnownRoles, needed: Iterable[Role]) -> None:
    """Raise a ToolError ``band_not_found`` for the first role needed that several bands may have. The hint names a band
    for each role that is needed."""
    doubtful: list[Role] = [role for role in needed if role in known.unsure]
    if not doubtful:
        return
    numbers: dict[Role, int] = {each: known.unsure[each][0] for each in doubtful}
    for each in needed:
        if each in known.roles:
            numbers[each] = known.roles[each]
    pairs = ", ".join(f"'{each}': {number}" for each, number in numbers.items())
    role = doubtful[0]
    titles = tuple(source.band_title(number, known.names) for number in known.unsure[role])
    raise ToolError(
        "band_not_found",
        f"{len(titles)} bands of {source.name} may be {role}: {', '.join(titles)}",
        argument="bands",
        hint=f"give bands, e.g. {{{pairs}}}",
        candidates=titles[:20],
    )


def contradicted_roles(
    source: RasterSource, names: Sequence[str | None], chosen: Mapping[Role, int]
) -> tuple[str, ...]:
    """Return a note on each role that a caller gives to a band, while the file gives that band another one."""
    by_name = {number: role_of(name) for number, name in enumerate(names, start=1) if name}
    if not any(by_name.values()):
        by_name = {number: role for role, number in source.roles.known.items()}
    notes: list[str] = []
    for role, number in chosen.items():
        own = by_name.get(number)
        elsewhere = next((other for other, one in by_name.items() if one == role), None)
        said = names[number - 1] or own
        if own is not None and own != role:
            notes.append(f"band {number} of {source.name} is {said} in the file, and {role} here")
        elif own is None and elsewhere is not None:
            notes.append(
                f"band {number} of {source.name} is {role} here; in the file that is band {elsewhere}"
            )
    return tuple(notes)


def raster_roles(
    source: RasterSource, bands: Mapping[str, int | str] | None, info: SampleFile | None
) -> KnownRoles:
    """Return the bands of a raster by role, as :func:`known_roles` does; ToolError ``band_not_found`` if the file says
    the role of no band."""
    known = known_roles(source, bands, info)
    if known.roles or known.unsure or bands is not None:
        return known
    raise ToolError(
        "band_not_found",
        f"{source.name} does not say which band is which; it has {listed_bands(known.names)}",
        argument="bands",
        hint="say which bands are which, e.g. bands={'R': 3, 'NIR': 4}",
        candidates=tuple(name for name in known.names if name)[:20],
    )


def colour_bands(picture: FieldPicture) -> tuple[dict[Role, NDArray[Any]], tuple[str, ...]]:
    """Return the bands with red, green and blue as 0..255, and a note if they were scaled (all by one factor)."""
    if picture.is_8_bit:
        return picture.bands, ()
    colours = [picture.bands[role][picture.valid] for role in ("R", "G", "B")]
    top = float(np.percentile(np.concatenate(colours), 99.9))
    factor = np.float32(255.0 / top if top > 0 else 1.0)
    scaled: dict[Role, NDArray[Any]] = {
        role: picture.bands[role] * factor for role in ("R", "G", "B")
    }
    return {**picture.bands, **scaled}, (
        f"red, green and blue scaled by one factor ({top:.4g} to 255)",
    )


def class_names_of(
    label_map: Mapping[str, Sequence[int]] | None, names: Mapping[str, str] | None
) -> dict[int, str]:
    """Return the name of each class number: of ``label_map`` (numbers by name), else of ``names`` (name by number).
    ToolError ``invalid_argument`` if a number has two names in ``label_map``."""
    by_number = {
        int(number): name
        for number, name in (names or {}).items()
        if number.strip().lstrip("-").isdigit()
    }
    mapped: dict[int, str] = {}
    for name, numbers in (label_map or {}).items():
        for number in numbers:
            if mapped.setdefault(number, name) != name:
                message = f"label_map: {number} stands for {mapped[number]} and for {name}"
                raise ToolError("invalid_argument", message, argument="label_map")
    return by_number | mapped


def _in_memory(value: Any) -> bool:
    """True for a Pillow image, a numpy array, and any object that numpy can turn into an array of two dimensions."""
    return hasattr(value, "__array_interface__") or (
        hasattr(value, "__array__") and getattr(value, "ndim", 0) > 0
    )


def write_arrays(
    arguments: Mapping[str, Any], names: Collection[str], new_folder: Callable[[], Path]
) -> dict[str, Any]:
    """Return the arguments with pictures and arrays in ``names`` replaced by the paths of lossless files in
    ``new_folder()``. Pillow images and uint8 arrays (rows, columns), (rows, columns, 3) and (rows, columns, 4)
    become PNG; other arrays (rows, columns[, bands]), and all arrays of a call that names its ``bands``, become
    TIFF. ToolError ``invalid_argument``: another shape, or a type that is no number."""
    written = dict(arguments)
    is_raster = arguments.get("bands") is not None
    folder: Path | None = None
    for name, value in arguments.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        if name not in names or not any(_in_memory(each) for each in values):
            continue
        folder = folder or new_folder()
        paths = [*values]
        for place, each in enumerate(values):
            if _in_memory(each):
                stem = folder / (name if len(values) == 1 else f"{name}_{place + 1}")
                paths[place] = _write_file(each, stem, is_raster)
        written[name] = paths if isinstance(value, (list, tuple)) else paths[0]
    return written


def _write_file(value: Any, stem: Path, is_raster: bool) -> Path:
    from PIL import Image, ImageOps

    if isinstance(value, Image.Image):
        upright = ImageOps.exif_transpose(value)
        if upright.mode in _PNG_MODES:
            return _write_png(upright, stem)
        if upright.mode not in ("I", "F"):
            return _write_png(upright.convert("RGB"), stem)
        value = upright
    array = np.asarray(value)
    _refuse_unfit_array(array, stem.name)
    array = array.astype(_WIDER.get(array.dtype.name, array.dtype), copy=False)
    picture = array.dtype == np.uint8 and (
        array.ndim == 2 or (array.shape[2] in (3, 4) and not is_raster)
    )
    return _write_png(Image.fromarray(array), stem) if picture else _write_tiff(array, stem)


def _refuse_unfit_array(array: NDArray[Any], name: str) -> None:
    if array.dtype.kind not in "buif":
        why = f"{name}: an array of {array.dtype} holds no picture"
        raise ToolError("invalid_argument", why, argument=name, hint="pass whole numbers or floats")
    bands = array.shape[2] if array.ndim == 3 else 1
    first_is_band = array.ndim == 3 and array.shape[0] <= 16 < array.shape[2]
    if array.ndim not in (2, 3) or not array.size or bands > _MOST_BANDS or first_is_band:
        why = f"{name}: an array of shape {array.shape} is not (rows, columns) or (rows, columns, bands)"
        hint = (
            "bands come last: numpy.moveaxis(array, 0, -1)"
            if array.ndim == 3
            else "pass one picture"
        )
        raise ToolError("invalid_argument", why, argument=name, hint=hint)


def _write_png(image: "Image", stem: Path) -> Path:
    path = stem.with_name(f"{stem.name}.png")
    image.save(path, "PNG", compress_level=1)
    return path


def _write_tiff(array: NDArray[Any], stem: Path) -> Path:
    import rasterio

    from agrotools.vision.rasters import without_place_warning

    path = stem.with_name(f"{stem.name}.tif")
    bands = array[..., None] if array.ndim == 2 else array
    rows, columns, count = bands.shape
    profile = {
        "driver": "GTiff",
        "height": rows,
        "width": columns,
        "count": count,
        "dtype": array.dtype.name,
    }
    with (
        without_place_warning(),
        rasterio.open(path, "w", **profile, photometric="MINISBLACK", alpha="NO") as target,
    ):
        target.write(np.moveaxis(bands, -1, 0))
    return path
