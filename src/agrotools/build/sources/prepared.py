"""Prepared data sets: a folder with ``truth.json``, a list of items that name their files and what is true of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import orjson

from agrotools.build.sources.wording import first_few
from agrotools.core import BenchmarkError

TRUTH_FILE = "truth.json"


def read_items(folder: Path, needed: Sequence[str] = (), files: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The items of a prepared data set.

    Args:
        needed: keys that every item must have.
        files: those of the keys whose values are names of files in the folder.

    Raises:
        BenchmarkError: no ``truth.json``, not of that form, or the files that are missing or lead out of the folder.
    """
    path = folder / TRUTH_FILE
    hint = "fetch the data set again, with all its folders"
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise BenchmarkError(f"{path} cannot be read: {error}", hint=hint) from error
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in cast(list[Any], found)):
        raise BenchmarkError(f"{path} is no list of objects", hint=hint)
    items = cast(list[dict[str, Any]], found)
    for number, item in enumerate(items):
        lacks = [key for key in (*needed, *files) if key not in item]
        if lacks:
            raise BenchmarkError(f"{path}, item {item.get('id', number)} lacks {', '.join(lacks)}", hint=hint)
        for key in files:
            if ".." in Path(str(item[key])).parts or Path(str(item[key])).is_absolute():
                raise BenchmarkError(f"{path}: {item[key]} leads out of the folder", hint=hint)
    missing = [str(item[key]) for item in items for key in files if not (folder / str(item[key])).is_file()]
    if missing:
        raise BenchmarkError(f"{folder} lacks {first_few(missing, 5)}", hint=hint)
    return items
