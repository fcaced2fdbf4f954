"""Rows of data files (parquet, JSON, JSON Lines, CSV, TSV, Excel), and the values in them.

Values are found by path; texts that are JSON or Python, numbers, names, and options by letter are read.
"""

import codecs
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from string import ascii_uppercase
from typing import Any, cast

import orjson

from agrotools.core import BenchmarkError
from agrotools.core.lazy import arrow_and_parquet
from agrotools.text.loose_json import parsed
from agrotools.text.tables import found_encoding, open_table

NOTHING = object()
"""Default of a value that is absent, where null is a value."""


def value_at(value: Any, path: str | None, default: Any = None) -> Any:
    """Return the value at ``path`` in ``value``, or ``default`` if it is absent; an empty path is ``value`` itself.

    Of several paths, joined by ``|``, the first with a value that is not null counts.
    """
    if path is None:
        return default
    there = [
        found
        for each in path.split("|")
        for found in [*values_at(value, each.strip()).values()][:1]
    ]
    return next((found for found in there if found is not None), None if there else default)


def values_at(value: Any, path: str) -> dict[str, Any]:
    """Return the values at a path (keys and positions joined by dots), by what a ``*`` in it stands for.

    In a list, a part that is no position selects the first message with that role. Texts that are JSON are parsed.
    """
    values: dict[str, Any] = {"": value}
    for part in path.split(".") if path else ():
        inner: dict[str, Any] = {}
        for key, outer in values.items():
            value = parsed(outer)
            if isinstance(value, Mapping):
                if "*" not in part:
                    inner |= {key: value[part]} if part in value else {}
                else:
                    head, _, tail = part.partition("*")
                    names = [name for name in value if fnmatchcase(str(name), part)]
                    inner |= {
                        str(name)[len(head) : len(str(name)) - len(tail)]: value[name]
                        for name in names
                    }
            elif isinstance(value, list) and part.lstrip("-").isdecimal():
                inner |= {key: value[int(part)]} if -len(value) <= int(part) < len(value) else {}
            elif isinstance(value, list):
                messages = (each for each in value if isinstance(each, Mapping))
                of_role = (
                    each for each in messages if part in (each.get("role"), each.get("from"))
                )
                inner.update((key, each) for each in [*of_role][:1])
        values = inner
    return values


