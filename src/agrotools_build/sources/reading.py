"""Readers that all adapters share: folders, lists, tables, JSON, pictures, rasters, masks, and items of a data set.

Errors name the file; :class:`agrotools_build.sources.part.Adapter` adds instructions for getting the data set.
"""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray
from PIL import Image
from rasterio.io import MemoryFile

from agrotools.core import BenchmarkError, SampleFile, ToolError
from agrotools.core.files import read_text
from agrotools.core.texts import count_text
from agrotools.text.tables import open_table
from agrotools.vision.formats import MAX_PIXELS, damaged, file_format, too_large
from agrotools.vision.rasters import open_raster, without_place_warning
from agrotools.vision.reading import RgbImage, read_image, read_labels
from agrotools_build.choosing import in_turn
from agrotools_build.sources.part import DataSet, first_few

T = TypeVar("T")
JPEG = (".jpg", ".jpeg")
SUFFIXES = (*JPEG, ".png")
_DEPTH = 3
_MOST_FOLDERS = 500
_LARGEST_JSON = 500_000_000
_HALF_OF_GREY = 128


def find_root(folder: Path, markers: Sequence[str]) -> Path:
    """Return the folder, at most three levels down, that holds all ``markers``; BenchmarkError if none does."""
    level = [folder] if folder.is_dir() else []
    for _ in range(_DEPTH + 1):
        for place in level:
            if all((place / marker).exists() for marker in markers):
                return place
        level = [inner for place in level for inner in _visible(place) if inner.is_dir()][
            :_MOST_FOLDERS
        ]
    raise BenchmarkError(f"{folder} has no {' and '.join(markers)}")


def folders_below(folder: Path, names: Iterable[str], markers: Sequence[str]) -> dict[str, Path]:
    """Return those of the named folders, at most three levels below ``folder``, that hold all of ``markers``."""
    there: dict[str, Path] = {}
    for name in names:
        with suppress(BenchmarkError):
            there[name] = find_root(folder, [f"{name}/{marker}" for marker in markers]) / name
    return there


def first_of(root: Path, names: Sequence[str], what: str = "") -> Path:
    """Return the first of ``names`` in ``root``; BenchmarkError, which calls them ``what``, if there is none."""
    for name in names:
        if (root / name).exists():
            return root / name
    raise BenchmarkError(f"{root} has no {what}{' or '.join(names)}")


def files_in(place: Path, suffixes: Sequence[str], *, deep: bool = False) -> list[Path]:
    """Return the visible files with these suffixes, sorted by name, ``deep``: also of subfolders; perhaps none."""
    if not place.is_dir():
        return []
    there = sorted(place.rglob("*")) if deep else _visible(place)
    some = (
        path for path in there if path.suffix.lower() in suffixes and not path.name.startswith(".")
    )
    return [path for path in some if "__MACOSX" not in path.parts and path.is_file()]


def by_stem(place: Path, suffixes: Sequence[str], *, deep: bool = False) -> dict[str, Path]:
    """Return files by name without suffix; if several share a name, the first with the first of the suffixes."""
    best: dict[str, Path] = {}
    for path in files_in(place, suffixes, deep=deep):
        rank = suffixes.index(path.suffix.lower())
        if path.stem not in best or rank < suffixes.index(best[path.stem].suffix.lower()):
            best[path.stem] = path
    return best


def _visible(place: Path) -> list[Path]:
    return [
        path
        for path in sorted(place.iterdir())
        if not path.name.startswith(".") and path.name != "__MACOSX"
    ]


def read_json(path: Path, most_bytes: int = _LARGEST_JSON) -> Any:
    """Return the content of a JSON file; BenchmarkError if it cannot be read, is too large, or is not JSON."""
    try:
        return orjson.loads(_content(path, most_bytes))
    except orjson.JSONDecodeError as error:
        raise BenchmarkError(f"{path} cannot be read: {error}") from error


def _content(path: Path, most_bytes: int) -> str:
    try:
        if path.stat().st_size > most_bytes:
            raise BenchmarkError(f"{path} cannot be read: it is larger than {most_bytes} bytes")
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"{path} cannot be read: {error}") from error


