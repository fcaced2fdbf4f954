"""Tables: CSV files with any delimiter in one of several encodings, and sheets of xlsx files.

Rows of large tables are read one by one, so memory use does not grow with their length. They are numbered as in a
spreadsheet: the header is row 1, unless there are titles or empty rows above it.
"""

import codecs
import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

from agrotools.core import BenchmarkError
from agrotools.core.errors import NoFileError
from agrotools.core.texts import install_command
from agrotools.text.decimal_marks import NumberText
from agrotools.text.units import canonical_unit

Row = tuple[int, tuple[str, ...]]
"""Number of the row, and its cells as text, one per column; fewer where the file has fewer."""

WORKBOOKS = (".xlsx", ".xlsm")
"""Endings of files with sheets."""
Record = tuple[int, list[str]]
"""Number of a row, and its cells as they are in the file."""

IsData = Callable[[Sequence[str]], bool]
"""Tells from its cells that a row holds data, so that it is no row of a header."""

DELIMITERS = (",", ";", "\t", "|")
UNTOLD = "latin-1"
"""Encoding of a file whose bytes are in none of the others: any bytes are text in it."""
ENCODINGS = ("utf-8", "gb18030", UNTOLD, "utf-16")
_CODE_PAGES = ("cp1252", "cp1250", "cp1254")
"""Code pages of Windows for Latin letters (Western, Central European, Turkish), in which Excel saves CSV files.

Users report such files: Western with the byte 9A in it (checkmyworking.com, 2025, on the CSV export of Excel), Central
European (github.com/PyYoshi/cChardet/issues/101), Turkish (github.com/JoshClose/CsvHelper/issues/213).
"""
_CONTROLS = re.compile("[\x80-\x9f]")
"""Control characters of Latin-1, which no table has: these bytes are letters in the code pages of Windows."""
_SIGN_AT_LETTER = re.compile(r"(?<=[^\W\d_])[\u00a1-\u00bf]|[\u00a1-\u00bf](?=[^\W\d_])")
"""Sign beside a letter, as in ``po³udnie``: in another code page it is a letter."""
_WORDS_SHOWN = 5
"""Words that show how an encoding reads a file."""
_DETECTED_BYTES = 1 << 24
"""Size of the start of a file from which its encoding is detected."""
_SAMPLE_ROWS = 100
_CHECKED_ROWS = 1000
_LONGEST_CELL = 131_072
_MOST_TITLES = 20
"""Rows with text among which the header is sought."""
_SEPARATOR = re.compile('"?sep=([^\\w"])"?[\r\n]*', re.IGNORECASE)
"""First line that tells Excel the delimiter; Excel does not show it."""
_CONTENT = re.compile(r"[-+<>~]?\d[\d.,\s]*\D{0,3}|.*\.[A-Za-z]\w{2,4}")
"""A number with a unit, or a file name."""
_MOST_COLUMNS = 1000
_LETTERS = 26
_MIDNIGHT = "T00:00:00"
"""End of a date in a workbook, which has no time of day as a name of a column."""
_SHOWN = 5
"""Hidden rows or columns that a note names."""
_LARGEST_WORKBOOK = 300_000_000
"""Most bytes of a workbook when unpacked: a small file can hold gigabytes of one character."""
_MOST_EMPTY_CELLS = 5_000_000
"""Most cells without content that are passed over: about two seconds."""
_MOST_KEPT_CELLS = 1_000_000
"""Most cells of a sheet that are kept in memory: about 100 MB."""
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
"""Escape of Excel for a character that XML does not allow, or that would be lost, such as a carriage return."""
_CJK_TEXT = re.compile("[\u4e00-\u9fff\u3000-\u303f\uff00-\uffef]")


