"""Reading of photographs, label images and rasters as pictures, with the same output for all formats.

Input may be hostile. Multi-band rasters are read by :mod:`agrotools.vision.rasters`.
"""

import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.vision import Box, Role
from agrotools.vision.formats import (
    MAX_PIXELS,
    PHOTO_FORMATS,
    Format,
    damaged,
    file_format,
    remarks_beside,
    too_large,
)

if TYPE_CHECKING:
    from PIL.Image import Image

    from agrotools.vision.rasters import RasterSource


_TURNED_FORMATS = ("JPEG", "PNG", "WEBP")
"""Formats of pictures that EXIF turns, by Pillow's names; HEIC and AVIF are upright when they are decoded."""


@dataclass(frozen=True, eq=False)
class RgbImage:
    """Colour picture as displayed: upright (EXIF), with transparent parts on white.

    ``pixels``: uint8 (rows, columns, 3), sRGB, 0..255. ``valid``: bool (rows, columns), False for fully transparent
    pixels and missing data; None if every pixel has data. ``notes`` and ``flags`` as in a tool's result. ``full_size``:
    width and height of the upright picture in the file, if a reduced one was decoded; None if it was not.
    """

    pixels: NDArray[np.uint8]
    valid: NDArray[np.bool_] | None = None
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    full_size: tuple[int, int] | None = None

    @property
    def height(self) -> int:
        return self.pixels.shape[0]

    @property
    def width(self) -> int:
        return self.pixels.shape[1]

    @property
    def is_grey(self) -> bool:
        """True if all three channels are equal everywhere."""
        red, green, blue = (self.pixels[..., channel] for channel in range(3))
        return bool(np.array_equal(red, green) and np.array_equal(green, blue))

    def without_border(
        self, name: str
    ) -> tuple[NDArray[np.bool_], tuple[str, ...], tuple[str, ...]]:
        """Return the pixels with data but for a black border, and a note and a flag on a black or white one."""
        from agrotools.vision.rasters import border_value

        valid = np.ones(self.pixels.shape[:2], np.bool_) if self.valid is None else self.valid
        level = (
            border_value([*np.moveaxis(self.pixels, -1, 0)], (0, 255))
            if self.valid is None
            else None
        )
        if level is None:
            return valid, (), ()
        blank = (self.pixels == level).all(axis=2)
        how = "white and counts as picture" if level else "black and is taken as absence of data"
        note = f"{100 * blank.mean():.3g} % of {name}, from its edge on, is {how}"
        return valid if level else ~blank, (note,), ("border_without_mark",)


def refuse_grey(picture: RgbImage, name: str, why: str, hint: str = "use a colour picture") -> None:
    """Refuse a picture without colours; ToolError ``band_not_found``."""
    if picture.is_grey:
        raise ToolError("band_not_found", f"{name} is grey{why}", argument="image", hint=hint)


def crop_pixels(pixels: NDArray[np.uint8], box: Box) -> NDArray[np.uint8]:
    """Return the part of a picture (rows, columns, 3) inside ``box`` as a contiguous array."""
    x0, y0, x1, y1 = box
    return np.ascontiguousarray(pixels[y0:y1, x0:x1])


def bounds(mask: NDArray[np.bool_]) -> Box:
    """Return the smallest box around a non-empty mask."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


@dataclass(frozen=True, eq=False)
class LabelImage:
    """Class numbers per pixel.

    ``classes``: int32 (rows, columns). ``valid``: bool (rows, columns), False for no-data; None if all are valid.
    """

    classes: NDArray[np.int32]
    valid: NDArray[np.bool_] | None = None
    notes: tuple[str, ...] = ()


_LEAST_SIDE_PX, _DARK, _GREY = 16, 16, 8
"""Smallest side of a picture that is judged; distance of black and white from the ends, and of grey channels."""
_LEAST_SPREAD, _PARTS = 12, 64
"""Grey levels by which means of parts of a picture differ at least, and parts along each side.

