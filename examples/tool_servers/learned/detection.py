"""Detection of objects and outlines by large open models.

Sources: by any name, GroundingDINO (Liu et al. 2023, arXiv 2303.05499); outlines, SAM 2 (Ravi et al. 2024, arXiv
2408.00714).

A model that cannot be loaded gives a ``ToolError``.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from reading import Box, Pixels, crop
from weights import LOCAL_ONLY, Weights, model_loader, on_device, torch_library

_SAME = 0.7
"""Smallest IoU of two boxes that are of the same thing."""


class FoundObjects(NamedTuple):
    """Boxes (n, 4) x0, y0, x1, y1 in pixels of the whole picture, and scores (n,) from 0 to 1, best first."""

    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]


def find_by_text(
    pixels: Pixels, box: Box, text: str, weights: Weights, *, score_min: float
) -> FoundObjects:
    """Return what ``text`` names in the part ``box`` of a picture, without boxes that overlap a better one by an IoU
    of over 0.7. The part is shrunk to the input of the model, which loses small objects in large pictures."""
    torch = torch_library()
    processor, model = _load_detector(weights)
    image = crop(pixels, box)
    # The model was trained on lower-case phrases that end in a full stop.
    prompt = f"{' '.join(text.split())}".rstrip(".").lower() + "."
    inputs = processor(images=image, text=prompt, return_tensors="pt").to(model.device)
    with torch.inference_mode():
        outputs = model(**inputs)
    size = [(image.height, image.width)]
    detections = processor.post_process_grounded_object_detection(
        outputs,
        inputs["input_ids"],
        threshold=score_min,
        text_threshold=min(score_min, 0.25),
        target_sizes=size,
    )[0]
    boxes = detections["boxes"].double().cpu().numpy().reshape(-1, 4)
    scores = detections["scores"].double().cpu().numpy()
    boxes = np.clip(boxes, 0, [image.width, image.height, image.width, image.height])
    selected = _best(boxes, scores)
    origin = np.array([*box[:2], *box[:2]], np.float64)
    return FoundObjects(boxes[selected] + origin, scores[selected])


@model_loader
def _load_detector(weights: Weights) -> tuple[Any, Any]:
    import transformers

    pictures = transformers.GroundingDinoImageProcessorPil.from_pretrained(
        weights.folder, local_files_only=True
    )
    words = transformers.AutoTokenizer.from_pretrained(weights.folder, **LOCAL_ONLY)
    model = transformers.AutoModelForZeroShotObjectDetection.from_pretrained(
        weights.folder, use_safetensors=True, **LOCAL_ONLY
    )
    return transformers.GroundingDinoProcessor(pictures, words), on_device(model)


def _best(boxes: NDArray[np.float64], scores: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return indices of the boxes to keep, best first: boxes with an area that do not overlap a better one."""
    order = np.lexsort((boxes[:, 0], boxes[:, 1], -scores))
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    selected: list[int] = []
    for index in order.tolist():
        if areas[index] <= 0:
            continue
        others = boxes[selected]
        low, high = (
            np.maximum(others[:, :2], boxes[index, :2]),
            np.minimum(others[:, 2:], boxes[index, 2:]),
        )
        common = np.prod(np.clip(high - low, 0, None), axis=1)
        if not np.any(common > _SAME * (areas[selected] + areas[index] - common)):
            selected.append(index)
    return np.asarray(selected, np.intp)


_MEAN, _SD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Mean and standard deviation of the colours of ImageNet, by which SAM 2 was trained."""
_AT_ONCE = 64
"""Boxes that are outlined together: their masks have the size of the picture."""


def masks_in_boxes(
    pixels: Pixels, boxes: NDArray[np.float64], weights: Weights
) -> NDArray[np.bool_]:
    """Return a mask for each box (n, 4) x0, y0, x1, y1: bool (n, rows, columns)."""
    torch = torch_library()
    model = _load_mask_model(weights)
    rows, columns = pixels.shape[:2]
    if not len(boxes):
        return np.zeros((0, rows, columns), np.bool_)
    side = int(model.config.vision_config.backbone_config.image_size[0])
    tensor = torch.from_numpy(np.array(pixels)).permute(2, 0, 1)[None].float() / 255
    tensor = torch.nn.functional.interpolate(
        tensor, (side, side), mode="bilinear", align_corners=False, antialias=True
    )
    tensor = (tensor - torch.tensor(_MEAN).view(1, 3, 1, 1)) / torch.tensor(_SD).view(1, 3, 1, 1)
    scaled = torch.from_numpy(boxes * np.array([side / columns, side / rows] * 2)).float()
    masks: list[NDArray[np.bool_]] = []
    with torch.inference_mode():
        seen = model.get_image_embeddings(tensor.to(model.device))
        for start in range(0, len(boxes), _AT_ONCE):
            part = scaled[None, start : start + _AT_ONCE].to(model.device)
            out = model(image_embeddings=seen, input_boxes=part, multimask_output=False)
            full = torch.nn.functional.interpolate(
                out.pred_masks[0], (rows, columns), mode="bilinear", align_corners=False
            )
            masks.append((full[:, 0] > 0).cpu().numpy())
    return np.concatenate(masks)


@model_loader
def _load_mask_model(weights: Weights) -> Any:
    import transformers

    model = transformers.Sam2Model.from_pretrained(
        weights.folder, local_files_only=True, use_safetensors=True, trust_remote_code=False
    )
    return on_device(model)
