"""PlantSeg (Wei et al. 2026): plants in the field with one disease named a picture; the test split.

Its masks outline lesions but no leaves, so how much of a leaf is ill is not known, and not asked.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from agrotools.build.sources.part import DataSet, Part, adapter, first_few
from agrotools.build.sources.public.diseased_plants import Disease, DiseasedPlant, disease_subjects
from agrotools.build.sources.reading import SUFFIXES, by_stem, find_root, first_of, read_table
from agrotools.core import BenchmarkError, Sample
from agrotools.knowledge.kb_names import kb_names
from agrotools.knowledge.words import folded

PLANTS = (
    "apple", "banana", "basil", "bean", "bell pepper", "blueberry", "broccoli", "cabbage", "carrot", "cauliflower",
    "celery", "cherry", "citrus", "coffee", "corn", "cucumber", "eggplant", "garlic", "ginger", "grape", "lettuce",
    "maple", "peach", "plum", "potato", "raspberry", "rice", "soybean", "squash", "strawberry", "tobacco", "tomato",
    "wheat", "zucchini",
)  # fmt: skip
"""A label begins with its plant."""
_KEY = "plantseg"
_METADATA = ("Metadata.csv", "metadata.csv", "Metadatav2.csv", "metadatav2.csv")
_SPLITS = {"training": "train", "train": "train", "validation": "val", "val": "val", "test": "test"}
_LATEST = {"train": 5367, "val": 846, "test": 1561}
_V3_TRAINING = 7916


@adapter("plantseg")
def read(data: DataSet) -> Part:
    """Pictures whose disease is to be named, or its cause."""
    root = find_root(data.folder, ("images/test",))
    table = first_of(root, _METADATA)
    rows = read_table(table, ("Name", "Disease", "Split"))
    strange = sorted({row["Split"] for row in rows if row["Split"].strip().lower() not in _SPLITS})
    if strange:
        raise BenchmarkError(f"{table} has splits that are not known: {', '.join(strange[:5])}")
    in_split = Counter(_SPLITS[row["Split"].strip().lower()] for row in rows)
    tested = [row for row in rows if row["Split"].strip().lower() == "test"]
    diseases = known_diseases()
    known = [row for row in tested if folded(row["Disease"]) in diseases]
    unknown = Counter(row["Disease"] for row in tested if folded(row["Disease"]) not in diseases)
    if not known:
        raise BenchmarkError(f"{table} names no disease of a test picture that the knowledge base has")
    pictures = _pictures(root / "images" / "test", known, diseases)
    data.dropped["with a disease that the knowledge base has not"] += unknown.total()
    subjects, unreadable = disease_subjects("plantseg", pictures, diseases, data)
    metadata: dict[str, JsonValue] = {
        "plantseg_version": _version(table.name, in_split),
        "plantseg_pictures": {**in_split},
        "plantseg_left_out": {"not in the knowledge base": {**unknown}, "cannot be read": [*unreadable]},
    }
    return data.part(subjects, ["plant_disease"], metadata, _outcomes_of_calls)


def _outcomes_of_calls(samples: Sequence[Sample]) -> dict[str, JsonValue]:
    """Outcome of the tool. Most plants are not among those that the shipped net knows: such a call is kept as the error
    that it gives, with the truth beside it, since a picture can be judged by eye or by the tool's other back-ends."""
    observed = [step.observation for sample in samples if sample.reference for step in sample.reference.steps]
    ended = Counter(one.error.kind if one.error else "diagnosis" for one in observed if one)
    return {"plantseg_reference_calls": {**ended}}


def known_diseases() -> dict[str, Disease]:
    """The authors' labels that the knowledge base has an entry for, by label as names are compared."""
    diseases: dict[str, Disease] = {}
    for entry in kb_names().entries:
        for label in entry.names.datasets.get(_KEY, ()):
            plant = next((plant for plant in PLANTS if label.startswith(plant)), None)
            if plant is not None:
                diseases.setdefault(folded(label), Disease(label, plant, entry))
    return diseases


def _version(name: str, in_split: Mapping[str, int]) -> str:
    """Identified record: they are told apart by the name of the table and by counts alone."""
    counts = "/".join(str(in_split.get(part, 0)) for part in _LATEST)
    if name.lower() == "metadata.csv":
        return "Zenodo record 17719108" if in_split == _LATEST else f"not known: Metadata.csv with {counts} pictures"
    if in_split.get("train") == _V3_TRAINING:
        return "version 3 (Zenodo record 14935094)"
    return f"version 2 (Zenodo record 13958858) or a copy of it: Metadatav2.csv with {counts} pictures"


def _pictures(place: Path, rows: Sequence[Mapping[str, str]], diseases: Mapping[str, Disease]) -> list[DiseasedPlant]:
    """Every row's picture; which of the suffixes it has, a row does not tell reliably."""
    files = by_stem(place, SUFFIXES)
    names = [_stem(row["Name"]) for row in rows]
    missing = [name or "a picture without a name" for name in names if name not in files]
    if missing:
        raise BenchmarkError(f"{place} lacks {first_few(missing)}")
    named_in = {name: folded(row["Disease"]) for name, row in zip(names, rows, strict=True)}
    for name, row in zip(names, rows, strict=True):
        if named_in[name] != folded(row["Disease"]):
            raise BenchmarkError(f"{name} has two diseases in the metadata, and each picture shows one")
    return [DiseasedPlant(files[name], diseases[label]) for name, label in named_in.items()]


def _stem(name: str) -> str:
    """Only a picture's suffix is cut off: names may hold other dots."""
    plain = Path(name.strip().replace("\\", "/")).name
    return Path(plain).stem if Path(plain).suffix.lower() in SUFFIXES else plain
