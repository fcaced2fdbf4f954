"""Back-end ``learned:MODEL``: a large open model whose weights lie on this machine does the work.

``MODEL`` is a name of the model hub that is in the hub's cache (``IDEA-Research/grounding-dino-tiny``), or an absolute
path of a folder. Nothing is ever downloaded.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agrotools.tools.vlm import LEARNED
from agrotools.tools.vlm.said import Named, Pointed, Said
from agrotools.vision.formats import Box

FLAG = "learned_model"


def weight_files(backend: str) -> tuple[Path, ...]:
    """The files of the model that a back-end names.

    Raises:
        ToolError: ``backend_unavailable``: its weights or a library are not there, with what to install or put where.
    """
    from agrotools.vision.learned.weights import find_weights

    return find_weights(backend.removeprefix(LEARNED)).files


def _is_tree(target: str) -> bool:
    return any(word in target.lower() for word in ("tree", "crown", "palm"))


def find_learned(backend: str, pixels: NDArray[np.uint8], box: Box, target: str, score_min: float) -> Pointed:
    """What the model takes for ``target`` in the part ``box`` of a picture, uint8 (rows, columns, 3).

    Raises:
        ToolError: ``backend_unavailable``; the model's reason where it does not find things by their name.
    """
    from agrotools.vision.learned.crowns import find_crowns
    from agrotools.vision.learned.detection import Detections, find_by_text
    from agrotools.vision.learned.weights import find_weights

    weights = find_weights(backend.removeprefix(LEARNED))
    x0, y0, x1, y1 = box
    part = np.ascontiguousarray(pixels[y0:y1, x0:x1])
    if weights.kind == "deepforest":
        boxes, scores = find_crowns(part, weights, score_min=score_min)
        note = "it finds tree crowns from above and nothing else, whatever the target"
        flags = () if _is_tree(target) else ("target_not_known",)
        found = Detections(boxes, scores, flags)
        more = (note,)
    else:
        found, more = find_by_text(part, target, weights, score_min=score_min), ()
    notes = (f"found by {weights.name} ({weights.kind})", "scores are the model's own, not calibrated", *more)
    return Pointed(found.boxes + np.array([x0, y0, x0, y0], np.float64), found.scores, notes, (FLAG, *found.flags))


def describe_learned(backend: str, pixels: NDArray[np.uint8], box: Box, question: str | None) -> Said:
    """What the model says of the part ``box`` of a picture, uint8 (rows, columns, 3).

    Raises:
        ToolError: ``backend_unavailable``; also where the model writes no text.
    """
    from agrotools.vision.learned.weights import find_weights
    from agrotools.vision.learned.words import describe

    weights = find_weights(backend.removeprefix(LEARNED))
    x0, y0, x1, y1 = box
    text = describe(np.ascontiguousarray(pixels[y0:y1, x0:x1]), question, weights)
    flags = (FLAG, *(("question_not_answered",) if question and not text.answers else ()))
    return Said(text.text, (f"description: said by {weights.name} ({weights.kind}), not measured",), flags)


def name_learned(backend: str, pixels: NDArray[np.uint8], box: Box, names: Sequence[str], *, top_k: int = 3) -> Named:
    """Which of ``names`` the part ``box`` of a picture, uint8 (rows, columns, 3), looks most like to the model.

    Raises:
        ToolError: ``backend_unavailable``; also where the model does not compare pictures with words.
    """
    from agrotools.vision.learned.names import likeness
    from agrotools.vision.learned.weights import find_weights

    weights = find_weights(backend.removeprefix(LEARNED))
    x0, y0, x1, y1 = box
    shares = likeness(np.ascontiguousarray(pixels[y0:y1, x0:x1]), names, weights)
    order = np.argsort(-shares, kind="stable")[:top_k]
    candidates = tuple((names[int(index)], float(shares[index])) for index in order)
    notes = (
        f"name: by likeness to the names, {weights.name} ({weights.kind})",
        "scores are shares among the names given, not calibrated: one of them is always the likeliest",
    )
    return Named(candidates, notes, (FLAG,))
