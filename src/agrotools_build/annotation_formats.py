"""Formats of annotations: COCO, YOLO, LabelMe, VIA, Label Studio, CVAT, Pascal VOC, CreateML and tables of boxes."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree

from agrotools.core import BenchmarkError
from agrotools.core.files import read_text
from agrotools.core.readings import Choice, ReadingQuestion, Readings
from agrotools.text.tables import SheetTable

Size = tuple[int, int]
"""Width and height of a picture in pixels."""


class Mark(NamedTuple):
    """An object, a part of one ``group`` or a region of several; ``shape``: x, y of two corners or of a polygon."""

    label: str
    shape: tuple[float, ...]
    group: str = ""
    is_crowd: bool = False


class Marked(NamedTuple):
    """A picture and its marks: once for each person who annotated it, also without a mark.

    ``names``: its name by the field that holds it, the most likely one first: ``{"file": "b", "filename": "a.jpg"}``,
    where :data:`OWN_NAME` stands for the name of the annotation file itself. ``original``: its name before an upload.
    ``values``: what was said of the whole picture, by the name of the question: ``{"apples": "3"}``. ``attribute``: the
    attribute of its objects that is their class, if it had to be chosen. ``size``: its width and height as the file of
    annotations says, None if it does not. ``is_relative``: marks are in parts of the sides, at any size of the picture.
    ``fault``: why its marks say nothing of the photo, as the continuation of its name; empty if they do.
    """

    names: Mapping[str, str]
    marks: list[Mark]
    original: str = ""
    values: Mapping[str, str] = {}
    attribute: str = ""
    size: Size | None = None
    is_relative: bool = False
    fault: str = ""

    @property
    def name(self) -> str:
        """The most likely name."""
        return next(iter(self.names.values()))


class Annotations(NamedTuple):
    """Content of a file. ``format``: empty if the file has none that is known."""

    format: str = ""
    pictures: Sequence[Marked] = ()


class Reader(NamedTuple):
    """What is said about files while they are read.

    ``attribute``: the attribute of VIA that is the class, "" for one that is found. ``given``: the user's answers to
    questions, by their names.
    """

    readings: Readings
    attribute: str = ""
    given: Mapping[str, str] = {}


OWN_NAME = "file"
"""Field of a picture's name that is the name of its annotation file."""
_ROUNDING = 1e-3  # of a side: boxes reach beyond the picture where digits are truncated
_SCORES = ("score", "scores", "confidence", "conf", "probability", "prob")
"""Fields in which models write how sure they are, in lower case."""


def read_file(file: Path, top: Path, reader: Reader) -> Annotations:
    """Return what a file below the folder ``top`` (or ``top`` itself) holds.

    Raises:
        ValueError, LookupError, TypeError, AttributeError, ElementTree.ParseError, OSError: the file is damaged, or an
            entry has another form than its format says, or is the output of a model.
    """
    folder = top if top.is_dir() else top.parent
    own_name = file.relative_to(folder).with_suffix("").as_posix()
    if file.suffix.lower() == ".xml":
        root = ElementTree.parse(file).getroot()
        if root.tag == "annotation":
            return Annotations("Pascal VOC", [_voc(root, own_name)])
        return Annotations("CVAT", list(_cvat(root, reader)))
    if file.suffix.lower() == ".json":
        return _of_json(json.loads(file.read_bytes()), own_name, reader)
    return Annotations()


