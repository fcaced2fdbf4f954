"""Reading the JSON of a published benchmark."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import orjson

from agrotools.benchmarks._dialogs.files import is_web_page
from agrotools.benchmarks._dialogs.findings import shown
from agrotools.core import BenchmarkError

_LARGEST_BYTES = 1 << 30
"""The published files have a few megabytes."""
_LARGEST_CHECKED = 64 << 20
"""Larger files are not read a second time, to look for keys that stand there twice."""


def read_json(path: Path) -> Any:
    """The content of a JSON file.

    Raises:
        BenchmarkError: missing, too large, not UTF-8, cut off, no JSON, or an object with a key twice; the message says
            which and where.
    """
    try:
        size = path.stat().st_size
        if size > _LARGEST_BYTES:
            raise BenchmarkError(f"{path} has {size / 2**30:.1f} GiB, more than 1 GiB", hint="give the published file")
        content = path.read_bytes()
    except OSError as error:
        raise BenchmarkError(f"{path} cannot be read: {error.strerror or error}") from error
    if content.startswith(b"version https://git-lfs"):
        raise BenchmarkError(f"{path} is a pointer of Git LFS, not the file", hint="git lfs pull")
    if is_web_page(content[:200]):
        raise BenchmarkError(f"{path} is a web page, not the file", hint="download it again")
    content = content.removeprefix(b"\xef\xbb\xbf")
    if not content.strip():
        raise BenchmarkError(f"{path} is empty", hint="download it again")
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BenchmarkError(
            f"{path} is not UTF-8: byte {error.start} cannot be read", hint="save it as UTF-8, or download it again"
        ) from error
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        ends = error.pos >= len(error.doc.rstrip())
        what = "is cut off" if ends else "is no JSON"
        raise BenchmarkError(
            f"{path} {what}: line {error.lineno}, column {error.colno}: {error.msg}", hint="download it again"
        ) from error
    except RecursionError as error:
        raise BenchmarkError(f"{path} is nested too deep", hint="give the published file") from error
    if isinstance(value, dict) and size <= _LARGEST_CHECKED and (twice := _twice(content, len(value))):
        raise BenchmarkError(f"{path}: {shown(twice)} occurs twice as a key", hint="keep one of the two entries")
    return value


def _twice(content: bytes, keys: int) -> str | None:
    """A key that the object ``content`` has more than once; such an object has fewer ``keys`` than are written."""
    last: list[str] = []

    def keep(pairs: list[tuple[str, Any]]) -> None:
        # Objects end from the inside out: the whole is the last one.
        nonlocal last
        last = [key for key, _ in pairs]

    try:
        json.loads(content, object_pairs_hook=keep)
    except (ValueError, RecursionError):  # what only the quicker reader takes is let pass
        return None
    return Counter(last).most_common(1)[0][0] if len(last) > keys else None


def entries_of(content: Any, path: Path) -> dict[str, Any]:
    """The entries of a published file by key, in file order. A list of entries is keyed by position.

    Raises:
        BenchmarkError: it holds neither, or none.
    """
    if isinstance(content, list):
        content = {str(place): entry for place, entry in enumerate(content)}
    if not isinstance(content, dict):
        raise BenchmarkError(f"{path} holds no object of entries", hint="give the published file")
    if not content:
        raise BenchmarkError(f"{path} holds no entry", hint="download it again")
    return content
