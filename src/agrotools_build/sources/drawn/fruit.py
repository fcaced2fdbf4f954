"""Drawn fruit: apples with depth whose size is measured, and fruit and ears of wheat that are counted."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.calling.result import round_significant
from agrotools.core import Intrinsics, SampleFile
from agrotools_build.area_truth import Region, halves
from agrotools_build.references import PlannedCall, ref
from agrotools_build.scenes.marks import Box, grown, mark_each, random_box
from agrotools_build.scenes.orchard import LEAST_SEEN, WELL_SEEN, make_orchard, varieties_of
from agrotools_build.scenes.scene import Difficulty, Scene
from agrotools_build.scenes.wheat import LEAST_SEEN as LEAST_EAR
from agrotools_build.scenes.wheat import make_wheat
from agrotools_build.sources.drawn import (
    SHARES_WITH_MARK,
    DrawnScene,
    Only,
    SceneKind,
    absent_colour,
    find_mark,
    save_jpeg,
    save_png,
)
from agrotools_build.sources.part import TABLES, Originals, named, photo_thing
from agrotools_build.sources.reading import geotiff_of
from agrotools_build.templates.thing import Subject, Thing

PICTURES = 4
_COLOURFUL = ("red", "dark", "striped")
"""Varieties that differ from leaves in colour; fruit of other varieties has to be marked."""
_MARKED_SEEN = 0.75
_LOOSE = (0.0, 0.16)
"""Margin of a box in words on each side, as a share of its fruit's width."""
_APPLE_PENS = ("blue", "yellow", "magenta")
_SAMPLE_PENS = ("blue", "yellow")
"""Pens that outline the apple of a sample: nobody takes magenta for a red apple."""
_EDGES_MM = (50, 60, 70, 80, 90)
_DIGITS = 6
_TELLING_MM = 6.5
"""Least distance of an outlined apple from the mean of its tree: more than a diameter may be wrong by."""
_MOST_ROOM_PX = 7
"""Largest distance of an outline from its apple."""
_TREES_TRIED, _ALONE_TRIES = 6, 4
"""Trees drawn at most until one has an apple to outline, and single apples until leaves do not hide one."""


def _draw_apples(
    seed: int, difficulty: Difficulty, folder: Path, only: Only
) -> dict[str, JsonValue]:
    """Draw four rows of one variety with different fruit sizes, each with depth, plain and with marks."""
    rng = np.random.default_rng([seed, zlib.crc32(b"apples"), difficulty])
    sizes = rng.uniform(56, 74) + np.cumsum([0.0, *rng.uniform(2.0, 8.5, PICTURES - 1)])
    sizes = rng.permutation(sizes)
    skin = str(rng.choice(varieties_of("apple", difficulty)))
    outlined, pen = float(rng.choice(SHARES_WITH_MARK)), str(rng.choice(_SAMPLE_PENS))
    pictures: list[JsonValue] = []
    for number in range(PICTURES):
        stems = ("photo", "marked", "sample", "unmarked")
        names = [f"{stem}_{number}.jpg" for stem in stems]
        if not any(map(only, [*names, f"depth_{number}.png", f"sample_depth_{number}.png"])):
            continue
        rng = np.random.default_rng([seed, zlib.crc32(b"apples"), difficulty, 1 + number])
        scene = make_orchard(
            int(rng.integers(2**31)), difficulty, skin=skin, mean_mm=float(sizes[number])
        )
        photo = np.array(scene.images["rgb"])
        save_jpeg(folder / f"photo_{number}.jpg", photo)
        save_png(folder / f"depth_{number}.png", scene.images["depth"])
        fruits = list(scene.truth["fruits"])
        sample = _draw_sample(
            np.random.default_rng([seed, zlib.crc32(b"sample apples"), difficulty, 1 + number]),
            scene, difficulty, outlined, pen, float(sizes[number]),
        )  # fmt: skip
        save_jpeg(folder / f"sample_{number}.jpg", sample.photo)
        save_png(folder / f"sample_depth_{number}.png", sample.depth)
        if sample.truth["mark"]:
            save_jpeg(folder / f"unmarked_{number}.jpg", sample.unmarked)
        pens = [str(pen) for pen in rng.permutation(_APPLE_PENS)]
        pointed = [
            place for place, fruit in enumerate(fruits) if fruit["visibility"] >= _MARKED_SEEN
        ]
        order = [pointed[int(k)] for k in rng.permutation(len(pointed))]
        boxes = [grown(fruits[place]["box"], int(rng.integers(3, 8))) for place in order]
        marks = [
            {**mark, "place": order[mark["place"]]} for mark in mark_each(photo, boxes, pens, rng)
        ]
        save_jpeg(folder / f"marked_{number}.jpg", photo)
        for fruit in fruits:
            fruit["loose"] = _loose(rng, fruit["box"], photo)
        picture = {
            "fruits": fruits, "marks": marks, "focal_px": scene.sidecar["fx_px"],
            "sample": sample.truth,
        }  # fmt: skip
        pictures.append(cast(JsonValue, picture))
    return {"skin": skin, "pen": pen, "pictures": pictures}


