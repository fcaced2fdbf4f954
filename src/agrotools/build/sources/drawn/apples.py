"""Apples on trees with depth: rows of one variety, fruit pointed out by boxes in words or by drawn marks."""

import zlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import JsonValue

from agrotools.build.references import ref
from agrotools.build.scenes.orchard import LEAST_SEEN, WELL_SEEN, make_orchard
from agrotools.build.scenes.scene import Difficulty
from agrotools.build.sources.drawn import DrawnScene
from agrotools.build.sources.drawn.saving import find_mark, grown, mark_each, save_jpeg, save_png
from agrotools.build.sources.part import Originals, named
from agrotools.build.templates.thing import Subject, Thing
from agrotools.core import Intrinsics, SampleFile
from agrotools.tools.result import round_significant

NAME = "apples"
STANDS_FOR = "papple"
TEMPLATES = ("drawn_apple", "drawn_apple_boxes", "drawn_apple_marks")
PICTURES = 4
_COLOURFUL = ("red", "dark", "striped")
"""Varieties that colour tells from leaves; of others the fruit has to be pointed out."""
_MARKED_SEEN = 0.75
_PENS = ("blue", "yellow", "magenta")
_EDGES_MM = (50, 60, 70, 80, 90)
_DIGITS = 6
_AS_GIVEN = {"depth_unit_mm": 1.0, "note": "Depth registered to the picture."}


def draw(seed: int, difficulty: Difficulty, folder: Path) -> dict[str, JsonValue]:
    """Four rows of one variety whose fruit differs in size, each with its depth, plain and with marks."""
    rng = np.random.default_rng([seed, zlib.crc32(b"apples"), difficulty])
    sizes = float(rng.uniform(56, 74)) + np.cumsum([0.0, *rng.uniform(2.0, 8.5, PICTURES - 1)])
    sizes = rng.permutation(sizes)
    skin: str | None = None
    pictures: list[JsonValue] = []
    for number in range(PICTURES):
        scene = make_orchard(int(rng.integers(2**31)), difficulty, skin=skin, mean_mm=float(sizes[number]))
        skin = str(scene.truth["skin"])
        photo = np.array(scene.images["rgb"])
        save_jpeg(photo, folder / f"photo_{number}.jpg")
        save_png(scene.images["depth"], folder / f"depth_{number}.png")
        fruits = list(scene.truth["fruits"])
        pens = [str(pen) for pen in rng.permutation(_PENS)]
        pointed = [place for place, fruit in enumerate(fruits) if fruit["visibility"] >= _MARKED_SEEN]
        order = [pointed[int(k)] for k in rng.permutation(len(pointed))]
        boxes = [grown(fruits[place]["box"], int(rng.integers(3, 8))) for place in order]
        marks = mark_each(photo, boxes, pens, rng)
        save_jpeg(photo, folder / f"marked_{number}.jpg")
        marks_in_order = [{**mark, "place": order[mark["place"]]} for mark in marks]
        pictures.append(
            cast(JsonValue, {"fruits": fruits, "marks": marks_in_order, "focal_px": scene.sidecar["fx_px"]})
        )
    return {"skin": skin, "pictures": pictures}


def subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """The rows as wholes where colour finds the fruit, fruit boxed in words, and marked fruit."""
    base = f"{NAME}-{drawn.seed}"
    metadata: dict[str, JsonValue] = {"difficulty": drawn.difficulty}
    pictures = cast("list[dict[str, Any]]", drawn.record["pictures"])
    files = [_files(drawn, originals, number, picture["focal_px"]) for number, picture in enumerate(pictures)]
    all_subjects: list[Subject] = []
    seen = all(_measured(picture["fruits"]) for picture in pictures)
    if drawn.record["skin"] in _COLOURFUL and seen:

        def row(index: int, place: int) -> Thing:
            return _row(files[index], pictures[index]["fruits"], place)

        all_subjects.append(Subject(f"{base}-rows", len(pictures), row, metadata, of="apple_row"))
    for number, picture in enumerate(pictures):
        all_subjects += _pointed_out(base, metadata, number, picture, files[number])

    # One fruit in each of several pictures, marked in the same colour nowhere else.
    first = [(number, picture["marks"][0]) for number, picture in enumerate(pictures) if picture["marks"]]

    def in_its_row(index: int, place: int) -> Thing:
        number, mark = first[index]
        return _marked(files[number], pictures[number]["fruits"], mark, place, f"apple {place}")

    if first:
        all_subjects.append(Subject(f"{base}-marked-rows", len(first), in_its_row, metadata, of="marked_apple_row"))
    return all_subjects


