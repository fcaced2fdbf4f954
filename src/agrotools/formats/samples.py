"""The samples of a benchmark folder: parsed when asked for, so that a long benchmark takes little more memory.

What a plan needs to know of every sample (its id and the modes it can take part in) is kept beside the places of the
lines; everything else stays on disk.
"""

import os
import weakref
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, overload
from zlib import crc32

from pydantic import ValidationError

from agrotools.core import BenchmarkError, Sample

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
    if isinstance(samples, LazySamples | SelectedSamples):
        return samples.facts
    return Facts(
        [sample.id for sample in samples],
        bytes(sample.no_tool_eligible for sample in samples),
        bytes(sample.reference is not None for sample in samples),
    )


def selected(samples: Sequence[Sample], positions: Sequence[int]) -> "SelectedSamples":
    """The samples at ``positions``, in that order."""
    if isinstance(samples, SelectedSamples):
        positions, samples = [samples.positions[position] for position in positions], samples.whole
    return SelectedSamples(samples, array("Q", positions))


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
        """Remember where ``sample`` lies."""
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
        files = [file.model_copy(update={"sha256": own}) for file, own in zip(sample.files, known, strict=True)]
        return sample.model_copy(update={"files": tuple(files)})


class LazySamples(Sequence[Sample]):
    """Samples that ``make`` makes by their position when they are asked for.

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


class SelectedSamples(Sequence[Sample]):
    """Some samples of ``whole``, by position; parsed no earlier than there."""

    def __init__(self, whole: Sequence[Sample], positions: "array[int]") -> None:
        self.whole = whole
        self.positions = positions
        of_whole = facts_of(whole)
        self.facts = Facts(
            [of_whole.ids[position] for position in positions],
            bytes(of_whole.no_tool[position] for position in positions),
            bytes(of_whole.reference[position] for position in positions),
        )

    def __len__(self) -> int:
        return len(self.positions)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | Sequence[Sample]:
        if isinstance(index, slice):
            return selected(self, range(len(self))[index])
        return self.whole[self.positions[index]]

    def __iter__(self) -> Iterator[Sample]:
        return map(self.whole.__getitem__, self.positions)
