"""Any data set that AgML distributes, from a local copy in its layout: ``agml:NAME``.

The layout depends on the task: folders named after classes; ``images`` and ``annotations`` (masks with class numbers
from 1); or ``images`` and ``annotations.json`` (COCO boxes). The questions depend on the subject: boxed fruit, flowers,
plants and leaves are counted, leaf diseases and weeds are named, areas of crop and weeds are measured. Class names are
in ``data/agml.toml``, so the package ``agml`` is only needed to fetch a data set: ``agml.data.AgMLDataLoader(NAME)``.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic.dataclasses import dataclass

from agrotools.build.area_truth import AreaTruth, Region, count_area
from agrotools.build.boxes import count_marks, read_marks
from agrotools.build.sources.assembling import assembled
from agrotools.build.sources.part import TABLES, DataSet, Listing, Part, first_few, hint_on_error, named, pairs_of
from agrotools.build.sources.photos import fruit_subjects, named_weeds, weed_subjects
from agrotools.build.sources.public.plants import Disease, DiseasedPlant, disease_subjects
from agrotools.build.sources.reading import (
    SUFFIXES,
    by_stem,
    existing_files,
    files_in,
    find_root,
    photo_file,
    read_photo,
    spread,
)
from agrotools.build.templates.field import FieldPicture, field_picture, field_templates
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, SampleFile, ToolError, UsageError
from agrotools.core.base import Progress, no_progress
from agrotools.core.files import read_table
from agrotools.formats.benchmark import BenchmarkHeader, SourceNote
from agrotools.formats.writing import check_replaceable
from agrotools.knowledge.kb_names import kb_names
from agrotools.tools.contract import shipped_file
from agrotools.vision.reading import read_labels

_HEALTHY = ("healthy", "normal", "fresh", "background", "no virus", "no damage")


@dataclass(frozen=True)
class AgmlDataSet:
    """A data set of AgML.

    Attributes:
        classes: classes in the order of their numbers, from 1.
        crop: crop of the leaves, if they are of a single crop.
        nouns: name of the object in a box of each class; empty if it cannot be counted.
    """

    name: str
    task: str
    about: str
    classes: tuple[str, ...]
    licence: str
    url: str
    crop: str | None = None
    nouns: tuple[str, ...] = ()

    @property
    def listing(self) -> Listing:
        """Listing as for a data set of ``sources.toml``."""
        source = SourceNote(
            name=f"{self.name} (AgML)",
            licence=self.licence or "not stated by AgML; see the data set's own page",
            url=self.url or None,
            citation="Distributed by AgML (Project-AgML/AgML).",
            note="Questions and reference calls are by agrotools; images and annotations are the authors', as AgML"
            " distributes them. No split is given.",
        )
        how = f"get it with AgML (pip install agml; agml.data.AgMLDataLoader('{self.name}'))"
        get_it = f"{how}, and give the folder that holds {_LAYOUT[self.task]}"
        return Listing(source=source, get_it=get_it, part=f"agml-{self.name.replace('_', '-')}")


_LAYOUT = {
    "image_classification": "a folder of pictures for each class",
    "semantic_segmentation": "images and annotations",
    "object_detection": "images and annotations.json",
}


@cache
def described() -> Mapping[str, AgmlDataSet]:
    """Return AgML's data sets by name."""
    return {name: AgmlDataSet(name, **entry) for name, entry in read_table(shipped_file("agml.toml")).items()}


@cache
def diseases_of(of: AgmlDataSet) -> dict[str, Disease]:
    """Return the diseases of the knowledge base among the classes, by name of the folder; empty if fewer than two."""
    diseases: dict[str, Disease] = {}
    for name in of.classes:
        crop, disease = of.crop, _noun(name)
        if "___" in name:
            crop, disease = (_noun(part) for part in name.split("___", 1))
        if crop is None or is_healthy(name):
            continue
        disease = disease.removeprefix(f"{crop} ")
        names = (disease, f"{crop} {disease}")
        entries = (kb_names().of_name(one, ("disease",), crop) for one in names)
        entry = next((one for one in entries if one is not None and kb_names().is_on(one, crop)), None)
        if entry is not None and entry.id not in {one.entry.id for one in diseases.values()}:
            diseases[name] = Disease(f"{crop} {disease}", crop, entry)
    return diseases if len(diseases) > 1 else {}


