"""Containers of rows: the files and folders that a data set is published as, read as rows of plain JSON.

Parquet, Arrow, JSON (a list, an object of entries, an object with the rows under a key, columns), JSON Lines, tables
with JSON in their cells, picture folders with ``metadata.jsonl``, a folder or a file for each entry, and archives.
"""

import base64
import binascii
import gzip
import hashlib
import io
import math
import re
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image, UnidentifiedImageError

from agrotools.calling.declared import schemas_in
from agrotools.core import BenchmarkError
from agrotools.core.files import cache_dir, sha256_of_file
from agrotools.core.lazy import arrow_and_parquet
from agrotools.loading.values import read_rows, value_at
from agrotools.text.loose_json import NotJson, loads, parsed
from agrotools.text.tables import WORKBOOKS, open_table, sheets_of
from agrotools_benchmarks.released.names import snake
from agrotools_build.export.gta_entries import MAP_FILE, content_of, pictures

Row = dict[str, Any]

FORMS = ((".parquet", ".arrow"), (".json", ".jsonl", ".ndjson"), (".csv", ".tsv"), WORKBOOKS)
"""Files that may have rows: a set that is there in several forms is read from the first."""
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".json.gz", ".jsonl.gz", ".csv.gz")
PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp", ".gif", ".jp2")
OUR_FILE = "agrotools.jsonl"
"""File in the form that the documentation describes; beside it, no other file is read."""
_NO_ROWS = (
    *("dataset_dict.json", "dataset_info.json", "dataset_infos.json", "state.json"),
    "croissant.json",
)
"""Files on a data set, beside its rows."""
_DEPTH = 2
"""Levels of an object in which rows are looked for: ``{"data": {"test": [...]}}``."""
_SAME_KEYS = 0.5
"""Share of its keys that a second list of an object has with the longest one if both hold rows."""
_LONGEST_MEMBER = 4 * 2**30
"""Largest file of an archive, in bytes; a larger one is not a picture of a question."""
FOLDER = "(folder)"
"""Key of a row: the folder of its file, from that of the set. Files of the row are relative to either."""
GROUP = "(group)"
"""Key of a row: the name of the list or file that it stands in, which may be its task."""


class Marks(NamedTuple):
    """What tells rows from other objects. ``asks``: True if one has a question; ``key``: its id, None without one;
    ``question``: the text of its question, empty if it is in a trace."""

    asks: Callable[[Row], bool]
    key: Callable[[Row], str | None]
    question: Callable[[Row], str]
    has_calls: Callable[[Sequence[Row]], bool]
    """True if rows have calls of tools."""
    are_steps: Callable[[Sequence[Row]], bool]
    """True if each row is a call of a tool, in the cells of a table."""


class Contents(NamedTuple):
    """Rows of a data set. ``folders``: those of its files; ``files``: those that were read; ``beside``: what stands
    beside the rows in a file, as tools that are listed once."""

    rows: list[Row]
    folders: tuple[Path, ...]
    files: tuple[Path, ...]
    beside: list[Any]
    tool_files: tuple[Path, ...] = ()
    """Files that list tools."""
    shown: tuple[str, ...] = ()
    """Files that were read, with their sheets."""
    sheets_left: tuple[str, ...] = ()
    """Sheets of these that were not read."""


class _Place(NamedTuple):
    """Where a table stands: a file, and the sheet of a workbook."""

    path: Path
    sheet: str = ""

    def below(self, folder: Path) -> str:
        """Return the place as it is shown: ``tables/steps.xlsx, sheet 2026``."""
        name = self.path.relative_to(folder).as_posix()
        return f"{name}, sheet {self.sheet}" if self.sheet else name


class _Table(NamedTuple):
    """Rows of a file. ``is_entry``: the whole file is one row; ``beside``: its other content."""

    rows: list[Row]
    beside: list[Any]
    is_entry: bool = False


def data_files(root: Path, only: str = "") -> list[Path]:
    """Return the files below ``root`` that may have rows: ``only`` that one, those that its README names, or all."""
    if only or (root / OUR_FILE).is_file():
        return [root / (only or OUR_FILE)]
    there = [path for path in sorted(root.rglob("*")) if _may_have_rows(path, root)]
    patterns = _named_in_readme(root)
    named = [
        path
        for path in there
        if any(fnmatch(path.relative_to(root).as_posix(), pattern) for pattern in patterns)
    ]
    if not named:
        return there
    return [path for path in there if path in named or _is_archive(path)]


