"""Change between two rasters of class numbers, counted exactly."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.tools.change.pairs import (
    BLOCK_PX,
    are_rasters,
    check_common,
    frame_of,
    open_raster_pair,
    slices_of,
    thumbnail,
)
from agrotools.tools.change.result import (
    CHANGED,
    GAINED,
    LOST,
    NO_DATA,
    ChangeCounts,
    ChangeRequest,
    ChangeResult,
    PondChange,
    Target,
    change_result,
    class_cells,
    class_changes,
)
from agrotools.tools.pictures import class_names_of
from agrotools.tools.workspace import file_info, shown_name
from agrotools.vision import Box
from agrotools.vision.alignment import check_sizes
from agrotools.vision.blocks import block_boxes
from agrotools.vision.reading import read_labels

_MOST_CLASSES = 100
_IGNORED = frozenset({"ignore", "nodata", "no data", "no_data", "unlabelled", "unlabeled"})
_MARKED: dict[Target, str] = {"farmland": "farmland", "pond": "water", "vegetation": "vegetation", "any": "marked"}
_PALETTE = np.array(
    [(70, 70, 70), (86, 180, 233), (213, 94, 0), (240, 228, 66), (0, 158, 115), (204, 121, 167), (0, 114, 178),
     (230, 159, 0), (170, 170, 170), (94, 70, 50)], np.uint8)  # fmt: skip
"""Colours of Okabe and Ito (2008), extended; they repeat after the tenth class."""

Classes = NDArray[np.int32]


class _ClassTable(NamedTuple):
    """Names of the class numbers of a pair.

    ``numbers``: all class numbers present, ascending. ``places``: index of each number's class in ``names``, -1 if it
    is not counted. ``is_marked``: True if the rasters mark one thing (0 elsewhere), so that change has a direction.
    """

    numbers: Classes
    places: NDArray[np.int64]
    names: tuple[str, ...]
    is_marked: bool
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    def places_of(self, classes: Classes) -> NDArray[np.int64]:
        return self.places[np.searchsorted(self.numbers, classes)]

    def colours_of(self, values: NDArray[Any]) -> NDArray[np.uint8]:
        known = np.isin(values, self.numbers)
        places = self.places_of(np.where(known, values, self.numbers[0]).astype(np.int32))
        return np.where((known & (places >= 0))[..., None], _PALETTE[places % len(_PALETTE)], np.uint8(255))


class _Labels(NamedTuple):
    """Open pair of label rasters.

    ``read``: function from a box to the classes before and after in it, and the mask of pixels with data in both.
    ``shown``: function that returns the class numbers before and after at the size of a panel or larger.
    """

    width: int
    height: int
    read: Callable[[Box], tuple[Classes, Classes, NDArray[np.bool_]]]
    shown: Callable[[], tuple[NDArray[Any], NDArray[Any]]]
    in_file_m: float | None = None
    tile: tuple[int, int] = (1, 1)
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def label_change(
    files: Mapping[str, Path],
    images: tuple[Path, ...],
    label_map: Mapping[str, Sequence[int]] | None,
    target: Target,
    request: ChangeRequest,
) -> ChangeResult:
    """Compare two label rasters or masks pixel by pixel, in strips, so that they may be of any size.

    ``files``: those of both dates by argument. ``images``: pictures that they belong to, whose known scale applies.
    """
    with _open_labels(files) as labels:
        frame = frame_of(request, (labels.width, labels.height), (*files.values(), *images), labels.in_file_m)
        least = frame.least_px
        table = _class_table(_present_classes(labels, frame.box, files), label_map, files, _MARKED[target])
        changes = np.full((labels.height, labels.width), NO_DATA, np.uint8)
        size = len(table.names)
        has_direction = table.is_marked and size == 2
        cells = np.zeros((size, size), np.int64)
        for part in frame.parts(labels.tile):
            first, second, valid = labels.read(part)
            old, new = table.places_of(first), table.places_of(second)
            kinds = class_changes(old, new, valid, least, has_direction=has_direction)
            changes[slices_of(part)] = kinds
            cells += class_cells(old, new, kinds, size)
        before, after = map(table.colours_of, labels.shown())
    if not cells.sum():
        why = "no pixel has a class that counts in both files"
        raise ToolError("nothing_found", why, argument=list(files)[1])
    words = {GAINED: f"{table.names[-1]} gained", LOST: f"{table.names[-1]} lost"}
    speckless = (f"patches under {least} px do not count",) if least > 1 else ()
    notes = ("classes counted pixel by pixel: exact", *speckless, *labels.notes, *table.notes, *frame.scale.notes)
    return change_result(
        changes,
        (before, after),
        frame.box,
        words if has_direction else {CHANGED: "another class"},
        method="mask_diff",
        changed=int(cells.sum()) > int(np.trace(cells)),
        gsd_m=frame.scale.gsd_m,
        counts=(table.names, cells),
        pond=pond_of_masks((table.names, cells)) if target == "pond" else None,
        notes=notes,
        flags=(*labels.flags, *table.flags, *frame.flags),
    )


def pond_of_masks(counts: ChangeCounts) -> PondChange | None:
    """Return the water areas of two water masks; if they differ, the event is None, because masks show no cause."""
    classes, px = counts
    if len(classes) != 2:
        return None
    same = int(px[0, 1] + px[1, 0]) == 0
    return PondChange.of("none" if same else None, int(px[1].sum()), int(px[:, 1].sum()))


def _class_table(
    present: tuple[Classes, Classes],
    label_map: Mapping[str, Sequence[int]] | None,
    files: Mapping[str, Path],
    marked: str,
) -> _ClassTable:
    """Find the names of the class numbers ``present`` in each raster: of ``label_map``, else those known of each file;
    a mask of 0 and one other number marks ``marked``. ToolError ``invalid_argument`` if a number has two names or
    there are too many classes."""
    names = [shown_name(path) for path in files.values()]
    numbers = np.union1d(*present).astype(np.int32)
    if numbers.size > _MOST_CLASSES:
        why = f"{names[0]} and {names[1]} hold {numbers.size} different values: these are no class numbers"
        hint = f"label rasters have up to {_MOST_CLASSES} classes; for pictures leave out label_map and mask_diff"
        raise ToolError("invalid_argument", why, argument="before", hint=hint)
    first, second = (class_names_of(None, info.classes if info else None) for info in map(file_info, files.values()))
    twice = [number for number in first.keys() & second if first[number] != second[number]]
    if label_map is None and twice:
        why = f"class {twice[0]} has another name in {names[0]} than in {names[1]}"
        raise ToolError("invalid_argument", why, argument="label_map", hint="say with label_map what the numbers mean")
    class_names = class_names_of(label_map, None) if label_map is not None else first | second
    is_mask = all(np.count_nonzero(values) <= 1 for values in present)
    # The two dates may use different numbers for the marked area, such as 1 and 255.
    if not class_names and is_mask and (numbers >= 0).all():
        places, note = (numbers != 0).astype(np.int64), f"masks: what is not 0 is {marked}"
        return _ClassTable(numbers, places, ("other", marked), is_marked=True, notes=(note,))
    notes: tuple[str, ...] = ()
    if unnamed := [number for number in numbers.tolist() if number not in class_names]:
        known = f"class numbers {unnamed[:12]} have no name"
        notes = (known if class_names else "names of the classes are not known: give label_map for names",)
    titles = [class_names.get(number, f"class {number}") for number in numbers.tolist()]
    counted = list(dict.fromkeys(title for title in titles if title.lower() not in _IGNORED))
    places = np.array([counted.index(title) if title in counted else -1 for title in titles], np.int64)
    is_marked = len(counted) <= 2 and 0 in numbers and is_mask
    return _ClassTable(numbers, places, tuple(counted), is_marked, notes, ("unnamed_classes",) if notes else ())


def _present_classes(labels: _Labels, box: Box, files: Mapping[str, Path]) -> tuple[Classes, Classes]:
    found: tuple[set[int], set[int]] = set(), set()
    any_valid = False
    for part in block_boxes(box, labels.tile, BLOCK_PX):
        *dates, valid = labels.read(part)
        any_valid = any_valid or bool(valid.any())
        for numbers, classes in zip(found, dates, strict=True):
            low, high = int(classes.min()), int(classes.max())
            few = low >= 0 and high < 65_536  # then counting is faster than sorting
            numbers.update((np.flatnonzero(np.bincount(classes.ravel())) if few else np.unique(classes)).tolist())
    check_common(any_valid, *files.values())
    before, after = (np.array(sorted(numbers), np.int32) for numbers in found)
    return before, after


@contextmanager
def _open_labels(files: Mapping[str, Path]) -> Iterator[_Labels]:
    if are_rasters(*files.values()):
        with _open_rasters(files) as labels:
            yield labels
        return
    names = [shown_name(path) for path in files.values()]
    first, second = (read_labels(path, argument=each, shown_as=shown_name(path)) for each, path in files.items())
    check_sizes(first.classes.shape, second.classes.shape, (names[0], names[1]), list(files)[1])
    valid = np.ones(first.classes.shape, np.bool_)
    for image in (first, second):
        if image.valid is not None:
            valid &= image.valid

    def read(box: Box) -> tuple[Classes, Classes, NDArray[np.bool_]]:
        part = slices_of(box)
        return first.classes[part], second.classes[part], valid[part]

    height, width = valid.shape
    arrays = first.classes, second.classes
    yield _Labels(width, height, read, lambda: arrays, notes=(*first.notes, *second.notes))


@contextmanager
def _open_rasters(files: Mapping[str, Path]) -> Iterator[_Labels]:
    with open_raster_pair(*files.values(), labels=True, arguments=tuple(files)) as pair:
        sources = pair.first, pair.second
        for source in sources:
            if source.count != 1:
                why = f"{source.name} has {source.count} bands; a label raster has one, whose values are class numbers"
                raise ToolError("unreadable_file", why, argument=source.argument)

        def read(box: Box) -> tuple[Classes, Classes, NDArray[np.bool_]]:
            values = [source.read([1], box)[0] for source in sources]
            valid = np.asarray(np.isfinite(values[0]) & np.isfinite(values[1]))
            first, second = map(_to_class_numbers, values, (valid, valid), (source.name for source in sources))
            return first, second, valid

        yield _Labels(
            pair.first.width, pair.first.height, read,
            lambda: (thumbnail(pair.first, [1])[0], thumbnail(pair.second, [1])[0]),
            pair.first.sampling.gsd_m, pair.tile, pair.notes, pair.flags,
        )  # fmt: skip


def _to_class_numbers(values: NDArray[np.float32], valid: NDArray[np.bool_], name: str) -> Classes:
    # Pixels without data get an arbitrary valid class number; the mask excludes them later.
    numbers = values[valid]
    classes = np.where(valid, values, numbers[0] if numbers.size else 0)
    if not np.array_equal(classes, np.rint(classes)):
        raise ToolError("unreadable_file", f"{name} has fractional values; class numbers are whole", argument="before")
    return classes.astype(np.int32)
