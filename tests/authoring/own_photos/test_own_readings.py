"""What is read of a table, what is asked, and what is left: sheets, photos, copies, cells."""

import shutil
from datetime import date
from pathlib import Path

import pytest
from PIL import Image

from agrotools.core import BenchmarkError, UsageError
from agrotools.core.readings import Readings
from agrotools.formats.picture_folder import Images
from agrotools_build.own_photos.answering import (
    decide,
    say_what_is_read,
    split_settings,
    with_answers,
)
from agrotools_build.own_photos.building import answers_of, copies_that_differ
from agrotools_build.own_photos.plan import Column, Plan, SkippedRows
from agrotools_build.own_photos.proposal import propose_plan
from agrotools_build.own_photos.sheets import choose_sheet, sheets_together
from agrotools_build.own_photos.table import DetectedTable, match_rows

NAMES = [f"IMG_{number}.jpg" for number in range(1, 13)]
COUNTS = [["Photo", "Apples"], *([name, number] for number, name in enumerate(NAMES, start=1))]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number, name in enumerate(NAMES):
        Image.new("RGB", (40, 30), (30, 20 * number, 30)).save(folder / name)
    return folder


def _workbook(path: Path, sheets: dict[str, list[list]], hidden: str = "") -> Path:
    openpyxl = pytest.importorskip("openpyxl", reason="extra build")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    if hidden:
        book.active = next(at for at, name in enumerate(sheets) if name != hidden)
        book[hidden].sheet_state = "hidden"
    book.save(path)
    return path


def _read(photos: Path, table: Path, *words: str) -> tuple[Plan, Readings]:
    """Return the plan of a table as the command makes it, and what it read and asked."""
    readings = Readings()
    settings, others = split_settings(words)
    sheet = choose_sheet(photos, table, settings, readings)
    settings |= {"sheet": sheet} if sheet else {}
    together = sheets_together(photos, table, settings, readings)
    seen = match_rows(photos, table, None, readings, settings, together)
    plan = with_answers(propose_plan(seen, "x").plan, others, seen)
    plan = decide(plan, seen, readings)
    say_what_is_read(plan, seen, readings)
    return plan, readings


def test_a_column_that_needs_numbers_of_the_owner_is_left_out_beside_others(photos, tmp_path: Path):
    rows = [f"{name},{60 + at},{at}" for at, name in enumerate(NAMES)]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["photo,Mean diameter (mm),apples", *rows]), encoding="utf-8")
    plan, readings = _read(photos, table)
    assert readings.questions == []
    assert [each.column for each in plan.columns if each.is_asked] == ["apples"]
    (left,) = readings.left
    assert "--set 'Mean diameter (mm).distance_mm=NUMBER'" in left
    assert "--set 'Mean diameter (mm).fx_px=NUMBER'" in left
    numbers = ("Mean diameter (mm).distance_mm=400", "Mean diameter (mm).fx_px=3000")
    plan, readings = _read(photos, table, *numbers)
    assert [each.ask for each in plan.columns] == ["diameter", "count"]
    table.write_text("\n".join(["photo,Mean diameter (mm)", *(row[:-2] for row in rows)]))
    with pytest.raises(BenchmarkError, match="distance_mm=NUMBER"):
        _read(photos, table)


@pytest.mark.parametrize(
    ("file", "suggested"), [("t.csv", "CROP"), ("bean_2026.csv", "bean"), ("feijão.csv", "bean")]
)
def test_the_printed_answer_on_the_crop_never_drops_the_column(
    photos, tmp_path: Path, file, suggested
):
    rows = [f"{name},{['rust', 'healthy'][at % 2]}" for at, name in enumerate(NAMES)]
    table = tmp_path / file
    table.write_text("\n".join(["photo,disease", *rows]), encoding="utf-8")
    _, readings = _read(photos, table)
    assert [each.proposed for each in readings.questions] == [suggested]
    assert [bool(each.placeholder) for each in readings.questions] == [suggested == "CROP"]
    with pytest.raises(UsageError, match="only you know"):
        _read(photos, table, "disease.crop=CROP")
    plan, readings = _read(photos, table, "disease.crop=feijão")
    assert (plan.columns[0].crop, readings.questions) == ("bean", [])


def test_a_photo_whose_name_repeats_is_named_with_its_folder(photos, tmp_path: Path):
    for block in ("block_A", "block_B"):
        (photos / block).mkdir()
        shutil.copy(photos / "IMG_1.jpg", photos / block / "IMG_1.jpg")
    images = Images(photos)
    shown = [images.shown_name(photos / name) for name in ("block_A/IMG_1.jpg", "IMG_2.jpg")]
    assert shown == ["block_A/IMG_1.jpg", "IMG_2.jpg"]


