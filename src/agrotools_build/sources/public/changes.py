"""Pairs of pictures of two dates with masks of change: cropland in CLCD and Hi-CNA, farm ponds in FPCD.

CLCD (Liu et al. 2022), also called CropLand-CD, shows Guangdong in 2017 and 2019. Hi-CNA (Sun et al. 2024) has four
bands; the pictures for questions are made from the visible ones, because new buildings and plantations are visible in
colour, whereas land classes derived from infrared would take every ploughed field for a change. FPCD (Tundia et al.
2023) shows Indian villages; only pairs with a class mask are used, because it tells which of four events happened to
each pond.
"""

from collections.abc import Hashable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.core import Arguments, BenchmarkError, SampleFile
from agrotools.vision.reading import stretched_picture
from agrotools_build.sources.land import change_subjects, change_truth, look_closer, site_truth
from agrotools_build.sources.part import DataSet, Part
from agrotools_build.sources.reading import (
    JPEG,
    Item,
    find_root,
    is_blank,
    matched_items,
    png_of,
    read_bands,
    read_mask,
    read_photo,
    refuse_other_size,
    spread,
)
from agrotools_build.templates import Thing
from agrotools_build.templates.thing import Subject

_SIZES_PCT = (0.0, 4.0, 8.0, 20.0)
"""Edges of classes of the changed share, percent, from which pairs are drawn evenly. The first class is no change; the
others follow the thresholds of 4 and 8 % above which questions treat a change as certain.
"""
Pictures = Sequence[NDArray[np.uint8]]


def changes(data: DataSet) -> Part:
    """Return the pairs, with different kinds of change in turn, without duplicates and blank pictures."""
    of = data.layout
    root = find_root(data.folder, of["root"]) / of.get("within", "")
    # All masks of a data set would exceed the memory, so only their kinds are kept.
    pairs = [
        (pair, _kind(_codes(pair.files["mask"], data), data)) for pair in matched_items(data, root)
    ]
    used: set[tuple[str | None, ...]] = set()
    subjects: list[Subject] = []
    for pair, _ in spread(pairs, lambda one: one[1], len(pairs), of["seed"]):
        if len(used) == data.wanted:
            break
        codes = _codes(pair.files["mask"], data)
        files = _files(pair, codes.shape, data)
        if isinstance(files, str) or tuple(file.sha256 for file in files) in used:
            data.dropped[files if isinstance(files, str) else "repeated"] += 1
            continue
        used.add(tuple(file.sha256 for file in files))
        codes = np.ascontiguousarray(codes[: files[0].height_px, : files[0].width_px])
        name = f"{data.listing.part}-{pair.name}"
        if "events" in of:
            subjects += pond_subjects(name, files, codes, data)
        else:
            subjects += change_subjects(name, files, codes > 0, of["changed"], of.get("gsd_m"))
    return data.part(subjects, of["templates"])


def _codes(path: Path, data: DataSet) -> NDArray[np.int32]:
    values = read_mask(path, data.layout.get("codings", ()))
    there = np.unique(values)
    if there[0] < 0 or len(there) > data.layout.get("most_codes", 256):
        raise BenchmarkError(f"{path} has {len(there)} values and is not a mask of change")
    return values


def _kind(codes: NDArray[np.int32], data: DataSet) -> Hashable:
    if "events" not in data.layout:
        share = 100 * float((codes > 0).mean())
        return sum(share > size for size in _SIZES_PCT)
    _, event, pieces = _ponds_in(codes, data)
    return event or "several or untold", min(pieces, 3)


def _files(pair: Item, shape: Sequence[int], data: DataSet) -> tuple[SampleFile, ...] | str:
    """Return the files of a pair, cut to what all show and PNG unless models can read them, or why it is left out."""
    of, paths = data.layout, (pair.files["before"], pair.files["after"])
    read = partial(_bands, of["bands"]) if "bands" in of else lambda path: read_photo(path).pixels
    pictures: Pictures = [read(path) for path in paths]
    if "most_cut_px" not in of:
        for path, pixels in zip(paths, pictures, strict=True):
            refuse_other_size(path, (pixels.shape[0], pixels.shape[1]), (shape[0], shape[1]))
    how = ""
    if "bands" in of:
        if pictures[0].dtype != pictures[1].dtype:
            raise BenchmarkError(
                f"{paths[1]} holds {pictures[1].dtype}, {paths[0]} {pictures[0].dtype}"
            )
        pictures, how = _natural_colours(pictures)
    if any(is_blank(pixels) for pixels in pictures):
        return "blank picture"
    sizes = [one[:2] for one in (*(pixels.shape for pixels in pictures), shape)]
    rows, columns = (min(sides) for sides in zip(*sizes, strict=True))
    if max(max(height - rows, width - columns) for height, width in sizes) > of.get(
        "most_cut_px", 0
    ):
        return "unlike sizes"
    files: list[SampleFile] = []
    for role, path, pixels, note in zip(
        ("before", "after"), paths, pictures, of["notes"], strict=True
    ):
        cut = np.ascontiguousarray(pixels[:rows, :columns])
        note += f" ({pair.told[role]})" if role in pair.told else ""
        if how == "" and cut.shape == pixels.shape and path.suffix.lower() in (".png", *JPEG):
            file = data.originals.file(path, note=f"{note}.")
        else:
            note += how or (", cut to what both pictures show" if cut.shape != pixels.shape else "")
            file = data.originals.add_content(
                png_of(cut), ".png", gsd_m=of.get("gsd_m"), note=f"{note}."
            )
        files.append(file.model_copy(update={"name": f"{role}{Path(file.path).suffix}"}))
    return tuple(files)


