"""Tables of ground truth, and the pictures that their rows name.

A table is a CSV file with any delimiter in one of several encodings, or a sheet of an xlsx file. Rows are read one by
one, so memory use does not grow with the length of the table. Rows are numbered as in a spreadsheet: the header is
row 1.
"""

import codecs
import csv
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from agrotools.build.own_photos.cells import CellFault, is_empty
from agrotools.build.own_photos.plan import Plan, SkippedRows
from agrotools.core import BenchmarkError
from agrotools.core.base import NoFileError, install_command

Row = tuple[int, tuple[str, ...]]
"""Number of the row, and its cells as stripped text, one per column."""

DELIMITERS = (",", ";", "\t", "|")
ENCODINGS = ("utf-8", "gb18030", "latin-1", "utf-16")
_DETECTED_BYTES = 1 << 24
"""Size of the start of a file from which its encoding is detected."""
_SAMPLE_ROWS = 100
_LONGEST_CELL = 131_072
_MOST_COLUMNS = 1000
_IMAGE_NAME = re.compile(r"\.(?:jpe?g|png|tiff?|webp|bmp)$", re.IGNORECASE)
_CJK_TEXT = re.compile("[\u4e00-\u9fff\u3000-\u303f\uff00-\uffef]")


@dataclass(frozen=True)
class Table:
    """A table of ground truth. ``columns`` are the unique names in the header; ``rows()`` reads the rows below it.

    ``encoding`` and ``delimiter`` are set for CSV files, ``sheet`` for xlsx files.
    """

    path: Path
    columns: tuple[str, ...]
    rows: Callable[[], Iterator[Row]]
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None

    def place_of(self, column: str) -> int:
        """Return the index of a column; BenchmarkError if there is none."""
        if column not in self.columns:
            known = ", ".join(self.columns[:20])
            raise BenchmarkError(f"{self.path.name} has no column {column!r}", hint=f"its columns: {known}")
        return self.columns.index(column)

    @property
    def described(self) -> str:
        """Description of the file's format."""
        if self.sheet is not None:
            return f"sheet {self.sheet!r}"
        separator = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}.get(self.delimiter or "", self.delimiter)
        return f"encoding {self.encoding}, delimiter {separator}"


def open_table(
    path: Path, *, encoding: str | None = None, delimiter: str | None = None, sheet: str | None = None
) -> Table:
    """Open the table in ``path``; settings that are None are detected.

    Raises:
        BenchmarkError: the file does not exist, is of another type, is empty, has no header or is not in that encoding.
    """
    if not path.is_file():
        raise NoFileError(f"there is no table {path}", hint="--answers names a .csv or .xlsx file")
    if path.suffix.lower() in (".xlsx", ".xlsm"):
        return _open_sheet(path, sheet)
    if path.suffix.lower() in (".xls", ".ods", ".numbers"):
        raise NoFileError(f"{path.name} cannot be read", hint="save it as .xlsx or .csv")
    return _open_csv(path, encoding, delimiter)


def _open_csv(path: Path, encoding: str | None, delimiter: str | None) -> Table:
    try:
        encoding = _checked_encoding(path, encoding) if encoding else found_encoding(path)
        delimiter = delimiter or _found_delimiter(path, encoding)
    except OSError as error:
        raise BenchmarkError(f"{path} cannot be read: {error.strerror}", hint="check that you may read it") from error

    def records() -> Iterator[list[str]]:
        with path.open(newline="", encoding=_with_mark(encoding), errors="strict") as file:
            yield from csv.reader(file, delimiter=delimiter)

    return _table(path, records, encoding=encoding, delimiter=delimiter)


