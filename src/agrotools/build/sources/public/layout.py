"""What adapters share: finding a data set where it was unpacked, reading its tables, choosing items evenly."""

import csv
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import TypeVar

import numpy as np

from agrotools.core import BenchmarkError

T = TypeVar("T")
_DEPTH = 3
_MOST_FOLDERS = 500
_MOST_ROWS = 2_000_000
_IGNORED = {"__MACOSX", ".DS_Store"}


def find_root(folder: Path, markers: Sequence[str], *, get_it: str) -> Path:
    """The folder at or below ``folder`` (to three levels) that holds all of ``markers``; archives often nest one.

    Raises:
        BenchmarkError: there is none; the hint says where to get the data set (``get_it``) and what must lie there.
    """
    level = [folder] if folder.is_dir() else []
    for _ in range(_DEPTH + 1):
        for place in level:
            if all((place / marker).exists() for marker in markers):
                return place
        inside = [inner for place in level for inner in sorted(place.iterdir()) if inner.name not in _IGNORED]
        level = [inner for inner in inside if inner.is_dir()][:_MOST_FOLDERS]
    raise BenchmarkError(f"{folder} has no {' and '.join(markers)}", hint=get_it)


def read_table(path: Path, columns: Sequence[str], *, get_it: str) -> list[dict[str, str]]:
    """The rows of a CSV file with a header that has at least ``columns``.

    Raises:
        BenchmarkError: it cannot be read, is no UTF-8, lacks a column, or has over two million rows.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            lacking = [name for name in columns if name not in (reader.fieldnames or ())]
            if lacking:
                raise BenchmarkError(f"{path} has no column {', '.join(lacking)}", hint=get_it)
            rows: list[dict[str, str]] = []
            for row in reader:
                rows.append({key: value or "" for key, value in row.items() if isinstance(key, str)})
                if len(rows) > _MOST_ROWS:
                    raise BenchmarkError(f"{path} has more than {_MOST_ROWS} rows", hint=get_it)
            return rows
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BenchmarkError(f"{path} cannot be read: {error}", hint=get_it) from error


def spread(items: Iterable[T], kind: Callable[[T], Hashable], count: int, seed: int) -> list[T]:
    """At most ``count`` items drawn so that every kind has as many as the others, while it has any."""
    by_kind: dict[Hashable, list[T]] = {}
    for item in items:
        by_kind.setdefault(kind(item), []).append(item)
    draw = np.random.default_rng(seed)
    shuffled = [[some[int(place)] for place in draw.permutation(len(some))] for some in by_kind.values()]
    nothing = object()
    in_turn = (item for item in chain.from_iterable(zip_longest(*shuffled, fillvalue=nothing)) if item is not nothing)
    return [item for item, _ in zip(in_turn, range(count), strict=False)]  # pyright: ignore[reportReturnType]