def test_rows_of_totals_and_near_names_are_told_from_missing_photos(photos, tmp_path: Path):
    (photos / "IMG_5.jpg").rename(photos / "IMG_5 (1).jpg")
    (photos / "IMG_6.jpg").rename(photos / "img-006.JPG")
    table = tmp_path / "t.csv"
    rows = [f"{name},{at}" for at, name in enumerate(NAMES[:10])]
    ends = [
        "Total,99",
        "Mean,4.5",
        "Obs.: two photos were lost with the telephone,",
        "IMG_91.jpg,3",
    ]
    table.write_text("\n".join(["photo,apples", *rows, *ends]), encoding="utf-8")
    readings = Readings()
    seen = match_rows(photos, table, None, readings)
    notes, near, missing = seen.skipped.lines()
    assert "3 (Total, Mean, Obs.: two" in notes
    assert "is a row of totals or notes" in notes
    assert "IMG_5.jpg: is it IMG_5 (1).jpg?, IMG_6.jpg: is it img-006.JPG?" in near
    assert "1 x 'IMG_91.jpg'" in missing
    named = "IMG_11.jpg, IMG_12.jpg, IMG_5 (1).jpg, img-006.JPG"
    missing = "IMG_5.jpg: is it IMG_5 (1).jpg?, IMG_6.jpg: is it img-006.JPG?, IMG_91.jpg"
    assert readings.left == [
        f"3 rows without a photo ({missing})",
        f"4 photos without a row ({named})",
    ]


def test_the_visible_sheet_is_read_and_the_hidden_one_named(photos, tmp_path: Path):
    table = _workbook(tmp_path / "t.xlsx", {"old": COUNTS, "2026": COUNTS}, hidden="old")
    plan, readings = _read(photos, table)
    assert plan.sheet == "2026"
    assert readings.taken == [
        'sheet "2026"',
        "photo from column Photo",
        "apples from column Apples",
    ]
    assert readings.left == ['hidden sheet "old"']
    assert readings.questions == []


@pytest.mark.parametrize(
    "first", [[["Trial 7"], ["Who", "Ann"]], [["Photo", "Observer"], ["x", "y"]], []]
)
def test_photos_are_found_on_the_second_sheet(photos, tmp_path: Path, first):
    table = _workbook(tmp_path / "t.xlsx", {"Notes": first, "Data": COUNTS})
    plan, readings = _read(photos, table)
    assert (plan.sheet, readings.left, readings.questions) == ("Data", ['sheet "Notes"'], [])


def test_it_is_asked_which_of_two_sheets_with_photos_is_meant(photos, tmp_path: Path):
    blocks = {"Block A": COUNTS[:7], "Block B": [COUNTS[0], *COUNTS[7:]]}
    table = _workbook(tmp_path / "t.xlsx", blocks)
    _, readings = _read(photos, table)
    (question,) = readings.questions
    assert question.option == "--set=sheet"
    assert [tuple(choice) for choice in question.choices] == [
        ("all", "12 rows with a photo, their sheet in a column"),
        ("Block A", "6 rows with a photo"),
        ("Block B", "6 rows with a photo"),
    ]
    assert readings.left == [], "all data are proposed"
    _, readings = _read(photos, table, "sheet=Block A")
    assert readings.left[0] == 'sheet "Block B"'
    assert readings.left[1].startswith("6 photos without a row (IMG_10.jpg, ")
    chosen = Readings()
    assert choose_sheet(photos, table, {"sheet": "Block B"}, chosen) == "Block B"
    assert chosen.left == ['sheet "Block A"']
    listed = {"Counts": COUNTS, "Photos": [[name] for name, _ in COUNTS]}
    _, readings = _read(photos, _workbook(tmp_path / "u.xlsx", listed))
    assert readings.questions == [], "a list of photos without answers is not meant"


def _read_all(photos: Path, table: Path) -> tuple[DetectedTable, Readings]:
    readings = Readings()
    sheet = choose_sheet(photos, table, {"sheet": "all"}, readings)
    assert sheet is not None
    settings = {"sheet": sheet}
    together = sheets_together(photos, table, settings, readings)
    return match_rows(photos, table, None, readings, settings, together), readings


