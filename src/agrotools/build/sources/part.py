"""A part of a benchmark: what one data set contributes."""

import hashlib
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from pydantic import JsonValue

from agrotools.build.references import PlannedCall
from agrotools.build.templates import Thing, load_templates
from agrotools.build.templates.template import Template
from agrotools.build.templates.thing import Subject, Words
from agrotools.core import BenchmarkError, FrozenModel, Sample, SampleFile
from agrotools.core.files import pairs_by_hash
from agrotools.formats.benchmark import FILES_FOLDER, SourceNote

T = TypeVar("T")


def first_few(names: Sequence[str | Path], most: int = 3) -> str:
    """``a, b, c and 4 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(map(str, names[:most]))}{more}"


def reasons(dropped: Counter[str]) -> str:
    """``7 empty, 2 unreadable``, the most frequent first; empty where nothing was dropped."""
    return ", ".join(f"{count} {reason}" for reason, count in dropped.most_common())


class Listing(FrozenModel):
    """A table of ``sources.toml``: the source, where to get it, and for ``field`` the part that it becomes."""

    source: SourceNote
    get_it: str = "fetch the data set again, with all its folders"
    part: str
    samples: int = 0


@cache
def listing_of(name: str) -> Listing:
    """Listing of a data set; of those of ``field`` the name begins with ``field.``."""
    section: dict[str, Any] = tomllib.loads(
        files("agrotools.build.sources").joinpath("sources.toml").read_text("utf-8")
    )
    for key in name.split("."):
        section = section[key]
    source = {key: section[key] for key in SourceNote.model_fields if key in section}
    return Listing.model_validate(
        {"part": name, **{k: v for k, v in section.items() if k not in source}, "source": source}
    )


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

    def raster(
        self, path: Path, size: Sequence[int], bands: tuple[str, ...], note: str, gsd_m: float | None = None
    ) -> SampleFile:
        """As :meth:`file`, of a raster; ``size``: columns and rows."""
        width, height = size
        return self.file(path, kind="raster", bands=bands, gsd_m=gsd_m, width_px=width, height_px=height, note=note)

    def heights(self, path: Path, size: Sequence[int], gsd_m: float | None, note: str) -> SampleFile:
        """As :meth:`raster`, of heights in metres."""
        return self.raster(path, size, ("height",), note, gsd_m)


def named(file: SampleFile, stem: str, number: int) -> SampleFile:
    """The file under the name by which a sample shows it: ``image_1.jpg``."""
    return file.model_copy(update={"name": f"{stem}_{number}{Path(file.path).suffix}"})


Photo = tuple[SampleFile, T]
"""A picture, not named yet, with what is known of it."""


def pairs_of(photos: Iterable[Photo[T]]) -> list[list[Photo[T]]]:
    """Different pictures two by two by rank of their hashes; one left over is a pair of its own."""
    by_hash = {str(photo[0].sha256): photo for photo in photos}
    return [[by_hash[member] for member in pair] for pair in pairs_by_hash(by_hash)]


def photo_thing(
    file: SampleFile,
    tool: str,
    truth: Mapping[str, Any],
    thought: str,
    words: Words | None = None,
    before: tuple[PlannedCall, ...] = (),
    **arguments: Any,
) -> Thing:
    """A picture that one call with these further ``arguments`` measures, after the calls ``before``."""
    plain = {"image": file.name, **arguments}
    return Thing((file,), tool, plain, truth, file.name, thought, words or {}, before=before)


def photo_subject(
    name: str,
    photos: Sequence[Photo[T]],
    thing: Callable[[SampleFile, T, int], Thing],
    metadata: dict[str, JsonValue],
    of: str,
) -> Subject:
    """Pictures of which ``thing`` makes one thing each: given the named file, what is known of it, and its place in the
    sample, from 1."""

    def shown(index: int, place: int) -> Thing:
        file, known = photos[index]
        return thing(named(file, "image", place), known, place)

    return Subject(name, len(photos), shown, metadata, of=of)


def photo_pairs(
    name: str,
    photos: Iterable[Photo[T]],
    thing: Callable[[SampleFile, T, int], Thing],
    metadata: Mapping[str, JsonValue],
    of: str,
) -> list[Subject]:
    """As :func:`photo_subject`, of every pair of :func:`pairs_of`."""
    pairs = enumerate(pairs_of(photos))
    return [photo_subject(f"{name}-{number}", pair, thing, {"pair": number, **metadata}, of) for number, pair in pairs]


class DataSet:
    """A data set while it is read: ``originals`` holds the files to show, ``dropped`` counts what is left out.

    ``wanted``: pictures that give enough questions to choose from.
    """

    def __init__(self, folder: Path, listing: Listing, samples: int, scratch: Path | None = None) -> None:
        self.folder, self.listing, self.samples = folder, listing, samples
        self.originals = Originals(scratch)
        self.dropped: Counter[str] = Counter()
        self.wanted = 2 * samples

    def part(
        self,
        subjects: Sequence[Subject],
        questions: Sequence[Template | str],
        metadata: Mapping[str, JsonValue] | None = None,
        described: Callable[[Sequence[Sample]], dict[str, JsonValue]] = lambda _: {},
    ) -> Part:
        """The finished part; ``questions``: themselves, or names of files of templates."""
        templates = [one for item in questions for one in (load_templates(item) if isinstance(item, str) else (item,))]
        name, source, shown = self.listing.part, self.listing.source, self.originals.files
        return Part(name, source, subjects, templates, self.samples, shown, metadata or {}, described, self.dropped)


@dataclass(frozen=True)
class Adapter:
    """Reader of the data set ``name`` of ``sources.toml``. Its errors carry a hint where to get the data set."""

    name: str
    read: Callable[[DataSet], Part]

    def __call__(self, folder: Path, scratch: Path | None = None, samples: int | None = None) -> Part:
        """The data set in ``folder`` as a part of at most ``samples`` samples; ``scratch`` takes files made from it.

        Raises:
            BenchmarkError: it is not there, incomplete, or not as its authors describe it.
        """
        listing = listing_of(self.name)
        with hinted(listing.get_it):
            return self.read(DataSet(folder, listing, listing.samples if samples is None else samples, scratch))


def adapter(name: str) -> Callable[[Callable[[DataSet], Part]], Adapter]:
    """Make a function the adapter of a data set."""
    return partial(Adapter, name)


@contextmanager
def hinted(get_it: str) -> Iterator[None]:
    """Add where to get a data set to errors that have no hint of their own."""
    try:
        yield
    except BenchmarkError as error:
        error.hint = error.hint or get_it
        raise


@cache
def _facts(path: Path) -> tuple[str, dict[str, int]]:
    from PIL import Image, UnidentifiedImageError

    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    try:
        with Image.open(path) as picture:
            return digest, {"width_px": picture.width, "height_px": picture.height}
    except (UnidentifiedImageError, OSError):
        return digest, {}
