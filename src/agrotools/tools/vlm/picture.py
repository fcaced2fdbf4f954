"""Pictures as a vision model gets them: bounded in size, and the way back to pixels of the file."""

import io
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.formats import Box

LONGEST_SIDE_PX = 1568
_QUALITY = 90


@dataclass(frozen=True)
class ModelPicture:
    """The part ``box`` of a picture (in its pixels), encoded; ``width_px`` and ``height_px`` are those sent."""

    jpeg: bytes
    width_px: int
    height_px: int
    box: Box

    def original(self, boxes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Boxes (n, 4) in pixels as sent, in pixels of the picture; what stands over its edge is cut off."""
        x0, y0, x1, y1 = self.box
        across, down = (x1 - x0) / self.width_px, (y1 - y0) / self.height_px
        placed = boxes * np.array([across, down, across, down]) + np.array([x0, y0, x0, y0])
        return np.clip(placed, [x0, y0, x0, y0], [x1, y1, x1, y1])


def picture_for_model(pixels: NDArray[np.uint8], box: Box) -> ModelPicture:
    """The part ``box`` of a picture, uint8 (rows, columns, 3), as a JPEG of at most 1,568 px a side."""
    from PIL import Image

    x0, y0, x1, y1 = box
    image = Image.fromarray(np.ascontiguousarray(pixels[y0:y1, x0:x1]))
    image.thumbnail((LONGEST_SIDE_PX, LONGEST_SIDE_PX), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    image.save(out, "JPEG", quality=_QUALITY)
    return ModelPicture(out.getvalue(), image.width, image.height, box)
