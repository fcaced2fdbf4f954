"""Packed form of the benchmark: questions, reference calls and answers, and the origin of each photograph.

The form is that of all packs (:mod:`agrotools.benchmarks.pack`); a :class:`PackHead` is its first line.
``training/pack_field.py`` writes it. It contains no photograph.
"""

import hashlib
from functools import cache
from io import BytesIO
from typing import Literal
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from agrotools.benchmarks.downloads import Item, repository_urls
from agrotools.benchmarks.pack import read_pack
from agrotools.core import FrozenModel, Sample
from agrotools.formats.benchmark import BenchmarkHeader, SourceNote

JPEG_QUALITY = 93
Conversion = Literal["", "jpeg", "classes", "plants"]


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
        convert: ``jpeg``: stored as a JPEG of quality 93; ``classes``: colours of a mask stored as 0 other, 1 crop,
            2 weed; ``plants``: mask stored as 0 and 1.
    """

    path: str
    sha256: str
    size: int | None = None
    repo: str
    commit: str
    source: str
    local: str
    convert: Conversion = ""

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
        if self.convert == "jpeg":
            return next((each for each in _as_jpeg(content) if sha256_of(each) == self.sha256), None)
        planes = _class_planes(content) if self.convert == "classes" else _plant_planes(content)
        return next((_png(plane) for plane in planes if pixel_hash(plane) == self.sha256), None)


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
    return sha256_of(f"{plane.shape[0]} {plane.shape[1]} ".encode() + np.ascontiguousarray(plane).tobytes())


def _as_jpeg(content: bytes) -> list[bytes]:
    """Return a picture as it is and as a JPEG; empty if it is no picture."""
    from PIL import Image

    try:
        with Image.open(BytesIO(content)) as picture:
            buffer = BytesIO()
            picture.convert("RGB").save(buffer, "JPEG", quality=JPEG_QUALITY)
    except (OSError, ValueError, SyntaxError):
        return []
    return [content, buffer.getvalue()]


def _pixels(content: bytes) -> NDArray[np.uint8] | None:
    from PIL import Image

    try:
        with Image.open(BytesIO(content)) as picture:
            colours = picture.mode in ("RGB", "RGBA", "P")
            return np.asarray(picture.convert("RGB") if colours else picture).astype(np.uint8)
    except (OSError, ValueError, SyntaxError):
        return None


def _class_planes(content: bytes) -> list[NDArray[np.uint8]]:
    """Return the classes of a mask in colours: green 1, red 2; classes as they are in a mask without colours."""
    pixels = _pixels(content)
    if pixels is None or pixels.ndim == 2:
        return [] if pixels is None else [pixels]
    red, green = pixels[..., 0] > 127, pixels[..., 1] > 127
    return [np.where(green & ~red, 1, np.where(red & ~green, 2, 0)).astype(np.uint8)]


def _plant_planes(content: bytes) -> list[NDArray[np.uint8]]:
    """Return a mask of plants as 0 and 1, and its inverse: plants are black in some."""
    pixels = _pixels(content)
    if pixels is None:
        return []
    plants = (pixels if pixels.ndim == 2 else pixels.max(axis=2)) > 0
    return [plants.astype(np.uint8), (~plants).astype(np.uint8)]


def _png(plane: NDArray[np.uint8]) -> bytes:
    from PIL import Image

    buffer = BytesIO()
    Image.fromarray(plane).save(buffer, "PNG")
    return buffer.getvalue()
