"""PlantSeg (Wei et al. 2026): plants in the field with one disease named a picture; the test split.

Its masks outline lesions but no leaves, so how much of a leaf is ill is not known, and not asked.
"""

import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import JsonValue

from agrotools.construct.asking import Subject
from agrotools.construct.sources.part import Originals, Part, named
from agrotools.construct.sources.public.layout import find_root, read_table, spread
from agrotools.construct.sources.public.pictures import SUFFIXES, upright_size
from agrotools.construct.sources.wording import first_few
from agrotools.construct.templates import Thing, load_templates
from agrotools.core import BenchmarkError, Sample, SampleFile
from agrotools.core.benchmark_header import SourceNote
from agrotools.knowledge.entry import Entry
from agrotools.knowledge.words import folded
from agrotools.tools.recognition.kb_names import kb_names

GET_IT = (
    "get plantseg.zip from Zenodo record 17719108 (1 GB), so that images/test and Metadata.csv lie side by side; older"
    " records have Metadatav2.csv"
)
SOURCE = SourceNote(
    name="PlantSeg",
    licence="CC BY-NC 4.0 (Zenodo record 17719108), some pictures CC0",
    url="https://zenodo.org/records/17719108",
    citation="Wei, T. et al.: PlantSeg: A Large-Scale In-the-wild Dataset for Plant Disease Segmentation."
    " Scientific Data, 2026, doi 10.1038/s41597-025-06513-4; arXiv 2409.04038.",
    note="Questions and reference calls are by agrotools, what causes a disease is said by its knowledge base; images"
    " and names of diseases are the authors'. Test split. Other records than the one named may have other terms.",
)
PLANTS = (
    "apple", "banana", "basil", "bean", "bell pepper", "blueberry", "broccoli", "cabbage", "carrot", "cauliflower",
    "celery", "cherry", "citrus", "coffee", "corn", "cucumber", "eggplant", "garlic", "ginger", "grape", "lettuce",
    "maple", "peach", "plum", "potato", "raspberry", "rice", "soybean", "squash", "strawberry", "tobacco", "tomato",
    "wheat", "zucchini",
)  # fmt: skip
"""A label begins with its plant."""
CAUSES = {"fungus": "fungi", "oomycete": "oomycetes", "bacterium": "bacteria", "virus": "viruses"}
"""Kinds of cause that are asked about; their plurals are what templates call all such diseases of a plant."""
_SEVERAL_CAUSES = ("disease.banana_cigar_end_rot",)
"""A fungus, an oomycete or both: no one answer is right."""
_KEY = "plantseg"
_METADATA = ("metadata.csv", "metadatav2.csv")
_SPLITS = {"training": "train", "train": "train", "validation": "val", "val": "val", "test": "test"}
_LATEST = {"train": 5367, "val": 846, "test": 1561}
_V3_TRAINING = 7916
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
class _Picture:
    path: Path
    disease: Disease


def read(folder: Path, scratch: Path, samples: int) -> Part:  # noqa: ARG001 - nothing is made from these pictures
    """Raises BenchmarkError: the data set is incomplete, or not as its authors describe it."""
    table = _table_in(find_root(folder, ("images/test",), get_it=GET_IT))
    rows = read_table(table, ("Name", "Disease", "Split"), get_it=GET_IT)
    strange = sorted({row["Split"] for row in rows if row["Split"].strip().lower() not in _SPLITS})
    if strange:
        raise BenchmarkError(f"{table} has splits that are not known: {', '.join(strange[:5])}", hint=GET_IT)
    in_split = Counter(_SPLITS[row["Split"].strip().lower()] for row in rows)
    tested = [row for row in rows if row["Split"].strip().lower() == "test"]
    diseases = known_diseases()
    known = [row for row in tested if folded(row["Disease"]) in diseases]
    unknown = Counter(row["Disease"] for row in tested if folded(row["Disease"]) not in diseases)
    if not known:
        raise BenchmarkError(f"{table} names no disease of a test picture that the knowledge base has", hint=GET_IT)
    pictures = _pictures(table.parent / "images" / "test", known, diseases)
    originals = Originals()
    subjects, unreadable = _subjects(pictures, diseases, originals, samples)
    return Part(
        "plantseg",
        SOURCE,
        subjects,
        load_templates("plant_disease"),
        samples,
        originals.files,
        metadata={
            "plantseg_version": _version(table.name, in_split),
            "plantseg_pictures": {**in_split},
            "plantseg_left_out": {
                "not in the knowledge base": {**unknown},
                "cannot be read": [*unreadable],
            },
        },
        described=_told_of_calls,
    )


