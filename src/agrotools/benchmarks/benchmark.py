"""A loaded benchmark: its header, its samples, where its files lie."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agrotools.core import BenchmarkError, Mode, Sample, SampleView, UsageError
from agrotools.core.benchmark_header import BenchmarkHeader
from agrotools.text.answer_form import answer_form


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Samples with ``cluster`` set and ``sha256`` of every file known. ``root`` is the folder the file paths lie in."""

    header: BenchmarkHeader
    root: Path
    samples: tuple[Sample, ...]
    content_hash: str

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
    def _by_id(self) -> Mapping[str, Sample]:
        return {sample.id: sample for sample in self.samples}

    def sample(self, sample_id: str) -> Sample:
        """The sample of that id.

        Raises:
            UsageError: there is none.
        """
        if sample_id not in self._by_id:
            raise UsageError(f"benchmark {self.name!r} has no sample {sample_id!r}")
        return self._by_id[sample_id]

    def view(self, sample: Sample, mode: Mode) -> SampleView:
        """All that a policy may know of ``sample``: no gold, absolute file paths, an empty toolset in ``no-tool``."""
        files = tuple(file.model_copy(update={"path": str(self.root / file.path)}) for file in sample.files)
        return SampleView(
            id=sample.id,
            query=sample.query,
            files=files,
            toolset=() if mode == "no-tool" else sample.toolset,
            answer_form=answer_form(sample.answer),
        )


def with_clusters(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """The samples with ``cluster`` set: connected components of samples that share a file (by content or by path).

    A cluster is named after the first sample in it. Stored clusters are replaced.
    """
    ordered = tuple(samples)
    parent = list(range(len(ordered)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    owner: dict[str, int] = {}
    for index, sample in enumerate(ordered):
        for file in sample.files:
            for key in (f"path:{file.path}", f"sha256:{file.sha256}" if file.sha256 else None):
                if key is None:
                    continue
                first, second = root(owner.setdefault(key, index)), root(index)
                parent[max(first, second)] = min(first, second)
    return tuple(sample.model_copy(update={"cluster": ordered[root(index)].id}) for index, sample in enumerate(ordered))


def content_hash_of(header: BenchmarkHeader, samples: Iterable[Sample]) -> str:
    """SHA-256 of all that a score depends on: header, questions, gold, toolset and the content of the files.

    Not of where the files lie, of the order of the samples, of clusters (they follow from the files), or of what the
    header says it was built with.

    Raises:
        BenchmarkError: a file's hash is not known.
    """
    digest = hashlib.sha256(header.model_dump_json(by_alias=True, exclude={"metadata"}).encode())
    for sample in sorted(samples, key=lambda sample: sample.id):
        for file in sample.files:
            if file.sha256 is None:
                raise BenchmarkError(f"sample {sample.id}: the hash of file {file.name} is not known")
        digest.update(b"\n" + sample.model_dump_json(by_alias=True, exclude={"cluster"}).encode())
    return digest.hexdigest()
