"""Loading of a benchmark folder (``benchmark.toml``, ``samples.jsonl`` and ``files/``): header, samples, file paths.

``samples.jsonl`` contains one :class:`~agrotools.core.Sample` as JSON per line; blank lines are skipped. File paths are
relative to the folder. Loading stops at the first fault; :mod:`agrotools.loading.validate` lists all.
"""

import hashlib
import operator
import os
import tomllib
import weakref
from array import array
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import count, pairwise
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Annotated, NamedTuple, Self, overload

import orjson
from pydantic import Field, JsonValue, ValidationError, model_validator

from agrotools.core import (
    BenchmarkError,
    DeclaredTool,
    FrozenModel,
    Mode,
    Protocol,
    Sample,
    SampleFile,
    SampleView,
    UsageError,
    first_error,
)
from agrotools.core.errors import NoFileError
from agrotools.core.files import read_text, sha256_of_file, without_collecting
from agrotools.core.form_item import asked_items
from agrotools.core.frozen_model import from_valid
from agrotools.core.systems import PRIVATE_BINARY, read_at
from agrotools.core.texts import command_line
from agrotools.text.answer_form import answer_form

HEADER_FILE, SAMPLES_FILE, FILES_FOLDER = "benchmark.toml", "samples.jsonl", "files"
FRESH = "-fresh-"
"""Between version and seed of a benchmark that was drawn anew from other scenes."""
CROISSANT_FILE = "croissant.json"
CARD_FILE = "README.md"
QUALITY_FILE = "quality.jsonl"
MOST_MAKERS = min(os.cpu_count() or 1, 8)
"""Number of samples whose files are made at the same time."""


class SourceNote(FrozenModel):
    """Source of files or labels, and its terms of use."""

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
    """true if the inputs were drawn rather than photographed; every report states this"""
    toolset: tuple[str, ...]
    """tools that models may call; may be empty if ``no-tool`` is the only mode"""
    declared: Annotated[tuple[DeclaredTool, ...], Field(exclude_if=operator.not_)] = ()
    """tools of ``toolset`` that the benchmark's files declare; the samples that offer one hold it, too"""
    modes: Annotated[tuple[Mode, ...], Field(min_length=1)] = (
        "no-tool",
        "step-by-step",
        "end-to-end",
    )
    bare: bool = False
    """true if the query of a sample is the whole prompt, as in some third-party protocols"""
    sources: tuple[SourceNote, ...] = ()
    backends: dict[str, str] = {}
    """non-default back-ends of tools that the benchmark needs; a run uses them unless configured otherwise"""
    protocol: Protocol | None = None
    """default protocol of the benchmark; model runs use it in modes that it supports, unless configured otherwise"""
    max_steps: Annotated[int | None, Field(ge=1)] = None
    """default number of model turns per sample; used unless a run is configured otherwise"""
    quick: tuple[str, ...] = ()
    """ids of the samples of the quick part, a fixed selection for a first look (``eval --quick``)"""
    canary: str = ""
    """GUID included in every sample; a model that can complete it has seen the benchmark in its training data"""
    metadata: dict[str, JsonValue] = {}
    """facts about the build: package version, seeds, trained heads in use..."""

    def installed(self, tools: Iterable[str]) -> list[str]:
        """Return the installed tools that run the calls of ``tools``; none for those whose results are recorded."""
        runs = {tool.name: tool.runs for tool in self.declared}
        return [name for tool in tools if (name := runs.get(tool, tool))]

    @model_validator(mode="after")
    def _tools_where_they_are_used(self) -> Self:
        if not self.toolset and self.modes != ("no-tool",):
            raise ValueError('an empty toolset is for benchmarks whose only mode is "no-tool"')
        return self


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Loaded benchmark: every sample has ``cluster`` set, and the ``sha256`` of every file is known.

    ``root`` is the folder that file paths are relative to. The ``samples`` of a folder are parsed on demand; a
    benchmark created in code may use any sequence.

    Examples:
        >>> benchmark = at.load_benchmark("my-farm")
        >>> print(benchmark.name, len(benchmark.samples), benchmark.content_hash)
    """

    header: BenchmarkHeader
    root: Path
    samples: Sequence[Sample]
    content_hash: str
    external_folders: Mapping[str, Path] = field(default_factory=dict[str, Path])
    """Folders outside ``root``, by the first part of the paths of their files; for files created during loading."""
    make_files: Callable[[Sample], Sample] | None = field(default=None, kw_only=True)
    """Function that makes the files of a sample and returns it with their hashes; None: all files are there."""

    @classmethod
    def of(
        cls,
        header: BenchmarkHeader,
        samples: Iterable[Sample],
        root: Path = Path(),
        external_folders: Mapping[str, Path] = MappingProxyType({}),
        make_files: Callable[[Sample], Sample] | None = None,
    ) -> Self:
        """Return a benchmark of samples, with their clusters and their content hash."""
        clustered = with_clusters(samples)
        content_hash = content_hash_of(header, clustered)
        return cls(header, root, clustered, content_hash, external_folders, make_files=make_files)

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
    def _places(self) -> dict[str, int]:
        return {sample_id: place for place, sample_id in enumerate(facts_of(self.samples).ids)}

    def sample(self, sample_id: str) -> Sample:
        """Return the sample with this id.

        Raises:
            UsageError: there is no such sample.
        """
        position = self._places.get(sample_id)
        if position is None:
            raise UsageError(f"benchmark {self.name!r} has no sample {sample_id!r}")
        return self.samples[position]

    def file_path(self, file: SampleFile) -> Path:
        """Return the path of a sample's file."""
        first, _, rest = file.path.partition("/")
        folder = self.external_folders.get(first)
        return folder / rest if folder else self.root / file.path

    def prepare(self, sample: Sample) -> Sample:
        """Return a sample of which all files are there; files that are made when they are needed are made now."""
        return self.make_files(sample) if self.make_files else sample

    def view(self, sample: Sample, mode: Mode) -> SampleView:
        """Return what a policy may see of ``sample``: no gold, absolute file paths, no tools in ``no-tool``.

        Without tools the best estimate is asked for, so that ``no-tool`` offers no refusal. The files are there if the
        sample was prepared (:meth:`prepare`).
        """
        may_abstain = sample.may_abstain and mode != "no-tool"
        files = tuple(
            from_valid(SampleFile, vars(file) | {"path": str(self.file_path(file))})
            for file in sample.files
        )
        bare = self.header.bare
        fields = {
            "id": sample.id,
            "query": sample.query,
            "files": files,
            "toolset": () if mode == "no-tool" else sample.toolset,
            "answer_form": "" if bare else answer_form(sample.answer),
            "form": () if bare else asked_items(sample.answer),
            "paths": sample.published_paths,
            "closing": False,
            "may_abstain": may_abstain,
            "bare": bare,
        }
        return from_valid(SampleView, fields)


