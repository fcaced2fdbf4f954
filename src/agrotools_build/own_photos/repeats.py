"""Photos with several rows: which rows are doubles, and in which columns the rows of a photo have different numbers.

A form may have a row for each part of a photo (one for each side of a tree), and a table may list a photo twice.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from agrotools.text import cells
from agrotools.text.tables import CellFault
from agrotools_build.own_photos.plan import Column, measures
from agrotools_build.own_photos.table import DetectedTable, Matched

REPEATED = "repeated"
"""Key of a plan for what the numbers of several rows of one photo are."""


def differing_photos(seen: DetectedTable, column: Column) -> dict[Path, list[str]]:
    """Return the photos whose rows have different numbers in a column or that of its second observer, with the cells.

    Annotations have no parts of photos: what contradicts itself there is left out.
    """
    if measures()[column.ask].kind != "number" or seen.table.is_of_annotations:
        return {}
    found: dict[Path, list[str]] = {}
    for name in filter(None, (column.column, column.second)):
        for photo, rows in rows_of_photos(seen, name).items():
            texts = [text for _, text in rows]
            if _are_different(texts, column):
                found.setdefault(photo, texts)
    return found


def _are_different(texts: Sequence[str], column: Column) -> bool:
    numbers: set[tuple[float, str | None]] = set()
    for text in texts:
        with suppress(CellFault):
            number = cells.quantity(text, column.decimal or ".")
            numbers.add((number.value, number.unit))
    return len(numbers) > 1


def rows_of_photos(seen: DetectedTable, name: str) -> Mapping[Path, list[tuple[int, str]]]:
    """Return the numbers of the rows of each photo with their cells in a column, without empty cells and doubles.

    A row is a double if an earlier one of its photo has the same cells. Where the rows of no photo differ beside this
    column, nothing tells a double from another part with the same number, and each row stays.
    """
    place = seen.table.place_of(name)
    photos_at = seen.table.place_of(seen.images_column)

    def others(each: Matched) -> tuple[str, ...]:
        return tuple(cell for at, cell in enumerate(each.cells) if at not in (place, photos_at))

    beside: dict[Path, set[tuple[str, ...]]] = {}
    for each in seen.matched:
        beside.setdefault(each.image, set()).add(others(each))
    are_told_apart = any(len(different) > 1 for different in beside.values())
    found: dict[Path, list[tuple[int, str]]] = {}
    known: set[tuple[Path, str, tuple[str, ...]]] = set()
    for each in seen.matched:
        text = each.cells[place]
        whole = (each.image, text, others(each))
        is_double = are_told_apart and whole in known
        known.add(whole)
        if not is_double and not cells.is_empty(text):
            found.setdefault(each.image, []).append((each.row, text))
    return found
