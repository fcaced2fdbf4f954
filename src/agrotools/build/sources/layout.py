"""Items of a data set, read as ``layout`` in its TOML states: rows of a list, and the files that belong to them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from agrotools.build.sources.part import DataSet, first_few
from agrotools.build.sources.reading import SUFFIXES, by_stem, first_of, is_outside, read_lines
from agrotools.core import BenchmarkError
from agrotools.core.base import count_text
from agrotools.text.tables import open_table

_MOST_ROWS = 2_000_000
NOT_THERE = "listed files that are missing"

Row = Mapping[str, str]


class Item(NamedTuple):
    """An item: its name, its files by role, and the texts that a list or the names of its files state about it."""

    name: str
    files: Mapping[str, Path]
    told: Row


def read_rows(path: Path, of: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a list: the groups of ``pattern`` in its lines, or the ``columns`` of a CSV file.

    ``values``: pattern of a column's values. BenchmarkError: unreadable, empty, too many, or a row does not match.
    """
    if "pattern" in of:
        matches = [(number, line, re.fullmatch(of["pattern"], line)) for number, line in read_lines(path)]
        for number, line, match in matches:
            if match is None:
                raise BenchmarkError(f"{path}, line {number} is not {of['what']}: {line[:60]}")
        rows: list[Row] = [match.groupdict("") for _, _, match in matches if match]
    else:
        rows = _csv_rows(path, of["columns"], of.get("values", {}))
    if not rows or len(rows) > _MOST_ROWS:
        raise BenchmarkError(f"{path} lists {'more than 2 million rows' if rows else 'nothing'}")
    return rows


def _csv_rows(path: Path, columns: Row, values: Mapping[str, Sequence[str]]) -> list[Row]:
    rows: list[Row] = []
    try:
        table = open_table(path, encoding="utf-8", delimiter=",")
        for column in columns.values():
            table.place_of(column)
        for number, cells in islice(table.named_rows(), _MOST_ROWS + 1):
            row = {key: cells.get(column, "").strip() for key, column in columns.items()}
            for key, (allowed, what) in values.items():
                if row[key] and not re.fullmatch(allowed, row[key]):
                    raise BenchmarkError(f"line {number}: {columns[key]} is {row[key][:20]!r}, not {what}")
            rows.append(row)
    except BenchmarkError as error:  # without its hint, so that the source adds where to get the file
        raise BenchmarkError(f"{path} cannot be read: {error.message}") from error
    return rows


def listed_items(data: DataSet, root: Path) -> list[Item]:
    """Return the items of the list ``rows``, as :func:`with_files` does."""
    of = data.layout["rows"]
    path = first_of(root, of["in"])
    return with_files(data, root, read_rows(path, of), str(path))


def with_files(data: DataSet, root: Path, rows: Iterable[Row], path: str) -> list[Item]:
    """Return the items that the rows of the list ``path`` name, each once; incomplete ones are counted as left out.

    Raises:
        BenchmarkError: rows of an item differ and ``drop_contradictions`` is not set, or files are missing.
    """
    by_name: dict[str, Row] = {}
    contradicted: set[str] = set()
    for row in rows:
        name = row["name"].replace("\\", "/").removeprefix("./")
        if not all(row.values()) or is_outside(name):
            data.dropped["incomplete"] += 1
        elif name not in by_name:
            by_name[name] = {**row, "name": name}
        else:
            data.dropped["repeated"] += 1
            contradicted |= {name} if by_name[name] != {**row, "name": name} else set()
    if contradicted:
        if not data.layout.get("drop_contradictions"):
            raise BenchmarkError(f"{path} contradicts itself about {first_few(sorted(contradicted))}")
        data.dropped["with two answers for one picture"] += len(contradicted)
    find = {role: _finder(root, of) for role, of in data.layout["files"].items()}
    items = [Item(name, {role: find[role](name) for role in find}, row) for name, row in by_name.items()]
    return existing_items(data, root, [item for item in items if item.name not in contradicted])


def _finder(root: Path, of: Mapping[str, Any]) -> Callable[[str], Path]:
    """Return a function that finds the file of a name, or, with ``suffixes``, of its stem in any subfolder."""
    place = first_of(root, of["in"])
    if "suffixes" not in of:
        return lambda name: place / name
    by_name = by_stem(place, of["suffixes"], deep=True)

    def find(name: str) -> Path:
        plain = Path(name)
        stem = plain.stem if plain.suffix.lower() in SUFFIXES else plain.name
        return by_name.get(stem, place / (name if plain.suffix in of["suffixes"] else f"{stem}{of['suffixes'][0]}"))

    return find


def existing_items(data: DataSet, root: Path, items: Sequence[Item]) -> list[Item]:
    """Return the items whose files exist; missing ones are counted if allowed, else BenchmarkError."""
    paths = dict.fromkeys(path for item in items for path in item.files.values())
    missing = {path for path in paths if not path.is_file()}
    there = [item for item in items if missing.isdisjoint(item.files.values())]
    allowed = data.allow_missing or len(missing) <= data.layout.get("may_lack", 0) * len(items)
    if missing and not (allowed and there):
        names = first_few([str(path.relative_to(root)) for path in paths if path in missing])
        able = f"; to use the {count_text(len(paths) - len(missing), 'file')} that exist: --allow-missing"
        raise BenchmarkError(f"{root} lacks {names}", hint=f"{data.listing.get_it}{able}" if there else None)
    if missing:
        data.dropped[NOT_THERE] += len(missing)
    return there


def matched_items(data: DataSet, root: Path) -> list[Item]:
    """Return the items whose files of every role share a name once ``date``, told by role, is removed from it."""
    of, date = data.layout, re.compile(data.layout.get("date", "(?!)"))
    found: dict[str, dict[str, list[Path]]] = {}
    for role, files in of["files"].items():
        for path in by_stem(first_of(root, files["in"], "folder "), files["suffixes"], deep=True).values():
            found.setdefault(date.sub("", path.stem), {}).setdefault(role, []).append(path)
    rows = read_rows(root / of["rows"]["in"][0], of["rows"]) if "rows" in of else ()
    names = [row["name"] for row in rows] or sorted(found)
    items: list[Item] = []
    for name in dict.fromkeys(date.sub("", name) for name in names):
        by_role = found.get(name, {})
        files = {role: paths[0] for role, paths in by_role.items()}
        told = {role: "-".join(match.groups()) for role, path in files.items() if (match := date.search(path.stem))}
        if missing := [first_of(root, there["in"]).name for role, there in of["files"].items() if role not in files]:
            data.dropped[f"no {' and '.join(missing)}"] += 1
        elif len(by_role["before"]) + len(by_role["after"]) > 2:
            data.dropped["several dates"] += 1
        elif "before" in told and "after" in told and told["before"] >= told["after"]:
            data.dropped["dates in the wrong order"] += 1
        else:
            items.append(Item(name, files, told))
    return items
