"""Diseased leaves whose crop and disease the asker knows: one by one, from visit to visit, and side by side."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import JsonValue

from agrotools.build.references import ref
from agrotools.build.scenes.leaf_photo import MOST_LEAVES, make_leaf_photo
from agrotools.build.scenes.scene import Difficulty
from agrotools.build.sources.drawn import DrawnScene
from agrotools.build.sources.drawn.saving import find_mark, grown, mark_each, save_jpeg
from agrotools.build.sources.part import Originals, named
from agrotools.build.templates.thing import Subject, Thing
from agrotools.core import SampleFile
from agrotools.tools.lesions.analyze_lesions import GradeScale
from agrotools.tools.lesions.result import grade_of
from agrotools.tools.result import round_significant

NAME = "leaf_lesions"
STANDS_FOR = "plantseg"
TEMPLATES = ("drawn_leaf", "drawn_leaf_marks", "drawn_leaf_disease")
PICTURES = 4
_PENS = ("blue", "magenta", "cyan")
_DIGITS = 6


@dataclass(frozen=True)
class Disease:
    """A disease that the asker names: how it looks here, its entry in the knowledge base, what causes it, and words
    for both in Chinese. Nobody is asked to see it in a drawing."""

    crop: str
    lesion: str
    entry: str
    english: str
    chinese: str
    cause: str


DISEASES: tuple[Disease, ...] = (
    Disease("coffee", "rust", "disease.coffee_leaf_rust", "coffee leaf rust", "咖啡锈病", "fungus"),
    Disease("apple", "blotches", "disease.apple_scab", "apple scab", "苹果黑星病", "fungus"),
    Disease("cherry", "mildew", "disease.cherry_powdery_mildew", "powdery mildew of cherry", "樱桃白粉病", "fungus"),
    Disease("tomato", "blotches", "disease.late_blight", "late blight of tomato", "番茄晚疫病", "oomycete"),
    Disease("bean", "rust", "disease.bean_rust", "bean rust", "菜豆锈病", "fungus"),
    Disease("tomato", "dead_spots", "disease.bacterial_spot_pepper_tomato", "bacterial spot of tomato",
         "番茄细菌性斑点病", "bacterium"),
    Disease("tomato", "ring_spots", "disease.early_blight", "early blight of tomato", "番茄早疫病", "fungus"),
    Disease("coffee", "ring_spots", "disease.coffee_brown_eye_spot", "brown eye spot of coffee",
            "咖啡褐斑病", "fungus"),
    Disease("bean", "angular", "disease.bean_angular_leaf_spot", "angular leaf spot of bean", "菜豆角斑病", "fungus"),
    Disease("strawberry", "dead_spots", "disease.strawberry_leaf_scorch", "strawberry leaf scorch", "草莓叶枯病",
         "fungus"),
    Disease("cucumber", "mildew", "disease.cucurbit_powdery_mildew", "powdery mildew of cucumber",
            "黄瓜白粉病", "fungus"),
    Disease("soybean", "ring_spots", "disease.soybean_frogeye_leaf_spot", "frogeye leaf spot of soybean", "大豆灰斑病",
         "fungus"),
)  # fmt: skip


def draw(seed: int, difficulty: Difficulty, folder: Path) -> dict[str, JsonValue]:
    """Four photographs of one crop with one disease, worse from visit to visit, and leaves side by side with marks."""
    rng = np.random.default_rng([seed, zlib.crc32(b"leaf_lesions"), difficulty])
    place = seed % len(DISEASES)
    disease = DISEASES[place]
    # Any visit may have the largest rise.
    rises = np.array([2.5, *rng.permutation([5.0, 7.0, 9.0])]) * rng.uniform(0.5, 1.7)
    shares = np.cumsum(rng.uniform(0.6, 1.0, PICTURES) * rises)
    pictures: list[JsonValue] = []
    for number, share in enumerate(shares):
        scene = make_leaf_photo(
            int(rng.integers(2**31)), difficulty, disease.crop, disease.lesion, severity_pct=float(share)
        )  # fmt: skip
        save_jpeg(scene.images["rgb"], folder / f"leaf_{number}.jpg")
        pictures.append(cast(JsonValue, {"leaf": scene.truth["leaves"][0], "ground": scene.truth["ground"]}))
    boards: list[JsonValue] = []
    for number, leaves in enumerate((MOST_LEAVES, 2)):
        scene = make_leaf_photo(int(rng.integers(2**31)), difficulty, disease.crop, disease.lesion, leaves=leaves)
        photo = np.array(scene.images["rgb"])
        boxes = [grown(leaf["box"], 5) for leaf in scene.truth["leaves"]]
        marks = mark_each(photo, boxes, [str(pen) for pen in rng.permutation(_PENS)], rng, shapes=("box",))
        save_jpeg(photo, folder / f"board_{number}.jpg")
        boards.append(
            cast(JsonValue, {"leaves": scene.truth["leaves"], "marks": marks, "ground": scene.truth["ground"]})
        )  # fmt: skip
    return {"told": place, "pictures": pictures, "boards": boards}


def subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Leaves by themselves (asked about as such, and as cases of a named disease) and leaves marked by pen."""
    disease = DISEASES[cast(int, drawn.record["told"])]
    pictures = cast("list[dict[str, Any]]", drawn.record["pictures"])
    boards = cast("list[dict[str, Any]]", drawn.record["boards"])
    metadata: dict[str, JsonValue] = {"difficulty": drawn.difficulty, "crop": disease.crop}
    note = f"{disease.crop.capitalize()} leaf, detached."
    files = [originals.file(drawn.folder / f"leaf_{number}.jpg", note=note) for number in range(len(pictures))]
    sheets = [originals.file(drawn.folder / f"board_{number}.jpg", note=note) for number in range(len(boards))]
    base = f"{NAME}-{drawn.seed}"

    def leaf(index: int, place: int) -> Thing:
        return _leaf(files[index], pictures[index], disease, place)

    def graded(index: int, place: int) -> Thing:
        return _leaf(files[index], pictures[index], disease, place, "0-4")

    subjects = [
        Subject(f"{base}-leaves", len(pictures), leaf, metadata, of="drawn_leaf"),
        Subject(f"{base}-cases", len(pictures), leaf, metadata, of="told_leaf"),
        Subject(f"{base}-graded", len(pictures), graded, metadata, of="graded_leaf"),
    ]
    for number, board in enumerate(boards):
        subjects.append(_marked_leaves(f"{base}-board-{number}", metadata, sheets[number], board, disease))
    return subjects


