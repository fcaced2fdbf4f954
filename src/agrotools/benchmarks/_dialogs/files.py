"""Files of published benchmarks: their entries, and hashes, sizes and names of sample files."""

import re
import warnings
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from agrotools.core import BenchmarkError, FileKind, SampleFile
from agrotools.core.files import sha256_of_file, unexpected_content
from agrotools.formats.benchmark import resolve_file
from agrotools.scoring.predictions import read_json

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_NAME = 90
IMAGE_FORMATS = ("JPEG", "PNG", "WEBP", "TIFF", "GIF", "BMP")
"""Permitted image formats, by Pillow's names; no other decoder is used."""
VIDEO_SUFFIXES = frozenset({".mp4", ".avi", ".mov", ".mkv", ".webm", ".gif", ".m4v", ".mpg", ".mpeg"})

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff"})
_KINDS: dict[str, FileKind] = {
    **dict.fromkeys((".csv", ".tsv", ".xls", ".xlsx"), "table"),
    **dict.fromkeys((".mp3", ".wav", ".m4a", ".flac", ".ogg", ".aac"), "audio"),
    **dict.fromkeys(VIDEO_SUFFIXES, "video"),
    **dict.fromkeys(IMAGE_SUFFIXES, "image"),  # a GIF is an image here
}


def kind_of(path: str) -> FileKind:
    """Return the kind of a file by its suffix."""
    return _KINDS.get(PurePosixPath(path).suffix.lower(), "document")


class FileTable:
    """Files below ``root``; the hash and size of each image are computed once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[str, SampleFile] = {}

    def find(self, published: str, folders: Iterable[str] = ("",)) -> str:
        """Return the path of a file relative to the root; ``folders`` are searched in order.

        Raises:
            BenchmarkError: the file does not exist, is outside the root, or is not a regular file.
        """
        path = plain_path(published)
        if not path:
            raise BenchmarkError("a file without a path")
        first: BenchmarkError | None = None
        for folder in folders:
            relative = f"{folder}/{path}" if folder else path
            try:
                resolve_file(self.root, relative)
            except BenchmarkError as error:
                first = first or error
            else:
                return str(PurePosixPath(relative))
        assert first is not None
        raise first

    def image(self, relative: str, name: str) -> SampleFile:
        """Return the image at ``relative`` (a result of :meth:`find`) as a sample file called ``name``.

        Raises:
            BenchmarkError: it cannot be read as an image.
        """
        known = self._known.get(relative)
        if known is None:
            path = self.root / relative
            width, height = image_size(path, relative)
            digest = self._hash(relative)
            known = SampleFile(
                name="image", path=relative, kind="image", sha256=digest, width_px=width, height_px=height
            )
            self._known[relative] = known
        return known.model_copy(update={"name": name})

    def other(self, relative: str, name: str, kind: FileKind) -> SampleFile:
        """Return a file of another kind at ``relative`` as a sample file; BenchmarkError if it cannot be read."""
        return SampleFile(name=name, path=relative, kind=kind, sha256=self._hash(relative))

    def _hash(self, relative: str) -> str:
        try:
            return sha256_of_file(self.root / relative)
        except OSError as error:
            raise BenchmarkError(f"{relative} cannot be read: {error.strerror or error}") from error


def plain_path(published: str) -> str:
    """Return a path with forward slashes and without a leading ``./``."""
    return published.strip().replace("\\", "/").removeprefix("./")


def image_size(path: Path, display_path: str) -> tuple[int, int]:
    """Read width and height in pixels from the header of an image file; BenchmarkError if it is none."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(path, formats=IMAGE_FORMATS) as image:
                return image.size
        except Image.DecompressionBombError as error:
            raise BenchmarkError(f"{display_path} has more pixels than can be read") from error
        except Exception as error:  # decoders may raise anything on a damaged file
            raise BenchmarkError(f"{display_path} is no readable image{actual_content(path)}") from error


def actual_content(path: Path) -> str:
    """Return a remark on the actual content of an unreadable image or video, with a leading space; empty if unknown."""
    try:
        with path.open("rb") as file:
            unexpected = unexpected_content(file.read(64))
    except OSError:
        return ""
    return f" (it is {': '.join(unexpected)})" if unexpected else ""


def safe_name(path: str, used_names: Iterable[str] = ()) -> str:
    """Return a unique file name for samples: the last part of ``path`` with special characters replaced by ``_``."""
    last = PurePosixPath(path.replace("\\", "/")).name
    stem, dot, suffix = last.rpartition(".")
    if not dot:
        stem, suffix = last, ""
    stem = _NOT_IN_NAMES.sub("_", stem).strip("._-")[:_LONGEST_NAME] or "file"
    suffix = _NOT_IN_NAMES.sub("", suffix)[:8]
    ending = f".{suffix}" if suffix else ""
    used_names = {name.casefold() for name in used_names}
    name, number = f"{stem}{ending}", 2
    while name.casefold() in used_names:
        name, number = f"{stem[: _LONGEST_NAME - 5]}_{number}{ending}", number + 1
    return name


def entries_of(path: Path) -> dict[str, Any]:
    """Read the entries of a published file by key, in file order. The keys of a list are its positions.

    Raises:
        BenchmarkError: the file cannot be read as JSON, or its content is neither an object nor a list, or is empty.
    """
    content = read_json(path)
    if isinstance(content, list):
        content = {str(place): entry for place, entry in enumerate(content)}
    if not isinstance(content, dict):
        raise BenchmarkError(f"{path} contains no object of entries", hint="give the published file")
    if not content:
        raise BenchmarkError(f"{path} contains no entry", hint="download it again")
    return content
