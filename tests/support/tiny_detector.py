"""A detection net of a few numbers, written as ONNX by hand: red and green spots are its two kinds of fruit.

``heat`` is how much of a colour a cell of 4 x 4 pixels has over the others, zero beside a peak; every box reaches the
same distance to all sides.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from support.tiny_nets import _node, _number, _part, _tensor, _value, _whole

HALF_SIDE_PX = 9.0
_INTS = 7


def _ints(name: str, values: tuple[int, ...]) -> bytes:
    packed = b"".join(_number(value) for value in values)
    return _part(5, _part(1, name) + _part(8, packed) + _whole(20, _INTS))


def detector_onnx(classes: int = 4) -> bytes:
    """The content of an ONNX file with outputs ``heat`` (n, classes, h, w) and ``distances`` (n, 4, h, w)."""
    colour = np.zeros((classes, 3, 1, 1), np.float32)
    colour[0, :, 0, 0] = (1.25, -1.25, -1.25)  # apples are red here
    colour[1, :, 0, 0] = (-1.25, 1.25, -1.25)  # pears green
    nothing = np.zeros((4, 3, 1, 1), np.float32)
    graph = (
        _part(
            1,
            _node("AveragePool", ["image"], "cells")
            + _ints("kernel_shape", (4, 4))
            + _ints("strides", (4, 4)),
        )
        + _part(1, _node("Conv", ["cells", "colour"], "raw"))
        + _part(1, _node("Clip", ["raw", "zero", "one"], "level"))
        + _part(
            1,
            _node("MaxPool", ["level"], "highest")
            + _ints("kernel_shape", (3, 3))
            + _ints("pads", (1, 1, 1, 1))
            + _ints("strides", (1, 1)),
        )
        + _part(1, _node("Sub", ["level", "highest"], "below"))
        + _part(1, _node("Sign", ["below"], "side"))
        + _part(1, _node("Add", ["side", "one"], "is_peak"))
        + _part(1, _node("Mul", ["level", "is_peak"], "heat"))
        + _part(1, _node("Conv", ["cells", "nothing", "reach"], "distances"))
        + _part(2, "tiny")
        + _part(5, _tensor("colour", colour))
        + _part(5, _tensor("nothing", nothing))
        + _part(5, _tensor("reach", np.full(4, HALF_SIDE_PX, np.float32)))
        + _part(5, _tensor("zero", np.float32(0)))
        + _part(5, _tensor("one", np.float32(1)))
        + _part(11, _value("image", ["n", 3, "height", "width"]))
        + _part(12, _value("heat", ["n", classes, "h", "w"]))
        + _part(12, _value("distances", ["n", 4, "h", "w"]))
    )
    return _whole(1, 8) + _part(7, graph) + _part(8, _whole(2, 17))


def write_detector(folder: Path, **changed: Any) -> Path:
    """Weights and description as the recipe writes them; returns the description. ``changed`` replaces its entries."""
    folder.mkdir(parents=True, exist_ok=True)
    content = detector_onnx()
    (folder / "fruits.onnx").write_bytes(content)
    fruits = ("apple", "pear", "cherry", "tomato")
    described = {
        "name": "fruits",
        "weights": "fruits.onnx",
        "sha256": hashlib.sha256(content).hexdigest(),
        "classes": list(fruits),
        "stride": 4,
        "figures": {fruit: {"f1": 0.4 if fruit == "cherry" else 0.8} for fruit in fruits},
        "counts": {
            fruit: {"threshold": 0.5, "spread": spread, "photographs": 50, "error": 0.25}
            | {"coverage": 0.9, "coverage_low": 0.8}
            for fruit, spread in zip(fruits, (0.3, 0.3, None, 0.3), strict=True)
        },
        **changed,
    }
    path = folder / "fruits.json"
    path.write_text(json.dumps(described))
    return path
