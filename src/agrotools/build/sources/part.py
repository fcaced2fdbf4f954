"""A part of a benchmark: what one data set contributes."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from agrotools.build.asking import Askable, Subject
from agrotools.core import Sample, SampleFile
from agrotools.core.benchmark_header import SourceNote
from agrotools.core.hashing import pairs_by_hash
from agrotools.formats.folder import FILES_FOLDER


@dataclass(frozen=True)
class Part:
    """``name`` begins the ids of its samples, of which there are at most ``samples``; ``files`` are copied as they are
    where a sample shows them: name in the benchmark to the original.

    ``dropped`` says how many items of the data set were left out, by reason; ``described`` says more of the finished
    samples for the benchmark's metadata.
    """

    name: str
    source: SourceNote
    subjects: Sequence[Subject]
    questions: Sequence[Askable]
    samples: int
    files: Mapping[str, Path]
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    described: Callable[[Sequence[Sample]], dict[str, JsonValue]] = lambda _: {}
    dropped: Mapping[str, int] = field(default_factory=dict)


class Originals:
    """The files of a part: each kept under a name made of its content, so that a name tells nothing.

    ``scratch``: where files go that are made from the data set's own, such as windows cut from large rasters.
    """

    def __init__(self, scratch: Path | None = None) -> None:
        self.files: dict[str, Path] = {}
        self._scratch = scratch

    def made(self, content: bytes, suffix: str, **more: Any) -> SampleFile:
        """As :meth:`file`, of a file with that content, made here."""
        assert self._scratch is not None
        path = self._scratch / f"{hashlib.sha256(content).hexdigest()}{suffix}"
        path.write_bytes(content)
        return self.file(path, **more)

    def file(self, path: Path, **more: Any) -> SampleFile:
        """What a sample knows of a file: hash, size in pixels where it is a picture, and ``more``; not named yet."""
        digest, size = _facts(path)
        stored = f"{FILES_FOLDER}/{digest[:16]}{path.suffix.lower()}"
        self.files[stored] = path
        return SampleFile.model_validate(
            {"name": "x", "path": stored, "kind": "image", "sha256": digest, **size, **more}
        )

    def heights(self, path: Path, size: Sequence[int], gsd_m: float | None, note: str) -> SampleFile:
        """As :meth:`file`, of a raster of heights: one band, metres; ``size``: columns and rows."""
        width, height = size
        return self.file(
            path, kind="raster", bands=("height",), gsd_m=gsd_m, width_px=width, height_px=height, note=note
        )


def named(file: SampleFile, stem: str, number: int) -> SampleFile:
    """The file under the name by which a sample shows it: ``image_1.jpg``."""
    return file.model_copy(update={"name": f"{stem}_{number}{Path(file.path).suffix}"})


def pairs_of(items: Mapping[str, Any]) -> list[list[Any]]:
    """The values two by two by rank of their keys, which are hashes; one left over is a pair of its own."""
    return [[items[member] for member in pair] for pair in pairs_by_hash(items)]


@cache
def _facts(path: Path) -> tuple[str, dict[str, int]]:
    from PIL import Image, UnidentifiedImageError

    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    try:
        with Image.open(path) as picture:
            return digest, {"width_px": picture.width, "height_px": picture.height}
    except (UnidentifiedImageError, OSError):
        return digest, {}
