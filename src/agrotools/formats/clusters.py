"""Clusters of samples that share a file or are twins."""

from collections.abc import Iterable

from agrotools.core import Sample


def with_clusters(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """Return the samples with ``cluster`` set: components connected by a shared file (content or path), or as twins.

    A cluster is named after its first sample. Stored clusters are replaced.
    """
    ordered = tuple(samples)
    parents = list(range(len(ordered)))
    owners: dict[tuple[str, str], int] = {}

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    for number, sample in enumerate(ordered):
        keys = [key for file in sample.files for key in (("path", file.path), ("sha256", file.sha256 or file.path))]
        keys += [("twin", min(sample.id, sample.twin))] if sample.twin else []
        for key in keys:
            first, second = root(owners.setdefault(key, number)), root(number)
            parents[max(first, second)] = min(first, second)
    return tuple(
        sample.model_copy(update={"cluster": ordered[root(number)].id}) for number, sample in enumerate(ordered)
    )
