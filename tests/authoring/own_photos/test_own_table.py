"""Tables, cells and folders of pictures as people have them."""

from pathlib import Path
from unicodedata import normalize

import pytest

from agrotools.core import BenchmarkError
from agrotools.formats.picture_folder import Images
from agrotools.text import cells
from agrotools.text.cells import CellQuantity
from agrotools.text.decimal_marks import NumberText, detect_decimal
from agrotools.text.tables import CellFault, open_table

TEXT = "photo,Größe (mm),Befund\nIMG_1.jpg,12,Mehltau\nIMG_2.jpg,15,Rost\n"
CHINESE = "照片,株高,病害\nIMG_1.jpg,12厘米,叶锈病\nIMG_2.jpg,15厘米,白粉病\n"


@pytest.mark.parametrize(
    ("text", "encoding", "found"),
    [
        (TEXT, "utf-8", "utf-8"), (TEXT, "utf-8-sig", "utf-8"), (TEXT, "latin-1", "latin-1"),
        (CHINESE, "gb18030", "gb18030"), (CHINESE, "utf-8", "utf-8"), (CHINESE, "utf-16", "utf-16"),
    ],
)  # fmt: skip
def test_the_encoding_of_a_table_is_found_and_said(text, encoding, found, tmp_path: Path):
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    table = open_table(tmp_path / "t.csv")
    assert table.encoding == found
    assert found in table.described
    assert table.columns == tuple(text.splitlines()[0].split(","))
    assert [row for row, _ in table.rows()] == [2, 3]
    assert [cells[2] for _, cells in table.rows()] == [
        line.split(",")[2] for line in text.splitlines()[1:]
    ]


def test_sheets_are_read_as_tables(tmp_path: Path):
    openpyxl = pytest.importorskip("openpyxl", reason="extra build")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "scouting"
    sheet.append(["photo", "share", "sick", "apples"])
    sheet.append(["a.jpg", 0.35, True, 12])
    sheet.append([None, None, None, None])
    sheet.append(["b.jpg", 0.1, False, 3.0])
    for row in (2, 4):
        sheet.cell(row, 2).number_format = "0%"
    book.create_sheet("notes")
    book.save(tmp_path / "t.xlsx")
    table = open_table(tmp_path / "t.xlsx")
    assert table.sheet == "scouting"
    assert list(table.rows()) == [
        (2, ("a.jpg", "35 %", "yes", "12")),
        (4, ("b.jpg", "10 %", "no", "3")),
    ]
    with pytest.raises(BenchmarkError, match="no sheet 'other'"):
        open_table(tmp_path / "t.xlsx", sheet="other")
    sheet.append(["c.jpg", "=B2*2", True, 1])
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(BenchmarkError, match="cell B5 has a formula, but not its value") as told:
        open_table(tmp_path / "t.xlsx")
    assert "open it in Excel or LibreOffice" in str(told.value.hint)
    (tmp_path / "broken.xlsx").write_bytes(b"PK no workbook")
    with pytest.raises(BenchmarkError, match="cannot be read as a workbook"):
        open_table(tmp_path / "broken.xlsx")


def test_hidden_rows_columns_and_sheets_of_a_workbook_are_counted(tmp_path: Path):
    openpyxl = pytest.importorskip("openpyxl", reason="extra build")
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["photo", "apples", "pears"], *([f"{k}.jpg", k, k] for k in range(8))):
        sheet.append(row)
    book.create_sheet("notes")
    book.save(tmp_path / "t.xlsx")
    assert open_table(tmp_path / "t.xlsx").hidden == ""
    for row in (3, 5, 40):  # row 40 is empty
        sheet.row_dimensions[row].hidden = True
    sheet.column_dimensions["C"].hidden = True
    book.save(tmp_path / "t.xlsx")
    table = open_table(tmp_path / "t.xlsx")
    assert table.hidden.startswith("2 hidden rows (row 3, 5), 1 hidden column (pears)")
    assert table.hidden in table.described
    assert len(list(table.rows())) == 8
    sheet.sheet_state = "hidden"
    book.active = 1
    book.save(tmp_path / "t.xlsx")
    assert open_table(tmp_path / "t.xlsx").hidden.startswith("a hidden sheet, 2 hidden rows")