def files_beside(root: Path, only: str = "") -> list[Path]:
    """Return the files that a README does not name; they may have the calls of the questions in those it names."""
    if only or (root / OUR_FILE).is_file():
        return []
    used = {*data_files(root)}
    there = (path for path in sorted(root.rglob("*")) if _may_have_rows(path, root))
    return [path for path in there if path not in used and not _is_archive(path)]


def _may_have_rows(path: Path, root: Path) -> bool:
    suffixes = (*(suffix for form in FORMS for suffix in form), *ARCHIVES)
    is_hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
    is_known = path.name in (*_NO_ROWS, MAP_FILE)
    return path.name.lower().endswith(suffixes) and not (is_hidden or is_known) and path.is_file()


def _is_archive(path: Path) -> bool:
    return path.name.lower().endswith(ARCHIVES)


def _named_in_readme(root: Path) -> list[str]:
    """Return the patterns of data files in the head of the README, which the Hugging Face viewer goes by."""
    try:
        text = (root / "README.md").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return []
    head = re.match(r"---\s*\n(.*?)\n---", text, re.DOTALL)
    named = (
        re.findall(r"^[\s-]*(?:path|data_files):[ ]*(\S+)", head[1], re.MULTILINE) if head else []
    )
    return [each.strip("\"'").removeprefix("./") for each in named]


def read_contents(root: Path, marks: Marks, only: str = "", at: str = "") -> Contents:
    """Read the rows below ``root``; rows of several files complete the entry with their id.

    ``only``: the file to read; ``at``: path to the rows in a JSON file; empty to find them.

    Raises:
        BenchmarkError: a file cannot be read.
        UsageError: a file is parquet, and pyarrow is not installed.
    """
    files = data_files(root, only)
    unpacked = [unpack(path) for path in files if _is_archive(path)]
    folders = (root, *unpacked)
    plain = [path for path in files if not _is_archive(path)]
    plain += [path for folder in unpacked for path in data_files(folder) if not _is_archive(path)]
    reader = _Tables(folders, marks, at)
    named = reader.of(plain)
    questions = _questions_in(named, reader.faults, marks)
    used = [place for place in named if questions.are_in(place) or questions.need(place, named)]
    has_calls = any(marks.has_calls(named[place].rows) for place in used)
    beside = {} if has_calls else reader.of(files_beside(root, only))
    tables = named | beside
    used += [
        place
        for place, table in tables.items()
        if not has_calls
        and place not in used
        and questions.are_completed_by(place, table)
        and marks.has_calls(table.rows)
    ]
    return _contents(tables, used, questions, folders, marks)


class _Questions(NamedTuple):
    """Which tables have the questions. ``form``: suffixes of their files; ``keys``: their ids.

    ``whole``: folders of a file that is one entry, in which the other files belong to it.
    """

    places: set[_Place]
    form: Sequence[str]
    keys: set[str | None]
    whole: set[Path]
    marks: Marks

    def are_in(self, place: _Place) -> bool:
        return place in self.places and _has_form(place, self.form)

    def need(self, place: _Place, tables: Mapping[_Place, _Table]) -> bool:
        """True if a table belongs to the questions: by its folder, or by the ids of its rows."""
        return place.path.parent in self.whole or self.are_completed_by(place, tables[place])

    def are_completed_by(self, place: _Place, table: _Table) -> bool:
        """True if rows of a table without questions have the ids of questions; of a workbook, if they have calls."""
        if place in self.places:
            return False
        has_ids = any(self.marks.key(row) in self.keys for row in table.rows)
        return has_ids and (not place.sheet or self.marks.has_calls(table.rows))


def _questions_in(
    tables: Mapping[_Place, _Table], faults: Mapping[_Place, BenchmarkError], marks: Marks
) -> _Questions:
    """Return which tables have the questions; BenchmarkError if a file of their form cannot be read."""
    asking = {place for place, table in tables.items() if any(map(marks.asks, table.rows))}
    # Questions without a known name are found later, by their words.
    asking = asking or {place for place, table in tables.items() if table.rows}
    form = next((form for form in FORMS if any(_has_form(place, form) for place in asking)), ())
    for place, error in faults.items():
        if _has_form(place, form) or not asking:
            raise error  # others are named as not read
    keys = {marks.key(row) for place in asking for row in tables[place].rows} - {None}
    whole = {place.path.parent for place in asking if tables[place].is_entry}
    return _Questions(asking, form, keys, whole, marks)


