"""A benchmark on disk (``benchmark.toml``, ``samples.jsonl`` and ``files/``), loaded: header, samples and file paths.

``samples.jsonl`` holds one :class:`~agrotools.core.Sample` as JSON on each line; blank lines are skipped. File paths
are relative to the folder. :mod:`agrotools.benchmarks.validate` lists all that is wrong with a folder; loading stops at
the first fault.

Samples of a folder are parsed when they are asked for, so that a long benchmark takes little more memory. What a plan
needs to know of every sample (its id and the modes it can take part in) is kept beside the places of the lines;
everything else stays on disk.
"""

import hashlib
import os
import tomllib
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath
from typing import Annotated, NamedTuple, Self, overload
from zlib import crc32

import orjson
from pydantic import Field, JsonValue, ValidationError, model_validator

from agrotools.core import (
    BenchmarkError,
    FrozenModel,
    Mode,
    Protocol,
    Sample,
    SampleFile,
    SampleView,
    UsageError,
    first_fault,
)
from agrotools.core.files import sha256_of_file
from agrotools.text.answer_form import answer_form, form_lines

HEADER_FILE, SAMPLES_FILE, FILES_FOLDER = "benchmark.toml", "samples.jsonl", "files"
CROISSANT_FILE = "croissant.json"
CARD_FILE, CARD_FOLDER = "README.md", "card"
QUALITY_FILE = "quality.jsonl"


class SourceNote(FrozenModel):
    """Source of files or labels, and the terms under which they may be used."""

    name: str
    licence: str
    url: str | None = None
    citation: str | None = None
    note: str | None = None


class BenchmarkHeader(FrozenModel):
    """Name, version and terms of a benchmark, its toolset and the modes it can be run in."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
    version: Annotated[str, Field(min_length=1)]
    licence: Annotated[str, Field(min_length=1)]
    description: str = ""
    synthetic: bool = False
    """True if the inputs were drawn rather than photographed; every report says so."""
    toolset: tuple[str, ...]
    """May be empty where ``no-tool`` is the only mode."""
    modes: Annotated[tuple[Mode, ...], Field(min_length=1)] = ("no-tool", "step-by-step", "end-to-end")
    bare: bool = False
    """True if the query of a sample is the whole prompt, as other people's protocols have it."""
    sources: tuple[SourceNote, ...] = ()
    backends: dict[str, str] = {}
    """Back-ends of tools that the benchmark needs, where not the default; a run uses them unless told otherwise."""
    protocol: Protocol | None = None
    """That of the benchmark's own runs; runs of models use it, in the modes that it has, unless told otherwise."""
    max_steps: Annotated[int | None, Field(ge=1)] = None
    """Model turns per sample that its own runs had; the same holds."""
    canary: str = ""
    """GUID that stands in every sample: where a model can complete it, the benchmark was in its training data."""
    metadata: dict[str, JsonValue] = {}
    """Facts of its build: package version, seeds, trained heads in use..."""

    @model_validator(mode="after")
    def _tools_where_they_are_used(self) -> Self:
        if not self.toolset and self.modes != ("no-tool",):
            raise ValueError('an empty toolset is for benchmarks whose only mode is "no-tool"')
        return self


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Samples with ``cluster`` set and ``sha256`` of every file known. ``root`` is the folder the file paths lie in.

    ``samples`` of a folder are parsed when they are asked for; any sequence will do for a benchmark made by hand.
    """

    header: BenchmarkHeader
    root: Path
    samples: Sequence[Sample]
    content_hash: str
    elsewhere: Mapping[str, Path] = field(default_factory=dict[str, Path])
    """Folders outside ``root`` by the first part of the paths of files in them, for files that loading made."""

    @property
    def name(self) -> str:
        return self.header.name

    @property
    def version(self) -> str:
        return self.header.version

    @property
    def licence(self) -> str:
        return self.header.licence

    @property
    def synthetic(self) -> bool:
        return self.header.synthetic

    @property
    def toolset(self) -> tuple[str, ...]:
        return self.header.toolset

    @property
    def modes(self) -> tuple[Mode, ...]:
        return self.header.modes

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        return {sample_id: position for position, sample_id in enumerate(facts_of(self.samples).ids)}

    def sample(self, sample_id: str) -> Sample:
        """The sample of that id.

        Raises:
            UsageError: there is none.
        """
        if sample_id not in self._positions:
            raise UsageError(f"benchmark {self.name!r} has no sample {sample_id!r}")
        return self.samples[self._positions[sample_id]]

    def place_of(self, file: SampleFile) -> Path:
        """Path of a sample's file."""
        first, _, rest = file.path.partition("/")
        folder = self.elsewhere.get(first)
        return folder / rest if folder else self.root / file.path

    def view(self, sample: Sample, mode: Mode) -> SampleView:
        """All that a policy may know of ``sample``: no gold, absolute file paths, an empty toolset in ``no-tool``."""
        files = tuple(file.model_copy(update={"path": str(self.place_of(file))}) for file in sample.files)
        return SampleView(
            id=sample.id,
            query=sample.query,
            files=files,
            toolset=() if mode == "no-tool" else sample.toolset,
            paths=sample.published_paths,
            answer_form="" if self.header.bare else answer_form(sample.answer),
            form_lines=() if self.header.bare else form_lines(sample.answer),
            bare=self.header.bare,
        )