class CellFault(Exception):
    """Reason why a cell cannot be used (``reason`` continues "the cell ..."), with a hint for correcting it."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(f"{reason} ({hint})")
        self.reason = reason
        self.hint = hint


class HeaderRows(NamedTuple):
    """The first and the last row of a header, numbered as in the file; most headers have one row."""

    first: int
    last: int

    @classmethod
    def of(cls, text: str) -> "HeaderRows":
        """Return the rows that ``2`` or ``2-3`` names.

        Raises:
            NoFileError: the text names no rows.
        """
        found = re.fullmatch(r"([1-9]\d{0,5})(?:-([1-9]\d{0,5}))?", text.strip())
        rows = cls(int(found[1]), int(found[2] or found[1])) if found else None
        if rows is None or rows.last < rows.first:
            raise NoFileError(
                f"header={text} names no rows", hint="write one row, or two: 2 or 2-3"
            )
        return rows

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


_FIRST_ROW = HeaderRows(1, 1)


@dataclass(frozen=True)
class SheetTable:
    """A table. ``columns`` are the unique names in the header; ``rows()`` reads the rows below it that have text.

    ``encoding`` and ``delimiter`` are set for CSV files, ``sheet`` for xlsx files. ``header``: its first and last row.
    ``alike``: groups of columns whose names in the header differ at most in case. ``hidden``: what is read although
    the workbook hides it; empty for nothing. ``merged``: number of merged ranges of a sheet that were filled.
    ``counted``: columns with the numbers of objects in annotations. ``attribute``: the chosen attribute of objects that
    is their class.
    """

    path: Path
    columns: tuple[str, ...]
    rows: Callable[[], Iterator[Row]]
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    header: HeaderRows = _FIRST_ROW
    alike: tuple[tuple[str, ...], ...] = ()
    counted: tuple[str, ...] = ()
    attribute: str | None = None
    hidden: str = ""
    merged: int = 0

    @property
    def namesakes(self) -> frozenset[str]:
        """Columns that share their name with another, but for case."""
        return frozenset(chain.from_iterable(self.alike))

    @property
    def is_of_annotations(self) -> bool:
        """True for a table that was made from annotations."""
        return self.encoding is None and self.sheet is None

    def check_names(self, *names: str) -> None:
        """Raise NoFileError if several columns have one of these names, which are in lower case."""
        for columns in self.alike:
            if columns[0].casefold() in names:
                raise NoFileError(
                    f"{self.path.name} has several columns of one name: {self.placed(columns)}",
                    hint="rename or remove all but one",
                )

    def placed(self, columns: Iterable[str]) -> str:
        """Return columns with their places, as "score (column 3), Score (column 5)"."""
        places = [self.columns.index(column) for column in columns]
        return ", ".join(f"{self.columns[place]!r} (column {place + 1})" for place in places)

    def place_of(self, column: str) -> int:
        """Return the index of a column; BenchmarkError if there is none."""
        if column not in self.columns:
            known = ", ".join(self.columns[:20])
            raise NoFileError(
                f"{self.path.name} has no column {column!r}", hint=f"its columns: {known}"
            )
        return self.columns.index(column)

    def require_columns(self, *columns: str) -> None:
        """Raise NoFileError for the first of these columns that the table does not have."""
        for column in columns:
            self.place_of(column)

    def named_rows(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield the number of each row, and its cells by column; a row lacks the columns for which it has no cell."""
        for number, cells in self.rows():
            yield number, dict(zip(self.columns, cells, strict=False))

    @property
    def described_file(self) -> str:
        """The name of the file, with the sheet of a workbook."""
        return f"{self.path.name}, sheet {self.sheet!r}" if self.sheet else self.path.name

    @property
    def described(self) -> str:
        """Description of the file's format."""
        if self.is_of_annotations:
            return "annotations"
        below = ""
        if self.header.last > self.header.first:
            below = f", header in rows {self.header.first} to {self.header.last}"
        elif self.header.first > 1:
            below = f", header in row {self.header.first}"
        if self.sheet is not None:
            hidden = f"; {self.hidden}" if self.hidden else ""
            return f"sheet {self.sheet!r}{below}{hidden}"
        separator = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}.get(
            self.delimiter or "", self.delimiter
        )
        return f"encoding {self.encoding}, delimiter {separator}{below}"


def open_table(
    path: Path,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    allow_formulas: bool = False,
    mark_struck: bool = False,
    fill_merged: bool = False,
    header: str | None = None,
    is_data: IsData | None = None,
) -> SheetTable:
    """Open the table in ``path``; settings that are None are detected. The sheet is the first visible one with text.

    ``header``: the rows of the header, as ``2`` or ``2-3``. ``is_data``: tells that a row is none of the header. With
    it, a header of a workbook has as many rows as its merged cells say; without it, a header has one row.
    ``mark_struck``: write :data:`STRUCK` around the text of cells that are struck through.
    ``allow_formulas``: read cells of xlsx files with formulas that no program has computed yet as empty ones.
    ``fill_merged``: all cells of a merged range have its value, not only the first.

    Raises:
        BenchmarkError: the file does not exist, is of another type, is empty, has no header or is not in that encoding,
            or one of its first 1,000 rows has a formula without its value.
    """
    if not path.is_file():
        raise NoFileError(f"there is no table {path}", hint="give a .csv or .xlsx file")
    if path.suffix.lower() in WORKBOOKS:
        return _open_sheet(
            path,
            sheet,
            allow_formulas=allow_formulas,
            fill_merged=fill_merged,
            mark_struck=mark_struck,
            sought=_Sought(header, is_data),
        )
    if path.suffix.lower() == ".geojson":
        raise NoFileError(
            f"{path.name} cannot be read: GeoJSON is no table",
            hint="open it in QGIS and export the layer as .csv or .xlsx",
        )
    if path.suffix.lower() in (".xls", ".ods", ".numbers"):
        raise NoFileError(f"{path.name} cannot be read", hint="save it as .xlsx or .csv")
    if encoding is None and _is_binary(path):
        raise NoFileError(
            f"{path.name} cannot be read: it is neither a table of text nor a workbook",
            hint="save the table as .xlsx or .csv in the program that wrote it",
        )
    return _open_csv(path, encoding, delimiter, _Sought(header, is_data))


