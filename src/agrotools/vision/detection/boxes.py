"""Boxes with scores: how much they overlap, and which of several on one object stays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Boxes = NDArray[np.float64]
"""(n, 4): x0, y0, x1, y1 in pixels."""


@dataclass(frozen=True, eq=False)
class Detections:
    """Objects, best first.

    ``boxes``: float64 (n, 4), pixels. ``scores``: float64 (n,), 0..1. ``classes``: int64 (n,).
    """

    boxes: Boxes
    scores: NDArray[np.float64]
    classes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def centres(self) -> NDArray[np.float64]:
        """float64 (n, 2): x, y."""
        return (self.boxes[:, :2] + self.boxes[:, 2:]) / 2

    def chosen(self, keep: NDArray[np.bool_] | NDArray[np.intp]) -> "Detections":
        return Detections(self.boxes[keep], self.scores[keep], self.classes[keep])

    def placed(self, factor: float, x: float, y: float) -> "Detections":
        """In pixels ``factor`` times as small, of a picture in which this one begins at x, y."""
        return Detections(self.boxes * factor + np.array([x, y, x, y], np.float64), self.scores, self.classes)


NONE = Detections(np.empty((0, 4)), np.empty(0), np.empty(0, np.int64))


def joined(parts: list[Detections]) -> Detections:
    """All of several, best first."""
    if not parts:
        return NONE
    boxes, scores, classes = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("boxes", "scores", "classes")
    )
    # Equal scores in reading order, so that the same picture gives the same list each time.
    order = np.lexsort((boxes[:, 0], boxes[:, 1], -scores))
    return Detections(boxes[order], scores[order], classes[order])


def overlaps(one: Boxes, two: Boxes) -> NDArray[np.float64]:
    """Intersection over union of every box of ``one`` (k, 4) with every box of ``two`` (m, 4): (k, m), 0..1."""
    low = np.maximum(one[:, None, :2], two[None, :, :2])
    high = np.minimum(one[:, None, 2:], two[None, :, 2:])
    joint = np.clip(high - low, 0, None).prod(axis=2)
    areas = [np.clip(boxes[:, 2:] - boxes[:, :2], 0, None).prod(axis=1) for boxes in (one, two)]
    return joint / np.maximum(areas[0][:, None] + areas[1][None, :] - joint, 1e-12)


def without_doubles(found: Detections, same: float = 0.5) -> Detections:
    """The best of boxes that overlap by more than ``same`` (IoU), whatever their class: one place, one object.

    ``found`` comes best first. Greedy, so what only overlaps a box that went stays (non-maximum suppression).
    """
    keep = np.ones(len(found), np.bool_)
    for place in range(len(found)):
        if keep[place]:
            rest = np.flatnonzero(keep[place + 1 :]) + place + 1
            alike = overlaps(found.boxes[place : place + 1], found.boxes[rest])[0] > same
            keep[rest[alike]] = False
    return found.chosen(keep)