Over 403 photographs and 2,500 drawn ones they differ by 86 or more; over 1,353 failed exposures with noise, by up to 6.
"""


def refuse_blank(pixels: NDArray[np.uint8], name: str, argument: str = "image") -> None:
    """Refuse a picture that is black, white or grey everywhere but for noise, as a failed exposure is; water, soil
    or a closed canopy from above have a colour. ToolError ``nothing_found``."""
    import cv2

    rows, columns = pixels.shape[:2]
    if min(rows, columns) < _LEAST_SIDE_PX:
        return
    parts = cv2.resize(
        pixels, (min(_PARTS, columns), min(_PARTS, rows)), interpolation=cv2.INTER_AREA
    ).reshape(-1, 3)
    if (parts.max(axis=0).astype(int) - parts.min(axis=0)).max() >= _LEAST_SPREAD:
        return
    level, colour = parts.mean(), parts.mean(axis=0)
    if _DARK <= level <= 255 - _DARK and colour.max() - colour.min() > _GREY:
        return
    look = "black" if level < _DARK else "white" if level > 255 - _DARK else "the same colour"
    why = f"{name} is {look} everywhere: it shows nothing, as a failed exposure does"
    raise ToolError(
        "nothing_found",
        why,
        argument=argument,
        hint="nothing can be told from it; use another picture",
    )


def read_image(
    path: Path,
    *,
    argument: str = "image",
    shown_as: str | None = None,
    may_be_blank: bool = False,
    least_px: int | None = None,
) -> RgbImage:
    """Read a picture (JPEG, PNG, WebP, HEIC, AVIF, TIFF) as 8-bit sRGB.

    16-bit pictures are scaled by one factor for all bands; CMYK is converted without its colour profile (flag
    ``colour_converted``). The first picture of an animation or a stack is used. With ``least_px``, a JPEG is decoded at
    a half, a quarter or an eighth of its size, the smallest whose shorter side has so many pixels. ToolError
    ``file_not_found``, ``unreadable_file``, ``limit`` (over 100 million pixels; detected before decoding),
    ``nothing_found`` (no data, or blank unless it ``may_be_blank``).
    """
    picture = _decoded(path, argument, shown_as, least_px)
    if not may_be_blank:
        refuse_blank(picture.pixels, shown_as or path.name, argument)
    return picture


def _decoded(
    path: Path, argument: str, shown_as: str | None, least_px: int | None = None
) -> RgbImage:
    from agrotools.vision.rasters import open_raster

    name = shown_as or path.name
    kind = file_format(path, argument=argument, shown_as=shown_as)
    if _is_raster(path, kind):
        with open_raster(path, argument=argument, shown_as=shown_as) as raster:
            return picture_of(raster, argument=argument)
    notes: list[str] = []
    flags: list[str] = []
    with _open_image(path, PHOTO_FORMATS[kind], name, argument, least_px) as (image, full_size):
        frames = getattr(image, "n_frames", 1)
        if frames > 1:
            notes.append(f"first of {frames} pictures in the file")
        upright = _turn_upright(image, notes)
        if full_size is not None and _is_on_its_side(image, upright):
            full_size = (full_size[1], full_size[0])
        if upright.mode in ("CMYK", "YCbCr", "LAB"):
            flags.append("colour_converted")
            notes.append(f"{upright.mode} colours converted to RGB without a colour profile")
        if upright.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in upright.info:
            pixels, valid = _on_white(upright)
        else:
            pixels, valid = (
                np.asarray(upright if upright.mode == "RGB" else upright.convert("RGB")),
                None,
            )
    if valid is not None and not valid.any():
        raise ToolError("nothing_found", f"{name} is transparent everywhere", argument=argument)
    beside = remarks_beside(path)
    return RgbImage(pixels, valid, (*notes, *beside[0]), (*flags, *beside[1]), full_size)


def read_labels(
    path: Path, *, argument: str = "label_raster", shown_as: str | None = None
) -> LabelImage:
    """Read a mask whose pixel values are class numbers: palette indices and grey values, never colours. ToolError as
    :func:`read_image`; ``unreadable_file`` also for a JPEG (which changes values) or a mask with classes as colours."""
    from agrotools.vision.rasters import open_raster

    name = shown_as or path.name
    kind = file_format(path, argument=argument, shown_as=shown_as)
    if kind in ("jpeg", "heic", "avif"):
        why = f"{name} is a {kind.upper()}: its compression changes values, so they are no class numbers"
        raise ToolError(
            "unreadable_file", why, argument=argument, setup="save masks as PNG or GeoTIFF"
        )
    if kind in ("tiff", "envi"):
        with open_raster(path, argument=argument, shown_as=shown_as) as raster:
            return _labels_of_raster(raster.read([1]), len(raster.data_bands), name, argument)
    notes: list[str] = []
    with _open_image(path, PHOTO_FORMATS[kind], name, argument) as (image, _):
        upright = _turn_upright(image, notes)
        mode, values = upright.mode, np.asarray(upright)
    if mode in ("P", "L", "1") or mode.startswith("I"):
        return LabelImage(values.astype(np.int32), None, tuple(notes))
    has_alpha = mode in ("LA", "PA", "RGBA")
    colours = values[..., :-1] if has_alpha else values
    if not (colours == colours[..., :1]).all():
        why = f"{name} codes its classes as colours ({mode}); class numbers are needed"
        hint = "save it as a palette or grey PNG whose values are the class numbers"
        raise ToolError("unreadable_file", why, argument=argument, hint=hint)
    return LabelImage(
        colours[..., 0].astype(np.int32), values[..., -1] > 0 if has_alpha else None, tuple(notes)
    )


@contextmanager
def _open_image(
    path: Path, pillow_format: str, name: str, argument: str, least_px: int | None = None
) -> "Iterator[tuple[Image, tuple[int, int] | None]]":
    """Open and decode an image in exactly the given format; beside it, its size in the file if it was reduced."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # Pillow warns about sizes that are checked below, and about odd metadata
            with Image.open(path, formats=[pillow_format]) as image:
                if image.width * image.height > MAX_PIXELS:
                    raise too_large(image.width, image.height, name, argument)
                full_size = image.size
                if least_px is not None:
                    _reduce(image, least_px)
                image.load()
                yield image, None if image.size == full_size else full_size
    except Image.DecompressionBombError as error:
        why = f"{name} has more than the {MAX_PIXELS // 1_000_000} million pixels that are read at once"
        raise ToolError(
            "limit", why, argument=argument, hint="cut or shrink the picture"
        ) from error
    except (ToolError, MemoryError):
        raise
    except Exception as error:  # Decoders may raise any exception for a damaged file.
        raise damaged(name, argument, error) from error