_CHECKED_BYTES = 4096
"""Size of the start of a file that tells text from other content: files of Parquet, Word and SPSS have zeros in it."""
_BYTE_ORDER_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def _is_binary(path: Path) -> bool:
    """Return True for a file that is no text: no text has a byte of zero, unless it is in UTF-16."""
    with suppress(OSError), path.open("rb") as file:
        start = file.read(_CHECKED_BYTES)
        return b"\0" in start and not start.startswith(_BYTE_ORDER_MARKS)
    return False


class _Sought(NamedTuple):
    """What is known of a header before the table is read. ``merged``: the merged ranges that its cells may have."""

    rows: str | None = None
    is_data: IsData | None = None
    merged: "Sequence[_Merged]" = ()


_NOTHING_KNOWN = _Sought()


def _open_csv(
    path: Path, encoding: str | None, delimiter: str | None, sought: _Sought
) -> SheetTable:
    try:
        encoding = encoding or found_encoding(path)
        codecs.lookup(encoding)
        codec = "utf-8-sig" if encoding == "utf-8" else encoding
        delimiter = delimiter or _found_delimiter(path, codec)
    except LookupError as error:
        hint = f"one of {', '.join(ENCODINGS)}"
        raise NoFileError(
            f"there is no encoding {encoding!r} (for {path.name})", hint=hint
        ) from error
    except OSError as error:
        raise BenchmarkError(
            f"{path} cannot be read: {error.strerror}", hint="check that you may read it"
        ) from error

    def records() -> Iterator[Record]:
        with path.open(newline="", encoding=codec, errors="strict") as file, _cells_of_any_length():
            first = [line for line in [file.readline()] if not _SEPARATOR.fullmatch(line)]
            rows = csv.reader(chain(first, file), delimiter=delimiter, strict=True)
            yield from enumerate(rows, start=1)

    return _table(path, records, sought=sought, encoding=encoding, delimiter=delimiter)


class WorkbookSheet(NamedTuple):
    """A sheet with cells of a workbook."""

    name: str
    is_hidden: bool
    part: str
    """Its file in the archive of the workbook."""


def sheets_of(path: Path) -> tuple[WorkbookSheet, ...]:
    """Return the sheets of a workbook, the visible ones first; none for a table of another format.

    Raises:
        BenchmarkError: the workbook cannot be read.
    """
    if path.suffix.lower() not in WORKBOOKS or not path.is_file():
        return ()
    with _opened_book(path) as book:
        sheets = [
            WorkbookSheet(
                name,
                book[name].sheet_state != "visible",
                str(getattr(book[name], "_worksheet_path", "")),
            )
            for name in book.sheetnames
            if hasattr(book[name], "iter_rows")  # a sheet of a chart has no cells
        ]
    return tuple(sorted(sheets, key=lambda sheet: sheet.is_hidden))


@contextmanager
def _opened_book(path: Path, *, data_only: bool = True) -> Generator[Any]:
    """Open a workbook of openpyxl, and close it in the end."""
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise NoFileError(
            f"{path.name} needs openpyxl",
            hint=f"{install_command('build')}, or save the table as .csv",
        ) from error
    try:
        with ZipFile(path) as parts:
            size = sum(part.file_size for part in parts.infolist())
        if size > _LARGEST_WORKBOOK:
            raise NoFileError(
                f"{path.name} has {size / 1e6:,.0f} MB unpacked", hint="save the table as .csv"
            )
        book = load_workbook(path, read_only=True, data_only=data_only)
    except NoFileError:
        raise
    except Exception as error:  # openpyxl passes on exceptions of zipfile and of its XML parser
        raise BenchmarkError(
            f"{path.name} cannot be read as a workbook: {error}",
            hint="open it and save it again as .xlsx",
        ) from error
    try:
        yield book
    finally:
        book.close()


def _rows_of_sheet(book: Any, sheet: str, last: int | None = None) -> Iterator[Sequence[Any]]:
    """Yield the cells of each row up to the last one that is written, in the file or ``last``.

    The size that a workbook gives is not used: a format of the last cell makes it 17 billion cells, all empty. Rows
    that are not in the file have no cells.

    Raises:
        BenchmarkError: very many cells have a format, but no content.
    """
    cells = book[sheet]
    cells.reset_dimensions()
    n_empty = 0
    for row in cells.iter_rows(max_row=last):
        yield row
        n_empty += 0 if any(cell.value is not None for cell in row) else len(row)
        if n_empty > _MOST_EMPTY_CELLS:
            raise NoFileError(
                f"sheet {sheet!r} has over {_MOST_EMPTY_CELLS:,} formatted cells without content",
                hint="copy the table alone into a new sheet",
            )


