"""Tables: CSV files with any delimiter in one of several encodings, and sheets of xlsx files.

Rows are read one by one, so memory use does not grow with the length of the table. They are numbered as in a
spreadsheet: the header is row 1, unless there are titles or empty rows above it.
"""

import codecs
import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from agrotools.core import BenchmarkError
from agrotools.core.base import NoFileError, install_command

Row = tuple[int, tuple[str, ...]]
"""Number of the row, and its cells as text, one per column; fewer where the file has fewer."""

DELIMITERS = (",", ";", "\t", "|")
ENCODINGS = ("utf-8", "gb18030", "latin-1", "utf-16")
_DETECTED_BYTES = 1 << 24
"""Size of the start of a file from which its encoding is detected."""
_SAMPLE_ROWS = 100
_CHECKED_ROWS = 1000
_LONGEST_CELL = 131_072
_MOST_TITLES = 20  # rows with text among which the header is sought
_SEPARATOR = re.compile('"?sep=([^\\w"])"?[\r\n]*', re.IGNORECASE)
"""First line that tells Excel the delimiter; Excel does not show it."""
_CONTENT = re.compile(
    r"[-+<>~]?\d[\d.,\s]*\D{0,3}|.*\.[A-Za-z]\w{2,4}"
)  # a number with a unit, or a file name
_MOST_COLUMNS = 1000
_SHOWN = 5
"""Hidden rows or columns that a note names."""
_LARGEST_WORKBOOK = 300_000_000
"""Most bytes of a workbook when unpacked: a small file can hold gigabytes of one character."""
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
"""Escape of Excel for a character that XML does not allow, or that would be lost, such as a carriage return."""
_CJK_TEXT = re.compile("[\u4e00-\u9fff\u3000-\u303f\uff00-\uffef]")


@dataclass(frozen=True)
class Table:
    """A table. ``columns`` are the unique names in the header; ``rows()`` reads the rows below it that have text.

    ``encoding`` and ``delimiter`` are set for CSV files, ``sheet`` for xlsx files, ``is_counts`` for annotations.
    ``header``: its row. ``alike``: groups of columns whose names in the header differ at most in case. ``hidden``: what
    is read although the workbook hides it; empty for nothing.
    """

    path: Path
    columns: tuple[str, ...]
    rows: Callable[[], Iterator[Row]]
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    header: int = 1
    alike: tuple[tuple[str, ...], ...] = ()
    is_counts: bool = False
    hidden: str = ""

    @property
    def namesakes(self) -> frozenset[str]:
        """Columns that share their name with another, but for case."""
        return frozenset(chain.from_iterable(self.alike))

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

    def named_rows(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield the number of each row, and its cells by column; a row lacks the columns for which it has no cell."""
        for number, cells in self.rows():
            yield number, dict(zip(self.columns, cells, strict=False))

    @property
    def described(self) -> str:
        """Description of the file's format."""
        if self.is_counts:
            return "numbers of annotated objects"
        below = f", header in row {self.header}" if self.header > 1 else ""
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
) -> Table:
    """Open the table in ``path``; settings that are None are detected.

    ``allow_formulas``: read cells of xlsx files with formulas that no program has computed yet as empty ones.

    Raises:
        BenchmarkError: the file does not exist, is of another type, is empty, has no header or is not in that encoding,
            or one of its first 1,000 rows has a formula without its value.
    """
    if not path.is_file():
        raise NoFileError(f"there is no table {path}", hint="give a .csv or .xlsx file")
    if path.suffix.lower() in (".xlsx", ".xlsm"):
        return _open_sheet(path, sheet, allow_formulas=allow_formulas)
    if path.suffix.lower() in (".xls", ".ods", ".numbers"):
        raise NoFileError(f"{path.name} cannot be read", hint="save it as .xlsx or .csv")
    return _open_csv(path, encoding, delimiter)


def _open_csv(path: Path, encoding: str | None, delimiter: str | None) -> Table:
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

    def records() -> Iterator[list[str]]:
        with path.open(newline="", encoding=codec, errors="strict") as file, _cells_of_any_length():
            first = [line for line in [file.readline()] if not _SEPARATOR.fullmatch(line)]
            yield from csv.reader(chain(first, file), delimiter=delimiter, strict=True)

    return _table(path, records, encoding=encoding, delimiter=delimiter)


