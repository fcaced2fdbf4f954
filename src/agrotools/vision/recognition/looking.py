"""From a picture to the input of a net, as in training."""

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.formats import Box


def net_input(pixels: NDArray[np.uint8], side: tuple[int, int]) -> NDArray[np.float32]:
    """float32 (1, 3, height, width), RGB in 0..1, of a picture, uint8 (rows, columns, 3).

    The picture is squeezed to ``side`` (height, width), its sides not kept in proportion; Pillow's bilinear filter
    averages over what it shrinks. Nets normalise inside their graph.
    """
    from PIL import Image

    picture = Image.fromarray(np.ascontiguousarray(pixels))
    small = np.asarray(picture.resize((side[1], side[0]), Image.Resampling.BILINEAR), np.float32)
    return np.ascontiguousarray(small.transpose(2, 0, 1)[None]) / np.float32(255)


def cut_out(pixels: NDArray[np.uint8], box: Box) -> NDArray[np.uint8]:
    """The part of a picture (rows, columns, 3) inside ``box``."""
    x0, y0, x1, y1 = box
    return np.ascontiguousarray(pixels[y0:y1, x0:x1])
