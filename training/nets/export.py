"""Writing a net as ONNX with float16 weights, and the description that lies beside it."""

import hashlib
import json
import logging
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from torch import Tensor, nn

from nets.halving import halve_weights
from nets.model import MEAN, STD

OPSET = 17
MAX_BYTES = 6_000_000
log = logging.getLogger("export")


def export_onnx(
    model: nn.Module,
    side: tuple[int, int],
    outputs: tuple[str, ...],
    path: Path,
    *,
    any_size: bool = False,
) -> str:
    """Writes ``path`` and returns its sha256. The graph takes ``image``: float32 (n, 3, height, width), RGB in 0..1,
    of the size ``side`` or of ``any_size``."""
    free = {0: "n", 2: "height", 3: "width"} if any_size else {0: "n"}
    model = model.eval().to(memory_format=torch.contiguous_format)
    path.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # the exporter without onnxscript is deprecated and does what is needed
        torch.onnx.export(
            model,
            (torch.rand(1, 3, *side),),
            str(path),
            dynamo=False,
            opset_version=OPSET,
            input_names=["image"],
            output_names=list(outputs),
            dynamic_axes=dict.fromkeys(("image", *outputs), free),
        )
    content = halve_weights(onnx.load(str(path))).SerializeToString()
    if len(content) > MAX_BYTES:
        raise SystemExit(
            f"{path.name} would have {len(content)} bytes, more than the {MAX_BYTES} a model may have"
        )
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def session_of(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run_onnx(path: Path, pictures: Tensor, output: str = "logits", batch: int = 32) -> np.ndarray:
    """An output for uint8 pictures (n, 3, height, width): what a user of the file gets."""
    session = session_of(path)
    found = [
        session.run([output], {"image": some.float().div_(255).numpy()})[0]
        for some in pictures.split(batch)
    ]
    return np.concatenate(found).astype(np.float64)


def latency_ms(path: Path, side: tuple[int, int], repeats: int = 30) -> float:
    """Median processor time of one picture on one core."""
    session = session_of(path)
    image = np.random.default_rng(0).random((1, 3, *side), np.float32)
    spent: list[float] = []
    for _ in range(repeats):
        began = time.process_time()
        session.run(None, {"image": image})
        spent.append(1000 * (time.process_time() - began))
    return round(float(np.median(spent)), 1)


def input_of(side: tuple[int, int]) -> dict[str, Any]:
    """How a picture becomes the net's input."""
    return {
        "name": "image",
        "shape": ["n", 3, *side],
        "colour": "RGB",
        "resize": "squeezed to height and width, Pillow BILINEAR (antialiased)",
        "range": [0.0, 1.0],
        "mean": list(MEAN),
        "std": list(STD),
        "normalised_in_graph": True,
    }


def write_description(path: Path, description: dict[str, Any]) -> None:
    def rounded(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: rounded(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [rounded(one) for one in value]
        return round(value, 6) if isinstance(value, float) else value

    path.write_text(json.dumps(rounded(description), indent=1, ensure_ascii=False) + "\n")
