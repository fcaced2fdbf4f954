"""Subjects of photographs, with the results of perfect tools: named diseases and weeds, measured and counted fruit."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from agrotools.build.sources.part import DataSet, Photo, named, photo_pairs, photo_thing
from agrotools.build.templates import Thing
from agrotools.build.templates.field import MEASURE
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, Sample, SampleFile
from agrotools.knowledge.entries import Entry
from agrotools.knowledge.kb_names import kb_names
from agrotools.tools.crop_weed.heads import list_heads

NO_WEED = "negative"
"""Label of pictures without a weed."""


def diagnosis_of(label: str, entry: Entry) -> dict[str, Any]:
    """Return the result of a perfect ``diagnose_pest_disease`` for a picture with the label ``label``."""
    names = {"common_name": entry.names.en, "scientific_name": entry.names.sci}
    candidate = {"label": label, **names, "kind": entry.kind, "kb_id": entry.id}
    return {"best": entry.id, "abstained": False, "candidates": [candidate]}


def named_weeds(pictures: Iterable[tuple[Path, str]], data: DataSet) -> list[Photo[str]]:
    """Return pictures of rangeland with their labels: one of the eight weeds of DeepWeeds, or ``negative``."""
    note = "Rangeland in northern Australia, seen from above."
    return [(data.originals.file(path, note=note), label) for path, label in pictures]


def weed_subjects(name: str, photos: Iterable[Photo[str]]) -> list[Subject]:
    """Return subjects of pairs of :func:`named_weeds`; BenchmarkError if the knowledge base has no plant of a label."""

    def thing(file: SampleFile, label: str, _: int) -> Thing:
        return weed_thing(file, label, f"I need to know which weed {file.name} shows, if any.")

    return photo_pairs(name, photos, thing, {}, "weed_photo")


def weed_thing(file: SampleFile, label: str, thought: str) -> Thing:
    """Return a picture to be identified, with the label of DeepWeeds."""
    truth = _weed_truth(label)
    words = {"shows": truth["common_name"] or "another plant", "id": truth["best"], "entry": truth["kb_id"] or ""}
    return photo_thing(file, "identify_weed", truth, thought, words)


def _weed_truth(label: str) -> dict[str, Any]:
    if label.lower() == NO_WEED:
        return {"common_name": None, "species": None, "best": NO_WEED, "kb_id": None, "is_weed": False}
    entry = kb_names().of_shipped(label.lower().replace(" ", "_"))
    if entry is None:
        raise BenchmarkError(f"the knowledge base has no weed {label!r}", hint="agrotools kb search NAME")
    names = {"common_name": entry.names.en, "species": entry.names.sci}
    return {**names, "best": entry.id, "kb_id": entry.id, "is_weed": True}


FRUIT_QUESTIONS = ("fruit_photo", "drawn_count")
"""Templates about the things of :func:`fruit_subjects`."""
TOGETHER = 3
"""Maximum number of fruits in a question, and number of fruits of one subject."""


def apple_subject(
    name: str, files: tuple[SampleFile, SampleFile], fruits: Sequence[tuple[tuple[int, ...], float]]
) -> Subject:
    """Return a subject of fruits in a picture and its depth, each with a box and a diameter in millimetres."""
    image, depth = named(files[0], "image", 1), named(files[1], "depth", 1)

    def shown(index: int, place: int) -> Thing:
        box, diameter_mm = fruits[index]
        arguments: dict[str, Any] = {"image": image.name, "depth": depth.name, "boxes": [[*box]]}
        truth: dict[str, Any] = {"fruits": [{"id": 1, "diameter_mm": diameter_mm}], "n": 1}
        words = {"box": f"({', '.join(map(str, box))})"}
        thought = f"I need the diameter of the fruit in the box {words['box']}."
        return Thing((image, depth), "measure_fruit_size", arguments, truth, f"apple {place}", thought, words)

    return Subject(name, len(fruits), shown, {"subject": name}, of="apple")


def fruit_subjects(
    name: str, fruit: str, plural: str, counted: Iterable[tuple[SampleFile, int]], *, of: str
) -> list[Subject]:
    """Return subjects of two and of four pictures with their numbers of fruits; ``fruit``: the counting tool's target.

    ``of``: kind of the things of two pictures; those of four are a ``fruit_picture``.
    """
    counted = list(counted)

    def thing(file: SampleFile, count: int, _: int) -> Thing:
        thought = f"I need to know how many {plural} there are in {file.name}."
        words = {"fruit": fruit, "fruits": plural}
        return photo_thing(file, "count_objects", {"count": count}, thought, words, target=fruit)

    pairs = photo_pairs(name, counted, thing, {"fruit": fruit}, of)
    return [*pairs, *photo_pairs(f"{name}-four", counted, thing, {"fruit": fruit}, "fruit_picture", 4)]


def describe_separation(samples: Sequence[Sample]) -> dict[str, JsonValue]:
    """Return the methods that told crop from weeds in recorded observations, and the heads that were used."""
    observations = [
        step.observation.result
        for sample in samples
        for step in (sample.reference.steps if sample.reference else ())
        if step.tool == MEASURE and step.observation and step.observation.result
    ]
    methods = Counter(str(result.get("method")) for result in observations)
    notes = " ".join(str(result.get("notes")) for result in observations)
    used = set(re.findall(r"by head ([\w.-]+)", notes))
    heads: dict[str, JsonValue] = {head.name: head.weights_sha256 for head in list_heads()[0] if head.name in used}
    how: dict[str, JsonValue] = {"separation": dict(methods), "heads": heads}
    if methods["none"]:
        how["note"] = (
            f"In {methods['none']} of {methods.total()} recorded measurements crop and weeds were not told apart. Train"
            " heads (agrotools packs train crop-weed) and build again: each pair then has a head that never saw it."
        )
    return how
