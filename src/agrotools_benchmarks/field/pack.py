"""Packed form of the benchmark: questions, reference calls and answers, and the origin of each photograph.

The form is that of all packs (:mod:`agrotools.loading.pack`); a :class:`PackHead` is its first line.
``training/pack_field.py`` writes it. It contains no photograph. Files of public repositories are converted into those
that questions show, with the same bytes on every machine: JPEG of a fixed quality, or TIFF without compression.
"""

import bz2
import gzip
import hashlib
import lzma
import math
import struct
import zlib
from collections.abc import Iterable, Mapping
from functools import cache
from io import BytesIO
from typing import Any, Literal
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agrotools.core import FrozenModel, Sample
from agrotools.formats.benchmark import BenchmarkHeader, SourceNote
from agrotools.loading.downloads import Item, repository_urls
from agrotools.loading.pack import read_pack

Box = tuple[int, int, int, int]
Mark = tuple[str, Box]
"""Colour of a frame, and the box inside it in pixels."""
STROKE_PX = 4
PENS: Mapping[str, tuple[int, int, int]] = {
    "red": (255, 0, 0), "yellow": (255, 255, 0), "blue": (0, 0, 255), "magenta": (255, 0, 255), "cyan": (0, 255, 255),
}  # fmt: skip


Size = tuple[int, int]
"""Columns and rows."""


def as_jpeg(
    content: bytes,
    quality: int,
    crop: Box | None,
    marks: Iterable[Mark],
    part: Box | None = None,
    size: Size | None = None,
) -> list[bytes]:
    """Return the picture as it is, cut to ``crop`` and whole as a JPEG, with ``marks``; empty if it is no picture.

    ``part``: only this part of each of them, brought to ``size``.
    """
    made: list[bytes] = [content]
    try:
        with Image.open(BytesIO(content)) as picture:
            made += [
                _saved(each.convert("RGB"), "JPEG", quality=quality)
                for each in (*([picture.crop(crop)] if crop else ()), picture)
            ]
        if part and size:
            made = [_part_of(each, quality, part, size) for each in made]
        return [with_marks(each, quality, marks) for each in made]
    except (OSError, ValueError, SyntaxError):
        return []


def _part_of(content: bytes, quality: int, part: Box, size: Size) -> bytes:
    """Return a part of a picture, brought to ``size``, as a JPEG."""
    with Image.open(BytesIO(content)) as picture:
        shown = picture.convert("RGB").resize(size, Image.Resampling.BICUBIC, box=part)
    return _saved(shown, "JPEG", quality=quality)


def with_marks(content: bytes, quality: int, marks: Iterable[Mark]) -> bytes:
    """Return a picture with drawn frames as a JPEG; unchanged without marks."""
    if not (drawn := [*marks]):
        return content
    with Image.open(BytesIO(content)) as picture:
        pixels = np.array(picture.convert("RGB"))
    before = pixels.copy()
    for colour, (x0, y0, x1, y1) in drawn:
        pixels[max(0, y0 - STROKE_PX) : y1 + STROKE_PX, max(0, x0 - STROKE_PX) : x1 + STROKE_PX] = (
            PENS[colour]
        )
        pixels[y0:y1, x0:x1] = before[y0:y1, x0:x1]
    return _saved(Image.fromarray(pixels), "JPEG", quality=quality)


class Numbers(FrozenModel):
    """Place of a raster's values in a file, after it is unpacked: band after band, row after row, big-endian.

    The files are those of R, or have no form at all.

    ``offset``: byte at which they begin; ``form``: of a number.
    """

    offset: int
    form: Literal["f8", "i4", "u1"]
    bands: int = 1
    rows: int
    columns: int


_OPENERS = {b"\x1f\x8b": gzip.decompress, b"BZ": bz2.decompress, b"\xfd7": lzma.decompress}
"""Function that unpacks a file, by its first two bytes."""


def unpacked(content: bytes) -> bytes:
    """Return the content of a file without its compression, as it is if it has none of these."""
    unpack = _OPENERS.get(content[:2])
    return unpack(content) if unpack else content


def read_numbers(content: bytes, numbers: Numbers) -> NDArray[np.float32] | NDArray[np.uint8]:
    """Return the values (bands, rows, columns) at a place in a file; NaN where R has no value, bytes as they are.

    Raises:
        ValueError: the file is damaged, or ends before the last value.
    """
    try:
        stream = unpacked(content)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise ValueError("the file is damaged") from error
    shape = (numbers.bands, numbers.rows, numbers.columns)
    values = np.frombuffer(
        stream, f">{numbers.form}", count=math.prod(shape), offset=numbers.offset
    )
    if numbers.form == "u1":
        return values.astype(np.uint8).reshape(shape)
    is_missing = values == _NO_INTEGER if numbers.form == "i4" else np.isnan(values)
    # One form of NaN, whatever R and the processor make of it, so that the bytes are the same everywhere.
    known = np.where(is_missing, np.nan, values).astype(np.float32)
    return known.reshape(shape)


