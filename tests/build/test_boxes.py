"""Annotations as tools write them, and the numbers of objects that become answers about own photos."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from PIL import Image

from agrotools.build.own_photos.building import answers_of
from agrotools.build.own_photos.proposal import propose_plan
from agrotools.build.own_photos.table import match_rows
from agrotools.core import BenchmarkError

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
        assert column.target == column.column
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
    "looks like results of COCO": {"x.json": '[{"image_id": 1, "category_id": 1, "score": 0.9}]'},
}


@pytest.mark.parametrize("says", FAULTS)
def test_annotations_that_cannot_be_used_say_why(photos: Path, says: str):
    with pytest.raises(BenchmarkError) as told:
        match_rows(photos, _write(photos.parent, FAULTS[says]))
    assert says in told.value.message
    assert told.value.hint or says.startswith(("has", "predictions", "which"))


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
