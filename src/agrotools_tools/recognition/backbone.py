"""A user's image encoder (an ONNX file such as one of DINOv2 or BioCLIP), whose embeddings a pack learns from.

Only the path and the hash of the file are kept in the pack. Runs on onnxruntime (extra ``onnx``), on the CPU.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agrotools.core import FrozenModel, ToolError, UsageError
from agrotools.core.files import sha256_of_file
from agrotools.core.lazy import import_of_extra
from agrotools_tools.vision.nets import unusable_weights

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Normalisation of DINO, DINOv2 and most nets trained on ImageNet."""
CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
"""Normalisation of CLIP, OpenCLIP and BioCLIP (Radford et al. 2021)."""
NORMALISATIONS = {
    "imagenet": (IMAGENET_MEAN, IMAGENET_STD),
    "clip": (CLIP_MEAN, CLIP_STD),
    "none": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
}
"""Mean and standard deviation of RGB in 0..1 by name; ``none``: the graph normalises, or expects 0..1."""
_USUAL_SIDE = 224
"""Side of the input where the graph accepts any: that of DINOv2 and CLIP in their own examples."""
_AGAIN = "train the pack again, with --backbone FILE.onnx"
_EXPORT = "export the image encoder to ONNX again, with a free number of images"


class BackboneInfo(FrozenModel):
    """Encoder of a user.

    ``sha256``: hash of the file. ``side``: height and width of its input, pixels. ``output``: name of the output that
    is used. ``reads``: how the embedding is taken from it. ``normalisation``: a key of :data:`NORMALISATIONS`.
    """

    path: str
    sha256: str
    side: tuple[int, int]
    output: str
    reads: str
    normalisation: str
    width: int

    def described(self) -> str:
        """Return what the encoder is and how it is used, as a clause."""
        height, width = self.side
        return (
            f"{Path(self.path).name}: input {height} x {width}, normalised as for {self.normalisation}, "
            f"output {self.output} ({self.reads}, {self.width} numbers)"
        )