def content_hash_of(header: BenchmarkHeader, samples: Iterable[Sample]) -> str:
    """Return the SHA-256 of everything that a score depends on: header, questions, gold, toolset, content of the files.

    The content of a drawn file is its pixels. The location of the files, the order of the samples, clusters and the
    build metadata of the header are excluded.

    Raises:
        BenchmarkError: the hash of a file is not known.
    """
    return _content_hash(header, sorted(samples, key=lambda sample: sample.id))


def _content_hash(header: BenchmarkHeader, samples: Iterable[Sample]) -> str:
    """Return :func:`content_hash_of` for samples in the order of their ids."""
    # Omitted if empty, so that hashes of benchmarks without these fields do not change. Protocol and turn limit of
    # a run are recorded in its manifest.
    left_out = {
        name for name in ("backends", "bare", "canary", "quick") if not getattr(header, name)
    }
    left_out |= {"metadata", "protocol", "max_steps"}
    digest = hashlib.sha256(header.model_dump_json(by_alias=True, exclude=left_out).encode())
    for sample in samples:
        digest.update(_content_of(sample))
    return digest.hexdigest()


def _content_of(sample: Sample) -> bytes:
    for file in sample.files:
        if file.sha256 is None and file.pixels is None:
            raise BenchmarkError(f"sample {sample.id}: the hash of file {file.name} is not known")
    if any(file.pixels for file in sample.files):
        files = tuple(
            f.model_copy(update={"sha256": None}) if f.pixels else f for f in sample.files
        )
        sample = sample.model_copy(update={"files": files})
    left_out = {
        "cluster",
        *(name for name in ("groups", "difficulty", "canary") if not getattr(sample, name)),
    }
    return b"\n" + _sample_json(sample, by_alias=True, exclude=left_out)


_sample_json = Sample.__pydantic_serializer__.to_json