def _contents(
    tables: Mapping[_Place, _Table],
    used: Sequence[_Place],
    questions: _Questions,
    folders: Sequence[Path],
    marks: Marks,
) -> Contents:
    """Return the rows of the tables that are used, joined by their ids, and what stands beside them."""
    listing = [
        place for place, table in tables.items() if any(True for _ in schemas_in(table.rows))
    ]
    listed = [tables[place].rows for place in listing if place not in used]
    of_books = {place.path for place in used if place.sheet}
    left = [place for place in tables if place not in used and place.path in of_books]
    read = _whole_folders({place: tables[place] for place in used}, questions.places)
    rows = [row for table in read.values() for row in table.rows]

    def shown(place: _Place) -> str:
        own = next(folder for folder in reversed(folders) if place.path.is_relative_to(folder))
        return place.below(own)

    return Contents(
        rows=_joined(rows, marks) if len(used) > 1 else rows,
        folders=tuple(folders),
        files=tuple(dict.fromkeys(place.path for place in used)),
        beside=[*listed, *(each for table in read.values() for each in table.beside)],
        tool_files=tuple(dict.fromkeys(place.path for place in listing)),
        shown=tuple(map(shown, used)),
        sheets_left=tuple(map(shown, left)),
    )


class _Tables:
    """Reader of the tables in files. ``faults``: files that cannot be read."""

    def __init__(self, folders: Sequence[Path], marks: Marks, at: str) -> None:
        self._folders, self._marks, self._at = folders, marks, at
        self.faults: dict[_Place, BenchmarkError] = {}

    def of(self, paths: Sequence[Path]) -> dict[_Place, _Table]:
        """Return the tables of files by their place: each file, or each sheet of a workbook."""
        tables: dict[_Place, _Table] = {}
        for path in paths:
            try:
                for place in _places(path):
                    tables[place] = self._read(place)
            except BenchmarkError as error:
                self.faults[_Place(path)] = error
                tables[_Place(path)] = _Table([], [])
        return tables

    def _read(self, place: _Place) -> _Table:
        table = _read_file(place, self._folders, self._marks, self._at)
        is_plain = _has_form(place, (".csv", ".tsv", *WORKBOOKS))
        if is_plain and not any(map(self._marks.asks, table.rows)):
            field = snake(place.sheet or place.path.stem) or "steps"
            return table._replace(rows=_steps_by_id(table.rows, self._marks, field))
        return table


def _places(path: Path) -> list[_Place]:
    return [_Place(path, sheet.name) for sheet in sheets_of(path)] or [_Place(path)]


def _steps_by_id(rows: list[Row], marks: Marks, field: str) -> list[Row]:
    """Return a row for each question with its steps in a ``field``, of a table of steps; other rows as they are.

    Rows without an id belong to the last one: the cells of an id may be merged, or stand in the first row only.
    """
    first = rows[0] if rows else {}
    key = marks.key(first)
    if key is None or not marks.are_steps(rows):
        return rows
    column = next(name for name, value in first.items() if str(value) == key)
    by_id: dict[str, Row] = {}
    for row in rows:
        key = str(row[column]) if row.get(column) not in (None, "") else key
        step = {name: value for name, value in row.items() if name != column}
        by_id.setdefault(key, {column: key, field: []})[field].append(step)
    return [*by_id.values()]


def _has_form(place: _Place, form: Sequence[str]) -> bool:
    return place.path.suffix.lower() in form


def _whole_folders(tables: Mapping[_Place, _Table], asking: set[_Place]) -> dict[_Place, _Table]:
    """Return the tables, a file that is one entry with what else its folder holds if it is the only one there."""
    entries = [place for place, table in tables.items() if table.is_entry and place in asking]
    in_folder = Counter(place.path.parent for place in entries)
    whole: dict[_Place, _Table] = {}
    for place, table in tables.items():
        folder = place.path.parent
        if place in entries and in_folder[folder] == 1:
            row = table.rows[0]
            whole[place] = table._replace(rows=[{**row, **_content_of_folder(folder)}])
        elif in_folder[folder] != 1:
            whole[place] = table
    return whole


def _content_of_folder(folder: Path) -> Row:
    """Return the keys of the objects in a folder, and each other content by the name of its file."""
    contents = {
        path.stem: content_of(path)
        for path in sorted(folder.iterdir())
        if path.suffix in (".json", ".txt")
    }
    entry: Row = {"id": folder.name}
    for content in contents.values():
        entry = {**content, **entry} if isinstance(content, dict) else entry
    return {**contents, **entry}