def test_columns_of_one_name_are_refused_where_they_are_read(tmp_path: Path):
    (tmp_path / "t.csv").write_text("Score,model,score,note,note\n1,a,0,x,y\n")
    table = open_table(tmp_path / "t.csv")
    assert table.alike == (("Score", "score"), ("note", "note (2)"))
    table.check_names("model", "sample")
    with pytest.raises(BenchmarkError, match=r"'Score' \(column 1\), 'score' \(column 3\)"):
        table.check_names("model", "score")


def test_header_names_are_made_unique_and_long_rows_are_refused(tmp_path: Path):
    (tmp_path / "t.csv").write_text("photo,count,,count\n\na.jpg,1\nb.jpg,2,3,4,\nc.jpg,2,3,4,5\n")
    table = open_table(tmp_path / "t.csv")
    assert table.columns == ("photo", "count", "column 3", "count (2)")
    rows = table.rows()
    assert [next(rows)[1], next(rows)[1]] == [("a.jpg", "1"), ("b.jpg", "2", "3", "4")]
    with pytest.raises(BenchmarkError, match="row 5 has 5 cells, but there are 4 columns"):
        next(rows)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b'photo,count\na.jpg,"' + b"x" * 200_000 + b"\n", "row 2 is not a row of a table"),
    ],
)
def test_tables_that_cannot_be_used_say_why(content, says, tmp_path: Path):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(BenchmarkError) as told:
        list(open_table(tmp_path / "t.csv").rows())
    assert says in str(told.value)


def test_a_wrong_encoding_in_the_plan_says_where(tmp_path: Path):
    (tmp_path / "t.csv").write_bytes(TEXT.encode("latin-1"))
    with pytest.raises(BenchmarkError, match="is not in utf-8"):
        list(open_table(tmp_path / "t.csv", encoding="utf-8").rows())
    with pytest.raises(BenchmarkError, match="no encoding 'klingon'"):
        open_table(tmp_path / "t.csv", encoding="klingon")


@pytest.mark.parametrize(
    ("text", "header", "columns"),
    [
        ("sep=;\nphoto;apples\na.jpg;3\n", 1, ("photo", "apples")),
        ("\ufeff\"sep=|\"\r\nphoto|apples; pears\r\na.jpg|3\r\n", 1, ("photo", "apples; pears")),
        ("Trial 7;;\nWho;Ann;\nYear;2024;\n;;\nphoto;apples;note\na.jpg;3;wet\n", 5, ("photo", "apples", "note")),
        (";Counts;;Shares\nphoto;rust_1;rust_2;cover\na.jpg;3;4;1\n", 2, ("photo", "rust_1", "rust_2", "cover")),
        (",photo,apples\n0,a.jpg,3\n", 1, ("column 1", "photo", "apples")),  # pandas
        ("photo,apples,\na.jpg,3,wet\n", 1, ("photo", "apples", "column 3")),
        ("photo,disease,\nIMG_1,rust,wet\n", 1, ("photo", "disease", "column 3")),
        ("photo\na.jpg\n", 1, ("photo",)),
        ("photo\tapples\na.jpg\t3,5\n", 1, ("photo", "apples")),
    ],
)  # fmt: skip
def test_the_header_is_the_first_row_that_is_no_title(text, header, columns, tmp_path: Path):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8", newline="")
    table = open_table(tmp_path / "t.csv")
    assert (table.header, table.columns) == ((header, header), columns)
    assert next(table.rows())[0] == header + 1
    assert f"header in row {header}" in table.described or header == 1


def _sheet(path: Path, rows: list[list], *merged: str):
    openpyxl = pytest.importorskip("openpyxl", reason="extra build")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cells_of_range in merged:
        book.active.merge_cells(cells_of_range)
    book.save(path)
    return open_table(path, fill_merged=True, is_data=lambda cells: "a.jpg" in cells)


COLORS = ("Foto", "Manzanas verdes", "Manzanas rojas", "Fecha")
APPLES = [["Foto", "Manzanas", None, "Fecha"], [None, "verdes", "rojas"], ["a.jpg", 1, 2, "x"]]


