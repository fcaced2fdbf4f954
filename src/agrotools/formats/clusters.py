"""Clusters of samples that share a file or are twins."""

from array import array
from collections.abc import Iterable

from agrotools.core import Sample


def with_clusters(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """Return the samples with ``cluster`` set to that of :func:`cluster_names`. Stored clusters are replaced."""
    ordered = tuple(samples)
    names = cluster_names(ordered)
    return tuple(sample.model_copy(update={"cluster": name}) for sample, name in zip(ordered, names, strict=True))


def cluster_names(samples: Iterable[Sample]) -> list[str]:
    """Return the cluster of each sample: components connected by a shared file (content or path), or as twins.

    A cluster is named after its first sample. The samples need not be held in memory.
    """
    ids: list[str] = []
    parents = array("I")
    owners: dict[tuple[str, str], int] = {}

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    for number, sample in enumerate(samples):
        ids.append(sample.id)
        parents.append(number)
        if not sample.files and not sample.twin:
            continue
        keys = [key for file in sample.files for key in (("path", file.path), ("sha256", file.sha256 or file.path))]
        keys += [("twin", min(sample.id, sample.twin))] if sample.twin else []
        for key in keys:
            first, second = root(owners.setdefault(key, number)), root(number)
            parents[max(first, second)] = min(first, second)
    return [ids[root(number)] for number in range(len(ids))]