def _joined(rows: Sequence[Row], marks: Marks) -> list[Row]:
    """Return the entries: rows with a question, completed by the rows without one, or with the same, of their id.

    Rows of several files that ask different questions under one id get the name of their file before it.
    """
    by_id: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: not marks.asks(row)):
        key = marks.key(row)
        same = by_id.setdefault(f"row {id(row)}" if key is None else key, [])
        asks = marks.asks(row)
        completed = [each for each in same if not asks or _agree(each, row, marks)]
        if len(completed) == 1:
            completed[0].update({**row, **completed[0]})
        elif asks:
            same.append(row)
    entries: list[Row] = []
    for key, same in by_id.items():
        several = len(same) > 1
        entries += [
            {**row, "id": f"{row.get(GROUP, '')}-{key}"} if several else row for row in same
        ]
    return entries if entries else list(rows)


def _agree(first: Row, second: Row, marks: Marks) -> bool:
    """True if two rows of one id ask the same, or have the same values where they have the same fields."""
    questions = marks.question(first), marks.question(second)
    if all(questions):
        return questions[0] == questions[1]
    return all(first.get(key, value) == value for key, value in second.items() if key[:1] != "(")


def _read_file(where: _Place, folders: Sequence[Path], marks: Marks, at: str) -> _Table:
    """Return the rows of a file, with the folder and the name of the file in each."""
    path = where.path
    suffix = path.suffix.lower()
    beside: list[Any] = []
    is_entry = False
    if suffix == ".json":
        rows, beside, is_entry = _read_json(path, marks, at)
    elif suffix == ".arrow":
        rows = [_without_nulls(row) for row in _arrow_rows(path)]
    elif suffix == ".parquet":
        rows = [_without_nulls(row) for row in _with_labels(path)]
    elif where.sheet:
        table = open_table(path, sheet=where.sheet, allow_formulas=True, fill_merged=True)
        rows = [row for _, row in table.named_rows()]
    else:
        rows = [row for row in read_rows(path) if isinstance(row, dict)]
    root = next(folder for folder in reversed(folders) if path.is_relative_to(folder))
    place = path.parent.relative_to(root).as_posix()
    # Rows of a file without questions complete others, so they say nothing on where they stand.
    stands = {FOLDER: place, GROUP: path.stem} if any(map(marks.asks, rows)) else {}
    found = [
        {**stands, **{name: _plain(value, name) for name, value in row.items()}} for row in rows
    ]
    if is_entry:
        stem = {"id": path.stem} if marks.key(found[0]) is None else {}
        found[0] |= {**stem, **_pictures_beside(path, root), **found[0]}
    return _Table(found, beside, is_entry)


def _pictures_beside(path: Path, root: Path) -> Row:
    """Return the pictures with the name of a file, ``0001.json`` and ``0001.png``, as WebDataset stores entries."""
    near = [
        each
        for each in sorted(path.parent.iterdir())
        if each.suffix.lower() in PICTURES and each.name.split(".")[0] == path.name.split(".")[0]
    ]
    return {"images": [each.relative_to(root).as_posix() for each in near]} if near else {}


