"""What a model says of a picture, whichever back-end it stands behind."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Said(NamedTuple):
    """Words, and what to say of them."""

    text: str
    notes: tuple[str, ...]
    flags: tuple[str, ...]


class Pointed(NamedTuple):
    """Boxes (n, 4) in pixels of the whole picture and scores (n,), best first; what to say of them."""

    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]
    notes: tuple[str, ...]
    flags: tuple[str, ...]


class Named(NamedTuple):
    """``candidates``: names of the list with scores in 0..1, best first; empty where the model sees none of them."""

    candidates: tuple[tuple[str, float], ...]
    notes: tuple[str, ...]
    flags: tuple[str, ...]


class Labelled(NamedTuple):
    """Boxes (n, 4) in pixels of the whole picture, scores (n,) and a name or text of each; what to say of them."""

    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]
    labels: list[str]
    notes: tuple[str, ...]
    flags: tuple[str, ...]


class Outlined(NamedTuple):
    """Outlines, each (points, 2) in pixels of the whole picture, and a score of each; what to say of them."""

    outlines: list[NDArray[np.float64]]
    scores: list[float]
    notes: tuple[str, ...]
    flags: tuple[str, ...]
