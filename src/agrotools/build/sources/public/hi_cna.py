"""Hi-CNA (Sun et al. 2024): cropland of two dates, in four bands, with masks of where it was lost; the test split.

The pictures that questions show are made from the visible bands: the question is what was built or planted on fields,
which is seen in colours, while land classes told by infrared would take every ploughed field for a change.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

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
    png_of,
    refuse_other_size,
    stored_bands,
    wanted,
)
from agrotools.build.sources.public.reading import find_root
from agrotools.core import BenchmarkError, SampleFile
from agrotools.formats.benchmark import SourceNote
from agrotools.vision.reading import stretched_picture

GET_IT = (
    "ask the authors of Hi-CNA (doi.org/10.1016/j.isprsjprs.2024.05.011) for it, so that test/image1, test/image2 and"
    " test/change lie side by side, with files of the same names"
)
SOURCE = SourceNote(
    name="Hi-CNA",
    licence="not stated",
    url="https://doi.org/10.1016/j.isprsjprs.2024.05.011",
    citation="Sun, Z. et al.: Identifying cropland non-agriculturalization with high representational consistency from"
    " bi-temporal high-resolution remote sensing images: From benchmark datasets to real-world application. ISPRS"
    " Journal of Photogrammetry and Remote Sensing, 2024.",
    note="Questions, reference calls and tolerances are by agrotools, masks the authors'. Pictures are made from"
    " the visible bands of theirs. Test split. Only the loss of cropland counts as change.",
)
CHANGED = "turned from cropland into something else"
GSD_M = 0.8
Order = Literal["R, G, B, NIR", "B, G, R, NIR"]
_DOCUMENTED: Order = "R, G, B, NIR"
_BANDS = 4
_MOST_CODES = 16
"""Codes of a mask, each a kind of loss; a picture that was taken for a mask has more values."""
_AGREED = 0.8
"""Of the pictures that tell, from which the order of the bands is taken as known. Nearly all agree where bands keep
their proportions; where each was stretched by itself, they are of two minds."""
_TOLD_BY = 50_000
"""Pixels of a picture that its correlations and means are taken from."""
_SEED = 6


def read(folder: Path, scratch: Path, samples: int) -> Part:
    """Raises BenchmarkError: the data set is incomplete, or not as its authors describe it."""
    root = find_root(folder, ("test/change",), get_it=GET_IT)
    found = find_pairs(
        root / "test",
        Folders(("image1",), (".tif", ".tiff")),
        Folders(("image2",), (".tif", ".tiff")),
        Folders(("change",), LOSSLESS + JPEG),
        get_it=GET_IT,
    )
    ordered = by_size_of_change(found.pairs, _mask, _SEED)
    order, metadata = _agreed_order(ordered[: wanted(samples)])
    originals = Originals(scratch)

    def files_of(pair: Pair, shape: tuple[int, int]) -> tuple[SampleFile, SampleFile] | None:
        both = [_bands(path) for path in (pair.before, pair.after)]
        for path, bands in zip((pair.before, pair.after), both, strict=True):
            refuse_other_size(path, (bands.shape[1], bands.shape[2]), shape, get_it=GET_IT)
        if both[0].dtype != both[1].dtype:
            raise BenchmarkError(f"{pair.after} holds {both[1].dtype}, {pair.before} {both[0].dtype}", hint=GET_IT)
        pictures, how = _pictures(both, order)
        if any(is_blank(pixels) for pixels in pictures):
            return None
        before, after = (
            dated(originals.made(png_of(pixels), ".png", gsd_m=GSD_M, note=_note(when, how)), date)
            for pixels, date, when in zip(pictures, DATES, ("first", "second"), strict=True)
        )
        return before, after

    of = ChangeSet("hi_cna", SOURCE, GET_IT, CHANGED, GSD_M, _mask)
    return change_part(of, found, ordered, originals, files_of, samples, metadata)


def _mask(path: Path) -> NDArray[np.bool_]:
    values = mask_values(path, get_it=GET_IT)
    there = np.unique(values)
    if there[0] < 0 or len(there) > _MOST_CODES:
        some = ", ".join(str(int(value)) for value in there[:5])
        raise BenchmarkError(f"{path} has {len(there)} values and is not a mask of change: {some}...", hint=GET_IT)
    return values > 0


def _bands(path: Path) -> NDArray[Any]:
    """The four bands as they are stored: a fourth that the file calls alpha, as writers of 8 bits do by habit, hides
    nothing. It is infrared, and dark where there is water."""
    bands = stored_bands(path, get_it=GET_IT)
    if len(bands) != _BANDS:
        raise BenchmarkError(f"{path} has {len(bands)} bands, not {_BANDS}", hint=GET_IT)
    return bands


def _note(when: str, how: str) -> str:
    return f"Satellite picture, {when} date: red, green and blue of four bands, {how}."


def _pictures(both: Sequence[NDArray[Any]], order: Order) -> tuple[list[NDArray[np.uint8]], str]:
    """Red, green and blue of both dates in 8 bits, and in words how they came to that. Both are stretched alike, so
    that ground which stayed as it was looks as it did."""
    red, green, blue = (0, 1, 2) if order == "R, G, B, NIR" else (2, 1, 0)
    if all(bands.dtype == np.uint8 for bands in both):
        return [np.ascontiguousarray(np.dstack([bands[red], bands[green], bands[blue]])) for bands in both], "as stored"
    above = np.concatenate([bands.astype(np.float32) for bands in both], axis=1)
    stretched = stretched_picture({"R": above[red], "G": above[green], "B": above[blue]})
    pictures = [np.ascontiguousarray(pixels) for pixels in np.split(stretched, 2)]
    return pictures, "each stretched alike in both pictures"


def _agreed_order(pairs: Sequence[Pair]) -> tuple[Order, dict[str, JsonValue]]:
    """Order of bands in most of the pictures, with the evidence.

    Raises:
        BenchmarkError: another band than the fourth looks like infrared in most of them.
    """
    votes = Counter(_told_order(_bands(path)) for path in _files(pairs))
    telling = votes.total() - votes[None]
    elsewhere = votes["infrared elsewhere"]
    if 2 * elsewhere > telling:
        raise BenchmarkError(
            f"{pairs[0].before.parent}: of {telling} pictures {elsewhere} have their infrared in another band than the"
            " fourth",
            hint=GET_IT,
        )
    by_order: dict[Order, int] = {"R, G, B, NIR": votes["R, G, B, NIR"], "B, G, R, NIR": votes["B, G, R, NIR"]}
    best = max(by_order, key=by_order.__getitem__)
    is_known = by_order[best] > 0 and by_order[best] >= _AGREED * sum(by_order.values())
    order = best if is_known else _DOCUMENTED
    told: dict[str, JsonValue] = {"order": order, "pictures": {**by_order}, "infrared_elsewhere": elsewhere}
    return order, {"hi_cna_bands": {**told, "decided_by": "pictures" if is_known else "description, pictures disagree"}}


def _files(pairs: Iterable[Pair]) -> Iterable[Path]:
    return (path for pair in pairs for path in (pair.before, pair.after))


def _told_order(bands: NDArray[Any]) -> Order | Literal["infrared elsewhere"] | None:
    """The order of the bands as one picture tells it; None where it tells nothing.

    Visible bands go together everywhere, and infrared goes its own way over plants. Between plants and bright bare
    ground red changes more than blue: soil is the brighter the longer the wave, and haze lies over blue.
    """
    step = max(1, bands[0].size // _TOLD_BY)
    values = bands.reshape(_BANDS, -1)[:, ::step].astype(np.float64)
    values = values[:, np.isfinite(values).all(axis=0)]
    if values.shape[1] < 2 or not (values.std(axis=1) > 0).all():
        return None
    if int(np.argmin(np.corrcoef(values).sum(axis=0))) != _BANDS - 1:
        return "infrared elsewhere"
    green, infrared = values[1], values[3]
    greenness = (infrared - green) / np.maximum(np.abs(infrared) + np.abs(green), 1e-12)
    is_bright = values.sum(axis=0) > np.median(values.sum(axis=0))
    plants = greenness >= np.quantile(greenness, 0.8)
    if not is_bright.any():
        return None
    bare = is_bright & (greenness <= np.quantile(greenness[is_bright], 0.2))
    first, _, third, _ = values[:, bare].mean(axis=1) - values[:, plants].mean(axis=1)
    if max(first, third) <= 0 or first == third:
        return None
    return "R, G, B, NIR" if first > third else "B, G, R, NIR"
