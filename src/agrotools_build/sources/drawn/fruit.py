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
    counts = _counted_pictures(drawn, originals)
    number_of_pictures = len(counts.pictures)
    subject = partial(drawn.subject, variant=counts.kind)
    subjects = [subject("pictures", number_of_pictures, counts.whole, "fruit_picture")]
    if counts.kind == "wheat head":
        subjects.append(subject("ears", number_of_pictures, counts.whole, "ear_picture"))
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
    return _CountedPictures(
        kind=kind,
        pictures=pictures,
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

    ``pictures``: truth of each: ``seen`` (centre and box of each visible object), ``marks`` and ``area_m2``.
    ``files``, ``marked_files``: the pictures plain and with marks.
    """

    kind: str
    pictures: Sequence[Mapping[str, Any]]
    files: Sequence[SampleFile]
    marked_files: Sequence[SampleFile]

    @property
    def plural(self) -> str:
        """Name of the objects."""
        return COUNTED[self.kind]["plural"]

    def whole(self, number: int, place: int) -> Thing:
        """Return a whole picture."""
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