def _loose(rng: np.random.Generator, box: Sequence[int], photo: NDArray[np.uint8]) -> list[int]:
    """Return the box of a fruit with a margin, because its width must not tell the diameter."""
    x0, y0, x1, y1 = grown(box, round(float(rng.uniform(*_LOOSE)) * (box[2] - box[0])))
    return [max(0, x0), max(0, y0), min(photo.shape[1], x1), min(photo.shape[0], y1)]


@dataclass(frozen=True, eq=False)
class _SampleApple:
    """Picture and depth of the sample apple of a tree, and its ``truth``: fruit, mark if it has one, focal length.

    ``unmarked``: the picture without the mark.
    """

    photo: NDArray[np.uint8]
    unmarked: NDArray[np.uint8]
    depth: NDArray[np.uint16]
    truth: dict[str, Any]


def _draw_sample(
    rng: np.random.Generator,
    tree: Scene,
    difficulty: Difficulty,
    outlined: float,
    pen: str,
    mean_mm: float,
) -> _SampleApple:
    """Return an apple that hangs alone or, with probability ``outlined``, is outlined among the others of ``tree``.

    An outlined apple differs in size from the mean of its tree, so that the outline matters.
    """
    kind: dict[str, Any] = {"skin": tree.truth["skin"], "mean_mm": mean_mm}
    if rng.uniform() < outlined:
        for attempt in range(_TREES_TRIED):
            if attempt:
                tree = make_orchard(int(rng.integers(2**31)), difficulty, **kind)
            photo = np.array(tree.images["rgb"])
            telling = _telling(tree.truth["fruits"])
            boxes = [
                grown(fruit["box"], int(rng.integers(3, _MOST_ROOM_PX + 1))) for fruit in telling
            ]
            if marks := mark_each(photo, boxes, [pen], rng):
                truth = {"fruit": telling[marks[0]["place"]], "mark": marks[0]["truth"]}
                truth["focal_px"] = tree.sidecar["fx_px"]
                return _SampleApple(photo, tree.images["rgb"], tree.images["depth"], truth)
    scene, fruit = tree, tree.truth["fruits"][0]
    for _ in range(_ALONE_TRIES):
        scene = make_orchard(int(rng.integers(2**31)), difficulty, fruits=1, **kind)
        fruit = scene.truth["fruits"][0]
        if fruit["visibility"] >= _MARKED_SEEN:
            break
    photo = np.array(scene.images["rgb"])
    truth = {"fruit": {**fruit, "loose": _loose(rng, fruit["box"], photo)}, "mark": None}
    truth["focal_px"] = scene.sidecar["fx_px"]
    return _SampleApple(photo, photo, scene.images["depth"], truth)


