"""A loaded benchmark: its header, its samples, where its files lie."""

import hashlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from agrotools.core import BenchmarkError, Mode, Sample, SampleFile, SampleView, UsageError
from agrotools.core.benchmark_header import BenchmarkHeader
from agrotools.formats.samples import facts_of
from agrotools.text.answer_form import answer_form, form_lines


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
        own = len(self._parent)
        self._parent.append(own)
        for file in files:
            for key in (f"path:{file.path}", f"sha256:{file.sha256}" if file.sha256 else None):
                if key is None:
                    continue
                first, second = self._root(self._owner.setdefault(key, own)), self._root(own)
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
