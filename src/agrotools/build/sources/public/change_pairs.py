"""Pairs of pictures of two dates with masks of what changed: their files, their order, their subjects."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from agrotools.build.sources.field.land import change_subjects
from agrotools.build.sources.part import DataSet
from agrotools.build.sources.reading import by_stem, first_of, spread
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, SampleFile

T = TypeVar("T")
X = TypeVar("X")
DATES = ("before", "after")
_SIZES_PCT = (0.0, 4.0, 8.0, 20.0)
"""Pairs are drawn evenly from between these shares of change: the first is none at all, and questions ask for more than
4 or 8 % before they take a change for settled."""

Mask = NDArray[np.bool_]
Files = tuple[SampleFile, SampleFile]


@dataclass(frozen=True)
class Pair:
    """The files of one place, all of one stem."""

    stem: str
    before: Path
    after: Path
    mask: Path


def find_pairs(split: Path, layout: Sequence[tuple[tuple[str, ...], tuple[str, ...]]], data: DataSet) -> list[Pair]:
    """The complete pairs of a split in order of their stems; the others are counted by which files are missing.

    Args:
        layout: of the pictures before, those after, and the masks: possible names of the folder, and suffixes.

    Raises:
        BenchmarkError: a folder is missing, or no pair is complete.
    """
    places = [first_of(split, names, "folder ") for names, _ in layout]
    files = [by_stem(place, suffixes) for place, (_, suffixes) in zip(places, layout, strict=True)]
    pairs: list[Pair] = []
    for stem in sorted(set().union(*files)):
        missing = [place.name for place, there in zip(places, files, strict=True) if stem not in there]
        if missing:
            data.dropped[f"no {' and '.join(missing)}"] += 1
        else:
            pairs.append(Pair(stem, *(there[stem] for there in files)))
    if not pairs:
        names = ", ".join(place.name for place in places)
        raise BenchmarkError(f"{split} has no complete pair: no file is in all of {names}")
    return pairs


def by_size_of_change(pairs: Sequence[Pair], mask: Callable[[Path], Mask], seed: int) -> list[Pair]:
    """All pairs, so that any first few have no, little and much change in turn. Opens no file but masks."""
    # A mask has a bit of information a pixel, but all masks of a data set would fill the memory: only shares are kept.
    shares = {pair.stem: 100 * float(mask(pair.mask).mean()) for pair in pairs}
    return spread(pairs, lambda pair: sum(shares[pair.stem] > size for size in _SIZES_PCT), len(pairs), seed)


def farmland_subjects(
    data: DataSet,
    ordered: Sequence[Pair],
    mask: Callable[[Path], Mask],
    shown: Callable[[Pair, tuple[int, int]], Files | None],
    changed: str,
    gsd_m: float | None,
) -> list[Subject]:
    """Subjects of the first pairs that can be used.

    Args:
        mask: reads a mask.
        shown: the files of a pair whose mask has so many rows and columns; None where one is blank.
        changed: as in :func:`agrotools.build.sources.field.land.change_subjects`.

    Raises:
        BenchmarkError: as ``mask`` and ``shown``, or no pair is left.
    """

    def with_mask(pair: Pair) -> tuple[Files, Mask] | str:
        where = mask(pair.mask)
        files = shown(pair, (where.shape[0], where.shape[1]))
        return "blank picture" if files is None else (files, where)

    subjects: list[Subject] = []
    for pair, files, where in distinct_pairs(data, ordered, with_mask):
        subjects += change_subjects(f"{data.listing.part}-{pair.stem}", files, where, changed, gsd_m)
    if not subjects:
        raise BenchmarkError(f"{data.folder} has no pair of pictures that show anything")
    return subjects


def distinct_pairs(
    data: DataSet, ordered: Iterable[T], shown: Callable[[T], tuple[Files, X] | str]
) -> list[tuple[T, Files, X]]:
    """The first pairs with their files, as many as are wanted, without those that repeat one before.

    Args:
        shown: the files of a pair with what they show, or why it is left out.
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


def dated(file: SampleFile, date: str) -> SampleFile:
    """The file under the name of its date, which says no more than the question does: ``before.png``."""
    return file.model_copy(update={"name": f"{date}{Path(file.path).suffix}"})
