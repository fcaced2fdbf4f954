"""Contents of samples for the hash of a benchmark."""

import os
from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate, islice, product
from typing import IO

from agrotools.core import BenchmarkError, Sample

_AT_ONCE, _BLOCK_BYTES = 100, 1 << 20


def content_of(sample: Sample) -> bytes:
    """Return the content of a sample as :func:`~agrotools.formats.benchmark.content_hash_of` hashes it.

    Raises:
        BenchmarkError: the hash of a file is not known.
    """
    if sample.files:
        for file in sample.files:
            if file.sha256 is None and file.pixels is None:
                raise BenchmarkError(f"sample {sample.id}: the hash of file {file.name} is not known")
        if any(file.pixels for file in sample.files):
            files = tuple(f.model_copy(update={"sha256": None}) if f.pixels else f for f in sample.files)
            sample = sample.model_copy(update={"files": files})
    left_out = _LEFT_OUT[bool(sample.groups), bool(sample.difficulty), bool(sample.canary)]
    return b"\n" + _sample_json(sample, by_alias=True, exclude=left_out)


_sample_json = Sample.__pydantic_serializer__.to_json
_LEFT_OUT = {
    has: {"cluster", *(name for name, there in zip(("groups", "difficulty", "canary"), has, strict=True) if not there)}
    for has in product((True, False), repeat=3)
}
"""Fields that are not part of a content, by what a sample has: groups, difficulty, canary."""


class Contents:
    """Contents for the hash of a benchmark, in a temporary file because they are needed in the order of the ids.

    ``whole`` is False if the hash of a file was not known when its sample came.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._ends = array("Q", [0])
        self.whole = True

    def kept(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Yield the samples as they are, and keep their contents."""
        contents: list[bytes] = []
        for sample in samples:
            if sample.files:
                self.whole = self.whole and all(file.sha256 or file.pixels for file in sample.files)
            if self.whole:
                contents.append(content_of(sample))
                if len(contents) == _AT_ONCE:
                    self._write(contents)
            yield sample
        self._write(contents)

    def _write(self, contents: list[bytes]) -> None:
        self._ends.extend(islice(accumulate(map(len, contents), initial=self._ends[-1]), 1, None))
        self._file.write(b"".join(contents))
        contents.clear()

    def at(self, positions: Iterable[int]) -> Iterator[bytes]:
        """Yield the contents of the samples at ``positions``, those that follow each other in one block."""
        self._file.flush()
        start = end = 0
        ends = self._ends
        for at in positions:
            if ends[at] != end or end - start > _BLOCK_BYTES:
                yield os.pread(self._file.fileno(), end - start, start)
                start = ends[at]
            end = ends[at + 1]
        yield os.pread(self._file.fileno(), end - start, start)