@dataclass(frozen=True, eq=False)
class Backbone:
    """Encoder that is loaded. ``session``: an ``onnxruntime.InferenceSession``."""

    info: BackboneInfo
    session: Any
    input_name: str

    def embedding(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the embedding of a picture, uint8 (rows, columns, 3), as a row of length 1, float32 (width,).

        ToolError ``backend_unavailable``: the graph cannot be run, or gives no finite numbers.
        """
        image = _input_of(pixels, self.info.side, self.info.normalisation)
        row = _first_row(_run(self.session, self.info.output, self.input_name, image))
        length = float(np.linalg.norm(row))
        if not np.isfinite(length) or length == 0:
            why = "gives an embedding that is zero or not a number"
            raise unusable_weights(f"the encoder {self.info.path}", why, _EXPORT)
        return (row / length).astype(np.float32)


def open_backbone(path: Path, normalisation: str) -> Backbone:
    """Open an encoder for training.

    UsageError: the file is missing or no encoder of single images, or onnxruntime is missing.
    """
    if not path.is_file():
        raise UsageError(f"there is no file {path}", hint="name an ONNX file of an image encoder")
    try:
        session = _session(str(path.absolute()))
    except ToolError as error:
        raise UsageError(error.message, hint=_EXPORT) from error
    inputs: Sequence[Any] = session.get_inputs()
    if len(inputs) != 1 or len(inputs[0].shape) != 4:
        found = ", ".join(f"{one.name} {list(one.shape)}" for one in inputs)
        why = f"{path.name} does not take a single picture (n, 3, rows, columns); its inputs are {found}"
        raise UsageError(why, hint="export the image encoder alone")
    images, channels, height, width = inputs[0].shape
    if isinstance(images, int) and images != 1:
        raise UsageError(f"{path.name} takes {images} images at a time, not one", hint=_EXPORT)
    if isinstance(channels, int) and channels != 3:
        why = f"{path.name} takes {channels} channels instead of 3, or has them last"
        raise UsageError(why, hint="export it with the channels first")
    side = (
        height if isinstance(height, int) else _USUAL_SIDE,
        width if isinstance(width, int) else _USUAL_SIDE,
    )
    output, reads = _chosen_output(path, session.get_outputs())
    blank = np.full((*side, 3), 128, np.uint8)
    image = _input_of(blank, side, normalisation)
    try:
        row = _first_row(_run(session, output, inputs[0].name, image))
    except ToolError as error:
        raise UsageError(error.message, hint=_EXPORT) from error
    info = BackboneInfo(
        path=str(path.absolute()),
        sha256=sha256_of_file(path),
        side=side,
        output=output,
        reads=reads,
        normalisation=normalisation,
        width=len(row),
    )
    return Backbone(info, session, inputs[0].name)


def load_backbone(info: BackboneInfo, what: str) -> Backbone:
    """Load the encoder that a pack was trained with; ToolError ``backend_unavailable`` if its file is missing or
    another. ``what``: the pack, as the beginning of a message."""
    path = Path(info.path)
    if not path.is_file():
        why = f"was trained with the encoder {path}, which is not there"
        raise unusable_weights(what, why, f"put the file back, or {_AGAIN}")
    if sha256_of_file(path) != info.sha256:
        raise unusable_weights(what, f"was trained with another file than {path} is now", _AGAIN)
    try:
        session = _session(str(path))
    except UsageError as error:  # onnxruntime is not installed
        raise unusable_weights(
            what, f"cannot be used: {error.message}", error.hint or ""
        ) from error
    return Backbone(info, session, session.get_inputs()[0].name)


def _chosen_output(path: Path, outputs: Sequence[Any]) -> tuple[str, str]:
    """Return the name of the output with the embedding, and how it is read: the first with one row an image, else the
    first token of the first with a row a token (the class token of vision transformers)."""
    for one in outputs:
        if len(one.shape) == 2:
            return one.name, "one row an image"
    for one in outputs:
        if len(one.shape) == 3:
            return one.name, "its first token"
    found = ", ".join(f"{one.name} {list(one.shape)}" for one in outputs)
    why = (
        f"{path.name} gives no embedding (n, width) or (n, tokens, width); its outputs are {found}"
    )
    raise UsageError(why, hint="export the image encoder without a head for maps")


@cache
def _session(path: str) -> Any:
    onnxruntime = import_of_extra("onnxruntime", "onnx", "a user's encoder needs onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only; warnings about the graph help nobody here
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises types of its own, which share no base class
        why = f"cannot be opened: {_first_line(error)}"
        raise unusable_weights(f"the encoder {path}", why, _AGAIN) from error


def _run(session: Any, output: str, name: str, image: NDArray[np.float32]) -> NDArray[np.float32]:
    try:
        return np.asarray(session.run([output], {name: image})[0], np.float32)
    except Exception as error:  # onnxruntime raises types of its own, which share no base class
        why = f"cannot be run: {_first_line(error)}"
        raise unusable_weights("the encoder", why, _AGAIN) from error


def _first_row(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return values.reshape(-1, values.shape[-1])[0]


def _input_of(
    pixels: NDArray[np.uint8], side: tuple[int, int], normalisation: str
) -> NDArray[np.float32]:
    """Return a picture as the graph's input, float32 (1, 3, height, width): resized without keeping its aspect ratio,
    so that no part of a leaf is cut off."""
    height, width = side
    small = Image.fromarray(np.ascontiguousarray(pixels)).resize(
        (width, height), Image.Resampling.BICUBIC
    )
    mean, deviation = NORMALISATIONS[normalisation]
    scaled = np.asarray(small, np.float32) / np.float32(255)
    normal = (scaled - np.array(mean, np.float32)) / np.array(deviation, np.float32)
    return np.ascontiguousarray(normal.transpose(2, 0, 1)[None])


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
