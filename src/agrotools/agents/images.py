"""Files of a sample as a model sees them (a line of facts for each and, if it can be shown, an image), and pictures
that tools write."""

import base64
import io
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from agrotools.core import Artifact, SampleFile, ToolError
from agrotools.core.libraries import library_of
from agrotools.models import ContentPart, ImagePart, TextPart

LONGEST_SIDE_PX = 1568
PICTURE_BYTES = 750_000
"""Maximum length of the pictures of one reply together, base64; MCP clients refuse messages of more than 1 MiB."""
_SIDES_PX = (LONGEST_SIDE_PX, 1024, 640, 320, 160)
RESULT_PICTURE_PX = 512
"""Longest side of a picture of a result in a conversation: enough to see marks, and few tokens."""
PREVIEWED_KINDS = frozenset({"image", "raster", "depth", "mask"})

_BANDS_SHOWN: "tuple[tuple[Role, Role, Role], ...]" = (
    ("R", "G", "B"),
    ("NIR", "R", "G"),
    ("NIR", "RE", "G"),
)
_READING = threading.Lock()
"""The readers temporarily change the list of warning filters, which is shared by all threads."""
_MASK_COLOURS: dict[str, tuple[int, int, int]] = {
    "black": (0, 0, 0),
    "green": (0, 170, 0),
    "red": (220, 30, 30),
    "blue": (40, 80, 230),
    "yellow": (240, 220, 40),
    "magenta": (210, 50, 200),
    "cyan": (50, 200, 210),
    "orange": (245, 140, 30),
    "white": (255, 255, 255),
    "brown": (130, 80, 40),
    "pink": (250, 160, 190),
    "grey": (128, 128, 128),
}


_LARGEST_READ_WHOLE = 50_000_000
_PREVIEWS_KEPT = 128
"""About the number of samples in flight, as each takes several hundred kilobytes."""


@dataclass(frozen=True)
class Preview:
    """Encoded preview image of a file. ``width_px`` and ``height_px`` are the size of the file, not of the preview."""

    image: ImagePart = field(repr=False)
    width_px: int
    height_px: int
    bands: int
    changes: str = ""
    """Description of how the preview differs from the file: size, bands, stretch."""
    colours: dict[str, str] = field(default_factory=dict)
    """For masks: names of colours by pixel value."""


@dataclass(frozen=True, eq=False)
class BoundedPicture:
    """A file as an 8-bit picture of bounded size. ``exact``: pixel colours are significant (a mask)."""

    image: "Image.Image"
    width_px: int
    height_px: int
    bands: int
    changes: str = ""
    colours: dict[str, str] = field(default_factory=dict)
    exact: bool = False


@dataclass(frozen=True)
class Unreadable:
    """A file without a preview; ``reason`` contains no path."""

    reason: str


def make_preview(
    path: Path, name: str, kind: str, bands: tuple[str, ...] | None
) -> Preview | Unreadable:
    """Read, scale and encode one file; never raises for invalid content."""
    if kind == "image" and (stored := _as_stored(path)):
        return stored
    picture = make_picture(path, name, kind, bands)
    return picture if isinstance(picture, Unreadable) else _encoded(picture)


def _as_stored(path: str | Path) -> Preview | None:
    """Return a JPEG without its comments, positions, profiles and thumbnails, if it is so small, in pixels and bytes,
    that re-encoding would only degrade it."""
    from PIL import ExifTags, Image

    try:
        content = Path(path).read_bytes()
        with Image.open(io.BytesIO(content), formats=["JPEG"]) as image:
            width, height = image.size
            is_as_seen = (
                image.mode in ("RGB", "L")
                and image.format == "JPEG"
                and image.getexif().get(ExifTags.Base.Orientation, 1) == 1
            )
            segments: list[tuple[str, bytes]] = getattr(image, "applist", [])
    except Exception:  # the reader, which is called next, reports the error
        return None
    for name, data in segments:
        if not _is_of_pixels(name, data):
            content = content.replace(_segment(name, data), b"", 1)
    is_whole = content.find(_JPEG_END) == len(content) - 2
    is_small = (
        max(width, height) <= LONGEST_SIDE_PX and len(content) <= 50_000 + 0.75 * width * height
    )
    if not (is_as_seen and is_whole and is_small):
        return None
    return Preview(ImagePart.of("image/jpeg", content), width, height, 3)


_JPEG_END = b"\xff\xd9"


def _is_of_pixels(name: str, data: bytes) -> bool:
    """Return True for the segments of a JPEG that say how to show its pixels: coding of colours, density of pixels."""
    return name == "APP14" or (name, len(data)) == ("APP0", 14)


