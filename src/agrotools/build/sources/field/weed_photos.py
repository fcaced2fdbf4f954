"""Weeds of Australian rangeland, photographed from above and named by botanists (DeepWeeds)."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agrotools.build.sources.part import Originals, Part, named, pairs_of, read_items
from agrotools.build.templates import Thing, load_templates
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, SampleFile
from agrotools.formats.benchmark import SourceNote
from agrotools.tools.lookup.kb_names import kb_names

SAMPLES = 30
CITATION = (
    "Olsen, A. et al.: DeepWeeds: A Multiclass Weed Species Image Dataset for Deep Learning. Scientific Reports 9,"
    " 2058, 2019."
)
SOURCE = SourceNote(
    name="DeepWeeds",
    licence="CC BY 4.0 (images and annotations, as its README says)",
    url="https://github.com/AlexOlsen/DeepWeeds",
    citation=CITATION,
    note="Questions and reference calls are by agrotools; images and names are the authors'.",
)
_NONE = "negative"
_NOTE = "Rangeland in northern Australia, seen from above."


def weed_photos(folder: Path) -> Part:
    """Raises BenchmarkError: the data set is incomplete, or names a plant that the knowledge base does not have."""
    pictures = [(folder / item["image"], str(item["label"])) for item in read_items(folder, ("label",), ("image",))]
    return weed_photo_part("weed-photos", SOURCE, pictures, Originals(), SAMPLES)


def weed_photo_part(
    name: str, source: SourceNote, pictures: Iterable[tuple[Path, str]], originals: Originals, samples: int
) -> Part:
    """A part of pictures with their labels (one of the eight weeds, or ``negative``), two by two.

    Raises:
        BenchmarkError: the knowledge base does not have a plant of that name.
    """
    by_hash: dict[str, tuple[SampleFile, dict[str, Any]]] = {}
    for path, label in pictures:
        file = originals.file(path, note=_NOTE)
        by_hash[str(file.sha256)] = (file, _truth(label))
    subjects = [_subject(f"{name}-{number}", number, pair) for number, pair in enumerate(pairs_of(by_hash))]
    return Part(name, source, subjects, load_templates("weed"), samples, originals.files)


def _truth(label: str) -> dict[str, Any]:
    if label.lower() == _NONE:
        return {"common_name": None, "species": None, "best": _NONE, "kb_id": None, "is_weed": False}
    entry = kb_names().of_shipped(label.lower().replace(" ", "_"))
    if entry is None:
        raise BenchmarkError(f"the knowledge base has no weed {label!r}", hint="agrotools kb list --kind weed")
    names = {"common_name": entry.names.en, "species": entry.names.sci}
    return {**names, "best": entry.id, "kb_id": entry.id, "is_weed": True}


def _subject(name: str, number: int, pair: list[tuple[SampleFile, dict[str, Any]]]) -> Subject:
    def shown(index: int, place: int) -> Thing:
        original, truth = pair[index]
        file = named(original, "image", place)
        thought = f"I need to know which weed {file.name} shows, if any."
        return Thing((file,), "identify_weed", {"image": file.name}, truth, file.name, thought)

    return Subject(name, len(pair), shown, {"pair": number}, of="weed_photo")
