"""Cropland on two dates with masks of its loss: CLCD and Hi-CNA, the test split of each.

CLCD (Liu et al. 2022), also called CropLand-CD, shows Guangdong in 2017 and 2019. Hi-CNA (Sun et al. 2024) has four
bands; the pictures for questions are made from the visible ones, because new buildings and plantations are visible in
colour, whereas land classes derived from infrared would take every ploughed field for a change.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from agrotools.build.sources.land import change_subjects
from agrotools.build.sources.part import DataSet, Part, adapter
from agrotools.build.sources.reading import (
    JPEG,
    LOSSLESS,
    by_stem,
    find_root,
    first_of,
    is_blank,
    png_of,
    read_bands,
    read_mask,
    read_photo,
    refuse_other_size,
    spread,
)
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, SampleFile
from agrotools.vision.reading import stretched_picture

T = TypeVar("T")
X = TypeVar("X")
DATES = ("before", "after")
_SIZES_PCT = (0.0, 4.0, 8.0, 20.0)
"""Edges of classes of the changed share, percent, from which pairs are drawn evenly. The first class is no change; the
others follow the thresholds of 4 and 8 % above which questions treat a change as certain.
"""

Mask = NDArray[np.bool_]
Files = tuple[SampleFile, SampleFile]
Suffixes = tuple[str, ...]
Layout = tuple[tuple[tuple[str, ...], Suffixes], ...]
"""Possible folder names, and suffixes, of the earlier pictures, the later pictures and the masks."""


def _pairs_part(
    data: DataSet,
    layout: Layout,
    mask: Callable[[Path], Mask],
    shown: Callable[[tuple[Path, Path], tuple[int, int]], Files | None],
    changed: str,
    gsd_m: float | None,
    seed: int,
) -> Part:
    """Return the part made of the test split: pairs with no, little and much change in turn."""
    marker = f"test/{layout[2][0][0]}"
    split = find_root(data.folder, (marker,)) / "test"
    places = [first_of(split, names, "folder ") for names, _ in layout]
    files = [by_stem(place, suffixes) for place, (_, suffixes) in zip(places, layout, strict=True)]
    complete: list[str] = []
    for stem in sorted(set().union(*files)):
        missing = [place.name for place, there in zip(places, files, strict=True) if stem not in there]
        if missing:
            data.dropped[f"no {' and '.join(missing)}"] += 1
        else:
            complete.append(stem)
    if not complete:
        names = ", ".join(place.name for place in places)
        raise BenchmarkError(f"{split} has no complete pair: no file is in all of {names}")
    before, after, masks = files
    # All masks of a data set would exceed the memory, so only the changed shares are kept.
    shares = {stem: 100 * float(mask(masks[stem]).mean()) for stem in complete}
    ordered = spread(complete, lambda stem: sum(shares[stem] > size for size in _SIZES_PCT), len(complete), seed)

    def with_mask(stem: str) -> tuple[Files, Mask] | str:
        where = mask(masks[stem])
        pair = shown((before[stem], after[stem]), (where.shape[0], where.shape[1]))
        return "blank picture" if pair is None else (pair, where)

    subjects: list[Subject] = []
    for stem, pair, where in distinct_pairs(data, ordered, with_mask):
        subjects += change_subjects(f"{data.listing.part}-{stem}", pair, where, changed, gsd_m)
    if not subjects:
        raise BenchmarkError(f"{data.folder} has no pair of pictures that show anything")
    return data.part(subjects, ["change", "cropland"])


def distinct_pairs(
    data: DataSet, ordered: Iterable[T], shown: Callable[[T], tuple[Files, X] | str]
) -> list[tuple[T, Files, X]]:
    """Return the first usable pairs with their files, as many as wanted, without duplicates.

    ``shown``: returns the files of a pair with their content, or the reason for leaving it out.
    """
    used: set[tuple[str | None, ...]] = set()
    distinct: list[tuple[T, Files, X]] = []
    for pair in ordered:
        if len(distinct) == data.wanted:
            break
        one = shown(pair)
        if isinstance(one, str):
            data.dropped[one] += 1
        elif (hashes := tuple(file.sha256 for file in one[0])) in used:
            data.dropped["repeated"] += 1
        else:
            used.add(hashes)
            distinct.append((pair, *one))
    return distinct


def picture_file(path: Path, pixels: NDArray[np.uint8], data: DataSet, note: str) -> SampleFile:
    """Return the authors' file if models can read its format, otherwise its pixels as a PNG."""
    if path.suffix.lower() in (".png", *JPEG):
        return data.originals.file(path, note=note)
    return data.originals.add_content(png_of(pixels), ".png", note=note)