def _has_text(path: Path, sheet: str) -> bool:
    with _opened_book(path) as book:
        return any(_cell_text(cell) for row in _rows_of_sheet(book, sheet) for cell in row)


STRUCK = "~~"
"""Mark before and behind the text of a cell that is struck through, where it is asked for."""


def _open_sheet(
    path: Path,
    name: str | None,
    *,
    allow_formulas: bool,
    fill_merged: bool,
    mark_struck: bool,
    sought: _Sought,
) -> SheetTable:
    sheet = _chosen_sheet(path, name)
    if not allow_formulas:
        _check_formulas(path, sheet.name)
    layout = _layout_of(path, sheet.part)
    merged = [_Merged(*place) for place in layout.merged] if fill_merged else []
    text_of = _shown_text if mark_struck else _cell_text

    def records() -> Iterator[Record]:
        with _opened_book(path) as book:
            for number, row in enumerate(_rows_of_sheet(book, sheet.name), start=1):
                if texts := _without_end([text_of(cell) for cell in row]):
                    yield number, texts

    kept = _KeptRecords(records)
    # A title that is merged over all columns would be a full row of names.
    upright = [each for each in merged if each.first_column == each.last_column]
    table = _table(
        path,
        lambda: _filled(kept.read(), upright),
        lambda: _filled(kept.read(), merged),
        sought=sought._replace(merged=merged),
        sheet=sheet.name,
    )
    hidden = [_hidden_text(table, layout.hidden_rows, layout.hidden_columns)]
    if sheet.is_hidden:
        hidden.insert(0, "a hidden sheet")
    listed = ", ".join(filter(None, hidden))
    below = [each for each in merged if each.last_row > table.header.last]
    return replace(
        table, hidden=f"{listed}, read like the others" if listed else "", merged=len(below)
    )


def _chosen_sheet(path: Path, name: str | None) -> WorkbookSheet:
    """Return the sheet of that name; without a name the first with text, or the first if none has text."""
    sheets = sheets_of(path)
    chosen: WorkbookSheet | None
    if name is not None:
        chosen = next((each for each in sheets if each.name == name), None)
    elif len(sheets) > 1:
        with_text = (each for each in sheets if _has_text(path, each.name))
        chosen = next(with_text, sheets[0])
    else:
        chosen = sheets[0] if sheets else None
    if chosen is None:
        what = f"no sheet {name!r}" if sheets else "no sheet with cells"
        listed = ", ".join(sheet.name for sheet in sheets) or "none"
        raise NoFileError(f"{path.name} has {what}", hint=f"its sheets: {listed}")
    return chosen


def _check_formulas(path: Path, sheet: str) -> None:
    if cells := formulas_without_value(path, sheet):
        raise NoFileError(
            f"{path.name}: cell {cells[0]} has a formula, but not its value, which spreadsheet programs compute",
            hint="open it in Excel or LibreOffice and save it, or save it as .csv there",
        )


def _without_end(cells: list[str]) -> list[str]:
    """Return the cells up to the last one with text."""
    while cells and not cells[-1]:
        cells.pop()
    return cells


class _Merged(NamedTuple):
    """A merged range. Rows and columns count from 1."""

    first_row: int
    first_column: int
    last_row: int
    last_column: int


class _KeptRecords:
    """Records of a sheet, which are kept after the first reading if they are few: parsing takes most of the time."""

    def __init__(self, records: Callable[[], Iterator[Record]]) -> None:
        self._records = records
        self._kept: list[Record] | None = None

    def read(self) -> Iterator[Record]:
        """Yield the records, each as a copy that may be changed."""
        if self._kept is not None:
            yield from ((number, [*cells]) for number, cells in self._kept)
            return
        kept = list[Record]()
        n_cells = 0
        for number, cells in self._records():
            n_cells += len(cells)
            if n_cells <= _MOST_KEPT_CELLS:
                kept.append((number, [*cells]))
            yield number, cells
        self._kept = kept if n_cells <= _MOST_KEPT_CELLS else None


def _filled(records: Iterable[Record], ranges: Sequence[_Merged]) -> Iterator[Record]:
    """Yield the rows with the value of each merged range in all of its cells, where the row has a text of its own."""
    beginning: dict[int, list[_Merged]] = {}
    for each in ranges:
        beginning.setdefault(each.first_row, []).append(each)
    current: list[tuple[_Merged, str]] = []
    for number, record in records:
        current = [(each, text) for each, text in current if each.last_row >= number]
        for each in beginning.get(number, ()):
            written = record[each.first_column - 1 : each.first_column]
            current += [(each, text) for text in written if text]
        for each, text in current:
            last = min(each.last_column, _MOST_COLUMNS)
            record += [""] * (last - len(record))
            for place in range(each.first_column - 1, last):
                record[place] = record[place] or text
        yield number, record


