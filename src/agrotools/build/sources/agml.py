"""Any data set that AgML distributes, from a local copy in its layout: ``agml:NAME``.

The layout depends on the task: folders named after classes; ``images`` and ``annotations`` (masks with class numbers
from 1); or ``images`` and ``annotations.json`` (COCO boxes). The questions depend on the subject: boxed fruit, flowers,
plants and leaves are counted, leaf diseases and weeds are named, areas of crop and weeds are measured. Class names are
in ``data/agml.toml``, so the package ``agml`` is only needed to fetch a data set: ``agml.data.AgMLDataLoader(NAME)``.
"""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.build.area_truth import count_area
from agrotools.build.sources.part import Adapter, DataSet, Listing, Part, photo_pairs
from agrotools.build.sources.public.counts import boxed
from agrotools.build.sources.public.plants import (
    Disease,
    DiseasedPlant,
    disease_subjects,
    pictures_by_class,
    weeds,
)
from agrotools.build.sources.reading import (
    SUFFIXES,
    Item,
    by_stem,
    existing_items,
    files_in,
    find_root,
    read_photo,
    spread,
)
from agrotools.build.templates.field import FieldPicture, field_picture
from agrotools.build.templates.template import field_templates
from agrotools.core import BenchmarkError, SampleFile, ToolError, UsageError
from agrotools.core.files import read_table
from agrotools.formats.benchmark import SourceNote
from agrotools.knowledge.kb_names import kb_names
from agrotools.tools.contract import shipped_file
from agrotools.vision.reading import read_labels

_HEALTHY = ("healthy", "normal", "fresh", "background", "no virus", "no damage")
_LAYOUTS = {
    "image_classification": "a folder of pictures for each class",
    "semantic_segmentation": "images and annotations",
    "object_detection": "images and annotations.json",
}


@cache
def described() -> Mapping[str, Listing]:
    """Return AgML's data sets by name."""
    return {
        name: _listing(name, entry) for name, entry in read_table(shipped_file("agml.toml")).items()
    }


def _listing(name: str, entry: Mapping[str, Any]) -> Listing:
    source = SourceNote(
        name=f"{name} (AgML)",
        licence=entry["licence"] or "not stated by AgML; see the data set's own page",
        url=entry["url"] or None,
        citation="Distributed by AgML (Project-AgML/AgML).",
        note="Questions and reference calls are by agrotools; images and annotations are the authors', as AgML"
        " distributes them. No split is given.",
    )
    how = f"get it with AgML (pip install agml; agml.data.AgMLDataLoader('{name}'))"
    get_it = f"{how}, and give the folder that holds {_LAYOUTS[entry['task']]}"
    layout = {"crop": None, "nouns": (), "seed": 21, **entry}
    return Listing(
        source=source,
        get_it=get_it,
        part=f"agml-{name.replace('_', '-')}",
        samples=60,
        layout=layout,
    )


def agml_adapter(source: str) -> Adapter:
    """Return the adapter of ``agml:NAME``; UsageError if there is no such data set, or no question about it."""
    name = source.removeprefix("agml:")
    if name not in described():
        close = get_close_matches(name, described(), 3, 0.5)
        raise UsageError(
            f"AgML has no data set {name!r}", hint=f"closest: {', '.join(close) or 'none'}"
        )
    reader = reader_of(name)
    if reader is None:
        able = ", ".join(one for one in described() if reader_of(one))
        about = str(described()[name].layout["about"]).replace("_", " ")
        raise UsageError(
            f"{name} is about {about}, and there are no questions about that",
            hint=f"there are about: {able}",
        )
    return Adapter(source, reader, described()[name])


def reader_of(name: str) -> Callable[[DataSet], Part] | None:
    """Return the reader of a data set, None if there are no questions about its subject."""
    of = described()[name].layout
    match of["task"], of["about"]:
        case _ if "synthetic" in name:
            return None
        case "object_detection", _:
            return boxed if of["nouns"] else None
        case "image_classification", "weed_classification":
            are_known = all(
                name == "negative" or kb_names().of_shipped(name) for name in of["classes"]
            )
            return weeds if are_known else None
        case "image_classification", "disease_classification" | "leaf_classification":
            return _diseased if diseases_of(of["classes"], of["crop"]) else None
        case "semantic_segmentation", "weed_segmentation":
            return _weed_areas
        case _:
            return None


