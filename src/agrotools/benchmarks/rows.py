"""Rows of a data file: parquet, JSON (a list, or an object of entries), JSON Lines, CSV, TSV and Excel."""

import codecs
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import orjson

from agrotools.benchmarks.values import value_at
from agrotools.core import BenchmarkError
from agrotools.core.base import arrow_and_parquet
from agrotools.text.tables import found_encoding, open_table

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
        raise BenchmarkError(
            f"{path} cannot be read: {error.strerror or error}", hint="check that you may read it"
        ) from error


def _parquet_rows(path: Path) -> Iterator[Any]:
    arrow, parquet = arrow_and_parquet()
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=256):
                yield from batch.to_pylist()
    except arrow.ArrowException as error:
        raise BenchmarkError(f"{path} cannot be read: {error}") from error


def _json_rows(path: Path, at: str) -> Iterator[Any]:
    content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    try:
        whole = _parse(path, content)
    except BenchmarkError:
        # A published set has single backslashes, "\Expert", which can only mean themselves. Python writes NaN.
        content = _NO_NUMBER.sub(b"null", content)
        whole = _parse(path, _ESCAPE.sub(lambda match: match[1] or rb"\\", content))
    whole = _with_ids(value_at(whole, at))
    lists = [*map(_with_ids, whole.values())] if isinstance(whole, dict) else [whole]
    yield from max((each for each in lists if isinstance(each, list)), key=len, default=[])


def _with_ids(value: Any) -> Any:
    """Return the entries of an object of objects with their keys as ``id``; any other value as it is."""
    if not isinstance(value, dict) or not all(isinstance(entry, dict) for entry in value.values()):
        return value
    return [{"id": key, **entry} for key, entry in cast("Mapping[str, dict[str, Any]]", value).items()]


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
