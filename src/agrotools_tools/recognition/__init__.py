"""Tools that identify weeds, pests and diseases, and look up knowledge about them."""

from pathlib import Path
from typing import Literal

NetName = Literal["weeds", "leaves"]
NAMED_FROM = 0.5
"""Smallest calibrated score of a best candidate, which is then more likely right than wrong."""
NOT_TESTED_AGAINST_LOOK_ALIKES = "not tested against look-alikes"
"""What is said of a pack whose maker gave no pictures of things that resemble its own."""


def shipped_files(name: NetName) -> tuple[Path, Path]:
    """Return the paths of the description and the weights of a shipped net."""
    from agrotools_tools.vision.nets import nets_folder

    return nets_folder() / f"{name}.json", nets_folder() / f"{name}.onnx"
