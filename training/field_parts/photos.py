"""Photographs: lesions outlined by hand, diseases and weeds named by experts, apples measured, fruit counted."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from agrotools.build.sources.part import Adapter, DataSet, Part, Photo, adapter, photo_pairs, photo_thing
from agrotools.build.sources.photos import NO_WEED, TOGETHER, apple_subject, fruit_subjects, named_weeds, weed_subjects
from agrotools.build.templates import Thing
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, Intrinsics, SampleFile
from agrotools.knowledge.kb_names import kb_names
from agrotools.tools.result import round_significant
from agrotools.vision.reading import read_labels
from prepared import read_items

_LEAF, _SYMPTOM = 1, 2
_HEALTHY = "healthy"
_STATES = {"bean_rust": "rust", "brown_spot_phoma": "phoma"}
"""Words for labels in questions, if they differ from the label."""
_SPARE_NO_WEED = 4


@adapter("field.coffee_lesions")
def leaves(data: DataSet) -> Part:
    """Shares of coffee leaves that have symptoms."""
    photos: list[tuple[SampleFile, dict[str, Any]]] = []
    for item in read_items(data.folder, files=("image", "mask")):
        file = data.originals.file(
            data.folder / item["image"], note="One leaf, photographed on a plain light background."
        )
        photos.append((file, _severity(data.folder / item["mask"])))

    def thing(file: SampleFile, truth: dict[str, Any], _: int) -> Thing:
        thought = f"I need to know how much of the leaf in {file.name} has symptoms."
        return photo_thing(file, "analyze_lesions", truth, thought)

    return data.part(photo_pairs("leaves", photos, thing, {}, "leaf"), ["leaf", "surely"])


def _severity(mask: Path) -> dict[str, Any]:
    classes = read_labels(mask).classes
    leaf, lesion = int(np.count_nonzero((classes == _LEAF) | (classes == _SYMPTOM))), int(np.sum(classes == _SYMPTOM))
    return {"leaf_area_px": leaf, "lesion_area_px": lesion, "severity_pct": round_significant(100 * lesion / leaf, 6)}


def leaf_photos(crop: str) -> Adapter:
    """Return the reader of photographs of one crop's leaves with named diseases."""

    @adapter(f"field.{crop}_leaf_class")
    def read(data: DataSet) -> Part:
        photos = [
            (data.originals.file(data.folder / item["image"], note=f"A {crop} leaf."), str(item["label"]))
            for item in read_items(data.folder, ("label",), ("image",))
        ]

        def thing(file: SampleFile, label: str, _: int) -> Thing:
            truth = _leaf_diagnosis(crop, label)
            thought = f"I need to know what, if anything, is wrong with the leaf in {file.name}."
            words = {"crop": crop, "state": _STATES.get(label, label.replace("_", " ")), "id": str(truth["best"])}
            return photo_thing(file, "diagnose_pest_disease", truth, thought, words, kind="disease", crop=crop)

        paired, spare = _with_spares(photos, 3 if crop == "bean" else 2)
        pairs = photo_pairs(f"{crop}-leaves", paired, thing, {"crop": crop}, f"{crop}_leaf")
        return data.part(_with_others(pairs, photos, spare), ["leaf_disease"])

    return read


def _with_spares(photos: Sequence[Photo[str]], number: int) -> tuple[list[Photo[str]], list[Photo[str]]]:
    """Return the pictures to ask about, and ``number`` of each label that are only shown in place of another one."""
    spare: list[Photo[str]] = []
    for label in sorted({label for _, label in photos}):
        ours = sorted((each for each in photos if each[1] == label), key=lambda each: str(each[0].sha256))
        spare += ours[: _SPARE_NO_WEED if label.lower() == NO_WEED else number]
    return [each for each in photos if each not in spare], spare


def _with_others(subjects: Sequence[Subject], labels: Sequence[Photo[str]], spare: list[Photo[str]]) -> list[Subject]:
    """Return the pairs, as many as there are spare pictures with one whose label is that of neither picture.

    No spare picture is used twice, since samples that share a file are one cluster.
    """
    left, done = [*spare], []
    of_path = {file.path: label for file, label in labels}
    for subject in subjects:
        paths = [subject.shown(index, 1).files[0].path for index in range(subject.things)]
        ours = {of_path[path] for path in paths}
        other = next((each for each in left if each[1] not in ours), None) if len(ours) > 1 else None
        if other is None:
            done.append(subject)
            continue
        left.remove(other)
        kinds = ("another", "no_weed") if other[1].lower() == NO_WEED else ("another",)
        done.append(replace(subject, instead={kind: dict.fromkeys(paths, other[0]) for kind in kinds}))
    return done


