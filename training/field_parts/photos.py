"""Photographs: lesions outlined by hand, diseases and weeds named by experts, apples measured, fruit counted."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from csv import DictReader
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from agrotools.calling.result import round_significant
from agrotools.core import BenchmarkError, Intrinsics, SampleFile
from agrotools.knowledge.kb_names import kb_names
from agrotools.vision.reading import read_image, read_labels
from agrotools_benchmarks.field.pack import Box, Mark
from agrotools_build.references import ref
from agrotools_build.sources.land import (
    NO_WEED,
    TOGETHER,
    apple_subject,
    fruit_subjects,
    named_weeds,
    weed_subjects,
    weed_thing,
)
from agrotools_build.sources.part import (
    Adapter,
    DataSet,
    Part,
    Photo,
    named,
    photo_pairs,
    photo_subject,
    photo_thing,
)
from agrotools_build.templates import Thing
from agrotools_build.templates.slot_draft import JOINED
from agrotools_build.templates.thing import Subject
from field_parts.converted import PEN_NAMES, as_photo, as_plane, framed, without_frames
from field_parts.kept import asked_of, is_kept, kept_of
from field_parts.strangers import moved_frames, with_strangers
from prepared import read_items

_LEAF, _SYMPTOM = 1, 2
_NOTE_OF_LEAF = (
    "One leaf, photographed on a plain light background."
    " Shares are of the whole leaf, from its stalk to its tip."
)
"""Says what a share is of: where a picture cuts the leaf, the share of the part in view is no answer."""
_HEALTHY = "healthy"
_STATES = {"bean_rust": "rust", "brown_spot_phoma": "phoma"}
"""Words for labels in questions, if they differ from the label."""
_ALIKE = {"brown_spot_phoma", "cercospora"}
"""Labels of which the one leaf may be taken for the other, so that a third leaf in its place decides nothing."""
_SPARE_NO_WEED = 4


@partial(Adapter, "field.coffee_lesions")
def leaves(data: DataSet) -> Part:
    """Shares of coffee leaves that have symptoms."""
    photos: list[tuple[SampleFile, dict[str, Any]]] = []
    cut: dict[str, SampleFile] = {}
    """Pictures of a part of a leaf, by the path of that of the whole leaf."""
    for item in read_items(data.folder, files=("image", "mask")):
        file = data.originals.file(data.folder / item["image"], note=_NOTE_OF_LEAF)
        if is_kept(data, file):
            photos.append((file, _severity(data.folder / item["mask"])))
            cut[file.path] = _half_a_leaf(data, item, file)

    def thing(file: SampleFile, truth: dict[str, Any], _: int) -> Thing:
        thought = f"I need to know how much of the leaf in {file.name} has symptoms."
        return photo_thing(file, "analyze_lesions", truth, thought)

    pairs = photo_pairs("leaves", photos, thing, {}, "leaf")
    # Every other pair, so that cut leaves are not most of the twins.
    pairs[::2] = [replace(pair, instead={"part": cut}) for pair in pairs[::2]]
    return data.part(pairs, ["leaf", "surely", "treating"])


def _half_a_leaf(data: DataSet, item: dict[str, Any], file: SampleFile) -> SampleFile:
    """Return a picture of half of the leaf, cut through by the edge, with as many pixels as that of the whole leaf."""
    pixels = (file.width_px or 0, file.height_px or 0)
    y0 = pixels[1] // 4
    # The leaf lies along the picture, so that the half of it in a corner of the hash shows one end alone.
    x0 = pixels[0] // 2 if int(str(file.sha256)[0], 16) % 2 else 0
    part = (x0, y0, x0 + pixels[0] // 2, y0 + pixels[1] // 2)
    return as_photo(data, item, part=part, pixels=pixels, note=file.note)


def _severity(mask: Path) -> dict[str, Any]:
    classes = read_labels(mask).classes
    leaf, lesion = (
        int(np.count_nonzero((classes == _LEAF) | (classes == _SYMPTOM))),
        int(np.sum(classes == _SYMPTOM)),
    )
    return {
        "leaf_area_px": leaf,
        "lesion_area_px": lesion,
        "severity_pct": round_significant(100 * lesion / leaf, 6),
    }


def leaf_photos(crop: str) -> Adapter:
    """Return the reader of photographs of one crop's leaves with named diseases."""

    @partial(Adapter, f"field.{crop}_leaf_class")
    def read(data: DataSet) -> Part:
        photos = [
            (
                data.originals.file(data.folder / item["image"], note=f"A {crop} leaf."),
                str(item["label"]),
            )
            for item in read_items(data.folder, ("label",), ("image",))
        ]
        photos = kept_of(data, photos)

        def thing(file: SampleFile, label: str, _: int) -> Thing:
            truth = _leaf_diagnosis(crop, label)
            thought = f"I need to know what, if anything, is wrong with the leaf in {file.name}."
            words = {
                "crop": crop,
                "state": _STATES.get(label, label.replace("_", " ")),
                "id": str(truth["best"]),
            }
            words |= {"entry": words["id"], "states": states, **asked_of(words["id"])}
            return photo_thing(
                file, "diagnose_pest_disease", truth, thought, words, kind="disease", crop=crop
            )

        labels = sorted({label for _, label in photos} - {_HEALTHY})
        named_states = (
            _leaf_diagnosis(crop, label)["candidates"][0]["common_name"] for label in labels
        )
        states = JOINED.join([_HEALTHY, *named_states])
        paired, spare = with_spares(photos, 3 if crop == "bean" else 2)
        pairs = photo_pairs(f"{crop}-leaves", paired, thing, {"crop": crop}, f"{crop}_leaf")
        advice = one_of_each(f"{crop}-advice", paired, labels, thing, "leaf_advice")
        # Only a healthy leaf is plainly not what is sought; the diseases resemble each other.
        healthy = [photo for photo in spare if photo[1] == _HEALTHY]
        return data.part(
            [*with_strangers(data, with_others(pairs, photos, healthy)), *advice],
            ["leaf_disease", "field_advice"],
        )

    return read


