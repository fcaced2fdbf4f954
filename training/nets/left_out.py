"""Encoders that learnt nothing of some crops, in place of the one that ships: packs of these crops are measured so.

The encoder that ships learnt from the leaves of all crops of the pool. A figure of a pack of such leaves would be of
pictures that its encoder knows. So each pack of leaves is measured with an encoder from whose training its own crop and
that of its look-alikes were left out, and with strangers that this encoder has seen anew. In ``FOLDER/CROP+CROP``:

    python training/finetune_backbone.py CROP --without CROP --rate 3e-5 ... --out FOLDER/CROP+CROP/backbone.onnx
    python training/gather_strangers.py --encoder FOLDER/CROP+CROP/backbone.onnx --out FOLDER/CROP+CROP ...
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agrotools_tools.recognition.encoder import ENCODER, Encoder
from agrotools_tools.recognition.pack_features import PackFeatures, shipped_features
from agrotools_tools.recognition.strangers import Strangers, strangers_for
from agrotools_tools.vision.nets import Graph


def features_with(encoder: Path | None) -> PackFeatures:
    """Return the maker of features that ships, with the encoder of a file if one is given."""
    shipped = shipped_features()
    if encoder is None:
        return shipped
    content = encoder.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    info = shipped.encoder.info.model_copy(update={"weights": encoder.name, "sha256": digest})
    return replace(
        shipped, encoder=Encoder(info, Graph(content, what=str(encoder), hint="train it again"))
    )


class Sight:
    """Encoder of a pack, with the strangers as it sees them. ``folder``: of both, None for those that ship."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.maker = features_with(None if folder is None else folder / f"{ENCODER}.onnx")

    def strangers(self, without: Sequence[str]) -> Strangers:
        return strangers_for(self.maker, without, self.folder)


def crops_of(entry: dict[str, Any]) -> list[str]:
    """Return the crops of the pictures of a pack of ``other_things.toml`` and of its look-alikes."""
    return sorted({label.partition("_")[0] for label in (*entry["own"], *entry["other"])})


def folder_of(encoders: Path | None, entry: dict[str, Any], *, is_of_leaves: bool) -> Path | None:
    """Return the folder of the encoder that a pack is measured with, None for the one that ships."""
    if encoders is None or not is_of_leaves:
        return None
    return encoders / "+".join(crops_of(entry))
