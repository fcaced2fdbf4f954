"""Objects that people marked in pictures: COCO, YOLO, LabelMe, VIA, Label Studio, CVAT, Pascal VOC and DeepForest."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree

from agrotools.core import BenchmarkError
from agrotools.core.files import read_text
from agrotools.text.tables import Table, open_table


class Mark(NamedTuple):
    """An object, a part of one ``group`` or a region of several; ``shape``: x, y of two corners or of a polygon."""

    label: str
    shape: tuple[float, ...]
    group: str = ""
    is_crowd: bool = False


class Marked(NamedTuple):
    """A picture and its marks: once for each person who annotated it, also without a mark."""

    name: str
    """Name in the annotations, which may differ from ``original``, the one before an upload."""
    marks: list[Mark]
    original: str = ""


FORMATS = (
    "known are COCO, LabelMe, VIA, Label Studio (.json), CVAT for images, Pascal VOC (.xml), and folders of them or of"
    " YOLO labels; CVAT, Label Studio and Roboflow export COCO JSON"
)
_ROUNDING = 1e-3  # of a side: boxes reach beyond the picture where digits are truncated


def count_marks(marks: Iterable[Mark]) -> tuple[dict[str, int | None], Counter[tuple[str, str]]]:
    """Return the number of objects by class, None beside a region of several, and the (class, fault) of other marks."""
    seen, counts, faults = set[Any](), dict[str, int | None](), Counter[tuple[str, str]]()
    for number, (name, shape, group, is_crowd) in enumerate(marks):
        label, count = name or "object", counts.get(name or "object", 0)
        key = label, group or shape or number
        if is_crowd or count is None:
            counts[label] = None
            faults[
                label,
                "has a region of several objects (iscrowd; set it to 0 for masks of one), so no number",
            ] = 1
        elif len(shape) > 2 and any(max(side) == min(side) for side in (shape[::2], shape[1::2])):
            faults[label, "box has no area"] += 1
        elif key in seen:
            faults[label, "box occurs twice and is counted once"] += not group
        else:
            counts[label] = count + 1
        seen.add(key)
    return counts, +faults


def read_marks(path: Path, attribute: str = "", hint: str | None = None) -> list[Marked] | None:
    """Return the annotated pictures of a file or folder, None for a table of others; BenchmarkError if that fails.

    ``attribute``: the attribute of VIA that is the class, by default one with a usual name, or else any.
    """
    found, file = dict[str, list[Marked]](), path
    try:
        if path.is_file() and path.suffix.lower() == ".csv":
            return _of_table(open_table(path))
        if path.suffix.lower() not in (".json", ".xml") and not path.is_dir():
            return None
        for file in sorted(path.rglob("[!.]*.*")) if path.is_dir() else [path]:
            found.setdefault(file.suffix.lower(), []).extend(_of_file(file, attribute))
        found[".txt"] = list(_yolo(path))
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ElementTree.ParseError,
    ) as error:
        match error:
            case KeyError():
                reason = f"an entry lacks {error}"
            case json.JSONDecodeError() | ElementTree.ParseError():
                reason = f"it is damaged or cut off: {error}"
            case OSError() | ValueError():
                reason = str(error)
            case _:
                reason = "an entry has another form than its format says"
        raise BenchmarkError(
            f"{file} cannot be read as annotations: {reason}", hint=hint
        ) from error
    if len(kinds := [kind for kind, pictures in found.items() if pictures]) != 1:
        what = (
            f"annotations of several kinds ({', '.join(kinds)})"
            if kinds
            else "no annotations that are known"
        )
        raise BenchmarkError(f"{path} holds {what}", hint=hint)
    return found[kinds[0]]


def _of_file(file: Path, attribute: str) -> Iterable[Marked]:
    if file.suffix.lower() == ".xml":
        root = ElementTree.parse(file).getroot()
        return [_voc(root, file.stem)] if root.tag == "annotation" else _cvat(root)
    match json.loads(file.read_bytes()) if file.suffix.lower() == ".json" else None:
        case {"images": list(), "annotations": list(), "categories": list()} as data:
            return _coco(data)
        case {"shapes": list(shapes), "imagePath": str(picture)}:
            marks = [
                Mark(_text(one["label"]), _shape(one), _text(one.get("group_id"))) for one in shapes
            ]
            return [Marked(picture, marks)]
        case {"_via_img_metadata": dict(data)} | dict(data) if all(
            "regions" in of for of in data.values()
        ):
            for one in data.values():
                several = (
                    one["regions"].values() if isinstance(one["regions"], dict) else one["regions"]
                )
                one["regions"] = [_via(region, attribute) for region in several]
            return [Marked(one["filename"], one["regions"]) for one in data.values()]
        case [{"data": dict()}, *_] as data:
            return _label_studio(data)
        case [{"annotation_id": _}, *_]:
            raise ValueError("it looks like JSON-MIN of Label Studio: export JSON or COCO instead")
        case [{"image_id": _, "category_id": _}, *_]:
            raise ValueError(
                "it looks like results of COCO: give the file with images, annotations and categories"
            )
        case _:
            return ()


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip().removesuffix(".0")


def _shape(at: Mapping[str, Any]) -> tuple[float, ...]:
    if at.keys() >= {"x", "y", "width", "height"}:
        return at["x"], at["y"], at["x"] + at["width"], at["y"] + at["height"]
    points = (
        zip(at["all_points_x"], at["all_points_y"], strict=True)
        if "all_points_x" in at
        else at.get("points", ())
    )
    points = (
        [*points][:1] if at.get("shape_type") == "circle" else points
    )  # its centre, without a point of its edge
    return tuple(float(number) for point in points for number in point)


def _via(region: Mapping[str, Any], attribute: str = "") -> Mark:
    of = region["region_attributes"]
    texts = {key.lower(): _text(of[key]) for key in of if isinstance(of[key], str | int)}
    usual = (
        [attribute.lower()]
        if attribute
        else ["label", "class", "name", "type", "category", "species", *texts]
    )
    return Mark(
        next((texts[key] for key in usual if texts.get(key)), ""),
        _shape(region["shape_attributes"]),
    )


def _coco(data: Any) -> Iterable[Marked]:
    labels = {_text(one["id"]): _text(one["name"]) for one in data["categories"]}
    pictures = {
        _text(one["id"]): Marked(one["file_name"], [], (one.get("extra") or {}).get("name", ""))
        for one in data["images"]
    }
    if len(pictures) < len(data["images"]):
        raise ValueError("several pictures have the same id")
    for number, one in enumerate(data["annotations"], start=1):
        image, of = ids = [_text(one.get(key)) for key in ("image_id", "category_id")]
        for key, given, known in zip(("image", "category"), ids, (pictures, labels), strict=True):
            if given not in known:
                why = f"annotation {one.get('id', number)} has the {key}_id {given or 'null'}"
                raise ValueError(
                    f"{why}, but no {key} has this id: add the {key}, or remove the annotation"
                )
        shape = _shape(
            dict(zip(("x", "y", "width", "height"), one.get("bbox") or (), strict=False))
        )
        mark = Mark(labels[of], shape, "", _text(one.get("iscrowd")).lower() in ("1", "true"))
        pictures[image].marks.append(mark)
    return pictures.values()


def _voc(root: ElementTree.Element, stem: str) -> Marked:
    marks: list[Mark] = []
    for one in root.iterfind("object"):
        box = [one.findtext(f"bndbox/{side}") or "nan" for side in ("xmin", "ymin", "xmax", "ymax")]
        marks.append(Mark(one.findtext("name", "").strip(), tuple(map(float, box))))
    return Marked(root.findtext("filename", "").strip() or stem, marks)


def _label_studio(tasks: Any) -> Iterator[Marked]:
    for task in tasks:
        texts = [
            unquote(str(text)).replace("?d=", "/").partition("?")[0]
            for text in task["data"].values()
        ]
        name = next((text for text in texts if re.search(r"\.\w{3,4}$", text)), "")
        for done in task.get("annotations", task.get("completions", ())):
            values = [(one.get("value", {}), one.get("id", "")) for one in done["result"]]
            labelled = [
                (at, key, group) for at, group in values for key in at if key.endswith("labels")
            ]
            if not done.get("was_cancelled"):
                yield Marked(
                    name,
                    [Mark(label, _shape(at), of) for at, key, of in labelled for label in at[key]],
                )


def _cvat(root: ElementTree.Element) -> Iterator[Marked]:
    if root.find("track") is not None:
        raise ValueError("it holds the tracks of a video: export it as 'CVAT for images'")
    for image in root.iter("image"):
        marks: list[Mark] = []
        for one in image.iterfind("*[@label]"):
            corners = " ".join(one.get(side, "") for side in ("xtl", "ytl", "xbr", "ybr"))
            shape = tuple(map(float, re.findall(r"-?[\d.]+", one.get("points", corners))))
            if one.tag != "tag" and one.get("outside") != "1":
                marks.append(Mark(one.attrib["label"], shape, one.get("group_id", "").lstrip("0")))
        yield Marked(image.attrib["name"], marks)


def _of_table(table: Table) -> list[Marked] | None:
    """Return the pictures of a table with a row for each mark, DeepForest's or VIA's; None for any other table."""
    columns, sides = (
        {column.removeprefix("#") for column in table.columns},
        ("xmin", "ymin", "xmax", "ymax"),
    )
    is_via = columns >= {"filename", "region_shape_attributes", "region_attributes"}
    if not is_via and not columns >= {"image_path", "label", *sides}:
        return None
    used = (
        "filename",
        "region_shape_attributes",
        "region_attributes",
        "image_path",
        "label",
        *sides,
    )
    table.check_names(*used, *(f"#{column}" for column in used))
    pictures: dict[str, list[Mark]] = {}
    for row in (
        {key.removeprefix("#"): text for key, text in row.items()} for _, row in table.named_rows()
    ):
        marks = pictures.setdefault(row["filename" if is_via else "image_path"], [])
        if is_via and (at := json.loads(row["region_shape_attributes"])):
            marks.append(
                _via(
                    {
                        "shape_attributes": at,
                        "region_attributes": json.loads(row["region_attributes"]),
                    }
                )
            )
        elif any(
            box := tuple(float(row.get(side) or 0) for side in sides)
        ):  # else nothing is in the picture
            marks.append(Mark(row["label"].strip(), box))
    return [*map(Marked, pictures, pictures.values())]


def _yolo(folder: Path) -> Iterator[Marked]:
    texts = {file: read_text(file) for file in sorted(folder.rglob("[!.]*.txt"))}
    # Other texts, as lists of pictures and terms of use, do not begin with the number of a class.
    labels = {
        file: text for file, text in texts.items() if re.match(r"\s*($|\d+(\.0)?\s+[\d.])", text)
    }
    names = _class_names(folder) if any(map(str.strip, labels.values())) else {}
    for file in labels:
        picture = f"/{file.relative_to(folder).with_suffix('').as_posix()}".replace(
            "/labels/", "/images/"
        )[1:]
        yield Marked(picture, list(yolo_marks(file, names)))


def yolo_marks(path: Path, names: Mapping[int, str]) -> Iterator[Mark]:
    """Yield the marks in a YOLO label file; BenchmarkError for a line that is neither a box nor a polygon in it."""
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        fault, of, shape = "", 0.0, list[float]()
        with suppress(ValueError):
            of, *shape = map(float, line.split())
        if len(shape) < 4 or len(shape) == 5:
            fault = "is not a box (class, centre x, centre y, width, height) or polygon; predictions have a confidence"
        elif of not in names:
            fault = f"is of class {of:g}, which has no name"
        elif not all(-_ROUNDING <= value <= 1 + _ROUNDING for value in shape):
            fault = "has a box that no picture holds"
        if fault and line.strip():
            raise BenchmarkError(f"{path}, line {number} {fault}: {line[:80]}")
        if not fault:
            x, y, width, height, *more = shape
            box = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
            yield Mark(names[int(of)], tuple(shape) if more else box)


def _class_names(folder: Path) -> dict[int, str]:
    """Return the names in ``classes.txt``, ``obj.names`` or ``data.yaml`` of a folder, or of up to two above it."""
    above = (file for place in folder.resolve().parents[:2] for file in sorted(place.glob("*.*")))
    for file in (*sorted(folder.rglob("[!.]*.*")), *above):
        if file.name == "classes.txt" or file.suffix == ".names":
            return dict(enumerate(filter(None, map(str.strip, read_text(file).splitlines()))))
        block = r"^names:[^\S\n]*([\[{][^\]}]*|(?:#.*)?(?:\n(?:[ \t-].*)?)+)"
        yaml = read_text(file) if file.suffix in (".yaml", ".yml") else ""
        if found := re.search(block, yaml, re.MULTILINE):
            items = re.findall(
                r"(?:^|[\n,\[{])\s*(?:-|(\d+)\s*:)?[^\S\n]*([^\s,#\[{].*?)\s*(?=[,\n#]|$)", found[1]
            )
            return {int(key or place): name.strip("'\"") for place, (key, name) in enumerate(items)}
    raise ValueError(
        f"{folder} has no names of classes: add classes.txt, with a name in each line, or data.yaml"
    )
