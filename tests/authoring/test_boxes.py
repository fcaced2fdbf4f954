"""Annotations as tools write them, and the numbers of objects that become answers about own photos."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from PIL import Image

from agrotools.core import BenchmarkError, UndecidedError, UsageError
from agrotools.core.readings import Readings
from agrotools_build.own_photos.building import answers_of
from agrotools_build.own_photos.proposal import propose_plan
from agrotools_build.own_photos.table import DetectedTable, match_rows

BOX = [10, 10, 20, 20]
NO_IMAGE = {"version": "5.4.1", "flags": {}, "imageData": None, "imageHeight": 60, "imageWidth": 80}


def _coco(*marks: Mapping[str, object], categories=((1, "apple"), (2, "pear")), ids=(1, 2)) -> str:
    return json.dumps(
        {
            "images": [
                {"id": ids[0], "file_name": "train/a.jpg"},
                {"id": ids[1], "file_name": "train\\b.jpg"},
            ],
            "annotations": [
                {"id": k, "iscrowd": 0, "bbox": [k, 1, 9, 9], **one} for k, one in enumerate(marks)
            ],
            "categories": [{"id": number, "name": name} for number, name in categories],
        }
    )


def _labelme(picture: str, *shapes: tuple[str, str, list[list[float]], int | None]) -> str:
    keys = ("label", "shape_type", "points", "group_id")
    return json.dumps(
        {
            **NO_IMAGE,
            "imagePath": picture,
            "shapes": [dict(zip(keys, one, strict=True)) for one in shapes],
        }
    )


def _via(regions, key: str = "a.jpg") -> str:
    listed = {f"{key}99": {"filename": key, "size": 99, "regions": regions, "file_attributes": {}}}
    return json.dumps(
        {**listed, "b.jpg7": {"filename": "b.jpg", "size": 7, "regions": [], "file_attributes": {}}}
    )


def _region(x: int, **attributes: object) -> dict[str, object]:
    shape = {"name": "rect", "x": x, "y": 1, "width": 9, "height": 9}
    return {"shape_attributes": shape, "region_attributes": attributes}


def _task(image: str, *done: list[tuple[str, str]], **more: object) -> dict[str, object]:
    at = {"x": 1, "y": 2, "width": 3, "height": 4, "rotation": 0}
    results = [
        [{"id": key, "value": {**at, "rectanglelabels": [label]}} for key, label in one]
        for one in done
    ]
    return {
        "id": 1,
        "data": {"image": image},
        "annotations": [{"result": each, **more} for each in results],
    }


def _result_task(data: Mapping[str, str], *results: Mapping[str, object]) -> dict[str, object]:
    return {"data": data, "annotations": [{"result": results}]}


def _labelled(key: str, y: int, target: str = "image", label: str = "apple") -> dict[str, object]:
    at = {"x": 1, "y": y, "width": 3, "height": 4, "rectanglelabels": [label]}
    return {"id": key, "type": "rectanglelabels", "to_name": target, "value": at}


def _said(field: str, key: str = "", **value: object) -> dict[str, object]:
    return {"id": key or field, "from_name": field, "to_name": "img", "value": value}


CVAT = """<?xml version="1.0" encoding="utf-8"?>\n<annotations><version>1.1</version><meta/>
<image id="0" name="field/a.jpg" width="80" height="60"><tag label="pear"/>
<box label="apple" xtl="1" ytl="1" xbr="9" ybr="9" outside="0"/>
<box label="apple" xtl="3" ytl="1" xbr="9" ybr="9" outside="1"/>
<polygon label="apple" points="1.0,1.0;9.0,1.0;9.0,9.0" group_id="4"/>
<polygon label="apple" points="2,2;8,2;8,9" group_id="4"/>
</image><image id="1" name="b.jpg" width="80" height="60"/></annotations>"""


def _voc(picture: str, *lefts: int) -> str:
    box = "<xmin>{}</xmin><ymin>2</ymin><xmax>30</xmax><ymax>40</ymax>"
    objects = (
        f"<object><name>apple</name><bndbox>{box.format(left)}</bndbox></object>" for left in lefts
    )
    return f"<annotation><filename>{picture}</filename>{''.join(objects)}</annotation>"


VIA_CSV = "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes\n"
VIA_SHAPE = '"{""name"":""point"",""cx"":5,""cy"":6}","{""fruit"":""apple""}"'
BOXES_CSV = "image_path,xmin,ymin,xmax,ymax,label\n"
TENSORFLOW = "filename,width,height,class,xmin,ymin,xmax,ymax\n"
TWO = {"a.jpg": {"apple": 2}, "b.jpg": {"apple": 0}}

READ = {
    "coco": ({"x.json": _coco(*[{"image_id": 1, "category_id": 1}] * 2)}, TWO),
    "coco, ids of one type or another": (
        {"x.json": _coco(*[{"image_id": "1", "category_id": 1.0}] * 2, ids=(1.0, "2"))}, TWO,
    ),
    "coco, names of an upload to roboflow": (
        {"x.json": _coco(*[{"image_id": 1, "category_id": 1}] * 2).replace('"train/a.jpg"',
            '"A-1_jpg.rf.0a1b.jpg", "extra": {"name": "a.jpg"}').replace("train\\\\b.jpg", "b_jpg.rf.0a1b.jpg")}, TWO,
    ),
    "coco, a category above": (
        {"x.json": _coco(*[{"image_id": 1, "category_id": 1}] * 2, categories=((0, "fruit"), (1, "apple")))}, TWO,
    ),
    "coco, a crowd": (
        {"x.json": _coco({"image_id": 1, "category_id": 1}, {"image_id": 1, "category_id": 1, "iscrowd": 1},
                         {"image_id": 2, "category_id": 1}, {"image_id": 1, "category_id": 2})},
        {"a.jpg": {"pear": 1}, "b.jpg": {"apple": 1, "pear": 0}},
    ),
    "coco, a box twice and one without area": (
        {"x.json": _coco({"image_id": 1, "category_id": 1, "bbox": BOX}, {"image_id": 1, "category_id": 1, "bbox": BOX},
                         {"image_id": 1, "category_id": 1}, {"image_id": 1, "category_id": 1, "bbox": [1, 1, 0, 5]})},
        TWO,
    ),
    "labelme, with a byte order mark, parts of one object and a circle": (
        {"set/a.json": "\ufeff" + _labelme("..\\photos\\a.jpg", ("apple", "polygon", [[1, 1], [5, 1], [5, 5]], 0),
                                          ("apple", "polygon", [[7, 1], [9, 1], [9, 5]], 0),
                                          ("apple", "circle", [[7, 7], [9, 7]], None)),
         "set/b.json": _labelme("b.jpg"), "set/._b.json": "Mac OS X"},
        TWO,
    ),
    "via, several attributes": (
        {"x.json": _via([_region(1, fruit="apple", ripe={"yes": True}), _region(2, fruit="apple ")])}, TWO,
    ),
    "via, regions of version 1 in a project": (
        {"x.json": json.dumps({"_via_settings": {}, "_via_img_metadata": json.loads(
            _via({"0": _region(1, note="big", name="apple"), "1": _region(2, name="apple")}))})}, TWO,
    ),
    "via, points in a table": (
        {"x.csv": f"#{VIA_CSV}a.jpg,9,,2,0,{VIA_SHAPE}\na.jpg,9,,2,1,{VIA_SHAPE}\nb.jpg,7,,0,0,{{}},{{}}\n"},
        TWO,
    ),
    "label studio, uploads, and a task that nobody did": (
        {"x.json": json.dumps([_task("/data/upload/3/0a1b2c3d-a.jpg", [("r1", "apple"), ("r2", "apple")]),
                               _task("/data/local-files/?d=photos/b.jpg", []),
                               _task("/data/upload/3/1a1b2c3d-c.jpg")])},
        TWO,
    ),
    "label studio, skipped": (
        {"x.json": json.dumps([_task("s3://bucket/a.jpg", [("r1", "apple"), ("r2", "apple")]), _task("b.jpg", []),
                               _task("b.jpg", [("r1", "apple")], was_cancelled=True)])}, TWO,
    ),
    "label studio, two people": (
        {"x.json": json.dumps([_task("a.jpg", [("r1", "apple")], []), _task("b.jpg", [], [])])},
        {"b.jpg": {"apple": 0}},
    ),
    "cvat": ({"x.xml": CVAT}, TWO),
    "pascal voc": (
        {"set/a.xml": _voc("a.jpg", 1, 2), "set/b.xml": _voc("b.jpg"), "set/ImageSets/train.txt": "a\n"}, TWO,
    ),
    "deepforest": (
        {"x.csv": f"{BOXES_CSV}a.jpg,1,1,5,5,apple\na.jpg,2,1,5,5,apple\nb.jpg,0,0,0,0,apple\n"}, TWO,
    ),
    "deepforest, nothing": ({"x.csv": f"{BOXES_CSV}a.jpg,1,1,5,5,apple\na.jpg,2,1,5,5,apple\nb.jpg,,,,,\n"}, TWO),
    "yolo": (
        {"set/labels/train/a.txt": "1 0.5 0.5 0.1 0.1\n1 0.1 0.1 0.2 0.1 0.2 0.2\n", "set/labels/train/b.txt": "",
         "set/data.yaml": "train: images\nnames: # two\n  0: pear\n\n  1: 'apple'\nnc: 2\n",
         "set/README.txt": "Made by\n"},
        TWO,
    ),
    "yolo, other names": (
        {"set/a.txt": "0 0.5 0.5 0.1 0.1\n0 0.2 0.5 0.1 0.1\n", "set/b.txt": "\n", "set/classes.txt": "apple\n",
         "set/notes.json": '{"categories": [], "info": {}}'},
        TWO,
    ),
    "coco, outlines beside boxes of zeros": (
        {"x.json": _coco(*[{"image_id": 1, "category_id": 1, "bbox": [0, 0, 0, 0], "segmentation": [[x, 1, 9, 1, 9, 9]]}
                           for x in (1, 3)])}, TWO,
    ),
    "coco, masks and keypoints beside boxes of zeros": (
        {"x.json": _coco({"image_id": 1, "category_id": 1, "bbox": [0, 0, 0, 0],
                          "segmentation": {"counts": "a", "size": [9, 9]}},
                         {"image_id": 1, "category_id": 1, "bbox": [], "keypoints": [4, 5, 2]})}, TWO,
    ),
    "coco, boxes without area alone": (
        {"x.json": _coco(*[{"image_id": 1, "category_id": 1, "bbox": [0, 0, 0, 0]}] * 2,
                         {"image_id": 2, "category_id": 1})},
        {"b.jpg": {"apple": 1}},
    ),
    "pascal voc, outlines beside boxes of zeros": (
        {"set/a.xml": _voc("a.jpg", 1, 2).replace("40", "2").replace("</bndbox>", "</bndbox><polygon><x1>1</x1>"
         "<y1>1</y1><x2>9</x2><y2>1</y2><x3>9</x3><y3>9</y3></polygon>").replace("<x1>1<", "<x1>2<", 1),
         "set/b.xml": _voc("b.jpg")}, TWO,
    ),
    "classes that differ in case": (
        {"x.json": _coco({"image_id": 1, "category_id": 1}, {"image_id": 1, "category_id": 2},
                         categories=((1, "Red apple"), (2, "red_apples")))},
        {"a.jpg": {"Red apple": 2}, "b.jpg": {"Red apple": 0}},
    ),
    "pascal voc, photos and files renamed, old names inside": (
        {"set/a.xml": _voc("DSC_1.jpg", 1, 2), "set/b.xml": _voc("DSC_2.jpg")}, TWO,
    ),
    "pascal voc, files with other names": (
        {"set/1.xml": _voc("a.jpg", 1, 2), "set/2.xml": _voc("b.jpg")}, TWO,
    ),
    "labelme, renamed": (
        {"set/a.json": _labelme("DSC_1.jpg", *[("apple", "point", [[float(x), 1.0]], None) for x in (1, 2)]),
         "set/b.json": _labelme("DSC_2.jpg")}, TWO,
    ),
    "label studio, boxes without a class": (
        {"x.json": json.dumps([_result_task({"image": "a.jpg"}, *[
            {"id": key, "type": "rectangle", "value": {"x": 1, "y": y, "width": 3, "height": 4}}
            for key, y in (("r", 1), ("s", 2))]), _task("b.jpg", [])])},
        {"a.jpg": {"object": 2}, "b.jpg": {"object": 0}},
    ),
    "label studio, a thumbnail before the picture": (
        {"x.json": json.dumps([_result_task({"thumb": thumb, "image": image}, *results) for thumb, image, results in (
            ("b.jpg", "a.jpg", [_labelled("r", 1), _labelled("s", 2)]), ("c.jpg", "b.jpg", []))])}, TWO,
    ),
    "label studio, a thumbnail, and no word on what was annotated": (
        {"x.json": json.dumps([_result_task({"thumb": thumb, "image": image}, *results) for thumb, image, results in (
            ("b.jpg", "a.jpg", [_labelled("r", 1, "img"), _labelled("s", 2, "img")]), ("c.jpg", "b.jpg", []))])}, TWO,
    ),
    "label studio, two pictures of a task": (
        {"x.json": json.dumps([_result_task({"before": "a.jpg", "after": "b.jpg"}, _labelled("r", 1, "before"),
                                            _labelled("s", 2, "before"), _labelled("t", 2, "after", "pear"))])},
        {"a.jpg": {"apple": 2, "pear": 0}, "b.jpg": {"apple": 0, "pear": 1}},
    ),
    "tensorflow": (
        {"x.csv": f"{TENSORFLOW}a.jpg,80,60,apple,1,1,5,5\na.jpg,80,60,apple,2,1,5,5\nb.jpg,80,60,pear,1,1,5,5\n"},
        {"a.jpg": {"apple": 2, "pear": 0}, "b.jpg": {"apple": 0, "pear": 1}},
    ),
    "a table of boxes with other names": (
        {"x.csv": "Image,XMin,YMin,XMax,YMax,Class_Name\na.jpg,1,1,5,5,apple\na.jpg,2,1,5,5,apple\n"
                  "b.jpg,0,0,0,0,apple\n"}, TWO,
    ),
    "a table of boxes without area": (
        {"x.csv": f"{BOXES_CSV}a.jpg,0,0,0,0,apple\na.jpg,0,0,0,0,apple\nb.jpg,1,1,5,5,apple\n"},
        {"b.jpg": {"apple": 1}},
    ),
    "tensorflow of roboflow, a table for each part": (
        {"set/train/_annotations.csv": f"{TENSORFLOW}a_jpg.rf.0a1b.jpg,80,60,apple,1,1,5,5\n"
                                       "a_jpg.rf.0a1b.jpg,80,60,apple,2,1,5,5\n",
         "set/valid/_annotations.csv": f"{TENSORFLOW}b_jpg.rf.0a1c.jpg,80,60,pear,1,1,5,5\n", "set/README.txt": "By\n"},
        {"a.jpg": {"apple": 2, "pear": 0}, "b.jpg": {"apple": 0, "pear": 1}},
    ),
    "createml": (
        {"x.json": json.dumps([
            {"image": "a.jpg", "annotations": [
                {"label": "apple", "coordinates": {"x": x, "y": 9, "width": 8, "height": 8}} for x in (9, 12)]},
            {"image": "b.jpg", "annotations": []}])}, TWO,
    ),
    "createml, older": (
        {"x.json": json.dumps([
            {"imagefilename": "a.jpg", "annotation": [
                {"label": "apple", "coordinates": {"x": x, "y": 9, "width": 8, "height": 8}} for x in (9, 12)]},
            {"imagefilename": "b.jpg", "annotation": []}])}, TWO,
    ),
    "yolo, keypoints with their visibility": (
        {"set/labels/a.txt": "0 0.5 0.5 0.1 0.1 0.5 0.5 2 0.52 0.5 1 0 0 0\n"
                             "0 0.2 0.5 0.1 0.1 0.2 0.5 2 0.2 0.5 2 0 0 0\n",
         "set/labels/b.txt": "", "set/data.yaml": "kpt_shape: [3, 3]\nnames: [apple]\n"}, TWO,
    ),
    "yolo, keypoints without a word on them": (
        {"set/a.txt": "0 0.5 0.5 0.1 0.1 0.5 0.5 2 0.52 0.5 0\n0 0.2 0.5 0.1 0.1 0.2 0.5 2 0.2 0.5 2\n",
         "set/b.txt": "", "set/classes.txt": "apple\n"}, TWO,
    ),
    "yolo, keypoints without visibility": (
        {"set/a.txt": "0 0.5 0.5 0.1 0.1 0.5 0.5 0.6 0.6 0.7 0.7\n0 0.2 0.5 0.1 0.1 0.5 0.5 0.6 0.6 0.7 0.7\n",
         "set/b.txt": "", "set/data.yaml": "names:\n- apple\nkpt_shape:\n- 3\n- 2\n"}, TWO,
    ),
    "yolo of darknet": (
        {"set/obj/a.txt": "1 0.5 0.5 0.1 0.1\n1 0.2 0.5 0.1 0.1\n", "set/obj/b.txt": "", "set/train.txt": "obj/a.jpg\n",
         "set/obj.names": "pear\napple\n", "set/obj.data": "classes = 2\n"},
        TWO,
    ),
}  # fmt: skip


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    (tmp_path / "photos").mkdir()
    for number, name in enumerate("abc"):
        Image.new("RGB", (80, 60), (30, 60 * number, 30)).save(tmp_path / "photos" / f"{name}.jpg")
    return tmp_path / "photos"


def _write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write the files; return the only one, or their folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder / ("set" if any(name.startswith("set/") for name in files) else next(iter(files)))


@pytest.mark.parametrize("case", READ)
def test_objects_are_counted_by_picture_and_class(photos: Path, case: str):
    files, expected = READ[case]
    seen = match_rows(photos, _write(photos.parent, files))
    counts: dict[str, dict[str, object]] = {}
    for column in propose_plan(seen, "x").plan.columns:
        assert column.ask == "count"
        assert column.target == re.sub(r"[\W_]+", " ", column.column).lower()
        for image, count in answers_of(seen, column, seen.skipped).items():
            counts.setdefault(image.name, {})[column.column] = count
    assert counts == expected
    told = "; ".join(seen.skipped.lines())
    for word in ("crowd", "twice", "without area", "two people"):
        says = {
            "crowd": "iscrowd",
            "without area": "no area",
            "two people": "different answers",
        }.get(word, word)
        assert (says in told) == (word in case), told


FAULTS = {
    "has a box that no picture holds": {
        "set/a.txt": "0 40 50 10 10\n",
        "set/classes.txt": "apple\n",
    },
    "predictions have a confidence": {
        "set/a.txt": "0 0.5 0.5 0.1 0.1 0.93\n",
        "set/classes.txt": "apple\n",
    },
    "which has no name": {"set/a.txt": "3 0.5 0.5 0.1 0.1\n", "set/classes.txt": "apple\n"},
    "has no names of classes": {"set/a.txt": "0 0.5 0.5 0.1 0.1\n"},
    "several kinds": {
        "set/a.json": _labelme("a.jpg", ("apple", "point", [[1, 1]], None)),
        "set/a.xml": CVAT,
    },
    "no annotations that are known": {"x.json": '{"images": [], "categories": []}'},
    "tracks of a video": {"x.xml": "<annotations><track id='0' label='apple'/></annotations>"},
    "several pictures have the same id": {"x.json": _coco(ids=(1, 1))},
    "annotation 0 has the image_id 7, but no image": {
        "x.json": _coco({"image_id": 7, "category_id": 1})
    },
    "annotation 0 has the category_id null": {"x.json": _coco({"image_id": 1})},
    "an entry lacks 'name'": {"x.json": _coco().replace('"name"', '"title"')},
    "an entry lacks 'label'": {"set/a.json": '{"imagePath": "a.jpg", "shapes": [{}]}'},
    "an entry has another form": {
        "x.json": _coco().replace('"annotations": []', '"annotations": [5]')
    },
    "damaged or cut off": {"x.json": "{"},
    "looks like JSON-MIN": {"x.json": '[{"image": "a.jpg", "label": [], "annotation_id": 3}]'},
    "an object has the score 0.87, as the output of a model": {
        "x.json": _coco({"image_id": 1, "category_id": 1, "score": 0.87})
    },
    "an object has the confidence 0.5": {
        "x.csv": BOXES_CSV.replace("\n", ",confidence\n") + "a.jpg,1,1,5,5,apple,0.5\n"
    },
    "an object has the score 0.6": {
        "set/a.json": _labelme("a.jpg", ("apple", "point", [[1, 1]], None)).replace(
            '"label"', '"score": 0.6, "label"'
        )
    },
    "an object has the confidence 0.7": {
        "x.json": json.dumps(
            [{"image": "a.jpg", "annotations": [{"label": "apple", "confidence": 0.7}]}]
        )
    },
    "line 1 is not a box": {
        "set/a.txt": "0 0.1 0.1 0.2 0.1 0.2 0.2 0.93\n",
        "set/classes.txt": "apple\n",
    },
    "nobody has finished a task": {
        "x.json": json.dumps(
            [{"data": {"image": "a.jpg"}, "annotations": [], "predictions": [{"result": []}]}]
        )
    },
    "looks like results of COCO": {"x.json": '[{"image_id": 1, "category_id": 1, "score": 0.9}]'},
}


@pytest.mark.parametrize("says", FAULTS)
def test_annotations_that_cannot_be_used_say_why(photos: Path, says: str):
    with pytest.raises(BenchmarkError) as told:
        match_rows(photos, _write(photos.parent, FAULTS[says]))
    assert says in told.value.message
    assert told.value.hint or says.startswith(("has", "predictions", "which", "line"))


SHIFTED = {
    "pascal voc": ({"set/a.xml": _voc("b.jpg", 1, 2), "set/b.xml": _voc("c.jpg")}, "filename"),
    "labelme": (
        {
            "set/a.json": _labelme(
                "b.jpg", *[("apple", "point", [[float(x), 1.0]], None) for x in (1, 2)]
            ),
            "set/b.json": _labelme("c.jpg"),
        },
        "imagePath",
    ),
}


@pytest.mark.parametrize("case", SHIFTED)
def test_it_is_asked_which_name_counts_if_two_names_are_those_of_different_photos(
    photos: Path, case: str
):
    files, inside = SHIFTED[case]
    answers = _write(photos.parent, files)
    readings = Readings()
    counts = _numbers(match_rows(photos, answers, None, readings))
    assert counts == {"a.jpg": "2", "b.jpg": "0"}
    with pytest.raises(UndecidedError, match=inside) as told:
        readings.settle()
    assert told.value.answers == ("--set=images_column=file",)
    for field, expected in (("file", counts), (inside, {"b.jpg": "2", "c.jpg": "0"})):
        decided = Readings()
        seen = match_rows(photos, answers, None, decided, {"images_column": field})
        assert _numbers(seen) == expected
        assert not decided.questions
        # The plan keeps the answer.
        again = Readings()
        plan = propose_plan(seen, "x").plan
        assert _numbers(match_rows(photos, answers, plan, again)) == expected
        assert not again.questions


def _numbers(seen: DetectedTable, column: int = 1) -> dict[str, str]:
    return {matched.image.name: matched.cells[column] for matched in seen.matched}


def test_it_is_asked_which_picture_of_a_task_was_annotated_if_nothing_tells(photos: Path):
    result = {**_labelled("r", 1), "to_name": "img"}
    task = _result_task({"left": "a.jpg", "right": "b.jpg"}, result)
    readings = Readings()
    match_rows(photos, _write(photos.parent, {"x.json": json.dumps([task])}), None, readings)
    (question,) = readings.questions
    assert [choice.value for choice in question.choices] == ["data.left", "data.right"]


def test_it_is_asked_which_attribute_is_the_class_if_regions_have_several(photos: Path):
    regions = [_region(1, fruit="apple", ripe="yes"), _region(2, fruit="pear", ripe="yes")]
    answers = _write(photos.parent, {"x.json": _via(regions)})
    readings = Readings()
    match_rows(photos, answers, None, readings)
    (question,) = readings.questions
    assert question.choices == (("fruit", "apple, pear"), ("ripe", "yes"))
    seen = match_rows(photos, answers, None, Readings(), {"attribute": "ripe"})
    plan = propose_plan(seen, "x").plan
    assert plan.attribute == "ripe"
    again = Readings()
    assert match_rows(photos, answers, plan, again).table.columns == seen.table.columns
    assert not again.questions
    with pytest.raises(UsageError, match="there is no size"):
        match_rows(photos, answers, None, Readings(), {"attribute": "size"})
    assert seen.table.columns[1:] == ("yes",)
    assert _numbers(seen) == {"a.jpg": "2", "b.jpg": "0"}


def test_numbers_and_choices_of_label_studio_are_columns_of_their_own(photos: Path):
    tasks = [
        _result_task({"image": "a.jpg"}, _said("apples", number=3), _said("state", choices=["rust"])),
        _result_task({"image": "b.jpg"}, _said("apples", number=0), _said("state", choices=["rust", "scab"]),
                     _said("remark", text=["wet"])),
        _result_task({"image": "c.jpg"}, {**_labelled("r", 1), "to_name": "img"}, _said("size", "r", number=7)),
    ]  # fmt: skip
    tasks[2]["predictions"] = [{"result": [_said("apples", number=9)]}]
    readings = Readings()
    seen = match_rows(photos, _write(photos.parent, {"x.json": json.dumps(tasks)}), None, readings)
    assert seen.table.columns == ("photo", "apple", "apples", "state")
    assert [matched.cells[1:] for matched in seen.matched] == [
        ("", "3", "rust"), ("", "0", ""), ("1", "", "")
    ]  # fmt: skip
    assert [*map(str, readings.taken)] == [
        "numbers from apples",
        "choices from state",
        "boxes from x.json (Label Studio)",
        "photo from data.image",
    ]
    assert readings.left == [
        '"state" where it has several choices',
        '"remark" of Label Studio',
        '"size" of Label Studio',
        "predictions of models",
    ]


def test_what_was_read_of_a_folder_is_said(photos: Path):
    files = {
        "set/a.xml": _voc("a.jpg", 1).replace("apple", "Apple"),
        "set/b.xml": _voc("b.jpg", 1, 2),
        "set/info.json": '{"by": "us"}',
        "set/boxes.csv": f"{BOXES_CSV}a.jpg,1,1,5,5,apple\n",
    }
    readings = Readings()
    match_rows(photos, _write(photos.parent, files), None, readings)
    assert readings.taken == [
        "boxes from set (Pascal VOC)",
        'classes "apple" and "Apple" as one',
        "photo from the name of its annotation file",
    ]
    assert readings.left == ["info.json", "boxes.csv", "1 photo without a row (c.jpg)"]
    assert not readings.questions


def test_what_a_class_is_called_is_what_is_counted_and_equal_names_in_folders_are_not_mixed_up(
    photos: Path,
):
    (photos / "north").mkdir()
    (photos / "a.jpg").rename(photos / "north" / "a.jpg")
    rows = [
        "north/a.jpg,1,1,5,5,ripe_apples",
        "south/a.jpg,1,1,5,5,ripe_apples",
        "b.jpg,1,1,5,5,Tree",
        "b.jpg,1,2,5,5,",
    ]
    seen = match_rows(photos, _write(photos.parent, {"x.csv": BOXES_CSV + "\n".join(rows)}))
    plan = propose_plan(seen, "x").plan
    assert [(column.target, column.objects) for column in plan.columns] == [
        ("tree", "trees"), ("object", None), ("ripe apple", None)
    ]  # fmt: skip
    assert [(matched.image.name, *matched.cells[1:]) for matched in seen.matched] == [
        ("a.jpg", "0", "0", "1"), ("b.jpg", "1", "1", "0")
    ]  # fmt: skip
    assert (
        "'south/a.jpg' (row 3) names a picture that is not in the folder" in seen.skipped.lines()[0]
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("data.yaml", "nc: 2\nnames: ['leaf', 'apple']\n"),
        ("notes.json", '{"categories": [{"id": 1, "name": "apple"}, {"id": 0, "name": "leaf"}]}'),
    ],
)
def test_two_files_with_other_names_of_classes_are_refused(photos: Path, name: str, content: str):
    labels = photos.parent / "labels"
    labels.mkdir()
    files = {"a.txt": "0 0.5 0.5 0.2 0.2\n", "classes.txt": "apple\nleaf\n", name: content}
    for file, text in files.items():
        (labels / file).write_text(text)
    why = rf"class 0 is apple in classes.txt, and leaf in {name}"
    with pytest.raises(BenchmarkError, match=why):
        match_rows(photos, labels)


def test_a_photo_with_a_box_outside_it_has_no_number(photos: Path):
    inside, outside = [1, 1, 9, 9], [900, 900, 20, 20]
    boxes = ((1, inside), (2, inside), (2, outside))
    marks = [{"image_id": number, "category_id": 1, "bbox": box} for number, box in boxes]
    seen = match_rows(photos, _write(photos.parent, {"x.json": _coco(*marks)}))
    assert [(matched.image.name, matched.cells[1]) for matched in seen.matched] == [
        ("a.jpg", "1"), ("b.jpg", "")
    ]  # fmt: skip
    assert any("outside the picture" in line for line in seen.skipped.lines())


def test_a_photo_that_exif_turns_may_be_annotated_as_it_is_shown(photos: Path):
    turned = Image.new("RGB", (80, 60), (90, 90, 90))
    exif = turned.getexif()
    exif[0x0112] = 6  # shown as 60 x 80
    turned.save(photos / "a.jpg", exif=exif)
    marks = {"image_id": 1, "category_id": 1, "bbox": [10, 65, 9, 9]}
    seen = match_rows(photos, _write(photos.parent, {"x.json": _coco(marks)}))
    assert seen.matched[0].cells[1] == "1"