def _parsed(line: bytes) -> Sample:
    """Return the sample of a line; ValidationError, also for NaN and Infinity, which are no JSON."""
    if b"NaN" in line or b"Infinity" in line:
        try:
            orjson.loads(line)
        except orjson.JSONDecodeError:
            line = line.replace(b"NaN", b"?").replace(b"Infinity", b"?")  # refused at its place
    return Sample.__pydantic_validator__.validate_json(line)


MOST_KEPT = 20_000
"""Most samples of a folder that are held in memory; those of a larger one are read from their lines on demand."""
_CACHED_SAMPLES = 256
"""Number of samples made on demand that are cached; more than are in use at once."""


class SampleFacts(NamedTuple):
    """Facts about samples for a plan, by position.

    ``no_tool``: True if a sample can be run without tools. ``reference``: True if it has gold calls. ``twins``: id of
    the twin by id, of samples that have one.
    """

    ids: Sequence[str]
    no_tool: Sequence[int]
    reference: Sequence[int]
    twins: Mapping[str, str] = MappingProxyType({})


def facts_of(samples: Sequence[Sample]) -> SampleFacts:
    """Return the facts of ``samples``; lazy samples are not made for this."""
    if isinstance(samples, LazySamples):
        return samples.facts
    return SampleFacts(
        [sample.id for sample in samples],
        bytearray(sample.no_tool_eligible for sample in samples),
        bytearray(sample.reference is not None for sample in samples),
        {sample.id: sample.twin for sample in samples if sample.twin},
    )


def select_samples(samples: Sequence[Sample], positions: Sequence[int]) -> "LazySamples":
    """Return the samples at ``positions``, in that order, taken on demand."""
    chosen = array("I", positions)
    ids, no_tool, reference, twins = facts_of(samples)
    facts = SampleFacts(
        [ids[at] for at in chosen],
        bytearray(no_tool[at] for at in chosen),
        bytearray(reference[at] for at in chosen),
        twins,
    )
    return LazySamples(facts, lambda at: samples[chosen[at]])


class LazySamples(Sequence[Sample]):
    """Samples created by ``make`` from their position on demand.

    The same object is returned for a position while it is among the most recently used.
    """

    def __init__(self, facts: SampleFacts, make: Callable[[int], Sample]) -> None:
        self.facts = facts
        self._made = lru_cache(maxsize=_CACHED_SAMPLES)(make)

    def __len__(self) -> int:
        return len(self.facts.ids)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | Sequence[Sample]:
        if isinstance(index, slice):
            return select_samples(self, range(len(self))[index])
        return self._made(range(len(self))[index])

    def __iter__(self) -> Iterator[Sample]:
        return map(self._made, range(len(self)))


@without_collecting()
def load_folder(root: str | Path, with_files: Collection[str] | None = None) -> Benchmark:
    """Load the benchmark in folder ``root``, checking every line and the hash of every file.

    ``with_files``: ids of the samples whose files are expected in the folder; None: all.

    Raises:
        BenchmarkError: not a benchmark folder, an invalid line, or a file that is missing, altered or outside the
            folder.
    """
    folder = Path(root).expanduser().resolve()
    header = read_header(folder)
    if not (folder / SAMPLES_FILE).is_file():
        raise _broken(folder, f"it has no {SAMPLES_FILE}")
    lines = _SampleLines(folder, with_files)
    firsts = cluster_firsts(lines.checked())
    if not firsts:
        raise _broken(folder, f"{SAMPLES_FILE} contains no sample")
    if unknown := {*header.quick}.difference(lines.ids):
        raise _broken(
            folder, f"{HEADER_FILE}: its quick part names {min(unknown)!r}, which is not a sample"
        )
    content_hash = _content_hash(
        header, (lines.kept[at] if lines.kept else lines.read(at) for at in lines.by_id())
    )

    def with_cluster(sample: Sample, at: int) -> Sample:
        first = firsts[at]
        vars(sample)["cluster"] = (
            sample.id if first == at else lines.ids[first]
        )  # nobody else has this sample yet
        sample.model_fields_set.add("cluster")
        return sample

    if lines.kept:
        return Benchmark(
            header, folder, tuple(map(with_cluster, lines.kept, count())), content_hash
        )
    facts = SampleFacts(lines.ids, lines.no_tool, lines.reference, lines.twins)
    on_demand = LazySamples(facts, lambda at: with_cluster(lines.read(at), at))
    return Benchmark(header, folder, on_demand, content_hash)


