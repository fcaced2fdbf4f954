"""Things of the kinds that a detector was taught, as a rule the 80 of COCO (Lin et al. 2014, arXiv 1405.0312).

Sources: RT-DETR (Zhao et al. 2023, arXiv 2304.08069), DETR (Carion et al. 2020, arXiv 2005.12872).
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.learned.weights import Weights, library, unloadable, wrong_kind

KINDS = ("rt-detr", "detr")


class NamedDetections(NamedTuple):
    """Boxes (n, 4) x0, y0, x1, y1 in pixels, scores (n,) in 0..1, best first, and the name of each."""

    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]
    names: list[str]


def find_common(pixels: NDArray[np.uint8], weights: Weights, *, score_min: float = 0.5) -> NamedDetections:
    """All things that a picture, uint8 (rows, columns, 3), shows of the kinds that the model knows.

    Raises:
        ToolError: ``backend_unavailable``: not such a model, or it cannot be loaded.
    """
    torch = library("torch")
    from PIL import Image

    if weights.kind not in KINDS:
        raise wrong_kind(weights, "name all things it finds", KINDS)
    processor, model = _loaded(weights)
    image = Image.fromarray(pixels)
    inputs = processor(images=image, return_tensors="pt")
    with torch.inference_mode():
        outputs = model(**inputs)
    size = [(image.height, image.width)]
    found = processor.post_process_object_detection(outputs, threshold=score_min, target_sizes=size)[0]
    boxes = np.clip(
        found["boxes"].double().numpy().reshape(-1, 4), 0, [image.width, image.height, image.width, image.height]
    )
    scores = found["scores"].double().numpy()
    names = [str(model.config.id2label.get(int(label), f"class {int(label)}")) for label in found["labels"]]
    order = np.lexsort((boxes[:, 0], boxes[:, 1], -scores))
    kept = [index for index in order.tolist() if (boxes[index, 2:] > boxes[index, :2]).all()]
    return NamedDetections(boxes[kept], scores[kept], [names[index] for index in kept])


@lru_cache(maxsize=1)
def _loaded(weights: Weights) -> tuple[Any, Any]:
    transformers = library("transformers")

    try:
        make = transformers.RTDetrImageProcessorPil if weights.kind == "rt-detr" else transformers.DetrImageProcessorPil
        processor = make.from_pretrained(weights.folder, local_files_only=True)
        model = transformers.AutoModelForObjectDetection.from_pretrained(
            weights.folder, use_safetensors=True, local_files_only=True, trust_remote_code=False
        )
        return processor, model.float().eval()
    except Exception as error:  # these libraries raise whatever a wrong file leads them to
        raise unloadable(weights, error) from error
