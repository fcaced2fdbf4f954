"""CLCD, also CropLand-CD (Liu et al. 2022): cropland of Guangdong in 2017 and 2019 with masks of what changed; the
test split."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agrotools.build.sources.part import DataSet, Part, adapter
from agrotools.build.sources.public.change_pairs import (
    DATES,
    Files,
    Pair,
    by_size_of_change,
    dated,
    farmland_subjects,
    find_pairs,
)
from agrotools.build.sources.reading import JPEG, LOSSLESS, find_root, is_blank, png_of, read_mask, read_photo
from agrotools.core import SampleFile

CHANGED = "converted to or from cropland"
_YEARS = (2017, 2019)
_PICTURES = LOSSLESS + JPEG
_LAYOUT = ((("time1", "image1"), _PICTURES), (("time2", "image2"), _PICTURES), (("label",), _PICTURES))
_CODINGS = ({0, 255}, {0, 1})
_SEED = 8


@adapter("clcd")
def read(data: DataSet) -> Part:
    """Shares of the ground that changed, without an area: how large a pixel is, is not known."""
    pairs = find_pairs(find_root(data.folder, ("test/label",)) / "test", _LAYOUT, data)

    def shown(pair: Pair, shape: tuple[int, int]) -> Files | None:
        files: list[SampleFile] = []
        for path, date, year in zip((pair.before, pair.after), DATES, _YEARS, strict=True):
            pixels, note = read_photo(path, shape).pixels, f"Satellite picture of {year}."
            if is_blank(pixels):
                return None
            # The authors' file where models can be shown it, else the same pixels as a PNG.
            is_shown = path.suffix.lower() in (".png", *JPEG)
            originals = data.originals
            file = originals.file(path, note=note) if is_shown else originals.made(png_of(pixels), ".png", note=note)
            files.append(dated(file, date))
        return files[0], files[1]

    ordered = by_size_of_change(pairs, _mask, _SEED)
    return data.part(farmland_subjects(data, ordered, _mask, shown, CHANGED, None), ["change"])


def _mask(path: Path) -> NDArray[np.bool_]:
    return read_mask(path, _CODINGS) > 0
