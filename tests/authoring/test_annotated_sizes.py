"""Annotations that say another size than the photo has, and shapes that people joined to groups."""

import json
from pathlib import Path

import pytest
from PIL import Image

from agrotools.core import BenchmarkError, UsageError
from agrotools.core.readings import Readings
from agrotools_build.annotation_formats import Marked
from agrotools_build.boxes import Fit, fit_of, read_marks
from agrotools_build.own_photos.table import DetectedTable, match_rows

WIDTH, HEIGHT = 80, 60
BOX = (10, 10, 20, 20)
FAR_BOX = (100, 90, 20, 20)
"""Inside a picture of twice the size only."""


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in "ab":
        Image.new("RGB", (WIDTH, HEIGHT), (0, 90, ord(name))).save(folder / f"{name}.jpg")
    return folder


def _coco(size, boxes):
    width, height = size
    return json.dumps(
        {
            "images": [
                {"id": 1, "file_name": "a.jpg", "width": width, "height": height},
                {"id": 2, "file_name": "b.jpg", "width": WIDTH, "height": HEIGHT},
            ],
            "annotations": [{"image_id": 1, "category_id": 1, "bbox": box} for box in boxes],
            "categories": [{"id": 1, "name": "apple"}],
        }
    )


def _labelme(size, boxes):
    width, height = size
    shapes = [
        {"label": "apple", "shape_type": "rectangle", "points": [[x, y], [x + w, y + h]]}
        for x, y, w, h in boxes
    ]
    content = {"imagePath": "a.jpg", "imageWidth": width, "imageHeight": height, "shapes": shapes}
    return json.dumps(content)


def _xml_boxes(boxes, form: str) -> str:
    return "".join(form.format(x, y, x + w, y + h) for x, y, w, h in boxes)


def _voc(size, boxes):
    form = (
        "<object><name>apple</name><bndbox><xmin>{}</xmin><ymin>{}</ymin><xmax>{}</xmax>"
        "<ymax>{}</ymax></bndbox></object>"
    )
    said = "<size><width>{}</width><height>{}</height><depth>3</depth></size>".format(*size)
    inner = f"<filename>a.jpg</filename>{said}{_xml_boxes(boxes, form)}"
    return f"<annotation>{inner}</annotation>"


def _cvat(size, boxes):
    inner = _xml_boxes(boxes, '<box label="apple" xtl="{}" ytl="{}" xbr="{}" ybr="{}"/>')
    image = '<image id="0" name="a.jpg" width="{}" height="{}">'.format(*size)
    return f"<annotations>{image}{inner}</image></annotations>"


def _tensorflow(size, boxes):
    width, height = size
    rows = (f"a.jpg,{width},{height},apple,{x},{y},{x + w},{y + h}\n" for x, y, w, h in boxes)
    return "filename,width,height,class,xmin,ymin,xmax,ymax\n" + "".join(rows)


FORMATS = {
    "coco": ("x.json", _coco),
    "labelme": ("a.json", _labelme),
    "voc": ("a.xml", _voc),
    "cvat": ("x.xml", _cvat),
    "tensorflow": ("x.csv", _tensorflow),
}


def _read(photos: Path, name: str, text: str, given=None) -> tuple[DetectedTable, Readings]:
    folder = photos.parent / "marks"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text, "utf-8")
    readings = Readings()
    return match_rows(photos, folder, None, readings, given), readings


def _numbers(seen: DetectedTable) -> dict[str, str]:
    return {path.name: text for _, path, text in seen.cells_of("apple")}


@pytest.mark.unit
@pytest.mark.parametrize("size", [(WIDTH, HEIGHT), (0, 0), (WIDTH, HEIGHT - 1)])
@pytest.mark.parametrize("form", FORMATS)
def test_equal_and_unknown_sizes_are_no_question(photos, form: str, size):
    name, write = FORMATS[form]
    seen, readings = _read(photos, name, write(size, [BOX]))
    assert _numbers(seen)["a.jpg"] == "1"
    assert not readings.questions
    assert not seen.skipped.lines()