_NO_INTEGER = -(1 << 31)
"""Whole number that stands for no value in R."""


def bands_as_tiff(values: NDArray[np.float32] | NDArray[np.uint8]) -> bytes:
    """Return a TIFF without compression of the bands of a raster (bands, rows, columns).

    Pillow writes one band of numbers only, and other writers do not give the same bytes in each of their versions.
    """
    bands, rows, columns = values.shape
    stored = values.astype(values.dtype.newbyteorder("<"))
    a_band = rows * columns * stored.itemsize
    fields: list[tuple[int, str, list[int]]] = [
        (256, "I", [columns]),
        (257, "I", [rows]),
        (258, "H", [8 * stored.itemsize] * bands),  # bits of a number
        (259, "H", [1]),  # no compression
        (262, "H", [1]),  # larger numbers are brighter
        (273, "I", [0] * bands),  # where a band begins, filled in below
        (277, "H", [bands]),
        (278, "I", [rows]),
        (279, "I", [a_band] * bands),
        (284, "H", [2]),  # band after band
        (338, "H", [0] * (bands - 1)),  # bands beyond the first have no meaning as colours
        (339, "H", [_FLOATING if stored.dtype.kind == "f" else _UNSIGNED] * bands),
    ]
    fields = [each for each in fields if each[2]]
    # A field of up to four bytes stands in the directory, a longer one behind it.
    directory_at = struct.calcsize("<2sHI")
    lists_at = (
        directory_at + struct.calcsize("<H") + len(fields) * _ENTRY.size + struct.calcsize("<I")
    )
    values_at = lists_at + sum(
        size for _, form, each in fields if (size := struct.calcsize(f"<{len(each)}{form}")) > 4
    )
    starts = [values_at + band * a_band for band in range(bands)]
    entries, lists = b"", b""
    for tag, form, members in fields:
        packed = struct.pack(f"<{len(members)}{form}", *(starts if tag == 273 else members))
        is_long = len(packed) > 4
        where = struct.pack("<I", lists_at + len(lists)) if is_long else packed.ljust(4, b"\0")
        entries += _ENTRY.pack(tag, _TIFF_FORMS[form], len(members), where)
        lists += packed if is_long else b""
    head = struct.pack("<2sHI", b"II", 42, directory_at)
    directory = struct.pack("<H", len(fields)) + entries + struct.pack("<I", 0)
    return head + directory + lists + stored.tobytes()


_UNSIGNED, _FLOATING = 1, 3
"""Codes of the kind of numbers in a TIFF."""
_ENTRY = struct.Struct("<HHI4s")
"""Field of a TIFF's directory: tag, type, count, and the values or their place."""
_TIFF_FORMS = {"H": 3, "I": 4}
"""Types of whole numbers in a TIFF, by their letters in :mod:`struct`."""


def as_tiff(content: bytes, layer: int | None, numbers: Numbers | None = None) -> list[bytes]:
    """Return the values of a plane as TIFF files: as they are, and as 0 and 1; empty if they cannot be read.

    A plane is read from a picture, from an array of NumPy (``layer``: place in its first dimension) or from the
    variable ``transformed_depth`` of a MATLAB file. JPEG 2000 pictures hold an index times 10,000 (MODIS).
    ``numbers``: read the bands at this place in a file of R instead.
    """
    if numbers is not None:
        try:
            return [bands_as_tiff(read_numbers(content, numbers))]
        except ValueError:
            return []
    plane = _plane(content, layer)
    if plane is None or plane.ndim != 2:
        return []
    stored = plane.astype(
        np.float32 if plane.dtype.kind == "f" else np.uint8 if plane.max() < 256 else np.uint16
    )
    return [
        _saved(Image.fromarray(each), "TIFF") for each in (stored, (stored > 0).astype(np.uint8))
    ]


INDEX_SCALE = 10_000
"""Whole numbers per unit of an index in products of MODIS."""
_OFFSET = 1 << 15
"""What Pillow adds to the signed 16-bit values of a JPEG 2000 picture."""


def _signed(values: NDArray[np.uint16]) -> NDArray[np.float32]:
    return values.astype(np.float32) - np.float32(_OFFSET)


def _plane(content: bytes, layer: int | None) -> NDArray[Any] | None:
    try:
        if content.startswith(b"\x93NUMPY"):
            return np.load(BytesIO(content), allow_pickle=False)[layer or 0].squeeze()
        if content.startswith(b"MATLAB"):
            from scipy.io import loadmat

            return loadmat(BytesIO(content))["transformed_depth"].astype(np.uint16)
        with Image.open(BytesIO(content)) as picture:
            if picture.format == "JPEG2000":
                return _signed(np.asarray(picture)) / np.float32(INDEX_SCALE)
            return np.asarray(picture)
    except (
        OSError,
        ValueError,
        SyntaxError,
        KeyError,
        IndexError,
        NotImplementedError,
    ):  # the last: MATLAB 7.3
        return None