def _segment(name: str, data: bytes) -> bytes:
    """Return a segment of a JPEG, which Pillow names ``COM`` or ``APP`` with a number, as its bytes in the file."""
    marker = 0xFE if name == "COM" else 0xE0 + int(name.removeprefix("APP"))
    length = len(data) + 2  # with the two bytes of the length itself
    return bytes((0xFF, marker)) + length.to_bytes(2) + data


def make_picture(
    path: Path,
    name: str,
    kind: str,
    bands: tuple[str, ...] | None,
    *,
    longest_px: int = LONGEST_SIDE_PX,
) -> BoundedPicture | Unreadable:
    """Read one file as a picture of at most ``longest_px`` on its long side; never raises for invalid content."""
    try:
        from agrotools.vision.formats import PHOTO_FORMATS, file_format

        with _READING:
            if kind == "mask":
                return _of_mask(path, name, longest_px)
            if kind in ("raster", "depth") or file_format(path, shown_as=name) not in PHOTO_FORMATS:
                return _of_raster(path, name, bands, longest_px)
            return _of_photo(path, name, longest_px)
    except ToolError as error:
        return Unreadable(error.message)
    except ModuleNotFoundError as error:
        # On pages; a run that shows the file to a model is refused before it starts.
        return Unreadable(f"{library_of(error) or error.name} is not installed")
    except (Exception, MemoryError):
        # A decoder may fail in unforeseen ways; the sample continues without the picture.
        return Unreadable("it cannot be read as an image")


def _of_photo(path: Path, name: str, longest_px: int, *, exact: bool = False) -> BoundedPicture:
    from PIL import Image

    from agrotools.vision.reading import read_image

    image = read_image(path, shown_as=name, may_be_blank=True)
    picture = Image.fromarray(image.pixels)
    return _scaled(
        picture, longest_px, (image.width, image.height), 3, "; ".join(image.notes), exact=exact
    )


def _of_mask(path: Path, name: str, longest_px: int) -> BoundedPicture:
    """Return a mask of class numbers with one colour per class; a mask stored as a picture is unchanged."""
    import numpy as np
    from PIL import Image

    from agrotools.vision.reading import read_labels, stretched_picture

    try:
        classes = read_labels(path, shown_as=name).classes
    except ToolError:
        return _of_photo(path, name, longest_px, exact=True)
    size = (classes.shape[1], classes.shape[0])
    is_small = classes.size and classes.min() >= 0 and classes.max() < 1 << 16
    present = np.flatnonzero(np.bincount(classes.ravel())) if is_small else np.unique(classes)
    if present.size > len(_MASK_COLOURS):
        picture = Image.fromarray(stretched_picture({"R": classes.astype(np.float32)}))
        return _scaled(picture, longest_px, size, 1, "stretched from dark to bright")
    palette = np.array([*_MASK_COLOURS.values()], dtype=np.uint8)
    picture = Image.fromarray(palette[np.searchsorted(present, classes)])
    colours = {
        str(value): colour for value, colour in zip(present.tolist(), _MASK_COLOURS, strict=False)
    }
    return _scaled(picture, longest_px, size, 1, exact=True, colours=colours)


def _of_raster(
    path: Path, name: str, names: tuple[str, ...] | None, longest_px: int
) -> BoundedPicture:
    from PIL import Image

    from agrotools.vision.rasters import open_raster
    from agrotools.vision.reading import picture_of, stretched_picture

    with open_raster(path, shown_as=name) as source:
        size = (source.width, source.height)
        if (
            source.dtype == "uint8"
            and source.count <= 4
            and source.width * source.height <= _LARGEST_READ_WHOLE
        ):
            return _scaled(
                Image.fromarray(picture_of(source).pixels), longest_px, size, source.count
            )
        numbers = _shown_bands(source, names)
        bands = _overview(source, numbers, longest_px)
        changes = "stretched from dark to bright"
        if source.count > 1:
            labels = [names[number - 1] if names else f"band {number}" for number in numbers]
            changes = f"as {', '.join(labels)}, each band stretched from dark to bright"
        picture = stretched_picture(dict(zip(("R", "G", "B"), bands, strict=False)))
        return _scaled(Image.fromarray(picture), longest_px, size, source.count, changes)


def _shown_bands(source: "RasterSource", names: Sequence[str] | None) -> list[int]:
    """Return the numbers of three bands (natural colours, else false colours, else the first three), or of one."""
    from agrotools.vision.rasters import roles_by_name

    found = roles_by_name(names) if names and len(names) == source.count else source.roles
    roles = found.shown
    for roles_wanted in _BANDS_SHOWN:
        if all(role in roles for role in roles_wanted):
            return [roles[role] for role in roles_wanted]
    return [1, 2, 3] if source.count >= 3 else [1]