class Clusters:
    """Connected components of samples that share a file (by content or by path), by position of the samples."""

    def __init__(self) -> None:
        self._parent = array("Q")
        self._owner: dict[str, int] = {}

    def add(self, files: Iterable[SampleFile]) -> None:
        """The files of the next sample."""
        number = len(self._parent)
        self._parent.append(number)
        for file in files:
            for key in (f"path:{file.path}", f"sha256:{file.sha256}" if file.sha256 else None):
                if key is None:
                    continue
                first, second = self._root(self._owner.setdefault(key, number)), self._root(number)
                self._parent[max(first, second)] = min(first, second)

    def firsts(self) -> "array[int]":
        """For each sample the position of the first one of its cluster."""
        return array("Q", map(self._root, range(len(self._parent))))

    def _root(self, position: int) -> int:
        parent = self._parent
        while parent[position] != position:
            parent[position] = parent[parent[position]]
            position = parent[position]
        return position


def with_clusters(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """The samples with ``cluster`` set: connected components of samples that share a file (by content or by path).

    A cluster is named after the first sample in it. Stored clusters are replaced.
    """
    ordered = tuple(samples)
    clusters = Clusters()
    for sample in ordered:
        clusters.add(sample.files)
    firsts = clusters.firsts()
    return tuple(
        sample.model_copy(update={"cluster": ordered[first].id}) for sample, first in zip(ordered, firsts, strict=True)
    )


class ContentDigest:
    """SHA-256 of all that a score depends on: header, questions, gold, toolset and the content of the files.

    Not of where the files lie, of the order of the samples, of clusters (they follow from the files), or of what the
    header says it was built with. Samples come one by one; only where their ids do not ascend are they asked for again.
    """

    def __init__(self, header: BenchmarkHeader) -> None:
        # Left out where there are none: most benchmarks need none, and hashes outlive releases. How a run was held is
        # in its own manifest.
        left_out = {name for name in ("backends", "bare", "canary") if not getattr(header, name)}
        left_out |= {"metadata", "protocol", "max_steps"}
        self._header = header.model_dump_json(by_alias=True, exclude=left_out).encode()
        self._digest = hashlib.sha256(self._header)
        self._last = ""
        self._ascending = True

    def add(self, sample: Sample) -> None:
        """The next sample.

        Raises:
            BenchmarkError: a file's hash is not known.
        """
        self._ascending = self._ascending and sample.id > self._last
        self._last = sample.id
        if self._ascending:
            self._digest.update(_content(sample))

    def hexdigest(self, by_id: Callable[[], Iterable[Sample]]) -> str:
        """The hash. ``by_id`` gives all samples by ascending id; it is called only if they came in another order."""
        if self._ascending:
            return self._digest.hexdigest()
        digest = hashlib.sha256(self._header)
        for sample in by_id():
            digest.update(_content(sample))
        return digest.hexdigest()


def _content(sample: Sample) -> bytes:
    for file in sample.files:
        if file.sha256 is None:
            raise BenchmarkError(f"sample {sample.id}: the hash of file {file.name} is not known")
    left_out = {"cluster", *(name for name in ("groups", "difficulty", "canary") if not getattr(sample, name))}
    return b"\n" + sample.model_dump_json(by_alias=True, exclude=left_out).encode()


_KEPT = 256
"""Parsed samples that are kept: more than are in flight at once."""


class Facts(NamedTuple):
    """Facts of samples for a plan, by position: ids, and whether each can run without tools or has gold calls.

    ``no_tool`` and ``reference`` hold 0 or 1.
    """

    ids: Sequence[str]
    no_tool: Sequence[int]
    reference: Sequence[int]


def facts_of(samples: Sequence[Sample]) -> Facts:
    """The facts of ``samples``; those of lazy samples are known without making any."""
    if isinstance(samples, LazySamples):
        return samples.facts
    return Facts(
        [sample.id for sample in samples],
        bytes(sample.no_tool_eligible for sample in samples),
        bytes(sample.reference is not None for sample in samples),
    )


def selected(samples: Sequence[Sample], positions: Sequence[int]) -> "LazySamples":
    """The samples at ``positions``, in that order, parsed on demand."""
    chosen, facts = array("Q", positions), facts_of(samples)
    return LazySamples(
        Facts(
            [facts.ids[position] for position in chosen],
            bytes(facts.no_tool[position] for position in chosen),
            bytes(facts.reference[position] for position in chosen),
        ),
        lambda at: samples[chosen[at]],
    )


class SampleLines:
    """The lines of ``samples.jsonl`` and what the loader found out about them. Positions count from 0.

    The file is held open, so a folder that is replaced meanwhile goes on being read as it was; a file that is written
    over in place is noticed by the checksum of the line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ids: list[str] = []
        self.no_tool = bytearray()
        self.reference = bytearray()
        self.clusters: Sequence[int] = ()
        """Position of the first sample of each sample's cluster."""
        self.hashes: dict[str, str] = {}
        """SHA-256 of the files, by path, for which no line records one."""
        self._offsets = array("Q")
        self._lengths = array("Q")
        self._checks = array("I")
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)

    def add(self, sample: Sample, offset: int, line: bytes) -> None:
        """Store the offset of ``sample``."""
        self.ids.append(sample.id)
        self.no_tool.append(sample.no_tool_eligible)
        self.reference.append(sample.reference is not None)
        self._offsets.append(offset)
        self._lengths.append(len(line))
        self._checks.append(crc32(line))

    @property
    def facts(self) -> Facts:
        """Facts of the samples for a plan."""
        return Facts(self.ids, bytes(self.no_tool), bytes(self.reference))

    def parse(self, position: int) -> Sample:
        """The sample at ``position``, with its cluster and the hashes of its files.

        Raises:
            BenchmarkError: the line is no longer what was loaded.
        """
        try:
            line = os.pread(self._file, self._lengths[position], self._offsets[position])
            if crc32(line) != self._checks[position]:
                raise ValueError("it was changed while it was in use")
            sample = Sample.model_validate_json(line)
        except (OSError, ValueError, ValidationError) as error:
            raise BenchmarkError(
                f"sample {self.ids[position]} can no longer be read from {self.path}: {error}",
                hint="leave a benchmark as it is while it runs; give the same command again to resume",
            ) from error
        first = self.clusters[position] if self.clusters else position
        sample = self.with_hashes(sample)
        # Nobody else has it yet: a copy of every sample would cost a tenth of what running it does.
        vars(sample)["cluster"] = self.ids[first]
        sample.__pydantic_fields_set__.add("cluster")
        return sample

    def with_hashes(self, sample: Sample) -> Sample:
        """``sample`` with the hashes of files that its line does not record."""
        if all(file.sha256 is not None for file in sample.files):
            return sample
        known = (file.sha256 or self.hashes[file.path] for file in sample.files)
        files = [file.model_copy(update={"sha256": digest}) for file, digest in zip(sample.files, known, strict=True)]
        return sample.model_copy(update={"files": tuple(files)})