_ROW_TAG = re.compile(rb"<(?:\w+:)?row\b([^>]*)>")
_COLUMN_TAG = re.compile(rb"<(?:\w+:)?col\b([^>]*)>")
_MERGED_TAG = re.compile(
    rb"""<(?:\w+:)?mergeCell\b[^>]*\bref=["']([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})["']"""
)
_HIDDEN = re.compile(rb"""\bhidden=["'](?:1|true)["']""")
_CHUNK = 1 << 20


class _Layout(NamedTuple):
    """Hidden rows and columns of a sheet, by number, and its merged ranges: first row and column, last ones."""

    hidden_rows: set[int]
    hidden_columns: set[int]
    merged: list[tuple[int, int, int, int]]


def _layout_of(path: Path, part: str) -> _Layout:
    """Return the layout of a sheet, ``part`` of the workbook's archive.

    openpyxl does not tell it where it reads row by row, so that the tags are read here.
    """
    layout = _Layout(set(), set(), [])
    number = 0
    for tag in _tags(path, part.lstrip("/")):
        if found := _ROW_TAG.match(tag):
            number = _attribute(found[1], b"r", number + 1)
            if _HIDDEN.search(found[1]):
                layout.hidden_rows.add(number)
        elif found := _MERGED_TAG.match(tag):
            first_column, first_row, last_column, last_row = found.groups()
            layout.merged.append(
                (
                    int(first_row),
                    _number_of_column(first_column),
                    int(last_row),
                    _number_of_column(last_column),
                )
            )
        elif (found := _COLUMN_TAG.match(tag)) and _HIDDEN.search(found[1]):
            first = _attribute(found[1], b"min", 1)
            last = min(_attribute(found[1], b"max", first), _MOST_COLUMNS)
            layout.hidden_columns.update(range(first, last + 1))
    return layout


