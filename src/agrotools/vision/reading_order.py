"""In which order the lines of a page are read.

Prose in columns is read column by column, by the two rules of Breuel 2003 ("High performance document layout
analysis"): a line comes before one that lies below it where their widths overlap, and before one wholly to the right
of it unless a line between them reaches over both. A box of words set between the columns (a quotation, the legend of a
picture) is read after them. Anything else (receipts, menus, signs, tables) is read row by row.
"""

import numpy as np
from numpy.typing import NDArray

_PROSE = 10.0
"""A line of prose is at least so many times as long as it is high."""
_MOST_LINES = 500
"""The second rule looks at every three lines; larger pages are read row by row."""
_SAME_ROW = 0.5
_INSET = 0.5
"""A line between two columns covers less than this share of their lines."""
_OVERLAP = 0.1
"""Columns whose lines touch by less than this share of the narrower one do not overlap."""


def reading_order(boxes: NDArray[np.float64]) -> list[int]:
    """The numbers of boxes (n, 4) x0, y0, x1, y1, in the order in which their text is read."""
    rows = _rows(boxes)
    if len(boxes) <= _MOST_LINES and _is_prose(boxes, rows):
        inset = _insets(boxes)
        parts = (np.flatnonzero(~inset), np.flatnonzero(inset))
        return [int(part[index]) for part in parts for index in _by_columns(boxes[part])]
    return [index for row in rows for index in row]


def _rows(boxes: NDArray[np.float64]) -> list[list[int]]:
    """Boxes in rows from top to bottom, each from left to right. A box joins a row whose first box it stands beside."""
    rows: list[list[int]] = []
    for index in np.lexsort((boxes[:, 0], boxes[:, 1] + boxes[:, 3])).tolist():
        top, bottom = boxes[index, 1], boxes[index, 3]
        if rows:
            first = boxes[rows[-1][0]]
            common = min(bottom, first[3]) - max(top, first[1])
            if common > _SAME_ROW * min(bottom - top, first[3] - first[1]):
                rows[-1].append(index)
                continue
        rows.append([index])
    return [sorted(row, key=lambda index: float(boxes[index, 0])) for row in rows]


def _is_prose(boxes: NDArray[np.float64], rows: list[list[int]]) -> bool:
    beside = [index for row in rows if len(row) > 1 for index in row]
    if len(beside) < 4:
        return False
    sizes = boxes[beside, 2:] - boxes[beside, :2]
    return float(np.median(sizes[:, 0] / np.maximum(sizes[:, 1], 1))) >= _PROSE


def _insets(boxes: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which lines stand between two columns: they reach a little into lines of both, above themselves and below.

    A heading reaches over all of its columns, or has nothing above it.
    """
    x0, y0, x1, y1 = boxes.T
    width, middle = x1 - x0, (y0 + y1) / 2
    common = np.clip(np.minimum(x1[:, None], x1) - np.maximum(x0[:, None], x0), 0, None)
    apart = common <= _OVERLAP * np.minimum(width[:, None], width)
    reaches = (common > 0) & (common < _INSET * width) & ~np.eye(len(boxes), dtype=bool)
    inset = np.zeros(len(boxes), np.bool_)
    for index in range(len(boxes)):
        touched = np.flatnonzero(reaches[index])
        above, below = touched[middle[touched] < middle[index]], touched[middle[touched] > middle[index]]
        inset[index] = all(len(part) > 1 and apart[np.ix_(part, part)].any() for part in (above, below))
    return inset


def _by_columns(boxes: NDArray[np.float64]) -> list[int]:
    x0, y0, x1, y1 = boxes.T
    middle = (y0 + y1) / 2
    common = np.minimum(x1[:, None], x1) - np.maximum(x0[:, None], x0)
    narrower = np.minimum((x1 - x0)[:, None], x1 - x0)
    over = common > _OVERLAP * narrower
    above = middle[:, None] < middle
    left = ~over & ((x0 + x1)[:, None] < x0 + x1)
    before = over & above
    for a, b in np.argwhere(left).tolist():
        low, high = min(middle[a], middle[b]), max(middle[a], middle[b])
        between = (middle > low) & (middle < high) & over[a] & over[b]
        before[a, b] = not between.any()
    order: list[int] = []
    left_before = before.sum(axis=0)
    waiting = np.ones(len(boxes), np.bool_)
    while waiting.any():
        free = np.flatnonzero(waiting & (left_before == 0))
        # The two rules can contradict each other; then the highest line goes first.
        among = free if len(free) else np.flatnonzero(waiting)
        keys = (middle[among], x0[among]) if len(free) else (x0[among], middle[among])
        chosen = int(among[np.lexsort(keys)[0]])
        order.append(chosen)
        waiting[chosen] = False
        left_before -= before[chosen]
    return order
