"""A crop and weed net of a few numbers, written as ONNX by hand: green pixels are crop, red ones weeds, and a picture
is as strange as it is blue."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from support.tiny_nets import _INT, _INTS, _node, _part, _tensor, _value, _whole


def parter_onnx() -> bytes:
    """The content of an ONNX file with outputs ``chances`` (n, 3, h, w) and ``strange`` (n,)."""
    colour = np.zeros((3, 3, 1, 1), np.float32)
    colour[0, 2] = colour[1, 1] = colour[2, 0] = 1  # soil is blue, crop green, weeds red
    blue = np.zeros((1, 3, 1, 1), np.float32)
    blue[0, 2] = 1
    axes = _part(1, "axes") + _part(8, bytes([1, 2, 3])) + _whole(20, _INTS)
    gone = _part(1, "keepdims") + _whole(3, 0) + _whole(20, _INT)
    graph = (
        _part(1, _node("Conv", ["image", "colour"], "chances"))
        + _part(1, _node("Conv", ["image", "blue"], "blueness"))
        + _part(1, _node("ReduceMean", ["blueness"], "strange") + _part(5, axes) + _part(5, gone))
        + _part(2, "tiny")
        + _part(5, _tensor("colour", colour))
        + _part(5, _tensor("blue", blue))
        + _part(11, _value("image", ["n", 3, "height", "width"]))
        + _part(12, _value("chances", ["n", 3, "height", "width"]))
        + _part(12, _value("strange", ["n"]))
    )
    return _whole(1, 8) + _part(7, graph) + _part(8, _whole(2, 17))


def write_parter(folder: Path, **changed: Any) -> Path:
    """Weights and description as the recipe writes them; returns the description. ``changed`` replaces its entries."""
    folder.mkdir(parents=True, exist_ok=True)
    content = parter_onnx()
    (folder / "crop_weed.onnx").write_bytes(content)
    figures = {"n": 80, "crop": {"iou": 0.8}, "weeds": {"iou": 0.4}}
    described = {
        "name": "crop_weed",
        "weights": "crop_weed.onnx",
        "sha256": hashlib.sha256(content).hexdigest(),
        "classes": ["soil", "crop", "weed"],
        "strangeness": {"threshold": 0.5},
        "figures": {"plants by colour, parted by the net": figures},
        **changed,
    }
    path = folder / "crop_weed.json"
    path.write_text(json.dumps(described))
    return path
