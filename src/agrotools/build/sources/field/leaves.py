"""Leaves with lesions: coffee leaves photographed on a plain background, leaf and symptoms outlined by hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from agrotools.build.sources.part import Originals, Part, named, pairs_of, read_items
from agrotools.build.templates import Thing, load_templates
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, SampleFile
from agrotools.formats.benchmark import SourceNote
from agrotools.tools.lookup.kb_names import kb_names
from agrotools.tools.result import round_significant
from agrotools.vision.reading import read_labels

FOLDER = "coffee_lesions"
SAMPLES = 50
SOURCE = SourceNote(
    name="BRACOL coffee leaves",
    licence="MIT (licence file of the repository esgario/lara2018)",
    url="https://github.com/esgario/lara2018",
    citation="Esgario, J. G. M., Krohling, R. A. and Ventura, J. A.: Deep learning for classification and severity"
    " estimation of coffee leaf biotic stress. Computers and Electronics in Agriculture 169, 2020.",
    note="Questions, reference calls and tolerances are by agrotools; images and masks are the authors'.",
)
_LEAF, _SYMPTOM = 1, 2
_NOTE = "One leaf, photographed on a plain light background."


def leaves(folder: Path) -> Part:
    """Raises BenchmarkError: the data set is incomplete."""
    originals = Originals()
    by_hash: dict[str, tuple[SampleFile, dict[str, Any]]] = {}
    for item in read_items(folder, files=("image", "mask")):
        file = originals.file(folder / item["image"], note=_NOTE)
        by_hash[str(file.sha256)] = (file, _truth(folder / item["mask"]))
    subjects = [_subject(number, pair) for number, pair in enumerate(pairs_of(by_hash))]
    return Part("leaves", SOURCE, subjects, load_templates("leaf"), SAMPLES, originals.files)


def _truth(mask: Path) -> dict[str, Any]:
    classes = read_labels(mask).classes
    leaf, lesion = int(np.count_nonzero((classes == _LEAF) | (classes == _SYMPTOM))), int(np.sum(classes == _SYMPTOM))
    return {"leaf_area_px": leaf, "lesion_area_px": lesion, "severity_pct": round_significant(100 * lesion / leaf, 6)}


def _subject(number: int, pair: list[tuple[SampleFile, dict[str, Any]]]) -> Subject:
    def shown(index: int, place: int) -> Thing:
        original, truth = pair[index]
        file = named(original, "image", place)
        thought = f"I need to know how much of the leaf in {file.name} has symptoms."
        return Thing((file,), "analyze_lesions", {"image": file.name}, truth, file.name, thought)

    return Subject(f"leaves-{number}", len(pair), shown, {"pair": number}, of="leaf")


PHOTO_SAMPLES = 18
_HEALTHY = "healthy"
_SAID = {"bean_rust": "rust", "brown_spot_phoma": "phoma"}
"""Names of labels in questions, where they differ from the label."""
_PHOTO_NOTE = "Questions and reference calls are by agrotools; images and names are the authors'."
BEANS = SourceNote(
    name="ibean (AI Lab Makerere)",
    licence="MIT (licence file of AI-Lab-Makerere/ibean); CC BY 4.0 in the copy used",
    url="https://github.com/AI-Lab-Makerere/ibean",
    citation="Makerere AI Lab: Bean Disease Dataset, 2020.",
    note=_PHOTO_NOTE,
)
COFFEE = SourceNote(
    name="BRACOL coffee leaves, by stress",
    licence="MIT (licence file of the repository esgario/lara2018)",
    url="https://github.com/esgario/lara2018",
    citation="Esgario, J. G. M., Krohling, R. A. and Ventura, J. A.: Deep learning for classification and severity"
    " estimation of coffee leaf biotic stress. Computers and Electronics in Agriculture 169, 2020.",
    note=_PHOTO_NOTE,
)


def leaf_photos(crop: str, source: SourceNote) -> Callable[[Path], Part]:
    """Reader of photographs of one crop's leaves. The part raises BenchmarkError: the data set is incomplete,
    or names a disease that the knowledge base does not have."""

    def part(folder: Path) -> Part:
        originals = Originals()
        by_hash: dict[str, tuple[SampleFile, str]] = {}
        for item in read_items(folder, ("label",), ("image",)):
            file = originals.file(folder / item["image"], note=f"A {crop} leaf.")
            by_hash[str(file.sha256)] = (file, str(item["label"]))
        subjects = [_photo_subject(number, crop, pair) for number, pair in enumerate(pairs_of(by_hash))]
        return Part(f"{crop}-leaves", source, subjects, load_templates("leaf_disease"), PHOTO_SAMPLES, originals.files)

    return part


def _photo_truth(crop: str, label: str) -> dict[str, Any]:
    shipped = f"{crop}_{label}"
    if label == _HEALTHY:
        return {"best": shipped, "abstained": False, "candidates": [{"label": shipped, "kind": _HEALTHY}]}
    entry = kb_names().of_shipped(shipped)
    if entry is None:
        raise BenchmarkError(f"the knowledge base has no {label!r} of {crop}", hint="agrotools kb list --kind disease")
    candidate = {"label": shipped, "kind": entry.kind, "common_name": entry.names.en, "kb_id": entry.id}
    return {"best": entry.id, "abstained": False, "candidates": [candidate]}


def _photo_subject(number: int, crop: str, pair: list[tuple[SampleFile, str]]) -> Subject:
    def shown(index: int, place: int) -> Thing:
        original, label = pair[index]
        truth = _photo_truth(crop, label)
        file = named(original, "image", place)
        thought = f"I need to know what, if anything, is wrong with the leaf in {file.name}."
        arguments: dict[str, Any] = {"image": file.name, "kind": "disease", "crop": crop}
        words = {"crop": crop, "state": _SAID.get(label, label.replace("_", " ")), "id": str(truth["best"])}
        return Thing((file,), "diagnose_pest_disease", arguments, truth, file.name, thought, words)

    return Subject(f"{crop}-leaves-{number}", len(pair), shown, {"pair": number, "crop": crop}, of=f"{crop}_leaf")
