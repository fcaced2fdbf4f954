"""Detection of file formats by their first bytes. File names are ignored, because files may have been renamed."""

from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Literal

from agrotools.core import ToolError
from agrotools.core.texts import install_command
from agrotools.vision import Box

Format = Literal["jpeg", "png", "webp", "heic", "avif", "tiff", "envi"]

PHOTO_FORMATS: dict[Format, str] = {
    "jpeg": "JPEG",
    "png": "PNG",
    "webp": "WEBP",
    "heic": "HEIF",
    "avif": "AVIF",
}
"""Formats that are read with Pillow, by Pillow's names."""
RASTER_DRIVERS: dict[Format, str] = {"tiff": "GTiff", "envi": "ENVI", "png": "PNG", "jpeg": "JPEG"}
"""Formats that are read with rasterio, by GDAL's names. No other driver is ever opened."""

MAX_PIXELS = 100_000_000
"""Maximum number of pixels of a picture that is decoded, or of a raster window that is read."""

_READABLE = "readable formats: JPEG, PNG, WebP, HEIC, AVIF, GeoTIFF, ENVI (data file with its .hdr beside it)"
_HEIC_BRANDS = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"}
_KNOWN_BUT_REFUSED: tuple[tuple[bytes, str], ...] = (
    (b"GIF8", "a GIF image"),
    (b"BM", "a BMP image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or Office document"),
    (b"\x89HDF", "an HDF5 file"),
    (b"CDF", "a NetCDF file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x00\x00\x00\x0cjP", "a JPEG 2000 image"),
    (b"<VRTDataset", "a GDAL virtual raster, which points to other files"),
)


def file_format(path: Path, *, argument: str = "image", shown_as: str | None = None) -> Format:
    """Return the format of a file by its content. ``argument``, ``shown_as``: name of the argument, and of the file
    in messages. ToolError ``file_not_found``; ``unreadable_file`` for an empty file or any other format."""
    name = shown_as or path.name
    try:
        if path.is_dir():
            raise ToolError(
                "unreadable_file", f"{name} is a folder", argument=argument, hint="name a file"
            )
        with path.open("rb") as file:
            head = file.read(512)
    except FileNotFoundError:
        raise ToolError("file_not_found", f"there is no file {name}", argument=argument) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a usable path"
        raise ToolError(
            "unreadable_file", f"{name} cannot be opened: {reason}", argument=argument
        ) from error
    format_name = _by_signature(head)
    if format_name is None and head and envi_header(path) is not None:
        format_name = "envi"
    if format_name is None:
        raise ToolError(
            "unreadable_file", f"{name} is {_in_words(head)}", argument=argument, hint=_READABLE
        )
    if format_name in ("heic", "avif") and (hint := _lacking_decoder(format_name)):
        why = f"{name} is a {format_name.upper()} photo, which nothing that is installed can read"
        raise ToolError("unreadable_file", why, argument=argument, hint=hint)
    return format_name


@cache
def _lacking_decoder(kind: Format) -> str:
    """Enable Pillow to read a format of phones; return how to install what it lacks, or nothing."""
    from PIL import features

    if kind == "avif":
        return (
            ""
            if features.check("avif")
            else "install a Pillow that reads AVIF: pip install 'pillow>=11.3'"
        )
    with suppress(ImportError):
        return import_module("pillow_heif").register_heif_opener() or ""
    return f"install pillow-heif: {install_command('heic')}"


def envi_header(path: Path) -> Path | None:
    """Return the ENVI header next to a data file (``a.hdr`` or ``a.raw.hdr`` for ``a.raw``), or None."""
    for header in (path.with_suffix(".hdr"), path.with_name(path.name + ".hdr")):
        try:
            if (
                header == path
                or not header.is_file()
                or header.resolve().parent != path.resolve().parent
            ):
                continue
            with header.open("rb") as file:
                if file.read(5).strip() == b"ENVI":
                    return header
        except OSError:
            continue
    return None


def too_large(width: int, height: int, name: str, argument: str) -> ToolError:
    """Return the error for a picture or window above :data:`MAX_PIXELS`."""
    return ToolError(
        "limit",
        f"{name} has {width} x {height} pixels; at most {MAX_PIXELS // 1_000_000} million are read at once",
        argument=argument,
        hint="cut or shrink the picture; of a GeoTIFF, read a part with region",
    )


def refuse_outside(region: Box, width: int, height: int, name: str) -> None:
    """Refuse a box that is empty or not entirely inside a picture of this size; ToolError ``region_empty``."""
    x0, y0, x1, y1 = region
    if not (0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height):
        why = f"the region {list(region)} is not inside {name}, which is {width} x {height} pixels"
        hint = "give [x0, y0, x1, y1] in pixels, x to the right and y down from the top left corner"
        raise ToolError("region_empty", why, argument="region", hint=hint)


def clipped_region(
    region: Box | None, width: int, height: int, name: str
) -> tuple[Box, tuple[str, ...]]:
    """Return the part of ``region`` inside a picture of this size (None: all), and flag ``region_clipped`` if cut;
    ToolError ``region_empty`` if no part of it is inside."""
    if region is None:
        return (0, 0, width, height), ()
    x0, y0, x1, y1 = region
    inside = (max(0, x0), max(0, y0), min(width, x1), min(height, y1))
    if inside[0] >= inside[2] or inside[1] >= inside[3]:
        refuse_outside(region, width, height, name)
    return inside, () if inside == tuple(region) else ("region_clipped",)


def damaged(name: str, argument: str, error: Exception) -> ToolError:
    """Return the error for a file that a decoder cannot read, with its reason unless that contains a local path."""
    reason = (str(error).splitlines() or [""])[0][:120]
    detail = f" ({reason})" if reason and "/" not in reason and "\\" not in reason else ""
    return ToolError(
        "unreadable_file",
        f"{name} is damaged or cut short{detail}",
        argument=argument,
        hint="check that it opens in an image viewer or GIS, and fetch it again if not",
    )


def _by_signature(head: bytes) -> Format | None:
    if head.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "webp"
    if head[4:8] == b"ftyp":
        brands = {head[at : at + 4] for at in range(8, min(int.from_bytes(head[:4]), len(head)), 4)}
        return "avif" if brands & {b"avif", b"avis"} else "heic" if brands & _HEIC_BRANDS else None
    if head[:4] in (b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+"):
        return "tiff"
    return None


def _in_words(head: bytes) -> str:
    if not head:
        return "empty"
    for signature, what in _KNOWN_BUT_REFUSED:
        if head.lstrip().startswith(signature):
            return f"{what}, not an image that can be read here"
    printable = sum(32 <= byte < 127 or byte in b"\t\r\n" for byte in head)
    if printable > 0.9 * len(head):
        return "a text file, whatever its name says"
    return "of no known image format, or damaged in its first bytes"


def remarks_beside(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return notes and a flag on a world file, a mask, and an .aux.xml with a nodata value, which are not read."""
    worlds = [path.with_suffix(f".{path.suffix[1:2]}{path.suffix[-1:]}{w}") for w in "wW"]
    notes = tuple(
        f"{file.name} is not read: pass its pixel size as gsd_m"
        for file in worlds
        if file.is_file()
    )
    for file, mark in ((path.name + ".msk", b""), (path.name + ".aux.xml", b"<NoDataValue>")):
        with suppress(OSError):
            if mark in path.with_name(file).read_bytes():
                notes += (
                    f"{file} is not read: write what it says about no data into {path.name} itself",
                )
    return notes, ("sidecar_not_read",) if notes else ()
