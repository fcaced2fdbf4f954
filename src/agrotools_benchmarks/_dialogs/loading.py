"""Loading of published benchmarks: their files and layout, faults and notes on entries, and file checks."""

import json
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

from pydantic import JsonValue

from agrotools.core import MODES, BenchmarkError, FileKind, FrozenModel, Sample, SampleFile
from agrotools.core.files import cache_dir, sha256_of_file, unexpected_content
from agrotools.core.progress import Progress
from agrotools.formats.benchmark import Benchmark, BenchmarkHeader, SourceNote, resolve_file
from agrotools.loading.benchmarks import Loading, find_below, settings_of
from agrotools.loading.checking import EntryFault, FileCheck, shorten
from agrotools.loading.contract import ExpectedCount
from agrotools.loading.facts import Facts
from agrotools.scoring.predictions import read_json
from agrotools_benchmarks._dialogs.plugin_parts import PaperRun

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_NAME = 90
IMAGE_FORMATS = ("JPEG", "PNG", "WEBP", "TIFF", "GIF", "BMP")
"""Permitted image formats, by Pillow's names; no other decoder is used."""
VIDEO_SUFFIXES = frozenset(
    {".mp4", ".avi", ".mov", ".mkv", ".webm", ".gif", ".m4v", ".mpg", ".mpeg"}
)

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff"})


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
        errors: list[BenchmarkError] = []
        for relative in (f"{folder}/{path}" if folder else path for folder in folders):
            try:
                resolve_file(self.root, relative)
                return str(PurePosixPath(relative))
            except BenchmarkError as error:
                errors.append(error)
        raise errors[0]

    def image(self, relative: str, name: str) -> SampleFile:
        """Return the image at ``relative`` (a result of :meth:`find`) as a sample file called ``name``.

        Raises:
            BenchmarkError: it cannot be read as an image.
        """
        if relative not in self._known:
            width, height = image_size(self.root / relative, relative)
            file = self.other(relative, "image", "image")
            self._known[relative] = file.model_copy(update={"width_px": width, "height_px": height})
        return self._known[relative].model_copy(update={"name": name})

    def other(self, relative: str, name: str, kind: FileKind) -> SampleFile:
        """Return a file of another kind at ``relative`` as a sample file; BenchmarkError if it cannot be read."""
        try:
            return SampleFile(
                name=name, path=relative, kind=kind, sha256=sha256_of_file(self.root / relative)
            )
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
            raise BenchmarkError(
                f"{display_path} is no readable image{actual_content(path)}"
            ) from error


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
    stem, suffix = last.rpartition(".")[::2] if "." in last else (last, "")
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
        raise BenchmarkError(
            f"{path} contains no object of entries", hint="give the published file"
        )
    if not content:
        raise BenchmarkError(f"{path} contains no entry", hint="download it again")
    return content


_SHOWN = 40
"""Maximum number of faults in an error message; ``agrotools benchmarks check`` lists all."""
_NAMED = 12


class PublishedSettings(FrozenModel):
    """Options common to all published benchmarks (``--option NAME=VALUE``)."""

    faults: Literal["stop", "leave-out"] = "stop"
    """Treatment of unusable entries: stop with an error, or leave them out (the header then counts them)."""


class Findings:
    """Faults and notes collected while the entries of files are read, one after the other.

    ``key``: key of the entry that is read. ``part``: prefix of keys in messages if there are several files.
    """

    def __init__(self) -> None:
        self.key = self.part = ""
        self.faults: list[EntryFault] = []
        self._notes: dict[str, dict[str, None]] = defaultdict(dict)

    def fault(self, message: str) -> None:
        """Record that the entry cannot be used."""
        self.faults.append(EntryFault(self.part + self.key, message))

    def note(self, message: str) -> None:
        """Record that the entry is used although it deviates from the published form."""
        self._notes[message][self.part + self.key] = None

    @property
    def broken(self) -> bool:
        """True if the entry cannot be used."""
        return bool(self.faults) and self.faults[-1].entry == self.part + self.key

    def notes(self) -> list[str]:
        """Return each distinct note with the entries that it applies to."""
        return [f"{message}: {entry_list([*entries])}" for message, entries in self._notes.items()]


