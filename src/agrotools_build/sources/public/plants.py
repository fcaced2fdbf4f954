"""Photographs of plants with one disease or weed each: PlantSeg, DeepWeeds, and questions on diseases of a plant.

PlantSeg (Wei et al. 2026) shows plants in the field with one disease per picture; its test split is used. Its masks
outline lesions but not leaves, so the diseased share of a leaf is unknown and not asked for. DeepWeeds (Olsen et al.
2019) shows weeds of Australian rangeland with one label per picture; the test part of fold 0 is used.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from agrotools.core import BenchmarkError, SampleFile
from agrotools.knowledge.entries import KnowledgeEntry
from agrotools.knowledge.kb_names import kb_names
from agrotools.knowledge.words import folded
from agrotools_build.sources.land import diagnosis_of, named_weeds, weed_subjects
from agrotools_build.sources.part import (
    DataSet,
    Part,
    Photo,
    listed,
    listing_of,
    photo_pairs,
    photo_subject,
    photo_thing,
)
from agrotools_build.sources.reading import (
    find_root,
    first_of,
    listed_items,
    read_mask,
    read_photo,
    read_rows,
    spread,
    with_files,
)
from agrotools_build.templates import Thing
from agrotools_build.templates.slot_draft import JOINED
from agrotools_build.templates.thing import Subject

CAUSES = {"fungus": "fungi", "oomycete": "oomycetes", "bacterium": "bacteria", "virus": "viruses"}
"""Kinds of causes in questions; the plurals are the templates' words for all such diseases of a plant."""
_SEVERAL_CAUSES = ("disease.banana_cigar_end_rot",)
"""Entries with several possible causes (a fungus, an oomycete or both), for which no single answer is right."""
_MOST_UNREADABLE = 0.1
_MOST_OPTIONS = 4
_SEED = 3


@dataclass(frozen=True)
class Disease:
    """One of the authors' labels. ``short`` is its name without the plant."""

    label: str
    plant: str
    entry: KnowledgeEntry

    @property
    def short(self) -> str:
        """Name without the plant; labels of grape begin with "grapevine"."""
        return self.label.removeprefix(self.plant).removeprefix("vine ").strip()

    @property
    def cause(self) -> str | None:
        kind = self.entry.taxonomy.pathogen_type
        return None if kind not in CAUSES or self.entry.id in _SEVERAL_CAUSES else kind


class DiseasedPlant(NamedTuple):
    path: Path
    disease: Disease


def disease_subjects(
    name: str, pictures: Sequence[DiseasedPlant], diseases: Mapping[str, Disease], data: DataSet
) -> list[Subject]:
    """Return at most as many pairs as samples, opening no more pictures than needed.

    ``diseases``: all that may be offered as choices. BenchmarkError: many pictures cannot be read.
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
        note = f"Photograph of {pair[0].disease.plant} with a disease."
        files = [data.originals.file(picture.path, note=note) for picture in pair]
        hashes = {str(file.sha256) for file in files}
        if len(hashes) == len(files) and not hashes & used:
            used |= hashes
            subjects.append(
                _subject(f"{name}-{len(subjects)}", len(subjects), pair, files, diseases)
            )
    if len(unreadable) > max(1, _MOST_UNREADABLE * opened):
        names = ", ".join(unreadable[:3])
        raise BenchmarkError(
            f"{len(unreadable)} of {opened} pictures cannot be read, such as {names}"
        )
    if not subjects:
        raise BenchmarkError("no two pictures of a plant can be read")
    data.dropped["unreadable"] += len(unreadable)
    return subjects


def _is_readable(path: Path) -> bool:
    """Return True if a picture can be opened; many of the web's that cannot indicate a failed download."""
    try:
        read_photo(path)
    except BenchmarkError:
        return False
    return True


def _pairs(pictures: Sequence[DiseasedPlant]) -> Iterator[tuple[DiseasedPlant, DiseasedPlant]]:
    """Pair pictures of one plant, in turn with one disease and with two; diseases take turns as well."""
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


def _next_labels(
    waiting: Mapping[str, Sequence[DiseasedPlant]], *, alike: bool
) -> tuple[str, str] | None:
    """Return the diseases of the next two pictures, those that waited longest first."""
    if alike:
        return next(
            ((label, label) for label, remaining in waiting.items() if len(remaining) >= 2), None
        )
    some = [label for label, remaining in waiting.items() if remaining]
    return (some[0], some[1]) if len(some) >= 2 else None


def _subject(
    name: str,
    number: int,
    pair: Sequence[DiseasedPlant],
    files: Sequence[SampleFile],
    diseases: Mapping[str, Disease],
) -> Subject:
    plant = pair[0].disease.plant
    of_plant = sorted(
        (one for one in diseases.values() if one.plant == plant), key=lambda one: one.label
    )
    sought = _draw(*pair).choice([picture.disease.label for picture in pair])
    known = [(picture.disease, _words(picture, of_plant, str(sought))) for picture in pair]

    def thing(file: SampleFile, about: tuple[Disease, dict[str, str]], _: int) -> Thing:
        disease, words = about
        thought = f"I need to know which disease of {plant} {file.name} shows."
        truth = diagnosis_of(disease.label, disease.entry)
        # The name under which the knowledge base lists the disease.
        crop = plant if kb_names().is_on(disease.entry, plant) else disease.entry.crops[0]
        return photo_thing(
            file, "diagnose_pest_disease", truth, thought, words, kind="disease", crop=crop
        )

    photos = list(zip(files, known, strict=True))
    return photo_subject(name, photos, thing, {"pair": number, "crop": plant}, "plant_disease")


