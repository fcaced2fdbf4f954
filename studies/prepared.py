"""Items of a prepared data set: its ``truth.json``.

Part of ``measure_accuracy.py`` and of training/field_parts.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from agrotools.core import BenchmarkError
from agrotools_build.sources.part import first_few
from agrotools_build.sources.reading import is_outside, read_json

TRUTH_FILE = "truth.json"


def read_items(
    folder: Path, needed: Sequence[str] = (), files: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return the items of a prepared data set, from its ``truth.json``.

    Args:
        needed: keys that every item must have.
        files: keys that every item must have and whose values are names of files in the folder.

    Raises:
        BenchmarkError: ``truth.json`` is missing or invalid, or a file is missing or outside the folder.
    """
    path = folder / TRUTH_FILE
    content = read_json(path)
    if not isinstance(content, list) or not all(
        isinstance(item, dict) for item in cast(list[Any], content)
    ):
        raise BenchmarkError(f"{path} is not a list of objects")
    items = cast(list[dict[str, Any]], content)
    for number, item in enumerate(items):
        lacks = [key for key in (*needed, *files) if key not in item]
        if lacks:
            raise BenchmarkError(f"{path}, item {item.get('id', number)} lacks {', '.join(lacks)}")
        for key in files:
            if is_outside(str(item[key])):
                raise BenchmarkError(f"{path}: {item[key]} leads out of the folder")
    require_files(folder, (str(item[key]) for item in items for key in files))
    return items


def require_files(root: Path, names: Iterable[str]) -> None:
    """Raise a BenchmarkError if some of ``names`` are not in ``root``."""
    missing = [name for name in names if not (root / name).is_file()]
    if missing:
        raise BenchmarkError(f"{root} lacks {first_few(missing)}")