def one_of_each(
    name: str,
    photos: Sequence[Photo[str]],
    labels: Sequence[str],
    thing: Callable[..., Thing],
    of: str,
) -> list[Subject]:
    """Return for each label a subject with one of its pictures."""
    chosen = {
        label: min((p for p in photos if p[1] == label), key=lambda p: str(p[0].sha256))
        for label in labels
    }
    return [
        photo_subject(f"{name}-{n}", [photo], thing, {}, of)
        for n, photo in enumerate(chosen.values())
    ]


def with_spares(
    photos: Sequence[Photo[str]], number: int
) -> tuple[list[Photo[str]], list[Photo[str]]]:
    """Return the pictures to ask about, and ``number`` of each label that are only shown in place of another one."""
    spare: list[Photo[str]] = []
    for label in sorted({label for _, label in photos}):
        ours = sorted(
            (each for each in photos if each[1] == label), key=lambda each: str(each[0].sha256)
        )
        some = _SPARE_NO_WEED if label.lower() == NO_WEED else number
        spare += ours[:some] if len(ours) > some else []
    return [each for each in photos if each not in spare], spare


def with_others(
    subjects: Sequence[Subject], labels: Sequence[Photo[str]], spare: list[Photo[str]]
) -> list[Subject]:
    """Return the pairs, as many as there are spare pictures with one whose label is that of neither picture.

    No spare picture is used twice, since samples that share a file are one cluster: it is taken out of ``spare``.
    """
    done: list[Subject] = []
    of_path = {file.path: label for file, label in labels}
    for subject in subjects:
        paths = [subject.shown(index, 1).files[0].path for index in range(subject.things)]
        ours = {of_path[path] for path in paths}
        other = (
            next((each for each in spare if each[1] not in ours), None) if len(ours) > 1 else None
        )
        if other is None or ours >= _ALIKE:
            done.append(subject)
            continue
        spare.remove(other)
        kinds = ("another", "no_weed") if other[1].lower() == NO_WEED else ("another",)
        done.append(
            replace(subject, instead={kind: dict.fromkeys(paths, other[0]) for kind in kinds})
        )
    return done


