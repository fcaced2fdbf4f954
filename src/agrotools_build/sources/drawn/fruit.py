"""Drawn fruit: apples with depth whose size is measured, and fruit and ears of wheat that are counted."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from agrotools_build.references import ref
from agrotools_build.scenes.marks import Box, grown, mark_each
from agrotools_build.scenes.orchard import LEAST_SEEN, WELL_SEEN, make_orchard, varieties_of
from agrotools_build.scenes.scene import Difficulty, Scene
from agrotools_build.scenes.wheat import LEAST_SEEN as LEAST_EAR
from agrotools_build.scenes.wheat import make_wheat
from agrotools_build.sources.drawn import (
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
_EDGES_MM = (50, 60, 70, 80, 90)
_DIGITS = 6


def _draw_apples(
    seed: int, difficulty: Difficulty, folder: Path, only: Only
) -> dict[str, JsonValue]:
    """Draw four rows of one variety with different fruit sizes, each with depth, plain and with marks."""
    rng = np.random.default_rng([seed, zlib.crc32(b"apples"), difficulty])
    sizes = rng.uniform(56, 74) + np.cumsum([0.0, *rng.uniform(2.0, 8.5, PICTURES - 1)])
    sizes = rng.permutation(sizes)
    skin = str(rng.choice(varieties_of("apple", difficulty)))
    pictures: list[JsonValue] = []
    for number in range(PICTURES):
        if not any(
            only(name)
            for name in (f"photo_{number}.jpg", f"depth_{number}.png", f"marked_{number}.jpg")
        ):
            continue
        rng = np.random.default_rng([seed, zlib.crc32(b"apples"), difficulty, 1 + number])
        scene = make_orchard(
            int(rng.integers(2**31)), difficulty, skin=skin, mean_mm=float(sizes[number])
        )
        photo = np.array(scene.images["rgb"])
        save_jpeg(folder / f"photo_{number}.jpg", photo)
        save_png(folder / f"depth_{number}.png", scene.images["depth"])
        fruits = list(scene.truth["fruits"])
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
        for fruit in fruits:  # its width must not tell the diameter
            margin = float(rng.uniform(*_LOOSE)) * (fruit["box"][2] - fruit["box"][0])
            x0, y0, x1, y1 = grown(fruit["box"], round(margin))
            fruit["loose"] = [
                max(0, x0),
                max(0, y0),
                min(photo.shape[1], x1),
                min(photo.shape[0], y1),
            ]
        pictures.append(
            cast(JsonValue, {"fruits": fruits, "marks": marks, "focal_px": scene.sidecar["fx_px"]})
        )
    return {"skin": skin, "pictures": pictures}


def _apple_subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Return whole rows (if colour identifies the fruit), fruit with boxes given in words, and marked fruit."""
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
        words = {"box": f"({', '.join(map(str, box))})"}
        thing = _sized(picture, "photo", 1, [whole[index]])
        thought = f"I need the diameter of the fruit in the box {words['box']}."
        arguments: dict[str, Any] = {**thing.arguments, "boxes": [box]}
        return replace(
            thing, arguments=arguments, called=f"apple {place}", thought=thought, words=words
        )

    def marked(picture: Mapping[str, Any], index: int, place: int) -> Thing:
        return _marked_apple(picture, picture["marks"][index], 1, place)

    # One fruit in each of several pictures, marked in a colour that is used once per picture.
    with_marks = [picture for picture in pictures if picture["marks"]]

    def marked_in_its_row(index: int, place: int) -> Thing:
        return _marked_apple(with_marks[index], with_marks[index]["marks"][0], place, place)

    subjects: list[Subject] = []
    if drawn.record["skin"] in _COLOURFUL and all(
        _measured(picture["fruits"]) for picture in pictures
    ):
        subjects.append(drawn.subject("rows", len(pictures), row, "apple_row"))
    for number, picture in enumerate(pictures):
        whole = [fruit for fruit in picture["fruits"] if fruit["visibility"] >= _MARKED_SEEN]
        subjects += [
            drawn.subject(
                f"boxes-{number}", len(whole), partial(boxed, picture, whole), "boxed_apple"
            ),
            drawn.subject(
                f"marks-{number}", len(picture["marks"]), partial(marked, picture), "marked_apple"
            ),
        ]
    if with_marks:
        subjects.append(
            drawn.subject("marked-rows", len(with_marks), marked_in_its_row, "marked_apple_row")
        )
    return subjects


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
    suffix = ".tif" if is_raster else ".jpg"
    pictures: list[JsonValue] = []
    for number in range(PICTURES):
        if not (only(f"photo_{number}{suffix}") or only(f"marked_{number}.jpg")):
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
        pens = [str(pen) for pen in rng.permutation(_PENS)[:2]]
        marks = mark_each(photo, _frames(rng, photo), pens, rng, shapes=("box",))
        save_jpeg(folder / f"marked_{number}.jpg", photo)
        facts = {"seen": _seen(scene), "marks": marks, "area_m2": scene.truth.get("area_m2")}
        pictures.append(cast(JsonValue, facts))
    return {"kind": kind, "suffix": suffix, "pictures": pictures}


