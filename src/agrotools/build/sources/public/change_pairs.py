"""Readers shared by data sets of two dates: files of a pair, choices by size of change, masks."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.build.sources.field.land import change_subjects
from agrotools.build.sources.part import Originals, Part
from agrotools.build.sources.public.reading import spread
from agrotools.build.templates import load_templates
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, SampleFile, ToolError
from agrotools.formats.benchmark import SourceNote
from agrotools.vision.formats import MAX_PIXELS, damaged, file_format, too_large
from agrotools.vision.rasters import open_raster
from agrotools.vision.reading import read_image, read_labels

LOSSLESS = (".png", ".tif", ".tiff")
JPEG = (".jpg", ".jpeg")
DATES = ("before", "after")
_PAIRS_A_SAMPLE = 2
_HALF_OF_GREY = 128
_SIZES_PCT = (0.0, 4.0, 8.0, 20.0)
"""Pairs are drawn evenly from between these shares of change: the first is none at all, and questions ask for more than
4 or 8 % before they take a change for settled."""


@dataclass(frozen=True)
class Folders:
    """Layout of one file of each pair in a split: under one of ``names``, as files with one of ``suffixes`` (of several
    files of one stem, that with the first of them)."""

    names: tuple[str, ...]
    suffixes: tuple[str, ...]


@dataclass(frozen=True)
class Pair:
    """The files of one place, all of one stem."""

    stem: str
    before: Path
    after: Path
    mask: Path


@dataclass(frozen=True)
class Found:
    """The complete pairs of a split, in order of their stems, and of how many others which files are missing."""

    split: Path
    pairs: Sequence[Pair]
    incomplete: Mapping[str, int]


@dataclass(frozen=True)
class ChangeSet:
    """Settings in which such data sets differ. ``changed`` as in
    :func:`agrotools.build.sources.field.land.change_subjects`; ``mask`` reads a mask."""

    name: str
    source: SourceNote
    get_it: str
    changed: str
    gsd_m: float | None
    mask: Callable[[Path], NDArray[np.bool_]]


def find_pairs(split: Path, before: Folders, after: Folders, mask: Folders, *, get_it: str) -> Found:
    """The pairs of a split, without opening any.

    Raises:
        BenchmarkError: a folder is missing, or no pair is complete.
    """
    places = [_folder(split, folders, get_it) for folders in (before, after, mask)]
    files = [_by_stem(place, folders.suffixes) for place, folders in zip(places, (before, after, mask), strict=True)]
    pairs: list[Pair] = []
    incomplete: Counter[str] = Counter()
    for stem in sorted(set().union(*files)):
        missing = [place.name for place, there in zip(places, files, strict=True) if stem not in there]
        if missing:
            incomplete[f"no {' and '.join(missing)}"] += 1
        else:
            pairs.append(Pair(stem, *(there[stem] for there in files)))
    if not pairs:
        names = ", ".join(place.name for place in places)
        raise BenchmarkError(f"{split} has no complete pair: no file is in all of {names}", hint=get_it)
    return Found(split, pairs, incomplete)


def by_size_of_change(pairs: Sequence[Pair], mask: Callable[[Path], NDArray[np.bool_]], seed: int) -> list[Pair]:
    """All pairs, so that any first few have no, little and much change in turn. Opens no file but masks.

    Raises:
        BenchmarkError: as ``mask``.
    """
    # A mask has a bit of information a pixel, but all masks of a data set would fill the memory: only shares are kept.
    shares = {pair.stem: 100 * float(mask(pair.mask).mean()) for pair in pairs}
    return spread(pairs, lambda pair: sum(shares[pair.stem] > size for size in _SIZES_PCT), len(pairs), seed)


def wanted(samples: int) -> int:
    """Number of pairs that give enough questions to choose from."""
    return _PAIRS_A_SAMPLE * samples


def change_part(
    of: ChangeSet,
    found: Found,
    ordered: Sequence[Pair],
    originals: Originals,
    files_of: Callable[[Pair, tuple[int, int]], tuple[SampleFile, SampleFile] | None],
    samples: int,
    metadata: Mapping[str, JsonValue] | None = None,
) -> Part:
    """The part made of the first of ``ordered`` that show anything and do not repeat one before.

    Args:
        files_of: the files of a pair whose mask has so many rows and columns, named; None where one is blank.

    Raises:
        BenchmarkError: as ``files_of``, or nothing is left.
    """
    dropped = Counter(found.incomplete)
    used: set[tuple[str | None, ...]] = set()
    subjects: list[Subject] = []
    for pair in ordered:
        if len(used) == wanted(samples):
            break
        mask = of.mask(pair.mask)
        files = files_of(pair, (mask.shape[0], mask.shape[1]))
        if files is None:
            dropped["blank picture"] += 1
            continue
        hashes = tuple(file.sha256 for file in files)
        if hashes in used:
            dropped["repeated"] += 1
            continue
        used.add(hashes)
        subjects += change_subjects(f"{of.name}-{pair.stem}", files, mask, of.changed, of.gsd_m)
    if not subjects:
        raise BenchmarkError(f"{found.split} has no pair of pictures that show anything", hint=of.get_it)
    counts: dict[str, JsonValue] = {f"{of.name}_dropped": {**dropped}} if dropped else {}
    return Part(
        of.name,
        of.source,
        subjects,
        load_templates("change"),
        samples,
        originals.files,
        counts | dict(metadata or {}),
        dropped=dropped,
    )


def mask_values(path: Path, *, get_it: str) -> NDArray[np.int32]:
    """The values of a mask. Of a JPEG, whose compression blurs them, 0 and 255 for below and above the middle.

    Raises:
        BenchmarkError: it cannot be read, or its channels differ.
    """
    with refused(path, get_it):
        kind = file_format(path)
        if kind == "jpeg":
            return np.where(read_image(path).pixels[..., 0] >= _HALF_OF_GREY, 255, 0).astype(np.int32)
        if kind != "tiff":
            return read_labels(path).classes
    # What a TIFF declares as "no data", often its 0, is a value like others here.
    bands = stored_bands(path, get_it=get_it)
    values = bands[0].astype(np.int32)
    if not (bands == values).all():
        raise BenchmarkError(f"{path} cannot be used: its bands differ, or its values are not whole", hint=get_it)
    return values


def stored_bands(path: Path, *, get_it: str) -> NDArray[Any]:
    """All bands of a GeoTIFF, bands x rows x columns, whatever it declares as alpha or without data.

    Raises:
        BenchmarkError: it cannot be read, or is too large.
    """
    with refused(path, get_it), open_raster(path) as raster:
        if raster.width * raster.height > MAX_PIXELS:
            raise too_large(raster.width, raster.height, raster.name, raster.argument)
        try:
            return raster.dataset.read()
        except MemoryError:
            raise
        except Exception as error:  # GDAL raises whatever a damaged file leads it to.
            raise damaged(raster.name, raster.argument, error) from error


def picture_pixels(path: Path, shape: tuple[int, int], *, get_it: str) -> NDArray[np.uint8]:
    """A picture, rows x columns x 3.

    Raises:
        BenchmarkError: it cannot be read, or is not of its mask's size.
    """
    with refused(path, get_it):
        pixels = read_image(path).pixels
    refuse_other_size(path, (pixels.shape[0], pixels.shape[1]), shape, get_it=get_it)
    return pixels


def refuse_other_size(path: Path, size: tuple[int, int], shape: tuple[int, int], *, get_it: str) -> None:
    """Refuse a picture whose mask has other rows and columns.

    Raises:
        BenchmarkError: it has.
    """
    if size != shape:
        raise BenchmarkError(f"{path} has {size[1]} x {size[0]} pixels, its mask {shape[1]} x {shape[0]}", hint=get_it)


def is_blank(pixels: NDArray[np.uint8]) -> bool:
    """True if a picture is one colour everywhere."""
    return bool((pixels == pixels[:1, :1]).all())


def png_of(pixels: NDArray[np.uint8]) -> bytes:
    """The content of a PNG file with these pixels."""
    from PIL import Image

    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def dated(file: SampleFile, date: str) -> SampleFile:
    """The file under the name of its date, which says no more than the question does: ``before.png``."""
    return file.model_copy(update={"name": f"{date}{Path(file.path).suffix}"})


@contextmanager
def refused(path: Path, get_it: str) -> Iterator[None]:
    """Error of a reader, as an error of the data set."""
    try:
        yield
    except ToolError as error:
        raise BenchmarkError(f"{path} cannot be used: {error.message}", hint=get_it) from error


def _folder(split: Path, folders: Folders, get_it: str) -> Path:
    for name in folders.names:
        if (split / name).is_dir():
            return split / name
    raise BenchmarkError(f"{split} has no folder {' or '.join(folders.names)}", hint=get_it)


def _by_stem(place: Path, suffixes: Sequence[str]) -> dict[str, Path]:
    """Hidden files are left out: archives made on a Mac have one beside each picture, with its suffix."""
    found: dict[str, Path] = {}
    for suffix in reversed(suffixes):
        some = (path for path in sorted(place.iterdir()) if path.suffix.lower() == suffix and path.is_file())
        found |= {path.stem: path for path in some if not path.name.startswith(".")}
    return found
