"""Rows of a data file: parquet, JSON (a list, or an object of entries), JSON Lines, CSV, TSV and Excel."""

import csv
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import orjson

from agrotools.core import BenchmarkError, UsageError
from agrotools.core.base import arrow_and_parquet, install_command

SUFFIXES = (".parquet", ".json", ".jsonl", ".csv")


def read_rows(path: Path) -> Iterator[Any]:
    """Yield the rows of a file; the entries of a JSON object get their key as ``id``.

    Many published files named ``.json`` are JSON Lines, so these are read, too.

    Raises:
        UsageError: the file is parquet or Excel, and the package that reads it is not installed.
        BenchmarkError: the file cannot be read; the message names the place.
    """
    try:
        if path.suffix == ".parquet":
            yield from _parquet_rows(path)
        elif path.suffix == ".xlsx":
            yield from _sheet_rows(path)
        elif path.suffix in (".csv", ".tsv"):
            limit = csv.field_size_limit(sys.maxsize)  # tables of VLMEvalKit hold pictures as base64
            try:
                with path.open(encoding="utf-8-sig", newline="") as file:
                    yield from csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ",")
            finally:
                csv.field_size_limit(limit)  # it is that of the whole process
        else:
            yield from _json_rows(path)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BenchmarkError(f"{path} cannot be read: {error}") from error


def _parquet_rows(path: Path) -> Iterator[Any]:
    arrow, parquet = arrow_and_parquet()
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=256):
                yield from batch.to_pylist()
    except arrow.ArrowException as error:
        raise BenchmarkError(f"{path} cannot be read: {error}") from error


def _sheet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of the first sheet, with the cells of its first row as keys."""
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise UsageError(f"{path.name} needs openpyxl", hint=install_command("build")) from error
    try:
        book = load_workbook(path, read_only=True, data_only=True)
        try:
            rows = iter(book.worksheets[0].iter_rows(values_only=True))
            names = [str(name) for name in next(rows, ())]
            yield from (dict(zip(names, row, strict=False)) for row in rows if any(cell is not None for cell in row))
        finally:
            book.close()
    except (OSError, UsageError):
        raise
    except Exception as error:  # openpyxl passes on exceptions of zipfile and of its XML parser
        raise BenchmarkError(f"{path} cannot be read: {error}", hint="save it as .csv") from error


def _json_rows(path: Path) -> Iterator[Any]:
    content = path.read_bytes()
    try:
        whole = _parse(content, path.suffix)
    except orjson.JSONDecodeError as error:
        try:  # a published set has single backslashes, "\Expert", which can only mean themselves
            whole = _parse(_ESCAPE.sub(lambda match: match[1] or rb"\\", content), path.suffix)
        except orjson.JSONDecodeError:
            hint = "some sets are published with such faults: correct the file at this place"
            raise BenchmarkError(f"{path} is not JSON: {error}", hint=hint) from error
    if isinstance(whole, dict) and all(isinstance(entry, dict) for entry in whole.values()):
        whole = [{"id": key, **entry} for key, entry in cast("Mapping[str, dict[str, Any]]", whole).items()]
    lists = [whole] if isinstance(whole, list) else [each for each in whole.values() if isinstance(each, list)]
    yield from max(lists, key=len, default=[])


_ESCAPE = re.compile(rb"""(\\["\\/bfnrtu])|\\""")


def _parse(content: bytes, suffix: str) -> Any:
    try:
        return orjson.loads(content) if suffix == ".json" else _lines(content)
    except orjson.JSONDecodeError:
        with suppress(orjson.JSONDecodeError):
            return _lines(content)
        raise


def _lines(content: bytes) -> list[Any]:
    return [orjson.loads(line) for line in content.splitlines() if line.strip()]
