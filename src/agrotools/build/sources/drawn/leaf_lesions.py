"""Drawn diseased leaves whose crop and disease the asker knows: single leaves, repeated visits, and leaves in a row."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import JsonValue

from agrotools.build.references import ref
from agrotools.build.scenes.leaf_photo import MOST_LEAVES, make_leaf_photo
from agrotools.build.scenes.marks import grown, mark_each
from agrotools.build.scenes.scene import Difficulty
from agrotools.build.sources.drawn import DrawnScene, Only, SceneKind, absent_colour, find_mark, save_jpeg
from agrotools.build.sources.part import TABLES, Originals, named, photo_thing
from agrotools.build.templates.thing import Subject, Thing
from agrotools.core import SampleFile
from agrotools.tools.lesions.result import GradeScale, grade_of
from agrotools.tools.result import round_significant

PICTURES = 4
_PENS = ("blue", "magenta", "cyan")


DISEASES: Sequence[Mapping[str, str]] = TABLES["diseases"]
"""Diseases named in questions: words of the templates, and the kind of drawn lesions."""


def _draw(seed: int, difficulty: Difficulty, folder: Path, only: Only) -> dict[str, JsonValue]:
    """Draw four photographs of one diseased crop, with severity rising by visit, and pictures of marked leaves."""
    rng = np.random.default_rng([seed, zlib.crc32(b"leaf_lesions"), difficulty])
    place = seed % len(DISEASES)
    crop, lesion = DISEASES[place]["crop"], DISEASES[place]["lesion"]
    # The largest rise may be at any visit.
    rises = np.array([2.5, *rng.permutation([5.0, 7.0, 9.0])]) * rng.uniform(0.5, 1.7)
    shares = np.cumsum(rng.uniform(0.6, 1.0, PICTURES) * rises)
    pictures: list[JsonValue] = []
    for number, share in enumerate(shares):
        if not only(f"leaf_{number}.jpg"):
            continue
        rng = np.random.default_rng([seed, zlib.crc32(b"leaf_lesions"), difficulty, 1 + number])
        scene = make_leaf_photo(int(rng.integers(2**31)), difficulty, crop, lesion, severity_pct=float(share))
        save_jpeg(folder / f"leaf_{number}.jpg", scene.images["rgb"])
        pictures.append({"leaf": scene.truth["leaves"][0], "ground": scene.truth["ground"]})
    boards: list[JsonValue] = []
    for number, count in enumerate((MOST_LEAVES, 2)):
        if not only(f"board_{number}.jpg"):
            continue
        rng = np.random.default_rng([seed, zlib.crc32(b"leaf_boards"), difficulty, 1 + number])
        scene = make_leaf_photo(int(rng.integers(2**31)), difficulty, crop, lesion, leaves=count)
        photo, leaves = np.array(scene.images["rgb"]), scene.truth["leaves"]
        boxes = [grown(leaf["box"], 5) for leaf in leaves]
        marks: Any = mark_each(photo, boxes, [str(pen) for pen in rng.permutation(_PENS)], rng, shapes=("box",))
        save_jpeg(folder / f"board_{number}.jpg", photo)
        boards.append({"leaves": leaves, "marks": marks, "ground": scene.truth["ground"]})
    return {"told": place, "pictures": pictures, "boards": boards}


def _subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Return single leaves (with and without the disease's name), and marked leaves."""
    disease = DISEASES[cast(int, drawn.record["told"])]
    pictures = cast("list[dict[str, Any]]", drawn.record["pictures"])
    boards = cast("list[dict[str, Any]]", drawn.record["boards"])
    note = f"{disease['crop'].capitalize()} leaf, detached."
    files = [originals.file(drawn.folder / f"leaf_{number}.jpg", note=note) for number in range(len(pictures))]
    sheets = [originals.file(drawn.folder / f"board_{number}.jpg", note=note) for number in range(len(boards))]

    def analysed(
        file: SampleFile, leaf: Mapping[str, Any], ground: str, thought: str, scale: GradeScale = "percent", **more: Any
    ) -> Thing:
        # Leaves on soil are detected by colour, those on board or cloth by their difference from the background.
        mode = {"mode": "field"} if ground == "soil" else {}
        return photo_thing(file, "analyze_lesions", _result(leaf, scale), thought, disease, **mode, **more)

    def alone(index: int, place: int, scale: GradeScale = "percent", **more: str) -> Thing:
        file, picture = named(files[index], "image", place), pictures[index]
        thought = f"I need to know how much of the leaf in {file.name} is diseased."
        return analysed(file, picture["leaf"], picture["ground"], thought, scale, **more)

    def in_mark(number: int, index: int, _: int) -> Thing:
        file, board = named(sheets[number], "image", 1), boards[number]
        mark = board["marks"][index]
        colour = str(mark["color"])
        thought = f"Now the diseased share of the leaf inside the {colour} mark."
        leaf, region = board["leaves"][mark["place"]], ref(0, "crop_box")
        thing = analysed(file, leaf, board["ground"], thought, region=region)
        before, absent = find_mark(file.name, colour, mark["truth"]), absent_colour(_PENS, board["marks"])
        return replace(thing, words={**thing.words, "colour": colour, **absent}, before=(before,))

    def subject(suffix: str, things: int, shown: Callable[[int, int], Thing], of: str) -> Subject:
        return drawn.subject(suffix, things, shown, of, variant=disease["lesion"])

    return [
        subject("leaves", len(pictures), alone, "drawn_leaf"),
        subject("cases", len(pictures), alone, "told_leaf"),
        subject("graded", len(pictures), partial(alone, scale="0-4", grade_scale="0-4"), "graded_leaf"),
        *(
            subject(f"board-{number}", len(board["marks"]), partial(in_mark, number), "marked_leaf")
            for number, board in enumerate(boards)
        ),
    ]


def _result(leaf: Mapping[str, Any], scale: GradeScale) -> dict[str, JsonValue]:
    return {
        "leaf_area_px": leaf["leaf_area_px"],
        "lesion_area_px": leaf["lesion_area_px"],
        "severity_pct": round_significant(float(leaf["severity_pct"]), 6),
        "grade": grade_of(float(leaf["severity_pct"]), scale),
        "grade_scale": scale,
        "n_lesions": leaf["n_lesions"],
        "leaf_box": leaf["box"],
    }


LEAF_LESIONS = SceneKind(7, ("drawn_leaf", "drawn_leaf_marks", "drawn_leaf_disease"), _draw, _subjects)