def _leaf_diagnosis(crop: str, label: str) -> dict[str, Any]:
    shipped = f"{crop}_{label}"
    if label == _HEALTHY:
        return {"best": shipped, "abstained": False, "candidates": [{"label": shipped, "kind": _HEALTHY}]}
    entry = kb_names().of_shipped(shipped)
    if entry is None:
        raise BenchmarkError(f"the knowledge base has no {label!r} of {crop}", hint="agrotools kb search NAME")
    candidate = {"label": shipped, "kind": entry.kind, "common_name": entry.names.en, "kb_id": entry.id}
    return {"best": entry.id, "abstained": False, "candidates": [candidate]}


@adapter("field.deepweeds")
def weed_photos(data: DataSet) -> Part:
    """Weeds of Australian rangeland, named by botanists (DeepWeeds)."""
    items = read_items(data.folder, ("label",), ("image",))
    photos = named_weeds(((data.folder / item["image"], str(item["label"])) for item in items), data)
    paired, spare = _with_spares(photos, 2)
    return data.part(_with_others(weed_subjects("weed-photos", paired), photos, spare), ["weed"])


FOCAL_PX = 955.0
"""Focal length in pixels.

It is not documented, but estimated from the two calibration spheres in every frame (60 and 120 mm).
"""
_SPHERES = "BALL"
_WELL_SEEN = "NO"
"""Value of ``occluded`` for fully visible fruits, the only ones whose size is asked for."""


@adapter("field.rgbd_apples")
def apples(data: DataSet) -> Part:
    """Diameters of apples in boxes, in millimetres."""
    subjects: list[Subject] = []
    for number, item in enumerate(read_items(data.folder, ("fruits",), ("image", "depth_mm_uint16"))):
        image = data.originals.file(data.folder / item["image"], note="Apple trees, daylight.")
        middle = {"cx_px": (image.width_px or 0) / 2, "cy_px": (image.height_px or 0) / 2}
        camera = Intrinsics(fx_px=FOCAL_PX, fy_px=FOCAL_PX, **middle)
        depth_path, note = data.folder / item["depth_mm_uint16"], "Depth registered to the picture."
        depth = data.originals.file(depth_path, kind="depth", depth_unit_mm=1.0, note=note)
        files = (image.model_copy(update={"intrinsics": camera}), depth)
        fruits = _fruits(data.folder, item)
        for start in range(0, len(fruits) - TOGETHER + 1, TOGETHER):
            subjects.append(apple_subject(f"apples-{number}-{start}", files, fruits[start : start + TOGETHER]))
    return data.part(subjects, ["apple"])


def _fruits(folder: Path, item: dict[str, Any]) -> list[tuple[tuple[int, ...], float]]:
    """Return box and calliper size of each fully visible fruit."""
    try:
        return [
            (tuple(int(edge) for edge in fruit["box"]), float(fruit["caliber_mm"]))
            for fruit in item["fruits"]
            if not str(fruit["fruit_id"]).startswith(_SPHERES) and fruit["occluded"] == _WELL_SEEN
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise BenchmarkError(f"{folder}: the fruits of {item.get('id')} cannot be read: {error!r}") from error


PLURAL = {"apple": "apples", "pear": "pears", "cherry": "cherries"}


def orchard(fruit: str, folder: str) -> Adapter:
    """Return the reader of tiles with one kind of fruit in ``folder``."""

    @adapter(f"field.{folder}")
    def read(data: DataSet) -> Part:
        note = f"Part of a photograph of a tree with {PLURAL[fruit]}."
        counted: list[tuple[SampleFile, int]] = []
        for item in read_items(data.folder, ("count",), ("image",)):
            if not isinstance(item["count"], int) or item["count"] < 0:
                raise BenchmarkError(f"{data.folder}: the count of {item.get('id')} is not a whole number")
            counted.append((data.originals.file(data.folder / item["image"], note=note), item["count"]))
        return data.part(
            fruit_subjects(f"orchard-{fruit}", fruit, PLURAL[fruit], counted, of="orchard"), ["orchard", "surely"]
        )

    return read
