"""A part of a benchmark: what one data set contributes."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

import orjson
from pydantic import JsonValue

from agrotools.build.templates.template import Template
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, Sample, SampleFile
from agrotools.core.files import pairs_by_hash
from agrotools.formats.benchmark import SourceNote
from agrotools.formats.folder import FILES_FOLDER


def first_few(names: Sequence[str | Path], most: int = 3) -> str:
    """``a, b, c and 4 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(map(str, names[:most]))}{more}"


def reasons(dropped: Counter[str]) -> str:
    """``7 empty, 2 unreadable``, the most frequent first; empty where nothing was dropped."""
    return ", ".join(f"{count} {reason}" for reason, count in dropped.most_common())


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
    questions: Sequence[Template]
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
        """Entry of a file in a sample: hash, size in pixels where it is a picture, and ``more``; not named yet."""
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


TRUTH_FILE = "truth.json"


def read_items(folder: Path, needed: Sequence[str] = (), files: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The items of a prepared data set.

    Args:
        needed: keys that every item must have.
        files: those of the keys whose values are names of files in the folder.

    Raises:
        BenchmarkError: no ``truth.json``, not of that form, or the files that are missing or lead out of the folder.
    """
    path = folder / TRUTH_FILE
    hint = "fetch the data set again, with all its folders"
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise BenchmarkError(f"{path} cannot be read: {error}", hint=hint) from error
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in cast(list[Any], found)):
        raise BenchmarkError(f"{path} is not a list of objects", hint=hint)
    items = cast(list[dict[str, Any]], found)
    for number, item in enumerate(items):
        lacks = [key for key in (*needed, *files) if key not in item]
        if lacks:
            raise BenchmarkError(f"{path}, item {item.get('id', number)} lacks {', '.join(lacks)}", hint=hint)
        for key in files:
            if ".." in Path(str(item[key])).parts or Path(str(item[key])).is_absolute():
                raise BenchmarkError(f"{path}: {item[key]} leads out of the folder", hint=hint)
    missing = [str(item[key]) for item in items for key in files if not (folder / str(item[key])).is_file()]
    if missing:
        raise BenchmarkError(f"{folder} lacks {first_few(missing, 5)}", hint=hint)
    return items
