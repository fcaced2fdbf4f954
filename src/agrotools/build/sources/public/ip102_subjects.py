"""Subjects of IP102's photographs: things with their truth and the words that questions need.

``pest_photo`` is named on a known crop; ``pest_group`` is named, then its place in the system is looked up;
``pest_damage`` is named, then its damage is looked up; ``pest_advice`` is named, and key facts on it are held. Pictures
of a subject are of one crop, of pests that cannot be taken for each other, and each is in one subject alone.
"""

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import JsonValue

from agrotools.build.references import PlannedCall, ref
from agrotools.build.sources.part import Originals, named
from agrotools.build.sources.public.ip102_classes import Pest, advice_topics, pair_words, rng_of, trait_of, words_of
from agrotools.build.templates import Thing
from agrotools.build.templates.template import exact_result
from agrotools.build.templates.thing import Subject
from agrotools.core import Arguments, SampleFile, ToolError
from agrotools.tools.lookup.kb_names import kb_names
from agrotools.vision.reading import RgbImage, read_image

DIAGNOSE = "diagnose_pest_disease"
LOOK_UP = "lookup_agronomy"
SMALLEST_PX = 64
"""Shorter side; some are thumbnails of 52."""
_TURNS = (
    "pest_group", "pest_photo", "pest_advice", "pest_group", "pest_photo", "pest_damage", "pest_group", "pest_photo",
    "pest_advice", "pest_group",
)  # fmt: skip
"""Kinds of subjects, about as often as there are templates for them."""
_PICTURES = MappingProxyType({"pest_photo": 2, "pest_group": 3, "pest_advice": 1, "pest_damage": 2})
_JPEG = b"\xff\xd8"


@dataclass(frozen=True)
class Photo:
    """A picture of one pest, as a file."""

    file: SampleFile
    pest: Pest


def photo_of(path: Path, pest: Pest, originals: Originals, dropped: Counter[str]) -> Photo | None:
    """None where it cannot be used, which is counted. What calls itself .jpg and is none is written anew."""
    picture = readable(path, dropped)
    if picture is None:
        return None
    if path.read_bytes()[:2] == _JPEG:
        return Photo(originals.file(path, note=NOTE), pest)
    return Photo(originals.made(as_png(picture), ".png", note=NOTE), pest)


NOTE = "Photograph of a pest; egg, young and adult are called alike."


def readable(path: Path, dropped: Counter[str]) -> RgbImage | None:
    """A picture upright and in colour; None where it is none or a thumbnail, which is counted."""
    try:
        picture = read_image(path, shown_as=path.name)
    except ToolError:
        dropped["unreadable"] += 1
        return None
    if min(picture.width, picture.height) < SMALLEST_PX:
        dropped[f"under {SMALLEST_PX} px"] += 1
        return None
    return picture


def as_png(picture: RgbImage) -> bytes:
    """Lossless, as a file."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(picture.pixels).save(buffer, "PNG")
    return buffer.getvalue()


def photo_subjects(photos: Sequence[Photo], most: int) -> list[Subject]:
    """At most so many subjects; kinds and crops take turns, so that a few pictures give some of each."""
    waiting: dict[str, list[Photo]] = {}
    for photo in photos:
        waiting.setdefault(photo.pest.crop, []).append(photo)
    crops = list(waiting)
    subjects: list[Subject] = []
    failed = 0
    for kind in cycle(_TURNS):
        group = next((found for crop in crops if (found := _taken(waiting[crop], kind))), [])
        failed = 0 if group else failed + 1
        if failed == len(_TURNS) or len(subjects) >= most:
            return subjects
        if group:
            crops.append(crops.pop(crops.index(group[0].pest.crop)))
            subjects.append(_subject(len(subjects), kind, group))
    return subjects


def _taken(waiting: list[Photo], kind: str) -> list[Photo]:
    """The next pictures of a crop for such a subject, taken out; empty where there are too few."""
    group: list[Photo] = []
    for photo in waiting:
        if len(group) < _PICTURES[kind] and _suits(photo.pest, kind):
            if kind == "pest_damage" and not _damage_tells(photo, group):
                continue
            if not any(photo.pest.like(other.pest) for other in group):
                group.append(photo)
    if kind == "pest_damage" and len(group) < _PICTURES[kind]:
        return []
    for photo in group:
        waiting.remove(photo)
    return group


def _suits(pest: Pest, kind: str) -> bool:
    match kind:
        case "pest_advice":
            return bool(advice_topics(pest)) and kb_names().is_on(pest.entry, pest.crop)
        case "pest_photo":
            return kb_names().is_on(pest.entry, pest.crop)
        case _:
            return pest.entry.taxonomy.order is not None


def _damage_tells(photo: Photo, group: Sequence[Photo]) -> bool:
    """First one whose damage is told, then one that surely does no such damage."""
    if not group:
        return trait_of(photo.pest) is not None
    return bool(pair_words([group[0].pest, photo.pest], rng_of("trait"))["trait_word"])


def _subject(number: int, kind: str, group: Sequence[Photo]) -> Subject:
    rng = rng_of(kind, *(str(photo.file.sha256) for photo in group))
    together = pair_words([photo.pest for photo in group], rng)
    words = [together | words_of(photo.pest, rng) for photo in group]
    make = _named_thing if kind in ("pest_photo", "pest_advice") else partial(_looked_up_thing, kind)

    def shown(index: int, place: int) -> Thing:
        return make(group[index], named(group[index].file, "image", place), words[index])

    return Subject(f"ip102-{number}", len(group), shown, {"crop": group[0].pest.crop}, of=kind)


def _named_thing(photo: Photo, file: SampleFile, words: Mapping[str, str]) -> Thing:
    """A pest to be named, its crop known."""
    arguments: Arguments = {"image": file.name, "kind": "pest", "crop": photo.pest.crop}
    thought = f"I need to know which pest of {photo.pest.crop} {file.name} shows."
    return Thing((file,), DIAGNOSE, arguments, diagnosis_of(photo.pest), file.name, thought, words)


def _looked_up_thing(kind: str, photo: Photo, file: SampleFile, words: Mapping[str, str]) -> Thing:
    """A pest to be named and then looked up."""
    topic, query = {
        "pest_group": ("identification", "order and family"),
        "pest_damage": ("symptoms", "damage on the plant"),
    }[kind]
    thought = f"I need to know which pest {file.name} shows."
    diagnosis = PlannedCall(DIAGNOSE, {"image": file.name, "kind": "pest"}, diagnosis_of(photo.pest), thought=thought)
    asked: dict[str, Any] = {"query": query, "topic": topic}
    arguments: Arguments = {**asked, "kb_id": ref(0, "best")}
    truth = exact_result(LOOK_UP, {**asked, "kb_id": photo.pest.entry.id})
    thought = f"I need what is known of the {query} of the pest in {file.name}."
    return Thing((file,), LOOK_UP, arguments, truth, file.name, thought, words, before=(diagnosis,))


def diagnosis_of(pest: Pest) -> dict[str, JsonValue]:
    """Result of a perfect ``diagnose_pest_disease``."""
    names = pest.entry.names
    candidate: dict[str, JsonValue] = {
        "label": pest.label,
        "common_name": names.en,
        "scientific_name": names.sci,
        "kind": pest.entry.kind,
        "kb_id": pest.entry.id,
    }
    return {"best": pest.entry.id, "abstained": False, "candidates": [candidate]}
