"""Tree crowns in colour pictures from above, with DeepForest (Weinstein et al. 2020, Methods Ecol. Evol. 11)."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.learned.weights import Weights, library, unloadable, wrong_kind

WEIGHTS_FILE = "model.safetensors"
_TILE_PX, _OVERLAP = 400, 0.25
_OVERLAP_KEPT = 0.15


def find_crowns(
    pixels: NDArray[np.uint8], weights: Weights, *, score_min: float = 0.3
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Boxes (n, 4) of tree crowns in pixels and scores (n,) in 0..1, best first.

    The model was taught on tiles of 400 px at 0.1 m per pixel; larger pictures, uint8 (rows, columns, 3), are looked
    at by such tiles that overlap by a quarter. Of boxes with an IoU above 0.15 the best stays.

    Raises:
        ToolError: ``backend_unavailable``: not such a model, or it cannot be loaded.
    """
    if weights.kind != "deepforest":
        raise wrong_kind(weights, "find tree crowns", ("deepforest",))
    torch, ops = library("torch"), library("torchvision.ops")
    model = _loaded(weights)
    boxes: list[Any] = []
    scores: list[Any] = []
    with torch.inference_mode():
        for left, top in tiles(pixels.shape[1], pixels.shape[0]):
            part = np.ascontiguousarray(pixels[top : top + _TILE_PX, left : left + _TILE_PX].transpose(2, 0, 1))
            found = model([torch.from_numpy(part).float() / 255])[0]
            sure = found["scores"] >= score_min
            boxes.append(found["boxes"][sure] + torch.tensor([left, top, left, top]))
            scores.append(found["scores"][sure])
        every, sureness = torch.cat(boxes), torch.cat(scores)
        kept = ops.nms(every, sureness, _OVERLAP_KEPT)
    return every[kept].double().numpy(), sureness[kept].double().numpy()


def tiles(width: int, height: int) -> list[tuple[int, int]]:
    """Left and top of tiles that together cover a picture."""
    step = round(_TILE_PX * (1 - _OVERLAP))

    def starts(length: int) -> list[int]:
        last = max(0, length - _TILE_PX)
        return sorted({min(start, last) for start in range(0, last + step, step)})

    return [(left, top) for top in starts(height) for left in starts(width)]


@lru_cache(maxsize=1)
def _loaded(weights: Weights) -> Any:
    """The network, its weights out of the folder.

    DeepForest's own constructor makes the backbone by torchvision's default, which fetches weights that are written
    over a moment later; it is told here to begin with none.
    """
    retinanet = library("deepforest.models.retinanet")
    detection, safetensors = library("torchvision.models.detection"), library("safetensors.torch")
    make = detection.retinanet_resnet50_fpn
    try:
        state = safetensors.load_file(weights.folder / WEIGHTS_FILE)
        detection.retinanet_resnet50_fpn = lambda **given: make(**{**given, "weights_backbone": None})
        try:
            model = retinanet.RetinaNetHub(num_classes=1, label_dict={"Tree": 0}, score_thresh=0.05)
        finally:
            detection.retinanet_resnet50_fpn = make
        model.load_state_dict(state)
        return model.eval()
    except Exception as error:  # these libraries raise whatever a wrong file leads them to
        raise unloadable(weights, error) from error