def _number_of_column(letters: bytes) -> int:
    """Return the number of a column: 1 for A, 27 for AA."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number


def _tags(path: Path, part: str) -> Iterator[bytes]:
    """Yield the opening tags of rows, columns and merged ranges in a part of a workbook, in their order."""
    any_of_these = re.compile(rb"<(?:\w+:)?(?:row|col|mergeCell)\b[^>]*>")
    with (
        suppress(KeyError, BadZipFile, OSError),
        ZipFile(path) as archive,
        archive.open(part) as file,
    ):
        # A damaged part is an error where its rows are read.
        rest = b""
        while chunk := file.read(_CHUNK):
            text = rest + chunk
            # A tag may be cut by the end of the chunk: it is read with the next one.
            end = text.rfind(b">") + 1
            yield from any_of_these.findall(text[:end])
            rest = text[end:]


def _attribute(attributes: bytes, name: bytes, default: int) -> int:
    found = re.search(rb"""(?:^|\s)%s=["'](\d{1,7})["']""" % name, attributes)
    return int(found[1]) if found else default


def _hidden_text(table: "SheetTable", rows: set[int], columns: set[int]) -> str:
    """Return how many hidden rows and columns of a table have text, and some of their numbers."""
    read = [number for number, _ in table.rows() if number in rows] if rows else []
    named = [
        table.columns[number - 1] for number in sorted(columns) if number <= len(table.columns)
    ]
    texts: list[str] = []
    if read:
        noun = "hidden row" if len(read) == 1 else "hidden rows"
        texts.append(f"{len(read)} {noun} (row {_first_of(read)})")
    if named:
        noun = "hidden column" if len(named) == 1 else "hidden columns"
        texts.append(f"{len(named)} {noun} ({_first_of(named)})")
    return ", ".join(texts)


def _first_of(values: Sequence[object]) -> str:
    """Return the first values as a list in words, which tells whether there are more."""
    shown = ", ".join(map(str, values[:_SHOWN]))
    return f"{shown}, ..." if len(values) > _SHOWN else shown


def formulas_without_value(path: Path, sheet: str) -> tuple[str, ...]:
    """Return the cells with a formula that no program has computed, of the first 1,000 rows of a sheet."""
    found: list[str] = []
    with _opened_book(path) as values, _opened_book(path, data_only=False) as formulas:
        pairs = zip(
            _rows_of_sheet(values, sheet, _CHECKED_ROWS),
            _rows_of_sheet(formulas, sheet, _CHECKED_ROWS),
            strict=False,
        )
        for of_values, of_formulas in pairs:
            for value, formula in zip(of_values, of_formulas, strict=False):
                # The value of a text that is empty is written, too, with the type of a text.
                is_unknown = (value.value, value.data_type) == (None, "n")
                if formula.data_type == "f" and is_unknown:
                    found.append(formula.coordinate)
    return tuple(found)


def _table(
    path: Path,
    records: Callable[[], Iterator[Record]],
    below: Callable[[], Iterator[Record]] | None = None,
    *,
    sought: _Sought = _NOTHING_KNOWN,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
) -> SheetTable:
    """Return the table of ``records``; ``below`` are the same rows as they are read below the header."""
    read = below or records
    with_text = (
        (number, record)
        for number, record in _guarded(path, records, encoding)
        if any(cell.strip() for cell in record)
    )
    top = list(islice(with_text, _MOST_TITLES))
    if not top:
        raise NoFileError(
            f"{path.name} is empty", hint="row 1 names the columns, the others contain answers"
        )
    header = HeaderRows.of(sought.rows) if sought.rows is not None else _found_rows(top, sought)
    of_header = dict(takewhile(lambda each: each[0] <= header.last, _guarded(path, read, encoding)))
    names = _names_in(of_header, header, sought.merged)
    if not any(names):
        raise NoFileError(
            f"{path.name} has no text in row {header}",
            hint="header names the rows with the columns",
        )
    if sheet is not None:
        # In a workbook nothing says how wide a table is: a column may have values and no name.
        rows_below = (
            record for number, record in _guarded(path, read, encoding) if number > header.last
        )
        names += [""] * (max(map(len, rows_below), default=0) - len(names))
    if len(names) > _MOST_COLUMNS:
        raise NoFileError(
            f"{path.name} has {len(names)} columns", hint=f"keep at most {_MOST_COLUMNS}"
        )
    names = [
        name or _unnamed(number, in_sheet=sheet is not None)
        for number, name in enumerate(names, start=1)
    ]
    columns = unique_names(names)

    def rows() -> Iterator[Row]:
        for number, record in _guarded(path, read, encoding):
            if number <= header.last:
                continue
            has_more = any(cell.strip() for cell in record[len(columns) :])
            if delimiter is not None and has_more:
                raise NoFileError(
                    f"{path.name}, row {number} has {len(record)} cells, but there are {len(columns)} columns",
                    hint="put quotes around a cell that contains the delimiter or a line break",
                )
            if any(record):
                yield number, tuple(record[: len(columns)])

    return SheetTable(
        path,
        columns,
        rows,
        encoding=encoding,
        delimiter=delimiter,
        sheet=sheet,
        header=header,
        alike=columns_alike(columns, names),
    )


def _unnamed(number: int, *, in_sheet: bool) -> str:
    """Return the name of a column without one: ``column C`` as spreadsheets show it, ``column 3`` of a CSV file."""
    if not in_sheet:
        return f"column {number}"
    letters = ""
    while number:
        number, place = divmod(number - 1, _LETTERS)
        letters = chr(ord("A") + place) + letters
    return f"column {letters}"


UNNAMED = re.compile(r"column (?:\d+|[A-Z]{1,3})")
"""A column that has no name in the header, as :func:`open_table` calls it."""


def _found_rows(top: Sequence[Record], sought: _Sought) -> HeaderRows:
    """Return the rows of the header: that with the most names, and those which its merged cells join to it."""
    is_data = sought.is_data
    if is_data is None:
        number, _ = _found_header(top)
        return HeaderRows(number, number)
    above = [*takewhile(lambda row: not is_data(row[1]), top)] or top
    texts = dict(above)
    n_columns = max(len(_without_end([*record])) for record in texts.values())
    titles = {each.first_row for each in sought.merged if _is_title(each, texts, n_columns)}
    number, _ = _found_header([row for row in above if row[0] not in titles] or above)
    header = HeaderRows(number, number)
    while (more := _extended(header, sought.merged, texts, n_columns)) != header:
        header = more
    return header


def _extended(
    header: HeaderRows, merged: "Sequence[_Merged]", texts: Mapping[int, Sequence[str]], width: int
) -> HeaderRows:
    """Return the rows of a header with those that its merged cells, or merged cells above it, join to it.

    A cell over several columns is the first part of their names, and the row below it has the second part.
    ``texts``: the rows that may belong to it, by number; ``width``: number of columns of the table.
    """
    first, last = header
    for each in merged:
        is_wide = each.last_column > each.first_column
        if each.first_row <= last <= each.last_row and each.first_row >= first:
            below = texts.get(each.last_row + 1, ())[each.first_column - 1 : each.last_column]
            last = each.last_row + 1 if is_wide and any(below) else max(last, each.last_row)
        is_above = is_wide and each.last_row == first - 1 and not _is_title(each, texts, width)
        if is_above or each.first_row < first <= each.last_row:
            first = each.first_row
    return HeaderRows(first, last)


def _is_title(merged: "_Merged", texts: Mapping[int, Sequence[str]], width: int) -> bool:
    """Return True for a merged range that is a title of the table: over all of it, or alone in its row at the left."""
    if merged.first_column > 1 or merged.last_column == 1:
        return False
    n_texts = sum(bool(text) for text in texts.get(merged.first_row, ()))
    return merged.last_column >= width or n_texts == 1


def _names_in(
    records: Mapping[int, Sequence[str]], header: HeaderRows, merged: "Sequence[_Merged]"
) -> list[str]:
    """Return the names of the columns, each made of the different texts of its rows: ``Severity (%) leaf 1``."""
    parts: dict[int, list[str]] = {}
    # From the last row up: what stands below a column says whether a text above reaches it.
    for number in range(header.last, header.first - 1, -1):
        is_merged = any(
            each.first_row <= number <= each.last_row and each.last_column > each.first_column
            for each in merged
        )
        before = ""
        for place, cell in enumerate(records.get(number, ())):
            text = " ".join(cell.split()).removesuffix(_MIDNIGHT)
            of_column = parts.setdefault(place, [])
            if not text and of_column and not is_merged:
                # A CSV file has the text of a merged cell once, and empty cells behind it.
                text = before
            before = text or before
            if text and text not in of_column:
                of_column.insert(0, text)
    return [" ".join(parts.get(place, ())) for place in range(max(parts, default=-1) + 1)]


def _guarded(
    path: Path, records: Callable[[], Iterator[Record]], encoding: str | None
) -> Iterator[Record]:
    """Yield the records of a file; BenchmarkError, with the number of the row, where they cannot be read."""
    number = 0
    try:
        for number, record in records():
            yield number, record
    except UnicodeDecodeError as error:
        raise BenchmarkError(
            f"{path.name} is not in {encoding}: {error.reason} after row {number}",
            hint=f"save it as UTF-8; known encodings: {', '.join(ENCODINGS)}",
        ) from error
    except csv.Error as error:
        raise BenchmarkError(
            f"{path.name}, row {number + 1} is not a row of a table: {error}",
            hint="check the quotes of that row: one that is opened must be closed",
        ) from error


def _found_header(top: Sequence[Record]) -> tuple[int, list[str]]:
    """Return the header among the first rows with text: the first, unless it is a title above a fuller row of names.

    Data below a header that lacks a name are fuller, too, but hold numbers, file names, or some digits (``IMG_1``).
    """
    best, most = top[0], 0
    for row in top:
        cells = [cell.strip() for cell in row[1] if cell.strip()]
        if len(cells) <= most:
            continue
        if most and any(map(_CONTENT.fullmatch, cells)):
            continue
        has_digits = re.search(r"\d", "".join(cells)) is not None
        if has_digits and len(cells) < 2 * most:
            continue
        best, most = row, len(cells)
    return best


def columns_alike(columns: Sequence[str], names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the groups of columns whose ``names``, as they are written, differ at most in case."""
    groups: dict[str, list[str]] = {}
    for column, name in zip(columns, names, strict=True):
        groups.setdefault(name.casefold(), []).append(column)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def unique_names(names: list[str]) -> tuple[str, ...]:
    seen: Counter[str] = Counter()
    unique_names: list[str] = []
    for name in names:
        seen[name] += 1
        unique_names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(unique_names)


def _shown_text(cell: Any) -> str:
    """Return what a cell shows, with marks if it is struck through."""
    text = _cell_text(cell)
    font = getattr(cell, "font", None) if text else None
    return f"{STRUCK}{text}{STRUCK}" if font is not None and font.strike else text


def _cell_text(cell: Any) -> str:
    """Return what a cell shows, with all its digits."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _number_text(value, str(getattr(cell, "number_format", "")))
    if isinstance(value, datetime | date):
        return value.isoformat()
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), str(value))