def dated(file: SampleFile, date: str) -> SampleFile:
    """Return the file named after its date (``before.png``), which reveals no more than the question does."""
    return file.model_copy(update={"name": f"{date}{Path(file.path).suffix}"})


@adapter("clcd")
def clcd(data: DataSet) -> Part:
    """Shares of the ground that changed; no areas, because pixel sizes are unknown."""
    kinds = LOSSLESS + JPEG

    def shown(paths: tuple[Path, Path], shape: tuple[int, int]) -> Files | None:
        files: list[SampleFile] = []
        for path, date, year in zip(paths, DATES, (2017, 2019), strict=True):
            pixels = read_photo(path, shape).pixels
            if is_blank(pixels):
                return None
            files.append(dated(picture_file(path, pixels, data, note=f"Satellite picture of {year}."), date))
        return files[0], files[1]

    def mask(path: Path) -> Mask:
        return read_mask(path, ({0, 255}, {0, 1})) > 0

    layout = ((("time1", "image1"), kinds), (("time2", "image2"), kinds), (("label",), kinds))
    return _pairs_part(data, layout, mask, shown, "converted to or from cropland", None, seed=8)


_GSD_M = 0.8
_BANDS = 4
_MOST_CODES = 16
"""Maximum number of codes in a mask, each a kind of loss; pictures mistaken for masks have more values."""


@adapter("hi_cna")
def hi_cna(data: DataSet) -> Part:
    """Shares and areas of the cropland that was lost."""

    def shown(paths: tuple[Path, Path], shape: tuple[int, int]) -> Files | None:
        both = [_hi_cna_bands(path, shape) for path in paths]
        if both[0].dtype != both[1].dtype:
            raise BenchmarkError(f"{paths[1]} holds {both[1].dtype}, {paths[0]} {both[0].dtype}")
        pictures, how = _natural_colours(both)
        if any(is_blank(pixels) for pixels in pictures):
            return None
        files: list[SampleFile] = []
        for pixels, date, when in zip(pictures, DATES, ("first", "second"), strict=True):
            note = f"Satellite picture, {when} date: red, green and blue of four bands, {how}."
            files.append(dated(data.originals.add_content(png_of(pixels), ".png", gsd_m=_GSD_M, note=note), date))
        return files[0], files[1]

    tiff = (".tif", ".tiff")
    layout = ((("image1",), tiff), (("image2",), tiff), (("change",), LOSSLESS + JPEG))
    return _pairs_part(data, layout, _hi_cna_mask, shown, "turned from cropland into something else", _GSD_M, seed=6)


def _hi_cna_mask(path: Path) -> Mask:
    values = read_mask(path)
    there = np.unique(values)
    if there[0] < 0 or len(there) > _MOST_CODES:
        some = ", ".join(str(int(value)) for value in there[:5])
        raise BenchmarkError(f"{path} has {len(there)} values and is not a mask of change: {some}...")
    return values > 0


def _hi_cna_bands(path: Path, shape: tuple[int, int]) -> NDArray[Any]:
    """Return the stored red, green, blue and infrared bands.

    A fourth band declared as alpha, as many writers of 8-bit files do, is infrared and must not hide pixels: it is dark
    over water.
    """
    bands = read_bands(path)
    if len(bands) != _BANDS:
        raise BenchmarkError(f"{path} has {len(bands)} bands, not {_BANDS}")
    refuse_other_size(path, (bands.shape[1], bands.shape[2]), shape)
    return bands


def _natural_colours(both: Sequence[NDArray[Any]]) -> tuple[list[NDArray[np.uint8]], str]:
    """Return red, green and blue of both dates in 8 bits, and a description of the conversion."""
    if all(bands.dtype == np.uint8 for bands in both):
        return [np.ascontiguousarray(np.moveaxis(bands[:3], 0, -1)) for bands in both], "as stored"
    red, green, blue, _ = np.concatenate([bands.astype(np.float32) for bands in both], axis=1)
    stretched = stretched_picture({"R": red, "G": green, "B": blue})
    pictures = [np.ascontiguousarray(pixels) for pixels in np.split(stretched, 2)]
    return pictures, "each stretched alike in both pictures"