def _leaf_diagnosis(crop: str, label: str) -> dict[str, Any]:
    shipped = f"{crop}_{label}"
    if label == _HEALTHY:
        return {
            "best": shipped,
            "abstained": False,
            "candidates": [{"label": shipped, "kind": _HEALTHY}],
        }
    entry = kb_names().of_shipped(shipped)
    if entry is None:
        raise BenchmarkError(
            f"the knowledge base has no {label!r} of {crop}", hint="agrotools tools kb search NAME"
        )
    candidate = {
        "label": shipped,
        "kind": entry.kind,
        "common_name": entry.names.en,
        "kb_id": entry.id,
    }
    return {"best": entry.id, "abstained": False, "candidates": [candidate]}


_PAIRS_OF_A_GROUP = 4
"""Most pairs of photographs of a group of days; its other photographs are shown alone."""
_WEEDS_OF_A_GROUP = 2
"""Least number of labels in a group of days, so that its pairs show different plants."""
_ADVISED = 3
"""Photographs of each weed about which advice is asked."""


@partial(Adapter, "field.deepweeds")
def weed_photos(data: DataSet) -> Part:
    """Weeds of Australian rangeland, named by botanists (DeepWeeds).

    A day shows few species, so days are joined to groups, which are the clusters.
    """
    items = read_items(data.folder, ("label",), ("image",))
    day_of = {data.folder / item["image"]: str(item["id"]).partition("-")[0] for item in items}
    photos = named_weeds(
        ((data.folder / item["image"], str(item["label"])) for item in items), data
    )
    photos = sorted(kept_of(data, photos), key=lambda photo: str(photo[0].sha256))
    asked, spare = with_spares(photos, 1)

    def thing(file: SampleFile, label: str, _: int) -> Thing:
        shown = weed_thing(file, label, f"I need to know which weed {file.name} shows.")
        return replace(shown, words={**shown.words, **asked_of(shown.words["entry"])})

    days: dict[str, list[Photo[str]]] = {}
    for photo in asked:
        days.setdefault(day_of[data.originals.files[photo[0].path]], []).append(photo)
    subjects: list[Subject] = []
    advised: Counter[str] = Counter()
    for number, ours in enumerate(_groups_of_days(days)):
        name = f"weed-photos-{number}"
        in_pairs = 2 * min(_PAIRS_OF_A_GROUP, len(ours) // 2)
        own = with_others(weed_subjects(name, ours[:in_pairs]), photos, spare)
        for place, photo in enumerate(ours[in_pairs:]):
            own += weed_subjects(f"{name}-alone-{place}", [photo])
        for place, photo in enumerate(ours):
            advised[photo[1]] += 1
            if photo[1].lower() != NO_WEED and advised[photo[1]] <= _ADVISED:
                advice = photo_subject(f"{name}-advice-{place}", [photo], thing, {}, "weed_advice")
                own.append(advice)
        subjects += [replace(each, cluster=name) for each in own]
    return data.part(subjects, ["weed", "field_advice"])


def _groups_of_days(days: Mapping[str, list[Photo[str]]]) -> list[list[Photo[str]]]:
    """Return the photographs of each group of days, in the order of their hashes."""
    groups: list[list[Photo[str]]] = [[]]
    for day in sorted(days, key=lambda day: hashlib.sha256(day.encode()).hexdigest()):
        if len({label for _, label in groups[-1]}) >= _WEEDS_OF_A_GROUP:
            groups.append([])
        groups[-1] += days[day]
    if len(groups) > 1 and len({label for _, label in groups[-1]}) < _WEEDS_OF_A_GROUP:
        groups[-2] += groups.pop()
    return [sorted(group, key=lambda photo: str(photo[0].sha256)) for group in groups]


FOCAL_PX = 955.0
"""Focal length in pixels.

It is not documented, but estimated from the two calibration spheres in every frame (60 and 120 mm).
"""
_SPHERES = "BALL"
_WELL_SEEN = "NO"
"""Value of ``occluded`` for fully visible fruits, the only ones whose size is asked for."""


@partial(Adapter, "field.rgbd_apples")
def apples(data: DataSet) -> Part:
    """Diameters of apples in boxes, in millimetres."""
    subjects: list[Subject] = []
    for number, item in enumerate(
        read_items(data.folder, ("fruits",), ("image", "depth_mm_uint16"))
    ):
        image = as_photo(data, item, note="Apple trees, daylight.")
        middle = {"cx_px": (image.width_px or 0) / 2, "cy_px": (image.height_px or 0) / 2}
        camera = {"intrinsics": Intrinsics(fx_px=FOCAL_PX, fy_px=FOCAL_PX, **middle)}
        note = "Depth registered to the picture."
        depth = as_plane(
            data, item, "depth_mm_uint16", place=1, kind="depth", depth_unit_mm=1.0, note=note
        )
        files = (image.model_copy(update=camera), depth)
        may_be_fruit = _may_be_fruit(read_image(data.folder / item["image"]).pixels)
        fruits = [
            each
            for each in _fruits(data.folder, item)
            if is_kept(data, ",".join(map(str, each[0])))
        ]
        for start in range(0, len(fruits) - TOGETHER + 1, TOGETHER):
            some = fruits[start : start + TOGETHER]
            subjects.append(apple_subject(f"apples-{number}-{start}", files, some))
            marks = tuple(zip(PEN_NAMES, (box for box, _ in some), strict=False))
            marked = as_photo(data, item, marks=marks, note="Apple trees, daylight.", **camera)
            subject = _marked_apples(f"framed-{number}-{start}", (marked, depth), marks, some)
            instead = without_frames(marked, files[0])
            if moved := moved_frames(marks, may_be_fruit):
                leaves_framed = as_photo(data, item, marks=moved, note=image.note, **camera)
                instead["beside"] = {marked.path: leaves_framed}
            subjects.append(replace(subject, instead=instead))
    return data.part(subjects, ["apple", "framed_apples"])


_REDDER, _BRIGHT = 10, 190
"""Red less green of skin in levels of 0 to 255, which leaves do not have, and green of sky and white posts."""


def _may_be_fruit(picture: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return True at pixels (rows, columns) of a picture that may show an apple, or no tree."""
    red, green = picture[..., 0].astype(np.int16), picture[..., 1].astype(np.int16)
    return (red - green > _REDDER) | (green > _BRIGHT)


def _marked_apples(
    name: str,
    files: tuple[SampleFile, SampleFile],
    marks: Sequence[Mark],
    fruits: Sequence[tuple[Box, float]],
) -> Subject:
    image, depth = named(files[0], "image", 1), named(files[1], "depth", 1)

    def shown(index: int, place: int) -> Thing:
        colour, box = marks[index]
        truth: dict[str, Any] = {"fruits": [{"id": 1, "diameter_mm": fruits[index][1]}], "n": 1}
        arguments: dict[str, Any] = {
            "image": image.name,
            "depth": depth.name,
            "boxes": [ref(0, "crop_box")],
        }
        thought = f"Now the diameter of the fruit inside the {colour} frame."
        words = {"colour": colour, "file": image.name}
        before = (framed(image.name, colour, box),)
        return Thing(
            (image, depth),
            "measure_fruit_size",
            arguments,
            truth,
            f"apple {place}",
            thought,
            words,
            before=before,
        )

    return Subject(name, len(fruits), shown, {"subject": name}, of="marked_apple")


def _fruits(folder: Path, item: dict[str, Any]) -> list[tuple[Box, float]]:
    """Return box and calliper size of each fully visible fruit."""
    try:
        return [
            (cast(Box, tuple(int(edge) for edge in fruit["box"])), float(fruit["caliber_mm"]))
            for fruit in item["fruits"]
            if not str(fruit["fruit_id"]).startswith(_SPHERES) and fruit["occluded"] == _WELL_SEEN
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise BenchmarkError(
            f"{folder}: the fruits of {item.get('id')} cannot be read: {error!r}"
        ) from error


PLURAL = {"apple": "apples", "pear": "pears", "cherry": "cherries"}


def orchard(fruit: str, folder: str) -> Adapter:
    """Return the reader of tiles with one kind of fruit in ``folder``."""

    @partial(Adapter, f"field.{folder}")
    def read(data: DataSet) -> Part:
        note = f"Part of a photograph of a tree with {PLURAL[fruit]}; fruit on trees behind it does not count."
        counted: list[tuple[SampleFile, int]] = []
        marked: list[Subject] = []
        for item in read_items(data.folder, ("count",), ("image",)):
            if not isinstance(item["count"], int) or item["count"] < 0:
                raise BenchmarkError(
                    f"{data.folder}: the count of {item.get('id')} is not a whole number"
                )
            tile = data.originals.file(data.folder / item["image"], note=note)
            if not is_kept(data, tile):
                continue
            counted.append((tile, item["count"]))
            if fruit == "apple" and (frames := _clean_frames(_boxes(data.folder / item["boxes"]))):
                marks = tuple(
                    (colour, box) for colour, (box, _) in zip(PEN_NAMES[1:], frames, strict=False)
                )
                file = as_photo(data, item, marks=marks, note=note)
                subject = _framed_fruit(
                    f"framed-{item['id']}", file, marks, [count for _, count in frames]
                )
                marked.append(replace(subject, instead=without_frames(file, counted[-1][0])))
        subjects = fruit_subjects(f"orchard-{fruit}", fruit, PLURAL[fruit], counted, of="orchard")
        return data.part([*subjects, *marked], ["orchard", "surely"])

    return read


_SIDES = ((16, 312), (328, 624))
"""Left and right part of a tile of 640 pixels in which a frame may lie."""
_STEP_PX, _LEAST_PX, _FEWEST = 24, 144, 4


def _boxes(path: Path) -> list[Box]:
    with path.open(encoding="utf-8") as lines:
        return [
            cast(Box, tuple(round(float(row[edge])) for edge in ("xmin", "ymin", "xmax", "ymax")))
            for row in DictReader(lines)
        ]


def _clean_frames(fruits: Sequence[Box]) -> list[tuple[Box, int]]:
    """Return for each side the largest frame that cuts no fruit and holds some, with their number; none where none."""
    frames: list[tuple[Box, int]] = []
    for left, right in _SIDES:
        edges = (
            range(left, right - _LEAST_PX + 1, _STEP_PX),
            range(16, 624 - _LEAST_PX + 1, _STEP_PX),
        )
        tried = [
            (x0, y0, x1, y1)
            for x0 in edges[0]
            for y0 in edges[1]
            for x1 in range(x0 + _LEAST_PX, right + 1, _STEP_PX)
            for y1 in range(y0 + _LEAST_PX, 625, _STEP_PX)
        ]
        clean = [
            (box, sum(shares)) for box in tried if (shares := _inside(fruits, box)) is not None
        ]
        if some := [each for each in clean if each[1] >= _FEWEST]:
            frames.append(
                max(some, key=lambda each: (each[0][2] - each[0][0]) * (each[0][3] - each[0][1]))
            )
    return frames


def _inside(fruits: Sequence[Box], frame: Box) -> list[bool] | None:
    """Return for each fruit whether it lies in the frame; None if the frame cuts one."""
    found: list[bool] = []
    for x0, y0, x1, y1 in fruits:
        across = max(0, min(x1, frame[2]) - max(x0, frame[0]))
        share = (
            across * max(0, min(y1, frame[3]) - max(y0, frame[1])) / max(1, (x1 - x0) * (y1 - y0))
        )
        if 0.1 < share < 0.9:
            return None
        found.append(share >= 0.9)
    return found


def _framed_fruit(
    name: str, file: SampleFile, marks: Sequence[Mark], counts: Sequence[int]
) -> Subject:
    file = named(file, "image", 1)

    def shown(index: int, _: int) -> Thing:
        colour, box = marks[index]
        words = {"fruit": "apple", "fruits": "apples", "colour": colour}
        thought = f"Now the number of apples inside the {colour} frame."
        arguments = {"target": "apple", "region": ref(0, "crop_box")}
        before = (framed(file.name, colour, box),)
        return photo_thing(
            file, "count_objects", {"count": counts[index]}, thought, words, before, **arguments
        )

    return Subject(name, len(marks), shown, {"subject": name}, of="fruit_mark")