def entry_list(entries: Sequence[str]) -> str:
    """Return a list of keys for a message: ``entry 3``, ``entries 3, 4, 5``, ``entries 3, 4, ... (120 in all)``."""
    quoted_entries = ", ".join(shorten(entry, 40) for entry in entries[:_NAMED])
    more = f", ... ({len(entries)} in all)" if len(entries) > _NAMED else ""
    return f"{'entry' if len(entries) == 1 else 'entries'} {quoted_entries}{more}"


def quote(value: JsonValue) -> str:
    """Return a value of a file as quoted in messages."""
    return shorten(repr(value), 60)


def error_text(error: BenchmarkError) -> str:
    """Return the message of an error with its hint."""
    return f"{error.message} ({error.hint})" if error.hint else error.message


def stop_at_faults(name: str, faults: Sequence[EntryFault], entries: int, folder: object) -> None:
    """Raise a BenchmarkError that lists the faults if there are any."""
    if not faults:
        return
    lines = [f"  {fault}" for fault in faults[:_SHOWN]]
    if len(faults) > _SHOWN:
        lines.append(
            f"  ... and {len(faults) - _SHOWN} more: agrotools benchmarks check {name} {folder}"
        )
    broken = len({fault.entry for fault in faults})
    raise BenchmarkError(
        "\n".join([f"{name}: {broken} of {entries} entries cannot be used", *lines]),
        hint="correct them, or skip them: --option faults=leave-out",
    )


@dataclass(frozen=True)
class ReadSet:
    """Samples of all usable entries, findings on the others, and external folders as a benchmark has them."""

    root: Path
    files: tuple[Path, ...]
    """Entry files that were read."""
    entries: int
    samples: Sequence[Sample]
    findings: Findings
    external_folders: Mapping[str, Path] = field(default_factory=dict[str, Path])

    @property
    def faults(self) -> list[EntryFault]:
        return self.findings.faults


def samples_of(
    entries: Mapping[str, Any],
    read: Callable[[int, Any, Findings], Sample | None],
    findings: Findings,
    progress: Progress,
    what: str = "entries",
) -> list[Sample]:
    """Return the samples of all usable entries in file order. An entry whose id another one has is a fault.

    ``read`` converts an entry, given its position and content, to a sample; it returns None for an unusable entry and
    reports all reasons. ``what`` is the label of the reported progress.
    """
    samples: dict[str, Sample] = {}
    for position, (key, entry) in enumerate(entries.items()):
        findings.key = key
        if (sample := read(position, entry, findings)) and samples.setdefault(
            sample.id, sample
        ) is not sample:
            findings.fault("its key is like that of another entry")
        progress(what, position + 1, len(entries))
    return [*samples.values()]


class Layout(NamedTuple):
    """Layout of the published files of a benchmark."""

    name: str
    files: tuple[str, ...]
    """Possible names of the entry file, the most likely first."""
    folders: tuple[str, ...]
    """Folders below the data root that may hold the entry file, the most likely first; the data root itself
    comes last."""
    tree: str
    """Description of the expected files, for the user."""
    get_it: str
    """Download source."""

    def find(self, data_root: Path | None) -> Path:
        """Find the entry file below ``data_root``; NoFileError, with the expected layout, if there is none."""

        def find(folder: Path) -> str | None:
            return next((name for name in self.files if (folder / name).is_file()), None)

        # The file itself is not resolved: if it is a link, the images are next to the link.
        folder, name = find_below(
            self.name, data_root, self.folders, find, " or ".join(self.files), self.source
        )
        return folder / name

    def roots(self, data_root: Path | None) -> list[Path]:
        """Return the folders that file paths are relative to; frames of videos are in the cache."""
        return [self.find(data_root).parent, cache_dir().resolve()]

    @property
    def source(self) -> str:
        """Download source of the files, and the expected tree."""
        return f"get them: agrotools benchmarks get {self.name} (from {self.get_it}); expected: {self.tree}"


