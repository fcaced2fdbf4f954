"""The outline of what lies in a box, with SAM 2 (Ravi et al. 2024, arXiv 2408.00714)."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.learned.weights import Weights, library, unloadable, wrong_kind

_MEAN, _SD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_AT_ONCE = 64


def masks_in_boxes(
    pixels: NDArray[np.uint8], boxes: NDArray[np.float64], weights: Weights
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """A mask for each box, and how well the model thinks that it fits.

    Args:
        pixels: uint8 (rows, columns, 3).
        boxes: (n, 4) x0, y0, x1, y1 in pixels.

    Returns:
        Masks, bool (n, rows, columns), and fits (n,) in about 0..1.

    Raises:
        ToolError: ``backend_unavailable``: not such a model, or it cannot be loaded.
    """
    torch = library("torch")

    if weights.kind != "sam2":
        raise wrong_kind(weights, "outline things", ("sam2",))
    model = _loaded(weights)
    rows, columns = pixels.shape[:2]
    if not len(boxes):
        return np.zeros((0, rows, columns), np.bool_), np.zeros(0)
    side = int(model.config.vision_config.backbone_config.image_size[0])
    tensor = torch.from_numpy(np.array(pixels)).permute(2, 0, 1)[None].float() / 255
    tensor = torch.nn.functional.interpolate(tensor, (side, side), mode="bilinear", align_corners=False, antialias=True)
    tensor = (tensor - torch.tensor(_MEAN).view(1, 3, 1, 1)) / torch.tensor(_SD).view(1, 3, 1, 1)
    scaled = torch.from_numpy(boxes * np.array([side / columns, side / rows] * 2)).float()
    masks: list[NDArray[np.bool_]] = []
    fits: list[NDArray[np.float64]] = []
    with torch.inference_mode():
        seen = model.get_image_embeddings(tensor)
        for start in range(0, len(boxes), _AT_ONCE):
            part = scaled[None, start : start + _AT_ONCE]
            out = model(image_embeddings=seen, input_boxes=part, multimask_output=False)
            full = torch.nn.functional.interpolate(
                out.pred_masks[0], (rows, columns), mode="bilinear", align_corners=False
            )
            masks.append((full[:, 0] > 0).numpy())
            fits.append(out.iou_scores[0, :, 0].double().numpy())
    return np.concatenate(masks), np.concatenate(fits)


@lru_cache(maxsize=1)
def _loaded(weights: Weights) -> Any:
    transformers = library("transformers")

    try:
        model = transformers.Sam2Model.from_pretrained(
            weights.folder, local_files_only=True, use_safetensors=True, trust_remote_code=False
        )
        return model.float().eval()
    except Exception as error:  # these libraries raise whatever a wrong file leads them to
        raise unloadable(weights, error) from error
