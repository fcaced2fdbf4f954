"""Readers that all adapters share: folders, lists, tables, JSON, pictures, rasters and masks.

Errors name the file; :class:`agrotools.build.sources.part.Adapter` adds instructions for getting the data set.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray
from PIL import Image
from rasterio.io import MemoryFile

from agrotools.build.sources.part import DataSet
from agrotools.core import BenchmarkError, SampleFile, ToolError
from agrotools.core.files import read_text
from agrotools.vision.formats import MAX_PIXELS, damaged, file_format, too_large
from agrotools.vision.rasters import open_raster, without_place_warning
from agrotools.vision.reading import RgbImage, read_image, read_labels

T = TypeVar("T")
JPEG = (".jpg", ".jpeg")
LOSSLESS = (".png", ".tif", ".tiff")
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
        level = [inner for place in level for inner in _visible(place) if inner.is_dir()][:_MOST_FOLDERS]
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
    some = (path for path in there if path.suffix.lower() in suffixes and not path.name.startswith("."))
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
    return [path for path in sorted(place.iterdir()) if not path.name.startswith(".") and path.name != "__MACOSX"]


def read_lines(path: Path, most_bytes: int = _LARGEST_JSON) -> list[tuple[int, str]]:
    """Return the non-empty lines of a UTF-8 text, numbered from 1; BenchmarkError if it is none or too large."""
    lines = enumerate(_content(path, most_bytes).splitlines(), start=1)
    return [(number, line.strip()) for number, line in lines if line.strip()]


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
    """Return the entry of a picture (see :meth:`agrotools.build.sources.part.Originals.file`) that can be opened."""
    read_photo(path)
    return data.originals.file(path, **more)


def refuse_other_size(path: Path, size: tuple[int, int], shape: tuple[int, int]) -> None:
    """Raise a BenchmarkError if a picture and its mask differ in size, both (rows, columns)."""
    if size != shape:
        raise BenchmarkError(f"{path} has {size[1]} x {size[0]} pixels, its mask {shape[1]} x {shape[0]}")


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
                raise BenchmarkError(f"{path} cannot be used: its bands differ, or its values are not whole")
    there = {int(value) for value in np.unique(values)}
    if codings and not any(there <= {*coding} for coding in codings):
        known = " or ".join(", ".join(map(str, sorted(coding))) for coding in codings)
        strange = sorted(there - set(chain.from_iterable(codings))) or sorted(there)
        raise BenchmarkError(f"{path} has values other than {known}: {', '.join(map(str, strange[:5]))}")
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
    bands: NDArray[Any], names: Sequence[str], unit: str | None = None, scale: float | None = None, **profile: Any
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
    shuffled = [[some[int(place)] for place in draw.permutation(len(some))] for some in by_kind.values()]
    nothing = object()
    in_turn = (item for item in chain.from_iterable(zip_longest(*shuffled, fillvalue=nothing)) if item is not nothing)
    return [item for item, _ in zip(in_turn, range(count), strict=False)]  # pyright: ignore[reportReturnType]
