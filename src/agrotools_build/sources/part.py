"""Parts of a benchmark: the contribution of one data set, and helpers to read it."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from PIL import Image, UnidentifiedImageError
from pydantic import JsonValue

from agrotools.core import BenchmarkError, FrozenModel, Sample, SampleFile
from agrotools.core.files import pairs_by_hash, read_table
from agrotools.core.texts import counted_names
from agrotools.formats.benchmark import FILES_FOLDER, SourceNote
from agrotools_build.references import PlannedCall
from agrotools_build.templates import Thing, load_templates
from agrotools_build.templates.template import Template
from agrotools_build.templates.thing import Subject, Words

T = TypeVar("T")
_FEW = 3
"""Names that a line of a build shows."""
REACH = "reach of the tools"
"""Name of the group in ``Sample.groups`` that says what is known of the sample's template on other pictures.

``reached``: the tools of the package give the answer, ``beyond``: they do not, ``undecided``: it was not measured.
"""
TABLES: dict[str, Any] = read_table(Path(__file__).with_name("tables.toml"))
"""Names and numbers that adapters use, by the name of their table."""


def first_few(names: Sequence[str | Path]) -> str:
    """Return the first names, and the number of the others: ``a, b, c and 4 more``."""
    return counted_names([*map(str, names)], _FEW)


def listed(names: Sequence[str], last: str) -> str:
    """Return the names with ``last`` before the last one: ``a, b or c``."""
    return f" {last} ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def reasons(dropped: Mapping[str, int]) -> str:
    """Return the counts as text (``7 empty, 2 unreadable``), the most frequent first; empty if nothing was dropped."""
    return ", ".join(
        f"{count} {reason}" for reason, count in Counter(dropped).most_common() if count
    )


class Listing(FrozenModel):
    """Content of the TOML of a data set: the source, how to get it, the part that is made from it, and its layout."""

    source: SourceNote
    get_it: str = "fetch the data set again, with all its folders"
    part: str
    samples: int = 0
    seen: str = ""
    """Real files on which the adapter has been run."""
    reader: str = ""
    """Function that makes subjects of a public data set, as ``MODULE:FUNCTION``."""
    layout: Mapping[str, Any] = {}
    """Folders, lists, classes and scales, as the reader uses them."""


@cache
def listing_of(name: str) -> Listing:
    """Return the listing of a public data set, or, for ``field.NAME``, of one that ``field`` reads."""
    kind, _, of_field = name.rpartition(".")
    section = read_table(Path(__file__).parent / ("field.toml" if kind else f"public/{name}.toml"))
    section = section[of_field] if kind else section
    source = {key: section[key] for key in SourceNote.model_fields if key in section}
    return Listing.model_validate(
        {"part": name, **{k: v for k, v in section.items() if k not in source}, "source": source}
    )


@dataclass(frozen=True)
class Part:
    """The contribution of one data set: at most ``samples`` samples, with ids that begin with ``name``.

    ``files``: originals by their path in the benchmark, copied unchanged if a sample shows them; ``described``: further
    metadata, given the finished samples; ``dropped``: items left out, by reason; ``reach``: value of the group
    :data:`REACH` by template.
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
    reach: Mapping[str, str] = field(default_factory=dict)


class Originals:
    """The files of a part, each stored under a name made from its content, so that names reveal nothing.

    ``scratch`` is the folder for derived files, such as windows cut from large rasters.
    """

    def __init__(self, scratch: Path | None = None) -> None:
        self.files: dict[str, Path] = {}
        self._scratch = scratch

    def add_content(self, content: bytes, suffix: str, **more: Any) -> SampleFile:
        """Write a file with that content to the scratch folder and return its entry, like :meth:`file`."""
        assert self._scratch is not None
        path = self._scratch / f"{hashlib.sha256(content).hexdigest()}{suffix}"
        path.write_bytes(content)
        return self.file(path, **more)

    def file(self, path: Path, **more: Any) -> SampleFile:
        """Return the entry of a file in a sample, without its final name: hash, size of pictures, and ``more``."""
        digest, size = _facts(path)
        stored = f"{FILES_FOLDER}/{digest[:16]}{path.suffix.lower()}"
        self.files[stored] = path
        return SampleFile.model_validate(
            {"name": "x", "path": stored, "kind": "image", "sha256": digest, **size, **more}
        )

    def raster(
        self,
        path: Path,
        size: Sequence[int],
        bands: tuple[str, ...],
        note: str,
        gsd_m: float | None = None,
    ) -> SampleFile:
        """Return the entry of a raster, like :meth:`file`; ``size``: columns and rows."""
        width, height = size
        return self.file(
            path,
            kind="raster",
            bands=bands,
            gsd_m=gsd_m,
            width_px=width,
            height_px=height,
            note=note,
        )

    def heights(
        self, path: Path, size: Sequence[int], gsd_m: float | None, note: str
    ) -> SampleFile:
        return self.raster(path, size, ("height",), note, gsd_m)


