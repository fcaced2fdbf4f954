"""Leaves and shoots of mango: a disease, a film of mould, damage by two insects, or nothing (MangoLeafBD)."""

from dataclasses import replace
from functools import partial
from typing import Any

from agrotools.core import SampleFile
from agrotools.knowledge.entries import load
from agrotools_build.sources.land import diagnosis_of
from agrotools_build.sources.part import (
    Adapter,
    DataSet,
    Part,
    Photo,
    photo_subject,
    photo_thing,
)
from agrotools_build.templates import Thing
from agrotools_build.templates.slot_draft import JOINED
from agrotools_build.templates.thing import Subject
from field_parts.converted import as_photo
from field_parts.kept import asked_of, is_kept
from field_parts.strangers import with_strangers
from prepared import read_items

_HEALTHY = "healthy"
_STATES = {
    "anthracnose": ("disease.mango_anthracnose", "anthracnose"),
    "cutting_weevil": ("pest.deporaus_marginatus", "leaf-cutting weevil"),
    "gall_midge": ("pest.dasineura", "gall midge"),
    "sooty_mould": ("disease.mango_sooty_mould", "sooty mould"),
    _HEALTHY: ("mango_healthy", _HEALTHY),
}
"""Entry and word of each label."""
_SHOWN_PX = (240, 240)
"""Columns and rows of all pictures. Cut shoots have these, healthy leaves 320 by 240: sizes would tell the answer."""
_PAIRS = 5
"""Pairs of a cut shoot and a diseased leaf. Both are of one session, so a pair joins no places."""


@partial(Adapter, "field.mango_leaves")
def mango_leaves(data: DataSet) -> Part:
    """Pictures of one leaf or shoot each, and pairs of a session that has two states."""
    session_of: dict[str, str] = {}
    photos: list[Photo[str]] = []
    for item in read_items(data.folder, ("label", "cluster"), ("image",)):
        original = data.originals.file(data.folder / item["image"])
        if not is_kept(data, original):
            continue
        whole = (0, 0, original.width_px or 0, original.height_px or 0)
        note = "Mango, on a light ground."
        file = as_photo(data, item, part=whole, pixels=_SHOWN_PX, note=note)
        session_of[file.path] = str(item["cluster"])
        photos.append((file, str(item["label"])))
    photos.sort(key=lambda photo: str(photo[0].sha256))
    entries = {entry.id: entry for entry in load().entries}
    names = {
        label: entries[entry].names.en if entry in entries else _HEALTHY
        for label, (entry, _) in _STATES.items()
    }

    def thing(file: SampleFile, label: str, _: int) -> Thing:
        entry, state = _STATES[label]
        words = {
            "id": entry,
            "state": state,
            "shows": names[label],
            "states": JOINED.join(names.values()),
            **asked_of(entry),
        }
        truth: dict[str, Any] = (
            {
                "best": entry,
                "abstained": False,
                "candidates": [{"label": entry, "kind": _HEALTHY}],
            }
            if label == _HEALTHY
            else diagnosis_of(entry, entries[entry])
        )
        thought = f"I need to know what, if anything, is wrong with the mango in {file.name}."
        return photo_thing(
            file, "diagnose_pest_disease", truth, thought, words, kind="auto", crop="mango"
        )

    def in_session(name: str, some: list[Photo[str]]) -> Subject:
        subject = photo_subject(name, some, thing, {}, "mango_leaf")
        return replace(subject, cluster=session_of[some[0][0].path])

    pairs = _pairs_of_sessions(photos, session_of)
    # A gall midge's leaf in place of the cut shoot, so that no picture shows what is sought.
    spare = [photo for photo in photos if photo[1] == "gall_midge"][: len(pairs)]
    used = {file.path for some in [*pairs, spare] for file, _ in some}
    in_pairs = [
        replace(
            in_session(f"mango-pairs-{n}", some),
            instead={"another": {file.path: other[0] for file, _ in some}},
        )
        for n, (some, other) in enumerate(zip(pairs, spare, strict=True))
    ]
    alone = [
        in_session(f"mango-{n}", [photo])
        for n, photo in enumerate(photo for photo in photos if photo[0].path not in used)
    ]
    return data.part([*in_pairs, *with_strangers(data, alone)], ["mango"])


def _pairs_of_sessions(
    photos: list[Photo[str]], session_of: dict[str, str]
) -> list[list[Photo[str]]]:
    """Return pairs of a cut shoot and another state of the same session."""
    pairs: list[list[Photo[str]]] = []
    for session in sorted({*session_of.values()}):
        ours = [photo for photo in photos if session_of[photo[0].path] == session]
        cut = [photo for photo in ours if photo[1] == "cutting_weevil"]
        others = [photo for photo in ours if photo[1] not in ("cutting_weevil", _HEALTHY)]
        pairs += [[*pair] for pair in zip(cut, others, strict=False)]
    return pairs[:_PAIRS]
