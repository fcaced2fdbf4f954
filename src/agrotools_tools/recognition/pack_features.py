"""What a pack learns from: the numbers that encoders and nets make of a picture, in blocks.

The first block is that of the shipped encoder. It alone tells other things from a pack's own, since strangers are known
by it too; names rest on all blocks. The last block is that of a user's encoder, if there is one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agrotools_tools.recognition import NetName, shipped_files
from agrotools_tools.recognition.backbone import Backbone
from agrotools_tools.recognition.encoder import Encoder, shipped_encoder
from agrotools_tools.recognition.net import (
    SHIPPED,
    Net,
    picture_features,
    shipped_net,
    shrunk_once,
)


@dataclass(frozen=True, eq=False)
class PackFeatures:
    """Maker of the features of packs. ``backbone``: encoder of the user, if any."""

    encoder: Encoder
    nets: Sequence[Net]
    backbone: Backbone | None = None

    @property
    def net_hashes(self) -> dict[NetName, str]:
        """Hashes of the weights of the nets, by name."""
        by_name = {net.info.name: net.info.sha256 for net in self.nets}
        return {name: by_name[name] for name in SHIPPED if name in by_name}

    def blocks_of(self, pixels: NDArray[np.uint8]) -> list[NDArray[np.float32]]:
        """Return the blocks of a picture, uint8 (rows, columns, 3), in the order in which they are stored."""
        pixels = shrunk_once(pixels)
        blocks = [self.encoder.embedding(pixels), *picture_features(pixels, self.nets)]
        if self.backbone is not None:
            blocks.append(self.backbone.embedding(pixels))
        return blocks


def shipped_features(backbone: Backbone | None = None) -> PackFeatures:
    """Return the maker of the features that this version ships."""
    nets = [shipped_net(name) for name in SHIPPED if shipped_files(name)[0].is_file()]
    return PackFeatures(shipped_encoder(), nets, backbone)
