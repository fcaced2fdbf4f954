"""Clusters of samples that share a file."""

from array import array
from collections.abc import Iterable

from agrotools.core import Sample, SampleFile


class Clusters:
    """Connected components of samples that share a file (by content or by path), by position of the samples."""

    def __init__(self) -> None:
        self._parent = array("Q")
        self._owner: dict[str, int] = {}

    def add(self, files: Iterable[SampleFile]) -> None:
        """Add the files of the next sample."""
        number = len(self._parent)
        self._parent.append(number)
        for file in files:
            for key in (f"path:{file.path}", f"sha256:{file.sha256}" if file.sha256 else None):
                if key is None:
                    continue
                first, second = self._root(self._owner.setdefault(key, number)), self._root(number)
                self._parent[max(first, second)] = min(first, second)

    def firsts(self) -> "array[int]":
        """Return the position of the first sample of each sample's cluster."""
        return array("Q", map(self._root, range(len(self._parent))))

    def _root(self, position: int) -> int:
        parent = self._parent
        while parent[position] != position:
            parent[position] = parent[parent[position]]
            position = parent[position]
        return position


def with_clusters(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """Return the samples with ``cluster`` set: connected components of samples that share a file (content or path).

    A cluster is named after its first sample. Stored clusters are replaced.
    """
    ordered = tuple(samples)
    clusters = Clusters()
    for sample in ordered:
        clusters.add(sample.files)
    firsts = clusters.firsts()
    return tuple(
        sample.model_copy(update={"cluster": ordered[first].id}) for sample, first in zip(ordered, firsts, strict=True)
    )