def _told_of_calls(samples: Sequence[Sample]) -> dict[str, JsonValue]:
    """How the tool fared. Most plants are not among those that the shipped net knows: such a call is kept as the error
    that it gives, with the truth beside it, since a picture can be judged by eye or by the tool's other back-ends."""
    observed = [step.observation for sample in samples if sample.reference for step in sample.reference.steps]
    ended = Counter(one.error.kind if one.error else "diagnosis" for one in observed if one)
    return {"plantseg_reference_calls": {**ended}}


def known_diseases() -> dict[str, Disease]:
    """The authors' labels that the knowledge base has an entry for, by label as names are compared."""
    found: dict[str, Disease] = {}
    for entry in kb_names().entries:
        for label in entry.names.datasets.get(_KEY, ()):
            plant = next((plant for plant in PLANTS if label.startswith(plant)), None)
            if plant is not None:
                found.setdefault(folded(label), Disease(label, plant, entry))
    return found


def _table_in(root: Path) -> Path:
    there = {path.name.lower(): path for path in sorted(root.iterdir()) if path.is_file()}
    for name in _METADATA:
        if name in there:
            return there[name]
    raise BenchmarkError(f"{root} has neither Metadata.csv nor Metadatav2.csv", hint=GET_IT)


def _version(name: str, in_split: Mapping[str, int]) -> str:
    """Which of the records it seems to be: they are told apart by the name of the table and by counts alone."""
    counts = "/".join(str(in_split.get(part, 0)) for part in _LATEST)
    if name.lower() == _METADATA[0]:
        return "Zenodo record 17719108" if in_split == _LATEST else f"not known: Metadata.csv with {counts} pictures"
    if in_split.get("train") == _V3_TRAINING:
        return "version 3 (Zenodo record 14935094)"
    return f"version 2 (Zenodo record 13958858) or a copy of it: Metadatav2.csv with {counts} pictures"


def _pictures(place: Path, rows: Sequence[Mapping[str, str]], diseases: Mapping[str, Disease]) -> list[_Picture]:
    """Every row's picture; which of the suffixes it has, a row does not tell reliably."""
    files = sorted(path for path in place.iterdir() if not path.name.startswith("."))
    by_stem = {path.stem: path for path in files if path.suffix.lower() in SUFFIXES}
    names = [_stem(row["Name"]) for row in rows]
    missing = [name or "a picture without a name" for name in names if name not in by_stem]
    if missing:
        raise BenchmarkError(f"{place} lacks {first_few(missing)}", hint=GET_IT)
    named_in = {name: folded(row["Disease"]) for name, row in zip(names, rows, strict=True)}
    for name, row in zip(names, rows, strict=True):
        if named_in[name] != folded(row["Disease"]):
            raise BenchmarkError(f"{name} has two diseases in the metadata, and each picture shows one", hint=GET_IT)
    return [_Picture(by_stem[name], diseases[label]) for name, label in named_in.items()]


def _stem(name: str) -> str:
    """Only a picture's suffix is cut off: names may hold other dots."""
    plain = Path(name.strip().replace("\\", "/")).name
    return Path(plain).stem if Path(plain).suffix.lower() in SUFFIXES else plain


def _subjects(
    pictures: Sequence[_Picture], diseases: Mapping[str, Disease], originals: Originals, samples: int
) -> tuple[list[Subject], list[str]]:
    """As many pairs as samples, and the pictures that had to be passed over. No more are opened than it takes."""
    by_plant: dict[str, list[_Picture]] = {}
    for picture in pictures:
        by_plant.setdefault(picture.disease.plant, []).append(picture)
    order = np.random.default_rng(_SEED).permutation(sorted(by_plant))
    pairs = [pair for plant in order for pair in _pairs(by_plant[str(plant)])]
    subjects: list[Subject] = []
    unreadable: list[str] = []
    used: set[str] = set()
    opened = 0
    for pair in spread(pairs, lambda pair: pair[0].disease.plant, len(pairs), _SEED):
        if len(subjects) == samples:
            break
        opened += len(pair)
        broken = [picture.path.name for picture in pair if not _readable(picture.path)]
        unreadable += broken
        if broken:
            continue
        files = [originals.file(picture.path, note=_note(picture)) for picture in pair]
        hashes = {str(file.sha256) for file in files}
        if len(hashes) == len(files) and not hashes & used:
            used |= hashes
            subjects.append(_subject(len(subjects), pair, files, diseases))
    if len(unreadable) > max(1, _MOST_UNREADABLE * opened):
        raise BenchmarkError(
            f"{len(unreadable)} of {opened} pictures cannot be read, such as {', '.join(unreadable[:3])}", hint=GET_IT
        )
    if not subjects:
        raise BenchmarkError("no two pictures of a plant can be read", hint=GET_IT)
    return subjects, unreadable