def _of_json(content: Any, own_name: str, reader: Reader) -> Annotations:
    match content:
        case {"images": list(), "annotations": list(), "categories": list()}:
            return Annotations("COCO", list(_coco(content, reader)))
        case {"shapes": list(), "imagePath": str()}:
            return Annotations("LabelMe", [_labelme(content, own_name)])
        case {"_via_img_metadata": dict(data)} | dict(data) if data and all(
            isinstance(one, dict) and "regions" in one for one in data.values()
        ):
            return Annotations("VIA", _via(list(data.values()), reader))
        case [{"data": dict()}, *_]:
            return Annotations("Label Studio", list(_label_studio(content, reader)))
        case [{"image": str(), "annotations": list()}, *_]:
            return Annotations("CreateML", list(_createml(content, "image", "annotations")))
        case [{"imagefilename": str(), "annotation": list()}, *_]:
            return Annotations("CreateML", list(_createml(content, "imagefilename", "annotation")))
        case [{"annotation_id": _}, *_]:
            raise ValueError("it looks like JSON-MIN of Label Studio: export JSON or COCO instead")
        case [{"image_id": _, "category_id": _}, *_]:
            raise ValueError(
                "it looks like results of COCO, the output of a model: give the file with images, annotations and"
                " categories"
            )
        case _:
            return Annotations()


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip().removesuffix(".0")


def _size(width: Any, height: Any) -> Size | None:
    """Return the size that a file says; None for 0 or none, which programs write if they do not know it."""
    sides = _number(width) or 0, _number(height) or 0
    return (round(sides[0]), round(sides[1])) if min(sides) >= 1 else None


def has_area(shape: Sequence[float]) -> bool:
    """Return False for a box or polygon without width or height. Points, and objects without a shape, need no area."""
    return len(shape) <= 2 or all(max(side) != min(side) for side in (shape[::2], shape[1::2]))


def _check_by_people(objects: Iterable[Mapping[str, Any]]) -> None:
    """Raise ValueError if an object has a score other than 1: people write none, models do."""
    for one in objects:
        for key, value in one.items():
            if str(key).strip().lower() in _SCORES and _number(value) not in (None, 1):
                raise ValueError(
                    f"an object has the {key} {value}, as the output of a model has, but answers come from people: if"
                    " people have checked the objects, remove the scores"
                )


def _number(value: Any) -> float | None:
    with suppress(TypeError, ValueError):
        return float(value)
    return None


def _corners(x: float, y: float, width: float, height: float) -> tuple[float, ...]:
    return x, y, x + width, y + height


def _shape(at: Mapping[str, Any]) -> tuple[float, ...]:
    if at.keys() >= {"x", "y", "width", "height"}:
        return _corners(at["x"], at["y"], at["width"], at["height"])
    points = (
        zip(at["all_points_x"], at["all_points_y"], strict=True)
        if "all_points_x" in at
        else at.get("points", ())
    )
    points = (
        [*points][:1] if at.get("shape_type") == "circle" else points
    )  # its centre, without a point of its edge
    return tuple(float(number) for point in points for number in point)


def _labelme(content: Mapping[str, Any], own_name: str) -> Marked:
    shapes = content["shapes"]
    _check_by_people(shapes)
    marks = [Mark(_text(one["label"]), _shape(one), _text(one.get("group_id"))) for one in shapes]
    size = _size(content.get("imageWidth"), content.get("imageHeight"))
    return Marked({OWN_NAME: own_name, "imagePath": content["imagePath"]}, marks, size=size)


_USUAL_CLASS = ("label", "class", "name", "type", "category", "species")
"""Attributes of VIA that are the class, unless one is chosen."""


def _via(pictures: Sequence[Mapping[str, Any]], reader: Reader) -> list[Marked]:
    regions = [
        list(one["regions"].values()) if isinstance(one["regions"], dict) else one["regions"]
        for one in pictures
    ]
    attributes = [[_via_attributes(region) for region in several] for several in regions]
    fields, chosen = _class_fields([one for several in attributes for one in several], reader)
    found: list[Marked] = []
    for picture, of_picture, texts in zip(pictures, regions, attributes, strict=True):
        marks = [
            Mark(_first_of(each, fields), _shape(region["shape_attributes"]))
            for region, each in zip(of_picture, texts, strict=True)
        ]
        found.append(Marked({"filename": picture["filename"]}, marks, attribute=chosen))
    return found


