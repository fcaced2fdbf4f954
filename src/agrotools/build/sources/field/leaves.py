"""Leaves with lesions: coffee leaves photographed on a plain background, leaf and symptoms outlined by hand."""

from pathlib import Path
from typing import Any

import numpy as np

from agrotools.build.asking import Subject
from agrotools.build.sources.part import Originals, Part, named, pairs_of
from agrotools.build.sources.prepared import read_items
from agrotools.build.templates import Thing, load_templates
from agrotools.core import SampleFile
from agrotools.core.benchmark_header import SourceNote
from agrotools.tools.result import round_significant
from agrotools.vision import read_labels

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