def test_all_sheets_are_read_as_one_table_with_their_names(photos, tmp_path: Path):
    sheets = {
        "2025": COUNTS[:7],
        "Notes": [["Trial 7"]],
        "2026": [["File", "Observer", "apples"], *([name, "Ann", n] for name, n in COUNTS[7:])],
        "old": COUNTS,
    }
    seen, readings = _read_all(photos, _workbook(tmp_path / "t.xlsx", sheets, hidden="old"))
    assert seen.table.columns == ("Photo", "Apples", "Observer", "sheet")
    found = {image.name: (cells[1], cells[3]) for _, image, cells in seen.matched}
    assert found == {
        name: (str(number), "2025" if number <= 6 else "2026") for name, number in COUNTS[1:]
    }
    assert readings.questions == []
    assert readings.left == ['sheet "Notes"', 'hidden sheet "old"']
    plan = propose_plan(seen, "x").plan
    assert plan.sheet == "all"
    kinds = {column.column: column.ask for column in plan.columns}
    assert (kinds["Apples"], kinds["sheet"]) == ("count", "slice")


def test_a_photo_with_other_answers_on_two_sheets_is_left_out(photos, tmp_path: Path):
    sheets = {"2025": COUNTS[:3], "2026": [COUNTS[0], [NAMES[0], 9], [NAMES[2], 3]]}
    seen, _ = _read_all(photos, _workbook(tmp_path / "t.xlsx", sheets))
    skipped = SkippedRows()
    column = next(each for each in propose_plan(seen, "x").plan.columns if each.is_asked)
    answers = answers_of(seen, column, skipped)
    assert {image.name: value for image, value in answers.items()} == {NAMES[1]: 2, NAMES[2]: 3}
    (line,) = skipped.lines()
    assert "1.0 (row 2 of 2025)" in line
    assert "9.0 (row 2 of 2026)" in line


def test_a_sheet_called_all_is_that_sheet(photos, tmp_path: Path):
    table = _workbook(tmp_path / "t.xlsx", {"all": COUNTS[:7], "more": [COUNTS[0], *COUNTS[7:]]})
    readings = Readings()
    assert choose_sheet(photos, table, {"sheet": "all"}, readings) == "all"
    assert sheets_together(photos, table, {"sheet": "all"}, readings) == ()
    assert readings.left == ['sheet "more"']


def test_a_workbook_without_photos_says_what_its_sheets_lack(photos, tmp_path: Path):
    table = _workbook(tmp_path / "t.xlsx", {"a": [["x", "y"], [1, 2]], "old": COUNTS}, hidden="old")
    with pytest.raises(BenchmarkError, match=r"no visible sheet of t\.xlsx") as told:
        choose_sheet(photos, table, {}, Readings())
    assert "old (hidden)" in str(told.value.hint)


def test_it_is_asked_which_of_two_columns_names_the_photos(photos, tmp_path: Path):
    table = tmp_path / "t.csv"
    rows = "".join(f"{NAMES[at]},{NAMES[at - 1]},{at}\n" for at in range(12))
    table.write_text(f"before,after,apples\n{rows}")
    _, readings = _read(photos, table)
    (question,) = readings.questions
    assert (question.option, question.choices[1].value) == ("--set=images_column", "after")
    same = "".join(f"{name},photos/{name},{at}\n" for at, name in enumerate(NAMES))
    table.write_text(f"name,path,apples\n{same}")
    assert _read(photos, table)[1].questions == []