_LITERAL = re.compile(r'"([^"]*)"|\\(.)|[_*].|\[[^\]]*\]')
"""Parts of a number format that stand for themselves, widths, colours and conditions."""
_SCALED = re.compile(r"[0#?],+(?![0#?,])")
"""A number format that shows thousands or millions."""


def _number_text(value: float, number_format: str) -> NumberText:
    """Return a number with the percent sign or the unit that its format shows.

    Only a percent sign outside quotes shows the number times 100: ``0"%"`` shows 5 as 5%, ``0%`` as 500%.
    """
    of_positive = number_format.partition(";")[0]
    if "%" in _LITERAL.sub("", number_format):
        return NumberText(f"{100 * value:.12g} %")
    literal = "".join(of[1] or of[2] or "" for of in _LITERAL.finditer(of_positive)).strip()
    has_unit = not _SCALED.search(of_positive) and canonical_unit(literal) is not None
    return NumberText(f"{value:.12g} {literal}" if has_unit else f"{value:.12g}")


def found_encoding(path: Path) -> str:
    """Return the encoding: UTF-8 if valid, UTF-16 if marked, GB18030 if that gives mostly Chinese, otherwise Latin-1.

    Latin-1 decodes any bytes and therefore never fails, so check the resulting names.
    """
    with path.open("rb") as file:
        content = file.read(_DETECTED_BYTES)
        whole = not file.read(1)
    if content.startswith(_BYTE_ORDER_MARKS):
        return "utf-16"
    for encoding in ("utf-8", "gb18030"):
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(content, final=whole)
        except UnicodeDecodeError:
            continue
        letters = [letter for letter in text if ord(letter) > 127][:10_000]
        signs = sum(bool(_CJK_TEXT.match(letter)) for letter in letters)
        if encoding == "utf-8" or (
            letters and signs >= 0.9 * len(letters) and _common(letters) >= 0.5 * signs
        ):
            return encoding
    return UNTOLD


