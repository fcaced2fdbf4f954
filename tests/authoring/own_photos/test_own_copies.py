"""Augmented copies of photos, near-duplicates, and the forms of tables that name them."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from agrotools.core.errors import NoFileError
from agrotools.core.readings import Readings
from agrotools.loading import load_folder
from agrotools_build.own_photos.building import build_from_photos
from agrotools_build.own_photos.copies import sets_of_copies
from agrotools_build.own_photos.plan import Plan
from agrotools_build.own_photos.proposal import propose_plan
from agrotools_build.own_photos.questions import joined_clusters
from agrotools_build.own_photos.table import DetectedTable, match_rows

N_PHOTOS = 6


def _picture(seed: int) -> Image.Image:
    """A picture of large random fields, unlike that of any other seed."""
    fields = np.random.default_rng(seed).integers(0, 255, (6, 8, 3), np.uint8)
    return Image.fromarray(fields).resize((160, 120), Image.Resampling.NEAREST)


def _copies(folder: Path, name_of) -> Path:
    """Three copies of each photo: as it is, turned and cropped; with annotations that name the photo."""
    folder.mkdir()
    images, objects = [], []
    for number in range(N_PHOTOS):
        photo = _picture(number)
        changed = [photo, photo.rotate(90, expand=True), photo.crop((60, 40, 160, 120))]
        for copy, picture in enumerate(changed):
            key, name = 3 * number + copy, name_of(number, copy)
            picture.save(folder / name)
            size = {"width": picture.width, "height": picture.height}
            original = {"name": f"IMG_{number}.jpg"}
            images.append({"id": key, "file_name": name, **size, "extra": original})
            for at in range(number % 5 + 1):
                box = [10 * at, 10, 8, 8]
                one = {"image_id": key, "category_id": 1, "bbox": box}
                objects.append({"id": 100 * key + at, "iscrowd": 0, **one})
    content = {
        "images": images,
        "annotations": objects,
        "categories": [{"id": 1, "name": "apple"}],
    }
    file = folder.parent / "annotations.json"
    file.write_text(json.dumps(content))
    return file


def _clusters(seen: DetectedTable, out: Path, **changes) -> tuple[int, str]:
    plan: Plan = propose_plan(seen, "farm").plan.model_copy(update={"samples": 100, **changes})
    built = build_from_photos(seen, plan, out)
    return len({sample.cluster for sample in load_folder(out).samples}), built.copies


def _name_of_roboflow(number: int, copy: int) -> str:
    return f"IMG_{number}_jpg.rf.{31 * number + copy:032x}.jpg"


@pytest.mark.tools
@pytest.mark.parametrize(
    "name_of", [_name_of_roboflow, lambda number, copy: f"{'abc'[copy]}{number}.jpg"]
)
def test_augmented_copies_of_a_photo_are_one_cluster(tmp_path: Path, name_of):
    file = _copies(tmp_path / "photos", name_of)
    seen = match_rows(tmp_path / "photos", file)
    clusters, said = _clusters(seen, tmp_path / "made")
    assert clusters == N_PHOTOS
    assert "18 photos are augmented copies" in said
    assert "6 sets" in said
    clusters, said = _clusters(seen, tmp_path / "apart", copies="apart")
    assert clusters == 3 * N_PHOTOS
    assert "--set copies=one-cluster" in said


@pytest.mark.tools
def test_a_mirrored_photo_is_in_the_cluster_of_its_photo(tmp_path: Path):
    folder = tmp_path / "photos"
    folder.mkdir()
    lines = ["photo,apples"]
    for number in range(N_PHOTOS):
        _picture(number).save(folder / f"{number}.png")
        lines.append(f"{number}.png,{number + 3}")
    ImageOps.mirror(_picture(0)).save(folder / "mirrored.png")
    lines.append("mirrored.png,3")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    clusters, said = _clusters(match_rows(folder, tmp_path / "t.csv"), tmp_path / "made")
    assert clusters == N_PHOTOS
    assert "0.png and mirrored.png" in said


def test_photos_that_are_shown_together_join_their_clusters():
    clusters = {"a": "copies-1", "b": "copies-1", "c": "copies-2", "d": "copies-2", "e": "copies-3"}
    joined = joined_clusters(clusters, [["b", "c", "x"], ["e"]])
    assert len({joined[key] for key in "abcd"}) == 1
    assert joined["e"] == "copies-3"


KOBO = "start,Tree/Photo,Tree/Number of apples,Tree/Pests,Tree/Pests/aphids,_uuid,_index"


def test_the_group_of_a_question_of_kobotoolbox_is_no_part_of_its_header(tmp_path: Path):
    folder = tmp_path / "photos"
    folder.mkdir()
    lines = [KOBO]
    for number in range(N_PHOTOS):
        _picture(number).save(folder / f"{number}.png")
        lines.append(f"2026-09-01,{number}.png,{number + 1},aphids,{number % 2},u{number},{number}")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    readings = Readings()
    seen = match_rows(folder, tmp_path / "t.csv", readings=readings)
    asked = [each for each in propose_plan(seen, "farm").plan.columns if each.is_asked]
    assert {each.column: each.ask for each in asked} == {
        "Number of apples": "count",
        "Pests": "pest",
    }
    assert "Tree/Pests/aphids" in seen.table.columns, "an option says whether it was chosen"
    in_full = {"images_column": "Tree/Photo"}
    assert match_rows(folder, tmp_path / "t.csv", given=in_full).images_column == "Tree/Photo"


@pytest.mark.parametrize(
    ("header", "row"),
    [
        (
            "SubmissionDate,site-orchard,obs-photo,obs-severity_pct,obs-apples,meta-instanceID,KEY",
            "2026-06-01,south,{0}.png,{0}.5,{0},uuid:{0},uuid:{0}",
        ),
        (
            "counts-photo,counts-severity_pct,counts-apples,PARENT_KEY,KEY",
            "{0}.png,{0}.5,{0},u,u/{0}",
        ),
        (
            "ec5_uuid,created_at,title,5_Photo,8_Severity_,9_Number_of_apples",
            "u{0},2026-06-01,t{0},{0}.png,{0}.25,{0}",
        ),
    ],
)
def test_headers_of_phone_apps_are_read_as_their_questions(tmp_path: Path, header: str, row: str):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(N_PHOTOS):
        _picture(number).save(folder / f"{number}.png")
    rows = [row.format(number) for number in range(N_PHOTOS)]
    (tmp_path / "t.csv").write_text("\n".join([header, *rows]))
    readings = Readings()
    seen = match_rows(folder, tmp_path / "t.csv", readings=readings)
    asked = [each for each in propose_plan(seen, "farm").plan.columns if each.is_asked]
    assert [each.ask for each in asked if each.ask != "slice"] == ["severity", "count"]
    assert {"severity_pct", "Severity"} & {*seen.table.columns}
    assert any("the questions of" in line for line in readings.taken)


def test_the_photo_that_copies_name_is_of_their_set(tmp_path: Path):
    copies = [tmp_path / f"IMG_2_jpg.rf.{letter * 32}.jpg" for letter in "ab"]
    original, other = tmp_path / "IMG_2.jpg", tmp_path / "IMG_2.png"
    assert sets_of_copies([original, other, *copies], {}, {}) == [[original, *copies]]
    twice = [tmp_path / "east" / "IMG_2.jpg", tmp_path / "west" / "IMG_2.jpg"]
    assert sets_of_copies([*twice, *copies], {}, {}) == [copies], "either may be the original"


OUTLINES = """image_path,label,geometry
0.png,Tree,"POLYGON ((10 10, 25 10, 25 25, 10 10))"
0.png,Tree,"POLYGON ((40 10, 55 10, 55 25, 40 10))"
1.png,Tree,POINT (30 30)
2.png,Tree,POLYGON EMPTY
"""


def test_outlines_of_deepforest_are_counted(tmp_path: Path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(3):
        _picture(number).save(folder / f"{number}.png")
    (tmp_path / "t.csv").write_text(OUTLINES)
    seen = match_rows(folder, tmp_path / "t.csv")
    assert [each.cells for each in seen.matched] == [("0.png", "2"), ("1.png", "1"), ("2.png", "0")]


@pytest.mark.parametrize("name", ["t.parquet", "t.docx", "t.sav"])
def test_a_file_that_is_no_table_is_refused_by_name(tmp_path: Path, name):
    folder = tmp_path / "photos"
    folder.mkdir()
    _picture(0).save(folder / "0.png")
    (tmp_path / name).write_bytes(b"PAR1\x15\x04\x00\x00photo,severity\n0.png,3\n")
    with pytest.raises(NoFileError, match=rf"{name} cannot be read") as refused:
        match_rows(folder, tmp_path / name)
    assert ".csv" in str(refused.value.hint)


def test_geojson_is_refused_by_name(tmp_path: Path):
    folder = tmp_path / "photos"
    folder.mkdir()
    _picture(0).save(folder / "0.png")
    (tmp_path / "t.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": []}))
    with pytest.raises(NoFileError, match="GeoJSON") as refused:
        match_rows(folder, tmp_path / "t.geojson")
    assert ".csv" in str(refused.value.hint)


@pytest.mark.parametrize("time", ["", "?1444335406"])
def test_a_photo_of_inaturalist_is_found_by_its_number(tmp_path: Path, time: str):
    folder = tmp_path / "photos"
    folder.mkdir()
    lines = ["id,image_url,weed"]
    for number in range(3):
        _picture(number).save(folder / f"35{number}.jpg")
        lines.append(f"{number},https://a.org/photos/35{number}/medium.jpg{time},Lantana")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    seen = match_rows(folder, tmp_path / "t.csv")
    assert [each.image.stem for each in seen.matched] == ["350", "351", "352"]
