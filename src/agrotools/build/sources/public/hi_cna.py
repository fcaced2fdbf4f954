"""Hi-CNA (Sun et al. 2024): cropland of two dates, in four bands, with masks of where it was lost; the test split.

The pictures that questions show are made from the visible bands: the question is what was built or planted on fields,
which is seen in colours, while land classes told by infrared would take every ploughed field for a change.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

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
from agrotools.build.sources.reading import (
    JPEG,
    LOSSLESS,
    find_root,
    is_blank,
    png_of,
    read_bands,
    read_mask,
    refuse_other_size,
)
from agrotools.core import BenchmarkError
from agrotools.vision.reading import stretched_picture

CHANGED = "turned from cropland into something else"
GSD_M = 0.8
Order = Literal["R, G, B, NIR", "B, G, R, NIR"]
_DOCUMENTED: Order = "R, G, B, NIR"
_LAYOUT = (
    (("image1",), (".tif", ".tiff")),
    (("image2",), (".tif", ".tiff")),
    (("change",), LOSSLESS + JPEG),
)
_BANDS = 4
_MOST_CODES = 16
"""Codes of a mask, each a kind of loss; a picture that was taken for a mask has more values."""
_AGREED = 0.8
"""Of the pictures that tell, from which the order of the bands is taken as known. Nearly all agree where bands keep
their proportions; where each was stretched by itself, they are of two minds."""
_PIXELS_USED = 50_000
"""Pixels of a picture that its correlations and means are taken from."""
_SEED = 6


@adapter("hi_cna")
def read(data: DataSet) -> Part:
    """Shares and areas of the cropland that was lost."""
    pairs = find_pairs(find_root(data.folder, ("test/change",)) / "test", _LAYOUT, data)
    ordered = by_size_of_change(pairs, _mask, _SEED)
    order, metadata = _agreed_order(ordered[: data.wanted])

    def shown(pair: Pair, shape: tuple[int, int]) -> Files | None:
        both = [_bands(path) for path in (pair.before, pair.after)]
        for path, bands in zip((pair.before, pair.after), both, strict=True):
            refuse_other_size(path, (bands.shape[1], bands.shape[2]), shape)
        if both[0].dtype != both[1].dtype:
            raise BenchmarkError(f"{pair.after} holds {both[1].dtype}, {pair.before} {both[0].dtype}")
        pictures, how = _pictures(both, order)
        if any(is_blank(pixels) for pixels in pictures):
            return None
        before, after = (
            dated(data.originals.made(png_of(pixels), ".png", gsd_m=GSD_M, note=_note(when, how)), date)
            for pixels, date, when in zip(pictures, DATES, ("first", "second"), strict=True)
        )
        return before, after

    return data.part(farmland_subjects(data, ordered, _mask, shown, CHANGED, GSD_M), ["change"], metadata)


def _mask(path: Path) -> NDArray[np.bool_]:
    values = read_mask(path)
    there = np.unique(values)
    if there[0] < 0 or len(there) > _MOST_CODES:
        some = ", ".join(str(int(value)) for value in there[:5])
        raise BenchmarkError(f"{path} has {len(there)} values and is not a mask of change: {some}...")
    return values > 0


def _bands(path: Path) -> NDArray[Any]:
    """The four bands as they are stored: a fourth that the file calls alpha, as writers of 8 bits do by habit, hides
    nothing. It is infrared, and dark where there is water."""
    bands = read_bands(path)
    if len(bands) != _BANDS:
        raise BenchmarkError(f"{path} has {len(bands)} bands, not {_BANDS}")
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
    votes = Counter(_order_of(_bands(path)) for pair in pairs for path in (pair.before, pair.after))
    telling = votes.total() - votes[None]
    elsewhere = votes["infrared elsewhere"]
    if 2 * elsewhere > telling:
        raise BenchmarkError(
            f"{pairs[0].before.parent}: of {telling} pictures {elsewhere} have their infrared in another band than the"
            " fourth"
        )
    by_order: dict[Order, int] = {"R, G, B, NIR": votes["R, G, B, NIR"], "B, G, R, NIR": votes["B, G, R, NIR"]}
    best = max(by_order, key=by_order.__getitem__)
    is_known = by_order[best] > 0 and by_order[best] >= _AGREED * sum(by_order.values())
    order = best if is_known else _DOCUMENTED
    evidence: dict[str, JsonValue] = {"order": order, "pictures": {**by_order}, "infrared_elsewhere": elsewhere}
    evidence["decided_by"] = "pictures" if is_known else "description, pictures disagree"
    return order, {"hi_cna_bands": evidence}


def _order_of(bands: NDArray[Any]) -> Order | Literal["infrared elsewhere"] | None:
    """The order of the bands as one picture tells it; None where it tells nothing.

    Visible bands go together everywhere, and infrared goes its own way over plants. Between plants and bright bare
    ground red changes more than blue: soil is the brighter the longer the wave, and haze lies over blue.
    """
    step = max(1, bands[0].size // _PIXELS_USED)
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
