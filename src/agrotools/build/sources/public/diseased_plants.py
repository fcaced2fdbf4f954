"""Photographs of plants with one disease named each: things for the questions about what ails a plant."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agrotools.build.sources.field.photos import diagnosis_of
from agrotools.build.sources.part import DataSet, photo_subject, photo_thing
from agrotools.build.sources.reading import read_photo, spread
from agrotools.build.templates import Thing
from agrotools.build.templates.slot_draft import JOINED
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, SampleFile
from agrotools.knowledge.entries import Entry
from agrotools.knowledge.kb_names import kb_names

CAUSES = {"fungus": "fungi", "oomycete": "oomycetes", "bacterium": "bacteria", "virus": "viruses"}
"""Kinds of cause that are asked about; their plurals are what templates call all such diseases of a plant."""
_SEVERAL_CAUSES = ("disease.banana_cigar_end_rot",)
"""A fungus, an oomycete or both: no one answer is right."""
_MOST_UNREADABLE = 0.1
_MOST_OPTIONS = 4
_SEED = 3


@dataclass(frozen=True)
class Disease:
    """One of the authors' labels: ``short`` is what it is called where the plant is known."""

    label: str
    plant: str
    entry: Entry

    @property
    def short(self) -> str:
        """A grapevine is a grape here."""
        return self.label.removeprefix(self.plant).removeprefix("vine ").strip()

    @property
    def cause(self) -> str | None:
        kind = self.entry.taxonomy.pathogen_type
        return None if kind not in CAUSES or self.entry.id in _SEVERAL_CAUSES else kind


@dataclass(frozen=True)
class DiseasedPlant:
    path: Path
    disease: Disease


def disease_subjects(
    name: str, pictures: Sequence[DiseasedPlant], diseases: Mapping[str, Disease], data: DataSet
) -> tuple[list[Subject], list[str]]:
    """As many pairs as samples, named after ``name``, and the pictures that had to be passed over. No more are opened
    than it takes. ``diseases`` are all that may be offered, by any key.

    Raises:
        BenchmarkError: many pictures cannot be read, or there are no two of a plant.
    """
    by_plant: dict[str, list[DiseasedPlant]] = {}
    for picture in pictures:
        by_plant.setdefault(picture.disease.plant, []).append(picture)
    order = np.random.default_rng(_SEED).permutation(sorted(by_plant))
    pairs = [pair for plant in order for pair in _pairs(by_plant[str(plant)])]
    subjects: list[Subject] = []
    unreadable: list[str] = []
    used: set[str] = set()
    opened = 0
    for pair in spread(pairs, lambda pair: pair[0].disease.plant, len(pairs), _SEED):
        if len(subjects) == data.samples:
            break
        opened += len(pair)
        broken = [picture.path.name for picture in pair if not _is_readable(picture.path)]
        unreadable += broken
        if broken:
            continue
        files = [data.originals.file(picture.path, note=_note(picture)) for picture in pair]
        hashes = {str(file.sha256) for file in files}
        if len(hashes) == len(files) and not hashes & used:
            used |= hashes
            subjects.append(_subject(f"{name}-{len(subjects)}", len(subjects), pair, files, diseases))
    if len(unreadable) > max(1, _MOST_UNREADABLE * opened):
        names = ", ".join(unreadable[:3])
        raise BenchmarkError(f"{len(unreadable)} of {opened} pictures cannot be read, such as {names}")
    if not subjects:
        raise BenchmarkError("no two pictures of a plant can be read")
    data.dropped["unreadable"] += len(unreadable)
    return subjects, unreadable


def _is_readable(path: Path) -> bool:
    """They were gathered from the web: one that is odd is passed over, many mean a download that went wrong."""
    try:
        read_photo(path)
    except BenchmarkError:
        return False
    return True


def _note(picture: DiseasedPlant) -> str:
    return f"Photograph of {picture.disease.plant} with a disease."