def _overview(
    source: "RasterSource", numbers: Sequence[int], longest_px: int
) -> "list[np.ndarray]":
    """Return bands averaged down to the display size, so that rasters larger than memory can be shown."""
    import numpy as np
    from rasterio.enums import Resampling

    from agrotools.vision.formats import damaged

    scale = min(1.0, longest_px / max(source.width, source.height))
    size = (max(1, round(source.height * scale)), max(1, round(source.width * scale)))
    bands: list[np.ndarray] = []
    for number in numbers:
        try:
            masked = source.dataset.read(
                number, out_shape=size, resampling=Resampling.average, masked=True
            )
        except Exception as error:  # GDAL raises various exceptions for damaged files.
            raise damaged(source.name, "image", error) from error
        values = np.ma.filled(
            masked.astype(np.float64), np.nan
        )  # no-data values such as -1.7e308 exceed float32
        bands.append(np.where(np.abs(values) < 1e30, values, np.nan).astype(np.float32))
    return bands


def _scaled(
    image: "Image.Image",
    longest_px: int,
    size: tuple[int, int],
    bands: int,
    changes: str = "",
    *,
    exact: bool = False,
    colours: dict[str, str] | None = None,
) -> BoundedPicture:
    from PIL import Image

    image.thumbnail(
        (longest_px, longest_px), Image.Resampling.NEAREST if exact else Image.Resampling.LANCZOS
    )
    if image.size != size:
        changes = f"{changes}, at {image.width} x {image.height} px".removeprefix(", ")
    return BoundedPicture(image, *size, bands, changes, colours or {}, exact)


def _encoded(picture: BoundedPicture) -> Preview:
    """Encode as JPEG, or as PNG if pixel colours are significant."""
    buffer = io.BytesIO()
    # Only pixels are encoded: comments, positions and dates of the original stay out of prompts.
    kind, options = ("png", {"optimize": True}) if picture.exact else ("jpeg", {"quality": 90})
    picture.image.save(buffer, kind, **options)
    image = ImagePart.of(f"image/{kind}", buffer.getvalue())
    return Preview(
        image, picture.width_px, picture.height_px, picture.bands, picture.changes, picture.colours
    )


UNSHOWN: ContextVar[set[str] | None] = ContextVar("UNSHOWN", default=None)
"""Names of the files of the sample that is being run that could not be shown to a model."""


def file_parts(files: Sequence[SampleFile], *, images: bool = True) -> tuple[ContentPart, ...]:
    """Return a line for each file, followed by its image unless ``images`` is False.

    Previews contain only pixels: no path and no metadata of the file. The line of an unreadable file says so.
    """
    parts: list[ContentPart] = []
    for file in files:
        is_read = file.kind in PREVIEWED_KINDS and (images or file.width_px is None)
        preview = _preview(file) if is_read else None
        parts.append(TextPart(text=f"- {describe(file, preview, is_shown=images)}"))
        if images and isinstance(preview, Preview):
            parts.append(preview.image)
        elif isinstance(preview, Unreadable) and (unshown := UNSHOWN.get()) is not None:
            unshown.add(file.name)
    return tuple(parts)


def reason_unreadable(file: SampleFile) -> str:
    """Return the reason why a file has no preview; empty if it has one, or is of a kind without."""
    preview = _preview(file) if file.kind in PREVIEWED_KINDS else None
    return preview.reason if isinstance(preview, Unreadable) else ""


def describe(
    file: SampleFile, preview: Preview | Unreadable | None, *, is_shown: bool = True
) -> str:
    """Return name, kind, original size, bands, ground sampling distance, intrinsics, classes and note, if known."""
    shown = preview if isinstance(preview, Preview) else None
    facts = [file.kind, *_measures(file, shown)]
    colours = shown.colours if shown and is_shown else {}
    if values := _values(file, colours):
        facts.append(values)
    if shown and is_shown and shown.changes:
        facts.append(f"shown {shown.changes}")
    if isinstance(preview, Unreadable):
        facts.append(f"cannot be shown: {preview.reason}")
    if file.note:
        facts.append(f"note: {file.note}")
    return f"{file.name}: {'; '.join(facts)}"


def _measures(file: SampleFile, preview: Preview | None) -> Iterator[str]:
    """Yield size, bands, place and camera of a file, as far as they are known."""
    sized = preview or file
    if sized.width_px and sized.height_px:
        yield f"{sized.width_px} x {sized.height_px} px"
    if file.bands:
        yield f"bands {', '.join(file.bands)}"
    elif preview and preview.bands > 4:
        yield f"{preview.bands} bands"
    if file.gsd_m:
        yield f"{file.gsd_m:g} m per pixel"
    if file.crs:
        yield f"coordinate system {file.crs}"
    if camera := file.intrinsics:
        yield f"focal length {camera.fx_px:g} x {camera.fy_px:g} px"
        yield f"principal point at {camera.cx_px:g}, {camera.cy_px:g} px"
    if file.depth_unit_mm:
        yield f"one unit of depth is {file.depth_unit_mm:g} mm"