def _open_sheet(path: Path, sheet: str | None) -> Table:
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise NoFileError(
            f"{path.name} needs openpyxl", hint=f"{install_command('build')}, or save the table as .csv"
        ) from error

    def opened() -> Any:
        try:
            return load_workbook(path, read_only=True, data_only=True)
        except Exception as error:  # openpyxl passes on exceptions of zipfile and of its XML parser
            raise BenchmarkError(
                f"{path.name} cannot be read as a workbook: {error}", hint="open it and save it again as .xlsx"
            ) from error

    book = opened()
    names = [name for name in book.sheetnames if hasattr(book[name], "iter_rows")]
    book.close()
    if not names or (sheet is not None and sheet not in names):
        what = f"no sheet {sheet!r}" if names else "no sheet with cells"
        raise NoFileError(f"{path.name} has {what}", hint=f"its sheets: {', '.join(names) or 'none'}")
    chosen = sheet or names[0]

    def records() -> Iterator[list[str]]:
        book = opened()
        try:
            for row in book[chosen].iter_rows():
                yield [_cell_text(cell) for cell in row]
        finally:
            book.close()

    return _table(path, records, sheet=chosen)


def _table(path: Path, records: Callable[[], Iterator[list[str]]], **more: Any) -> Table:
    def guarded() -> Iterator[tuple[int, list[str]]]:
        number = 0
        try:
            for number, record in enumerate(records(), start=1):
                yield number, record
        except UnicodeDecodeError as error:
            why = f"{path.name} is not in {more.get('encoding')}: {error.reason} after row {number}"
            raise BenchmarkError(why, hint=f"name its encoding in the plan, one of {', '.join(ENCODINGS)}") from error
        except csv.Error as error:
            why = f"{path.name}, row {number + 1} is not a row of a table: {error}"
            raise BenchmarkError(why, hint="check the quotes of that row: one that is opened must be closed") from error

    header = next((record for _, record in guarded() if any(cell.strip() for cell in record)), None)
    if header is None:
        raise NoFileError(f"{path.name} is empty", hint="row 1 names the columns, the others contain answers")
    if len(header) > _MOST_COLUMNS:
        raise NoFileError(f"{path.name} has {len(header)} columns", hint=f"keep at most {_MOST_COLUMNS}")
    if picture_name := next((cell for cell in header if _IMAGE_NAME.search(cell.strip())), None):
        why = f"the first row of {path.name} contains {picture_name!r}, the name of a picture"
        raise NoFileError(why, hint="put a row above it that names the columns, e.g. photo,apples")
    columns = _unique([cell.strip() or f"column {number}" for number, cell in enumerate(header, start=1)])

    def rows() -> Iterator[Row]:
        below = False
        for number, record in guarded():
            if below and any(record):
                cells = [" ".join(cell.split()) for cell in record[: len(columns)]]
                yield number, (*cells, *[""] * (len(columns) - len(cells)))
            below = below or any(cell.strip() for cell in record)

    return Table(path, columns, rows, **more)


def _unique(names: list[str]) -> tuple[str, ...]:
    seen: Counter[str] = Counter()
    unique_names: list[str] = []
    for name in names:
        plain = " ".join(name.split())
        seen[plain] += 1
        unique_names.append(plain if seen[plain] == 1 else f"{plain} ({seen[plain]})")
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
    return str(value)[:_LONGEST_CELL]


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
        if encoding == "utf-8" or (letters and signs >= 0.9 * len(letters) and _common(letters) >= 0.5 * signs):
            return encoding
    return "latin-1"


def _common(letters: Iterable[str]) -> int:
    """Return the number of characters among the 3,755 common ones of GB 2312 and Chinese punctuation.

    Two adjacent accented letters in Latin-1 also decode to a Chinese character, but hardly ever to a common one.
    """
    codes = [letter.encode("gb2312", errors="ignore") for letter in letters]
    return sum(len(code) == 2 and (0xB0 <= code[0] <= 0xD7 or code[0] in (0xA1, 0xA3)) for code in codes)


def _checked_encoding(path: Path, encoding: str) -> str:
    try:
        codecs.lookup(encoding)
    except LookupError as error:
        hint = f"one of {', '.join(ENCODINGS)}"
        raise NoFileError(f"there is no encoding {encoding!r} (for {path.name})", hint=hint) from error
    return encoding