def _marked_leaves(
    name: str, metadata: dict[str, JsonValue], sheet: SampleFile, board: Mapping[str, Any], disease: Disease
) -> Subject:
    def marked(index: int, place: int) -> Thing:  # noqa: ARG001 - all marks are on one picture
        return _in_mark(sheet, board, board["marks"][index], disease)

    return Subject(name, len(board["marks"]), marked, metadata, of="marked_leaf")


def _words(disease: Disease) -> dict[str, str]:
    return {"disease": disease.english, "entry": disease.entry, "crop": disease.crop, "cause": disease.cause}


def _arguments(image: str, ground: str, **more: JsonValue) -> dict[str, JsonValue]:
    """Leaves before soil are looked for by colour, those on board or cloth by what differs from it."""
    mode: dict[str, JsonValue] = {"mode": "field"} if ground == "soil" else {}
    return {"image": image, **mode, **more}


def _result(leaf: Mapping[str, Any], scale: GradeScale = "percent") -> dict[str, JsonValue]:
    """Result of a perfect ``analyze_lesions``."""
    severity = round_significant(float(leaf["severity_pct"]), _DIGITS)
    return {
        "leaf_area_px": leaf["leaf_area_px"],
        "lesion_area_px": leaf["lesion_area_px"],
        "severity_pct": severity,
        "grade": grade_of(float(leaf["severity_pct"]), scale),
        "grade_scale": scale,
        "n_lesions": leaf["n_lesions"],
        "leaf_box": leaf["box"],
    }


def _leaf(
    file: SampleFile, picture: Mapping[str, Any], disease: Disease, place: int, scale: GradeScale = "percent"
) -> Thing:
    picture_file = named(file, "image", place)
    thought = f"I need to know how much of the leaf in {picture_file.name} is diseased."
    more: dict[str, JsonValue] = {} if scale == "percent" else {"grade_scale": scale}
    arguments = _arguments(picture_file.name, picture["ground"], **more)
    truth = _result(picture["leaf"], scale)
    return Thing((picture_file,), "analyze_lesions", arguments, truth, picture_file.name, thought, _words(disease))


def _in_mark(sheet: SampleFile, board: Mapping[str, Any], mark: Mapping[str, Any], disease: Disease) -> Thing:
    picture_file, colour = named(sheet, "image", 1), str(mark["color"])
    return Thing(
        (picture_file,),
        "analyze_lesions",
        _arguments(picture_file.name, board["ground"], region=ref(0, "crop_box")),
        _result(board["leaves"][mark["place"]]),
        picture_file.name,
        f"Now the diseased share of the leaf inside the {colour} mark.",
        {**_words(disease), "colour": colour},
        before=(find_mark(picture_file.name, colour, dict(mark["truth"])),),
    )