@pytest.mark.unit
@pytest.mark.parametrize("form", FORMATS)
def test_a_picture_of_another_shape_says_nothing_of_the_photo(photos, form: str):
    name, write = FORMATS[form]
    # The second format has an entry for the other photo, too; without one, no row is left.
    text = write((640, 640), [BOX])
    (photos.parent / "marks").mkdir()
    if form in ("labelme", "voc"):
        other = write((WIDTH, HEIGHT), [BOX]).replace("a.jpg", "b.jpg")
        (photos.parent / "marks" / f"b.{name.split('.')[1]}").write_text(other, "utf-8")
    elif form == "cvat":
        same = f'<image name="b.jpg" width="{WIDTH}" height="{HEIGHT}"/></annotations>'
        text = text.replace("</annotations>", same)
    elif form == "tensorflow":
        text += f"b.jpg,{WIDTH},{HEIGHT},apple,1,1,9,9\n"
    seen, readings = _read(photos, name, text)
    assert [*_numbers(seen)] == ["b.jpg"]
    assert not readings.questions
    assert "a.jpg" in seen.skipped.lines()[0]
    assert "640x640" in seen.skipped.lines()[0]


@pytest.mark.unit
@pytest.mark.parametrize("size", [(2 * WIDTH, 2 * HEIGHT), (HEIGHT, WIDTH), (341, 256)])
@pytest.mark.parametrize("form", FORMATS)
def test_a_resized_or_turned_picture_is_a_question(photos, form: str, size):
    name, write = FORMATS[form]
    _, readings = _read(photos, name, write(size, [BOX]))
    (question,) = readings.questions
    assert question.option == "--set=sizes"


@pytest.mark.unit
def test_the_answer_says_which_objects_count(photos):
    text = _coco((2 * WIDTH, 2 * HEIGHT), [BOX, FAR_BOX])
    numbers = {}
    for answer in ("fitted", "kept", "left-out"):
        seen, readings = _read(photos, "x.json", text, {"sizes": answer})
        assert not readings.questions
        numbers[answer] = _numbers(seen)
    assert numbers == {
        "fitted": {"a.jpg": "2", "b.jpg": "0"},
        "kept": {"a.jpg": "", "b.jpg": "0"},
        "left-out": {"b.jpg": "0"},
    }
    with pytest.raises(UsageError, match="there is no both"):
        _read(photos, "x.json", text, {"sizes": "both"})


@pytest.mark.unit
def test_a_photo_that_its_camera_turns_fits_as_it_is_stored_and_as_it_is_shown(photos):
    exif = Image.Exif()
    exif[274] = 6
    Image.new("RGB", (WIDTH, HEIGHT)).save(photos / "a.jpg", exif=exif)
    for size in ((WIDTH, HEIGHT), (HEIGHT, WIDTH)):
        _, readings = _read(photos, "x.json", _coco(size, [BOX]))
        assert not readings.questions


@pytest.mark.unit
def test_relative_places_fit_a_photo_of_any_size():
    sizes = [(WIDTH, HEIGHT)]
    of = Marked({"image": "a.jpg"}, [], size=(2 * WIDTH, 2 * HEIGHT), is_relative=True)
    assert fit_of(of, sizes) == Fit.SAME
    assert fit_of(of._replace(is_relative=False), sizes) == Fit.CHANGED
    assert fit_of(of._replace(size=(WIDTH, WIDTH)), sizes) == Fit.OTHER


def _grouped(*groups: int | None) -> str:
    content = json.loads(_labelme((WIDTH, HEIGHT), [(k, k, 9, 9) for k in range(len(groups))]))
    for shape, group in zip(content["shapes"], groups, strict=True):
        shape["group_id"] = group
    return json.dumps(content)


@pytest.mark.unit
def test_what_counts_in_groups_of_shapes_is_asked(photos):
    text = _grouped(1, 1, 1, 2, None)
    seen, readings = _read(photos, "a.json", text)
    (question,) = readings.questions
    assert [choice.value for choice in question.choices] == ["one-object", "each-shape"]
    assert "3 objects" in question.choices[0].gives
    assert "5 objects" in question.choices[1].gives
    for answer, number in (("one-object", "3"), ("each-shape", "5")):
        seen, readings = _read(photos, "a.json", text, {"groups": answer})
        assert _numbers(seen) == {"a.jpg": number}
        assert not readings.questions
        assert any("shape" in what for what in readings.taken)


@pytest.mark.unit
@pytest.mark.parametrize("groups", [(None, None), (1, 2), (1, None)])
def test_groups_of_one_shape_are_no_question(photos, groups):
    seen, readings = _read(photos, "a.json", _grouped(*groups))
    assert not readings.questions
    assert _numbers(seen) == {"a.jpg": str(len(groups))}