def number_in(value: Any) -> float | None:
    """Return a finite number, also one written as text; None for anything else."""
    try:
        number = float(str(value).replace(",", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def list_in(value: Any) -> list[Any]:
    """Return a value that is a list; an empty list for anything else."""
    return cast(list[Any], value) if isinstance(value, list) else []


def lettered(value: Any) -> dict[str, str]:
    """Return options by letter: of a list, an object, or a text with the marks of options; empty if it has none."""
    if isinstance(value, str):
        value = parsed(value)
    if isinstance(value, str):
        marks = option_marks(value)
        ends = [*(mark.start() for mark in marks[1:]), len(value)]
        return {
            mark[1].upper(): value[mark.end() : end].strip(" \n;,")
            for mark, end in zip(marks, ends, strict=False)
        }
    if isinstance(value, Mapping):
        items = {
            str(key).strip().upper(): str(text) for key, text in value.items() if text is not None
        }
        if all(len(key) == 1 and key in ascii_uppercase for key in items):
            return items
        value = list(items.values())
    if isinstance(value, list):
        texts = {
            letter: str(text)
            for letter, text in zip(ascii_uppercase, value, strict=False)
            if text is not None
        }
        marked = all(
            (mark := _LETTER.match(text)) and mark[1] == letter for letter, text in texts.items()
        )
        return {letter: without_letter(text) if marked else text for letter, text in texts.items()}
    return {}


_LETTER = re.compile(r"^\s*\(?([A-Z])\s*[).:、．]\s*")
_MARK = re.compile(r"(?:^|(?<=[\s;,]))\(?([A-Za-z])[).:、．]\s*")


def without_letter(text: str) -> str:
    """Return an option without its letter."""
    return _LETTER.sub("", text) or text


def option_marks(text: str) -> list[re.Match[str]]:
    """Return the marks of options in a text, ``A.`` or ``(a)``, as long as their letters follow each other."""
    marks: list[re.Match[str]] = []
    for mark in _MARK.finditer(text):
        if mark[1].upper() == ascii_uppercase[len(marks) : len(marks) + 1]:
            marks.append(mark)
    return marks if len(marks) > 1 else []


def translated(word: str, table: Mapping[str, str]) -> str:
    """Return the entry of ``table`` whose name has the words of ``word``, or alone has all of them, else ``word``."""
    if word in table:  # a name without Latin letters has no words
        return table[word]
    given, names = _words(word), [(own, _words(name)) for name, own in table.items()]
    same = {own for own, name in names if own == word or (given and name == given)}
    near = same or {own for own, name in names if given and {*given} <= {*name}}
    return near.pop() if len(near) == 1 else word


def _words(text: str) -> list[str]:
    """Return the words of a name, ``TreeCounting`` and ``tree_counting`` too."""
    return [
        each.lower()
        for each in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", text)
        if each.lower() != "and"
    ]


SUFFIXES = (".parquet", ".json", ".jsonl", ".csv")
TABLES: dict[str, str | None] = {".csv": None, ".tsv": "\t", ".xlsx": None}
"""Delimiter of a table; None: it is detected."""


def read_rows(path: Path, at: str = "") -> Iterator[Any]:
    """Yield the rows of a file; the entries of a JSON object, or of what is at a path in it, get their key as ``id``.

    Many published files named ``.json`` are JSON Lines, so these are read, too. A row of a table lacks the columns
    for which it has no cell.

    Raises:
        UsageError: the file is parquet or Excel, and the package that reads it is not installed.
        BenchmarkError: the file cannot be read; the message names the row or line.
    """
    try:
        if path.suffix == ".parquet":
            yield from _parquet_rows(path)
        elif path.suffix in TABLES:
            table = open_table(path, delimiter=TABLES[path.suffix], allow_formulas=True)
            yield from (row for _, row in table.named_rows())
        else:
            yield from _json_rows(path, at)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> BenchmarkError:
    why = f"{path} cannot be read: {error.strerror or error}"
    return BenchmarkError(why, hint="check that you may read it")


def _parquet_rows(path: Path) -> Iterator[Any]:
    arrow, parquet = arrow_and_parquet()
    try:
        with parquet.ParquetFile(path) as file:
            names = Counter(file.schema_arrow.names)
            if several := [name for name, times in names.items() if times > 1]:
                why = f"{path.name} has several columns of one name: {', '.join(several)}"
                raise BenchmarkError(why, hint="rename or remove all but one")
            for batch in file.iter_batches(batch_size=256):
                yield from batch.to_pylist()
    except arrow.ArrowException as error:
        raise BenchmarkError(f"{path} cannot be read: {error}") from error


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; of JSON Lines, also in a file named ``.json``, the list of its values.

    Raises:
        BenchmarkError: the file cannot be read; the message names the line.
    """
    try:
        return _content(path)
    except OSError as error:
        raise _unreadable(path, error) from error


def _content(path: Path) -> Any:
    content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    try:
        return _parse(path, content)
    except BenchmarkError:
        # A published set has single backslashes, "\Expert", which can only mean themselves. Python writes NaN.
        content = _NO_NUMBER.sub(b"null", content)
        return _parse(path, _ESCAPE.sub(lambda match: match[1] or rb"\\", content))


def place_of_entries(path: Path) -> str:
    """Return the key of the longest list in a JSON file, whose items are its rows; empty if the file is the list."""
    whole = _with_ids(_content(path)) if path.suffix == ".json" else None
    lists = _lists_in(cast(dict[str, Any], whole)) if isinstance(whole, dict) else {}
    return max(lists, key=lambda key: len(lists[key]), default="")


def _json_rows(path: Path, at: str) -> Iterator[Any]:
    whole = _with_ids(value_at(_content(path), at))
    lists = [*_lists_in(whole).values()] if isinstance(whole, dict) else [whole]
    yield from max((each for each in lists if isinstance(each, list)), key=len, default=[])


def _lists_in(whole: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the lists of an object by key, also of objects of objects."""
    values = {key: _with_ids(value) for key, value in whole.items()}
    return {key: value for key, value in values.items() if isinstance(value, list)}


def _with_ids(value: Any) -> Any:
    """Return the entries of an object of objects with their keys as ``id``; any other value as it is."""
    if not isinstance(value, dict) or not all(isinstance(entry, dict) for entry in value.values()):
        return value
    return [
        {"id": key, **entry} for key, entry in cast("Mapping[str, dict[str, Any]]", value).items()
    ]


_NO_NUMBER = re.compile(rb"""(?<=":)\s*(?:NaN|-?Infinity)(?=\s*[,}])""")
_ESCAPE = re.compile(rb"""(\\["\\/bfnrtu])|\\""")


def _parse(path: Path, content: bytes) -> Any:
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        why = f"{path} is not in UTF-8 (line {line}), but perhaps in {found_encoding(path)}"
        raise BenchmarkError(why, hint="save it as UTF-8") from error
    fault = None
    if path.suffix == ".json":
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError as error:
            fault = error
    entries: list[Any] = []
    for number, line in enumerate(content.splitlines(), 1):
        try:
            entries += [orjson.loads(line)] if line.strip() else []
        except orjson.JSONDecodeError as error:
            shown, number = (fault, fault.lineno) if fault else (error, number)
            why = f"{path} is not JSON: line {number}, column {shown.colno}: {shown.msg}"
            raise BenchmarkError(why, hint="correct the file at this place") from error
    return entries