def _pairs(pictures: Sequence[DiseasedPlant]) -> Iterator[tuple[DiseasedPlant, DiseasedPlant]]:
    """Pictures of one plant two by two, by turns of one disease and of two, so that neither can be taken for granted.

    Diseases take turns too: of some there are a hundred times as many pictures as of others.
    """
    waiting: dict[str, list[DiseasedPlant]] = {}
    for picture in spread(pictures, lambda picture: picture.disease.label, len(pictures), _SEED):
        waiting.setdefault(picture.disease.label, []).append(picture)
    alike = zlib.crc32(pictures[0].disease.plant.encode()) % 2 == 0
    while labels := _next_labels(waiting, alike=alike) or _next_labels(waiting, alike=not alike):
        first, second = (waiting[label].pop(0) for label in labels)
        for label in dict.fromkeys(labels):
            waiting[label] = waiting.pop(label)
        yield first, second
        alike = not alike


def _next_labels(waiting: Mapping[str, Sequence[DiseasedPlant]], *, alike: bool) -> tuple[str, str] | None:
    """The diseases of the next two pictures, those first that waited longest."""
    if alike:
        return next(((label, label) for label, remaining in waiting.items() if len(remaining) >= 2), None)
    some = [label for label, remaining in waiting.items() if remaining]
    return (some[0], some[1]) if len(some) >= 2 else None


def _subject(
    name: str, number: int, pair: Sequence[DiseasedPlant], files: Sequence[SampleFile], diseases: Mapping[str, Disease]
) -> Subject:
    plant = pair[0].disease.plant
    of_plant = sorted((one for one in diseases.values() if one.plant == plant), key=lambda one: one.label)
    sought = _draw(*pair).choice([picture.disease.label for picture in pair])
    known = [(picture.disease, _words(picture, of_plant, str(sought))) for picture in pair]

    def thing(file: SampleFile, about: tuple[Disease, dict[str, str]], _: int) -> Thing:
        disease, words = about
        thought = f"I need to know which disease of {plant} {file.name} shows."
        truth = diagnosis_of(disease.label, disease.entry)
        crop = _crop(disease)
        return photo_thing(file, "diagnose_pest_disease", truth, thought, words, kind="disease", crop=crop)

    photos = list(zip(files, known, strict=True))
    return photo_subject(name, photos, thing, {"pair": number, "crop": plant}, "plant_disease")


def _draw(*pictures: DiseasedPlant) -> np.random.Generator:
    return np.random.default_rng([_SEED, *(zlib.crc32(picture.path.stem.encode()) for picture in pictures)])


def _crop(disease: Disease) -> str:
    """The plant by a name under which the knowledge base has the disease."""
    return disease.plant if kb_names().is_on(disease.entry, disease.plant) else disease.entry.crops[0]


def _words(picture: DiseasedPlant, of_plant: Sequence[Disease], sought: str) -> dict[str, str]:
    """Words for questions on a picture: its plant, the diseases offered, the one that somebody suspects."""
    draw, disease = _draw(picture), picture.disease
    others = [one for one in of_plant if one.label != disease.label]
    wrong = [others[int(place)] for place in draw.permutation(len(others))][: _MOST_OPTIONS - 1]
    offered = sorted([disease, *wrong], key=lambda one: one.short)
    suspected = wrong[0] if wrong and draw.random() < 0.5 else disease
    looked_for = next(one for one in of_plant if one.label == sought)
    shorts = [one.short for one in offered]
    words = {
        "plant": disease.plant,
        "disease": disease.short,
        "disease_id": disease.entry.id,
        "diseases": JOINED.join(one.short for one in of_plant),
        "label": disease.label,
        "kb_name": disease.entry.names.en,
        "choices": str(len(offered)),
        "offered": " or ".join(part for part in (", ".join(shorts[:-1]), shorts[-1]) if part),
        "suspected": suspected.short,
        "suspected_id": suspected.entry.id,
        "sought": looked_for.short,
        "sought_id": looked_for.entry.id,
        "cause": disease.cause or "",
        "sought_cause": f"an {looked_for.cause}" if looked_for.cause == "oomycete" else f"a {looked_for.cause}",
        "of_sought_cause": _ids(of_plant, looked_for.cause),
    }
    # Fewer than four are filled up with the last, which changes no choice.
    for place, one in enumerate([*offered, *[offered[-1]] * _MOST_OPTIONS][:_MOST_OPTIONS], start=1):
        words |= {f"option_{place}": one.short, f"id_{place}": one.entry.id}
    return words | {word: _ids(of_plant, kind) for kind, word in CAUSES.items()}


def _ids(diseases: Sequence[Disease], cause: str | None) -> str:
    """As a list that an expression can hold."""
    return str([one.entry.id for one in diseases if one.cause == cause])
