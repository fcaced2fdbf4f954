"""Back-end ``learned:MODEL``: a large open model with local weights.

``MODEL`` is a name of the model hub that is in the hub's cache (``IDEA-Research/grounding-dino-tiny``), or an absolute
path of a folder. Nothing is ever downloaded.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.tools.services import LEARNED
from agrotools.vision import Box

if TYPE_CHECKING:
    from agrotools.tools.services.vision_client import DetectedBoxes, LabelledBoxes, RankedNames, TextAnswer

FLAG = "learned_model"


def weight_files(backend: str) -> tuple[Path, ...]:
    """The files of the model that a back-end names.

    Raises:
        ToolError: ``backend_unavailable``: its weights or a library are not there, with what to install or put where.
    """
    from agrotools.vision.learned.weights import find_weights

    return tuple(file for model in models_of(backend) for file in find_weights(model).files)


def models_of(backend: str) -> list[str]:
    """The models that a back-end names: one, or a detector and a model for outlines with a plus between them."""
    return backend.removeprefix(LEARNED).split("+")


def _is_tree(target: str) -> bool:
    return any(word in target.lower() for word in ("tree", "crown", "palm"))


def find_learned(backend: str, pixels: NDArray[np.uint8], box: Box, target: str, score_min: float) -> "DetectedBoxes":
    """Boxes of ``target`` by the model in the part ``box`` of a picture, uint8 (rows, columns, 3).

    Raises:
        ToolError: ``backend_unavailable``; the model's reason where it does not find things by their name.
    """
    from agrotools.tools.services.vision_client import DetectedBoxes
    from agrotools.vision.learned.detection import Detections, find_by_text, find_crowns
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
    return DetectedBoxes(
        found.boxes + np.array([x0, y0, x0, y0], np.float64), found.scores, notes, (FLAG, *found.flags)
    )


def describe_learned(backend: str, pixels: NDArray[np.uint8], box: Box, question: str | None) -> "TextAnswer":
    """Description by the model of the part ``box`` of a picture, uint8 (rows, columns, 3).

    Raises:
        ToolError: ``backend_unavailable``; also where the model writes no text.
    """
    from agrotools.tools.services.vision_client import TextAnswer
    from agrotools.vision.learned.description import describe
    from agrotools.vision.learned.weights import find_weights

    weights = find_weights(backend.removeprefix(LEARNED))
    x0, y0, x1, y1 = box
    text = describe(np.ascontiguousarray(pixels[y0:y1, x0:x1]), question, weights)
    flags = (FLAG, *(("question_not_answered",) if question and not text.answers else ()))
    return TextAnswer(text.text, (f"description: said by {weights.name} ({weights.kind}), not measured",), flags)


def name_learned(
    backend: str, pixels: NDArray[np.uint8], box: Box, names: Sequence[str], *, top_k: int = 3
) -> "RankedNames":
    """Ranking by the model of ``names`` for the part ``box`` of a picture, uint8 (rows, columns, 3).

    Raises:
        ToolError: ``backend_unavailable``; also where the model does not compare pictures with words.
    """
    from agrotools.tools.services.vision_client import RankedNames
    from agrotools.vision.learned.description import likeness
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
    return RankedNames(candidates, notes, (FLAG,))


def name_common(backend: str, pixels: NDArray[np.uint8], score_min: float) -> "LabelledBoxes":
    """All things that the model knows in a picture, uint8 (rows, columns, 3).

    Raises:
        ToolError: ``backend_unavailable``; also where the model does not name what it finds.
    """
    from agrotools.tools.services.vision_client import LabelledBoxes
    from agrotools.vision.learned.detection import find_common
    from agrotools.vision.learned.weights import find_weights

    weights = find_weights(backend.removeprefix(LEARNED))
    found = find_common(np.ascontiguousarray(pixels), weights, score_min=score_min)
    notes = (f"found by {weights.name} ({weights.kind})", "scores are the model's own, not calibrated")
    return LabelledBoxes(found.boxes, found.scores, found.names, notes, (FLAG,))


def outline_learned(
    backend: str, pixels: NDArray[np.uint8], text: str, score_min: float
) -> "tuple[DetectedBoxes, NDArray[np.bool_]]":
    """Boxes of ``text`` by a detector in a picture, uint8 (rows, columns, 3), and a mask of each (n, rows, columns).

    The back-end names two models, the detector and one for outlines, with a plus between them.

    Raises:
        ToolError: ``backend_unavailable``.
    """
    from agrotools.vision.learned.detection import masks_in_boxes
    from agrotools.vision.learned.weights import EXAMPLES, find_weights

    models = models_of(backend)
    if len(models) != 2:
        raise ToolError(
            "backend_unavailable",
            "outlines need two models: one that finds things by their name and one that outlines what is in a box",
            hint=f"write learned:{EXAMPLES['grounding-dino']}+{EXAMPLES['sam2']}",
        )
    outliner = find_weights(models[1])
    height, width = pixels.shape[:2]
    found = find_learned(LEARNED + models[0], pixels, (0, 0, width, height), text, score_min)
    masks, _ = masks_in_boxes(np.ascontiguousarray(pixels), found.boxes, outliner)
    return found._replace(notes=(*found.notes, f"outlined by {outliner.name} ({outliner.kind})")), masks


def write_down_learned(backend: str, pixels: NDArray[np.uint8], box: Box) -> "TextAnswer":
    """LaTeX by the model of the formula in the part ``box`` of a picture, uint8 (rows, columns, 3).

    Raises:
        ToolError: ``backend_unavailable``; also where the model does not write down what a picture says.
    """
    from agrotools.tools.services.vision_client import TextAnswer
    from agrotools.vision.learned.description import write_down
    from agrotools.vision.learned.weights import find_weights

    weights = find_weights(backend.removeprefix(LEARNED))
    x0, y0, x1, y1 = box
    text = write_down(np.ascontiguousarray(pixels[y0:y1, x0:x1]), weights)
    return TextAnswer(text, (f"formula: written down by {weights.name} ({weights.kind})",), (FLAG,))