def is_healthy(name: str) -> bool:
    """Return True if a class is of plants without a disease."""
    return any(word in _noun(name) for word in _HEALTHY)


def _noun(name: str) -> str:
    """Return a class name as lower-case words: ``green_cabbage`` gives ``green cabbage``."""
    return " ".join(name.replace("_", " ").replace("-", " ").lower().split())


PREFIX = "agml:"
SAMPLES = 60
_SEED = 21


def build_agml(source: str, allow_missing: bool = False) -> Callable[[Path, Path, Progress], BenchmarkHeader]:
    """Return the builder of a benchmark from ``agml:NAME``.

    Raises:
        UsageError: AgML has no such data set, or there are no questions about its subject.
    """
    name = source.removeprefix(PREFIX)
    if name not in described():
        close = get_close_matches(name, described(), 3, 0.5)
        raise UsageError(f"AgML has no data set {name!r}", hint=f"closest: {', '.join(close) or 'none'}")
    if _reader(described()[name]) is None:
        able = ", ".join(one for one, entry in described().items() if _reader(entry))
        why = f"{name} is about {described()[name].about.replace('_', ' ')}, and there are no questions about that"
        raise UsageError(why, hint=f"there are about: {able}")

    def build(folder: Path, out: Path, progress: Progress = no_progress) -> BenchmarkHeader:
        check_replaceable(out)
        with tempfile.TemporaryDirectory(prefix="agrotools-") as scratch:
            part = read_agml(name, folder, Path(scratch), SAMPLES, allow_missing)
            return assembled(
                [part],
                out,
                name=part.name,
                version="1",
                description=f"Questions on {name}, as AgML distributes it.",
                progress=progress,
            )

    return build


def read_agml(name: str, folder: Path, scratch: Path, samples: int, allow_missing: bool = False) -> Part:
    """Read the data set in ``folder`` as a part of at most ``samples`` samples.

    Raises:
        BenchmarkError: the data set is missing, incomplete, or not in AgML's layout.
    """
    of = described()[name]
    reader = _reader(of)
    if reader is None:
        raise BenchmarkError(f"there are no questions about {of.about}")
    with hint_on_error(of.listing.get_it):
        part = reader(of, DataSet(folder, of.listing, samples, scratch, allow_missing))
        if not part.subjects:
            raise BenchmarkError(f"{folder} has no picture of {name} that can be asked about")
    return part


def _reader(of: AgmlDataSet) -> Callable[[AgmlDataSet, DataSet], Part] | None:
    if "synthetic" in of.name:
        return None
    match of.task, of.about:
        case "object_detection", _:
            return _counted if of.nouns else None
        case "image_classification", "weed_classification":
            are_known = all(name == "negative" or kb_names().of_shipped(name) for name in of.classes)
            return _weeds if are_known else None
        case "image_classification", "disease_classification" | "leaf_classification":
            return _diseased if diseases_of(of) else None
        case "semantic_segmentation", "weed_segmentation":
            return _weed_areas
        case _:
            return None


def _counted(of: AgmlDataSet, data: DataSet) -> Part:
    root = find_root(data.folder, ("images", "annotations.json"))
    by_picture = _boxes(root / "annotations.json", of, data.dropped)
    there = existing_files(data, root / "images", by_picture)
    by_picture = {name: boxes for name, boxes in by_picture.items() if name in there}
    nouns = sorted({*of.nouns} - {""})
    some = spread(by_picture, lambda name: min(sum(by_picture[name].values()), 30), data.wanted, _SEED)
    subjects: list[Subject] = []
    for number, noun in enumerate(nouns):
        photos = [
            (photo_file(root / "images" / name, data), by_picture[name][noun]) for name in some[number :: len(nouns)]
        ]
        subjects += fruit_subjects(f"agml-{noun.replace(' ', '-')}", noun, _plural(noun), photos, of="fruit_photo")
    return data.part(subjects, ["fruit_photo"])


