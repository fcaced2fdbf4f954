"""Pests on plants, told by group, of the Jute Pest Dataset. Labels are those of the pack (``pests.toml``)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path

from agrotools.core import SampleFile
from agrotools.core.files import read_table
from agrotools.knowledge.entries import KnowledgeEntry, load
from agrotools_build.sources.land import diagnosis_of
from agrotools_build.sources.part import (
    Adapter,
    DataSet,
    Part,
    Photo,
    listed,
    photo_pairs,
    photo_subject,
    photo_thing,
)
from agrotools_build.templates import Thing
from agrotools_build.templates.slot_draft import JOINED
from agrotools_build.templates.thing import Subject
from field_parts.converted import as_photo
from field_parts.kept import asked_of, kept_of
from field_parts.photos import one_of_each, with_others, with_spares
from field_parts.strangers import with_strangers
from prepared import read_items

_QUALITY = 92
"""Quality at which the copies were stored as JPEG files."""
_OFFERED = 4
_SPARES = 1
"""Pictures of each pest that are only shown in place of another one."""


@partial(Adapter, "field.jute_pests")
def pests(data: DataSet) -> Part:
    """Pests to be named and looked up; those whose folder holds other things too are left out."""
    classes: dict[str, str] = read_table(Path(str(files("agrotools_tools"))) / "data/pests.toml")[
        "classes"
    ]
    entries = {entry.id: entry for entry in load().entries}
    items = read_items(data.folder, ("label",), ("image",))
    photos: list[Photo[str]] = [
        (
            as_photo(data, item, quality=_QUALITY, note="A pest of field crops."),
            f"pest.{classes[item['label']]}",
        )
        for item in items
        if item["label"] in classes
    ]
    photos = kept_of(data, photos)
    labels = sorted({label for _, label in photos})

    def thing(file: SampleFile, label: str, _: int) -> Thing:
        words = _words(label, labels, entries, str(file.sha256))
        truth, thought = (
            diagnosis_of(label, entries[label]),
            f"I need to know which pest {file.name} shows.",
        )
        return photo_thing(file, "diagnose_pest_disease", truth, thought, words, kind="pest")

    paired, spare = with_spares(photos, _SPARES)
    subjects = with_others(photo_pairs("pests", paired, thing, {}, "field_pest"), photos, spare)
    # Pairs of one kind, of which there is none in the order of the hashes; an entry of several kinds has no such pair.
    alike = [
        [photo for photo in paired if photo[1] == label][:2]
        for label in labels
        if " and " not in entries[label].names.en
    ]
    subjects += [
        photo_subject(f"pests-alike-{n}", two, thing, {}, "field_pest")
        for n, two in enumerate(alike)
        if len(two) > 1
    ]
    # A picture is also shown alone, since scouts mostly send one.
    subjects += [
        photo_subject(f"pests-alone-{n}", [photo], thing, {}, "field_pest")
        for n, photo in enumerate(paired)
    ]
    return data.part(
        [
            *with_strangers(data, subjects),
            *one_of_each("pest-advice", paired, labels, thing, "field_pest_advice"),
        ],
        ["field_pests"],
    )


def _words(
    label: str, labels: Sequence[str], entries: dict[str, KnowledgeEntry], digest: str
) -> dict[str, str]:
    """Return words about a pest; the four offered ones follow from its label and the picture."""
    start = int(digest[:8], 16)
    others = [each for each in labels if each != label]
    offered = sorted({label, *(others[(start + 3 * k) % len(others)] for k in range(1, _OFFERED))})
    names = {each: entries[each].names.en for each in labels}
    return {
        "id": label,
        "shows": names[label],
        "offered": "; ".join([*(names[each] for each in offered[:-1]), f"or {names[offered[-1]]}"]),
        "options": JOINED.join(names[each] for each in offered),
        "all": JOINED.join(names.values()),
        **asked_of(label),
    }


_RICE_PESTS = (
    "pest.brown_planthopper",
    "pest.rice_leafhopper",
    "pest.rice_bug",
    "pest.rice_leaf_roller",
    "pest.yellow_rice_borer",
)
"""Entries that are offered; the leafhopper is in no picture."""
_ALONE, _IN_PAIRS = 0.5, 0.7
"""Shares of the pictures up to which they are shown alone, and then in pairs; the others in threes.

Pictures that are shown together count as one place, so most are shown alone.
"""


@partial(Adapter, "field.rice_pests")
def rice_pests(data: DataSet) -> Part:
    """Insects of rice, each in a picture of its own, or in one of a session."""
    entries = {entry.id: entry for entry in load().entries}
    names = [entries[each].names.en for each in _RICE_PESTS]
    known: dict[str, tuple[str, str]] = {}
    photos: list[Photo[str]] = []
    for item in read_items(data.folder, ("label", "stage", "cluster"), ("image",)):
        file = data.originals.file(data.folder / item["image"], note="An insect.")
        known[file.path] = str(item["stage"]), str(item["cluster"])
        photos.append((file, f"pest.{item['label']}"))
    photos = kept_of(data, photos)

    def thing(file: SampleFile, label: str, _: int) -> Thing:
        words = {
            "id": label,
            "shows": entries[label].names.en,
            "stage": known[file.path][0],
            "offered": listed(names, "or"),
            "options": JOINED.join(names),
            **asked_of(label),
        }
        truth = diagnosis_of(label, entries[label])
        thought = f"I need to know which insect {file.name} shows."
        return photo_thing(file, "diagnose_pest_disease", truth, thought, words, kind="pest")

    clusters = [known[file.path][1] for file, _ in photos]
    sessions = [photo for photo in photos if clusters.count(known[photo[0].path][1]) > 1]
    paired, spare = with_spares([photo for photo in photos if photo not in sessions], _SPARES)
    by_hash = sorted(paired, key=lambda photo: str(photo[0].sha256))
    first, second = (round(len(by_hash) * share) for share in (_ALONE, _IN_PAIRS))
    alone = [
        replace(
            photo_subject(f"rice-{n}", [photo], thing, {}, "rice_pest"),
            cluster=known[photo[0].path][1],
        )
        for n, photo in enumerate([*by_hash[:first], *sessions])
    ]
    pairs = photo_pairs("rice-pairs", by_hash[first:second], thing, {}, "rice_pest")
    threes = photo_pairs("rice-threes", by_hash[second:], thing, {}, "rice_pest", size=3)
    subjects: list[Subject] = [
        *with_strangers(data, alone),
        *with_others(pairs, photos, spare),
        *threes,
    ]
    return data.part(subjects, ["rice_pests"])
