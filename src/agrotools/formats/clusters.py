"""Clusters of samples that share a file or are twins."""

from array import array
from collections.abc import Iterable

from agrotools.core import Sample


def with_clusters(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """Return the samples with ``cluster`` set to the id of its first sample. Stored clusters are replaced."""
    ordered = tuple(samples)
    firsts = cluster_firsts(ordered)
    return tuple(
        sample.model_copy(update={"cluster": ordered[first].id}) for sample, first in zip(ordered, firsts, strict=True)
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
        keys = [key for file in sample.files for key in (("path", file.path), ("sha256", file.sha256 or file.path))]
        keys += [("twin", min(sample.id, sample.twin))] if sample.twin else []
        keys += [("cluster", sample.cluster)] if sample.cluster else []
        for key in keys:
            first, second = root(owners.setdefault(key, number)), root(number)
            parents[max(first, second)] = min(first, second)
    parents.extend(range(len(parents), number + 1))
    for number in range(len(parents)) if owners else ():
        parents[number] = root(number)
    return parents
