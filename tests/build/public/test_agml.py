"""AgML's data sets in its three layouts, small."""

import json
from pathlib import Path

import numpy as np
import pytest
from data_sets import Files, coco, picture, things_by_file, written

from agrotools.benchmarks import load_folder
from agrotools.benchmarks.validate import validate_folder
from agrotools.build.sources import build_sources
from agrotools.build.sources.agml import described
from agrotools.build.sources.part import Part
from agrotools.build.sources.public import adapter_of
from agrotools.build.templates import Thing
from agrotools.core import BenchmarkError, UsageError


def boxes(classes: tuple[str, ...] = ("b_green", "l_green"), pictures: int = 6) -> Files:
    """Picture k has k boxes of the first class and one of the second, one of them written twice; one has no width."""
    marks: dict[str, list[tuple[int, list[int]]]] = {}
    for number in range(pictures):
        yield picture(f"images/{number}.jpg", (), (160, 120))
        fruits = [(1, [5 + 9 * k, 5, 8, 8]) for k in range(number)]
        marks[f"{number}.jpg"] = [*fruits, *[(2, [100, 80, 9, 9])] * 2, (1, [1, 1, 0, 9])]
    yield "annotations.json", coco(marks, classes)


def folders(of_each: int = 3) -> Files:
    for name in ("angular_leaf_spot", "bean_rust", "healthy"):
        yield from (
            picture(f"{name}/{name}.{number}.jpg", (), (160, 120)) for number in range(of_each)
        )


def masks(pictures: int = 4) -> Files:
    for number in range(pictures):
        yield picture(f"images/{number:03d}.png", (), (160, 120))
        mask = np.zeros((120, 160), np.uint8)
        mask[20:50, 10:150] = 1
        mask[80 : 90 + number, 30:60] = 2
        yield f"annotations/{number:03d}.png", mask


def _things(part: Part) -> dict[str, Thing]:
    return {path.name: thing for path, thing in things_by_file(part).items()}


def test_boxes_and_folders_are_what_their_names_say(tmp_path: Path) -> None:
    part = adapter_of("agml:tomato_ripeness_detection")(
        written(tmp_path / "set", boxes()), tmp_path, 20
    )
    things = _things(part)
    assert {name: thing.truth["count"] for name, thing in things.items()} == {
        f"{k}.jpg": k + 1 for k in range(6)
    }
    assert {str(thing.arguments["target"]) for thing in things.values()} == {"tomato"}
    assert {thing.words["fruits"] for thing in things.values()} == {"tomatoes"}
    assert (part.dropped["boxes that cannot be counted"], part.source.licence) == (
        12,
        "CC BY-NC-SA 4.0",
    )
    part = adapter_of("agml:bean_disease_uganda")(
        written(tmp_path / "beans", folders()), tmp_path, 10
    )
    for name, thing in _things(part).items():
        entry = {
            "angular_leaf_spot": "disease.bean_angular_leaf_spot",
            "bean_rust": "disease.bean_rust",
        }
        assert thing.truth["best"] == entry[name.split(".")[0]]
        assert thing.arguments["crop"] == "bean"
    assert part.dropped["of healthy leaves"] == 3


def test_a_picture_with_a_crowd_of_fruits_has_no_number(tmp_path: Path) -> None:
    place = written(tmp_path / "set", boxes()) / "annotations.json"
    coco = json.loads(place.read_text())
    coco["annotations"].append(
        {"image_id": 13, "category_id": 1, "bbox": [1, 1, 90, 90], "iscrowd": 1}
    )
    place.write_text(json.dumps(coco))
    part = adapter_of("agml:tomato_ripeness_detection")(tmp_path / "set", tmp_path, 20)
    counts = {name: thing.truth["count"] for name, thing in _things(part).items()}
    assert counts == {f"{k}.jpg": k + 1 for k in (0, 1, 2, 4, 5)}
    assert part.dropped["boxes that cannot be counted"] == 13


def test_masks_are_crop_and_weeds_by_the_names_of_classes(tmp_path: Path) -> None:
    part = adapter_of("agml:carrot_weeds_germany")(written(tmp_path / "set", masks()), tmp_path, 10)
    areas = sorted(
        (area.crop_px, area.weed_px)
        for subject in part.subjects
        for index in range(subject.things)
        for area in [subject.shown(index, 1).area(None)]
    )
    assert areas == [(4200, 30 * (10 + number)) for number in range(4)]


def test_every_data_set_that_is_listed_can_be_told_whether_it_can_be_asked_about() -> None:
    assert len(described()) > 60
    layouts = [one.layout for one in described().values()]
    assert all(not one["nouns"] or len(one["nouns"]) == len(one["classes"]) for one in layouts)
    assert {one["task"] for one in layouts} == {
        "image_classification", "semantic_segmentation", "object_detection",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("agml:bean_disease_ugand", "bean_disease_uganda"),
        ("agml:tea_leaf_disease_classification", "there are about"),
    ],
)
def test_a_data_set_that_cannot_be_asked_about_is_refused_with_those_that_can(
    tmp_path, name, message
):
    with pytest.raises(UsageError) as raised:
        build_sources([f"{name}={tmp_path}"], tmp_path / "out")
    assert message in str(raised.value.hint)


FAULTS = {
    "no folder": "has no images and annotations.json",
    "no picture": "lacks images/3.jpg",
    "no coco": "holds no annotations that are known",
    "other classes": "has classes that the data set has not",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_missing_is_named_with_how_to_get_it(tmp_path: Path, fault: str) -> None:
    folder = tmp_path / "set"
    if fault != "no folder":
        written(folder, boxes(("x", "y") if fault == "other classes" else ("b_green", "l_green")))
    if fault == "no picture":
        (folder / "images" / "3.jpg").unlink()
    elif fault == "no coco":
        (folder / "annotations.json").write_text('{"images": []}')
    with pytest.raises(BenchmarkError, match=FAULTS[fault]) as raised:
        adapter_of("agml:tomato_ripeness_detection")(folder, tmp_path, 20)
    assert "AgMLDataLoader('tomato_ripeness_detection')" in str(raised.value.hint)


def test_a_data_set_becomes_a_sound_benchmark(tmp_path: Path) -> None:
    folder = written(tmp_path / "set", boxes(pictures=10))
    header = build_sources([f"agml:tomato_ripeness_detection={folder}"], tmp_path / "out")
    assert header.name == "agml-tomato-ripeness-detection"
    assert validate_folder(tmp_path / "out") == []
    samples = load_folder(tmp_path / "out").samples
    assert len(samples) >= 10
    assert {sample.task_type for sample in samples} <= {"organ_counting", "plotting"}
