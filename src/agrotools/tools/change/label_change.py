"""Change between two rasters of class numbers, counted exactly."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.tools.change.pairs import BLOCK_PX, are_rasters, check_common, frame_of, open_raster_pair, thumbnail
from agrotools.tools.change.result import (
    CHANGED,
    GAINED,
    LOST,
    NO_DATA,
    ChangeCounts,
    ChangeInputs,
    ChangeRequest,
    PondChange,
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
_FOR_PICTURES = "for pictures leave out label_map and mask_diff"
_IGNORED = frozenset({"ignore", "nodata", "no data", "no_data", "unlabelled", "unlabeled"})
NOTHING = "other"


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Names of the class numbers of a pair.

    ``numbers``: all class numbers present, ascending. ``places``: index of each number's class in ``names``, -1 if it
    is not counted. ``is_marked``: True if the rasters mark one thing (0 elsewhere), so that change has a direction.
    """

    numbers: NDArray[np.int32]
    places: NDArray[np.int64]
    names: tuple[str, ...]
    is_marked: bool
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    def places_of(self, classes: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the index in ``names`` of each pixel's class, -1 for pixels that are not counted."""
        return self.places[np.searchsorted(self.numbers, classes)]


def class_table(
    present: tuple[NDArray[np.int32], NDArray[np.int32]],
    label_map: Mapping[str, Sequence[int]] | None,
    classes: tuple[Mapping[str, str] | None, Mapping[str, str] | None],
    marked: str,
    names: tuple[str, str],
) -> ClassTable:
    """Find the names of the class numbers ``present`` in each raster: of ``label_map``, else of ``classes`` (known
    of each file); a mask of 0 and one other number marks ``marked``. ToolError ``invalid_argument`` if a number has
    two names or there are too many classes."""
    numbers = np.union1d(*present).astype(np.int32)
    if numbers.size > _MOST_CLASSES:
        why = f"{names[0]} and {names[1]} hold {numbers.size} different values: these are no class numbers"
        hint = f"label rasters have up to {_MOST_CLASSES} classes; {_FOR_PICTURES}"
        raise ToolError("invalid_argument", why, argument="before", hint=hint)
    first, second = (class_names_of(None, known) for known in classes)
    twice = [number for number in first.keys() & second if first[number] != second[number]]
    if label_map is None and twice:
        why = f"class {twice[0]} has another name in {names[0]} than in {names[1]}"
        raise ToolError("invalid_argument", why, argument="label_map", hint="say with label_map what the numbers mean")
    class_names = class_names_of(label_map, None) if label_map is not None else first | second
    if not class_names:
        # The two dates may use different numbers for the marked area, such as 1 and 255.
        if all(np.count_nonzero(values) <= 1 and (values >= 0).all() for values in present):
            places = (numbers != 0).astype(np.int64)
            note = f"masks: what is not 0 is {marked}"
            return ClassTable(numbers, places, (NOTHING, marked), is_marked=True, notes=(note,))
        notes: tuple[str, ...] = ("names of the classes are not known: give label_map for names",)
        flags: tuple[str, ...] = ("unnamed_classes",)
    else:
        unnamed = [int(number) for number in numbers if int(number) not in class_names]
        notes = (f"class numbers {unnamed[:12]} have no name",) if unnamed else ()
        flags = ("unnamed_classes",) if unnamed else ()
    titles = [class_names.get(int(number), f"class {number}") for number in numbers]
    counted_names = list(dict.fromkeys(title for title in titles if title.lower() not in _IGNORED))
    places = np.array([counted_names.index(title) if title in counted_names else -1 for title in titles], np.int64)
    is_marked = len(counted_names) <= 2 and 0 in numbers and all(np.count_nonzero(values) <= 1 for values in present)
    return ClassTable(numbers, places, tuple(counted_names), is_marked, notes, flags)


_PALETTE = np.array(
    [(70, 70, 70), (86, 180, 233), (213, 94, 0), (240, 228, 66), (0, 158, 115), (204, 121, 167), (0, 114, 178),
     (230, 159, 0), (170, 170, 170), (94, 70, 50)], np.uint8)  # fmt: skip
"""Colours of Okabe and Ito (2008), extended; they repeat after the tenth class."""

Classes = NDArray[np.int32]
ClassReader = Callable[[Box], tuple[Classes, Classes, NDArray[np.bool_]]]
"""Function from a box to the classes before and after in it, and the mask of pixels with data in both."""


@dataclass(frozen=True, eq=False)
class _Labels:
    width: int
    height: int
    read: ClassReader
    shown: Callable[[], tuple[NDArray[Any], NDArray[Any]]]
    """Function that returns the class numbers before and after at the size of a panel or larger."""
    in_file_m: float | None = None
    tile: tuple[int, int] = (1, 1)
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabelFiles:
    """Label rasters of both dates, and the names of the arguments that give them."""

    before: Path
    after: Path
    arguments: tuple[str, str] = ("before", "after")
    images: tuple[Path, ...] = ()
    """Pictures that the masks belong to; their known scale applies to the masks."""

    @property
    def names(self) -> tuple[str, str]:
        return shown_name(self.before), shown_name(self.after)


def label_change(
    files: LabelFiles, label_map: Mapping[str, Sequence[int]] | None, *, marked: str, request: ChangeRequest
) -> ChangeInputs:
    """Compare two label rasters or masks pixel by pixel, in strips, so that they may be of any size."""
    infos = file_info(files.before), file_info(files.after)
    with _open_labels(files) as labels:
        known = (files.before, files.after, *files.images)
        frame = frame_of(request, (labels.width, labels.height), known, labels.in_file_m)
        box, least = frame.box, frame.least_px
        present = _present_classes(labels, box, files)
        table = class_table(
            present, label_map, (infos[0] and infos[0].classes, infos[1] and infos[1].classes), marked, files.names
        )
        changes = np.full((labels.height, labels.width), NO_DATA, np.uint8)
        size = len(table.names)
        counts = np.zeros((size, size), np.int64)
        for part in frame.parts(labels.tile):
            first, second, valid = labels.read(part)
            old, new = table.places_of(first), table.places_of(second)
            kinds = class_changes(old, new, valid, least, has_direction=table.is_marked and size == 2)
            changes[part[1] : part[3], part[0] : part[2]] = kinds
            counts += class_cells(old, new, kinds, size)
        before, after = (_colour_classes(values, table) for values in labels.shown())
    if not counts.sum():
        raise ToolError("nothing_found", "no pixel has a class that counts in both files", argument=files.arguments[1])
    moved = int(counts.sum() - np.trace(counts))
    words = {GAINED: f"{table.names[-1]} gained", LOST: f"{table.names[-1]} lost"}
    note = "classes counted pixel by pixel: exact"
    speckless = (f"patches under {least} px do not count",) if least > 1 else ()
    return ChangeInputs(
        changes=changes,
        before=before,
        after=after,
        box=box,
        method="mask_diff",
        changed=moved > 0,
        words=words if table.is_marked and size == 2 else {CHANGED: "another class"},
        counts=ChangeCounts(table.names, counts),
        gsd_m=frame.scale.gsd_m,
        notes=(note, *speckless, *labels.notes, *table.notes, *frame.scale.notes),
        flags=(*labels.flags, *table.flags, *frame.flags),
    )


def pond_of_masks(counts: ChangeCounts | None) -> PondChange | None:
    """Return the water areas of two water masks; if they differ, the event is None, because masks show no cause."""
    if counts is None or len(counts.classes) != 2:
        return None
    same = int(counts.px[0, 1] + counts.px[1, 0]) == 0
    return PondChange.of("none" if same else None, int(counts.px[1].sum()), int(counts.px[:, 1].sum()))


def _present_classes(labels: _Labels, box: Box, files: LabelFiles) -> tuple[Classes, Classes]:
    before: set[int] = set()
    after: set[int] = set()
    any_valid = False
    for part in block_boxes(box, labels.tile, BLOCK_PX):
        first, second, valid = labels.read(part)
        any_valid = any_valid or bool(valid.any())
        before.update(_unique_values(first))
        after.update(_unique_values(second))
    check_common(any_valid, files.before, files.after)
    return np.array(sorted(before), np.int32), np.array(sorted(after), np.int32)


def _unique_values(classes: Classes) -> list[int]:
    low, high = int(classes.min()), int(classes.max())
    if low >= 0 and high < 65_536:
        return np.flatnonzero(np.bincount(classes.ravel(), minlength=high + 1)).tolist()
    return np.unique(classes).tolist()


@contextmanager
def _open_labels(files: LabelFiles) -> Iterator[_Labels]:
    if are_rasters(files.before, files.after):
        with _open_rasters(files) as labels:
            yield labels
        return
    first, second = (
        read_labels(path, argument=argument, shown_as=name)
        for path, argument, name in zip((files.before, files.after), files.arguments, files.names, strict=True)
    )
    check_sizes(first.classes.shape, second.classes.shape, files.names, files.arguments[1])
    height, width = first.classes.shape
    valid = np.ones((height, width), np.bool_)
    for image in (first, second):
        if image.valid is not None:
            valid &= image.valid

    def read(box: Box) -> tuple[Classes, Classes, NDArray[np.bool_]]:
        rows, columns = slice(box[1], box[3]), slice(box[0], box[2])
        return first.classes[rows, columns], second.classes[rows, columns], valid[rows, columns]

    arrays = first.classes, second.classes
    yield _Labels(width, height, read, lambda: arrays, notes=(*first.notes, *second.notes))


@contextmanager
def _open_rasters(files: LabelFiles) -> Iterator[_Labels]:
    with open_raster_pair(files.before, files.after, labels=True, arguments=files.arguments) as pair:
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


def _colour_classes(values: NDArray[Any], table: ClassTable) -> NDArray[np.uint8]:
    known = np.isin(values, table.numbers)
    places = table.places_of(np.where(known, values, table.numbers[0]).astype(np.int32))
    return np.where((known & (places >= 0))[..., None], _PALETTE[places % len(_PALETTE)], np.uint8(255))