def _values(file: SampleFile, colours: Mapping[str, str]) -> str:
    """Return what the values of a mask mean, and the colours that its preview gives them; empty if neither is known."""
    if file.classes:
        classes: list[str] = []
        for index, meaning in file.classes.items():
            colour = f" ({colours[index]})" if index in colours else ""
            classes.append(f"{index} = {meaning}{colour}")
        return f"classes: {', '.join(classes)}"
    if colours:
        coloured = [f"{value} ({colour})" for value, colour in colours.items()]
        return f"values: {', '.join(coloured)}"
    return ""


def result_pictures(artifacts: Sequence[Artifact], folder: Path) -> list[tuple[str, str]]:
    """Return the pictures among the files that a call wrote to ``folder``, together at most ``PICTURE_BYTES``: media
    types and contents in base64."""
    shown = pictures_among(artifacts)
    pictures = [
        _result_picture(each, folder / each.name, PICTURE_BYTES // len(shown)) for each in shown
    ]
    return [each for each in pictures if each is not None]


def shown_pictures(
    artifacts: Sequence[Artifact], folder: Path
) -> Iterator[tuple[str, BoundedPicture]]:
    """Yield names and pictures (crops, overlays, charts) among the files that a call wrote to ``folder``.

    They are at most ``RESULT_PICTURE_PX`` on the long side. A picture that is missing or unreadable is left out.
    """
    for artifact in pictures_among(artifacts):
        picture = _bounded_artifact(artifact, folder / artifact.name, RESULT_PICTURE_PX)
        if isinstance(picture, BoundedPicture):
            yield artifact.name, picture


RESULT_FILES: ContextVar[Path | None] = ContextVar("RESULT_FILES", default=None)
"""Folder of the files that the calls of the sample that is being run wrote; None if no tool is run."""
PICTURE_CAPTION = "Picture {name}, made by {tool}:"
"""Text before a picture of a result."""


def result_picture_parts(
    tool: str, artifacts: Sequence[Artifact], folder: Path
) -> tuple[ContentPart, ...]:
    """Return the pictures that a call of ``tool`` wrote as parts of a message, each after its caption."""
    parts: list[ContentPart] = []
    for name, picture in shown_pictures(artifacts, folder):
        parts += TextPart(PICTURE_CAPTION.format(name=name, tool=tool)), _encoded(picture).image
    return tuple(parts)


def pictures_among(artifacts: Sequence[Artifact]) -> list[Artifact]:
    """Return the files that can be shown as pictures: all images but SVG, which is not decoded."""
    return [
        each
        for each in artifacts
        if each.media_type.startswith("image/") and not each.name.endswith(".svg")
    ]


def _bounded_artifact(
    artifact: Artifact, path: Path, longest_px: int
) -> BoundedPicture | Unreadable:
    kind = "raster" if path.suffix == ".tif" else "image"
    return make_picture(path, artifact.name, kind, None, longest_px=longest_px)


def _result_picture(artifact: Artifact, path: Path, longest: int) -> tuple[str, str] | None:
    """Return a file as a picture of at most ``longest`` bytes in base64, scaled down if needed; None if unreadable."""
    longest = longest // 4 * 3
    if artifact.media_type in ("image/png", "image/jpeg") and path.stat().st_size <= longest:
        return artifact.media_type, base64.b64encode(path.read_bytes()).decode()
    for side in _SIDES_PX:
        picture = _bounded_artifact(artifact, path, side)
        if isinstance(picture, Unreadable):
            return None
        buffer = io.BytesIO()
        picture.image.convert("RGB").save(buffer, "JPEG", quality=85)
        if buffer.tell() <= longest:
            return "image/jpeg", base64.b64encode(buffer.getvalue()).decode()
    return None


def _preview(file: SampleFile) -> Preview | Unreadable:
    try:
        stat = os.stat(file.path)  # noqa: PTH116
    except OSError:
        return Unreadable("the file is missing")
    return _preview_of(file.path, file.name, file.kind, file.bands, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=_PREVIEWS_KEPT)
def _preview_of(
    path: str, name: str, kind: str, bands: tuple[str, ...] | None, _modified_ns: int, _size: int
) -> Preview | Unreadable:
    """Return the preview of a file. It is shown at every step and in every epoch, and encoded once while unchanged."""
    return make_preview(Path(path), name, kind, bands)


if TYPE_CHECKING:
    import numpy as np
    from PIL import Image

    from agrotools.vision import Role
    from agrotools.vision.rasters import RasterSource