def _pointed_out(
    base: str, metadata: dict[str, JsonValue], number: int, picture: Mapping[str, Any], files: Mapping[str, SampleFile]
) -> list[Subject]:
    fruits, marks = picture["fruits"], picture["marks"]
    whole = [fruit for fruit in fruits if fruit["visibility"] >= _MARKED_SEEN]

    def boxed(index: int, place: int) -> Thing:
        return _boxed(files, whole[index], place)

    def marked(index: int, place: int) -> Thing:
        return _marked(files, fruits, marks[index], 1, f"apple {place}")

    return [
        Subject(f"{base}-boxes-{number}", len(whole), boxed, metadata, of="boxed_apple"),
        Subject(f"{base}-marks-{number}", len(marks), marked, metadata, of="marked_apple"),
    ]


def _files(drawn: DrawnScene, originals: Originals, number: int, focal_px: float) -> dict[str, SampleFile]:
    photo = originals.file(drawn.folder / f"photo_{number}.jpg", note="Apple tree, daylight.")
    marked = originals.file(drawn.folder / f"marked_{number}.jpg", note="Apple tree, daylight, with marks.")
    depth = originals.file(drawn.folder / f"depth_{number}.png", kind="depth", **_AS_GIVEN)
    middle = ((photo.width_px or 0) / 2, (photo.height_px or 0) / 2)
    intrinsics = Intrinsics(fx_px=focal_px, fy_px=focal_px, cx_px=middle[0], cy_px=middle[1])
    return {
        "photo": photo.model_copy(update={"intrinsics": intrinsics}),
        "marked": marked.model_copy(update={"intrinsics": intrinsics}),
        "depth": depth,
    }


def _measured(fruits: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those seen well enough for means."""
    return [fruit for fruit in fruits if fruit["visibility"] >= WELL_SEEN]


def _row(files: Mapping[str, SampleFile], fruits: Sequence[Mapping[str, Any]], place: int) -> Thing:
    photo, depth = named(files["photo"], "image", place), named(files["depth"], "depth", place)
    thought = f"I need the diameters of the apples in {photo.name}."
    arguments: dict[str, Any] = {"image": photo.name, "depth": depth.name}
    return Thing((photo, depth), "measure_fruit_size", arguments, _result(fruits), photo.name, thought)


def _boxed(files: Mapping[str, SampleFile], fruit: Mapping[str, Any], place: int) -> Thing:
    photo, depth = named(files["photo"], "image", 1), named(files["depth"], "depth", 1)
    box = [*fruit["box"]]
    words = {"box": f"({', '.join(map(str, box))})"}
    thought = f"I need the diameter of the fruit in the box {words['box']}."
    arguments: dict[str, Any] = {"image": photo.name, "depth": depth.name, "boxes": [box]}
    return Thing(
        (photo, depth), "measure_fruit_size", arguments, _result([fruit]), f"apple {place}", thought, words
    )  # fmt: skip


def _marked(
    files: Mapping[str, SampleFile],
    fruits: Sequence[Mapping[str, Any]],
    mark: Mapping[str, Any],
    picture: int,
    called: str,
) -> Thing:
    """A fruit in a drawn mark of picture number ``picture`` of the sample."""
    photo, depth = named(files["marked"], "image", picture), named(files["depth"], "depth", picture)
    colour = str(mark["color"])
    arguments: dict[str, Any] = {"image": photo.name, "depth": depth.name, "boxes": [ref(0, "crop_box")]}
    return Thing(
        (photo, depth),
        "measure_fruit_size",
        arguments,
        _result([fruits[mark["place"]]]),
        called,
        f"Now the diameter of the fruit inside the {colour} mark in {photo.name}.",
        {"colour": colour, "file": photo.name},
        before=(find_mark(photo.name, colour, dict(mark["truth"])),),
    )


def _result(fruits: Sequence[Mapping[str, Any]]) -> dict[str, JsonValue]:
    """Result of a perfect ``measure_fruit_size``."""
    seen = [fruit for fruit in fruits if fruit["visibility"] >= LEAST_SEEN]
    used = [fruit["diameter_mm"] for fruit in _measured(seen)]
    rows: list[JsonValue] = [
        {
            "id": number,
            "diameter_mm": fruit["diameter_mm"],
            "distance_mm": fruit["distance_mm"],
            "centre_px": fruit["centre_px"],
            "visibility": fruit["visibility"],
            "used_in_mean": fruit["visibility"] >= WELL_SEEN,
        }
        for number, fruit in enumerate(seen, start=1)
    ]
    edges = [-np.inf, *_EDGES_MM, np.inf]
    names = ["<50", *(f"{low}-{high}" for low, high in pairwise(_EDGES_MM)), ">=90"]
    counts = [sum(low <= size < high for size in used) for low, high in pairwise(edges)]
    return {
        "fruits": rows,
        "n": len(seen),
        "n_measured": len(used),
        "mean_diameter_mm": round_significant(float(np.mean(used)), _DIGITS) if used else None,
        "median_diameter_mm": round_significant(float(np.median(used)), _DIGITS) if used else None,
        "sd_mm": round_significant(float(np.std(used, ddof=1)), _DIGITS) if len(used) > 1 else None,
        "size_classes": dict(zip(names, counts, strict=True)),
    }