@dataclass(frozen=True)
class PublishedBenchmark:
    """Published benchmark: its facts, the reader of its entry file, and its options."""

    facts: Facts
    read: Callable[[Path, Any, Progress], ReadSet]
    """Function that reads an entry file, given the options."""
    settings: type[PublishedSettings] = PublishedSettings

    @property
    def layout(self) -> Layout:
        """Layout of its files."""
        facts = {
            "name": self.facts["name"],
            "get_it": self.facts["download"]["address"],
            **self.facts["layout"],
        }
        return Layout(**facts)

    def load(self, loading: Loading) -> Benchmark:
        """Load the benchmark from ``loading.data_root``.

        Raises:
            UsageError: an option is unknown.
            BenchmarkError: the files are missing or cannot be read, or entries cannot be used.
        """
        settings = settings_of(self.settings, self.layout.name, loading.options)
        read = self.read(self.layout.find(loading.data_root), settings, loading.progress)
        return self.benchmark_of(read, settings)

    def check(self, data_root: Path | None, progress: Progress) -> FileCheck:
        """Check the files below ``data_root``; raises the same errors as :meth:`load`."""
        return file_check(
            self.read(self.layout.find(data_root), self.settings(), progress), self.layout
        )

    def benchmark_of(self, read: ReadSet, settings: PublishedSettings) -> Benchmark:
        """Build a benchmark from the entries that were read.

        Its content hash covers questions, gold, tools and files, like that of a benchmark folder.

        Raises:
            BenchmarkError: entries cannot be used and are not to be left out, or no entry can be used.
        """
        if settings.faults == "stop" or not read.samples:
            stop_at_faults(self.layout.name, read.faults, read.entries, read.root)
        if not read.samples:
            raise BenchmarkError(
                f"{self.layout.name}: {read.root} contains no entry that is asked for"
            )
        used = {tool for sample in read.samples for tool in sample.toolset}
        notes = read.findings.notes()
        if broken := [*dict.fromkeys(fault.entry for fault in read.faults)]:
            left_out = f"{len(broken)} of {read.entries} entries left out, they cannot be used"
            notes.append(f"{left_out}: {', '.join(broken[:50])}")
        metadata: dict[str, JsonValue] = {
            "files": [path.relative_to(read.root).as_posix() for path in read.files],
            "settings": json.loads(settings.model_dump_json(exclude_defaults=True)),
            "notes": [*notes],
        }
        source = SourceNote(
            **{"licence": self.facts["download"]["licence"], **self.facts["source"]}
        )
        paper = PaperRun(**self.facts["paper_run"])
        toolset = self.facts.get("toolset") or tuple(self.facts["tools"])
        header = BenchmarkHeader(
            name=self.layout.name,
            version="1",
            licence=source.licence,
            description=self.facts["description"],
            toolset=(
                *(tool for tool in toolset if tool in used),
                *sorted(used.difference(toolset)),
            ),
            sources=(source,),
            protocol=paper.protocol,
            max_steps=paper.max_steps,
            modes=MODES,
            metadata=metadata,
        )
        return Benchmark.of(header, read.samples, read.root, read.external_folders)


def file_check(
    read: ReadSet,
    layout: Layout,
    notes: Sequence[str] = (),
    expected: tuple[ExpectedCount, ...] | None = None,
) -> FileCheck:
    """Return the check of a read set; ``notes`` come before the faults of a ``toolmeta.json`` in its folder."""
    return FileCheck(
        files=tuple(str(path) for path in read.files),
        entries=read.entries,
        samples=read.samples,
        faults=read.faults,
        notes=[*read.findings.notes(), *notes, *_toolmeta_faults(read.root)],
        hint=f"whole files are {layout.source}" if read.faults else "",
        expected=expected,
    )


def _toolmeta_faults(root: Path) -> list[str]:
    """Return the faults of the ``toolmeta.json`` that the protocol lagent reads."""
    from agrotools_benchmarks._dialogs.lagent_format import TOOLMETA_FILE, read_toolmeta

    try:
        if (root / TOOLMETA_FILE).is_file():
            read_toolmeta(root / TOOLMETA_FILE)
    except BenchmarkError as error:
        return [error_text(error)]
    return []