def _reduce(image: "Image", least_px: int) -> None:
    """Let a JPEG be decoded at a half, a quarter or an eighth of its size; other formats are left as they are."""
    times = min(image.size) // least_px
    if times > 1:
        image.draft(None, (image.width // times, image.height // times))


def _turn_upright(image: "Image", notes: list[str]) -> "Image":
    """Rotate the image by its EXIF orientation; a damaged EXIF block is ignored."""
    from PIL import ExifTags, ImageOps

    try:
        if image.getexif().get(ExifTags.Base.Orientation, 1) not in range(2, 9):
            return image
        upright = ImageOps.exif_transpose(image)
    except Exception:
        notes.append("its EXIF block is damaged; the picture is read as stored")
        return image
    notes.append(
        "turned upright as its EXIF orientation says; coordinates are those of the upright picture"
    )
    return upright


def _is_on_its_side(image: "Image", upright: "Image") -> bool:
    """Return True if the picture was turned by a quarter."""
    from PIL import ExifTags

    return upright is not image and image.getexif().get(ExifTags.Base.Orientation) in range(5, 9)


def copy_upright(source: Path, target: Path) -> None:
    """Copy of a picture for a program that is not ours: upright if its EXIF orientation turns it, else as it is.

    Some programs turn pictures as EXIF says, and others do not: a box would mean different places. A picture that
    cannot be read is copied as it is: who opens it says what is wrong with it.
    """
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(source, formats=[*_TURNED_FORMATS]) as image:
                upright = _turn_upright(image, [])
                if upright is not image:
                    _save_like(image, upright, target)
                    return
    except Exception:  # Decoders may raise any exception for a damaged file.
        pass
    shutil.copyfile(source, target)


def _save_like(original: "Image", picture: "Image", target: Path) -> None:
    """Write a picture in the format of another one, with its profile and its quality."""
    from PIL.JpegImagePlugin import JpegImageFile, get_sampling

    if isinstance(original, JpegImageFile):
        pillow_format = "JPEG"  # of several pictures in a file, the first
        tables, sampling = original.quantization, get_sampling(original)
        quality: dict[str, Any] = {"qtables": tables, "subsampling": sampling}
    else:
        pillow_format = str(original.format)
        quality = {"lossless": True} if pillow_format == "WEBP" else {}
    picture.save(
        target,
        pillow_format,
        exif=picture.getexif(),
        icc_profile=picture.info.get("icc_profile"),
        **quality,
    )


def _on_white(image: "Image") -> tuple[NDArray[np.uint8], NDArray[np.bool_] | None]:
    rgba = np.asarray(image.convert("RGBA"))
    alpha = rgba[..., 3]
    if (alpha == 255).all():
        return np.ascontiguousarray(rgba[..., :3]), None
    share = alpha[..., None].astype(np.uint16)
    mixed = (rgba[..., :3] * share + 255 * (255 - share) + 127) // 255
    return mixed.astype(np.uint8), alpha > 0


def _labels_of_raster(
    bands: NDArray[np.float32], count: int, name: str, argument: str
) -> LabelImage:
    if count != 1:
        why = f"{name} has {count} bands; a label raster has one, whose values are class numbers"
        raise ToolError("unreadable_file", why, argument=argument)
    values = bands[0]
    valid = np.isfinite(values)
    refuse_without_data(valid, name, argument)
    classes = np.where(valid, values, 0)
    if not np.array_equal(classes, np.rint(classes)):
        raise ToolError(
            "unreadable_file",
            f"{name} has fractional values; class numbers are whole",
            argument=argument,
        )
    return LabelImage(classes.astype(np.int32), None if valid.all() else valid)


def is_read_as_raster(path: Path, kind: str) -> bool:
    """Return True if a file of a sample, of this kind, is read with rasterio instead of Pillow.

    Raises:
        ToolError: the file cannot be opened, or has no known format.
    """
    stored = file_format(path)
    if kind == "mask":
        return stored in ("tiff", "envi")
    return kind in ("raster", "depth") or _is_raster(path, stored)


def _is_raster(path: Path, kind: Format) -> bool:
    """Return True for formats that Pillow does not read, or not with all bits."""
    return kind not in PHOTO_FORMATS or (kind == "png" and _png_bit_depth(path) == 16)


def _png_bit_depth(path: Path) -> int:
    with path.open("rb") as file:
        head = file.read(25)
    return head[24] if len(head) == 25 else 8


def picture_of(source: "RasterSource", *, argument: str = "image") -> RgbImage:
    """Convert a raster to 8-bit RGB: its red, green and blue bands, else its first three, else its first as grey.
    8-bit values are unchanged, others are scaled by one factor for all bands (99.9th percentile to 255)."""
    palette = _palette(source)
    if palette is not None:
        values = source.read([1])[0]
        valid = np.isfinite(values)
        refuse_without_data(valid, source.name, argument)
        return RgbImage(palette[np.where(valid, values, 0).astype(np.int64) & 255], _or_none(valid))
    shown = source.roles.shown
    numbers = [shown[role] for role in ("R", "G", "B") if role in shown]
    notes: tuple[str, ...] = ()
    is_choice = bool({"R", "G", "B"} & source.roles.unsure.keys())
    if len(numbers) < 3:
        colours = source.data_bands
        numbers = colours[:3] if len(colours) >= 3 else colours[:1] * 3
        is_choice = len(colours) > 3
    if is_choice:
        titles = ", ".join(source.band_title(number) for number in numbers)
        notes = (f"bands shown as red, green, blue: {titles}",)
    values = source.read(numbers)
    valid: NDArray[np.bool_] = np.asarray(np.isfinite(values).all(axis=0))
    refuse_without_data(valid, source.name, argument)
    if source.dtype != "uint8":
        top = float(np.percentile(values[:, valid], 99.9))
        notes += (f"{source.dtype} values scaled by one factor for all bands ({top:.6g} to 255)",)
        values = values * np.float32(255.0 / top if top > 0 else 1.0)
    pixels = np.clip(np.where(valid, values, 255), 0, 255).round().astype(np.uint8)
    flags = () if source.border is None else ("border_without_mark",)
    return RgbImage(np.ascontiguousarray(pixels.transpose(1, 2, 0)), _or_none(valid), notes, flags)


def stretched_picture(bands: Mapping[Role, NDArray[np.float32]]) -> NDArray[np.uint8]:
    """Return a picture of bands for viewing, uint8 (rows, columns, 3), each stretched from its 1st to 99th percentile.

    Natural colours if red, green and blue are available; else the customary false colours (infrared as red, red as
    green, green as blue) from the available bands; else grey.
    """
    orders: tuple[tuple[Role, Role, Role], ...] = (
        ("R", "G", "B"),
        ("NIR", "R", "G"),
        ("NIR", "RE", "G"),
        ("NIR", "R", "R"),
        ("NIR", "RE", "RE"),
    )
    for roles in orders:
        if all(role in bands for role in roles):
            return np.dstack([_stretch(bands[role]) for role in roles])
    grey = _stretch(next(iter(bands.values())))
    return np.dstack([grey, grey, grey])


def _stretch(band: NDArray[np.float32]) -> NDArray[np.uint8]:
    valid = np.isfinite(band)
    sample = band[valid]
    if not sample.size:
        return np.full(band.shape, 255, np.uint8)
    low, high = np.percentile(sample[:: max(1, sample.size // 500_000)], (1, 99))
    scaled = (np.where(valid, band, high) - low) / max(high - low, 1e-12)
    return np.where(valid, np.clip(scaled, 0, 1) * 255, 255).astype(np.uint8)


def _palette(source: "RasterSource") -> NDArray[np.uint8] | None:
    if source.count != 1 or source.dtype != "uint8":
        return None
    try:
        colours = source.dataset.colormap(1)
    except ValueError:
        return None
    table = np.zeros((256, 3), np.uint8)
    for index, colour in colours.items():
        table[index & 255] = colour[:3]
    return table


def refuse_without_data(valid: NDArray[np.bool_], name: str, argument: str = "image") -> None:
    """Refuse a picture without any pixel that has data; ToolError ``nothing_found``."""
    if not valid.any():
        hint = "check the file's nodata value, or choose another region"
        raise ToolError(
            "nothing_found",
            f"{name} holds no data: all pixels are no-data",
            argument=argument,
            hint=hint,
        )


def _or_none(valid: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    return None if valid.all() else valid