def _count_subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Return whole pictures, halves where no fruit is on the line between them, and marked parts."""
    kind, suffix = str(drawn.record["kind"]), str(drawn.record["suffix"])
    pictures = cast("list[dict[str, Any]]", drawn.record["pictures"])
    plural, arguments = COUNTED[kind]["plural"], COUNTED[kind]["arguments"]
    least_g, most_g = map(str, COUNTED[kind]["grams"])
    note = f"{plural.capitalize()}, daylight."
    raster: dict[str, Any] = {"kind": "raster", "bands": _BANDS} if suffix == ".tif" else {}
    files = [
        originals.file(drawn.folder / f"photo_{k}{suffix}", note=note, **raster)
        for k in range(len(pictures))
    ]
    marked_files = [
        originals.file(drawn.folder / f"marked_{k}.jpg", note=note) for k in range(len(pictures))
    ]

    def counted(
        file: SampleFile, count: int, thought: str, words: Mapping[str, str], **more: Any
    ) -> Thing:
        words = {
            "fruit": kind,
            "fruits": plural,
            "file": file.name,
            "least_g": least_g,
            "most_g": most_g,
            **words,
        }
        truth = {"count": count}
        return photo_thing(
            file, "count_objects", truth, thought, words, target=kind, **arguments, **more
        )

    def whole(index: int, place: int) -> Thing:
        file, picture = named(files[index], "image", place), pictures[index]
        words = {"area": f"{picture['area_m2']:.3f}"} if picture["area_m2"] else {}
        thought = f"I need to know how many {plural} there are in {file.name}."
        return counted(file, len(picture["seen"]), thought, words)

    def half(number: int, parts: Sequence[tuple[str, Region]], index: int, _: int) -> Thing:
        name, box = parts[index]
        thought = f"I need to know how many {plural} there are in the {name} half."
        count = _inside(pictures[number]["seen"], box)
        thing = counted(named(files[number], "image", 1), count, thought, {}, region=[*box])
        return replace(thing, called=f"{name} half")

    def in_mark(number: int, place: int, mark: Mapping[str, Any]) -> Thing:
        file, colour = named(marked_files[number], "image", place), str(mark["color"])
        count = _inside(pictures[number]["seen"], mark["truth"]["crop_box"])
        thought = f"Now the {plural} inside the {colour} mark in {file.name}."
        before = (find_mark(file.name, colour, mark["truth"]),)
        words = {"colour": colour, **absent_colour(_PENS, pictures[number]["marks"])}
        return counted(file, count, thought, words, before=before, region=ref(0, "crop_box"))

    def one_of_marks(number: int, index: int, _: int) -> Thing:
        return in_mark(number, 1, pictures[number]["marks"][index])

    def first_mark(index: int, place: int) -> Thing:
        return in_mark(index, place, pictures[index]["marks"][0])

    subject = partial(drawn.subject, variant=kind)
    subjects = [subject("pictures", len(pictures), whole, "fruit_picture")]
    if kind == "wheat head":
        subjects.append(subject("ears", len(pictures), whole, "ear_picture"))
    for number, (file, picture) in enumerate(zip(files, pictures, strict=True)):
        for axis, parts in enumerate(halves(file.width_px or 0, file.height_px or 0)):
            line = parts[1][1][axis]
            if not any(box[axis] < line < box[axis + 2] for _, box in picture["seen"]):
                subjects.append(
                    subject(
                        f"{number}-{parts[0][0]}", 2, partial(half, number, parts), "fruit_half"
                    )
                )
        marks = partial(one_of_marks, number)
        subjects.append(subject(f"{number}-marks", len(picture["marks"]), marks, "fruit_mark"))
    return [*subjects, subject("marked", len(pictures), first_mark, "marked_fruit_picture")]


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
    5, ("drawn_apple", "drawn_apple_boxes", "drawn_apple_marks"), _draw_apples, _apple_subjects
)
FRUIT_COUNTS = SceneKind(
    6, ("drawn_count", "drawn_count_marks", "drawn_ears"), _draw_counts, _count_subjects
)
