"""Maps of the blocks of the encoder, which it makes of pictures on the way to its numbers: computed once and kept.

Runs on onnxruntime (group ``train-nets``), which is twice as fast as OpenCV; the numbers agree to 1e-5.
"""

import io
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from PIL import Image

from agrotools_tools.recognition.encoder import ENCODER
from agrotools_tools.recognition.net import net_input
from agrotools_tools.vision.nets import nets_folder

EMBEDDING = "embedding"
"""The numbers that packs learn from."""
BELOW_LAST = "_blocks.11._project_conv.out"
"""Map below the last blocks, (192, 7, 7): of the weights, seven tenths lie above it. It is the same of the published
encoder and of the one that ships, whose last blocks are trained."""
SIDE = 224
"""Side of the input of the encoder that ships, pixels."""
FINE, COARSE = "_blocks.4.sum", "_blocks.10.sum"
"""Maps at an eighth and a sixteenth of the side of the picture: 28 x 28 and 14 x 14 of 224."""


class InnerEncoder:
    """The encoder with outputs that are named by its graph. ``side``: of its input, pixels, a multiple of 32. ``file``:
    another encoder than the one that ships."""

    def __init__(self, outputs: Iterable[str], side: int = SIDE, file: Path | None = None) -> None:
        self.outputs, self.side = list(outputs), side
        model = onnx.load(file or nets_folder() / f"{ENCODER}.onnx")
        for dimension in model.graph.input[0].type.tensor_type.shape.dim[2:]:
            dimension.dim_value = side
        present = {one.name for one in model.graph.output}
        model.graph.output.extend(
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
            for name in self.outputs
            if name not in present
        )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3  # errors only
        self.session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def maps(self, pixels: NDArray[np.uint8]) -> list[NDArray[np.float32]]:
        """Return the outputs for a picture, uint8 (rows, columns, 3)."""
        image = net_input(pixels, (self.side, self.side))
        outputs: Any = self.session.run(self.outputs, {"image": image})
        return [one[0] for one in outputs]


def encoded(
    pool: Path,
    images: Iterable[str],
    outputs: Iterable[str],
    kept: Path,
    *,
    side: int = SIDE,
    mirrored: bool = False,
    file: Path | None = None,
) -> list[NDArray[np.float16]]:
    """Return the outputs for pictures of a pool, one array an output, in half precision, mapped from files in ``kept``.

    ``mirrored``: of the mirror images. ``file``: another encoder than the one that ships. The files in ``kept`` are of
    one encoder, and of all the ``images`` in their order.
    """
    names, asked = list(images), list(outputs)
    stem = f"{pool.name}{'.mirrored' if mirrored else ''}"
    paths = [kept / f"{stem}.{output}.npy" for output in asked]
    if not all(path.is_file() for path in paths):
        kept.mkdir(parents=True, exist_ok=True)
        encoder = InnerEncoder(asked, side, file)
        _encode(pool / "images.zip", names, encoder, paths, mirrored=mirrored)
    found = [np.load(path, mmap_mode="r") for path in paths]
    if any(len(one) != len(names) for one in found):
        raise SystemExit(f"{paths[0]} is of other pictures: remove the files of {kept}")
    return found


def _encode(
    archive: Path, names: list[str], encoder: InnerEncoder, paths: list[Path], *, mirrored: bool
) -> None:
    found: list[NDArray[np.float16]] = []
    with zipfile.ZipFile(archive) as file:
        for number, name in enumerate(names):
            with Image.open(io.BytesIO(file.read(name))) as picture:
                pixels = np.asarray(picture.convert("RGB"))
            maps = encoder.maps(pixels[:, ::-1] if mirrored else pixels)
            if not found:
                found = [np.empty((len(names), *one.shape), np.float16) for one in maps]
            for all_of_it, one in zip(found, maps, strict=True):
                all_of_it[number] = one
    for path, one in zip(paths, found, strict=True):
        with path.with_suffix(".partial").open("wb") as file:
            np.save(file, one)
        path.with_suffix(".partial").replace(path)
