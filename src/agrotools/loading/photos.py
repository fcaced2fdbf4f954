"""Names that the pictures of samples had before the benchmark named them: those of a user's photos."""

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from agrotools.core import FrozenModel, Sample, SampleFile
from agrotools.core.form_item import asked_items


class SampleOfPhotos(FrozenModel):
    """A sample with the photos that it is about. ``asks``: the items of its answer form."""

    id: str
    photos: tuple[str, ...]
    question: str
    asks: str


def samples_of_photos(samples: Sequence[Sample]) -> list[SampleOfPhotos]:
    """Return the samples whose photos had other names, with these names."""
    asks = asks_by_sample(samples)
    return [
        SampleOfPhotos(id=each.id, photos=photos, question=each.query, asks=asks[each.id])
        for each in samples
        if (photos := photos_of(each))
    ]


def photos_of(sample: Sample) -> tuple[str, ...]:
    """Return the names that the files of a sample had, as far as they are known and differ."""
    known = (known_name(file, sample) for file in sample.files)
    return tuple(filter(None, known))


def known_name(file: SampleFile, sample: Sample) -> str:
    """Return the name that a file had, perhaps with its folders; empty if it is not known or is the same."""
    photos = sample.metadata.get("photos")
    known = (
        photos.get(str(file.sha256))
        if isinstance(photos, dict)
        else (sample.published_paths or {}).get(file.name)
    )
    name = str(known or "")
    return name if PurePosixPath(name).name != file.name else ""


def asks_by_sample(samples: Iterable[Sample]) -> dict[str, str]:
    """Return what each sample asks for, to tell it from others of its photo: ``above_limit, value``.

    The column of the user's table is named, too, if there are several: ``Apples: value``.
    """
    told: list[tuple[str, str, str]] = []
    for sample in samples:
        items = ", ".join(item.name for item in asked_items(sample.answer))
        told.append((sample.id, str(sample.metadata.get("column") or ""), items))
    has_several = len({column for _, column, _ in told}) > 1
    return {
        name: f"{column}: {items}" if has_several and column else items
        for name, column, items in told
    }
