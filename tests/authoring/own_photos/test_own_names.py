"""Names in a table: what is proposed for them, which spellings are one thing, and what the printed command answers."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image

from agrotools.core import BenchmarkError
from agrotools.core.readings import Readings
from agrotools.formats.tool_labels import stored_labels
from agrotools.loading import load_folder
from agrotools_build.own_photos.answering import (
    decide,
    say_what_is_read,
    split_settings,
    with_answers,
)
from agrotools_build.own_photos.building import build_from_photos
from agrotools_build.own_photos.nearest import nearest_names
from agrotools_build.own_photos.plan import Column, Plan
from agrotools_build.own_photos.proposal import propose_plan
from agrotools_build.own_photos.questions import ColumnNames, quantity_text
from agrotools_build.own_photos.table import DetectedTable, match_rows

N_PHOTOS = 12


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Photos with numbers as cameras write them, and of different patterns."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(N_PHOTOS):
        picture = Image.effect_noise((48, 36), 20 + 15 * number).convert("RGB")
        picture.save(folder / f"DSC{1200 + number:05}.JPG")
    return folder


def _table(photos: Path, header: str, cells: Sequence[object]) -> Path:
    file = photos.parent / "t.csv"
    names = sorted(path.name for path in photos.iterdir())
    rows = [f"{name},{cell}" for name, cell in zip(names, cells, strict=True)]
    file.write_text("\n".join([f"photo,{header}", *rows]) + "\n", encoding="utf-8")
    return file


def _decided(photos: Path, table: Path, *words: str) -> tuple[Plan, DetectedTable, Readings]:
    """The plan of a script in which nobody answers, with what is said by ``--set``."""
    settings, others = split_settings(words)
    readings = Readings()
    seen = match_rows(photos, table, None, readings, settings)
    plan = with_answers(propose_plan(seen, "farm").plan, others, seen)
    return decide(plan, seen, readings), seen, readings


def _printed(readings: Readings) -> list[str]:
    """The words of ``--set`` in the printed command."""
    words = [each.answered(each.proposed) for each in readings.questions]
    return [word.removeprefix("--set=") for word in words]


@pytest.mark.parametrize(
    ("ask", "crop"), [("disease", "coffee"), ("disease", None), ("pest", None)]
)
def test_spelling_alone_proposes_no_name_of_another_crop(ask, crop):
    assert nearest_names("derrite", ask, crop) == []


@pytest.mark.tools
def test_a_name_without_a_near_one_is_kept_and_said(photos):
    cells = ["derrite", "roya", "minador", "sana"] * 3
    table = _table(photos, "enfermedad", cells)
    _, _, readings = _decided(photos, table)
    assert _printed(readings) == ["enfermedad.names.derrite=derrite"]
    plan, seen, readings = _decided(photos, table, *_printed(readings))
    assert readings.questions == []
    built = build_from_photos(seen, plan, photos.parent / "made")
    assert built.used == {"enfermedad": N_PHOTOS}


def test_a_given_crop_is_not_asked_for_again(photos):
    """The knowledge base has apple scab for apples alone."""
    cells = ["apple scab", "rust", "leaf miner", "healthy"] * 3
    table = _table(photos, "disease", cells)
    _, _, readings = _decided(photos, table, "disease.crop=coffee")
    assert _printed(readings) == ["disease.names.apple scab=apple scab"]


@pytest.mark.parametrize("crop", ["coffee", "bean", "grape"])
def test_the_printed_command_holds_for_each_crop(photos, crop):
    """Which names are unknown depends on the crop, which only the owner knows."""
    table = _table(photos, "disease", ["rust", "leaf spot", "weird thing"] * 4)
    _, _, readings = _decided(photos, table)
    printed = _printed(readings)
    assert printed == ["disease.crop=CROP", "disease.unknown_names=kept"]
    words = [word.replace("CROP", crop) for word in printed]
    plan, _, readings = _decided(photos, table, *words)
    assert readings.questions == []
    assert plan.columns[0].is_asked


def test_the_printed_command_never_leaves_out_all_columns(photos):
    table = _table(photos, "Apples damaged by wasps", [at % 5 for at in range(N_PHOTOS)])
    _, _, readings = _decided(photos, table)
    assert _printed(readings) == ["Apples damaged by wasps.ask=ASK"]


def test_numbers_of_photos_are_one_question(photos):
    table = photos.parent / "t.csv"
    rows = [f"{1200 + at};{7 * at}" for at in range(N_PHOTOS)]
    table.write_text("\n".join(["Bild Nr.;Befall (%)", *rows]), encoding="utf-8")
    _, seen, readings = _decided(photos, table)
    assert _printed(readings) == ["photo_numbers=in-names"]
    assert [each.image.name for each in seen.matched][:2] == ["DSC01200.JPG", "DSC01201.JPG"]
    _, _, readings = _decided(photos, table, *_printed(readings))
    assert readings.questions == []


def test_a_column_of_numbers_is_proposed_where_no_column_names_photos(photos):
    """Below a header that says nothing of photos, numbers are asked about, too."""
    table = photos.parent / "t.csv"
    rows = [f"{1200 + at};{at % 4}" for at in range(N_PHOTOS)]
    table.write_text("\n".join(["Nr;Befall (%)", *rows]), encoding="utf-8")
    _, seen, readings = _decided(photos, table)
    assert _printed(readings)[0] == "photo_numbers=in-names"
    assert seen.images_column == "Nr"
    assert [each.image.name for each in seen.matched][:2] == ["DSC01200.JPG", "DSC01201.JPG"]
    assert any("1200 is DSC01200.JPG" in what for what in readings.taken)


def test_numbers_of_photos_on_two_sheets_are_rows_of_their_own(photos):
    """Rows of two sheets have the same numbers, so that one must not stand for the other."""
    openpyxl = pytest.importorskip("openpyxl", reason="extra build")
    book = openpyxl.Workbook()
    book.remove(book.active)
    half = N_PHOTOS // 2
    for name, first in (("June", 0), ("July", half)):
        sheet = book.create_sheet(name)
        sheet.append(["Nr", "Befall (%)"])
        for at in range(first, first + half):
            sheet.append([1200 + at, 7 * at])
    file = photos.parent / "t.xlsx"
    book.save(file)
    settings, _ = split_settings(["sheet=all", "photo_numbers=in-names"])
    seen = match_rows(photos, file, None, Readings(), settings, together=("June", "July"))
    column = seen.table.place_of("Befall (%)")
    values = {each.image.name: float(each.cells[column]) for each in seen.matched}
    assert values == {f"DSC{1200 + at:05}.JPG": 7 * at for at in range(N_PHOTOS)}


def test_one_photo_with_two_numbers_is_no_reason_to_read_none(photos):
    table = photos.parent / "t.csv"
    rows = [f"{1200 + at};{7 * at}" for at in [*range(N_PHOTOS), 3]]
    table.write_text("\n".join(["Nr;Befall (%)", *rows]), encoding="utf-8")
    _, seen, readings = _decided(photos, table)
    assert _printed(readings)[0] == "photo_numbers=in-names"
    assert len(seen.matched) == N_PHOTOS + 1


@pytest.mark.parametrize(
    ("header", "cell", "is_percentage"),
    [("Befund", "{} %", True), ("%", "{}", True), ("Befund", "{}", False)],
)
def test_percentages_below_an_unknown_header_have_the_set_that_takes_them(
    photos, header, cell, is_percentage
):
    table = photos.parent / "t.csv"
    names = sorted(path.name for path in photos.iterdir())
    rows = [f"{name},{cell.format(at + 1.5)},healthy" for at, name in enumerate(names)]
    table.write_text("\n".join([f"photo,{header},disease", *rows]), encoding="utf-8")
    plan, seen, readings = _decided(photos, table)
    say_what_is_read(plan, seen, readings)
    (left,) = [line for line in readings.left if line.startswith(f"column {header}")]
    takes_it = f"--set '{header}.ask=severity'"
    assert (takes_it in left) is is_percentage
    if is_percentage:
        plan, _, _ = _decided(photos, table, f"{header}.ask=severity")
        column = plan.column(header)
        assert column is not None
        assert (column.ask, column.unit) == ("severity", "%")


def test_numbers_that_are_whole_names_of_photos_are_asked_about(photos):
    """Distinct counts may be numbers of photos by chance."""
    for number, path in enumerate(sorted(photos.iterdir()), start=1):
        path.rename(photos / f"{number}.jpg")
    table = photos.parent / "t.csv"
    rows = [f"{at};{at % 4}" for at in range(1, N_PHOTOS + 1)]
    table.write_text("\n".join(["Nr;Befall (%)", *rows]), encoding="utf-8")
    _, seen, readings = _decided(photos, table)
    assert _printed(readings)[0] == "images_column=Nr"
    assert len(seen.matched) == N_PHOTOS


def test_numbers_of_several_photos_are_no_names(photos):
    for path in sorted(photos.iterdir()):
        path.with_name(f"other{path.stem}.JPG").write_bytes(path.read_bytes())
    table = photos.parent / "t.csv"
    rows = [f"{1200 + at};{at % 4}" for at in range(N_PHOTOS)]
    table.write_text("\n".join(["Nr;Befall (%)", *rows]), encoding="utf-8")
    with pytest.raises(BenchmarkError, match="names a picture"):
        _decided(photos, table)


@pytest.mark.tools
def test_spellings_of_one_thing_are_one_label(photos):
    cells = ["Leaf Miner", "leaf_miner", "bicho mineiro", "Gala rot", "gala-rot", "healthy"] * 2
    table = _table(photos, "disease", cells)
    words = ["disease.crop=coffee", "disease.unknown_names=kept"]
    plan, seen, _ = _decided(photos, table, *words)
    out = photos.parent / "made"
    build_from_photos(seen, plan, out)
    (asked,) = stored_labels(load_folder(out).header.metadata)
    assert {each.label: each.n for each in asked.labels} == {
        "Gala rot": 4,
        "Leaf Miner": 6,
        "healthy": 2,
    }


def test_a_pack_may_have_any_spelling_of_a_label():
    names = ColumnNames.of(Column(column="d", ask="class"), ["Gala rot", "gala-rot", "Fuji rot"])
    assert {"Gala rot", "gala-rot"} <= {*names.ids_of("gala-rot")}
    assert "Fuji rot" not in names.ids_of("gala-rot")


@pytest.mark.parametrize(
    ("rows_behind", "words"),
    [
        (None, "the number of apples"),
        ("counted", "the number of apples (also those of rows behind)"),
        ("not-counted", "the number of apples (without those of rows behind)"),
    ],
)
def test_questions_say_whether_fruit_of_rows_behind_counts(rows_behind, words):
    column = Column(column="A", ask="count", target="apple", objects="apples")
    assert quantity_text(column.model_copy(update={"rows_behind": rows_behind})) == words