class LazySamples(Sequence[Sample]):
    """Samples created by ``make`` from their position on demand.

    The same object is returned for a position as long as it is among the last used.
    """

    def __init__(self, facts: Facts, make: Callable[[int], Sample]) -> None:
        self.facts = facts
        self._parsed = lru_cache(maxsize=_KEPT)(make)

    def __len__(self) -> int:
        return len(self.facts.ids)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | Sequence[Sample]:
        if isinstance(index, slice):
            return selected(self, range(len(self))[index])
        return self._parsed(range(len(self))[index])

    def __iter__(self) -> Iterator[Sample]:
        return map(self._parsed, range(len(self)))


def load_folder(root: str | Path) -> Benchmark:
    """The benchmark in folder ``root``, every line checked, every file hashed and compared with the recorded hash.

    The samples are parsed again when they are asked for: only where they lie is kept.

    Raises:
        BenchmarkError: not a benchmark folder, a line that is no sample, or a file that is missing, altered or outside.
    """
    folder = Path(root).expanduser().resolve()
    header = read_header(folder)
    if not (folder / SAMPLES_FILE).is_file():
        raise _broken(folder, f"it has no {SAMPLES_FILE}")
    try:
        lines = SampleLines(folder / SAMPLES_FILE)
    except OSError as error:
        raise _broken(folder, f"{SAMPLES_FILE} cannot be read: {error.strerror}") from error
    hashes: dict[Path, str] = {}
    seen: set[str] = set()
    clusters = Clusters()
    digest = ContentDigest(header)
    for number, offset, line in _lines(lines.path):
        try:
            sample = Sample.model_validate_json(line)
        except ValidationError as error:
            raise _broken(folder, f"{SAMPLES_FILE}, line {number}: {first_fault(error)}") from error
        if sample.id in seen:
            raise _broken(folder, f"{SAMPLES_FILE}, line {number}: id {sample.id!r} is there twice")
        seen.add(sample.id)
        for file in sample.files:
            actual = _checked_hash(folder, sample, file, hashes)
            if file.sha256 is None:
                lines.hashes[file.path] = actual
        sample = lines.with_hashes(sample)
        lines.add(sample, offset, line)
        clusters.add(sample.files)
        digest.add(sample)
    if not seen:
        raise _broken(folder, f"{SAMPLES_FILE} holds no sample")
    content_hash = digest.hexdigest(lambda: map(lines.parse, sorted(range(len(lines.ids)), key=lines.ids.__getitem__)))
    lines.clusters = clusters.firsts()
    return Benchmark(header, folder, LazySamples(lines.facts, lines.parse), content_hash)