def encodings_in_doubt(path: Path) -> dict[str, list[str]]:
    """Return the encodings that a CSV file may have, the likeliest first, each with some words as it reads them.

    Empty if the encoding is not in doubt: Latin-1 is, where it gives control characters.
    """
    content = _untold_content(path)
    if not _CONTROLS.search(content.decode(UNTOLD)):
        return {}
    texts = _texts_of(content, _CODE_PAGES) or _texts_of(content, (UNTOLD,))
    likeliest = sorted(texts, key=lambda encoding: len(_SIGN_AT_LETTER.findall(texts[encoding])))
    words = _words_that_differ(content, texts)
    return {encoding: words[encoding] for encoding in likeliest}


def encodings_beside_latin(path: Path) -> dict[str, list[str]]:
    """Return Latin-1 and the code pages that read other letters in a CSV file, each with some words as it reads them.

    Empty if all of them read the same, and if the file is in another encoding, or in doubt.
    """
    content = _untold_content(path)
    if _CONTROLS.search(content.decode(UNTOLD)):
        return {}
    texts = _texts_of(content, (UNTOLD, *_CODE_PAGES))
    return _words_that_differ(content, texts) if len(texts) > 1 else {}


def _untold_content(path: Path) -> bytes:
    """Return the start of a CSV file whose bytes do not tell its encoding; empty for other files."""
    if path.suffix.lower() in WORKBOOKS or not path.is_file() or _is_binary(path):
        return b""
    if found_encoding(path) != UNTOLD:
        return b""
    with path.open("rb") as file:
        return file.read(_DETECTED_BYTES)


def _texts_of(content: bytes, encodings: Sequence[str]) -> dict[str, str]:
    """Return the different texts that bytes are in encodings, by the first encoding of each."""
    texts: dict[str, str] = {}
    for encoding in encodings:
        with suppress(UnicodeDecodeError):
            text = content.decode(encoding)
            if text not in texts.values():
                texts[encoding] = text
    return texts


def _words_that_differ(content: bytes, texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Return some words by encoding, as each reads them, of those that encodings read differently."""
    # Words stand at the same places in all encodings of one byte a letter.
    written = re.finditer(rb"[^\s,;|\"]*[\x80-\xff][^\s,;|\"]*", content)
    places = [word.span() for word in written]
    shown: dict[str, list[str]] = {}
    for encoding, text in texts.items():
        words = [text[start:end] for start, end in places if _is_told(texts, start, end)]
        shown[encoding] = [*dict.fromkeys(words)][:_WORDS_SHOWN]
    return shown


def _is_told(texts: Mapping[str, str], start: int, end: int) -> bool:
    """Return True if a word tells encodings apart; where there is only one, any word with a control character does."""
    readings = {text[start:end] for text in texts.values()}
    return len(readings) > 1 or len(texts) == 1


def _common(letters: Iterable[str]) -> int:
    """Return the number of characters among the 3,755 common ones of GB 2312 and Chinese punctuation.

    Two adjacent accented letters in Latin-1 also decode to a Chinese character, but hardly ever to a common one.
    """
    codes = [letter.encode("gb2312", errors="ignore") for letter in letters]
    return sum(
        len(code) == 2 and (0xB0 <= code[0] <= 0xD7 or code[0] in (0xA1, 0xA3)) for code in codes
    )


@contextmanager
def _cells_of_any_length() -> Generator[None]:
    """Lift the limit of 128 kB for a cell, which is one of the whole process: some tables hold pictures as text."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def _found_delimiter(path: Path, encoding: str) -> str:
    """Return the delimiter that splits the most rows into the same large number of columns."""
    lines: list[str] = []
    with path.open(newline="", encoding=encoding, errors="replace") as file:
        for line in file:
            if not lines and (given := _SEPARATOR.fullmatch(line)):
                return given[1]
            lines.append(line[:_LONGEST_CELL])
            if len(lines) == _SAMPLE_ROWS:
                break
    best, best_score = ",", 0.0
    for delimiter in DELIMITERS:
        widths: Counter[int] = Counter()
        with suppress(csv.Error):
            widths.update(
                len(row)
                for row in csv.reader(io.StringIO("".join(lines)), delimiter=delimiter)
                if row
            )
        if not widths:
            continue
        width, times = widths.most_common(1)[0]
        score = (width > 1) * (times / widths.total()) * min(width, 20)
        if score > best_score:
            best, best_score = delimiter, score
    return best