def _open_sheet(path: Path, sheet: str | None, *, allow_formulas: bool) -> Table:
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise NoFileError(
            f"{path.name} needs openpyxl",
            hint=f"{install_command('build')}, or save the table as .csv",
        ) from error

    def opened(*, data_only: bool = True) -> Any:
        try:
            with ZipFile(path) as parts:
                size = sum(part.file_size for part in parts.infolist())
            if size > _LARGEST_WORKBOOK:
                raise NoFileError(
                    f"{path.name} has {size / 1e6:,.0f} MB unpacked", hint="save the table as .csv"
                )
            return load_workbook(path, read_only=True, data_only=data_only)
        except NoFileError:
            raise
        except Exception as error:  # openpyxl passes on exceptions of zipfile and of its XML parser
            raise BenchmarkError(
                f"{path.name} cannot be read as a workbook: {error}",
                hint="open it and save it again as .xlsx",
            ) from error

    book = opened()
    names = [name for name in book.sheetnames if hasattr(book[name], "iter_rows")]
    parts = {name: str(getattr(book[name], "_worksheet_path", "")) for name in names}
    is_hidden = {name: book[name].sheet_state != "visible" for name in names}
    book.close()
    if not names or (sheet is not None and sheet not in names):
        what = f"no sheet {sheet!r}" if names else "no sheet with cells"
        raise NoFileError(
            f"{path.name} has {what}", hint=f"its sheets: {', '.join(names) or 'none'}"
        )
    chosen = sheet or names[0]
    if not allow_formulas and (
        cell := _formula_without_value(opened(), opened(data_only=False), chosen)
    ):
        why = f"{path.name}: cell {cell} has a formula, but not its value, which spreadsheet programs compute"
        raise NoFileError(
            why, hint="open it in Excel or LibreOffice and save it, or save it as .csv there"
        )

    def records() -> Iterator[list[str]]:
        book = opened()
        try:
            for row in book[chosen].iter_rows():
                yield [_cell_text(cell) for cell in row]
        finally:
            book.close()

    table = _table(path, records, sheet=chosen)
    hidden = _hidden_text(table, *_hidden_in(path, parts[chosen]))
    if is_hidden[chosen]:
        hidden = ", ".join(filter(None, ["a hidden sheet", hidden]))
    return replace(table, hidden=f"{hidden}, read like the others" if hidden else "")


_ROW_TAG = re.compile(rb"<(?:\w+:)?row\b([^>]*)>")
_COLUMN_TAG = re.compile(rb"<(?:\w+:)?col\b([^>]*)>")
_HIDDEN = re.compile(rb"""\bhidden=["'](?:1|true)["']""")
_CHUNK = 1 << 20


def _hidden_in(path: Path, part: str) -> tuple[set[int], set[int]]:
    """Return the numbers of the hidden rows and columns of a sheet, ``part`` of the workbook's archive.

    openpyxl does not tell them where it reads row by row, so that the tags are read here.
    """
    rows, columns = set[int](), set[int]()
    number = 0
    for tag in _tags(path, part.lstrip("/")):
        if found := _ROW_TAG.match(tag):
            number = _attribute(found[1], b"r", number + 1)
            if _HIDDEN.search(found[1]):
                rows.add(number)
        elif (found := _COLUMN_TAG.match(tag)) and _HIDDEN.search(found[1]):
            first = _attribute(found[1], b"min", 1)
            last = min(_attribute(found[1], b"max", first), _MOST_COLUMNS)
            columns.update(range(first, last + 1))
    return rows, columns


def _tags(path: Path, part: str) -> Iterator[bytes]:
    """Yield the opening tags of rows and columns in a part of a workbook, in their order."""
    either = re.compile(rb"<(?:\w+:)?(?:row|col)\b[^>]*>")
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
            yield from either.findall(text[:end])
            rest = text[end:]


def _attribute(attributes: bytes, name: bytes, default: int) -> int:
    found = re.search(rb"""(?:^|\s)%s=["'](\d{1,7})["']""" % name, attributes)
    return int(found[1]) if found else default


def _hidden_text(table: "Table", rows: set[int], columns: set[int]) -> str:
    """Return how many hidden rows and columns of a table have text, and some of their numbers."""
    read = [number for number, _ in table.rows() if number in rows] if rows else []
    named = [
        table.columns[number - 1] for number in sorted(columns) if number <= len(table.columns)
    ]
    texts: list[str] = []
    if read:
        some = ", ".join(map(str, read[:_SHOWN])) + ", ..." * (len(read) > _SHOWN)
        texts.append(f"{len(read)} hidden row{'s' * (len(read) > 1)} (row {some})")
    if named:
        some = ", ".join(named[:_SHOWN]) + ", ..." * (len(named) > _SHOWN)
        texts.append(f"{len(named)} hidden column{'s' * (len(named) > 1)} ({some})")
    return ", ".join(texts)


