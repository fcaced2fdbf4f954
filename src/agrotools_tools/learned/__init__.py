"""Large open models with local weights, and the answers of models to tools, with their notes and flags.

The back-end ``learned:MODEL`` names one: ``MODEL`` is the name of a model in the local cache of the model hub
(``IDEA-Research/grounding-dino-tiny``), or the absolute path of a folder. Nothing is ever downloaded. Pictures are
uint8 (rows, columns, 3). Every function raises a ``ToolError`` of the kind ``backend_unavailable`` if the weights or a
library are missing, or if the model is of the wrong kind for the task.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FLAG = "learned_model"
NOT_CALIBRATED = "scores are the model's own, not calibrated"


class TextAnswer(NamedTuple):
    """Text of the model, with notes and flags."""

    text: str
    notes: tuple[str, ...]
    flags: tuple[str, ...]


class FoundObjects(NamedTuple):
    """Boxes (n, 4) in pixels of the whole picture, scores (n,) and names, with notes and flags.

    ``names``: name of each object or text of each line; empty if all objects are of the requested kind.
    """

    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]
    names: list[str]
    notes: tuple[str, ...]
    flags: tuple[str, ...]


class RankedNames(NamedTuple):
    """Ranked names, with notes and flags.

    ``candidates``: names from the given list with scores in 0..1, best first; empty if the model sees none of them.
    """

    candidates: tuple[tuple[str, float], ...]
    notes: tuple[str, ...]
    flags: tuple[str, ...]
