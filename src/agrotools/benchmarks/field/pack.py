"""Packed form of the benchmark: questions, reference calls and answers, and the origin of each photograph.

The form is that of all packs (:mod:`agrotools.benchmarks.pack`); a :class:`PackHead` is its first line.
``training/pack_field.py`` writes it. It contains no photograph.
"""

import hashlib
from functools import cache
from typing import Literal
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from agrotools.benchmarks.downloads import Item, repository_urls
from agrotools.benchmarks.field.conversion import PLANES, Box, Mark, as_jpeg, as_png, as_tiff
from agrotools.benchmarks.pack import read_pack
from agrotools.core import FrozenModel, Sample
from agrotools.formats.benchmark import BenchmarkHeader, SourceNote

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
        convert: ``jpeg``: stored as a JPEG of ``quality``, cut to ``crop``, with ``marks``; ``tiff``: values of a plane
            (``layer`` of an array) stored without compression; ``classes``: colours of a mask stored as 0 other,
            1 crop, 2 weed; ``plants``: mask stored as 0 and 1.
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
    layer: int | None = None
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
        if self.convert in PLANES:
            planes = PLANES[self.convert](content)
            return next((as_png(plane) for plane in planes if pixel_hash(plane) == self.sha256), None)
        if sha256_of(content) == self.sha256:
            return content
        is_jpeg = self.convert == "jpeg"
        made = as_jpeg(content, self.quality, self.crop, self.marks) if is_jpeg else as_tiff(content, self.layer)
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
    return sha256_of(f"{plane.shape[0]} {plane.shape[1]} ".encode() + np.ascontiguousarray(plane).tobytes())