def _boxes(path: Path, of: AgmlDataSet, dropped: Counter[str]) -> dict[str, Counter[str]]:
    """Return the number of boxes of each noun in every picture, by file name."""
    pictures, holds = read_marks(path) or [], dict(zip(of.classes, of.nouns, strict=True))
    strange = {mark.label for _, marks in pictures for mark in marks} - {*of.classes}
    if strange and not any(mark.label in holds for _, marks in pictures for mark in marks):
        raise BenchmarkError(f"{path} has classes that {of.name} has not: {first_few(sorted(strange))}")
    by_picture: dict[str, Counter[str]] = {}
    for name, marks in pictures:
        nouns = (mark._replace(label=holds[mark.label]) for mark in marks if holds.get(mark.label))
        counts, faults = count_marks(nouns)
        dropped["boxes that cannot be counted"] += faults.total()
        if None not in counts.values():  # as beside a region of several objects
            by_picture[Path(name).name] = Counter({noun: count or 0 for noun, count in counts.items()})
    return by_picture


def _plural(noun: str) -> str:
    first, _, last = noun.rpartition(" ")
    many = TABLES["plurals"].get(last) or (last if last.endswith("s") else f"{last}s")
    return f"{first} {many}".strip()


def _diseased(of: AgmlDataSet, data: DataSet) -> Part:
    known = diseases_of(of)
    root = _class_root(of, data)
    pictures: list[DiseasedPlant] = []
    for place in sorted(path for path in root.iterdir() if path.name in of.classes):
        there = files_in(place, SUFFIXES)
        if place.name in known:
            pictures += [DiseasedPlant(path, known[place.name]) for path in there]
        else:
            why = "of healthy leaves" if is_healthy(place.name) else "with a disease that the knowledge base has not"
            data.dropped[why] += len(there)
    if len({picture.disease.label for picture in pictures}) < 2:
        raise BenchmarkError(f"{root} has pictures of fewer than two diseases that are known")
    subjects = disease_subjects("agml", pictures, known, data)
    return data.part(subjects, ["plant_disease"])


def _class_root(of: AgmlDataSet, data: DataSet) -> Path:
    for name in of.classes:
        with suppress(BenchmarkError):
            return find_root(data.folder, (name,))
    raise BenchmarkError(f"{data.folder} has no folder of a class, such as {of.classes[0]}")


def _weeds(of: AgmlDataSet, data: DataSet) -> Part:
    root = _class_root(of, data)
    pictures = [(path, name.replace("_", " ")) for name in of.classes for path in files_in(root / name, SUFFIXES)]
    some = spread(pictures, lambda picture: picture[1], data.wanted, _SEED)
    return data.part(weed_subjects("agml", named_weeds(some, data)), ["weed"])


def _weed_areas(of: AgmlDataSet, data: DataSet) -> Part:
    root = find_root(data.folder, ("images", "annotations"))
    meaning = np.zeros(256, np.uint8)
    for number, name in enumerate(of.classes, start=1):
        meaning[number] = 2 if "weed" in name.lower() else 1
    masks, pictures = by_stem(root / "annotations", SUFFIXES), files_in(root / "images", SUFFIXES)
    if not pictures:
        raise BenchmarkError(f"{root} lacks pictures")
    listed = (masks[path.stem].name if path.stem in masks else f"{path.stem}.png" for path in pictures)
    existing_files(data, root / "annotations", listed)
    pictures = [path for path in pictures if path.stem in masks]
    class_maps: list[tuple[SampleFile, NDArray[np.uint8]]] = []
    for path in spread(pictures, lambda _: 0, data.wanted, _SEED):
        picture = read_photo(path)
        try:
            values = read_labels(masks[path.stem], shown_as=masks[path.stem].name).classes
        except ToolError:
            data.dropped["with a mask that cannot be read"] += 1
            continue
        if values.shape != (picture.height, picture.width):
            data.dropped["with a mask of another size"] += 1
        elif int(values.max(initial=0)) > len(of.classes):
            data.dropped["with numbers that no class has"] += 1
        else:
            file = data.originals.file(path, note="Field seen from above.")
            class_maps.append((file, meaning[values.astype(np.uint8)]))
    return data.part(
        [_weedy_subject(number, pair) for number, pair in enumerate(pairs_of(class_maps))], field_templates()
    )


def _weedy_subject(number: int, pair: Sequence[tuple[SampleFile, NDArray[np.uint8]]]) -> Subject:
    def picture(index: int, position: int) -> FieldPicture:
        original, classes = pair[index]
        file = named(original, "image", position)
        rows, columns = classes.shape

        def area(region: Region | None) -> AreaTruth:
            return count_area(classes, None, region)

        return field_picture((file,), {"image": file.name}, area, columns, rows)

    return Subject(f"agml-{number}", len(pair), picture, {"pair": number})