def read_header(root: Path) -> BenchmarkHeader:
    """The header of the benchmark in ``root``.

    Raises:
        BenchmarkError: no such folder or file, broken TOML, or missing and unknown fields.
    """
    path = root / HEADER_FILE
    if not path.is_file():
        raise BenchmarkError(
            f"{root} is not a benchmark folder: it has no {HEADER_FILE}",
            hint="give the folder that `agrotools build` wrote, or the name of a benchmark",
        )
    try:
        return BenchmarkHeader.model_validate_json(orjson.dumps(tomllib.loads(path.read_text("utf-8"))))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, orjson.JSONEncodeError, RecursionError) as error:
        raise _broken(root, f"{HEADER_FILE}: {error}") from error
    except ValidationError as error:
        raise _broken(root, f"{HEADER_FILE}: {first_fault(error)}") from error


def resolve_file(root: Path, path: str) -> Path:
    """The real path of a file of the benchmark in ``root`` (itself resolved).

    Raises:
        BenchmarkError: absolute, with ``..``, a link that leads out of the folder, missing, or no regular file.
    """
    relative = PurePosixPath(path)
    if relative.is_absolute() or ".." in relative.parts or "\\" in path or "\0" in path:
        raise BenchmarkError(f"{path!r} leads out of the folder", hint="paths are relative to the benchmark folder")
    try:
        real = (root / relative).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise BenchmarkError(f"there is no file {path!r}", hint=f"expected at {root / relative}") from error
    if not real.is_relative_to(root):
        raise BenchmarkError(f"{path!r} is a link that leads out of the folder", hint="copy the file into the folder")
    if not real.is_file():
        raise BenchmarkError(f"{path!r} is not a regular file", hint="name a file, not a folder or device")
    return real


def _lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Number (from 1), offset and content of each non-blank line."""
    offset = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, offset, line
            offset += len(line)


def _checked_hash(root: Path, sample: Sample, file: SampleFile, hashes: dict[Path, str]) -> str:
    try:
        real = resolve_file(root, file.path)
    except BenchmarkError as error:
        raise _broken(root, f"sample {sample.id}: {error.message}") from error
    actual = hashes.get(real) or hashes.setdefault(real, sha256_of_file(real))
    if file.sha256 is not None and file.sha256 != actual:
        raise _broken(root, f"sample {sample.id}: file {file.path} is not the one that was recorded (sha256 differs)")
    return actual


def _broken(root: Path, message: str) -> BenchmarkError:
    return BenchmarkError(f"benchmark {root.name}: {message}", hint=f"`agrotools validate {root}` lists all faults")
