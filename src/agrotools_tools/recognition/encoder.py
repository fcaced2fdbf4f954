"""The shipped image encoder, ``data/nets/backbone.onnx``: a picture as numbers from which packs learn.

It learnt on ImageNet, and is the only weights of this package that rest on pictures that are not openly licensed
(``NOTICE``, ``data/nets/backbone.md``). Its last blocks then learnt leaves and weeds. ``training/build_backbone.py``
writes it.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agrotools_tools.recognition.net import net_input
from agrotools_tools.vision import nets
from agrotools_tools.vision.nets import DescribedNet, Graph, read_whole_net

ENCODER = "backbone"
_AGAIN = "install agrotools again"


class EncoderInfo(DescribedNet):
    """Description of the encoder.

    ``side``: height and width of its input, pixels. ``width``: numbers it gives. ``source``: where the weights are
    from, with their licence. ``learnt_from``: pictures that they rest on.
    """

    recipe: str
    side: int
    width: int
    source: str
    learnt_from: str


@dataclass(frozen=True, eq=False)
class Encoder:
    info: EncoderInfo
    graph: Graph

    def embedding(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the embedding of a picture, uint8 (rows, columns, 3), as float32 (width,)."""
        side = (self.info.side, self.info.side)
        return self.graph.run(["embedding"], net_input(pixels, side))[0][0]


def shipped_encoder() -> Encoder:
    """Load the encoder of the package; it is cached until its description changes."""
    path = nets.nets_folder() / f"{ENCODER}.json"
    return _load(path, path.stat().st_mtime_ns if path.is_file() else 0)


@lru_cache(maxsize=2)
def _load(description: Path, stamp: int) -> Encoder:  # noqa: ARG001 - the stamp is part of the key
    what = f"the net {ENCODER}"
    return Encoder(*read_whole_net(description, EncoderInfo, what=what, hint=_AGAIN))