def _readable(path: Path) -> bool:
    """They were gathered from the web: one that is odd is passed over, many mean a download that went wrong."""
    try:
        upright_size(path, get_it=GET_IT)
    except BenchmarkError:
        return False
    return True


def _note(picture: _Picture) -> str:
    return f"Photograph of {picture.disease.plant} with a disease."


def _pairs(pictures: Sequence[_Picture]) -> Iterator[tuple[_Picture, _Picture]]:
    """Pictures of one plant two by two, by turns of one disease and of two, so that neither can be taken for granted.

    Diseases take turns too: of some there are a hundred times as many pictures as of others.
    """
    waiting: dict[str, list[_Picture]] = {}
    for picture in spread(pictures, lambda picture: picture.disease.label, len(pictures), _SEED):
        waiting.setdefault(picture.disease.label, []).append(picture)
    alike = zlib.crc32(pictures[0].disease.plant.encode()) % 2 == 0
    while taken := _taken(waiting, alike=alike) or _taken(waiting, alike=not alike):
        first, second = (waiting[label].pop(0) for label in taken)
        for label in dict.fromkeys(taken):
            waiting[label] = waiting.pop(label)
        yield first, second
        alike = not alike


def _taken(waiting: Mapping[str, Sequence[_Picture]], *, alike: bool) -> tuple[str, str] | None:
    """The diseases of the next two pictures, those first that waited longest."""
    if alike:
        return next(((label, label) for label, left in waiting.items() if len(left) >= 2), None)
    some = [label for label, left in waiting.items() if left]
    return (some[0], some[1]) if len(some) >= 2 else None


def _subject(
    number: int, pair: Sequence[_Picture], files: Sequence[SampleFile], diseases: Mapping[str, Disease]
) -> Subject:
    plant = pair[0].disease.plant
    of_plant = sorted((one for one in diseases.values() if one.plant == plant), key=lambda one: one.label)
    sought = _draw(*pair).choice([picture.disease.label for picture in pair])
    words = [_words(picture, of_plant, str(sought)) for picture in pair]

    def shown(index: int, place: int) -> Thing:
        file, disease = named(files[index], "image", place), pair[index].disease
        thought = f"I need to know which disease of {plant} {file.name} shows."
        arguments: dict[str, Any] = {"image": file.name, "kind": "disease", "crop": _crop(disease)}
        return Thing((file,), "diagnose_pest_disease", arguments, _truth(disease), file.name, thought, words[index])

    return Subject(f"plantseg-{number}", len(pair), shown, {"pair": number, "crop": plant}, of="plant_disease")


def _draw(*pictures: _Picture) -> np.random.Generator:
    return np.random.default_rng([_SEED, *(zlib.crc32(picture.path.stem.encode()) for picture in pictures)])


def _crop(disease: Disease) -> str:
    """The plant by a name under which the knowledge base has the disease."""
    return disease.plant if kb_names().is_on(disease.entry, disease.plant) else disease.entry.crops[0]


def _truth(disease: Disease) -> dict[str, JsonValue]:
    names = disease.entry.names
    candidate: dict[str, JsonValue] = {
        "label": disease.label,
        "common_name": names.en,
        "scientific_name": names.sci,
        "kind": disease.entry.kind,
        "kb_id": disease.entry.id,
    }
    return {"best": disease.entry.id, "abstained": False, "candidates": [candidate]}


def _words(picture: _Picture, of_plant: Sequence[Disease], sought: str) -> dict[str, str]:
    """What wordings and answers say of a picture: its plant, the diseases offered, the one that somebody suspects."""
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
    for place, one in enumerate(offered, start=1):
        words |= {f"option_{place}": one.short, f"id_{place}": one.entry.id}
    return words | {word: _ids(of_plant, kind) for kind, word in CAUSES.items()}


def _ids(diseases: Sequence[Disease], cause: str | None) -> str:
    """As a list that an expression can hold."""
    return str([one.entry.id for one in diseases if one.cause == cause])
