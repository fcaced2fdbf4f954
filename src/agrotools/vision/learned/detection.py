"""Finding things by their name with open-vocabulary detectors.

Sources: GroundingDINO (Liu et al. 2023, arXiv 2303.05499), OWLv2 (Minderer et al. 2023, arXiv 2306.09683).
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.learned.weights import Weights, library, unloadable, wrong_kind

KINDS = ("grounding-dino", "owlv2")
_LARGE_PX = 2000
_SAME = 0.7


class Detections(NamedTuple):
    """Boxes (n, 4) x0, y0, x1, y1 in pixels and scores (n,) in 0..1, best first, and flags."""

    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]
    flags: tuple[str, ...] = ()


def find_by_text(pixels: NDArray[np.uint8], text: str, weights: Weights, *, score_min: float = 0.3) -> Detections:
    """What ``text`` names in a picture, uint8 (rows, columns, 3).

    Boxes that overlap a better one by an IoU of 0.7 are left out. The whole picture is shrunk to what the model takes,
    so that small things in large pictures are lost: flag ``large_picture_shrunk``.

    Raises:
        ToolError: ``backend_unavailable``: not such a model, or it cannot be loaded.
    """
    torch = library("torch")
    from PIL import Image

    if weights.kind not in KINDS:
        raise wrong_kind(weights, "find things by their name", KINDS)
    processor, model = _loaded(weights)
    image = Image.fromarray(pixels)
    wanted = f"{' '.join(text.split())}".rstrip(".")
    grounding = weights.kind == "grounding-dino"
    # GroundingDINO was taught phrases in lower case that end in a full stop; OWLv2 sentences of CLIP.
    given = f"{wanted.lower()}." if grounding else [[f"a photo of a {wanted}"]]
    inputs = processor(images=image, text=given, return_tensors="pt", **({} if grounding else {"truncation": True}))
    with torch.inference_mode():
        outputs = model(**inputs)
    size = [(image.height, image.width)]
    if grounding:
        found = processor.post_process_grounded_object_detection(
            outputs, inputs["input_ids"], threshold=score_min, text_threshold=min(score_min, 0.25), target_sizes=size
        )[0]
    else:
        found = processor.post_process_grounded_object_detection(outputs, threshold=score_min, target_sizes=size)[0]
    boxes = found["boxes"].double().numpy().reshape(-1, 4)
    scores = found["scores"].double().numpy()
    boxes = np.clip(boxes, 0, [image.width, image.height, image.width, image.height])
    kept = _best(boxes, scores)
    flags = ("large_picture_shrunk",) if max(image.size) > _LARGE_PX else ()
    return Detections(boxes[kept], scores[kept], flags)


@lru_cache(maxsize=1)
def _loaded(weights: Weights) -> tuple[Any, Any]:
    transformers = library("transformers")

    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        if weights.kind == "owlv2":
            pictures = transformers.Owlv2ImageProcessorPil.from_pretrained(weights.folder, local_files_only=True)
            make = transformers.Owlv2Processor
        else:
            pictures = transformers.GroundingDinoImageProcessorPil.from_pretrained(
                weights.folder, local_files_only=True
            )
            make = transformers.GroundingDinoProcessor
        words = transformers.AutoTokenizer.from_pretrained(weights.folder, **options)
        model = transformers.AutoModelForZeroShotObjectDetection.from_pretrained(
            weights.folder, use_safetensors=True, **options
        )
        return make(pictures, words), model.float().eval()
    except Exception as error:  # these libraries raise whatever a wrong file leads them to
        raise unloadable(weights, error) from error


def _best(boxes: NDArray[np.float64], scores: NDArray[np.float64]) -> NDArray[np.intp]:
    """Which boxes are kept, best first: those with an area that no better one covers."""
    order = np.lexsort((boxes[:, 0], boxes[:, 1], -scores))
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    kept: list[int] = []
    for index in order.tolist():
        if areas[index] <= 0:
            continue
        others = boxes[kept]
        low, high = np.maximum(others[:, :2], boxes[index, :2]), np.minimum(others[:, 2:], boxes[index, 2:])
        common = np.prod(np.clip(high - low, 0, None), axis=1)
        if not np.any(common > _SAME * (areas[kept] + areas[index] - common)):
            kept.append(index)
    return np.asarray(kept, np.intp)