class _SampleLines:
    """Lines of ``samples.jsonl``, read once in order and then by position.

    ``ids``, ``no_tool``, ``reference`` and ``twins`` are the facts of the samples; ``kept``: all samples, empty if
    there are more than :data:`MOST_KEPT`.
    """

    def __init__(self, folder: Path, with_files: Collection[str] | None) -> None:
        self._folder, self._with_files = folder, with_files
        self._offsets = array("Q")
        self._hashes: dict[Path, str] = {}
        self._unrecorded: dict[str, str] = {}
        """SHA-256, by path, of files for which no line records one."""
        self._file: int | None = None
        self.ids: list[str] = []
        self.no_tool = bytearray()
        self.reference = bytearray()
        self.twins: dict[str, str] = {}
        self.kept: list[Sample] = []

    def checked(self) -> Iterator[Sample]:
        """Yield the samples of all lines, checking each line and the hashes of its files.

        Raises:
            BenchmarkError: a line or a file is invalid.
        """
        for number, offset, line in sample_lines(self._folder):
            try:
                sample = _parsed(line)
            except ValidationError as error:
                raise _broken(
                    self._folder, f"{SAMPLES_FILE}, line {number}: {first_error(error)}"
                ) from error
            sample = self._checked(sample) if sample.files else sample
            self.ids.append(sample.id)
            self.no_tool.append(sample.no_tool_eligible)
            self.reference.append(sample.reference is not None)
            if sample.twin:
                self.twins[sample.id] = sample.twin
            self._offsets.append(offset)
            if len(self._offsets) <= MOST_KEPT:
                self.kept.append(sample)
            else:
                self.kept.clear()
            yield sample

    def _checked(self, sample: Sample) -> Sample:
        """Return a sample whose files have been checked, with their hashes."""
        if self._with_files is None or sample.id in self._with_files:
            for file in sample.files:
                actual = _checked_hash(self._folder, sample, file, self._hashes)
                if file.sha256 is None:
                    self._unrecorded[file.path] = actual
        return self._with_hashes(sample)

    def by_id(self) -> Sequence[int]:
        """Return the positions of the samples in the order of their ids.

        Raises:
            BenchmarkError: an id is there twice.
        """
        ids = self.ids
        positions = sorted(range(len(ids)), key=ids.__getitem__)
        repeated = next((at for before, at in pairwise(positions) if ids[before] == ids[at]), None)
        if repeated is not None:
            line = next(
                number
                for number, offset, _ in sample_lines(self._folder)
                if offset == self._offsets[repeated]
            )
            raise _broken(
                self._folder, f"{SAMPLES_FILE}, line {line}: id {ids[repeated]!r} is there twice"
            )
        return positions

    def read(self, at: int) -> Sample:
        """Return the sample at a position.

        Raises:
            BenchmarkError: the file has changed since it was checked.
        """
        try:
            if self._file is None:
                self._file = os.open(self._folder / SAMPLES_FILE, os.O_RDONLY | PRIVATE_BINARY)
                weakref.finalize(self, os.close, self._file)
            end = (
                self._offsets[at + 1]
                if at + 1 < len(self._offsets)
                else os.fstat(self._file).st_size
            )
            sample = _parsed(read_at(self._file, end - self._offsets[at], self._offsets[at]))
        except (OSError, ValidationError):
            sample = None
        if sample is None or self.ids[at] != sample.id:
            raise _broken(
                self._folder, f"{SAMPLES_FILE} was changed or removed while it was in use"
            )
        return self._with_hashes(sample)

    def _with_hashes(self, sample: Sample) -> Sample:
        """Return the sample with the hashes of files that its line does not record."""
        if not sample.files or all(file.sha256 is not None for file in sample.files):
            return sample
        known = (
            {"sha256": file.sha256 or self._unrecorded.get(file.path)} for file in sample.files
        )
        files = [
            file.model_copy(update=digest) for file, digest in zip(sample.files, known, strict=True)
        ]
        return sample.model_copy(update={"files": tuple(files)})


def read_header(root: Path) -> BenchmarkHeader:
    """Read the header of the benchmark in ``root``.

    Raises:
        NoFileError: the folder or file is missing; both a UsageError and a BenchmarkError.
        BenchmarkError: the TOML is invalid, or fields are missing or unknown.
    """
    path = root / HEADER_FILE
    if not path.is_file():
        raise NoFileError(
            f"{root} is not a benchmark folder: it has no {HEADER_FILE}",
            hint="give the folder that `agrotools build` wrote, or the name of a benchmark",
        )
    try:
        return BenchmarkHeader.model_validate_json(orjson.dumps(tomllib.loads(read_text(path))))
    except (
        tomllib.TOMLDecodeError,
        UnicodeDecodeError,
        orjson.JSONEncodeError,
        RecursionError,
    ) as error:
        raise _broken(root, f"{HEADER_FILE}: {error}") from error
    except ValidationError as error:
        raise _broken(root, f"{HEADER_FILE}: {first_error(error)}") from error