def _without_nulls(value: Any) -> Any:
    """Return a value without the nulls of its objects: a column of objects has every key that any row has."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _with_labels(path: Path) -> Iterator[Row]:
    """Yield the rows of a parquet file, with the names of labels that ``datasets`` stores as numbers."""
    arrow, parquet = arrow_and_parquet()
    try:
        names = _labels_in(parquet.read_schema(path).metadata)
    except (arrow.ArrowException, OSError):
        names = {}  # a fault that reading the rows names
    for row in read_rows(path):
        yield _labelled(row, names)


Labels = Mapping[str, Sequence[str]]
"""Names of the labels of each column in which ``datasets`` stores numbers."""


def _labels_in(metadata: Mapping[bytes, bytes] | None) -> Labels:
    try:
        stored = (metadata or {}).get(b"huggingface", b"{}").decode()
        features = parsed(stored)["info"]["features"]
    except (KeyError, TypeError, UnicodeDecodeError):
        return {}  # not written by datasets
    return {
        column: about["names"]
        for column, about in features.items()
        if isinstance(about, dict) and isinstance(about.get("names"), list)
    }


def _labelled(row: Row, names: Labels) -> Row:
    """Return a row with the names of its labels."""
    for column, labels in names.items():
        if isinstance(at := row.get(column), int) and 0 <= at < len(labels):
            row[column] = labels[at]
    return row


def _arrow_rows(path: Path) -> Iterator[Row]:
    arrow, _ = arrow_and_parquet()
    try:
        with arrow.memory_map(str(path)) as source:
            stream = arrow.ipc.open_stream(source)
            names = _labels_in(stream.schema.metadata)
            for batch in stream:
                yield from (_labelled(row, names) for row in batch.to_pylist())
    except (arrow.ArrowException, OSError) as error:
        raise BenchmarkError(f"{path} cannot be read: {error}") from error


# --- JSON -------------------------------------------------------------------------------------------------------------


def _read_json(path: Path, marks: Marks, at: str) -> _Table:
    content = content_of(path)
    if content is None:  # JSON Lines, or JSON with faults that can be mended or must be named
        return _Table([row for row in read_rows(path) if isinstance(row, dict)], [])
    if isinstance(content, dict) and not at and marks.asks(_without_objects(content)):
        return _Table([content], [], is_entry=True)
    lists = list(_lists_in(value_at(content, at), 0 if at else _DEPTH))
    asking = [rows for _, rows in lists if any(map(marks.asks, rows[:_LOOKED_AT]))]
    if isinstance(content, dict) and not asking and marks.asks(content):
        return _Table([content], [], is_entry=True)
    longest = max(asking or [rows for _, rows in lists], key=len, default=[])
    keys = {key for row in longest[:_LOOKED_AT] for key in row}
    alike = [
        (name, rows)
        for name, rows in lists
        if rows is longest or (rows in asking and _share_keys(keys, rows[0]))
    ]
    several = len(alike) > 1
    is_list = isinstance(content, list)
    found = [{GROUP: name, **row} if several else row for name, rows in alike for row in rows]
    if longest and not is_list:
        others = [rows for _, rows in lists if not any(rows is each for _, each in alike)]
        found = _completed(found, others, marks)
    return _Table(
        found,
        [] if not isinstance(content, dict) else [_without(content, [rows for _, rows in alike])],
    )


_LOOKED_AT = 20
"""Rows of a list that show whether its rows have questions."""


def _completed(rows: list[Row], others: Sequence[list[Row]], marks: Marks) -> list[Row]:
    """Return the rows, with what other lists of the file say on the same id, and the files of their pictures."""
    files = {
        each["id"]: name
        for listed in others
        for each in listed
        if "id" in each and isinstance(name := value_at(each, _FILE_NAMES), str)
    }
    by_key = {key: row for row in rows if (key := marks.key(row)) is not None}
    for each in (each for listed in others for each in listed):
        row = by_key.get(str(each.get("question_id", each.get("sample_id", each.get("query_id")))))
        if row is not None:
            row.update({**each, **row})
    for row in rows:
        ids = value_at(row, "image_ids|image_id|images")
        listed = ids if isinstance(ids, list) else [ids]
        if (
            files
            and listed
            and all(isinstance(each, str | int) and each in files for each in listed)
        ):
            row["images"] = [files[each] for each in listed]
    return rows


_FILE_NAMES = "file_name|filename|path|file_path|file"


def _without_objects(content: Mapping[str, Any]) -> Row:
    return {key: value for key, value in content.items() if not isinstance(value, dict)}


def _share_keys(keys: set[str], row: Row) -> bool:
    return len(keys & {*row}) >= _SAME_KEYS * len(keys)


def _lists_in(content: Any, depth: int) -> Iterator[tuple[str, list[Row]]]:
    """Yield the lists of objects in a value, by their key: lists, objects of entries with ids, and columns."""
    if isinstance(content, list):
        rows = [each for each in content if isinstance(each, dict)]
        if rows:
            yield "", rows
    elif isinstance(content, dict) and content:
        values = list(content.values())
        if all(isinstance(value, dict) for value in values):
            yield "", [{"id": key, **value} for key, value in content.items()]
        columns = [value for value in values if isinstance(value, list)]
        is_table = len(columns) == len(values) > 1 and len({*map(len, columns)}) == 1
        if is_table and not all(
            isinstance(value[:1], list) and _objects(value) for value in columns
        ):
            yield "", [dict(zip(content, row, strict=True)) for row in zip(*columns, strict=True)]
        for key, value in content.items() if depth else ():
            yield from ((name or key, rows) for name, rows in _lists_in(value, depth - 1))


def _objects(values: Sequence[Any]) -> bool:
    return all(isinstance(value, dict) for value in values)


def _without(content: Mapping[str, Any], rows: Sequence[list[Row]]) -> dict[str, Any]:
    """Return an object without the values that hold its rows."""
    holding = {id(row) for each in rows for row in each}

    def holds(value: Any) -> bool:
        inner = (
            value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
        )
        return any(
            id(each) in holding or (isinstance(each, dict | list) and holds(each)) for each in inner
        )

    return {key: value for key, value in content.items() if not holds(value)}


# --- pictures in cells, archives --------------------------------------------------------------------------------------

_DATA_URL = re.compile(r"data:image/[\w.+-]+;base64,")
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]{100,}={0,2}\s*")
"""Base64 without a mark: at least 100 letters, as the smallest picture has, and nothing else."""


def _plain(value: Any, name: str) -> Any:
    """Return a value of a row as JSON; pictures in it are written, and named by their path, or after their field.

    ``name``: field of the value, with its position in a list.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return _stored(bytes(value), name)
    if isinstance(value, dict):
        content = value.get("bytes")
        if isinstance(content, bytes):
            path = value.get("path")
            return _stored(content, name, str(path) if path else "")
        if isinstance(content, str) and (found := _decoded(content)):
            return _stored(found, name, str(value.get("path") or ""))
        return {
            key: _plain(inner, name if key == "url" else str(key)) for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_plain(inner, f"{name}_{at}") for at, inner in enumerate(value, start=1)]
    if isinstance(value, str):
        found = _decoded(value)
        return _stored(found, name) if found else _in_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float | bool | None) else str(value)