def _draw(*pictures: DiseasedPlant) -> np.random.Generator:
    return np.random.default_rng(
        [_SEED, *(zlib.crc32(picture.path.stem.encode()) for picture in pictures)]
    )


def _words(picture: DiseasedPlant, of_plant: Sequence[Disease], sought: str) -> dict[str, str]:
    """Return words for questions on a picture: its plant, the diseases offered, the suspected one."""
    draw, disease = _draw(picture), picture.disease
    others = [one for one in of_plant if one.label != disease.label]
    wrong = [others[int(place)] for place in draw.permutation(len(others))][: _MOST_OPTIONS - 1]
    offered = sorted([disease, *wrong], key=lambda one: one.short)
    suspected = wrong[0] if wrong and draw.random() < 0.5 else disease
    looked_for = next(one for one in of_plant if one.label == sought)
    words = {
        "plant": disease.plant,
        "disease": disease.short,
        "disease_id": disease.entry.id,
        "diseases": JOINED.join(one.short for one in of_plant),
        "label": disease.label,
        "kb_name": disease.entry.names.en,
        "choices": str(len(offered)),
        "offered": listed([one.short for one in offered], "or"),
        "suspected": suspected.short,
        "suspected_id": suspected.entry.id,
        "sought": looked_for.short,
        "sought_id": looked_for.entry.id,
        "cause": disease.cause or "",
        "sought_cause": f"an {looked_for.cause}"
        if looked_for.cause == "oomycete"
        else f"a {looked_for.cause}",
        "of_sought_cause": _ids(of_plant, looked_for.cause),
    }
    # Fewer than four options are padded with the last one, which does not change the choice.
    for place, one in enumerate(
        [*offered, *[offered[-1]] * _MOST_OPTIONS][:_MOST_OPTIONS], start=1
    ):
        words |= {f"option_{place}": one.short, f"id_{place}": one.entry.id}
    return words | {word: _ids(of_plant, kind) for kind, word in CAUSES.items()}


def _ids(diseases: Sequence[Disease], cause: str | None) -> str:
    return str([one.entry.id for one in diseases if one.cause == cause])


def plantseg(data: DataSet) -> Part:
    """Pictures whose disease, or its cause, is to be named."""
    of, part = data.layout, data.listing.part
    root = find_root(data.folder, of["root"])
    table = first_of(root, of["rows"]["in"])
    tested = [row for row in read_rows(table, of["rows"]) if row["split"].lower() == "test"]
    diseases = known_diseases()
    # ``Index`` and the values of masks contradict the disease in some rows.
    known = [
        {**row, "disease": folded(row["disease"])}
        for row in tested
        if folded(row["disease"]) in diseases
    ]
    if not known:
        raise BenchmarkError(
            f"{table} names no disease of a test picture that the knowledge base has"
        )
    data.dropped["with a disease that the knowledge base has not"] += len(tested) - len(known)
    items = with_files(data, root, known, str(table))
    pictures = [
        DiseasedPlant(item.files["picture"], diseases[item.told["disease"]]) for item in items
    ]
    subjects = disease_subjects(part, pictures, diseases, data)
    subjects += _lesion_subjects(root / "annotations" / "test", pictures, data)
    return data.part(subjects, ["plant_disease", "disease_photo"])


def _lesion_subjects(
    masks: Path, pictures: Sequence[DiseasedPlant], data: DataSet
) -> list[Subject]:
    """Return subjects of two photos of a plant and the area of their lesions, from as many photos as samples."""
    by_plant: dict[str, list[Photo[int]]] = {}
    for path, disease in spread(pictures, lambda one: one.disease.plant, data.samples, _SEED):
        try:
            picture, lesions = read_photo(path), read_mask(masks / f"{path.stem}.png") > 0
        except BenchmarkError:
            data.dropped["without a readable mask of lesions"] += 1
            continue
        if lesions.shape == (picture.height, picture.width):
            note = f"Photograph of {disease.plant} with a disease."
            photo = data.originals.file(path, note=note), int(np.count_nonzero(lesions))
            by_plant.setdefault(disease.plant, []).append(photo)

    def subjects_of(plant: str) -> list[Subject]:
        def thing(file: SampleFile, lesions: int, _: int) -> Thing:
            words = {"plant": plant, "pixels": str((file.width_px or 0) * (file.height_px or 0))}
            thought = f"I need the area of the lesions in {file.name}."
            return photo_thing(
                file, "analyze_lesions", {"lesion_area_px": lesions}, thought, words, mode="field"
            )

        name = f"plantseg-lesions-{plant.replace(' ', '-')}"
        return photo_pairs(name, by_plant[plant], thing, {"crop": plant}, "lesion_photo")

    return [subject for plant in sorted(by_plant) for subject in subjects_of(plant)]


@cache
def known_diseases() -> dict[str, Disease]:
    """Return PlantSeg's labels that have an entry in the knowledge base, by folded label."""
    diseases: dict[str, Disease] = {}
    for entry in kb_names().entries:
        for label in entry.names.datasets.get("plantseg", ()):
            plant = next(
                (
                    plant
                    for plant in listing_of("plantseg").layout["plants"]
                    if label.startswith(plant)
                ),
                None,
            )
            if plant is not None:
                diseases.setdefault(folded(label), Disease(label, plant, entry))
    return diseases


def weeds(data: DataSet) -> Part:
    """Pictures of weeds and of other plants, to be named."""
    of = data.layout
    items = listed_items(data, find_root(data.folder, of["root"]))
    pictures = [(item.files["picture"], of["classes"][int(item.told["label"])]) for item in items]
    photos = named_weeds(
        spread(pictures, lambda picture: picture[1], data.wanted, of["seed"]), data
    )
    return data.part(weed_subjects(data.listing.part, photos), of["templates"])
