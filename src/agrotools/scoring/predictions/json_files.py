"""JSON files of others: what is wrong with one is said with its name and the place."""

import gc
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agrotools.core import BenchmarkError
from agrotools.core.errors import NoFileError

_LARGEST = 2 * 2**30


@contextmanager
def without_collecting() -> Generator[None]:
    """A large file is millions of objects that stay: looking through them for garbage takes longer than scoring it."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def read_json(path: Path) -> Any:
    """The value in a file. NaN and infinities are taken as Python does.

    Raises:
        BenchmarkError: it is not there, too large, cut off, or no JSON.
    """
    return read_named_json(path, read_text(path))


def read_text(path: Path) -> str:
    """The text of a file (UTF-8, with or without a mark at its beginning).

    Raises:
        BenchmarkError: it is not there, too large, or no UTF-8.
    """
    if not path.is_file():
        raise NoFileError(f"{path}: no such file", hint="give the path of a prediction file")
    if path.stat().st_size > _LARGEST:
        raise BenchmarkError(f"{path} is larger than 2 GB", hint="score a part of it")
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BenchmarkError(f"{path} is no UTF-8 text: {error.reason} at byte {error.start}") from error


def read_named_json(name: object, text: str) -> Any:
    """The value in ``text``, which came from ``name``.

    Raises:
        BenchmarkError: it is cut off, or no JSON.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) or "Unterminated" in error.msg
        raise BenchmarkError(
            f"{name} {'is cut off' if cut else 'is no JSON'}: {error.msg} at line {error.lineno}, column {error.colno}",
            hint="the evaluation was stopped while it wrote; run it again" if cut else None,
        ) from error
    except RecursionError as error:
        raise BenchmarkError(f"{name} is nested too deeply to be read") from error
    except ValueError as error:
        raise BenchmarkError(f"{name} holds a number that cannot be read: {error}") from error
