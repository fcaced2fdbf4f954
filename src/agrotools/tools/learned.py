"""Back-end ``learned:MODEL``: a large open model with local weights.

``MODEL`` is the name of a model in the local cache of the model hub (``IDEA-Research/grounding-dino-tiny``), or the
absolute path of a folder. Nothing is ever downloaded. Pictures are uint8 (rows, columns, 3); only the part ``box`` is
used. Every function raises a ``ToolError`` of the kind ``backend_unavailable`` if the weights or a library are missing,
or if the model is of the wrong kind for the task.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.tools.services import LEARNED
from agrotools.vision import Box
from agrotools.vision.reading import crop_pixels

if TYPE_CHECKING:
    from agrotools.vision.learned import FoundObjects, RankedNames, TextAnswer
    from agrotools.vision.learned.weights import Weights

Vector = NDArray[np.float32]


def weight_files(backend: str) -> tuple[Path, ...]:
    """Return the files of all models named by a back-end."""
    from agrotools.vision.learned.weights import find_weights

    return tuple(file for model in models_of(backend) for file in find_weights(model).files)


def models_of(backend: str) -> list[str]:
    """Return the models named by a back-end: one model, or a detector and an outline model joined by a plus sign."""
    return backend.removeprefix(LEARNED).split("+")


def weights_of(backend: str) -> "Weights":
    """Return the weights of the single model named by a back-end."""
    from agrotools.vision.learned.weights import find_weights

    return find_weights(backend.removeprefix(LEARNED))


def find_learned(backend: str, pixels: NDArray[np.uint8], box: Box, target: str, score_min: float) -> "FoundObjects":
    """Detect ``target`` and return its boxes, best first."""
    from agrotools.vision.learned.detection import find_by_text

    found = find_by_text(crop_pixels(pixels, box), target, weights_of(backend), score_min=score_min)
    return found._replace(boxes=found.boxes + np.array([*box[:2], *box[:2]], np.float64))


def describe_learned(backend: str, pixels: NDArray[np.uint8], box: Box, question: str | None) -> "TextAnswer":
    """Describe a picture or answer; the flag ``question_not_answered`` marks models that take no question."""
    from agrotools.vision.learned.description import describe

    return describe(crop_pixels(pixels, box), question, weights_of(backend))


def name_learned(
    backend: str, pixels: NDArray[np.uint8], box: Box, names: Sequence[str]
) -> "tuple[RankedNames, dict[str, Vector]]":
    """Rank ``names`` by their similarity to a picture, and describe it by the model's embedding and by its traits.

    Scores are shares: one of the names is always the likeliest.
    """
    from agrotools.vision.learned import FLAG, RankedNames
    from agrotools.vision.learned.description import similarity_shares
    from agrotools.vision.strangeness import picture_traits

    weights, part = weights_of(backend), crop_pixels(pixels, box)
    shares, direction = similarity_shares(part, names, weights)
    order = np.argsort(-shares, kind="stable")
    candidates = tuple((names[int(index)], float(shares[index])) for index in order)
    ranked = RankedNames(candidates, (f"name: by likeness to the names, {weights.name} ({weights.kind})",), (FLAG,))
    return ranked, {"embedding": direction, "traits": picture_traits(part)}


def name_common(backend: str, pixels: NDArray[np.uint8], score_min: float) -> "FoundObjects":
    """Detect all objects in a picture that belong to the model's classes."""
    from agrotools.vision.learned.detection import find_common

    return find_common(np.ascontiguousarray(pixels), weights_of(backend), score_min=score_min)


def outline_learned(
    backend: str, pixels: NDArray[np.uint8], text: str, score_min: float
) -> "tuple[FoundObjects, NDArray[np.bool_]]":
    """Return boxes of ``text`` and a mask of each, bool (n, rows, columns).

    The back-end names two models joined by a plus sign: a detector and an outline model.
    """
    from agrotools.vision.learned.detection import masks_in_boxes
    from agrotools.vision.learned.weights import KINDS, find_weights

    models = models_of(backend)
    if len(models) != 2:
        why = "outlines need two models: one that finds things by their name and one that outlines what is in a box"
        hint = f"write learned:{KINDS['grounding-dino'].example}+{KINDS['sam2'].example}"
        raise ToolError("backend_unavailable", why, hint=hint)
    outliner = find_weights(models[1])
    height, width = pixels.shape[:2]
    found = find_learned(LEARNED + models[0], pixels, (0, 0, width, height), text, score_min)
    masks, _ = masks_in_boxes(np.ascontiguousarray(pixels), found.boxes, outliner)
    return found._replace(notes=(*found.notes, f"outlined by {outliner.name} ({outliner.kind})")), masks


def write_down_learned(backend: str, pixels: NDArray[np.uint8], box: Box) -> "TextAnswer":
    """Return the formula in a picture as LaTeX."""
    from agrotools.vision.learned import FLAG, TextAnswer
    from agrotools.vision.learned.description import transcribe

    weights = weights_of(backend)
    text = transcribe(crop_pixels(pixels, box), weights)
    return TextAnswer(text, (f"formula: written down by {weights.name} ({weights.kind})",), (FLAG,))