def resolve_file(root: Path, path: str) -> Path:
    """Return the real path of a file of the benchmark in ``root`` (itself resolved).

    Raises:
        BenchmarkError: the path is absolute, contains ``..``, is a link that leads out of the folder, is missing, or is
            not a regular file.
    """
    relative = PurePosixPath(path)
    if relative.is_absolute() or ".." in relative.parts or "\\" in path or "\0" in path:
        raise BenchmarkError(
            f"{path!r} leads out of the folder", hint="paths are relative to the benchmark folder"
        )
    try:
        real = (root / relative).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise BenchmarkError(
            f"there is no file {path!r}", hint=f"expected at {root / relative}"
        ) from error
    if not real.is_relative_to(root):
        raise BenchmarkError(
            f"{path!r} is a link that leads out of the folder", hint="copy the file into the folder"
        )
    if not real.is_file():
        raise BenchmarkError(
            f"{path!r} is not a regular file", hint="name a file, not a folder or device"
        )
    return real


def sample_lines(root: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield number (from 1), offset in bytes and content of the non-blank lines of the samples."""
    offset = 0
    try:
        with (root / SAMPLES_FILE).open("rb") as file:
            for number, line in enumerate(file, 1):
                if number == 1 and line.startswith(BOM_UTF8):
                    offset, line = len(BOM_UTF8), line.removeprefix(BOM_UTF8)
                if not line.isspace():
                    yield number, offset, line
                offset += len(line)
    except OSError as error:
        raise _broken(root, f"{SAMPLES_FILE} cannot be read: {error.strerror}") from error


def _checked_hash(root: Path, sample: Sample, file: SampleFile, hashes: dict[Path, str]) -> str:
    try:
        real = resolve_file(root, file.path)
    except BenchmarkError as error:
        raise _broken(root, f"sample {sample.id}: {error.message}") from error
    actual = hashes.get(real) or hashes.setdefault(real, sha256_of_file(real))
    if file.sha256 is not None and file.sha256 != actual:
        raise _broken(
            root,
            f"sample {sample.id}: file {file.path} is not the one that was recorded (sha256 differs)",
        )
    return actual


def _broken(root: Path, message: str) -> BenchmarkError:
    hint = f"`{command_line('benchmarks', 'check', root)}` lists all faults"
    return NoFileError(f"benchmark {root.name}: {message}", hint=hint)


def with_clusters(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """Return the samples with ``cluster`` set to the id of its first sample. Stored clusters are replaced."""
    ordered = tuple(samples)
    firsts = cluster_firsts(ordered)
    pairs = zip(ordered, firsts, strict=True)
    return tuple(
        sample.model_copy(update={"cluster": ordered[first].id}) for sample, first in pairs
    )


def cluster_firsts(samples: Iterable[Sample]) -> "array[int]":
    """Return the place of the first sample of each sample's cluster.

    Clusters are components connected by a shared file (content or path), as twins, or by a ``cluster`` that they name.
    The samples need not be held in memory.
    """
    parents = array("I")
    owners: dict[tuple[str, str], int] = {}

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    number = -1
    for number, sample in enumerate(samples):
        if not sample.files and not sample.twin and not sample.cluster:
            continue
        parents.extend(range(len(parents), number + 1))
        keys = [
            key
            for file in sample.files
            for key in (("path", file.path), ("sha256", file.sha256 or file.path))
        ]
        keys += [("twin", min(sample.id, sample.twin))] if sample.twin else []
        keys += [("cluster", sample.cluster)] if sample.cluster else []
        for key in keys:
            first, second = root(owners.setdefault(key, number)), root(number)
            parents[max(first, second)] = min(first, second)
    parents.extend(range(len(parents), number + 1))
    for number in range(len(parents)) if owners else ():
        parents[number] = root(number)
    return parents


def fresh_version(version: str, seed: int) -> str:
    """Return the version of a benchmark that was drawn anew from other scenes."""
    return f"{version}{FRESH}{seed}"