def named(file: SampleFile, stem: str, number: int) -> SampleFile:
    """Return the file with the name that a sample uses for it: ``image_1.jpg``."""
    return file.model_copy(update={"name": f"{stem}_{number}{Path(file.path).suffix}"})


Photo = tuple[SampleFile, T]
"""A picture without its final name, and the facts known about it."""


def pairs_of(photos: Iterable[Photo[T]]) -> list[list[Photo[T]]]:
    """Group different pictures into pairs in the order of their hashes; a last single picture forms a group alone."""
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
    """Return a picture that one call with these further ``arguments`` measures, after the calls ``before``."""
    plain = {"image": file.name, **arguments}
    return Thing((file,), tool, plain, truth, file.name, thought, words or {}, before=before)


def photo_subject(
    name: str,
    photos: Sequence[Photo[T]],
    thing: Callable[[SampleFile, T, int], Thing],
    metadata: dict[str, JsonValue],
    of: str,
    stem: str = "image",
) -> Subject:
    """Return a subject of pictures called ``stem`` and place; ``thing`` takes file, facts, and place from 1."""

    def shown(index: int, place: int) -> Thing:
        file, known = photos[index]
        return thing(named(file, stem, place), known, place)

    return Subject(name, len(photos), shown, metadata, of=of)


def photo_pairs(
    name: str,
    photos: Iterable[Photo[T]],
    thing: Callable[[SampleFile, T, int], Thing],
    metadata: Mapping[str, JsonValue],
    of: str,
    size: int = 2,
) -> list[Subject]:
    """Return a subject, as made by :func:`photo_subject`, for every ``size`` pictures in the order of their hashes."""
    members = [photo for pair in pairs_of(photos) for photo in pair]
    groups = enumerate(members[at : at + size] for at in range(0, len(members), size))
    return [
        photo_subject(f"{name}-{number}", some, thing, {"pair": number, **metadata}, of)
        for number, some in groups
    ]


class DataSet:
    """A data set while it is read. ``originals`` holds the files to show, ``dropped`` counts the items left out.

    ``wanted``: number of pictures that gives a choice of questions. ``allow_missing``: listed files may be missing.
    """

    def __init__(
        self,
        folder: Path,
        listing: Listing,
        samples: int,
        scratch: Path | None = None,
        allow_missing: bool = False,
    ) -> None:
        self.folder, self.listing, self.samples, self.allow_missing = (
            folder,
            listing,
            samples,
            allow_missing,
        )
        self.layout = listing.layout
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
        """Return the finished part; ``questions`` are templates or names of template files."""
        templates = [
            one
            for item in questions
            for one in (load_templates(item) if isinstance(item, str) else (item,))
        ]
        name, source, shown = self.listing.part, self.listing.source, self.originals.files
        return Part(
            name,
            source,
            subjects,
            templates,
            self.samples,
            shown,
            metadata or {},
            described,
            self.dropped,
        )


@dataclass(frozen=True)
class Adapter:
    """Reader of the data set ``name``. Its errors carry a hint on how to get the data set."""

    name: str
    read: Callable[[DataSet], Part]

    def __call__(
        self,
        folder: Path,
        scratch: Path | None = None,
        samples: int | None = None,
        allow_missing: bool = False,
    ) -> Part:
        """Read the data set in ``folder`` as at most ``samples`` samples, with ``scratch`` for derived files.

        ``allow_missing``: use what exists of the listed files. BenchmarkError: it is not in the layout of its authors.
        """
        listing = listing_of(self.name)
        wanted = listing.samples if samples is None else samples
        try:
            part = self.read(DataSet(folder, listing, wanted, scratch, allow_missing))
            if wanted and not part.subjects:
                why = reasons(part.dropped) or "it has none"
                raise BenchmarkError(f"no item of {folder} can be asked about ({why})")
        except BenchmarkError as error:
            error.hint = error.hint or listing.get_it
            raise
        if not listing.reader:
            return part
        decided = read_table(Path(__file__).with_name("reach.toml")).get(part.name, {})
        known = {template: side for side, names in decided.items() for template in names}
        return replace(
            part,
            reach={each.template: known.get(each.template, "undecided") for each in part.questions},
        )


@cache
def _facts(path: Path) -> tuple[str, dict[str, int]]:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    try:
        with Image.open(path) as picture:
            return digest, {"width_px": picture.width, "height_px": picture.height}
    except (UnidentifiedImageError, OSError):
        return digest, {}