def is_outside(path: str) -> bool:
    """Return True if a path in a list leads out of the folder that it belongs to."""
    return ".." in Path(path).parts or Path(path).is_absolute()


@contextmanager
def as_data_set_error(path: Path) -> Iterator[None]:
    """Raise errors of a tool's reader as errors of the data set."""
    try:
        yield
    except ToolError as error:
        raise BenchmarkError(f"{path} cannot be used: {error.message}") from error


def read_photo(path: Path, shape: tuple[int, int] | None = None) -> RgbImage:
    """Return an upright picture; BenchmarkError if it is none, or has another ``shape`` than its mask."""
    with as_data_set_error(path):
        picture = read_image(path, shown_as=str(path), may_be_blank=True)
    if shape is not None:
        refuse_other_size(path, (picture.height, picture.width), shape)
    return picture


def photo_file(path: Path, data: DataSet, **more: Any) -> SampleFile:
    """Return the entry of a picture (see :meth:`agrotools_build.sources.part.Originals.file`) that can be opened."""
    read_photo(path)
    return data.originals.file(path, **more)


def refuse_other_size(path: Path, size: tuple[int, int], shape: tuple[int, int]) -> None:
    """Raise a BenchmarkError if a picture and its mask differ in size, both (rows, columns)."""
    if size != shape:
        raise BenchmarkError(
            f"{path} has {size[1]} x {size[0]} pixels, its mask {shape[1]} x {shape[0]}"
        )


def read_mask(path: Path, codings: Sequence[Collection[int]] = ()) -> NDArray[np.int32]:
    """Return the values of a mask, rows x columns; those of a JPEG become 0 and 255, by the middle of the range.

    BenchmarkError: it cannot be read, its channels differ, or its values fit none of the sets ``codings``.
    """
    with as_data_set_error(path):
        kind = file_format(path)
        if kind == "jpeg":
            grey = read_image(path, may_be_blank=True).pixels[..., 0]
            values = np.where(grey >= _HALF_OF_GREY, 255, 0).astype(np.int32)
        elif kind != "tiff":
            values = read_labels(path).classes
        else:  # The "no data" value that a TIFF declares, often 0, is an ordinary value here.
            bands = read_bands(path)
            values = bands[0].astype(np.int32)
            if not (bands == values).all():
                raise BenchmarkError(
                    f"{path} cannot be used: its bands differ, or its values are not whole"
                )
    there = {int(value) for value in np.unique(values)}
    if codings and not any(there <= {*coding} for coding in codings):
        known = " or ".join(", ".join(map(str, sorted(coding))) for coding in codings)
        strange = sorted(there - set(chain.from_iterable(codings))) or sorted(there)
        raise BenchmarkError(
            f"{path} has values other than {known}: {', '.join(map(str, strange[:5]))}"
        )
    return values


def read_bands(path: Path) -> NDArray[Any]:
    """Return all bands of a GeoTIFF, bands x rows x columns, whatever it declares as alpha or "no data".

    BenchmarkError: it cannot be read, or is too large.
    """
    with as_data_set_error(path), open_raster(path) as raster:
        if raster.width * raster.height > MAX_PIXELS:
            raise too_large(raster.width, raster.height, raster.name, raster.argument)
        try:
            return raster.dataset.read()
        except MemoryError:
            raise
        except Exception as error:  # GDAL raises exceptions of many types for damaged files.
            raise damaged(raster.name, raster.argument, error) from error


def is_blank(pixels: NDArray[np.uint8]) -> bool:
    """Return True if a picture has a single colour."""
    return bool((pixels == pixels[:1, :1]).all())


def png_of(pixels: NDArray[np.uint8]) -> bytes:
    """Return the content of a PNG file with these pixels."""
    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def geotiff_of(
    bands: NDArray[Any],
    names: Sequence[str],
    unit: str | None = None,
    scale: float | None = None,
    **profile: Any,
) -> bytes:
    """Return the content of a GeoTIFF with these bands (bands x rows x columns) and settings of rasterio."""
    count, rows, columns = bands.shape
    size = {"count": count, "height": rows, "width": columns, "dtype": bands.dtype.name}
    with without_place_warning(), MemoryFile() as memory:
        with memory.open(driver="GTiff", compress="deflate", **size, **profile) as target:
            target.write(bands)
            for number, name in enumerate(names, start=1):
                target.set_band_description(number, name)
                if unit:
                    target.set_band_unit(number, unit)
            if scale:
                target.scales = (scale,) * count
        return memory.read()


