"""FPCD (Tundia et al. 2023): Indian villages on two dates with masks of changes of farm ponds; the test list.

Only pairs with a class mask are used, because it tells which of four events happened to each pond.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.build.sources.land import change_truth, look_closer, site_truth
from agrotools.build.sources.part import DataSet, Part, adapter, reasons
from agrotools.build.sources.public.cropland import DATES, Files, dated, distinct_pairs, picture_file
from agrotools.build.sources.reading import (
    JPEG,
    LOSSLESS,
    files_in,
    find_root,
    is_blank,
    png_of,
    read_lines,
    read_mask,
    read_photo,
    spread,
)
from agrotools.build.templates import Thing
from agrotools.build.templates.thing import Subject
from agrotools.core import Arguments, BenchmarkError, SampleFile

_TEST_LIST, _MASKS = "cd_dataset_test.txt", "multi_class_masks"
EVENTS: Mapping[int, str] = {1: "constructed", 2: "demolished", 3: "dried", 4: "wetted"}
"""Meaning of the values of class masks, in the terms of ``detect_change``."""
LEAST_PX = 100
"""Minimum size of a pond; smaller patches are drawing artefacts. At half a metre per pixel it is a pond 5 m wide."""
MOST_CUT_PX = 32
"""Maximum difference in size; pictures that differ more hardly share the same ground and corner."""
_LISTED_SUFFIXES = (*JPEG, *LOSSLESS)
_SEED = 9

Codes = NDArray[np.uint8]
"""Rows x columns: 0, or an event of :data:`EVENTS`."""


@dataclass(frozen=True)
class Place:
    """The pictures of one place, with dates (``2007-03``) if their names contain them."""

    key: str
    pictures: tuple[Path, Path]
    dates: tuple[str | None, str | None]
    mask: Path


@dataclass(frozen=True, eq=False)
class PondEvents:
    """Content of a mask.

    ``codes`` is the whole mask; ``ponds`` excludes pieces smaller than :data:`LEAST_PX`. ``event`` is the event or
    ``none``, and None if there are several events or only small pieces.
    """

    codes: Codes
    ponds: NDArray[np.bool_]
    event: str | None
    pieces: int

    @property
    def changed(self) -> bool | None:
        """True if a pond changed; None if only small pieces are marked, which neither show nor rule out a change."""
        return True if self.ponds.any() else None if self.codes.any() else False


@adapter("fpcd")
def fpcd(data: DataSet) -> Part:
    """Events of ponds and numbers of new ones; no areas, because pixel sizes are unknown."""
    root = find_root(data.folder, (_TEST_LIST, "T0", "T1", _MASKS))
    # JPEG compression would have mixed neighbouring class values.
    masks = {key: paths[0] for key, paths in _by_key(root / _MASKS, LOSSLESS).items()}
    places = _places(root, _listed(root / _TEST_LIST), masks, data)
    # All masks of a data set would exceed the memory, so only their content is kept.
    kinds: dict[str, tuple[str, int]] = {}
    for place in places:
        events = _events_in(_codes(place.mask))
        kinds[place.key] = (events.event or "several or untold", min(events.pieces, 3))
    ordered = spread(places, lambda place: kinds[place.key], len(places), _SEED)
    pairs = distinct_pairs(data, ordered, lambda place: _pair_files(place, data))
    subjects = [one for place, files, events in pairs for one in pond_subjects(f"fpcd-{place.key}", files, events)]
    if not subjects:
        why = reasons(data.dropped) or "there is none"
        raise BenchmarkError(f"no pair of {root / _TEST_LIST} can be used ({why})")
    return data.part(subjects, ["pond", "pond_storage"])


def pond_subjects(name: str, files: tuple[SampleFile, SampleFile], events: PondEvents) -> list[Subject]:
    """Return the subjects of a pair (``files``: before, after) for questions about ponds.

    If ponds were built and nothing else happened, there is also one for questions about their number.
    """
    before, after = (file.name for file in files)
    called: Arguments = {"before": before, "after": after, "target": "pond"}
    words = {"before": before, "after": after, "least": str(LEAST_PX)}

    def pair(_: int, __: int) -> Thing:
        thought = "I need to know what became of the ponds between the two pictures."
        truth = _truth(events, events.codes > 0)
        return Thing(files, "detect_change", called, truth, "the scene", thought, words)

    def new_ponds(_: int, __: int) -> Thing:
        sites = site_truth(events.ponds, LEAST_PX, None)
        look = look_closer(after, "shape", sites, "Each piece of the map of change is a pond; now how many there are.")
        thought = "I need to see where ponds appeared, without small patches."
        arguments: Arguments = {**called, "min_area_px": LEAST_PX}
        truth = _truth(events, events.ponds)
        return Thing(files, "detect_change", arguments, truth, "the scene", thought, words, closer=(look,))

    more = [Subject(f"{name}-new", 1, new_ponds, {"pair": name}, of="new_pond")] if events.event == EVENTS[1] else []
    return [Subject(name, 1, pair, {"pair": name}, of="pond"), *more]


def _truth(events: PondEvents, change: NDArray[np.bool_]) -> dict[str, Any]:
    """Return what masks determine: not the water, as unchanged ponds are not drawn and new ones may be dry."""
    return {**change_truth(change, None, pond={"event": events.event}), "changed": events.changed}


def _events_in(codes: Codes) -> PondEvents:
    ponds = np.zeros(codes.shape, np.bool_)
    there: set[int] = set()
    pieces = 0
    for value in EVENTS:
        _, labels, stats, _ = cv2.connectedComponentsWithStats((codes == value).astype(np.uint8), connectivity=8)
        is_pond = stats[:, cv2.CC_STAT_AREA] >= LEAST_PX
        is_pond[0] = False
        if is_pond.any():
            there.add(value)
            ponds |= is_pond[np.asarray(labels)]
            pieces += int(np.count_nonzero(is_pond))
    names = [EVENTS[value] for value in there] or ["none"]
    event = None if len(names) > 1 or (codes.any() and not there) else names[0]
    return PondEvents(codes, ponds, event, pieces)


def _codes(mask: Path) -> Codes:
    return read_mask(mask, ({0, *EVENTS},)).astype(np.uint8)


def _pair_files(place: Place, data: DataSet) -> tuple[Files, PondEvents] | str:
    """Return the named files of a pair and the events on the ground shown by both, or the reason for leaving it out."""
    codes = _codes(place.mask)
    pictures = [read_photo(path).pixels for path in place.pictures]
    if any(is_blank(pixels) for pixels in pictures):
        return "blank picture"
    sizes = [(one.shape[0], one.shape[1]) for one in (*pictures, codes)]
    rows, columns = (min(sides) for sides in zip(*sizes, strict=True))
    if max(max(height - rows, width - columns) for height, width in sizes) > MOST_CUT_PX:
        return "unlike sizes"
    files: list[SampleFile] = []
    for path, pixels, when, date, order in zip(
        place.pictures, pictures, place.dates, DATES, ("first", "second"), strict=True
    ):
        note = f"Seen from above, {order} date{f' ({when})' if when else ''}"
        if pixels.shape[:2] == (rows, columns):
            file = picture_file(path, pixels, data, f"{note}.")
        else:
            content = png_of(np.ascontiguousarray(pixels[:rows, :columns]))
            file = data.originals.add_content(content, ".png", note=f"{note}, cut to what both pictures show.")
        files.append(dated(file, date))
    return (files[0], files[1]), _events_in(np.ascontiguousarray(codes[:rows, :columns]))


def _listed(path: Path) -> list[str]:
    """Return the keys of the pairs in a list, each once; some lists name the first picture, others the mask."""
    names = (line.replace("\\", "/").rsplit("/", 1)[-1] for _, line in read_lines(path))
    keys = list(dict.fromkeys(_key(_stem(name))[0] for name in names if name))
    if not keys:
        raise BenchmarkError(f"{path} names no pair")
    return keys


def _stem(name: str) -> str:
    return Path(name).stem if name.lower().endswith(_LISTED_SUFFIXES) else name


def _key(stem: str) -> tuple[str, str | None]:
    """Return the stem shared by the files of a pair, and the date.

    ``District_Village_200703_0`` gives ``District_Village_0`` and 2007-03. Names of villages may contain underscores
    too, so the date is searched from the end.
    """
    match = re.fullmatch(r"(.+)_((?:19|20)\d\d)(\d\d)_([^_]+)", stem)
    return (f"{match[1]}_{match[4]}", f"{match[2]}-{match[3]}") if match else (stem, None)


def _places(root: Path, keys: Sequence[str], masks: Mapping[str, Path], data: DataSet) -> list[Place]:
    """Return the listed pairs that have a mask and exactly one picture for each date."""
    first, second = (_by_key(root / name, _LISTED_SUFFIXES) for name in ("T0", "T1"))
    places: list[Place] = []
    for key in keys:
        missing = [name for name, there in (("T0", first), ("T1", second), ("mask", masks)) if key not in there]
        if missing:
            data.dropped[f"no {' and '.join(missing)}"] += 1
            continue
        if len(first[key]) > 1 or len(second[key]) > 1:
            data.dropped["several dates"] += 1
            continue
        before, after = first[key][0], second[key][0]
        was, is_ = _key(before.stem)[1], _key(after.stem)[1]
        if was is not None and is_ is not None and was >= is_:
            data.dropped["dates in the wrong order"] += 1
            continue
        places.append(Place(key, (before, after), (was, is_), masks[key]))
    return places


def _by_key(place: Path, suffixes: Sequence[str]) -> dict[str, list[Path]]:
    """Return files by key; archives often contain a nested folder of the same name."""
    by_key: dict[str, list[Path]] = {}
    for path in files_in(place, suffixes, deep=True):
        by_key.setdefault(_key(path.stem)[0], []).append(path)
    return by_key