def _bands(count: int, path: Path) -> NDArray[Any]:
    """Return the stored red, green, blue and infrared bands; infrared declared as alpha does not hide pixels."""
    bands = read_bands(path)
    if len(bands) != count:
        raise BenchmarkError(f"{path} has {len(bands)} bands, not {count}")
    return np.moveaxis(bands, 0, -1)


def _natural_colours(both: Sequence[NDArray[Any]]) -> tuple[Pictures, str]:
    """Return red, green and blue of both dates in 8 bits, and a description of the conversion."""
    how = ": red, green and blue of four bands, "
    if all(bands.dtype == np.uint8 for bands in both):
        return [np.ascontiguousarray(bands[..., :3]) for bands in both], f"{how}as stored"
    red, green, blue, _ = np.moveaxis(
        np.concatenate([bands.astype(np.float32) for bands in both]), -1, 0
    )
    stretched = stretched_picture({"R": red, "G": green, "B": blue})
    return np.split(stretched, 2), f"{how}each stretched alike in both pictures"


def pond_subjects(
    name: str, files: tuple[SampleFile, ...], codes: NDArray[np.int32], data: DataSet
) -> list[Subject]:
    """Return the subjects of a pair (``files``: before, after) for questions about ponds.

    If ponds were built and nothing else happened, there is also one for questions about their number. The truth is what
    masks determine: not the water, as unchanged ponds are not drawn and new ones may be dry. Small pieces alone neither
    show nor rule out a change.
    """
    least_px: int = data.layout["least_px"]
    ponds, event, _ = _ponds_in(codes, data)
    changed = True if ponds.any() else None if codes.any() else False
    before, after = (file.name for file in files)
    called: Arguments = {"before": before, "after": after, "target": "pond"}
    words = {"before": before, "after": after, "least": str(least_px)}

    def truth(change: NDArray[np.bool_]) -> dict[str, Any]:
        return {**change_truth(change, None, pond={"event": event}), "changed": changed}

    def pair(_: int, __: int) -> Thing:
        thought = "I need to know what became of the ponds between the two pictures."
        return Thing(files, "detect_change", called, truth(codes > 0), "the scene", thought, words)

    def new_ponds(_: int, __: int) -> Thing:
        sites = site_truth(ponds, least_px, None)
        look = look_closer(
            after,
            "shape",
            sites,
            "Each piece of the map of change is a pond; now how many there are.",
        )
        thought = "I need to see where ponds appeared, without small patches."
        arguments: Arguments = {**called, "min_area_px": least_px}
        return Thing(
            files,
            "detect_change",
            arguments,
            truth(ponds),
            "the scene",
            thought,
            words,
            closer=(look,),
        )

    more = (
        [Subject(f"{name}-new", 1, new_ponds, {"pair": name}, of="new_pond")]
        if event == "constructed"
        else []
    )
    return [Subject(name, 1, pair, {"pair": name}, of="pond"), *more]


def _ponds_in(codes: NDArray[np.int32], data: DataSet) -> tuple[NDArray[np.bool_], str | None, int]:
    """Return the mask of ponds, their event or ``none`` (None: several events, or only small pieces), their number."""
    ponds = np.zeros(codes.shape, np.bool_)
    there: list[str] = []
    pieces = 0
    for value, event in enumerate(data.layout["events"], start=1):
        _, labels, stats, _ = cv2.connectedComponentsWithStats(
            (codes == value).astype(np.uint8), connectivity=8
        )
        is_pond = stats[:, cv2.CC_STAT_AREA] >= data.layout["least_px"]
        is_pond[0] = False
        if is_pond.any():
            there.append(event)
            ponds |= is_pond[np.asarray(labels)]
            pieces += int(np.count_nonzero(is_pond))
    names = there or ["none"]
    return ponds, None if len(names) > 1 or (codes.any() and not there) else names[0], pieces