def mask_planes(content: bytes, kind: str) -> list[NDArray[np.uint8]]:
    """Return what a mask may be stored as; empty if it cannot be read.

    ``classes``: green is 1 and red is 2 in a mask in colours; another one stays as it is. ``plants``: 0 and 1, and the
    inverse, because plants are black in some.
    """
    try:
        with Image.open(BytesIO(content)) as picture:
            colours = picture.mode in ("RGB", "RGBA", "P")
            pixels = np.asarray(picture.convert("RGB") if colours else picture).astype(np.uint8)
    except (OSError, ValueError, SyntaxError):
        return []
    if kind == "plants":
        plants = (pixels if pixels.ndim == 2 else pixels.max(axis=2)) > 0
        return [plants.astype(np.uint8), (~plants).astype(np.uint8)]
    if pixels.ndim == 2:
        return [pixels]
    red, green = pixels[..., 0] > 127, pixels[..., 1] > 127
    return [np.where(green & ~red, 1, np.where(red & ~green, 2, 0)).astype(np.uint8)]


def _saved(picture: Image.Image, form: str, **options: int) -> bytes:
    buffer = BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


JPEG_QUALITY = 93
Conversion = Literal["", "jpeg", "tiff", "classes", "plants"]


class DataSetNote(FrozenModel):
    """Data set of the benchmark. ``unused``: reason why it is left out; empty if it is used."""

    folder: str
    source: SourceNote
    photographs: int = 0
    questions: int
    unused: str = ""


class PackedFile(FrozenModel):
    """File of a public repository.

    Attributes:
        path: place below the folder of the benchmark.
        sha256: hash of the stored file; of masks, the hash of their pixels (see :func:`pixel_hash`).
        size: bytes of the file in the repository; None if it is converted.
        source: path in the repository.
        local: path in a prepared copy (``DATASET/images/NAME``), as a mirror may have it.
        convert: ``jpeg``: stored as a JPEG of ``quality``, cut to ``crop``, then to ``part`` in ``pixels`` columns and
            rows, with ``marks``; ``tiff``: values of a plane (``layer`` of an array, or ``numbers`` in a file of R)
            stored without compression;
            ``classes``: colours of a mask stored as 0 other, 1 crop, 2 weed; ``plants``: mask stored as 0 and 1.
    """

    path: str
    sha256: str
    size: int | None = None
    repo: str
    commit: str
    source: str
    local: str
    convert: Conversion = ""
    quality: int = JPEG_QUALITY
    crop: Box | None = None
    part: Box | None = None
    pixels: Size | None = None
    layer: int | None = None
    numbers: Numbers | None = None
    marks: tuple[Mark, ...] = ()

    @property
    def item(self) -> Item:
        """File as the downloader takes it."""
        return Item(
            self.path,
            repository_urls(quote(f"{self.repo}/{self.commit}/{self.source}")),
            (self.local,),
            sha256="" if self.convert else self.sha256,
            size=self.size,
            convert=self._converted if self.convert else None,
        )

    def _converted(self, content: bytes) -> bytes | None:
        if self.convert in ("classes", "plants"):
            planes = (
                each
                for each in mask_planes(content, self.convert)
                if pixel_hash(each) == self.sha256
            )
            return next((_saved(Image.fromarray(plane), "PNG") for plane in planes), None)
        if sha256_of(content) == self.sha256:
            return content
        is_jpeg = self.convert == "jpeg"
        made = (
            as_jpeg(content, self.quality, self.crop, self.marks, self.part, self.pixels)
            if is_jpeg
            else as_tiff(content, self.layer, self.numbers)
        )
        return next((each for each in made if sha256_of(each) == self.sha256), None)


class PackHead(FrozenModel):
    """First line of the pack. ``head_files``: masks that heads for crop and weeds learn from."""

    header: BenchmarkHeader
    content_hash: str
    data_sets: tuple[DataSetNote, ...]
    files: tuple[PackedFile, ...]
    head_files: tuple[PackedFile, ...] = ()


@cache
def read_head() -> PackHead:
    """Return header, data sets and files of the benchmark."""
    pack = read_pack("field")
    files = [{"path": path, **described} for path, described in pack.files.items()]
    return PackHead.model_validate({**pack.described, "files": files})


def read_samples() -> list[Sample]:
    """Return the samples of the benchmark."""
    return list(read_pack("field").samples)


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def pixel_hash(plane: NDArray[np.uint8]) -> str:
    """Return the hash of the pixels of a mask (rows, columns) and of its size."""
    return sha256_of(
        f"{plane.shape[0]} {plane.shape[1]} ".encode() + np.ascontiguousarray(plane).tobytes()
    )