def _formula_without_value(values: Any, formulas: Any, sheet: str) -> str:
    """Return the first cell with a formula that no program has computed; empty without. Both workbooks are closed."""
    rows = [[*book[sheet].iter_rows(max_row=_CHECKED_ROWS)] for book in (values, formulas)]
    values.close()
    formulas.close()
    pairs = (one for row in zip(*rows, strict=False) for one in zip(*row, strict=False))
    # The value of a text that is empty is written, too, with the type of a text.
    unknown = (
        one for of, one in pairs if one.data_type == "f" and (of.value, of.data_type) == (None, "n")
    )
    return next((one.coordinate for one in unknown), "")


def _table(path: Path, records: Callable[[], Iterator[list[str]]], **more: Any) -> Table:
    def guarded() -> Iterator[tuple[int, list[str]]]:
        number = 0
        try:
            for number, record in enumerate(records(), start=1):
                yield number, record
        except UnicodeDecodeError as error:
            why = f"{path.name} is not in {more.get('encoding')}: {error.reason} after row {number}"
            raise BenchmarkError(
                why, hint=f"save it as UTF-8; known encodings: {', '.join(ENCODINGS)}"
            ) from error
        except csv.Error as error:
            why = f"{path.name}, row {number + 1} is not a row of a table: {error}"
            raise BenchmarkError(
                why, hint="check the quotes of that row: one that is opened must be closed"
            ) from error

    top = list(
        islice((each for each in guarded() if any(cell.strip() for cell in each[1])), _MOST_TITLES)
    )
    if not top:
        raise NoFileError(
            f"{path.name} is empty", hint="row 1 names the columns, the others contain answers"
        )
    header_row, header = _found_header(top)
    if len(header) > _MOST_COLUMNS:
        raise NoFileError(
            f"{path.name} has {len(header)} columns", hint=f"keep at most {_MOST_COLUMNS}"
        )
    names = [
        " ".join(cell.split()) or f"column {number}" for number, cell in enumerate(header, start=1)
    ]
    columns = unique_names(names)
    alike = columns_alike(columns, names)

    def rows() -> Iterator[Row]:
        for number, record in guarded():
            if number <= header_row:
                continue
            if "delimiter" in more and any(cell.strip() for cell in record[len(columns) :]):
                why = f"{path.name}, row {number} has {len(record)} cells, but there are {len(columns)} columns"
                raise NoFileError(
                    why, hint="put quotes around a cell that contains the delimiter or a line break"
                )
            if any(record):
                yield number, tuple(record[: len(columns)])

    return Table(path, columns, rows, header=header_row, alike=alike, **more)


def _found_header(top: list[tuple[int, list[str]]]) -> tuple[int, list[str]]:
    """Return the header among the first rows with text: the first, unless it is a title above a fuller row of names.

    Data below a header that lacks a name are fuller, too, but hold numbers, file names, or some digits (``IMG_1``).
    """
    best, most = top[0], 0
    for row in top:
        cells = [cell.strip() for cell in row[1] if cell.strip()]
        is_data = most and any(map(_CONTENT.fullmatch, cells))
        if (
            len(cells) > most
            and not is_data
            and (len(cells) >= 2 * most or not re.search(r"\d", "".join(cells)))
        ):
            best, most = row, len(cells)
    return best


def columns_alike(
    columns: Sequence[str], names: Sequence[str] | None = None
) -> tuple[tuple[str, ...], ...]:
    """Return the groups of columns whose ``names``, as they are written, differ at most in case."""
    groups: dict[str, list[str]] = {}
    for column, name in zip(columns, names or columns, strict=True):
        groups.setdefault(name.casefold(), []).append(column)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def unique_names(names: list[str]) -> tuple[str, ...]:
    seen: Counter[str] = Counter()
    unique_names: list[str] = []
    for name in names:
        seen[name] += 1
        unique_names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(unique_names)


def _cell_text(cell: Any) -> str:
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        if "%" in str(getattr(cell, "number_format", "")):
            return f"{100 * value:.12g} %"
        return f"{value:.12g}"
    if isinstance(value, datetime | date):
        return value.isoformat()
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), str(value))


def found_encoding(path: Path) -> str:
    """Return the encoding: UTF-8 if valid, UTF-16 if marked, GB18030 if that gives mostly Chinese, otherwise Latin-1.

    Latin-1 decodes any bytes and therefore never fails, so check the resulting names.
    """
    with path.open("rb") as file:
        content = file.read(_DETECTED_BYTES)
        whole = not file.read(1)
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
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
    return "latin-1"


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