@cache
def diseases_of(classes: Sequence[str], of_crop: str | None) -> dict[str, Disease]:
    """Return the diseases of the knowledge base among the classes, by name of the folder; empty if fewer than two."""
    diseases: dict[str, Disease] = {}
    for name in classes:
        crop, disease = of_crop, _noun(name)
        if "___" in name:
            crop, disease = (_noun(part) for part in name.split("___", 1))
        if crop is None or is_healthy(name):
            continue
        disease = disease.removeprefix(f"{crop} ")
        names = (disease, f"{crop} {disease}")
        entries = (kb_names().of_name(one, ("disease",), crop) for one in names)
        entry = next(
            (one for one in entries if one is not None and kb_names().is_on(one, crop)), None
        )
        if entry is not None and entry.id not in {one.entry.id for one in diseases.values()}:
            diseases[name] = Disease(f"{crop} {disease}", crop, entry)
    return diseases if len(diseases) > 1 else {}


def is_healthy(name: str) -> bool:
    """Return True if a class is of plants without a disease."""
    return any(word in _noun(name) for word in _HEALTHY)


def _noun(name: str) -> str:
    return " ".join(name.replace("_", " ").replace("-", " ").lower().split())


def _diseased(data: DataSet) -> Part:
    known = diseases_of(data.layout["classes"], data.layout["crop"])
    pictures: list[DiseasedPlant] = []
    for path, name in sorted(pictures_by_class(data)):
        if name in known:
            pictures.append(DiseasedPlant(path, known[name]))
        else:
            why = (
                "of healthy leaves"
                if is_healthy(name)
                else "with a disease that the knowledge base has not"
            )
            data.dropped[why] += 1
    if len({picture.disease.label for picture in pictures}) < 2:
        raise BenchmarkError(
            f"{data.folder} has pictures of fewer than two diseases that are known"
        )
    return data.part(disease_subjects("agml", pictures, known, data), ["plant_disease"])


def _weed_areas(data: DataSet) -> Part:
    root, classes = find_root(data.folder, ("images", "annotations")), data.layout["classes"]
    meaning = np.zeros(256, np.uint8)
    for number, name in enumerate(classes, start=1):
        meaning[number] = 2 if "weed" in name.lower() else 1
    masks = by_stem(root / "annotations", SUFFIXES)
    items = [
        Item(
            path.name,
            {"mask": masks.get(path.stem, root / f"annotations/{path.stem}.png"), "picture": path},
            {},
        )
        for path in files_in(root / "images", SUFFIXES)
    ]
    if not items:
        raise BenchmarkError(f"{root} lacks pictures")
    class_maps: list[tuple[SampleFile, NDArray[np.uint8]]] = []
    for item in spread(
        existing_items(data, root, items), lambda _: 0, data.wanted, data.layout["seed"]
    ):
        picture, mask = read_photo(item.files["picture"]), item.files["mask"]
        try:
            values = read_labels(mask, shown_as=mask.name).classes
        except ToolError:
            data.dropped["with a mask that cannot be read"] += 1
            continue
        if values.shape != (picture.height, picture.width):
            data.dropped["with a mask of another size"] += 1
        elif int(values.max(initial=0)) > len(classes):
            data.dropped["with numbers that no class has"] += 1
        else:
            file = data.originals.file(item.files["picture"], note="Field seen from above.")
            class_maps.append((file, meaning[values.astype(np.uint8)]))
    return data.part(photo_pairs("agml", class_maps, _weedy, {}, "field"), field_templates())


def _weedy(file: SampleFile, classes: NDArray[np.uint8], _: int) -> FieldPicture:
    rows, columns = classes.shape
    return field_picture(
        (file,), {"image": file.name}, partial(count_area, classes, None), columns, rows
    )
