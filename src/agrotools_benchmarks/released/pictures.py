"""Pictures of questions: the values that list them, each once, and the calls that name them."""

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from agrotools.loading.values import value_at
from agrotools_benchmarks.released.containers import PICTURES
from agrotools_benchmarks.released.traces import TracedCall
from agrotools_build.export.gta_entries import pictures

FILE_KEYS = (
    "path|file_path|file_name|filename|file|image|image_path|img_path|location|url|uri|name|src"
)
"""Keys of an object that may hold the path of a file."""


def pictures_in(value: Any, *, is_named: bool = False) -> list[Any]:
    """Return the files that a value lists: paths, objects with a path, or an object of these; empty if it is none.

    ``is_named``: its field is one of files, so other files than pictures count too.
    """
    if isinstance(value, str):
        parts = [part.strip() for part in re.split(r"[;,；，、|\n]", value) if part.strip()]
        return parts if parts and all(_is_file(part, is_named) for part in parts) else []
    if isinstance(value, list):
        found = [pictures_in(each, is_named=is_named) for each in value if each is not None]
        return [item for each in found for item in each] if found and all(found) else []
    if isinstance(value, dict):
        path = value_at(value, FILE_KEYS)
        if isinstance(path, str):
            return [value] if _is_file(path, True) else []
        there = {name: each for name, each in value.items() if each is not None}
        inner = {name: pictures_in(each, is_named=is_named) for name, each in there.items()}
        if inner and all(len(each) == 1 for each in inner.values()):
            return [_with_id(each[0], name) for name, each in inner.items()]
    return []


def _with_id(item: Any, name: str) -> Any:
    return {"path": item, "id": name} if isinstance(item, str) else {"id": name, **item}


def _is_file(text: str, is_named: bool) -> bool:
    suffix = PurePosixPath(text.strip().split("?")[0].replace("\\", "/")).suffix.lower()
    is_path = len(text) < 500 and "\n" not in text and bool(re.fullmatch(r"\.\w{2,5}", suffix))
    return is_path and (suffix in PICTURES or (is_named and len(text.split()) < 4))


def name_stored_pictures(files: Sequence[Any]) -> list[Any]:
    """Return the files, with stored pictures without names under the names of the paths that stand beside them.

    The first picture gets the name of the first path, and so on, if there are as many paths as pictures. The pictures
    are then copied below :func:`pictures`. The given files stay as they are.
    """
    stored = [each for each in files if _is_stored(each)]
    others = [each for each in files if not _is_stored(each)]
    are_unnamed = all(each.get("unnamed", False) for each in stored)
    named = [_without_mark(each) if _is_stored(each) else each for each in files]
    if not stored or not are_unnamed or len(others) != len(stored):
        return named
    names = iter([_name_of(other) for other in others])
    for each in named:
        if _is_stored(each):
            each["path"] = _copy_under_name(each["path"], next(names))
    return named


def _without_mark(picture: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in picture.items() if key != "unnamed"}


def _copy_under_name(stored: str, name: str) -> str:
    """Copy a stored picture to another name beside it, and return the place of the copy."""
    old = pictures() / stored
    new = old.with_name(name)
    if not new.exists():
        shutil.copyfile(old, new)
    return new.relative_to(pictures()).as_posix()


def drop_repeated_files(files: Sequence[Any]) -> list[Any]:
    """Return the files without those that are there twice: by their path, or as a picture in a cell and by its path."""
    names_stored = {_name_of(each) for each in files if _is_stored(each)}
    kept: dict[str, Any] = {}
    for each in files:
        is_stored_too = not _is_stored(each) and _name_of(each) in names_stored
        if not is_stored_too:
            kept.setdefault(_path_of(each), each)
    return list(kept.values())


def _is_stored(file: Any) -> bool:
    """True for a picture of a cell, which has been written below :func:`pictures`."""
    return (pictures() / _path_of(file)).is_file()


def _path_of(file: Any) -> str:
    return str(value_at(file, "path"))


def _name_of(file: Any) -> str:
    return PurePosixPath(_path_of(file)).name


PLACE = re.compile(r"<?(?:image|img|picture|photo|input)s?[ _-]?\[?(\d+)\]?>?", re.IGNORECASE)
"""File by its place among those of the question, ``image_0`` or ``<image 1>``."""
_FILE_ARGUMENT = re.compile(r"image|img|photo|picture|raster|file|path")


def with_files(calls: Sequence[TracedCall], files: Sequence[Any]) -> tuple[TracedCall, ...]:
    """Return calls whose files are named by their place, or as the only file, with the paths of the files."""
    paths = [str(value_at(each, "path")) for each in files]
    places = {match[1] for call in calls for match in _places_in(call.arguments)}
    first = 0 if "0" in places else 1
    # Files that are called so keep their names, whatever their places.
    known = {str(value_at(each, "id")) for each in files} | {PurePosixPath(at).stem for at in paths}
    seen, named = "", list[TracedCall]()

    def path_of(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [path_of(name, each) for each in value]
        if not isinstance(value, str):
            return value
        place = PLACE.fullmatch(value.strip())
        is_place = place is not None and 0 <= int(place[1]) - first < len(paths)
        is_id = value.strip() in known
        if place is not None and is_place and not is_id:
            return paths[int(place[1]) - first]
        is_known = any(PurePosixPath(path).name == PurePosixPath(value).name for path in paths)
        is_made = value in seen
        is_only = len(paths) == 1 and _FILE_ARGUMENT.search(name.lower()) and not is_made
        if is_only and not is_known and not is_place:
            return paths[0]
        return value

    for call in calls:
        given = {name: path_of(name, value) for name, value in call.arguments.items()}
        named.append(call._replace(arguments=given))
        seen += f" {call.returned}"
    return tuple(named)


def _places_in(value: Any) -> Iterator[re.Match[str]]:
    if isinstance(value, str) and (place := PLACE.fullmatch(value.strip())):
        yield place
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from _places_in(each)