def _in_text(text: str) -> Any:
    """Return a text, or the value that it is the JSON of, whose pictures are written."""
    if text.strip() in ("null", "NaN", "nan"):
        return None
    if text[:1] == text[-1:] == '"' and len(text) > 1:  # a text that was written as JSON
        with suppress(NotJson):
            return loads(text)
    value = parsed(text)
    return text if value is text else _plain(value, "image")


def _decoded(text: str) -> bytes | None:
    """Return the picture that a text is in base64, with or without ``data:image/png;base64,``; None if it is none."""
    marked = _DATA_URL.match(text)
    if not marked and not (len(text) % 4 == 0 and _BASE64.fullmatch(text)):
        return None
    try:
        content = base64.b64decode(text[marked.end() if marked else 0 :])
    except (binascii.Error, ValueError):
        return None
    return content if marked or _form_of(content) else None


def _form_of(content: bytes) -> str:
    """Return the suffix of a picture; empty if it is none that Pillow knows."""
    try:
        with Image.open(io.BytesIO(content)) as image:
            return f".{(image.format or '').lower()}".replace("jpeg", "jpg").replace("tiff", "tif")
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError):
        return ""


def _stored(content: bytes, field: str, path: str = "") -> Row:
    """Write a picture below :func:`pictures`, and return its place; ``unnamed``: its name is not of the files."""
    digest = hashlib.sha256(content).hexdigest()[:16]
    name = Path(path.replace("\\", "/")).name or f"{field}{_form_of(content)}"
    (pictures() / digest).mkdir(parents=True, exist_ok=True)
    (pictures() / digest / name).write_bytes(content)
    stored: Row = {"path": f"{digest}/{name}"}
    return stored if path else {**stored, "unnamed": True}


def unpack(archive: Path) -> Path:
    """Return the folder in the cache with the files of an archive.

    Raises:
        BenchmarkError: it cannot be read.
    """
    target = cache_dir("benchmarks") / "unpacked" / sha256_of_file(archive)[:16]
    if (target / _DONE).is_file():
        return target
    target.mkdir(parents=True, exist_ok=True)
    try:
        if archive.suffix.lower() == ".zip":
            with zipfile.ZipFile(archive) as opened:
                for member in opened.infolist():
                    if member.file_size <= _LONGEST_MEMBER:
                        opened.extract(member, target)
        elif archive.name.lower().endswith((".json.gz", ".jsonl.gz", ".csv.gz")):
            with gzip.open(archive) as opened:
                (target / archive.stem).write_bytes(opened.read())
        else:
            with tarfile.open(archive) as opened:
                opened.extractall(target, filter="data")
    except (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError, RuntimeError) as error:
        raise BenchmarkError(
            f"{archive} cannot be unpacked: {error}", hint="unpack it beside the other files"
        ) from error
    (target / _DONE).touch()
    return target


_DONE = ".unpacked"
"""File in the folder of an archive that is unpacked whole."""