def _with_mark(encoding: str) -> str:
    return "utf-8-sig" if encoding == "utf-8" else encoding


def _found_delimiter(path: Path, encoding: str) -> str:
    """Return the delimiter that splits the most rows into the same large number of columns."""
    lines: list[str] = []
    with path.open(newline="", encoding=_with_mark(encoding), errors="replace") as file:
        for line in file:
            lines.append(line[:_LONGEST_CELL])
            if len(lines) == _SAMPLE_ROWS:
                break
    best, best_score = ",", 0.0
    for delimiter in DELIMITERS:
        widths: Counter[int] = Counter()
        with suppress(csv.Error):
            widths.update(len(row) for row in csv.reader(io.StringIO("".join(lines)), delimiter=delimiter) if row)
        if not widths:
            continue
        width, times = widths.most_common(1)[0]
        score = (width > 1) * (times / widths.total()) * min(width, 20)
        if score > best_score:
            best, best_score = delimiter, score
    return best


SUFFIXES = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".webp", ".bmp")
_MOST = 1_000_000


class Images:
    """All pictures in a folder and its subfolders, found by path, name, or name without suffix.

    Names are matched without regard to case. Links to folders are not followed.

    Raises:
        BenchmarkError: the folder does not exist, or contains no pictures or over a million.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise NoFileError(f"{folder} is not a folder", hint="--images names the folder of the pictures")
        self.folder = folder.resolve()
        self._by_path: dict[str, Path] = {}
        self._by_name: dict[str, list[Path]] = {}
        self._by_stem: dict[str, list[Path]] = {}
        for path in _pictures(self.folder):
            relative = path.relative_to(self.folder).as_posix()
            self._by_path[relative.casefold()] = path
            self._by_name.setdefault(path.name.casefold(), []).append(path)
            self._by_stem.setdefault(path.stem.casefold(), []).append(path)
            if len(self._by_path) > _MOST:
                raise BenchmarkError(f"{folder} contains over {_MOST} pictures", hint="choose a subfolder")
        if not self._by_path:
            kinds = ", ".join(suffix[1:] for suffix in SUFFIXES)
            raise NoFileError(f"{folder} contains no pictures", hint=f"supported file types: {kinds}")

    def __len__(self) -> int:
        return len(self._by_path)

    def some_names(self, most: int = 3) -> list[str]:
        """Return the first names, for messages."""
        return sorted(path.name for path in list(self._by_path.values())[:1000])[:most]

    def find(self, cell: str) -> Path | None:
        """Return the picture that a cell names, or None; CellFault if it is outside the folder or not unique."""
        if not cell:
            return None
        written = cell.replace("\\", "/").casefold()
        if exact := self._by_path.get(written.removeprefix("./")):
            return self._inside(exact)
        path = PurePosixPath(written)
        if path.is_absolute() or written[1:2] == ":" or ".." in path.parts or written.startswith("~"):
            raise CellFault(
                "is outside the picture folder", "write the name of the picture, or its path in that folder"
            )
        if len(path.parts) > 1:
            return None
        several = self._by_name.get(written) or self._by_stem.get(written) or []
        if len(several) > 1:
            raise CellFault("is the name of several pictures", "write its path in the picture folder")
        return self._inside(several[0]) if several else None

    def _inside(self, path: Path) -> Path:
        if path.is_symlink() and not path.resolve().is_relative_to(self.folder):
            raise CellFault("is a link to a file outside the picture folder", "copy the picture into the folder")
        return path


def _pictures(folder: Path) -> Iterable[Path]:
    for place, inside, names in os.walk(folder):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield Path(place, name)


MOST_MATCHED = 200_000
"""Maximum number of rows with a picture that are kept; larger benchmarks are not needed."""
_ENOUGH_TO_KNOW = 50
_IMAGE_HEADER = re.compile(r"photo|image|picture|file|img|bild|foto|照片|图片|图像|影像|文件", re.IGNORECASE)


class Matched(NamedTuple):
    """A row with its picture."""

    row: int
    image: Path
    cells: tuple[str, ...]


@dataclass(frozen=True)
class DetectedTable:
    """Rows matched to pictures. ``rows``: number of rows in the table; ``skipped``: rows that were not kept."""

    images: Images
    table: Table
    images_column: str
    matched: tuple[Matched, ...]
    rows: int
    skipped: SkippedRows

    def cells_of(self, column: str) -> list[tuple[int, Path, str]]:
        """Return row number, picture and text of each cell of a column; BenchmarkError if there is no such column."""
        place = self.table.place_of(column)
        return [(matched.row, matched.image, matched.cells[place]) for matched in self.matched]


def match_rows(images: Path, answers: Path, plan: Plan | None = None) -> DetectedTable:
    """Read the table once and keep the rows whose picture is in the folder.

    Raises:
        BenchmarkError: the folder or the table cannot be used, or no row belongs to a picture.
    """
    pictures = Images(images)
    settings = {"encoding": plan.encoding, "delimiter": plan.delimiter, "sheet": plan.sheet} if plan else {}
    table = open_table(answers, **settings)
    column = plan.images_column if plan else _image_column(pictures, table)
    place = table.place_of(column)
    skipped, matched, count = SkippedRows(), list[Matched](), 0
    for row, cells in table.rows():
        count += 1
        try:
            image = pictures.find(cells[place])
        except CellFault as fault:
            skipped.add(column, fault.reason, fault.hint, row, cells[place][:60])
            continue
        if image is None:
            what = "does not name a picture" if is_empty(cells[place]) else "names a picture that is not in the folder"
            skipped.add(column, what, "add the picture or correct the name", row, cells[place][:60])
        elif len(matched) == MOST_MATCHED:
            skipped.add(
                column, f"comes after the first {MOST_MATCHED} rows with a picture", "further rows are ignored", row
            )
        else:
            matched.append(Matched(row, image, cells))
    if not matched:
        raise BenchmarkError(
            f"no row of {answers.name} belongs to a picture in {images}: {'; '.join(skipped.lines()[:3]) or 'no rows'}",
            hint=f"the folder contains {', '.join(pictures.some_names())}...; write such names into column {column!r}",
        )
    return DetectedTable(pictures, table, column, tuple(matched), count, skipped)


def _image_column(images: Images, table: Table) -> str:
    """Return the column that names the most pictures of the folder, or else one whose header suggests pictures."""
    hits: Counter[int] = Counter()
    first: dict[int, str] = {}
    for row, cells in table.rows():
        for place, cell in enumerate(cells):
            if cell and place not in first:
                first[place] = cell
            # A count of 3 is not picture 3.jpg, unless the header suggests that the column names pictures.
            names = not cell.isdigit() or _IMAGE_HEADER.search(table.columns[place])
            if cell and names and _is_there(images, cell):
                hits[place] += 1
        # Many pictures may be missing, but once enough are found the remaining rows are not needed.
        if row > 1000 and hits.total() >= _ENOUGH_TO_KNOW:
            break
    if hits:
        return table.columns[max(hits, key=lambda place: (hits[place], -place))]
    image_columns = [column for column in table.columns if _IMAGE_HEADER.search(column)]
    if image_columns:
        return image_columns[0]
    examples = ", ".join(
        f"{column} ({first[place][:30]!r})" for place, column in enumerate(table.columns) if place in first
    )
    raise BenchmarkError(
        f"no column of {table.path.name} names a picture; it was read with {table.described}: {examples[:300]}",
        hint=f"the folder contains {', '.join(images.some_names())}...; one column must contain such names",
    )


def _is_there(images: Images, cell: str) -> bool:
    try:
        return images.find(cell) is not None
    except CellFault:
        return False