@pytest.mark.unit
def test_pictures_of_one_name_with_other_objects_say_nothing(photos):
    content = json.loads(_coco((WIDTH, HEIGHT), [BOX]))
    content["images"].append({"id": 3, "file_name": "a.jpg"})
    other = {"image_id": 3, "category_id": 1, "bbox": [40, 10, 20, 20]}
    same = {"image_id": 3, "category_id": 1, "bbox": BOX}
    split = json.dumps({**content, "annotations": [*content["annotations"], other]})
    seen, _ = _read(photos, "x.json", split)
    assert _numbers(seen) == {"b.jpg": "0"}
    assert "a.jpg" in seen.skipped.lines()[0]
    twice = json.dumps({**content, "annotations": [*content["annotations"], same]})
    seen, _ = _read(photos, "x.json", twice)
    assert _numbers(seen) == {"a.jpg": "1", "b.jpg": "0"}
    (category,) = content["categories"]
    content["categories"].append({"id": 9, "name": str(category["name"]).upper()})
    spelt = {"image_id": 3, "category_id": 9, "bbox": BOX}
    twice = json.dumps({**content, "annotations": [*content["annotations"], spelt]})
    seen, _ = _read(photos, "x.json", twice)
    assert _numbers(seen)["a.jpg"] == "1", "two spellings of one class are no other objects"


@pytest.mark.unit
def test_a_folder_of_masks_is_refused_with_a_hint_that_says_so(tmp_path: Path):
    (tmp_path / "masks").mkdir()
    Image.new("L", (40, 30)).save(tmp_path / "masks" / "a.png")
    with pytest.raises(BenchmarkError) as refused:
        read_marks(tmp_path / "masks", hint="known are ...", readings=Readings())
    assert "masks are not read" in str(refused.value.hint)


@pytest.mark.unit
def test_an_archive_is_to_be_unpacked(photos, tmp_path: Path):
    archive = tmp_path / "marks.zip"
    archive.write_bytes(b"PK\3\4")
    with pytest.raises(BenchmarkError, match="is an archive") as refused:
        match_rows(photos, archive)
    assert "unpack" in str(refused.value.hint)
    (tmp_path / "folder").mkdir()
    archive.rename(tmp_path / "folder" / "marks.zip")
    with pytest.raises(BenchmarkError) as refused:
        match_rows(photos, tmp_path / "folder")
    assert refused.value.hint == "unpack marks.zip"
    _, readings = _read(photos, "a.json", _labelme((WIDTH, HEIGHT), [BOX]))
    (tmp_path / "folder" / "marks.zip").rename(tmp_path / "marks" / "more.zip")
    match_rows(photos, tmp_path / "marks", None, readings := Readings())
    assert readings.left == ["more.zip", "1 photo without a row (b.jpg)"]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("above", "is_refused"),
    [("[pear, apple]", True), ("[apple, pear]", False), ("[weed, crop, stone]", False)],
)
def test_the_same_classes_in_another_order_above_the_labels_are_refused(
    photos, tmp_path: Path, above: str, is_refused: bool
):
    labels = tmp_path / "set" / "labels"
    labels.mkdir(parents=True)
    (labels / "a.txt").write_text("0 .5 .5 .1 .1\n")
    (labels / "classes.txt").write_text("apple\npear\n")
    (labels.parent / "data.yaml").write_text(f"names: {above}\n")
    if is_refused:
        with pytest.raises(BenchmarkError, match=r"class 0 is apple in classes.txt, and pear"):
            match_rows(photos, labels)
    else:
        assert _numbers(match_rows(photos, labels)) == {"a.jpg": "1"}


@pytest.mark.unit
def test_further_pages_of_a_photo_are_named(tmp_path: Path):
    folder = tmp_path / "photos"
    folder.mkdir()
    pages = [Image.new("RGB", (8, 8), (0, 90, number)) for number in range(3)]
    pages[0].save(folder / "a.tif", save_all=True, append_images=pages[1:])
    pages[1].save(folder / "b.tif")
    (tmp_path / "t.csv").write_text("photo,apples\na.tif,1\nb.tif,2\n")
    match_rows(folder, tmp_path / "t.csv", None, readings := Readings())
    assert readings.left == ["page 2 to 3 of a.tif"]


@pytest.mark.unit
@pytest.mark.filterwarnings("ignore:Dataset has no geotransform")
def test_smaller_copies_in_a_raster_are_no_pages(tmp_path: Path):
    rasterio = pytest.importorskip("rasterio")
    folder = tmp_path / "photos"
    folder.mkdir()
    shape = {"driver": "GTiff", "width": 512, "height": 512, "count": 3, "dtype": "uint8"}
    with rasterio.open(folder / "a.tif", "w", tiled=True, **shape) as raster:
        raster.build_overviews([2, 4])
    (tmp_path / "t.csv").write_text("photo,apples\na.tif,1\n")
    match_rows(folder, tmp_path / "t.csv", None, readings := Readings())
    assert not readings.left