def _via_attributes(region: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes of a region that have a text, by name in lower case."""
    of = region["region_attributes"]
    # Whole numbers may be grades that people gave, because the names of attributes are free.
    _check_by_people([{key: text for key, text in of.items() if "." in str(text)}])
    texts = {key.lower(): _text(of[key]) for key in of if isinstance(of[key], str | int)}
    return {key: text for key, text in texts.items() if text}


def _first_of(texts: Mapping[str, str], fields: Iterable[str]) -> str:
    return next((texts[field] for field in fields if field in texts), "")


def _class_fields(regions: Sequence[Mapping[str, str]], reader: Reader) -> tuple[list[str], str]:
    """Return the attributes of which the first that a region has is its class, and the one that had to be chosen.

    Which one it is, is a question if regions have several, unless one of them has a usual name.
    """
    if reader.attribute:
        return [reader.attribute.lower()], ""
    given = reader.given.get("attribute")
    all_fields = list(dict.fromkeys(field for region in regions for field in region))
    beside_others = {field for region in regions if len(region) > 1 for field in region}
    several = [field for field in all_fields if field in beside_others]
    if not several and given is None:
        return all_fields, ""
    usual = [field for field in _USUAL_CLASS if field in several]
    if len(usual) == 1 and given is None:
        several = usual
    choices = tuple(
        Choice(field, ", ".join(_most_common(region.get(field, "") for region in regions)))
        for field in sorted(several or all_fields, key=lambda field: field not in usual)
    )
    question = ReadingQuestion(
        "Which attribute is the class of an object?", "--set=attribute", choices
    )
    chosen = reader.readings.choose(question, given)
    others = [field for field in all_fields if field != chosen]
    reader.readings.take(f"class from attribute {chosen}")
    for field in others:
        if field in beside_others:
            reader.readings.leave(f"attribute {field}")
    return [chosen, *others], chosen if len(choices) > 1 else ""


_SHOWN = 5
"""Values that a question shows."""


def _most_common(texts: Iterable[str]) -> list[str]:
    counts = Counter(text for text in texts if text)
    return [text for text, _ in counts.most_common(_SHOWN)]


def _coco(data: Mapping[str, Any], reader: Reader) -> Iterable[Marked]:
    labels = {_text(one["id"]): _text(one["name"]) for one in data["categories"]}
    pictures = {
        _text(one["id"]): Marked(
            {"file_name": one["file_name"]},
            [],
            (one.get("extra") or {}).get("name", ""),
            size=_size(one.get("width"), one.get("height")),
        )
        for one in data["images"]
    }
    if len(pictures) < len(data["images"]):
        raise ValueError("several pictures have the same id")
    _check_by_people(data["annotations"])
    for number, one in enumerate(data["annotations"], start=1):
        image, of = ids = [_text(one.get(key)) for key in ("image_id", "category_id")]
        for key, given, known in zip(("image", "category"), ids, (pictures, labels), strict=True):
            if given not in known:
                why = f"annotation {one.get('id', number)} has the {key}_id {given or 'null'}"
                raise ValueError(
                    f"{why}, but no {key} has this id: add the {key}, or remove the annotation"
                )
        is_crowd = _text(one.get("iscrowd")).lower() in ("1", "true")
        pictures[image].marks.append(Mark(labels[of], _coco_shape(one), "", is_crowd))
    if any(one.get("keypoints") for one in data["annotations"]):
        reader.readings.leave("keypoints")
    return _with_contradictions(pictures.values())


def _with_contradictions(pictures: Iterable[Marked]) -> list[Marked]:
    """Return the pictures, with a fault if another one of COCO has the same name and other marks.

    They may be two photos of one name, or one whose marks are split: in both cases no number is right.
    """
    by_name: dict[str, list[Marked]] = {}
    for one in pictures:
        by_name.setdefault(one.name, []).append(one)
    fault = "is the name of several pictures of COCO with other objects"
    checked: list[Marked] = []
    for several in by_name.values():
        # Two spellings of a class, as Apple and apple, are one class.
        marks = [
            sorted(mark._replace(label=mark.label.casefold()) for mark in one.marks)
            for one in several
        ]
        is_one = all(each == marks[0] for each in marks[1:])
        checked += several[:1] if is_one else [one._replace(fault=fault) for one in several]
    return checked


def _coco_shape(annotation: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the outline of an object, or else its box, or nothing for an object that is only a mask or keypoints.

    Some programs write boxes of zeros beside outlines, so that the outline tells more.
    """
    outline = annotation.get("segmentation") or ()
    bbox = annotation.get("bbox") or ()
    box = _corners(*map(float, bbox)) if len(bbox) == 4 else ()
    if isinstance(outline, list):
        polygon = tuple(float(number) for part in outline for number in part)
        if len(polygon) >= 6 and has_area(polygon):
            return polygon
    is_drawn = isinstance(outline, Mapping) or any(annotation.get("keypoints") or ())
    return () if is_drawn and not has_area(box) else box


def _createml(content: Iterable[Mapping[str, Any]], image: str, objects: str) -> Iterator[Marked]:
    """Yield the pictures of CreateML; ``image`` and ``objects``: names of the two fields of a picture."""
    for picture in content:
        marks: list[Mark] = []
        _check_by_people(picture[objects])
        for one in picture[objects]:
            at = one["coordinates"]
            left, top = at["x"] - at["width"] / 2, at["y"] - at["height"] / 2
            marks.append(Mark(_text(one["label"]), _corners(left, top, at["width"], at["height"])))
        yield Marked({image: picture[image]}, marks)


def _voc(root: ElementTree.Element, own_name: str) -> Marked:
    marks: list[Mark] = []
    for one in root.iterfind("object"):
        _check_by_people([{part.tag: part.text for part in one}])
        box = [one.findtext(f"bndbox/{side}") or "nan" for side in ("xmin", "ymin", "xmax", "ymax")]
        shape = tuple(map(float, box))
        polygon = tuple(float(part.text or "nan") for part in one.iterfind("polygon/*"))
        if len(polygon) >= 6 and not has_area(shape):
            shape = polygon
        marks.append(Mark(one.findtext("name", "").strip(), shape))
    names = {OWN_NAME: own_name}
    if filename := root.findtext("filename", "").strip():
        names["filename"] = filename
    size = _size(root.findtext("size/width"), root.findtext("size/height"))
    return Marked(names, marks, size=size)


_REGIONS = ("rectangle", "polygon", "ellipse", "keypoint", "brush")
"""Types of regions of Label Studio, to which a class is given by another entry with the same id."""
_USUAL_PICTURE = ("image", "img", "photo", "picture", "image_url", "url")
"""Fields of tasks of Label Studio that most often name the picture."""


def _label_studio(tasks: Sequence[Mapping[str, Any]], reader: Reader) -> Iterator[Marked]:
    readings = reader.readings
    named = [_pictures_of(task) for task in tasks]
    finished = [
        [done for done in task.get("annotations", task.get("completions", ())) if _is_done(done)]
        for task in tasks
    ]
    if not any(finished):
        raise ValueError("nobody has finished a task of Label Studio in it")
    targets = {
        _target(one, names)
        for names, several in zip(named, finished, strict=True)
        for done in several
        for one in done["result"]
    } - {""}
    for names, several in zip(named, finished, strict=True):
        annotated = {field: name for field, name in names.items() if field in targets}
        annotated = annotated or _usual_one(names) or names
        for field in names.keys() - annotated.keys():
            readings.leave(f"data.{field}")
        for done in several:
            # Marks of a task with several pictures say of which one they are.
            parts = (
                {field: {field: name} for field, name in annotated.items()}
                if len(annotated) > 1 and targets
                else {"": annotated}
            )
            for target, of_part in parts.items():
                results = [
                    one for one in done["result"] if not target or _target(one, names) == target
                ]
                said = {f"data.{field}": name for field, name in of_part.items()}
                marks = list(_label_studio_marks(results))
                yield Marked(
                    said or {"data": ""},
                    marks,
                    values=_label_studio_values(results, reader),
                    size=_label_studio_size(results),
                    is_relative=True,
                )
    if unfinished := sum(not several for several in finished):
        readings.leave(f"{unfinished} of {len(tasks)} tasks, which nobody has finished")
    if any(task.get("predictions") for task in tasks):
        readings.leave("predictions of models")


def _is_done(done: Mapping[str, Any]) -> bool:
    return not done.get("was_cancelled")


def _pictures_of(task: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a task that name a picture, those with a usual name first."""
    texts = {
        field: unquote(str(text)).replace("?d=", "/").partition("?")[0]
        for field, text in task["data"].items()
    }
    fields = sorted(texts, key=lambda field: field.lower() not in _USUAL_PICTURE)
    return {field: texts[field] for field in fields if re.search(r"\.\w{3,4}$", texts[field])}


def _usual_one(names: Mapping[str, str]) -> dict[str, str]:
    """Return the only field with a usual name for the picture, beside a thumbnail, say; nothing if there are more."""
    usual = {field: name for field, name in names.items() if field.lower() in _USUAL_PICTURE}
    return usual if len(usual) == 1 else {}


def _target(one: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Return the field of the picture to which an entry belongs; empty if it does not tell."""
    source = str(one.get("source") or "").lstrip("$")
    return next((field for field in (source, str(one.get("to_name"))) if field in names), "")


def _label_studio_size(results: Iterable[Mapping[str, Any]]) -> Size | None:
    sizes = {_size(one.get("original_width"), one.get("original_height")) for one in results}
    sizes.discard(None)
    return sizes.pop() if len(sizes) == 1 else None


def _label_studio_marks(results: Iterable[Mapping[str, Any]]) -> Iterator[Mark]:
    labelled = set[str]()
    without_label: list[Mark] = []
    for one in results:
        at, group = one.get("value", {}), one.get("id", "")
        kinds = [key for key in at if key.endswith("labels") and at[key]]
        for key in kinds:
            labelled.add(group)
            yield from (Mark(label, _shape(at), group) for label in at[key])
        if not kinds and str(one.get("type")).removesuffix("labels") in _REGIONS:
            without_label.append(Mark("", _shape(at), group))
    yield from (mark for mark in without_label if mark.group not in labelled)


def _label_studio_values(results: Iterable[Mapping[str, Any]], reader: Reader) -> dict[str, str]:
    """Return the numbers and choices that belong to the whole picture, by the name of their question."""
    results = list(results)
    regions = {one.get("id") for one in results if _shape(one.get("value", {}))}
    values: dict[str, str] = {}
    for one in results:
        at, question = one.get("value", {}), _text(one.get("from_name"))
        is_number, choices = "number" in at, at.get("choices")
        if any(key.endswith("labels") for key in at) or str(one.get("type")) in _REGIONS:
            continue
        if one.get("id") in regions or not (is_number or choices):
            reader.readings.leave(f'"{question or one.get("type")}" of Label Studio')
        elif is_number:
            values[question] = f"{at['number']:.12g}"
            reader.readings.take(f"numbers from {question}")
        elif len(choices) > 1:
            reader.readings.leave(f'"{question}" where it has several choices')
        else:
            values[question] = str(choices[0])
            reader.readings.take(f"choices from {question}")
    return values


def _cvat(root: ElementTree.Element, reader: Reader) -> Iterator[Marked]:
    if root.find("track") is not None:
        raise ValueError("it holds the tracks of a video: export it as 'CVAT for images'")
    for image in root.iter("image"):
        marks: list[Mark] = []
        for one in image.iterfind("*[@label]"):
            corners = " ".join(one.get(side, "") for side in ("xtl", "ytl", "xbr", "ybr"))
            shape = tuple(map(float, re.findall(r"-?[\d.]+", one.get("points", corners))))
            if one.tag == "tag":
                reader.readings.leave("tags of pictures")
            elif one.get("outside") != "1":
                marks.append(Mark(one.attrib["label"], shape, one.get("group_id", "").lstrip("0")))
        size = _size(image.get("width"), image.get("height"))
        yield Marked({"name": image.attrib["name"]}, marks, size=size)


_SIDES = ("xmin", "ymin", "xmax", "ymax")
_PICTURE_COLUMNS = ("image_path", "filename", "file_name", "image", "image_name")
_CLASS_COLUMNS = ("label", "class", "class_name", "category")
"""Columns of tables with a row for each box: DeepForest has image_path and label, TensorFlow filename and class."""
_GEOMETRY = "geometry"
"""Column of DeepForest with the outline of an object as well-known text: ``POLYGON ((10 10, 25 10, 25 25))``."""
_VIA_COLUMNS = ("filename", "region_shape_attributes", "region_attributes")


def read_box_table(table: SheetTable, reader: Reader) -> Annotations:
    """Return the pictures of a table with a row for each mark; without a format for any other table.

    Raises:
        ValueError, LookupError, TypeError: as in :func:`read_file`.
        NoFileError: two columns have one name.
    """
    columns = {column.removeprefix("#").casefold() for column in table.columns}
    if columns >= {*_VIA_COLUMNS}:
        return Annotations("table of VIA", _via_table(_plain_rows(table, _VIA_COLUMNS), reader))
    image = next((column for column in _PICTURE_COLUMNS if column in columns), "")
    label = next((column for column in _CLASS_COLUMNS if column in columns), "")
    if not image or not label:
        return Annotations()
    if columns >= {*_SIDES}:
        sides = [side for side in ("width", "height") if side in columns]
        rows = _plain_rows(table, (image, label, *_SIDES, *sides))
        return Annotations("table of boxes", _box_rows(rows, image, label))
    if _GEOMETRY in columns:
        rows = _plain_rows(table, (image, label, _GEOMETRY))
        return Annotations("table of outlines", _outline_rows(rows, image, label))
    return Annotations()


def _plain_rows(table: SheetTable, used: Iterable[str]) -> list[dict[str, str]]:
    """Return the rows by column in lower case, without the ``#`` that VIA puts before the first."""
    table.check_names(*used, *(f"#{column}" for column in used))
    return [
        {key.removeprefix("#").casefold(): text for key, text in row.items()}
        for _, row in table.named_rows()
    ]


def _via_table(rows: Iterable[Mapping[str, str]], reader: Reader) -> list[Marked]:
    regions: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        of_picture = regions.setdefault(row["filename"], [])
        if shape := json.loads(row["region_shape_attributes"]):
            attributes = json.loads(row["region_attributes"])
            of_picture.append({"shape_attributes": shape, "region_attributes": attributes})
    return _via([{"filename": name, "regions": of} for name, of in regions.items()], reader)


def _box_rows(rows: Sequence[Mapping[str, str]], image: str, label: str) -> list[Marked]:
    _check_by_people(rows)
    pictures: dict[str, list[Mark]] = {}
    for row in rows:
        box = tuple(float(row.get(side) or 0) for side in _SIDES)
        pictures.setdefault(row[image], []).append(Mark(row[label].strip(), box))
    for marks in pictures.values():
        # One box of zeros says that nothing is in the picture; several are objects whose boxes are lost.
        if len(marks) == 1 and not any(marks[0].shape):
            marks.clear()
    sizes = {row[image]: _size(row.get("width"), row.get("height")) for row in rows}
    return [Marked({image: name}, marks, size=sizes[name]) for name, marks in pictures.items()]


_WELL_KNOWN_TEXT = re.compile(
    r"\s*(?:MULTI)?(?:POLYGON|POINT)\s*(?:\((?P<points>[-+\d.eE\s,()]+)\)|EMPTY)\s*",
    re.IGNORECASE,
)


def _outline_rows(rows: Sequence[Mapping[str, str]], image: str, label: str) -> list[Marked]:
    """Return the pictures of a table whose rows are objects with their outlines.

    Raises:
        ValueError: a geometry is no outline.
    """
    _check_by_people(rows)
    pictures: dict[str, list[Mark]] = {}
    for row in rows:
        marks = pictures.setdefault(row[image], [])
        text = row[_GEOMETRY]
        found = _WELL_KNOWN_TEXT.fullmatch(text)
        if found is None and text.strip():
            raise ValueError(
                f"the geometry {text[:40]!r} is no POLYGON or POINT of well-known text"
            )
        # A row without an outline says that nothing is in the picture.
        if found is not None and found["points"]:
            marks.append(Mark(row[label].strip(), _well_known_points(found["points"])))
    return [Marked({image: name}, marks) for name, marks in pictures.items()]


def _well_known_points(text: str) -> tuple[float, ...]:
    """Return x and y of each point of well-known text."""
    points = [point.strip("() ").split() for point in text.split(",")]
    return tuple(float(number) for point in points for number in point)


def read_yolo(folder: Path, reader: Reader) -> Iterator[Marked]:
    """Yield the pictures of the YOLO labels below a folder.

    Raises:
        BenchmarkError: a line is not an object.
        ValueError: there are no names of classes.
    """
    texts = {file: read_text(file) for file in sorted(folder.rglob("[!.]*.txt"))}
    # Other texts, as lists of pictures and terms of use, do not begin with the number of a class.
    labels = {
        file: text for file, text in texts.items() if re.match(r"\s*($|\d+(\.0)?\s+[\d.])", text)
    }
    is_used = any(map(str.strip, labels.values()))
    names = _class_names(folder) if is_used else {}
    keypoints = _keypoints(folder) if is_used else None
    for file in labels:
        picture = f"/{file.relative_to(folder).with_suffix('').as_posix()}".replace(
            "/labels/", "/images/"
        )[1:]
        yield Marked({OWN_NAME: picture}, list(yolo_marks(file, names, keypoints)))
    if keypoints:
        reader.readings.leave("keypoints")


def yolo_marks(
    path: Path, names: Mapping[int, str], keypoints: tuple[int, int] | None = None
) -> Iterator[Mark]:
    """Yield the marks in a YOLO label file. A row is a box, a polygon, or a box and keypoints, of which the box counts.

    ``keypoints``: number of keypoints, and of values of one, as ``kpt_shape`` says; None if it is not known.

    Raises:
        BenchmarkError: a line is none of these.
    """
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        fault, of, shape = "", 0.0, list[float]()
        with suppress(ValueError):
            of, *shape = map(float, line.split())
        if _has_keypoints(shape, keypoints):
            shape = shape[:4]
        if len(shape) < 4 or len(shape) % 2:
            fault = "is not a box (class, centre x, centre y, width, height) or polygon; predictions have a confidence"
        elif of not in names:
            fault = f"is of class {of:g}, which has no name"
        elif not all(-_ROUNDING <= value <= 1 + _ROUNDING for value in shape):
            fault = "has a box that no picture holds"
        if fault and line.strip():
            raise BenchmarkError(f"{path}, line {number} {fault}: {line[:80]}")
        if not fault:
            x, y, width, height, *more = shape
            box = _corners(x - width / 2, y - height / 2, width, height)
            yield Mark(names[int(of)], tuple(shape) if more else box)


def _has_keypoints(numbers: Sequence[float], keypoints: tuple[int, int] | None) -> bool:
    """Return True for the numbers of a box and keypoints.

    Without ``kpt_shape``, keypoints are known by the visibility of each, which is 0, 1 or 2.
    """
    points = numbers[4:]
    if not points or (keypoints and len(points) != keypoints[0] * keypoints[1]):
        return False
    if keypoints and keypoints[1] == 2:
        return True
    return len(points) % 3 == 0 and all(seen in (0, 1, 2) for seen in points[2::3])


def _keypoints(folder: Path) -> tuple[int, int] | None:
    """Return the number of keypoints and of values of one, as a ``.yaml`` file of a folder or above it says."""
    for file in chain.from_iterable(_settings_places(folder)):
        if file.suffix in (".yaml", ".yml"):
            found = re.search(
                r"^kpt_shape:[\s\[-]*(\d+)[\s,-]+(\d+)", read_text(file), re.MULTILINE
            )
            if found:
                return int(found[1]), int(found[2])
    return None


def _settings_places(folder: Path) -> list[Iterable[Path]]:
    """Return the files of a folder, and those of each of up to two folders above it, where settings stand."""
    above = folder.resolve().parents[:2]
    return [sorted(folder.rglob("[!.]*.*")), *(sorted(place.glob("*.*")) for place in above)]


def _class_names(folder: Path) -> dict[int, str]:
    """Return the names in ``classes.txt``, ``obj.names``, ``notes.json`` or ``data.yaml`` of a folder.

    If it has none of these, they may stand in up to two folders above it.

    Raises:
        ValueError: there are no names, or two files give a number different ones.
    """
    places = _settings_places(folder)
    for at, files in enumerate(places):
        found = _names_of_files(files)
        if not found:
            continue
        file, names = found[0]
        for other, others in found[1:]:
            number = next((n for n in names if others.get(n, names[n]) != names[n]), None)
            if number is not None:
                raise _other_names(number, file, names, other, others)
        for other, others in _names_of_files(chain.from_iterable(places[at + 1 :])):
            # Files above may be of other data: only the same names in another order are a contradiction.
            if names != others and sorted(names.values()) == sorted(others.values()):
                for number in names.keys() & others.keys():
                    if others[number] != names[number]:
                        raise _other_names(number, file, names, other, others)
        return names
    raise ValueError(
        f"{folder} has no names of classes: add classes.txt, with a name in each line, or data.yaml"
    )


def _names_of_files(files: Iterable[Path]) -> list[tuple[Path, dict[int, str]]]:
    return [(file, names) for file in files if (names := _names_in(file))]


def _other_names(
    number: int, file: Path, names: Mapping[int, str], other: Path, others: Mapping[int, str]
) -> ValueError:
    return ValueError(
        f"class {number} is {names[number]} in {file.name}, and {others[number]} in {other.name}: "
        "remove the file that is not of these annotations"
    )


_YAML_NAMES = re.compile(
    r"^names:[^\S\n]*([\[{][^\]}]*|(?:#.*)?(?:\n(?:[ \t-].*)?)+)", re.MULTILINE
)
_YAML_ITEM = re.compile(r"(?:^|[\n,\[{])\s*(?:-|(\d+)\s*:)?[^\S\n]*([^\s,#\[{].*?)\s*(?=[,\n#]|$)")


def _names_in(file: Path) -> dict[int, str]:
    """Return the names of classes by their numbers that a file gives; empty if it gives none."""
    if file.name == "classes.txt" or file.suffix == ".names":
        lines = map(str.strip, read_text(file).splitlines())
        return {number: name for number, name in enumerate(lines) if name}
    if file.name == "notes.json":  # of Label Studio
        with suppress(ValueError, TypeError, KeyError):
            listed = json.loads(read_text(file))["categories"]
            return {int(each["id"]): str(each["name"]) for each in listed}
    if file.suffix in (".yaml", ".yml") and (found := _YAML_NAMES.search(read_text(file))):
        items = enumerate(_YAML_ITEM.findall(found[1]))
        return {int(key or place): name.strip("'\"") for place, (key, name) in items}
    return {}