def _telling(fruits: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return apples beside no other whose size differs clearly from the mean of their tree, most different first.

    Nobody outlines an apple of a cluster, where it is not clear which one is meant.
    """
    measured = [fruit["diameter_mm"] for fruit in _measured(fruits)]
    usual_mm = float(np.mean(measured)) if measured else 0.0
    telling = [
        fruit
        for fruit in fruits
        if fruit["visibility"] >= _MARKED_SEEN
        and abs(fruit["diameter_mm"] - usual_mm) >= _TELLING_MM
        and not any(
            _overlap(grown(fruit["box"], _MOST_ROOM_PX), other["box"])
            for other in fruits
            if other is not fruit
        )
    ]
    return sorted(telling, key=lambda fruit: -abs(fruit["diameter_mm"] - usual_mm))


def _apple_subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Return whole rows (if colour identifies the fruit), fruit pointed out by a pixel, and marked fruit."""
    record = cast("list[dict[str, Any]]", drawn.record["pictures"])
    pictures = [
        {**one, **_apple_files(drawn, originals, number, one["focal_px"])}
        for number, one in enumerate(record)
    ]

    def row(index: int, place: int) -> Thing:
        return _sized(pictures[index], "photo", place, pictures[index]["fruits"])

    def boxed(
        picture: Mapping[str, Any], whole: Sequence[Mapping[str, Any]], index: int, place: int
    ) -> Thing:
        box = [*whole[index]["loose"]]
        x, y = whole[index]["centre_px"]
        words = {"point": f"({round(x)}, {round(y)})"}
        thing = _sized(picture, "photo", 1, [whole[index]])
        shown = f"({', '.join(map(str, box))})"
        thought = f"I need the diameter of the fruit at {words['point']}, which fills {shown}."
        arguments: dict[str, Any] = {**thing.arguments, "boxes": [box]}
        return replace(
            thing, arguments=arguments, called=f"apple {place}", thought=thought, words=words
        )

    def marked(picture: Mapping[str, Any], index: int, place: int) -> Thing:
        return _marked_apple(picture, picture["marks"][index], 1, place)

    samples = [
        _sample_apple_files(drawn, originals, number, one["sample"])
        for number, one in enumerate(pictures)
        if one["sample"]["fruit"]["visibility"] >= _MARKED_SEEN
    ]

    def sample_apple(index: int, place: int) -> Thing:
        return _sample_thing(samples[index], place, str(drawn.record["pen"]))

    # One fruit in each of several pictures, marked in a colour that is used once per picture.
    with_marks = [picture for picture in pictures if picture["marks"]]

    def marked_in_its_row(index: int, place: int) -> Thing:
        return _marked_apple(with_marks[index], with_marks[index]["marks"][0], place, place)

    subjects = [
        replace(
            drawn.subject("samples", len(samples), sample_apple, "sample_apple"),
            instead={
                "unmarked": {one["sample"].path: one["unmarked"] for one in samples if one["mark"]}
            },
        )
    ]
    if drawn.record["skin"] in _COLOURFUL and all(
        _measured(picture["fruits"]) for picture in pictures
    ):
        subjects.append(drawn.subject("rows", len(pictures), row, "apple_row"))
    for number, picture in enumerate(pictures):
        whole = [fruit for fruit in picture["fruits"] if fruit["visibility"] >= _MARKED_SEEN]
        in_boxes = drawn.subject(
            f"boxes-{number}", len(whole), partial(boxed, picture, whole), "boxed_apple"
        )
        subjects += [
            replace(in_boxes, elsewhere=partial(_other_tree, pictures, number)),
            drawn.subject(
                f"marks-{number}", len(picture["marks"]), partial(marked, picture), "marked_apple"
            ),
        ]
    if with_marks:
        subjects.append(
            drawn.subject("marked-rows", len(with_marks), marked_in_its_row, "marked_apple_row")
        )
    return subjects


def _sample_apple_files(
    drawn: DrawnScene, originals: Originals, number: int, sample: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the files of a sample apple beside its truth; ``unmarked``: the same picture without the outline."""
    note = (
        "Apple tree, daylight. The sample apple is the only one in view or, where there are several, the one outlined "
        f"in {drawn.record['pen']}."
    )
    photo, unmarked = (
        originals.file(drawn.folder / f"{stem}_{number}.jpg", note=note)
        for stem in ("sample", "unmarked" if sample["mark"] else "sample")
    )
    middle = {"cx_px": (photo.width_px or 0) / 2, "cy_px": (photo.height_px or 0) / 2}
    focal_px = sample["focal_px"]
    camera = {"intrinsics": Intrinsics(fx_px=focal_px, fy_px=focal_px, **middle)}
    return {
        **sample,
        "sample": photo.model_copy(update=camera),
        "unmarked": unmarked.model_copy(update=camera),
        "depth": originals.file(
            drawn.folder / f"sample_depth_{number}.png",
            kind="depth",
            depth_unit_mm=1.0,
            note="Depth registered to the picture.",
        ),
    }


def _sample_thing(sample: Mapping[str, Any], place: int, pen: str) -> Thing:
    """Return the sample apple of a tree, found by its outline where there is one."""
    thing = _sized(sample, "sample", place, [sample["fruit"]])
    file = thing.files[0].name
    if mark := sample["mark"]:
        return replace(
            thing,
            arguments={**thing.arguments, "boxes": [ref(0, "crop_box")]},
            thought=f"Now the diameter of the apple inside the {pen} outline in {file}.",
            before=(find_mark(file, pen, mark),),
        )
    box = [*sample["fruit"]["loose"]]
    filled = f"({', '.join(map(str, box))})"
    return replace(
        thing,
        arguments={**thing.arguments, "boxes": [box]},
        thought=f"I need the diameter of the only apple in {file}, which fills {filled}.",
    )


def _other_tree(
    pictures: Sequence[Mapping[str, Any]], number: int, calls: Sequence[PlannedCall]
) -> dict[str, SampleFile]:
    """Return another tree, with its depth, that has no fruit in the boxes of the calls; empty if there is none."""
    boxes = [box for call in calls for box in cast("list[Box]", call.arguments.get("boxes", []))]
    own = pictures[number]
    for other in (*pictures[number + 1 :], *pictures[:number]):
        fruits = [fruit["box"] for fruit in other["fruits"]]
        if not any(_overlap(box, fruit) for box in boxes for fruit in fruits):
            return {own[kind].path: other[kind] for kind in ("photo", "depth")}
    return {}


def _overlap(one: Sequence[int], other: Sequence[int]) -> bool:
    across = one[0] < other[2] and other[0] < one[2]
    return across and one[1] < other[3] and other[1] < one[3]


def _apple_files(
    drawn: DrawnScene, originals: Originals, number: int, focal_px: float
) -> dict[str, SampleFile]:
    photo = originals.file(drawn.folder / f"photo_{number}.jpg", note="Apple tree, daylight.")
    marked = originals.file(
        drawn.folder / f"marked_{number}.jpg", note="Apple tree, daylight, with marks."
    )
    path, note = drawn.folder / f"depth_{number}.png", "Depth registered to the picture."
    middle = {"cx_px": (photo.width_px or 0) / 2, "cy_px": (photo.height_px or 0) / 2}
    intrinsics = {"intrinsics": Intrinsics(fx_px=focal_px, fy_px=focal_px, **middle)}
    return {
        "photo": photo.model_copy(update=intrinsics),
        "marked": marked.model_copy(update=intrinsics),
        "depth": originals.file(path, kind="depth", depth_unit_mm=1.0, note=note),
    }


def _sized(
    picture: Mapping[str, Any], stem: str, number: int, fruits: Sequence[Mapping[str, Any]]
) -> Thing:
    photo, depth = named(picture[stem], "image", number), named(picture["depth"], "depth", number)
    thought = f"I need the diameters of the apples in {photo.name}."
    arguments: dict[str, Any] = {"image": photo.name, "depth": depth.name}
    return Thing(
        (photo, depth), "measure_fruit_size", arguments, _sizes(fruits), photo.name, thought
    )


def _marked_apple(
    picture: Mapping[str, Any], mark: Mapping[str, Any], number: int, place: int
) -> Thing:
    thing, colour = (
        _sized(picture, "marked", number, [picture["fruits"][mark["place"]]]),
        str(mark["color"]),
    )
    file = thing.files[0].name
    return replace(
        thing,
        arguments={**thing.arguments, "boxes": [ref(0, "crop_box")]},
        called=f"apple {place}",
        thought=f"Now the diameter of the fruit inside the {colour} mark in {file}.",
        words={"colour": colour, "file": file, **absent_colour(_APPLE_PENS, picture["marks"])},
        before=(find_mark(file, colour, mark["truth"]),),
    )


def _measured(fruits: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the apples that are visible enough to count in mean values."""
    return [fruit for fruit in fruits if fruit["visibility"] >= WELL_SEEN]


def _sizes(fruits: Sequence[Mapping[str, Any]]) -> dict[str, JsonValue]:
    seen = [fruit for fruit in fruits if fruit["visibility"] >= LEAST_SEEN]
    used = [fruit["diameter_mm"] for fruit in _measured(seen)]
    shown = ("diameter_mm", "distance_mm", "centre_px", "visibility")
    rows: list[JsonValue] = [
        {
            "id": number,
            **{key: fruit[key] for key in shown},
            "used_in_mean": fruit["visibility"] >= WELL_SEEN,
        }
        for number, fruit in enumerate(seen, start=1)
    ]
    names = ["<50", *(f"{low}-{high}" for low, high in pairwise(_EDGES_MM)), ">=90"]
    counts = [
        sum(low <= size < high for size in used)
        for low, high in pairwise([-np.inf, *_EDGES_MM, np.inf])
    ]
    return {
        "fruits": rows,
        "n": len(seen),
        "n_measured": len(used),
        "mean_diameter_mm": round_significant(float(np.mean(used)), _DIGITS) if used else None,
        "median_diameter_mm": round_significant(float(np.median(used)), _DIGITS) if used else None,
        "sd_mm": round_significant(float(np.std(used, ddof=1)), _DIGITS) if len(used) > 1 else None,
        "size_classes": dict(zip(names, counts, strict=True)),
    }


COUNTED: Mapping[str, Mapping[str, Any]] = TABLES["counted"]
_PENS = ("blue", "magenta", "cyan")
_BANDS = ("R", "G", "B", "NIR")
_RASTER_OF = 5
"""Every fifth subject is made of rasters with near infrared instead of photographs."""
_SHARES_FRAMED = (0.0, 1.0, 1.0)
"""Shares of a scene's pictures that get a frame, if one fits: it does in two thirds of them."""
_FRAME_TRIES, _FRAME_SHARES = 600, (0.3, 0.8)
_FEWEST_IN_FRAME, _FEWEST_OUTSIDE, _SHARE_OUTSIDE = 2, 2, 0.25
"""Objects inside and outside a frame, and those outside as a share of those inside: the frame must matter."""
_STROKE_ROOM_PX = 9
"""Distance from the inside of a frame within which no object may be cut: its stroke and some pixels."""


def _draw_counts(
    seed: int, difficulty: Difficulty, folder: Path, only: Only
) -> dict[str, JsonValue]:
    """Draw four pictures of one kind of plant with different yields, plain and with two marked parts."""
    rng = np.random.default_rng([seed, zlib.crc32(b"fruit_counts"), difficulty])
    kind, is_raster = list(COUNTED)[seed % len(COUNTED)], seed % _RASTER_OF == 2
    least, most = COUNTED[kind]["in_picture"]
    # The total of all four pictures must not be the same for every plant.
    bears = np.linspace(least, least + (most - least) * rng.uniform(0.7, 1.15), PICTURES)
    counts = rng.permutation(bears + rng.uniform(-1.5, 1.5, PICTURES)).round().astype(int)
    skin = None if kind == "wheat head" else str(rng.choice(varieties_of(kind, difficulty)))
    framed, pen = float(rng.choice(_SHARES_FRAMED)), str(rng.choice(_PENS))
    suffix = ".tif" if is_raster else ".jpg"
    pictures: list[JsonValue] = []
    for number in range(PICTURES):
        names = (f"photo_{number}{suffix}", f"marked_{number}.jpg", f"part_{number}.jpg")
        if not any(map(only, names)):
            continue
        rng = np.random.default_rng([seed, zlib.crc32(b"fruit_counts"), difficulty, 1 + number])
        scene_seed = int(rng.integers(2**31))
        if kind == "wheat head":
            scene = make_wheat(scene_seed, difficulty, int(counts[number]))
        else:
            scene = make_orchard(
                scene_seed, difficulty, kind, fruits=int(counts[number]), skin=skin
            )
        photo = np.array(scene.images["rgb"])
        if is_raster:
            bands = np.concatenate([photo.transpose(2, 0, 1), scene.images["nir"][None]])
            (folder / f"photo_{number}.tif").write_bytes(geotiff_of(bands, _BANDS))
        else:
            save_jpeg(folder / f"photo_{number}.jpg", photo)
        seen, part = _seen(scene), np.array(photo)
        frame: dict[str, Any] | None = None
        if not is_raster and rng.uniform() < framed:
            frame = _draw_frame(rng, part, seen, pen)
        if frame:
            save_jpeg(folder / f"part_{number}.jpg", part)
        pens = [str(pen) for pen in rng.permutation(_PENS)[:2]]
        marks = mark_each(photo, _frames(rng, photo), pens, rng, shapes=("box",))
        save_jpeg(folder / f"marked_{number}.jpg", photo)
        facts = {
            "seen": seen, "marks": marks, "frame": frame, "area_m2": scene.truth.get("area_m2")
        }  # fmt: skip
        pictures.append(cast(JsonValue, facts))
    return {"kind": kind, "suffix": suffix, "pen": pen, "pictures": pictures}


def _draw_frame(
    rng: np.random.Generator, photo: NDArray[np.uint8], seen: "_Seen", pen: str
) -> dict[str, Any] | None:
    """Draw a frame that cuts no object and leaves many outside, and return its perfect result; None if none fits."""

    def suits(box: Box) -> bool:
        outer = grown(box, _STROKE_ROOM_PX)
        whole = [_contains(box, each) for _, each in seen]
        if any(
            _overlap(outer, each) and not held for (_, each), held in zip(seen, whole, strict=True)
        ):
            return False
        inside = sum(whole)
        outside = len(seen) - inside
        return inside >= _FEWEST_IN_FRAME and outside >= max(
            _FEWEST_OUTSIDE, _SHARE_OUTSIDE * inside
        )

    box = random_box(rng, photo.shape[:2], _FRAME_SHARES, suits, tries=_FRAME_TRIES)
    marks = mark_each(photo, [box], [pen], rng, shapes=("box",)) if suits(box) else []
    return marks[0]["truth"] if marks else None


def _contains(box: Sequence[int], other: Sequence[int]) -> bool:
    return box[0] <= other[0] and box[1] <= other[1] and other[2] <= box[2] and other[3] <= box[3]


def _count_subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Return whole pictures, halves where no fruit is on the line between them, and marked parts."""
    counts = _counted_pictures(drawn, originals)
    number_of_pictures = len(counts.pictures)
    subject = partial(drawn.subject, variant=counts.kind)
    subjects = [subject("pictures", number_of_pictures, counts.whole, "fruit_picture")]
    if counts.kind == "wheat head":
        subjects.append(subject("ears", number_of_pictures, counts.plain, "ear_picture"))
    for number, picture in enumerate(counts.pictures):
        for parts in _clean_halves(counts.files[number], picture["seen"]):
            first_name = parts[0][0]
            half = partial(counts.half, number, parts)
            subjects.append(subject(f"{number}-{first_name}", 2, half, "fruit_half"))
        mark = partial(counts.one_of_marks, number)
        subjects.append(subject(f"{number}-marks", len(picture["marks"]), mark, "fruit_mark"))
    marked = subject("marked", number_of_pictures, counts.first_mark, "marked_fruit_picture")
    return [*subjects, marked]


def _counted_pictures(drawn: DrawnScene, originals: Originals) -> "_CountedPictures":
    kind, suffix = str(drawn.record["kind"]), str(drawn.record["suffix"])
    pictures = cast("list[dict[str, Any]]", drawn.record["pictures"])
    note = f"{COUNTED[kind]['plural'].capitalize()}, daylight."
    raster: dict[str, Any] = {"kind": "raster", "bands": _BANDS} if suffix == ".tif" else {}
    numbers = range(len(pictures))
    photos = [drawn.folder / f"photo_{number}{suffix}" for number in numbers]
    marked = [drawn.folder / f"marked_{number}.jpg" for number in numbers]
    plural, pen = COUNTED[kind]["plural"], str(drawn.record["pen"])
    # People draw on photographs, not on rasters.
    rule = (
        ""
        if raster
        else f" Where a {pen} frame is drawn, only the {plural} inside it are asked for."
    )
    shown = [
        drawn.folder / f"part_{number}.jpg" if picture["frame"] else path
        for number, path, picture in zip(numbers, photos, pictures, strict=True)
    ]
    return _CountedPictures(
        kind=kind,
        pen=pen,
        pictures=pictures,
        shown_files=[originals.file(path, note=note + rule, **raster) for path in shown],
        files=[originals.file(path, note=note, **raster) for path in photos],
        marked_files=[originals.file(path, note=note) for path in marked],
    )


_Parts = Sequence[tuple[str, Region]]
"""Two halves of a picture: name and box of each."""


def _clean_halves(file: SampleFile, seen: Sequence[tuple[object, Sequence[int]]]) -> list[_Parts]:
    """Return the halves of a picture, across and along, without those whose dividing line cuts an object."""
    clean: list[_Parts] = []
    for axis, parts in enumerate(halves(file.width_px or 0, file.height_px or 0)):
        _, second_box = parts[1]
        line = second_box[axis]
        if not any(box[axis] < line < box[axis + 2] for _, box in seen):
            clean.append(parts)
    return clean


@dataclass(frozen=True, eq=False)
class _CountedPictures:
    """Pictures of one kind of plant, and what is counted in them.

    ``pictures``: truth of each: ``seen`` (centre and box of each visible object), ``marks``, ``frame`` and ``area_m2``.
    ``files``, ``marked_files``: the pictures plain and with marks; ``shown_files``: some of them with a frame in the
    colour ``pen``.
    """

    kind: str
    pen: str
    pictures: Sequence[Mapping[str, Any]]
    files: Sequence[SampleFile]
    marked_files: Sequence[SampleFile]
    shown_files: Sequence[SampleFile]

    @property
    def plural(self) -> str:
        """Name of the objects."""
        return COUNTED[self.kind]["plural"]

    def whole(self, number: int, place: int) -> Thing:
        """Return a picture, or the part of it inside the frame if it has one."""
        file, picture = named(self.shown_files[number], "image", place), self.pictures[number]
        frame = picture["frame"]
        if frame is None:
            thought = f"I need to know how many {self.plural} there are in {file.name}."
            return self._thing(file, len(picture["seen"]), thought, {})
        return self._thing(
            file,
            _inside(picture["seen"], frame["crop_box"]),
            f"Now the {self.plural} inside the {self.pen} frame in {file.name}.",
            {},
            before=(find_mark(file.name, self.pen, frame),),
            region=ref(0, "crop_box"),
        )

    def plain(self, number: int, place: int) -> Thing:
        """Return a whole picture without a frame."""
        file, picture = named(self.files[number], "image", place), self.pictures[number]
        words = {"area": f"{picture['area_m2']:.3f}"} if picture["area_m2"] else {}
        thought = f"I need to know how many {self.plural} there are in {file.name}."
        return self._thing(file, len(picture["seen"]), thought, words)

    def half(self, number: int, parts: _Parts, index: int, _: int) -> Thing:
        """Return one of two halves of a picture."""
        name, box = parts[index]
        file = named(self.files[number], "image", 1)
        thought = f"I need to know how many {self.plural} there are in the {name} half."
        count = _inside(self.pictures[number]["seen"], box)
        thing = self._thing(file, count, thought, {}, region=[*box])
        return replace(thing, called=f"{name} half")

    def one_of_marks(self, number: int, index: int, _: int) -> Thing:
        """Return a marked part of a picture."""
        return self._in_mark(number, 1, self.pictures[number]["marks"][index])

    def first_mark(self, number: int, place: int) -> Thing:
        """Return the first marked part of a picture."""
        return self._in_mark(number, place, self.pictures[number]["marks"][0])

    def _in_mark(self, number: int, place: int, mark: Mapping[str, Any]) -> Thing:
        file, colour = named(self.marked_files[number], "image", place), str(mark["color"])
        picture, truth = self.pictures[number], mark["truth"]
        words = {"colour": colour, **absent_colour(_PENS, picture["marks"])}
        return self._thing(
            file,
            _inside(picture["seen"], truth["crop_box"]),
            f"Now the {self.plural} inside the {colour} mark in {file.name}.",
            words,
            before=(find_mark(file.name, colour, truth),),
            region=ref(0, "crop_box"),
        )

    def _thing(
        self, file: SampleFile, count: int, thought: str, words: Mapping[str, str], **more: Any
    ) -> Thing:
        counted = COUNTED[self.kind]
        least_g, most_g = counted["grams"]
        all_words = {
            "fruit": self.kind,
            "fruits": self.plural,
            "file": file.name,
            "least_g": str(least_g),
            "most_g": str(most_g),
            **words,
        }
        return photo_thing(
            file,
            "count_objects",
            {"count": count},
            thought,
            all_words,
            target=self.kind,
            **counted["arguments"],
            **more,
        )


_Seen = Sequence[tuple[Sequence[float], Sequence[int]]]
"""Centre and box of each visible object."""


def _inside(seen: Sequence[tuple[Sequence[float], object]], box: Sequence[int]) -> int:
    return sum(box[0] <= x < box[2] and box[1] <= y < box[3] for (x, y), _ in seen)


def _seen(scene: Scene) -> list[tuple[list[float], list[int]]]:
    """Return centre and box of each visible object; the centre is that of a whole fruit, or of what shows of an ear."""
    if "heads" in scene.truth:
        boxes = [head["box"] for head in scene.truth["heads"] if head["visibility"] >= LEAST_EAR]
        return [([(x0 + x1) / 2, (y0 + y1) / 2], [x0, y0, x1, y1]) for x0, y0, x1, y1 in boxes]
    return [
        (fruit["centre_px"], fruit["box"])
        for fruit in scene.truth["fruits"]
        if fruit["visibility"] >= LEAST_SEEN
    ]


def _frames(rng: np.random.Generator, photo: NDArray[np.uint8]) -> list[Box]:
    """Return two boxes, each a quarter to two fifths of the picture, one in each half."""
    rows, columns = photo.shape[:2]
    frames: list[Box] = []
    for left in (0, columns // 2):
        width, height = int(columns / 2 * rng.uniform(0.72, 0.9)), int(rows * rng.uniform(0.6, 0.9))
        x0 = left + int(rng.integers(8, max(9, columns // 2 - width - 8)))
        y0 = int(rng.integers(8, rows - height - 8))
        frames.append((x0, y0, x0 + width, y0 + height))
    return [frames[int(k)] for k in rng.permutation(2)]


APPLES = SceneKind(
    5,
    ("drawn_apple", "drawn_apple_boxes", "drawn_apple_marks", "drawn_apple_sample"),
    _draw_apples,
    _apple_subjects,
)
FRUIT_COUNTS = SceneKind(
    6, ("drawn_count", "drawn_count_marks", "drawn_ears"), _draw_counts, _count_subjects
)
