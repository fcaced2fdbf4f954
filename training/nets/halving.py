"""Half precision for the weights of an ONNX model."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

SMALLEST_HALVED = 256
"""Weights of fewer numbers stay float32."""


def halve_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Large float32 weights as float16, each cast back where it is read: half the file, the sums in float32."""
    casts: list[onnx.NodeProto] = []
    kept: list[onnx.TensorProto] = []
    for weight in model.graph.initializer:
        values = numpy_helper.to_array(weight)
        if values.dtype != np.float32 or values.size < SMALLEST_HALVED:
            kept.append(weight)
            continue
        kept.append(numpy_helper.from_array(values.astype(np.float16), f"{weight.name}.half"))
        casts.append(
            helper.make_node(
                "Cast", [f"{weight.name}.half"], [weight.name], to=onnx.TensorProto.FLOAT
            )
        )
    nodes = [*casts, *model.graph.node]
    del model.graph.initializer[:], model.graph.node[:]
    model.graph.initializer.extend(kept)
    model.graph.node.extend(nodes)
    onnx.checker.check_model(model, full_check=True)
    return model
