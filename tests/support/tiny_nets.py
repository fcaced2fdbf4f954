"""Nets of a few numbers, written as ONNX by hand, so that tests need neither trained weights nor a library that writes
the format.

A net takes ``image`` (n, 3, side, side), RGB in 0..1, and gives the mean colour as ``embedding`` (n, 3) and one logit a
class: ``scale`` times (colour . class colour - |class colour|^2 / 2), so the nearest class colour wins.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agrotools_tools.recognition.encoder import ENCODER, EncoderInfo
from agrotools_tools.recognition.pack_features import shipped_features
from agrotools_tools.recognition.strangers import StrangerKind, write_strangers
from agrotools_tools.vision import nets
from support.labelled_pictures import plant_picture

Colour = tuple[int, int, int]
_FLOAT, _INT, _INTS = 1, 2, 7


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _whole(field: int, value: int) -> bytes:
    return _number(field << 3) + _number(value)


def _part(field: int, content: bytes | str) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return _number(field << 3 | 2) + _number(len(data)) + data


def _tensor(name: str, values: np.ndarray) -> bytes:
    dims = b"".join(_whole(1, size) for size in values.shape)
    return dims + _whole(2, _FLOAT) + _part(8, name) + _part(9, values.astype("<f4").tobytes())


def _node(kind: str, takes: Sequence[str], gives: str) -> bytes:
    return b"".join(_part(1, name) for name in takes) + _part(2, gives) + _part(4, kind)


def _value(name: str, shape: Sequence[int | str]) -> bytes:
    dims = b"".join(
        _part(1, _part(2, size) if isinstance(size, str) else _whole(1, size)) for size in shape
    )
    return _part(1, name) + _part(2, _part(1, _whole(1, _FLOAT) + _part(2, dims)))


def tiny_onnx(
    colours: Sequence[Colour], side: int = 32, scale: float = 40.0, *, likeness: bool = False
) -> bytes:
    """The content of an ONNX file (IR 8, opset 17). With ``likeness`` it says that a picture is like what it knows as
    far as it is bright."""
    classes = np.array(colours, np.float32) / 255
    weights, bias = scale * classes.T, -scale * (classes**2).sum(axis=1) / 2
    graph = (
        _part(1, _node("GlobalAveragePool", ["image"], "pooled"))
        + _part(1, _node("Flatten", ["pooled"], "embedding"))
        + _part(1, _node("Gemm", ["embedding", "weights", "bias"], "logits"))
        + _part(2, "tiny")
        + _part(5, _tensor("weights", weights))
        + _part(5, _tensor("bias", bias))
        + _part(11, _value("image", ["n", 3, side, side]))
        + _part(12, _value("logits", ["n", len(colours)]))
        + _part(12, _value("embedding", ["n", 3]))
    )
    if likeness:
        axes = _part(1, "axes") + _part(8, bytes([1])) + _whole(20, _INTS)
        gone = _part(1, "keepdims") + _whole(3, 0) + _whole(20, _INT)
        graph += _part(
            1, _node("ReduceMean", ["embedding"], "likeness") + _part(5, axes) + _part(5, gone)
        )
        graph += _part(12, _value("likeness", ["n"]))
    return _whole(1, 8) + _part(7, graph) + _part(8, _whole(2, 17))


def write_tiny_net(
    folder: Path,
    name: str,
    colours: Mapping[str, Colour],
    *,
    threshold: float = 0.0,
    score: str = "max_softmax",
    crops: Mapping[str, Sequence[str]] | None = None,
    **more: Any,
) -> Path:
    """A net and its description, as a recipe writes them; the path of the description. ``more`` replaces fields."""
    folder.mkdir(parents=True, exist_ok=True)
    content = tiny_onnx(list(colours.values()))
    (folder / f"{name}.onnx").write_bytes(content)
    description: dict[str, Any] = {
        "name": name,
        "weights": f"{name}.onnx",
        "sha256": hashlib.sha256(content).hexdigest(),
        "classes": list(colours),
        "input": {
            "name": "image", "shape": ["n", 3, 32, 32], "colour": "RGB", "resize": "squeezed",
            "range": [0.0, 1.0], "normalised_in_graph": True,
        },
        "outputs": {"logits": len(colours), "embedding": 3},
        "temperature": 1.0,
        "abstention": {"score": score, "threshold": threshold, "kept_of_known": 0.9, "refused_of_unknown": 0.8},
        "crops": {crop: list(own) for crop, own in (crops or {}).items()},
        "figures": {},
    }  # fmt: skip
    (folder / f"{name}.json").write_text(json.dumps(description | more))
    return folder / f"{name}.json"


def write_tiny_encoder(folder: Path) -> Path:
    """An encoder of pictures, which gives their mean colour, and its description; the path of the description."""
    graph = (
        _part(1, _node("GlobalAveragePool", ["image"], "pooled"))
        + _part(1, _node("Flatten", ["pooled"], "embedding"))
        + _part(2, "tiny")
        + _part(11, _value("image", ["n", 3, 32, 32]))
        + _part(12, _value("embedding", ["n", 3]))
    )
    content = _whole(1, 8) + _part(7, graph) + _part(8, _whole(2, 17))
    (folder / f"{ENCODER}.onnx").write_bytes(content)
    info = EncoderInfo(
        name=ENCODER,
        weights=f"{ENCODER}.onnx",
        sha256=hashlib.sha256(content).hexdigest(),
        recipe="a test",
        side=32,
        width=3,
        source="made up",
        learnt_from="nothing",
    )
    (folder / f"{ENCODER}.json").write_text(info.model_dump_json())
    return folder / f"{ENCODER}.json"


def mean_logits(pixels: np.ndarray, colours: Sequence[Colour], scale: float = 40.0) -> np.ndarray:
    """What the net must answer, worked out without it."""
    colour = pixels.reshape(-1, 3).mean(axis=0) / 255
    classes = np.array(colours) / 255
    return scale * (classes @ colour - (classes**2).sum(axis=1) / 2)


STRANGER_COLOURS: Mapping[str, Colour] = {
    "sky": (100, 150, 245), "brick": (180, 60, 50), "snow": (240, 240, 245), "plum": (110, 40, 120),
    "rose": (230, 130, 170), "tar": (30, 30, 35), "sea": (20, 110, 140),
}  # fmt: skip


def use_tiny_strangers(patch: pytest.MonkeyPatch, folder: Path, each: int = 8) -> None:
    """Put a tiny encoder, and strangers of a few colours that the tiny nets describe, in the place of those shipped."""
    write_tiny_encoder(nets.nets_folder())
    kinds = [StrangerKind(name=name, words=(name,), pictures=0) for name in STRANGER_COLOURS]
    pictures = {
        name: [plant_picture(colour, 7_000 + 100 * place + seed) for seed in range(each)]
        for place, (name, colour) in enumerate(STRANGER_COLOURS.items())
    }
    write_strangers(folder, kinds, pictures, shipped_features(), "a test")
    patch.setattr("agrotools_tools.recognition.strangers.shipped_file", lambda name: folder / name)


def use_tiny_pack_nets(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Put a tiny net of weeds, and strangers described by it, in the place of what packs learn from."""
    write_tiny_net(folder, "weeds", {"a": (200, 30, 30), "b": (30, 200, 30)})
    patch.setattr("agrotools_tools.vision.nets.nets_folder", lambda: folder)
    use_tiny_strangers(patch, folder)