def test_merged_ranges_and_number_formats_are_read_as_they_are_shown(photos, tmp_path: Path):
    openpyxl = pytest.importorskip("openpyxl", reason="extra build")
    diseases = ("coffee rust", "coffee leaf miner", "healthy")
    rows = [
        [name, diseases[at // 4], (at + 1) / 20, at + 1.5, (at + 1) / 20]
        for at, name in enumerate(NAMES)
    ]
    header = ["Photo", "Disease", "Severity", "Fruit diameter", "Cover"]
    book = openpyxl.load_workbook(
        _workbook(tmp_path / "t.xlsx", {"a": [["Trial 7"], header, *rows]})
    )
    for area in ("A1:E1", "B3:B6", "B7:B10", "B11:B14"):
        book.active.merge_cells(area)
    for row in range(3, 15):
        book.active[f"C{row}"].number_format = '0.00"%"'
        book.active[f"D{row}"].number_format = '0.0" mm"'
        book.active[f"E{row}"].number_format = "0%"
    book.save(tmp_path / "t.xlsx")
    seen = match_rows(photos, tmp_path / "t.xlsx", None, readings := Readings())
    shown = {each.cells[0]: each.cells[1:] for each in seen.matched}
    assert shown[NAMES[3]] == ("coffee rust", "0.2 %", "4.5 mm", "20 %")
    assert [shown[name][0] for name in NAMES] == [diseases[at // 4] for at in range(12)]
    assert "3 merged ranges (all cells have the value of their range)" in readings.taken


def test_a_format_of_the_last_cell_is_not_read(photos, tmp_path: Path):
    openpyxl = pytest.importorskip("openpyxl", reason="extra build")
    book = openpyxl.load_workbook(_workbook(tmp_path / "t.xlsx", {"a": COUNTS}))
    book.active["XFD1048576"].number_format = "0.00"
    book.save(tmp_path / "t.xlsx")
    seen = match_rows(photos, tmp_path / "t.xlsx")
    assert (seen.rows, seen.table.columns) == (12, ("Photo", "Apples"))


@pytest.mark.parametrize(
    "cell",
    ["3 dozen", "1O", "12 pears", "5 dead", "4 kg", "2 of 7", "~5", "3-4", "7 and more", "six"],
)
def test_a_cell_with_other_words_is_no_number(photos, tmp_path: Path, cell):
    table = tmp_path / "t.csv"
    table.write_text(f"photo,apples\n{NAMES[0]},{cell}\n{NAMES[1]},6 apples\n{NAMES[2]},8 pcs\n")
    seen, skipped = match_rows(photos, table), SkippedRows()
    found = answers_of(seen, Column(column="apples", ask="count", target="apple"), skipped)
    assert {image.name: value for image, value in found.items()} == {NAMES[1]: 6, NAMES[2]: 8}
    assert repr(cell) in skipped.lines()[0]


def test_copies_of_a_photo_with_other_answers_are_left_out(photos, tmp_path: Path):
    for name in ("copy.jpg", "same.jpg"):
        shutil.copy(photos / NAMES[0 if name == "copy.jpg" else 1], photos / name)
    table = tmp_path / "t.csv"
    table.write_text(
        f"photo,apples\n{NAMES[0]},1\n{NAMES[1]},2\n{NAMES[2]},3\ncopy.jpg,40\nsame.jpg,2\n"
    )
    seen, skipped = match_rows(photos, table), SkippedRows()
    found = answers_of(seen, Column(column="apples", ask="count", target="apple"), skipped)
    assert {image.name: value for image, value in found.items()} == {NAMES[1]: 2, NAMES[2]: 3}
    said = " ".join(skipped.lines())
    assert f"{NAMES[0]}: 1.0 and copy.jpg: 40.0" in said
    assert "'same.jpg' is a copy of another photo" in said


def test_copies_by_name_with_other_answers_are_kept_and_named(photos, tmp_path: Path):
    copies = []
    for number, name in enumerate(NAMES[:2]):
        copy = photos / f"{name[:-4]}_jpg.rf.{'0' * 32}.jpg"
        Image.new("RGB", (40, 30), (200, 80 * number, 0)).save(copy)
        copies.append((photos / name, copy))
    rows = [*COUNTS, [copies[0][1].name, 9], [copies[1][1].name, 2]]
    seen = match_rows(photos, _csv(tmp_path / "t.csv", rows))
    column = Column(column="Apples", ask="count", target="apple")
    values = {"Apples": answers_of(seen, column, SkippedRows())}
    (said,) = copies_that_differ(copies, [column], values, seen)
    assert f"{NAMES[0]}: 1.0 and {copies[0][1].name}: 9.0" in said
    assert NAMES[1] not in said, "the answers of these are alike"


def test_photos_are_found_under_the_name_of_the_phone(photos, tmp_path: Path):
    shutil.copy(photos / NAMES[5], photos / "IMG_1.png")  # two pictures have this name
    table = tmp_path / "t.csv"
    rows = "".join(f"{name.replace('.jpg', '.HEIC')},{at}\n" for at, name in enumerate(NAMES))
    table.write_text(f"photo,apples\n{rows}")
    seen = match_rows(photos, table, None, readings := Readings())
    assert [each.image.name for each in seen.matched] == NAMES[1:]
    assert "11 by the name alone: IMG_2.jpg for IMG_2.HEIC" in readings.taken[0]
    images = Images(photos)
    assert [
        images.find_by_stem(cell) for cell in ("south/IMG_2.HEIC", "south/IMG_2.jpg", "IMG_2")
    ] == [None] * 3


def test_photos_that_are_not_used_are_named(photos):
    skipped = SkippedRows()
    for name in NAMES[:4]:
        skipped.add("Apples", "is in no question", "raise samples", example=name)
    (line,) = skipped.lines()
    assert all(name in line for name in NAMES[:4])


def test_unknown_names_are_asked_about_and_a_near_one_is_proposed(photos, tmp_path: Path):
    table = tmp_path / "t.csv"
    names = ["rust", "leaf miner", "healthy", "xyz", "miner?", "#N/A"] * 2
    rows = "".join(f"{photo},{name}\n" for photo, name in zip(NAMES, names, strict=True))
    table.write_text(f"photo,Diagnóstico\n{rows}", encoding="utf-8")
    plan, readings = _read(photos, table)
    assert [question.option for question in readings.questions] == [
        "--set=Diagnóstico.names.xyz", "--set=Diagnóstico.names.miner?"
    ]  # fmt: skip
    assert [each.proposed for each in readings.questions] == ["xyz", "coffee leaf miner"]
    for question in readings.questions:
        assert "healthy" in [choice.value for choice in question.choices]
    assert plan.columns[0].names == {"xyz": "xyz", "miner?": "coffee leaf miner"}
    assert readings.left == ["2 x #N/A of column Diagnóstico (taken as empty)"]
    assert "2 x 'xyz' of column Diagnóstico as it is (no tool can return it)" in readings.taken
    _, readings = _read(
        photos, table, "Diagnóstico.names.xyz=healthy", "Diagnóstico.names.miner?=leaf miner"
    )
    assert readings.questions == []


@pytest.mark.parametrize(
    ("header", "rows", "taken"),
    [
        ("Photo,Apples", "{},{}", ["apples"]),
        ("filename,label", "{},coffee rust;{},coffee leaf miner", ["disease"]),
        ("Photo,Severity (%),Disease,Observer", "{},{}.5,coffee rust,Ann;{},{},healthy,Bob",
         ["severity in %", "disease"]),
        ("Foto,Enfermedad,Severidad (%),Fecha", "{},roya del café,{}.5,2026-05-01;{},sana,1{},2026-05-02",
         ["disease", "severity in %", "groups"]),
        ("Bild,Anzahl Äpfel,Bemerkung", "{},{},nass;{},{},", ["apples"]),
        ("image,trees,Lat,Lon,Elevation (m)", "{},{},45.123,9.2,120;{},{},45.124,9.3,121", ["trees"]),
        ("Photo,Block,Tree no,Apples,Apple weight (g)", "{},A,{},3,120.5;{},B,{},4,110.2", ["groups", "apples"]),
        ("照片,苹果数量,备注", "{},{}个,晴;{},{}个,", ["apples"]),
        ("photo,weed,weed cover (%)", "{},Lantana,{}.2;{},Parthenium,1{}", ["weed", "weed cover in %"]),
        ("Photo,Diseased,Variety", "{},yes,Gala;{},no,Fuji", ["diseased"]),
        ("photo,apples_1,apples_2", "{},{},{}", ["apples"]),
        ("Photo,Cover (%),Yield (t/ha),Irrigated", "{},{}.5,7.5,yes;{},3{},8.1,no", ["cover in %"]),
    ],
)  # fmt: skip
def test_ordinary_files_raise_no_question(photos, tmp_path: Path, header, rows, taken):
    ways, lines = rows.split(";"), [header]
    for at, name in enumerate(NAMES, start=1):
        lines.append(ways[at % len(ways)].replace("{}", name, 1).replace("{}", str(at)))
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    _, readings = _read(photos, tmp_path / "t.csv")
    assert readings.questions == []
    assert [each.partition(" from ")[0] for each in readings.taken[1:]] == taken


@pytest.mark.parametrize(
    ("folders", "n_matched"), [(("photos/2025",), 12), (("photos/2024", "photos/2025"), 0)]
)
def test_paths_of_the_table_are_matched_by_their_end(photos, tmp_path: Path, folders, n_matched):
    written = [f"{folder}/{name}" for folder in folders for name in NAMES]
    rows = [f"{path},{at}" for at, path in enumerate(written, start=3)]
    (tmp_path / "t.csv").write_text("\n".join(["photo,Apples", *rows]), encoding="utf-8")
    readings = Readings()
    if n_matched == 0:
        with pytest.raises(BenchmarkError, match="ends like another path"):
            match_rows(photos, tmp_path / "t.csv", readings=readings)
    else:
        seen = match_rows(photos, tmp_path / "t.csv", readings=readings)
        assert len(seen.matched) == n_matched
        assert written[0] in readings.taken[0]


def test_formulas_without_a_value_are_empty_cells_that_are_named(photos, tmp_path: Path):
    rows = [*COUNTS[:-2], [NAMES[-2], "=1+1"], [NAMES[-1], "=A1"]]
    path = _workbook(tmp_path / "t.xlsx", {"2026": rows})
    seen = match_rows(photos, path)
    assert [each.cells[1] for each in seen.matched[-3:]] == ["10", "", ""]
    (line,) = seen.skipped.lines()
    assert all(part in line for part in ('"2026"', "B12", "B13", "LibreOffice"))


def test_dates_and_struck_cells_are_no_values(photos, tmp_path: Path):
    openpyxl = pytest.importorskip("openpyxl", reason="extra build")
    rows = [*COUNTS[:-1], [NAMES[-1], date(2026, 3, 5)]]
    path = _workbook(tmp_path / "t.xlsx", {"2026": rows})
    book = openpyxl.load_workbook(path)
    book["2026"]["B2"].font = openpyxl.styles.Font(strike=True)
    book.save(path)
    seen = match_rows(photos, path)
    plan = propose_plan(seen, "x").plan
    skipped = SkippedRows()
    answers = answers_of(seen, plan.columns[0], skipped)
    assert len(answers) == 10
    lines = " ".join(skipped.lines())
    assert "is a date" in lines
    assert "is struck through" in lines


def _with_names(photos: Path, names: list[str]) -> Path:
    table = photos.parent / "t.csv"
    rows = [f"{name},{number}" for number, name in enumerate(names, start=1)]
    table.write_text("\n".join(["Photo,Apples", *rows]))
    return table


def test_a_build_stops_where_most_rows_and_photos_find_no_partner(photos):
    """What is left of misspelt names would be the exceptions: three of twelve photos."""
    misspelt = [name.replace("IMG_", "IGM_") for name in NAMES[3:]]
    table = _with_names(photos, [*NAMES[:3], *misspelt])
    with pytest.raises(BenchmarkError, match=r"9 of 12 rows of t\.csv name no picture") as stopped:
        match_rows(photos, table)
    assert "9 of its 12 pictures have no row" in stopped.value.message
    assert "'IGM_4.jpg' in row 5 (nearest: IMG_4.jpg)" in stopped.value.message
    assert stopped.value.message.endswith("; and 4 more")
    assert "column 'Photo'" in str(stopped.value.hint)


def test_a_table_of_more_photos_than_the_folder_has_is_read(photos):
    others = [f"IMG_{number}.jpg" for number in range(100, 140)]
    _, readings = _read(photos, _with_names(photos, [*NAMES, *others]))
    (line,) = readings.left
    assert line.startswith("40 rows without a photo (IMG_100.jpg, IMG_101.jpg, ")
    assert line.endswith(" and 28 more)")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("IGM_7.jpg", "IGM_7.jpg: is it IMG_7.jpg?"),
        ("IMGG_007", "IMGG_007: is it IMG_7.jpg?"),
        ("img (7).jpg", "img (7).jpg: is it IMG_7.jpg?"),
        # Another number is another photo.
        ("IMG_17.jpg", "IMG_17.jpg"),
        ("scan_7.jpg", "scan_7.jpg"),
    ],
)
def test_a_misspelt_name_has_the_near_one_beside_it(photos, written, said):
    names = [written if name == "IMG_7.jpg" else name for name in NAMES]
    _, readings = _read(photos, _with_names(photos, names))
    assert f"1 row without a photo ({said})" in readings.left


def test_numbers_in_brackets_tell_photos_apart(photos):
    for number, name in enumerate(NAMES, start=1):
        (photos / name).rename(photos / f"tree ({number}).jpeg")
    names = [f"tree ({number})" if number % 4 else f"Tree({number}).jpg" for number in range(1, 13)]
    _, readings = _read(photos, _with_names(photos, names))
    assert readings.left[0] == (
        "3 rows without a photo (Tree(4).jpg: is it tree (4).jpeg?, "
        "Tree(8).jpg: is it tree (8).jpeg?, Tree(12).jpg: is it tree (12).jpeg?)"
    )


def test_words_that_are_taken_as_empty_are_told(photos, tmp_path: Path):
    table = tmp_path / "t.csv"
    names = ["leaf rust", "none", "powdery mildew", "n/a"] * 3
    rows = "".join(f"{photo},{name}\n" for photo, name in zip(NAMES, names, strict=True))
    table.write_text(f"Photo,Disease\n{rows}")
    _, readings = _read(photos, table, "Disease.crop=wheat")
    assert readings.left == [
        '3 x none of column Disease (taken as empty; write "healthy" if nothing was found)',
        "3 x n/a of column Disease (taken as empty)",
    ]


@pytest.mark.parametrize(
    ("days", "ask"),
    [([1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3], "slice"), (range(1, 13), "nothing")],
)
def test_days_of_one_photo_each_are_no_groups(photos, tmp_path: Path, days, ask):
    table = tmp_path / "t.csv"
    rows = [f"{name},2025-06-{day:02d},{day}" for name, day in zip(NAMES, days, strict=True)]
    table.write_text("\n".join(["Photo,Date,Apples", *rows]))
    plan, _ = _read(photos, table)
    assert plan.columns[0].ask == ask


def _csv(path: Path, rows: list[list]) -> Path:
    path.write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n", encoding="utf-8")
    return path


def _questions(photos: Path, table: Path, *words: str) -> dict[str, str]:
    """Return the proposed answers to the questions on a table, by option."""
    _, readings = _read(photos, table, *words)
    return {each.option: each.proposed for each in readings.questions}


@pytest.mark.parametrize(
    ("head", "proposed", "columns"),
    [
        (["Foto,Manzanas,,Fecha", ",verdes,rojas,"], "1-2", ["Manzanas verdes", "Manzanas rojas", "Fecha"]),
        (["Photo,Height,Severity,Day", ",(cm),(%),"], "1-2", ["Height (cm)", "Severity (%)", "Day"]),
        (["Trial 7,,,", "Photo,2024,2025,Day"], "2", ["2024", "2025", "Day"]),
        (["Photo,Severity (%),,Day", ",1,2,"], "1", ["Severity (%)", "column 3", "Day"]),
    ],
)  # fmt: skip
def test_it_is_asked_whether_a_row_below_the_header_belongs_to_it(
    photos, tmp_path: Path, head, proposed, columns
):
    table = tmp_path / "t.csv"
    lines = [f"{name},{at},{20 + at},{at % 2}" for at, name in enumerate(NAMES)]
    table.write_text("\n".join([*head, *lines]))
    assert _questions(photos, table)["--set=header"] == proposed
    plan, readings = _read(photos, table, f"header={proposed}")
    assert [each.column for each in plan.columns] == columns
    assert plan.header == proposed, "the plan reads the table again as the answer says"
    assert "--set=header" not in [each.option for each in readings.questions]


@pytest.mark.parametrize(
    "first",
    [
        ["", 3, "wet"],
        ["IMG_99.jpg", 3, "wet"],
        ["Total", 30, "wet"],
        ["Block A", "Block A", "Block A"],  # a merged cell, as it is read
    ],
)
def test_a_first_row_without_its_photo_is_no_header(photos, tmp_path: Path, first):
    rows = [["photo", "apples", "note"], first, *([name, 4, "dry"] for name in NAMES)]
    assert _questions(photos, _csv(tmp_path / "t.csv", rows)) == {}


def test_an_encoding_in_doubt_is_asked_for_with_the_words_that_it_gives(photos, tmp_path: Path):
    table = tmp_path / "t.csv"
    rows = [f"{name};{at}" for at, name in enumerate(NAMES)]
    table.write_text("\n".join(["Zdjęcie;Jabłka na gałęzi, środa", *rows]), encoding="cp1250")
    seen = match_rows(photos, table, None, readings := Readings())
    (question,) = readings.questions
    assert question.option == "--set=encoding"
    assert {choice.value: choice.gives.split(", ")[0] for choice in question.choices} == {
        "cp1250": "Zdjęcie",
        "cp1252": "Zdjêcie",
    }
    assert question.proposed == seen.table.encoding == "cp1250"
    seen = match_rows(photos, table, None, readings := Readings(), {"encoding": "cp1252"})
    assert (seen.images_column, readings.questions) == ("Zdjêcie", [])


def test_letters_that_code_pages_read_differently_are_said(photos, tmp_path: Path):
    table = tmp_path / "t.csv"
    rows = [f"{name};{at}" for at, name in enumerate(NAMES)]
    table.write_text("\n".join(["Zdjęcie;Jabłka", *rows]), encoding="cp1250")
    seen = match_rows(photos, table, None, readings := Readings())
    assert (seen.images_column, readings.questions) == ("Zdjêcie", [])
    (line,) = [each for each in readings.taken if "encoding" in each]
    assert "latin-1: Zdjêcie" in line
    assert "--set=encoding=cp1250 reads Zdjęcie" in line
    seen = match_rows(photos, table, None, readings := Readings(), {"encoding": "cp1250"})
    assert seen.images_column == "Zdjęcie"
    assert not any("encoding" in each for each in readings.taken)

    table.write_text("\n".join(["Photo;Äpfel", *rows]), encoding="latin-1")
    match_rows(photos, table, None, readings := Readings())
    assert not any("encoding" in each for each in readings.taken)


def test_an_encoding_that_all_code_pages_read_alike_is_not_asked_for(photos, tmp_path: Path):
    table = tmp_path / "t.csv"
    rows = [f"{name};{at}" for at, name in enumerate(NAMES)]
    table.write_text("\n".join(["Photo;Apples – all", *rows]), encoding="cp1252")
    seen = match_rows(photos, table, None, readings := Readings())
    assert readings.questions == []
    assert "t.csv in the encoding cp1252" in readings.taken
    assert seen.table.columns == ("Photo", "Apples – all")


@pytest.mark.parametrize("header", ["Photo", "Image name", "Leaf"])
def test_rows_below_a_second_header_are_another_table(photos, tmp_path: Path, header):
    lower = [[header, "Lesions"], *([name, 30] for name in NAMES[8:])]
    table = _csv(tmp_path / "t.csv", [*COUNTS[:5], COUNTS[0], *COUNTS[5:9], *lower])
    seen = match_rows(photos, table, None, readings := Readings())
    assert [image.name for _, image, _ in seen.cells_of("Apples")] == NAMES[:8]
    (dropped,) = [
        line for line in seen.skipped.lines() if f"another header ({header}, Lesions)" in line
    ]
    assert NAMES[8] in dropped
    assert f"the rows below row 11, which have another header ({header}, Lesions)" in readings.left
    assert (seen.rows, seen.n_elsewhere) == (8, 4)


def test_a_photo_without_a_number_is_no_second_header(photos, tmp_path: Path):
    (photos / "IMG_5.jpg").rename(photos / "north.jpg")
    rows = [["north" if name == "IMG_5.jpg" else name, at] for at, name in enumerate(NAMES)]
    rows[4][1] = "many"
    seen = match_rows(photos, _csv(tmp_path / "t.csv", [["Photo", "Apples"], *rows]))
    assert len(seen.matched) == len(NAMES)


def test_columns_behind_other_photos_are_left(photos, tmp_path: Path):
    """Two tables side by side have one row for two photos."""
    head = ["Photo", "Apples", "", "Photo", "Severity (%)"]
    rows = [[name, at, "", NAMES[-at], at + 3] for at, name in enumerate(NAMES)]
    table = _csv(tmp_path / "t.csv", [head, *rows])
    for photo_column, asked in (("Photo", "Apples"), ("Photo (2)", "Severity (%)")):
        plan, readings = _read(photos, table, f"images_column={photo_column}")
        assert [each.column for each in plan.columns if each.is_asked] == [asked]
        other = {"Apples": "Severity (%)", "Severity (%)": "Apples"}[asked]
        assert any(other in left and "other photos" in left for left in readings.left)
    adjacent = [["Before", "After", "Apples"], *([n, NAMES[-at], at] for at, n in enumerate(NAMES))]
    plan, _ = _read(photos, _csv(tmp_path / "u.csv", adjacent), "images_column=Before")
    assert [each.column for each in plan.columns if each.is_asked] == ["Apples"]


def test_rows_that_name_a_photo_in_another_column_are_never_of_the_photo_above(
    photos, tmp_path: Path
):
    """A form with two questions for a photo has one of them in each row."""
    rows = [[name, "", at, ""] for at, name in enumerate(NAMES[:4])]
    rows += [["", name, "", at] for at, name in enumerate(NAMES[4:])]
    table = _csv(tmp_path / "t.csv", [["Leaf photo", "Tree photo", "Spots", "Apples"], *rows])
    for column, named in (("Leaf photo", NAMES[:4]), ("Tree photo", NAMES[4:])):
        given = {"images_column": column, "unnamed_rows": "above"}
        seen = match_rows(photos, table, None, readings := Readings(), given)
        assert [each.image.name for each in seen.matched] == named
        assert readings.questions == []
        other = {"Leaf photo": "Tree photo", "Tree photo": "Leaf photo"}[column]
        assert any(f"--set=images_column={other}" in left for left in readings.left)


def test_it_is_asked_whether_rows_without_a_photo_are_of_the_photo_above(photos, tmp_path: Path):
    """A CSV file has the text of merged cells once."""
    rows = [[name if part == 0 else "", 10 * part + 5] for name in NAMES for part in range(3)]
    rows += [["", "Total"]]
    table = _csv(tmp_path / "t.csv", [["Photo", "Severity (%)"], *rows])
    asked = {"--set=unnamed_rows": "above", "--set=Severity (%).repeated": "refuse"}
    assert _questions(photos, table) == asked
    plan, _ = _read(photos, table, "unnamed_rows=above")
    assert plan.unnamed_rows == "above"
    for answer, numbers in (("above", [5.0, 15.0, 25.0]), ("left-out", [5.0])):
        seen = match_rows(photos, table, None, Readings(), {"unnamed_rows": answer})
        found = [
            float(text)
            for _, image, text in seen.cells_of("Severity (%)")
            if image.name == NAMES[3]
        ]
        assert found == numbers