@pytest.mark.parametrize(
    ("rows", "merged", "header", "columns"),
    [
        (APPLES, ["B1:C1"], (1, 2), COLORS),
        (APPLES, ["A1:A2", "B1:C1", "D1:D2"], (1, 2), COLORS),
        ([["Ensayo 2026"], *APPLES], ["A1:D1", "B2:C2"], (2, 3), COLORS),
        ([["Ensayo 2026"], *APPLES], ["A1:B1", "B2:C2"], (2, 3), COLORS),
        (
            [["Photo", "Severity (%)"], [None, "leaf 1", "leaf 2", "leaf 3"], ["a.jpg", 1, 2, 3]],
            ["B1:D1"],
            (1, 2),
            ("Photo", "Severity (%) leaf 1", "Severity (%) leaf 2", "Severity (%) leaf 3"),
        ),
        (
            [[None, "Trial"], ["Photo", "Upper", None, "Lower"], [None, *["rust", "cover"] * 2], ["a.jpg", 1]],
            ["B1:E1", "B2:C2", "D2:E2"],
            (1, 3),
            ("Photo", "Trial Upper rust", "Trial Upper cover", "Trial Lower rust", "Trial Lower cover"),
        ),
        ([["Photo", "Severity"], ["a.jpg", 1, 2]], ["B1:C1"], (1, 1), ("Photo", "Severity", "Severity (2)")),
        ([["Trial"], ["Photo", 2024, 2025], ["a.jpg", 1, 2]], ["A1:C1"], (2, 2), ("Photo", "2024", "2025")),
    ],
)  # fmt: skip
def test_merged_cells_of_a_workbook_say_which_rows_are_its_header(
    rows, merged, header, columns, tmp_path: Path
):
    table = _sheet(tmp_path / "t.xlsx", rows, *merged)
    assert (table.header, table.columns) == (header, columns)
    assert next(table.rows())[0] == header[1] + 1


def test_a_column_of_a_workbook_without_a_header_has_its_letter(tmp_path: Path):
    rows = [["photo", "apples"], ["a.jpg", 3], ["b.jpg", 4, None, "wet"]]
    table = _sheet(tmp_path / "t.xlsx", rows)
    assert table.columns == ("photo", "apples", "column C", "column D")
    assert list(table.rows())[1] == (3, ("b.jpg", "4", "", "wet"))


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ("1-2", ("Foto", "Manzanas verdes", "Manzanas rojas", "Fecha")),
        ("2", ("column 1", "verdes", "rojas", "column 4")),
    ],
)
def test_the_rows_of_a_header_can_be_given(rows, columns, tmp_path: Path):
    text = "Foto,Manzanas,,Fecha\n,verdes,rojas,\na.jpg,1,2,x\n"
    (tmp_path / "t.csv").write_text(text)
    table = open_table(tmp_path / "t.csv", header=rows)
    assert table.columns == columns
    assert list(table.rows()) == [(3, ("a.jpg", "1", "2", "x"))]
    for wrong in ("0", "3-2", "first", "9"):
        with pytest.raises(BenchmarkError, match=r"names no rows|no text in row 9"):
            open_table(tmp_path / "t.csv", header=wrong)


@pytest.mark.parametrize(
    ("text", "decimal", "expected"),
    [
        ("12", ".", CellQuantity(12, None)), ("12.5 mm", ".", CellQuantity(12.5, "mm")),
        ("35%", ".", CellQuantity(35, "%")),
        ("3,5 cm", ",", CellQuantity(3.5, "cm")), ("1.234,5", ",", CellQuantity(1234.5, None)),
        ("1,234.5", ".", CellQuantity(1234.5, None)), ("12厘米", ".", CellQuantity(12, "cm")),
        ("12 apples", ".", CellQuantity(12, None, "apples")), ("12个", ".", CellQuantity(12, None, "个")),
        ("-3e-2", ".", CellQuantity(-0.03, None)), ("1 234,5 cm", ",", CellQuantity(1234.5, "cm")),
        ("1’234.5", ".", CellQuantity(1234.5, None)),
    ],
)  # fmt: skip
def test_numbers_are_read_with_their_units(text, decimal, expected):
    assert cells.quantity(text, decimal) == expected


@pytest.mark.parametrize(
    "text",
    [
        "12-15",
        "<5",
        "about 7",
        "12 mm 3",
        "1,2,3",
        "3 bananas/tree",
        "",
        "12 to 14 mm",
        "1e13",
        "12 34",
    ],
)
def test_what_is_no_number_says_so(text):
    with pytest.raises(CellFault):
        cells.quantity(text)


