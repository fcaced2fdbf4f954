"""CLCD, also CropLand-CD (Liu et al. 2022): cropland of Guangdong in 2017 and 2019 with masks of what changed; the
test split."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agrotools.build.sources.part import Originals, Part
from agrotools.build.sources.public.change_pairs import (
    DATES,
    JPEG,
    LOSSLESS,
    ChangeSet,
    Folders,
    Pair,
    by_size_of_change,
    change_part,
    dated,
    find_pairs,
    is_blank,
    mask_values,
    picture_pixels,
    png_of,
)
from agrotools.build.sources.public.reading import find_root
from agrotools.core import BenchmarkError, SampleFile
from agrotools.formats.benchmark import SourceNote

GET_IT = (
    "get CLCD by the links in the README of github.com/liumency/CropLand-CD, so that test/time1, test/time2 and"
    " test/label lie side by side, with files of the same names"
)
SOURCE = SourceNote(
    name="CLCD",
    licence="not stated",
    url="https://github.com/liumency/CropLand-CD",
    citation="Liu, M. et al.: A CNN-Transformer Network With Multiscale Context Aggregation for Fine-Grained Cropland"
    " Change Detection. IEEE Journal of Selected Topics in Applied Earth Observations and Remote Sensing 15, 2022.",
    note="Questions, reference calls and tolerances are by agrotools; images and masks are the authors'. Test split."
    " Masks do not say which way land changed, nor files how large a pixel is.",
)
CHANGED = "converted to or from cropland"
_YEARS = (2017, 2019)
_CODINGS = ({0, 255}, {0, 1})
_SEED = 8


def read(folder: Path, scratch: Path, samples: int) -> Part:
    """Raises BenchmarkError: the data set is incomplete, or not as its authors describe it."""
    root = find_root(folder, ("test/label",), get_it=GET_IT)
    found = find_pairs(
        root / "test",
        Folders(("time1", "image1"), LOSSLESS + JPEG),
        Folders(("time2", "image2"), LOSSLESS + JPEG),
        Folders(("label",), LOSSLESS + JPEG),
        get_it=GET_IT,
    )
    originals = Originals(scratch)

    def files_of(pair: Pair, shape: tuple[int, int]) -> tuple[SampleFile, SampleFile] | None:
        files: list[SampleFile] = []
        for path, date, year in zip((pair.before, pair.after), DATES, _YEARS, strict=True):
            pixels = picture_pixels(path, shape, get_it=GET_IT)
            if is_blank(pixels):
                return None
            files.append(dated(_shown(path, pixels, originals, f"Satellite picture of {year}."), date))
        return files[0], files[1]

    of = ChangeSet("clcd", SOURCE, GET_IT, CHANGED, None, _mask)
    return change_part(of, found, by_size_of_change(found.pairs, _mask, _SEED), originals, files_of, samples)


def _mask(path: Path) -> NDArray[np.bool_]:
    values = mask_values(path, get_it=GET_IT)
    there = {int(value) for value in np.unique(values)}
    if not any(there <= coding for coding in _CODINGS):
        strange = ", ".join(str(value) for value in sorted(there - _CODINGS[0])[:5])
        raise BenchmarkError(f"{path} has values that are neither 0 nor 255: {strange}", hint=GET_IT)
    return values > 0


def _shown(path: Path, pixels: NDArray[np.uint8], originals: Originals, note: str) -> SampleFile:
    """The authors' file where models can be shown it, else the same pixels as a PNG."""
    if path.suffix.lower() in (".png", *JPEG):
        return originals.file(path, note=note)
    return originals.made(png_of(pixels), ".png", note=note)