def spread(items: Iterable[T], kind: Callable[[T], Hashable], count: int, seed: int) -> list[T]:
    """Draw at most ``count`` items at random, taking turns between the kinds while they last."""
    by_kind: dict[Hashable, list[T]] = {}
    for item in items:
        by_kind.setdefault(kind(item), []).append(item)
    draw = np.random.default_rng(seed)
    shuffled = [
        [some[int(place)] for place in draw.permutation(len(some))] for some in by_kind.values()
    ]
    return in_turn(shuffled)[:count]


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
        rows: list[Row] = []
        for number, line in enumerate(
            map(str.strip, _content(path, _LARGEST_JSON).splitlines()), start=1
        ):
            if (match := re.fullmatch(of["pattern"], line)) is None and line:
                raise BenchmarkError(f"{path}, line {number} is not {of['what']}: {line[:60]}")
            rows += [match.groupdict("")] if match and line else []
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
                    raise BenchmarkError(
                        f"line {number}: {columns[key]} is {row[key][:20]!r}, not {what}"
                    )
            rows.append(row)
    except (
        BenchmarkError
    ) as error:  # without its hint, so that the source adds where to get the file
        raise BenchmarkError(f"{path} cannot be read: {error.message}") from error
    return rows


def listed_items(data: DataSet, root: Path) -> list[Item]:
    """Return the items of the list ``rows``, as :func:`with_files` does."""
    of = data.layout["rows"]
    path = first_of(root, of["in"])
    return with_files(data, root, read_rows(path, of), str(path))


def with_files(data: DataSet, root: Path, rows: Iterable[Row], path: str) -> list[Item]:
    """Return the items that the rows of the list ``path`` name, each once; incomplete ones are counted as left out.

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
            raise BenchmarkError(
                f"{path} contradicts itself about {first_few(sorted(contradicted))}"
            )
        data.dropped["with two answers for one picture"] += len(contradicted)
    find = {role: _finder(root, of) for role, of in data.layout["files"].items()}
    items = [
        Item(name, {role: find[role](name) for role in find}, row) for name, row in by_name.items()
    ]
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
        return by_name.get(
            stem, place / (name if plain.suffix in of["suffixes"] else f"{stem}{of['suffixes'][0]}")
        )

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
        raise BenchmarkError(
            f"{root} lacks {names}", hint=f"{data.listing.get_it}{able}" if there else None
        )
    if missing:
        data.dropped[NOT_THERE] += len(missing)
    return there


def matched_items(data: DataSet, root: Path) -> list[Item]:
    """Return the items whose files of every role share a name once ``date``, told by role, is removed from it."""
    of, date = data.layout, re.compile(data.layout.get("date", "(?!)"))
    found: dict[str, dict[str, list[Path]]] = {}
    for role, files in of["files"].items():
        for path in by_stem(
            first_of(root, files["in"], "folder "), files["suffixes"], deep=True
        ).values():
            found.setdefault(date.sub("", path.stem), {}).setdefault(role, []).append(path)
    rows = read_rows(root / of["rows"]["in"][0], of["rows"]) if "rows" in of else ()
    names = [row["name"] for row in rows] or sorted(found)
    items: list[Item] = []
    for name in dict.fromkeys(date.sub("", name) for name in names):
        by_role = found.get(name, {})
        files = {role: paths[0] for role, paths in by_role.items()}
        told = {
            role: "-".join(match.groups())
            for role, path in files.items()
            if (match := date.search(path.stem))
        }
        if missing := [
            first_of(root, there["in"]).name
            for role, there in of["files"].items()
            if role not in files
        ]:
            data.dropped[f"no {' and '.join(missing)}"] += 1
        elif len(by_role["before"]) + len(by_role["after"]) > 2:
            data.dropped["several dates"] += 1
        elif "before" in told and "after" in told and told["before"] >= told["after"]:
            data.dropped["dates in the wrong order"] += 1
        else:
            items.append(Item(name, files, told))
    return items