@pytest.mark.parametrize(
    ("texts", "decimal", "sure"),
    [
        (["3,5", "4"], ",", True), (["3.5", "1,234"], ".", True), (["1,234"], ".", False),
        (["1.234,5"], ",", True), (["3,1234"], ",", True), (["12", "7"], ".", True),
        (["1,234", "0,5"], ",", True), (["1 234,5", "980"], ",", True), (["1\u202f234,5"], ",", True),
        (["3,755 t/ha", "4,1 t/ha"], ",", True), (["3,755 t/ha"], ".", False),
    ],
)  # fmt: skip
def test_the_decimal_mark_of_a_column(texts, decimal, sure):
    assert detect_decimal(texts)[:2] == (decimal, sure)


@pytest.mark.parametrize(
    ("text", "decimal", "value"),
    [
        ("0,8 %", ".", 0.8),
        ("1.9 %", ",", 1.9),
        ("4,0", ".", 4),
        ("1.234.567", ".", 1234567),
        ("1,234", ".", 1234),
        ("1,234", ",", 1.234),
        (NumberText("1.234 %"), ",", 1.234),
    ],
)
def test_a_cell_with_one_reading_needs_no_decimal_mark(text, decimal, value):
    assert cells.quantity(text, decimal).value == pytest.approx(value)


def test_number_cells_of_a_workbook_tell_no_decimal_mark():
    assert detect_decimal([NumberText("1.5"), "0,8 %", "1,234"])[:2] == (",", True)
    assert detect_decimal(["1.5", "0,8 %", "1,234"])[1] is False, "both marks: 1,234 is open"


@pytest.mark.parametrize(
    "text", ["<b>rust</b>", "rust{one}", "a\\b", "@0.count", "x" * 100, "12", 'so "called"']
)
def test_names_that_could_do_harm_are_refused(text):
    with pytest.raises(CellFault):
        cells.name(text)
    assert cells.name(" farmer's lung ") == "farmer’s lung"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.jpg", "B.JPG", "north/c.png", "south/c.png", "notes.txt", ".hidden.jpg"):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    (tmp_path / "secret.jpg").write_bytes(b"x")
    return tmp_path / "photos"


def test_pictures_are_found_under_names_that_other_programs_write(folder: Path):
    for name in ("Größe.jpg", "Shot 5.04\u202fPM.png", "case/x.JPG", "case/x.jpg"):
        path = folder / normalize("NFD", name)  # as macOS and its archives write it
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    images = Images(folder)
    for cell, name in {
        normalize("NFC", "GRÖSSE.jpg"): "Größe.jpg", "größe": "Größe.jpg", "Shot 5.04 PM.png": "Shot 5.04\u202fPM.png",
        "case/x.JPG": "case/x.JPG", "case/x.jpg": "case/x.jpg", "photos/north/c.png": "north/c.png",
        "C:\\Users\\Ann\\A.JPG": "a.jpg", "\\\\server\\b.jpg": "B.JPG", "/home/ann/south/C.png": "south/c.png",
        "A": "a.jpg", "./a.jpg": "a.jpg", "north\\c.png": "north/c.png", "~/a.jpg": "a.jpg",
        "https://example.org/f?name=/a.jpg": "a.jpg",
    }.items():  # fmt: skip
        found = images.find(cell)
        assert found is not None, cell
        assert normalize("NFC", found.relative_to(folder.resolve()).as_posix()) == name
    for cell in ("/etc/passwd", "C:\\photos\\d.jpg", "elsewhere/a.jpg", ".hidden.jpg", ""):
        assert images.find(cell) is None
    for cell in ("case/X.jpg", "C:\\west\\c.png"):
        with pytest.raises(CellFault, match="several pictures"):
            images.find(cell)


@pytest.mark.parametrize(
    "cell",
    ["../secret.jpg", "north/../../secret.jpg", "c.png", "C:\\photos\\..\\a.jpg", "link.jpg"],
)
def test_cells_that_lead_out_or_mean_several_pictures_are_refused(folder: Path, cell):
    (folder / "link.jpg").symlink_to(folder.parent / "secret.jpg")
    with pytest.raises(CellFault):
        Images(folder).find(cell)


def test_a_folder_without_pictures_says_so(tmp_path: Path):
    with pytest.raises(BenchmarkError, match="contains no pictures"):
        Images(tmp_path)
    with pytest.raises(BenchmarkError, match="not a folder"):
        Images(tmp_path / "none")
